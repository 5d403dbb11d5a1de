//! SYN cookies (RFC 4987 §3.6): a listener whose backlog is full keeps no state for a SYN; the acknowledgement
//! carries everything it needs.
//!
//! The initial sequence number is the cookie: 5 bits of a counter of minutes, 3 bits for a class of MSS, 24 bits of
//! SipHash over the counter, addresses, ports, the peer's sequence number and the class (after D. J. Bernstein's
//! "SYN cookies"). It is valid for the minute it was made in and the next one. Window scale, SACK and ECN are
//! encoded in the low six bits of our timestamp, which the peer echoes, as in Linux; without timestamps these
//! options are not used.

use gargalo_units::{Instant, Seq};
use gargalo_wire::tcp::{Extra, Flags, Options, Segment, Timestamps};

use crate::connection::Tuple;
use crate::secrets::Key;

/// Values of the MSS option that a cookie can carry; a peer's is rounded down. The endpoint takes no less than the
/// first.
const CLASSES: [u16; 8] = [48, 256, 536, 1220, 1360, 1440, 1460, 8960];
const MINUTE: u64 = 60_000_000_000;
/// In the low bits of the timestamp.
const OPTION_BITS: u32 = 6;
const SCALE: u32 = 0xf;
/// The peer does not scale.
const NO_SCALE: u32 = 0xf;
const SACK: u32 = 0x10;
const ECN: u32 = 0x20;

fn mac(key: Key, tuple: &Tuple, peer: Seq, minute: u64, class: u32) -> u32 {
    key.hash(&(minute, *tuple, peer, class)) as u32 & 0xff_ffff
}

/// The cookie for a SYN.
pub(crate) fn make(key: Key, tuple: &Tuple, syn: &Segment, now: Instant) -> Seq {
    let extra = syn.options.extra.as_deref();
    let mss = extra
        .and_then(|x| x.mss)
        .unwrap_or(gargalo_tcp::default_mss(tuple.is_v6()));
    let class = CLASSES.partition_point(|c| *c <= mss).saturating_sub(1) as u32;
    let minute = now.as_nanos() / MINUTE;
    let mac = mac(key, tuple, syn.seq, minute, class);
    Seq::new(((minute & 31) as u32) << 27 | class << 24 | mac)
}

/// Our timestamp in the SYN-ACK: not later than `now_ticks`, with the options of the SYN in its low bits.
pub(crate) fn timestamp(now_ticks: u32, syn: &Segment) -> u32 {
    let extra = syn.options.extra.as_deref();
    let scale = extra.and_then(|x| x.window_scale);
    let mut bits = scale.map_or(NO_SCALE, |s| u32::from(s.min(14)));
    if extra.is_some_and(|x| x.sack_permitted) {
        bits |= SACK;
    }
    if syn.flags.contains(Flags::ECE | Flags::CWR) {
        bits |= ECN;
    }
    let base = now_ticks >> OPTION_BITS << OPTION_BITS;
    if base | bits > now_ticks {
        (base | bits).wrapping_sub(1 << OPTION_BITS)
    } else {
        base | bits
    }
}

