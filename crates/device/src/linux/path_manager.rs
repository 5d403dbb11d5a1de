//! The kernel's MPTCP path manager, configured as `ip mptcp` does (generic netlink family `mptcp_pm`,
//! Documentation/netlink/specs/mptcp_pm.yaml in Linux).

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK, NetlinkDeserializable,
    NetlinkSerializable, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::channel::Channel;
use crate::{Error, Result};

const NAME: &str = "mptcp_pm";
const VERSION: u8 = 1;
const CMD_ADD_ADDR: u8 = 1;
const CMD_DEL_ADDR: u8 = 2;
const CMD_FLUSH_ADDRS: u8 = 4;
const CMD_SET_LIMITS: u8 = 5;
const CMD_SET_FLAGS: u8 = 7;
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ADDR_ATTR_FAMILY: u16 = 1;
const ADDR_ATTR_ID: u16 = 2;
const ADDR_ATTR_ADDR4: u16 = 3;
const ADDR_ATTR_ADDR6: u16 = 4;
const ADDR_ATTR_FLAGS: u16 = 6;
const FLAG_SIGNAL: u32 = 1;
const FLAG_SUBFLOW: u32 = 2;
const FLAG_BACKUP: u32 = 4;
const FLAG_FULLMESH: u32 = 8;

/// An address that the kernel's path manager knows (`ip mptcp endpoint add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The IP address of the endpoint.
    pub address: IpAddr,
    /// Its identifier; `None`: the kernel chooses.
    pub id: Option<u8>,
    /// The address is announced to the peer (ADD_ADDR).
    pub signal: bool,
    /// Subflows are opened from it to the peer's first address.
    pub subflow: bool,
    /// Its subflows are backups.
    pub backup: bool,
    /// Subflows are opened from it to every address of the peer; needs `subflow`.
    pub fullmesh: bool,
}

/// A connection to the path manager of a network namespace.
pub struct PathManager {
    channel: Channel,
    family: u16,
}

/// A request: a command with attributes.
#[derive(Clone, Debug)]
struct Request {
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl GenlFamily for Request {
    fn family_name() -> &'static str {
        NAME
    }
    fn command(&self) -> u8 {
        self.command
    }
    fn version(&self) -> u8 {
        VERSION
    }
}

impl Emitable for Request {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }
    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Request {
    fn parse_with_param(_: &[u8], header: GenlHeader) -> std::result::Result<Self, DecodeError> {
        // No response to these requests has content.
        Ok(Self {
            command: header.cmd,
            attributes: Vec::new(),
        })
    }
}

fn number(kind: u16, value: u32) -> DefaultNla {
    DefaultNla::new(kind, value.to_ne_bytes().to_vec())
}

fn nested(kind: u16, inside: &[DefaultNla]) -> DefaultNla {
    let mut bytes = vec![0; inside.buffer_len()];
    inside.emit(&mut bytes);
    DefaultNla::new(kind | NLA_F_NESTED, bytes)
}

