//! Malformed options, and options modified on the path: no panic, the delivered data is the written data, and
//! memory stays bounded.

use crate::common::attack::attack;
use crate::common::forge::{append, change_dss, shifted};
use crate::common::*;
use gargalo_mptcp::{Addresses, Event};
use gargalo_wire::mptcp::{AddAddr, DataNumber, Dss, Join, Mapping, MptcpOption};
use gargalo_wire::tcp::{Flags, Payload, Segment};
use std::net::SocketAddr;

fn two() -> [Path; 2] {
    [Path::new(20, 10), Path::new(20, 15)]
}

/// Changes every MP_JOIN of `side`.
fn change_joins(net: &mut Net, side: usize, change: fn(&mut Join)) {
    net.middlebox = Box::new(move |from, _, segment| {
        if let Some(list) = &segment.options.mptcp
            && from == side
        {
            let mut all = gargalo_wire::mptcp::List::default();
            for o in list.iter() {
                let mut o = o.clone();
                if let MptcpOption::Join(j) = &mut o {
                    change(j);
                }
                all.push(o);
            }
            segment.options.mptcp = Some(Box::new(all));
        }
        true
    });
}

/// Every byte arrives on the remaining paths.
fn survives(net: &mut Net) {
    net.transfer(3_000_000, ms(120_000));
    assert!(net.ends.iter().all(|e| e.is_multipath()));
}

#[test]
fn a_join_with_a_wrong_code_in_its_second_or_third_packet_is_refused() {
    let mut net = Net::new(&two(), config(1 << 20), "cubic", 40);
    change_joins(&mut net, 1, |j| {
        if let Join::SynAck { hmac, .. } = j {
            *hmac ^= 1;
        }
    });
    survives(&mut net);
    assert!(net.ends[0].stats().joins_refused > 0);
    assert_eq!(
        (net.ends[0].stats().subflows_opened, net.carried[1]),
        (1, 0)
    );

    let mut net = Net::new(&two(), config(1 << 20), "cubic", 40);
    change_joins(&mut net, 0, |j| {
        if let Join::Ack { hmac } = j {
            hmac[19] ^= 0x80;
        }
    });
    survives(&mut net);
    assert!(net.ends[1].stats().joins_refused > 0);
    assert_eq!(
        (net.ends[1].stats().subflows_opened, net.carried[1]),
        (1, 0)
    );

    // Without the HMAC it is not a third packet; the SYN-ACK is retransmitted until it is given up.
    let mut net = Net::new(&two(), config(1 << 20), "cubic", 40);
    net.middlebox = Box::new(|side, path, s| {
        if side == 0 && path == 1 && !s.flags.contains(Flags::SYN) {
            s.options.mptcp = None;
        }
        true
    });
    survives(&mut net);
    assert_eq!(net.ends[1].stats().subflows_opened, 1);
}

#[test]
fn joins_for_unknown_tokens_are_reset() {
    let mut net = Net::new(&two(), config(1 << 20), "cubic", 41);
    change_joins(&mut net, 0, |j| {
        if let Join::Syn { receiver_token, .. } = j {
            *receiver_token ^= 1;
        }
    });
    survives(&mut net);
    assert!(net.ends[1].stats().joins_refused > 0);
    assert_eq!(net.ends[1].stats().subflows_opened, 1);
}

#[test]
fn an_address_that_is_not_authentic_is_not_believed() {
    for honest in [true, false] {
        let mut c = config(1 << 20);
        c.path_manager = manager("full-mesh");
        let mut net = Net::new(&two(), c, "cubic", 42);
        net.middlebox = Box::new(move |side, _, s| {
            if side == 1
                && !honest
                && let Some(list) = &s.options.mptcp
            {
                let mut all = gargalo_wire::mptcp::List::default();
                for o in list.iter() {
                    all.push(match o {
                        MptcpOption::AddAddr(a) => MptcpOption::AddAddr(AddAddr {
                            hmac: a.hmac.map(|h| h ^ 1 << 40),
                            ..*a
                        }),
                        o => o.clone(),
                    });
                }
                s.options.mptcp = Some(Box::new(all));
            }
            true
        });
        survives(&mut net);
        let stats = net.ends[0].stats();
        // 2 x 2, or what the client can reach without the announcement.
        assert_eq!(stats.subflows_opened, if honest { 4 } else { 2 });
        assert_eq!(stats.ignored_options > 0, !honest);
    }
}

