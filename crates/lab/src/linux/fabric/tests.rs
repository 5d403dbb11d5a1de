use gargalo_flow::rng;
use gargalo_link::{Delay, LossModel, QueueConfig, QueueLimit, RateModel};
use gargalo_units::{Duration, Rate};
use gargalo_wire::ip::{Addresses, Datagram, Header, Transport, Verify};
use gargalo_wire::udp;
use proptest::prelude::*;

use super::*;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn delayed(n: u64) -> LinkConfig {
    LinkConfig {
        delay: Delay::Constant(Duration::from_millis(n)),
        ..LinkConfig::default()
    }
}

/// A network of two ports, joined by a path over these links.
fn chain(links: &[LinkConfig]) -> Fabric {
    let both = links.iter().flat_map(|l| [("link", l), ("link", l)]);
    Fabric::chain(both, |d| rng::stream(1, &format!("{d}"))).unwrap()
}

/// A datagram that carries a number.
fn frame(number: u32, length: usize, ecn: Ecn) -> Frame {
    let addresses = Addresses::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).unwrap();
    let header = Header {
        ecn,
        ..Header::new(addresses)
    };
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(length - 28, 0);
    let datagram = udp::Datagram {
        src_port: 1,
        dst_port: 2,
        payload: gargalo_wire::tcp::Payload::real(payload.into()),
    };
    let mut out = vec![0; HEADROOM];
    header.emit_udp(&datagram, &mut out).unwrap();
    out
}

fn number(frame: &Frame) -> u32 {
    let parsed = Datagram::parse(&frame[HEADROOM..], Verify::All).unwrap();
    let Transport::Udp(d) = parsed.transport else {
        panic!("not UDP");
    };
    let bytes = d.payload.bytes().unwrap();
    u32::from_be_bytes(*bytes.first_chunk().unwrap())
}

/// The datagrams that leave by `now`: port, number, when it was due.
fn leaving(fabric: &mut Fabric, now: Instant) -> Vec<(PortId, u32, Instant)> {
    let mut out = Vec::new();
    fabric.advance(now, |port, f, passage| {
        out.push((port, number(&f), passage.due))
    });
    out
}

#[test]
fn lateness_does_not_add_up_over_links() {
    let mut fabric = chain(&[delayed(10), delayed(20)]);
    fabric.inject(ms(0), 0, frame(7, 100, Ecn::NotEct));
    assert_eq!(fabric.next_event(), ms(10));
    // The network is advanced only long after; the datagram still left when it was due.
    assert_eq!(leaving(&mut fabric, ms(100)), [(1, 7, ms(30))]);
    fabric.inject(ms(100), 1, frame(8, 100, Ecn::NotEct));
    assert_eq!(leaving(&mut fabric, ms(129)), []);
    assert_eq!(leaving(&mut fabric, ms(130)), [(0, 8, ms(130))]);
    assert_eq!(fabric.next_event(), Instant::MAX);
}

#[test]
fn a_duplicate_is_a_datagram_of_its_own() {
    let twice = LinkConfig {
        duplicate: 1.0,
        ..delayed(1)
    };
    let mut fabric = chain(&[twice.clone(), twice]);
    fabric.inject(ms(0), 0, frame(7, 100, Ecn::NotEct));
    assert_eq!(leaving(&mut fabric, ms(5)), [(1, 7, ms(2)); 4]);
}

#[test]
fn marks_are_on_the_wire() {
    let slow = LinkConfig {
        rate: RateModel::Constant(Rate::from_mbps(1)),
        queue: QueueConfig::Step(gargalo_link::StepConfig {
            mark_above: QueueLimit::Packets(1),
            ..gargalo_link::StepConfig::default()
        }),
        ..LinkConfig::default()
    };
    let mut fabric = chain(&[slow]);
    for i in 0..10 {
        fabric.inject(ms(0), 0, frame(i, 1000, Ecn::Ect0));
    }
    let mut marked = 0;
    fabric.advance(ms(1000), |_, f, _| {
        let parsed = Datagram::parse(&f[HEADROOM..], Verify::All).expect("checksums fit");
        marked += u32::from(parsed.header.ecn == Ecn::Ce);
    });
    assert!((5..10).contains(&marked), "{marked}");
}

