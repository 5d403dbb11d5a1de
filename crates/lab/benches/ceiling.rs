//! How many packets a second cross the lab: a bare copier between two TUN devices against the
//! emulated link, with and without offloading, in one run. The traffic is one connection between two
//! kernels, MTU 1500.
//!
//! `cargo bench -p gargalo-lab --bench ceiling [-- SECONDS [ROUNDS]]`

#[cfg(target_os = "linux")]
fn main() {
    if let Err(e) = bench::run() {
        eprintln!("ceiling: not measured: {e}");
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("ceiling: not measured: the lab needs Linux");
}

#[cfg(target_os = "linux")]
mod bench {
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration as Wall, Instant as Clocked};

    use gargalo_device::netlink::{Netlink, any};
    use gargalo_device::{BATCH, Choice, Clock, Device, HEADROOM, NetNs};
    use gargalo_flow::rng;
    use gargalo_lab::engine::{Engine, Stop};
    use gargalo_lab::fabric::Fabric;
    use gargalo_lab::{Result, Tuning, sandbox};
    use gargalo_link::{Delay, LinkConfig, QueueConfig, QueueLimit, RateModel};
    use gargalo_units::{Bytes, Duration, Instant, Rate};
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    const MTU: u32 = 1500;
    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    struct Score {
        packets_per_s: f64,
        goodput_bps: f64,
    }

    pub fn run() -> Result<()> {
        let mut arguments = std::env::args()
            .skip(1)
            .filter_map(|a| a.parse::<u64>().ok());
        let seconds = arguments.next().unwrap_or(3);
        let rounds = arguments.next().unwrap_or(3);
        sandbox::enter(sandbox::Network::New)?;
        println!("one connection between two kernels, MTU {MTU}, {seconds} s, best of {rounds}");
        let time = Wall::from_secs(seconds);
        let best = |measure: &dyn Fn() -> Result<Score>| -> Result<Score> {
            let mut best: Option<Score> = None;
            for _ in 0..rounds {
                let score = measure()?;
                if best
                    .as_ref()
                    .is_none_or(|b| score.packets_per_s > b.packets_per_s)
                {
                    best = Some(score);
                }
            }
            Ok(best.unwrap_or(Score {
                packets_per_s: 0.0,
                goodput_bps: 0.0,
            }))
        };
        let bare = best(&|| copier(time))?;
        let show = |name: &str, s: &Score| {
            println!(
                "{name:<34} {:>9.0} packets/s {:>6.2} Gbit/s  {:>5.2} of the copier",
                s.packets_per_s,
                s.goodput_bps / 1e9,
                s.packets_per_s / bare.packets_per_s
            );
        };
        show("bare copier", &bare);
        let unlimited = LinkConfig::default();
        let full = LinkConfig {
            rate: RateModel::Constant(Rate::from_mbps(100_000)),
            delay: Delay::Constant(Duration::from_micros(100)),
            queue: QueueConfig::DropTail(QueueLimit::Bytes(Bytes::new(100_000_000))),
            ..LinkConfig::default()
        };
        for offload in [false, true] {
            let what = if offload { "offload" } else { "no offload" };
            let score = best(&|| link(time, &unlimited, offload))?;
            show(&format!("link, unlimited, {what}"), &score);
            let score = best(&|| link(time, &full, offload))?;
            show(&format!("link, rate, queue and delay, {what}"), &score);
        }
        Ok(())
    }

    /// Two hosts and the network's ends of their interfaces.
    fn hosts(offload: bool) -> Result<[(NetNs, Device); 2]> {
        let host = |own: Ipv4Addr, other: Ipv4Addr| -> Result<_> {
            let host = NetNs::new()?;
            let device = Device::new(&host, "eth0", MTU, Choice::Best { offload })?;
            let index = device.index();
            host.run(|| {
                let mut netlink = Netlink::open()?;
                netlink.add_address(index, own.into(), 32)?;
                netlink.add_route(index, any(IpAddr::from(other)), 0, None)
            })?;
            Ok((host, device))
        };
        Ok([host(A, B)?, host(B, A)?])
    }

    /// One connection for a while; `packets` counts what crossed.
    fn transfer(a: &NetNs, b: &NetNs, time: Wall, packets: &dyn Fn() -> u64) -> Result<Score> {
        let address = SocketAddr::from((B, 5000));
        let io = |e| gargalo_device::Error::System {
            what: "a transfer".to_owned(),
            reason: e,
            remedy: "",
        };
        let listener = b.run(|| TcpListener::bind(address).map_err(io))?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sink = scope.spawn(|| {
                let (mut stream, _) = listener.accept()?;
                let mut buffer = vec![0; 1 << 18];
                let mut got = 0u64;
                loop {
                    match stream.read(&mut buffer)? {
                        0 => return Ok(got),
                        n => got += n as u64,
                    }
                }
            });
            let mut stream = a.run(|| TcpStream::connect(address).map_err(io))?;
            let before = packets();
            let start = Clocked::now();
            let data = vec![0; 1 << 18];
            while start.elapsed() < time {
                stream.write_all(&data).map_err(io)?;
            }
            over.store(true, Ordering::Release);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let got: std::io::Result<u64> = sink.join().unwrap_or(Ok(0));
            let took = start.elapsed().as_secs_f64();
            Ok(Score {
                packets_per_s: (packets() - before) as f64 / took,
                goodput_bps: got.map_err(io)? as f64 * 8.0 / took,
            })
        })
    }

    /// Reads one device and writes the other, and nothing else.
    fn copier(time: Wall) -> Result<Score> {
        let [(a, mut near), (b, mut far)] = hosts(false)?;
        let stop = AtomicBool::new(false);
        let packets = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let full = HEADROOM + MTU as usize;
                let mut frames = vec![vec![0; full]; BATCH];
                while !stop.load(Ordering::Acquire) {
                    let mut ready = [
                        PollFd::new(near.as_fd(), PollFlags::POLLIN),
                        PollFd::new(far.as_fd(), PollFlags::POLLIN),
                    ];
                    let _ = poll(&mut ready, PollTimeout::from(50u8));
                    for (from, to) in [(0, 1), (1, 0)] {
                        let devices = [&mut near, &mut far];
                        for _ in 0..64 {
                            let n = devices[from].receive(&mut frames).unwrap_or(0);
                            if n == 0 {
                                break;
                            }
                            let _ = devices[to].send(&mut frames[..n]);
                            frames.iter_mut().take(n).for_each(|f| f.resize(full, 0));
                            packets.fetch_add(n as u64, Ordering::Relaxed);
                        }
                    }
                }
            });
            let score = transfer(&a, &b, time, &|| packets.load(Ordering::Relaxed));
            stop.store(true, Ordering::Release);
            score
        })
    }

    /// The same through an emulated link.
    fn link(time: Wall, config: &LinkConfig, offload: bool) -> Result<Score> {
        let [(a, near), (b, far)] = hosts(offload)?;
        let both = [("link", config), ("link", config)];
        let fabric = Fabric::chain(both, |d| rng::stream(1, &d.to_string()))?;
        let mut engine = Engine::new(fabric, Tuning::default());
        engine.attach_device(near);
        engine.attach_device(far);
        let stop = Stop::new()?;
        let packets = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut count = Count(&packets);
                let mut forever = |_, _| false;
                let clock = Clock::start();
                let served = engine.run(clock, Instant::MAX, &stop, &mut count, &mut forever);
                if let Err(e) = served {
                    eprintln!("the link failed: {e}");
                }
            });
            let score = transfer(&a, &b, time, &|| packets.load(Ordering::Relaxed));
            stop.stop();
            score
        })
    }

    /// Shows the network's counter to the measuring thread.
    struct Count<'a>(&'a AtomicU64);

    impl gargalo_lab::engine::Observer for Count<'_> {
        fn interval(&self) -> Option<Duration> {
            Some(Duration::from_millis(10))
        }
        fn look(&mut self, _now: Instant, fabric: &mut Fabric) {
            self.0.store(fabric.stats().packets, Ordering::Relaxed);
        }
    }
}
