//! Aggregation: several paths are never worse than the best of them, and with enough buffer as good as their sum.

use crate::common::pairs::Pair;
use crate::common::*;

/// Goodput in Mbit/s over 10 s after a start of 3 s.
fn goodput(paths: &[Path], c: gargalo_mptcp::Config) -> f64 {
    Net::new(paths, c, "cubic", 9).goodput(ms(3000), ms(10_000))
}

#[test]
fn five_clean_paths_add_up() {
    let rates = [10, 25, 50, 75, 100];
    let paths = rates.map(|r| Path::new(r, 10));
    let mut c = config(16 << 20);
    c.path_manager = manager("single-mesh");
    let mut net = Net::new(&paths, c, "cubic", 9);
    // What waits for reassembly at the start of a measurement is read during it: over 20 s that is less
    // than 0.1% of 260 Mbit/s.
    let got = net.goodput(ms(5000), ms(20_000));
    assert_eq!(net.ends[0].subflows(net.now).count(), 5);
    let sum = rates.iter().sum::<u64>() as f64;
    // Of 1500 bytes 20 are IP's, 32 TCP's with timestamps, 20 the data sequence signal's: 95.2% are payload,
    // so 95% of the sum leaves 0.2% of the links unused.
    let payload = (1500.0 - 20.0 - 32.0 - 20.0) / 1500.0;
    println!(
        "{got:.2} of {sum} Mbit/s, {:.4} of what is payload",
        got / sum / payload
    );
    assert!(got >= 0.95 * sum, "{got:.2} of {sum} Mbit/s");
}

#[test]
fn a_slow_path_is_never_in_the_way_of_a_fast_one() {
    let (slow, fast) = (Path::new(10, 200), Path::new(100, 10));
    for kib in [256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768] {
        let c = || config(kib << 10);
        let alone = goodput(&[fast], c());
        for order in [[slow, fast], [fast, slow]] {
            let both = goodput(&order, c());
            println!("{kib} KiB: alone {alone:.2}, both {both:.2} Mbit/s");
            assert!(both >= 0.95 * alone);
        }
    }
}

#[test]
fn with_ample_buffers_unequal_paths_add_up() {
    let (slow, fast) = (Path::new(10, 200), Path::new(100, 10));
    // 16 MiB are 1.2 s of both paths: repairing the slow path's first overshoot takes longer and blocks the fast one.
    for (mib, least) in [(16, 0.88), (32, 0.95), (64, 0.95)] {
        let c = || config(mib << 20);
        let sum = goodput(&[fast], c()) + goodput(&[slow], c());
        for order in [[slow, fast], [fast, slow]] {
            let both = goodput(&order, c());
            println!("{mib} MiB: sum {sum:.2}, both {both:.2} Mbit/s");
            assert!(both >= least * sum);
        }
    }
}

#[test]
fn random_pairs_are_no_worse_than_the_better_path() {
    // The example `path_pairs` looks at more of them and at more buffers.
    for seed in 0..24 {
        let pair = Pair::random(seed);
        let pair = match seed % 2 {
            0 => pair,
            _ => pair.with_buffer(256_000),
        };
        let outcome = pair.judge("window-aware", 0.95);
        assert!(outcome.ratio() >= 0.95, "{pair}: {outcome:?}");
    }
}

#[test]
fn a_control_without_a_threshold_is_in_slow_start_only_while_it_says_so() {
    // A fast path that seemed to double its window for ever would fill any window.
    let paths = [Path::new(50, 5), Path::new(50, 150)];
    for control in ["bbr", "bbr2", "bbr3"] {
        for name in ["window-aware", "blest"] {
            let c = gargalo_mptcp::Config {
                scheduler: scheduler(name),
                ..Default::default()
            };
            let got = Net::new(&paths, c, control, 9).goodput(ms(5000), ms(8000));
            assert!(got >= 0.9 * 95.2, "{name}, {control}: {got:.2} Mbit/s");
        }
    }
}
