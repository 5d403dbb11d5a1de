//! Masquerading during a run: the rest of the network responds to the machine, which forwards the responses.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

use super::place::{self, Place};
use crate::{Error, Result};

/// Masquerading and forwarding; both are undone when it is dropped.
///
/// With nft the rules belong to a process that reads our pipe, and are removed with it even when we are killed; with
/// iptables they remain after `kill -9`.
#[derive(Debug)]
pub struct Nat {
    rules: Rules,
    /// The forwarding switch to restore.
    forwarding: Option<&'static str>,
}

#[derive(Debug)]
enum Rules {
    Nft(Child),
    Iptables { tool: &'static str, network: String },
}

impl Nat {
    /// Hides the IPv4 network of a place behind the machine's own address.
    ///
    /// # Errors
    /// When neither nft nor iptables can do it.
    pub fn for_place(place: &Place) -> Result<Self> {
        let inner = place.v4.1.into();
        Self::new(inner, place::forwarding(inner))
    }

    /// Hides the network of `ours` behind the machine's own address.
    pub fn new(ours: IpAddr, switch: &'static str) -> Result<Self> {
        let network = match ours {
            IpAddr::V4(_) => format!("{ours}/30"),
            IpAddr::V6(_) => format!("{ours}/126"),
        };
        let rules = match nft(&network, ours.is_ipv6()) {
            Ok(child) => Rules::Nft(child),
            Err(by_nft) => {
                let tool = if ours.is_ipv6() {
                    "ip6tables"
                } else {
                    "iptables"
                };
                iptables(tool, "-A", &network).map_err(|by_iptables| {
                    Error::Unsupported(format!(
                        "--nat needs nft or iptables: nft: {by_nft}; {tool}: {by_iptables}"
                    ))
                })?;
                Rules::Iptables { tool, network }
            }
        };
        let forwarding = if place::is_on(switch) {
            None
        } else {
            place::set(switch, "1")?;
            Some(switch)
        };
        Ok(Self { rules, forwarding })
    }
}

/// Creates a table owned by a process: the kernel removes the table when the process ends.
fn nft(network: &str, is_v6: bool) -> std::result::Result<Child, String> {
    let family = if is_v6 { "ip6" } else { "ip" };
    let mut child = Command::new("nft")
        .arg("-i")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let table = format!("gargalo-{}", std::process::id());
    let script = format!(
        "add table {family} {table} {{ flags owner; }}\n\
         add chain {family} {table} out {{ type nat hook postrouting priority srcnat; }}\n\
         add rule {family} {table} out {family} saddr {network} masquerade\n"
    );
    let written = child
        .stdin
        .as_mut()
        .map(|pipe| pipe.write_all(script.as_bytes()));
    if !matches!(written, Some(Ok(()))) {
        let _ = child.kill();
        let _ = child.wait();
        return Err("it does not take commands".to_owned());
    }
    // It reads line by line; only a query confirms that the commands were executed.
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let listed = Command::new("nft")
            .args(["list", "chain", family, &table, "out"])
            .output();
        if listed.is_ok_and(|l| String::from_utf8_lossy(&l.stdout).contains("masquerade")) {
            return Ok(child);
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err("it did not make the table".to_owned())
}

fn iptables(tool: &str, action: &str, network: &str) -> std::result::Result<(), String> {
    let done = Command::new(tool)
        .args([
            "-t",
            "nat",
            action,
            "POSTROUTING",
            "-s",
            network,
            "-j",
            "MASQUERADE",
        ])
        .output()
        .map_err(|e| e.to_string())?;
    if done.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        match &mut self.rules {
            Rules::Nft(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Rules::Iptables { tool, network } => {
                let _ = iptables(tool, "-D", network);
            }
        }
        if let Some(switch) = self.forwarding {
            let _ = place::set(switch, "0");
        }
    }
}
