//! Random networks: every byte exactly once and in order in both directions, or an error that the network explains.

use std::sync::Arc;

use gargalo_mptcp::{Config, DataNumbers, Event, OpportunisticRetransmission, Penalisation};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use gargalo_wire::tcp::Flags;
use rand::RngExt;
use rand_pcg::Pcg64;

use super::{Net, Path, address, at, config, manager, ms, scheduler};

const CONGESTION: &[&str] = &[
    "balia", "bbr", "bbr2", "bbr3", "bic", "copa", "cubic", "hstcp", "lia", "newreno", "olia",
    "reno", "vegas", "westwood", "wvegas",
];

/// A change of the network during the connection.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// An outage of the path until then.
    Dies(usize, Instant),
    /// A side loses its address on a path.
    Removes(usize, usize),
    /// A side gets the address back.
    Adds(usize, usize),
    /// A subflow becomes a backup, or a regular one again.
    Backup(usize, usize, bool),
    /// A side stops reading, or continues.
    Reads(usize, bool),
}

/// The removal of options, and its path.
#[derive(Clone, Copy, Debug)]
struct Strip {
    path: usize,
    side: usize,
    syns: bool,
    others: bool,
    from: Instant,
}

/// A network, the configurations of both ends and the data to be sent.
#[derive(Debug)]
pub struct Network {
    paths: Vec<Path>,
    ends: [Config; 2],
    congestion: &'static str,
    total: [u64; 2],
    changes: Vec<(Instant, Change)>,
    strip: Option<Strip>,
    long_mappings: bool,
    seed: u64,
}

/// The outcome of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All bytes and an orderly end, with or without fallback.
    Delivered { multipath: bool },
    /// An error, and how the network explains it.
    Excused(&'static str),
}

struct Draw(Pcg64);

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.0.random::<f64>() < p
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0.random_range(0..n)
    }
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        super::pairs::between(&mut self.0, low, high)
    }
    fn some(&mut self, p: f64, most: f64) -> f64 {
        if self.chance(p) {
            self.0.random::<f64>() * most
        } else {
            0.0
        }
    }
}

fn path(d: &mut Draw) -> Path {
    let most_loss = if d.chance(0.2) { 0.15 } else { 0.05 };
    Path {
        rate: Rate::from_bps_f64(d.between(2e5, 5e7)),
        delay: Duration::from_secs_f64(d.some(0.9, 0.15)),
        queue: d.between(5e3, 3e5) as u64,
        loss: d.some(0.5, most_loss),
        jitter: Duration::from_secs_f64(d.some(0.3, 0.03)),
        duplicate: d.some(0.3, 0.03),
        ..Path::new(1, 1)
    }
}

fn end(d: &mut Draw) -> Config {
    let mut c = config(d.between(3e3, 2e6) as u64);
    let send_buffer = d.between(5e3, 2e6) as u64;
    c.tcp = Arc::new(gargalo_tcp::Config {
        send_buffer: Bytes::new(send_buffer),
        ..gargalo_tcp::Config::clone(&c.tcp)
    });
    let names: Vec<_> = gargalo_mptcp::scheduler::SCHEDULERS
        .iter()
        .map(|e| e.name)
        .collect();
    c.scheduler = scheduler(d.of(&names));
    c.path_manager = manager(d.of(&[
        "default",
        "full-mesh",
        "full-mesh",
        "ndiffports",
        "single-mesh",
    ]));
    c.options.checksum = d.chance(0.2);
    c.options.opportunistic_retransmission = if d.chance(0.7) {
        OpportunisticRetransmission::Late
    } else {
        OpportunisticRetransmission::Off
    };
    c.options.penalisation = if d.chance(0.7) {
        Penalisation::Cap
    } else {
        Penalisation::Off
    };
    if d.chance(0.2) {
        c.options.probe_interval = gargalo_settings::Switch::Off;
    }
    if d.chance(0.4) {
        c.options.data_numbers = DataNumbers::Long;
    }
    c.options.max_subflows = 1 + d.below(12) as u32;
    if c.options.max_subflows.is_multiple_of(3) {
        // The rules of multipath-tcp.org's kernel; drawn by what was drawn, so that the other networks stay the same.
        c.options.opportunistic_retransmission = OpportunisticRetransmission::Head;
        c.options.penalisation = Penalisation::Halve;
    }
    c.retry_after = Duration::from_secs_f64(d.between(0.05, 2.0));
    c
}

