//! `media`: one direction of a video call over UDP with congestion control.
//!
//! An encoder produces frames at its target rate, a buffer shapes them into packets (RFC 8698 §5.2), and
//! [`nada`](super::nada) sets the rates. The receiver's reports return on the reverse path and may be lost there.
//! The encoder is the simple one of RFC 8593 §5: frame sizes vary around the mean of the rate, and there is a
//! minimum time between changes of the rate.

use std::collections::VecDeque;

use gargalo_settings::{Probability, settings};
use gargalo_units::{Bytes, Duration, Ecn, Instant, Rate};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::media_frames::{MediaFrame, MediaFrames};
use super::nada::{Arrival, Nada, Receiver, Report, Sender};
use super::ticks::LARGEST_PAYLOAD;
use super::{Action, AppResult, Application, Datagram};

settings! {
    /// One direction of a video call over UDP with the congestion control NADA (RFC 8698): `from` sends video, `to`
    /// receives it and sends reports.
    pub struct Media: Copy as "Media" {
        /// Frames per second.
        frame_rate: f64 = 30.0, in 1.0..=1000.0;
        /// Largest payload of a packet, RTP header included.
        packet_size: Bytes = Bytes::new(1200), in Bytes::new(64)..=LARGEST_PAYLOAD;
        /// Variation of frame sizes around their mean (scale of a Laplace distribution; RFC 8593 section 5).
        variation: f64 as Probability = 0.15;
        /// Minimum time between two changes of the encoder's rate (tau_v, RFC 8593 section 5).
        reaction: Duration = Duration::from_millis(200);
        /// Packets carry ECT(0), and CE marks are congestion signals.
        ecn: bool = false;
    } with {
        /// Parameters of NADA (RFC 8698); their keys belong to this table.
        nada: Nada;
    }
}

impl Media {
    /// Frames that the encoder produces within a time.
    pub fn frames(&self, within: Duration) -> u64 {
        (within.as_secs_f64() * self.frame_rate) as u64
    }
}

/// The results of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaResult {
    /// Mean rate of the encoder's frames.
    pub mean_rate: Rate,
    /// Share of the packets lost in the network.
    pub loss: f64,
    /// Mean over the packets of the interarrival jitter of RFC 3550 section 6.4.1.
    pub jitter: Duration,
    /// Reports of the receiver that reached the sender.
    pub reports: u64,
    /// The encoder's frames in their order; `None`: the results have no rows for them.
    pub frames: Option<Vec<MediaFrame>>,
}

/// A sender's state for samples.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The sender's reference rate (r_ref of RFC 8698).
    pub rate: Rate,
    /// The recent receiving rate.
    pub received: Option<Rate>,
    /// The latest round-trip time.
    pub rtt: Option<Duration>,
    /// The mode of the last rate update.
    pub phase: &'static str,
}

/// Weights of the shaping buffer in the encoder's rate and the sender's (BETA_V, BETA_S, RFC 8698 §5.2).
const BETA: f64 = 0.1;
/// Payload of a report: RTCP header, sender, media source, signal, rate, mode, time stamps (RFC 8698 §5.3).
const REPORT: u64 = 32;
/// Maximum number of reports in flight that are kept; older ones are lost.
const REPORTS: usize = 4096;

/// Both ends of one direction of a video call.
#[derive(Debug)]
pub struct MediaApp {
    spec: Media,
    sender: Sender,
    receiver: Receiver,
    /// The shaping buffer.
    buffer: VecDeque<u64>,
    buffered: u64,
    /// The encoder's rate in bit/s, and since when.
    encoding: f64,
    encoding_since: Instant,
    next_frame: Instant,
    next_packet: Instant,
    next_report: Instant,
    /// Reports in flight, by number.
    on_the_way: VecDeque<(u64, Report)>,
    reports_sent: u64,
    reports: u64,
    started: Instant,
    encoded: u64,
    sent: u64,
    jitter_ns: f64,
    jitter_sum_ns: f64,
    received: u64,
    last_delay: Option<Duration>,
    /// `None`: the results have no rows for them.
    frames: Option<MediaFrames>,
}

