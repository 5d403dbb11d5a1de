//! The columns of every results table, defined once.
//!
//! The macro below generates from each definition a row type, the [`Schema`] for files and the reference page, and
//! the code that appends a row. Columns use SI units; the unit is in the name.

use gargalo_units::{Bytes, Count, Counter, Duration, Instant, Rate, SenderCounters};

use crate::table::{Buffer, Cell, Kind};
pub use crate::table::{Column, Schema, Type};

/// The type of a row, with a lifetime if it has texts.
macro_rules! row {
    ($row:ident, $lifetime:lifetime) => { $row };
    ($row:ident, $lifetime:lifetime, $text:lifetime) => { $row<$lifetime> };
}

/// The columns of a field: one, or those of the counters that are named.
macro_rules! columns {
    ($ty:ty, $doc:expr, each [$($counter:ident),+]) => {
        &[$( Column::of(<$ty>::DECLARED, stringify!($counter)) ),+]
    };
    ($ty:ty, $doc:expr, $column:literal [$unit:literal]) => {
        &[Column {
            name: $column,
            ty: <$ty as Cell>::TYPE,
            nullable: <$ty as Cell>::NULLABLE,
            unit: $unit,
            doc: $doc,
        }]
    };
}

/// Appends the value of a field, or those of the counters that are named.
macro_rules! push {
    ($columns:ident, $value:expr, each [$($counter:ident),+]) => {
        $( if let Some(c) = $columns.next() { $value.$counter.push(c); } )+
    };
    ($columns:ident, $value:expr, $column:literal $unit:tt) => {
        if let Some(c) = $columns.next() { $value.push(c); }
    };
}

