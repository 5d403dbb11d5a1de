//! Several paths are never worse than the best of them, and with room to reorder as good as all.

mod common;

use common::pairs::Pair;
use common::*;

/// Goodput in Mbit/s after 3 s, over 10 s.
fn goodput(paths: &[Path], c: gargalo_mptcp::Config) -> f64 {
    Net::new(paths, c, "cubic", 9).goodput(ms(3000), ms(10_000))
}

/// What of a link's rate is payload at best: 1500 bytes of which 20 are IP, 20 + 12 TCP with timestamps and
/// 20 the data sequence signal with short numbers.
const PAYLOAD: f64 = (1500.0 - 20.0 - 32.0 - 20.0) / 1500.0;

#[test]
fn five_clean_paths_add_up() {
    let rates = [10, 25, 50, 75, 100];
    let paths = rates.map(|r| Path::new(r, 10));
    let mut c = config(16 << 20);
    c.path_manager = manager("single-mesh");
    let mut net = Net::new(&paths, c, "cubic", 9);
    let got = net.goodput(ms(3000), ms(10_000));
    assert_eq!(net.ends[0].subflows(net.now).count(), 5);
    let sum = rates.iter().sum::<u64>() as f64;
    println!(
        "{got:.2} of {sum}: {:.4}; of payload {:.4}",
        got / sum,
        got / sum / PAYLOAD
    );
    assert!(got >= 0.95 * sum, "{got:.1} of {sum} Mbit/s");
}

#[test]
fn a_slow_path_is_never_in_the_way_of_a_fast_one() {
    let (slow, fast) = (Path::new(10, 200), Path::new(100, 10));
    for kib in [256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768] {
        let c = || config(kib << 10);
        let alone = goodput(&[fast], c());
        for order in [[slow, fast], [fast, slow]] {
            let both = goodput(&order, c());
            println!("{kib} {alone:.2} {both:.2}");
            assert!(
                both >= 0.95 * alone,
                "{both:.1} of {alone:.1} Mbit/s at {kib} KiB"
            );
        }
    }
}

#[test]
fn with_ample_buffers_unequal_paths_add_up() {
    let (slow, fast) = (Path::new(10, 200), Path::new(100, 10));
    let c = || config(32 << 20);
    let sum = goodput(&[fast], c()) + goodput(&[slow], c());
    for order in [[slow, fast], [fast, slow]] {
        let both = goodput(&order, c());
        println!("{sum:.2} {both:.2}");
        assert!(both >= 0.9 * sum, "{both:.1} of {sum:.1} Mbit/s");
    }
}

#[test]
fn random_pairs_are_no_worse_than_the_better_path() {
    // The example `path_pairs` looks at more of them and at more buffers.
    for seed in 0..24 {
        let pair = Pair::random(seed);
        let outcome = pair.measure("window-aware");
        assert!(outcome.ratio() >= 0.95, "{pair}: {outcome:?}");
    }
}