impl Application for MediaApp {
    fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.start(now, rng)
    }
    fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.tick(now, rng)
    }
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) -> Action {
        self.received(now, datagram);
        Action::default()
    }
    fn ecn(&self) -> Ecn {
        if self.is_ecn_capable() {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }
    fn rates(&self) -> Option<Snapshot> {
        Some(self.snapshot())
    }
    fn result(&self, now: Instant, lost: u64) -> Option<AppResult> {
        Some(AppResult::Media(self.figures(now, lost)))
    }
}

impl MediaApp {
    pub(super) fn new(spec: &Media, has_rows: bool) -> Self {
        Self {
            spec: *spec,
            sender: Sender::new(spec.nada, Instant::ZERO),
            receiver: Receiver::default(),
            buffer: VecDeque::new(),
            buffered: 0,
            encoding: spec.nada.min_rate.as_bps() as f64,
            encoding_since: Instant::ZERO,
            next_frame: Instant::ZERO,
            next_packet: Instant::ZERO,
            next_report: Instant::ZERO,
            on_the_way: VecDeque::new(),
            reports_sent: 0,
            reports: 0,
            started: Instant::ZERO,
            encoded: 0,
            sent: 0,
            jitter_ns: 0.0,
            jitter_sum_ns: 0.0,
            received: 0,
            last_delay: None,
            frames: has_rows.then(MediaFrames::default),
        }
    }

