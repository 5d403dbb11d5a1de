use bytes::Bytes;
use gargalo_units::Seq;

use crate::mptcp;

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the timestamp clock of the sender.
    pub value: u32,
    /// TSecr: a TSval received from the other end; meaningful with ACK.
    pub echo: u32,
}

/// Up to four SACK blocks (RFC 2018), left edge inclusive, right edge exclusive. They are boxed: most segments have
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks(Option<Box<Blocks>>);

/// At least one block; those from `len` on are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Blocks {
    blocks: [(Seq, Seq); 4],
    len: u8,
}

impl SackBlocks {
    /// No blocks: the segment has no SACK option.
    pub const EMPTY: Self = Self(None);

    /// Appends a block; `false` when there are four already.
    #[inline]
    pub fn push(&mut self, left: Seq, right: Seq) -> bool {
        let list = self.0.get_or_insert_default();
        let i = usize::from(list.len);
        if i == 4 {
            return false;
        }
        list.blocks[i] = (left, right);
        list.len += 1;
        true
    }
    /// The blocks in the order of the wire.
    #[inline]
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        match &self.0 {
            None => &[],
            Some(list) => &list.blocks[..usize::from(list.len)],
        }
    }
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }
    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    /// Keeps the first `n`.
    #[inline]
    pub fn truncate(&mut self, n: usize) {
        if n == 0 {
            self.0 = None;
        } else if let Some(list) = &mut self.0 {
            let kept = n.min(usize::from(list.len));
            list.blocks[kept..].fill((Seq::new(0), Seq::new(0)));
            list.len = kept as u8;
        }
    }
}

/// Room for options in a TCP header (RFC 9293 §3.1: data offset of at most 15 words).
pub const MAX_OPTIONS_LEN: u32 = 40;

/// The options of a segment. The one that most segments carry is inline, the rest is boxed.
///
/// # On the wire
/// Options are laid out as Linux does: MSS; timestamps, together with SACK permitted in a SYN; window
/// scale; SACK; Fast Open; MPTCP; others; each preceded or followed by NOPs so that all begin on 32-bit
/// words. If that takes more than 40 bytes, they are packed without NOPs. If that is too long as well,
/// SACK blocks are left out from the last one on (RFC 2018 §4: as many blocks as fit, the most recent
/// first), and the aligned layout is preferred again. [`Options::fit`] applies the same rule to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Timestamps option (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// RFC 2018 and 2883.
    pub sack: SackBlocks,
    /// Handshake, Fast Open and unknown options.
    pub extra: Option<Box<Extra>>,
    /// MPTCP options (RFC 8684).
    pub mptcp: Option<Box<mptcp::List>>,
}

/// Options that few segments carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Fast Open cookie (RFC 7413 §4.1.1); empty is a request.
    pub fast_open: Option<Bytes>,
    /// Other options as (kind, data), in order: unknown kinds, known ones with a length they must not
    /// have, repeated ones. Kinds 0 and 1 have no data and are not written.
    pub other: Vec<(u8, Bytes)>,
}

/// How options are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// With NOPs, every option on a 32-bit word.
    pub(super) aligned: bool,
    /// SACK blocks written.
    pub(super) sack: usize,
    /// Length with padding; more than [`MAX_OPTIONS_LEN`] if the options do not fit.
    pub(super) len: u32,
}

impl Options {
    /// Whether none of them is on the heap: there are none but timestamps.
    #[inline]
    pub(super) const fn is_flat(&self) -> bool {
        self.sack.is_empty() && self.extra.is_none() && self.mptcp.is_none()
    }
    /// Length of all options before padding.
    #[inline]
    pub fn len(&self) -> u32 {
        let mut n = 0;
        if self.timestamps.is_some() {
            n += 10;
        }
        if !self.sack.is_empty() {
            n += 2 + 8 * self.sack.len() as u32;
        }
        if let Some(x) = &self.extra {
            n += x.len();
        }
        if let Some(m) = &self.mptcp {
            n += m.iter().map(mptcp::MptcpOption::len).sum::<u32>();
        }
        n
    }
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Length on the wire: with padding, and without the SACK blocks that do not fit. Above [`MAX_OPTIONS_LEN`]
    /// only when the options do not fit without SACK blocks either.
    #[inline(always)]
    pub fn padded_len(&self) -> u32 {
        if self.is_flat() {
            return if self.timestamps.is_some() { 12 } else { 0 };
        }
        self.padded_len_of_others()
    }

