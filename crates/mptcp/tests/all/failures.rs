//! Paths that fail, recover, or lose their addresses; random networks.

use crate::common::*;
use gargalo_mptcp::Event;
use gargalo_units::Duration;
use rand::RngExt;
use rand_pcg::Pcg64;

#[test]
fn a_path_that_dies_costs_two_timeouts_at_most() {
    for (dead, alive) in [(0, 1), (1, 0)] {
        let mut paths = [Path::new(20, 20), Path::new(20, 30)];
        paths[dead] = paths[dead].dead(2_000, 3_600_000);
        let mut net = Net::new(&paths, config(4 << 20), "cubic", 11);
        net.write_endlessly(0);
        net.run_for(ms(1990));
        let rto = net.ends[0].path_views()[dead].rto;
        net.run_for(ms(10));
        let until = net.now + rto * 2;
        let before = net.read[1];
        // All data of the failed path was delivered on others, and more.
        net.run(until, |_| false);
        let held = net.ends[1].out_of_order();
        assert!(
            net.read[1] > before + 100_000,
            "path {dead}: {:#?}",
            net.summary()
        );
        assert!(held < 200_000, "path {dead}: {held} bytes wait");
        let before = net.read[1];
        net.run_for(ms(2000));
        let rate = (net.read[1] - before) as f64 * 8e-6 / 2.0;
        assert!(rate > 0.9 * 18.0, "path {alive} alone: {rate} Mbit/s");
    }
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let paths = [Path::new(20, 20), Path::new(20, 20).dead(1_000, 6_000)];
    let mut net = Net::new(&paths, config(4 << 20), "cubic", 12);
    net.write_endlessly(0);
    net.run_for(ms(20_000));
    let before = net.carried[1];
    net.run_for(ms(2_000));
    assert!(net.carried[1] - before > 1_000_000, "{:#?}", net.summary());
}

/// Longest wait between two probes of a path in a retransmission timeout.
const LONGEST_WAIT: u64 = 4_000;

#[test]
fn a_path_is_asked_whether_an_outage_is_over() {
    // Its own timer has backed off to half a minute and more.
    for control in ["cubic", "bbr"] {
        for (buffer, dead) in [(128 << 10, 0), (2 << 20, 0), (2 << 20, 1)] {
            let mut paths = [Path::new(20, 20), Path::new(10, 20)];
            paths[dead] = paths[dead].dead(3_000, 33_000);
            let mut net = Net::new(&paths, config(buffer), control, 12);
            net.write_endlessly(0);
            net.run_for(ms(33_000));
            let before = net.carried[dead];
            net.run_for(ms(LONGEST_WAIT + 1_000));
            let carried = net.carried[dead] - before;
            assert!(
                carried > 200_000,
                "{control}, {buffer}, path {dead}: {carried} bytes"
            );
        }
    }
}

#[test]
fn an_outage_in_one_direction_costs_few_probes_and_ends_soon() {
    // Data is lost, and acknowledgements of the other path's data still come by this one; or all data
    // arrives, and no acknowledgement returns.
    for silenced in [[true, false], [false, true], [true, true]] {
        for (seconds, most) in [(10, 12), (60, 30)] {
            let mut paths = [Path::new(20, 5), Path::new(10, 40)];
            paths[0] = paths[0].dead(3_000, 3_000 + 1_000 * seconds);
            paths[0].silenced = silenced;
            let mut net = Net::new(&paths, config(2 << 20), "cubic", 12);
            net.write_endlessly(0);
            // It takes half a second to detect the outage.
            net.run_for(ms(3_500));
            let before = net.carried[0];
            net.run_for(ms(1_000 * seconds - 500));
            let probes = (net.carried[0] - before).div_ceil(1_428);
            assert!(
                (2..=most).contains(&probes),
                "{silenced:?}, {seconds} s: {probes} segments"
            );
            net.run_for(ms(LONGEST_WAIT));
            let before = net.carried[0];
            net.run_for(ms(1_000));
            let carried = net.carried[0] - before;
            assert!(
                carried > 1_000_000,
                "{silenced:?}, {seconds} s: {carried} bytes: {:#?}",
                net.summary()
            );
        }
    }
}

