//! Arguments and memory figures of the attack examples.

/// Resident memory of this process in MiB, where the system reports it.
pub fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// The number of packets of an attack, by default ten million, and the seed, from the command line.
///
/// # Panics
/// When an argument is not a number.
pub fn attack_of() -> (u64, u64) {
    let mut args = std::env::args().skip(1);
    let mut number = |or: u64, what: &str| args.next().map_or(or, |n| n.parse().expect(what));
    (
        number(10_000_000, "a number of packets"),
        number(1, "a seed"),
    )
}
