//! Headers and frames in qlog's format (draft-ietf-quic-qlog-quic-events-02 §7).

use std::fmt::Write as _;

use super::json::{hex, millis, string};
use crate::types::CID;
use gargalo_wire::quic::{Ack, Frame, Frames};

/// The default ACK delay exponent, which noq uses (RFC 9000 §18.2).
const ACK_DELAY_EXPONENT: u32 = 3;

/// The header of a packet (RFC 9000 §17).
pub(super) struct Header<'a> {
    pub(super) kind: &'static str,
    pub(super) dcid: &'a [u8],
    pub(super) scid: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let first = *bytes.first()?;
        if first & 0x80 == 0 {
            return Some(Self {
                kind: "1RTT",
                dcid: bytes.get(1..1 + CID)?,
                scid: None,
            });
        }
        let kind = ["initial", "0RTT", "handshake", "retry"][usize::from(first >> 4 & 3)];
        let id = |rest: &'a [u8]| {
            let (len, rest) = rest.split_first()?;
            rest.split_at_checked(usize::from(*len))
        };
        let (dcid, rest) = id(bytes.get(5..)?)?;
        let (scid, _) = id(rest)?;
        Some(Self {
            kind,
            dcid,
            scid: Some(scid),
        })
    }
}

/// Frames with commas between them.
pub(super) fn write_all(out: &mut String, payload: &[u8]) {
    for (i, frame) in Frames::new(payload).enumerate() {
        out.push_str(if i > 0 { ",{" } else { "{" });
        write(out, &frame);
        out.push('}');
    }
}

/// Writes the fields of a frame.
fn write(out: &mut String, frame: &Frame<'_>) {
    let _ = match *frame {
        Frame::Padding(n) => write!(out, r#""frame_type":"padding","length":{n}"#),
        Frame::Ping => write!(out, r#""frame_type":"ping""#),
        Frame::Ack(ack) => return write_ack(out, &ack),
        Frame::ResetStream { stream, code, size } => write!(
            out,
            r#""frame_type":"reset_stream","stream_id":{stream},"error_code":{code},"final_size":{size}"#
        ),
        Frame::StopSending { stream, code } => write!(
            out,
            r#""frame_type":"stop_sending","stream_id":{stream},"error_code":{code}"#
        ),
        Frame::Crypto { offset, data } => write!(
            out,
            r#""frame_type":"crypto","offset":{offset},"length":{}"#,
            data.len()
        ),
        Frame::NewToken { len } => write!(
            out,
            r#""frame_type":"new_token","token":{{"raw":{{"length":{len}}}}}"#
        ),
        Frame::Stream(s) => {
            let _ = write!(
                out,
                r#""frame_type":"stream","stream_id":{},"offset":{},"length":{}"#,
                s.id, s.offset, s.len
            );
            if s.fin {
                out.push_str(r#","fin":true"#);
            }
            Ok(())
        }
        Frame::HandshakeDone => write!(out, r#""frame_type":"handshake_done""#),
        Frame::Other(kind) => write!(out, r#""frame_type":"unknown","raw_frame_type":{kind}"#),
        _ => return write_control(out, frame),
    };
}

/// Frames of flow control, connection identifiers, paths and the end.
fn write_control(out: &mut String, frame: &Frame<'_>) {
    let _ = match *frame {
        Frame::NewConnectionId {
            sequence,
            retire_prior_to,
            id,
        } => {
            let _ = write!(
                out,
                r#""frame_type":"new_connection_id","sequence_number":{sequence},"retire_prior_to":{retire_prior_to},"connection_id_length":{},"connection_id":""#,
                id.len()
            );
            hex(out, id);
            out.push('"');
            Ok(())
        }
        Frame::RetireConnectionId(n) => write!(
            out,
            r#""frame_type":"retire_connection_id","sequence_number":{n}"#
        ),
        Frame::PathChallenge(data) | Frame::PathResponse(data) => {
            let name = match frame {
                Frame::PathChallenge(_) => "path_challenge",
                _ => "path_response",
            };
            let _ = write!(out, r#""frame_type":"{name}","data":""#);
            hex(out, data);
            out.push('"');
            Ok(())
        }
        Frame::ConnectionClose {
            application,
            code,
            reason,
        } => {
            let space = match application {
                true => "application",
                false => "transport",
            };
            let _ = write!(
                out,
                r#""frame_type":"connection_close","error_space":"{space}","error_code":{code},"raw_error_code":{code},"reason":"#
            );
            string(out, &String::from_utf8_lossy(reason));
            Ok(())
        }
        _ => return write_limit(out, frame),
    };
}

/// Frames of flow control.
fn write_limit(out: &mut String, frame: &Frame<'_>) {
    let kind = |bidirectional| match bidirectional {
        true => "bidirectional",
        false => "unidirectional",
    };
    let _ = match *frame {
        Frame::MaxData(n) => write!(out, r#""frame_type":"max_data","maximum":{n}"#),
        Frame::MaxStreamData { stream, most } => write!(
            out,
            r#""frame_type":"max_stream_data","stream_id":{stream},"maximum":{most}"#
        ),
        Frame::MaxStreams {
            bidirectional,
            most,
        } => write!(
            out,
            r#""frame_type":"max_streams","stream_type":"{}","maximum":{most}"#,
            kind(bidirectional)
        ),
        Frame::DataBlocked(n) => write!(out, r#""frame_type":"data_blocked","limit":{n}"#),
        Frame::StreamDataBlocked { stream, limit } => write!(
            out,
            r#""frame_type":"stream_data_blocked","stream_id":{stream},"limit":{limit}"#
        ),
        Frame::StreamsBlocked {
            bidirectional,
            limit,
        } => write!(
            out,
            r#""frame_type":"streams_blocked","stream_type":"{}","limit":{limit}"#,
            kind(bidirectional)
        ),
        _ => Ok(()),
    };
}

fn write_ack(out: &mut String, ack: &Ack<'_>) {
    out.push_str(r#""frame_type":"ack","ack_delay":"#);
    millis(out, (ack.delay << ACK_DELAY_EXPONENT).saturating_mul(1000));
    out.push_str(r#","acked_ranges":["#);
    let mut ranges: Vec<_> = ack.ranges().collect();
    ranges.reverse();
    for (i, (from, to)) in ranges.into_iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}[{from},{to}]");
    }
    out.push(']');
    if let Some([ect0, ect1, ce]) = ack.ecn {
        let _ = write!(out, r#","ect1":{ect1},"ect0":{ect0},"ce":{ce}"#);
    }
}