#[test]
fn a_path_that_never_delivers_again_is_closed_at_last() {
    // Segments of the peer arrive on it all the time.
    let mut paths = [Path::new(5, 5).dead(3_000, 3_600_000), Path::new(2, 40)];
    paths[0].silenced = [true, false];
    let tcp = gargalo_tcp::Config {
        data_retries: 4,
        ..gargalo_tcp::Config::default()
    };
    let config = gargalo_mptcp::Config {
        tcp: std::sync::Arc::new(tcp),
        ..config(2 << 20)
    };
    let mut net = Net::new(&paths, config, "cubic", 12);
    net.write_endlessly(0);
    // Timeouts of 0.2 s and more, each twice as long as the one before.
    net.run_for(ms(20_000));
    assert_eq!(net.ends[0].stats().subflows_opened, 2);
    let closed = |e: &Event| matches!(e, Event::SubflowClosed { id: 0, .. });
    assert!(net.events[0].iter().any(closed), "{:#?}", net.summary());
}

#[test]
fn every_byte_survives_whatever_dies() {
    for seed in 0..20 {
        let mut paths = [Path::new(10, 10), Path::new(30, 40), Path::new(5, 5)];
        let mut rng = Pcg64::new(seed, 1);
        for p in &mut paths[1..] {
            let from = rng.random_range(300..3000);
            *p = p
                .dead(from, from + rng.random_range(100..20_000))
                .lossy(0.005);
        }
        let mut net = Net::new(&paths, config(1 << 20), "cubic", seed as u64);
        net.transfer(6_000_000, ms(120_000));
    }
}

#[test]
fn an_address_that_goes_takes_nothing_with_it() {
    let paths = [Path::new(20, 20), Path::new(20, 20)];
    let mut net = Net::new(&paths, config(2 << 20), "cubic", 13);
    net.checks = true;
    let total = 8_000_000;
    let mut written = 0;
    let mut removed = false;
    let done = net.run(at(60_000), |net| {
        written = net.write_stream(0, written, total);
        if net.now >= at(1_000) && !removed {
            removed = true;
            let now = net.now;
            net.ends[0].remove_address(now, address(0, 0));
        }
        net.settle(0);
        net.read[1] == total
    });
    assert!(done, "{:#?}", net.summary());
    let left: Vec<_> = net.ends[1].subflow_addresses().collect();
    assert_eq!(left.len(), 1, "the server was told: {left:?}");
    assert_eq!(left[0].remote.ip(), address(0, 1));
}

#[test]
fn hand_over_breaks_before_it_makes() {
    let paths = [Path::new(20, 20), Path::new(20, 20)];
    let mut net = Net::new(&paths[..1], config(2 << 20), "cubic", 14);
    net.paths = paths.to_vec();
    let mut whole = Net::new(&paths, config(2 << 20), "cubic", 14);
    // The client has one address only; the other is added when the first was removed.
    let now = at(0);
    whole.ends[0].remove_address(now, address(0, 1));
    whole.checks = true;
    let total = 6_000_000;
    let mut written = 0;
    let mut step = 0;
    let done = whole.run(at(60_000), |net| {
        written = net.write_stream(0, written, total);
        let now = net.now;
        if step == 0 && now >= at(800) {
            step = 1;
            net.ends[0].remove_address(now, address(0, 0));
        } else if step == 1 && now >= at(1_500) {
            step = 2;
            assert!(net.ends[0].add_address(now, address(0, 1), false).is_some());
        }
        net.settle(0);
        net.read[1] == total
    });
    assert!(done, "{:#?}", whole.summary());
    assert!(whole.carried[1] > 3_000_000);
}

#[test]
fn a_backup_carries_only_when_it_must() {
    let paths = [Path::new(20, 20), Path::new(20, 20)];
    let mut net = Net::new(&paths, config(2 << 20), "cubic", 15);
    net.run_for(ms(500));
    let now = net.now;
    let id = net.ends[0].subflows(now).nth(1).unwrap().id;
    assert!(net.ends[0].set_backup(now, id, true));
    net.write_endlessly(0);
    net.run_for(ms(3000));
    assert!(net.carried[1] < 20_000, "{:?}", net.carried);
    assert!(
        net.ends[1].path_views()[1].backup,
        "MP_PRIO has told the server"
    );
    net.paths[0] = net.paths[0].dead(0, 3_600_000);
    net.run_for(ms(3000));
    assert!(net.carried[1] > 3_000_000, "{:?}", net.carried);
}

