use std::net::SocketAddr;

use gargalo_host::{ConnectionId, Host, HostEvent, SocketOptions};
use gargalo_units::{Duration, Instant};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::protocol::{Cookie, LONGEST_JSON, Reader, Results, State, json_message};
use super::report::{Peer, Start};
use super::reporter::Reporter;
use super::settings::{Direction, Environment, Role, Settings, Transport, version};
use super::test::{Progress, Test};
use crate::application::{Application, Outcome, Output};

/// Time that the client waits for the server to receive its last message.
const FAREWELL: Duration = Duration::from_secs(2);

/// An iperf3 client on a user-space host.
#[derive(Debug)]
pub struct Client {
    server: SocketAddr,
    /// The server as the user wrote it.
    name: String,
    options: SocketOptions,
    env: Environment,
    cookie: Cookie,
    test: Test,
    reporter: Reporter,
    control: Option<ConnectionId>,
    reader: Reader,
    stage: Stage,
    /// The data connection that is being opened; they are opened one at a time, because servers number them in order
    /// of arrival.
    opening: Option<ConnectionId>,
    results: Option<Results>,
    /// When the wait for the last message ends.
    leaves: Option<Instant>,
    outcome: Option<Outcome>,
}

/// What the client waits for on the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The opening of the connection.
    Connecting,
    /// A state byte.
    State,
    /// The server's results.
    Results,
    /// The numbers of the server's error.
    Error,
    /// Nothing: the test has ended or failed.
    Over,
}

