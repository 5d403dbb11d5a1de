//! The rows of a conversation over UDP.

use gargalo_trace::Quantiles;
use gargalo_trace::schema::{FlowRow, FlowSample};
use gargalo_units::{Bytes, Count, Duration, Instant, SenderCounters};

use super::Passing;
use super::rows::{Rows, SameClock, rate};
use crate::crossings::{Clocks, Crossing};
use crate::facts::Flow;
use crate::names::Names;
use crate::tcp::{Offset, offset_by};
use crate::udp::{Conversation, Seen};

/// What is known of two places beside a conversation.
pub struct Between<'a> {
    /// Whether they have one clock.
    pub same_clock: &'a SameClock<'a>,
    /// What is known of the datagrams that pass them.
    pub passing: &'a Passing<'a>,
    /// By how much the clock of the second is ahead, by other flows.
    pub offset: &'a dyn Fn(usize, usize) -> Option<Offset>,
}

/// Adds a conversation.
pub fn add(
    id: u64,
    conversation: &Conversation,
    names: &mut Names,
    between: &Between<'_>,
    rows: &mut Rows,
) {
    let sender = conversation.sender();
    let ends = conversation.ends;
    let called = names.of(ends[sender], ends[1 - sender]);
    let mut row = FlowRow {
        id,
        label: &called.label,
        from: &called.from,
        to: &called.to,
        transport: "udp",
        start: conversation.first,
        end: conversation.last,
        counters: SenderCounters::UNKNOWN,
        ..FlowRow::default()
    };
    let other = conversation.views.iter().map(|v| v.1[1 - sender].bytes);
    let mut facts = Flow {
        id,
        reverse_bytes: other.max().unwrap_or(0),
        ..Flow::default()
    };
    if let Some(path) = between.path(conversation, sender) {
        let seen = |view: usize| &conversation.views[view].1[sender];
        let (first, last) = (seen(path.first), seen(path.last));
        (row.start, row.end) = path.span(conversation, sender);
        let active = row.end.saturating_since(row.start);
        let delivered = Bytes::new(last.bytes);
        (row.delivered, row.measured) = (Some(delivered), Some(delivered));
        row.goodput = rate(delivered, active);
        row.throughput = rate(Bytes::new(first.bytes), active);
        path.tell([first, last], &mut row, &mut facts);
        if last.rtp.is_one() {
            row.workload = "rtp";
            row.loss = Some(last.rtp.loss());
            row.jitter = last.rtp.jitter();
        }
        row.counters.sent_packets = Count::new(first.datagrams);
        row.counters.sent_bytes = Count::new(first.bytes);
        if path.first != path.last {
            row.ce_marks = Some(last.marked);
        }
        rows.samples
            .extend(last.samples.iter().map(|(time, bytes)| FlowSample {
                time: path.at_sender(*time),
                flow: id,
                delivered: Some(Bytes::new(*bytes)),
                received: Some(Bytes::new(*bytes)),
                ..FlowSample::default()
            }));
    }
    rows.tables.flows.push(&row);
    rows.facts.push(facts);
}

/// The first and the last place on the way of datagrams, and what happened to them in between.
struct Path {
    /// Numbers of the views.
    first: usize,
    last: usize,
    /// Whether the two have one clock.
    one_clock: bool,
    /// How far the clock of the last is ahead.
    offset: Option<Offset>,
    crossing: Option<Crossing>,
}

