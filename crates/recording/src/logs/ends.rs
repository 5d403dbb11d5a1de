//! Logs of both ends of one connection are one flow, as captures at both ends are: what its sender counted and
//! measured, and when its data arrived.

use std::collections::HashMap;

use gargalo_trace::schema::FlowSample;
use gargalo_units::{Duration, Instant, Rate};

use super::Logged;

/// Shorter names are not those of a connection alone: numbers, or words.
const LEAST_NAME: usize = 8;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that opened it.
    Client,
    /// The other.
    Server,
}

/// By what an end is found that is of the same connection.
#[derive(Clone, Debug)]
pub struct Twin {
    /// Names of the connection that its other end has, too, such as the first connection ID.
    pub names: Vec<String>,
    /// Which end this is.
    pub side: Side,
    /// When the first packet was sent.
    pub first_sent: Option<Instant>,
    /// When the first packet was received.
    pub first_received: Option<Instant>,
}

impl Twin {
    fn names(&self) -> impl Iterator<Item = String> + '_ {
        let names = self.names.iter().map(|n| n.to_ascii_lowercase());
        names.filter(|n| n.len() >= LEAST_NAME)
    }
}

/// Brings together the two ends of each connection; what has no other end, or more than one, stays as it is.
pub fn join(flows: Vec<Logged>) -> Vec<Logged> {
    // Of each name the flows of clients and of servers that have it.
    let mut named: HashMap<String, [Vec<usize>; 2]> = HashMap::new();
    for (i, flow) in flows.iter().enumerate() {
        if let Some(twin) = &flow.twin {
            for name in twin.names() {
                let of_side = &mut named.entry(name).or_default()[twin.side as usize];
                if of_side.last() != Some(&i) {
                    of_side.push(i);
                }
            }
        }
    }
    let mut other: HashMap<usize, usize> = HashMap::new();
    let pairs = named.into_values().filter_map(|sides| match &sides {
        [clients, servers] if clients.len() == 1 && servers.len() == 1 => {
            Some((clients[0], servers[0]))
        }
        _ => None,
    });
    for (client, server) in pairs {
        let places = [client, server].map(|i| flows[i].facts.captured_at);
        let are_two = matches!(
            places,
            [Some("sender"), Some("receiver")] | [Some("receiver"), Some("sender")]
        );
        if are_two {
            other.insert(client, server);
            other.insert(server, client);
        }
    }
    let mut flows: Vec<Option<Logged>> = flows.into_iter().map(Some).collect();
    let mut found = Vec::with_capacity(flows.len());
    for i in 0..flows.len() {
        let Some(one) = flows[i].take() else {
            continue;
        };
        let two = other.get(&i).and_then(|j| flows[*j].take());
        found.push(match two {
            None => one,
            Some(two) if one.facts.captured_at == Some("sender") => joined(one, two),
            Some(two) => joined(two, one),
        });
    }
    found
}

/// By how many nanoseconds the clock of the second end is ahead, by the first packets of both; `None` if that is within
/// what the path explains, or not known.
fn ahead_ns(one: &Twin, two: &Twin) -> Option<i128> {
    let at = |time: Option<Instant>| Some(i128::from(time?.as_nanos()));
    let there = at(two.first_received)? - at(one.first_sent)?;
    let back = at(one.first_received)? - at(two.first_sent)?;
    // Both ways are taken as equally long (RFC 5905).
    let (ahead, round_trip) = ((there - back) / 2, there + back);
    (round_trip >= 0 && ahead.abs() > round_trip / 2).then_some(ahead)
}

/// What both ends tell.
fn joined(mut sender: Logged, mut receiver: Logged) -> Logged {
    let ahead_ns = match (&sender.twin, &receiver.twin) {
        (Some(one), Some(two)) => ahead_ns(one, two),
        _ => None,
    };
    let corrected = |time: Instant| match ahead_ns {
        None => time,
        Some(ahead) => {
            let ns = (i128::from(time.as_nanos()) - ahead).max(0);
            Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        }
    };
    let far = &receiver.row;
    let (begun, ended) = (corrected(far.start), corrected(far.end));
    let first_byte = far.first_byte.map(|t| corrected(far.start + t));
    let row = &mut sender.row;
    row.handshake = row.handshake.or(far.handshake);
    row.start = row.start.min(begun);
    row.first_byte = first_byte.map(|t| t.saturating_since(row.start));
    row.completion = far.completion.map(|_| ended.saturating_since(row.start));
    row.end = match row.completion {
        Some(_) => ended,
        None => row.end.max(ended),
    };
    let active = row.end.saturating_since(row.start);
    let rate = |bytes| (active > Duration::ZERO).then(|| Rate::from_transfer(bytes, active));
    if far.delivered.is_some() {
        (row.delivered, row.measured) = (far.delivered, far.measured);
    }
    row.goodput = row.delivered.and_then(rate);
    let sent = row.counters.sent_bytes.get();
    row.throughput = sent.map(gargalo_units::Bytes::new).and_then(rate);
    row.failure = row.failure.or(far.failure);
    receiver
        .samples
        .iter_mut()
        .for_each(|s| s.time = corrected(s.time));
    receive(&mut sender.samples, &receiver.samples);
    let facts = &mut sender.facts;
    facts.captured_at = Some("both");
    facts.clock_offset_s = ahead_ns.map(|ns| ns as f64 / 1e9);
    facts.reset |= receiver.facts.reset;
    facts.reverse_bytes = facts.reverse_bytes.max(receiver.facts.reverse_bytes);
    for side in [" client", " server"] {
        if let Some(name) = sender.label.strip_suffix(side) {
            sender.label = name.to_owned();
        }
    }
    sender.twin = None;
    sender
}