impl Client {
    /// Creates a test with the server at `server`, which the user calls `name`; the cookie and the content are drawn
    /// from `seed`.
    pub fn new(
        server: SocketAddr,
        name: impl Into<String>,
        settings: Settings,
        transport: &Transport,
        env: Environment,
        seed: u64,
    ) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let cookie = Cookie::draw(&mut rng);
        let reporter = Reporter::new(Role::Client, settings.report.format);
        Self {
            server,
            name: name.into(),
            options: SocketOptions {
                tcp: transport.tcp.clone(),
                congestion: transport.congestion.clone(),
                mptcp: None,
                fast_open: false,
                dscp: 0,
            },
            env,
            cookie,
            test: Test::new(settings, Role::Client, &mut rng),
            reporter,
            control: None,
            reader: Reader::default(),
            stage: Stage::Connecting,
            opening: None,
            results: None,
            leaves: None,
            outcome: None,
        }
    }

    fn congestion(&self) -> String {
        self.options.congestion.name().to_owned()
    }

    fn tell(&self, host: &mut Host, state: State) {
        if let Some(control) = self.control {
            host.write(control, state.message());
        }
    }

    fn fail(&mut self, host: &mut Host, now: Instant, why: impl Into<String>) {
        if self.stage == Stage::Over {
            return;
        }
        let why = why.into();
        self.reporter.fail(&why);
        self.leave(host, now);
        self.outcome = Some(Outcome::Failed(why));
    }

    /// Aborts the streams and closes the control connection.
    fn leave(&mut self, host: &mut Host, now: Instant) {
        self.stage = Stage::Over;
        let streams = self.test.streams.iter().map(|s| s.connection);
        for id in streams.chain(self.opening) {
            host.abort(now, id);
            host.release(id);
        }
        if let Some(control) = self.control {
            host.close(now, control);
        }
        self.leaves = Some(now + FAREWELL);
    }

    fn on_control(&mut self, host: &mut Host, now: Instant) {
        let Some(control) = self.control else { return };
        while let Some(bytes) = host.read(control, LONGEST_JSON as u64) {
            self.reader.push(&bytes);
        }
        loop {
            match self.stage {
                Stage::State => {
                    let Some(byte) = self.reader.byte() else {
                        return;
                    };
                    match State::from_byte(byte) {
                        Some(state) => self.on_state(host, now, state),
                        None => {
                            let why =
                                format!("the server sent {byte}, which is not a state of iperf3");
                            self.fail(host, now, why);
                        }
                    }
                }
                Stage::Results => match self.reader.json::<Results>(LONGEST_JSON) {
                    Ok(Some(results)) => {
                        self.results = Some(results);
                        self.stage = Stage::State;
                    }
                    Ok(None) => return,
                    Err(e) => self.fail(host, now, e.to_string()),
                },
                Stage::Error => {
                    let Some((error, system)) = self.reader.server_error() else {
                        return;
                    };
                    let why = format!("the server failed (iperf3's error {error}, errno {system})");
                    self.fail(host, now, why);
                }
                Stage::Connecting | Stage::Over => return,
            }
        }
    }

    fn on_state(&mut self, host: &mut Host, now: Instant, state: State) {
        match state {
            State::ParamExchange => {
                let message = json_message(&self.test.settings.parameters());
                self.write_control(host, message);
                self.on_contact();
            }
            State::CreateStreams => self.open_next(host, now),
            State::TestStart => {
                let start = self.beginning();
                let start = self.test.describe(&self.env, host, now, start);
                let s = &self.test.settings;
                self.reporter.start(start, s.direction, s.parallel);
            }
            State::TestRunning => {
                if self.test.streams.len() < self.test.expected() {
                    self.fail(host, now, "the server starts before all streams are open");
                    return;
                }
                self.test.begin(&self.env, now);
            }
            State::ExchangeResults => {
                self.test.finish(&self.env, host, now, &mut self.reporter);
                let message = json_message(&self.test.results(&self.congestion()));
                self.write_control(host, message);
                self.stage = Stage::Results;
            }
            State::DisplayResults => {
                let congestion = self.congestion();
                self.test
                    .conclude(self.results.as_ref(), &congestion, &mut self.reporter);
                self.tell(host, State::IperfDone);
                self.reporter.finish();
                self.leave(host, now);
                self.outcome = Some(Outcome::Done);
            }
            State::ServerTerminate => {
                self.conclude_early(host, now);
                self.fail(host, now, "the server has terminated");
            }
            State::AccessDenied => {
                self.fail(
                    host,
                    now,
                    "the server is busy running a test; try again later",
                );
            }
            State::ServerError => self.stage = Stage::Error,
            State::TestEnd | State::ClientTerminate | State::IperfDone => {
                self.fail(
                    host,
                    now,
                    format!("the server sent {state:?}, which only clients say"),
                );
            }
        }
    }

    fn write_control(&self, host: &mut Host, message: bytes::Bytes) {
        if let Some(control) = self.control {
            // A few hundred bytes into an empty send buffer.
            host.write(control, message);
        }
    }

    fn on_contact(&mut self) {
        if self.test.settings.direction == Direction::Reverse {
            let line = format!("Reverse mode, remote host {} is sending\n", self.name);
            self.reporter.text(line);
        }
    }

    fn beginning(&self) -> Start {
        Start {
            version: version().to_owned(),
            system_info: self.env.system.clone(),
            connecting_to: Some(Peer {
                host: self.name.clone(),
                port: self.server.port(),
            }),
            cookie: Some(self.cookie.text()),
            ..Start::default()
        }
    }

    fn open_next(&mut self, host: &mut Host, now: Instant) {
        if self.test.streams.len() >= self.test.expected() {
            return;
        }
        match host.connect(now, None, self.server, &self.options) {
            Ok(id) => self.opening = Some(id),
            Err(e) => self.fail(host, now, format!("unable to open a stream: {e}")),
        }
    }

    fn on_connected(&mut self, host: &mut Host, now: Instant, id: ConnectionId) {
        if Some(id) == self.control {
            host.write(id, self.cookie.message());
            self.stage = Stage::State;
        } else if Some(id) == self.opening {
            self.opening = None;
            host.write(id, self.cookie.message());
            self.test.add(host, id);
            self.open_next(host, now);
        }
    }

    fn on_closed(
        &mut self,
        host: &mut Host,
        now: Instant,
        id: ConnectionId,
        error: Option<gargalo_tcp::Error>,
    ) {
        let reason = error.map_or_else(|| "closed by the server".to_owned(), |e| e.to_string());
        if Some(id) == self.control {
            host.release(id);
            self.control = None;
            match self.stage {
                Stage::Over => self.leaves = Some(now),
                Stage::Connecting => {
                    self.fail(host, now, format!("unable to connect to server: {reason}"));
                }
                _ => {
                    self.conclude_early(host, now);
                    self.fail(host, now, format!("control connection lost: {reason}"));
                }
            }
        } else if Some(id) == self.opening {
            self.fail(host, now, format!("unable to open a stream: {reason}"));
        } else if let Some(stream) = self.test.stream(id) {
            stream.on_closed();
            // After the end of the test, servers close in different ways.
            if self.test.is_running() {
                self.conclude_early(host, now);
                self.fail(host, now, format!("a stream was lost: {reason}"));
            }
        }
    }

    /// Reports a summary of the partial results.
    fn conclude_early(&mut self, host: &Host, now: Instant) {
        if self.test.is_running() {
            self.test.finish(&self.env, host, now, &mut self.reporter);
            let congestion = self.congestion();
            self.test.conclude(None, &congestion, &mut self.reporter);
        }
    }

    fn on_progress(&mut self, host: &mut Host, now: Instant, progress: Progress) {
        match progress {
            Progress::GoesOn => {}
            Progress::Complete => {
                self.test.finish(&self.env, host, now, &mut self.reporter);
                self.tell(host, State::TestEnd);
            }
            Progress::Silent => {
                self.conclude_early(host, now);
                self.fail(host, now, "nothing has arrived for two minutes");
            }
        }
    }
}

