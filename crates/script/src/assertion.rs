//! The value of an expression.

use std::collections::BTreeSet;

use crate::ast::{At, Expr, Op, Statement};
use crate::fault::Fault;
use crate::words::CONSTANTS;

/// Fields of `TCP_INFO`, as names without the prefix `tcpi_`, with offset and size in bytes (linux/tcp.h).
pub(crate) const FIELDS: [(&str, usize, usize); 57] = [
    ("state", 0, 1),
    ("ca_state", 1, 1),
    ("retransmits", 2, 1),
    ("probes", 3, 1),
    ("backoff", 4, 1),
    ("options", 5, 1),
    ("rto", 8, 4),
    ("ato", 12, 4),
    ("snd_mss", 16, 4),
    ("rcv_mss", 20, 4),
    ("unacked", 24, 4),
    ("sacked", 28, 4),
    ("lost", 32, 4),
    ("retrans", 36, 4),
    ("fackets", 40, 4),
    ("last_data_sent", 44, 4),
    ("last_ack_sent", 48, 4),
    ("last_data_recv", 52, 4),
    ("last_ack_recv", 56, 4),
    ("pmtu", 60, 4),
    ("rcv_ssthresh", 64, 4),
    ("rtt", 68, 4),
    ("rttvar", 72, 4),
    ("snd_ssthresh", 76, 4),
    ("snd_cwnd", 80, 4),
    ("advmss", 84, 4),
    ("reordering", 88, 4),
    ("rcv_rtt", 92, 4),
    ("rcv_space", 96, 4),
    ("total_retrans", 100, 4),
    ("pacing_rate", 104, 8),
    ("max_pacing_rate", 112, 8),
    ("bytes_acked", 120, 8),
    ("bytes_received", 128, 8),
    ("segs_out", 136, 4),
    ("segs_in", 140, 4),
    ("notsent_bytes", 144, 4),
    ("min_rtt", 148, 4),
    ("data_segs_in", 152, 4),
    ("data_segs_out", 156, 4),
    ("delivery_rate", 160, 8),
    ("busy_time", 168, 8),
    ("rwnd_limited", 176, 8),
    ("sndbuf_limited", 184, 8),
    ("delivered", 192, 4),
    ("delivered_ce", 196, 4),
    ("bytes_sent", 200, 8),
    ("bytes_retrans", 208, 8),
    ("dsack_dups", 216, 4),
    ("reord_seen", 220, 4),
    ("rcv_ooopack", 224, 4),
    ("snd_wnd", 228, 4),
    ("rcv_wnd", 232, 4),
    ("rehash", 236, 4),
    // Parts of one byte.
    ("delivery_rate_app_limited", 7, 1),
    ("snd_wscale", 6, 1),
    ("rcv_wscale", 6, 1),
];

/// Checks that all names of a statement are known; `variables` are those that were assigned before.
pub(crate) fn check(s: &Statement, variables: &mut BTreeSet<String>) -> Result<(), Fault> {
    match s {
        Statement::Assert(e) => check_value(e, variables),
        Statement::Assign(name, e) => {
            check_value(e, variables)?;
            variables.insert(name.clone());
            Ok(())
        }
        Statement::Print(list) => {
            let mut names = Vec::new();
            list.iter().for_each(|e| names_of(e, &mut names));
            let mut names = names.into_iter();
            names.try_for_each(|(at, name)| known(at, &name, variables))
        }
    }
}

fn check_value(e: &Expr, variables: &BTreeSet<String>) -> Result<(), Fault> {
    match e {
        Expr::Int(_) => Ok(()),
        Expr::Name(at, name) => known(*at, name, variables),
        Expr::Not(e) | Expr::Minus(e) => check_value(e, variables),
        Expr::Binary(_, a, b) => check_value(a, variables).and_then(|()| check_value(b, variables)),
        Expr::Text(_) | Expr::Tuple(_) => {
            let fault = Fault::new(At::default(), format!("{e} is not a number"));
            Err(fault.help("texts are for print and behind the comma of assert"))
        }
    }
}

