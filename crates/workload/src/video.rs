//! `video`: adaptive streaming. The player requests one segment after another at a rate of the ladder, plays from a
//! buffer, and stalls while it is empty.

use std::collections::VecDeque;
use std::sync::Arc;

use gargalo_settings::{Error, kinds, settings};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use rand_pcg::Pcg64;

use super::random::LARGEST;
use super::{Action, AppResult, Application};

settings! {
    /// Adaptive streaming over TCP: `to` requests and plays the segments of `from`, one after another.
    pub struct Video as "Video", checked by Video::consistent {
        /// Playing time of a segment.
        segment: Duration = Duration::from_secs(4), in Duration::from_millis(1)..;
        /// Available rates, in increasing order. The defaults are those of T.-Y. Huang et al., SIGCOMM 2014, and
        /// two higher ones.
        ladder: Arc<[Rate]> = LADDER.map(|kbps| Rate::from_bps(kbps * 1000)).into();
        /// How the rate of a segment is chosen.
        selection: Selection = Selection::Throughput(ByThroughput::default());
        /// Maximum buffered playing time. Default: 60 s, with `buffer` selection 240 s.
        buffer: Option<Duration> = None;
        /// Buffered playing time at which playback starts, and resumes after a stall. Default: two segments.
        startup: Option<Duration> = None;
        /// Playing time of the video. Default: until the flow stops.
        length: Option<Duration> = None;
        /// Size of a request.
        request_size: Bytes = Bytes::new(350), in Bytes::new(1)..=Bytes::new(1_000_000);
    }
}

const LADDER: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

kinds! {
    /// How the rate of a segment is chosen.
    pub enum Selection: Copy as "SelectionMap" {
        named {
            /// From the throughput of the latest segments: J. Jiang, V. Sekar, H. Zhang, "Improving Fairness,
            /// Efficiency, and Stability in HTTP-based Adaptive Video Streaming with FESTIVE", CoNEXT 2012, sections
            /// 4.3 and 4.4, without its delayed update.
            "throughput" => Throughput(ByThroughput);
            /// From the buffer alone, BBA-0: T.-Y. Huang, R. Johari, N. McKeown, M. Trunnell, M. Watson, "A
            /// Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, algorithm 1.
            "buffer" => Buffer(ByBuffer);
        }
    }
}

settings! {
    /// The highest rate below a share of the harmonic mean of the throughput.
    pub struct ByThroughput: Copy as "ByThroughput" {
        /// The share of the harmonic mean that a rate may not exceed; above 1, rates may exceed the throughput.
        efficiency: f64 = 0.85, in 0.01..=10.0;
        /// Number of segments.
        window: u32 = 20, in 1..=10_000;
    }
}

settings! {
    /// A rate that grows with the buffer.
    pub struct ByBuffer: Copy as "ByBuffer" {
        /// Buffered playing time below which the lowest rate is used.
        reservoir: Duration = Duration::from_secs(90);
        /// The highest rate is used from this much above the reservoir.
        cushion: Duration = Duration::from_secs(126);
    }
}

impl Video {
    /// With the defaults that depend on other keys written out.
    #[must_use]
    pub fn complete(self) -> Self {
        Self {
            buffer: Some(self.buffer()),
            startup: Some(self.startup()),
            ..self
        }
    }

    fn buffer(&self) -> Duration {
        self.buffer.unwrap_or(match self.selection {
            Selection::Throughput(_) => Duration::from_secs(60),
            Selection::Buffer(_) => Duration::from_secs(240),
        })
    }

    fn startup(&self) -> Duration {
        self.startup.unwrap_or(self.segment.saturating_mul(2))
    }

    fn consistent(&self) -> Result<(), Error> {
        let ladder = &self.ladder;
        let rising = ladder.windows(2).all(|w| w[0] < w[1]);
        let (key, message, help) = if ladder.len() > 100 {
            ("ladder", "more than 100 rates", "give fewer")
        } else if !rising || ladder.first().is_none_or(|r| r.is_zero()) {
            let message = "the rates are not positive and increasing";
            ("ladder", message, "sort them, each once")
        } else if ladder.iter().any(|r| *r * self.segment > LARGEST) {
            ("ladder", "a segment of more than 1TB", "give lower rates")
        } else if self.buffer() < self.segment || self.startup() > self.buffer() {
            let message =
                "the buffer is smaller than a segment, or than the amount at which playback starts";
            ("buffer", message, "give a larger buffer")
        } else if self.length.is_some_and(Duration::is_zero) {
            let help = "leave it out to play until the flow stops";
            ("length", "a video of length zero", help)
        } else {
            return Ok(());
        };
        Err(Error::of(key, message).help(help))
    }
}

