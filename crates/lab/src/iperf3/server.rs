use std::net::SocketAddr;
use std::sync::Arc;

use gargalo_cc::{ControllerFactory, Params, Registered};
use gargalo_host::{ConnectionId, Host, HostEvent, ListenerId, SocketOptions};
use gargalo_units::{Bytes, Duration, Instant};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::protocol::{Cookie, LONGEST_JSON, Parameters, Reader, Results, State, json_message};
use super::report::{Peer, Role, Start};
use super::reporter::Reporter;
use super::settings::{Environment, ReportOptions, Settings, Transport};
use super::table::RULE;
use super::test::{Progress, Test};
use crate::application::{Application, Outcome, Output};

/// So long a client may take for any step but the test itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// Clients that may think at once about what they want; of more, the one that thinks longest goes.
const MOST_NEWCOMERS: usize = 64;
/// Longest parameters that we accept, in bytes.
const LONGEST_PARAMETERS: usize = 64 << 10;

/// iperf3's server on a user-space host: one test at a time. It belongs to the first client that has said
/// what it wants; one that says nothing keeps nobody out.
#[derive(Debug)]
pub struct Server {
    listen: Vec<SocketAddr>,
    transport: Transport,
    report: ReportOptions,
    is_one_off: bool,
    env: Environment,
    rng: Pcg64,
    reporter: Reporter,
    listeners: Vec<ListenerId>,
    /// In the order of coming; none during a session.
    newcomers: Vec<Newcomer>,
    session: Option<Session>,
    /// Tests begun.
    number: u32,
    outcome: Option<Outcome>,
}

/// A client that has not said what it wants.
#[derive(Debug)]
struct Newcomer {
    control: ConnectionId,
    remote: SocketAddr,
    reader: Reader,
    cookie: Option<Cookie>,
    /// When patience ends.
    deadline: Instant,
}

/// A client and its test.
#[derive(Debug)]
struct Session {
    control: ConnectionId,
    remote: SocketAddr,
    reader: Reader,
    cookie: Option<Cookie>,
    stage: Stage,
    test: Option<Test>,
    congestion: String,
    /// Connections that have not shown their cookie, in the order of opening.
    candidates: Vec<(ConnectionId, Reader)>,
    /// When patience ends.
    deadline: Instant,
}

/// What is awaited from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Streams,
    End,
    Results,
    Done,
}

impl Server {
    /// Serves on `listen`; ends after one test if `is_one_off`. `seed` draws the content.
    pub fn new(
        listen: Vec<SocketAddr>,
        transport: Transport,
        report: ReportOptions,
        is_one_off: bool,
        env: Environment,
        seed: u64,
    ) -> Self {
        Self {
            listen,
            transport,
            report,
            is_one_off,
            env,
            rng: Pcg64::seed_from_u64(seed),
            reporter: Reporter::new(Role::Server, report.format),
            listeners: Vec::new(),
            newcomers: Vec::new(),
            session: None,
            number: 0,
            outcome: None,
        }
    }

    fn listen(&mut self, host: &mut Host, options: &SocketOptions) {
        for id in self.listeners.drain(..) {
            host.close_listener(id);
        }
        for local in &self.listen {
            match host.listen(*local, options.clone()) {
                Ok(id) => self.listeners.push(id),
                Err(e) => {
                    let why = format!("unable to listen on {local}: {e}");
                    self.outcome = Some(Outcome::Failed(why));
                }
            }
        }
    }

    fn own_options(&self) -> SocketOptions {
        SocketOptions {
            tcp: self.transport.tcp.clone(),
            congestion: self.transport.congestion.clone(),
            mptcp: None,
        }
    }

    fn announce(&mut self) {
        let port = self.listen.first().map_or(0, SocketAddr::port);
        let n = self.number + 1;
        self.reporter.text(format!(
            "{RULE}Server listening on {port} (test #{n})\n{RULE}"
        ));
    }

    fn on_accepted(&mut self, host: &mut Host, now: Instant, id: ConnectionId, remote: SocketAddr) {
        match &mut self.session {
            None if self.outcome.is_none() => {
                if self.newcomers.len() == MOST_NEWCOMERS {
                    turn_away(host, now, self.newcomers.remove(0).control);
                }
                self.newcomers.push(Newcomer {
                    control: id,
                    remote,
                    reader: Reader::default(),
                    cookie: None,
                    deadline: now + PATIENCE,
                });
                self.on_newcomer(host, now, id);
            }
            Some(s) if s.stage == Stage::Streams => {
                s.candidates.push((id, Reader::default()));
                self.on_candidate(host, now, id);
            }
            _ => turn_away(host, now, id),
        }
    }

