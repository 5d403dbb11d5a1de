//! Goodput beside the kernel's, on the same emulated network in the same run of the tests.
//!
//! Times depend on the machine, so what is asserted is little; the numbers are printed.

use crate::Test;
use crate::case::*;
use crate::transfers::bytes;

pub const TESTS: &[Test] = &[
    ("ours_beside_the_kernel_over_two_paths", || {
        beside(&[(40, 10), (40, 10)], 8_000_000, 64 << 20);
    }),
    ("ours_beside_the_kernel_over_unlike_paths", || {
        beside(&[(10, 100), (100, 5)], 16_000_000, 64 << 20);
    }),
    (
        "ours_beside_the_kernel_over_unlike_paths_small_window",
        || {
            beside(&[(10, 100), (100, 5)], 8_000_000, 256 << 10);
        },
    ),
];

fn beside(paths: &[(u64, u64)], usual: u64, window: u64) {
    let one = |who, paths: &[(u64, u64)], plain| {
        let done = Case {
            verify: false,
            plain,
            receive_buffer: window,
            seconds: 60,
            ..Case::new(who, paths, bytes(usual))
        }
        .run();
        if who.client == Side::Ours {
            done.is_whole();
        }
        // With small buffers two kernels sometimes stop for good; what they delivered by then counts.
        done.goodput()
    };
    let best = *paths.iter().max_by_key(|p| p.0).expect("there are paths");
    let kernel_tcp = one(KERNELS, &[best], true);
    let ours_tcp = one(OURS, &[best], true);
    let kernel = one(KERNELS, paths, false);
    let ours = one(OURS, paths, false);
    let (to_kernel, from_kernel) = (
        one(OURS_TO_KERNEL, paths, false),
        one(KERNEL_TO_OURS, paths, false),
    );
    eprintln!(
        "\n{paths:?} (Mbit/s, one-way ms), window {window}: kernel {kernel:.1} Mbit/s, ours {ours:.1} \
         ({:.2} of it), ours to kernel {to_kernel:.1}, kernel to ours {from_kernel:.1}; \
         TCP on the best path: kernel {kernel_tcp:.1}, ours {ours_tcp:.1}",
        ours / kernel
    );
    assert!(ours > kernel / 2.0, "{ours} of {kernel} Mbit/s");
    assert!(ours > ours_tcp / 2.0, "{ours} of {ours_tcp} Mbit/s");
}
