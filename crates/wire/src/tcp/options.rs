use bytes::Bytes;
use gargalo_units::Seq;

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr.
    pub echo: u32,
}

/// Up to four SACK blocks (RFC 2018), left edge inclusive, right edge exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(Seq, Seq); 4],
    len: u8,
}

impl SackBlocks {
    /// No block.
    pub const EMPTY: Self = Self {
        blocks: [(Seq::new(0), Seq::new(0)); 4],
        len: 0,
    };

    /// Appends a block; `false` when there are four already.
    #[inline]
    pub fn push(&mut self, left: Seq, right: Seq) -> bool {
        let i = usize::from(self.len);
        if i == 4 {
            return false;
        }
        self.blocks[i] = (left, right);
        self.len += 1;
        true
    }
    /// The blocks in the order of the wire.
    #[inline]
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..usize::from(self.len)]
    }
    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The options of a segment. The two that most segments carry are inline, the rest is boxed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// RFC 7323.
    pub timestamps: Option<Timestamps>,
    /// RFC 2018 and 2883.
    pub sack: SackBlocks,
    /// Handshake, Fast Open, MPTCP and unknown options.
    pub extra: Option<Box<Extra>>,
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
    /// Other options as (kind, data), in order; MPTCP (kind 30) among them.
    pub other: Vec<(u8, Bytes)>,
}

impl Options {
    /// Length on the wire before padding.
    #[inline]
    pub fn len(&self) -> u32 {
        let mut n = 0;
        if self.timestamps.is_some() {
            n += 10;
        }
        if !self.sack.is_empty() {
            n += 2 + 8 * self.sack.as_slice().len() as u32;
        }
        if let Some(x) = &self.extra {
            n += x.len();
        }
        n
    }
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Length on the wire, padded to a multiple of four.
    #[inline]
    pub fn padded_len(&self) -> u32 {
        self.len().next_multiple_of(4)
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
        n + self
            .other
            .iter()
            .map(|(_, d)| 2 + d.len() as u32)
            .sum::<u32>()
    }
}
