//! MPTCP options and the configuration of the path manager.

use std::net::IpAddr;

use super::cursor::{Cursor, Read};
use crate::ast::At;
use crate::ast::mptcp::{
    Address, Checksum, Code, DataNumber, Endpoint, Key, Manage, Mapping, Mptcp, Token,
};
use crate::fault::Fault;
use crate::words::CAPABLE_FLAGS;

/// Names of the options.
pub(super) const NAMES: &str = "mpcapable, mp_join_syn, mp_join_syn_ack, mp_join_ack, dss, add_address, \
    remove_address, \
    mp_prio, mp_fail, mp_fastclose, mp_reset";

/// An option whose name was read; `None` if it is none of MPTCP.
pub(super) fn option(c: &mut Cursor<'_>, name: &str, at: At) -> Read<Option<Mptcp>> {
    Ok(Some(match name {
        "mpcapable" => capable(c)?,
        "mp_join_syn" | "mp_join_syn_ack" | "mp_join_ack" => join(c, name, at)?,
        "dss" => dss(c, at)?,
        "add_address" => add_address(c, at)?,
        "remove_address" => {
            assign(c, "address_id")?;
            c.expect("[", "before the identifiers")?;
            let mut ids = vec![c.number("an identifier")?];
            while c.eat(",") {
                ids.push(c.number("an identifier")?);
            }
            c.expect("]", "after the identifiers")?;
            Mptcp::RemoveAddress { ids }
        }
        "mp_prio" => {
            let parts = parts(c, &["backup", "address_id"], at)?;
            if parts.has("address_id") {
                let fault = Fault::new(at, "MP_PRIO of version 1 has no address_id");
                return Err(fault.help("send it on the subflow that it is about"));
            }
            let backup = parts.flag("backup")?;
            Mptcp::Prio { backup }
        }
        "mp_fail" => {
            assign(c, "dsn8")?;
            let value = c.number("a data sequence number")?;
            Mptcp::Fail { value }
        }
        "mp_fastclose" => {
            c.skip();
            let named = c.peek().is_some_and(|x| x.is_ascii_alphabetic());
            let key = if named { Some(key(c)?) } else { None };
            Mptcp::FastClose { key }
        }
        "mp_reset" => {
            let reason = c.number("the reason of a reset")?;
            let transient = c.eat_word("flags") && {
                c.expect("[", "before the flags")?;
                let word = c.word();
                if !["flag_t", "no_flags"].contains(&word) {
                    return Err(Fault::new(at, format!("the flag {word} is not supported"))
                        .help("flags of mp_reset are flag_t, no_flags"));
                }
                c.expect("]", "after the flags")?;
                word == "flag_t"
            };
            Mptcp::Reset { reason, transient }
        }
        _ => return Ok(None),
    }))
}

fn assign(c: &mut Cursor<'_>, name: &str) -> Read<()> {
    if c.eat_word(name) && c.eat("=") {
        return Ok(());
    }
    Err(c.wrong(format!("{name}= is missing")))
}

fn key(c: &mut Cursor<'_>) -> Read<Key> {
    let name = c.word().to_owned();
    if name.is_empty() {
        return Err(c.wrong("the name of a key is missing"));
    }
    let value = if c.eat("=") {
        Some(c.number("the value of a key")?)
    } else {
        None
    };
    Ok(Key { name, value })
}

fn capable(c: &mut Cursor<'_>) -> Read<Mptcp> {
    c.skip();
    let at = c.at();
    let version = match c.word() {
        "v0" => 0,
        "v1" => 1,
        word => {
            let fault = Fault::new(at, format!("`{word}` is no version of MPTCP"));
            return Err(fault.help("write mpcapable v1 flags[flag_h] nokey"));
        }
    };
    let mut flags = 0;
    if !c.eat_word("flags") {
        return Err(c.wrong("flags[...] is missing after the version"));
    }
    if c.eat("[") {
        loop {
            c.skip();
            let at = c.at();
            let word = c.word();
            match CAPABLE_FLAGS.iter().find(|(name, _)| *name == word) {
                Some((_, bit)) => flags |= bit,
                None if word == "no_flags" => {}
                None => {
                    let fault = Fault::new(at, format!("`{word}` is no flag of MP_CAPABLE"));
                    return Err(fault.help("flags are flag_a to flag_h, and no_flags"));
                }
            }
            if c.eat("]") {
                break;
            }
            c.expect(",", "between two flags")?;
        }
    } else {
        flags = c.number("the flags")?;
    }
    let mut keys = Vec::new();
    if c.eat_word("key") {
        c.expect("[", "before the keys")?;
        keys.push(key(c)?);
        if c.eat(",") {
            keys.push(key(c)?);
        }
        c.expect("]", "after the keys")?;
    } else if !c.eat_word("nokey") {
        return Err(c.wrong("nokey or key[...] is missing after the flags"));
    }
    let data = if c.eat_word("mpcdatalen") {
        let length = c.number("the length of the data")?;
        Some((length, checksum(c)?))
    } else {
        None
    };
    if data.is_some() && keys.len() != 2 {
        return Err(Fault::new(at, "mpcdatalen needs two keys").help("write key[ckey, skey]"));
    }
    Ok(Mptcp::Capable {
        version,
        flags,
        keys,
        data,
    })
}

