//! Masquerading during a run: the rest of the network responds to the machine, which forwards the responses.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

use super::place::{self, Place};
use crate::{Error, Result};

/// Masquerading and forwarding; both are undone when it is dropped, and when this process ends in any other way.
///
/// With nft the rules belong to a process that reads our pipe, and are removed with it. What else is to be undone does
/// a shell that waits for the end of a pipe of ours.
#[derive(Debug)]
pub struct Nat {
    _restorers: Vec<Restorer>,
    nft: Option<Child>,
}

/// A process that runs a command when this value is dropped or this process ends, also when that is killed.
#[derive(Debug)]
struct Restorer(Child);

impl Restorer {
    /// The arguments are `$1`, `$2` and so on of the script.
    fn new(script: &str, arguments: &[&str]) -> Result<Self> {
        // A Ctrl-C at the terminal reaches it too: it waits for us.
        let script = format!("trap '' INT TERM HUP QUIT; read -r _; {script}");
        Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|e| Error::Unsupported(format!("--nat needs sh: {e}")))
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
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
        let mut restorers = Vec::new();
        let nft = match nft(&network, ours.is_ipv6()) {
            Ok(child) => Some(child),
            Err(by_nft) => {
                let tool = if ours.is_ipv6() {
                    "ip6tables"
                } else {
                    "iptables"
                };
                iptables(tool, &network).map_err(|by_iptables| {
                    Error::Unsupported(format!(
                        "--nat needs nft or iptables: nft: {by_nft}; {tool}: {by_iptables}"
                    ))
                })?;
                restorers.push(Restorer::new(
                    r#""$1" -t nat -D POSTROUTING -s "$2" -j MASQUERADE"#,
                    &[tool, &network],
                )?);
                None
            }
        };
        if !place::is_on(switch) {
            restorers.push(Restorer::new(r#"echo 0 > "$1""#, &[switch])?);
            place::set(switch, "1")?;
        }
        Ok(Self {
            _restorers: restorers,
            nft,
        })
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

fn iptables(tool: &str, network: &str) -> std::result::Result<(), String> {
    let done = Command::new(tool)
        .args([
            "-t",
            "nat",
            "-A",
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
        if let Some(child) = &mut self.nft {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_restored_is_when_the_process_is_killed() {
        let file = std::env::temp_dir().join(format!("gargalo-nat-{}", std::process::id()));
        let path = file.to_str().unwrap();
        let undo = r#"echo undone > "$1""#;
        let restorer = Restorer::new(undo, &[path]).unwrap();
        assert!(!file.exists());
        drop(restorer);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "undone\n");
        std::fs::remove_file(&file).unwrap();

        // The kernel closes the pipe of a process that is killed, which a child of ours stands for.
        let mut restorer = Restorer::new(undo, &[path]).unwrap();
        let pipe = restorer.0.stdin.take().unwrap();
        let mut holder = Command::new("sh")
            .args(["-c", "exec sleep 60"])
            .stdout(pipe)
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!file.exists());
        holder.kill().unwrap();
        holder.wait().unwrap();
        restorer.0.wait().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "undone\n");
        std::fs::remove_file(&file).unwrap();
    }
}
