//! Messages of iperf3's control connection, as iperf 3.12 to 3.20 exchange them.
//!
//! A client sends a cookie of 37 bytes on every connection; on the first one, the control connection,
//! both sides then exchange states of one byte, and JSON texts behind a length of four bytes.

use bytes::{Buf, Bytes, BytesMut};
use rand::{Rng, RngExt};
use serde::{Deserialize, Deserializer, Serialize};

/// Length of a cookie: 36 letters and a zero.
pub const COOKIE_LEN: usize = 37;
/// Longest JSON text that is accepted, in bytes; a server's own output may be part of it.
pub const LONGEST_JSON: usize = 16 << 20;
/// Most streams in each direction.
pub const MOST_STREAMS: u32 = 128;
/// Longest test in seconds.
pub const LONGEST_TIME: u64 = 86_400;
/// Longest omitted period at the start, in seconds.
pub const LONGEST_OMIT: u64 = 600;
/// Largest block in bytes.
pub const LARGEST_BLOCK: u64 = 1 << 20;
/// Default block size in bytes.
pub const BLOCK: u64 = 128 << 10;

/// A message about the state of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum State {
    /// The server has accepted all streams.
    TestStart = 1,
    /// Data may flow.
    TestRunning = 2,
    /// The client has finished.
    TestEnd = 4,
    /// The server requests the parameters.
    ParamExchange = 9,
    /// The server waits for the streams.
    CreateStreams = 10,
    /// The server stops.
    ServerTerminate = 11,
    /// The client stops.
    ClientTerminate = 12,
    /// The server requests the results and will send its own.
    ExchangeResults = 13,
    /// The server is done.
    DisplayResults = 14,
    /// The client is done.
    IperfDone = 16,
    /// The server is busy.
    AccessDenied = -1,
    /// The server failed; two four-byte numbers follow.
    ServerError = -2,
}

impl State {
    /// Returns the state of this byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [State; 12] = [
            State::TestStart,
            State::TestRunning,
            State::TestEnd,
            State::ParamExchange,
            State::CreateStreams,
            State::ServerTerminate,
            State::ClientTerminate,
            State::ExchangeResults,
            State::DisplayResults,
            State::IperfDone,
            State::AccessDenied,
            State::ServerError,
        ];
        ALL.into_iter().find(|s| s.to_byte() == byte)
    }

    /// Its byte on the control connection; negative numbers in two's complement.
    pub const fn to_byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }

    /// The message that announces it: this byte alone.
    pub fn message(self) -> Bytes {
        Bytes::copy_from_slice(&[self.to_byte()])
    }
}

/// The cookie, which identifies the connections of one test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cookie([u8; COOKIE_LEN]);

impl Cookie {
    /// Draws a new one: 36 of the 32 characters `a` to `z` and `2` to `7`.
    pub fn draw(rng: &mut impl Rng) -> Self {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut cookie = [0; COOKIE_LEN];
        for letter in &mut cookie[..COOKIE_LEN - 1] {
            *letter = ALPHABET[rng.random_range(0..ALPHABET.len())];
        }
        Self(cookie)
    }

    /// The message that begins every connection of the test: the cookie with its final zero.
    pub fn message(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }

    /// Its text; characters that are not printable ASCII are left out.
    pub fn text(&self) -> String {
        let letters = self.0.iter().take_while(|c| **c != 0);
        letters
            .filter(|c| c.is_ascii_graphic())
            .map(|c| char::from(*c))
            .collect()
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({})", self.text())
    }
}

/// Why the bytes of a peer cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The length exceeds the limit.
    #[error("the peer announced a message of {0} bytes: it does not speak iperf3's protocol")]
    TooLong(u64),
    /// The content is not what was expected.
    #[error("the peer's message is not what iperf3 sends: {0}")]
    BadJson(String),
}

/// Received bytes of a connection that have not been parsed yet.
#[derive(Debug, Default)]
pub struct Reader(BytesMut);

impl Reader {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Number of waiting bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.0.get_u8())
    }

    /// Returns a cookie, once it is complete.
    pub fn cookie(&mut self) -> Option<Cookie> {
        let bytes = *self.0.first_chunk::<COOKIE_LEN>()?;
        self.0.advance(COOKIE_LEN);
        Some(Cookie(bytes))
    }

    /// The two numbers of [`State::ServerError`]: iperf3's error and the system's.
    pub fn server_error(&mut self) -> Option<(u32, u32)> {
        (self.0.len() >= 8).then(|| (self.0.get_u32(), self.0.get_u32()))
    }

    /// Returns a JSON text of at most `longest` bytes, once it is complete.
    ///
    /// # Errors
    /// When it is longer, or not what `T` expects.
    pub fn json<T: for<'de> Deserialize<'de>>(
        &mut self,
        longest: usize,
    ) -> Result<Option<T>, ProtocolError> {
        let Some(prefix) = self.0.first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*prefix) as usize;
        if len > longest {
            return Err(ProtocolError::TooLong(len as u64));
        }
        if self.0.len() < 4 + len {
            return Ok(None);
        }
        self.0.advance(4);
        let text = self.0.split_to(len);
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|e| ProtocolError::BadJson(e.to_string()))
    }
}

