//! ADD_ADDR, REMOVE_ADDR and MP_PRIO, and the subflows between the addresses (RFC 8684 §3.3.8, §3.4).

use super::*;
use crate::crypto::address_hmac;
use gargalo_wire::mptcp::{AddAddr, Join};

fn manager(name: &str, params: Params) -> Arc<dyn Factory<dyn crate::path_manager::PathManager>> {
    Arc::new(crate::path_manager::Registered::new(name, params).unwrap())
}

fn adds(s: &Sent) -> bool {
    s.has(|o| matches!(o, MptcpOption::AddAddr(AddAddr { hmac: Some(_), .. })))
}

fn echoes(s: &Sent) -> bool {
    s.has(|o| matches!(o, MptcpOption::AddAddr(AddAddr { hmac: None, .. })))
}

/// The identifier in ADD_ADDR.
fn added(s: &Sent) -> Option<u8> {
    s.options().iter().find_map(|o| match o {
        MptcpOption::AddAddr(a) => Some(a.address_id),
        _ => None,
    })
}

/// An ADD_ADDR of the server that is authentic.
fn announcement(ends: &Ends, id: u8, address: IpAddr, port: Option<u16>) -> MptcpOption {
    let keys = [&ends.ends[1], &ends.ends[0]].map(|e| e.handshake.own);
    let known = SocketAddr::new(address, port.unwrap_or(0));
    MptcpOption::AddAddr(AddAddr {
        address_id: id,
        address,
        port,
        hmac: Some(address_hmac(keys[0], keys[1], id, known)),
    })
}

#[test]
fn an_address_is_announced_until_it_is_echoed_and_four_times_at_most() {
    let start = |echo: bool| {
        let mut ends = Ends::new([config(), config()], [init(0, 1), init(1, 2)]);
        let all = ends.run(Duration::from_secs(60), &mut |s| echo || !echoes(s));
        times(&all, adds)
    };
    assert_eq!(start(true).len(), 1);
    // The first wait is a second, and each is twice the one before.
    assert_eq!(gaps(&start(false)), [1000, 2000, 4000]);
}

#[test]
fn one_address_is_announced_after_the_other() {
    let start = |echo: bool| {
        let mut ends = Ends::new([config(), config()], [init(0, 1), init(1, 4)]);
        ends.delays[0] = ms(30);
        let all = ends.run(ms(990), &mut |s| echo || !echoes(s));
        let sent = all.iter().filter(|s| adds(s));
        let ids: Vec<_> = sent.clone().filter_map(added).collect();
        assert_eq!(ids, [1, 2, 3]);
        gaps(&sent.map(|s| s.at).collect::<Vec<_>>())
    };
    // After the echo, or after a round trip.
    assert_eq!(start(true), [60, 60]);
    assert_eq!(start(false), [60, 60]);
    // A round trip of less than 20 ms is not waited for.
    let mut ends = Ends::new([config(), config()], [init(0, 1), init(1, 4)]);
    ends.delays[0] = ms(2);
    let all = ends.run(ms(500), &mut |s| !echoes(s));
    assert_eq!(gaps(&times(&all, adds))[..2], [20, 20]);
}

#[test]
fn addresses_of_the_peer_are_stored_up_to_the_limit_and_all_are_echoed() {
    let mut config = config();
    config.max_remote_addresses = 3;
    let mut ends = Ends::new([config.clone(), config], [init(0, 1), init(1, 1)]);
    ends.wait(ms(100));
    let before = ends.ends[0].stats().ignored_options;
    // (identifier, port, options ignored so far)
    let cases = [
        (7, None, 0),
        (7, Some(99), 0),
        (5, Some(8080), 0),
        (9, None, 1),
        (5, None, 1),
    ];
    for (id, port, ignored) in cases {
        let option = announcement(&ends, id, address(1, usize::from(id)), port);
        ends.tell(0, 0, option);
        let echo = ends.poll(0);
        let echo: Vec<_> = echo
            .iter()
            .filter(|s| echoes(s))
            .filter_map(added)
            .collect();
        assert_eq!(echo, [id]);
        assert_eq!(ends.ends[0].stats().ignored_options - before, ignored);
    }
    let stored = ends.ends[0].address_table.remote.iter();
    let stored: Vec<_> = stored.map(|r| (r.id, r.address, r.port)).collect();
    // Without a port it is that of the connection.
    let expected = [(0, 0, 80), (5, 5, 8080), (7, 7, 80)];
    assert_eq!(
        stored,
        expected.map(|(id, path, port)| (id, address(1, path), port))
    );
    // The first address, to which the connection was opened, is not forgotten.
    for (ids, left) in [(&[0, 9][..], &[0, 5, 7][..]), (&[7], &[0, 5])] {
        ends.tell(0, 0, MptcpOption::RemoveAddr(ids.to_vec().into()));
        let stored = ends.ends[0].address_table.remote.iter();
        assert!(stored.map(|r| r.id).eq(left.iter().copied()));
    }
}

