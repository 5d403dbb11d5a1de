//! A transfer in both directions while an attacker on the path modifies options and injects segments.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use gargalo_mptcp::{Addresses, Event};
use gargalo_units::Seq;
use gargalo_wire::tcp::{Flags, Payload, Segment};

use super::forge::Forger;
use super::{Net, Path, config, manager, ms};

/// The result of an attack.
#[derive(Debug)]
pub struct Outcome {
    pub forger: Forger,
    pub forged: u64,
    /// Connections, those that ended by the attack, and those that were closed because they stalled.
    pub connections: u64,
    pub ended: u64,
    pub stalled: u64,
    pub fallbacks: u64,
    /// Bytes that were read, all of them correct.
    pub read: u64,
    pub most_subflows: usize,
    pub most_out_of_order: u64,
}

/// Recent segments, by sender.
type Recent = Rc<RefCell<[VecDeque<(usize, Segment)>; 2]>>;

const BUFFER: u64 = 200_000;

/// Forges `total` segments, over consecutive connections. Mappings have checksums; without them a modified mapping
/// cannot be detected.
pub fn attack(seed: u64, total: u64, watch: &mut dyn FnMut()) -> Outcome {
    let mut out = Outcome {
        forger: Forger::new(seed),
        forged: 0,
        connections: 0,
        ended: 0,
        stalled: 0,
        fallbacks: 0,
        read: 0,
        most_subflows: 0,
        most_out_of_order: 0,
    };
    while out.forged < total {
        connection(
            seed.wrapping_mul(1 << 20) + out.connections,
            total,
            &mut out,
        );
        out.connections += 1;
        if out.connections.is_multiple_of(64) {
            watch();
        }
    }
    out
}

fn connection(seed: u64, total: u64, out: &mut Outcome) {
    let paths = [
        Path::new(20, 5),
        Path::new(10, 15).lossy(0.01),
        Path::new(40, 2),
    ];
    let mut c = config(BUFFER);
    c.tcp = std::sync::Arc::new(gargalo_tcp::Config {
        send_buffer: gargalo_units::Bytes::new(BUFFER),
        ..gargalo_tcp::Config::clone(&c.tcp)
    });
    c.options.checksum = true;
    c.path_manager = manager("full-mesh");
    c.options.max_subflows = 6;
    c.retry_after = ms(50);
    let mut net = Net::new(&paths, c, "cubic", seed);
    net.checks = true;
    let recent = Recent::default();
    let kept = recent.clone();
    // On the path: some of the real segments are modified; their share differs between connections.
    let rate = [0.0, 0.0005, 0.01][out.forger.below(3)];
    let mut on_path = Forger::new(seed);
    let changed = Rc::new(RefCell::new([0u64; super::forge::NAMES.len()]));
    let counted = changed.clone();
    net.middlebox = Box::new(move |side, path, segment| {
        let mut kept = kept.borrow_mut();
        kept[side].push_back((path, segment.clone()));
        if kept[side].len() > 64 {
            kept[side].pop_front();
        }
        if on_path.chance(rate) {
            counted.borrow_mut()[on_path.forge(segment)] += 1;
        }
        true
    });
    // Off the path: injected segments per millisecond, from this time on, and the share of plausible ones.
    let burst = [1, 4, 32][out.forger.below(3)];
    let start = net.now + ms([0, 100, 400][out.forger.below(3)]);
    let believed = [0.0, 0.001, 0.02][out.forger.below(3)];
    let mut written = [0; 2];
    let mut last_moved = net.now;
    let mut moved = 0;
    let until = net.now + ms(2_000);
    while net.now < until && out.forged < total {
        net.run_for(ms(1));
        for (side, written) in written.iter_mut().enumerate() {
            *written = net.write_stream(side, *written, u64::MAX / 4);
            net.settle(side);
        }
        let burst = if net.now >= start { burst } else { 0 };
        for _ in 0..burst {
            let to = out.forger.below(2);
            let next = forged(&mut out.forger, &recent.borrow(), to, believed);
            if let Some((addresses, segment)) = next {
                out.forged += 1;
                net.inject(to, addresses, segment);
            }
        }
        for e in &net.ends {
            out.most_subflows = out.most_subflows.max(e.subflow_addresses().count());
            out.most_out_of_order = out.most_out_of_order.max(e.out_of_order());
        }
        let over = [Event::Closed, Event::Reset, Event::TimedOut];
        if net.events.iter().flatten().any(|e| over.contains(e)) {
            out.ended += 1;
            break;
        }
        for e in &mut net.events {
            e.clear();
        }
        if net.read[0] + net.read[1] > moved {
            moved = net.read[0] + net.read[1];
            last_moved = net.now;
        } else if net.now - last_moved > ms(1_500) {
            // A forged acknowledgement of data that never arrived.
            out.stalled += 1;
            break;
        }
    }
    out.read += net.read[0] + net.read[1];
    out.fallbacks += net.ends.iter().map(|e| e.stats().fallbacks).sum::<u64>();
    for (made, n) in out.forger.made.iter_mut().zip(&*changed.borrow()) {
        *made += n;
    }
    out.forged += changed.borrow().iter().sum::<u64>();
}

/// A segment of an attacker who observes the traffic but is not on the path.
fn forged(
    forger: &mut Forger,
    recent: &[VecDeque<(usize, Segment)>; 2],
    to: usize,
    believed: f64,
) -> Option<(Addresses, Segment)> {
    let from = &recent[1 - to];
    if from.is_empty() {
        return None;
    }
    let (path, mut segment) = from[forger.below(from.len())].clone();
    let mut port = segment.src_port;
    if forger.chance(0.05) {
        // From an unknown address.
        port = 1 + forger.below(65_000) as u16;
        segment.flags = if forger.chance(0.7) {
            Flags::SYN
        } else {
            Flags::ACK
        };
        segment.payload = Payload::EMPTY;
    } else if !forger.chance(believed) {
        // From an attacker who does not know the sequence numbers.
        segment.payload = Payload::EMPTY;
        segment.seq = segment.seq + forger.below(1 << 32) as u32;
        if forger.chance(0.2) {
            segment.ack = Seq::new(forger.below(1 << 32) as u32);
        }
        if forger.chance(0.1) {
            segment.flags = Flags::from_bits(forger.below(512) as u16);
        }
    } else if forger.chance(0.5) {
        segment.payload = Payload::EMPTY;
    }
    forger.forge(&mut segment);
    if forger.chance(0.2) {
        forger.forge(&mut segment);
    }
    let mut addresses = Addresses {
        local: std::net::SocketAddr::new(super::address(to, path), segment.dst_port),
        remote: std::net::SocketAddr::new(super::address(1 - to, path), port),
    };
    if forger.chance(0.02) {
        addresses
            .remote
            .set_ip(super::address(1 - to, forger.below(256)));
    }
    segment.src_port = port;
    Some((addresses, segment))
}