    /// The cookie and the parameters of a client.
    fn on_newcomer(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(at) = self.newcomers.iter().position(|n| n.control == id) else {
            return;
        };
        let n = &mut self.newcomers[at];
        while let Some(bytes) = host.read(id, LONGEST_PARAMETERS as u64) {
            n.reader.push(&bytes);
        }
        if n.cookie.is_none() {
            n.cookie = n.reader.cookie();
            if n.cookie.is_none() {
                return;
            }
            host.write(id, State::ParamExchange.message());
        }
        let parameters = match n.reader.json::<Parameters>(LONGEST_PARAMETERS) {
            Ok(None) => return,
            other => other,
        };
        let n = self.newcomers.remove(at);
        for other in self.newcomers.drain(..) {
            turn_away(host, now, other.control);
        }
        let (ip, port) = (n.remote.ip(), n.remote.port());
        self.reporter
            .text(format!("Accepted connection from {ip}, port {port}\n"));
        self.number += 1;
        self.session = Some(Session {
            control: id,
            remote: n.remote,
            reader: n.reader,
            cookie: n.cookie,
            stage: Stage::Streams,
            test: None,
            congestion: String::new(),
            candidates: Vec::new(),
            deadline: now + PATIENCE,
        });
        match parameters {
            Ok(Some(p)) => self.on_parameters(host, now, &p),
            Ok(None) => {}
            Err(e) => self.drop_client(host, now, &e.to_string()),
        }
        self.on_control(host, now);
    }

    /// A client left before it said what it wants, or patience ended; whether there was one.
    fn forget_newcomer(&mut self, host: &mut Host, now: Instant, id: ConnectionId) -> bool {
        let Some(at) = self.newcomers.iter().position(|n| n.control == id) else {
            return false;
        };
        turn_away(host, now, self.newcomers.remove(at).control);
        true
    }

    /// The cookie of a data connection.
    fn on_candidate(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(s) = &mut self.session else { return };
        let Some(at) = s.candidates.iter().position(|c| c.0 == id) else {
            return;
        };
        let reader = &mut s.candidates[at].1;
        let missing = super::protocol::COOKIE_LEN - reader.len();
        if let Some(bytes) = host.read(id, missing as u64) {
            reader.push(&bytes);
        }
        let Some(cookie) = reader.cookie() else {
            return;
        };
        s.candidates.remove(at);
        let Some(test) = &mut s.test else { return };
        if Some(cookie) != s.cookie || test.streams.len() >= test.expected() {
            turn_away(host, now, id);
            return;
        }
        test.add(host, id);
        if test.streams.len() < test.expected() {
            return;
        }
        let start = Start {
            accepted_connection: Some(Peer {
                host: s.remote.ip().to_string(),
                port: s.remote.port(),
            }),
            cookie: s.cookie.map(|c| c.text()),
            ..Start::default()
        };
        let start = test.describe(&self.env, host, now, start);
        host.write(s.control, State::TestStart.message());
        host.write(s.control, State::TestRunning.message());
        s.stage = Stage::End;
        self.reporter
            .start(start, test.settings.direction, test.settings.parallel);
        test.begin(&self.env, now);
    }

    fn on_control(&mut self, host: &mut Host, now: Instant) {
        while let Some(s) = &mut self.session {
            while let Some(bytes) = host.read(s.control, LONGEST_JSON as u64) {
                s.reader.push(&bytes);
            }
            let stage = s.stage;
            match stage {
                Stage::Results => match s.reader.json::<Results>(LONGEST_JSON) {
                    Ok(Some(results)) => self.on_results(host, now, &results),
                    Ok(None) => return,
                    Err(e) => self.drop_client(host, now, &e.to_string()),
                },
                Stage::Streams | Stage::End | Stage::Done => {
                    let Some(byte) = s.reader.byte() else { return };
                    self.on_state(host, now, byte);
                }
            }
        }
    }

