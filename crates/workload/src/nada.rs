//! NADA, congestion control for real-time media: RFC 8698 with the parameters of its figure 3.
//!
//! The [`Receiver`] combines delay, loss and marks into the aggregate congestion signal, expressed as a delay, and
//! reports it every [`Nada::feedback`]. The [`Sender`] controls its rate so that the signal is `reference ·
//! max_rate / rate`, and increases it fast while there is no sign of congestion.
//!
//! Choices that the RFC leaves open: delays are filtered by the minimum of 15 packets (§5.1.1), the mean loss
//! interval is that of RFC 5348 §5.4, and a sender without reports halves its rate every [`Nada::TAU`] (the RFC
//! leaves that to circuit breakers, RFC 8083).

use std::collections::VecDeque;

use gargalo_settings::{Error, settings};
use gargalo_units::{Duration, Instant, Rate};

settings! {
    /// Parameters of NADA; the defaults are those of RFC 8698 figure 3.
    pub struct Nada: Copy as "Nada", checked by Nada::consistent {
        /// Lowest rate of the encoder, RTP headers included.
        min_rate: Rate = Rate::from_bps(150_000), in Rate::from_bps(1000)..=FASTEST;
        /// Highest rate of the encoder.
        max_rate: Rate = Rate::from_bps(1_500_000), in Rate::from_bps(1000)..=FASTEST;
        /// Weight of the flow relative to other NADA flows.
        priority: f64 = 1.0, in 0.01..=100.0;
        /// Time between two reports of the receiver.
        feedback: Duration = Duration::from_millis(100), in Duration::from_millis(1)..=Duration::from_secs(10);
        /// Reference congestion level (XREF): the queueing delay at `max_rate`.
        reference: Duration = Duration::from_millis(10);
    }
}

/// The highest rate that can be given.
const FASTEST: Rate = Rate::from_bps(10_000_000_000);

impl Nada {
    fn consistent(&self) -> Result<(), Error> {
        let (min, max) = (self.min_rate, self.max_rate);
        if max < min {
            let message = format!("rates from {min} to {max}");
            return Err(Error::of("min_rate", message).help("give the lower one first"));
        }
        Ok(())
    }
}

impl Nada {
    /// Upper bound of the round-trip time in the gradual update (TAU).
    pub const TAU: Duration = Duration::from_millis(500);
    /// Observation window of the receiver (LOGWIN).
    const WINDOW: Duration = Duration::from_millis(500);
    /// Queueing delay that ends the accelerated ramp-up (QEPS).
    const QEPS: Duration = Duration::from_millis(10);
    /// Bound of the filter's delay (DFILT), seconds.
    const DFILT: f64 = 0.120;
    /// Largest increase of the accelerated ramp-up (GAMMA_MAX).
    const GAMMA_MAX: f64 = 0.5;
    /// Maximum self-inflicted queueing delay (QBOUND), seconds.
    const QBOUND: f64 = 0.050;
    /// Scales of the gradual update (KAPPA, ETA).
    const KAPPA: f64 = 0.5;
    const ETA: f64 = 2.0;
    /// Mean loss intervals after which a loss expires (MULTILOSS).
    const MULTILOSS: f64 = 7.0;
    /// Delay above which it is warped (QTH), seconds, and the exponent (LAMBDA).
    const QTH: f64 = 0.050;
    const LAMBDA: f64 = 0.5;
    /// Reference loss and marking ratios (PLRREF, PMRREF) and their delay penalties (DLOSS, DMARK), seconds.
    const PLRREF: f64 = 0.01;
    const PMRREF: f64 = 0.01;
    const DLOSS: f64 = 0.010;
    const DMARK: f64 = 0.002;
    /// Bound of the signal, seconds, from the authors' implementation for ns-3. Without it a flow at its lowest
    /// rate would multiply its rate when a large loss penalty expires.
    const MOST: f64 = 0.500;
    /// Weight of the newest ratio (ALPHA).
    const ALPHA: f64 = 0.1;
    /// Packets of the minimum filter.
    const TAPS: usize = 15;

