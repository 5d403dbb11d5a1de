//! The named profiles that set a system's defaults, and the rule of each for the initial window.

use gargalo_settings::{Window, names};
use gargalo_units::{Bytes, Duration};

use super::{Autotuning, Config, DelayedAck, Nagle, Pacing, Recovery, RtoRestart, WindowRule};

names! {
    /// A named set of defaults.
    pub enum Profile {
        /// defaults of a current Linux: MSS 1448, initial window 10, SACK, RACK-TLP, PRR
        ///
        /// RFC 9293, 6928, 8985, 9937; Linux defaults
        Modern = "modern",
        /// defaults of ns-3.27: MSS 536, initial window 1, 128 KiB buffers, RFC 6675
        ///
        /// ns-3.27 attribute defaults
        Ns3 = "ns3-3.27",
        /// the standards of 2009: initial window 2 to 4, RFC 6675 recovery, least RTO 1 s
        ///
        /// RFC 5681, 6298, 6675
        Rfc5681 = "rfc5681",
        /// a current Linux with its buffers and acknowledgements; with cubic that of Linux
        ///
        /// Linux 6.18 with its default settings
        Linux6 = "linux-6",
        /// Linux of 2015 with the Multipath TCP of multipath-tcp.org: SACK recovery with FACK, early retransmit and
        /// tail loss probes, no RACK
        ///
        /// Linux 3.18 and 4.1 with their default settings, Multipath TCP 0.90
        Linux41 = "linux-4.1-mptcp-0.90",
        /// ns-2.29 as published comparisons of 2006 used it: MSS 1460, windows of 1,000 segments at most
        ///
        /// ns-2.29 default settings
        Ns2 = "ns2-2.29",
        /// the user-space stack smoltcp: no selective acknowledgements at the sender, buffers of 64 kB
        ///
        /// smoltcp 0.8 to 0.10
        Smoltcp = "smoltcp",
    }
}

impl Profile {
    /// The configuration with all options of the profile.
    pub fn config(self) -> Config {
        match self {
            Self::Modern => Config::modern(),
            Self::Ns3 => Config::ns3_3_27(),
            Self::Rfc5681 => Config::rfc5681(),
            Self::Linux6 => Config::linux_6(),
            Self::Linux41 => Config::linux_4_1(),
            Self::Ns2 => Config::ns2_2_29(),
            Self::Smoltcp => Config::smoltcp(),
        }
    }
}

impl Config {
    /// Like a current Linux, except for buffers: 64 MiB each without autotuning, so that the congestion control
    /// limits a flow.
    pub fn modern() -> Self {
        Self::default()
    }

    /// Linux 6 with its default settings, where `modern` has large buffers and the RFCs' rules:
    ///
    /// - The receive buffer begins with 80 KiB (of `tcp_rmem`'s 128 KiB, as payload of full segments), the window with
    ///   64 KiB. Both grow with what the application reads, up to 16 MiB (half of `tcp_rmem`'s 32 MiB; it was 6 MiB
    ///   before Linux 6.16). While the window grows, each segment is acknowledged.
    /// - The send buffer is 4 MiB (`tcp_wmem`), reached by its own autotuning when the congestion window needs it.
    /// - Contents that are written to an open connection are kept in super-segments, each half of the largest window
    ///   and 64 KiB at most: a write is taken in whole ones, and PSH stays at the end of a write. The send buffer takes
    ///   writes without content to the byte.
    /// - The first 16 segments are acknowledged at once, later ones in pairs or after 40 ms, the least of Linux's
    ///   adaptive delay.
    pub fn linux_6() -> Self {
        Self {
            profile: Profile::Linux6,
            initial_window: Some(Window::Packets(10)),
            unpaced_segments: 10,
            whole_segments: true,
            growth_at_recovery_end: true,
            fin_in_last_segment: true,
            super_segments: true,
            rto_restart: RtoRestart::Transmission,
            probe_slack_fixed: true,
            max_dup_thresh: 300,
            receive_buffer: Bytes::new(16 << 20),
            receive_autotuning: Some(Autotuning::default()),
            send_buffer: Bytes::new(4 << 20),
            delayed_ack: DelayedAck {
                timeout: Duration::from_millis(40),
                quick: 16,
                ..DelayedAck::default()
            },
            ..Self::modern()
        }
    }

