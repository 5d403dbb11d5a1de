//! The kernel's counters of Multipath TCP.

use std::collections::BTreeMap;

use crate::{Error, Result};
use gargalo_device::NetNs;

/// Reads the counters of a namespace: `MPTcpExt` in `/proc/net/netstat`, by name.
///
/// # Errors
/// When /proc is not mounted.
pub(crate) fn read(host: &NetNs) -> Result<BTreeMap<String, u64>> {
    host.run(|| {
        let path = "/proc/thread-self/net/netstat";
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::system(format!("reading {path}"), e))?;
        Ok(parse(&text))
    })
}

/// Parses two lines: names, then numbers.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|l| l.strip_prefix("MPTcpExt:"));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else {
        return BTreeMap::new();
    };
    let numbers = numbers.split_whitespace().map(|n| n.parse().unwrap_or(0));
    let names = names.split_whitespace().map(str::to_owned);
    names.zip(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_paired() {
        let text =
            "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPJoinAckRx\nMPTcpExt: 3 4\n";
        let all = parse(text);
        assert_eq!(all.get("MPJoinAckRx"), Some(&4));
        assert_eq!(all.len(), 2);
        assert!(parse("MPTcpExt: A\n").is_empty());
    }
}