/// Modifies the mappings of the second path only.
fn broken_mappings(checksum: bool, change: impl Fn(&mut Mapping) + 'static) -> Net {
    let mut c = config(1 << 20);
    c.options.checksum = checksum;
    let mut net = Net::new(&two(), c, "cubic", 43);
    net.middlebox = Box::new(move |side, path, s| {
        if side == 0 && path == 1 {
            change_dss(s, |d| {
                if let Some(m) = &mut d.mapping {
                    change(m);
                }
            });
        }
        true
    });
    survives(&mut net);
    assert!(net.carried[1] > 0);
    net
}

#[test]
fn absurd_mappings_end_their_subflow_and_nothing_else() {
    for checksum in [false, true] {
        // Length zero is an infinite mapping, which is not allowed with two subflows.
        let net = broken_mappings(checksum, |m| m.length = 0);
        assert!(net.ends[1].stats().subflows_reset > 0);
        for far in [1 << 41, 1 << 62, 1 << 63, u64::MAX >> 2] {
            let net = broken_mappings(checksum, move |m| {
                if let DataNumber::Short(n) = m.data_seq {
                    m.data_seq = DataNumber::Long(far + u64::from(n));
                }
            });
            let stats = net.ends[1].stats();
            assert!(stats.subflows_reset > 0 && stats.ignored_options > 0);
        }
        // A mapping for another range of the subflow: the received data has none.
        for by in [1 << 20, 1 << 30, 1 << 31, u32::MAX - (1 << 20)] {
            let net = broken_mappings(checksum, move |m| {
                m.subflow_seq = m.subflow_seq.wrapping_add(by);
            });
            assert!(net.ends[1].stats().subflows_reset > 0, "{by}");
        }
    }
}

#[test]
fn mappings_beyond_the_window_are_dropped() {
    // Up to 2^31 away the number is plausible: the data is dropped, and retransmitted on another subflow.
    for by in [1 << 25, (1 << 31) - 1, (1 << 32) - (1 << 25)] {
        let net = broken_mappings(false, move |m| m.data_seq = shifted(m.data_seq, by));
        let stats = net.ends[1].stats();
        assert!(stats.duplicate_bytes > 0, "{by}: {stats:?}");
        assert!(net.ends[0].stats().reinjected_segments > 0);
    }
}

#[test]
fn changed_mappings_are_found_by_their_checksum() {
    let changes: [fn(&mut Mapping); 5] = [
        |m| m.data_seq = shifted(m.data_seq, 1),
        |m| m.data_seq = shifted(m.data_seq, 1428),
        |m| m.length = m.length.saturating_sub(1).max(1),
        |m| m.length += 1,
        |m| m.checksum = m.checksum.map(|c| c ^ 0x100),
    ];
    for change in changes {
        let net = broken_mappings(true, change);
        assert!(net.ends[1].stats().subflows_reset > 0);
    }
}

#[test]
fn a_mapping_whose_bytes_never_come_holds_up_nobody_for_long() {
    // The checksum covers 64 kB, but the sender's window on this path is smaller.
    let net = broken_mappings(true, |m| m.length = u16::MAX);
    assert!(net.ends[0].stats().reinjected_segments > 0);
    // Announced in advance by acknowledgements, each time with another position.
    let mut net = Net::new(&two(), config(1 << 20), "cubic", 44);
    let mut at = 1u32;
    net.middlebox = Box::new(move |side, _, s| {
        if side == 0 && s.payload.is_empty() && !s.flags.contains(Flags::SYN) {
            at = at.wrapping_add(3);
            change_dss(s, |d| {
                d.mapping.get_or_insert(Mapping {
                    data_seq: DataNumber::Short(at),
                    subflow_seq: at.wrapping_add(900_000_000),
                    length: 2,
                    checksum: None,
                });
            });
        }
        true
    });
    survives(&mut net);
}