    /// Linux 3.18 to 4.1 with its default settings, below the Multipath TCP of multipath-tcp.org, release 0.90. What
    /// differs from [`Config::linux_6`]:
    ///
    /// - Losses are found by forward acknowledgement, with early retransmit and tail loss probes (no sooner than 10
    ///   ms), not by RACK. Reordering turns forward acknowledgement off; the threshold then grows to 300 segments at
    ///   most.
    /// - Buffers: `tcp_rmem` ends at 6 MiB, of which `tcp_adv_win_scale` = 1 leaves half for data; `tcp_wmem` at 4 MiB.
    ///   The receive buffer of a single-path connection begins with 184,640 bytes, half of the 369,280 that `ss` shows.
    ///
    /// Not modelled: below the threshold, PRR is RFC 9937's, where this kernel had the slow start reduction bound of
    /// RFC 6937 for all acknowledgements; a probe of a single segment waits two round trips and the acknowledgement
    /// delay, not one and a half; the receive window of Multipath TCP has its largest size from the start.
    pub fn linux_4_1() -> Self {
        Self {
            profile: Profile::Linux41,
            recovery: Recovery::Fack,
            receive_buffer: Bytes::new(3 << 20),
            receive_autotuning: Some(Autotuning {
                initial: Bytes::new(184_640),
            }),
            unpaced_segments: 0,
            whole_segments: false,
            growth_at_recovery_end: false,
            fin_in_last_segment: false,
            super_segments: false,
            probe_slack_fixed: false,
            ..Self::linux_6()
        }
    }

    /// The defaults of ns-3.27, under which many comparisons were published: segments of 536 bytes,
    /// an initial window of one, 128 KiB buffers, delayed acknowledgements of 200 ms, SACK with RFC
    /// 6675 recovery (its attribute `Sack` came with that release), no pacing.
    pub fn ns3_3_27() -> Self {
        Self {
            profile: Profile::Ns3,
            mss: 536,
            initial_window: Some(Window::Packets(1)),
            rescue_retransmission: false,
            receive_buffer: Bytes::new(131_072),
            send_buffer: Bytes::new(131_072),
            syn_timeout: Duration::from_secs(3),
            data_retries: 6,
            slow_start_after_idle: false,
            ..Self::before_rack()
        }
    }

    /// The standards of 2009: RFC 5681 with SACK recovery (RFC 6675), initial window 3, one second as the minimum
    /// timeout, no timestamps-based undo, no pacing, no probes.
    pub fn rfc5681() -> Self {
        Self {
            profile: Profile::Rfc5681,
            mss: 1460,
            initial_window_rule: WindowRule::Rfc5681,
            timestamps: false,
            ..Self::before_rack()
        }
    }

    /// ns-2.29, in which many controls for high speeds were compared, as those comparisons set it up: segments of 1460
    /// bytes, an initial window of 2 (`windowInit_`), a window of 1,000 segments at most (`window_`; its own default is
    /// 20), an acknowledgement for each segment (`TCPSink`), SACK recovery with limited transmit (`singledup_`), a
    /// clock of 10 ms (`tcpTick_`), a least timeout of 200 ms (`minrto_`) and a first one of 6 s (`rtxcur_init_`, 3 s
    /// since January 2006).
    ///
    /// Not modelled: windows reduced in whole segments, round-trip times rounded to ticks.
    pub fn ns2_2_29() -> Self {
        let mss = 1460;
        let window = Bytes::new(1000 * u64::from(mss));
        Self {
            profile: Profile::Ns2,
            mss,
            rescue_retransmission: false,
            initial_window: Some(Window::Packets(2)),
            receive_buffer: window,
            send_buffer: window,
            timestamps: false,
            delayed_ack: DelayedAck {
                every: 1,
                quick: 0,
                ..DelayedAck::default()
            },
            min_rto: Duration::from_millis(200),
            syn_timeout: Duration::from_secs(6),
            clock_granularity: Duration::from_millis(10),
            ..Self::before_rack()
        }
    }

    /// The user-space stack smoltcp, 0.8 to 0.10: no scoreboard at the sender, three duplicate acknowledgements, no
    /// limited transmit, no timestamps, a timeout of 10 ms to 10 s (700 ms before the first sample) whose variance term
    /// is 5 ms at least, acknowledgements of two segments or after 10 ms, the Nagle algorithm, an initial window of
    /// 2048 bytes, two segments. After a loss it sends everything again from the first missing segment on. Buffers are
    /// the application's; 65535 bytes are those of its examples.
    ///
    /// Not modelled: duplicates that its own repetitions cause may make it go back again.
    pub fn smoltcp() -> Self {
        Self {
            profile: Profile::Smoltcp,
            mss: 1460,
            initial_window: Some(Window::Packets(2)),
            receive_buffer: Bytes::new(65_535),
            send_buffer: Bytes::new(65_535),
            timestamps: false,
            delayed_ack: DelayedAck {
                timeout: Duration::from_millis(10),
                quick: 0,
                ..DelayedAck::default()
            },
            recovery: Recovery::GoBackN,
            limited_transmit: false,
            min_rto: Duration::from_millis(10),
            max_rto: Duration::from_secs(10),
            syn_timeout: Duration::from_millis(700),
            clock_granularity: Duration::from_millis(5),
            nagle: Nagle::Standard,
            slow_start_after_idle: false,
            ..Self::before_rack()
        }
    }

