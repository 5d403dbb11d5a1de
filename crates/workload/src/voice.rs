//! `voice`: one direction of a call. Talk spurts and pauses have random lengths; the listener plays packets that
//! arrive in time.

use gargalo_settings::{kinds, names, settings};
use gargalo_units::{Duration, Instant};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::emodel::{self, Impairment};
use super::{Action, AppResult, Application, Datagram, Period};

settings! {
    /// One direction of a call over UDP: `from` speaks, `to` listens.
    pub struct Voice: Copy as "Voice" {
        /// The codec; a packet is sent every 20 ms.
        codec: Codec = Codec::G711;
        /// Length of talk spurts. The default is that of ITU-T P.59.
        talk: Period = Period::Exponential(Duration::from_millis(1004));
        /// Length of pauses. The default is that of ITU-T P.59.
        pause: Period = Period::Exponential(Duration::from_millis(1587));
        /// When a packet is played.
        playout: Playout = Playout::Adaptive;
    }
}

names! {
    /// The speech codec: it determines the payload of a packet and how much losses impair the speech.
    pub enum Codec {
        /// ITU-T G.711, 64 kbit/s.
        G711 = "g711",
        /// ITU-T G.729A, 8 kbit/s.
        G729 = "g729",
    }
}

kinds! {
    /// When a packet is played.
    pub enum Playout: Copy as "Playout" {
        words {
            /// Mean delay plus four mean deviations, adapted at each talk spurt, but at least one packet above the
            /// mean (algorithm 1 of R. Ramjee, J. Kurose, D. Towsley, H. Schulzrinne, "Adaptive Playout Mechanisms
            /// for Packetized Audio Applications in Wide-Area Networks", INFOCOM 1994).
            "adaptive" => Adaptive;
        }
        plain {
            /// This long after the network delay of the first packet.
            Fixed(Duration);
        }
    }
}

/// RTP header without options (RFC 3550 section 5.1).
const RTP_HEADER: u64 = 12;
/// Duration of the speech in a packet.
const INTERVAL: Duration = Duration::from_millis(20);

impl Codec {
    /// Payload of a datagram: RTP header and speech.
    const fn packet_size(self) -> u64 {
        match self {
            Self::G711 => 160 + RTP_HEADER,
            Self::G729 => 20 + RTP_HEADER,
        }
    }

    /// Look-ahead of the coder.
    const fn look_ahead(self) -> Duration {
        match self {
            Self::G711 => Duration::ZERO,
            Self::G729 => Duration::from_millis(5),
        }
    }

    /// Its sensitivity to losses.
    const fn impairment(self) -> Impairment {
        match self {
            Self::G711 => emodel::G711,
            Self::G729 => emodel::G729,
        }
    }
}

/// The results of a call for the listener.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceResult {
    /// Packets that came too late to be played.
    pub late_packets: u64,
    /// Share of the packets that were dropped or late.
    pub loss: f64,
    /// Mean over the packets of the interarrival jitter of RFC 3550 section 6.4.1.
    pub jitter: Duration,
    /// Mean mouth-to-ear delay: packet, look-ahead, network and playout buffer.
    pub mouth_to_ear: Duration,
    /// Transmission rating of the E-model; `None` if nothing arrived.
    pub rating: Option<f64>,
    /// Mean opinion score; `None` if nothing arrived.
    pub mos: Option<f64>,
}

/// State of one direction of a call.
#[derive(Debug)]
pub struct VoiceApp {
    spec: Voice,
    /// End of the current spurt.
    talking_until: Instant,
    received: u64,
    late: u64,
    last: Option<(Instant, Duration)>,
    jitter_ns: f64,
    jitter_sum_ns: f64,
    mean_ns: f64,
    deviation_ns: f64,
    playout_ns: f64,
    playout_sum_ns: f64,
}

/// Gain of the estimates of delay and deviation (Ramjee et al., section 2).
const GAIN: f64 = 1.0 - 0.998_002;

impl Application for VoiceApp {
    fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.start(now, rng)
    }
    fn on_timer(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.tick(now, rng)
    }
    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) -> Action {
        self.received(now, datagram.sent_at);
        Action::default()
    }
    fn result(&self, _now: Instant, lost: u64) -> Option<AppResult> {
        Some(AppResult::Voice(self.figures(lost)))
    }
}

impl VoiceApp {
    pub(super) fn new(spec: &Voice) -> Self {
        Self {
            spec: *spec,
            talking_until: Instant::ZERO,
            received: 0,
            late: 0,
            last: None,
            jitter_ns: 0.0,
            jitter_sum_ns: 0.0,
            mean_ns: 0.0,
            deviation_ns: 0.0,
            playout_ns: 0.0,
            playout_sum_ns: 0.0,
        }
    }

