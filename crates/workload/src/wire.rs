//! The calculated number of bytes that a transfer puts on the wire, from which loads are computed, without losses
//! and retransmissions.

use super::tls::Tls;

/// Packet sizes and acknowledgement policy of a connection.
#[derive(Clone, Copy, Debug)]
pub struct WireModel {
    /// Maximum data of a segment, in bytes; above zero.
    pub segment: u64,
    /// Headers of a segment, in bytes.
    pub header: u64,
    /// Size of a packet that opens a connection, in bytes.
    pub opening: u64,
    /// Segments per acknowledgement; above zero.
    pub every: u64,
    /// Segments at the beginning that are acknowledged one by one.
    pub quick: u64,
    /// TLS, if it is used.
    pub tls: Option<Tls>,
}

/// Bytes on the wire, IP headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireBytes {
    /// In the direction of the data.
    pub forward: u64,
    /// In the opposite direction: handshake, requests, acknowledgements.
    pub reverse: u64,
}

impl WireBytes {
    /// Adds the bytes of another transfer.
    pub fn add(&mut self, other: Self) {
        self.forward = self.forward.saturating_add(other.forward);
        self.reverse = self.reverse.saturating_add(other.reverse);
    }
}

impl std::ops::Sub for WireBytes {
    type Output = Self;
    /// The bytes added since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            forward: self.forward.saturating_sub(before.forward),
            reverse: self.reverse.saturating_sub(before.reverse),
        }
    }
}

impl WireModel {
    /// The model with the bytes of TLS added; unchanged for `None`.
    #[must_use]
    pub fn inside(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// Data in records, if there are any.
    fn protected(&self, bytes: u64) -> u64 {
        self.tls.map_or(bytes, |tls| tls.protected(bytes))
    }

    /// The bytes of a TLS handshake on the wire, of the client and of the server: the ClientHello or, with early
    /// data, the client's Finished in separate segments, which the answers acknowledge, and the server's flight.
    /// The other flight of the client shares segments with its data.
    fn handshake(&self) -> (u64, u64) {
        let Some(tls) = self.tls else {
            return (0, 0);
        };
        let (hello, finished) = (tls.client_hello.get(), tls.client_finished.get());
        let apart = if tls.early_data { finished } else { hello };
        let flight = tls.server_flight.get();
        let headers = |bytes| self.segments(bytes).saturating_mul(self.header);
        (hello + finished + headers(apart), flight + headers(flight))
    }

    fn segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.segment)
    }

    fn acknowledgements(&self, segments: u64) -> u64 {
        let quick = segments.min(self.quick);
        quick + (segments - quick).div_ceil(self.every)
    }

    /// A connection opened by the sender of the data, which closes it when all is sent: SYN, acknowledgement and
    /// last acknowledgement in addition to the data, whose last segment carries FIN.
    pub fn push(&self, bytes: u64) -> WireBytes {
        let bytes = self.protected(bytes);
        let data = self.segments(bytes);
        let (client, server) = self.handshake();
        WireBytes {
            forward: (bytes.saturating_add(client))
                .saturating_add(data.saturating_mul(self.header))
                .saturating_add(self.opening + 2 * self.header),
            // SYN-ACK, acknowledgements, FIN with the last of them.
            reverse: (self.opening + server)
                .saturating_add(self.acknowledgements(data).saturating_mul(self.header)),
        }
    }

    /// A connection opened by the receiver of the data, which requests one object after another.
    pub fn pull(&self, request: u64, objects: impl IntoIterator<Item = u64>) -> WireBytes {
        let (mut bytes, mut data, mut asked, mut asks) = (0u64, 0u64, 0u64, 0u64);
        for size in objects {
            let (size, request) = (self.protected(size), self.protected(request));
            bytes = bytes.saturating_add(size);
            data = data.saturating_add(self.segments(size));
            asked = asked.saturating_add(request);
            asks += self.segments(request);
        }
        let (client, server) = self.handshake();
        let headers = |n: u64| n.saturating_mul(self.header);
        WireBytes {
            // SYN-ACK and, since requests are answered at once, only data, the last with FIN.
            forward: bytes
                .saturating_add(headers(data))
                .saturating_add(self.opening + server),
            // SYN, requests, the first of which completes the handshake and the last of which carries FIN, and
            // acknowledgements.
            reverse: asked
                .saturating_add(headers(asks + self.acknowledgements(data)))
                .saturating_add(self.opening + client),
        }
    }
}
