//! The report of a test as iperf3's tables.

use super::report::{IntervalStream, IntervalSum, Moved, SenderState};

/// The line between the blocks of a table.
pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
/// The line around the message that the server is listening.
pub(super) const RULE: &str = "-----------------------------------------------------------\n";

/// The optional columns of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// A column with the role of a stream.
    pub(super) role: bool,
    pub(super) retransmits: bool,
    pub(super) window: bool,
}

impl Columns {
    pub(super) fn heading(self) -> String {
        let role = if self.role { "[Role]" } else { "" };
        let mut line = format!("[ ID]{role} Interval           Transfer     Bitrate");
        if self.retransmits {
            line.push_str("         Retr");
        }
        if self.window {
            line.push_str("  Cwnd");
        }
        line.push('\n');
        line
    }
}

/// Formats a quantity with three or four digits and a prefix: bytes in powers of 1024, bits in powers of 1000.
fn scaled(value: f64, base: f64, unit: &str) -> String {
    const PREFIXES: [&str; 5] = ["", "K", "M", "G", "T"];
    let mut value = value.max(0.0);
    let mut prefix = 0;
    while value >= base && prefix < PREFIXES.len() - 1 {
        value /= base;
        prefix += 1;
    }
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.digits$} {}{unit}", PREFIXES[prefix])
}

pub(super) fn bytes(n: u64) -> String {
    scaled(n as f64, 1024.0, "Bytes")
}

pub(super) fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, 1000.0, "bits/sec")
}

/// The beginning of every line.
fn moved(who: &str, role: &str, m: &Moved) -> String {
    let (transfer, rate) = (bytes(m.bytes), rate(m.bits_per_second));
    format!(
        "[{who:>3}]{role} {:6.2}-{:<6.2} sec  {transfer}  {rate}",
        m.start, m.end
    )
}

fn omitted(omitted: bool) -> &'static str {
    if omitted { "(omitted)" } else { "" }
}

pub(super) fn interval(row: &IntervalStream, role: &str) -> String {
    let line = moved(&row.socket.to_string(), role, &row.moved);
    let tail = omitted(row.omitted);
    match &row.state {
        Some(SenderState {
            retransmits,
            snd_cwnd,
            ..
        }) => format!(
            "{line}  {retransmits:3}   {}       {tail}\n",
            bytes(*snd_cwnd)
        ),
        None => format!("{line}                  {tail}\n"),
    }
}

pub(super) fn interval_sum(row: &IntervalSum, role: &str) -> String {
    let line = moved("SUM", role, &row.moved);
    let tail = omitted(row.omitted);
    match row.retransmits {
        Some(n) => format!("{line}  {n:3}             {tail}\n"),
        None => format!("{line}                  {tail}\n"),
    }
}

/// A line of the summary; `who` is a socket or "SUM", `what` "sender" or "receiver".
pub(super) fn summary(
    who: &str,
    role: &str,
    m: &Moved,
    retransmits: Option<i64>,
    what: &str,
) -> String {
    let line = moved(who, role, m);
    match retransmits {
        Some(n) => format!("{line}  {n:3}             {what}\n"),
        None => format!("{line}                  {what}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_figures() {
        assert_eq!(bytes(0), "0.00 Bytes");
        assert_eq!(bytes(1_310_720), "1.25 MBytes");
        assert_eq!(bytes(131_072), " 128 KBytes");
        assert_eq!(bytes(1_178_694), "1.12 MBytes");
        assert_eq!(rate(10_485_571.0), "10.5 Mbits/sec");
        assert_eq!(rate(1_048_576.0), "1.05 Mbits/sec");
        assert_eq!(rate(0.0), "0.00 bits/sec");
        assert_eq!(rate(9.999e9), "10.0 Gbits/sec");
    }

    #[test]
    fn lines_look_like_those_of_iperf3() {
        let m = Moved::new(0.0, 1.0, 1_310_720);
        let mut row = IntervalStream {
            socket: 5,
            moved: m,
            state: Some(SenderState {
                snd_cwnd: 1_178_694,
                ..SenderState::default()
            }),
            omitted: false,
            sender: true,
        };
        assert_eq!(
            interval(&row, ""),
            "[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes       \n"
        );
        row.state = None;
        assert_eq!(
            interval(&row, "[RX-C]"),
            "[  5][RX-C]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  \n"
        );
        assert_eq!(
            summary("SUM", "", &m, Some(0), "sender"),
            "[SUM]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0             sender\n"
        );
        let columns = Columns {
            role: true,
            retransmits: true,
            window: true,
        };
        assert_eq!(
            columns.heading(),
            "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd\n"
        );
    }
}