#[test]
fn of_two_contents_for_the_same_bytes_the_first_that_came_holds() {
    let mut c = config(1 << 20);
    c.scheduler = scheduler("redundant");
    // The second path is slower: all its data was already received.
    let paths = [Path::new(20, 5), Path::new(20, 40)];
    let mut net = Net::new(&paths, c, "cubic", 45);
    net.middlebox = Box::new(|side, path, s| {
        if side == 0 && path == 1 && !s.payload.is_empty() {
            s.payload = Payload::real(vec![0xee; s.payload.len() as usize].into());
        }
        true
    });
    survives(&mut net);
    assert!(net.carried[1] > 20_000);
    assert!(net.ends[1].stats().duplicate_bytes > 20_000);
}

/// Appends an option to every segment that `side` sends after its handshake.
fn with_option(side: usize, option: impl Fn(u64) -> MptcpOption + 'static) -> Net {
    let mut net = Net::new(&two(), config(1 << 20), "cubic", 46);
    let mut n = 0;
    net.middlebox = Box::new(move |from, _, s| {
        if from == side && !s.flags.intersects(Flags::SYN | Flags::RST) {
            n += 1;
            append(s, option(n));
        }
        true
    });
    survives(&mut net);
    net
}

#[test]
fn a_fast_close_needs_the_key() {
    for side in 0..2 {
        let net = with_option(side, |n| MptcpOption::FastClose {
            receiver_key: n.wrapping_mul(0x1234_5678_9abc_def1),
        });
        assert!(net.ends[1 - side].stats().ignored_options > 100);
    }
}

#[test]
fn floods_of_priorities_and_of_removals_of_unknown_addresses_do_no_harm() {
    for side in 0..2 {
        with_option(side, |n| MptcpOption::Prio { backup: n % 2 == 0 });
        with_option(side, |n| {
            MptcpOption::RemoveAddr(vec![200 + (n % 50) as u8, 199, 198].into())
        });
        // Wrong HMACs, and echoes of addresses that were never announced.
        with_option(side, move |n| {
            MptcpOption::AddAddr(AddAddr {
                address_id: n as u8,
                address: address(1 - side, (n % 200) as usize),
                port: None,
                hmac: (n % 2 == 0).then_some(n),
            })
        });
    }
}

#[test]
fn a_failure_that_nobody_believes_does_no_harm_and_one_that_is_costs_a_subflow() {
    let fail = |seq_is_right: bool| {
        let mut net = Net::new(&two(), config(1 << 20), "cubic", 47);
        net.log = Some(Vec::new());
        net.ends[1].write_synthetic(10_000);
        net.ends[0].write_synthetic(10_000);
        net.run_for(ms(1000));
        let log = net.log.take().unwrap();
        let from_client = |t: &&(_, usize, gargalo_mptcp::Transmit)| t.1 == 0;
        let t = log.iter().rfind(from_client).unwrap().2.clone();
        let mut s = t.segment;
        s.seq = s.end();
        s.payload = Payload::EMPTY;
        if !seq_is_right {
            s.seq = s.seq + 0x4000_0000;
        }
        s.options.mptcp = None;
        append(&mut s, MptcpOption::Fail { data_seq: 1 });
        net.inject(1, t.addresses.reversed(), s);
        let resets = net.ends[1].stats().subflows_reset;
        net.ends[0].write_synthetic(1_000_000);
        net.run_for(ms(5_000));
        assert_eq!(net.read[1], 1_010_000);
        resets
    };
    assert_eq!((fail(false), fail(true)), (0, 1));
}

