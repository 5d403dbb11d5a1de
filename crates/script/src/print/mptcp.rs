//! MPTCP options as text.

use std::fmt::{self, Display, Formatter};

use crate::ast::mptcp::{
    Address, Checksum, Code, DataNumber, Endpoint, Key, Manage, Mapping, Mptcp, Token,
};
use crate::words::CAPABLE_FLAGS;

impl Display for Key {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.value.map_or(Ok(()), |v| write!(f, "={v}"))
    }
}

impl Display for Token {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("token=auto"),
            Self::Number(n) => write!(f, "token={n}"),
            Self::Of(key) => write!(f, "token=sha256_32({key})"),
        }
    }
}

fn code(f: &mut Formatter<'_>, name: &str, function: &str, code: &Code) -> fmt::Result {
    write!(f, " {name}=")?;
    match code {
        Code::Auto => f.write_str("auto"),
        Code::Bytes(bytes) => {
            f.write_str("0x")?;
            bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
        }
        Code::Keys(a, b) => write!(f, "{function}({a} {b})"),
    }
}

fn number(f: &mut Formatter<'_>, name: &str, n: &DataNumber) -> fmt::Result {
    let octets = n.octets.map_or(String::new(), |o| o.to_string());
    write!(f, " {name}{octets}={}", n.value)
}

impl Display for Checksum {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(" nocs"),
            Self::Auto => f.write_str(" cksum=auto"),
            Self::Value(n) => write!(f, " cksum={n}"),
        }
    }
}

impl Display for Mapping {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        number(f, "dsn", &self.data)?;
        write!(
            f,
            " ssn={} dll={}{}",
            self.subflow, self.length, self.checksum
        )
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.value {
            None => write!(f, " addr[{name}]"),
            Some(ip) => {
                let six = if ip.is_ipv6() { "6" } else { "" };
                write!(f, " addr[{name}=inet{six}_addr(\"{ip}\")]")
            }
        }
    }
}

fn flags(bits: u8) -> String {
    let set = CAPABLE_FLAGS.iter().filter(|(_, bit)| bits & bit != 0);
    let names: Vec<&str> = set.map(|(name, _)| *name).collect();
    if names.is_empty() {
        "no_flags".to_owned()
    } else {
        names.join(",")
    }
}

fn joined<T: Display>(list: &[T]) -> String {
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    list.join(", ")
}

impl Display for Mptcp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let join = |f: &mut Formatter<'_>, name: &str, backup: bool, id: Option<u8>| {
            let backup = if backup { " backup=1" } else { "" };
            write!(f, "{name}{backup}")?;
            id.map_or(Ok(()), |id| write!(f, " address_id={id}"))
        };
        let nonce = |f: &mut Formatter<'_>, nonce: &Option<u32>| {
            nonce.map_or(Ok(()), |n| write!(f, " rand={n}"))
        };
        match self {
            Self::Capable {
                version,
                flags: bits,
                keys,
                data,
            } => {
                write!(f, "mpcapable v{version} flags[{}]", flags(*bits))?;
                if keys.is_empty() {
                    f.write_str(" nokey")?;
                } else {
                    write!(f, " key[{}]", joined(keys))?;
                }
                data.map_or(Ok(()), |(n, sum)| write!(f, " mpcdatalen {n}{sum}"))
            }
            Self::JoinSyn {
                backup,
                id,
                token,
                nonce: n,
            } => {
                join(f, "mp_join_syn", *backup, *id)?;
                write!(f, " {token}")?;
                nonce(f, n)
            }
            Self::JoinSynAck {
                backup,
                id,
                code: c,
                nonce: n,
            } => {
                join(f, "mp_join_syn_ack", *backup, *id)?;
                code(f, "sender_hmac", "trunc_l64_hmac", c)?;
                nonce(f, n)
            }
            Self::JoinAck { code: c } => {
                f.write_str("mp_join_ack")?;
                code(f, "sender_hmac", "full_160_hmac", c)
            }
            Self::Dss { ack, mapping, fin } => {
                f.write_str("dss")?;
                ack.map_or(Ok(()), |ack| number(f, "dack", &ack))?;
                mapping.map_or(Ok(()), |m| write!(f, "{m}"))?;
                f.write_str(if *fin { " fin" } else { "" })
            }
            Self::AddAddress {
                id,
                address,
                port,
                code: c,
            } => {
                join(f, "add_address", false, *id)?;
                write!(f, "{address}")?;
                port.map_or(Ok(()), |port| write!(f, " port={port}"))?;
                match c {
                    None => f.write_str(" addr_echo"),
                    Some(c) => code(f, "hmac", "trunc_r64_hmac", c),
                }
            }
            Self::RemoveAddress { ids } => write!(f, "remove_address address_id=[{}]", joined(ids)),
            Self::Prio { backup } => write!(f, "mp_prio backup={}", u8::from(*backup)),
            Self::Fail { value } => write!(f, "mp_fail dsn8={value}"),
            Self::FastClose { key } => {
                f.write_str("mp_fastclose")?;
                key.as_ref().map_or(Ok(()), |key| write!(f, " {key}"))
            }
            Self::Reset { reason, transient } => {
                let flags = if *transient { " flags[flag_t]" } else { "" };
                write!(f, "mp_reset {reason}{flags}")
            }
        }
    }
}

impl Display for Endpoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        self.id.map_or(Ok(()), |id| write!(f, " id {id}"))?;
        for (set, word) in [
            (self.signal, " signal"),
            (self.subflow, " subflow"),
            (self.backup, " backup"),
            (self.fullmesh, " fullmesh"),
        ] {
            f.write_str(if set { word } else { "" })?;
        }
        Ok(())
    }
}

impl Display for Manage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(e) => write!(f, "ip mptcp endpoint add {e}"),
            Self::Delete(id) => write!(f, "ip mptcp endpoint delete id {id}"),
            Self::Change(id, backup) => {
                let no = if *backup { "" } else { "no" };
                write!(f, "ip mptcp endpoint change id {id} {no}backup")
            }
            Self::Flush => f.write_str("ip mptcp endpoint flush"),
            Self::Limits(subflows, accepted) => write!(
                f,
                "ip mptcp limits set subflows {subflows} add_addr_accepted {accepted}"
            ),
        }
    }
}