impl Application for Client {
    fn start(&mut self, host: &mut Host, now: Instant) {
        self.reporter.prepare(self.beginning());
        match host.connect(now, None, self.server, &self.options) {
            Ok(id) => {
                self.control = Some(id);
                let line = format!(
                    "Connecting to host {}, port {}\n",
                    self.name,
                    self.server.port()
                );
                self.reporter.text(line);
            }
            Err(e) => self.fail(host, now, format!("unable to connect to server: {e}")),
        }
    }

    fn on_event(&mut self, host: &mut Host, now: Instant, event: HostEvent) {
        match event {
            HostEvent::Connected(id) => self.on_connected(host, now, id),
            HostEvent::Readable(id) if Some(id) == self.control => self.on_control(host, now),
            HostEvent::PeerClosed(id) if Some(id) == self.control => {
                self.on_control(host, now);
                if self.stage == Stage::Over {
                    return;
                }
                self.conclude_early(host, now);
                self.fail(host, now, "the server closed the control connection");
            }
            HostEvent::Closed { id, error } => self.on_closed(host, now, id, error),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Over => self.leaves,
            _ => self.test.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, host: &mut Host, now: Instant) {
        if self.stage != Stage::Over {
            let progress = self.test.handle_timeout(host, now, &mut self.reporter);
            self.on_progress(host, now, progress);
        } else if let Some(control) = self.control
            && self.leaves.is_some_and(|at| at <= now)
        {
            host.abort(now, control);
            host.release(control);
            self.control = None;
        }
    }

    fn turn(&mut self, host: &mut Host, now: Instant) {
        let progress = self.test.turn(host, now);
        self.on_progress(host, now, progress);
    }

    fn interrupt(&mut self, host: &mut Host, now: Instant) {
        self.conclude_early(host, now);
        self.tell(host, State::ClientTerminate);
        self.fail(host, now, "interrupt - the client has terminated");
    }

    fn outcome(&self) -> Option<&Outcome> {
        // Not before the server was informed.
        self.outcome.as_ref().filter(|_| self.control.is_none())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.reporter.poll()
    }
}
