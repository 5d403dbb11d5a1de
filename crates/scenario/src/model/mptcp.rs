//! Multipath TCP as written.

use gargalo_cc::chosen::Chosen;
use gargalo_mptcp::path_manager::PathManagers;
use gargalo_mptcp::scheduler::Schedulers;
use gargalo_settings::{Error, names, settings};
use gargalo_units::Duration;

use super::Tcp;

settings! {
    /// Multipath TCP (RFC 8684). Each link of a host is an interface with an address of its own; packets
    /// leave by the interface of their source address. Beside what follows it takes every option of TCP, for
    /// its subflows; `receive_buffer` and `send_buffer` are those of the whole connection.
    pub struct Mptcp as "Mptcp", checked by Mptcp::bounded {
        /// Which subflow carries the next segment: a name, or a table of one name and its parameters, like
        /// `{ round-robin = { segments = 4 } }`.
        scheduler: Chosen<Schedulers> = Chosen::default();
        /// Which subflows there are. Default: `single-mesh`, or `full-mesh` if one of the hosts has a single
        /// link.
        path_manager: Option<Chosen<PathManagers>> = None;
        /// Names of the links whose addresses take part from the beginning. Default: all links of the two
        /// hosts.
        links: Option<Vec<String>> = None;
        /// Names of links whose subflows are backups: they carry data only when no other can.
        backup: Vec<String> = Vec::new();
        /// Routers that the client may send packets by, for the path manager `binder`.
        gateways: Vec<String> = Vec::new();
        /// Addresses that come and go, as in a hand-over.
        changes: Vec<AddressChange> = Vec::new();
    } with {
        /// Of the connection.
        options: gargalo_mptcp::Options;
        /// Of every subflow.
        tcp: Tcp;
    }
}

settings! {
    /// A host gets or loses the address of one of its links.
    pub struct AddressChange as "AddressChange" {
        /// So long after the flow's start.
        after: Duration;
        /// Which of the flow's hosts.
        host: EndName = EndName::From;
        /// Name of the link whose address comes.
        add: Option<String> = None;
        /// Name of the link whose address goes: nothing arrives there any more.
        remove: Option<String> = None;
    }
}

names! {
    /// One of a flow's hosts.
    pub enum EndName {
        /// That the flow comes from.
        From = "from",
        /// That it goes to.
        To = "to",
    }
}

impl Mptcp {
    /// Refuses lists that nobody writes by hand or needs.
    fn bounded(&self) -> Result<(), Error> {
        let links = self.links.as_ref();
        let lists = [
            ("links", links.map_or(1, Vec::len), 1, 64),
            ("backup", self.backup.len(), 0, 64),
            ("gateways", self.gateways.len(), 0, 64),
            ("changes", self.changes.len(), 0, 1000),
        ];
        match lists
            .iter()
            .find(|(_, n, least, most)| n < least || n > most)
        {
            None => Ok(()),
            Some((key, n, least, most)) => {
                let message = format!("{key} has {n} items");
                Err(Error::of(key, message).help(format!("give {least} to {most}")))
            }
        }
    }
}
