//! Options of single packets: keys and DATA_FIN without data, flags of MP_CAPABLE, lengths of DSS numbers.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::*;
use gargalo_mptcp::{Config, DataNumbers, Event};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, DataNumber, Dss, MptcpOption};
use gargalo_wire::tcp::{Flags, Segment};

fn dss(segment: &Segment) -> Option<&Dss> {
    segment.options.mptcp.as_ref()?.dss()
}

fn has_keys(segment: &Segment) -> bool {
    let list = segment.options.mptcp.as_ref();
    list.is_some_and(|l| {
        l.iter().any(|o| {
            matches!(
                o,
                MptcpOption::Capable {
                    keys: CapableKeys::Both { .. },
                    ..
                }
            )
        })
    })
}

/// Closes `first`, and the other side when it hears of it; returns the time until both have ended in order.
fn close_without_data(net: &mut Net, first: usize) -> u64 {
    let begin = net.now;
    net.ends[first].close(begin);
    let mut answered = false;
    let done = net.run(begin + ms(20_000), |net| {
        if net.events[1 - first].contains(&Event::PeerClosed) && !answered {
            answered = true;
            let now = net.now;
            net.ends[1 - first].close(now);
            net.settle(1 - first);
        }
        net.events.iter().all(|e| e.contains(&Event::Closed))
    });
    assert!(done, "{:#?}", net.summary());
    let took = (net.now - begin).as_millis();
    assert!(net.ends.iter().all(|e| e.is_multipath()));
    net.run_for(ms(70_000));
    assert!(
        net.ends.iter().all(|e| e.is_closed()),
        "{:#?}",
        net.summary()
    );
    assert_eq!([net.ends[0].error(), net.ends[1].error()], [None, None]);
    took
}

#[test]
fn either_side_can_close_before_any_data() {
    for first in [0, 1] {
        let mut net = Net::new(&[Path::new(100, 10)], config(1 << 20), "cubic", 1);
        net.run_for(ms(500));
        net.log = Some(Vec::new());
        let took = close_without_data(&mut net, first);
        assert!(took < 100, "side {first}: {took} ms");
        let log = net.log.take().unwrap();
        let from_first = log.iter().find(|l| l.1 == first).unwrap();
        let fin = dss(&from_first.2.segment).unwrap();
        let mapping = fin.mapping.unwrap();
        assert!(fin.data_fin && fin.data_ack.is_some());
        assert_eq!((mapping.subflow_seq, mapping.length), (0, 1));
        assert!(log.iter().all(|l| !l.2.segment.flags.contains(Flags::RST)));
    }
}

#[test]
fn a_close_in_the_moment_of_opening_sends_the_keys_first() {
    let mut net = Net::new(&[Path::new(100, 10)], config(1 << 20), "cubic", 1);
    net.log = Some(Vec::new());
    net.middlebox = Box::new(|side, _, _| side == 0);
    net.run_for(ms(100));
    net.middlebox = Box::new(|_, _, _| true);
    let (_, _, answer) = net.log.as_ref().unwrap().last().unwrap().clone();
    let now = net.now;
    net.ends[0].handle(now, answer.addresses.reversed(), answer.segment, answer.ecn);
    let took = close_without_data(&mut net, 0);
    assert!(took < 100, "{took} ms");
    let log = net.log.take().unwrap();
    let mut sent = log.iter().filter(|l| l.1 == 0).map(|l| &l.2.segment);
    assert!(sent.next().unwrap().flags.contains(Flags::SYN));
    assert!(has_keys(sent.next().unwrap()));
    assert!(dss(sent.next().unwrap()).unwrap().data_fin);
}

#[test]
fn a_repeated_data_fin_has_the_keys_before_it() {
    let mut net = Net::new(&[Path::new(100, 10)], config(1 << 20), "cubic", 1);
    // The server gets nothing of what follows the SYN, until the DATA_FIN was sent.
    net.middlebox = Box::new(|side, _, s| side == 1 || s.flags.contains(Flags::SYN));
    net.run_for(ms(100));
    let now = net.now;
    net.ends[0].close(now);
    net.settle(0);
    net.middlebox = Box::new(|_, _, _| true);
    let took = close_without_data(&mut net, 0);
    assert!(took < 2000, "{took} ms");
}

