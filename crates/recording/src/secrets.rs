//! Secrets of TLS connections, with which QUIC in captures is decrypted.

use std::collections::HashMap;

/// Lengths of the secrets of TLS 1.3: those of its hashes.
const LENGTHS: [usize; 2] = [32, 48];

/// A secret of TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    bytes: [u8; 48],
    length: usize,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({} bytes)", self.length)
    }
}

impl Secret {
    /// A secret; `None` if it has not the length of one.
    pub fn new(secret: &[u8]) -> Option<Self> {
        if !LENGTHS.contains(&secret.len()) {
            return None;
        }
        let mut bytes = [0; 48];
        bytes[..secret.len()].copy_from_slice(secret);
        Some(Self {
            bytes,
            length: secret.len(),
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Most connections whose secrets are kept.
const MOST: usize = 1 << 16;
/// Length of the random number by which a ClientHello names its connection.
pub const RANDOM: usize = 32;

/// A client's random number.
pub type Random = [u8; RANDOM];

/// A secret of a connection that QUIC uses, by its place in [`Session`].
const LABELS: [&str; 5] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
    "CLIENT_EARLY_TRAFFIC_SECRET",
];
/// Lines that are of no use here: other secrets of TLS 1.3, and those of TLS 1.2.
const OTHERS: [&str; 5] = [
    "EARLY_EXPORTER_SECRET",
    "EXPORTER_SECRET",
    "CLIENT_RANDOM",
    "ECH_SECRET",
    "ECH_CONFIG",
];

/// The secrets of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Of the handshake, from the client and from the server.
    pub handshake: [Option<Secret>; 2],
    /// Of application data, likewise.
    pub data: [Option<Secret>; 2],
    /// Of early data.
    pub early: Option<Secret>,
}

/// Secrets of connections, by their clients' random numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    sessions: HashMap<Random, Session>,
}

impl Secrets {
    /// The secrets of a connection.
    pub fn of(&self, random: &Random) -> Option<&Session> {
        self.sessions.get(random)
    }

    /// Adds those of another log.
    pub fn add(&mut self, other: Self) {
        for (random, session) in other.sessions {
            if let Some(own) = self.session(random) {
                let pairs = own.handshake.iter_mut().zip(session.handshake);
                let pairs = pairs.chain(own.data.iter_mut().zip(session.data));
                pairs.for_each(|(own, other)| *own = own.take().or(other));
                own.early = own.early.take().or(session.early);
            }
        }
    }

    /// Adds the lines of a log; how many of them are none.
    pub fn add_lines(&mut self, text: &str) -> u64 {
        text.lines().map(|l| u64::from(!self.add_line(l))).sum()
    }

    /// Adds a line of a log; whether it is one.
    pub fn add_line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return true;
        }
        let mut words = line.split_ascii_whitespace();
        let (Some(label), Some(random), Some(secret), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        let Some(place) = LABELS.iter().position(|l| *l == label) else {
            return OTHERS.contains(&label);
        };
        let (Some(random), Some(secret)) = (bytes(random), bytes(secret)) else {
            return false;
        };
        let (Ok(random), Some(secret)) = (Random::try_from(random), Secret::new(&secret)) else {
            return false;
        };
        if let Some(session) = self.session(random) {
            let slot = match place {
                0 | 1 => &mut session.handshake[place],
                2 | 3 => &mut session.data[place - 2],
                _ => &mut session.early,
            };
            *slot = Some(secret);
        }
        true
    }

    /// The place of a connection; `None` if there are too many.
    fn session(&mut self, random: Random) -> Option<&mut Session> {
        let is_known = self.sessions.len() < MOST || self.sessions.contains_key(&random);
        is_known.then(|| self.sessions.entry(random).or_default())
    }
}

/// Whether a line of a log begins with this word.
pub fn is_label(word: &str) -> bool {
    LABELS.contains(&word) || OTHERS.contains(&word)
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|t| t.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}
