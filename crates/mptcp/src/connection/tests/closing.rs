//! The end of connections and of subflows.

use super::*;
use crate::ResetReason;
use crate::send::Fin;
use gargalo_tcp::{Error, State};
use gargalo_wire::mptcp::Dss;

fn states(ends: &Ends) -> [State; 2] {
    [ends.ends[0].state(), ends.ends[1].state()]
}

fn close(ends: &mut Ends, side: usize) {
    let now = ends.now;
    ends.ends[side].close(now);
}

fn has_fin(s: &Sent) -> bool {
    s.has(|o| matches!(o, MptcpOption::Dss(Dss { data_fin: true, .. })))
}

#[test]
fn data_fin_leads_through_the_states_of_tcp() {
    use State::{CloseWait, Closed, Established, FinWait1, FinWait2, LastAck, Listen, SynSent};
    let mut ends = Ends::both(&config(), 2);
    assert_eq!(states(&ends), [SynSent, Listen]);
    ends.wait(ms(300));
    assert_eq!(states(&ends), [Established, Established]);
    ends.client().write_synthetic(1000);
    close(&mut ends, 0);
    assert_eq!(states(&ends), [FinWait1, Established]);
    assert_eq!(
        (ends.client().write_room(), ends.client().write_synthetic(5)),
        (0, 0)
    );
    assert_eq!(ends.client().write(bytes::Bytes::from_static(b"no")), 0);
    ends.wait(ms(15));
    assert_eq!(states(&ends), [FinWait1, CloseWait]);
    assert_eq!(ends.read[1], 1000);
    ends.wait(ms(15));
    assert_eq!(states(&ends), [FinWait2, CloseWait]);
    // The other direction stays open.
    ends.server().write_synthetic(2000);
    ends.wait(ms(15));
    assert_eq!(ends.read[0], 2000);
    ends.wait(ms(50));
    close(&mut ends, 1);
    assert_eq!(states(&ends), [FinWait2, LastAck]);
    ends.wait(ms(15));
    assert_eq!(states(&ends), [State::TimeWait, LastAck]);
    assert!(!ends.ends[0].is_closed());
    ends.wait(ms(300));
    let last = |end: usize| ends.events[end].last().copied();
    assert!(matches!(
        last(0),
        Some(Event::Closed | Event::SubflowClosed { .. })
    ));
    ends.wait(Duration::from_secs(120));
    assert_eq!(states(&ends), [Closed, Closed]);
    for (end, events) in ends.ends.iter().zip(&ends.events) {
        assert!(end.is_closed() && end.error().is_none() && end.poll_timeout().is_none());
        assert_eq!(
            events.iter().filter(|e| **e == Event::PeerClosed).count(),
            1
        );
        assert_eq!(events.iter().filter(|e| **e == Event::Closed).count(), 1);
    }
    for side in 0..2 {
        let end = &mut ends.ends[side];
        let ended: Vec<_> = std::iter::from_fn(|| end.poll_ended()).collect();
        assert_eq!(ended.iter().map(|s| s.id).collect::<Vec<_>>(), [0, 1]);
        let bytes: u64 = ended.iter().map(|s| s.received_bytes).sum();
        assert_eq!(bytes, [2000, 1000][side]);
        // The counters of ended subflows are kept.
        let segments: u64 = ended.iter().map(|s| s.stats.sent_segments).sum();
        assert_eq!(end.stats().tcp.sent_segments, segments);
        let segments: u64 = ended.iter().map(|s| s.stats.received_segments).sum();
        assert_eq!(end.stats().tcp.received_segments, segments);
    }
}

#[test]
fn a_connection_that_is_closed_before_it_opens_ends_at_once() {
    let mut ends = Ends::both(&config(), 1);
    close(&mut ends, 0);
    assert_eq!(
        (ends.ends[0].state(), ends.ends[0].error()),
        (State::Closed, None)
    );
    ends.wait(ms(10));
    assert_eq!(ends.events[0], [Event::Closed]);
    // Data that was written before is sent first.
    let mut ends = Ends::both(&config(), 1);
    ends.client().write_synthetic(1000);
    close(&mut ends, 0);
    ends.wait(ms(100));
    assert_eq!(ends.read[1], 1000);
    assert!(ends.events[1].contains(&Event::PeerClosed));
    assert_eq!(states(&ends), [State::FinWait2, State::CloseWait]);
}