#[test]
fn data_fin_does_not_wait_for_the_first_data_to_be_confirmed() {
    let mut net = Net::new(&[Path::new(100, 10)], config(1 << 20), "cubic", 1);
    net.run_for(ms(100));
    net.log = Some(Vec::new());
    net.transfer(1000, ms(1000));
    let log = net.log.take().unwrap();
    let fins = log
        .iter()
        .filter(|l| l.1 == 0 && dss(&l.2.segment).is_some_and(|d| d.data_fin));
    let times: Vec<u64> = fins.map(|l| l.0.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [100]);
}

#[test]
fn an_answer_with_the_flag_b_is_not_understood() {
    let mut net = Net::new(&[Path::new(100, 10)], config(1 << 20), "cubic", 1);
    net.middlebox = Box::new(|side, _, s| {
        let list = s.options.mptcp.as_ref().filter(|_| side == 1);
        if let Some(MptcpOption::Capable { flags, keys, .. }) = list.and_then(|l| l.lone()) {
            let changed = MptcpOption::Capable {
                version: 1,
                flags: *flags | CapableFlags::EXTENSIBLE,
                keys: *keys,
            };
            s.options.mptcp = Some(Box::new(changed.into()));
        }
        true
    });
    net.transfer(100_000, ms(10_000));
    assert!(net.ends.iter().all(|e| e.has_fallen_back()));
}

/// Lengths of DSS numbers by what both ends are set to.
#[test]
fn data_sequence_numbers_and_acknowledgements_have_lengths_of_their_own() {
    use DataNumbers::{Long, Short};
    let with = |numbers, acks| {
        let mut c = config(1 << 20);
        (c.options.data_numbers, c.options.data_acks) = (numbers, acks);
        c
    };
    for (numbers, acks) in [(Short, Short), (Short, Long), (Long, Short), (Long, Long)] {
        for peer in [Short, Long] {
            let (client, server) = (with(numbers, acks), with(peer, Short));
            let long_acks = acks == Long || peer == Long;
            let seen = numbers_of(client, server);
            let case = format!("{numbers:?} {acks:?} {peer:?}");
            assert_eq!(seen.numbers, [numbers == Long], "{case}");
            // Those beside segments that were sent before the peer's numbers were known stay short.
            assert_eq!(seen.acks, [long_acks], "{case}");
            assert_eq!(seen.last, Some(long_acks), "{case}");
            let octets =
                4 + 6 + if numbers == Long { 8 } else { 4 } + if long_acks { 8u32 } else { 4 };
            assert_eq!(seen.full, 1448 - octets.next_multiple_of(4), "{case}");
        }
    }
}

#[derive(Default)]
struct Seen {
    /// Changes of whether numbers have 8 octets, in the packets of the client.
    numbers: Vec<bool>,
    /// The same of DATA_ACKs without data, and of the last one beside a full segment.
    acks: Vec<bool>,
    last: Option<bool>,
    /// Payload of the last full segment.
    full: u32,
}

/// A transfer in both directions with a loss, so that segments are sent again.
fn numbers_of(client: Config, server: Config) -> Seen {
    let mut net = Net::asymmetric(&[Path::new(20, 10)], client, server, "cubic", 9);
    net.checks = true;
    let seen = Rc::new(Cell::new(Seen::default()));
    let notes = seen.clone();
    let mut count = 0;
    net.middlebox = Box::new(move |side, _, s| {
        let mut seen = notes.take();
        let is_long = |n: &DataNumber| matches!(n, DataNumber::Long(_));
        let note = |list: &mut Vec<bool>, n: &DataNumber| {
            if list.last() != Some(&is_long(n)) {
                list.push(is_long(n));
            }
        };
        if let Some(d) = dss(s).filter(|_| side == 0) {
            if let Some(ack) = d.data_ack.as_ref().filter(|_| s.payload.is_empty()) {
                note(&mut seen.acks, ack);
            }
            if let Some(m) = d.mapping.as_ref().filter(|m| m.length > 1000) {
                note(&mut seen.numbers, &m.data_seq);
                seen.full = u32::from(m.length);
                seen.last = d.data_ack.as_ref().map(is_long);
            }
        }
        notes.set(seen);
        count += u32::from(!s.payload.is_empty());
        count % 50 != 20
    });
    let mut written = [0; 2];
    let until = net.now + ms(20_000);
    let done = net.run(until, |net| {
        for (side, written) in written.iter_mut().enumerate() {
            // The server's first data comes while the client's is in flight.
            if side == 0 || net.read[1] > 20_000 {
                *written = net.write_stream(side, *written, 1_000_000);
                net.settle(side);
            }
        }
        net.read == [1_000_000; 2]
    });
    assert!(done, "{:#?}", net.summary());
    seen.take()
}
