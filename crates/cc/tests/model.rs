//! Random sequences of events for every registered algorithm: whatever a transport reports, within
//! the contract or at its edge, a controller stays within its invariants.

use std::collections::{BTreeMap, BTreeSet};

use gargalo_cc::{
    ALGORITHMS, Acked, Cause, Congestion, Controller, Established, Idle, Init, Lost, Params, Path,
    RateSampler, SendState, Sent, Sibling, Spurious, build,
};
use gargalo_units::{Bytes, Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;
use rand_pcg::Pcg64;

/// What may happen next.
#[derive(Clone, Debug)]
enum Operation {
    /// So many nanoseconds pass.
    Wait(u64),
    /// Send as the window allows, at most this many segments.
    Send { segments: u64, app_limited: bool },
    /// Some segments are acknowledged, the oldest first.
    Ack {
        segments: usize,
        ce: bool,
        limited: bool,
        rtt_us: u64,
    },
    /// Some segments are lost, without an acknowledgement.
    Lose(usize),
    /// A recovery epoch begins.
    Congestion { ecn: bool },
    /// The retransmission timer expires: all is lost.
    Timeout(u32),
    /// The latest congestion event is withdrawn.
    Spurious,
    /// Fast recovery, or recovery after a timeout, ends.
    Recovered,
    /// The segment size changes.
    Mss(u64),
    /// The connection has other subflows than before.
    Siblings {
        siblings: Vec<Sibling>,
        index: usize,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop_oneof![
        4 => prop_oneof![0..1_000_000u64, 0..20_000_000_000u64].prop_map(Wait),
        6 => (1..200u64, any::<bool>())
            .prop_map(|(segments, app_limited)| Send { segments, app_limited }),
        8 => (1..50usize, any::<bool>(), any::<bool>(), prop_oneof![0..10u64, 1..1_000_000u64])
            .prop_map(|(segments, ce, limited, rtt_us)| Ack { segments, ce, limited, rtt_us }),
        2 => (1..20usize).prop_map(Lose),
        2 => any::<bool>().prop_map(|ecn| Congestion { ecn }),
        1 => (1..5u32).prop_map(Timeout),
        1 => Just(Spurious),
        2 => Just(Recovered),
        1 => prop_oneof![1..100u64, 500..9000u64, 1_000_000..2_000_000_000u64].prop_map(Mss),
        2 => (vec(sibling(), 0..6), 0..7usize)
            .prop_map(|(siblings, index)| Siblings { siblings, index }),
    ]
}

/// Whatever a transport may say of a subflow.
fn sibling() -> impl Strategy<Value = Sibling> {
    let bytes = || prop_oneof![1 => Just(0), 4 => 1..100_000_000u64, 1 => any::<u64>()];
    let bytes = move || bytes().prop_map(Bytes::new);
    let rtt = || prop_oneof![1 => Just(0), 4 => 1..2_000_000_000u64, 1 => any::<u64>()];
    let rtt = move || prop::option::weighted(0.9, rtt().prop_map(Duration::from_nanos));
    let sibling = (bytes(), rtt(), rtt(), bytes(), bytes(), any::<f64>());
    (sibling, prop::bool::weighted(0.9)).prop_map(
        |((cwnd, srtt, min_rtt, since_loss, between_losses, rate), can_send)| Sibling {
            cwnd,
            srtt,
            min_rtt,
            mss: Bytes::new(1448),
            since_loss,
            between_losses,
            rate,
            can_send,
        },
    )
}

/// A transport without a network around one controller.
struct Model {
    controller: Box<dyn Controller>,
    sampler: RateSampler,
    now: Instant,
    mss: Bytes,
    flight: Vec<(Bytes, SendState)>,
    last_sent: Instant,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
    in_recovery: bool,
    latest: Option<Cause>,
    round_end: Bytes,
    siblings: Vec<Sibling>,
    index: usize,
    trace: Vec<(Bytes, Option<Bytes>, &'static str)>,
}

/// What the controller sees, held while it is called.
struct View {
    mss: Bytes,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
    in_flight: Bytes,
    siblings: Vec<Sibling>,
    index: usize,
}

impl View {
    fn path(&self) -> Path<'_> {
        Path {
            mss: self.mss,
            srtt: self.srtt,
            latest_rtt: self.srtt,
            min_rtt: self.min_rtt,
            in_flight: self.in_flight,
            siblings: &self.siblings,
            index: self.index,
            sack: true,
        }
    }
}

impl Model {
    fn new(name: &str, params: &Params, window: u64) -> Self {
        let init = Init {
            now: Instant::ZERO,
            mss: Bytes::new(1448),
            initial_window: Bytes::new(1448) * window,
            rng: Pcg64::new(3, 5),
        };
        Self {
            controller: build(name, params, init).expect("registered"),
            sampler: RateSampler::new(),
            now: Instant::ZERO,
            mss: Bytes::new(1448),
            flight: Vec::new(),
            last_sent: Instant::ZERO,
            srtt: None,
            min_rtt: None,
            in_recovery: false,
            latest: None,
            round_end: Bytes::ZERO,
            siblings: Vec::new(),
            index: 0,
            trace: Vec::new(),
        }
    }

    fn in_flight(&self) -> Bytes {
        self.flight.iter().map(|f| f.0).sum()
    }

    fn view(&self) -> View {
        View {
            mss: self.mss,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            in_flight: self.in_flight(),
            siblings: self.siblings.clone(),
            index: self.index,
        }
    }

    fn apply(&mut self, operation: &Operation) {
        let before = self.controller.cwnd();
        match *operation {
            Operation::Wait(ns) => self.now += Duration::from_nanos(ns),
            Operation::Send {
                segments,
                app_limited,
            } => self.send(segments, app_limited),
            Operation::Ack {
                segments,
                ce,
                limited,
                rtt_us,
            } => self.acknowledge(segments, ce, limited, Duration::from_micros(rtt_us)),
            Operation::Lose(segments) => self.lose(segments),
            Operation::Congestion { ecn } => {
                if !self.in_recovery {
                    self.congestion(if ecn { Cause::Ecn } else { Cause::Loss });
                    assert!(self.controller.cwnd() <= before, "grew on congestion");
                    self.in_recovery = true;
                }
            }
            Operation::Timeout(consecutive) => {
                self.lose(usize::MAX);
                self.congestion(Cause::Timeout { consecutive });
                assert!(self.controller.cwnd() <= before, "grew on timeout");
                self.in_recovery = false;
            }
            Operation::Spurious => {
                if let Some(cause) = self.latest.take() {
                    let event = Spurious {
                        now: self.now,
                        cause,
                    };
                    self.controller.on_spurious(&event, &self.view().path());
                    self.in_recovery = false;
                }
            }
            Operation::Recovered => {
                self.in_recovery = false;
                self.controller.on_recovered(self.now, &self.view().path());
            }
            Operation::Mss(mss) => {
                self.mss = Bytes::new(mss);
                self.controller.on_mss(&self.view().path());
            }
            Operation::Siblings {
                ref siblings,
                index,
            } => {
                self.siblings.clone_from(siblings);
                self.index = index;
            }
        }
        self.invariants();
    }

    fn send(&mut self, segments: u64, app_limited: bool) {
        for _ in 0..segments {
            let in_flight = self.in_flight();
            if in_flight + self.mss > self.controller.cwnd() {
                break;
            }
            let idle = in_flight.is_zero().then(|| Idle {
                duration: self.now - self.last_sent,
                rto: Duration::from_millis(200),
                restart_window: Some(self.mss * 10),
                was_app_limited: false,
            });
            let sent = Sent {
                now: self.now,
                bytes: self.mss,
                in_flight,
                app_limited,
                retransmission: false,
                idle,
            };
            self.controller.on_send(&sent, &self.view().path());
            let state = self.sampler.on_send(self.now, self.mss, in_flight);
            self.flight.push((self.mss, state));
            self.last_sent = self.now;
        }
        if app_limited {
            self.sampler.set_app_limited(self.in_flight());
        }
    }

    fn acknowledge(&mut self, segments: usize, ce: bool, limited: bool, rtt: Duration) {
        let in_flight_before = self.in_flight();
        let n = segments.min(self.flight.len());
        let mut bytes = Bytes::ZERO;
        let mut sent_at = None;
        let mut prior = None;
        for (size, state) in self.flight.drain(..n) {
            self.sampler.on_delivered(self.now, &state, size, false);
            bytes += size;
            sent_at = Some(state.sent_at);
            prior = Some(state.delivered);
        }
        self.srtt = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        let round_start = prior.is_some_and(|p| p >= self.round_end);
        if round_start {
            self.round_end = self.sampler.delivered();
        }
        let ack = Acked {
            now: self.now,
            bytes,
            acknowledged: bytes,
            ce_bytes: if ce { bytes } else { Bytes::ZERO },
            rtt: Some(rtt),
            sent_at,
            in_flight_before,
            in_flight: self.in_flight(),
            cwnd_limited: limited,
            in_recovery: self.in_recovery,
            round_start,
            sample: self.sampler.finish(self.min_rtt),
        };
        let before = self.controller.cwnd();
        self.controller.on_ack(&ack, &self.view().path());
        if self.in_recovery && !self.controller.governs_recovery() {
            assert!(self.controller.cwnd() <= before, "grew in recovery");
        }
    }

    fn lose(&mut self, segments: usize) {
        let n = segments.min(self.flight.len());
        let lost: Vec<_> = self.flight.drain(..n).collect();
        for (i, (bytes, state)) in lost.into_iter().enumerate() {
            self.sampler.on_lost(bytes);
            let lost = Lost {
                now: self.now,
                bytes,
                state,
                new_burst: i == 0,
                in_flight: self.in_flight(),
            };
            self.controller.on_loss(&lost, &self.view().path());
        }
    }

    fn congestion(&mut self, cause: Cause) {
        let event = Congestion {
            now: self.now,
            cause,
            lost: self.mss,
            in_flight: self.in_flight(),
        };
        self.controller.on_congestion(&event, &self.view().path());
        self.latest = Some(cause);
    }

    fn invariants(&mut self) {
        let c = &self.controller;
        assert!(c.cwnd() >= self.mss, "cwnd {} below one segment", c.cwnd());
        assert!(
            c.cwnd() < Bytes::new(1 << 50),
            "cwnd {} runs away",
            c.cwnd()
        );
        if let Some(ssthresh) = c.ssthresh() {
            assert!(ssthresh > Bytes::ZERO);
        }
        if let Some(quantum) = c.send_quantum() {
            assert!(!quantum.is_zero());
        }
        if let Some(rate) = c.pacing_rate() {
            assert!(!rate.is_zero(), "pacing stops");
        }
        let mut gauges = Vec::new();
        c.gauges(&mut gauges);
        for (name, value) in gauges {
            // NaN says "not known yet"; infinity is an overflow.
            assert!(!value.is_infinite(), "{name} is {value}");
        }
        self.trace.push((c.cwnd(), c.ssthresh(), c.phase()));
    }
}

fn run(name: &str, window: u64, operations: &[Operation]) -> Model {
    run_with(name, &Params::new(), window, operations)
}

fn run_with(name: &str, params: &Params, window: u64, operations: &[Operation]) -> Model {
    let mut model = Model::new(name, params, window);
    for operation in operations {
        model.apply(operation);
    }
    model
}

/// What a coupled control is on a single path.
fn bases() -> [(&'static str, &'static str, Params); 4] {
    let vegas = Params::new()
        .with("alpha", 10.0)
        .with("beta", 11.0)
        .with("alternate", false);
    [
        ("lia", "reno", Params::new()),
        ("olia", "reno", Params::new()),
        ("balia", "reno", Params::new()),
        ("wvegas", "vegas", vegas),
    ]
}

/// A handshake that agrees on smaller segments leaves a controller as if it had been built for them.
#[test]
fn the_handshake_sets_the_initial_window() {
    for a in ALGORITHMS {
        let built = |mss, window| {
            let init = Init {
                now: Instant::ZERO,
                mss: Bytes::new(mss),
                initial_window: Bytes::new(window),
                rng: Pcg64::new(3, 5),
            };
            build(a.name, &Params::default(), init).expect("registered")
        };
        let mut late = built(1448, 14_480);
        let path = Path {
            mss: Bytes::new(100),
            srtt: None,
            latest_rtt: None,
            min_rtt: None,
            in_flight: Bytes::ZERO,
            siblings: &[],
            index: 0,
            sack: true,
        };
        let established = Established {
            now: Instant::ZERO,
            window: Bytes::new(1000),
        };
        late.on_established(&established, &path);
        let fresh = built(100, 1000);
        let state = |c: &dyn Controller| (c.cwnd(), c.pacing_rate(), c.send_quantum());
        assert_eq!(state(&*late), state(&*fresh), "{}", a.name);
    }
}

/// Every control with a gauge of its own for the least round trip begins it with that of the handshake, and paces its
/// first window over it: later samples may have a queue of competitors in them.
#[test]
fn the_handshake_is_the_first_round_trip() {
    let ms = Duration::from_millis;
    let at = |t: u64| Instant::ZERO + ms(t);
    let path = |rtt: u64| Path {
        mss: Bytes::new(1000),
        srtt: Some(ms(rtt)),
        latest_rtt: Some(ms(rtt)),
        min_rtt: Some(ms(44)),
        in_flight: Bytes::ZERO,
        siblings: &[],
        index: 0,
        sack: true,
    };
    let least = |c: &dyn Controller| {
        let mut all = Vec::new();
        c.gauges(&mut all);
        let found = all.iter().find(|g| g.0 == "min_rtt_s");
        found.map(|g| (g.1 * 1e6).round() as u64)
    };
    let mut found = Vec::new();
    for a in ALGORITHMS {
        let init = Init {
            now: Instant::ZERO,
            mss: Bytes::new(1000),
            initial_window: Bytes::new(10_000),
            rng: Pcg64::new(3, 5),
        };
        let mut controller = build(a.name, &Params::default(), init).expect("registered");
        let established = Established {
            now: at(44),
            window: Bytes::new(10_000),
        };
        controller.on_established(&established, &path(44));
        if least(&*controller).is_none() {
            continue;
        }
        found.push(a.name);
        assert_eq!(least(&*controller), Some(44_000), "{}", a.name);
        let rate = controller.pacing_rate().expect("it paces").as_bps();
        assert!(rate < 10 * 8 * 1000 * 1000 / 44 * 3, "{}: {rate}", a.name);
        for t in [136, 9_900] {
            controller.on_ack(&acked(at(t), ms(92)), &path(92));
            assert_eq!(least(&*controller), Some(44_000), "{} at {t} ms", a.name);
        }
    }
    assert_eq!(found, ["bbr", "bbr2", "bbr3", "copa"]);
}

/// The table of docs/tcp.md, "The first round trip": each control, and whether the round trip of the handshake counts.
fn documented() -> BTreeMap<String, bool> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tcp.md");
    let text = std::fs::read_to_string(file).unwrap();
    let section = text.split("## The first round trip").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut all = BTreeMap::new();
    for row in section.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let counts = match cells[3] {
            "yes" => true,
            "no" => false,
            other => panic!("{other} in {row}"),
        };
        for name in cells[1].split(", ") {
            all.insert(name.trim_matches('`').to_owned(), counts);
        }
    }
    all
}

