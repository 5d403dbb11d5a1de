//! How many bytes a transfer puts on the wire, by arithmetic: what a load is made of, before the
//! network has had its say.

use gargalo_tcp::Config;

use super::tls::Tls;
use crate::net::IPV4_HEADER;

/// TCP header without options.
const TCP_HEADER: u64 = 20;
/// Timestamps option with padding (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;
/// A SYN has maximum segment size, window scale and, permitted, SACK and timestamps: 20 bytes.
const SYN_OPTIONS: u64 = 20;

/// Packet sizes and acknowledgement policy of a TCP configuration.
#[derive(Clone, Copy, Debug)]
pub struct WireModel {
    mss: u64,
    header: u64,
    syn: u64,
    every: u64,
    quick: u64,
    tls: Option<Tls>,
}

/// Bytes on the wire, IP headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireBytes {
    /// In the direction of the data.
    pub forward: u64,
    /// Against it: connection, requests, acknowledgements.
    pub reverse: u64,
}

impl WireBytes {
    pub(crate) fn add(&mut self, other: Self) {
        self.forward = self.forward.saturating_add(other.forward);
        self.reverse = self.reverse.saturating_add(other.reverse);
    }
}

impl std::ops::Sub for WireBytes {
    type Output = Self;
    /// What was added since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            forward: self.forward.saturating_sub(before.forward),
            reverse: self.reverse.saturating_sub(before.reverse),
        }
    }
}

impl WireModel {
    /// Of a configuration that both ends share.
    pub fn new(config: &Config) -> Self {
        let plain = u64::from(IPV4_HEADER) + TCP_HEADER;
        let timestamps = if config.timestamps { TIMESTAMPS } else { 0 };
        Self {
            mss: u64::from(config.mss).max(1),
            header: plain + timestamps,
            syn: plain + SYN_OPTIONS,
            every: u64::from(config.ack_every).max(1),
            quick: u64::from(config.quick_acks),
            tls: None,
        }
    }

    /// The same with TLS.
    #[must_use]
    pub fn inside(self, tls: Option<Tls>) -> Self {
        Self { tls, ..self }
    }

    /// Data in records, if there are any.
    fn protected(&self, bytes: u64) -> u64 {
        self.tls.map_or(bytes, |tls| tls.protected(bytes))
    }

    /// What a handshake puts on the wire, of the client and of the server: the ClientHello or, with early
    /// data, the client's Finished in segments of their own, which answers acknowledge, and the server's
    /// flight. The other flight of the client shares segments with its data.
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
        bytes.div_ceil(self.mss)
    }

    fn acknowledgements(&self, segments: u64) -> u64 {
        let quick = segments.min(self.quick);
        quick + (segments - quick).div_ceil(self.every)
    }

    /// A connection opened by the sender of the data, which closes it when all is sent: SYN,
    /// acknowledgement and the last acknowledgement besides the data, whose last segment bears FIN.
    pub fn push(&self, bytes: u64) -> WireBytes {
        let bytes = self.protected(bytes);
        let data = self.segments(bytes);
        let (client, server) = self.handshake();
        WireBytes {
            forward: (bytes.saturating_add(client))
                .saturating_add(data.saturating_mul(self.header))
                .saturating_add(self.syn + 2 * self.header),
            // SYN-ACK, acknowledgements, FIN with the last of them.
            reverse: (self.syn + server)
                .saturating_add(self.acknowledgements(data).saturating_mul(self.header)),
        }
    }

    /// A connection opened by the receiver of the data, which asks for one object after another.
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
            // SYN-ACK and, since requests are answered at once, nothing but data, the last with FIN.
            forward: bytes
                .saturating_add(headers(data))
                .saturating_add(self.syn + server),
            // SYN, requests, the first of which completes the handshake and the last of which bears
            // FIN, and acknowledgements.
            reverse: asked
                .saturating_add(headers(asks + self.acknowledgements(data)))
                .saturating_add(self.syn + client),
        }
    }
}
