//! A live transfer in both directions while forged datagrams arrive at both hosts.

use gargalo_units::Duration;
use gargalo_wire::ip::Addresses;

use super::forge::Forger;
use super::*;

/// The result of the attack.
#[derive(Debug)]
pub struct Outcome {
    pub world: World,
    pub forger: Forger,
    pub injected: u64,
    /// Maximum number of connections in the server's table.
    pub most_connections: usize,
    /// Bytes that arrived, at the server and at the client, all of them correct.
    pub moved: [u64; 2],
}

/// Transfers `bytes` each way while `injected` datagrams are forged, `burst` in every millisecond; the transfer
/// lasts a little longer than the attack. `watch` is called at intervals.
#[track_caller]
pub fn attack(
    v6: bool,
    seed: u64,
    injected: u64,
    burst: u64,
    watch: &mut dyn FnMut(u64),
) -> Outcome {
    let mut w = World::new(Network {
        loss: 0.001,
        jitter: ms(1),
        ..Network::default()
    });
    w.keep = 256;
    w.hosts[SERVER].listen(server(v6), cubic()).unwrap();
    let ids = w.connect(server(v6), &cubic());
    let mut forger = Forger::new(seed);
    let [client, server] = [CLIENT, SERVER].map(|side| address(v6, side));
    let toward = [
        Addresses::new(server, client).unwrap(),
        Addresses::new(client, server).unwrap(),
    ];
    let mut done = 0;
    let mut most_connections = 0;
    let mut streams = [CLIENT, SERVER].map(|from| Transfer::new(ids, from, u64::MAX));
    let mut ending = false;
    let end = w.now + Duration::from_secs(24 * 3600);
    loop {
        if !ending && done >= injected {
            ending = true;
            for s in &mut streams {
                s.stop();
            }
        }
        let finished = streams.each_mut().map(|s| s.step(&mut w.hosts));
        if ending && finished == [true; 2] {
            break;
        }
        w.run_for(ms(1));
        w.events.clear();
        assert!(w.now < end, "the transfer does not end");
        if ending {
            continue;
        }
        for _ in 0..burst {
            let side = (done % 2) as usize;
            let [from_client, from_server] = &w.recent;
            let (theirs, own) = if side == SERVER {
                (from_client, from_server)
            } else {
                (from_server, from_client)
            };
            let bytes = forger.forge(theirs, own, toward[side]);
            let now = w.now;
            w.hosts[side].handle(now, &bytes);
            done += 1;
            if done % (1 << 18) == 0 {
                watch(done);
            }
        }
        most_connections = most_connections.max(w.hosts[SERVER].connection_count());
    }
    Outcome {
        world: w,
        forger,
        injected: done,
        most_connections,
        moved: streams.map(|s| s.read),
    }
}
