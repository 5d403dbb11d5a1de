/// The receive window: the advertised value, and when to send an update.
///
/// Offsets count from the first byte after the peer's SYN. The right edge never moves back (RFC 9293 §3.8.6.2.1);
/// on the wire it can by less than one unit of the scale (RFC 7323 §2.4), so data up to the furthest edge ever
/// advertised is accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Capacity of the receive buffer in bytes.
    buffer: u64,
    /// The largest window; [`u64::MAX`] if only the buffer limits it.
    most: u64,
    /// Offset after the last byte the peer may send.
    edge: u64,
    /// Growth of the edge that is worth announcing: min(buffer / 2, MSS).
    step: u64,
    /// Window scale shift (RFC 7323 §2).
    shift: u8,
    /// The grant of a shared window; [`Self::OWN`] if it is not shared.
    shared: u64,
}

/// The largest shift allowed (RFC 7323 §2.3).
pub(crate) const MAX_SHIFT: u8 = 14;

/// The smallest shift with which `buffer` bytes can be advertised.
pub(crate) fn shift_for(buffer: u64) -> u8 {
    (0..MAX_SHIFT)
        .find(|s| buffer >> s <= u64::from(u16::MAX))
        .unwrap_or(MAX_SHIFT)
}

/// The window field of a segment with SYN: never scaled (RFC 7323 §2.2).
pub(crate) fn initial_window(buffer: u64) -> u16 {
    u16::try_from(buffer).unwrap_or(u16::MAX)
}

/// Growth of the edge that is worth announcing (RFC 9293 §3.8.6.2.2).
fn step(buffer: u64, mss: u64) -> u64 {
    (buffer / 2).min(mss).max(1)
}

impl Window {
    /// For a buffer of `buffer` bytes and segments of `mss` bytes; unscaled until [`Self::scale`].
    pub(crate) fn new(buffer: u64, mss: u64) -> Self {
        Self {
            buffer,
            most: u64::MAX,
            edge: buffer.min(u64::from(u16::MAX)),
            step: step(buffer, mss),
            shift: 0,
            shared: Self::OWN,
        }
    }

    /// Changes the buffer and the largest window.
    #[inline]
    pub(crate) fn resize(&mut self, (buffer, most): (u64, u64)) {
        (self.buffer, self.most) = (buffer, most);
    }

    /// The furthest edge possible.
    #[inline]
    fn limit(&self, read: u64, next: u64) -> u64 {
        let limit = read + self.buffer.min(u64::from(u16::MAX) << self.shift);
        limit.min(next.saturating_add(self.most))
    }

    /// The window is shared with other receivers.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.shared != Self::OWN
    }

    /// The handshake agreed on segments of `mss` bytes.
    pub(crate) fn set_mss(&mut self, mss: u64) {
        self.step = step(self.buffer, mss);
    }

    const OWN: u64 = u64::MAX;

    /// A window shared by several receivers (RFC 8684 §3.3.1): the window field has the rest of it. Its owner
    /// enforces it. Here twice the buffer is accepted, because data reinjected on other subflows occupies this
    /// stream but not the window.
    pub(crate) fn share(&mut self, bytes: Option<u64>, next: u64) {
        match bytes {
            Some(n) => self.shared = n.min(Self::OWN - 1),
            None if self.shared != Self::OWN => {
                self.edge = self.edge.max(next);
                self.shared = Self::OWN;
            }
            None => {}
        }
    }

    #[cold]
    fn advertise_shared(&mut self, next: u64) -> u16 {
        self.edge = self.edge.max(next + 2 * self.buffer.min(1 << 40));
        u16::try_from(self.shared >> self.shift).unwrap_or(u16::MAX)
    }

    /// Both sides agreed on scaling (RFC 7323 §2.2).
    pub(crate) fn scale(&mut self, shift: u8) {
        self.shift = shift;
    }

    /// Offset after the last byte the peer may send.
    #[inline]
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// Moves the edge as far as the buffer allows and returns the window field to send. `read` is
    /// the offset up to which the application has read, `next` the next one expected.
    #[inline]
    pub(crate) fn advertise(&mut self, read: u64, next: u64) -> u16 {
        if self.is_shared() {
            return self.advertise_shared(next);
        }
        // RFC 9293 §3.8.6.2.2: no small steps.
        let limit = self.limit(read, next);
        if limit >= self.edge + self.step {
            self.edge = limit;
        }
        let window = self.edge.saturating_sub(next) >> self.shift;
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// The window field of a segment with SYN: never scaled (RFC 7323 §2.2).
    pub(crate) fn initial(&self) -> u16 {
        initial_window(self.buffer.min(self.shared))
    }

    /// Whether the window grew enough by reading to send an update at once: by at least one step, and to twice the
    /// advertised one. While data flows, ordinary acknowledgements carry the update.
    #[inline]
    pub(crate) fn wants_update(&self, read: u64, next: u64) -> bool {
        if self.is_shared() {
            return false;
        }
        let known = self.edge.saturating_sub(next);
        let limit = self.limit(read, next);
        let possible = limit.saturating_sub(next);
        // The peer does not see amounts below the unit of the scale.
        let visible = (known >> self.shift) << self.shift;
        limit >= self.edge + self.step && possible >= 2 * visible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_is_the_least_that_expresses_the_buffer() {
        assert_eq!(shift_for(65_535), 0);
        assert_eq!(shift_for(65_536), 1);
        assert_eq!(shift_for(6 << 20), 7);
        assert_eq!(shift_for(u64::MAX), MAX_SHIFT);
    }

    #[test]
    fn the_edge_never_moves_back_and_only_by_worthwhile_steps() {
        let mut w = Window::new(10_000, 1_000);
        assert_eq!(w.advertise(0, 0), 10_000);
        assert_eq!(w.advertise(0, 4_000), 6_000);
        assert_eq!(w.advertise(999, 4_000), 6_000);
        assert_eq!(w.advertise(1_000, 4_000), 7_000);
        assert_eq!(w.edge(), 11_000);
        assert_eq!(w.advertise(1_000, 11_000), 0);
        assert!(!w.wants_update(1_999, 11_000));
        assert!(w.wants_update(2_000, 11_000));
    }

    #[test]
    fn a_tiny_buffer_opens_by_halves() {
        let mut w = Window::new(1_000, 1_448);
        assert_eq!(w.advertise(0, 1_000), 0);
        assert!(!w.wants_update(499, 1_000));
        assert!(w.wants_update(500, 1_000));
        assert_eq!(w.advertise(500, 1_000), 500);
    }

    #[test]
    fn a_reader_that_keeps_up_needs_no_updates() {
        let w = Window::new(100_000, 1_000);
        assert!(!w.wants_update(2_000, 2_000));
    }

    #[test]
    fn scaled_windows_round_down() {
        let mut w = Window::new(1 << 20, 1_448);
        w.scale(5);
        assert_eq!(u64::from(w.advertise(1_448, 1_448)) << 5, 1 << 20);
        assert_eq!(w.advertise(1_448, 1_449), (1 << 15) - 1);
        assert_eq!(w.edge(), (1 << 20) + 1_448);
    }
}