/// The first path goes, and the second is dead for a moment; what an end says in that moment is lost.
fn while_dead(what: impl Fn(&mut Net)) -> Net {
    let live = Path::new(20, 20);
    let paths = [live.dead(990, 3_600_000), live.dead(990, 1_100)];
    let mut net = Net::new(&paths, config(2 << 20), "cubic", 15);
    net.write_endlessly(0);
    net.run_for(ms(1_000));
    what(&mut net);
    net.run_for(ms(2_500));
    net
}

#[test]
fn a_lost_remove_addr_is_sent_again() {
    let net = while_dead(|net| {
        let now = net.now;
        net.ends[0].remove_address(now, address(0, 0));
    });
    let left: Vec<_> = net.ends[1].subflow_addresses().collect();
    assert_eq!(left.len(), 1, "the server was told: {left:?}");
}

#[test]
fn a_lost_mp_prio_is_sent_again() {
    let net = while_dead(|net| {
        let now = net.now;
        let id = net.ends[0].subflows(now).nth(1).unwrap().id;
        assert!(net.ends[0].set_backup(now, id, true));
    });
    assert!(net.ends[1].path_views()[1].backup);
}

#[test]
fn a_connection_without_paths_is_given_up() {
    let paths = [Path::new(20, 20)];
    let mut net = Net::new(&paths, config(2 << 20), "cubic", 16);
    net.write_endlessly(0);
    net.run_for(ms(1000));
    let now = net.now;
    net.ends[0].remove_address(now, address(0, 0));
    net.run_for(Duration::from_secs(61));
    assert!(net.events[0].contains(&Event::TimedOut));
    assert!(net.ends[0].is_closed());
}

#[test]
fn random_networks_deliver_every_byte_once_or_say_why_not() {
    // The example `random_networks` runs ten thousand.
    let [multipath, plain, excused] = crate::common::networks::run_all(0..3000);
    assert!(
        multipath > 2700 && plain > 50 && excused < 30,
        "{multipath} {plain} {excused}"
    );
}

#[test]
fn a_penalised_path_that_idles_is_forgiven_when_time_has_passed() {
    for name in ["lowest-latency", "largest-window-space", "blest", "ecf"] {
        let paths: Vec<_> = [10, 25, 50, 75, 100]
            .map(|mbps| Path::new(mbps, 1).lossy(0.06))
            .into();
        let mut c = config(1 << 20);
        c.scheduler = scheduler(name);
        let mut net = Net::new(&paths, c, "cubic", 3);
        net.write_endlessly(0);
        let mut waits = [0; 5];
        for _ in 0..120 {
            net.run_for(ms(250));
            for (n, v) in waits.iter_mut().zip(net.ends[0].path_views()) {
                let kept_away = v.usable && !v.in_loss && v.in_flight == 0 && !v.can_send;
                *n = if kept_away { *n + 1 } else { 0 };
            }
            // Round trips are some milliseconds: five seconds are more than any penalty.
            assert!(
                waits.iter().all(|n| *n < 20),
                "{name}: {waits:?} {:#?}",
                net.summary()
            );
        }
    }
}

#[test]
fn a_path_that_was_penalised_is_used_again() {
    for seed in 0..10 {
        let config = gargalo_mptcp::Config {
            scheduler: scheduler("lowest-latency"),
            options: gargalo_mptcp::Options {
                probe_interval: gargalo_settings::Switch::Off,
                ..Default::default()
            },
            ..config(128 << 10)
        };
        let paths = [Path::new(10, 10), Path::new(5, 60), Path::new(20, 20)];
        let mut net = Net::new(&paths, config, "cubic", seed);
        net.write_endlessly(0);
        net.run_for(ms(20_000));
        let before = net.carried.clone();
        net.run_for(ms(20_000));
        for (path, then) in before.into_iter().enumerate() {
            let more = net.carried[path] - then;
            assert!(more > 0, "seed {seed}: path {path}: {:#?}", net.summary());
        }
    }
}