fn known(at: At, name: &str, variables: &BTreeSet<String>) -> Result<(), Fault> {
    let fields = FIELDS.iter().map(|(field, ..)| *field);
    if CONSTANTS.iter().any(|(n, _)| *n == name) || variables.contains(name) {
        return Ok(());
    }
    let Some(field) = name.strip_prefix("tcpi_") else {
        let fault = Fault::new(at, format!("the name {name} is not known in assertions"));
        return Err(fault.help(
            "names are tcpi_ fields of TCP_INFO, constants such as TCP_CA_Open, and what was assigned before",
        ));
    };
    if fields.clone().any(|f| f == field) {
        return Ok(());
    }
    let fault = Fault::new(at, format!("TCP_INFO has no field {name}"));
    Err(match gargalo_units::nearest(field, fields) {
        Some(near) => fault.help(format!("did you mean tcpi_{near}?")),
        None => {
            fault.help("fields are those of struct tcp_info in linux/tcp.h, such as tcpi_snd_cwnd")
        }
    })
}

/// The value; `named` gives that of a field or a variable.
pub(crate) fn value(
    e: &Expr,
    named: &mut dyn FnMut(At, &str) -> Result<i64, Fault>,
) -> Result<i64, Fault> {
    Ok(match e {
        Expr::Int(n) => *n,
        Expr::Name(at, name) => named(*at, name)?,
        // These were refused before.
        Expr::Text(_) | Expr::Tuple(_) => 0,
        Expr::Not(e) => i64::from(value(e, named)? == 0),
        Expr::Minus(e) => value(e, named)?.saturating_neg(),
        Expr::Binary(Op::And, a, b) => match value(a, named)? {
            0 => 0,
            _ => value(b, named)?,
        },
        Expr::Binary(Op::Or, a, b) => match value(a, named)? {
            0 => value(b, named)?,
            n => n,
        },
        Expr::Binary(op, a, b) => {
            let (a, b) = (value(a, named)?, value(b, named)?);
            let help = "the event before may have left the divisor 0";
            binary(*op, a, b)
                .ok_or_else(|| Fault::new(At::default(), format!("{e} divides by 0")).help(help))?
        }
    })
}

fn binary(op: Op, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        Op::Eq => i64::from(a == b),
        Op::Ne => i64::from(a != b),
        Op::Le => i64::from(a <= b),
        Op::Ge => i64::from(a >= b),
        Op::Lt => i64::from(a < b),
        Op::Gt => i64::from(a > b),
        Op::And | Op::BitAnd => a & b,
        Op::Or | Op::BitOr => a | b,
        Op::Add => a.saturating_add(b),
        Op::Sub => a.saturating_sub(b),
        Op::Mul => a.saturating_mul(b),
        Op::Div => floor(a, b)?,
        Op::Rem => a.wrapping_sub(b.wrapping_mul(floor(a, b)?)),
    })
}

/// The quotient towards minus infinity, as in Python.
fn floor(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let is_above = a % b != 0 && (a < 0) != (b < 0);
    Some(quotient - i64::from(is_above))
}

/// The constant of this name.
pub(crate) fn constant(name: &str) -> Option<i64> {
    let found = CONSTANTS.iter().find(|(n, _)| *n == name);
    found.map(|(_, n)| *n)
}

/// The names that occur, each once.
pub(crate) fn names_of(e: &Expr, out: &mut Vec<(At, String)>) {
    match e {
        Expr::Int(_) | Expr::Text(_) => {}
        Expr::Name(at, name) => {
            if !out.iter().any(|(_, n)| n == name) {
                out.push((*at, name.clone()));
            }
        }
        Expr::Tuple(list) => list.iter().for_each(|e| names_of(e, out)),
        Expr::Not(e) | Expr::Minus(e) => names_of(e, out),
        Expr::Binary(_, a, b) => {
            names_of(a, out);
            names_of(b, out);
        }
    }
}
