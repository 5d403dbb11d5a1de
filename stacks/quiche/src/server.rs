//! The first datagrams at a server, before there is a connection.

use std::net::SocketAddr;

use gargalo_plugin::stack::{Config, host};
use quiche::{Connection, ConnectionId, Error, Header, Type};

use crate::id;

pub struct Server {
    config: quiche::Config,
    local: SocketAddr,
    must_retry: bool,
    retry: Option<Retry>,
}

/// The Retry that has been sent.
struct Retry {
    token: [u8; 32],
    client_chose: ConnectionId<'static>,
    server_chose: ConnectionId<'static>,
}

/// What becomes of a datagram.
pub enum First {
    Accepted(Box<Connection>),
    Retry(Vec<u8>),
    Ignored,
}

impl Server {
    pub fn new(config: quiche::Config, asked: &Config<'_>) -> Self {
        Self { config, local: asked.local, must_retry: asked.retry, retry: None }
    }

    pub fn first(&mut self, header: &Header<'_>, remote: SocketAddr) -> Result<First, Error> {
        if header.ty != Type::Initial || !quiche::version_is_supported(header.version) {
            return Ok(First::Ignored);
        }
        let (mut own, mut original) = (id(), None);
        if self.must_retry {
            let token = header.token.as_deref().unwrap_or_default();
            match &self.retry {
                Some(sent) if token == sent.token && header.dcid == sent.server_chose => {
                    own = sent.server_chose.clone();
                    original = Some(sent.client_chose.clone());
                }
                Some(sent) if header.dcid != sent.client_chose => return Ok(First::Ignored),
                _ => return self.answer(header, own).map(First::Retry),
            }
        }
        let made = quiche::accept(&own, original.as_ref(), self.local, remote, &mut self.config);
        made.map(|connection| First::Accepted(Box::new(connection)))
    }

    /// A Retry; a client whose first flight has several datagrams gets the same one for each.
    fn answer(&mut self, header: &Header<'_>, server_chose: ConnectionId<'static>) -> Result<Vec<u8>, Error> {
        let client_chose = ConnectionId::from_vec(header.dcid.to_vec());
        let token = host::random_array();
        let sent = self.retry.get_or_insert(Retry { token, client_chose, server_chose });
        let mut out = vec![0; 1200];
        let length =
            quiche::retry(&header.scid, &header.dcid, &sent.server_chose, &sent.token, header.version, &mut out)?;
        out.truncate(length);
        Ok(out)
    }
}