impl Column {
    /// The column of the counter with this name.
    const fn of(declared: &[Counter], name: &str) -> Self {
        let mut i = 0;
        while !is_same(declared[i].name, name) {
            i += 1;
        }
        Self {
            name: declared[i].name,
            ty: <Count as Cell>::TYPE,
            nullable: <Count as Cell>::NULLABLE,
            unit: declared[i].unit,
            doc: declared[i].doc,
        }
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

const fn number_of(fields: &[&[Column]]) -> usize {
    let (mut n, mut i) = (0, 0);
    while i < fields.len() {
        n += fields[i].len();
        i += 1;
    }
    n
}

/// The columns of all fields in one array.
const fn joined<const N: usize>(fields: &[&[Column]]) -> [Column; N] {
    let mut all = [fields[0][0]; N];
    let (mut n, mut i) = (0, 0);
    while i < fields.len() {
        let mut j = 0;
        while j < fields[i].len() {
            all[n] = fields[i][j];
            (n, j) = (n + 1, j + 1);
        }
        i += 1;
    }
    all
}

macro_rules! tables {
    ($(
        $(#[doc = $doc:literal])+
        $kind:ident($name:literal): $row:ident$(<$text:lifetime>)? {
            $( $(#[doc = $field_doc:literal])+ $field:ident: $ty:ty => $column:tt $unit:tt, )+
        }
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            pub struct $row$(<$text>)? {
                $( $(#[doc = $field_doc])+ pub $field: $ty, )+
            }

            impl$(<$text>)? $row$(<$text>)? {
                const FIELDS: &'static [&'static [Column]] =
                    &[$( columns!($ty, concat!($($field_doc),+), $column $unit) ),+];
                const COLUMNS: &'static [Column] =
                    &joined::<{ number_of($row::FIELDS) }>(Self::FIELDS);
            }

            #[doc = concat!("The table `", $name, "`, for [`Table`](crate::Table).")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $kind {}

            impl Kind for $kind {
                type Row<'row> = row!($row, 'row $(, $text)?);
                const SCHEMA: &'static Schema = &Schema {
                    name: $name,
                    doc: concat!($($doc),+),
                    columns: $row::COLUMNS,
                };
                #[inline]
                fn push(row: &Self::Row<'_>, columns: &mut [Buffer]) {
                    let mut columns = columns.iter_mut();
                    $( push!(columns, row.$field, $column $unit); )+
                }
            }
        )+

        /// All results tables.
        pub const TABLES: &[&Schema] = &[$( <$kind as Kind>::SCHEMA ),+];
    };
}

tables! {
    /// A flow: its data, times, packets and losses.
    Flows("flows"): FlowRow<'a> {
        /// Number of the flow in the scenario, from 0.
        id: u64 => "id" [""],
        /// Name given in the scenario, or made from its type and number.
        label: &'a str => "label" [""],
        /// Host the data comes from.
        from: &'a str => "from" [""],
        /// Host the data goes to.
        to: &'a str => "to" [""],
        /// Transport protocol: tcp, mptcp, quic, udp.
        transport: &'a str => "transport" [""],
        /// Congestion control; empty if the transport has none.
        congestion: &'a str => "congestion" [""],
        /// Kind of workload: bulk, request, cbr, …
        workload: &'a str => "workload" [""],
        /// When the flow started.
        start: Instant => "start_s" ["s"],
        /// When it ended: completed, failed, stopped, or the end of the run.
        end: Instant => "end_s" ["s"],
        /// From the start until the client's application could write: handshake of TCP and TLS, or of QUIC; missing
        /// for UDP, and if the handshake was not completed.
        handshake: Option<Duration> => "handshake_s" ["s"],
        /// From the start to the first byte delivered to the receiving application.
        first_byte: Option<Duration> => "first_byte_s" ["s"],
        /// From the start to the last byte delivered; missing if the flow did not complete.
        completion: Option<Duration> => "completion_s" ["s"],
        /// Data delivered in order to the receiving application, each byte once; over UDP in order of arrival. Missing
        /// in recordings of what does not tell it.
        delivered: Option<Bytes> => "delivered_bytes" ["byte"],
        /// Of that, the data delivered in the measured window: all of it, unless the scenario has `measure`.
        measured: Option<Bytes> => "measured_bytes" ["byte"],
        /// Data delivered in the measured window over the time that the flow was active in it (from its
        /// start to its end); missing if it was not. Rates of flows that were active at different times
        /// do not add up: `measured_bytes` do.
        goodput: Option<Rate> => "goodput_bps" ["bit/s"],
        /// Payload sent in the measured window, with retransmissions and without headers.
        throughput: Option<Rate> => "throughput_bps" ["bit/s"],
        /// What its sender counted.
        counters: SenderCounters => each [sent_packets, retransmitted_packets, lost_packets, timeouts, spurious_losses],
        /// Packets received with a Congestion Experienced mark, at either end; in the lab only data packets. Missing
        /// where a recording does not have the packets as they were received.
        ce_marks: Option<u64> => "ce_marks" ["packet"],
        /// Smallest round-trip time that the sender measured in the measured window; missing over UDP, but for a ping.
        /// The kernel's stack: minimum of its sampled smoothed round-trip time.
        rtt_min: Option<Duration> => "rtt_min_s" ["s"],
        /// Mean of the round-trip samples.
        rtt_mean: Option<Duration> => "rtt_mean_s" ["s"],
        /// Median of the round-trip samples.
        rtt_p50: Option<Duration> => "rtt_p50_s" ["s"],
        /// 95th percentile of the round-trip samples.
        rtt_p95: Option<Duration> => "rtt_p95_s" ["s"],
        /// 99th percentile of the round-trip samples.
        rtt_p99: Option<Duration> => "rtt_p99_s" ["s"],
        /// Largest round-trip sample.
        rtt_max: Option<Duration> => "rtt_max_s" ["s"],
        /// UDP: smallest one-way delay of the packets received in the measured window.
        delay_min: Option<Duration> => "delay_min_s" ["s"],
        /// UDP: mean of the one-way delays.
        delay_mean: Option<Duration> => "delay_mean_s" ["s"],
        /// UDP: median of the one-way delays.
        delay_p50: Option<Duration> => "delay_p50_s" ["s"],
        /// UDP: 95th percentile of the one-way delays.
        delay_p95: Option<Duration> => "delay_p95_s" ["s"],
        /// UDP: 99th percentile of the one-way delays.
        delay_p99: Option<Duration> => "delay_p99_s" ["s"],
        /// UDP: largest one-way delay.
        delay_max: Option<Duration> => "delay_max_s" ["s"],
        /// Whether every received byte equals the one that was sent; missing without `record.verify`.
        verified: Option<bool> => "verified" [""],
        /// Why the flow failed; missing if it did not.
        failure: Option<&'a str> => "failure" [""],
        /// Voice and media: share of the packets that did not arrive, or arrived too late. Ping: share of the requests
        /// whose timeout has passed that have no answer.
        loss: Option<f64> => "loss" ["1"],
        /// Voice: packets that arrived too late to be played.
        late_packets: Option<u64> => "late_packets" ["packet"],
        /// Voice and media: mean interarrival jitter (RFC 3550).
        jitter: Option<Duration> => "jitter_s" ["s"],
        /// Voice: mean mouth-to-ear delay, playout buffer included.
        mouth_to_ear: Option<Duration> => "mouth_to_ear_s" ["s"],
        /// Voice: rating R of the E-model (ITU-T G.107).
        rating: Option<f64> => "rating" ["1"],
        /// Voice: mean opinion score of the E-model, 1 to 4.5.
        mos: Option<f64> => "mos" ["1"],
        /// Media: reports of the receiver that reached the sender.
        reports: Option<u64> => "reports" ["1"],
        /// Video: startup delay, from the first request to the first picture; missing if none was shown.
        startup: Option<Duration> => "startup_s" ["s"],
        /// Video: segments that arrived.
        segments: Option<u64> => "segments" ["1"],
        /// Video: played time.
        played: Option<Duration> => "played_s" ["s"],
        /// Video: stall time after the first picture.
        rebuffering: Option<Duration> => "rebuffering_s" ["s"],
        /// Video: number of stalls.
        rebufferings: Option<u64> => "rebufferings" ["1"],
        /// Video: mean rate of the requested segments; media: of the encoder.
        bitrate: Option<Rate> => "bitrate_bps" ["bit/s"],
        /// Video: changes of rate from one segment to the next.
        bitrate_switches: Option<u64> => "bitrate_switches" ["1"],
        /// Requests: objects that arrived.
        completed_objects: Option<u64> => "completed_objects" ["1"],
        /// Requests: median of the times from an object's request to its last byte.
        object_completion_p50: Option<f64> => "object_completion_p50_s" ["s"],
        /// Requests: 95th percentile of these times.
        object_completion_p95: Option<f64> => "object_completion_p95_s" ["s"],
        /// Requests: the longest of them.
        object_completion_max: Option<f64> => "object_completion_max_s" ["s"],
        /// MPTCP and multipath QUIC: subflows that were established.
        subflows: Option<u64> => "subflows" ["1"],
        /// MPTCP: packets reinjected on another subflow because theirs timed out or ended.
        reinjected_packets: Option<u64> => "reinjected_packets" ["packet"],
        /// MPTCP: opportunistic retransmissions on a faster subflow, of packets that blocked the window.
        opportunistic_packets: Option<u64> => "opportunistic_packets" ["packet"],
        /// MPTCP: copies of packets for a redundant scheduler or to probe a path.
        copied_packets: Option<u64> => "copied_packets" ["packet"],
        /// MPTCP: data received more than once, or beyond the window.
        duplicate: Option<Bytes> => "duplicate_bytes" ["byte"],
        /// MPTCP: maximum amount of out-of-order data at the receiver.
        out_of_order_max: Option<Bytes> => "out_of_order_max_bytes" ["byte"],
        /// MPTCP: whether the connection fell back to plain TCP.
        fell_back: Option<bool> => "fell_back" [""],
    }

    /// A direction of a link: what it carried and dropped, and how long packets waited.
    Links("links"): LinkRow<'a> {
        /// Name of the link.
        name: &'a str => "name" [""],
        /// up or down.
        direction: &'a str => "direction" [""],
        /// Mean rate in the measured window; missing if it is unlimited.
        capacity: Option<u64> => "capacity_bps" ["bit/s"],
        /// Mean share of that used in the window; missing likewise.
        utilization: Option<f64> => "utilization" ["1"],
        /// Packets that arrived at the link.
        offered_packets: u64 => "offered_packets" ["packet"],
        /// Copies that it made of them (`duplicate`).
        duplicated_packets: u64 => "duplicated_packets" ["packet"],
        /// Packets that it sent, copies included: at most `offered_packets` + `duplicated_packets`. More than
        /// `offered_packets` are copies: a link splits no packet. The rest were dropped, or waited when the run ended.
        /// The auditor checks this (`link-not-conserved`).
        sent_packets: u64 => "sent_packets" ["packet"],
        /// Their bytes, with headers.
        sent: Bytes => "sent_bytes" ["byte"],
        /// Packets that it did not carry, for any of the next four reasons.
        dropped_packets: u64 => "dropped_packets" ["packet"],
        /// The queue was full.
        dropped_queue_full_packets: u64 => "dropped_queue_full_packets" ["packet"],
        /// Active queue management or a policer dropped them.
        dropped_aqm_packets: u64 => "dropped_aqm_packets" ["packet"],
        /// Random loss or an outage.
        lost_packets: u64 => "lost_packets" ["packet"],
        /// Larger than the link's MTU: dropped whole, as nothing splits them.
        too_big_packets: u64 => "too_big_packets" ["packet"],
        /// Marked with congestion experienced.
        marked_packets: u64 => "marked_packets" ["packet"],
        /// Mean queueing delay in the measured window.
        queue_delay_mean: Duration => "queue_delay_mean_s" ["s"],
        /// Its median.
        queue_delay_p50: Duration => "queue_delay_p50_s" ["s"],
        /// Its 95th percentile.
        queue_delay_p95: Duration => "queue_delay_p95_s" ["s"],
        /// Its 99th percentile.
        queue_delay_p99: Duration => "queue_delay_p99_s" ["s"],
        /// The longest.
        queue_delay_max: Duration => "queue_delay_max_s" ["s"],
    }

    /// A flow at an instant; with several paths, sums over its subflows, and the smallest of their round-trip
    /// times.
    FlowSamples("flow_samples"): FlowSample<'a> {
        /// Time of the sample, since the start of the run.
        time: Instant => "time_s" ["s"],
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Congestion window of the sender; 0 for media, which have none; missing in recordings, which do not show it.
        congestion_window: Option<Bytes> => "congestion_window_bytes" ["byte"],
        /// Slow-start threshold; missing while infinite.
        slow_start_threshold: Option<Bytes> => "slow_start_threshold_bytes" ["byte"],
        /// Bytes sent and neither acknowledged nor declared lost; missing if the stack does not report them.
        bytes_in_flight: Option<Bytes> => "bytes_in_flight" ["byte"],
        /// Smoothed round-trip time; missing before the first measurement.
        srtt: Option<Duration> => "srtt_s" ["s"],
        /// Pacing rate; missing if the sender does not pace. Media: reference rate.
        pacing_rate: Option<Rate> => "pacing_rate_bps" ["bit/s"],
        /// Latest delivery-rate sample.
        delivery_rate: Option<Rate> => "delivery_rate_bps" ["bit/s"],
        /// Data delivered to the receiving application since the start; missing in recordings of what does not tell it.
        delivered: Option<Bytes> => "delivered_bytes" ["byte"],
        /// Application data that has reached the receiver since the start, each byte once: that delivered, and that
        /// which waits for earlier data. Missing if the receiver's stack does not report it: the kernel's and
        /// foreign ones.
        received: Option<Bytes> => "received_bytes" ["byte"],
        /// Phase of the congestion control: slow-start, congestion-avoidance, probe-bw, …
        phase: &'a str => "phase" [""],
        /// MPTCP: out-of-order data at the receiver; missing for other transports.
        out_of_order: Option<Bytes> => "out_of_order_bytes" ["byte"],
    }

    /// One direction of a link at an instant.
    LinkSamples("link_samples"): LinkSample<'a> {
        /// Time of the sample, since the start of the run.
        time: Instant => "time_s" ["s"],
        /// Name of the link.
        link: &'a str => "link" [""],
        /// "up" or "down".
        direction: &'a str => "direction" [""],
        /// Packets waiting in the queue, without the one in transmission.
        queue_packets: u64 => "queue_packets" ["packet"],
        /// Bytes of the packets waiting in the queue, with IP headers and without the packet in transmission.
        queue: Bytes => "queue_bytes" ["byte"],
        /// Queueing delay of a packet that arrived now.
        queue_delay: Duration => "queue_delay_s" ["s"],
        /// Bytes sent since the start, with IP headers.
        sent: Bytes => "sent_bytes" ["byte"],
        /// Packets dropped since the start, for any reason.
        dropped_packets: u64 => "dropped_packets" ["packet"],
        /// Packets marked Congestion Experienced since the start.
        marked_packets: u64 => "marked_packets" ["packet"],
        /// Share of the capacity used since the previous sample; missing where the rate is unlimited.
        utilization: Option<f64> => "utilization" ["1"],
    }