    /// The warped delay, used while losses show that other flows fill the queue (§4.2 equation 1), in seconds:
    /// above the threshold it decreases, so that the flow keeps a share.
    fn warped(delay: f64) -> f64 {
        if delay < Self::QTH {
            return delay;
        }
        Self::QTH * libm::exp(-Self::LAMBDA * (delay - Self::QTH) / Self::QTH)
    }
}

/// A report of the receiver (§4.1; the wire format is in §5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// No recent loss or queueing: the sender may ramp up.
    pub ramp_up: bool,
    /// Aggregate congestion signal (x_curr), seconds.
    pub signal: f64,
    /// Receiving rate (r_recv).
    pub received: Rate,
    /// When the newest packet was sent, and the time between its arrival and the report.
    pub echo: (Instant, Duration),
}

/// A received packet of media.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its number in the flow, from 0.
    pub number: u64,
    /// Payload size in bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Instant,
    /// It carries a Congestion Experienced mark.
    pub marked: bool,
    /// The sender's round-trip time, which its packets carry (RFC 5348 §3.2.1).
    pub rtt: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    bytes: u64,
    delay: Duration,
    marked: bool,
    /// Packets expected so far, before this one.
    expected: u64,
}

/// Sequence numbers and loss events (RFC 5348 §5).
#[derive(Clone, Debug, Default)]
struct Losses {
    /// Packets expected so far: the highest number plus one.
    expected: u64,
    /// The first packet of the latest loss event, and when the loss was detected.
    event: Option<(u64, Instant)>,
    /// Completed loss intervals, in packets, the newest first.
    intervals: VecDeque<u64>,
}

impl Losses {
    const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

    /// `usual` is the upper bound of the first interval.
    fn on_packet(&mut self, now: Instant, number: u64, rtt: Duration, usual: u64) {
        if number > self.expected {
            // Losses within a round trip are one event.
            match self.event {
                Some((_, since)) if now.saturating_since(since) <= rtt => {}
                before => {
                    let first = before.map_or(0, |(first, _)| first);
                    let interval = self.expected.saturating_sub(first);
                    self.intervals.push_front(match before {
                        Some(_) => interval,
                        None => interval.min(usual),
                    });
                    self.intervals.truncate(Self::WEIGHTS.len());
                    self.event = Some((self.expected, now));
                }
            }
        }
        self.expected = self.expected.max(number + 1);
    }

    /// Packets since the latest loss, and the mean loss interval (loss_int, RFC 5348 §5.4) without the open one:
    /// with it, at a weight of a sixth, seven times the mean would never be reached.
    fn since_and_mean(&self) -> Option<(f64, f64)> {
        let (first, _) = self.event?;
        let open = self.expected.saturating_sub(first) as f64;
        let weighted = self.intervals.iter().zip(Self::WEIGHTS);
        let (sum, weight) = weighted.fold((0.0, 0.0), |(s, w), (n, x)| (s + *n as f64 * x, w + x));
        Some((open, sum / weight))
    }
}

/// The receiver (§4.2).
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Minimum one-way delay (d_base).
    base: Option<Duration>,
    /// The latest packets: those of the window, and at least as many as the filter has taps.
    seen: VecDeque<Seen>,
    losses: Losses,
    loss_ratio: f64,
    mark_ratio: f64,
    newest: Option<(Instant, Instant)>,
    /// A packet arrived since the last report.
    fresh: bool,
}

impl Receiver {
    /// A packet arrived.
    pub fn on_packet(&mut self, now: Instant, packet: &Arrival) {
        let delay = now.saturating_since(packet.sent_at);
        self.base = Some(self.base.map_or(delay, |b| b.min(delay)));
        self.seen.push_back(Seen {
            at: now,
            bytes: packet.bytes,
            delay,
            marked: packet.marked,
            expected: self.losses.expected,
        });
        let usual = self.first_interval(now, packet.rtt);
        self.losses.on_packet(now, packet.number, packet.rtt, usual);
        self.newest = Some((packet.sent_at, now));
        self.fresh = true;
    }

    /// The loss interval at which TCP would have the receiving rate (RFC 5348 §6.3.1, with the simple equation):
    /// W²/1.5 for a window of W packets.
    fn first_interval(&self, now: Instant, rtt: Duration) -> u64 {
        let within = |s: &&Seen| now.saturating_since(s.at) <= Nada::WINDOW;
        let packets = self.seen.iter().rev().take_while(within).count() as f64;
        let window = packets * rtt.as_secs_f64() / Nada::WINDOW.as_secs_f64();
        (window * window / 1.5).max(1.0) as u64
    }