/// The results of a video for its viewer.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoResult {
    /// From the start of the flow's connection to the first picture; `None` if there was none.
    pub startup: Option<Duration>,
    /// Stall time after the first picture.
    pub rebuffering: Duration,
    /// Number of stalls.
    pub rebufferings: u64,
    /// Playing time of what was shown, without stalls.
    pub played: Duration,
    /// Segments that were received completely.
    pub segments: u64,
    /// Mean rate of the segments received; zero if there are none.
    pub mean_bitrate: Rate,
    /// Changes of rate from one segment to the next.
    pub switches: u64,
}

/// State of a player and its server.
#[derive(Debug)]
pub struct VideoApp {
    spec: Video,
    /// Number of segments; `None` if unlimited.
    segments: Option<u64>,
    began: Option<Instant>,
    /// Rate of the latest requested segment, and when it was requested.
    level: usize,
    asked_at: Instant,
    asked: u64,
    asked_bytes: u64,
    /// Bytes of it that are still missing.
    outstanding: u64,
    /// Requests that the server has not received completely.
    requests: VecDeque<u64>,
    request_received: u64,
    /// Throughput of the latest segments, in bit/s.
    throughput: VecDeque<f64>,
    /// Playing time in the buffer at `updated`.
    buffered: Duration,
    updated: Instant,
    is_playing: bool,
    startup: Option<Duration>,
    rebuffering: Duration,
    rebufferings: u64,
    played: Duration,
    received: u64,
    bitrate_sum: f64,
    switches: u64,
}

impl Application for VideoApp {
    fn total(&self) -> Option<u64> {
        self.whole()
    }
    fn sender(&self) -> usize {
        1
    }
    fn closes_after_peer(&self) -> bool {
        false
    }
    fn on_start(&mut self, now: Instant, _rng: &mut Pcg64) -> Action {
        self.ask(now)
    }
    fn on_timer(&mut self, now: Instant, _rng: &mut Pcg64) -> Action {
        self.ask(now)
    }
    fn on_delivered(&mut self, now: Instant, side: usize, bytes: u64, _sent: u64) -> (u64, Action) {
        match side {
            1 => (bytes, self.serve(bytes)),
            _ => (bytes, self.received(now, bytes)),
        }
    }
    fn result(&self, now: Instant, _lost: u64) -> Option<AppResult> {
        Some(AppResult::Video(self.figures(now)))
    }
}

impl VideoApp {
    pub(super) fn new(spec: &Video) -> Self {
        let segments = spec.length.map(|l| {
            let segment = spec.segment.as_nanos().max(1);
            l.as_nanos().div_ceil(segment).max(1)
        });
        Self {
            spec: spec.clone(),
            segments,
            began: None,
            level: 0,
            asked_at: Instant::ZERO,
            asked: 0,
            asked_bytes: 0,
            outstanding: 0,
            requests: VecDeque::new(),
            request_received: 0,
            throughput: VecDeque::new(),
            buffered: Duration::ZERO,
            updated: Instant::ZERO,
            is_playing: false,
            startup: None,
            rebuffering: Duration::ZERO,
            rebufferings: 0,
            played: Duration::ZERO,
            received: 0,
            bitrate_sum: 0.0,
            switches: 0,
        }
    }

    /// Total bytes, once the last segment was requested.
    fn whole(&self) -> Option<u64> {
        (self.segments == Some(self.asked)).then_some(self.asked_bytes)
    }

    /// The player requests the next segment.
    fn ask(&mut self, now: Instant) -> Action {
        self.began.get_or_insert(now);
        self.advance(now);
        if self.segments.is_some_and(|n| self.asked >= n) {
            return Action::default();
        }
        let level = self.choose();
        self.switches += u64::from(self.asked > 0 && level != self.level);
        self.level = level;
        let rate = self.spec.ladder.get(level).copied().unwrap_or_default();
        let bytes = (rate * self.spec.segment).get().max(1);
        self.bitrate_sum += rate.as_bps() as f64;
        self.outstanding = bytes;
        self.asked += 1;
        self.asked_bytes = self.asked_bytes.saturating_add(bytes);
        self.asked_at = now;
        self.requests.push_back(bytes);
        Action {
            write: self.spec.request_size.get().max(1),
            close: self.segments == Some(self.asked),
            ..Action::default()
        }
    }

