//! From packets to their frames: keys of a connection as they come up, at one place of capture.

use std::ops::Range;

use gargalo_wire::quic::{Header, Kind, Long, Packet, Version};

use super::hello::{Delays, Messages};
use super::protection::{
    HIDDEN, HIDDEN_BESIDE_LOSS_BITS, HeaderKey, PacketKey, Suite, initial_secrets,
};
use crate::secrets::{Random, Secret, Secrets, Session};

/// A packet number space (RFC 9000 §12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Of Initial packets.
    Initial,
    /// Of Handshake packets.
    Handshake,
    /// Of application data, early or not.
    Data,
}

/// Why a packet was not decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// There is no key for it: none was given, or the handshake that says which is not in the capture.
    NoKey,
    /// A part of it was not kept.
    Cut,
    /// It does not open with the keys of its connection.
    Damaged,
}

/// A decrypted packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its space.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// Where its frames are.
    pub frames: Range<usize>,
}

/// A packet number, and where the payload is.
type Found = (u64, Range<usize>);

/// Keys of one direction.
#[derive(Debug)]
struct Keys {
    header: HeaderKey,
    packet: PacketKey,
}

impl Keys {
    fn new(version: Version, suite: Suite, secret: &Secret) -> Option<Self> {
        Some(Self {
            header: HeaderKey::new(version, suite, secret)?,
            packet: PacketKey::new(version, suite, secret.clone())?,
        })
    }
}

impl Keys {
    fn open(
        &self,
        bytes: &[u8],
        number_at: usize,
        largest: Option<u64>,
        room: &mut Vec<u8>,
    ) -> Option<Found> {
        let bare = self.header.bare(bytes, number_at, HIDDEN)?;
        let number = bare.number(largest);
        Some((number, self.packet.open(bytes, &bare, number, room)?))
    }
}

/// What is known of packets of which there may be keys already.
struct Sealing<'a> {
    version: Version,
    secret: Option<&'a Secret>,
    largest: Option<u64>,
}

impl Sealing<'_> {
    /// Opens one with its keys, or with those of the secret, which stay if they are right.
    fn open(
        &self,
        keys: &mut Option<Keys>,
        bytes: &[u8],
        number_at: usize,
        room: &mut Vec<u8>,
    ) -> Result<Found, Sealed> {
        if let Some(keys) = keys {
            return keys
                .open(bytes, number_at, self.largest, room)
                .ok_or(Sealed::Damaged);
        }
        let (tried, found) = self.first(|keys| {
            let found = keys.open(bytes, number_at, self.largest, room)?;
            Some((keys, found))
        })?;
        *keys = Some(tried);
        Ok(found)
    }

    /// The first answer for the keys that the secret may have made.
    fn first<T>(&self, mut open: impl FnMut(Keys) -> Option<T>) -> Result<T, Sealed> {
        let secret = self.secret.ok_or(Sealed::NoKey)?;
        let mut suites = secret.suites().iter();
        let found = suites.find_map(|suite| open(Keys::new(self.version, *suite, secret)?));
        found.ok_or(Sealed::Damaged)
    }
}

/// Keys of application data of one direction, which change (RFC 9001 §6).
#[derive(Debug)]
struct Phases {
    header: HeaderKey,
    current: PacketKey,
    next: Option<PacketKey>,
    previous: Option<PacketKey>,
    /// The bit of packets with the current key.
    phase: bool,
    /// The first packet number with it.
    since: u64,
    /// Key updates so far.
    updates: u64,
    /// The bits of the first byte that are hidden: what the ends agreed on is seen from what opens.
    hidden: u8,
}

impl Phases {
    fn new(keys: Keys) -> Self {
        Self {
            header: keys.header,
            next: keys.packet.next(),
            current: keys.packet,
            previous: None,
            phase: false,
            since: 0,
            updates: 0,
            hidden: HIDDEN,
        }
    }

    fn open(
        &mut self,
        bytes: &[u8],
        number_at: usize,
        largest: Option<u64>,
        room: &mut Vec<u8>,
    ) -> Option<Found> {
        let usual = self.open_with(self.hidden, bytes, number_at, largest, room);
        usual.or_else(|| {
            let other = match self.hidden {
                HIDDEN => HIDDEN_BESIDE_LOSS_BITS,
                _ => HIDDEN,
            };
            let found = self.open_with(other, bytes, number_at, largest, room)?;
            self.hidden = other;
            Some(found)
        })
    }

    fn open_with(
        &mut self,
        hidden: u8,
        bytes: &[u8],
        number_at: usize,
        largest: Option<u64>,
        room: &mut Vec<u8>,
    ) -> Option<Found> {
        let bare = self.header.bare(bytes, number_at, hidden)?;
        let number = bare.number(largest);
        if bare.key_phase() == self.phase {
            return Some((number, self.current.open(bytes, &bare, number, room)?));
        }
        if let Some(previous) = self.previous.as_ref().filter(|_| number < self.since)
            && let Some(payload) = previous.open(bytes, &bare, number, room)
        {
            return Some((number, payload));
        }
        let payload = self.next.as_ref()?.open(bytes, &bare, number, room)?;
        let next = self.next.take()?;
        let after = next.next();
        self.previous = Some(std::mem::replace(&mut self.current, next));
        (self.next, self.phase, self.since) = (after, !self.phase, number);
        self.updates += 1;
        Some((number, payload))
    }
}

/// Keys of Initial packets, and what they were made of.
#[derive(Debug)]
struct Initial {
    version: Version,
    to: Vec<u8>,
    keys: [Keys; 2],
}