    /// The report that is due; none if no packet arrived.
    pub fn report(&mut self, now: Instant) -> Option<Report> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        let begin = |s: &Seen| now.saturating_since(s.at) <= Nada::WINDOW;
        while self.seen.len() > Nada::TAPS && self.seen.front().is_some_and(|s| !begin(s)) {
            self.seen.pop_front();
        }
        let (base, (sent_at, came)) = (self.base?, self.newest?);
        let taps = self.seen.iter().rev().take(Nada::TAPS).map(|s| s.delay);
        let queue = (taps.min()? - base).as_secs_f64();
        let recent = || self.seen.iter().filter(|s| begin(s));
        let count = recent().count() as f64;
        let before = recent().next().map_or(self.losses.expected, |s| s.expected);
        let expected = (self.losses.expected - before) as f64;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let lost = share((expected - count).max(0.0), expected);
        let marked = share(recent().filter(|s| s.marked).count() as f64, count);
        let bytes: u64 = recent().map(|s| s.bytes).sum();
        let calm = recent().all(|s| s.delay - base < Nada::QEPS);
        self.loss_ratio += Nada::ALPHA * (lost - self.loss_ratio);
        self.mark_ratio += Nada::ALPHA * (marked - self.mark_ratio);
        Some(Report {
            ramp_up: lost == 0.0 && calm,
            signal: self.signal(queue),
            received: Rate::from_bps((bytes as f64 * 8.0 / Nada::WINDOW.as_secs_f64()) as u64),
            echo: (sent_at, now.saturating_since(came)),
        })
    }

    /// The aggregate congestion signal (§4.2 equation 2), in seconds.
    fn signal(&self, queue: f64) -> f64 {
        let delay = match self.losses.since_and_mean() {
            None => queue,
            Some((since, mean)) => {
                // The warped delay is blended out within one mean interval.
                let progress = match mean > 0.0 {
                    true => ((since - Nada::MULTILOSS * mean) / mean).clamp(0.0, 1.0),
                    false => 0.0,
                };
                progress * queue + (1.0 - progress) * Nada::warped(queue)
            }
        };
        let (marks, losses) = (
            self.mark_ratio / Nada::PMRREF,
            self.loss_ratio / Nada::PLRREF,
        );
        Nada::MOST.min(delay + Nada::DMARK * marks * marks + Nada::DLOSS * losses * losses)
    }
}

/// The sender (§4.3).
#[derive(Clone, Debug)]
pub struct Sender {
    nada: Nada,
    /// Reference rate (r_ref), bit/s.
    rate: f64,
    /// The previous signal (x_prev), seconds.
    signal: f64,
    updated: Instant,
    rtt: Option<Duration>,
    received: Option<Rate>,
    ramping: bool,
}

impl Sender {
    /// At its lowest rate.
    pub fn new(nada: Nada, now: Instant) -> Self {
        Self {
            nada,
            rate: nada.min_rate.as_bps() as f64,
            signal: 0.0,
            updated: now,
            rtt: None,
            received: None,
            ramping: true,
        }
    }

    /// A report arrived.
    pub fn on_report(&mut self, now: Instant, report: &Report) {
        let (sent_at, held) = report.echo;
        let rtt = now.saturating_since(sent_at).saturating_sub(held);
        self.rtt = Some(rtt);
        self.received = Some(report.received);
        let elapsed = now.saturating_since(self.updated).as_secs_f64();
        self.updated = now;
        self.ramping = report.ramp_up;
        if report.ramp_up {
            // Equations 3 and 4.
            let reaction = rtt.as_secs_f64() + self.nada.feedback.as_secs_f64() + Nada::DFILT;
            let gamma = Nada::GAMMA_MAX.min(Nada::QBOUND / reaction);
            self.rate = self
                .rate
                .max((1.0 + gamma) * report.received.as_bps() as f64);
        } else {
            // Equations 5 to 7. After a time without reports the step is that of one period.
            let tau = Nada::TAU.as_secs_f64();
            let elapsed = elapsed.min(tau);
            let most = self.nada.max_rate.as_bps() as f64;
            let reference = self.nada.priority * self.nada.reference.as_secs_f64();
            let offset = report.signal - reference * most / self.rate;
            let change = report.signal - self.signal;
            self.rate -= Nada::KAPPA * self.rate * (elapsed / tau) * (offset / tau)
                + Nada::KAPPA * Nada::ETA * self.rate * (change / tau);
        }
        self.signal = report.signal;
        self.clip();
    }

