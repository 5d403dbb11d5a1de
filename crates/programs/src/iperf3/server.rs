use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gargalo_cc::{ControllerFactory, Params, Registered};
use gargalo_host::{ConnectionId, Host, HostEvent, ListenerId, SocketOptions};
use gargalo_units::{Bytes, Duration, Instant};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::pending::{PendingClient, PendingClients};
use super::protocol::{
    COOKIE_LEN, Cookie, LONGEST_JSON, Parameters, Reader, Results, State, json_message,
};
use super::report::{Peer, Start};
use super::reporter::Reporter;
use super::settings::{End, Environment, ReportOptions, Role, Settings, Transport};
use super::table::RULE;
use super::test::{Progress, Test};
use crate::application::{Application, Outcome, Output};

/// Time limit of the client being served for any step except the test itself.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit to open its streams, or the next of them, while other clients wait.
const STREAMS_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for any step after the test, while other clients wait: the results cross a queue that the test has
/// filled.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest parameters that are accepted, in bytes.
const LONGEST_PARAMETERS: usize = 64 << 10;

/// An iperf3 server on a user-space host: one test at a time. It serves a client that has sent its parameters and
/// opens its streams: one that is silent, at any step before the test, does not block others.
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
    /// Empty while a test runs.
    pending: PendingClients,
    session: Option<Session>,
    /// Address of the client that last lost the server to another.
    put_off: Option<IpAddr>,
    /// Number of tests begun.
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
    /// When it was accepted, last opened a stream, or took a step after the test.
    last_progress: Instant,
    /// When it times out; `None`: a test that ends with bytes or blocks.
    deadline: Option<Instant>,
}

/// What is expected from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Streams,
    End,
    Results,
    Done,
}

