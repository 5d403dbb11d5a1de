//! neqo, with NSS, as a stack of Gargalo.
//!
//! neqo has the time as an argument; what NSS reads of the clock, the library tells itself. Random bytes, certificate,
//! ticket keys and key log are those of the host (`random.rs`, `nss.rs`).

mod events;
mod nss;
mod random;
mod server;
mod settings;
mod stats;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gargalo_plugin::stack::abi::feature::{
    CANCEL, DATAGRAMS, ECDSA, ECN, KEY_UPDATE, LOCAL_ADDRESS, MIGRATION, MTU_DISCOVERY, NO_PACING, OPTIONS, QLOG,
    RETRY, UNIDIRECTIONAL, URGENCY, ZERO_RTT,
};
use gargalo_plugin::stack::{About, CANCELLED, Config, EarlyData, Event, Offered, Path, Stack, Stats, host};
use neqo_common::{Datagram, Ecn, Tos};
use neqo_transport::send_stream::{RetransmissionPriority, TransmissionPriority};
use neqo_transport::{Connection, Output, Pmtud, State, StreamId, StreamType, ZeroRttState};

use events::write_qlog;
use nss::Identity;
use server::{Server, Shared};
use stats::Noticed;

gargalo_plugin::virtual_clock!();

/// Between the time zero of NSS, which is that of [`Stack::prepare`], and the start of a run: neqo asks for times
/// before it.
const BEFORE: Duration = Duration::from_secs(3600);

/// What neqo keeps for each thread is counted without regard to others that use it: objects take turns.
static TURN: Mutex<()> = Mutex::new(());

struct Neqo {
    connection: Option<Shared>,
    server: Option<Server>,
    identity: Option<Box<Identity>>,
    start: Instant,
    certificate: Vec<u8>,
    asked: Asked,
    early: EarlyData,
    timer: Option<Duration>,
    /// A new local address that the connection cannot move to yet.
    moves_to: Option<SocketAddr>,
    /// Streams with data that is not acknowledged, and whether they have ended.
    sending: BTreeMap<u64, bool>,
    noticed: Noticed,
    /// Room for stream data that has arrived.
    piece: Box<[u8]>,
}

// SAFETY: all that is counted in it is its own, but for what neqo keeps for a thread, which is used in turns only.
// NSS's objects may be used in any thread.
unsafe impl Send for Neqo {}

/// What is asked for during the connection.
#[derive(Clone, Copy)]
struct Asked {
    ecn: bool,
    qlog: bool,
    notices: bool,
    send_window: u64,
    /// The largest packet.
    largest: usize,
}

impl Neqo {
    /// Runs a call: no other object's at the same time.
    fn turn<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        random::settle();
        mtu::set_largest(self.asked.largest);
        let mut identity = self.identity.take();
        let result = Identity::during(&mut identity, || work(self));
        self.identity = identity;
        result
    }

    /// Runs `work` with the connection, if there is one.
    fn with<R>(&self, work: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        Some(work(&mut self.connection.as_ref()?.borrow_mut()))
    }

    /// Stream data that is written and not acknowledged.
    fn outstanding(&self) -> u64 {
        let of =
            |c: &Connection, stream: &u64| c.send_stream_stats((*stream).into()).map_or(0, |s| s.written - s.acked);
        self.with(|c| self.sending.keys().map(|stream| of(c, stream)).sum()).unwrap_or(0)
    }
}

impl Drop for Neqo {
    fn drop(&mut self) {
        self.turn(|neqo| (neqo.connection, neqo.server) = (None, None));
    }
}

