/// The send window (RFC 9293 §3.3.1: SND.WND, SND.WL1, SND.WL2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerWindow {
    /// SND.WND in bytes.
    bytes: u64,
    /// The largest so far (MAX.SND.WND of RFC 5961 §5).
    largest: u64,
    /// Offset in the peer's stream of the segment that granted it (SND.WL1).
    wl1: i64,
    /// Offset it acknowledged (SND.WL2).
    wl2: u64,
    /// Window scale shift (RFC 7323 §2).
    shift: u8,
}

impl PeerWindow {
    /// The window of the peer's SYN, which is not scaled.
    pub(crate) fn new(field: u16) -> Self {
        let bytes = u64::from(field);
        Self {
            bytes,
            largest: bytes,
            wl1: -1,
            wl2: 0,
            shift: 0,
        }
    }

    /// Both sides agreed on scaling.
    pub(crate) fn scale(&mut self, shift: u8) {
        self.shift = shift;
    }

    /// SND.WND in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A window field in bytes.
    #[inline]
    pub(crate) fn scaled(&self, field: u16) -> u64 {
        u64::from(field) << self.shift
    }

    /// The largest window so far.
    #[inline]
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }

    /// Takes the window of an acceptable segment at offset `seq` that acknowledges `ack`, unless a newer segment
    /// has updated it (RFC 9293 §3.10.7.4). Returns whether it changed.
    #[inline]
    pub(crate) fn update(&mut self, field: u16, seq: i64, ack: u64) -> bool {
        if seq < self.wl1 || (seq == self.wl1 && ack < self.wl2) {
            return false;
        }
        self.wl1 = seq;
        self.wl2 = ack;
        let bytes = self.scaled(field);
        let changed = bytes != self.bytes;
        self.bytes = bytes;
        self.largest = self.largest.max(bytes);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newer_segments_move_the_window() {
        let mut w = PeerWindow::new(1000);
        w.scale(2);
        assert_eq!(w.bytes(), 1000);
        assert!(w.update(500, 0, 10));
        assert_eq!((w.bytes(), w.largest()), (2000, 2000));
        assert!(!w.update(100, 0, 9));
        assert!(!w.update(500, 0, 10));
        assert!(w.update(100, 1, 9));
        assert_eq!((w.bytes(), w.largest()), (400, 2000));
        assert!(!w.update(900, 0, 99));
    }
}