#[test]
fn a_data_fin_is_sent_on_the_best_path_and_again_on_all_that_work() {
    let mut ends = Ends::open(&config(), 3);
    let now = ends.now;
    // The first was slow when it was last used, and the third does not work.
    let c = ends.client();
    c.views[0].srtt = Some(ms(90));
    c.subflows[2].closing = true;
    c.refresh(now, 2);
    c.close(now);
    let all = ends.run(Duration::from_secs(3), &mut |_| false);
    let fins = all.iter().filter(|s| s.side == 0 && has_fin(s));
    let fins: Vec<_> = fins.map(|s| ((s.at - now).as_millis(), s.path)).collect();
    // With only DATA_FIN outstanding no second is waited for: the longest timeout and its round trip, at first 220 and
    // 90 ms.
    let late = |at| [(at, 0), (at, 1)];
    let expected: Vec<_> = [
        vec![(0, 1)],
        late(310).into(),
        late(790).into(),
        late(1750).into(),
    ]
    .concat();
    assert_eq!(fins, expected);
    // A path in loss is the last choice.
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    ends.client().views[0].in_loss = true;
    ends.client().close(now);
    let fin = ends.poll(0);
    assert_eq!((fin[0].path, has_fin(&fin[0])), (1, true));
}

#[test]
fn a_data_fin_that_is_never_acknowledged_ends_the_connection() {
    let mut config = config();
    config.tcp = Arc::new(gargalo_tcp::Config {
        data_retries: 3,
        ..gargalo_tcp::Config::clone(&config.tcp)
    });
    let mut ends = Ends::open(&config, 1);
    let start = ends.now;
    close(&mut ends, 0);
    let all = ends.run(Duration::from_secs(100), &mut |s| s.side == 1);
    let fins = times(&all, has_fin);
    assert_eq!(fins.len(), 1 + 3);
    assert_eq!(ends.ends[0].error(), Some(Error::TimedOut));
    let reset = times(&all, |s| s.is(Flags::RST));
    assert_eq!((reset[0] - start).as_millis(), 240 * (1 + 2 + 4 + 8));
}

#[test]
fn an_abort_resets_every_subflow_with_the_key_and_is_answered_by_plain_resets() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    let key = |s: &Sent| match s.options()[..] {
        [MptcpOption::FastClose { receiver_key }] => Some(receiver_key),
        [] => None,
        ref other => panic!("{other:?}"),
    };
    ends.client().abort(now);
    ends.client().abort(now);
    let sent = ends.poll(0);
    assert_eq!(sent.iter().map(|s| s.path).collect::<Vec<_>>(), [0, 1]);
    assert!(sent.iter().all(|s| s.is(Flags::RST) && key(s) == Some(2)));
    ends.wait(ms(1));
    assert_eq!(ends.ends[0].error(), Some(Error::Aborted));
    assert!(ends.events[0].contains(&Event::Closed));
    // The peer resets the subflow that it has not heard of yet.
    ends.deliver(&sent[0]);
    let answer = ends.poll(1);
    assert_eq!(answer.iter().map(|s| s.path).collect::<Vec<_>>(), [1]);
    assert!(answer[0].is(Flags::RST) && key(&answer[0]).is_none());
    assert_eq!(ends.ends[1].error(), Some(Error::Reset));
    ends.wait(ms(1));
    assert!(ends.events[1].contains(&Event::Reset));
    assert!(ends.ends.iter().all(Connection::is_closed));
    // Without the right key it is ignored.
    let mut ends = Ends::open(&config(), 1);
    ends.tell(1, 0, MptcpOption::FastClose { receiver_key: 1 });
    assert_eq!(
        (ends.ends[1].error(), ends.ends[1].stats().ignored_options),
        (None, 1)
    );
}

#[test]
fn each_end_of_a_connection_has_its_event() {
    for (error, event) in [
        (None, Event::Closed),
        (Some(Error::Aborted), Event::Closed),
        (Some(Error::Reset), Event::Reset),
        (Some(Error::Refused), Event::Reset),
        (Some(Error::Unreachable), Event::Reset),
        (Some(Error::TimedOut), Event::TimedOut),
    ] {
        let mut ends = Ends::open(&config(), 1);
        let now = ends.now;
        ends.client().write_synthetic(1000);
        ends.client().end(now, error);
        assert_eq!(ends.ends[0].error(), error);
        assert!(error.is_none() || ends.ends[0].state() == State::Closed);
        ends.wait(ms(1));
        assert!(ends.events[0].contains(&event), "{error:?}");
        assert_eq!(ends.client().write_room(), 0);
    }
}

#[test]
fn a_subflow_that_the_peer_closes_is_closed_and_its_data_goes_over_others() {
    let (config, told) = told(Options::default());
    let mut ends = Ends::open(&config, 2);
    ends.carry(&told, 0, 3);
    let now = ends.now;
    let s = &mut ends.server().subflows[0];
    s.closing = true;
    s.endpoint.close(now);
    ends.server().work.active = !0;
    ends.wait(ms(300));
    let again = ends.assigned();
    let expected = [0, 1, 2].map(|k| (1, k, Carried::Reinjected));
    assert_eq!(again, expected);
    assert_eq!(ends.read[1], 3 * ends.ends[0].views[0].mss);
    ends.wait(Duration::from_secs(120));
    assert!(
        ends.events[1]
            .iter()
            .any(|e| matches!(e, Event::SubflowClosed { id: 0, .. }))
    );
    assert!(!ends.events[1].contains(&Event::PeerClosed));
    assert_eq!(states(&ends), [State::Established, State::Established]);
}