    /// To be called regularly: without reports the rate is reduced.
    pub fn on_time(&mut self, now: Instant) {
        if now.saturating_since(self.updated) > Nada::TAU && self.rtt.is_some() {
            self.rate /= 2.0;
            self.updated = now;
            self.clip();
        }
    }

    fn clip(&mut self) {
        let (least, most) = (self.nada.min_rate, self.nada.max_rate);
        self.rate = (self.rate.max(least.as_bps() as f64)).min(most.as_bps() as f64);
    }

    /// Reference rate (r_ref), bit/s.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The latest round-trip time.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The recent receiving rate.
    pub fn received(&self) -> Option<Rate> {
        self.received
    }

    /// The mode of the last rate update, in one word.
    pub fn phase(&self) -> &'static str {
        match self.ramping {
            true => "accelerated-ramp-up",
            false => "gradual-update",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS * ms
    }

    fn report(ramp_up: bool, signal: f64, kbps: u64, now: Instant) -> Report {
        Report {
            ramp_up,
            signal,
            received: Rate::from_bps(kbps * 1000),
            echo: (now - MS * 100, Duration::ZERO),
        }
    }

    #[test]
    fn delays_are_warped_beyond_the_threshold() {
        for (delay, want) in [
            (0.02, 0.02),
            (0.05, 0.05),
            (0.1, 0.05 * 0.606_53),
            (0.15, 0.05 * 0.367_88),
        ] {
            assert!((Nada::warped(delay) - want).abs() < 1e-6, "{delay}");
        }
    }

    #[test]
    fn ramp_up_is_bounded_by_the_queue_it_may_make() {
        let mut s = Sender::new(Nada::default(), at(0));
        s.on_report(at(200), &report(true, 0.0, 300, at(200)));
        // 50 / (100 + 100 + 120) = 0.15625.
        assert!(
            (s.rate() - 300_000.0 * 1.156_25).abs() < 1.0,
            "{}",
            s.rate()
        );
        // The ramp-up does not reduce the rate.
        s.on_report(at(300), &report(true, 0.0, 100, at(300)));
        assert!((s.rate() - 300_000.0 * 1.156_25).abs() < 1.0);
        assert_eq!(s.phase(), "accelerated-ramp-up");
    }

    #[test]
    fn one_gradual_update_is_the_equation() {
        let mut s = Sender::new(Nada::default(), at(0));
        s.rate = 1_000_000.0;
        s.signal = 0.010;
        s.updated = at(0);
        s.on_report(at(100), &report(false, 0.030, 900, at(100)));
        // Offset 0.030 - 0.010 * 1.5 = 0.015, change 0.020:
        // 1 - 0.5 * 0.2 * 0.03 - 0.5 * 2 * 0.04 = 0.957.
        assert!((s.rate() - 957_000.0).abs() < 1.0, "{}", s.rate());
        s.on_report(at(200), &report(false, 9.0, 900, at(200)));
        assert_eq!(s.rate(), 150_000.0, "never below the least");
    }

    #[test]
    fn silence_halves_the_rate() {
        let mut s = Sender::new(Nada::default(), at(0));
        s.on_time(at(900));
        s.on_report(at(1000), &report(true, 0.0, 1000, at(1000)));
        let before = s.rate();
        s.on_time(at(1500));
        assert_eq!(s.rate(), before);
        s.on_time(at(1501));
        s.on_time(at(1600));
        assert_eq!(s.rate(), before / 2.0);
        for ms in [2100, 2700, 3300, 3900] {
            s.on_time(at(ms));
        }
        assert_eq!(s.rate(), 150_000.0);
    }

