//! Frames of calls in the results: a row for each, and their delays.

use gargalo_flow::{FlowResult, Outcome};
use gargalo_trace::schema::{MediaFrameRow, MediaFrames};
use gargalo_trace::{Table, stats};
use gargalo_workload::AppResult;
use gargalo_workload::media_frames::MediaFrame;
use serde_json::{Map, Value as Json, json};

/// The frames of a flow; empty for another workload.
fn of(flow: &FlowResult) -> &[MediaFrame] {
    match &flow.application {
        Some(AppResult::Media(m)) => m.frames.as_deref().unwrap_or_default(),
        _ => &[],
    }
}

/// Appends the rows of a flow.
pub(crate) fn push(flow: &FlowResult, table: &mut Table<MediaFrames>) {
    for (number, frame) in of(flow).iter().enumerate() {
        table.push(&MediaFrameRow {
            flow: flow.id,
            frame: number as u64,
            size: frame.size,
            packets: frame.packets,
            received_packets: frame.received,
            encoded: frame.encoded,
            completed: frame.completed,
            delay: frame.delay(),
        });
    }
}

/// The entries of a summary: of the frames that were encoded in the measured window.
pub(crate) fn json(out: &Outcome) -> Map<String, Json> {
    let inside = |f: &&MediaFrame| {
        out.measured
            .is_none_or(|(a, b)| a <= f.encoded && f.encoded < b)
    };
    let frames: Vec<&MediaFrame> = out.flows.iter().flat_map(of).filter(inside).collect();
    let delays = frames.iter().filter_map(|f| f.delay());
    let mut delays: Vec<f64> = delays.map(|d| d.decimal_secs()).collect();
    let entries = [
        ("media_frames", json!(frames.len())),
        ("media_frames_completed", json!(delays.len())),
        (
            "media_frame_delay_p50_s",
            json!(stats::percentile(&mut delays, 0.5)),
        ),
        (
            "media_frame_delay_p95_s",
            json!(stats::percentile(&mut delays, 0.95)),
        ),
        ("media_frame_delay_max_s", json!(delays.last())),
    ];
    let named = entries.into_iter().map(|(k, v)| (k.to_owned(), v));
    named.collect()
}
