//! Key logs: the secrets of TLS connections, as programs write them for the environment variable `SSLKEYLOGFILE`
//! (RFC 9850).

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::protection::Secret;
use crate::logs::{Kind, Log, lines};

/// A kind of log.
pub const KIND: Kind = Kind {
    name: "key log",
    is,
    read,
};

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

    fn add_line(&mut self, line: &str) -> bool {
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

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|t| t.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}

fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let first = text
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty() && !l.starts_with('#'));
    let label = first.and_then(|l| l.split_ascii_whitespace().next());
    label.is_some_and(|l| LABELS.contains(&l) || OTHERS.contains(&l))
}

fn read(input: &mut dyn BufRead) -> io::Result<Log> {
    let mut log = Log::default();
    let mut unused = 0;
    let secrets = &mut log.secrets;
    let too_long = lines(input, &mut |line| {
        unused += u64::from(!secrets.add_line(line))
    })?;
    log.unused = unused + too_long;
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, random: u8, secret: u8, length: usize) -> String {
        let hex = |byte: u8, n: usize| format!("{byte:02x}").repeat(n);
        format!("{label} {} {}\n", hex(random, RANDOM), hex(secret, length))
    }

    #[test]
    fn secrets_are_found_by_the_clients_random_number() {
        let text = [
            "# made by a test\n\n",
            &line(LABELS[0], 1, 10, 32),
            &line(LABELS[3], 1, 11, 48),
            &line(LABELS[4], 2, 12, 32),
            &line("EXPORTER_SECRET", 1, 13, 32),
            &line("CLIENT_RANDOM", 9, 14, 48),
            "SERVER_TRAFFIC_SECRET_0 zz 00\n",
            "some words\n",
            &line(LABELS[2], 1, 15, 31),
        ]
        .concat();
        assert!(is(text.as_bytes()));
        assert!(!is(b"# CLIENT_RANDOM\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2"));
        let log = read(&mut text.as_bytes()).unwrap();
        assert_eq!(log.unused, 3);
        let found = log.secrets.of(&[1; RANDOM]).unwrap();
        assert_eq!(found.handshake, [Secret::new(&[10; 32]), None]);
        assert_eq!(found.data, [None, Secret::new(&[11; 48])]);
        assert_eq!(
            log.secrets.of(&[2; RANDOM]).unwrap().early,
            Secret::new(&[12; 32])
        );
        assert_eq!(log.secrets.of(&[9; RANDOM]), None);
        // Those of another file are added.
        let mut all = Secrets::default();
        all.add_lines(&line(LABELS[2], 1, 16, 32));
        all.add(log.secrets);
        let both = all.of(&[1; RANDOM]).unwrap();
        assert_eq!(both.data, [Secret::new(&[16; 32]), Secret::new(&[11; 48])]);
    }
}
