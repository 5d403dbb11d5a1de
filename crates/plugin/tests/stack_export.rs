//! The table of a type: how its functions pass arguments and results, and what a panic does.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the test is a host that keeps the rules of the header"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::net::SocketAddr;
use std::ptr;
use std::time::Duration;

use gargalo_plugin::stack::{
    About, Config, Event, Offered, Packet, PacketEvent, PacketKind, Path, Stack, Stats, abi, host,
};

/// Sends each datagram back to where it came from, and panics on a datagram of one byte. What is done with streams it
/// tells the host.
struct Echo {
    queue: Vec<(Path, Vec<u8>)>,
    now: Duration,
    largest: usize,
}

const FEATURES: u32 = abi::feature::ECN
    | abi::feature::UNIDIRECTIONAL
    | abi::feature::DATAGRAMS
    | abi::feature::CANCEL
    | abi::feature::URGENCY;

impl Stack for Echo {
    const ABOUT: About = About {
        name: "echo",
        version: "1",
        features: FEATURES,
        congestion: &["none", "some"],
        specifications: &["", "bbr3"],
        tells_unacknowledged: false,
    };

    fn create(config: &Config<'_>, now: Duration) -> Result<Self, String> {
        if config.server_name != "example" {
            return Err(format!("no server is named {}", config.server_name));
        }
        let (queue, largest) = (Vec::new(), config.max_datagram_frame as usize);
        Ok(Self {
            queue,
            now,
            largest,
        })
    }

    fn datagram_in(&mut self, _now: Duration, path: &Path, data: &mut [u8]) {
        assert!(data.len() > 1, "a datagram of one byte");
        let mut random = [0; 2];
        assert!(host::random(&mut random));
        data[0] = random[0];
        host::event(Event::Closed);
        self.queue.push((*path, data.to_vec()));
    }

    fn datagram_out(&mut self, _now: Duration, out: &mut [u8]) -> Option<(usize, Path)> {
        let (path, data) = self.queue.pop()?;
        out[..data.len()].copy_from_slice(&data);
        Some((data.len(), path))
    }

    fn next_timer(&mut self) -> Option<Duration> {
        Some(self.now)
    }

    fn timeout(&mut self, now: Duration) {
        self.now = now;
    }

    fn open_stream(&mut self, _now: Duration) -> Option<u64> {
        None
    }

    fn write(&mut self, _now: Duration, _stream: u64, data: &[u8], fin: bool) -> usize {
        data.len() + usize::from(fin)
    }

    fn open_unidirectional_stream(&mut self, now: Duration) -> Option<u64> {
        (now > Duration::from_nanos(8)).then_some(2)
    }

    fn send_datagram(&mut self, _now: Duration, data: &[u8]) -> Offered {
        if data.len() > self.largest {
            return Offered::Refused;
        }
        if data.is_empty() {
            return Offered::Later;
        }
        host::datagram(data);
        Offered::Taken
    }

    fn reset_stream(&mut self, _now: Duration, stream: u64) {
        host::reset(stream);
    }

    fn stop_sending(&mut self, _now: Duration, stream: u64) {
        host::stopped(stream);
    }

    fn set_urgency(&mut self, _now: Duration, stream: u64, urgency: u8) {
        host::notice(&format!("urgency {stream}"), &urgency.to_string());
        host::packet(Packet {
            event: PacketEvent::Lost,
            kind: PacketKind::OneRtt,
            number: stream,
            size: 1200,
            ack_eliciting: true,
        });
    }

    fn packet_too_big(&mut self, _now: Duration, local: SocketAddr, remote: SocketAddr, mtu: u64) {
        host::notice(&format!("{local} to {remote}"), &mtu.to_string());
    }

    fn close(&mut self, _now: Duration) {}

    fn is_over(&mut self) -> bool {
        false
    }

    fn stats(&mut self) -> Stats {
        Stats {
            srtt: Some(Duration::from_micros(3)),
            phase: Some("open".to_owned()),
            ..Stats::default()
        }
    }
}

gargalo_plugin::export_stack!(Echo);

#[derive(Default)]
struct Seen(Vec<(u32, String)>);

unsafe extern "C" fn random(_: *mut c_void, out: *mut u8, length: usize) {
    unsafe { out.write_bytes(42, length) };
}

unsafe extern "C" fn event(context: *mut c_void, kind: u32, _value: u32, text: *const c_char) {
    let text = if text.is_null() {
        String::new()
    } else {
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    };
    unsafe { &mut *context.cast::<Seen>() }.0.push((kind, text));
}

