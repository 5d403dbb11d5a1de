//! Ten thousand random networks: every byte arrives once, in order, and nothing deadlocks.

use gargalo_cc::{Init, Params, find};
use gargalo_link::Link;
use gargalo_tcp::{Config, Endpoint, Profile};
use gargalo_testkit::network::random_link;
use gargalo_testkit::{Pair, Transfer};
use gargalo_units::{Bytes, Duration, Instant, Seq};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

const NETWORKS: u64 = 10_000;

fn rng(n: u64) -> Pcg64 {
    Pcg64::new(
        u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
        7,
    )
}

fn random_config(rng: &mut Pcg64) -> Config {
    let mut config = Profile::ALL[rng.random_range(0..Profile::ALL.len())].config();
    config.mss = [536, 1000, 1448][rng.random_range(0..3)];
    config.sack = rng.random();
    config.timestamps = rng.random();
    config.window_scaling = rng.random();
    // Windows smaller than a segment, of a few segments, and ample ones.
    config.receive_buffer = Bytes::new([600, 3_000, 20_000, 1_000_000][rng.random_range(0..4)]);
    config.send_buffer = Bytes::new([2_000, 100_000, 1_000_000][rng.random_range(0..3)]);
    // Data must arrive however long it takes: no connection is given up.
    config.data_retries = 100;
    config.syn_retries = 100;
    config.max_rto = Duration::from_secs(4);
    config
}

fn endpoint(config: &Config, algorithm: &str, rng: &mut Pcg64, client: bool) -> Endpoint {
    let mss = Bytes::new(u64::from(config.mss));
    let init = Init {
        now: Instant::ZERO,
        mss,
        initial_window: config.first_window(),
        rng: Pcg64::new(u128::from(rng.next_u64()), 3),
    };
    let algorithm = find(algorithm).expect("registered");
    let controller = (algorithm.build)(&Params::default(), init).expect("defaults are valid");
    let (local_port, remote_port) = if client { (40_000, 80) } else { (80, 40_000) };
    let init = gargalo_tcp::Init {
        local_port,
        remote_port,
        // Sequence numbers and timestamps wrap in one run of four.
        isn: Seq::new(if rng.random_range(0..4) == 0 {
            u32::MAX - 20_000
        } else {
            rng.random()
        }),
        ts_offset: rng.random(),
        ..gargalo_tcp::Init::default()
    };
    if client {
        Endpoint::connect(config.clone(), controller, init, Instant::ZERO)
    } else {
        Endpoint::listen(config.clone(), controller, init, Instant::ZERO)
    }
}

fn try_network(n: u64) -> Result<(), String> {
    let mut rng = rng(n);
    let rng = &mut rng;
    let (up, down) = (random_link(rng), random_link(rng));
    let describe = format!("network {n}: up {up:?}, down {down:?}");
    let algorithm = ["reno", "cubic", "bbr"][rng.random_range(0..3)];
    let (client, server) = (random_config(rng), random_config(rng));
    let mut link = |config| {
        Link::new(config, Pcg64::new(u128::from(rng.next_u64()), 5)).map_err(|e| e.to_string())
    };
    let (up, down) = (link(up)?, link(down)?);
    let ends = (
        endpoint(&client, algorithm, rng, true),
        endpoint(&server, algorithm, rng, false),
    );
    let mut pair = Pair::new(ends.0, ends.1, up, down);
    let transfer = Transfer {
        bytes: [rng.random_range(1..40_000), rng.random_range(1..10_000)],
        read_limit: if rng.random() { u64::MAX } else { 1_000 },
    };
    transfer
        .run(&mut pair, Instant::ZERO + Duration::from_secs(3_600))
        .map_err(|e| format!("{algorithm}: {e}\n{describe}\nclient {client:?}\nserver {server:?}"))
}

/// One network by number, to look into a failure: `NETWORK=17 cargo test -- one_network`.
#[test]
fn one_network() {
    let n = std::env::var("NETWORK")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    try_network(n).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|w| {
                scope.spawn(move || {
                    (w..NETWORKS)
                        .step_by(workers as usize)
                        .filter_map(|n| try_network(n).err())
                        .take(3)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        handles
            .into_iter()
            .flat_map(|h| h.join().expect("a worker panicked"))
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