    /// Starts the call.
    fn start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.sender = Sender::new(self.spec.nada, now);
        self.started = now;
        self.encoding_since = now;
        self.next_frame = now;
        self.next_packet = now;
        self.next_report = now + self.spec.nada.feedback;
        self.tick(now, rng)
    }

    /// Processes the events that are due: a frame, a packet, a report.
    fn tick(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        let mut action = Action::default();
        if self.next_frame <= now {
            self.frame(now, rng);
        }
        if self.next_packet <= now
            && let Some(bytes) = self.buffer.pop_front()
        {
            self.buffered -= bytes;
            self.sent += 1;
            action.write = bytes;
            let gap = bytes as f64 * 8.0 / self.sending_rate();
            self.next_packet = now + Duration::from_secs_f64(gap);
        }
        if self.next_report <= now {
            self.next_report += self.spec.nada.feedback;
            if let Some(report) = self.receiver.report(now) {
                action.reply = REPORT;
                if self.on_the_way.len() == REPORTS {
                    self.on_the_way.pop_front();
                }
                self.on_the_way.push_back((self.reports_sent, report));
                self.reports_sent += 1;
            }
        }
        let mut next = self.next_frame.min(self.next_report);
        if !self.buffer.is_empty() {
            next = next.min(self.next_packet);
        }
        action.timer = Some(next);
        action
    }

    /// Produces a frame, split into packets of equal size.
    fn frame(&mut self, now: Instant, rng: &mut Pcg64) {
        self.sender.on_time(now);
        if now.saturating_since(self.encoding_since) >= self.spec.reaction {
            let target = self.encoder_rate();
            if target != self.encoding {
                self.encoding = target;
                self.encoding_since = now;
            }
        }
        let mean = self.encoding / self.spec.frame_rate / 8.0;
        let bytes = (mean * (1.0 + self.deviation(rng))).max(1.0) as u64;
        let packets = bytes.div_ceil(self.spec.packet_size.get());
        for i in 0..packets {
            let size = bytes / packets + u64::from(i < bytes % packets);
            self.buffer.push_back(size);
        }
        self.buffered += bytes;
        self.encoded += bytes;
        if let Some(frames) = &mut self.frames {
            frames.encoded(now, bytes, packets);
        }
        self.next_frame = now + Duration::from_secs_f64(1.0 / self.spec.frame_rate);
    }

    /// Relative deviation of a frame's size: Laplace, truncated on both sides so that the mean is unchanged.
    fn deviation(&self, rng: &mut Pcg64) -> f64 {
        let u: f64 = rng.random::<f64>() - 0.5;
        let size = -libm::log((1.0 - 2.0 * u.abs()).max(1e-12)) * self.spec.variation;
        size.min(0.9).copysign(u)
    }

    /// Bits in the buffer times frames per second: the rate that would empty it within a frame interval.
    fn backlog_rate(&self) -> f64 {
        8.0 * self.buffered as f64 * self.spec.frame_rate
    }

    /// The encoder's target (r_vin, RFC 8698 §5.2), bit/s.
    fn encoder_rate(&self) -> f64 {
        let least = self.spec.nada.min_rate.as_bps() as f64;
        least.max(self.sender.rate() - BETA * self.backlog_rate())
    }

    /// The sending rate (r_send), bit/s.
    fn sending_rate(&self) -> f64 {
        let most = self.spec.nada.max_rate.as_bps() as f64;
        most.min(self.sender.rate() + BETA * self.backlog_rate())
    }

    /// Processes a received datagram: media, or a report.
    fn received(&mut self, now: Instant, datagram: &Datagram) {
        if datagram.side == 0 {
            while let Some((number, report)) = self.on_the_way.pop_front() {
                if number == datagram.number {
                    self.sender.on_report(now, &report);
                    self.reports += 1;
                    break;
                }
                if number > datagram.number {
                    // A later report has already arrived.
                    self.on_the_way.push_front((number, report));
                    break;
                }
            }
            return;
        }
        let delay = now.saturating_since(datagram.sent_at);
        if let Some(before) = self.last_delay.replace(delay) {
            let difference = (delay.as_nanos() as f64 - before.as_nanos() as f64).abs();
            self.jitter_ns += (difference - self.jitter_ns) / 16.0;
        }
        self.received += 1;
        self.jitter_sum_ns += self.jitter_ns;
        if let Some(frames) = &mut self.frames {
            frames.arrived(now, datagram.number);
        }
        let packet = Arrival {
            number: datagram.number,
            bytes: datagram.bytes,
            sent_at: datagram.sent_at,
            marked: datagram.marked,
            rtt: self.sender.rtt().unwrap_or_default(),
        };
        self.receiver.on_packet(now, &packet);
    }

    /// Whether its packets are ECN-capable.
    fn is_ecn_capable(&self) -> bool {
        self.spec.ecn
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            rate: Rate::from_bps(self.sender.rate() as u64),
            received: self.sender.received(),
            rtt: self.sender.rtt(),
            phase: self.sender.phase(),
        }
    }

    fn figures(&self, now: Instant, lost: u64) -> MediaResult {
        let elapsed = now.saturating_since(self.started);
        let jitter = match self.received {
            0 => 0.0,
            n => self.jitter_sum_ns / n as f64,
        };
        MediaResult {
            mean_rate: Rate::from_transfer(Bytes::new(self.encoded), elapsed),
            loss: match self.sent {
                0 => 0.0,
                n => lost as f64 / n as f64,
            },
            jitter: Duration::from_nanos(jitter as u64),
            reports: self.reports,
            frames: self.frames.as_ref().map(MediaFrames::all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs it until `until` on a path of 50 ms each way without loss; returns what was written, and when.
    fn run(app: &mut MediaApp, until: Duration, reports_arrive: bool) -> Vec<(Instant, u64)> {
        let mut rng = crate::stream(1, "media");
        let mut written = Vec::new();
        let mut way: VecDeque<(Instant, Datagram)> = VecDeque::new();
        let (mut media, mut replies) = (0, 0);
        let mut action = app.start(Instant::ZERO, &mut rng);
        let mut now = Instant::ZERO;
        while now < Instant::ZERO + until {
            let mut send = |side, number: &mut u64, bytes| {
                let datagram = Datagram {
                    side,
                    number: *number,
                    bytes,
                    sent_at: now,
                    marked: false,
                };
                *number += 1;
                way.push_back((now + MS * 50, datagram));
            };
            if action.write > 0 {
                written.push((now, action.write));
                send(1, &mut media, action.write);
            }
            if action.reply > 0 && reports_arrive {
                send(0, &mut replies, action.reply);
            }
            let timer = action.timer.unwrap();
            while way.front().is_some_and(|w| w.0 <= timer) {
                let (at, datagram) = way.pop_front().unwrap();
                app.received(at, &datagram);
            }
            now = timer;
            action = app.tick(now, &mut rng);
        }
        written
    }

    #[test]
    fn on_a_free_path_it_reaches_its_highest_rate_and_keeps_it() {
        let mut app = MediaApp::new(&Media::default(), true);
        let written = run(&mut app, Duration::from_secs(30), true);
        let late = Instant::ZERO + Duration::from_secs(20);
        let bytes: u64 = written.iter().filter(|w| w.0 >= late).map(|w| w.1).sum();
        let rate = bytes as f64 * 8.0 / 10.0;
        // Ten seconds of 300 frames, each 15% of Laplace: 1.2% standard error.
        assert!((rate / 1.5e6 - 1.0).abs() < 0.05, "{rate}");
        assert!(written.iter().all(|w| w.1 <= 1200));
        let r = app.figures(Instant::ZERO + Duration::from_secs(30), 0);
        assert!((290..=300).contains(&r.reports) && r.loss == 0.0, "{r:?}");
        assert_eq!(r.jitter, Duration::ZERO);
        // 1.15 times in each 100 ms, seen half a second late: some seconds.
        let fast = written
            .windows(100)
            .find(|w| {
                (w[99].0 - w[0].0).as_secs_f64() * 1.2e6 < w.iter().map(|x| x.1 as f64 * 8.0).sum()
            })
            .unwrap()[0]
            .0;
        assert!(
            (1..10).contains(&((fast - Instant::ZERO).as_secs_f64() as u64)),
            "{fast}"
        );
    }

    #[test]
    fn without_reports_it_stays_at_its_lowest_rate() {
        let mut app = MediaApp::new(&Media::default(), true);
        let written = run(&mut app, Duration::from_secs(20), false);
        let bytes: u64 = written.iter().map(|w| w.1).sum();
        let rate = bytes as f64 * 8.0 / 20.0;
        assert!((rate / 1.5e5 - 1.0).abs() < 0.05, "{rate}");
        assert_eq!(app.figures(Instant::ZERO, 0).reports, 0);
    }

    #[test]
    fn a_full_buffer_is_emptied_faster_and_fed_slower() {
        let mut app = MediaApp::new(&Media::default(), true);
        assert_eq!(app.encoder_rate(), 150_000.0);
        app.buffered = 12_500;
        // 0.1 * 8 * 12500 * 30.
        assert_eq!(app.sending_rate(), 450_000.0);
        assert_eq!(app.encoder_rate(), 150_000.0);
        app.buffered = 1_000_000;
        assert_eq!(app.sending_rate(), 1_500_000.0);
    }

    #[test]
    fn a_lost_report_is_forgotten_and_a_late_one_too() {
        let mut app = MediaApp::new(&Media::default(), true);
        let report = |n: u64| Report {
            ramp_up: true,
            signal: 0.0,
            received: Rate::from_bps(100_000 * (n + 2)),
            echo: (Instant::ZERO, Duration::ZERO),
        };
        app.on_the_way = (0..4).map(|n| (n, report(n))).collect();
        let datagram = |number| Datagram {
            side: 0,
            number,
            bytes: REPORT,
            sent_at: Instant::ZERO,
            marked: false,
        };
        for (number, received) in [(1, 300_000), (0, 300_000), (3, 500_000), (2, 500_000)] {
            app.received(Instant::ZERO + MS * 50, &datagram(number));
            assert_eq!(app.sender.received(), Some(Rate::from_bps(received)));
        }
        assert_eq!(app.reports, 2);
    }
}
