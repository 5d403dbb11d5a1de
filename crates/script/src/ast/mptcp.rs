//! MPTCP options (RFC 8684), as the MPTCP fork of packetdrill spells them.

use std::net::IpAddr;

/// A key of MP_CAPABLE: `skey`, or `skey=2` to give it a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name; the first packet that has it determines its value.
    pub name: String,
    /// The value that it is given here; `None`: the one that it has, or gets from this packet.
    pub value: Option<u64>,
}

/// The token of a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// `auto`: that of the latest connection.
    Auto,
    /// The token itself, as a number.
    Number(u32),
    /// `sha256_32(skey)`: computed from the key of this name.
    Of(String),
}

/// A message authentication code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// `auto`: the right one.
    Auto,
    /// `0x0123...`: these bytes.
    Bytes(Vec<u8>),
    /// `full_160_hmac(ckey skey)`: computed with these keys.
    Keys(String, String),
}

/// A data sequence number, relative to the initial one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataNumber {
    /// Octets on the wire, 4 or 8; `None`: not compared.
    pub octets: Option<u8>,
    /// Number relative to the initial one; the first byte of data has 1.
    pub value: u64,
}

/// The checksum of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// `nocs`, or nothing: there is none.
    None,
    /// `cksum=auto`: the right one, for data of zeros.
    Auto,
    /// `cksum=N`: this value, whether it is right or not.
    Value(u16),
}

/// A mapping of subflow bytes to data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first byte.
    pub data: DataNumber,
    /// Relative subflow sequence number of the first byte.
    pub subflow: u32,
    /// Bytes mapped (`dll=N`).
    pub length: u16,
    /// Checksum of the mapping (RFC 8684 §3.3.1).
    pub checksum: Checksum,
}

/// An address of ADD_ADDR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its name; the digits at its end count the addresses of a host, unless it was given a value.
    pub name: String,
    /// Its value (`addr[name=inet_addr("198.51.100.2")]`).
    pub value: Option<IpAddr>,
}

/// An MPTCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mptcp {
    /// `mpcapable v1 flags[flag_h] key[skey]`
    Capable {
        /// Version of MPTCP (`v0` or `v1`).
        version: u8,
        /// Flags A (0x80) to H (0x01).
        flags: u8,
        /// None, that of the sender, or those of sender and receiver.
        keys: Vec<Key>,
        /// Length of data (`mpcdatalen 100`) and its checksum.
        data: Option<(u16, Checksum)>,
    },
    /// `mp_join_syn address_id=1 token=sha256_32(skey)`
    JoinSyn {
        /// The subflow is a backup.
        backup: bool,
        /// Identifier of the sender's address; `None`: not compared.
        id: Option<u8>,
        /// Token of the receiver's key.
        token: Token,
        /// Nonce (`rand=N`); `None`: any.
        nonce: Option<u32>,
    },
    /// `mp_join_syn_ack address_id=1 sender_hmac=auto`
    JoinSynAck {
        /// The subflow is a backup.
        backup: bool,
        /// Identifier of the sender's address; `None`: not compared.
        id: Option<u8>,
        /// The sender's HMAC, truncated to its leftmost 64 bits.
        code: Code,
        /// Nonce (`rand=N`); `None`: any.
        nonce: Option<u32>,
    },
    /// `mp_join_ack sender_hmac=auto`: the third packet of a join.
    JoinAck {
        /// The sender's HMAC, truncated to its leftmost 160 bits.
        code: Code,
    },
    /// `dss dack8=1 dsn8=1 ssn=1 dll=100 nocs fin`
    Dss {
        /// DATA_ACK (`dack4`, `dack8`, `dack`); `None`: not in the option.
        ack: Option<DataNumber>,
        /// Mapping (`dsn4`, `dsn8` or `dsn`, with `ssn` and `dll`); `None`: not in the option.
        mapping: Option<Mapping>,
        /// DATA_FIN (`fin`): the sender has no data after this.
        fin: bool,
    },
    /// `add_address address_id=1 addr[saddr1] hmac=auto`
    AddAddress {
        /// Identifier; `None`: the number of the address, or not compared.
        id: Option<u8>,
        /// The address that is announced or echoed.
        address: Address,
        /// Port (`port=N`); `None`: not in the option.
        port: Option<u16>,
        /// HMAC, truncated to its rightmost 64 bits; `None`: the echo (`addr_echo`).
        code: Option<Code>,
    },
    /// `remove_address address_id=[1, 2]`
    RemoveAddress {
        /// Identifiers of the addresses that are withdrawn.
        ids: Vec<u8>,
    },
    /// `mp_prio backup=1`: changes the priority of the subflow.
    Prio {
        /// The subflow becomes a backup.
        backup: bool,
    },
    /// `mp_fail dsn8=1`: reports a mapping whose checksum is wrong.
    Fail {
        /// Data sequence number of the receiver of the option.
        value: u64,
    },
    /// `mp_fastclose skey`: closes the whole connection at once.
    FastClose {
        /// The receiver's key; `None`: the right one.
        key: Option<Key>,
    },
    /// `mp_reset 1 flags[flag_t]`
    Reset {
        /// Reason code (RFC 8684 §3.6); 0: unspecified.
        reason: u8,
        /// Flag T: the condition is transient.
        transient: bool,
    },
}

/// Configuration of a path manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manage {
    /// `ip mptcp endpoint add ADDRESS id N signal`
    Add(Endpoint),
    /// `ip mptcp endpoint delete id N`
    Delete(u8),
    /// `ip mptcp endpoint change id N backup`, or `nobackup`
    Change(u8, bool),
    /// `ip mptcp endpoint flush`
    Flush,
    /// `ip mptcp limits set subflows N add_addr_accepted N`
    Limits(u32, u32),
}

/// An address that subflows may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The IP address, one of the stack's.
    pub address: IpAddr,
    /// Its identifier; `None`: the next one.
    pub id: Option<u8>,
    /// It is announced to the other end.
    pub signal: bool,
    /// Subflows are opened from it.
    pub subflow: bool,
    /// Its subflows are backups.
    pub backup: bool,
    /// Subflows are opened from it to every address of the other end.
    pub fullmesh: bool,
}