fn checksum(c: &mut Cursor<'_>) -> Read<Checksum> {
    if c.eat_word("nocs") || !c.eat_word("cksum") {
        return Ok(Checksum::None);
    }
    c.expect("=", "after cksum")?;
    Ok(if c.eat_word("auto") {
        Checksum::Auto
    } else {
        Checksum::Value(c.number("a checksum")?)
    })
}

/// `name=value` pairs in any order, before other words.
struct Parts(Vec<(String, At, Value)>);

enum Value {
    Number(u64),
    Auto,
    Hex(Vec<u8>),
    Call(String, Vec<String>),
}

fn parts(c: &mut Cursor<'_>, names: &[&str], at: At) -> Read<Parts> {
    let mut list: Vec<(String, At, Value)> = Vec::new();
    loop {
        c.skip();
        let here = c.at();
        let Some(name) = names.iter().find(|n| c.eat_word(n)) else {
            return Ok(Parts(list));
        };
        c.expect("=", &format!("after {name}"))?;
        if list.iter().any(|(n, ..)| n == name) {
            return Err(Fault::new(at, format!("{name} stands twice in an option")));
        }
        list.push(((*name).to_owned(), here, value(c)?));
    }
}

fn value(c: &mut Cursor<'_>) -> Read<Value> {
    c.skip();
    let rest = c.rest();
    if let Some(hex) = rest.strip_prefix("0x") {
        let digits: String = hex.chars().take_while(char::is_ascii_hexdigit).collect();
        if digits.len() > 8 {
            let at = c.at();
            c.word();
            let pairs = digits.as_bytes().chunks(2).map(|pair| {
                let text = std::str::from_utf8(pair).ok()?;
                (pair.len() == 2).then_some(())?;
                u8::from_str_radix(text, 16).ok()
            });
            let bytes: Option<Vec<u8>> = pairs.collect();
            let wrong = || Fault::new(at, "an odd number of hexadecimal digits");
            return Ok(Value::Hex(bytes.ok_or_else(wrong)?));
        }
    }
    if c.peek().is_some_and(|x| x.is_ascii_digit()) {
        return Ok(Value::Number(c.number("a value")?));
    }
    let name = c.word().to_owned();
    if name == "auto" {
        return Ok(Value::Auto);
    }
    c.expect("(", "after the name of a function")?;
    let mut words = Vec::new();
    while !c.eat(")") {
        let word = c.word();
        if word.is_empty() {
            return Err(c.wrong("the name of a key is missing"));
        }
        words.push(word.to_owned());
        c.eat(",");
    }
    Ok(Value::Call(name, words))
}

impl Parts {
    fn find(&self, name: &str) -> Option<(At, &Value)> {
        let found = self.0.iter().find(|(n, ..)| n == name);
        found.map(|(_, at, value)| (*at, value))
    }

    fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn number<T: TryFrom<u64>>(&self, name: &str) -> Read<Option<T>> {
        match self.find(name) {
            None | Some((_, Value::Auto)) => Ok(None),
            Some((at, Value::Number(n))) => T::try_from(*n)
                .map(Some)
                .map_err(|_| Fault::new(at, format!("{name} {n} is out of range"))),
            Some((at, _)) => Err(Fault::new(at, format!("{name} must be a number"))),
        }
    }

    fn flag(&self, name: &str) -> Read<bool> {
        match self.number::<u8>(name)? {
            None | Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(n) => {
                let at = self.find(name).map_or(At::default(), |(at, _)| at);
                Err(Fault::new(at, format!("{name}={n} is not 0 or 1")))
            }
        }
    }

