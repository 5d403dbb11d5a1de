//! `ping`: echo requests at a constant interval, each answered at once; round trips and one-way delays over time.

use gargalo_settings::settings;
use gargalo_units::{Bytes, Duration, Instant};
use rand_pcg::Pcg64;

use super::ticks::LARGEST_PAYLOAD;
use super::{Action, AppResult, Application, Datagram};

settings! {
    /// Echo requests over UDP: `from` sends one each interval, `to` answers each at once with as many bytes.
    pub struct Ping: Copy as "Ping" {
        /// Time between two requests.
        interval: Duration = Duration::from_millis(100), in Duration::from_millis(1)..;
        /// Payload of a request and of its answer. The least has room for a sequence number and a time stamp.
        size: Bytes = Bytes::new(56), in Bytes::new(16)..=LARGEST_PAYLOAD;
        /// Number of requests. Default: they go on until the flow stops.
        count: Option<u32> = None, in Some(1)..;
        /// A request that has no answer for this long is lost; an answer that comes later counts nevertheless.
        timeout: Duration = Duration::from_secs(1), in Duration::from_millis(1)..;
    }
}

impl Ping {
    /// The most requests that it sends within a time.
    pub fn requests(&self, within: Duration) -> u64 {
        let all = within.as_nanos() / self.interval.as_nanos().max(1) + 1;
        self.count.map_or(all, |count| all.min(count.into()))
    }
}

/// A request, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When it was sent.
    pub sent: Instant,
    /// One-way delay of the request; `None`: it has not arrived.
    pub forward: Option<Duration>,
    /// One-way delay of the answer; `None`: none has arrived.
    pub back: Option<Duration>,
}

impl Echo {
    /// From the request to its first answer; `None`: there was none.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.forward? + self.back?)
    }
}

/// The requests of a flow and their answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingResult {
    /// One for each request, by sequence number.
    pub echoes: Vec<Echo>,
    /// Answers to requests that had been answered: a link copied the request or its answer.
    pub duplicates: u64,
    /// A request without an answer for this long is lost.
    pub timeout: Duration,
}

/// State of both ends.
#[derive(Debug)]
pub(super) struct PingApp {
    spec: Ping,
    sent: u64,
    /// `None`: the results have no rows for it.
    log: Option<Log>,
}

#[derive(Debug, Default)]
struct Log {
    echoes: Vec<Echo>,
    /// The sequence number that each answer carries, by the number of the answer.
    answers: Vec<u32>,
    duplicates: u64,
}

impl PingApp {
    pub(super) fn new(spec: &Ping, has_rows: bool) -> Self {
        Self {
            spec: *spec,
            sent: 0,
            log: has_rows.then(Log::default),
        }
    }
}

impl Application for PingApp {
    fn on_start(&mut self, now: Instant, rng: &mut Pcg64) -> Action {
        self.on_timer(now, rng)
    }

    fn on_timer(&mut self, now: Instant, _rng: &mut Pcg64) -> Action {
        self.sent += 1;
        if let Some(log) = &mut self.log {
            log.echoes.push(Echo {
                sent: now,
                forward: None,
                back: None,
            });
        }
        let more = self.spec.count.is_none_or(|n| self.sent < n.into());
        Action {
            write: self.spec.size.get(),
            timer: more.then(|| now + self.spec.interval),
            ..Action::default()
        }
    }

    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) -> Action {
        if datagram.side == 0 {
            if let Some(log) = &mut self.log {
                log.answered(now, datagram);
            }
            return Action::default();
        }
        if let Some(log) = &mut self.log {
            log.arrived(now, datagram);
        }
        Action {
            reply: self.spec.size.get(),
            ..Action::default()
        }
    }

    fn result(&self, _now: Instant, _lost: u64) -> Option<AppResult> {
        let log = self.log.as_ref()?;
        Some(AppResult::Ping(PingResult {
            echoes: log.echoes.clone(),
            duplicates: log.duplicates,
            timeout: self.spec.timeout,
        }))
    }
}

impl Log {
    /// A request has arrived, and is answered.
    fn arrived(&mut self, now: Instant, request: &Datagram) {
        if let Some(echo) = self.echoes.get_mut(request.number as usize) {
            // In real time it may have left later than it was due.
            echo.sent = request.sent_at;
            let delay = now.saturating_since(request.sent_at);
            echo.forward.get_or_insert(delay);
        }
        self.answers.push(request.number as u32);
    }

