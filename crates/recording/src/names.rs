//! How hosts and flows are called: by their addresses, or by numbers that say nothing of them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Names, the same for the same host in all flows.
#[derive(Debug)]
pub struct Names {
    anonymous: bool,
    hosts: HashMap<String, usize>,
    ports: HashMap<SocketAddr, usize>,
    /// How many ports of a host have a number.
    used: HashMap<IpAddr, usize>,
}

/// How a flow and its ends are called.
#[derive(Debug, PartialEq, Eq)]
pub struct Called {
    /// The flow.
    pub label: String,
    /// The host that sends its data.
    pub from: String,
    /// The other.
    pub to: String,
}

impl Names {
    /// With `anonymous`, hosts and ports have numbers in the order in which they are named.
    pub fn new(anonymous: bool) -> Self {
        Self {
            anonymous,
            hosts: HashMap::new(),
            ports: HashMap::new(),
            used: HashMap::new(),
        }
    }

    /// A flow between two ports.
    pub fn of(&mut self, from: SocketAddr, to: SocketAddr) -> Called {
        let (own, other) = (
            self.host(&from.ip().to_string()),
            self.host(&to.ip().to_string()),
        );
        let label = match self.anonymous {
            false => format!("{from} > {to}"),
            true => format!("{own}:{} > {other}:{}", self.port(from), self.port(to)),
        };
        Called {
            label,
            from: own,
            to: other,
        }
    }

    /// A flow that a log has named.
    pub fn of_log(&mut self, label: &str, from: &str, to: &str) -> Called {
        let (from, to) = (self.host(from), self.host(to));
        let label = match self.anonymous {
            false => label.to_owned(),
            true => format!("{from} > {to}"),
        };
        Called { label, from, to }
    }

    fn host(&mut self, name: &str) -> String {
        if !self.anonymous || name.is_empty() {
            return name.to_owned();
        }
        let next = self.hosts.len() + 1;
        format!("host{}", self.hosts.entry(name.to_owned()).or_insert(next))
    }

    fn port(&mut self, end: SocketAddr) -> usize {
        *self.ports.entry(end).or_insert_with(|| {
            let used = self.used.entry(end.ip()).or_default();
            *used += 1;
            *used
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_flow_is_named_from_its_sender() {
        let mut names = Names::new(false);
        let called = names.of(end("[2001:db8::2]:80"), end("[2001:db8::1]:5"));
        assert_eq!(called.label, "[2001:db8::2]:80 > [2001:db8::1]:5");
        assert_eq!(
            (called.from.as_str(), called.to.as_str()),
            ("2001:db8::2", "2001:db8::1")
        );
    }

    #[test]
    fn numbers_are_the_same_for_the_same_host_and_port() {
        let mut names = Names::new(true);
        let of = |names: &mut Names, from, to| names.of(end(from), end(to)).label;
        assert_eq!(
            of(&mut names, "10.9.8.7:443", "10.1.1.1:5000"),
            "host1:1 > host2:1"
        );
        assert_eq!(
            of(&mut names, "10.1.1.1:5001", "10.9.8.7:443"),
            "host2:2 > host1:1"
        );
        assert_eq!(
            names.of_log("secret", "10.1.1.1", "example.org").label,
            "host2 > host3"
        );
        assert_eq!(names.of_log("secret", "", "example.org").from, "");
    }
}
