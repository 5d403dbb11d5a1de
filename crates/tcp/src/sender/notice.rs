use gargalo_cc::Cause;

/// An event of the sender, for the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A congestion event: the window was reduced.
    Congestion {
        /// The signal: losses, an ECN echo or a timeout.
        cause: Cause,
        /// Window afterwards, in bytes.
        cwnd: u64,
    },
    /// Segments were marked lost by one acknowledgement or timer.
    Lost {
        /// Number of segments marked.
        segments: u32,
    },
    /// The recovery that followed losses, an ECN echo or a timeout has ended.
    Recovered,
    /// The latest congestion event was spurious and has been undone.
    Undone,
    /// A tail loss probe was sent.
    Probe,
    /// A zero-window probe was sent.
    WindowProbe,
}

impl Notice {
    /// One word for the events table.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Congestion {
                cause: Cause::Timeout { .. },
                ..
            } => "timeout",
            Self::Congestion {
                cause: Cause::Ecn, ..
            } => "ecn",
            Self::Congestion {
                cause: Cause::Loss, ..
            } => "recovery",
            Self::Lost { .. } => "loss",
            Self::Recovered => "recovered",
            Self::Undone => "undo",
            Self::Probe => "tail-loss-probe",
            Self::WindowProbe => "window-probe",
        }
    }

    /// Further values of the event, as text.
    pub fn detail(&self) -> String {
        match self {
            Self::Congestion {
                cause: Cause::Timeout { consecutive },
                cwnd,
            } => {
                format!("consecutive={consecutive} cwnd_bytes={cwnd}")
            }
            Self::Congestion { cwnd, .. } => format!("cwnd_bytes={cwnd}"),
            Self::Lost { segments } => format!("segments={segments}"),
            _ => String::new(),
        }
    }
}
