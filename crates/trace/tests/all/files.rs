//! Files are read back with independent readers.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use gargalo_trace::schema::{self, FlowSamples, Flows};
use gargalo_trace::{
    EventRow, Existing, FlowRow, FlowSample, LinkSample, Quantiles, RunDir, Table, Tables,
    never_stop,
};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn samples() -> Table<FlowSamples> {
    let mut table = Table::with_capacity(100);
    for i in 0..1000 {
        table.push(&FlowSample {
            time: at(i * 50),
            flow: i % 3,
            congestion_window: Some(Bytes::new(14_480 + i)),
            slow_start_threshold: (i > 10).then(|| Bytes::new(7 * i)),
            bytes_in_flight: Some(Bytes::new(i)),
            srtt: (i > 0).then(|| Duration::from_millis(50)),
            pacing_rate: None,
            delivery_rate: Some(Rate::from_mbps(12)),
            delivered: Some(Bytes::new(i * 1448)),
            received: None,
            out_of_order: None,
            phase: if i < 500 {
                "slow-start"
            } else {
                "congestion-avoidance"
            },
        });
    }
    table
}

fn read(parquet: Vec<u8>) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(parquet)).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    // The reader gives 1024 rows at a time; the tables here have fewer.
    assert!(batches.len() <= 1);
    match batches.into_iter().next() {
        // Batches come without the table's metadata.
        Some(batch) => batch.with_schema(schema).unwrap(),
        None => RecordBatch::new_empty(schema),
    }
}

fn check_samples(batch: &RecordBatch) {
    assert_eq!(batch.num_rows(), 1000);
    let time = batch["time_s"].as_primitive::<Float64Type>();
    assert_eq!(time.value(1), 0.05);
    assert_eq!(time.value(999), 49.95);
    let threshold = batch["slow_start_threshold_bytes"].as_primitive::<UInt64Type>();
    assert!(threshold.is_null(10));
    assert_eq!(threshold.value(11), 77);
    assert_eq!(batch["pacing_rate_bps"].null_count(), 1000);
    let rate = batch["delivery_rate_bps"].as_primitive::<Float64Type>();
    assert_eq!(rate.value(500), 12e6);
    let phase = batch["phase"].as_string::<i64>();
    assert_eq!(
        (phase.value(499), phase.value(500)),
        ("slow-start", "congestion-avoidance")
    );
    let schema = batch.schema();
    let field = schema.field_with_name("srtt_s").unwrap();
    assert_eq!(field.metadata()["unit"], "s");
    assert!(field.metadata()["doc"].contains("Smoothed"));
    assert!(field.is_nullable());
    assert_eq!(schema.metadata()["table"], "flow_samples");
}

#[test]
fn parquet_is_read_back_with_units() {
    check_samples(&read(samples().to_parquet().unwrap()));
}

#[test]
fn ipc_is_read_back_with_units() {
    let bytes = samples().to_ipc().unwrap();
    let mut reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
    check_samples(&reader.next().unwrap().unwrap());
    assert!(reader.next().is_none());
}

#[test]
fn the_same_table_gives_the_same_bytes() {
    assert_eq!(
        samples().to_parquet().unwrap(),
        samples().to_parquet().unwrap()
    );
    assert_eq!(samples().to_ipc().unwrap(), samples().to_ipc().unwrap());
}

#[test]
fn empty_tables_have_all_columns() {
    let empty = Table::<Flows>::new();
    let batch = read(empty.to_parquet().unwrap());
    assert_eq!(batch.num_rows(), 0);
    let names: Vec<_> = empty.schema().columns.iter().map(|c| c.name).collect();
    let schema = batch.schema();
    let read: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(read, names);
}

#[test]
fn columns_are_at_hand_without_a_file() {
    let table = samples();
    assert_eq!(table.len(), 1000);
    assert_eq!(table.u64s("delivered_bytes").unwrap()[2], 2896);
    assert_eq!(table.f64s("time_s").unwrap()[2], 0.1);
    assert_eq!(table.f64s("delivered_bytes"), None);
    assert_eq!(table.f64s("no_such_column"), None);
}

fn tables() -> Tables {
    let mut tables = Tables::default();
    let mut rtt = Quantiles::new();
    (1..=100).for_each(|ms| rtt.record(Duration::from_millis(ms)));
    let mut row = FlowRow {
        id: 3,
        label: "cubic",
        transport: "tcp",
        congestion: "cubic",
        end: at(60_000),
        completion: None,
        delivered: Some(Bytes::new(1_000_000)),
        goodput: Some(Rate::from_mbps(8)),
        ..FlowRow::default()
    };
    row.set_rtt(&rtt);
    tables.flows.push(&row);
    tables.link_samples.push(&LinkSample {
        link: "bottleneck",
        direction: "up",
        utilization: Some(0.93),
        ..LinkSample::default()
    });
    tables.events.push(&EventRow {
        time: at(3),
        flow: Some(3),
        kind: "timeout",
        detail: "",
    });
    tables
}

#[test]
fn tables_are_written_to_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("results/run-1");
    let dir = RunDir::create(&target, Existing::Refuse, &mut never_stop).unwrap();
    tables()
        .write_to(&dir, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    dir.commit(&mut never_stop).unwrap();
    let flows = read(std::fs::read(target.join("flows.parquet")).unwrap());
    let p95 = flows["rtt_p95_s"].as_primitive::<Float64Type>().value(0);
    assert!((p95 - 0.095).abs() < 0.001, "{p95}");
    assert!(flows["completion_s"].is_null(0));
    assert!(target.join("events.parquet").is_file());
    assert!(!target.join("flow_samples.parquet").exists());
}

#[test]
fn every_table_is_in_the_reference() {
    let names: Vec<_> = schema::TABLES.iter().map(|t| t.name).collect();
    let known = [
        "flows",
        "links",
        "flow_samples",
        "link_samples",
        "events",
        "gauges",
        "objects",
        "datagrams",
        "pings",
        "media_frames",
        "packets",
        "subflows",
        "subflow_samples",
    ];
    assert_eq!(names, known);
    let written: Vec<_> = Tables::default().all().map(|t| t.schema().name).into();
    assert_eq!(written, names);
}