    /// The settings that the older profiles have in common.
    fn before_rack() -> Self {
        Self {
            dsack: false,
            delayed_ack: DelayedAck {
                quick: 0,
                ..DelayedAck::default()
            },
            pacing: Pacing::Off,
            recovery: Recovery::Sack,
            prr: false,
            tail_loss_probe: false,
            frto: false,
            undo: false,
            min_rto: Duration::from_secs(1),
            min_rto_above_srtt: false,
            max_rto: Duration::from_secs(60),
            ..Self::modern()
        }
    }
}

#[cfg(test)]
mod tests {
    use gargalo_settings::{Json, Setting};
    use serde_json::json;

    use super::*;

    /// The keys of a table that are not as in another, with their values.
    fn differences(of: &Json, from: &Json) -> Json {
        let (Some(of_keys), Some(from)) = (of.as_object(), from.as_object()) else {
            return of.clone();
        };
        let differ = of_keys
            .iter()
            .filter(|(key, value)| from.get(*key) != Some(*value));
        let rows = differ.map(|(key, value)| {
            let before = from.get(key).unwrap_or(&Json::Null);
            (key.clone(), differences(value, before))
        });
        Json::Object(rows.collect())
    }

    /// What the stacks before RACK had in common, and more.
    fn before_rack(more: Json) -> Json {
        let mut all = json!({
            "delayed_ack": { "quick": 0 }, "dsack": false, "frto": false, "max_rto": "60s", "min_rto": "1s",
            "min_rto_above_srtt": false, "pacing": "off", "prr": false, "recovery": "sack", "tail_loss_probe": false,
            "undo": false,
        });
        let own = all.as_object_mut().unwrap();
        own.extend(more.as_object().unwrap().clone());
        all
    }

    /// The sources are those of the profiles.
    #[test]
    fn a_profile_is_what_it_changes_of_a_current_stack() {
        let mut ns2 = before_rack(json!({
            "clock_granularity": "10ms", "delayed_ack": { "every": 1, "quick": 0 },
            "initial_window": "2 packets", "mss": "1460B", "receive_buffer": "1460kB",
            "rescue_retransmission": false, "send_buffer": "1460kB", "syn_timeout": "6s",
            "timestamps": false,
        }));
        // As a current Linux has it.
        ns2.as_object_mut().unwrap().remove("min_rto");
        let expected = [
            (Profile::Modern, json!({})),
            (
                Profile::Ns3,
                before_rack(json!({
                    "data_retries": 6, "initial_window": "1 packets", "mss": "536B", "receive_buffer": "128KiB",
                    "rescue_retransmission": false, "send_buffer": "128KiB", "slow_start_after_idle": false,
                    "syn_timeout": "3s",
                })),
            ),
            (
                Profile::Rfc5681,
                before_rack(json!({
                    "initial_window_rule": "rfc5681", "mss": "1460B", "timestamps": false,
                })),
            ),
            (
                Profile::Linux6,
                json!({
                    "delayed_ack": { "quick": 16, "timeout": "40ms" }, "fin_in_last_segment": true,
                    "growth_at_recovery_end": true, "initial_window": "10 packets", "max_dup_thresh": 300,
                    "probe_slack_fixed": true, "receive_autotuning": { "initial": "80KiB" }, "receive_buffer": "16MiB",
                    "rto_restart": "transmission", "send_buffer": "4MiB", "super_segments": true,
                    "unpaced_segments": 10, "whole_segments": true,
                }),
            ),
            (
                Profile::Linux41,
                json!({
                    "delayed_ack": { "quick": 16, "timeout": "40ms" }, "initial_window": "10 packets",
                    "max_dup_thresh": 300, "receive_autotuning": { "initial": "184640B" }, "receive_buffer": "3MiB",
                    "recovery": "fack", "rto_restart": "transmission", "send_buffer": "4MiB",
                }),
            ),
            (Profile::Ns2, ns2),
            (
                Profile::Smoltcp,
                before_rack(json!({
                    "clock_granularity": "5ms", "delayed_ack": { "quick": 0, "timeout": "10ms" },
                    "initial_window": "2 packets", "limited_transmit": false, "max_rto": "10s", "min_rto": "10ms",
                    "mss": "1460B", "nagle": "standard", "receive_buffer": "65535B", "recovery": "go-back-n",
                    "send_buffer": "65535B", "slow_start_after_idle": false, "syn_timeout": "700ms",
                    "timestamps": false,
                })),
            ),
        ];
        let modern = Config::modern().write();
        for (profile, expected) in expected {
            let mut found = differences(&profile.config().write(), &modern);
            found.as_object_mut().unwrap().remove("profile");
            assert_eq!(found, expected, "{}", profile.name());
        }
    }
}