/// SYNs with MP_JOIN from changing ports.
#[test]
fn a_flood_of_joins_is_bounded_and_the_connection_goes_on() {
    let mut c = config(1 << 20);
    c.options.max_subflows = 8;
    let mut net = Net::new(&two(), c, "cubic", 48);
    net.run_for(ms(500));
    let token = net.ends[1].token();
    net.checks = true;
    let mut written = 0;
    for n in 0..20_000u32 {
        let port = 1 + (n % 60_000) as u16;
        let addresses = Addresses {
            local: SocketAddr::new(address(1, 0), 80),
            remote: SocketAddr::new(address(0, 7), port),
        };
        let mut s = Segment {
            src_port: port,
            dst_port: 80,
            flags: Flags::SYN,
            window: 1000,
            ..Segment::default()
        };
        append(
            &mut s,
            MptcpOption::Join(Join::Syn {
                backup: false,
                address_id: n as u8,
                // Every other one knows the token.
                receiver_token: token ^ (n & 1),
                nonce: n,
            }),
        );
        net.inject(1, addresses, s);
        assert!(net.ends[1].subflow_addresses().count() <= 8);
        if n % 20 == 0 {
            net.run_for(ms(5));
            written = net.write_stream(0, written, u64::MAX / 4);
            net.settle(0);
        }
    }
    assert!(net.ends[1].stats().joins_refused > 19_000);
    assert!(net.read[1] > 10_000_000, "{}", net.read[1]);
    // The half-open ones are given up finally, and a real join succeeds.
    net.run_for(ms(200_000));
    assert!(net.ends[1].subflow_addresses().count() <= 2);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_ignored() {
    let mut net = Net::new(&two(), config(1 << 20), "cubic", 49);
    net.middlebox = Box::new(|side, path, s| {
        if side == 1 && path == 1 {
            change_dss(s, |d| {
                if let Some(ack) = &mut d.data_ack {
                    *ack = shifted(*ack, 1 << 28);
                }
            });
        }
        true
    });
    survives(&mut net);
}

#[test]
fn a_data_fin_before_the_end_does_not_cut_the_stream_that_has_arrived() {
    // Beyond the received data it is accepted, as a FIN of TCP is; before it, never.
    let mut net = Net::new(&two()[..1], config(1 << 20), "cubic", 50);
    net.checks = true;
    net.run_for(ms(500));
    net.ends[0].write(content(0, 100_000));
    net.run_for(ms(2000));
    net.log = Some(Vec::new());
    net.ends[0].write(content(100_000, 1000));
    net.settle(0);
    let t = net.log.take().unwrap()[0].2.clone();
    let mut s = t.segment.clone();
    let mapping = match s.options.mptcp.as_ref().and_then(|l| l.dss().copied()) {
        Some(Dss {
            mapping: Some(m), ..
        }) => m,
        other => panic!("{other:?}"),
    };
    s.payload = Payload::EMPTY;
    change_dss(&mut s, |d| {
        d.data_fin = true;
        d.mapping = Some(Mapping {
            data_seq: shifted(mapping.data_seq, 1u64.wrapping_sub(50_000)),
            subflow_seq: 0,
            length: 1,
            checksum: None,
        });
    });
    net.inject(1, t.addresses.reversed(), s);
    net.run_for(ms(1000));
    assert_eq!(net.read[1], 101_000);
    assert!(!net.events[1].contains(&Event::PeerClosed));
}

#[test]
fn whatever_is_done_to_options_delivers_nothing_that_was_not_written() {
    let out = attack(1, 60_000, &mut || ());
    assert!(out.read > 10_000_000, "{out:?}");
    assert!(out.most_subflows <= 6 && out.most_out_of_order <= 400_000);
    assert!(out.forger.made.iter().all(|n| *n > 500), "{out:?}");
    assert!(out.ended < out.connections && out.connections > 1);
}

#[test]
fn a_changed_mapping_on_the_only_path_means_plain_tcp_and_the_right_bytes() {
    // (distance, first data segment that is changed)
    for (by, first) in [
        (1428, 30),
        (1, 30),
        (1 << 20, 5),
        (u64::MAX - 99_999, 80),
        (0, 30),
    ] {
        let mut c = config(1 << 20);
        c.options.checksum = true;
        let mut net = Net::new(&[Path::new(20, 10)], c, "cubic", 51);
        let mut n = 0;
        net.middlebox = Box::new(move |side, _, s| {
            if side == 0 && !s.payload.is_empty() {
                n += 1;
                if n == first {
                    change_dss(s, |d| {
                        if let Some(m) = &mut d.mapping {
                            m.data_seq = shifted(m.data_seq, by);
                            m.checksum = m.checksum.map(|c| c ^ u16::from(by == 0));
                        }
                    });
                }
            }
            true
        });
        net.transfer(1_000_000, ms(60_000));
        assert!(net.ends.iter().all(|e| e.has_fallen_back()), "{by}");
    }
}
