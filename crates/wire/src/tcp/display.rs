//! Segments as one line, like tcpdump's.

use std::fmt;

use super::{Extra, Flags, Options, Segment};

/// A segment without its ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a>(&'a Segment);

impl Segment {
    pub(crate) const fn body(&self) -> Body<'_> {
        Body(self)
    }
}

impl fmt::Display for Segment {
    /// `49152 > 80: Flags [P.], seq 1:1449, ack 1, win 502, options [TS val 5 ecr 4], length 1448`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}: {}", self.src_port, self.dst_port, self.body())
    }
}

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0;
        write!(f, "Flags [{:?}]", s.flags)?;
        let len = s.payload.len();
        if len > 0 {
            write!(f, ", seq {}:{}", s.seq, s.seq + len)?;
        } else if s.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) {
            write!(f, ", seq {}", s.seq)?;
        }
        if s.flags.contains(Flags::ACK) {
            write!(f, ", ack {}", s.ack)?;
        }
        write!(f, ", win {}", s.window)?;
        if s.flags.contains(Flags::URG) {
            write!(f, ", urg {}", s.urgent)?;
        }
        if !s.options.is_empty() {
            write!(f, ", options [{}]", s.options)?;
        }
        write!(f, ", length {len}")
    }
}

impl fmt::Display for Options {
    /// In the order of the wire, without padding: `mss 1460,sackOK,TS val 1 ecr 0,wscale 7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = List { f, first: true };
        let none = Extra::default();
        let extra = self.extra.as_deref().unwrap_or(&none);
        if let Some(mss) = extra.mss {
            list.item(format_args!("mss {mss}"))?;
        }
        if extra.sack_permitted {
            list.item(format_args!("sackOK"))?;
        }
        if let Some(t) = self.timestamps {
            list.item(format_args!("TS val {} ecr {}", t.value, t.echo))?;
        }
        if let Some(shift) = extra.window_scale {
            list.item(format_args!("wscale {shift}"))?;
        }
        if !self.sack.is_empty() {
            list.item(format_args!("sack {} ", self.sack.len()))?;
            for (left, right) in self.sack.as_slice() {
                write!(list.f, "{{{left}:{right}}}")?;
            }
        }
        if let Some(cookie) = &extra.fast_open {
            if cookie.is_empty() {
                list.item(format_args!("tfo cookiereq"))?;
            } else {
                list.item(format_args!("tfo cookie {}", Hex(cookie)))?;
            }
        }
        for option in self.mptcp.iter().flat_map(|l| l.iter()) {
            list.item(format_args!("{option}"))?;
        }
        for (kind, data) in extra.written() {
            list.item(format_args!("unknown-{kind} 0x{}", Hex(data)))?;
        }
        Ok(())
    }
}

struct List<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    first: bool,
}

impl List<'_, '_> {
    fn item(&mut self, item: fmt::Arguments<'_>) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            self.f.write_str(",")?;
        }
        self.f.write_fmt(item)
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}