    /// An event of a protocol.
    Events("events"): EventRow<'a> {
        /// Time of the event, since the start of the run.
        time: Instant => "time_s" ["s"],
        /// Number of the flow; missing for events of the network.
        flow: Option<u64> => "flow" [""],
        /// One word: loss, timeout, recovery, path-added, …
        kind: &'a str => "kind" [""],
        /// Further values of the event; may be empty.
        detail: &'a str => "detail" [""],
    }

    /// An internal quantity of a flow's congestion control; only with `record.gauges`.
    Gauges("gauges"): GaugeRow<'a> {
        /// Time of the record, since the start of the run.
        time: Instant => "time_s" ["s"],
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Why it was recorded: sample, phase (a change of phase), or the events of the sender at this instant;
        /// several are joined by +.
        cause: &'a str => "cause" [""],
        /// Phase of the congestion control, as with samples.
        phase: &'a str => "phase" [""],
        /// Name of the quantity, with its unit at the end.
        name: &'a str => "name" [""],
        /// Its value; missing while it is undefined.
        value: Option<f64> => "value" ["1"],
    }

    /// A requested object.
    Objects("objects"): ObjectRow {
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Number of the object in its flow, from 0.
        object: u64 => "object" [""],
        /// Size of the object.
        size: Bytes => "size_bytes" ["byte"],
        /// When it was requested.
        requested: Instant => "requested_s" ["s"],
        /// From the request to its first byte; missing if no byte arrived.
        first_byte: Option<Duration> => "first_byte_s" ["s"],
        /// When its last byte arrived; missing if it did not.
        completed: Option<Instant> => "completed_s" ["s"],
        /// From the request to its last byte; missing if that did not arrive.
        completion: Option<Duration> => "completion_s" ["s"],
    }

    /// A datagram of a flow over UDP that arrived; only with `record.datagrams`.
    Datagrams("datagrams"): DatagramRow {
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Number of the datagram in its flow, from 0; numbers that are missing did not arrive.
        datagram: u64 => "datagram" [""],
        /// Payload of the datagram.
        size: Bytes => "size_bytes" ["byte"],
        /// When it was sent.
        sent: Instant => "sent_s" ["s"],
        /// When it arrived; a copy that a link made has a row of its own.
        arrived: Instant => "arrived_s" ["s"],
        /// One-way delay.
        delay: Duration => "delay_s" ["s"],
    }

    /// An echo request of a ping, and its answer.
    Pings("pings"): PingRow {
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Sequence number of the request in its flow, from 0.
        sequence: u64 => "sequence" [""],
        /// When the request was sent.
        sent: Instant => "sent_s" ["s"],
        /// From the request to its first answer; missing if there was none.
        round_trip: Option<Duration> => "rtt_s" ["s"],
        /// One-way delay of the request; missing if it did not arrive.
        forward: Option<Duration> => "forward_delay_s" ["s"],
        /// One-way delay of the answer; missing if none arrived.
        back: Option<Duration> => "return_delay_s" ["s"],
        /// Whether it had no answer within the timeout and none later; missing if the flow ended before that was known.
        lost: Option<bool> => "lost" [""],
    }

    /// A frame of a call's encoder (workload `media`).
    MediaFrames("media_frames"): MediaFrameRow {
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Number of the frame in its flow, from 0.
        frame: u64 => "frame" [""],
        /// Size of the frame, RTP headers included.
        size: Bytes => "size_bytes" ["byte"],
        /// Number of packets into which it was cut.
        packets: u64 => "packets" [""],
        /// How many of them had arrived when the flow ended; copies that a link made are not counted.
        received_packets: u64 => "received_packets" [""],
        /// When it left the encoder.
        encoded: Instant => "encoded_s" ["s"],
        /// When the last of its packets arrived; missing if one did not.
        completed: Option<Instant> => "completed_s" ["s"],
        /// From the encoder to the arrival of its last packet, with the time in the sender's shaping buffer; missing if
        /// a packet did not arrive.
        delay: Option<Duration> => "delay_s" ["s"],
    }

    /// A packet with data in a recording of TCP or decrypted QUIC, as its sender sent it; only if packets are asked
    /// for.
    Packets("packets"): PacketRow {
        /// When it was sent.
        time: Instant => "time_s" ["s"],
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Multipath TCP: number of the subflow in its flow.
        subflow: Option<u64> => "subflow" [""],
        /// Where its payload begins: bytes of the stream (of a subflow: of its own) before it. QUIC: bytes of all
        /// streams that had been sent before it, each once.
        offset: Bytes => "offset_bytes" ["byte"],
        /// Payload.
        payload: Bytes => "payload_bytes" ["byte"],
        /// Size with all headers from that of IP on.
        size: Bytes => "size_bytes" ["byte"],
        /// Whether its data, or a part of it, had been sent before.
        again: bool => "again" [""],
        /// When it was first acknowledged, in order or selectively; missing if it was not. TCP: missing, too, if its
        /// data was sent again before that.
        acknowledged: Option<Instant> => "acknowledged_s" ["s"],
    }

    /// A subflow of a Multipath TCP flow, or a path of a multipath QUIC one, seen by the sender of the data.
    Subflows("subflows"): SubflowRow<'a> {
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Number of the subflow in its flow, in the order of opening.
        subflow: u64 => "subflow" [""],
        /// Link on which the sender sends data.
        link: &'a str => "link" [""],
        /// Link on which the receiver sends acknowledgements.
        peer_link: &'a str => "peer_link" [""],
        /// Router that the data is sent to first; missing with the default route.
        gateway: Option<&'a str> => "gateway" [""],
        /// Whether it is a backup, used only when no other can be; missing if the kernel's stack does not report
        /// it.
        backup: Option<bool> => "backup" [""],
        /// When it was established; for the kernel's stack when that was first observed, up to 5 ms later.
        opened: Instant => "opened_s" ["s"],
        /// When it ended; missing if it ended with the connection. For the kernel's stack up to 5 ms later, too.
        closed: Option<Instant> => "closed_s" ["s"],
        /// Data received on it, including data that was also received on others (QUIC: only data that it delivered
        /// first).
        delivered: Bytes => "delivered_bytes" ["byte"],
        /// Of that, the data received in the measured window.
        measured: Bytes => "measured_bytes" ["byte"],
        /// `measured_bytes` over the time that the subflow was open in the measured window; missing if it was not.
        goodput: Option<Rate> => "goodput_bps" ["bit/s"],
        /// What its sender counted.
        counters: SenderCounters => each [
            sent_packets, sent_bytes, retransmitted_packets, lost_packets, timeouts, duplicate_acks
        ],
        /// Smallest round-trip time that the sender measured in the measured window; for the kernel's stack the
        /// last smoothed one only.
        rtt_min: Option<Duration> => "rtt_min_s" ["s"],
        /// Mean of the round-trip samples.
        rtt_mean: Option<Duration> => "rtt_mean_s" ["s"],
        /// 95th percentile of the round-trip samples.
        rtt_p95: Option<Duration> => "rtt_p95_s" ["s"],
    }

    /// A subflow at an instant.
    SubflowSamples("subflow_samples"): SubflowSample<'a> {
        /// Time of the sample, since the start of the run.
        time: Instant => "time_s" ["s"],
        /// Number of the flow.
        flow: u64 => "flow" [""],
        /// Number of the subflow.
        subflow: u64 => "subflow" [""],
        /// Link on which its data is sent.
        link: &'a str => "link" [""],
        /// Congestion window of the subflow's sender; missing in recordings.
        congestion_window: Option<Bytes> => "congestion_window_bytes" ["byte"],
        /// Slow-start threshold; missing while infinite.
        slow_start_threshold: Option<Bytes> => "slow_start_threshold_bytes" ["byte"],
        /// Bytes sent and neither acknowledged nor declared lost.
        bytes_in_flight: Bytes => "bytes_in_flight" ["byte"],
        /// Smoothed round-trip time; missing before the first measurement.
        srtt: Option<Duration> => "srtt_s" ["s"],
        /// Latest delivery-rate sample.
        delivery_rate: Option<Rate> => "delivery_rate_bps" ["bit/s"],
        /// Payload sent since the start, retransmissions included.
        sent: Count => "sent_bytes" ["byte"],
        /// Data received on it since the start.
        delivered: Bytes => "delivered_bytes" ["byte"],
        /// Phase of the congestion control.
        phase: &'a str => "phase" [""],
    }
}