impl Between<'_> {
    /// The way of an end's datagrams; `None` if there are none.
    fn path(&self, conversation: &Conversation, sender: usize) -> Option<Path> {
        let (first, last) = conversation.seen_of(sender)?;
        let place = |view: usize| conversation.views[view].0;
        let path = Path {
            first,
            last,
            one_clock: (self.same_clock)(place(first), place(last)),
            offset: None,
            crossing: None,
        };
        if first == last {
            return Some(path);
        }
        if path.one_clock {
            let crossing = self.crossed(conversation, sender, [first, last]);
            return Some(Path { crossing, ..path });
        }
        // Times do not tell which place is nearer to the sender until the clocks are known.
        for [first, last] in [[first, last], [last, first]] {
            if let Some((crossing, offset)) = self.corrected(conversation, sender, [first, last]) {
                return Some(Path {
                    first,
                    last,
                    one_clock: false,
                    offset: Some(offset),
                    crossing: Some(crossing),
                });
            }
        }
        let datagrams = |view: usize| conversation.views[view].1[sender].datagrams;
        let [first, last] = match datagrams(first) < datagrams(last) {
            true => [last, first],
            false => [first, last],
        };
        let crossing = self.crossed(conversation, sender, [first, last]);
        Some(Path {
            first,
            last,
            crossing,
            ..path
        })
    }

    /// What became of an end's datagrams from one view to another.
    fn crossed(
        &self,
        conversation: &Conversation,
        end: usize,
        views: [usize; 2],
    ) -> Option<Crossing> {
        let [from, to] = views.map(|v| &conversation.marks[v][end]);
        let [a, b] = views.map(|v| conversation.views[v].0);
        let clocks = match (self.same_clock)(a, b) {
            true => Clocks::One,
            false => Clocks::Two,
        };
        let watched = [a, b].map(|place| (self.passing.span)(place));
        from.crossed(to, watched, clocks, self.passing.selection)
    }

    /// The same with the offset of the clocks, if by that the first view is nearer to the sender.
    fn corrected(
        &self,
        conversation: &Conversation,
        end: usize,
        views: [usize; 2],
    ) -> Option<(Crossing, Offset)> {
        let there = self.crossed(conversation, end, views)?;
        let [a, b] = views.map(|v| conversation.views[v].0);
        let back = self.crossed(conversation, 1 - end, [views[1], views[0]]);
        let offset = match back {
            Some(back) => offset_by(&there.later, &back.later),
            None => (self.offset)(a, b),
        }?;
        let took = |(sent, later): &(f64, f64)| took(*sent, *later, &offset);
        let least = there.later.iter().map(took).reduce(f64::min)?;
        (least >= 0.0).then_some((there, offset))
    }
}

/// How long a datagram took that was seen so much later by the clock of the second place, in seconds.
fn took(sent: f64, later: f64, offset: &Offset) -> f64 {
    let ahead = offset.offset_s + sent * offset.drift_ppm.unwrap_or(0.0) / 1e6;
    later - ahead
}

impl Path {
    /// A time at the last place by the clock of the first.
    fn at_sender(&self, time: Instant) -> Instant {
        self.offset.map_or(time, |o| o.corrected(time))
    }

    /// From the first datagram of either end to the last that was sent or has arrived, by the clock of the first place.
    fn span(&self, conversation: &Conversation, sender: usize) -> (Instant, Instant) {
        let near = || {
            let ends = conversation.views[self.first].1.iter();
            ends.filter_map(|seen| seen.span)
        };
        let far = conversation.views[self.last].1[sender].span;
        let is_comparable = self.one_clock || self.offset.is_some();
        let far = far.filter(|_| is_comparable).map(|s| self.at_sender(s.1));
        let begin = near().map(|s| s.0).min().unwrap_or(conversation.first);
        let end = near().map(|s| s.1).chain(far).max();
        (begin, end.unwrap_or(begin))
    }

    /// Loss and one-way delay.
    fn tell(&self, [first, last]: [&Seen; 2], row: &mut FlowRow<'_>, facts: &mut Flow) {
        facts.clock_offset_s = self.offset.map(|o| o.offset_s);
        facts.clock_drift_ppm = self.offset.and_then(|o| o.drift_ppm);
        let Some(crossing) = &self.crossing else {
            // Both were watched for as long: what one has seen more than the other was lost.
            if self.one_clock && self.first != self.last {
                let lost = first.datagrams.saturating_sub(last.datagrams);
                row.loss = Some(lost as f64 / first.datagrams.max(1) as f64);
                facts.matched_by = Some("count");
            }
            return;
        };
        row.loss = Some(crossing.loss);
        facts.matched_datagrams = Some(crossing.later.len() as u64);
        facts.matched_by = Some(match last.rtp.is_one() {
            true => "rtp",
            false => "content",
        });
        let offset = match (self.offset, self.one_clock) {
            (Some(offset), _) => offset,
            (None, true) => Offset {
                offset_s: 0.0,
                drift_ppm: None,
            },
            (None, false) => return,
        };
        let mut delays = Quantiles::default();
        for (sent, later) in &crossing.later {
            let took = took(*sent, *later, &offset).max(0.0);
            delays.record(Duration::from_secs_f64(took));
        }
        row.set_delay(&delays);
    }
}