impl Server {
    /// Creates a server on `listen`; it ends after one test if `is_one_off`. The content is drawn from `seed`.
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
            pending: PendingClients::default(),
            session: None,
            put_off: None,
            number: 0,
            outcome: None,
        }
    }

    /// Opens the listeners, once; later it only changes the options of the connections that come from then on. A
    /// listener that is closed and opened again resets clients that are just connecting.
    fn listen(&mut self, host: &mut Host, options: &SocketOptions) {
        for (n, local) in self.listen.iter().enumerate() {
            let listened = match self.listeners.get(n) {
                Some(id) => host.set_listener_options(*id, options.clone()),
                None => host
                    .listen(*local, options.clone())
                    .map(|id| self.listeners.push(id)),
            };
            if let Err(e) = listened {
                let why = format!("unable to listen on {local}: {e}");
                self.outcome = Some(Outcome::Failed(why));
            }
        }
    }

    fn own_options(&self) -> SocketOptions {
        SocketOptions {
            tcp: self.transport.tcp.clone(),
            congestion: self.transport.congestion.clone(),
            mptcp: None,
            fast_open: false,
            dscp: 0,
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
        if self.outcome.is_some() || !self.is_open() {
            deny_access(host, now, id);
            return;
        }
        if let Some(gone) = self.pending.push(now, id, remote) {
            deny_access(host, now, gone);
        }
        self.on_pending(host, now, id);
    }

    /// Whether a client that connects now will be served: while a test runs, it gets the answer that the server is
    /// busy.
    fn is_open(&self) -> bool {
        self.session.as_ref().is_none_or(|s| match s.stage {
            Stage::Streams => true,
            Stage::End => false,
            Stage::Results | Stage::Done => !self.is_one_off,
        })
    }

    /// Reads the cookie of a connection, which identifies data streams as well, and the parameters of a client.
    fn on_pending(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(n) = self.pending.get(id) else {
            return;
        };
        if n.cookie.is_none() {
            // The bytes after a stream's cookie are its content.
            let missing = COOKIE_LEN - n.reader.len();
            if let Some(bytes) = host.read(id, missing as u64) {
                n.reader.push(&bytes);
            }
            n.cookie = n.reader.cookie();
            let Some(cookie) = n.cookie else { return };
            if self.session.as_ref().and_then(|s| s.cookie) == Some(cookie) {
                self.pending.take(id);
                self.on_stream(host, now, id);
                return;
            }
            host.write(id, State::ParamExchange.message());
            self.pending.on_progress(now, id);
        }
        let Some(n) = self.pending.get(id) else {
            return;
        };
        if n.parameters.is_some() {
            return; // it waits for the server
        }
        while let Some(bytes) = host.read(id, LONGEST_PARAMETERS as u64) {
            n.reader.push(&bytes);
        }
        match n.reader.json::<Parameters>(LONGEST_PARAMETERS) {
            Ok(None) => {}
            Ok(parameters) => {
                n.parameters = parameters;
                self.pending.on_progress(now, id);
                self.take_next(host, now);
            }
            Err(e) => {
                let Some(n) = self.pending.take(id) else {
                    return;
                };
                if self.session.is_some() {
                    deny_access(host, now, id);
                    return;
                }
                self.take(now, n);
                self.drop_client(host, now, &e.to_string());
            }
        }
    }

    /// When a client that opens no streams, or does not end after its test, must leave the server to one that waits.
    fn must_yield_at(&self) -> Option<Instant> {
        let waits = self.pending.next(None).is_some();
        let s = self.session.as_ref()?;
        let limit = match s.stage {
            Stage::Streams => STREAMS_TIMEOUT,
            Stage::End => return None,
            Stage::Results | Stage::Done => RESULTS_TIMEOUT,
        };
        waits.then(|| s.last_progress + limit)
    }

    /// Serves the next waiting client, if the server is free or its client has exceeded its limit.
    fn take_next(&mut self, host: &mut Host, now: Instant) {
        let is_free = self.session.is_none() && self.outcome.is_none();
        if !is_free && self.must_yield_at().is_none_or(|t| t > now) {
            return;
        }
        let stage = self.session.as_ref().map(|s| s.stage);
        if stage.is_some_and(|stage| stage != Stage::Streams) {
            self.drop_client(host, now, "the client is silent, and another waits");
            return; // The end of its session takes the next one.
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
        let next = self.pending.next(self.put_off);
        let Some(mut n) = next.and_then(|id| self.pending.take(id)) else {
            return;
        };
        let parameters = n.parameters.take();
        self.take(now, n);
        if let Some(p) = parameters {
            self.on_parameters(host, now, &p);
        }
        self.on_control(host, now);
    }

    /// Serves a client.
    fn take(&mut self, now: Instant, n: PendingClient) {
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
            last_progress: now,
            deadline: Some(now + STEP_TIMEOUT),
        });
    }

    /// Drops a connection that left before the test, or timed out; returns whether there was one.
    fn drop_pending(&mut self, host: &mut Host, now: Instant, id: ConnectionId) -> bool {
        let gone = self.pending.take(id).is_some();
        if gone {
            deny_access(host, now, id);
        }
        gone
    }

    /// Adds a data connection that has sent the cookie of the client being served.
    fn on_stream(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        let Some(s) = &mut self.session else { return };
        let Some(test) = &mut s.test else { return };
        if test.streams.len() >= test.expected() {
            deny_access(host, now, id);
            return;
        }
        test.add(host, id);
        s.last_progress = now;
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
        s.deadline = match test.settings.end {
            End::Time(time) => {
                Some(now + test.settings.omit + Duration::from_secs(time) + STEP_TIMEOUT)
            }
            End::Bytes(_) | End::Blocks(_) => None,
        };
        self.reporter
            .start(start, test.settings.direction, test.settings.parallel);
        test.begin(&self.env, now);
        for other in self.pending.take_all() {
            deny_access(host, now, other.control);
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

    /// The TCP options that the client requests.
    fn options_for(&mut self, settings: &Settings) -> SocketOptions {
        let mut options = self.own_options();
        let mut tcp = (*options.tcp).clone();
        if settings.mss > 0 {
            // At least 256, so that options leave room for data.
            let wanted = u16::try_from(settings.mss.max(256)).unwrap_or(u16::MAX);
            tcp.announce(tcp.announced_mss().min(wanted));
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
                s.last_progress = now;
                s.deadline = Some(now + STEP_TIMEOUT);
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
        s.last_progress = now;
        s.deadline = Some(now + STEP_TIMEOUT);
        test.conclude(Some(results), &s.congestion, &mut self.reporter);
        self.reporter.finish();
    }

    /// Informs the client that its request is impossible: iperf3's error for parameters.
    fn refuse(&mut self, host: &mut Host, now: Instant, why: &str) {
        if let Some(s) = &self.session {
            let mut message = vec![State::ServerError.to_byte()];
            message.extend_from_slice(&RECEIVING_PARAMETERS.to_be_bytes());
            message.extend_from_slice(&0_u32.to_be_bytes());
            host.write(s.control, message.into());
        }
        self.drop_client(host, now, why);
    }

    /// Drops a client that has left or whose messages cannot be parsed.
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

    /// Releases everything that belongs to a session.
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

/// iperf3's number of the error "unable to receive parameters from client".
const RECEIVING_PARAMETERS: u32 = 114;

/// Counts what arrived before the end of the test.
fn drain(test: &mut Test, host: &mut Host) {
    for s in test.streams.iter_mut().filter(|s| !s.is_sender) {
        let n = s.drain(host);
        s.on_received(n);
    }
}

/// Informs a connection that the server is busy. What it has sent is read first: closed with unread data, it would be
/// reset (RFC 2525 §2.17), and its client not read the answer.
fn deny_access(host: &mut Host, now: Instant, id: ConnectionId) {
    while host.read(id, LONGEST_PARAMETERS as u64).is_some() {}
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
            HostEvent::Readable(id) => self.on_pending(host, now, id),
            HostEvent::PeerClosed(id) if Some(id) == control => {
                self.on_control(host, now);
                self.drop_client(
                    host,
                    now,
                    "the client has unexpectedly closed the connection",
                );
            }
            HostEvent::PeerClosed(id) => {
                self.on_pending(host, now, id);
                self.drop_pending(host, now, id);
            }
            HostEvent::Closed { id, .. } if Some(id) == control => {
                self.drop_client(
                    host,
                    now,
                    "the client has unexpectedly closed the connection",
                );
            }
            HostEvent::Closed { id, .. } if self.drop_pending(host, now, id) => {}
            HostEvent::Closed { id, .. } => self.on_stream_closed(now, id),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref();
        let test = session.and_then(|s| match (&s.test, s.stage) {
            (Some(test), Stage::End) => test.poll_timeout(),
            _ => None,
        });
        let deadline = session.and_then(|s| s.deadline);
        let all = [
            test,
            deadline,
            self.pending.deadline(),
            self.must_yield_at(),
        ];
        all.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        while let Some(id) = self.pending.overdue(now) {
            self.drop_pending(host, now, id);
        }
        self.take_next(host, now);
        let Some(s) = &mut self.session else { return };
        let progress = match (&mut s.test, s.stage) {
            _ if s.deadline.is_some_and(|deadline| deadline <= now) => Progress::Silent,
            (Some(test), Stage::End) => test.handle_timeout(host, now, &mut self.reporter),
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
        for n in self.pending.take_all() {
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
            // The client reports the end on the control connection; without a report, it times out.
            if running && test.streams.iter().all(|s| !s.is_open()) {
                s.deadline = Some(now + STEP_TIMEOUT);
            }
        }
    }
}
