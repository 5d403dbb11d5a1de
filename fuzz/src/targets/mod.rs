//! The targets: what is done with the bytes.

pub(crate) mod host;
pub(crate) mod iperf3;
pub(crate) mod quic;
pub(crate) mod scenario;
pub(crate) mod segments;
pub(crate) mod wire;

use std::convert::Infallible;

use arbitrary::Unstructured;
use gargalo_link::DeliveryTrace;
use rand::TryRng;

/// Packet-delivery traces in mahimahi's text format.
pub(crate) fn delivery_trace(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(trace) = DeliveryTrace::parse(text) {
        let again = DeliveryTrace::parse(&trace.to_text()).expect("written text is a trace");
        assert!(again.times().eq(trace.times()));
    }
}

/// Captures of packets.
pub(crate) fn recording(bytes: &[u8]) {
    let Some(recording) = gargalo_recording::read_bytes(bytes, &Default::default()) else {
        return;
    };
    let json = recording.json("capture");
    assert_eq!(json["run"]["flows"], recording.facts.flows.len());
    assert!(recording.setup("capture").is_object());
    for row in recording.tables.flows.rows() {
        let of = |column: &str| row[column].as_u64();
        assert!(of("retransmitted_packets") <= of("sent_packets"));
        assert!(row["start_s"].as_f64() <= row["end_s"].as_f64());
        assert!(row["rtt_min_s"].as_f64() <= row["rtt_max_s"].as_f64());
    }
}

/// The rest of an input, as a source of random numbers; zeros after its end.
pub(crate) struct RandomBytes<'a, 'b>(pub(crate) &'a mut Unstructured<'b>);

impl TryRng for RandomBytes<'_, '_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.arbitrary().unwrap_or_default())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.arbitrary().unwrap_or_default())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        dst.fill(0);
        let n = dst.len().min(self.0.len());
        let _ = self.0.fill_buffer(&mut dst[..n]);
        Ok(())
    }
}