fn create(asked: &Config<'_>, now: Duration) -> Result<Neqo, String> {
    nss_rs::init().map_err(|e| format!("NSS cannot be used: {e}"))?;
    let parameters = settings::parameters(asked)?;
    let start = Instant::now() - now + BEFORE;
    let at = start + now;
    let mut neqo = Neqo {
        connection: None,
        server: None,
        identity: asked.is_server.then(|| Identity::new(asked).map(Box::new)).transpose()?,
        start,
        certificate: asked.certificate.to_vec(),
        asked: Asked {
            ecn: asked.ecn,
            qlog: asked.qlog,
            notices: asked.notices,
            send_window: asked.send_window,
            largest: Pmtud::header_size(asked.remote.ip()) + usize::from(asked.max_datagram_size),
        },
        early: EarlyData::None,
        timer: None,
        moves_to: None,
        sending: BTreeMap::new(),
        noticed: Noticed::new(asked.remote.ip()),
        piece: vec![0; 1 << 16].into(),
    };
    neqo.turn(|neqo| {
        if asked.is_server {
            neqo.server = Some(Server::new(asked, parameters, at)?);
            return Ok(());
        }
        let (name, ids) = (asked.server_name, server::ids());
        let made = Connection::new_client(name, &[asked.alpn], ids, asked.local, asked.remote, parameters, at);
        let mut c = made.map_err(|e| e.to_string())?;
        if asked.qlog {
            write_qlog(&mut c, at);
        }
        if asked.early_data && !asked.session.is_empty() {
            c.enable_resumption(at, asked.session).map_err(|e| format!("the session is not valid: {e}"))?;
            if c.zero_rtt_state() == ZeroRttState::Sending {
                host::event(Event::Early);
            }
        }
        neqo.connection = Some(Rc::new(RefCell::new(c)));
        Ok(())
    })
    .map(|()| neqo)
}

impl Stack for Neqo {
    const ABOUT: About = About {
        name: "neqo",
        version: "0.30.1",
        features: ZERO_RTT
            | RETRY
            | MIGRATION
            | ECN
            | QLOG
            | NO_PACING
            | MTU_DISCOVERY
            | OPTIONS
            | LOCAL_ADDRESS
            | ECDSA
            | UNIDIRECTIONAL
            | DATAGRAMS
            | CANCEL
            | URGENCY
            | KEY_UPDATE,
        congestion: &["cubic", "newreno"],
        specifications: &["", ""],
        tells_unacknowledged: true,
    };

    fn prepare() {
        // An error is told by `create`.
        let _ = nss_rs::init();
    }

    fn create(asked: &Config<'_>, now: Duration) -> Result<Self, String> {
        create(asked, now)
    }

    fn datagram_in(&mut self, now: Duration, path: &Path, data: &mut [u8]) {
        if data.is_empty() {
            // neqo's type of a datagram is never empty.
            return;
        }
        self.turn(|neqo| {
            let at = neqo.start + now;
            let mark = if neqo.asked.ecn { path.ecn } else { 0 };
            let datagram = Datagram::from_slice(path.remote, path.local, Tos::from(Ecn::from(mark)), data);
            let asked = neqo.asked;
            if let Some(c) = &neqo.connection {
                c.borrow_mut().process_input(datagram, at);
            } else if let Some(server) = &mut neqo.server {
                let begin = |c: &mut Connection| {
                    if asked.qlog {
                        write_qlog(c, at);
                    }
                };
                match server.first(datagram, at, begin, |out| host::send(&of(&out, asked.ecn), &out)) {
                    Ok(made) => neqo.connection = made,
                    Err(why) => host::event(Event::Failed(&why)),
                }
            }
            neqo.report(at);
        });
    }

    fn datagram_out(&mut self, now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        self.turn(|neqo| {
            let at = neqo.start + now;
            let sent = neqo.with(|c| c.process_output(at))?;
            neqo.report(at);
            neqo.timer = match &sent {
                Output::Callback(wait) => Some(now + *wait),
                _ => None,
            };
            let datagram = sent.dgram()?;
            out.get_mut(..datagram.len())?.copy_from_slice(&datagram);
            Some((datagram.len(), of(&datagram, neqo.asked.ecn)))
        })
    }

    fn next_timer(&mut self) -> Option<Duration> {
        self.timer
    }

    fn timeout(&mut self, _now: Duration) {
        // neqo looks at its timers when it is asked for datagrams.
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        self.turn(|neqo| neqo.with(|c| c.stream_create(StreamType::BiDi).ok()))?.map(StreamId::as_u64)
    }

