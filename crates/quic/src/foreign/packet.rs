//! What a foreign stack reports of its packets.

/// Something that has happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What has happened.
    pub event: PacketEvent,
    /// Its type.
    pub kind: PacketKind,
    /// Its number.
    pub number: u64,
    /// Its length with header and tag, bytes; `None`: the stack does not say.
    pub size: Option<u32>,
    /// It elicits an acknowledgement (RFC 9002 §2).
    pub ack_eliciting: bool,
}

/// What happens to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// It is sent.
    Sent,
    /// It has arrived.
    Received,
    /// One that was sent is acknowledged.
    Acknowledged,
    /// One that was sent is declared lost.
    Lost,
}

/// Types of packets (RFC 9000 §17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT.
    OneRtt,
}

impl PacketEvent {
    /// All of them, by the words that Python has for them; numbered from 1 in the order of the header for C.
    pub const ALL: [(&'static str, Self); 4] = [
        ("sent", Self::Sent),
        ("received", Self::Received),
        ("acknowledged", Self::Acknowledged),
        ("lost", Self::Lost),
    ];
}

impl PacketKind {
    /// All of them, by the words that Python has for them; numbered from 0 in the order of the header for C.
    pub const ALL: [(&'static str, Self); 4] = [
        ("initial", Self::Initial),
        ("0-rtt", Self::ZeroRtt),
        ("handshake", Self::Handshake),
        ("1-rtt", Self::OneRtt),
    ];

    /// Its name in qlog (draft-ietf-quic-qlog-quic-events).
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::ZeroRtt => "0RTT",
            Self::Handshake => "handshake",
            Self::OneRtt => "1RTT",
        }
    }

    /// Its packet number space (RFC 9000 §12.3).
    pub(crate) const fn space(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Handshake => "handshake",
            Self::ZeroRtt | Self::OneRtt => "application_data",
        }
    }
}
