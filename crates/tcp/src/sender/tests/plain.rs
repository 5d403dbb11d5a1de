//! The short path for an acknowledgement that only advances the left edge has the same result as the full one.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

/// A constant window that records all calls.
#[derive(Clone, Debug)]
struct Witness {
    cwnd: u64,
    log: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn tell(&self, what: &dyn std::fmt::Debug) {
        let mut log = self.log.lock().expect("one thread");
        log.push(format!("{what:?}"));
    }
}

impl Controller for Witness {
    fn on_send(&mut self, sent: &Sent, path: &Path<'_>) {
        self.tell(&(sent, path));
    }
    fn on_ack(&mut self, ack: &Acked, path: &Path<'_>) {
        self.tell(&(ack, path));
    }
    fn on_loss(&mut self, lost: &Lost, _path: &Path<'_>) {
        self.tell(lost);
    }
    fn on_congestion(&mut self, event: &Congestion, _path: &Path<'_>) {
        self.tell(event);
        self.cwnd = (self.cwnd / 2).max(2 * MSS);
    }
    fn on_spurious(&mut self, event: &Spurious, _path: &Path<'_>) {
        self.tell(event);
    }
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd)
    }
    fn in_slow_start(&self) -> bool {
        true
    }
    fn phase(&self) -> &'static str {
        "witness"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// Two senders on one path; the second one takes no short way. Segments are counted, not bytes.
struct Twins {
    rigs: [Rig; 2],
    now: Instant,
    /// On the way to the receiver.
    flight: VecDeque<u64>,
    arrived: BTreeSet<u64>,
    next: u64,
    plain: u32,
}

impl Twins {
    fn new(config: &Config) -> Self {
        let rig = || {
            let log = Arc::new(Mutex::new(Vec::new()));
            let witness = Witness {
                cwnd: 12 * MSS,
                log: Arc::clone(&log),
            };
            Rig::with(config, Box::new(witness), log)
        };
        Self {
            rigs: [rig(), rig()],
            now: at(0),
            flight: VecDeque::new(),
            arrived: BTreeSet::new(),
            next: 0,
            plain: 0,
        }
    }

    fn both(&mut self, f: impl Fn(&mut Sender)) {
        self.rigs.iter_mut().for_each(|r| f(&mut r.sender));
        self.send();
    }

    fn send(&mut self) {
        let now = self.now;
        loop {
            let [a, b] = self.rigs.each_mut().map(|r| r.sender.poll(now));
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
            let Some(order) = a else { break };
            if order.len > 0 {
                self.flight.push_back(order.offset / MSS);
            }
        }
        let [a, b] = self.rigs.each_ref().map(|r| (r.log(), state(&r.sender)));
        assert_eq!(a, b);
    }

    /// Segment `n` of those on the way arrives.
    fn arrive(&mut self, n: usize) {
        if let Some(segment) = self.flight.remove(n) {
            self.arrived.insert(segment);
            while self.arrived.remove(&self.next) {
                self.next += 1;
            }
        }
    }

    /// An acknowledgement of all that has arrived but for `less` bytes.
    fn acknowledge(&mut self, less: u64, ece: bool) {
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for s in self.arrived.iter().filter(|s| **s > self.next) {
            match blocks.last_mut() {
                Some(block) if block.1 == s * MSS => block.1 += MSS,
                _ => blocks.push((s * MSS, (s + 1) * MSS)),
            }
        }
        blocks.truncate(3);
        let facts = AckFacts {
            now: self.now,
            ack: (self.next * MSS).saturating_sub(less),
            sacks: &blocks,
            dsack: None,
            window: 1 << 30,
            echo_rtt: None,
            tsecr: None,
            ece,
            pure: true,
        };
        let [first, second] = &mut self.rigs;
        let plain = blocks.is_empty() && !ece && first.sender.takes_plain(facts.ack);
        self.plain += u32::from(plain);
        let outcomes = (
            match plain {
                true => first.sender.on_plain_ack(self.now, facts.ack, facts.window),
                false => first.sender.on_ack(&facts),
            },
            second.sender.on_ack(&facts),
        );
        assert_eq!(format!("{:?}", outcomes.0), format!("{:?}", outcomes.1));
        self.send();
    }

    fn step(&mut self, action: u8, amount: u64) {
        self.now += ms(amount % 4);
        match action {
            0..=9 => {
                self.arrive(0);
                self.acknowledge(0, false);
            }
            10..=13 => {
                self.arrive(0);
                self.arrive(0);
                self.acknowledge(0, false);
            }
            14 => self.arrive(0),
            15 => drop(self.flight.pop_front()),
            16 => {
                self.arrive(1);
                self.acknowledge(0, false);
            }
            17 => {
                self.arrive(0);
                self.acknowledge(300, false);
            }
            18 => self.acknowledge(0, amount == 0),
            19 => self.both(|s| s.append(MSS * amount % 7000, false)),
            _ => {
                let timer = self.rigs[0].sender.next_timeout();
                let due = timer.filter(|t| *t > self.now).unwrap_or(self.now);
                self.now = due;
                self.both(|s| s.on_timeout(due));
            }
        }
    }
}

/// All of a sender but what only a later look would tidy.
fn state(s: &Sender) -> String {
    let parts = (
        &s.sampler,
        &s.rtt,
        &s.rack,
        &s.undo,
        &s.episode.prr,
        &s.episode.phase,
        &s.peer,
    );
    let edges = (
        s.una,
        s.nxt,
        s.episode.point,
        s.round_end,
        s.hold.small_end,
        s.pipe(),
    );
    let timers = (
        &s.timers,
        &s.tlp,
        &s.limited,
        &s.duplicates,
        &s.cwr,
        &s.episode.frto,
    );
    let rest = (s.timeouts.in_a_row, &s.counts, &s.rate.sample);
    format!(
        "{parts:?} {edges:?} {timers:?} {rest:?} {}",
        s.board.sacked()
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn both_ways_come_to_the_same(
        recovery in 0usize..Recovery::ALL.len(),
        linux in proptest::bool::ANY,
        actions in proptest::collection::vec((0u8..21, 0u64..40), 1..250),
    ) {
        let profile = if linux { Config::linux_6() } else { Config::modern() };
        let config = Config { mss: MSS as u16, recovery: Recovery::ALL[recovery], ..profile };
        let mut twins = Twins::new(&config);
        twins.both(|s| s.append(60 * MSS, false));
        for (action, amount) in actions {
            twins.step(action, amount);
        }
    }
}

#[test]
fn the_short_way_is_the_usual_one() {
    let mut twins = Twins::new(&config(Recovery::RackTlp));
    twins.both(|s| s.append(1000 * MSS, false));
    for _ in 0..400 {
        twins.step(10, 1);
    }
    assert!(twins.plain > 390, "{}", twins.plain);
}
