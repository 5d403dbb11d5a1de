//! Reading and writing traces as text and tables.

use std::fmt;
use std::sync::Arc;

use super::{DeliveryTrace, PAYLOAD_BYTES};

/// Why a text or table is not a valid trace, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", At(*line))]
pub struct TraceError {
    /// Line of the text or row of the table, from 1; 0 if it is about the whole.
    pub line: usize,
    /// The problem and its remedy.
    pub problem: String,
}

struct At(usize);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(f, "line {line}: "),
        }
    }
}

impl TraceError {
    pub(super) fn new(line: usize, problem: impl Into<String>) -> Self {
        Self {
            line,
            problem: problem.into(),
        }
    }
}

impl DeliveryTrace {
    /// From opportunities in milliseconds.
    ///
    /// # Errors
    /// When there are no opportunities, all are at zero, or they decrease (the error names the row).
    pub fn from_millis(times: impl IntoIterator<Item = u32>) -> Result<Self, TraceError> {
        let times: Arc<[u32]> = times.into_iter().collect();
        if let Some(i) = times.windows(2).position(|w| w[1] < w[0]) {
            return Err(decrease(i + 2, times[i + 1], times[i]));
        }
        match times.last() {
            None => Err(TraceError::new(
                0,
                "no opportunities; a trace has one integer millisecond a line",
            )),
            Some(0) => Err(TraceError::new(
                0,
                "all opportunities are at 0, so that the trace has no length; \
                 its last line is its period and must be 1 or more",
            )),
            Some(_) => Ok(Self { times }),
        }
    }

    /// From mahimahi's text: one integer millisecond a line. Blank lines and lines (or ends of lines)
    /// after `#` are skipped, which mahimahi itself does not do.
    ///
    /// # Errors
    /// When a line is invalid; the error names the line and the remedy.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        let mut last = 0;
        for (i, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let ms = millisecond(content).map_err(|problem| TraceError::new(i + 1, problem))?;
            if ms < last {
                return Err(decrease(i + 1, ms, last));
            }
            last = ms;
            times.push(ms);
        }
        Self::from_millis(times)
    }

    /// The trace in mahimahi's format, one line per opportunity.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.times.len() * 7);
        for ms in self.times.iter() {
            text.push_str(&ms.to_string());
            text.push('\n');
        }
        text
    }

    /// From rows of (seconds, Mbit/s), as Pensieve's traces: the rate of a row holds from the time of the row
    /// before (zero for the first) until its own. There is an opportunity whenever the rate has carried another
    /// 1500 bytes, at the next whole millisecond. Idle time at the end is not part of the period, because a trace
    /// ends with its last opportunity.
    ///
    /// # Errors
    /// When times decrease, a number is negative or not finite, or the rows carry no packet.
    pub fn from_rates(rows: &[(f64, f64)]) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        let (mut begin, mut carried) = (0.0, 0.0);
        for (i, (end, mbps)) in rows.iter().enumerate() {
            let (row, end, mbps) = (i + 1, *end, *mbps);
            if !(end.is_finite() && mbps.is_finite() && end >= 0.0 && mbps >= 0.0) {
                let problem =
                    format!("{end} s at {mbps} Mbit/s; both must be finite numbers of 0 or more");
                return Err(TraceError::new(row, problem));
            }
            if end < begin {
                let problem = format!("{end} s comes before {begin} s; sort the rows by time");
                return Err(TraceError::new(row, problem));
            }
            // Opportunities a second; their exact times are solved for, so no error adds up.
            let pace = mbps * 1e6 / 8.0 / PAYLOAD_BYTES as f64;
            let total = carried + pace * (end - begin);
            if end * 1e3 >= f64::from(u32::MAX) || total >= 1e9 {
                let problem = "too long or too fast: at most 49 days and a billion packets";
                return Err(TraceError::new(row, problem));
            }
            let first = libm::floor(carried) as u64 + 1;
            for n in first..=(libm::floor(total) as u64) {
                let t = begin + (n as f64 - carried) / pace;
                // A nanosecond of tolerance: 1 ms must not become 2 because of its last binary digit.
                times.push(libm::ceil(t * 1e3 - 1e-6) as u32);
            }
            (begin, carried) = (end, total);
        }
        if times.is_empty() {
            let problem = "the rows carry not a single packet of 1500 bytes";
            return Err(TraceError::new(0, problem));
        }
        Self::from_millis(times)
    }
}

