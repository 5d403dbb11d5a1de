use bytes::Bytes;
use gargalo_host::{ConnectionId, Host};
use gargalo_units::{Duration, Instant};
use rand::Rng;

use super::protocol::Results;
use super::report::{
    Connected, CpuUtilization, EndHalf, EndStream, Ending, Moved, SenderExtremes, Start, TestStart,
    Timestamp, of_stream,
};
use super::reporter::{Reporter, Summary};
use super::settings::{Cpu, Direction, End, Environment, Role, Settings, version};
use super::stream::Stream;

/// Time after which a receiver without data gives up, as in iperf3.
const SILENCE: Duration = Duration::from_secs(120);

/// The measurement itself, as both ends do it: streams, intervals, end.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) settings: Settings,
    pub(super) streams: Vec<Stream>,
    role: Role,
    phase: Phase,
    block: Bytes,
    cpu_from: Cpu,
    cpu: CpuUtilization,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting,
    Running {
        /// When data began to flow.
        begun: Instant,
        /// When counting began.
        started: Instant,
        /// When the omitted period ends.
        omit_until: Option<Instant>,
        /// When the next interval ends.
        next: Option<Instant>,
        /// When data was last received.
        heard: Instant,
    },
    Over {
        seconds: f64,
    },
}

/// What a test requests of its end of the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    GoesOn,
    /// The client's end condition is met.
    Complete,
    /// No data has arrived for too long.
    Silent,
}

impl Test {
    pub(super) fn new(settings: Settings, role: Role, rng: &mut impl Rng) -> Self {
        let mut block = vec![0; settings.block.max(1) as usize];
        rng.fill_bytes(&mut block);
        Self {
            settings,
            streams: Vec::new(),
            role,
            phase: Phase::Waiting,
            block: block.into(),
            cpu_from: Cpu::default(),
            cpu: CpuUtilization::default(),
        }
    }

    /// Number of streams that the test will have.
    pub(super) fn expected(&self) -> usize {
        let each = self.settings.parallel as usize;
        if self.settings.direction == Direction::Both {
            2 * each
        } else {
            each
        }
    }

    /// Adds an open stream; in a bidirectional test the first half carries what the client sends.
    pub(super) fn add(&mut self, host: &Host, connection: ConnectionId) {
        let index = self.streams.len();
        let from_client = match self.settings.direction {
            Direction::Upload => true,
            Direction::Reverse => false,
            Direction::Both => index < self.settings.parallel as usize,
        };
        let is_sender = from_client == (self.role == Role::Client);
        let (Some(local), Some(remote)) =
            (host.local_addr(connection), host.remote_addr(connection))
        else {
            return;
        };
        // Descriptors of iperf3's streams: 5, 7, 9, …
        let socket = 5 + 2 * index as u32;
        self.streams.push(Stream::new(
            index,
            socket,
            connection,
            is_sender,
            (local, remote),
        ));
    }

    /// Fills in the beginning of a report when all streams are open.
    pub(super) fn describe(
        &self,
        env: &Environment,
        host: &Host,
        now: Instant,
        start: Start,
    ) -> Start {
        let connected = self
            .streams
            .iter()
            .map(|s| Connected::new(s.socket, s.local, s.remote));
        let config = self
            .streams
            .first()
            .and_then(|s| host.endpoint(s.connection))
            .map(|e| e.config());
        Start {
            connected: connected.collect(),
            version: version().to_owned(),
            system_info: env.system.clone(),
            timestamp: Some(Timestamp::new(env.epoch + now.as_secs_f64())),
            tcp_mss_default: config.map(|c| u32::from(c.mss)),
            target_bitrate: Some(self.settings.rate),
            sock_bufsize: Some(self.settings.window),
            sndbuf_actual: config.map(|c| c.send_buffer.get()),
            rcvbuf_actual: config.map(|c| c.receive_buffer.get()),
            test_start: Some(TestStart::new(&self.settings)),
            ..start
        }
    }

    /// Begins the transfer of data.
    pub(super) fn begin(&mut self, env: &Environment, now: Instant) {
        self.cpu_from = (env.cpu)();
        let omit = self.settings.omit;
        for s in &mut self.streams {
            s.begin(now);
        }
        self.phase = Phase::Running {
            begun: now,
            started: now,
            omit_until: (!omit.is_zero()).then_some(now + omit),
            next: self.next_after(now),
            heard: now,
        };
    }