    fn on_parameters(&mut self, host: &mut Host, now: Instant, p: &Parameters) {
        let settings = match Settings::of(p, self.report) {
            Ok(settings) => settings,
            Err(why) => return self.refuse(host, now, &why),
        };
        let options = self.options_for(&settings);
        let Some(s) = &mut self.session else { return };
        s.congestion = options.congestion.name().to_owned();
        let special = settings.mss > 0 || settings.window > 0 || settings.congestion.is_some();
        s.test = Some(Test::new(settings, Role::Server, &mut self.rng));
        host.write(s.control, State::CreateStreams.message());
        if special {
            self.listen(host, &options);
        }
    }

    /// What the client wants of our TCP.
    fn options_for(&mut self, settings: &Settings) -> SocketOptions {
        let mut options = self.own_options();
        let mut tcp = (*options.tcp).clone();
        if settings.mss > 0 {
            // The smallest that every host takes (RFC 9293 §3.7.1), less its options.
            tcp.mss = tcp.mss.min(settings.mss.max(256) as u16);
        }
        if settings.window > 0 {
            let bytes = Bytes::new(settings.window.max(4096));
            (tcp.send_buffer, tcp.receive_buffer) = (bytes, bytes);
        }
        options.tcp = Arc::new(tcp);
        if let Some(name) = &settings.congestion {
            match Registered::new(name, Params::new()) {
                Ok(factory) => options.congestion = Arc::new(factory) as Arc<dyn ControllerFactory>,
                Err(e) => self.reporter.remark(&format!("{e}; our own is used")),
            }
        }
        options
    }

    fn on_state(&mut self, host: &mut Host, now: Instant, byte: u8) {
        let Some(s) = &mut self.session else { return };
        match (State::from_byte(byte), s.stage) {
            (Some(State::TestEnd), Stage::End) => {
                s.stage = Stage::Results;
                s.deadline = now + PATIENCE;
                if let Some(test) = &mut s.test {
                    drain(test, host);
                    test.finish(&self.env, host, now, &mut self.reporter);
                    for stream in &test.streams {
                        host.close(now, stream.connection);
                        host.release(stream.connection);
                    }
                }
                host.write(s.control, State::ExchangeResults.message());
            }
            (Some(State::IperfDone), Stage::Done) => self.end_session(host, now),
            (Some(State::ClientTerminate), _) => {
                self.drop_client(host, now, "the client has terminated")
            }
            _ => {
                let why = format!(
                    "the client sent state {}, which has no place here",
                    byte.cast_signed()
                );
                self.drop_client(host, now, &why);
            }
        }
    }

    fn on_results(&mut self, host: &mut Host, now: Instant, results: &Results) {
        let Some(s) = &mut self.session else { return };
        let Some(test) = &s.test else { return };
        host.write(s.control, json_message(&test.results(&s.congestion)));
        host.write(s.control, State::DisplayResults.message());
        s.stage = Stage::Done;
        s.deadline = now + PATIENCE;
        test.conclude(Some(results), &s.congestion, &mut self.reporter);
        self.reporter.finish();
    }

    /// Tells the client that it asks for something impossible: iperf3's error for parameters.
    fn refuse(&mut self, host: &mut Host, now: Instant, why: &str) {
        if let Some(s) = &self.session {
            let mut message = vec![State::ServerError.to_byte()];
            message.extend_from_slice(&RECEIVING_PARAMETERS.to_be_bytes());
            message.extend_from_slice(&0_u32.to_be_bytes());
            host.write(s.control, message.into());
        }
        self.drop_client(host, now, why);
    }

    /// The client is gone or cannot be understood.
    fn drop_client(&mut self, host: &mut Host, now: Instant, why: &str) {
        let Some(s) = &mut self.session else { return };
        if s.stage != Stage::Done {
            if let Some(test) = &mut s.test
                && test.is_running()
            {
                test.finish(&self.env, host, now, &mut self.reporter);
                test.conclude(None, &s.congestion, &mut self.reporter);
            }
            self.reporter.fail(why);
            self.reporter.remark(why);
            if self.is_one_off {
                self.outcome = Some(Outcome::Failed(why.to_owned()));
            }
        }
        self.end_session(host, now);
    }

    fn end_session(&mut self, host: &mut Host, now: Instant) {
        let Some(s) = self.session.take() else { return };
        let streams = s.test.iter().flat_map(|t| &t.streams).map(|s| s.connection);
        for id in streams.chain(s.candidates.iter().map(|c| c.0)) {
            host.abort(now, id);
            host.release(id);
        }
        host.close(now, s.control);
        host.release(s.control);
        self.reporter.reset();
        if self.is_one_off {
            self.outcome.get_or_insert(Outcome::Done);
            return;
        }
        let options = self.own_options();
        self.listen(host, &options);
        self.announce();
    }
}