/// The control of a row: searches of slow start are those of CUBIC.
fn row(name: &str) -> (&str, Params) {
    match name {
        "hystart" | "hystart++" => ("cubic", Params::new().with("slow_start", name)),
        _ => (name, Params::new()),
    }
}

/// What a control does with a path whose round trips are 92 ms and more, with losses, after a handshake whose round
/// trip was this; `None`: it had to be repeated, and gave no sample.
fn after_handshake(name: &str, handshake: Option<Duration>) -> Vec<String> {
    let (control, params) = row(name);
    let mut model = Model::new(control, &params, 10);
    (model.srtt, model.min_rtt) = (handshake, handshake);
    model.now += Duration::from_millis(44);
    let established = Established {
        now: model.now,
        window: Bytes::new(1448) * 10,
    };
    model
        .controller
        .on_established(&established, &model.view().path());
    let mut seen = Vec::new();
    for n in 0..1500_u64 {
        model.apply(&Operation::Send {
            segments: 1000,
            app_limited: false,
        });
        if n % 300 == 299 {
            model.apply(&Operation::Lose(1));
            model.apply(&Operation::Congestion { ecn: false });
        }
        if n % 300 == 120 && model.in_recovery {
            model.apply(&Operation::Recovered);
        }
        model.apply(&Operation::Wait(1_000_000));
        model.apply(&Operation::Ack {
            segments: 2,
            ce: false,
            limited: true,
            rtt_us: 92_000 + 10 * (n % 300),
        });
        let c = &model.controller;
        let (cwnd, ssthresh, rate) = (c.cwnd(), c.ssthresh(), c.pacing_rate());
        seen.push(format!("{cwnd} {ssthresh:?} {rate:?} {}", c.phase()));
    }
    seen
}