impl Network {
    /// The network of a seed.
    pub fn random(seed: u64) -> Self {
        let mut d = Draw(Pcg64::new(u128::from(seed), 19));
        let n = 1 + d.below(5) as usize;
        let paths: Vec<_> = (0..n).map(|_| path(&mut d)).collect();
        let ends = [end(&mut d), end(&mut d)];
        let mut changes = Vec::new();
        for p in 0..n {
            while d.chance(0.3) {
                let from = at(d.below(8_000));
                let longest = if p == 0 { 8e3 } else { 6e4 };
                let until = from + ms(d.between(10.0, longest) as u64);
                changes.push((from, Change::Dies(p, until)));
            }
            if p > 0 && d.chance(0.2) {
                let side = d.below(2) as usize;
                let from = d.below(6_000);
                changes.push((at(from), Change::Removes(side, p)));
                if d.chance(0.7) {
                    changes.push((at(from + d.below(5_000)), Change::Adds(side, p)));
                }
            }
            if d.chance(0.2) {
                let (side, backup) = (d.below(2) as usize, d.chance(0.7));
                changes.push((at(d.below(6_000)), Change::Backup(side, p, backup)));
            }
        }
        if d.chance(0.2) {
            let (side, from) = (d.below(2) as usize, d.below(3_000));
            changes.push((at(from), Change::Reads(side, false)));
            changes.push((at(from + d.below(20_000)), Change::Reads(side, true)));
        }
        changes.sort_by_key(|c| c.0);
        let strip = d.chance(0.15).then(|| {
            let syns = d.chance(0.6);
            Strip {
                path: d.below(n as u64) as usize,
                side: d.below(2) as usize,
                syns,
                others: !syns || d.chance(0.5),
                from: at(if d.chance(0.5) { 0 } else { d.below(3_000) }),
            }
        });
        let checksum = ends.iter().any(|e| e.options.checksum);
        Self {
            long_mappings: !checksum && d.chance(0.4),
            paths,
            ends,
            congestion: CONGESTION[d.below(CONGESTION.len() as u64) as usize],
            total: [
                1 + d.between(1.0, 3e6) as u64,
                d.between(1.0, 1e6) as u64 - 1,
            ],
            changes,
            strip,
            seed,
        }
    }

