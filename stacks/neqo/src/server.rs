//! A server before its connection: a neqo server, which answers with a Retry, or what a connection is made of.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gargalo_plugin::stack::Config;
use neqo_common::Datagram;
use neqo_transport::server::{Server as Retrying, ValidateAddress};
use neqo_transport::{Connection, ConnectionParameters, RandomConnectionIdGenerator};
use nss_rs::{AntiReplay, ZeroRttCheckResult, ZeroRttChecker};

/// By how much a ticket's age may be off.
const WINDOW: Duration = Duration::from_secs(10);
/// There is no database of certificates: every name is that of the server's.
const CERTIFICATE: &[&str] = &["gargalo"];

pub type Shared = Rc<RefCell<Connection>>;

/// Connection IDs of eight bytes.
pub fn ids() -> Rc<RefCell<RandomConnectionIdGenerator>> {
    Rc::new(RefCell::new(RandomConnectionIdGenerator::new(8)))
}

/// Whether early data is accepted.
#[derive(Debug)]
struct Early(bool);

impl ZeroRttChecker for Early {
    fn check(&self, _token: &[u8]) -> ZeroRttCheckResult {
        if self.0 { ZeroRttCheckResult::Accept } else { ZeroRttCheckResult::Reject }
    }
}

/// Nothing is replayed in an experiment. NSS takes all early data of the first window for replayed, so that is over.
fn anti_replay(at: Instant) -> Result<AntiReplay, String> {
    AntiReplay::new(at - WINDOW, WINDOW, 1, 3).map_err(|e| e.to_string())
}

pub struct Server {
    alpn: [String; 1],
    parameters: ConnectionParameters,
    early: bool,
    /// It must live as long as its connection.
    retrying: Option<Retrying>,
}

impl Server {
    pub fn new(asked: &Config<'_>, parameters: ConnectionParameters, at: Instant) -> Result<Self, String> {
        let (alpn, early) = ([asked.alpn.to_owned()], asked.early_data);
        let mut retrying = None;
        if asked.retry {
            let (replays, checker) = (anti_replay(at)?, Box::new(Early(early)));
            let made = Retrying::new(at, CERTIFICATE, &alpn, replays, checker, ids(), parameters.clone());
            let server = made.map_err(|e| e.to_string())?;
            server.set_validation(ValidateAddress::Always);
            retrying = Some(server);
        }
        Ok(Self { alpn, parameters, early, retrying })
    }

    /// Takes a datagram before there is a connection, and passes on what must be sent at once.
    pub fn first(
        &mut self,
        datagram: Datagram<&mut [u8]>,
        at: Instant,
        begin: impl Fn(&mut Connection),
        send: impl FnMut(Datagram),
    ) -> Result<Option<Shared>, String> {
        if let Some(server) = &mut self.retrying {
            server.process([datagram], at).dgram().into_iter().for_each(send);
            let made = server.active_connections().into_iter().next().map(|c| c.connection());
            made.iter().for_each(|c| begin(&mut c.borrow_mut()));
            return Ok(made);
        }
        let made = Connection::new_server(CERTIFICATE, &self.alpn, ids(), self.parameters.clone());
        let mut connection = made.map_err(|e| e.to_string())?;
        if self.early {
            connection.server_enable_0rtt(&anti_replay(at)?, Early(true)).map_err(|e| e.to_string())?;
        }
        begin(&mut connection);
        connection.process_input(datagram, at);
        Ok(Some(Rc::new(RefCell::new(connection))))
    }
}
