//! A user-space host on a TUN device of the current network namespace, in real time: it connects our TCP to the
//! kernel's, and through it to the rest of the network.

mod drive;
mod terminal;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

pub use drive::{Outlet, Watch};
pub use gargalo_device::Nat;
use gargalo_device::place::{self, Reach, reach};
use gargalo_device::port::Port;
use gargalo_device::{Clock, Error, Place, Result, precise_timers};
use gargalo_host::{Host, HostConfig};
use gargalo_trace::pcapng::{Interface, Writer};

/// Options of a host's connection.
#[derive(Clone, Debug)]
pub struct WireOptions {
    /// Longest datagram on the device, in bytes.
    pub mtu: u32,
    /// Runs of segments may pass in one system call.
    pub offload: bool,
    /// Seed of the host.
    pub seed: u64,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self {
            mtu: 1500,
            offload: true,
            seed: 0,
        }
    }
}

/// The device, the addresses at its ends, the clock. All of it is removed when the process ends, for any reason.
#[derive(Debug)]
pub struct Wire {
    port: Port,
    name: String,
    place: Place,
    has_v6: bool,
    options: WireOptions,
    clock: Clock,
    capture: Option<Capture>,
}

type PcapWriter = Writer<std::io::BufWriter<std::fs::File>>;

struct Capture {
    writer: PcapWriter,
    interface: u32,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

impl Wire {
    /// Creates the device, in the network namespace of the calling thread, and assigns the kernel its address.
    ///
    /// # Errors
    /// When the user lacks the privilege (`CAP_NET_ADMIN`), or the system has no TUN.
    pub fn open(options: WireOptions) -> Result<Self> {
        let (port, name, index) = Port::new(options.offload)?;
        let place = Place::free(std::process::id())?;
        let has_v6 = place.take(index, options.mtu)?;
        precise_timers();
        Ok(Self {
            port,
            name,
            place,
            has_v6,
            options,
            clock: Clock::start(),
            capture: None,
        })
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The addresses at its ends.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Time since the wire was opened.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Records every datagram that the host sends and receives.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn capture(&mut self, path: &Path) -> Result<()> {
        let failed = |e: &dyn std::fmt::Display| Error::File {
            path: path.to_owned(),
            reason: std::io::Error::other(e.to_string()),
        };
        let epoch = std::time::SystemTime::now();
        let mut writer =
            Writer::create(path, &format!("gargalo {epoch:?}")).map_err(|e| failed(&e))?;
        let interface = Interface {
            name: self.name.clone(),
            ..Interface::default()
        };
        let interface = writer.add_interface(&interface).map_err(|e| failed(&e))?;
        self.capture = Some(Capture { writer, interface });
        Ok(())
    }

    /// Creates a host at our end.
    ///
    /// # Errors
    /// When the MTU is not valid for it.
    pub fn host(&self) -> Result<Host> {
        let mut addresses = vec![IpAddr::from(self.place.v4.1)];
        if self.has_v6 {
            addresses.push(self.place.v6.1.into());
        }
        let config = HostConfig {
            mtu: self.options.mtu,
            seed: self.options.seed,
            checksum_offload: self.port.offloads(),
            ..HostConfig::new(addresses)
        };
        Host::new(config, self.clock.now()).map_err(|e| Error::Unsupported(e.to_string()))
    }

    /// Makes `remote` reachable and returns the address to use for it: loopback addresses, which cannot be routed,
    /// become the kernel's end of the wire. With `nat`, traffic beyond this machine is masqueraded as long as the
    /// second value lives. Remarks for the user are appended to `remarks`.
    ///
    /// # Errors
    /// When packets must be forwarded and forwarding is off.
    pub fn reach(
        &self,
        remote: SocketAddr,
        nat: bool,
        remarks: &mut Vec<String>,
    ) -> Result<(SocketAddr, Option<Nat>)> {
        let ip = remote.ip();
        if ip.is_ipv6() && !self.has_v6 {
            return Err(Error::Unsupported(
                "this network namespace has no IPv6: net.ipv6.conf.all.disable_ipv6 is 1".into(),
            ));
        }
        if ip.is_loopback() {
            let kernel = self.place.kernel(ip);
            remarks.push(format!(
                "{ip} is reached as {kernel}: a loopback address cannot be routed"
            ));
            return Ok((SocketAddr::new(kernel, remote.port()), None));
        }
        if reach(ip)? == Reach::Local {
            return Ok((remote, None));
        }
        if nat {
            let held = Nat::new(self.place.ours(ip), place::forwarding(ip))?;
            return Ok((remote, Some(held)));
        }
        self.forward(ip, remarks)?;
        Ok((remote, None))
    }

    fn forward(&self, remote: IpAddr, remarks: &mut Vec<String>) -> Result<()> {
        let switch = place::forwarding(remote);
        let ours = self.place.ours(remote);
        if !place::is_on(switch) {
            if place::is_initial() {
                return Err(Error::Unsupported(format!(
                    "{remote} is beyond this machine, and it does not forward packets; say --nat, or \
                     switch it on (echo 1 > {switch}) and give {remote} a way back to {ours}"
                )));
            }
            place::set(switch, "1")?;
            remarks.push(format!(
                "switched forwarding on in this namespace ({switch})"
            ));
        }
        remarks.push(format!(
            "{remote} is beyond this host: it must know a way back to {ours}"
        ));
        Ok(())
    }
}

/// The machine, as `uname` reports it, and a function that returns the processor time of this process so far, in
/// seconds: in user mode, in the kernel.
pub fn system() -> (String, impl Fn() -> (f64, f64) + Send) {
    let system = nix::sys::utsname::uname().map_or_else(
        |_| String::new(),
        |u| {
            let all = [
                u.sysname(),
                u.nodename(),
                u.release(),
                u.version(),
                u.machine(),
            ];
            all.map(|s| s.to_string_lossy().into_owned()).join(" ")
        },
    );
    let cpu = || {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike as _;
        getrusage(UsageWho::RUSAGE_SELF).map_or((0.0, 0.0), |u| {
            let seconds = |t: nix::sys::time::TimeVal| t.num_microseconds() as f64 / 1e6;
            (seconds(u.user_time()), seconds(u.system_time()))
        })
    };
    (system, cpu)
}