impl PathManager {
    /// Opens it for the namespace of the calling thread.
    ///
    /// # Errors
    /// When the kernel has no MPTCP.
    pub fn open() -> Result<Self> {
        let failed = |e| Error::system("opening a generic netlink socket", e);
        let mut this = Self {
            channel: Channel::open(NETLINK_GENERIC).map_err(failed)?,
            family: 0,
        };
        let ask = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(NAME.to_owned())],
        });
        let answer = this.ask("looking for the kernel's MPTCP path manager", ask, 0)?;
        let nlas = answer.map(|m| m.payload.nlas).unwrap_or_default();
        let id = nlas.into_iter().find_map(|nla| match nla {
            GenlCtrlAttrs::FamilyId(id) => Some(id),
            _ => None,
        });
        this.family = id.ok_or_else(|| {
            let reason = io::Error::other("it has no number");
            Error::system("looking for the kernel's MPTCP path manager", reason)
        })?;
        Ok(this)
    }

    /// Sets the most subflows beside the first one, and the most announced addresses to connect to.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_limits(&mut self, subflows: u32, accepted: u32) -> Result<()> {
        let limits = vec![
            number(ATTR_RCV_ADD_ADDRS, accepted),
            number(ATTR_SUBFLOWS, subflows),
        ];
        self.tell("setting the limits of MPTCP", CMD_SET_LIMITS, limits)
    }

    /// Adds an address.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&mut self, e: &Endpoint) -> Result<()> {
        let what = format!("telling MPTCP of the address {}", e.address);
        self.tell_of(&what, CMD_ADD_ADDR, e)
    }

    /// Removes an address, which needs its identifier.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn delete(&mut self, e: &Endpoint) -> Result<()> {
        let what = format!("removing the address {} from MPTCP", e.address);
        self.tell_of(&what, CMD_DEL_ADDR, e)
    }

    /// Makes the subflows of an address backups, or regular ones again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn change(&mut self, e: &Endpoint) -> Result<()> {
        let what = format!("changing the address {} of MPTCP", e.address);
        self.tell_of(&what, CMD_SET_FLAGS, e)
    }

    /// Removes all addresses.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn flush(&mut self) -> Result<()> {
        let what = "removing the addresses of MPTCP";
        self.tell(what, CMD_FLUSH_ADDRS, Vec::new())
    }

    fn tell_of(&mut self, what: &str, command: u8, e: &Endpoint) -> Result<()> {
        self.tell(what, command, vec![nested(ATTR_ADDR, &attributes(e))])
    }

    fn tell(&mut self, what: &str, command: u8, attributes: Vec<DefaultNla>) -> Result<()> {
        let mut request = GenlMessage::from_payload(Request {
            command,
            attributes,
        });
        request.set_resolved_family_id(self.family);
        self.ask(what, request, NLM_F_ACK).map(drop)
    }

    /// Sends a request and waits for its response, or its acknowledgement.
    fn ask<T>(
        &mut self,
        what: &str,
        request: GenlMessage<T>,
        flags: u16,
    ) -> Result<Option<GenlMessage<T>>>
    where
        GenlMessage<T>: NetlinkSerializable + NetlinkDeserializable<Error = DecodeError>,
        T: std::fmt::Debug,
    {
        self.channel.ask(request, flags).map_err(|e| {
            Error::with_remedy(
                what,
                e,
                "the kernel needs CONFIG_MPTCP, and its sysctl net.mptcp.pm_type must be 0",
            )
        })
    }
}

fn attributes(e: &Endpoint) -> Vec<DefaultNla> {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let flags = flag(e.signal, FLAG_SIGNAL)
        | flag(e.subflow, FLAG_SUBFLOW)
        | flag(e.backup, FLAG_BACKUP)
        | flag(e.fullmesh, FLAG_FULLMESH);
    let (family, address) = match e.address {
        IpAddr::V4(a) => (
            nix::libc::AF_INET,
            DefaultNla::new(ADDR_ATTR_ADDR4, a.octets().to_vec()),
        ),
        IpAddr::V6(a) => (
            nix::libc::AF_INET6,
            DefaultNla::new(ADDR_ATTR_ADDR6, a.octets().to_vec()),
        ),
    };
    let family = (family as u16).to_ne_bytes().to_vec();
    let mut list = vec![DefaultNla::new(ADDR_ATTR_FAMILY, family), address];
    list.extend(e.id.map(|id| DefaultNla::new(ADDR_ATTR_ID, vec![id])));
    // No interface is given: subflows would not receive packets that arrive at another one.
    list.push(number(ADDR_ATTR_FLAGS, flags));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::Nla;

    #[test]
    fn an_endpoint_has_the_attributes_of_the_specification() {
        let mut e = Endpoint {
            address: [10, 77, 0, 2].into(),
            id: None,
            signal: true,
            subflow: false,
            backup: true,
            fullmesh: false,
        };
        let bytes = |e: &Endpoint| {
            let all = nested(ATTR_ADDR, &attributes(e));
            assert_eq!(all.kind(), 0x8001);
            let mut bytes = vec![0; all.value_len()];
            all.emit_value(&mut bytes);
            bytes
        };
        let plain = bytes(&e);
        let word = |at: usize| u32::from_ne_bytes(*plain[at..].first_chunk().unwrap());
        assert_eq!(plain.len(), 8 + 8 + 8);
        assert_eq!(plain[12..16], [10, 77, 0, 2]);
        assert_eq!(word(20), FLAG_SIGNAL | FLAG_BACKUP);
        e.id = Some(7);
        assert_eq!(bytes(&e)[16..21], [5, 0, 2, 0, 7]);
    }
}
