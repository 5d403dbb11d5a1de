//! From what was followed to the tables of a run.

mod connection;
mod multipath;
mod offsets;
mod quic;
mod rows;
mod udp;

use std::cell::LazyCell;

use gargalo_trace::Tables;

use crate::Known;
use crate::crossings::{Selection, Span};
use crate::facts::Flow;
use crate::logs::Link;
use crate::names::Names;
use offsets::Offsets;
use rows::{Rows, SameClock};

/// What is known of the datagrams that pass places.
pub struct Passing<'a> {
    /// When each place was watched.
    pub span: &'a dyn Fn(usize) -> Span,
    /// Which datagrams are remembered.
    pub selection: &'a Selection,
}

/// The tables, and what else was concluded of each flow.
pub fn of(
    flows: &[Known],
    links: &[Link],
    names: &mut Names,
    same_clock: &SameClock<'_>,
    passing: &Passing<'_>,
) -> (Tables, Vec<Flow>) {
    let mut rows = Rows::default();
    let offsets = LazyCell::new(|| Offsets::of(flows, same_clock));
    let between = udp::Between {
        same_clock,
        passing,
        offset: &|near, far| offsets.between(near, far),
    };
    for (id, flow) in flows.iter().enumerate() {
        let id = id as u64;
        match flow {
            Known::Tcp(known) => connection::add(id, known, names, same_clock, &mut rows),
            Known::Multipath(known) => multipath::add(id, known, names, same_clock, &mut rows),
            Known::Logged(known) => rows.add_logged(id, known, names),
            Known::Quic(known) => quic::add(id, known, names, same_clock, &mut rows),
            Known::Udp(known) => udp::add(id, known, names, &between, &mut rows),
        }
    }
    for link in links {
        rows.add_link(link);
    }
    rows.into_tables()
}
