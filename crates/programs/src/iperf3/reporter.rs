use std::collections::VecDeque;

use serde::Serialize;

use super::report::{
    EndHalf, EndStream, EndSum, Ending, Interval, IntervalStream, IntervalSum, Line, Moved, Report,
    Start, pretty,
};
use super::settings::{Direction, Format, Role};
use super::table::{self, Columns};
use crate::application::Output;

/// Reports a test, as tables or as JSON.
#[derive(Debug)]
pub(super) struct Reporter {
    role: Role,
    format: Format,
    direction: Direction,
    parallel: u32,
    report: Report,
    told_intervals: bool,
    output: VecDeque<Output>,
}

/// The summary of a stream: the counts of its sender and its receiver.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub(super) halves: EndStream,
    /// Retransmitted segments, if known.
    pub(super) retransmits: Option<i64>,
}

impl Reporter {
    pub(super) fn new(role: Role, format: Format) -> Self {
        Self {
            role,
            format,
            direction: Direction::Upload,
            parallel: 1,
            report: Report::default(),
            told_intervals: false,
            output: VecDeque::new(),
        }
    }

    pub(super) fn poll(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// Resets the state after a test; what was output remains.
    pub(super) fn reset(&mut self) {
        self.report = Report::default();
        self.told_intervals = false;
    }

    /// Outputs a line of the tables.
    pub(super) fn text(&mut self, text: impl Into<String>) {
        if self.format == Format::Text {
            self.output.push_back(Output::Out(text.into()));
        }
    }

    /// Outputs a remark that is not part of a report.
    pub(super) fn remark(&mut self, text: &str) {
        let text = format!("gargalo iperf3: {text}\n");
        self.output.push_back(Output::Err(text));
    }

    fn line(&mut self, event: &str, data: &impl Serialize) {
        if self.format == Format::JsonStream {
            let line = serde_json::to_string(&Line { event, data }).unwrap_or_default();
            self.output.push_back(Output::Out(line + "\n"));
        }
    }

    /// Sets what is known of the start before the streams are open.
    pub(super) fn prepare(&mut self, start: Start) {
        self.report.start = start;
    }

    /// Begins the report when all streams are open.
    pub(super) fn start(&mut self, start: Start, direction: Direction, parallel: u32) {
        self.direction = direction;
        self.parallel = parallel;
        for c in &start.connected {
            self.output_line(format!(
                "[{:3}] local {} port {} connected to {} port {}\n",
                c.socket, c.local_host, c.local_port, c.remote_host, c.remote_port
            ));
        }
        let sends = direction.sends(self.role);
        self.text(
            Columns {
                role: direction == Direction::Both,
                retransmits: sends,
                window: sends,
            }
            .heading(),
        );
        self.line("start", &start);
        self.report.start = start;
    }

    fn output_line(&mut self, line: String) {
        self.text(line);
    }

    /// The role, such as "[TX-C]", where both directions are used.
    fn role_of(&self, is_sender: bool) -> &'static str {
        match (self.direction, self.role, is_sender) {
            (Direction::Both, Role::Client, true) => "[TX-C]",
            (Direction::Both, Role::Client, false) => "[RX-C]",
            (Direction::Both, Role::Server, true) => "[TX-S]",
            (Direction::Both, Role::Server, false) => "[RX-S]",
            _ => "",
        }
    }

    /// Whether the data of this direction flows from the server in a bidirectional test.
    fn is_bidir_reverse(&self, is_sender: bool) -> bool {
        self.direction == Direction::Both && (self.role == Role::Client) != is_sender
    }