/// Encodes a JSON text with its length in front.
pub fn json_message(value: &impl Serialize) -> Bytes {
    // Our own structs have string keys, and their serialisation cannot fail.
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut message = Vec::with_capacity(4 + text.len());
    message.extend_from_slice(&(text.len() as u32).to_be_bytes());
    message.extend_from_slice(&text);
    message.into()
}

/// Reads whole numbers as cJSON writes them, such as `1e+09`; negative ones are refused.
fn whole<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let n = f64::deserialize(d)?;
    if (0.0..=9.0e18).contains(&n) {
        Ok(n as u64)
    } else {
        Err(serde::de::Error::custom(format!("{n} is out of range")))
    }
}

/// Reads whole numbers that may be negative: iperf3 uses -1 for "none", and some versions write it as
/// 18446744073709551615.
fn signed<'de, D: Deserializer<'de>>(d: D) -> Result<i64, D::Error> {
    let n = f64::deserialize(d)?;
    if (-9.0e18..=9.0e18).contains(&n) {
        Ok(n as i64)
    } else if n == u64::MAX as f64 {
        Ok(-1)
    } else {
        Err(serde::de::Error::custom(format!("{n} is out of range")))
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_false(b: &bool) -> bool {
    !*b
}

/// The parameters of a test that the client sends. Unknown keys are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// The test is over TCP, as all tests that this crate runs.
    #[serde(skip_serializing_if = "is_false")]
    pub tcp: bool,
    /// The test is over UDP, which is refused here.
    #[serde(skip_serializing_if = "is_false")]
    pub udp: bool,
    /// The test is over SCTP, which is refused here.
    #[serde(skip_serializing_if = "is_false")]
    pub sctp: bool,
    /// Length of the omitted period at the start, in seconds.
    #[serde(deserialize_with = "whole")]
    pub omit: u64,
    /// Length of the test in seconds; 0 when it ends by bytes or blocks.
    #[serde(deserialize_with = "whole")]
    pub time: u64,
    /// Bytes to send; 0: no limit.
    #[serde(deserialize_with = "whole")]
    pub num: u64,
    /// Blocks to send; 0: no limit.
    #[serde(deserialize_with = "whole")]
    pub blockcount: u64,
    /// Maximum segment size; 0: the system's default.
    #[serde(
        rename = "MSS",
        deserialize_with = "whole",
        skip_serializing_if = "is_zero"
    )]
    pub mss: u64,
    /// Nagle's algorithm is off (`TCP_NODELAY`).
    #[serde(skip_serializing_if = "is_false")]
    pub nodelay: bool,
    /// Streams in each direction.
    #[serde(deserialize_with = "whole")]
    pub parallel: u64,
    /// The server sends (reverse mode).
    #[serde(skip_serializing_if = "is_false")]
    pub reverse: bool,
    /// Both sides send.
    #[serde(skip_serializing_if = "is_false")]
    pub bidirectional: bool,
    /// Socket buffers in bytes; 0: the system's default.
    #[serde(deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub window: u64,
    /// Bytes of a block.
    #[serde(deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub len: u64,
    /// Rate of each stream in bit/s; 0: unlimited.
    #[serde(deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub bandwidth: u64,
    /// Spacing of the rate limit in µs.
    #[serde(deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub pacing_timer: u64,
    /// Name of the congestion control that the server shall use; `None`: its own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Name and version of the client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_version: String,
}

/// The results that each side sends. The peer's must have all keys of iperf3.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Processor time in percent.
    pub cpu_util_total: f64,
    /// The part of it in user mode.
    pub cpu_util_user: f64,
    /// The part of it in the kernel.
    pub cpu_util_system: f64,
    /// 1 when retransmissions are counted; -1: the side does not send.
    #[serde(deserialize_with = "signed")]
    pub sender_has_retransmits: i64,
    /// Congestion control in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    /// Results of each stream at this side.
    pub streams: Vec<StreamResults>,
}

