//! What the QUIC connections of a run have in common.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gargalo_flow::{FlowSpec, QuicSpec};
use gargalo_quic::{Change, Init, Realm, Stack};
use gargalo_units::{Instant, reason};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::{Error, Result};

/// State that the QUIC connections of a run share.
#[derive(Clone, Debug)]
pub struct QuicRun {
    realm: Realm,
    seed: u64,
    /// Folder for qlog traces.
    qlog: Option<PathBuf>,
    /// TLS secrets, beside the capture.
    keys: Option<Arc<Mutex<BufWriter<File>>>>,
}

impl QuicRun {
    /// Creates it for a run with this seed; traces go to the folder `qlog`, TLS secrets to the file `keys`.
    ///
    /// # Errors
    /// When the certificate or the file cannot be made.
    pub fn new(seed: u64, qlog: Option<PathBuf>, keys: Option<PathBuf>) -> Result<Self> {
        let realm = Realm::new(seed).map_err(|e| Error::Unsupported(e.to_string()))?;
        let keys = keys.map(|path| {
            let file = File::create(&path);
            let what = || format!("writing TLS secrets to {}", path.display());
            file.map_err(|e| Error::system(what(), e))
        });
        let keys = keys.transpose()?;
        Ok(Self {
            realm,
            seed,
            qlog,
            keys: keys.map(|file| Arc::new(Mutex::new(BufWriter::new(file)))),
        })
    }

    /// Builds what a flow will need when it starts, so that invalid options are reported now.
    pub(crate) fn check(
        &self,
        spec: &FlowSpec,
        quic: &QuicSpec,
        ends: [SocketAddr; 2],
    ) -> Result<()> {
        let trial = Self {
            qlog: None,
            ..self.clone()
        };
        if quic
            .config
            .migration
            .is_some_and(|m| m.change == Change::Path)
        {
            return Err(Error::Unsupported(
                "a migration to another path is for the simulator; use change = \"address\""
                    .to_owned(),
            ));
        }
        let checked = quic
            .stacks
            .iter()
            .enumerate()
            .try_for_each(|(side, stack)| {
                let of_client = side == 0;
                stack
                    .check(&quic.config, spec.uses(), of_client)
                    .map_err(|e| e.to_string())
            });
        let made = checked.and_then(|()| trial.endpoint(spec, quic, (0, ends), Instant::ZERO));
        made.map(drop).map_err(|reason| {
            let (id, label) = (spec.id, &spec.label);
            Error::Unsupported(format!("QUIC of flow {id} ({label}): {reason}"))
        })
    }

    /// Creates the endpoint at a side of a connection between these addresses.
    pub(super) fn endpoint(
        &self,
        spec: &FlowSpec,
        quic: &QuicSpec,
        (side, ends): (usize, [SocketAddr; 2]),
        now: Instant,
    ) -> std::result::Result<Box<dyn Stack>, String> {
        let name = format!("flow/{}/quic/{side}", spec.id);
        let mut rng = gargalo_flow::rng::stream(self.seed, &name);
        let mut word = || u128::from(rng.next_u64());
        let own = Pcg64::new(word() << 64 | word(), word());
        let end = ["client", "server"][side];
        let mut init = Init {
            now,
            local: ends[side],
            remote: ends[1 - side],
            rng: own,
            secrets: self.keys.is_some() && quic.config.crypto == gargalo_quic::Crypto::Tls,
            datagrams: spec.uses().datagrams,
            qlog: None,
        };
        if let Some(folder) = self.qlog.as_ref().filter(|_| spec.rows) {
            let path = folder.join(format!("flow{}-{end}.sqlog", spec.id));
            let file = File::create(&path)
                .map_err(|e| format!("qlog {}: {}", path.display(), reason(&e)))?;
            let title = format!("{} {end}", spec.label);
            init.qlog = Some((Box::new(BufWriter::new(file)), title));
        }
        let is_client = side == 0;
        let realm = match quic.stacks.iter().any(|stack| stack.needs_ecdsa()) {
            true => self.realm.with_ecdsa(),
            false => Ok(self.realm.clone()),
        };
        let made = realm.and_then(|r| quic.stacks[side].end(&r, &quic.config, init, is_client));
        let mut endpoint = made.map_err(|e| e.to_string())?;
        endpoint.record_notices();
        Ok(endpoint)
    }

    /// Writes a line of TLS secrets, if they are wanted.
    pub(super) fn secret(&self, line: &str) -> io::Result<()> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let mut file = keys.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{line}")?;
        file.flush()
    }
}
