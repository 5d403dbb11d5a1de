//! Our iperf3 client against our server, on two hosts joined by a perfect link in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gargalo_cc::{Params, Registered};
use gargalo_host::{Host, HostConfig};
use gargalo_programs::application::{Application, Outcome, Output};
use gargalo_programs::iperf3::{
    Client, Cpu, Direction, End, Environment, Format, ReportOptions, Server, Settings, Transport,
};
use gargalo_tcp::Config;
use gargalo_units::{Bytes, Duration, Instant};
use serde_json::Value;

/// Propagation delay in one direction.
const DELAY: Duration = Duration::from_millis(5);
/// Bit/s: packets leave one after the other.
const RATE: u64 = 50_000_000;

struct Node {
    host: Host,
    app: Box<dyn Application>,
    /// What arrives, and when.
    inbox: VecDeque<(Instant, Vec<u8>)>,
    /// When our line is free.
    free: Instant,
    /// It acts at multiples of this time, on all that has come since.
    wakes: Duration,
    out: String,
    err: String,
}

impl Node {
    fn new(address: &str, app: Box<dyn Application>) -> Self {
        let config = HostConfig {
            seed: 7,
            ..HostConfig::new([address.parse().unwrap()])
        };
        Self {
            host: Host::new(config, Instant::ZERO).unwrap(),
            app,
            inbox: VecDeque::new(),
            free: Instant::ZERO,
            wakes: Duration::from_nanos(1),
            out: String::new(),
            err: String::new(),
        }
    }

    #[track_caller]
    fn is_done(&self) {
        assert_eq!(self.app.outcome(), Some(&Outcome::Done), "{}", self.err);
    }

    fn next(&self) -> Option<Instant> {
        let due = [
            self.inbox.front().map(|p| p.0),
            self.host.poll_timeout(),
            self.app.poll_timeout(),
        ];
        let due = due.into_iter().flatten().min()?.as_nanos();
        Some(Instant::from_nanos(
            due.next_multiple_of(self.wakes.as_nanos()),
        ))
    }

    fn step(&mut self, now: Instant, peer: &mut VecDeque<(Instant, Vec<u8>)>) {
        if !now.as_nanos().is_multiple_of(self.wakes.as_nanos()) {
            return;
        }
        while self.inbox.front().is_some_and(|p| p.0 <= now) {
            let (_, datagram) = self.inbox.pop_front().unwrap();
            self.host.handle(now, &datagram);
        }
        self.host.handle_timeout(now);
        if self.app.poll_timeout().is_some_and(|at| at <= now) {
            self.app.handle_timeout(&mut self.host, now);
        }
        while let Some(event) = self.host.poll_event() {
            self.app.on_event(&mut self.host, now, event);
        }
        self.app.turn(&mut self.host, now);
        loop {
            let mut datagram = Vec::new();
            if !self.host.poll_transmit(now, &mut datagram) {
                break;
            }
            let bits = datagram.len() as u64 * 8;
            self.free = self.free.max(now) + Duration::from_nanos(bits * 1_000_000_000 / RATE);
            peer.push_back((self.free + DELAY, datagram));
        }
        while let Some(text) = self.app.poll_output() {
            match text {
                Output::Out(t) => self.out += &t,
                Output::Err(t) => self.err += &t,
            }
        }
    }
}

struct Pair {
    client: Node,
    server: Node,
    now: Instant,
}

impl Pair {
    /// Lets both act now.
    fn step(&mut self) {
        let mut sent = VecDeque::new();
        self.client.step(self.now, &mut self.server.inbox);
        self.server.step(self.now, &mut sent);
        self.client.inbox.append(&mut sent);
    }

    /// Until a condition holds, at most so long.
    fn run(&mut self, most: Duration, until: impl Fn(&Self) -> bool) {
        let end = self.now + most;
        self.client.app.start(&mut self.client.host, self.now);
        self.server.app.start(&mut self.server.host, self.now);
        let mut same = 0;
        loop {
            self.step();
            if until(self) {
                return;
            }
            let next = [self.client.next(), self.server.next()];
            let Some(next) = next.into_iter().flatten().min() else {
                panic!("nothing will ever happen again");
            };
            assert!(next <= end, "not over after {most}");
            same = if next > self.now { 0 } else { same + 1 };
            assert!(
                same < 10_000,
                "time stands still at {}: {}{}",
                self.now,
                self.client.err,
                self.server.err
            );
            self.now = self.now.max(next);
        }
    }
}

