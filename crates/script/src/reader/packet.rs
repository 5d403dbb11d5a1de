//! Packets.

use super::cursor::{Cursor, Read};
use crate::ast::{Body, EcnField, Icmp, Packet, Segment, TcpOption};
use crate::fault::Fault;
use crate::words::{FLAGS, ecn_of};

pub(super) fn packet(c: &mut Cursor<'_>) -> Read<Packet> {
    c.skip();
    let inbound = c.bump() == Some('<');
    let (mut connection, mut ecn) = (None, None);
    let (mut from, mut to) = (None, None);
    let mut about = None;
    loop {
        if let Some(name) = super::mptcp::name_of_address(c)? {
            from = Some(name);
        } else if c.eat(">") {
            let name = super::mptcp::name_of_address(c)?;
            to = Some(name.ok_or_else(|| c.wrong("addr[...] is missing after `>`"))?);
        } else if c.eat("[") {
            bracket(c, &mut connection, &mut ecn, &mut about)?;
        } else {
            break;
        }
    }
    c.skip();
    let is_icmp = c.rest().starts_with("icmp ");
    let body = match about {
        Some(_) => Body::Icmp(icmp(c, about)?),
        None if is_icmp => Body::Icmp(icmp(c, None)?),
        None => Body::Tcp(segment(c)?),
    };
    if matches!(body, Body::Icmp(_)) && !inbound {
        let fault = c.wrong("ICMP messages that the stack sends are not supported");
        return Err(fault.help("ICMP errors are inbound packets: <"));
    }
    Ok(Packet {
        inbound,
        connection,
        between: (from, to),
        ecn,
        body,
    })
}

/// What stands in brackets before the control bits, after `[`.
fn bracket(
    c: &mut Cursor<'_>,
    connection: &mut Option<u32>,
    ecn: &mut Option<EcnField>,
    about: &mut Option<(u32, u32)>,
) -> Read<()> {
    c.skip();
    let at = c.at();
    if c.peek().is_some_and(|x| x.is_ascii_digit()) {
        *about = Some(range(c)?);
    } else {
        match c.word() {
            "conn" => *connection = Some(c.number("the number of a connection")?),
            "tos" => *ecn = Some(EcnField::Class(c.number("the type of service")?)),
            "ect01" => *ecn = Some(EcnField::Capable),
            word => match ecn_of(word) {
                Some(e) => *ecn = Some(EcnField::Is(e)),
                None => {
                    let fault = Fault::new(at, format!("[{word}] is not supported in a packet"));
                    return Err(fault.help(
                        "supported: [noecn], [ect0], [ect1], [ect01], [ce], [tos N], [conn N]",
                    ));
                }
            },
        }
    }
    c.expect("]", "after `[`")
}

/// `1:1001(1000)`: the sequence number, and the bytes of payload.
fn range(c: &mut Cursor<'_>) -> Read<(u32, u32)> {
    c.skip();
    let at = c.at();
    let seq: u32 = c.number("a sequence number")?;
    c.expect(":", "after the first sequence number")?;
    let end: u32 = c.number("a sequence number")?;
    c.expect("(", "before the length of the payload")?;
    let len: u32 = c.number("the length of the payload")?;
    c.expect(")", "after the length of the payload")?;
    if seq.wrapping_add(len) != end || len > 65_535 {
        let fault = Fault::new(at, format!("{seq}:{end}({len}) contradicts itself"));
        return Err(fault.help(
            "the second number is the first plus the bytes of payload, without SYN and FIN",
        ));
    }
    Ok((seq, len))
}

fn segment(c: &mut Cursor<'_>) -> Read<Segment> {
    c.skip();
    let at = c.at();
    let word = c.take_while(|x| x.is_ascii_alphanumeric() || matches!(x, '.' | '-'));
    let mut flags = 0;
    for letter in word.chars().filter(|_| word != "-") {
        match FLAGS.iter().find(|(l, _)| *l == letter) {
            Some((_, bit)) => flags |= bit,
            None => {
                let fault = Fault::new(at, format!("`{word}` are no control bits of TCP"));
                return Err(fault.help(
                    "bits are F, S, R, P, . (ACK), U, E (ECE), W (CWR) and A (AE), none is -; UDP, tunnels and \
                     addresses are not supported; an ICMP error begins with [SEQ:END(LENGTH)]",
                ));
            }
        }
    }
    if word.is_empty() {
        return Err(c.wrong("control bits such as S. are missing"));
    }
    let (seq, len) = range(c)?;
    let mut s = Segment {
        flags,
        seq,
        len,
        ack: None,
        window: None,
        urgent: None,
        options: Some(Vec::new()),
    };
    loop {
        if c.eat_word("ack") {
            s.ack = Some(c.number("ack")?);
        } else if c.eat_word("win") {
            s.window = Some(c.number("win")?);
        } else if c.eat_word("urg") {
            s.urgent = Some(c.number("urg")?);
        } else if c.eat("<") {
            s.options = options(c)?;
            return Ok(s);
        } else {
            return Ok(s);
        }
    }
}

