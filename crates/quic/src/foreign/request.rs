//! What a scenario requests of one end of a foreign stack.

use std::net::SocketAddr;

use gargalo_units::Instant;

use super::trace::Reported;
use super::{About, Pending};
use crate::{Config, Handshake, Init, MAX_STREAMS, Realm, Session, own_name};

/// What a scenario requests of one end of a stack, besides what [`Config`] has.
#[derive(Debug)]
pub struct Request<'a> {
    /// The QUIC options of the scenario.
    pub config: &'a Config,
    /// The congestion control, by the stack's name for it.
    pub congestion: &'a str,
    /// This end is the client, which connects.
    pub is_client: bool,
    /// Time at which the end is created.
    pub now: Instant,
    /// Address and port of this end.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// The server's certificate in DER; a client accepts no other.
    pub certificate: &'a [u8],
    /// The server's private key in DER, PKCS #8; empty for a client.
    pub private_key: &'a [u8],
    /// Secret bytes of a server for its tickets; empty for a client.
    pub ticket_key: Vec<u8>,
    /// Session of an earlier connection; empty if there is none, or early data is not requested.
    pub session: Vec<u8>,
    /// The greatest datagram that discovery may find.
    pub max_datagram_size: u16,
    /// Early data is sent or accepted.
    pub early_data: bool,
    /// Options of the stack's own: an object of JSON.
    pub options: String,
    /// Datagrams are sent and received (RFC 9221).
    pub datagrams: bool,
    /// Unidirectional streams that the peer may have open at once; `None`: the flow has none.
    pub max_unidirectional_streams: Option<u32>,
    /// A qlog file is written.
    pub qlog: bool,
    /// Secrets are collected.
    pub secrets: bool,
    /// What happens to packets is of use.
    pub packets: bool,
}

impl<'a> Request<'a> {
    /// The request to an end of a stack, and the place for what it will report.
    pub fn of(
        about: About<'a>,
        realm: &'a Realm,
        config: &'a Config,
        init: Init,
        is_client: bool,
    ) -> (Self, Pending) {
        let features = about.features;
        let name = config.congestion.name.as_str();
        let congestion = own_name(about.congestion, name).unwrap_or(name);
        let (client, server) = match is_client {
            true => (init.local.ip(), init.remote.ip()),
            false => (init.remote.ip(), init.local.ip()),
        };
        // A server accepts it always: the tickets of one connection are for the next.
        let early_data = match is_client {
            true => config.handshake == Handshake::ZeroRtt,
            false => features.zero_rtt,
        };
        let session = is_client.then(|| Session {
            stack: about.name.to_owned(),
            client,
            server,
            datagrams: init.datagrams,
            unidirectional: config.unidirectional,
        });
        let resumed = session.as_ref().filter(|_| early_data);
        let resumed = resumed.and_then(|s| realm.take_session(s));
        let (file, title) = init.qlog.unzip();
        let (qlog, reported) = match features.qlog {
            true => (file, None),
            false => (None, file.filter(|_| features.packets)),
        };
        let found = config.discovered().filter(|_| features.mtu_discovery);
        let request = Self {
            config,
            congestion,
            is_client,
            now: init.now,
            local: init.local,
            remote: init.remote,
            certificate: realm.certificate(),
            private_key: if is_client { &[] } else { realm.private_key() },
            ticket_key: match is_client {
                true => Vec::new(),
                false => realm.ticket_key(server).to_vec(),
            },
            session: resumed.unwrap_or_default(),
            max_datagram_size: found.unwrap_or(config.datagram_size),
            early_data,
            options: serde_json::Value::from(config.options_of(is_client)).to_string(),
            datagrams: init.datagrams,
            max_unidirectional_streams: config.unidirectional.then_some(MAX_STREAMS),
            qlog: qlog.is_some(),
            secrets: init.secrets,
            packets: features.packets,
        };
        let mut pending = Pending::new(init.rng, realm.clone(), session, init.secrets, qlog);
        pending.now = init.now;
        pending.takes_datagrams = init.datagrams;
        if let Some(file) = reported {
            let title = title.unwrap_or_default();
            let ends = [request.local, request.remote];
            match Reported::begin(file, (&title, is_client), ends, request.now) {
                Ok(trace) => pending.trace = Some(trace),
                Err(e) => pending.add_notice("qlog", || format!("not written: {e}")),
            }
        }
        (request, pending)
    }
}