fn transport(congestion: &str) -> Transport {
    let mut tcp = Config::modern();
    tcp.send_buffer = Bytes::new(1 << 20);
    Transport {
        tcp: Arc::new(tcp),
        congestion: Arc::new(Registered::new(congestion, Params::new()).unwrap()),
    }
}

fn environment() -> Environment {
    Environment {
        epoch: 1_795_274_380.0,
        system: "a test".to_owned(),
        cpu: Box::new(Cpu::default),
    }
}

/// The usual test, reported as JSON.
fn json() -> Settings {
    Settings {
        report: ReportOptions {
            format: Format::Json,
            interval: Duration::from_secs(1),
        },
        ..Settings::default()
    }
}

fn client(server: SocketAddr, name: &str, settings: Settings) -> Client {
    Client::new(
        server,
        name,
        settings,
        &transport("cubic"),
        environment(),
        1,
    )
}

fn pair(settings: Settings, one_off: bool) -> Pair {
    let v6 = settings.parallel == 3;
    let (ours, theirs) = if v6 {
        ("fd00::1", "fd00::2")
    } else {
        ("10.0.0.1", "10.0.0.2")
    };
    let listen = vec![SocketAddr::new(theirs.parse().unwrap(), 5201)];
    let report = settings.report;
    let client = client(listen[0], theirs, settings);
    let server = Server::new(listen, transport("reno"), report, one_off, environment(), 2);
    Pair {
        client: Node::new(ours, Box::new(client)),
        server: Node::new(theirs, Box::new(server)),
        now: Instant::ZERO,
    }
}

fn both_done(p: &Pair) -> bool {
    p.client.app.outcome().is_some() && p.server.app.outcome().is_some()
}

fn test(settings: Settings) -> (Value, Value) {
    let mut p = pair(settings, true);
    p.run(Duration::from_secs(60), both_done);
    p.client.is_done();
    p.server.is_done();
    assert!(p.client.err.is_empty() && p.server.err.is_empty());
    let read = |text: &str| serde_json::from_str(text).unwrap();
    (read(&p.client.out), read(&p.server.out))
}

fn bytes(report: &Value, which: &str) -> u64 {
    report["end"][which]["bytes"].as_u64().unwrap()
}

