//! Interfaces, addresses, routes and rules of the network namespace of the calling thread (rtnetlink(7)).

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::RawFd;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::channel::Channel;
use crate::{Error, Result};

/// A connection to the kernel's routing tables, in the namespace of the thread that opened it.
pub struct Netlink(Channel);

/// A route to be added.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// The outgoing interface.
    pub index: u32,
    /// Address or network to which the route leads.
    pub destination: IpAddr,
    /// Prefix length of the destination; 0: the default route of its family.
    pub prefix: u8,
    /// Source address of packets of programs that did not choose one.
    pub source: Option<IpAddr>,
    /// Congestion control of connections over the route.
    pub congestion: Option<&'a str>,
    /// Routing table; `None`: the main one.
    pub table: Option<u32>,
}

impl Netlink {
    /// Opens it for the namespace of the calling thread.
    ///
    /// # Errors
    /// When the system has no netlink.
    pub fn open() -> Result<Self> {
        Channel::open(NETLINK_ROUTE)
            .map(Self)
            .map_err(|e| Error::system("opening a netlink socket", e))
    }

    /// Sets an interface up, with a given MTU in bytes.
    ///
    /// # Errors
    /// When there is no such interface or the user lacks the privilege.
    pub fn link_up(&mut self, index: u32, mtu: u32) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes.push(LinkAttribute::Mtu(mtu));
        self.ask(
            "switching an interface on",
            RouteNetlinkMessage::SetLink(link),
            0,
        )
    }

    /// Sets the loopback interface of the namespace up.
    ///
    /// # Errors
    /// When the user lacks the privilege.
    pub fn loopback_up(&mut self) -> Result<()> {
        self.link_up(1, 65_536)
    }

    /// Disables address resolution of an interface: everything goes to the other end.
    ///
    /// # Errors
    /// When there is no such interface or the user lacks the privilege.
    pub fn no_arp(&mut self, index: u32) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Noarp;
        link.header.change_mask = LinkFlags::Noarp;
        let what = "switching address resolution off";
        self.ask(what, RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Creates a pair of connected Ethernet devices; the second one appears as `peer`, with a hardware address, in the
    /// namespace that `peer_namespace` refers to.
    ///
    /// # Errors
    /// When the kernel has no veth, the name is in use, or the user lacks the privilege.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        address: [u8; 6],
        peer_namespace: RawFd,
    ) -> Result<()> {
        let mut other = LinkMessage::default();
        other.attributes = vec![
            LinkAttribute::IfName(peer.to_owned()),
            LinkAttribute::Address(address.to_vec()),
            LinkAttribute::NetNsFd(peer_namespace),
        ];
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
            ]),
        ];
        let what = format!("making the pair of devices {name} and {peer}");
        self.ask(
            &what,
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Gives an interface an address. IPv6 addresses are usable at once (no duplicate detection).
    ///
    /// # Errors
    /// When there is no such interface or the user lacks the privilege.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.index = index;
        message.header.prefix_len = prefix;
        message.attributes.push(AddressAttribute::Address(address));
        if address.is_ipv4() {
            message.attributes.push(AddressAttribute::Local(address));
        } else {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        let what = format!("giving an interface the address {address}/{prefix}");
        self.ask(
            &what,
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Adds a route over an interface to `destination`/`prefix` (length 0: the default route of its family), with
    /// source address `source` unless a program chose one.
    ///
    /// # Errors
    /// When there is no such interface or the user lacks the privilege.
    pub fn add_route(
        &mut self,
        index: u32,
        destination: IpAddr,
        prefix: u8,
        source: Option<IpAddr>,
    ) -> Result<()> {
        self.add(&Route {
            index,
            destination,
            prefix,
            source,
            congestion: None,
            table: None,
        })
    }

    /// Adds a route.
    ///
    /// # Errors
    /// When there is no such interface or congestion control, or the user lacks the privilege.
    pub fn add(&mut self, route: &Route<'_>) -> Result<()> {
        let (destination, prefix) = (route.destination, route.prefix);
        let mut message = RouteMessage::default();
        message.header.address_family = family(destination);
        message.header.destination_prefix_length = prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = if destination.is_ipv4() {
            RouteScope::Link
        } else {
            RouteScope::Universe
        };
        message.header.kind = RouteType::Unicast;
        let attributes = &mut message.attributes;
        if prefix > 0 {
            attributes.push(RouteAttribute::Destination(destination.into()));
        }
        if let Some(source) = route.source {
            attributes.push(RouteAttribute::PrefSource(source.into()));
        }
        if let Some(name) = route.congestion {
            let metric = RouteMetric::CcAlgo(name.to_owned());
            attributes.push(RouteAttribute::Metrics(vec![metric]));
        }
        attributes.push(RouteAttribute::Oif(route.index));
        if let Some(table) = route.table {
            message.header.table = RouteHeader::RT_TABLE_UNSPEC;
            attributes.push(RouteAttribute::Table(table));
        }
        let what = format!("adding a route to {destination}/{prefix}");
        self.ask(
            &what,
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Routes packets from an address by a table of their own (`ip rule add from`).
    ///
    /// # Errors
    /// When the kernel has only one table, or the user lacks the privilege.
    pub fn add_rule(&mut self, source: IpAddr, table: u32) -> Result<()> {
        let mut message = RuleMessage::default();
        message.header.family = family(source);
        message.header.src_len = if source.is_ipv4() { 32 } else { 128 };
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Source(source),
            RuleAttribute::Table(table),
            RuleAttribute::Priority(table),
        ];
        let what = format!("routing packets from {source} by a table of their own");
        self.ask(
            &what,
            RouteNetlinkMessage::NewRule(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Sends a request and waits for its acknowledgement.
    fn ask(&mut self, what: &str, request: RouteNetlinkMessage, flags: u16) -> Result<()> {
        let asked = self.0.ask(request, NLM_F_ACK | flags);
        asked.map(drop).map_err(|e| Error::system(what, e))
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// The unspecified address of a family, as destination of a default route.
pub fn any(of: IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => IpAddr::from([0, 0, 0, 0]),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