    /// Request bytes reached the server.
    fn serve(&mut self, bytes: u64) -> Action {
        self.request_received += bytes;
        let size = self.spec.request_size.get().max(1);
        let mut write = 0u64;
        while self.request_received >= size
            && let Some(segment) = self.requests.pop_front()
        {
            self.request_received -= size;
            write = write.saturating_add(segment);
        }
        let is_last = self.segments == Some(self.asked) && self.requests.is_empty();
        Action {
            write,
            close: is_last && write > 0,
            ..Action::default()
        }
    }

    /// Bytes of a segment reached the player.
    fn received(&mut self, now: Instant, bytes: u64) -> Action {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        if self.outstanding > 0 {
            return Action::default();
        }
        self.advance(now);
        self.measure(now);
        self.received += 1;
        self.buffered += self.spec.segment;
        let is_last = self.segments.is_some_and(|n| self.received >= n);
        if !self.is_playing && (self.buffered >= self.spec.startup() || is_last) {
            self.is_playing = true;
            if self.startup.is_none() {
                self.startup = self.began.map(|t| now.saturating_since(t));
            }
        }
        let room = self.spec.buffer().saturating_sub(self.spec.segment);
        // A buffer smaller than a segment is full with one: wait until that has been played.
        if self.is_playing && self.buffered > room {
            let wait = self.buffered.saturating_sub(room);
            return Action {
                timer: Some(now + wait),
                ..Action::default()
            };
        }
        self.ask(now)
    }

    fn measure(&mut self, now: Instant) {
        let took = now.saturating_since(self.asked_at).as_secs_f64();
        let bits = self
            .spec
            .ladder
            .get(self.level)
            .copied()
            .unwrap_or_default()
            * self.spec.segment;
        if took > 0.0 {
            self.throughput.push_back(bits.as_f64() * 8.0 / took);
        }
        if let Selection::Throughput(by) = self.spec.selection {
            while self.throughput.len() > by.window.max(1) as usize {
                self.throughput.pop_front();
            }
        } else {
            self.throughput.clear();
        }
    }

