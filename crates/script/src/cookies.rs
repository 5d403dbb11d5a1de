//! Fast Open cookies of the stack, which scripts name by values of their own.

use crate::ast::{Body, Packet, TcpOption};

/// The cookies of a script: (script, live). A cookie that the script gave to the stack is itself.
#[derive(Debug, Default)]
pub(crate) struct Cookies(Vec<(Vec<u8>, Vec<u8>)>);

impl Cookies {
    /// A packet with the stack's cookies instead of the script's, for the stack.
    pub(crate) fn live(&mut self, packet: &Packet) -> Packet {
        let mut packet = packet.clone();
        for cookie in cookies(&mut packet) {
            match self.0.iter().find(|(script, _)| script == cookie) {
                Some((_, live)) => live.clone_into(cookie),
                None => self.0.push((cookie.clone(), cookie.clone())),
            }
        }
        packet
    }

    /// Learns the cookie of the stack that an expected packet names, and writes it as the script does.
    pub(crate) fn name(&mut self, expected: &Packet, came: &mut Packet) {
        let mut expected = expected.clone();
        let stated = cookies(&mut expected).next().cloned().unwrap_or_default();
        for cookie in cookies(came) {
            let known = self.0.iter().find(|(_, live)| live == cookie);
            let is_free = !self.0.iter().any(|(script, _)| *script == stated);
            match known {
                Some((script, _)) => script.clone_into(cookie),
                None if is_free && stated.len() == cookie.len() => {
                    self.0.push((stated.clone(), std::mem::take(cookie)));
                    stated.clone_into(cookie);
                }
                None => {}
            }
        }
    }
}

/// The cookies of a packet; requests have none.
fn cookies(packet: &mut Packet) -> impl Iterator<Item = &mut Vec<u8>> {
    let options = match &mut packet.body {
        Body::Tcp(segment) => segment.options.as_mut(),
        Body::Icmp(_) => None,
    };
    options.into_iter().flatten().filter_map(|o| match o {
        TcpOption::FastOpen(c) | TcpOption::FastOpenExperimental(c) if !c.is_empty() => Some(c),
        _ => None,
    })
}