/// The results of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamResults {
    /// Its number: 1, 3, 4, 5, … in the order of opening.
    #[serde(deserialize_with = "signed")]
    pub id: i64,
    /// Bytes sent or received.
    #[serde(deserialize_with = "whole")]
    pub bytes: u64,
    /// Retransmitted segments; -1: the side receives.
    #[serde(deserialize_with = "signed")]
    pub retransmits: i64,
    /// Over UDP: interarrival jitter in seconds; 0 over TCP.
    pub jitter: f64,
    /// Over UDP: datagrams lost; 0 over TCP.
    #[serde(deserialize_with = "signed")]
    pub errors: i64,
    /// Over UDP: datagrams lost in the omitted period; 0 over TCP.
    #[serde(default, deserialize_with = "signed")]
    pub omitted_errors: i64,
    /// Over UDP: number of datagrams; 0 over TCP.
    #[serde(deserialize_with = "signed")]
    pub packets: i64,
    /// Over UDP: number of datagrams in the omitted period; 0 over TCP.
    #[serde(default, deserialize_with = "signed")]
    pub omitted_packets: i64,
    /// Start of the results in seconds since the start of the test: 0.
    #[serde(default)]
    pub start_time: f64,
    /// Seconds since the start.
    #[serde(default)]
    pub end_time: f64,
}

/// The number of the stream opened as `index`th, from 0: iperf3 leaves 2 out.
pub const fn stream_id(index: usize) -> i64 {
    if index == 0 { 1 } else { index as i64 + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    #[test]
    fn states_have_iperf3s_bytes() {
        assert_eq!(State::from_byte(10), Some(State::CreateStreams));
        assert_eq!(State::from_byte(255), Some(State::AccessDenied));
        assert_eq!(State::ServerError.to_byte(), 254);
        assert_eq!(State::from_byte(3), None);
    }

    #[test]
    fn cookies_are_36_letters_and_a_zero() {
        let cookie = Cookie::draw(&mut Pcg64::seed_from_u64(1));
        let bytes = cookie.message();
        assert_eq!((bytes.len(), bytes[36]), (37, 0));
        assert_eq!(cookie.text().len(), 36);
        let mut reader = Reader::default();
        reader.push(&bytes[..30]);
        assert_eq!(reader.cookie(), None);
        reader.push(&bytes[30..]);
        assert_eq!(reader.cookie(), Some(cookie));
        assert!(reader.is_empty());
    }

    #[test]
    fn json_comes_whole_or_not_at_all() {
        // As iperf 3.12 sends it.
        let text = br#"{"tcp":true,"omit":0,"time":2,"num":0,"blockcount":0,"parallel":1,"bidirectional":true,"len":131072,"bandwidth":1e7,"pacing_timer":1000,"client_version":"3.12"}"#;
        let mut reader = Reader::default();
        reader.push(&(text.len() as u32).to_be_bytes());
        reader.push(&text[..50]);
        assert_eq!(reader.json::<Parameters>(1000), Ok(None));
        reader.push(&text[50..]);
        reader.push(&[4]);
        let p = reader.json::<Parameters>(1000).unwrap().unwrap();
        assert!(p.tcp && p.bidirectional && !p.reverse);
        assert_eq!((p.bandwidth, p.len, p.time), (10_000_000, 131_072, 2));
        assert_eq!(reader.byte(), Some(4));
    }

    #[test]
    fn what_cannot_be_meant_is_an_error() {
        let mut reader = Reader::default();
        reader.push(b"GET / HTTP/1.1\r\n\r\n");
        assert!(matches!(
            reader.json::<Parameters>(1000),
            Err(ProtocolError::TooLong(_))
        ));
        for text in [r#"{"tcp":true,"time":-1}"#, "[", r#"{"num":"x"}"#] {
            let mut reader = Reader::default();
            reader.push(&(text.len() as u32).to_be_bytes());
            reader.push(text.as_bytes());
            assert!(matches!(
                reader.json::<Parameters>(1000),
                Err(ProtocolError::BadJson(_))
            ));
        }
    }

    #[test]
    fn results_of_a_receiver_say_none_in_two_ways() {
        for none in ["-1", "18446744073709551615"] {
            let text = format!(
                r#"{{"cpu_util_total":1.5,"cpu_util_user":0,"cpu_util_system":1.5,"sender_has_retransmits":{none},"congestion_used":"bbr","streams":[{{"id":1,"bytes":2621440,"retransmits":{none},"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":2.000097}}]}}"#
            );
            let r: Results = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (r.sender_has_retransmits, r.streams[0].retransmits),
                (-1, -1)
            );
            assert_eq!(r.streams[0].bytes, 2_621_440);
        }
    }
}
