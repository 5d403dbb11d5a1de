//! The first datagrams at a server, before there is a connection.

use gargalo_plugin::stack::{Config, Path, host};
use quiche::{Connection, ConnectionId, Error, Header, Type};

use crate::id;

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
    pub fn first(&mut self, header: &Header<'_>, path: &Path) -> Result<Option<Connection>, Error> {
        if header.ty != Type::Initial || !quiche::version_is_supported(header.version) {
            return Ok(None);
        }
        let (mut own, mut original) = (id(), None);
        if self.must_retry {
            let token = header.token.as_deref().unwrap_or_default();
            match &self.retry {
                Some(sent) if token == sent.token && header.dcid == sent.server_chose => {
                    own = sent.server_chose.clone();
                    original = Some(sent.client_chose.clone());
                }
                Some(sent) if header.dcid != sent.client_chose => return Ok(None),
                _ => return self.answer(header, own, path).map(|()| None),
            }
        }
        quiche::accept(&own, original.as_ref(), path.local, path.remote, &mut self.config).map(Some)
    }

    /// A Retry; a client whose first flight has several datagrams gets the same one for each.
    fn answer(&mut self, header: &Header<'_>, server_chose: ConnectionId<'static>, to: &Path) -> Result<(), Error> {
        let client_chose = ConnectionId::from_vec(header.dcid.to_vec());
        let token = host::random_array();
        let Retry { token, server_chose, .. } = self.retry.get_or_insert(Retry { token, client_chose, server_chose });
        let mut out = [0; 1200];
        let length = quiche::retry(&header.scid, &header.dcid, server_chose, token, header.version, &mut out)?;
        host::send(&Path { ecn: 0, ..*to }, &out[..length]);
        Ok(())
    }
}