    /// Reports an interval; `rows` are all streams in order.
    pub(super) fn interval(&mut self, rows: Vec<IntervalStream>) {
        let mut interval = Interval {
            streams: Vec::new(),
            sum: None,
            sum_bidir_reverse: None,
        };
        if self.told_intervals && self.parallel > 1 {
            self.text(table::SEPARATOR);
        }
        self.told_intervals = true;
        for is_sender in self.halves() {
            let rows: Vec<_> = rows.iter().filter(|r| r.sender == is_sender).collect();
            let Some(first) = rows.first() else { continue };
            let role = self.role_of(is_sender);
            let bytes = rows.iter().map(|r| r.moved.bytes).sum();
            let sum = IntervalSum {
                moved: Moved::new(first.moved.start, first.moved.end, bytes),
                retransmits: is_sender.then(|| {
                    rows.iter()
                        .filter_map(|r| r.state)
                        .map(|s| s.retransmits)
                        .sum()
                }),
                omitted: first.omitted,
                sender: is_sender,
            };
            for row in &rows {
                self.text(table::interval(row, role));
            }
            if self.parallel > 1 {
                self.text(table::interval_sum(&sum, role));
            }
            interval.streams.extend(rows.into_iter().cloned());
            if self.is_bidir_reverse(is_sender) {
                interval.sum_bidir_reverse = Some(sum);
            } else {
                interval.sum = Some(sum);
            }
        }
        self.line("interval", &interval);
        if self.format == Format::Json {
            self.report.intervals.push(interval);
        }
    }

    /// The order in which the directions are reported: first the data that the client sends.
    fn halves(&self) -> [bool; 2] {
        match self.role {
            Role::Client => [true, false],
            Role::Server => [false, true],
        }
    }

    /// Reports the end of the test.
    pub(super) fn end(&mut self, summaries: &[Summary], mut ending: Ending) {
        let knows_retransmits = summaries.iter().any(|s| s.retransmits.is_some());
        self.text(table::SEPARATOR);
        self.text(
            Columns {
                role: self.direction == Direction::Both,
                retransmits: knows_retransmits,
                window: false,
            }
            .heading(),
        );
        for is_sender in self.halves() {
            let half: Vec<_> = summaries
                .iter()
                .filter(|s| s.halves.sender.sender == is_sender)
                .collect();
            let Some(first) = half.first() else { continue };
            for s in &half {
                let who = s.halves.sender.socket.to_string();
                self.summary_lines(
                    &who,
                    is_sender,
                    &s.halves.sender.moved,
                    &s.halves.receiver.moved,
                    s.retransmits,
                );
            }
            let total = |of: fn(&EndStream) -> &EndHalf| {
                let span = of(&first.halves).moved;
                let bytes = half.iter().map(|s| of(&s.halves).moved.bytes).sum();
                Moved::new(span.start, span.end, bytes)
            };
            let (sent, received) = (total(|s| &s.sender), total(|s| &s.receiver));
            let retransmits = half.iter().map(|s| s.retransmits).sum::<Option<i64>>();
            if self.parallel > 1 {
                self.summary_lines("SUM", is_sender, &sent, &received, retransmits);
            }
            let sum = |moved, retransmits| {
                Some(EndSum {
                    moved,
                    retransmits,
                    sender: is_sender,
                })
            };
            if self.is_bidir_reverse(is_sender) {
                ending.sum_sent_bidir_reverse = sum(sent, retransmits);
                ending.sum_received_bidir_reverse = sum(received, None);
            } else {
                ending.sum_sent = sum(sent, retransmits);
                ending.sum_received = sum(received, None);
            }
            ending.streams.extend(half.iter().map(|s| s.halves.clone()));
        }
        self.line("end", &ending);
        self.report.end = ending;
    }

    /// A client reports both sides; a server only its own, since the client's results arrive later.
    fn summary_lines(
        &mut self,
        who: &str,
        is_sender: bool,
        sent: &Moved,
        received: &Moved,
        retransmits: Option<i64>,
    ) {
        let role = self.role_of(is_sender);
        if self.role == Role::Client || is_sender {
            self.text(table::summary(who, role, sent, retransmits, "sender"));
        }
        if self.role == Role::Client || !is_sender {
            self.text(table::summary(who, role, received, None, "receiver"));
        }
    }

    /// Writes the end of the report: the JSON object, or the client's last line.
    pub(super) fn finish(&mut self) {
        match self.format {
            Format::Text if self.role == Role::Client => self.text("\niperf Done.\n"),
            Format::Json => {
                let text = pretty(&self.report);
                self.output.push_back(Output::Out(text));
            }
            _ => {}
        }
    }

    /// Writes the end of the report of a test that failed.
    pub(super) fn fail(&mut self, why: &str) {
        match self.format {
            Format::Text => {}
            Format::Json => {
                self.report.error = Some(why.to_owned());
                let text = pretty(&self.report);
                self.output.push_back(Output::Out(text));
            }
            Format::JsonStream => self.line("error", &why),
        }
    }
}