    /// An answer has arrived. The server sends it when the request arrives.
    fn answered(&mut self, now: Instant, answer: &Datagram) {
        let request = self.answers.get(answer.number as usize);
        let echo = request.and_then(|n| self.echoes.get_mut(*n as usize));
        match echo {
            Some(echo) if echo.back.is_none() => {
                // Of the copy that this one answers.
                echo.forward = Some(answer.sent_at.saturating_since(echo.sent));
                echo.back = Some(now.saturating_since(answer.sent_at));
            }
            Some(_) => self.duplicates += 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// What the network does with a datagram: the delays of its copies in milliseconds; none: it is lost.
    type Fate = Vec<u64>;

    /// Runs it for some seconds; the fates of requests and of answers are taken in turn.
    fn run(spec: Ping, seconds: u64, fates: [&[Fate]; 2]) -> PingResult {
        let mut app = PingApp::new(&spec, true);
        let mut rng = crate::stream(1, "ping");
        let mut numbers = [0, 0];
        // Datagrams on their way, and the instants at which they arrive.
        let mut way: Vec<(Instant, Datagram)> = Vec::new();
        let end = Instant::ZERO + Duration::from_secs(seconds);
        let mut timer = Some(Instant::ZERO);
        loop {
            way.sort_by_key(|(at, _)| *at);
            let arrival = way.first().map(|(at, _)| *at);
            let is_timer = timer.is_some_and(|t| arrival.is_none_or(|a| t <= a));
            let Some(now) = (if is_timer { timer } else { arrival }).filter(|t| *t <= end) else {
                break;
            };
            let action = if is_timer {
                let action = app.on_timer(now, &mut rng);
                timer = action.timer;
                action
            } else {
                let (_, datagram) = way.remove(0);
                app.on_datagram(now, &datagram)
            };
            for (side, bytes) in [(1, action.write), (0, action.reply)] {
                if bytes == 0 {
                    continue;
                }
                assert_eq!(bytes, spec.size.get());
                let number = numbers[1 - side];
                numbers[1 - side] += 1;
                let all = fates[1 - side];
                for delay in &all[number as usize % all.len()] {
                    let datagram = Datagram {
                        side,
                        number,
                        bytes,
                        sent_at: now,
                        marked: false,
                    };
                    way.push((now + MS * *delay, datagram));
                }
            }
        }
        let Some(AppResult::Ping(result)) = app.result(end, 0) else {
            panic!("no result");
        };
        result
    }

    fn of(interval_ms: u64) -> Ping {
        Ping {
            interval: MS * interval_ms,
            ..Ping::default()
        }
    }

    #[test]
    fn each_request_has_its_delays() {
        let r = run(of(100), 1, [&[vec![20], vec![50]], &[vec![5]]]);
        // The last is sent as the second ends.
        assert_eq!(r.echoes.len(), 11);
        for (i, echo) in r.echoes[..10].iter().enumerate() {
            assert_eq!(echo.sent, Instant::ZERO + MS * (100 * i as u64));
            let forward = MS * if i % 2 == 0 { 20 } else { 50 };
            assert_eq!((echo.forward, echo.back), (Some(forward), Some(MS * 5)));
            assert_eq!(echo.round_trip(), Some(forward + MS * 5));
        }
        assert_eq!(r.echoes[10].round_trip(), None);
        assert_eq!(r.duplicates, 0);
    }

    #[test]
    fn it_stops_after_its_number_of_requests() {
        let spec = Ping {
            count: Some(3),
            ..of(100)
        };
        assert_eq!(run(spec, 10, [&[vec![1]], &[vec![1]]]).echoes.len(), 3);
        assert_eq!(spec.requests(Duration::from_secs(10)), 3);
        assert_eq!(spec.requests(MS * 100), 2);
        assert_eq!(of(100).requests(Duration::from_secs(1)), 11);
    }

    #[test]
    fn a_lost_answer_leaves_the_delay_of_its_request() {
        let r = run(of(100), 1, [&[vec![20]], &[vec![]]]);
        assert_eq!(r.echoes[0].forward, Some(MS * 20));
        assert!(r.echoes.iter().all(|e| e.round_trip().is_none()));
    }

    #[test]
    fn a_later_answer_may_come_first() {
        let r = run(of(10), 1, [&[vec![50], vec![5]], &[vec![3]]]);
        let first: Vec<_> = r.echoes[..4].iter().map(Echo::round_trip).collect();
        assert_eq!(first, [53, 8, 53, 8].map(|ms| Some(MS * ms)));
    }

    #[test]
    fn copies_are_counted_and_the_first_answer_is_the_one() {
        // Two copies of a request, of whose answers the first takes longer.
        let r = run(of(1000), 1, [&[vec![10, 20]], &[vec![100], vec![1]]]);
        assert_eq!(r.echoes[0].forward, Some(MS * 20));
        assert_eq!(r.echoes[0].back, Some(MS));
        assert_eq!(r.duplicates, 1);
    }

    #[test]
    fn without_rows_it_keeps_nothing_and_still_answers() {
        let mut app = PingApp::new(&Ping::default(), false);
        app.on_start(Instant::ZERO, &mut crate::stream(1, "ping"));
        let request = Datagram {
            side: 1,
            number: 0,
            bytes: 56,
            sent_at: Instant::ZERO,
            marked: false,
        };
        let now = Instant::ZERO + MS;
        assert_eq!(app.on_datagram(now, &request).reply, 56);
        let answer = Datagram { side: 0, ..request };
        assert_eq!(app.on_datagram(now, &answer), Action::default());
        assert_eq!(app.result(now, 0), None);
    }

    proptest! {
        #[test]
        fn delays_add_up_to_the_round_trip(
            there in prop::collection::vec(prop::collection::vec(0u64..300, 0..3), 1..20),
            back in prop::collection::vec(prop::collection::vec(0u64..300, 0..3), 1..20),
        ) {
            let r = run(of(10), 2, [&there, &back]);
            prop_assert_eq!(r.echoes.len(), 201);
            for (i, echo) in r.echoes.iter().enumerate() {
                let fate = &there[i % there.len()];
                // What the network lost has no delay.
                prop_assert!(!fate.is_empty() || echo.forward.is_none());
                if let Some(forward) = echo.forward {
                    prop_assert!(fate.contains(&(forward.as_nanos() / 1_000_000)));
                }
                prop_assert!(echo.back.is_none() || echo.forward.is_some());
            }
        }
    }
}
