//! Packets over one link of the simulator, at times that are given.

use gargalo_link::{Ecn, Link, LinkConfig, Packet};
use gargalo_settings::{Files, Setting};
use gargalo_units::Instant;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const WORD: usize = size_of::<i64>();
/// Of a packet that did not arrive.
const LOST: i64 = -1;

/// Carries packets over a direction of a link (`direction` is its table in JSON, as in a scenario).
///
/// `times_ns` (when each packet enters, ascending), `sizes_bytes` and the result (when each arrives; -1 if it does not)
/// are arrays of 64-bit integers of this machine.
#[pyfunction]
pub fn carry<'py>(
    py: Python<'py>,
    direction: &str,
    times_ns: &[u8],
    sizes_bytes: &[u8],
    seed: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let bad = |e: &dyn std::fmt::Display| PyValueError::new_err(e.to_string());
    let table = serde_json::from_str(direction).map_err(|e| bad(&e))?;
    let config = LinkConfig::read(&table, &mut Files::new(None)).map_err(|e| bad(&e))?;
    let rng = gargalo_flow::rng::stream(seed, "carry");
    let link = Link::new(config, rng).map_err(|e| bad(&e))?;
    let packets: Vec<_> = words(times_ns).zip(words(sizes_bytes)).collect();
    if !packets.is_sorted_by_key(|(time, _)| *time) || packets.iter().any(|(t, _)| *t < 0) {
        return Err(bad(&"the times do not ascend from 0"));
    }
    let arrivals = py.detach(|| arrivals(link, &packets));
    let bytes: Vec<u8> = arrivals.iter().flat_map(|t| t.to_ne_bytes()).collect();
    Ok(PyBytes::new(py, &bytes))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = i64> {
    let words = bytes.chunks_exact(WORD);
    words.filter_map(|w| Some(i64::from_ne_bytes(w.try_into().ok()?)))
}

/// When each packet arrives.
fn arrivals(mut link: Link<u32>, packets: &[(i64, i64)]) -> Vec<i64> {
    let mut found = vec![LOST; packets.len()];
    for ((time, bytes), number) in packets.iter().zip(0..) {
        let now = Instant::from_nanos(*time as u64);
        land(&mut link, now, &mut found);
        let packet = Packet {
            bytes: *bytes as u32,
            flow: 0,
            ecn: Ecn::NotEct,
            payload: number,
        };
        link.send(now, packet);
        while link.poll_dropped().is_some() {}
    }
    land(&mut link, Instant::MAX, &mut found);
    found
}

/// Takes what has arrived before `until`; a link that never serves again keeps the rest.
fn land(link: &mut Link<u32>, until: Instant, found: &mut [i64]) {
    while link.next_event() < until {
        let now = link.next_event();
        while let Some(delivery) = link.poll(now) {
            let arrival = &mut found[delivery.packet.payload as usize];
            // Of a duplicate the first.
            if *arrival == LOST {
                *arrival = now.as_nanos() as i64;
            }
        }
        while link.poll_dropped().is_some() {}
    }
}
