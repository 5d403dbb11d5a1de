//! noq's TLS sessions, with our packet keys around or instead of theirs.

mod arrived;
mod keys;
mod meter;

pub use keys::change_frames;
pub(crate) use meter::Meter;

use std::any::Any;
use std::sync::Arc;

use noq_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
    UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportError};

use crate::Crypto;
use crate::qlog::Trace;
use keys::{NullHeader, NullPacket, Observed};

/// The key generation of 0-RTT keys.
const EARLY: u64 = 0xffff;

type HeaderAndPacket = (Box<dyn HeaderKey>, Box<dyn PacketKey>);

/// How the keys of a session are wrapped.
#[derive(Clone)]
pub(crate) struct Treatment {
    /// How packets with application data are protected.
    pub(crate) crypto: Crypto,
    /// Counts application data.
    pub(crate) meter: Arc<Meter>,
    /// Traces all packets.
    pub(crate) trace: Option<Arc<Trace>>,
}

impl Treatment {
    /// Wraps a key of packets with application data, in either direction.
    fn metered(&self, key: Box<dyn PacketKey>, generation: u64) -> Box<dyn PacketKey> {
        Box::new(Observed {
            inner: self.data(key, generation),
            meter: Some(self.meter.clone()),
            trace: self.trace.clone(),
        })
    }

    fn traced(&self, inner: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        match &self.trace {
            None => inner,
            trace => Box::new(Observed {
                inner,
                meter: None,
                trace: trace.clone(),
            }),
        }
    }

    /// Wraps the keys of a handshake.
    fn handshake(&self, keys: Keys) -> Keys {
        Keys {
            header: keys.header,
            packet: KeyPair {
                local: self.traced(keys.packet.local),
                remote: self.traced(keys.packet.remote),
            },
        }
    }

    fn data(&self, key: Box<dyn PacketKey>, generation: u64) -> Box<dyn PacketKey> {
        match self.crypto {
            Crypto::Tls => key,
            Crypto::Null => Box::new(NullPacket::instead_of(key.as_ref(), generation)),
        }
    }

    fn header(&self, key: Box<dyn HeaderKey>) -> Box<dyn HeaderKey> {
        match self.crypto {
            Crypto::Tls => key,
            Crypto::Null => Box::new(NullHeader),
        }
    }

    fn pair(
        &self,
        keys: KeyPair<Box<dyn PacketKey>>,
        generation: u64,
    ) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: self.metered(keys.local, generation),
            remote: self.metered(keys.remote, generation),
        }
    }
}

/// A client's TLS configuration.
pub(crate) struct Client<C> {
    inner: C,
    treatment: Treatment,
}

/// A server's TLS configuration.
pub(crate) struct Server<C> {
    inner: C,
    treatment: Treatment,
}

/// Wraps a client's TLS configuration.
pub(crate) fn client<C: crypto::ClientConfig>(inner: C, treatment: Treatment) -> Client<C> {
    Client { inner, treatment }
}

/// Wraps a server's TLS configuration.
pub(crate) fn server<C: crypto::ServerConfig>(inner: C, treatment: Treatment) -> Server<C> {
    Server { inner, treatment }
}

impl<C: crypto::ClientConfig> crypto::ClientConfig for Client<C> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Wrapped {
            inner: self.inner.start_session(version, server_name, params)?,
            treatment: self.treatment.clone(),
            has_handshake_keys: false,
            generation: 0,
        }))
    }
}

impl<C: crypto::ServerConfig> crypto::ServerConfig for Server<C> {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        let keys = self.inner.initial_keys(version, dst_cid)?;
        Ok(self.treatment.handshake(keys))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Wrapped {
            inner: self.inner.start_session(version, params),
            treatment: self.treatment.clone(),
            has_handshake_keys: false,
            generation: 0,
        })
    }
}

/// A TLS session; Initial and Handshake packets are always encrypted as in RFC 9001.
struct Wrapped {
    inner: Box<dyn Session>,
    treatment: Treatment,
    has_handshake_keys: bool,
    /// How often 1-RTT keys have been updated.
    generation: u64,
}

impl Session for Wrapped {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.treatment
            .handshake(self.inner.initial_keys(dst_cid, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<HeaderAndPacket> {
        let (header, packet) = self.inner.early_crypto()?;
        let packet = self.treatment.metered(packet, EARLY);
        Some((self.treatment.header(header), packet))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        if !std::mem::replace(&mut self.has_handshake_keys, true) {
            return Some(self.treatment.handshake(keys));
        }
        Some(Keys {
            header: KeyPair {
                local: self.treatment.header(keys.header.local),
                remote: self.treatment.header(keys.header.remote),
            },
            packet: self.treatment.pair(keys.packet, self.generation),
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        self.generation += 1;
        Some(self.treatment.pair(keys, self.generation))
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
