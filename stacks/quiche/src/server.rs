//! The first datagrams at a server, before there is a connection.

use gargalo_plugin::stack::{Config, Path, host};
use quiche::{Connection, ConnectionId, Header, Type};

use crate::{ID, id};

pub struct Server {
    config: quiche::Config,
    must_retry: bool,
    retry: Option<Retry>,
}

/// The Retry that has been sent.
struct Retry {
    token: [u8; 32],
    client_chose: ConnectionId<'static>,
    server_chose: ConnectionId<'static>,
}

impl Server {
    pub fn new(config: quiche::Config, asked: &Config<'_>) -> Self {
        Self { config, must_retry: asked.retry, retry: None }
    }

    /// The connection, unless the datagram is answered by a Retry or ignored.
    pub fn first(&mut self, data: &mut [u8], path: &Path) -> Option<Connection> {
        let header = Header::from_slice(data, ID).ok()?;
        if header.ty != Type::Initial || !quiche::version_is_supported(header.version) {
            return None;
        }
        let (mut own, mut original) = (id(), None);
        if self.must_retry {
            // A client whose first flight has several datagrams gets the same Retry for each.
            let sent = self.retry.get_or_insert_with(|| Retry {
                token: host::random_array(),
                client_chose: ConnectionId::from_vec(header.dcid.to_vec()),
                server_chose: id(),
            });
            if header.dcid == sent.client_chose {
                let mut out = [0; 1200];
                let (from, to, id) = (&header.scid, &header.dcid, &sent.server_chose);
                let length = quiche::retry(from, to, id, &sent.token, header.version, &mut out).ok()?;
                host::send(&Path { ecn: 0, ..*path }, &out[..length]);
                return None;
            }
            if header.dcid != sent.server_chose || header.token.as_deref() != Some(&sent.token[..]) {
                return None;
            }
            (own, original) = (sent.server_chose.clone(), Some(sent.client_chose.clone()));
        }
        quiche::accept(&own, original.as_ref(), path.local, path.remote, &mut self.config).ok()
    }
}