fn options(c: &mut Cursor<'_>) -> Read<Option<Vec<TcpOption>>> {
    if c.eat("...") {
        c.expect(">", "after the options")?;
        return Ok(None);
    }
    let mut list = Vec::new();
    if c.eat(">") {
        return Ok(Some(list));
    }
    loop {
        list.push(option(c)?);
        if c.eat(">") {
            return Ok(Some(list));
        }
        c.expect(",", "between two options")?;
    }
}

fn option(c: &mut Cursor<'_>) -> Read<TcpOption> {
    c.skip();
    let at = c.at();
    Ok(match c.word() {
        "nop" => TcpOption::Nop,
        "eol" => TcpOption::Eol,
        "mss" => TcpOption::Mss(c.number("mss")?),
        "wscale" => TcpOption::WindowScale(c.number("wscale")?),
        "sackOK" => TcpOption::SackPermitted,
        "sack" => {
            let mut blocks = Vec::new();
            c.skip();
            while c.peek().is_some_and(|x| x.is_ascii_digit()) {
                let left = c.number("the left edge of a SACK block")?;
                c.expect(":", "between the edges of a SACK block")?;
                blocks.push((left, c.number("the right edge of a SACK block")?));
                c.skip();
            }
            if blocks.is_empty() || blocks.len() > 4 {
                let fault = Fault::new(at, "a SACK option has one to four blocks");
                return Err(fault.help("write sack 1001:2001 3001:4001"));
            }
            TcpOption::Sack(blocks)
        }
        "TS" => {
            let wrong = |c: &Cursor<'_>| c.wrong("write TS val N ecr N");
            if !c.eat_word("val") {
                return Err(wrong(c));
            }
            let val = c.number("the value of a timestamp")?;
            if !c.eat_word("ecr") {
                return Err(wrong(c));
            }
            TcpOption::Timestamps(val, c.number("the echo of a timestamp")?)
        }
        "FO" => TcpOption::FastOpen(cookie(c)?),
        "FOEXP" => TcpOption::FastOpenExperimental(cookie(c)?),
        "md5" => TcpOption::Other(19, cookie(c)?),
        "kind" => {
            let kind: u8 = c.number("the kind of an option")?;
            if kind < 6 || kind == 8 || kind == 34 {
                let fault = Fault::new(at, format!("options of kind {kind} have a name"));
                return Err(fault.help("write mss, wscale, sackOK, sack, TS or FO"));
            }
            TcpOption::Other(kind, cookie(c)?)
        }
        "" => return Err(c.wrong("an option of TCP is missing")),
        word => {
            if let Some(option) = super::mptcp::option(c, word, at)? {
                return Ok(TcpOption::Mptcp(option));
            }
            let fault = Fault::new(at, format!("the TCP option {word} is not supported"));
            return Err(fault.help(format!(
                "supported: mss, wscale, sackOK, sack, TS val N ecr N, FO, FOEXP, nop, eol, {}, kind N BYTES; any: \
                 <...>",
                super::mptcp::NAMES
            )));
        }
    })
}

fn cookie(c: &mut Cursor<'_>) -> Read<Vec<u8>> {
    c.skip();
    let at = c.at();
    let digits = c.word();
    let bytes: Option<Vec<u8>> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let text = std::str::from_utf8(pair).ok()?;
            (pair.len() == 2).then_some(())?;
            u8::from_str_radix(text, 16).ok()
        })
        .collect();
    let bytes = bytes.filter(|b| b.len() <= 36);
    bytes.ok_or_else(|| {
        let fault = Fault::new(at, format!("the cookie {digits} is not valid"));
        fault.help("write pairs of hexadecimal digits, at most 36")
    })
}

/// An ICMP error; the segment in question stands before it, behind it, or is the SYN.
fn icmp(c: &mut Cursor<'_>, about: Option<(u32, u32)>) -> Read<Icmp> {
    if !c.eat_word("icmp") {
        let fault = c.wrong("`icmp` is missing after the segment in question");
        return Err(fault.help("write < icmp unreachable frag_needed mtu 1200 [1:1001(1000)]"));
    }
    c.skip();
    let at = c.at();
    let kind = c.word().to_owned();
    c.skip();
    let mut code = None;
    for (name, ..) in crate::packet::ICMP_CODES {
        if c.eat_word(name) {
            code = Some(name.to_owned());
        }
    }
    let mtu = if c.eat_word("mtu") {
        Some(c.number("the MTU")?)
    } else {
        None
    };
    let about = match about {
        Some(about) => about,
        None if c.eat("[") => {
            let about = range(c)?;
            c.expect("]", "after the segment in question")?;
            about
        }
        None => (0, 0),
    };
    let icmp = Icmp {
        about,
        kind,
        code,
        mtu,
    };
    if !crate::packet::icmp_is_known(&icmp) {
        let codes = crate::packet::ICMP_CODES.map(|(name, ..)| name);
        let fault = Fault::new(at, "this ICMP error is not supported");
        return Err(fault.help(format!(
            "supported: unreachable with {}, packet_too_big mtu N, time_exceeded",
            codes.join(", ")
        )));
    }
    Ok(icmp)
}