    fn next_after(&self, now: Instant) -> Option<Instant> {
        let interval = self.settings.report.interval;
        (!interval.is_zero()).then_some(now + interval)
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    pub(super) fn stream(&mut self, id: ConnectionId) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|s| s.connection == id)
    }

    /// Transfers data. The end of a test by bytes or blocks is detected here.
    pub(super) fn turn(&mut self, host: &mut Host, now: Instant) -> Progress {
        let Phase::Running {
            begun, omit_until, ..
        } = self.phase
        else {
            return Progress::GoesOn;
        };
        let mut received = 0;
        for s in self.streams.iter_mut().filter(|s| !s.is_sender) {
            let n = s.drain(host);
            s.on_received(n);
            received += n;
        }
        if received > 0
            && let Phase::Running { heard, .. } = &mut self.phase
        {
            *heard = now;
        }
        let limit = match self.role {
            Role::Client => self.settings.byte_limit(),
            Role::Server => None,
        };
        let rate = self.settings.rate;
        let mut left = match limit {
            // Bytes of the omitted period do not end the test either.
            Some(_) if omit_until.is_some() => u64::MAX,
            Some(n) => n.saturating_sub(self.written()),
            None => u64::MAX,
        };
        for s in self.streams.iter_mut().filter(|s| s.is_sender) {
            let mut most = left;
            if rate > 0 {
                let elapsed = now.saturating_since(begun).as_secs_f64();
                let allowed = rate as f64 / 8.0 * elapsed;
                // A whole block is sent whenever the rate so far is below its limit.
                let behind = allowed - s.all_written() as f64;
                most = most.min(if behind >= 0.0 {
                    (behind as u64 / u64::from(self.settings.block) + 1)
                        * u64::from(self.settings.block)
                } else {
                    0
                });
            }
            left -= s.fill(host, &self.block, most).min(left);
        }
        match limit {
            Some(n) if omit_until.is_none() && self.has_moved(host, n) => Progress::Complete,
            _ => Progress::GoesOn,
        }
    }

    fn written(&self) -> u64 {
        self.streams
            .iter()
            .filter(|s| s.is_sender)
            .map(Stream::written)
            .sum()
    }

    /// Whether `n` bytes have been sent and acknowledged, or received.
    fn has_moved(&self, host: &Host, n: u64) -> bool {
        let received: u64 = self
            .streams
            .iter()
            .filter(|s| !s.is_sender)
            .map(Stream::bytes)
            .sum();
        let mut senders = self.streams.iter().filter(|s| s.is_sender).peekable();
        let sends = senders.peek().is_some();
        received >= n || (sends && self.written() >= n && senders.all(|s| s.is_acknowledged(host)))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let Phase::Running {
            begun,
            started,
            omit_until,
            next,
            heard,
        } = self.phase
        else {
            return None;
        };
        let end = self.end_at(started, omit_until);
        let silence = self
            .settings
            .direction
            .receives(self.role)
            .then_some(heard + SILENCE);
        let rate = self.settings.rate;
        let paced = (rate > 0).then(|| {
            let senders = self.streams.iter().filter(|s| s.is_sender && s.is_open());
            let due = senders.map(|s| {
                let at = s.all_written() as f64 * 8.0 / rate as f64;
                begun + Duration::from_secs_f64(at) + Duration::from_nanos(1)
            });
            due.min()
        });
        [end, omit_until, next, silence, paced.flatten()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the client ends the test.
    fn end_at(&self, started: Instant, omit_until: Option<Instant>) -> Option<Instant> {
        match (self.role, self.settings.end) {
            (Role::Client, End::Time(s)) if s > 0 => {
                Some(omit_until.unwrap_or(started) + Duration::from_secs(s))
            }
            _ => None,
        }
    }

    pub(super) fn handle_timeout(
        &mut self,
        host: &Host,
        now: Instant,
        reporter: &mut Reporter,
    ) -> Progress {
        let Phase::Running {
            omit_until, heard, ..
        } = self.phase
        else {
            return Progress::GoesOn;
        };
        if omit_until.is_some_and(|at| at <= now) {
            self.end_of_omission(host, now, reporter);
        }
        let Phase::Running {
            started,
            omit_until,
            next,
            ..
        } = self.phase
        else {
            return Progress::GoesOn;
        };
        if self.end_at(started, omit_until).is_some_and(|at| at <= now) {
            return Progress::Complete;
        }
        if self.settings.direction.receives(self.role) && heard + SILENCE <= now {
            return Progress::Silent;
        }
        if let Some(at) = next
            && at <= now
        {
            self.tell(host, now, reporter);
            let interval = self.settings.report.interval;
            if let Phase::Running { next, .. } = &mut self.phase {
                // Neither drift, nor bursts of reports after a pause.
                let on_time = at + interval;
                *next = Some(if on_time > now {
                    on_time
                } else {
                    now + interval
                });
            }
        }
        Progress::GoesOn
    }

    fn end_of_omission(&mut self, host: &Host, now: Instant, reporter: &mut Reporter) {
        let whole = self.settings.report.interval;
        if self.streams.iter().any(|s| s.is_worth_telling(now, whole)) && !whole.is_zero() {
            self.tell(host, now, reporter);
        }
        for s in &mut self.streams {
            s.omit(host, now);
        }
        let after = self.next_after(now);
        if let Phase::Running {
            started,
            omit_until,
            next,
            ..
        } = &mut self.phase
        {
            *started = now;
            *omit_until = None;
            *next = after;
        }
    }

    fn tell(&mut self, host: &Host, now: Instant, reporter: &mut Reporter) {
        let Phase::Running {
            started,
            omit_until,
            ..
        } = self.phase
        else {
            return;
        };
        let omitted = omit_until.is_some();
        let rows = self
            .streams
            .iter_mut()
            .map(|s| s.interval(host, now, started, omitted));
        reporter.interval(rows.collect());
    }

    /// Ends the measurement; data transferred afterwards does not count.
    pub(super) fn finish(
        &mut self,
        env: &Environment,
        host: &Host,
        now: Instant,
        reporter: &mut Reporter,
    ) {
        let Phase::Running { begun, started, .. } = self.phase else {
            return;
        };
        for s in &mut self.streams {
            s.refresh(host, now);
        }
        let whole = self.settings.report.interval;
        if self.streams.iter().any(|s| s.is_worth_telling(now, whole)) {
            self.tell(host, now, reporter);
        }
        let busy = now.saturating_since(begun).as_secs_f64();
        self.cpu = CpuUtilization::of_host(self.cpu_from, (env.cpu)(), busy);
        let seconds = now.saturating_since(started).as_secs_f64();
        self.phase = Phase::Over { seconds };
    }

    fn seconds(&self) -> f64 {
        match self.phase {
            Phase::Over { seconds } => seconds,
            _ => 0.0,
        }
    }

    /// The results that are sent to the peer.
    pub(super) fn results(&self, congestion: &str) -> Results {
        let sends = self.settings.direction.sends(self.role);
        Results {
            cpu_util_total: self.cpu.host_total,
            cpu_util_user: self.cpu.host_user,
            cpu_util_system: self.cpu.host_system,
            sender_has_retransmits: if sends { 1 } else { -1 },
            congestion_used: Some(congestion.to_owned()),
            streams: self
                .streams
                .iter()
                .map(|s| s.results(self.seconds()))
                .collect(),
        }
    }

    /// Reports the end, with the peer's results if it sent any.
    pub(super) fn conclude(
        &self,
        peer: Option<&Results>,
        congestion: &str,
        reporter: &mut Reporter,
    ) {
        let none = Results::default();
        let known = peer.unwrap_or(&none);
        let summaries: Vec<_> = self
            .streams
            .iter()
            .map(|s| self.summary(s, known))
            .collect();
        let ours = Some(congestion.to_owned());
        let theirs = known.congestion_used.clone();
        let (sender, receiver) = match self.settings.direction.sends(self.role) {
            true => (ours, theirs),
            false => (theirs, ours),
        };
        let ending = Ending {
            cpu_utilization_percent: Some(CpuUtilization {
                remote_total: known.cpu_util_total,
                remote_user: known.cpu_util_user,
                remote_system: known.cpu_util_system,
                ..self.cpu
            }),
            sender_tcp_congestion: sender,
            receiver_tcp_congestion: receiver,
            ..Ending::default()
        };
        reporter.end(&summaries, ending);
    }

    fn summary(&self, s: &Stream, peer: &Results) -> Summary {
        let theirs = of_stream(&peer.streams, s.id);
        let their_bytes = theirs.map_or(0, |t| t.bytes);
        let their_seconds = theirs
            .map(|t| t.end_time)
            .filter(|t| t.is_finite() && *t > 0.0)
            .unwrap_or(self.seconds());
        let ours = Moved::new(0.0, self.seconds(), s.bytes());
        let theirs_moved = Moved::new(0.0, their_seconds, their_bytes);
        let (sent, received) = if s.is_sender {
            (ours, theirs_moved)
        } else {
            (theirs_moved, ours)
        };
        let retransmits = if s.is_sender {
            Some(s.retransmits() as i64)
        } else {
            theirs.map(|t| t.retransmits).filter(|n| *n >= 0)
        };
        let extremes = match retransmits {
            Some(_) if s.is_sender => Some(s.extremes()),
            Some(n) => Some(SenderExtremes {
                retransmits: n,
                ..SenderExtremes::default()
            }),
            None => None,
        };
        let half = |moved, state| EndHalf {
            socket: s.socket,
            moved,
            state,
            sender: s.is_sender,
        };
        Summary {
            halves: EndStream {
                sender: half(sent, extremes),
                receiver: half(received, None),
            },
            retransmits,
        }
    }
}
