//! Multipath TCP of our host.

use std::net::IpAddr;
use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_host::{ConnectionId, MptcpOptions};
use gargalo_mptcp::path_manager;
use gargalo_settings::{Files, Json, Setting, support::Map};

use super::{Ours, Socket, json};
use crate::ast::mptcp::{Endpoint, Manage};
use crate::stack::{Setup, StackError};

/// The configuration of new connections.
pub(super) struct PathSettings {
    /// Options of the connection.
    options: Map<String, Json>,
    endpoints: Vec<Endpoint>,
    /// Most subflows beside the first one, and most announced addresses: the kernel's default.
    limits: (u32, u32),
}

impl PathSettings {
    pub(super) fn new(setup: &Setup) -> Self {
        let mut options = Map::new();
        // As Linux does, whose DATA_ACKs are short only until the other end has sent data.
        options.insert("data_numbers".to_owned(), "long".into());
        options.insert("data_acks".to_owned(), "long".into());
        for (key, value) in &setup.mptcp {
            options.insert(key.clone(), json(value));
        }
        Self {
            options,
            endpoints: Vec::new(),
            limits: (2, 0),
        }
    }

    pub(super) fn set(&mut self, key: &str, value: Json) {
        self.options.insert(key.to_owned(), value);
    }
}

impl Ours {
    pub(super) fn multipath_options(
        &self,
        socket: &Socket,
    ) -> Result<Option<Arc<MptcpOptions>>, String> {
        if !socket.multipath {
            return Ok(None);
        }
        let m = &self.multipath;
        let options = Json::Object(m.options.clone());
        let mut options = gargalo_mptcp::Options::read(&options, &mut Files::default())
            .map_err(|e| format!("an option of our Multipath TCP is not valid: {e}"))?;
        let (subflows, accepted) = m.limits;
        options.max_subflows = (1 + subflows).min(64);
        let manager = if self.setup.manages {
            "full-mesh"
        } else {
            "default"
        };
        let manager = path_manager::Registered::new(manager, Params::default())?;
        let of = |f: fn(&Endpoint) -> bool| {
            let endpoints = m.endpoints.iter().filter(move |e| f(e));
            endpoints.map(|e| e.address)
        };
        let config = gargalo_mptcp::Config {
            options,
            path_manager: Arc::new(manager),
            max_remote_addresses: 1 + accepted as usize,
            ..gargalo_mptcp::Config::default()
        };
        let first = self.setup.local();
        Ok(Some(Arc::new(MptcpOptions {
            config,
            addresses: std::iter::once(first).chain(of(|_| true)).collect(),
            backups: of(|e| e.backup).collect(),
            ..MptcpOptions::default()
        })))
    }

    fn multipath_connections(&self) -> Vec<ConnectionId> {
        let all = self.by_connection.keys();
        all.filter(|id| self.host.multipath(**id).is_some())
            .copied()
            .collect()
    }

    pub(super) fn manage_paths(&mut self, manage: &Manage) -> Result<(), StackError> {
        let now = self.now;
        match manage {
            Manage::Limits(subflows, accepted) => self.multipath.limits = (*subflows, *accepted),
            Manage::Flush => {
                let all: Vec<IpAddr> = self
                    .multipath
                    .endpoints
                    .drain(..)
                    .map(|e| e.address)
                    .collect();
                all.into_iter().for_each(|a| self.remove(a));
            }
            Manage::Add(e) => {
                self.host.add_address(now, e.address);
                let next = self.multipath.endpoints.iter().filter_map(|e| e.id).max();
                let next = next.unwrap_or(0).saturating_add(1);
                if e.id.is_some_and(|id| id != next) {
                    return Err(StackError::Unsupported(format!(
                        "our stack numbers addresses from 1: give the endpoint {} id {next}",
                        e.address
                    )));
                }
                self.multipath.endpoints.push(Endpoint {
                    id: Some(next),
                    ..*e
                });
                for id in self.multipath_connections() {
                    if let Some(c) = self.host.multipath_mut(id) {
                        c.add_address(now, e.address, e.backup);
                    }
                }
            }
            Manage::Delete(id) => {
                let at = self.endpoint(*id)?;
                let gone = self.multipath.endpoints.remove(at);
                self.remove(gone.address);
            }
            Manage::Change(id, backup) => {
                let at = self.endpoint(*id)?;
                let Some(e) = self.multipath.endpoints.get_mut(at) else {
                    return Ok(());
                };
                e.backup = *backup;
                let address = e.address;
                for id in self.multipath_connections() {
                    let Some(c) = self.host.multipath_mut(id) else {
                        continue;
                    };
                    let there = c
                        .subflows(now)
                        .filter(|s| s.addresses.local.ip() == address);
                    let there: Vec<u32> = there.map(|s| s.id).collect();
                    for subflow in there {
                        c.set_backup(now, subflow, *backup);
                    }
                }
            }
        }
        Ok(())
    }

    fn endpoint(&self, id: u8) -> Result<usize, StackError> {
        let mut all = self.multipath.endpoints.iter();
        all.position(|e| e.id == Some(id)).ok_or_else(|| {
            StackError::Unsupported(format!("the path manager has no endpoint with id {id}"))
        })
    }

    fn remove(&mut self, address: IpAddr) {
        let now = self.now;
        for id in self.multipath_connections() {
            if let Some(c) = self.host.multipath_mut(id) {
                c.remove_address(now, address);
            }
        }
    }
}
