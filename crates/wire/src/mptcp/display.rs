use std::fmt;

use super::{CapableKeys, DataNumber, Join, MptcpOption};

impl fmt::Display for DataNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(n) => write!(f, "{n}"),
            Self::Long(n) => write!(f, "{n}"),
        }
    }
}

impl fmt::Display for MptcpOption {
    /// Like tcpdump's `mptcp 12 dss ack 7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mptcp {} ", self.len())?;
        match self {
            Self::Capable { version, keys, .. } => {
                write!(f, "capable v{version}")?;
                match keys {
                    CapableKeys::None => Ok(()),
                    CapableKeys::Sender(key) => write!(f, " {{{key:#x}}}"),
                    CapableKeys::Both { sender, receiver }
                    | CapableKeys::BothAndData {
                        sender, receiver, ..
                    } => write!(f, " {{{sender:#x},{receiver:#x}}}"),
                }
            }
            Self::Join(Join::Syn {
                backup,
                address_id,
                receiver_token,
                nonce,
            }) => {
                let b = if *backup { " backup" } else { "" };
                write!(
                    f,
                    "join{b} id {address_id} token {receiver_token:#x} nonce {nonce:#x}"
                )
            }
            Self::Join(Join::SynAck {
                backup,
                address_id,
                hmac,
                nonce,
            }) => {
                let b = if *backup { " backup" } else { "" };
                write!(f, "join{b} id {address_id} hmac {hmac:#x} nonce {nonce:#x}")
            }
            Self::Join(Join::Ack { .. }) => f.write_str("join hmac"),
            Self::Dss(dss) => {
                f.write_str(if dss.data_fin { "dss fin" } else { "dss" })?;
                if let Some(ack) = dss.data_ack {
                    write!(f, " ack {ack}")?;
                }
                if let Some(m) = dss.mapping {
                    let (seq, sub, len) = (m.data_seq, m.subflow_seq, m.length);
                    write!(f, " seq {seq} subseq {sub} len {len}")?;
                }
                Ok(())
            }
            Self::AddAddr(a) => {
                let echo = if a.hmac.is_none() { " echo" } else { "" };
                write!(f, "add-addr{echo} id {} {}", a.address_id, a.address)?;
                a.port.map_or(Ok(()), |p| write!(f, ":{p}"))
            }
            Self::RemoveAddr(ids) => write!(f, "rem-addr id {:?}", &ids[..]),
            Self::Prio { backup } => f.write_str(if *backup { "prio backup" } else { "prio" }),
            Self::Fail { data_seq } => write!(f, "fail seq {data_seq}"),
            Self::FastClose { receiver_key } => write!(f, "fast-close key {receiver_key:#x}"),
            Self::Reset(r) => write!(f, "tcprst reason {}", r.reason),
            Self::Unknown(_) => f.write_str("unknown"),
        }
    }
}