    fn code(&self, name: &str, function: &str, at: At) -> Read<Code> {
        let help = |fault: Fault| {
            fault.help(format!(
                "write {name}=auto, {name}=0x and digits, or {name}={function}(key key)"
            ))
        };
        match self.find(name) {
            Some((_, Value::Auto)) => Ok(Code::Auto),
            Some((_, Value::Hex(bytes))) => Ok(Code::Bytes(bytes.clone())),
            Some((_, Value::Number(n))) => Ok(Code::Bytes(n.to_be_bytes().to_vec())),
            Some((at, Value::Call(called, words))) => match words.as_slice() {
                [a, b] if called == function => Ok(Code::Keys(a.clone(), b.clone())),
                _ => Err(help(Fault::new(
                    at,
                    format!("{called}(...) is not supported here"),
                ))),
            },
            None => Err(help(Fault::new(at, format!("{name} is missing")))),
        }
    }
}

fn join(c: &mut Cursor<'_>, name: &str, at: At) -> Read<Mptcp> {
    let names = ["backup", "address_id", "token", "sender_hmac", "rand"];
    let p = parts(c, &names, at)?;
    let (backup, id, nonce) = (
        p.flag("backup")?,
        p.number("address_id")?,
        p.number("rand")?,
    );
    let (wanted, unwanted) = match name {
        "mp_join_syn" => ("token", "sender_hmac"),
        _ => ("sender_hmac", "token"),
    };
    if p.has(unwanted) {
        let fault = Fault::new(at, format!("{name} has no {unwanted}"));
        return Err(fault.help(format!("write {wanted}")));
    }
    Ok(match name {
        "mp_join_syn" => {
            let token = match p.find("token") {
                None | Some((_, Value::Auto)) => Token::Auto,
                Some((_, Value::Call(function, words))) => match words.as_slice() {
                    [key] if function == "sha256_32" => Token::Of(key.clone()),
                    _ => {
                        let fault =
                            Fault::new(at, format!("{function} is not supported in token="));
                        return Err(
                            fault.help("write token=sha256_32(KEY), token=auto, or a number")
                        );
                    }
                },
                _ => Token::Number(p.number("token")?.unwrap_or(0)),
            };
            Mptcp::JoinSyn {
                backup,
                id,
                token,
                nonce,
            }
        }
        "mp_join_syn_ack" => Mptcp::JoinSynAck {
            backup,
            id,
            code: p.code("sender_hmac", "trunc_l64_hmac", at)?,
            nonce,
        },
        _ => Mptcp::JoinAck {
            code: p.code("sender_hmac", "full_160_hmac", at)?,
        },
    })
}

fn dss(c: &mut Cursor<'_>, at: At) -> Read<Mptcp> {
    let names = [
        "dack4", "dack8", "dack", "dsn4", "dsn8", "dsn", "ssn", "dll",
    ];
    let p = parts(c, &names, at)?;
    let octets = |kind: &str| {
        let sizes = [(Some(4), "4"), (Some(8), "8"), (None, "")];
        let mut all = sizes.iter().filter_map(|(octets, digit)| {
            let name = format!("{kind}{digit}");
            p.has(&name).then_some((*octets, name))
        });
        (all.next(), all.next().is_some())
    };
    let data_number = |kind: &str| -> Read<Option<DataNumber>> {
        match octets(kind) {
            (_, true) => Err(Fault::new(at, format!("{kind} stands twice in an option"))),
            (None, _) => Ok(None),
            (Some((octets, name)), _) => {
                let value = p.number(&name)?.ok_or_else(|| {
                    Fault::new(at, format!("{name} must be a number"))
                        .help("auto is not supported here")
                })?;
                Ok(Some(DataNumber { octets, value }))
            }
        }
    };
    let (ack, data) = (data_number("dack")?, data_number("dsn")?);
    let (subflow, length) = (p.number("ssn")?, p.number::<u16>("dll")?);
    let sum = checksum(c)?;
    let fin = c.eat_word("fin");
    let mapping = match (data, subflow, length) {
        (Some(data), Some(subflow), Some(length)) => Some(Mapping {
            data,
            subflow,
            length,
            checksum: sum,
        }),
        // The fork's scripts say dll=0 where there is no mapping.
        (None, None, None | Some(0)) => None,
        _ => {
            let fault = Fault::new(at, "a mapping has dsn, ssn and dll");
            return Err(fault.help("write dss dack8=1 dsn8=1 ssn=1 dll=100 nocs"));
        }
    };
    Ok(Mptcp::Dss { ack, mapping, fin })
}

