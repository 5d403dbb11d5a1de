use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gargalo_cc::{ControllerFactory, Params, Registered};
use gargalo_host::{ConnectionId, Host, HostEvent, ListenerId, SocketOptions};
use gargalo_units::{Bytes, Duration, Instant};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::newcomers::{Newcomer, Newcomers};
use super::protocol::{
    COOKIE_LEN, Cookie, LONGEST_JSON, Parameters, Reader, Results, State, json_message,
};
use super::report::{Peer, Role, Start};
use super::reporter::Reporter;
use super::settings::{Environment, ReportOptions, Settings, Transport};
use super::table::RULE;
use super::test::{Progress, Test};
use crate::application::{Application, Outcome, Output};

/// So long a client that has the server may take for any step but the test itself.
const PATIENCE: Duration = Duration::from_secs(30);
/// So long it may take to open its streams, or the next of them, while others wait for their turn.
const HESITATION: Duration = Duration::from_secs(2);
/// Longest parameters that we accept, in bytes.
const LONGEST_PARAMETERS: usize = 64 << 10;

/// iperf3's server on a user-space host: one test at a time. It belongs to a client that has said what it wants
/// and opens its streams: one that is silent, at whatever step before the test, keeps nobody out.
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
    /// None during a test.
    newcomers: Newcomers,
    session: Option<Session>,
    /// Address of the last that was put off for another.
    put_off: Option<IpAddr>,
    /// Tests begun.
    number: u32,
    outcome: Option<Outcome>,
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
    /// It was taken, or opened a stream.
    moved: Instant,
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
            newcomers: Newcomers::default(),
            session: None,
            put_off: None,
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
        if self.outcome.is_some() || !self.is_preparing() {
            turn_away(host, now, id);
            return;
        }
        if let Some(gone) = self.newcomers.push(now, id, remote) {
            turn_away(host, now, gone);
        }
        self.on_newcomer(host, now, id);
    }

    /// There is no test yet.
    fn is_preparing(&self) -> bool {
        self.session
            .as_ref()
            .is_none_or(|s| s.stage == Stage::Streams)
    }

    /// The cookie of a client, by which its streams are known as well, and its parameters.
    fn on_newcomer(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(n) = self.newcomers.get(id) else {
            return;
        };
        if n.cookie.is_none() {
            // What follows the cookie of a stream is its content.
            let missing = COOKIE_LEN - n.reader.len();
            if let Some(bytes) = host.read(id, missing as u64) {
                n.reader.push(&bytes);
            }
            n.cookie = n.reader.cookie();
            let Some(cookie) = n.cookie else { return };
            if self.session.as_ref().and_then(|s| s.cookie) == Some(cookie) {
                self.newcomers.take(id);
                self.on_stream(host, now, id);
                return;
            }
            host.write(id, State::ParamExchange.message());
            self.newcomers.on_progress(now, id);
        }
        let Some(n) = self.newcomers.get(id) else {
            return;
        };
        if n.parameters.is_some() {
            return; // it waits
        }
        while let Some(bytes) = host.read(id, LONGEST_PARAMETERS as u64) {
            n.reader.push(&bytes);
        }
        match n.reader.json::<Parameters>(LONGEST_PARAMETERS) {
            Ok(None) => {}
            Ok(parameters) => {
                n.parameters = parameters;
                self.newcomers.on_progress(now, id);
                self.take_next(host, now);
            }
            Err(e) => {
                let Some(n) = self.newcomers.take(id) else {
                    return;
                };
                if self.session.is_some() {
                    turn_away(host, now, id);
                    return;
                }
                self.take(now, n);
                self.drop_client(host, now, &e.to_string());
            }
        }
    }

    /// When who has the server without opening streams must leave it to one that waits.
    fn hesitates_until(&self) -> Option<Instant> {
        let waits = self.newcomers.next(None).is_some();
        let s = self.session.as_ref()?;
        (waits && s.stage == Stage::Streams).then(|| s.moved + HESITATION)
    }

    /// The next of those that wait gets the server, if nobody has it or who has it hesitates.
    fn take_next(&mut self, host: &mut Host, now: Instant) {
        let is_free = self.session.is_none() && self.outcome.is_none();
        if !is_free && self.hesitates_until().is_none_or(|t| t > now) {
            return;
        }
        if let Some(s) = self.session.take() {
            let ip = s.remote.ip();
            self.put_off = Some(ip);
            self.reporter
                .remark(&format!("{ip} opens no streams, and another client waits"));
            host.write(s.control, State::AccessDenied.message());
            self.forget(host, now, s);
            let options = self.own_options();
            self.listen(host, &options);
        }
        let next = self.newcomers.next(self.put_off);
        let Some(mut n) = next.and_then(|id| self.newcomers.take(id)) else {
            return;
        };
        let parameters = n.parameters.take();
        self.take(now, n);
        if let Some(p) = parameters {
            self.on_parameters(host, now, &p);
        }
        self.on_control(host, now);
    }

    /// A client gets the server.
    fn take(&mut self, now: Instant, n: Newcomer) {
        let (ip, port) = (n.remote.ip(), n.remote.port());
        self.reporter
            .text(format!("Accepted connection from {ip}, port {port}\n"));
        self.number += 1;
        self.session = Some(Session {
            control: n.control,
            remote: n.remote,
            reader: n.reader,
            cookie: n.cookie,
            stage: Stage::Streams,
            test: None,
            congestion: String::new(),
            moved: now,
            deadline: now + PATIENCE,
        });
    }

    /// Somebody left before the test, or patience ended; whether there was one.
    fn forget_newcomer(&mut self, host: &mut Host, now: Instant, id: ConnectionId) -> bool {
        let gone = self.newcomers.take(id).is_some();
        if gone {
            turn_away(host, now, id);
        }
        gone
    }

    /// A data connection has shown the cookie of who has the server.
    fn on_stream(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(s) = &mut self.session else { return };
        let Some(test) = &mut s.test else { return };
        if test.streams.len() >= test.expected() {
            turn_away(host, now, id);
            return;
        }
        test.add(host, id);
        s.moved = now;
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
        for other in self.newcomers.take_all() {
            turn_away(host, now, other.control);
        }
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
        self.forget(host, now, s);
        if self.is_one_off {
            self.outcome.get_or_insert(Outcome::Done);
            return;
        }
        let options = self.own_options();
        self.listen(host, &options);
        self.announce();
        self.take_next(host, now);
    }

    /// Nothing is left of a session.
    fn forget(&mut self, host: &mut Host, now: Instant, s: Session) {
        for stream in s.test.iter().flat_map(|t| &t.streams) {
            host.abort(now, stream.connection);
            host.release(stream.connection);
        }
        host.close(now, s.control);
        host.release(s.control);
        self.reporter.reset();
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
            HostEvent::Readable(id) => self.on_newcomer(host, now, id),
            HostEvent::PeerClosed(id) if Some(id) == control => {
                self.on_control(host, now);
                self.drop_client(
                    host,
                    now,
                    "the client has unexpectedly closed the connection",
                );
            }
            HostEvent::PeerClosed(id) => {
                self.on_newcomer(host, now, id);
                self.forget_newcomer(host, now, id);
            }
            HostEvent::Closed { id, .. } if Some(id) == control => {
                self.drop_client(
                    host,
                    now,
                    "the client has unexpectedly closed the connection",
                );
            }
            HostEvent::Closed { id, .. } if self.forget_newcomer(host, now, id) => {}
            HostEvent::Closed { id, .. } => self.on_stream_closed(now, id),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self
            .session
            .as_ref()
            .and_then(|s| match (&s.test, s.stage) {
                (Some(test), Stage::End) => test.poll_timeout(),
                _ => Some(s.deadline),
            });
        let others = [self.newcomers.deadline(), self.hesitates_until()];
        own.into_iter().chain(others.into_iter().flatten()).min()
    }

    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        while let Some(id) = self.newcomers.overdue(now) {
            self.forget_newcomer(host, now, id);
        }
        self.take_next(host, now);
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
        for n in self.newcomers.take_all() {
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
    fn on_stream_closed(&mut self, now: Instant, id: ConnectionId) {
        let Some(s) = &mut self.session else { return };
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