#[test]
fn a_router_reports_what_is_too_long() {
    let narrow = LinkConfig {
        mtu: 1300,
        ..delayed(5)
    };
    let mut fabric = chain(&[delayed(5), narrow]);
    fabric.inject(ms(0), 0, frame(1, 1300, Ecn::NotEct));
    fabric.inject(ms(0), 0, frame(2, 1301, Ecn::NotEct));
    let mut out = Vec::new();
    for t in [5, 10] {
        fabric.advance(ms(t), |port, f, _| out.push((port, f)));
        assert!(fabric.next_event() > ms(t) || fabric.next_event() == Instant::ZERO);
    }
    let [(back, report), (there, _)] = &out[..] else {
        panic!("{} came out", out.len());
    };
    assert_eq!((*back, *there), (0, 1));
    let parsed = Datagram::parse(&report[HEADROOM..], Verify::All).unwrap();
    let Transport::Other {
        protocol: 1,
        payload,
    } = parsed.transport
    else {
        panic!("not ICMP");
    };
    assert_eq!(payload[..2], [3, 4]);
    assert_eq!(payload[6..8], 1300u16.to_be_bytes());
}

#[test]
fn what_is_no_datagram_or_has_no_way_is_counted() {
    let mut fabric = chain(&[delayed(1)]);
    let alone = fabric.add_port();
    fabric.inject(ms(0), 0, vec![0; HEADROOM]);
    fabric.inject(ms(0), 0, vec![0xff; HEADROOM + 5]);
    fabric.inject(ms(0), 0, Vec::new());
    fabric.inject(ms(0), alone, frame(1, 100, Ecn::NotEct));
    let stats = fabric.stats();
    assert_eq!(
        (stats.packets, stats.malformed, stats.unroutable),
        (0, 3, 1)
    );
    assert_eq!(fabric.next_event(), Instant::MAX);
}

proptest! {
    /// For any behaviour of links, and however rarely the network is advanced: every datagram leaves as often as the
    /// links determine, unchanged, and nothing remains in the network.
    #[test]
    fn nothing_is_lost_but_by_links(
        loss in 0.0..0.3, duplicate in 0.0..0.3, limit in 1u64..50,
        times in prop::collection::vec(0u64..200, 1..100),
        looks in prop::collection::vec(1u64..50, 1..20),
    ) {
        let wild = LinkConfig {
            rate: RateModel::Constant(Rate::from_mbps(2)),
            loss: LossModel::Independent(loss),
            duplicate,
            queue: QueueConfig::DropTail(QueueLimit::Packets(limit)),
            ..delayed(3)
        };
        let mut fabric = chain(&[wild.clone(), wild]);
        let mut times = times;
        times.sort_unstable();
        let mut looks = looks.iter().cycle();
        let mut look = 0;
        let mut out = 0u64;
        for (i, t) in times.iter().enumerate() {
            while look < *t {
                look += looks.next().unwrap();
                out += leaving(&mut fabric, ms(look.min(*t))).len() as u64;
            }
            out += leaving(&mut fabric, ms(*t)).len() as u64;
            fabric.inject(ms(*t), 0, frame(i as u32, 500, Ecn::NotEct));
        }
        let late = leaving(&mut fabric, ms(100_000));
        prop_assert!(late.windows(2).all(|w| w[0].2 <= w[1].2));
        out += late.len() as u64;
        prop_assert_eq!(out, fabric.links_mut()[2].stats().delivered_packets);
        prop_assert_eq!(fabric.next_event(), Instant::MAX);
        prop_assert_eq!(fabric.vacant.len(), fabric.transit.len());
    }
}
