//! The kernel's MPTCP path manager, configured as `ip mptcp` does (generic netlink family `mptcp_pm`,
//! Documentation/netlink/specs/mptcp_pm.yaml in Linux).

use std::io;
use std::net::Ipv4Addr;

use gargalo_device::channel::Channel;
use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK, NetlinkDeserializable,
    NetlinkSerializable, ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::multipath::{KernelEndpoint, KernelMptcp};
use crate::{Error, Result};

const NAME: &str = "mptcp_pm";
const VERSION: u8 = 1;
const CMD_ADD_ADDR: u8 = 1;
const CMD_SET_LIMITS: u8 = 5;
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ADDR_ATTR_FAMILY: u16 = 1;
const ADDR_ATTR_ADDR4: u16 = 3;
const ADDR_ATTR_FLAGS: u16 = 6;
const FLAG_SIGNAL: u32 = 1;
const FLAG_SUBFLOW: u32 = 2;
const FLAG_BACKUP: u32 = 4;
const FLAG_FULLMESH: u32 = 8;

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

    /// Sets limits and adds addresses; `interface` returns the IPv4 address of an interface by its number.
    ///
    /// # Errors
    /// When the kernel refuses, or there is no such interface.
    pub fn configure(
        &mut self,
        config: &KernelMptcp,
        interface: impl Fn(u32) -> Option<Ipv4Addr>,
    ) -> Result<()> {
        let limits = vec![
            number(ATTR_RCV_ADD_ADDRS, config.accepted),
            number(ATTR_SUBFLOWS, config.subflows),
        ];
        self.tell("setting the limits of MPTCP", CMD_SET_LIMITS, limits)?;
        for e in &config.endpoints {
            let address = interface(e.interface).ok_or_else(|| {
                Error::Unsupported(format!(
                    "an MPTCP endpoint is on interface {}, which its host does not have",
                    e.interface
                ))
            })?;
            let what = format!("telling MPTCP of the address {address}");
            self.tell(
                &what,
                CMD_ADD_ADDR,
                vec![nested(ATTR_ADDR, &attributes(e, address))],
            )?;
        }
        Ok(())
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

fn attributes(e: &KernelEndpoint, address: Ipv4Addr) -> Vec<DefaultNla> {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let flags = flag(e.signal, FLAG_SIGNAL)
        | flag(e.subflow, FLAG_SUBFLOW)
        | flag(e.backup, FLAG_BACKUP)
        | flag(e.fullmesh, FLAG_FULLMESH);
    let family = nix::libc::AF_INET as u16;
    vec![
        DefaultNla::new(ADDR_ATTR_FAMILY, family.to_ne_bytes().to_vec()),
        DefaultNla::new(ADDR_ATTR_ADDR4, address.octets().to_vec()),
        // No interface is given: subflows would not receive packets that arrive at another one.
        number(ADDR_ATTR_FLAGS, flags),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::Nla;

    #[test]
    fn an_endpoint_has_the_attributes_of_the_specification() {
        let e = KernelEndpoint {
            interface: 1,
            signal: true,
            backup: true,
            ..KernelEndpoint::default()
        };
        let all = nested(ATTR_ADDR, &attributes(&e, [10, 77, 0, 2].into()));
        assert_eq!(all.kind(), 0x8001);
        let mut bytes = vec![0; all.value_len()];
        all.emit_value(&mut bytes);
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
        assert_eq!(bytes.len(), 8 + 8 + 8);
        assert_eq!(bytes[12..16], [10, 77, 0, 2]);
        assert_eq!(word(20), FLAG_SIGNAL | FLAG_BACKUP);
    }
}
