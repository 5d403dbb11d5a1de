//! Asks the kernel to run a thread soon after it wakes up.

use std::mem::size_of;

use nix::libc;

/// `struct sched_attr` (sched_setattr(2)), its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that the kernel grants, in nanoseconds.
const SLICE: u64 = 100_000;

/// Requests short time slices: since Linux 6.12 a thread with a short slice runs earlier among threads of the same
/// priority. Older kernels refuse, and nothing changes.
pub(crate) fn prefer_short_slices() {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        // SAFETY: requests only a number.
        nice: unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) },
        runtime: SLICE,
        ..Attributes::default()
    };
    // SAFETY: the pointer is to a whole sched_attr of the size that it says; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
