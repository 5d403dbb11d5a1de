//! Packet-delivery traces in mahimahi's text format: no panic, text round trip.
#![no_main]

use gargalo_link::DeliveryTrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(trace) = DeliveryTrace::parse(text) {
        let again = DeliveryTrace::parse(&trace.to_text()).expect("written text is a trace");
        assert!(again.times().eq(trace.times()));
    }
});
