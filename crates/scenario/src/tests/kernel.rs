//! What hosts with the kernel's stack need of it, as far as any kernel has it (`reno`) or none (`compound`).

use super::places::points_at_its_path;
use crate::{Diagnostics, Names, Origin, Scenario, World, parse_for};

const TEXT: &str = r#"duration = "1s"
[topology.simple]
link = { rate = "10Mbit/s" }
[hosts.client]
stack = "kernel"
congestion = "reno"
[[flows]]
from = "client"
to = "server"
transport.tcp.congestion = "reno"
[[flows]]
from = "server"
to = "client"
count = 2
transport.mptcp = { congestion = "compound" }
"#;

fn parse(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, Diagnostics> {
    let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    let overrides: Vec<_> = overrides.iter().map(owned).collect();
    parse_for(
        World::Lab,
        text,
        &Origin::default(),
        &overrides,
        &Names::default(),
    )
}

/// Paths and lines of what is refused, which is always the same.
fn refused(text: &str, overrides: &[(&str, &str)]) -> Vec<(String, usize)> {
    let Err(errors) = parse(text, overrides) else {
        return Vec::new();
    };
    for d in errors.iter() {
        assert_eq!(d.message, "the kernel has no congestion control compound");
        let help = d.help.as_deref().unwrap_or_default();
        assert!(
            help.contains("reno") && help.contains("modprobe tcp_compound"),
            "{help}"
        );
        assert!(d.line == 0 || points_at_its_path(text, d), "{d:#?}");
    }
    let place = |d: &crate::Diagnostic| (d.path.clone().unwrap_or_default(), d.line);
    errors.iter().map(place).collect()
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_refused_where_it_was_written() {
    // Ours sends it, or nobody asks the kernel.
    assert!(refused(TEXT, &[]).is_empty());
    let text = TEXT.replace("reno", "compound");
    assert!(super::set(&text, &[]).is_ok());
    let tcp = ("flows.0.transport.tcp.congestion".to_owned(), 10);
    let host = ("hosts.client.congestion".to_owned(), 6);
    assert_eq!(refused(&text, &[]), [host.clone(), tcp.clone()]);
    // Two copies of a flow are one key.
    let mptcp = ("flows.1.transport.mptcp.congestion".to_owned(), 15);
    let all = text.replace("[hosts.client]", "[hosts.\"*\"]");
    let host = ("hosts.*.congestion".to_owned(), 6);
    assert_eq!(refused(&all, &[]), [host, tcp, mptcp.clone()]);
    // The host that is asked sends.
    let asked = TEXT.replace(
        "to = \"client\"",
        "to = \"client\"\nworkload.request.size = \"1kB\"",
    );
    assert_eq!(refused(&asked, &[]), [(mptcp.0.clone(), 16)]);
    let key = "flows.0.transport.tcp.congestion";
    assert_eq!(refused(TEXT, &[(key, "compound")]), [(key.to_owned(), 0)]);
}

#[test]
fn it_is_drawn_with_a_caret() {
    let text = TEXT.replace(
        "congestion = \"reno\"\n[[flows]]",
        "congestion = \"compound\"\n[[flows]]",
    );
    let drawn = parse(&text, &[]).unwrap_err().render(false);
    assert!(drawn.contains("congestion = \"compound\""), "{drawn}");
    assert!(drawn.contains("not in this kernel"), "{drawn}");
}
