//! Frames of calls: the table, the figures, and the one-way delays of datagrams.

use gargalo_units::Bytes;
use proptest::prelude::*;
use serde_json::Value as Json;

use super::{near, ok, over_udp, results};
use crate::build::Outcome;
use crate::memory::Estimate;

/// A call over the link of [`over_udp`].
fn text(head: &str, link: &str, flow: &str, media: &str) -> String {
    over_udp(head, link, flow, &format!("workload.media = {{ {media} }}"))
}

fn rows(out: &Outcome) -> Vec<Json> {
    out.tables.media_frames.rows().collect()
}

#[test]
fn frames_are_rows_from_the_encoder_to_the_last_packet() {
    // Each frame is a packet that is sent at once.
    let out = results(&text(
        "",
        "",
        "",
        "variation = 0.0, max_rate = \"150kbit/s\"",
    ));
    let frames = rows(&out);
    // The last is encoded as the run ends.
    assert_eq!(frames.len(), 151);
    assert!(frames[150]["delay_s"].is_null());
    for (i, row) in frames.iter().enumerate().take(150) {
        assert_eq!((&row["flow"], &row["frame"]), (&0.into(), &i.into()));
        assert_eq!(row["size_bytes"], 625);
        assert_eq!(
            (&row["packets"], &row["received_packets"]),
            (&1.into(), &1.into())
        );
        // 653 bytes with headers, and the propagation.
        assert!(near(&row["delay_s"], 0.010_653), "{row}");
        let took = row["completed_s"].as_f64().unwrap() - row["encoded_s"].as_f64().unwrap();
        assert!((took - 0.010_653).abs() < 1e-9, "{row}");
    }
    let s = &out.json["summary"];
    assert_eq!(s["media_frames"], 151);
    assert_eq!(s["media_frames_completed"], 150);
    for key in ["p50", "p95", "max"] {
        assert!(
            near(&s[format!("media_frame_delay_{key}_s")], 0.010_653),
            "{key}"
        );
    }
}

#[test]
fn a_frame_with_a_lost_packet_is_never_complete() {
    let out = results(&text(
        "seed = 3\nmeasure = { from = \"1s\", until = \"4s\" }",
        ", loss = \"20%\"",
        "",
        "min_rate = \"1Mbit/s\"",
    ));
    let frames = rows(&out);
    let whole = |r: &&Json| r["received_packets"] == r["packets"];
    for row in &frames {
        assert_eq!(whole(&row), !row["completed_s"].is_null(), "{row}");
        assert_eq!(row["completed_s"].is_null(), row["delay_s"].is_null());
        assert!(row["packets"].as_u64() >= Some(1));
    }
    let inside = |r: &&Json| (1.0..4.0).contains(&r["encoded_s"].as_f64().unwrap());
    let s = &out.json["summary"];
    assert_eq!(s["media_frames"], frames.iter().filter(inside).count());
    let completed = frames.iter().filter(inside).filter(whole).count();
    assert_eq!(s["media_frames_completed"], completed);
    assert!((10..80).contains(&completed), "{completed}");
}

#[test]
fn only_calls_with_rows_have_frames() {
    let hidden = results(&text("", "", "record = \"summary\"", ""));
    assert!(rows(&hidden).is_empty());
    assert!(hidden.json["summary"].get("media_frames").is_none());
}

#[test]
fn datagrams_have_their_one_way_delays() {
    let head = "record = { datagrams = true }";
    let cbr =
        text(head, "", "", "").replace("workload.media = {  }", "workload.cbr.rate = \"1Mbit/s\"");
    let out = results(&cbr);
    let rows_of = |out: &Outcome| -> Vec<Json> { out.tables.datagrams.rows().collect() };
    let arrived = out.tables.flows.rows().next().unwrap()["delivered_bytes"].clone();
    assert_eq!(1000 * rows_of(&out).len() as u64, arrived.as_u64().unwrap());
    for (i, row) in rows_of(&out).iter().enumerate() {
        assert_eq!((&row["flow"], &row["datagram"]), (&0.into(), &i.into()));
        assert_eq!(row["size_bytes"], 1000);
        assert!(near(&row["sent_s"], 0.008 * i as f64), "{row}");
        assert!(near(&row["arrived_s"], 0.008 * i as f64 + 0.011_028));
        assert!(near(&row["delay_s"], 0.011_028), "{row}");
    }
    // The reports of a call, which go the other way, are not among them.
    let call = results(&text(head, "", "", ""));
    let packets: u64 = rows(&call)
        .iter()
        .map(|r| r["received_packets"].as_u64().unwrap())
        .sum();
    assert_eq!(rows_of(&call).len() as u64, packets);
    // Without the key, and of flows without rows, there are none.
    for (head, flow) in [("", ""), (head, "record = \"summary\"")] {
        assert!(rows_of(&results(&text(head, "", flow, ""))).is_empty());
    }
}

#[test]
fn memory_counts_frames() {
    let head = "record = { flows = false, links = false }";
    let e = Estimate::of(&ok(&text(head, "", "", "frame_rate = 1000.0")));
    assert_eq!((e.rows, e.frames), (5000, e.bytes));
    assert!((100..300).contains(&(e.bytes / e.rows)), "{e:?}");
    let hidden = ok(&text(head, "", "record = \"summary\"", ""));
    assert_eq!(Estimate::of(&hidden).rows, 0);
    let long = text(head, "", "", "").replace("\"5s\"", "\"1000000s\"");
    let scenario = ok(&long);
    let told = Estimate::of(&scenario)
        .check(&scenario, Some(Bytes::new(1 << 20)))
        .unwrap_err()
        .to_string();
    assert!(told.starts_with("workload.media would record"), "{told}");
    assert!(told.contains("a lower `frame_rate`"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever the network does: frames are in order, no frame has more packets than it was cut into, and those
    /// with all of them have a delay.
    #[test]
    fn frames_have_what_arrived(
        seed in 0_u64..1000,
        loss in 0.0_f64..0.3,
        copies in 0.0_f64..0.3,
        jitter in 0_u64..20,
    ) {
        let link = format!(
            ", loss = {loss}, duplicate = {copies}, jitter = \"{}ms\"",
            jitter + 1
        );
        let out = results(&text(&format!("seed = {seed}"), &link, "", ""));
        let frames = rows(&out);
        prop_assert!(frames.len() >= 149);
        let mut received = 0;
        for (i, row) in frames.iter().enumerate() {
            prop_assert_eq!(row["frame"].as_u64(), Some(i as u64));
            let number = |key: &str| row[key].as_u64().unwrap();
            received += number("received_packets");
            prop_assert!(number("received_packets") <= number("packets"));
            let whole = number("received_packets") == number("packets");
            prop_assert_eq!(row["delay_s"].as_f64().is_some_and(|d| d > 0.0), whole);
        }
        let delivered = out.tables.flows.rows().next().unwrap();
        let sent = delivered["sent_packets"].as_u64().unwrap();
        prop_assert!(received <= sent);
    }
}