unsafe extern "C" fn received(_: *mut c_void, _: u64, _: *const u8, _: usize, _: c_int) {}
unsafe extern "C" fn bytes(_: *mut c_void, _: *const u8, _: usize) {}
unsafe extern "C" fn secret(_: *mut c_void, _: *const c_char) {}
unsafe extern "C" fn notice(context: *mut c_void, kind: *const c_char, detail: *const c_char) {
    let text = |p| unsafe { CStr::from_ptr(p) }.to_str().unwrap();
    unsafe { &mut *context.cast::<Seen>() }
        .0
        .push((103, format!("{} {}", text(kind), text(detail))));
}
unsafe extern "C" fn rtt_sample(_: *mut c_void, _: u64) {}
unsafe extern "C" fn send(_: *mut c_void, _: *const abi::Path, _: *const u8, _: usize) {}

unsafe extern "C" fn datagram(context: *mut c_void, data: *const u8, length: usize) {
    let data = unsafe { std::slice::from_raw_parts(data, length) };
    unsafe { &mut *context.cast::<Seen>() }
        .0
        .push((100, format!("{data:?}")));
}

unsafe extern "C" fn stopped(context: *mut c_void, stream: u64) {
    unsafe { &mut *context.cast::<Seen>() }
        .0
        .push((101, stream.to_string()));
}

unsafe extern "C" fn reset(context: *mut c_void, stream: u64) {
    unsafe { &mut *context.cast::<Seen>() }
        .0
        .push((102, stream.to_string()));
}

unsafe extern "C" fn packet(context: *mut c_void, packet: *const abi::Packet) {
    let p = unsafe { *packet };
    let text = format!(
        "{} {} {} {} {}",
        p.event, p.kind, p.number, p.size, p.ack_eliciting
    );
    unsafe { &mut *context.cast::<Seen>() }.0.push((104, text));
}

unsafe extern "C" fn path_rtt_sample(_: *mut c_void, _: u64, _: u64) {}

fn config(server_name: &CStr) -> abi::Config {
    let none = abi::Bytes {
        data: ptr::null(),
        length: 0,
    };
    let address = abi::Address {
        ip_length: 4,
        ..abi::Address::default()
    };
    abi::Config {
        size: size_of::<abi::Config>() as u64,
        local: address,
        remote: address,
        congestion: c"none".as_ptr(),
        server_name: server_name.as_ptr(),
        alpn: c"test".as_ptr(),
        certificate: none,
        private_key: none,
        ticket_key: none,
        session: none,
        initial_window: 0,
        stream_window: 0,
        connection_window: 0,
        send_window: 0,
        idle_timeout: 0,
        initial_rtt: 0,
        max_streams: 0,
        datagram_size: 1200,
        max_datagram_size: 1200,
        is_server: 0,
        early_data: 0,
        retry: 0,
        ecn: 0,
        pacing: 0,
        qlog: 0,
        secrets: 0,
        notices: 0,
        options: c"{}".as_ptr(),
        max_unidirectional_streams: 0,
        max_datagram_frame: 1000,
        packets: 0,
        reserved: [0; 3],
        max_paths: 1,
    }
}

fn host_of(seen: &mut Seen) -> abi::Host {
    abi::Host {
        context: ptr::from_mut(seen).cast(),
        random,
        event,
        received,
        session: bytes,
        secret,
        qlog: bytes,
        notice,
        rtt_sample,
        send,
        datagram,
        stopped,
        reset,
        packet,
        path_rtt_sample,
    }
}

#[test]
fn the_table_says_what_the_type_says() {
    let table = unsafe { &*gargalo_stack_v1() };
    let text = |p| unsafe { CStr::from_ptr(p) }.to_str().unwrap();
    assert_eq!(text(table.name), "echo");
    assert_eq!(table.features, FEATURES);
    assert!(table.migrate.is_none() && table.unacknowledged.is_none());
    assert!(table.update_keys.is_none() && table.set_urgency.is_some());
    unsafe {
        assert_eq!(text(*table.congestion), "none");
        assert_eq!(text(*table.congestion.add(1)), "some");
        assert!((*table.congestion.add(2)).is_null());
    }
}

#[test]
fn an_error_of_create_fits_into_the_room() {
    let table = unsafe { &*gargalo_stack_v1() };
    let mut seen = Seen::default();
    let host = host_of(&mut seen);
    let name = CString::new("é".repeat(20)).unwrap();
    let mut error = [1; 24];
    let made = unsafe {
        let (config, room) = (config(&name), error.len());
        (table.create.unwrap())(&config, &host, 0, error.as_mut_ptr(), room)
    };
    assert!(made.is_null());
    let text = unsafe { CStr::from_ptr(error.as_ptr()) };
    assert_eq!(text.to_str().unwrap(), "no server is named éé");
}