#[test]
fn an_announcement_with_another_code_is_ignored() {
    let mut ends = Ends::open(&config(), 1);
    let MptcpOption::AddAddr(a) = announcement(&ends, 3, address(1, 3), None) else {
        panic!()
    };
    let forged = AddAddr {
        hmac: a.hmac.map(|h| h ^ 1),
        ..a
    };
    ends.tell(0, 0, MptcpOption::AddAddr(forged));
    assert!(!ends.poll(0).iter().any(echoes));
    assert_eq!(ends.ends[0].stats().ignored_options, 1);
    assert_eq!(ends.ends[0].address_table.remote.len(), 1);
}

#[test]
fn what_a_peer_can_make_us_say_is_bounded() {
    let mut ends = Ends::open(&config(), 1);
    let option = announcement(&ends, 3, address(1, 3), None);
    for _ in 0..100 {
        ends.tell(0, 0, option.clone());
    }
    assert_eq!(ends.poll(0).iter().filter(|s| echoes(s)).count(), 16);
}

#[test]
fn identifiers_are_in_order_and_none_is_used_twice() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    let c = ends.client();
    let add = |c: &mut Connection, n: usize| c.add_address(now, address(0, n), false);
    assert_eq!(add(c, 1), None, "it is known");
    assert_eq!(add(c, 2), Some(2));
    assert_eq!(add(c, 3), Some(3));
    c.remove_address(now, address(0, 2));
    c.remove_address(now, address(0, 200));
    assert_eq!(add(c, 2), Some(4), "that of the removed address rests");
    for n in 5..=255 {
        assert_eq!(add(c, n), Some(n as u8));
    }
    // After the last one those that are free, and zero is that of the initial subflow.
    let other = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));
    assert_eq!(c.add_address(now, other, false), Some(2));
    let other = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 8));
    assert_eq!(c.add_address(now, other, false), None);
}

#[test]
fn a_removal_and_a_priority_are_said_three_times() {
    let mut ends = Ends::open(&config(), 3);
    let now = ends.now;
    let c = ends.client();
    assert!(!c.set_backup(now, 99, true), "there is none of this number");
    assert!(c.set_backup(now, 2, true));
    c.remove_address(now, address(0, 1));
    let all = ends.wait(Duration::from_secs(10));
    let of = |which: fn(&MptcpOption) -> bool| {
        let said = all.iter().filter(|s| s.side == 0 && s.has(which));
        let said: Vec<_> = said.map(|s| ((s.at - now).as_millis(), s.path)).collect();
        said
    };
    // After a timeout, then after two.
    let removals = of(|o| matches!(o, MptcpOption::RemoveAddr(ids) if ids[..] == [1]));
    assert_eq!(
        removals,
        [(0, 0), (0, 2), (220, 0), (220, 2), (660, 0), (660, 2)]
    );
    let priorities = of(|o| matches!(o, MptcpOption::Prio { backup: true }));
    assert_eq!(priorities, [(0, 2), (220, 2), (660, 2)]);
    assert!(ends.ends[1].views.iter().any(|v| v.id == 2 && v.backup));
    assert_eq!(ends.ends[1].subflows.len(), 2);
    // A later word replaces an earlier one.
    let now = ends.now;
    let c = ends.client();
    c.set_backup(now, 2, true);
    c.set_backup(now, 2, false);
    let all = ends.wait(Duration::from_secs(10));
    let said = |backup| times(&all, |s| s.options() == [MptcpOption::Prio { backup }]);
    assert_eq!((said(true).len(), gaps(&said(false))), (1, vec![220, 440]));
    assert!(ends.ends.iter().all(|e| e.views.iter().all(|v| !v.backup)));
}

