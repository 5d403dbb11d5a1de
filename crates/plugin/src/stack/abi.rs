//! The types of `include/gargalo_stack.h`, where every field is documented. Their layout is compared with the header's
//! in a test.

use std::ffi::{c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};

/// Version of the interface.
pub const ABI: u32 = 1;
/// No timer, and no value.
pub const NONE: u64 = u64::MAX;

/// What a scenario may request of a library; see [`Table::features`].
pub mod feature {
    /// Early data (RFC 9001 §4.6).
    pub const ZERO_RTT: u32 = 1 << 0;
    /// Address validation by Retry, as a server (RFC 9000 §8.1.2).
    pub const RETRY: u32 = 1 << 1;
    /// A new local address, as a client (RFC 9000 §9).
    pub const MIGRATION: u32 = 1 << 2;
    /// Explicit congestion notification (RFC 9000 §13.4).
    pub const ECN: u32 = 1 << 3;
    /// Writes qlog, through [`Host::qlog`](super::Host::qlog).
    pub const QLOG: u32 = 1 << 4;
    /// Pacing can be switched off.
    pub const NO_PACING: u32 = 1 << 5;
    /// Searches for larger datagrams (RFC 8899).
    pub const MTU_DISCOVERY: u32 = 1 << 6;
    /// The initial window can be other than ten packets.
    pub const INITIAL_WINDOW: u32 = 1 << 7;
    /// Takes options of its own.
    pub const OPTIONS: u32 = 1 << 8;
    /// Says from which of its addresses each datagram leaves.
    pub const LOCAL_ADDRESS: u32 = 1 << 9;
    /// Unidirectional streams (RFC 9000 §2.1).
    pub const UNIDIRECTIONAL: u32 = 1 << 11;
    /// Datagrams (RFC 9221).
    pub const DATAGRAMS: u32 = 1 << 12;
    /// RESET_STREAM and STOP_SENDING (RFC 9000 §3.5).
    pub const CANCEL: u32 = 1 << 13;
    /// Streams of different urgency (RFC 9218 §4.1).
    pub const URGENCY: u32 = 1 << 14;
    /// Updates keys when it is asked to (RFC 9001 §6).
    pub const KEY_UPDATE: u32 = 1 << 15;
    /// Reports its packets.
    pub const PACKETS: u32 = 1 << 16;
    /// Several paths at once (draft-ietf-quic-multipath).
    pub const MULTIPATH: u32 = 1 << 17;
    /// Cannot use Ed25519: the certificate is ECDSA with P-256.
    pub const ECDSA: u32 = 1 << 10;
}

/// Kinds of events.
pub mod event {
    /// Early data may be written.
    pub const EARLY: u32 = 1;
    /// The handshake is complete.
    pub const CONNECTED: u32 = 2;
    /// The connection has ended in order.
    pub const CLOSED: u32 = 3;
    /// It has failed.
    pub const FAILED: u32 = 4;
}

/// Early data of a connection.
pub mod early {
    /// None was offered.
    pub const NONE: u32 = 0;
    /// It was accepted.
    pub const ACCEPTED: u32 = 1;
    /// It was rejected.
    pub const REJECTED: u32 = 2;
    /// It was rejected, and the library sends it again by itself.
    pub const RESENT: u32 = 3;
}

/// `struct gargalo_address`: an IP address with a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Address {
    pub ip: [u8; 16],
    pub port: u16,
    pub ip_length: u8,
    pub reserved: [u8; 5],
}

impl From<SocketAddr> for Address {
    fn from(of: SocketAddr) -> Self {
        let mut made = Self {
            port: of.port(),
            ..Self::default()
        };
        match of.ip() {
            IpAddr::V4(ip) => {
                made.ip[..4].copy_from_slice(&ip.octets());
                made.ip_length = 4;
            }
            IpAddr::V6(ip) => {
                made.ip = ip.octets();
                made.ip_length = 16;
            }
        }
        made
    }
}

impl Address {
    /// The address and the port; `None` if it is neither IPv4 nor IPv6.
    pub fn socket(&self) -> Option<SocketAddr> {
        let ip: IpAddr = match self.ip_length {
            4 => <[u8; 4]>::try_from(&self.ip[..4]).ok()?.into(),
            16 => self.ip.into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, self.port))
    }
}

/// `struct gargalo_path`: local and remote address of a datagram, and its ECN codepoint.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Path {
    pub local: Address,
    pub remote: Address,
    pub ecn: u8,
    pub reserved: [u8; 7],
}

/// `struct gargalo_bytes`: bytes that belong to the caller and are valid during the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Bytes {
    pub data: *const u8,
    pub length: usize,
}

/// `struct gargalo_stack_config`: the options of one end, valid during `create` only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Config {
    pub size: u64,
    pub local: Address,
    pub remote: Address,
    pub congestion: *const c_char,
    pub server_name: *const c_char,
    pub alpn: *const c_char,
    pub certificate: Bytes,
    pub private_key: Bytes,
    pub ticket_key: Bytes,
    pub session: Bytes,
    pub initial_window: u64,
    pub stream_window: u64,
    pub connection_window: u64,
    pub send_window: u64,
    pub idle_timeout: u64,
    pub initial_rtt: u64,
    pub max_streams: u64,
    pub datagram_size: u32,
    pub max_datagram_size: u32,
    pub is_server: u8,
    pub early_data: u8,
    pub retry: u8,
    pub ecn: u8,
    pub pacing: u8,
    pub qlog: u8,
    pub secrets: u8,
    pub notices: u8,
    pub options: *const c_char,
    pub max_unidirectional_streams: u64,
    pub max_datagram_frame: u32,
    pub packets: u8,
    pub reserved: [u8; 3],
    pub max_paths: u64,
}