#[test]
fn a_connection_without_a_subflow_waits_a_minute_for_another() {
    for rescued in [false, true] {
        let mut ends = Ends::new([config(), config()], [init(0, 1), init(1, 1)]);
        ends.wait(ms(100));
        ends.client().write_synthetic(1000);
        ends.wait(ms(100));
        let now = ends.now;
        let gone = address(0, 0);
        ends.client().remove_address(now, gone);
        assert_eq!(ends.ends[0].state(), State::Established);
        ends.wait(ms(59_000));
        assert!(ends.ends[0].error().is_none());
        if rescued {
            let now = ends.now;
            ends.delays.push(DELAY);
            assert_eq!(
                ends.client().add_address(now, address(0, 1), false),
                Some(1)
            );
        }
        ends.wait(ms(1100));
        let expected = (!rescued).then_some(Error::TimedOut);
        assert_eq!(ends.ends[0].error(), expected);
    }
}

#[test]
fn a_plain_connection_ends_by_the_fin_of_tcp() {
    let mut ends = Ends::both(&config(), 1);
    let mut strip = |s: &mut Sent| {
        s.transmit.segment.options.mptcp = None;
        true
    };
    ends.run(ms(100), &mut strip);
    assert!(ends.ends.iter().all(Connection::has_fallen_back));
    let now = ends.now;
    ends.client().write_synthetic(100_000);
    ends.client().close(now);
    let all = ends.run(ms(500), &mut strip);
    assert!(all.iter().all(|s| s.options().is_empty()));
    assert_eq!(ends.read[1], 100_000);
    assert_eq!(
        ends.events[1]
            .iter()
            .filter(|e| **e == Event::PeerClosed)
            .count(),
        1
    );
    assert_eq!(ends.ends[1].state(), State::CloseWait);
    assert_eq!(
        (ends.client().unacknowledged(), ends.client().send.fin),
        (0, Fin::Sent)
    );
    ends.server().write_synthetic(50_000);
    close(&mut ends, 1);
    ends.run(Duration::from_secs(120), &mut strip);
    assert_eq!(ends.read[0], 50_000);
    for (end, events) in ends.ends.iter().zip(&ends.events) {
        assert!(end.is_closed() && end.error().is_none());
        assert!(events.contains(&Event::Closed));
    }
}

#[test]
fn a_reset_of_the_initial_subflow_ends_a_connection_only_before_it_is_multipath() {
    let reset = |ends: &mut Ends| {
        let now = ends.now;
        ends.server()
            .reset_subflow(now, 0, ResetReason::Unspecified);
        let sent = ends.poll(1);
        assert!(sent[0].is(Flags::RST));
        ends.deliver(&sent[0]);
        ends.wait(ms(1));
    };
    let mut ends = Ends::open(&config(), 2);
    reset(&mut ends);
    assert_eq!(
        (ends.ends[0].error(), ends.ends[0].subflows.len()),
        (None, 1)
    );
    // No specific reason is not a fault of a path.
    assert_eq!(ends.ends[1].stats().subflows_reset, 0);
    let mut ends = Ends::both(&config(), 1);
    ends.run(ms(100), &mut |s| {
        s.transmit.segment.options.mptcp = None;
        true
    });
    reset(&mut ends);
    assert_eq!(ends.ends[0].error(), Some(Error::Reset));
    // A server that refuses.
    let mut ends = Ends::both(&config(), 1);
    let syn = ends.poll(0).remove(0);
    ends.server()
        .refuse(syn.transmit.addresses.reversed(), syn.segment(), None);
    let answer = ends.poll(1).remove(0);
    ends.deliver(&answer);
    ends.wait(ms(1));
    assert_eq!(ends.ends[0].error(), Some(Error::Refused));
    assert_eq!(ends.events[0], [Event::Reset]);
}

#[test]
fn the_latest_256_ended_subflows_are_kept() {
    let mut ends = Ends::open(&config(), 1);
    let (now, client) = (ends.now, ends.client());
    let addresses = client.subflows[0].addresses;
    for n in 0..300u16 {
        let plan = super::super::opening::Plan {
            addresses: Addresses {
                local: SocketAddr::new(address(0, 9), 1000 + n),
                ..addresses
            },
            gateway: None,
            origin: crate::subflow::Origin::PeerJoin,
            local_id: 9,
            remote_id: None,
            backup: false,
            active: false,
        };
        let i = client.make(now, plan).unwrap();
        client.subflows[i].announced = true;
        client.drop_subflow(now, i);
    }
    let all: Vec<_> = std::iter::from_fn(|| client.poll_ended())
        .map(|s| s.id)
        .collect();
    assert_eq!(all, Vec::from_iter(45..=300));
}