impl FlowRow<'_> {
    /// Fills the round-trip columns.
    pub fn set_rtt(&mut self, rtt: &crate::Quantiles) {
        let summary = rtt.summary();
        self.rtt_min = summary.map(|s| s.min);
        self.rtt_mean = summary.map(|s| s.mean);
        self.rtt_p50 = summary.map(|s| s.p50);
        self.rtt_p95 = summary.map(|s| s.p95);
        self.rtt_p99 = summary.map(|s| s.p99);
        self.rtt_max = summary.map(|s| s.max);
    }

    /// Fills the columns of one-way delays.
    pub fn set_delay(&mut self, delay: &crate::Quantiles) {
        let summary = delay.summary();
        self.delay_min = summary.map(|s| s.min);
        self.delay_mean = summary.map(|s| s.mean);
        self.delay_p50 = summary.map(|s| s.p50);
        self.delay_p95 = summary.map(|s| s.p95);
        self.delay_p99 = summary.map(|s| s.p99);
        self.delay_max = summary.map(|s| s.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_carry_the_unit() {
        for table in TABLES {
            assert!(!table.doc().is_empty());
            for (i, c) in table.columns.iter().enumerate() {
                assert!(!c.doc().is_empty(), "{}", c.name);
                // It would break the table of the reference.
                assert!(!c.doc().contains('|'), "{}", c.name);
                assert!(table.columns[..i].iter().all(|d| d.name != c.name));
                let suffix = match c.unit {
                    "s" => "_s",
                    "bit/s" => "_bps",
                    "byte" if c.name == "bytes_in_flight" => "",
                    "byte" => "_bytes",
                    _ => "",
                };
                assert!(c.name.ends_with(suffix), "{}", c.name);
            }
        }
    }

    #[test]
    fn types_and_nullability_come_from_the_row() {
        let column = |name| {
            let all = <FlowSamples as Kind>::SCHEMA.columns;
            *all.iter().find(|c| c.name == name).unwrap()
        };
        assert_eq!(column("time_s").ty, Type::F64);
        assert!(!column("time_s").nullable);
        assert_eq!(column("slow_start_threshold_bytes").ty, Type::U64);
        assert!(column("slow_start_threshold_bytes").nullable);
        assert_eq!(column("phase").ty, Type::String);
        assert_eq!(
            column("phase").doc(),
            "Phase of the congestion control: slow-start, congestion-avoidance, probe-bw, …"
        );
    }
}