    fn open_unidirectional_stream(&mut self, _now: Duration) -> Option<u64> {
        self.turn(|neqo| neqo.with(|c| c.stream_create(StreamType::UniDi).ok()))?.map(StreamId::as_u64)
    }

    fn send_datagram(&mut self, _now: Duration, data: &[u8]) -> Offered {
        let sent = self.turn(|neqo| {
            neqo.with(|c| match c.max_datagram_size() {
                Ok(most) if data.len() as u64 <= most => c.send_datagram(data.to_vec(), None).is_ok(),
                _ => false,
            })
        });
        match sent {
            Some(true) => Offered::Taken,
            Some(false) => Offered::Refused,
            None => Offered::Later,
        }
    }

    // Each of these fails if the stream has ended.
    fn reset_stream(&mut self, _now: Duration, stream: u64) {
        self.turn(|neqo| {
            let _ = neqo.with(|c| c.stream_reset_send(stream.into(), CANCELLED.into()));
            neqo.sending.remove(&stream);
        });
    }

    fn stop_sending(&mut self, _now: Duration, stream: u64) {
        let _ = self.turn(|neqo| neqo.with(|c| c.stream_stop_sending(stream.into(), CANCELLED.into())));
    }

    fn set_urgency(&mut self, _now: Duration, stream: u64, urgency: u8) {
        let priority = match urgency {
            0 | 1 => TransmissionPriority::High,
            2..=4 => TransmissionPriority::Normal,
            _ => TransmissionPriority::Low,
        };
        let again = RetransmissionPriority::default();
        let _ = self.turn(|neqo| neqo.with(|c| c.stream_priority(stream.into(), priority, again)));
    }

    fn update_keys(&mut self, _now: Duration) -> bool {
        self.turn(|neqo| neqo.with(|c| c.initiate_key_update().is_ok())).unwrap_or(false)
    }

    fn write(&mut self, _now: Duration, stream: u64, data: &[u8], fin: bool) -> usize {
        self.turn(|neqo| {
            let room = neqo.asked.send_window.saturating_sub(neqo.outstanding());
            let most = usize::try_from(room).unwrap_or(usize::MAX).min(data.len());
            let taken = neqo.with(|c| match fin {
                true => c.stream_close_send(stream.into()).map(|()| 0),
                false if most == 0 => Ok(0),
                false => c.stream_send(stream.into(), &data[..most]),
            });
            let Some(Ok(taken)) = taken else { return 0 };
            if taken > 0 || fin {
                neqo.sending.insert(stream, fin);
            }
            taken
        })
    }

    fn unacknowledged(&mut self) -> Option<u64> {
        self.turn(|neqo| Some(neqo.outstanding() + neqo.sending.values().filter(|ended| **ended).count() as u64))
    }

    fn migrate(&mut self, now: Duration, local: SocketAddr) {
        self.turn(|neqo| {
            neqo.moves_to = Some(local);
            neqo.report(neqo.start + now);
        });
    }

    fn close(&mut self, now: Duration) {
        self.turn(|neqo| {
            let at = neqo.start + now;
            if neqo.with(|c| c.close(at, 0, "")).is_none() {
                neqo.server = None;
            }
            neqo.report(at);
            host::event(Event::Closed);
        });
    }

    fn is_over(&mut self) -> bool {
        let closed = self.with(|c| matches!(c.state(), State::Closed(_)));
        closed.unwrap_or(self.server.is_none())
    }

    fn stats(&mut self) -> Stats {
        self.turn(|neqo| neqo.with(|c| stats::stats(c)).unwrap_or_default())
    }
}

fn of(datagram: &Datagram, ecn: bool) -> Path {
    let ecn = if ecn { Ecn::from(datagram.tos()).into() } else { 0 };
    Path { local: datagram.source(), remote: datagram.destination(), ecn }
}

gargalo_plugin::export_stack!(Neqo);