/// `addr[NAME]`: the name.
pub(super) fn name_of_address(c: &mut Cursor<'_>) -> Read<Option<String>> {
    if !c.eat_word("addr") {
        return Ok(None);
    }
    c.expect("[", "after addr")?;
    let name = c.word().to_owned();
    c.expect("]", "after the name of an address")?;
    Ok(Some(name))
}

fn add_address(c: &mut Cursor<'_>, at: At) -> Read<Mptcp> {
    let id = parts(c, &["address_id"], at)?.number("address_id")?;
    if !c.eat_word("addr") {
        return Err(c.wrong("addr[...] is missing"));
    }
    c.expect("[", "after addr")?;
    let name = c.word().to_owned();
    let mut value = None;
    if c.eat("=") {
        let function = c.word();
        if function != "inet_addr" && function != "inet6_addr" {
            return Err(c.wrong("inet_addr(\"ADDRESS\") is missing"));
        }
        c.expect("(", "before an address")?;
        let here = c.at();
        let text = c.quoted()?.unwrap_or_default();
        let wrong = |_| Fault::new(here, format!("`{text}` is no IP address"));
        value = Some(text.parse::<IpAddr>().map_err(wrong)?);
        c.expect(")", "after an address")?;
    }
    c.expect("]", "after an address")?;
    let address = Address { name, value };
    let port = parts(c, &["port"], at)?.number("port")?;
    let code = if c.eat_word("addr_echo") {
        None
    } else {
        Some(parts(c, &["hmac"], at)?.code("hmac", "trunc_r64_hmac", at)?)
    };
    Ok(Mptcp::AddAddress {
        id,
        address,
        port,
        code,
    })
}

/// A command that begins with `ip mptcp`.
pub(super) fn manage(line: &str, at: At) -> Read<Manage> {
    let words: Vec<&str> = line.split_whitespace().skip(2).collect();
    let wrong = || {
        let fault = Fault::new(at, format!("the command `{line}` is not run"));
        Err(fault.help(
            "of ip mptcp supported are endpoint add ADDRESS [id N] [signal] [subflow] [backup] [fullmesh], endpoint \
             delete id N, endpoint change id N backup (or nobackup), endpoint flush, limits set subflows N \
             add_addr_accepted N",
        ))
    };
    match words.as_slice() {
        ["endpoint", "flush"] => Ok(Manage::Flush),
        ["endpoint", "delete" | "del", "id", id] => match id.parse() {
            Ok(id) => Ok(Manage::Delete(id)),
            Err(_) => wrong(),
        },
        [
            "endpoint",
            "change",
            "id",
            id,
            word @ ("backup" | "nobackup"),
        ] => match id.parse() {
            Ok(id) => Ok(Manage::Change(id, *word == "backup")),
            Err(_) => wrong(),
        },
        [
            "limits",
            "set",
            "subflows",
            n,
            "add_addr_accepted" | "add_addr_accept",
            m,
        ]
        | [
            "limits",
            "set",
            "add_addr_accepted" | "add_addr_accept",
            m,
            "subflows",
            n,
        ] => match (n.parse(), m.parse()) {
            (Ok(n), Ok(m)) => Ok(Manage::Limits(n, m)),
            _ => wrong(),
        },
        ["endpoint", "add", address, rest @ ..] => {
            let Ok(address) = address.parse() else {
                return wrong();
            };
            let mut e = Endpoint {
                address,
                id: None,
                signal: false,
                subflow: false,
                backup: false,
                fullmesh: false,
            };
            let mut rest = rest.iter();
            while let Some(word) = rest.next() {
                match *word {
                    "signal" => e.signal = true,
                    "subflow" => e.subflow = true,
                    "backup" => e.backup = true,
                    "fullmesh" => e.fullmesh = true,
                    "id" => match rest.next().and_then(|id| id.parse().ok()) {
                        Some(id) => e.id = Some(id),
                        None => return wrong(),
                    },
                    _ => return wrong(),
                }
            }
            Ok(Manage::Add(e))
        }
        _ => wrong(),
    }
}
