//! Frames of a malicious peer that has the keys (RFC 9000 §19, §21).

use rand::{Rng, RngExt};

/// The modifications of the frames of a packet.
pub const NAMES: [&str; 20] = [
    "PATH_CHALLENGE flood",
    "PATH_RESPONSE of nothing",
    "NEW_CONNECTION_ID flood",
    "RETIRE_CONNECTION_ID",
    "CRYPTO with gaps",
    "CRYPTO far away",
    "STREAM in crumbs with gaps",
    "STREAM beyond limits",
    "limits raised",
    "blocked",
    "RESET_STREAM, STOP_SENDING",
    "ACK of anything",
    "NEW_TOKEN",
    "HANDSHAKE_DONE",
    "acknowledgement frequency",
    "multiple paths",
    "DATAGRAM",
    "noise",
    "bits flipped or cut",
    "CONNECTION_CLOSE",
];

/// Modifications that RFC 9000 allows: the peer answers or ignores them.
pub const ALLOWED: [usize; 5] = [0, 4, 6, 8, 9];

/// The room for frames in an ordinary packet.
const ROOM: usize = 1100;

fn varint(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=0x3f => out.push(n as u8),
        0x40..=0x3fff => out.extend((n as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend((n as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend((n & 0x3fff_ffff_ffff_ffff | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// A number of any magnitude, with all magnitudes equally likely.
fn any(rng: &mut impl Rng) -> u64 {
    let bits = rng.random_range(2..64);
    rng.next_u64() >> bits
}

/// A stream that may exist.
fn stream(rng: &mut impl Rng) -> u64 {
    match rng.random_range(0..4) {
        0 => any(rng),
        _ => rng.random_range(0..8),
    }
}

fn data(rng: &mut impl Rng, out: &mut Vec<u8>, len: usize) {
    let at = out.len();
    out.resize(at + len, 0);
    rng.fill_bytes(&mut out[at..]);
}

fn frame(out: &mut Vec<u8>, kind: u64, fields: &[u64]) {
    varint(out, kind);
    for f in fields {
        varint(out, *f);
    }
}

/// Fills a packet with frames of one kind, or changes those that it has.
pub fn abuse(rng: &mut impl Rng, kind: usize, frames: &mut Vec<u8>) {
    match kind {
        17 => {
            frames.clear();
            let len = rng.random_range(1..300);
            data(rng, frames, len);
            return;
        }
        18 if !frames.is_empty() => {
            if rng.random_bool(0.3) {
                frames.truncate(rng.random_range(0..=frames.len()));
            }
            for _ in 0..rng.random_range(1..4) {
                if !frames.is_empty() {
                    let at = rng.random_range(0..frames.len());
                    frames[at] ^= 1 << rng.random_range(0..8);
                }
            }
            return;
        }
        _ => {}
    }
    // In addition to the peer's frames, or instead of them.
    if rng.random_bool(0.5) {
        frames.clear();
    }
    let many = [1, 3, 1000][rng.random_range(0..3)];
    let mut crumb = any(rng) % (1 << 16);
    for _ in 0..many {
        let before = frames.len();
        one(rng, kind, &mut crumb, frames);
        if frames.len() > ROOM {
            frames.truncate(before.max(1));
            break;
        }
    }
}

fn one(rng: &mut impl Rng, kind: usize, crumb: &mut u64, out: &mut Vec<u8>) {
    match kind {
        0 | 1 => {
            out.push([0x1a, 0x1b][kind]);
            data(rng, out, 8);
        }
        2 => {
            let sequence = any(rng);
            let prior = match rng.random_range(0..3) {
                0 => 0,
                1 => sequence,
                _ => any(rng),
            };
            frame(out, 0x18, &[sequence, prior]);
            let len = [8, 8, 8, 0, 20, 21][rng.random_range(0..6)];
            out.push(len as u8);
            data(rng, out, len + 16);
        }
        3 => frame(out, 0x19, &[any(rng)]),
        4 | 5 => {
            *crumb += 2 + any(rng) % 4;
            // Beyond the data that TLS waits for, and less than the required buffer (RFC 9000 §7.5).
            let offset = match kind {
                4 => 1500 + *crumb % 2000,
                _ => any(rng),
            };
            let len = rng.random_range(0..3);
            frame(out, 0x06, &[offset, len as u64]);
            data(rng, out, len);
        }
        6 | 7 => {
            *crumb += 2 + any(rng) % 4;
            let (id, offset) = match kind {
                6 => (rng.random_range(0..2), *crumb),
                _ => (stream(rng), any(rng)),
            };
            let len = rng.random_range(1..3);
            let fin = u64::from(kind == 7 && rng.random());
            frame(out, 0x0e | fin, &[id, offset, len as u64]);
            data(rng, out, len);
        }
        8 => match rng.random_range(0..4) {
            0 => frame(out, 0x10, &[any(rng)]),
            1 => frame(out, 0x11, &[rng.random_range(0..2), any(rng)]),
            // More than 2^60 streams are an error (RFC 9000 §19.11).
            n => frame(out, 0x10 + n, &[any(rng) >> 2]),
        },
        9 => match rng.random_range(0..3) {
            0 => frame(out, 0x14, &[any(rng)]),
            1 => frame(out, 0x15, &[rng.random_range(0..2), any(rng)]),
            _ => frame(out, 0x16, &[any(rng) >> 2]),
        },
        10 => match rng.random_range(0..2) {
            0 => frame(out, 0x04, &[stream(rng), any(rng), any(rng)]),
            _ => frame(out, 0x05, &[stream(rng), any(rng)]),
        },
        11 => {
            let (ranges, ecn) = (rng.random_range(0..40), rng.random_range(0..2));
            let fields = [any(rng), any(rng), ranges, any(rng) % 100];
            frame(out, 0x02 + ecn, &fields);
            for _ in 0..2 * ranges + 3 * ecn {
                varint(out, any(rng) % 64);
            }
        }
        12 => {
            let len = rng.random_range(0..200);
            frame(out, 0x07, &[len as u64]);
            data(rng, out, len);
        }
        13 => out.push(0x1e),
        14 => match rng.random_range(0..2) {
            0 => out.push(0x1f),
            _ => frame(out, 0xaf, &[any(rng), any(rng), any(rng), any(rng)]),
        },
        15 => paths(rng, out),
        16 => {
            let len = rng.random_range(0..100);
            frame(out, 0x31, &[len as u64]);
            data(rng, out, len);
        }
        19 => {
            let (application, len) = (rng.random_range(0..2), rng.random_range(0..50));
            frame(out, 0x1c + application, &[any(rng)]);
            if application == 0 {
                varint(out, any(rng));
            }
            varint(out, len as u64);
            data(rng, out, len);
        }
        _ => out.push(0x01),
    }
}

/// Frames of draft-ietf-quic-multipath with random fields.
fn paths(rng: &mut impl Rng, out: &mut Vec<u8>) {
    let path = match rng.random_range(0..3) {
        0 => any(rng),
        _ => rng.random_range(0..6),
    };
    match rng.random_range(0..6) {
        0 => frame(out, 0x3e, &[path, any(rng), any(rng), 0, any(rng) % 100]),
        1 => frame(out, 0x3e75 + rng.random_range(0..3), &[path, any(rng)]),
        2 => {
            frame(out, 0x3e78, &[path, any(rng) % 64, any(rng) % 64, 8]);
            data(rng, out, 24);
        }
        3 => frame(out, 0x3e7a + rng.random_range(0..2), &[any(rng)]),
        4 => frame(out, 0x3e79, &[path, any(rng)]),
        _ => frame(out, 0x3e7c, &[path, any(rng)]),
    }
}