    /// Starts in the middle of a call: in a spurt with the probability of its share of time.
    fn start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        let (talk, pause) = (self.spec.talk.mean(), self.spec.pause.mean());
        let share = talk.as_secs_f64() / (talk + pause).as_secs_f64();
        // Speakers that start together are not synchronised.
        let phase = INTERVAL.mul_f64(rng.random());
        if rng.random::<f64>() < share {
            self.speak(now + phase, rng)
        } else {
            let pause = self.spec.pause.draw(rng);
            self.speak(now + phase + pause, rng)
        }
    }

    fn speak(&mut self, from: Instant, rng: &mut Pcg64) -> Action {
        // Even the shortest spurt fills a packet.
        self.talking_until = from + self.spec.talk.draw(rng) + Duration::from_nanos(1);
        Action {
            timer: Some(from),
            ..Action::default()
        }
    }

    fn tick(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        if now < self.talking_until {
            return Action {
                write: self.spec.codec.packet_size(),
                timer: Some(now + INTERVAL),
                ..Action::default()
            };
        }
        let pause = self.spec.pause.draw(rng);
        self.speak(now + pause, rng)
    }

    fn received(&mut self, now: Instant, sent_at: Instant) {
        let delay = now.saturating_since(sent_at);
        let delay_ns = delay.as_nanos() as f64;
        let interval_ns = INTERVAL.as_nanos() as f64;
        let new_spurt = match self.last {
            None => {
                self.mean_ns = delay_ns;
                true
            }
            Some((before, delay_before)) => {
                let difference = (delay_ns - delay_before.as_nanos() as f64).abs();
                self.jitter_ns += (difference - self.jitter_ns) / 16.0;
                self.mean_ns += GAIN * (delay_ns - self.mean_ns);
                let off = (delay_ns - self.mean_ns).abs();
                self.deviation_ns += GAIN * (off - self.deviation_ns);
                let gap = sent_at.saturating_since(before).as_nanos() as f64;
                gap > 1.5 * interval_ns
            }
        };
        if new_spurt {
            match self.spec.playout {
                Playout::Adaptive => {
                    self.playout_ns = self.mean_ns + (4.0 * self.deviation_ns).max(interval_ns);
                }
                Playout::Fixed(d) if self.last.is_none() => {
                    self.playout_ns = delay_ns + d.as_nanos() as f64;
                }
                Playout::Fixed(_) => {}
            }
        }
        self.received += 1;
        self.late += u64::from(delay_ns > self.playout_ns);
        self.jitter_sum_ns += self.jitter_ns;
        self.playout_sum_ns += self.playout_ns;
        if self.last.is_none_or(|(before, _)| before < sent_at) {
            self.last = Some((sent_at, delay));
        }
    }

    fn figures(&self, lost: u64) -> VoiceResult {
        let n = self.received as f64;
        let mean = |sum: f64| {
            let mean = if n > 0.0 { sum / n } else { 0.0 };
            Duration::from_nanos(mean as u64)
        };
        let all = self.received + lost;
        let loss = match all {
            0 => 0.0,
            _ => (lost + self.late) as f64 / all as f64,
        };
        let mouth_to_ear = mean(self.playout_sum_ns) + INTERVAL + self.spec.codec.look_ahead();
        let rating = (self.received > 0)
            .then(|| emodel::rating(self.spec.codec.impairment(), mouth_to_ear, loss));
        VoiceResult {
            late_packets: self.late,
            loss,
            jitter: mean(self.jitter_sum_ns),
            mouth_to_ear,
            rating,
            mos: rating.map(emodel::mos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(playout: Playout) -> VoiceApp {
        VoiceApp::new(&Voice {
            playout,
            ..Voice::default()
        })
    }

    #[test]
    fn talks_as_much_as_the_recommendation_says() {
        let mut app = call(Playout::Adaptive);
        let mut rng = crate::stream(3, "call");
        let mut action = app.start(Instant::ZERO, &mut rng);
        let (mut packets, mut now) = (0, Instant::ZERO);
        while now < Instant::ZERO + Duration::from_secs(20_000) {
            now = action.timer.unwrap();
            action = app.tick(now, &mut rng);
            packets += u64::from(action.write > 0);
        }
        // ITU-T P.59: 38.7% of the time; half a packet more a spurt, since a packet is sent when its
        // speech begins. 7,700 spurts give a standard error of 1%.
        let talk = packets as f64 * 0.020 / 20_000.0;
        let expected = (1.004 + 0.010) / (1.004 + 1.587 + 0.010);
        assert!(
            (talk / expected - 1.0).abs() < 0.035,
            "{talk} for {expected}"
        );
    }

    #[test]
    fn a_quiet_network_gives_the_best_score_and_no_jitter() {
        let mut app = call(Playout::Fixed(Duration::from_millis(40)));
        for i in 0..1000 {
            let at = Instant::ZERO + Duration::from_millis(20 * i);
            app.received(at + Duration::from_millis(40), at);
        }
        let r = app.figures(0);
        assert_eq!((r.late_packets, r.loss, r.jitter), (0, 0.0, Duration::ZERO));
        assert_eq!(r.mouth_to_ear, Duration::from_millis(100));
        assert!((r.rating.unwrap() - 90.8).abs() < 1e-6);
        assert!((r.mos.unwrap() - 4.36).abs() < 0.01);
    }

    #[test]
    fn what_comes_after_its_time_is_late() {
        let mut app = call(Playout::Fixed(Duration::from_millis(10)));
        for i in 0..100 {
            let at = Instant::ZERO + Duration::from_millis(20 * i);
            let delay = if i % 10 == 9 { 45 } else { 20 };
            app.received(at + Duration::from_millis(delay), at);
        }
        let r = app.figures(100);
        assert_eq!(r.late_packets, 10);
        assert!((r.loss - 0.55).abs() < 1e-12);
        assert!(r.jitter > Duration::from_millis(3) && r.jitter < Duration::from_millis(9));
    }

    #[test]
    fn nothing_heard_has_no_score() {
        assert_eq!(call(Playout::Adaptive).figures(5).mos, None);
    }
}