/// Sums agree: intervals, streams, both sides.
fn is_consistent(report: &Value, sum: &str, sent: &str, sender: bool) {
    let intervals = report["intervals"].as_array().unwrap();
    let of_sums: u64 = intervals
        .iter()
        .filter(|i| i[sum]["omitted"] == false)
        .map(|i| i[sum]["bytes"].as_u64().unwrap())
        .sum();
    let of_streams: u64 = intervals
        .iter()
        .flat_map(|i| i["streams"].as_array().unwrap())
        .filter(|s| s["omitted"] == false && s["sender"] == sender)
        .map(|s| s["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(of_sums, of_streams);
    assert_eq!(of_sums, bytes(report, sent));
}

#[test]
fn upload_for_a_time() {
    let (client, server) = test(Settings {
        end: End::Time(3),
        ..json()
    });
    is_consistent(&client, "sum", "sum_sent", true);
    is_consistent(&server, "sum", "sum_received", false);
    let (sent, received) = (bytes(&client, "sum_sent"), bytes(&client, "sum_received"));
    assert_eq!(received, bytes(&server, "sum_received"));
    // 50 Mbit/s less headers for three seconds, the start apart.
    assert!((16_000_000..18_750_000).contains(&received), "{received}");
    assert!(
        sent >= received && sent - received < 2 << 20,
        "{sent} {received}"
    );
    assert_eq!(client["intervals"].as_array().unwrap().len(), 3);
    let stream = &client["intervals"][1]["streams"][0];
    assert!(
        stream["rtt"].as_u64().unwrap() >= 10_000,
        "microseconds: {stream}"
    );
    assert!(stream["snd_cwnd"].as_u64().unwrap() > 14_480);
    assert_eq!(stream["pmtu"], 1500);
    assert_eq!(client["end"]["sender_tcp_congestion"], "cubic");
    assert_eq!(client["end"]["receiver_tcp_congestion"], "reno");
    assert_eq!(
        client["start"]["timestamp"]["timesecs"],
        1_795_274_383_u64 - 3
    );
    assert_eq!(client["start"]["cookie"], server["start"]["cookie"]);
}

#[test]
fn reverse_with_streams_over_ipv6() {
    let (client, server) = test(Settings {
        end: End::Time(2),
        parallel: 3,
        direction: Direction::Reverse,
        ..json()
    });
    is_consistent(&client, "sum", "sum_received", false);
    is_consistent(&server, "sum", "sum_sent", true);
    assert!(bytes(&client, "sum_received") > 8_000_000);
    assert_eq!(bytes(&client, "sum_sent"), bytes(&server, "sum_sent"));
    assert_eq!(client["end"]["streams"].as_array().unwrap().len(), 3);
    assert_eq!(client["start"]["test_start"]["reverse"], 1);
    assert_eq!(client["end"]["sender_tcp_congestion"], "reno");
    let retransmits = &client["end"]["sum_sent"]["retransmits"];
    assert_eq!(retransmits, &server["end"]["sum_sent"]["retransmits"]);
}

#[test]
fn both_directions() {
    let (client, server) = test(Settings {
        end: End::Time(2),
        parallel: 2,
        direction: Direction::Both,
        ..json()
    });
    is_consistent(&client, "sum", "sum_sent", true);
    is_consistent(
        &client,
        "sum_bidir_reverse",
        "sum_received_bidir_reverse",
        false,
    );
    is_consistent(&server, "sum", "sum_received", false);
    is_consistent(&server, "sum_bidir_reverse", "sum_sent_bidir_reverse", true);
    assert_eq!(client["end"]["streams"].as_array().unwrap().len(), 4);
    for (side, other) in [(&client, &server), (&server, &client)] {
        for sum in ["sum_received", "sum_received_bidir_reverse"] {
            assert_eq!(bytes(side, sum), bytes(other, sum));
            assert!(bytes(side, sum) > 2_000_000, "{sum} {}", bytes(side, sum));
        }
    }
}

#[test]
fn bytes_and_blocks_arrive_whole() {
    for (end, expected) in [
        (End::Bytes(5_000_001), 5_000_001),
        (End::Blocks(70), 70 * 10_000),
    ] {
        let (client, server) = test(Settings {
            end,
            parallel: 2,
            block: 10_000,
            ..json()
        });
        assert_eq!(bytes(&client, "sum_sent"), expected);
        assert_eq!(bytes(&server, "sum_received"), expected);
    }
    let (client, _) = test(Settings {
        end: End::Bytes(5_000_001),
        direction: Direction::Reverse,
        ..json()
    });
    assert!(bytes(&client, "sum_received") >= 5_000_001);
}

#[test]
fn a_rate_is_kept_and_a_beginning_left_out() {
    for direction in [Direction::Upload, Direction::Reverse] {
        let (client, _) = test(Settings {
            end: End::Time(4),
            omit: Duration::from_secs(2),
            rate: 8_000_000,
            block: 10_000,
            direction,
            ..json()
        });
        let received = bytes(&client, "sum_received");
        assert!((3_950_000..=4_050_000).contains(&received), "{received}");
        let omitted: Vec<_> = client["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["sum"]["omitted"].as_bool().unwrap())
            .collect();
        assert_eq!(omitted, [true, true, false, false, false, false]);
        let sum = if direction == Direction::Upload {
            "sum_sent"
        } else {
            "sum_received"
        };
        is_consistent(&client, "sum", sum, direction == Direction::Upload);
    }
}

#[test]
fn the_server_follows_segment_size_window_and_congestion_control() {
    let (client, server) = test(Settings {
        end: End::Time(2),
        direction: Direction::Reverse,
        mss: 536,
        window: 20_000,
        congestion: Some("vegas".to_owned()),
        ..json()
    });
    // The MSS option says 536; timestamps take 12 bytes of each segment.
    assert_eq!(server["start"]["tcp_mss_default"], 524);
    assert_eq!(server["start"]["sndbuf_actual"], 20_000);
    assert_eq!(client["end"]["sender_tcp_congestion"], "vegas");
    // 20,000 bytes a round trip of 10 ms and what the line takes.
    let received = bytes(&client, "sum_received");
    assert!((2_000_000..4_000_000).contains(&received), "{received}");
}

#[test]
fn tables_and_a_second_test() {
    let mut p = pair(
        Settings {
            end: End::Time(2),
            parallel: 2,
            ..Settings::default()
        },
        false,
    );
    let done = |p: &Pair| p.client.app.outcome().is_some() && p.server.out.contains("test #2");
    p.run(Duration::from_secs(20), done);
    let lines: Vec<_> = p.client.out.lines().collect();
    assert_eq!(lines[0], "Connecting to host 10.0.0.2, port 5201");
    assert!(lines[1].starts_with("[  5] local 10.0.0.1 port "));
    assert_eq!(
        lines[3],
        "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd"
    );
    assert!(lines[4].starts_with("[  5]   0.00-1.00   sec  "));
    assert!(lines[6].starts_with("[SUM]   0.00-1.00   sec  "));
    assert_eq!(lines.iter().filter(|l| l.ends_with("receiver")).count(), 3);
    assert_eq!(lines.last(), Some(&"iperf Done."));
    let again = pair(Settings::default(), false).client;
    p.client = again;
    p.run(Duration::from_secs(30), |p| {
        p.client.app.outcome().is_some()
    });
    p.client.is_done();
}

#[test]
fn lines_of_json() {
    let mut p = pair(
        Settings {
            end: End::Time(2),
            report: ReportOptions {
                format: Format::JsonStream,
                ..json().report
            },
            ..Settings::default()
        },
        true,
    );
    p.run(Duration::from_secs(20), both_done);
    let events: Vec<String> = p
        .client
        .out
        .lines()
        .map(|l| {
            serde_json::from_str::<Value>(l).unwrap()["event"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(events, ["start", "interval", "interval", "end"]);
}

#[test]
fn an_interrupted_client_tells_what_there_is_and_the_server_goes_on() {
    let mut p = pair(json(), false);
    p.run(Duration::from_secs(20), |p| {
        p.now > Instant::from_nanos(2_500_000_000)
    });
    p.client.app.interrupt(&mut p.client.host, p.now);
    for _ in 0..100 {
        p.step();
        p.now += Duration::from_millis(10);
    }
    let report: Value = serde_json::from_str(&p.client.out).unwrap();
    assert_eq!(report["error"], "interrupt - the client has terminated");
    assert!(bytes(&report, "sum_sent") > 1_000_000);
    assert!(matches!(p.client.app.outcome(), Some(Outcome::Failed(_))));
    assert!(
        p.server.err.contains("the client has terminated"),
        "{}",
        p.server.err
    );
    assert_eq!(p.server.app.outcome(), None);
}

/// A client beside one that connects first and then says no more than `says`, and before so many others that
/// say nothing.
struct BesideSilent {
    says: Vec<u8>,
    others: usize,
    silent: Option<gargalo_host::ConnectionId>,
    client: Client,
    waited: bool,
}

/// When others come: the client has said what it wants long ago.
const CROWD: Instant = Instant::from_nanos(1_000_000_000);

const COOKIE: &[u8] = b"abcdefghijklmnopqrstuvwxyz2345674567\0";

/// A cookie, and the parameters of a test with their length.
fn request(parameters: &str) -> Vec<u8> {
    let length = (parameters.len() as u32).to_be_bytes();
    [COOKIE, &length, parameters.as_bytes()].concat()
}

/// One more connection to the server.
fn silent(host: &mut Host, now: Instant) -> gargalo_host::ConnectionId {
    let options = gargalo_host::SocketOptions {
        tcp: Config::modern().into(),
        congestion: transport("cubic").congestion,
        mptcp: None,
        fast_open: false,
        dscp: 0,
    };
    let server = "10.0.0.2:5201".parse().unwrap();
    host.connect(now, None, server, &options).unwrap()
}

impl Application for BesideSilent {
    fn start(&mut self, host: &mut Host, now: Instant) {
        self.silent = Some(silent(host, now));
    }
    fn on_event(&mut self, host: &mut Host, now: Instant, event: gargalo_host::HostEvent) {
        match event {
            gargalo_host::HostEvent::Connected(id) if Some(id) == self.silent => {
                host.write(id, self.says.clone().into());
                self.client.start(host, now);
                self.waited = true;
            }
            event => self.client.on_event(host, now, event),
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let crowd = (self.others > 0).then_some(CROWD);
        let own = self.client.poll_timeout().filter(|_| self.waited);
        crowd.into_iter().chain(own).min()
    }
    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        if now >= CROWD {
            for _ in 0..std::mem::take(&mut self.others) {
                silent(host, now);
            }
        }
        self.client.handle_timeout(host, now);
    }
    fn turn(&mut self, host: &mut Host, now: Instant) {
        self.client.turn(host, now);
    }
    fn interrupt(&mut self, host: &mut Host, now: Instant) {
        self.client.interrupt(host, now);
    }
    fn outcome(&self) -> Option<&Outcome> {
        self.client.outcome()
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.client.poll_output()
    }
}

#[test]
fn a_silent_client_does_not_block_others() {
    // What iperf3 sends, and a request for segments of another size, for which the server listens with other options.
    let usual = request(
        r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072}"#,
    );
    let special = request(r#"{"tcp":true,"omit":0,"time":10,"parallel":1,"len":131072,"MSS":500}"#);
    // Nothing at all, half a cookie, a cookie after which no parameters follow, parameters after which no
    // streams follow; and more connections than the server accepts while the client waits for its turn.
    for (says, others) in [
        (Vec::new(), 0),
        (b"abcdefgh".to_vec(), 0),
        (COOKIE.to_vec(), 0),
        (usual.clone(), 0),
        (special, 0),
        (usual, 100),
    ] {
        let settings = Settings {
            end: End::Bytes(100_000),
            ..json()
        };
        let mut p = pair(settings.clone(), true);
        let client = client("10.0.0.2:5201".parse().unwrap(), "10.0.0.2", settings);
        p.client.app = Box::new(BesideSilent {
            says,
            others,
            silent: None,
            client,
            waited: false,
        });
        p.run(Duration::from_secs(10), both_done);
        p.client.is_done();
        p.server.is_done();
    }
}

/// A client, and another that connects at an instant and says what it wants.
struct InTurn {
    client: Client,
    at: Instant,
    second: Option<gargalo_host::ConnectionId>,
    /// What the server told the second, as bytes; 0 for the end of its connection.
    told: Arc<Mutex<Vec<u8>>>,
    done: Arc<Mutex<Option<Instant>>>,
}

impl Application for InTurn {
    fn start(&mut self, host: &mut Host, now: Instant) {
        self.client.start(host, now);
    }
    fn on_event(&mut self, host: &mut Host, now: Instant, event: gargalo_host::HostEvent) {
        use gargalo_host::HostEvent::{Closed, Connected, PeerClosed, Readable};
        match event {
            Connected(id) if Some(id) == self.second => {
                let parameters = r#"{"tcp":true,"time":10,"parallel":1,"len":9}"#;
                host.write(id, request(parameters).into());
            }
            Readable(id) if Some(id) == self.second => {
                while let Some(bytes) = host.read(id, 100) {
                    self.told.lock().unwrap().extend_from_slice(&bytes);
                }
            }
            PeerClosed(id) | Closed { id, .. } if Some(id) == self.second => {
                self.told.lock().unwrap().push(0);
            }
            event => self.client.on_event(host, now, event),
        }
        if self.client.outcome().is_some() {
            self.done.lock().unwrap().get_or_insert(now);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let second = self.second.is_none().then_some(self.at);
        let own = self.client.poll_timeout();
        let own = own.filter(|_| self.client.outcome().is_none());
        second.into_iter().chain(own).min()
    }
    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        if now >= self.at && self.second.is_none() {
            self.second = Some(silent(host, now));
        }
        self.client.handle_timeout(host, now);
    }
    fn turn(&mut self, host: &mut Host, now: Instant) {
        self.client.turn(host, now);
    }
    fn interrupt(&mut self, host: &mut Host, now: Instant) {
        self.client.interrupt(host, now);
    }
    fn outcome(&self) -> Option<&Outcome> {
        self.client.outcome()
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.client.poll_output()
    }
}

/// Runs a client to its end, and the second until it was told something; returns when the first was done, and that.
fn in_turn(settings: Settings, at: Instant) -> (Instant, Vec<u8>) {
    let mut p = pair(settings.clone(), false);
    let (told, done) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::default());
    p.client.app = Box::new(InTurn {
        client: client("10.0.0.2:5201".parse().unwrap(), "10.0.0.2", settings),
        at,
        second: None,
        told: Arc::clone(&told),
        done: Arc::clone(&done),
    });
    p.run(Duration::from_secs(20), |p| {
        let told = told.lock().unwrap();
        p.client.app.outcome().is_some() && told.len() > 1
    });
    p.client.is_done();
    let (done, told) = (done.lock().unwrap().unwrap(), told.lock().unwrap().clone());
    (done, told)
}

#[test]
fn a_client_that_comes_while_another_ends_is_served_next() {
    let settings = Settings {
        end: End::Bytes(100_000),
        mss: 600,
        ..json()
    };
    let late = Instant::ZERO + Duration::from_secs(19);
    let (done, _) = in_turn(settings.clone(), late);
    // The client's test ends two round trips before it is done, and its last word arrives a way after that.
    for before in 0..20 {
        let at = done - Duration::from_millis(before);
        let (_, told) = in_turn(settings.clone(), at);
        // That the server has taken it, and then that it opens its streams: its turn has come.
        assert_eq!(told, [9, 10], "{before} ms before the other was done");
    }
}

#[test]
fn a_client_beside_a_running_test_is_told_that_the_server_is_busy() {
    let at = Instant::ZERO + Duration::from_millis(500);
    let settings = Settings {
        end: End::Time(1),
        ..json()
    };
    // ACCESS_DENIED, -1, and the end of the connection; the test goes on undisturbed.
    assert_eq!(in_turn(settings, at).1[..2], [255, 0]);
}

/// A client that takes what the server sends and never ends its test of one second.
struct Endless {
    control: Option<gargalo_host::ConnectionId>,
    stream: Option<gargalo_host::ConnectionId>,
    /// When the server has closed the control connection.
    closed: Arc<Mutex<Option<Instant>>>,
}

impl Application for Endless {
    fn start(&mut self, host: &mut Host, now: Instant) {
        self.control = Some(silent(host, now));
    }
    fn on_event(&mut self, host: &mut Host, now: Instant, event: gargalo_host::HostEvent) {
        use gargalo_host::HostEvent::{Closed, Connected, PeerClosed, Readable};
        match event {
            Connected(id) if Some(id) == self.control => {
                let parameters =
                    r#"{"tcp":true,"time":1,"parallel":1,"len":9,"reverse":true,"bandwidth":9000}"#;
                host.write(id, request(parameters).into());
            }
            Connected(id) => {
                host.write(id, COOKIE.to_vec().into());
            }
            Readable(id) => {
                while let Some(bytes) = host.read(id, 100_000) {
                    let create_streams = Some(id) == self.control && bytes.contains(&10);
                    if create_streams && self.stream.is_none() {
                        self.stream = Some(silent(host, now));
                    }
                }
            }
            PeerClosed(id) | Closed { id, .. } if Some(id) == self.control => {
                self.closed.lock().unwrap().get_or_insert(now);
            }
            _ => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _host: &mut Host, _now: Instant) {}
    fn interrupt(&mut self, _host: &mut Host, _now: Instant) {}
    fn outcome(&self) -> Option<&Outcome> {
        None
    }
}

#[test]
fn a_test_that_its_client_does_not_end_is_ended() {
    let mut p = pair(json(), false);
    let closed = Arc::<Mutex<Option<Instant>>>::default();
    p.client.app = Box::new(Endless {
        control: None,
        stream: None,
        closed: Arc::clone(&closed),
    });
    p.run(Duration::from_secs(60), |_| {
        closed.lock().unwrap().is_some()
    });
    let at = closed.lock().unwrap().unwrap().as_secs_f64();
    assert!((31.0..32.0).contains(&at), "{at}");
}

/// Clients on one host, each of which connects as soon as the one before has said its last word.
#[derive(Default)]
struct Series {
    /// Those that have not gone.
    clients: Vec<Client>,
    begun: u64,
    outcome: Option<Outcome>,
}

impl Series {
    const CLIENTS: u64 = 100;

    fn begin(&mut self, host: &mut Host, now: Instant) {
        let settings = Settings {
            end: End::Bytes(20_000),
            // Every other one asks for options of its own.
            mss: if self.begun.is_multiple_of(2) { 0 } else { 600 },
            ..json()
        };
        let (server, transport) = ("10.0.0.2:5201".parse().unwrap(), transport("cubic"));
        let (env, seed) = (environment(), self.begun);
        let mut client = Client::new(server, "10.0.0.2", settings, &transport, env, seed);
        client.start(host, now);
        self.clients.push(client);
        self.begun += 1;
    }
}

impl Application for Series {
    fn start(&mut self, host: &mut Host, now: Instant) {
        self.begin(host, now);
    }
    fn on_event(&mut self, host: &mut Host, now: Instant, event: gargalo_host::HostEvent) {
        for client in &mut self.clients {
            client.on_event(host, now, event);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.clients.iter().filter_map(|c| c.poll_timeout()).min()
    }
    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        for client in &mut self.clients {
            client.handle_timeout(host, now);
        }
    }
    fn turn(&mut self, host: &mut Host, now: Instant) {
        for client in &mut self.clients {
            client.turn(host, now);
        }
        // Its report.
        let is_done = self
            .clients
            .last_mut()
            .is_some_and(|c| c.poll_output().is_some());
        if is_done && self.begun < Self::CLIENTS {
            self.begin(host, now);
        }
        let outcome = &mut self.outcome;
        self.clients.retain(|c| match c.outcome() {
            Some(failed @ Outcome::Failed(_)) => {
                *outcome = Some(failed.clone());
                false
            }
            ended => ended.is_none(),
        });
        if self.clients.is_empty() {
            self.outcome.get_or_insert(Outcome::Done);
        }
    }
    fn interrupt(&mut self, host: &mut Host, now: Instant) {
        for client in &mut self.clients {
            client.interrupt(host, now);
        }
    }
    fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }
}

/// A server that wakes now and then takes the last word of one client and the SYN of the next in one batch.
#[test]
fn clients_one_after_the_other_are_all_served() {
    for wakes in [1, 1_000_000, 7_000_000] {
        let mut p = pair(json(), false);
        p.server.wakes = Duration::from_nanos(wakes);
        p.client.app = Box::new(Series::default());
        p.run(Duration::from_secs(60), |p| {
            p.client.app.outcome().is_some()
        });
        p.client.is_done();
    }
}

#[test]
fn nobody_listens() {
    let mut p = pair(json(), true);
    let report = json().report;
    let nobody = Server::new(
        Vec::new(),
        transport("reno"),
        report,
        true,
        environment(),
        2,
    );
    p.server = Node::new("10.0.0.2", Box::new(nobody));
    p.run(Duration::from_secs(20), |p| {
        p.client.app.outcome().is_some()
    });
    let why = "unable to connect to server: connection refused";
    assert_eq!(
        p.client.app.outcome(),
        Some(&Outcome::Failed(why.to_owned()))
    );
    let report: Value = serde_json::from_str(&p.client.out).unwrap();
    assert_eq!(report["error"], why);
}
