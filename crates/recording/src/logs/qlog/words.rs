//! Words that are written in many ways, as those of the tables.

/// Phases of congestion control.
const PHASES: &[&str] = &[
    "slow-start",
    "conservative-slow-start",
    "congestion-avoidance",
    "recovery",
    "application-limited",
    "startup",
    "drain",
    "probe-bw",
    "probe-rtt",
    "competitive",
    "default",
    "slowdown",
    "fast",
    "slow",
];

/// Letters and digits in lower case: `SlowStart`, `slow_start` and `slow-start` are one.
pub fn plain(word: &str) -> String {
    let letters = word.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// The phase of a state, if it is one of those that are known.
pub fn phase(state: &str) -> Option<&'static str> {
    let state = plain(state);
    if state == "recoverystart" || state == "fastrecovery" {
        return Some("recovery");
    }
    PHASES.iter().copied().find(|p| plain(p) == state)
}

/// The space of a packet's number (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Initial,
    Handshake,
    Application,
}

/// The space of a type of packets; `None` if it has no number.
pub fn space(packet_type: &str) -> Option<Space> {
    match plain(packet_type).as_str() {
        "initial" => Some(Space::Initial),
        "handshake" => Some(Space::Handshake),
        "retry" | "versionnegotiation" | "statelessreset" => None,
        // Some do not tell it of packets whose frames they tell.
        _ => Some(Space::Application),
    }
}