#[test]
fn what_cannot_be_said_waits_for_a_subflow() {
    let mut ends = Ends::open(&config(), 1);
    ends.client().write_synthetic(1000);
    ends.wait(ms(100));
    let now = ends.now;
    let c = ends.client();
    c.add_address(now, address(0, 5), false);
    c.remove_address(now, address(0, 5));
    c.remove_address(now, address(0, 0));
    ends.delays.push(DELAY);
    ends.wait(ms(2000));
    let now = ends.now;
    ends.client().add_address(now, address(0, 1), false);
    let all = ends.wait(ms(500));
    let told = |id: u8| {
        all.iter().any(|s| {
            let of =
                |o: &MptcpOption| matches!(o, MptcpOption::RemoveAddr(ids) if ids.contains(&id));
            s.options().iter().any(of)
        })
    };
    assert!(told(0) && told(1));
}

#[test]
fn a_path_whose_address_is_removed_ends_unless_it_answers_after_a_round_trip() {
    // Milliseconds until a segment of the peer arrives there, and whether the path stays.
    for (answer, stays) in [(None, false), (Some(19), false), (Some(20), true)] {
        let mut ends = Ends::open(&config(), 2);
        let start = ends.now;
        ends.tell(0, 0, MptcpOption::RemoveAddr(vec![1].into()));
        assert!(!ends.ends[0].views[1].usable);
        let probe = ends.poll(0);
        assert!(
            probe
                .iter()
                .any(|s| s.path == 1 && s.segment().payload.is_empty())
        );
        let mut other = |s: &mut Sent| s.path == 0;
        if let Some(after) = answer {
            ends.run(ms(after), &mut other);
            let s = ends.full_ack_of(1, 1);
            ends.deliver(&s);
        }
        assert_eq!(ends.ends[0].views[1].usable, stays, "{answer:?}");
        let left = ms(219) - (ends.now - start);
        ends.run(left, &mut other);
        assert!(!ends.ends[0].subflows[1].closing);
        let all = ends.run(ms(10), &mut other);
        let resets = times(&all, |s| s.side == 0 && s.path == 1 && s.is(Flags::RST));
        assert_eq!(resets.len(), usize::from(!stays), "{answer:?}");
        assert_eq!(ends.ends[0].stats().subflows_reset, 0);
    }
}

#[test]
fn a_path_that_is_being_probed_is_not_ended_by_a_second_removal_and_an_unopened_one_is() {
    let mut ends = Ends::open(&config(), 2);
    for _ in 0..2 {
        ends.tell(0, 0, MptcpOption::RemoveAddr(vec![1].into()));
    }
    assert!(!ends.ends[0].subflows[1].closing);
    let mut ends = Ends::both(&config(), 2);
    ends.run(ms(100), &mut |s| s.path == 0);
    assert_eq!(ends.ends[0].subflows.len(), 2);
    ends.tell(0, 0, MptcpOption::RemoveAddr(vec![1].into()));
    ends.wait(ms(1));
    assert_eq!(ends.ends[0].subflows.len(), 1);
}

#[test]
fn a_removed_address_that_comes_back_has_a_new_subflow_at_once() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    let old = ends.ends[1].subflows[1].id;
    ends.tell(1, 0, MptcpOption::RemoveAddr(vec![1].into()));
    let c = ends.client();
    c.remove_address(now, address(0, 1));
    c.add_address(now, address(0, 1), false);
    ends.wait(ms(100));
    let end = &ends.ends[1];
    assert_eq!(end.subflows.len(), 2);
    assert!(end.subflows.iter().all(|s| s.is_usable()) && end.subflows[1].id > old);
}

