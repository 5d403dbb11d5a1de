//! The control connection of iperf3: what one side reads, whole or in pieces, is written and read back.

use bytes::{Bytes, BytesMut};
use gargalo_programs::iperf3::protocol::{
    Cookie, LONGEST_JSON, Parameters, ProtocolError, Reader, Results, State, json_message,
};
use gargalo_programs::iperf3::{ReportOptions, Settings};

/// Words that inputs are made of, besides numbers.
pub(crate) const WORDS: &[&str] = &[
    "{\"tcp\":true",
    "{\"cpu_util_total\":",
    "\"time\":",
    "\"num\":",
    "\"MSS\":",
    "\"congestion\":\"",
    "\"streams\":[",
    "\"id\":",
    "\"retransmits\":",
    "18446744073709551615",
    "1e+09",
    "-1",
    "\\ud83d",
];

/// A message read from a control connection.
#[derive(Clone, Debug, PartialEq)]
enum Message {
    Cookie(Cookie),
    Parameters(Parameters),
    State(State),
    /// A byte that is not a state.
    Other(u8),
    ServerError(u32, u32),
    Results(Results),
}

impl Message {
    fn of_byte(byte: u8) -> Self {
        State::from_byte(byte).map_or(Self::Other(byte), Self::State)
    }

    fn write(&self) -> Bytes {
        match self {
            Self::Cookie(cookie) => cookie.message(),
            Self::Parameters(p) => json_message(p),
            Self::State(state) => state.message(),
            Self::Other(byte) => Bytes::copy_from_slice(&[*byte]),
            Self::ServerError(ours, system) => {
                [ours.to_be_bytes(), system.to_be_bytes()].concat().into()
            }
            Self::Results(r) => json_message(r),
        }
    }
}

/// One end of a control connection, and the messages that it has read.
struct End {
    is_server: bool,
    reader: Reader,
    messages: Vec<Message>,
    failed: Option<ProtocolError>,
}

impl End {
    fn read<'a>(is_server: bool, pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut end = Self {
            is_server,
            reader: Reader::default(),
            messages: Vec::new(),
            failed: None,
        };
        for piece in pieces {
            end.reader.push(piece);
            loop {
                match end.next() {
                    Ok(Some(message)) => end.messages.push(message),
                    Ok(None) => break,
                    Err(e) => {
                        end.failed = Some(e);
                        return end;
                    }
                }
            }
        }
        end
    }

    /// Reads the next message. A server reads a cookie and parameters first; results follow the state that asks for
    /// them.
    fn next(&mut self) -> Result<Option<Message>, ProtocolError> {
        let reader = &mut self.reader;
        Ok(match (self.is_server, self.messages.last()) {
            (true, None) => reader.cookie().map(Message::Cookie),
            (true, Some(Message::Cookie(_))) => reader.json(LONGEST_JSON)?.map(Message::Parameters),
            (true, Some(Message::State(State::TestEnd)))
            | (false, Some(Message::State(State::ExchangeResults))) => {
                reader.json(LONGEST_JSON)?.map(Message::Results)
            }
            (false, Some(Message::State(State::ServerError))) => reader
                .server_error()
                .map(|(ours, system)| Message::ServerError(ours, system)),
            _ => reader.byte().map(Message::of_byte),
        })
    }
}

/// Reads as a server or a client; the first byte selects the role, the second the sizes of the pieces.
pub(crate) fn iperf3(bytes: &[u8]) {
    let [who, size, bytes @ ..] = bytes else {
        return;
    };
    let is_server = who & 1 == 0;
    let end = End::read(is_server, std::iter::once(bytes));
    let by_piece = End::read(is_server, bytes.chunks(usize::from(*size).max(1)));
    assert_eq!(by_piece.messages, end.messages);
    assert_eq!(by_piece.failed, end.failed);
    if end.failed.is_none() {
        assert_eq!(by_piece.reader.len(), end.reader.len());
    }

    let mut written = BytesMut::new();
    for message in &end.messages {
        written.extend_from_slice(&message.write());
        match message {
            Message::Cookie(cookie) => {
                assert!(cookie.text().bytes().all(|c| c.is_ascii_graphic()));
            }
            Message::Parameters(p) => check_settings(p),
            _ => {}
        }
    }
    let again = End::read(is_server, std::iter::once(&written[..]));
    assert_eq!(again.failed, None);
    assert!(again.reader.is_empty());
    assert_eq!(again.messages, end.messages);
}

/// Checks that settings that a server accepts are requested by our client in the same way.
fn check_settings(p: &Parameters) {
    let Ok(settings) = Settings::of(p, ReportOptions::default()) else {
        return;
    };
    let asked = settings.parameters();
    let again = Settings::of(&asked, ReportOptions::default()).expect("within the same limits");
    assert_eq!(again.parameters(), asked);
    assert_eq!(again.byte_limit(), settings.byte_limit());
}
