//! What a congestion control was in the system of a profile: which implementation, with which parameters.

use gargalo_cc::Params;

use super::Profile;

/// A congestion control of an operating system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// The implementation that the name alone stands for, if it is another.
    pub instead: Option<&'static str>,
    /// Its parameters, where they are not its defaults.
    pub params: Params,
}

impl Profile {
    /// What the system has under the name of a congestion control: without anything, the one of that name with its
    /// defaults.
    pub fn control(self, name: &str) -> Control {
        match self {
            Self::Modern | Self::Rfc5681 | Self::Smoltcp => Control::default(),
            Self::Ns3 => kept(ns3_3_27(name)),
            Self::Linux6 => linux_6(name),
            Self::Linux41 => linux_4_1(name),
            Self::Ns2 => ns2_2_29(name),
        }
    }
}

fn kept(params: Params) -> Control {
    Control {
        instead: None,
        params,
    }
}

/// ns-3.27 (`src/internet/model/tcp-*.cc`). Slow start is `TcpNewReno`'s in all of them: a segment for each
/// acknowledgement, whatever it covers, until a loss or the threshold.
fn ns3_3_27(name: &str) -> Params {
    let each = Params::new().with("abc_limit", 1.0);
    match name {
        "reno" | "newreno" | "bic" | "hstcp" | "htcp" | "illinois" | "scalable" | "veno"
        | "westwood" | "yeah" => each,
        // An addition to this release (`TcpCubic` came with 3.33): without a hybrid slow start.
        "cubic" => each.with("slow_start", "standard"),
        // `TcpHybla::RRTT` is 50 ms; initial window and the end of slow start are NewReno's.
        "hybla" => each
            .with("rtt0", "50ms")
            .with("scale_initial_window", false)
            .with("bandwidth_estimate", false),
        // It begins with NewReno's slow start and the transport's initial window.
        "ledbat" => each
            .with("initial_slow_start", true)
            .with("slow_start_exit", 1.0)
            .with("init_cwnd", 0.0),
        // Slow start grows in each round trip, not in every other one.
        "vegas" => each.with("alternate", false),
        _ => Params::new(),
    }
}

/// Linux 6 (`net/ipv4/tcp_cong.c`, `tcp_cubic.c`): slow start counts all segments of an acknowledgement, and Reno
/// halves the window, not the data in flight.
fn linux_6(name: &str) -> Control {
    let window = Params::new().with("reduce_from", "cwnd");
    match name {
        "reno" => kept(window.with("abc_limit", 1_000_000.0)),
        "cubic" => Control {
            instead: Some("cubic-linux"),
            params: Params::new(),
        },
        _ => Control::default(),
    }
}

/// Linux 3.18 and 4.1 with release 0.90 of multipath-tcp.org (`net/mptcp/mptcp_coupled.c`, `mptcp_olia.c`,
/// `mptcp_balia.c`): the couplings count in integers and reduce the window; BALIA's ratio of rates is a whole number.
fn linux_4_1(name: &str) -> Control {
    let window = Params::new().with("reduce_from", "cwnd");
    match name {
        "reno" => kept(window),
        "lia" | "olia" => kept(window.with("arithmetic", "linux")),
        "balia" => kept(window.with("arithmetic", "linux").with("whole_ratio", true)),
        _ => linux_6(name),
    }
}

/// ns-2.29 with the modules of 2005 to 2008 that comparisons of controls for high speeds added.
fn ns2_2_29(name: &str) -> Control {
    let none = Params::new();
    match name {
        // Xu, Harfoush and Rhee (INFOCOM 2004): a reduction by 1/8.
        "bic" => kept(none.with("beta", 0.875)),
        // Rhee and Xu (PFLDnet 2005): 160 segments a second at most, a reduction by a fifth; HyStart is of 2008.
        "cubic" => Control {
            instead: Some("cubic-linux"),
            params: none
                .with("s_max", 160.0)
                .with("beta", 819.0)
                .with("hystart_detect", "off"),
        },
        // A constant number of packets in queues: 200 in published experiments at 1 Gbit/s.
        "fast" => kept(none.with("tuning", false).with("alpha", 200.0)),
        // The capacity in its own unit (Marfia et al., 2007).
        "libra" => kept(none.with("capacity", 1.0)),
        _ => Control::default(),
    }
}

#[cfg(test)]
mod tests {
    use gargalo_cc::params::checked;
    use gargalo_cc::{ALGORITHMS, find};

    use super::*;

    #[test]
    fn what_a_profile_says_of_a_control_is_valid() {
        for profile in Profile::ALL {
            for algorithm in ALGORITHMS {
                let control = profile.control(algorithm.name);
                let own = find(control.instead.unwrap_or(algorithm.name)).unwrap();
                let found = checked((own.params)(), own.name, &control.params);
                found.unwrap_or_else(|e| panic!("{}: {e}", profile.name()));
            }
        }
    }

    /// `instead:key=value,...`, in the order of keys.
    fn said(profile: Profile, name: &str) -> String {
        let Control { instead, params } = profile.control(name);
        let mut values: Vec<_> = params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        values.sort();
        let said = format!("{}:{}", instead.unwrap_or(""), values.join(","));
        said.replace('"', "")
    }

    #[test]
    fn a_control_is_that_of_the_system() {
        let said = |profile, names: &[&str], expected: &str| {
            for name in names {
                assert_eq!(
                    said(profile, name),
                    expected,
                    "{name} of {}",
                    profile.name()
                );
            }
        };
        for profile in [Profile::Modern, Profile::Rfc5681, Profile::Smoltcp] {
            said(profile, &["reno", "cubic", "bic", "vegas"], ":");
        }
        let ns3 = |names: &[&str], more: &str| said(Profile::Ns3, names, more);
        let as_newreno = [
            "reno", "newreno", "bic", "hstcp", "htcp", "illinois", "scalable", "veno", "westwood",
            "yeah",
        ];
        ns3(&as_newreno, ":abc_limit=1");
        ns3(&["cubic"], ":abc_limit=1,slow_start=standard");
        let hybla = ":abc_limit=1,bandwidth_estimate=false,rtt0=50ms,scale_initial_window=false";
        ns3(&["hybla"], hybla);
        let ledbat = ":abc_limit=1,init_cwnd=0,initial_slow_start=true,slow_start_exit=1";
        ns3(&["ledbat"], ledbat);
        ns3(&["vegas"], ":abc_limit=1,alternate=false");
        ns3(&["bbr"], ":");
        said(
            Profile::Linux6,
            &["reno"],
            ":abc_limit=1000000,reduce_from=cwnd",
        );
        said(Profile::Linux41, &["reno"], ":reduce_from=cwnd");
        for profile in [Profile::Linux6, Profile::Linux41] {
            said(profile, &["cubic"], "cubic-linux:");
            said(profile, &["vegas", "wvegas"], ":");
        }
        said(Profile::Linux6, &["lia", "olia", "balia"], ":");
        let coupled = ":arithmetic=linux,reduce_from=cwnd";
        said(Profile::Linux41, &["lia", "olia"], coupled);
        said(
            Profile::Linux41,
            &["balia"],
            &format!("{coupled},whole_ratio=true"),
        );
        let ns2 = |name, more: &str| said(Profile::Ns2, &[name], more);
        ns2("bic", ":beta=0.875");
        ns2("cubic", "cubic-linux:beta=819,hystart_detect=off,s_max=160");
        ns2("fast", ":alpha=200,tuning=false");
        ns2("libra", ":capacity=1");
        ns2("reno", ":");
    }
}
