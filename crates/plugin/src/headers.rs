//! The C headers, for builds away from this crate.

/// Files by their path below a folder for headers.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "gargalo_congestion.h",
        include_str!("../include/gargalo_congestion.h"),
    ),
    (
        "gargalo_stack.h",
        include_str!("../include/gargalo_stack.h"),
    ),
    (
        "gargalo_window.h",
        include_str!("../include/gargalo_window.h"),
    ),
    (
        "linux/gargalo_linux.h",
        include_str!("../include/linux/gargalo_linux.h"),
    ),
    (
        LINUX_RUNTIME,
        include_str!("../include/linux/gargalo_linux.c"),
    ),
];

/// What a Linux module is compiled with.
pub const LINUX_RUNTIME: &str = "linux/gargalo_linux.c";

/// What a Linux module may include; each is `linux/gargalo_linux.h`.
pub const LINUX_NAMES: &[&str] = &[
    "asm/div64.h",
    "linux/bpf.h",
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/compiler.h",
    "linux/init.h",
    "linux/inet_diag.h",
    "linux/jiffies.h",
    "linux/kernel.h",
    "linux/ktime.h",
    "linux/list.h",
    "linux/math64.h",
    "linux/minmax.h",
    "linux/mm.h",
    "linux/module.h",
    "linux/moduleparam.h",
    "linux/net.h",
    "linux/printk.h",
    "linux/random.h",
    "linux/skbuff.h",
    "linux/slab.h",
    "linux/sysctl.h",
    "linux/tcp.h",
    "linux/time.h",
    "linux/types.h",
    "linux/version.h",
    "linux/win_minmax.h",
    "net/inet_connection_sock.h",
    "net/sock.h",
    "net/tcp.h",
];