/// Reconstructs the SYN that the acknowledgement `ack` completes, if it carries a valid cookie. `offset` is that of
/// our timestamp clock.
pub(crate) fn check(key: Key, tuple: &Tuple, ack: &Segment, now: Instant) -> Option<Segment> {
    let cookie = (ack.ack + u32::MAX).get();
    let peer = ack.seq + u32::MAX;
    let this_minute = now.as_nanos() / MINUTE;
    let minute = [0, 1]
        .iter()
        .filter_map(|age| this_minute.checked_sub(*age))
        .find(|m| (m & 31) as u32 == cookie >> 27)?;
    let class = cookie >> 24 & 7;
    if mac(key, tuple, peer, minute, class) != cookie & 0xff_ffff {
        return None;
    }
    let mut extra = Extra {
        mss: CLASSES.get(class as usize).copied(),
        ..Extra::default()
    };
    let mut flags = Flags::SYN;
    if let Some(t) = ack.options.timestamps {
        extra.sack_permitted = t.echo & SACK != 0;
        extra.window_scale = match t.echo & SCALE {
            NO_SCALE => None,
            // At most 14.
            shift => Some(shift as u8),
        };
        if t.echo & ECN != 0 {
            flags = flags | Flags::ECE | Flags::CWR;
        }
    }
    Some(Segment {
        src_port: ack.src_port,
        dst_port: ack.dst_port,
        seq: peer,
        flags,
        window: ack.window,
        options: Options {
            timestamps: ack.options.timestamps.map(|t| Timestamps {
                value: t.value,
                echo: 0,
            }),
            extra: Some(Box::new(extra)),
            ..Options::default()
        },
        ..Segment::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Secrets;
    use gargalo_units::Duration;
    use gargalo_wire::ip::Addresses;
    use proptest::prelude::*;

    fn tuple(remote_port: u16) -> Tuple {
        Tuple {
            addresses: Addresses::V4 {
                src: [10, 0, 0, 2].into(),
                dst: [10, 0, 0, 1].into(),
            },
            local_port: 80,
            remote_port,
        }
    }

    fn syn(mss: Option<u16>, window_scale: Option<u8>, sack_permitted: bool) -> Segment {
        Segment {
            seq: Seq::new(77),
            flags: Flags::SYN,
            options: Options {
                timestamps: Some(Timestamps { value: 5, echo: 0 }),
                extra: Some(Box::new(Extra {
                    mss,
                    window_scale,
                    sack_permitted,
                    ..Extra::default()
                })),
                ..Options::default()
            },
            ..Segment::default()
        }
    }

    fn answer(cookie: Seq, echo: u32) -> Segment {
        Segment {
            seq: Seq::new(78),
            ack: cookie + 1,
            flags: Flags::ACK,
            options: Options {
                timestamps: Some(Timestamps { value: 9, echo }),
                ..Options::default()
            },
            ..Segment::default()
        }
    }

    proptest! {
        #[test]
        fn what_the_syn_offers_comes_back(
            mss in prop::option::of(1u16..),
            scale in prop::option::of(0u8..15),
            sack: bool,
            ticks: u32,
            nanos in 0u64..1 << 50,
        ) {
            let key = Secrets::new(3).cookie;
            let now = Instant::from_nanos(nanos);
            let syn = syn(mss, scale, sack);
            let cookie = make(key, &tuple(1), &syn, now);
            let echo = timestamp(ticks, &syn);
            prop_assert!(ticks.wrapping_sub(echo) < 64, "not from the future, and hardly older");
            let found = check(key, &tuple(1), &answer(cookie, echo), now + Duration::from_secs(59));
            let extra = found.unwrap().options.extra.unwrap();
            prop_assert_eq!((extra.window_scale, extra.sack_permitted), (scale, sack));
            let (encoded, wanted) = (extra.mss.unwrap(), mss.unwrap_or(536));
            prop_assert!(encoded <= wanted.max(48) && CLASSES.iter().all(|c| *c <= encoded || *c > wanted));
        }
    }

    #[test]
    fn a_cookie_expires_and_belongs_to_one_connection_and_host() {
        let key = Secrets::new(3).cookie;
        let now = Instant::from_nanos(100 * MINUTE);
        let cookie = make(key, &tuple(1), &syn(Some(1460), None, false), now);
        let ack = answer(cookie, 0);
        assert!(check(key, &tuple(1), &ack, now).is_some());
        assert!(check(key, &tuple(2), &ack, now).is_none());
        assert!(check(Secrets::new(4).cookie, &tuple(1), &ack, now).is_none());
        let late = now + Duration::from_secs(120);
        assert!(check(key, &tuple(1), &ack, late).is_none());
        // 32 minutes later the counter's low bits are the same.
        let again = now + Duration::from_secs(32 * 60);
        assert!(check(key, &tuple(1), &ack, again).is_none());
        let guesses = (0..100_000u32).filter(|n| {
            let guess = answer(Seq::new((100 & 31) << 27 | *n), 0);
            check(key, &tuple(1), &guess, now).is_some()
        });
        assert!(guesses.count() < 2);
    }
}