/// A round trip of the handshake that is shorter than all later ones changes what a control does exactly if docs/tcp.md
/// says so: every control of the table, and no other.
#[test]
fn the_round_trip_of_the_handshake_counts_where_the_table_says_so() {
    let documented = documented();
    let named = documented.keys().map(String::as_str);
    let all: BTreeSet<&str> = ALGORITHMS.iter().map(|a| a.name).chain(named).collect();
    let mut found = BTreeMap::new();
    for name in all {
        let with = after_handshake(name, Some(Duration::from_millis(44)));
        let counts = with != after_handshake(name, None);
        if counts || documented.contains_key(name) {
            found.insert(name.to_owned(), counts);
        }
    }
    assert_eq!(found, documented);
}

/// An acknowledgement of one segment, with this sample of the round trip.
fn acked(now: Instant, rtt: Duration) -> Acked {
    Acked {
        now,
        bytes: Bytes::new(1000),
        acknowledged: Bytes::new(1000),
        ce_bytes: Bytes::ZERO,
        rtt: Some(rtt),
        sent_at: Some(now - rtt),
        in_flight_before: Bytes::new(1000),
        in_flight: Bytes::ZERO,
        cwnd_limited: true,
        in_recovery: false,
        round_start: true,
        sample: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn invariants_hold(window in 1..100u64, operations in vec(operation(), 1..300)) {
        for a in ALGORITHMS {
            run(a.name, window, &operations);
        }
    }

    #[test]
    fn equal_inputs_give_equal_runs(operations in vec(operation(), 1..100)) {
        for a in ALGORITHMS {
            let (x, y) = (run(a.name, 10, &operations), run(a.name, 10, &operations));
            prop_assert_eq!(x.trace, y.trace, "{}", a.name);
            prop_assert_eq!(format!("{:?}", x.controller), format!("{:?}", y.controller));
        }
    }

    #[test]
    fn a_clone_behaves_the_same(
        first in vec(operation(), 1..100),
        second in vec(operation(), 1..100),
    ) {
        for a in ALGORITHMS {
            let mut original = run(a.name, 10, &first);
            let mut copy = run(a.name, 10, &first);
            copy.controller = original.controller.clone_box();
            for operation in &second {
                original.apply(operation);
                copy.apply(operation);
            }
            prop_assert_eq!(&original.trace, &copy.trace, "{}", a.name);
        }
    }

    #[test]
    fn alone_a_coupled_control_is_its_base(
        window in 1..100u64,
        mut operations in vec(operation(), 1..300),
    ) {
        for operation in &mut operations {
            // Siblings that cannot send or have never been measured are none.
            if let Operation::Siblings { siblings, .. } = operation {
                for (i, s) in siblings.iter_mut().enumerate() {
                    s.can_send &= i % 2 == 0;
                    s.srtt = s.srtt.filter(|_| i % 2 == 1);
                }
            }
        }
        for (name, base, params) in bases() {
            let coupled = run(name, window, &operations);
            let base = run_with(base, &params, window, &operations);
            prop_assert_eq!(&coupled.trace, &base.trace, "{}", name);
        }
    }
}