    fn packet(number: u64, sent: u64) -> Arrival {
        Arrival {
            number,
            bytes: 1250,
            sent_at: at(sent),
            marked: false,
            rtt: MS * 100,
        }
    }

    #[test]
    fn a_clean_path_is_reported_as_such() {
        let mut r = Receiver::default();
        assert_eq!(r.report(at(0)), None);
        for n in 0..50 {
            r.on_packet(at(10 * n + 50), &packet(n, 10 * n));
        }
        // The 50 packets of the last 500 ms: 10 kbit each.
        let got = r.report(at(545)).unwrap();
        let want = Report {
            ramp_up: true,
            signal: 0.0,
            received: Rate::from_mbps(1),
            echo: (at(490), MS * 5),
        };
        assert_eq!(got, want);
        assert_eq!(r.report(at(645)), None, "nothing new");
    }

    #[test]
    fn the_least_of_fifteen_delays_counts_and_any_of_them_ends_the_ramp_up() {
        let mut r = Receiver::default();
        for n in 0..40 {
            // 30 ms of queue from the 20th on, one packet in ten has 10 ms more.
            let queue = if n >= 20 { 30 } else { 0 } + if n % 10 == 9 { 10 } else { 0 };
            r.on_packet(at(10 * n + 50 + queue), &packet(n, 10 * n));
        }
        let got = r.report(at(500)).unwrap();
        assert!((got.signal - 0.030).abs() < 1e-9 && !got.ramp_up, "{got:?}");
    }

    #[test]
    fn losses_and_marks_count_as_delay() {
        let mut r = Receiver::default();
        for n in (0..50).filter(|n| n % 10 != 9) {
            r.on_packet(at(10 * n + 50), &packet(n, 10 * n));
        }
        let got = r.report(at(540)).unwrap();
        // 4 of 49 in the window, weight 0.1: (4/490 / 0.01)^2 * 10 ms.
        let ratio: f64 = 4.0 / 490.0 / 0.01;
        assert!(
            (got.signal - 0.010 * ratio * ratio).abs() < 1e-9 && !got.ramp_up,
            "{got:?}"
        );
        let mut r = Receiver::default();
        for n in 0..50 {
            let marked = n % 10 == 0;
            r.on_packet(
                at(10 * n + 50),
                &Arrival {
                    marked,
                    ..packet(n, 10 * n)
                },
            );
        }
        let got = r.report(at(540)).unwrap();
        assert!((got.signal - 0.002).abs() < 1e-9 && got.ramp_up, "{got:?}");
    }

    #[test]
    fn warping_ends_some_mean_intervals_after_the_last_loss() {
        let mut losses = Losses::default();
        let mut now = 0;
        let mut send = |losses: &mut Losses, n: u64| {
            now += 10;
            losses.on_packet(at(now), n, MS * 50, 100);
        };
        // Events every 100 packets; a second loss within a round trip belongs to the same event.
        for n in 0..1000u64 {
            // The first interval is 50, below its bound of 100.
            if n % 100 != 50 && n % 100 != 52 {
                send(&mut losses, n);
            }
        }
        let (since, mean) = losses.since_and_mean().unwrap();
        assert!(
            since == 50.0 && (mean - 100.0).abs() < 1e-9,
            "{since} {mean}"
        );
        let mut r = Receiver {
            losses,
            ..Receiver::default()
        };
        let warped = Nada::warped(0.1);
        for (since, want) in [
            (50, warped),
            (700, warped),
            (750, (0.1 + warped) / 2.0),
            (801, 0.1),
        ] {
            r.losses.expected = 950 + since;
            let got = r.signal(0.1);
            assert!((got - want).abs() < 1e-9, "{since}: {got}");
        }
    }

    #[test]
    fn the_mean_interval_weighs_the_newest_four_most() {
        let losses = Losses {
            expected: 10,
            event: Some((5, at(0))),
            intervals: [10, 10, 10, 10, 20, 20, 20, 20].into(),
        };
        // (4 * 10 + (0.8 + 0.6 + 0.4 + 0.2) * 20) / 6.
        let (since, mean) = losses.since_and_mean().unwrap();
        assert!(since == 5.0 && (mean - 80.0 / 6.0).abs() < 1e-12);
    }
}