/// What iperf3 calls its error "unable to receive parameters from client".
const RECEIVING_PARAMETERS: u32 = 114;

/// Counts what arrived before the end did.
fn drain(test: &mut Test, host: &mut Host) {
    for s in test.streams.iter_mut().filter(|s| !s.is_sender) {
        let n = s.drain(host);
        s.on_received(n);
    }
}

/// Says that we are busy.
fn turn_away(host: &mut Host, now: Instant, id: ConnectionId) {
    host.write(id, State::AccessDenied.message());
    host.close(now, id);
    host.release(id);
}

impl Application for Server {
    fn start(&mut self, host: &mut Host, _now: Instant) {
        let options = self.own_options();
        self.listen(host, &options);
        if self.outcome.is_none() {
            self.announce();
        }
    }

    fn on_event(&mut self, host: &mut Host, now: Instant, event: HostEvent) {
        let control = self.session.as_ref().map(|s| s.control);
        match event {
            HostEvent::Accepted {
                connection, remote, ..
            } => {
                self.on_accepted(host, now, connection, remote);
            }
            HostEvent::Readable(id) if Some(id) == control => self.on_control(host, now),
            HostEvent::Readable(id) if self.session.is_none() => self.on_newcomer(host, now, id),
            HostEvent::Readable(id) => self.on_candidate(host, now, id),
            HostEvent::PeerClosed(id) if self.session.is_none() => {
                self.on_newcomer(host, now, id);
                self.forget_newcomer(host, now, id);
            }
            HostEvent::PeerClosed(id) if Some(id) == control => {
                self.on_control(host, now);
                self.drop_client(
                    host,
                    now,
                    "the client has unexpectedly closed the connection",
                );
            }
            HostEvent::Closed { id, .. } if Some(id) == control => {
                self.drop_client(
                    host,
                    now,
                    "the client has unexpectedly closed the connection",
                );
            }
            HostEvent::Closed { id, .. } if self.forget_newcomer(host, now, id) => {}
            HostEvent::Closed { id, .. } => self.on_stream_closed(host, now, id),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let Some(s) = &self.session else {
            return self.newcomers.iter().map(|n| n.deadline).min();
        };
        match (&s.test, s.stage) {
            (Some(test), Stage::End) => test.poll_timeout(),
            _ => Some(s.deadline),
        }
    }

    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        while let Some(n) = self.newcomers.iter().find(|n| n.deadline <= now) {
            self.forget_newcomer(host, now, n.control);
        }
        let Some(s) = &mut self.session else { return };
        let progress = match (&mut s.test, s.stage) {
            (Some(test), Stage::End) => test.handle_timeout(host, now, &mut self.reporter),
            _ if s.deadline <= now => Progress::Silent,
            _ => Progress::GoesOn,
        };
        if progress == Progress::Silent {
            self.drop_client(host, now, "the client is silent");
        }
    }

    fn turn(&mut self, host: &mut Host, now: Instant) {
        if let Some(s) = &mut self.session
            && s.stage == Stage::End
            && let Some(test) = &mut s.test
        {
            test.turn(host, now);
        }
    }

    fn interrupt(&mut self, host: &mut Host, now: Instant) {
        if let Some(s) = &self.session {
            host.write(s.control, State::ServerTerminate.message());
        }
        for n in self.newcomers.drain(..) {
            host.abort(now, n.control);
            host.release(n.control);
        }
        self.is_one_off = true;
        self.outcome = Some(Outcome::Failed(
            "interrupt - the server has terminated".to_owned(),
        ));
        self.drop_client(host, now, "interrupt - the server has terminated");
    }

    fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.reporter.poll()
    }
}

impl Server {
    fn on_stream_closed(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(s) = &mut self.session else { return };
        if let Some(at) = s.candidates.iter().position(|c| c.0 == id) {
            s.candidates.remove(at);
            host.release(id);
            return;
        }
        let Some(test) = &mut s.test else { return };
        let running = test.is_running();
        if let Some(stream) = test.stream(id) {
            stream.on_closed();
            // The client says how it went on the control connection; without it, patience ends it.
            if running && test.streams.iter().all(|s| !s.is_open()) {
                s.deadline = now + PATIENCE;
            }
        }
    }
}
