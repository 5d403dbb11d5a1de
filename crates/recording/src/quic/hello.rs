//! What is needed of the handshake messages of TLS in CRYPTO frames (RFC 8446 §4, RFC 9000 §18).

use std::collections::BTreeMap;

use gargalo_units::Duration;
use gargalo_wire::quic::Reader;

use crate::secrets::{RANDOM, Random};

/// Most bytes that are kept until a message is whole.
const MOST: usize = 1 << 16;
const CLIENT_HELLO: u64 = 1;
const ENCRYPTED_EXTENSIONS: u64 = 8;
/// The extension with the transport parameters (RFC 9001 §8.2).
const TRANSPORT_PARAMETERS: u64 = 0x39;
const ACK_DELAY_EXPONENT: u64 = 0x0a;
const MAX_ACK_DELAY: u64 = 0x0b;

/// What an end says of its acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Delays in ACK frames are in units of so many powers of two of a microsecond.
    pub exponent: u64,
    /// How long an acknowledgement is delayed at most.
    pub most: Duration,
}

impl Default for Delays {
    /// Those of an end that does not say (RFC 9000 §18.2).
    fn default() -> Self {
        Self {
            exponent: 3,
            most: Duration::from_millis(25),
        }
    }
}

/// The beginning of an end's handshake data, in the order of the stream.
#[derive(Debug, Default)]
pub struct Messages {
    /// What has come in order.
    whole: Vec<u8>,
    /// What has come early, by its offset.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    done: bool,
}

impl Messages {
    /// Takes the data of a CRYPTO frame.
    pub fn take(&mut self, offset: u64, data: &[u8]) {
        if self.done || data.is_empty() || self.whole.len() + self.early_bytes + data.len() > MOST {
            return;
        }
        let before = self
            .early
            .insert(offset, data.to_vec())
            .map_or(0, |d| d.len());
        self.early_bytes = self.early_bytes + data.len() - before;
        while let Some(first) = self.early.first_entry() {
            let next = self.whole.len() as u64;
            let Some(skipped) = next.checked_sub(*first.key()) else {
                break;
            };
            let data = first.remove();
            self.early_bytes -= data.len();
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
            self.whole
                .extend_from_slice(data.get(skipped..).unwrap_or_default());
        }
    }

    /// The random number of the ClientHello with which the data begins, as soon as it is there.
    pub fn random(&self) -> Option<Random> {
        let mut reader = Reader(&self.whole);
        if reader.integer(1)? != CLIENT_HELLO {
            return None;
        }
        // The length, and the version of old.
        reader.take(5)?;
        reader.take(RANDOM as u64)?.try_into().ok()
    }

    /// The transport parameters in the first message, ClientHello or EncryptedExtensions, when it is whole; nothing
    /// more is kept then.
    pub fn delays(&mut self) -> Option<Delays> {
        let mut reader = Reader(&self.whole);
        let kind = reader.integer(1)?;
        let length = reader.integer(3)?;
        let message = reader.take(length)?;
        let found = extensions(kind, message).and_then(parameters);
        *self = Self {
            done: true,
            ..Self::default()
        };
        found
    }
}

/// The transport parameters among the extensions of a message.
fn extensions(kind: u64, message: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader(message);
    match kind {
        CLIENT_HELLO => {
            reader.take(2 + RANDOM as u64)?;
            // Session identifier, cipher suites, compression methods.
            for width in [1, 2, 1] {
                let length = reader.integer(width)?;
                reader.take(length)?;
            }
        }
        ENCRYPTED_EXTENSIONS => (),
        _ => return None,
    }
    let length = reader.integer(2)?;
    let mut all = Reader(reader.take(length)?);
    loop {
        let (kind, length) = (all.integer(2)?, all.integer(2)?);
        let content = all.take(length)?;
        if kind == TRANSPORT_PARAMETERS {
            return Some(content);
        }
    }
}

fn parameters(content: &[u8]) -> Option<Delays> {
    let (mut reader, mut found) = (Reader(content), Delays::default());
    while let Some(id) = reader.varint() {
        let length = reader.varint()?;
        let mut value = Reader(reader.take(length)?);
        match id {
            // Values that RFC 9000 forbids are not taken.
            ACK_DELAY_EXPONENT => found.exponent = value.varint().filter(|n| *n <= 20)?,
            MAX_ACK_DELAY => {
                let ms = value.varint().filter(|n| *n < 1 << 14)?;
                found.most = Duration::from_millis(ms);
            }
            _ => (),
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_length(width: usize, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32).to_be_bytes();
        [&length[4 - width..], content].concat()
    }

    fn message(kind: u64, before: &[u8], parameters: &[u8]) -> Vec<u8> {
        let others = [&[0, 43][..], &of_length(2, &[3, 4])].concat();
        let ours = [&[0, 0x39][..], &of_length(2, parameters)].concat();
        let extensions = of_length(2, &[others, ours].concat());
        [
            &[kind as u8][..],
            &of_length(3, &[before, &extensions].concat()),
        ]
        .concat()
    }

    fn client_hello() -> Vec<u8> {
        let before = [
            &[3, 3][..],
            &[7; RANDOM],
            &[0],
            &of_length(2, &[0x13, 1]),
            &of_length(1, &[0]),
        ]
        .concat();
        message(
            CLIENT_HELLO,
            &before,
            &[1, 1, 9, 0x0a, 1, 5, 0x0b, 2, 0x40, 80],
        )
    }

    #[test]
    fn a_client_hello_is_put_together_and_read() {
        let whole = client_hello();
        let mut messages = Messages::default();
        messages.take(60, &whole[60..]);
        messages.take(20, &whole[20..40]);
        assert_eq!(messages.random(), None);
        messages.take(0, &whole[..30]);
        assert_eq!(messages.random(), Some([7; RANDOM]));
        assert_eq!(messages.delays(), None);
        messages.take(35, &whole[35..]);
        let expected = Delays {
            exponent: 5,
            most: Duration::from_millis(80),
        };
        assert_eq!(messages.delays(), Some(expected));
        // What follows is not kept.
        messages.take(whole.len() as u64, &[1; 100]);
        assert_eq!((messages.whole.len(), messages.early_bytes), (0, 0));
    }

    #[test]
    fn a_server_that_does_not_say_has_the_defaults() {
        let mut messages = Messages::default();
        messages.take(0, &message(ENCRYPTED_EXTENSIONS, &[], &[1, 1, 9]));
        assert_eq!(messages.delays(), Some(Delays::default()));
    }

    proptest! {
        #[test]
        fn any_parts_do(parts in prop::collection::vec((0u64..200, prop::collection::vec(any::<u8>(), 0..60)), 0..20)) {
            let mut messages = Messages::default();
            for (offset, data) in &parts {
                messages.take(*offset, data);
                messages.random();
                messages.delays();
            }
            messages.take(u64::MAX, &[1; 9]);
        }

        /// Any change of a byte, and any order.
        #[test]
        fn any_hello_does(at in 0usize..40, byte: u8, cut in 0usize..80) {
            let mut whole = client_hello();
            whole[at] = byte;
            let mut messages = Messages::default();
            let cut = cut.min(whole.len());
            messages.take(cut as u64, &whole[cut..]);
            messages.take(0, &whole[..cut]);
            messages.random();
            messages.delays();
        }
    }
}