impl Initial {
    fn new(version: Version, to: &[u8]) -> Option<Self> {
        let [client, server] = initial_secrets(version, to)?;
        Some(Self {
            version,
            to: to.to_vec(),
            keys: [
                Keys::new(version, Suite::Aes128, &client)?,
                Keys::new(version, Suite::Aes128, &server)?,
            ],
        })
    }
}

/// Opens the packets of a connection.
#[derive(Debug, Default)]
pub struct Opener {
    /// The version of the latest long header.
    version: Option<Version>,
    initial: Option<Initial>,
    handshake: [Option<Keys>; 2],
    early: Option<Keys>,
    data: [Option<Phases>; 2],
    random: Option<Random>,
    /// The largest number of each end in each space.
    largest: [[Option<u64>; 3]; 2],
    /// ClientHello, and EncryptedExtensions.
    messages: [Messages; 2],
    /// What the ends say of their acknowledgements.
    pub delays: [Delays; 2],
}

impl Opener {
    /// Key updates that the packets of an end show (RFC 9001 §6), 0 for the client; `None`: none was opened.
    pub fn key_updates(&self, from: usize) -> Option<u64> {
        self.data[from].as_ref().map(|phases| phases.updates)
    }

    /// Opens a packet of an end, 0 for the client, into `room`.
    pub fn open(
        &mut self,
        from: usize,
        packet: &Packet<'_>,
        secrets: &Secrets,
        room: &mut Vec<u8>,
    ) -> Result<Opened, Sealed> {
        if let Header::Long(header) = packet.header {
            self.version = Some(header.version);
        }
        if packet.is_cut() {
            return Err(Sealed::Cut);
        }
        let bytes = packet.bytes;
        let session = self.random.and_then(|r| secrets.of(&r));
        let (space, (number, frames)) = match packet.header {
            Header::Short(header) => (
                Space::Data,
                self.open_data(from, bytes, header.number_at, session, room)?,
            ),
            Header::Long(header) => {
                let at = header.number_at;
                match header.kind {
                    Kind::Initial => (
                        Space::Initial,
                        self.open_initial(from, bytes, &header, room)?,
                    ),
                    Kind::Handshake => {
                        let of = Sealing {
                            version: header.version,
                            secret: session.and_then(|s| s.handshake[from].as_ref()),
                            largest: self.largest[from][Space::Handshake as usize],
                        };
                        (
                            Space::Handshake,
                            of.open(&mut self.handshake[from], bytes, at, room)?,
                        )
                    }
                    Kind::ZeroRtt => {
                        let of = Sealing {
                            version: header.version,
                            secret: session.and_then(|s| s.early.as_ref()),
                            largest: self.largest[from][Space::Data as usize],
                        };
                        (Space::Data, of.open(&mut self.early, bytes, at, room)?)
                    }
                    // It has no number and no frames.
                    Kind::Retry => return Err(Sealed::Damaged),
                }
            }
        };
        let largest = &mut self.largest[from][space as usize];
        *largest = (*largest).max(Some(number));
        Ok(Opened {
            space,
            number,
            frames,
        })
    }

    /// The keys are those of the identifier to which the client sent its first packet, or its first after a Retry; the
    /// server may have chosen another version since.
    fn open_initial(
        &mut self,
        from: usize,
        bytes: &[u8],
        header: &Long<'_>,
        room: &mut Vec<u8>,
    ) -> Result<Found, Sealed> {
        let largest = self.largest[from][Space::Initial as usize];
        let known = self.initial.as_ref();
        if let Some(initial) = known.filter(|i| i.version == header.version)
            && let Some(found) = initial.keys[from].open(bytes, header.number_at, largest, room)
        {
            return Ok(found);
        }
        let first = known.map(|i| &i.to[..]);
        let own = (from == 0).then_some(header.to);
        let tries = [first, own].map(|to| to.and_then(|to| Initial::new(header.version, to)));
        for (initial, is_again) in tries.into_iter().zip([false, true]) {
            let Some(initial) = initial else {
                continue;
            };
            if let Some(found) = initial.keys[from].open(bytes, header.number_at, largest, room) {
                self.initial = Some(initial);
                if is_again {
                    // The client begins again, and may do so with another random number.
                    self.random = None;
                    self.messages[0] = Messages::default();
                }
                return Ok(found);
            }
        }
        Err(match self.initial {
            Some(_) => Sealed::Damaged,
            None => Sealed::NoKey,
        })
    }

    fn open_data(
        &mut self,
        from: usize,
        bytes: &[u8],
        number_at: usize,
        session: Option<&Session>,
        room: &mut Vec<u8>,
    ) -> Result<Found, Sealed> {
        let largest = self.largest[from][Space::Data as usize];
        if let Some(phases) = &mut self.data[from] {
            return phases
                .open(bytes, number_at, largest, room)
                .ok_or(Sealed::Damaged);
        }
        let of = Sealing {
            version: self.version.unwrap_or(Version::One),
            secret: session.and_then(|s| s.data[from].as_ref()),
            largest,
        };
        let (phases, found) = of.first(|keys| {
            let mut phases = Phases::new(keys);
            let found = phases.open(bytes, number_at, largest, room)?;
            Some((phases, found))
        })?;
        self.data[from] = Some(phases);
        Ok(found)
    }

    /// Takes handshake data of an end.
    pub fn on_crypto(&mut self, from: usize, space: Space, offset: u64, data: &[u8]) {
        match (from, space) {
            (0, Space::Initial) | (1, Space::Handshake) => self.messages[from].take(offset, data),
            _ => return,
        }
        if from == 0 {
            self.random = self.random.or(self.messages[0].random());
        }
        if let Some(delays) = self.messages[from].delays() {
            self.delays[from] = delays;
        }
    }
}