    #[inline(never)]
    fn padded_len_of_others(&self) -> u32 {
        if self.extra.is_none() {
            // Nearly every other segment of a transfer.
            let (timestamps, n) = (self.timestamps.is_some(), self.sack.len() as u32);
            match (&self.mptcp, timestamps, n) {
                (None, true, n) if n > 0 => return 16 + 8 * n.min(3),
                (None, false, n) if n > 0 => return 4 + 8 * n,
                (Some(list), timestamps, 0) => {
                    let len = list.aligned_len() + if timestamps { 12 } else { 0 };
                    if len <= MAX_OPTIONS_LEN {
                        return len;
                    }
                }
                _ => {}
            }
        }
        self.layout().len
    }

    /// Removes the SACK blocks that would not fit on the wire.
    pub fn fit(&mut self) {
        let n = self.layout().sack;
        self.sack.truncate(n);
    }

    /// The Fast Open cookie of the experimental option (RFC 7413 §4.1.1's predecessor: kind 254, magic
    /// 0xF989); empty is a request.
    pub fn fast_open_experimental(&self) -> Option<&[u8]> {
        let other = &self.extra.as_ref()?.other;
        other
            .iter()
            .find_map(|(kind, data)| match (kind, &data[..]) {
                (254, [0xf9, 0x89, cookie @ ..]) => Some(cookie),
                _ => None,
            })
    }

    pub(super) fn layout(&self) -> Layout {
        let blocks = self.sack.len();
        let sack_len = if blocks == 0 {
            0
        } else {
            2 + 8 * blocks as u32
        };
        let packed = self.len() - sack_len;
        let aligned = self.aligned_len_without_sack();
        for sack in (0..=blocks).rev() {
            let blocks = 8 * sack as u32;
            let kind = if sack == 0 { (0, 0) } else { (4, 2) };
            for (is_aligned, len) in [(true, aligned + kind.0), (false, packed + kind.1)] {
                let len = (len + blocks).next_multiple_of(4);
                if len <= MAX_OPTIONS_LEN {
                    return Layout {
                        aligned: is_aligned,
                        sack,
                        len,
                    };
                }
            }
        }
        Layout {
            aligned: false,
            sack: 0,
            len: packed.next_multiple_of(4),
        }
    }

    fn aligned_len_without_sack(&self) -> u32 {
        let words = |len: u32| len.next_multiple_of(4);
        let mut n = 0;
        if self.timestamps.is_some() {
            n += 12;
        }
        if let Some(x) = &self.extra {
            // SACK permitted takes the place of the two NOPs before the timestamps.
            let permitted = x.sack_permitted && self.timestamps.is_none();
            n += if x.mss.is_some() { 4 } else { 0 };
            n += if permitted { 4 } else { 0 };
            n += if x.window_scale.is_some() { 4 } else { 0 };
            n += x
                .fast_open
                .as_ref()
                .map_or(0, |c| words(2 + c.len() as u32));
            n += x
                .written()
                .map(|(_, d)| words(2 + d.len() as u32))
                .sum::<u32>();
        }
        if let Some(m) = &self.mptcp {
            n += m.aligned_len();
        }
        n
    }
}

impl Extra {
    fn len(&self) -> u32 {
        let mut n = 0;
        if self.mss.is_some() {
            n += 4;
        }
        if self.window_scale.is_some() {
            n += 3;
        }
        if self.sack_permitted {
            n += 2;
        }
        if let Some(c) = &self.fast_open {
            n += 2 + c.len() as u32;
        }
        n + self.written().map(|(_, d)| 2 + d.len() as u32).sum::<u32>()
    }

    /// The other options that have a form on the wire.
    pub(super) fn written(&self) -> impl Iterator<Item = &(u8, Bytes)> {
        self.other.iter().filter(|(kind, _)| *kind > 1)
    }
}