/// `struct gargalo_packet`: something that has happened to a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Packet {
    pub number: u64,
    pub size: u32,
    pub event: u8,
    pub kind: u8,
    pub ack_eliciting: u8,
    pub reserved: u8,
}

/// `struct gargalo_stack_host`: the functions that a library may call, each with `context` as first argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Host {
    pub context: *mut c_void,
    pub random: unsafe extern "C" fn(*mut c_void, *mut u8, usize),
    pub event: unsafe extern "C" fn(*mut c_void, u32, u32, *const c_char),
    pub received: unsafe extern "C" fn(*mut c_void, u64, *const u8, usize, c_int),
    pub session: unsafe extern "C" fn(*mut c_void, *const u8, usize),
    pub secret: unsafe extern "C" fn(*mut c_void, *const c_char),
    pub qlog: unsafe extern "C" fn(*mut c_void, *const u8, usize),
    pub notice: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char),
    pub rtt_sample: unsafe extern "C" fn(*mut c_void, u64),
    pub send: unsafe extern "C" fn(*mut c_void, *const Path, *const u8, usize),
    pub datagram: unsafe extern "C" fn(*mut c_void, *const u8, usize),
    pub stopped: unsafe extern "C" fn(*mut c_void, u64),
    pub reset: unsafe extern "C" fn(*mut c_void, u64),
    pub packet: unsafe extern "C" fn(*mut c_void, *const Packet),
    pub path_rtt_sample: unsafe extern "C" fn(*mut c_void, u64, u64),
}

/// `struct gargalo_stack_stats`: counters and state of the sender, [`NONE`] where the library does not report them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Stats {
    pub size: u64,
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub retransmitted_packets: u64,
    pub lost_packets: u64,
    pub timeouts: u64,
    pub spurious: u64,
    pub cwnd: u64,
    pub ssthresh: u64,
    pub in_flight: u64,
    pub srtt: u64,
    pub pacing_rate: u64,
    pub delivery_rate: u64,
    pub phase: *const c_char,
}

impl Default for Stats {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            size: size_of::<Self>() as u64,
            sent_packets: NONE,
            sent_bytes: NONE,
            retransmitted_packets: NONE,
            lost_packets: NONE,
            timeouts: NONE,
            spurious: NONE,
            cwnd: NONE,
            ssthresh: NONE,
            in_flight: NONE,
            srtt: NONE,
            pacing_rate: NONE,
            delivery_rate: NONE,
            phase: std::ptr::null(),
        }
    }
}

/// `struct gargalo_stack_path`: a path of a connection with several.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct StackPath {
    pub id: u64,
    pub local: Address,
    pub remote: Address,
    pub opened: u64,
    pub closed: u64,
    pub received_bytes: u64,
    pub sender: Stats,
}

impl Default for StackPath {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            id: 0,
            local: Address::default(),
            remote: Address::default(),
            opened: 0,
            closed: NONE,
            received_bytes: 0,
            sender: Stats::default(),
        }
    }
}

/// `struct gargalo_stack`: the table of a library.
///
/// Functions are optional here, so that the host can check a table that was made elsewhere.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct Table {
    pub abi: u32,
    pub features: u32,
    pub size: u64,
    pub name: *const c_char,
    pub version: *const c_char,
    pub congestion: *const *const c_char,
    pub create: Option<
        unsafe extern "C" fn(*const Config, *const Host, u64, *mut c_char, usize) -> *mut c_void,
    >,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub datagram_in: Option<unsafe extern "C" fn(*mut c_void, u64, *const Path, *mut u8, usize)>,
    pub datagram_out:
        Option<unsafe extern "C" fn(*mut c_void, u64, *mut Path, *mut u8, usize) -> usize>,
    pub next_timer: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
    pub timeout: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub open_stream: Option<unsafe extern "C" fn(*mut c_void, u64) -> i64>,
    pub write:
        Option<unsafe extern "C" fn(*mut c_void, u64, u64, *const u8, usize, c_int) -> usize>,
    pub unacknowledged: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
    pub migrate: Option<unsafe extern "C" fn(*mut c_void, u64, *const Address)>,
    pub close: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub is_over: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub stats: Option<unsafe extern "C" fn(*mut c_void, *mut Stats)>,
    pub specifications: *const *const c_char,
    pub prepare: Option<unsafe extern "C" fn()>,
    pub open_unidirectional_stream: Option<unsafe extern "C" fn(*mut c_void, u64) -> i64>,
    pub send_datagram: Option<unsafe extern "C" fn(*mut c_void, u64, *const u8, usize) -> c_int>,
    pub reset_stream: Option<unsafe extern "C" fn(*mut c_void, u64, u64)>,
    pub stop_sending: Option<unsafe extern "C" fn(*mut c_void, u64, u64)>,
    pub set_urgency: Option<unsafe extern "C" fn(*mut c_void, u64, u64, u8)>,
    pub update_keys: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    pub open_path: Option<unsafe extern "C" fn(*mut c_void, u64, *const Path)>,
    pub paths: Option<unsafe extern "C" fn(*mut c_void, *mut StackPath, usize) -> usize>,
    pub packet_too_big: Option<unsafe extern "C" fn(*mut c_void, u64, *const Path, u64)>,
}

/// The size of the first tables of this version, which end before `specifications`.
pub const LEAST_TABLE: usize = std::mem::offset_of!(Table, specifications);

// SAFETY: a table is constant, and what it points to lives as long as its library.
unsafe impl Sync for Table {}
// SAFETY: as above.
unsafe impl Send for Table {}

/// The function that a library exports as [`SYMBOL`].
pub type Entry = unsafe extern "C" fn() -> *const Table;
/// Name of the exported function, the same in every version: its table begins with the version.
pub const SYMBOL: &str = "gargalo_stack_v1";