#[test]
fn calls_reach_the_object_and_the_host_until_a_panic() {
    let table = unsafe { &*gargalo_stack_v1() };
    let mut seen = Seen::default();
    let host = host_of(&mut seen);
    let path = abi::Path {
        local: abi::Address {
            ip: "2001:db8::1"
                .parse::<std::net::Ipv6Addr>()
                .unwrap()
                .octets(),
            port: 4433,
            ip_length: 16,
            ..abi::Address::default()
        },
        remote: abi::Address {
            ip_length: 4,
            ..abi::Address::default()
        },
        ecn: 3,
        reserved: [0; 7],
    };
    unsafe {
        let create = table.create.unwrap();
        let object = create(&config(c"example"), &host, 5, ptr::null_mut(), 0);
        assert!(!object.is_null());

        let mut data = [1, 2, 3];
        (table.datagram_in.unwrap())(object, 7, &path, data.as_mut_ptr(), 3);
        let (mut out, mut sent) = ([0; 10], abi::Path::default());
        let datagram_out = table.datagram_out.unwrap();
        assert_eq!(datagram_out(object, 7, &mut sent, out.as_mut_ptr(), 10), 3);
        assert_eq!((&out[..3], sent), (&[42, 2, 3][..], path));
        assert_eq!(datagram_out(object, 7, &mut sent, out.as_mut_ptr(), 10), 0);

        assert_eq!((table.next_timer.unwrap())(object), 5);
        (table.timeout.unwrap())(object, 9);
        assert_eq!((table.next_timer.unwrap())(object), 9);
        assert_eq!((table.open_stream.unwrap())(object, 9), -1);
        assert_eq!((table.write.unwrap())(object, 9, 0, ptr::null(), 0, 1), 1);

        // A host of an earlier version, which knows the first two numbers.
        let mut stats = abi::Stats {
            size: 16,
            srtt: 1,
            ..abi::Stats::default()
        };
        (table.stats.unwrap())(object, &mut stats);
        assert_eq!((stats.srtt, stats.phase.is_null()), (1, true));
        stats = abi::Stats::default();
        (table.stats.unwrap())(object, &mut stats);
        assert_eq!((stats.srtt, stats.cwnd), (3000, abi::NONE));
        assert_eq!(CStr::from_ptr(stats.phase), c"open");

        (table.datagram_in.unwrap())(object, 10, &path, data.as_mut_ptr(), 1);
        assert_eq!((table.is_over.unwrap())(object), 1);
        assert_eq!((table.next_timer.unwrap())(object), abi::NONE);
        assert_eq!((table.write.unwrap())(object, 9, 0, ptr::null(), 0, 1), 0);
        (table.destroy.unwrap())(object);
    }
    let failed = "the library panicked: a datagram of one byte".to_owned();
    assert_eq!(
        seen.0,
        [
            (abi::event::CLOSED, String::new()),
            (abi::event::FAILED, failed)
        ]
    );
    assert!(!host::random(&mut [0]), "no host outside of a call");
    assert_eq!(host::now(), None);
}

#[test]
fn streams_and_datagrams_reach_the_object() {
    let table = unsafe { &*gargalo_stack_v1() };
    let mut seen = Seen::default();
    let host = host_of(&mut seen);
    unsafe {
        let create = table.create.unwrap();
        let object = create(&config(c"example"), &host, 5, ptr::null_mut(), 0);
        let open = table.open_unidirectional_stream.unwrap();
        assert_eq!((open(object, 8), open(object, 9)), (-1, 2));
        let send = table.send_datagram.unwrap();
        let data = [7; 1001];
        assert_eq!(send(object, 9, data.as_ptr(), 0), 0);
        assert_eq!(send(object, 9, data.as_ptr(), 2), 1);
        assert_eq!(send(object, 9, data.as_ptr(), 1001), -1);
        (table.reset_stream.unwrap())(object, 9, 4);
        (table.stop_sending.unwrap())(object, 9, 8);
        (table.set_urgency.unwrap())(object, 9, 12, 6);
        let address = |last| abi::Address {
            ip: [[10, 0, 0, last].as_slice(), &[0; 12]]
                .concat()
                .try_into()
                .unwrap(),
            port: 443,
            ip_length: 4,
            ..abi::Address::default()
        };
        let path = abi::Path {
            local: address(1),
            remote: address(2),
            ..abi::Path::default()
        };
        (table.packet_too_big.unwrap())(object, 9, &path, 1300);
        (table.destroy.unwrap())(object);
    }
    let told = [
        (100, "[7, 7]"),
        (102, "4"),
        (101, "8"),
        (103, "urgency 12 6"),
        (104, "4 3 12 1200 1"),
        (103, "10.0.0.1:443 to 10.0.0.2:443 1300"),
    ];
    assert_eq!(seen.0, told.map(|(kind, text)| (kind, text.to_owned())));
}
