//! Settings of the system, with what they are of our stack.

use gargalo_settings::{Json, support::Map};
use gargalo_tcp::Profile;

use super::{Ours, size};

/// Fast Open (linux/tcp.h): connecting, listening, and listening without the socket option.
const CONNECTS: i64 = 0x1;
const LISTENS: i64 = 0x2;
const ALL_LISTEN: i64 = 0x400;
/// Bits of `tcp_fastopen` by which cookies are not needed, at a client and at a server.
const WITHOUT_COOKIES: i64 = 0x4 | 0x200;

/// Settings of what our stack does not have, so that it is as they say whatever they say: super-segments that a device
/// cuts, queues below TCP, metrics of earlier connections, pauses of Fast Open.
const WITHOUT_EFFECT: [&str; 11] = [
    "tcp_autocorking",
    "tcp_fack",
    "tcp_fastopen_blackhole_timeout_sec",
    "tcp_limit_output_bytes",
    "tcp_min_tso_segs",
    "tcp_no_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_tso_rtt_log",
    "tcp_tso_win_divisor",
    "tcp_workaround_signed_windows",
];

/// The CUBIC of Linux, of which modules have parameters.
pub(super) const LINUX_CUBIC: &str = "cubic-linux";

impl Ours {
    /// Takes a parameter of a module of the kernel; `None`: our stack does not have it.
    pub(super) fn set_module(&mut self, module: &str, name: &str, value: &str) -> Option<()> {
        let searches = ["off", "train", "delay", "both"];
        let known = self.is_linux() && module == "tcp_cubic" && name == "hystart_detect";
        let at = value.parse::<usize>().ok().filter(|_| known)?;
        self.hystart = Some(searches.get(at)?);
        Some(())
    }

    /// Whether a setting was taken whose value is not simply that of an option.
    pub(super) fn set_special(&mut self, name: &str, value: &str) -> bool {
        match (name, value) {
            ("tcp_congestion_control", _) => value.clone_into(&mut self.congestion),
            ("tcp_fastopen", _) => match number(value) {
                Some(bits) if bits & WITHOUT_COOKIES == 0 => self.fast_open = bits,
                _ => return false,
            },
            ("tcp_ecn", "0" | "1" | "2") => {
                self.accepts_ecn = value == "2";
                let ecn = Json::from(value == "1");
                self.options.insert("ecn".to_owned(), ecn);
            }
            ("tcp_rmem", _) => {
                let Some([_, initial, most]) = triple(value) else {
                    return false;
                };
                let buffer = size(most);
                self.options.insert("receive_buffer".to_owned(), buffer);
                if self.is_linux() {
                    let mut tuning = Map::new();
                    // As much of it as of the default is payload of full segments.
                    tuning.insert("initial".to_owned(), size(initial / 8 * 5));
                    let tuning = Json::Object(tuning);
                    self.options.insert("receive_autotuning".to_owned(), tuning);
                }
            }
            ("tcp_wmem", _) => match triple(value) {
                Some([_, _, most]) => {
                    self.options.insert("send_buffer".to_owned(), size(most));
                }
                None => return false,
            },
            ("tcp_notsent_lowat", _) => match value.parse() {
                Ok(bytes) => self.notsent_lowat = bytes,
                Err(_) => return false,
            },
            // What our stack has.
            ("tcp_reordering", "3") => {}
            _ => return WITHOUT_EFFECT.contains(&name),
        }
        true
    }

    fn is_linux(&self) -> bool {
        let profile = self
            .setup
            .gargalo
            .iter()
            .rev()
            .find(|(k, _)| k == "profile");
        profile.is_some_and(|(_, v)| *v == Profile::Linux6.name())
    }

    pub(super) fn may_connect_fast(&self) -> bool {
        self.fast_open & CONNECTS != 0
    }

    pub(super) fn may_listen_fast(&self) -> bool {
        self.fast_open & LISTENS != 0
    }

    /// Whether listening sockets accept data in a SYN without an option of the socket.
    pub(super) fn all_listen_fast(&self) -> bool {
        self.fast_open & (LISTENS | ALL_LISTEN) == LISTENS | ALL_LISTEN
    }
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Least, default and most bytes of buffers.
fn triple(text: &str) -> Option<[u64; 3]> {
    let all: Option<Vec<u64>> = text.split_whitespace().map(|n| n.parse().ok()).collect();
    all?.try_into().ok()
}