    /// Plays until now.
    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_since(self.updated);
        self.updated = now;
        if self.is_playing {
            let seen = passed.min(self.buffered);
            self.played += seen;
            self.buffered = self.buffered.saturating_sub(seen);
            let all = self.segments.is_some_and(|n| self.received >= n);
            if passed > seen && !all {
                self.is_playing = false;
                self.rebufferings += 1;
                self.rebuffering += passed.saturating_sub(seen);
            }
        } else if self.startup.is_some() {
            self.rebuffering += passed;
        }
    }

    fn choose(&self) -> usize {
        let ladder = &self.spec.ladder;
        let top = ladder.len().saturating_sub(1);
        let bps = |i: usize| ladder[i.min(top)].as_bps() as f64;
        match self.spec.selection {
            Selection::Throughput(by) => {
                let n = self.throughput.len() as f64;
                let slowness: f64 = self.throughput.iter().map(|t| 1.0 / t).sum();
                let most = if n > 0.0 {
                    by.efficiency * n / slowness
                } else {
                    0.0
                };
                ladder
                    .iter()
                    .rposition(|r| r.as_bps() as f64 <= most)
                    .unwrap_or(0)
            }
            Selection::Buffer(by) => {
                let at = self.buffered.saturating_sub(by.reservoir).as_secs_f64();
                if at <= 0.0 {
                    return 0;
                }
                let span = by.cushion.as_secs_f64();
                if at >= span {
                    return top;
                }
                let wanted = bps(0) + (bps(top) - bps(0)) * at / span;
                let (up, down) = ((self.level + 1).min(top), self.level.saturating_sub(1));
                if wanted >= bps(up) {
                    ladder
                        .iter()
                        .rposition(|r| (r.as_bps() as f64) < wanted)
                        .unwrap_or(0)
                } else if wanted <= bps(down) {
                    ladder
                        .iter()
                        .position(|r| r.as_bps() as f64 > wanted)
                        .unwrap_or(top)
                } else {
                    self.level
                }
            }
        }
    }

    fn figures(&self, now: Instant) -> VideoResult {
        let mut end = Self {
            spec: self.spec.clone(),
            requests: VecDeque::new(),
            throughput: VecDeque::new(),
            ..*self
        };
        end.advance(now);
        let mean = match self.asked {
            0 => 0.0,
            n => self.bitrate_sum / n as f64,
        };
        VideoResult {
            startup: end.startup,
            rebuffering: end.rebuffering,
            rebufferings: end.rebufferings,
            played: end.played,
            segments: self.received,
            mean_bitrate: Rate::from_bps_f64(mean),
            switches: self.switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(selection: Selection) -> VideoApp {
        VideoApp::new(&Video {
            segment: Duration::from_secs(4),
            ladder: [235, 375, 560, 750, 1050, 1750, 2350, 3000]
                .map(|k| Rate::from_bps(k * 1000))
                .into(),
            selection,
            buffer: Some(Duration::from_secs(60)),
            startup: Some(Duration::from_secs(8)),
            length: Some(Duration::from_secs(400)),
            request_size: Bytes::new(350),
        })
    }

    /// Plays over a pipe of this rate in every second segment's time.
    fn play(app: &mut VideoApp, rate: impl Fn(f64) -> f64) -> (Instant, VideoResult) {
        let mut now = Instant::ZERO;
        let mut action = app.ask(now);
        loop {
            if action.write > 0 {
                let bytes = app.serve(action.write).write;
                let took = bytes as f64 * 8.0 / rate(now.as_secs_f64());
                now += Duration::from_secs_f64(took);
                action = app.received(now, bytes);
            } else if let Some(at) = action.timer {
                now = at;
                action = app.ask(now);
            } else {
                // All is received; the rest of the buffer is played.
                now += app.buffered;
                return (now, app.figures(now));
            }
        }
    }

    #[test]
    fn throughput_finds_the_highest_sustainable_rate() {
        let selection = Selection::Throughput(ByThroughput {
            efficiency: 0.85,
            window: 5,
        });
        let mut app = player(selection);
        let (_, r) = play(&mut app, |_| 2.2e6);
        // 0.85 * 2.2 Mbit/s = 1.87 Mbit/s: after the first segment always 1.75 Mbit/s.
        assert_eq!((r.segments, r.switches, app.level), (100, 1, 5));
        assert_eq!((r.rebufferings, r.rebuffering), (0, Duration::ZERO));
        assert_eq!(r.played, Duration::from_secs(400));
        // 235 kbit/s * 4 s and 1.75 Mbit/s * 4 s at 2.2 Mbit/s.
        let startup = (0.94 + 7.0) / 2.2;
        assert!((r.startup.unwrap().as_secs_f64() - startup).abs() < 1e-6);
    }

    #[test]
    fn the_last_segment_starts_a_video_shorter_than_its_start_buffer() {
        let selection = Selection::Throughput(ByThroughput {
            efficiency: 0.85,
            window: 5,
        });
        let mut app = player(selection);
        // Two segments of 4 s, where playing begins with 9 s.
        app.spec.startup = Some(Duration::from_secs(9));
        app.segments = Some(2);
        let (_, r) = play(&mut app, |_| 2.2e6);
        let startup = (0.94 + 7.0) / 2.2;
        assert!((r.startup.unwrap().as_secs_f64() - startup).abs() < 1e-6);
        assert_eq!((r.segments, r.played), (2, Duration::from_secs(8)));
    }

    #[test]
    fn the_buffer_based_player_follows_its_map() {
        let selection = Selection::Buffer(ByBuffer {
            reservoir: Duration::from_secs(10),
            cushion: Duration::from_secs(40),
        });
        let mut app = player(selection);
        let (_, r) = play(&mut app, |_| 20e6);
        assert_eq!(app.level, 7, "the buffer is full: the highest rate");
        assert_eq!(r.rebufferings, 0);
        let mut app = player(selection);
        let (_, r) = play(&mut app, |_| 1.2e6);
        // It settles around 1.2 Mbit/s, between two rates of the ladder.
        let mean = r.mean_bitrate.as_bps() as f64;
        assert!((0.8e6..=1.2e6).contains(&mean), "{mean}");
    }

    #[test]
    fn a_hole_in_the_capacity_is_seen() {
        let selection = Selection::Throughput(ByThroughput {
            efficiency: 0.85,
            window: 5,
        });
        let mut app = player(selection);
        let (end, r) = play(&mut app, |t| {
            if (100.0..105.0).contains(&t) {
                3e4
            } else {
                4e6
            }
        });
        assert_eq!(r.rebufferings, 1);
        let all = r.startup.unwrap() + r.rebuffering + r.played;
        assert_eq!(all, end.saturating_since(Instant::ZERO));
        assert!(r.rebuffering > Duration::from_secs(100));
    }
}
