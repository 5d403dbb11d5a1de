//! From what was followed to the tables of a run.

mod connection;
mod multipath;
mod quic;
mod rows;
mod udp;

use gargalo_trace::Tables;

use crate::Known;
use crate::facts::Flow;
use crate::logs::Link;
use crate::names::Names;
use rows::{Rows, SameClock};

/// The tables, and what else was concluded of each flow.
pub fn of(
    flows: &[Known],
    links: &[Link],
    names: &mut Names,
    same_clock: &SameClock<'_>,
) -> (Tables, Vec<Flow>) {
    let mut rows = Rows::default();
    for (id, flow) in flows.iter().enumerate() {
        let id = id as u64;
        match flow {
            Known::Tcp(known) => connection::add(id, known, names, same_clock, &mut rows),
            Known::Multipath(known) => multipath::add(id, known, names, same_clock, &mut rows),
            Known::Logged(known) => rows.add_logged(id, known, names),
            Known::Quic(known) => quic::add(id, known, names, same_clock, &mut rows),
            Known::Udp(known) => udp::add(id, known, names, &mut rows),
        }
    }
    for link in links {
        rows.add_link(link);
    }
    rows.into_tables()
}
