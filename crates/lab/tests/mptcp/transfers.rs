//! Transfers.

use crate::Test;
use crate::case::*;

pub const TESTS: &[Test] = &[
    ("ours_to_kernel_over_two_paths", ours_to_kernel),
    ("kernel_to_ours_over_two_paths", kernel_to_ours),
    ("kernel_to_kernel", kernels),
    ("ours_to_ours", ours),
];
fn ours() {
    let done = Case::new(OURS, &[(40, 5), (20, 10)], 20_000_000).run();
    done.is_whole();
}
fn kernels() {
    let done = Case::new(KERNELS, &[(40, 5), (20, 10)], 20_000_000).run();
    done.is_whole();
}

fn ours_to_kernel() {
    let done = Case::new(OURS_TO_KERNEL, &[(40, 5), (20, 10)], 20_000_000).run();
    done.is_whole();
    assert!(!done.report(0).fell_back && !done.report(1).fell_back);
}

fn kernel_to_ours() {
    let done = Case::new(KERNEL_TO_OURS, &[(40, 5), (20, 10)], 20_000_000).run();
    done.is_whole();
    assert!(!done.report(0).fell_back && !done.report(1).fell_back);
}