#[test]
fn a_pair_of_addresses_that_fails_is_tried_ever_more_rarely() {
    let mut server = config();
    server.options.max_subflows = 1;
    let mut ends = Ends::new([config(), server], [init(0, 2), init(1, 2)]);
    let all = ends.wait(Duration::from_secs(250));
    let joins = times(&all, |s| s.side == 0 && s.path == 1 && s.is(Flags::SYN));
    let waits: Vec<_> = gaps(&joins).iter().map(|ms| ms / 1000).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    // When it succeeds, it is forgotten.
    ends.server().config = Arc::new(config());
    ends.wait(Duration::from_secs(61));
    assert_eq!(ends.ends[0].subflows.len(), 2);
    assert!(ends.ends[0].address_table.failures.is_empty());
}

#[test]
fn a_join_to_an_unreachable_address_ends_and_is_tried_again() {
    // A hard error, and whether it is about this subflow.
    for (hard, mine, left) in [(false, true, 2), (true, false, 2), (true, true, 1)] {
        let mut ends = Ends::both(&config(), 2);
        ends.run(ms(100), &mut |s| s.path == 0);
        let now = ends.now;
        let c = ends.client();
        let addresses = c.subflows[1].addresses;
        let about = if mine {
            addresses
        } else {
            addresses.reversed()
        };
        c.on_unreachable(now, about, hard);
        ends.poll(0);
        assert_eq!(ends.ends[0].subflows.len(), left, "{hard} {mine}");
        ends.wait(ms(1300));
        assert!(ends.ends[0].subflows[1].is_usable());
    }
}

#[test]
fn several_subflows_between_two_addresses_have_ports_of_their_own() {
    let mut config = config();
    config.path_manager = manager("ndiffports", Params::new().with("subflows", 4.0));
    let mut ends = Ends::both(&config, 1);
    ends.wait(ms(50));
    ends.client().write_synthetic(1000);
    ends.wait(ms(200));
    for (side, end) in ends.ends.iter().enumerate() {
        let client = |a: &Addresses| [a.local, a.remote][side].port();
        let mut ports: Vec<_> = end.subflow_addresses().map(|a| client(&a)).collect();
        assert_eq!((ports.len(), ports[0]), (4, 40_000));
        assert!(ports[1..].iter().all(|p| (32_768..=60_999).contains(p)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 4);
    }
}

#[test]
fn other_paths_are_opened_from_the_port_of_the_connection() {
    let ends = Ends::open(&config(), 3);
    let ports = ends.ends[0].subflow_addresses().map(|a| a.local.port());
    assert!(ports.eq([40_000; 3]));
}

#[test]
fn a_client_announces_nothing_and_without_a_manager_that_wants_it_neither_does_a_server() {
    for name in ["single-mesh", "default"] {
        let mut with = config();
        with.path_manager = manager(name, Params::new());
        let mut ends = Ends::new([with.clone(), with], [init(0, 3), init(1, 3)]);
        let all = ends.wait(ms(500));
        let said = |side| all.iter().filter(|s| s.side == side && adds(s)).count();
        assert_eq!((said(0), said(1) > 0), (0, name == "single-mesh"), "{name}");
    }
}

#[test]
fn joins_wait_until_the_peer_is_known_to_have_the_keys() {
    // Without announcements the client learns it from the first DSS.
    let mut with = config();
    with.path_manager = manager("full-mesh", Params::new());
    let mut ends = Ends::new([with.clone(), with], [init(0, 2), init(1, 1)]);
    ends.wait(ms(500));
    assert_eq!(ends.ends[0].subflows.len(), 1);
    ends.client().write_synthetic(1000);
    let all = ends.wait(ms(500));
    let join = all
        .iter()
        .find(|s| s.has(|o| matches!(o, MptcpOption::Join(Join::Syn { .. }))));
    assert_eq!(join.map(|s| s.path), Some(1));
}

#[test]
fn a_path_with_smaller_packets_has_smaller_segments() {
    let mut ends = Ends::open(&config(), 2);
    let now = ends.now;
    let c = ends.client();
    let (before, addresses) = (c.views[1].mss, c.subflows[1].addresses);
    c.set_mss(now, addresses.reversed(), 500);
    assert_eq!(c.views[1].mss, before);
    c.set_mss(now, addresses, 500);
    // Less 12 octets of timestamps, and 20 of DSS.
    assert_eq!((c.views[0].mss, c.views[1].mss), (before, 500 - 12 - 20));
}