fn decrease(line: usize, ms: u32, last: u32) -> TraceError {
    let problem = format!("{ms} comes after {last}; times must not decrease, sort the lines");
    TraceError::new(line, problem)
}

fn millisecond(text: &str) -> Result<u32, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let shown: String = text.chars().take(40).collect();
    let fields = text.split_whitespace().count();
    Err(match text.parse::<f64>() {
        _ if fields > 1 => format!(
            "\"{shown}\" has {fields} columns; a delivery trace has one integer millisecond a line \
             (pairs of time and rate can be converted)"
        ),
        Ok(n) if n < 0.0 => format!("{shown} is negative; times begin at 0"),
        Ok(n) if n > f64::from(u32::MAX) => {
            format!("{shown} is beyond 49 days; times are milliseconds since the start")
        }
        Ok(n) => format!(
            "{shown} is not an integer; times are whole milliseconds, like {}",
            libm::round(n)
        ),
        Err(_) => format!("\"{shown}\" is not a whole number of milliseconds"),
    })
}

#[cfg(test)]
mod tests {
    use gargalo_units::{Duration, Rate};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_read_with_blanks_and_comments() {
        let t = DeliveryTrace::parse("# LTE\n\n1\n3 # two\r\n3\n\n10").unwrap();
        assert_eq!(&*t.times, [1, 3, 3, 10]);
        assert_eq!(t.period(), Duration::from_millis(10));
        assert_eq!(t.to_text(), "1\n3\n3\n10\n");
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        let error = |text: &str| DeliveryTrace::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("1\n5\n\n3\n"),
            "line 4: 3 comes after 5; times must not decrease, sort the lines"
        );
        assert!(error("1\n2.5\n").starts_with("line 2: 2.5 is not an integer"));
        assert!(error("0.5 12.3\n").contains("2 columns"));
        assert!(error("-1").contains("negative"));
        assert!(error("x").contains("\"x\""));
        assert!(error("99999999999").contains("49 days"));
        assert!(error("").contains("no opportunities"));
        assert!(error("# nothing\n").contains("no opportunities"));
        assert!(error("0\n0\n").contains("no length"));
    }

    #[test]
    fn rates_become_opportunities() {
        // 12 Mbit/s: a packet of 1500 bytes each millisecond.
        let t = DeliveryTrace::from_rates(&[(0.5, 12.0), (1.0, 0.0), (2.0, 24.0)]).unwrap();
        assert_eq!(t.opportunities(), 500 + 2000);
        assert_eq!(t.times[0], 1);
        assert_eq!(t.times[499], 500);
        assert_eq!(t.times[500], 1001);
        assert_eq!(t.mean_rate(), Rate::from_bps(15_000_000));
        assert!(DeliveryTrace::from_rates(&[]).is_err());
        assert!(DeliveryTrace::from_rates(&[(1.0, -1.0)]).is_err());
        assert!(DeliveryTrace::from_rates(&[(1.0, f64::NAN)]).is_err());
        assert!(DeliveryTrace::from_rates(&[(1.0, 1e12)]).is_err());
        assert_eq!(
            DeliveryTrace::from_rates(&[(2.0, 1.0), (1.0, 1.0)])
                .unwrap_err()
                .line,
            2
        );
    }

    proptest! {
        #[test]
        fn text_round_trips(mut times in proptest::collection::vec(0u32..100_000, 1..200)) {
            times.sort_unstable();
            prop_assume!(times.last() > Some(&0));
            let t = DeliveryTrace::from_millis(times).unwrap();
            prop_assert_eq!(&DeliveryTrace::parse(&t.to_text()).unwrap(), &t);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9\n #.x-]{0,60}") {
            let _ = DeliveryTrace::parse(&text);
        }

        #[test]
        fn rates_keep_their_mean(mbps in 0.1f64..200.0, seconds in 1.0f64..20.0) {
            let t = DeliveryTrace::from_rates(&[(seconds, mbps)]).unwrap();
            let expected = (mbps * 1e6 / 12_000.0 * seconds).floor();
            prop_assert!((t.opportunities() as f64 - expected).abs() <= 1.0);
        }
    }
}
