//! Handshakes, closing and fallback, with and without middleboxes.

use std::sync::Arc;

use crate::common::*;
use gargalo_mptcp::{Event, State};
use gargalo_units::Bytes;
use gargalo_wire::mptcp::{CapableKeys, MptcpOption};
use gargalo_wire::tcp::{Flags, Segment};

fn options(segment: &Segment) -> Vec<MptcpOption> {
    segment
        .options
        .mptcp
        .iter()
        .flat_map(|l| l.iter().cloned())
        .collect()
}

#[test]
fn one_path_carries_every_byte_and_closes() {
    let mut net = Net::new(&[Path::new(100, 10)], config(4 << 20), "cubic", 1);
    net.transfer(5_000_000, ms(60_000));
    assert!(net.ends.iter().all(|e| e.is_multipath()));
    assert_eq!(net.ends[0].state(), State::TimeWait);
    net.run_for(ms(70_000));
    assert!(
        net.ends.iter().all(|e| e.is_closed()),
        "{:#?}",
        net.summary()
    );
}

#[test]
fn the_handshake_is_that_of_version_1() {
    let mut net = Net::new(&[Path::new(100, 10)], config(4 << 20), "cubic", 1);
    net.log = Some(Vec::new());
    net.ends[0].write_synthetic(3000);
    net.run_for(ms(500));
    let log = net.log.take().unwrap();
    let capable = |n: usize| match &options(&log[n].2.segment)[..] {
        [
            MptcpOption::Capable {
                version: 1,
                flags,
                keys,
            },
        ] if flags.bits() == 1 => *keys,
        other => panic!("{other:?}"),
    };
    assert_eq!(capable(0), CapableKeys::None);
    let CapableKeys::Sender(server) = capable(1) else {
        panic!()
    };
    let CapableKeys::Both { sender, receiver } = capable(2) else {
        panic!()
    };
    assert_eq!(receiver, server);
    // The first data says how long its mapping is.
    match capable(3) {
        CapableKeys::BothAndData {
            sender: s,
            receiver: r,
            length,
            ..
        } => {
            assert_eq!(
                (s, r, u32::from(length)),
                (sender, receiver, log[3].2.segment.payload.len())
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(options(&log[4].2.segment)[..], [MptcpOption::Dss(d)] if d.mapping.is_some()));
    assert_eq!(net.read[1], 3000);
}

#[test]
fn two_paths_are_joined_and_both_used() {
    let paths = [Path::new(50, 10), Path::new(50, 10)];
    let mut net = Net::new(&paths, config(8 << 20), "cubic", 2);
    net.transfer(20_000_000, ms(60_000));
    let joined = net
        .ends
        .iter()
        .map(|e| e.stats().subflows_opened)
        .collect::<Vec<_>>();
    assert_eq!(joined, [2, 2]);
    assert!(
        net.carried.iter().all(|b| *b > 5_000_000),
        "{:?}",
        net.carried
    );
    net.run_for(ms(70_000));
    assert!(
        net.ends.iter().all(|e| e.is_closed()),
        "{:#?}",
        net.summary()
    );
}

#[test]
fn the_server_can_be_the_one_who_sends() {
    let paths = [Path::new(50, 10), Path::new(50, 20)];
    let mut net = Net::new(&paths, config(8 << 20), "cubic", 3);
    net.run_for(ms(300));
    net.ends[1].write_synthetic(10_000_000);
    net.run_for(ms(3_000));
    assert_eq!(net.read[0], 10_000_000);
    assert_eq!(net.ends[1].stats().reinjected_segments, 0);
}

#[test]
fn options_stripped_anywhere_mean_plain_tcp() {
    // (options removed, direction)
    let strips: [fn(usize, &Segment) -> bool; 5] = [
        |side, s| side == 0 && s.flags.contains(Flags::SYN),
        |side, s| side == 1 && s.flags.contains(Flags::SYN),
        |side, s| side == 0 && !s.flags.contains(Flags::SYN),
        |side, s| side == 1 && !s.flags.contains(Flags::SYN),
        |_, _| true,
    ];
    for (k, strip) in strips.into_iter().enumerate() {
        let paths = [Path::new(50, 10), Path::new(50, 10)];
        let mut net = Net::new(&paths, config(1 << 20), "cubic", 4);
        net.middlebox = Box::new(move |side, _, s| {
            if strip(side, s) {
                s.options.mptcp = None;
            }
            true
        });
        net.transfer(3_000_000, ms(60_000));
        assert!(net.ends.iter().all(|e| e.has_fallen_back()), "strip {k}");
        assert!(
            net.events.iter().all(|e| e.contains(&Event::FellBack)),
            "strip {k}"
        );
        assert_eq!(net.carried[1], 0);
    }
}

#[test]
fn a_syn_whose_option_is_not_liked_is_repeated_without() {
    let mut net = Net::new(&[Path::new(50, 10)], config(1 << 20), "cubic", 5);
    net.middlebox =
        Box::new(|_, _, s| !(s.flags.contains(Flags::SYN) && s.options.mptcp.is_some()));
    net.transfer(100_000, ms(60_000));
    assert!(net.ends[0].has_fallen_back());
}

#[test]
fn an_abort_ends_every_subflow_with_the_key() {
    let paths = [Path::new(50, 10), Path::new(50, 10)];
    let mut net = Net::new(&paths, config(1 << 20), "cubic", 6);
    net.write_endlessly(0);
    net.run_for(ms(1000));
    let now = net.now;
    net.log = Some(Vec::new());
    net.ends[0].abort(now);
    net.settle(0);
    let log = net.log.take().unwrap();
    assert_eq!(log.len(), 2);
    for (_, _, t) in &log {
        assert!(t.segment.flags.contains(Flags::RST));
        assert!(matches!(
            options(&t.segment)[..],
            [MptcpOption::FastClose { .. }]
        ));
    }
    net.run_for(ms(1000));
    assert_eq!(net.ends[1].error(), Some(gargalo_mptcp::Error::Reset));
    assert!(
        net.ends.iter().all(|e| e.is_closed()),
        "{:#?}",
        net.summary()
    );
}

#[test]
fn a_reader_that_stops_stops_the_sender_and_nothing_is_lost() {
    let paths = [Path::new(50, 10), Path::new(20, 30)];
    let mut net = Net::new(&paths, config(300_000), "cubic", 7);
    net.checks = true;
    net.read_limit[1] = 1_000_000;
    let mut written = 0;
    net.run(at(10_000), |net| {
        written = net.write_stream(0, written, 5_000_000);
        net.settle(0);
        false
    });
    assert_eq!(net.read[1], 1_000_000);
    assert!(net.ends[1].readable() <= 300_000);
    // The window opens again, but the update is lost: the probe detects it.
    net.read_limit[1] = u64::MAX;
    net.middlebox = Box::new(|side, _, _| side == 0);
    net.settle(1);
    net.run_for(ms(1));
    net.middlebox = Box::new(|_, _, _| true);
    assert!(
        net.run(at(60_000), |net| net.read[1] == 5_000_000),
        "{:#?}",
        net.summary()
    );
}

#[test]
fn checksums_and_long_numbers() {
    for long in [false, true] {
        let mut c = config(1 << 20);
        c.options.checksum = true;
        if long {
            c.options.data_numbers = gargalo_mptcp::DataNumbers::Long;
        }
        let paths = [Path::new(50, 10).lossy(0.01), Path::new(50, 10)];
        let mut net = Net::asymmetric(&paths, c, config(1 << 20), "cubic", 8);
        net.transfer(3_000_000, ms(60_000));
        assert!(net.ends.iter().all(|e| e.is_multipath()));
        assert_eq!(net.ends[1].stats().subflows_reset, 0);
    }
}

#[test]
fn a_join_survives_the_loss_of_its_third_and_of_its_fourth_packet() {
    for (from, times) in [(0, 1), (0, 3), (1, 1), (1, 3)] {
        let paths = [Path::new(50, 10), Path::new(50, 10)];
        let mut net = Net::new(&paths, config(1 << 20), "cubic", 30);
        let mut left = times;
        net.middlebox = Box::new(move |side, path, s| {
            // No SYN, no data: the acknowledgements that complete the handshake.
            let drop = side == from && path == 1 && left > 0 && !s.flags.contains(Flags::SYN);
            left -= i32::from(drop);
            !drop
        });
        net.run_for(ms(10_000));
        for e in &net.ends {
            let usable = e.path_views().iter().filter(|v| v.usable).count();
            assert_eq!(
                usable,
                2,
                "{times} of side {from} lost: {:#?}",
                net.summary()
            );
        }
    }
}

/// The send buffer of the connection bounds the data on all subflows; a partial segment waits.
#[test]
fn the_send_buffer_bounds_the_connection() {
    for (paths, buffer) in [(1, 64_000), (1, 16_000), (2, 64_000)] {
        let mut config = config(64 << 20);
        Arc::make_mut(&mut config.tcp).send_buffer = Bytes::new(buffer);
        let all = vec![Path::new(100, 20); paths];
        let mut net = Net::new(&all, config, "cubic", 7);
        net.run_for(ms(500));
        net.log = Some(Vec::new());
        net.write_endlessly(0);
        let until = net.now + ms(4000);
        net.run(until, |net| {
            assert!(net.ends[0].unacknowledged() <= buffer);
            false
        });
        // A round trip takes 40 ms.
        let most = buffer * 4000 / 40;
        assert!(
            (most * 8 / 10..=most).contains(&net.read[1]),
            "{paths} {buffer}: {} of {most}",
            net.read[1]
        );
        let log = net.log.take().unwrap();
        let sizes = log
            .iter()
            .filter(|(_, side, _)| *side == 0)
            .map(|l| l.2.segment.payload.len());
        let small = sizes.clone().filter(|n| (1..1400).contains(n)).count();
        let all = sizes.filter(|n| *n > 0).count();
        assert!(small * 20 < all, "{paths} {buffer}: {small} of {all}");
    }
}