    /// Runs the transfer.
    ///
    /// # Panics
    /// When a byte is wrong, duplicate or missing, there is no progress for half an hour, or an error is not
    /// explained by the network.
    pub fn run(&self) -> Verdict {
        let [client, server] = self.ends.clone();
        let mut net = Net::asymmetric(&self.paths, client, server, self.congestion, self.seed);
        net.checks = true;
        net.long_mappings = self.long_mappings;
        if let Some(strip) = self.strip {
            // The middlebox has no clock: it counts packets.
            let mut left = (strip.from - at(0)).as_millis() / 20;
            net.middlebox = Box::new(move |side, path, s| {
                let syn = s.flags.contains(Flags::SYN);
                if side == strip.side && path == strip.path {
                    left = left.saturating_sub(1);
                    if left == 0 && ((syn && strip.syns) || (!syn && strip.others)) {
                        s.options.mptcp = None;
                    }
                }
                true
            });
        }
        let mut changes = self.changes.iter().peekable();
        let mut written = [0u64; 2];
        let mut closed = [false; 2];
        let done = |net: &Net| {
            let last = [Event::Closed, Event::Reset, Event::TimedOut];
            (0..2).all(|side| last.iter().any(|e| net.events[side].contains(e)))
        };
        while !done(&net) {
            // A side that has nothing to send does not notice that the other has given up.
            let one_gave_up = net
                .ends
                .iter()
                .any(|e| e.is_closed() && e.error().is_some());
            if net.now >= at(1_800_000) && one_gave_up {
                break;
            }
            assert!(
                net.now < at(1_800_000),
                "not over: written {written:?} of {:?}, read {:?}; {:#?}",
                self.total,
                net.read,
                net.summary()
            );
            let next = changes.peek().map_or(net.now + ms(60_000), |c| c.0);
            net.run(next.max(net.now), |net| {
                for side in 0..2 {
                    if !net.events[side].contains(&Event::Connected) {
                        continue;
                    }
                    let total = self.total[side];
                    if written[side] < total {
                        written[side] = net.write_stream(side, written[side], total);
                    }
                    if written[side] == total && !closed[side] {
                        closed[side] = true;
                        net.ends[side].close(net.now);
                    }
                    net.settle(side);
                }
                done(net)
            });
            while let Some((_, change)) = changes.next_if(|c| c.0 <= net.now) {
                apply(&mut net, *change);
            }
        }
        net.read_limit = [u64::MAX; 2];
        net.settle(0);
        net.settle(1);
        let whole = net.read == [self.total[1], self.total[0]];
        let errors = net.ends.each_ref().map(|e| e.error());
        if errors == [None, None] {
            assert!(
                whole,
                "read {:?} of {:?}: {:#?}",
                net.read,
                self.total,
                net.summary()
            );
            let multipath = net.ends.iter().all(|e| !e.has_fallen_back());
            return Verdict::Delivered { multipath };
        }
        let excuse = self.excuse(net.now);
        assert!(
            excuse.is_some(),
            "{errors:?} at {}: {:#?}",
            net.now,
            net.summary()
        );
        Verdict::Excused(excuse.unwrap_or_default())
    }

    fn excuse(&self, now: Instant) -> Option<&'static str> {
        if self.strip.is_some_and(|s| s.others) {
            return Some("options were stripped");
        }
        // Half a minute without any path, or without any that was not removed.
        let dark = |t: Instant| {
            (0..self.paths.len()).all(|p| {
                let mut dead = false;
                for (when, change) in self.changes.iter().filter(|c| c.0 <= t) {
                    let _ = when;
                    match change {
                        Change::Dies(q, until) if *q == p => dead |= *until > t,
                        Change::Removes(_, q) if *q == p => dead = true,
                        Change::Adds(_, q) if *q == p => dead = false,
                        _ => {}
                    }
                }
                dead
            })
        };
        let seconds = (now - at(0)).as_millis() / 1000;
        let mut row = 0;
        for s in 0..seconds {
            row = if dark(at(s * 1000)) { row + 1 } else { 0 };
            if row >= 30 {
                return Some("no path for half a minute");
            }
        }
        None
    }
}

fn apply(net: &mut Net, change: Change) {
    let now = net.now;
    match change {
        Change::Dies(p, until) => net.paths[p].dead = (now, until),
        Change::Removes(side, p) => net.ends[side].remove_address(now, address(side, p)),
        Change::Adds(side, p) => {
            net.ends[side].add_address(now, address(side, p), false);
        }
        Change::Backup(side, p, backup) => {
            let of_path =
                |s: &gargalo_mptcp::SubflowSnapshot| s.addresses.local.ip() == address(side, p);
            let id = net.ends[side].subflows(now).find(of_path).map(|s| s.id);
            if let Some(id) = id {
                net.ends[side].set_backup(now, id, backup);
            }
        }
        Change::Reads(side, on) => {
            net.read_limit[side] = if on { u64::MAX } else { net.read[side] };
        }
    }
    for side in 0..2 {
        net.settle(side);
    }
}

/// Runs the networks of these seeds; returns how many ended with multipath, with fallback, and with an explained
/// error.
pub fn run_all(seeds: std::ops::Range<u64>) -> [u64; 3] {
    let mut counts = [0; 3];
    let mut failed = Vec::new();
    for seed in seeds {
        match std::panic::catch_unwind(|| Network::random(seed).run()) {
            Ok(Verdict::Delivered { multipath: true }) => counts[0] += 1,
            Ok(Verdict::Delivered { multipath: false }) => counts[1] += 1,
            Ok(Verdict::Excused(_)) => counts[2] += 1,
            Err(_) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "networks {failed:?}");
    counts
}
