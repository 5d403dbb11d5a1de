//! Packets and their frames, as far as they are used.

use serde_json::Value;

use super::event;
use super::words::{self, Space};
use crate::streams::Part;

/// What is used of a packet.
pub struct Packet<'a> {
    pub space: Space,
    pub number: Option<u64>,
    pub length: u64,
    pub frames: Option<&'a [Value]>,
    pub cid: Option<String>,
}

impl<'a> Packet<'a> {
    /// Reads one; `None` if it is of a kind without a number, which carries nothing.
    pub fn read(data: &'a Value) -> Option<Self> {
        let header = &data["header"];
        let kind = event::first(header, &["packet_type", "type"]).as_str();
        let kind = kind.or(event::first(data, &["packet_type", "type"]).as_str());
        let length = event::first(&data["raw"], &["length", "payload_length"]);
        let length = event::integer(length)
            .or_else(|| event::integer(&header["packet_size"]))
            .or_else(|| event::integer(&data["packet_size"]));
        let number = event::integer(&header["packet_number"]);
        Some(Self {
            space: words::space(kind.unwrap_or("1RTT"))?,
            number: number.or_else(|| event::integer(&data["packet_number"])),
            length: length.unwrap_or(0),
            // There is no packet without frames (RFC 9000, section 12.4): an empty list tells nothing.
            frames: data["frames"]
                .as_array()
                .map(Vec::as_slice)
                .filter(|f| !f.is_empty()),
            cid: event::text(&header["dcid"]),
        })
    }
}

/// Whether a frame acknowledges packets: with ECN, with times, or on a path.
pub fn is_ack(kind: &str) -> bool {
    (kind.starts_with("ack") && kind != "ack_frequency") || ["path_ack", "mp_ack"].contains(&kind)
}

/// What kind a frame is of.
pub fn kind_of(frame: &Value) -> String {
    let kind = frame["frame_type"].as_str().or(frame["type"].as_str());
    kind.unwrap_or_default().to_ascii_lowercase()
}

/// What a STREAM frame carries; without an offset it is the beginning (RFC 9000, section 19.8).
pub fn part_of(frame: &Value) -> Option<Part> {
    let length = event::integer(&frame["length"])
        .or_else(|| event::integer(&frame["raw"]["payload_length"]))
        .or_else(|| event::integer(&frame["raw"]["length"]));
    let part = Part {
        stream: event::integer(event::first(frame, &["stream_id", "id"]))?,
        offset: event::integer(&frame["offset"]).unwrap_or(0),
        length: length?,
        is_last: frame["fin"].as_bool() == Some(true),
    };
    // No stream is longer (RFC 9000, section 4.5).
    let end = part.offset.checked_add(part.length)?;
    (end < 1 << 62).then_some(part)
}