/// Sets what had been received at the times of a sender's samples, by those of the receiver.
fn receive(samples: &mut [FlowSample<'static>], received: &[FlowSample<'static>]) {
    let mut latest = None;
    let mut later = received.iter().peekable();
    for sample in samples {
        while let Some(next) = later.next_if(|r| r.time <= sample.time) {
            latest = next.received.or(latest);
        }
        sample.received = latest;
    }
}

#[cfg(test)]
mod tests {
    use gargalo_units::Bytes;

    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// An end of a transfer over 20 ms each way: the server has sent from 40 ms on. The clock of the client is ahead.
    fn end(side: Side, name: &str, ahead_ms: u64) -> Logged {
        let is_client = side == Side::Client;
        let at = |n: u64| ms(n + if is_client { ahead_ms } else { 0 });
        let mut flow = Logged {
            label: format!("{name} {}", if is_client { "client" } else { "server" }),
            twin: Some(Twin {
                names: vec!["00".to_owned(), name.to_owned()],
                side,
                first_sent: Some(at(if is_client { 1_000 } else { 1_025 })),
                first_received: Some(at(if is_client { 1_045 } else { 1_020 })),
            }),
            ..Logged::default()
        };
        flow.facts.captured_at = Some(if is_client { "receiver" } else { "sender" });
        flow.row.start = at(if is_client { 1_000 } else { 1_020 });
        flow.row.end = at(if is_client { 2_000 } else { 2_020 });
        flow.row.completion = Some(flow.row.end - flow.row.start);
        flow.row.delivered = Some(Bytes::new(if is_client { 1_000 } else { 900 }));
        if is_client {
            flow.row.first_byte = Some(Duration::from_millis(60));
        }
        let sample = |n: u64, bytes: u64| FlowSample {
            time: at(n),
            received: Some(Bytes::new(bytes)),
            ..FlowSample::default()
        };
        flow.samples = vec![sample(1_100, 10), sample(1_200, 20)];
        flow
    }

    fn joined_with(ahead_ms: u64) -> Logged {
        let flows = vec![
            end(Side::Server, "0123456789abcdef", 0),
            end(Side::Client, "0123456789ABCDEF", ahead_ms),
        ];
        let mut found = join(flows);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn two_ends_are_a_flow_from_the_clients_first_packet_to_the_last_byte_that_arrived() {
        let flow = joined_with(0);
        assert_eq!((flow.row.start, flow.row.end), (ms(1_000), ms(2_000)));
        assert_eq!(flow.row.first_byte, Some(Duration::from_millis(60)));
        assert_eq!(flow.row.delivered, Some(Bytes::new(1_000)));
        assert_eq!(flow.row.goodput, Some(Rate::from_bps(8_000)));
        assert_eq!(flow.facts.captured_at, Some("both"));
        assert_eq!(flow.facts.clock_offset_s, None);
        assert_eq!(flow.label, "0123456789abcdef");
    }

    #[test]
    fn times_of_a_clock_that_is_ahead_are_those_of_the_senders() {
        let flow = joined_with(5_000);
        assert_eq!((flow.row.start, flow.row.end), (ms(1_000), ms(2_000)));
        assert_eq!(flow.row.first_byte, Some(Duration::from_millis(60)));
        assert_eq!(flow.facts.clock_offset_s, Some(5.0));
        let received: Vec<_> = flow.samples.iter().map(|s| s.received).collect();
        assert_eq!(received, [10, 20].map(|n| Some(Bytes::new(n))));
    }

    #[test]
    fn ends_of_other_connections_and_third_ones_stay_alone() {
        let name = "0123456789abcdef";
        let alone = join(vec![
            end(Side::Server, name, 0),
            end(Side::Client, "fedcba9876543210", 0),
            end(Side::Client, "", 0),
        ]);
        assert_eq!(alone.len(), 3);
        let three = join(vec![
            end(Side::Server, name, 0),
            end(Side::Client, name, 0),
            end(Side::Client, name, 0),
        ]);
        assert_eq!(three.len(), 3);
        let mut both_send = vec![end(Side::Server, name, 0), end(Side::Client, name, 0)];
        both_send[1].facts.captured_at = Some("sender");
        assert_eq!(join(both_send).len(), 2);
    }
}
