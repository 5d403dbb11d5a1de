//! A link is never shorter than it says, however late its loop is.

use std::cell::Cell;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration as Wall, Instant as Clocked};

use gargalo_device::netlink::{Netlink, any};
use gargalo_device::{Choice, Clock, Device, NetNs};
use gargalo_flow::{Edge, rng};
use gargalo_lab::Tuning;
use gargalo_lab::engine::{Engine, Observer, Stop};
use gargalo_lab::fabric::Fabric;
use gargalo_link::{Delay, LinkConfig};
use gargalo_units::{Duration, Instant};

use crate::Test;

pub const TESTS: &[Test] = &[("a_late_loop_lengthens_delays_only", late_loop)];

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const DELAY: Duration = Duration::from_millis(10);
const PINGS: u32 = 500;

/// An observer that now and then holds the loop up between what it sends and what it reads, as another program on the
/// processor may.
#[derive(Default)]
struct Slow {
    calls: Cell<u32>,
}

impl Observer for Slow {
    fn interval(&self) -> Option<Duration> {
        None
    }
    fn look(&mut self, _: Instant, _: &mut Fabric) {}
    fn next_edge(&self) -> Option<(Edge, Instant)> {
        self.calls.set(self.calls.get() + 1);
        if self.calls.get().is_multiple_of(17) {
            std::thread::sleep(Wall::from_millis(5));
        }
        None
    }
}

fn host(own: Ipv4Addr, other: Ipv4Addr) -> (NetNs, Device) {
    let host = NetNs::new().unwrap();
    let device = Device::new(&host, "eth0", 1500, Choice::Best { offload: true }).unwrap();
    let index = device.index();
    let configured = host.run(|| {
        let mut netlink = Netlink::open()?;
        netlink.add_address(index, own.into(), 32)?;
        netlink.add_route(index, any(other.into()), 0, None)
    });
    configured.unwrap();
    (host, device)
}

fn socket(host: &NetNs, own: Ipv4Addr) -> UdpSocket {
    let socket = host.run(|| Ok::<_, gargalo_lab::Error>(UdpSocket::bind((own, 7)).unwrap()));
    let socket = socket.unwrap();
    // Only where something is broken.
    socket.set_read_timeout(Some(Wall::from_secs(60))).unwrap();
    socket
}

fn late_loop() {
    let ((a, near), (b, far)) = (host(A, B), host(B, A));
    let config = LinkConfig {
        delay: Delay::Constant(DELAY),
        ..LinkConfig::default()
    };
    let both = [("up", &config), ("down", &config)];
    let fabric = Fabric::chain(both, |d| rng::stream(1, &d.to_string())).unwrap();
    let mut engine = Engine::new(fabric, Tuning::default());
    engine.attach_device(near);
    engine.attach_device(far);
    let (client, server) = (socket(&a, A), socket(&b, B));
    let stop = Stop::new().unwrap();
    let start = Clocked::now();
    let nanos = || start.elapsed().as_nanos() as u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut forever = |_, _| false;
            let clock = Clock::start();
            let served = engine.run(
                clock,
                Instant::MAX,
                &stop,
                &mut Slow::default(),
                &mut forever,
            );
            served.unwrap();
        });
        scope.spawn(|| {
            for _ in 0..PINGS {
                let mut ping = [0; 8];
                server.recv(&mut ping).unwrap();
                server.send_to(&ping, (A, 7)).unwrap();
            }
        });
        // More of them than turns of the loop: some arrive while it is held up.
        scope.spawn(|| {
            for _ in 0..PINGS {
                client.send_to(&nanos().to_le_bytes(), (B, 7)).unwrap();
                std::thread::sleep(Wall::from_micros(700));
            }
        });
        let mut shortest = Wall::MAX;
        for _ in 0..PINGS {
            let mut pong = [0; 8];
            client.recv(&mut pong).unwrap();
            let taken = nanos() - u64::from_le_bytes(pong);
            shortest = shortest.min(Wall::from_nanos(taken));
        }
        stop.stop();
        let least = Wall::from_nanos(2 * DELAY.as_nanos());
        assert!(
            shortest >= least,
            "{shortest:?} over two links of {DELAY:?}"
        );
    });
}
