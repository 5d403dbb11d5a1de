"""Pictures by name: what `gargalo plot --metric` knows, of one run or of several in one picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from gargalo.pictures import datagrams, runs
from gargalo.pictures.looks import Looks
from gargalo.pictures.model import MOST_LINES, Chart, Line
from gargalo.pictures.objects import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from gargalo.results import Run

    Source: TypeAlias = Literal["flows", "links", "subflows"]


@dataclass(frozen=True)
class Metric:
    """A quantity over time, from a column of samples."""

    title: str
    words: str
    unit: str
    scale: float
    column: str
    source: Source = "flows"


METRICS = {
    "rtt": Metric("Smoothed round-trip time", "RTT", "ms", 1e3, "srtt_s"),
    "cwnd": Metric("Congestion window", "window", "kB", 1e-3, "congestion_window_bytes"),
    "ssthresh": Metric(
        "Slow-start threshold", "threshold", "kB", 1e-3, "slow_start_threshold_bytes"
    ),
    "in-flight": Metric("Bytes in flight", "in flight", "kB", 1e-3, "bytes_in_flight"),
    "pacing": Metric("Pacing rate", "rate", "Mbit/s", 1e-6, "pacing_rate_bps"),
    "delivery-rate": Metric(
        "Delivery-rate samples", "rate", "Mbit/s", 1e-6, "delivery_rate_bps"
    ),
    "delivered": Metric("Delivered data", "delivered", "MB", 1e-6, "delivered_bytes"),
    "out-of-order": Metric("Out-of-order buffer", "waiting", "kB", 1e-3, "out_of_order_bytes"),
    "queue": Metric("Queueing delay", "queueing delay", "ms", 1e3, "queue_delay_s", "links"),
    "queue-packets": Metric("Queue", "queue", "packets", 1.0, "queue_packets", "links"),
    "queue-bytes": Metric("Queue", "queue", "kB", 1e-3, "queue_bytes", "links"),
    "utilization": Metric("Link utilization", "utilization", "", 1.0, "utilization", "links"),
    "drops": Metric(
        "Packets dropped since the start", "dropped", "packets", 1.0, "dropped_packets", "links"
    ),
    "marks": Metric(
        "Packets marked since the start", "marked", "packets", 1.0, "marked_packets", "links"
    ),
    "sent": Metric("Sent by the link since the start", "sent", "MB", 1e-6, "sent_bytes", "links"),
    "subflow-rtt": Metric(
        "Smoothed round-trip time of each subflow", "RTT", "ms", 1e3, "srtt_s", "subflows"
    ),
    "subflow-cwnd": Metric(
        "Congestion window of each subflow", "window", "kB", 1e-3, "congestion_window_bytes", "subflows",
    ),
    "subflow-delivered": Metric(
        "Delivered data of each subflow", "delivered", "MB", 1e-6, "delivered_bytes", "subflows"
    ),
}  # fmt: skip
"""Quantities that are a column of samples."""
RATES = {"goodput": runs.goodput, "in-order-delivery": runs.delivery}
"""Rates in bins."""
DATAGRAMS = {
    "ping": "a flow with workload.ping",
    "one-way-delay": "a flow with workload.ping, or one over UDP and record.datagrams",
    "frame-delay": "a flow with workload.media",
}
"""Delays of echo requests, of datagrams, and of the frames of calls, and what has them."""
OTHERS = {
    "paths": runs.paths,
    "objects": objects,
    "ping": datagrams.round_trips,
    "one-way-delay": datagrams.one_way_delays,
    "frame-delay": datagrams.frame_delays,
}
"""Rates of paths on top of each other, what requests asked for, and what UDP carried."""
COUNTS = {
    "losses": ("loss", "Packets declared lost since the start", "lost", "packets"),
    "recoveries": ("recovery", "Recoveries since the start", "recoveries", ""),
    "timeouts": ("timeout", "Timeouts since the start", "timeouts", ""),
}
"""Quantities that are counted from the table of events: its kind, title, words, unit."""
GAUGE = "gauge:"
"""Before the name of an internal quantity of a congestion control."""


class UnknownMetricError(ValueError):
    """There is no such metric in these runs."""


def names_of(made: Iterable[Run]) -> list[str]:
    """Return the names of the metrics that runs have: those of their gauges come last."""
    gauges: dict[str, None] = {}
    for run in made:
        if not run.gauges.is_empty():
            gauges.update(dict.fromkeys(run.gauges["name"].unique(maintain_order=True)))
    first, *rates = RATES
    return [first, *METRICS, *rates, *COUNTS, *OTHERS, *(GAUGE + str(name) for name in gauges)]


def picture(
    run: Run,
    metric: str,
    *,
    flows: Sequence[int] | None = None,
    links: Sequence[tuple[str, str]] | None = None,
    bin_s: float | None = None,
) -> Chart:
    """Draw a metric of one run.

    Args:
        run: The run.
        metric: One of `names_of`.
        flows: Numbers of the flows to show; by default all.
        links: Names and directions of the links to show; by default those with a queue or drops.
        bin_s: Width of the bins of rates.

    Raises:
        UnknownMetricError: The run has no such metric.

    """
    if drawer := {**RATES, **OTHERS}.get(metric):
        return drawer(run, bin_s, flows)
    if metric in COUNTS:
        return _counted(run, metric, flows)
    if metric.startswith(GAUGE):
        return _gauge(run, metric.removeprefix(GAUGE), flows)
    if metric not in METRICS:
        raise UnknownMetricError(metric)
    m = METRICS[metric]
    about = (m.column, m.title, m.words, m.unit, m.scale)
    if m.source == "links":
        return runs.linked(run, *about, chosen=links)
    if m.source == "subflows":
        return runs.subflow_sampled(run, *about, chosen=flows)
    return runs.sampled(run, *about, chosen=flows)


def _counted(run: Run, metric: str, flows: Sequence[int] | None) -> Chart:
    """Count events of each flow since the start: steps at the instants of the events."""
    kind, title, words, unit = COUNTS[metric]
    names, looks = run.names, runs.looks_of(run, flows)
    lines = []
    events = run.events
    if not events.is_empty():
        events = events.filter(pl.col("kind") == kind).with_columns(amount(kind))
    for flow in runs.shown_flows(run, flows) if not run.events.is_empty() else []:
        mine = events.filter(pl.col("flow") == flow).sort("time_s", maintain_order=True)
        start, end = run.flows.filter(pl.col("id") == flow).select("start_s", "end_s").row(0)
        counted = mine["amount"].cum_sum().cast(pl.Float64).to_numpy()
        x = np.concatenate(([start], mine["time_s"].to_numpy(), [end]))
        y = np.concatenate(([0.0], counted, [counted[-1] if counted.size else 0.0]))
        lines.append(looks[flow].line(names[flow], x, y, step=True))
    return Chart(
        title, words, unit, tuple(lines), notes=runs.left_out(run, flows), window=runs.measured_window(run)
    )  # fmt: skip


def amount(kind: str) -> pl.Expr:
    """Return how many an event stands for, as column `amount`: packets of a loss, else one."""
    if kind != "loss":
        return pl.lit(1, pl.Int64).alias("amount")
    found = pl.col("detail").str.extract(r"(?:segments|packets)=(\d+)")
    return found.cast(pl.Int64).fill_null(1).alias("amount")


def _gauge(run: Run, name: str, flows: Sequence[int] | None) -> Chart:
    """Draw an internal quantity of the congestion controls, in SI."""
    gauges = run.gauges
    if gauges.is_empty() or not (gauges["name"] == name).any():
        raise UnknownMetricError(GAUGE + name)
    stem, _, ending = name.rpartition("_")
    known = {
        "s": ("s", 1.0),
        "bytes": ("kB", 1e-3),
        "bps": ("Mbit/s", 1e-6),
        "segments": ("segments", 1.0),
    }
    unit, scale = known.get(ending, ("", 1.0))
    words = (stem if unit else name).replace("_", " ")
    names, looks = run.names, runs.looks_of(run, flows)
    lines = []
    for flow in runs.shown_flows(run, flows):
        rows = gauges.filter(pl.col("flow") == flow, pl.col("name") == name)
        values = runs.numbers(rows["value"]) * scale
        if values.size and not np.isnan(values).all():
            lines.append(looks[flow].line(names[flow], rows["time_s"].to_numpy(), values))
    title = f"{words[:1].upper()}{words[1:]}"
    return Chart(title, words, unit, tuple(lines), notes=runs.left_out(run, flows))


def overlay(charts: Sequence[tuple[str, Chart]]) -> Chart:
    """Put the pictures of one metric of several runs into one.

    A line keeps the colour of its congestion control or path; lines of one colour differ in their dashes.

    Args:
        charts: Name and picture of each run.

    """
    if len(charts) == 1:
        return charts[0][1]
    first = charts[0][1]
    looks = Looks()
    lines: list[Line] = []
    for name, chart in charts:
        for line in chart.lines:
            colour, dash = looks.next(line.of)
            lines.append(replace(line, name=f"{name}: {line.name}", colour=colour, dash=dash))
    notes = _merged([(name, chart.notes) for name, chart in charts])
    if len(lines) > MOST_LINES:
        notes.append(f"the first {MOST_LINES} of {len(lines)} lines")
        lines = lines[:MOST_LINES]
    windows = {chart.window for _, chart in charts}
    window = windows.pop() if len(windows) == 1 else None
    references = _references(charts)
    return replace(
        first, lines=tuple(lines), references=references, notes=tuple(notes), window=window, stacked=False
    )  # fmt: skip


def _merged(noted: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the notes of all pictures; one that not all have says whose it is."""
    every = dict.fromkeys(note for _, notes in noted for note in notes)
    found = []
    for note in every:
        having = [name for name, notes in noted if note in notes]
        found.append(note if len(having) == len(noted) else f"{', '.join(having)}: {note}")
    return found


def _references(charts: Sequence[tuple[str, Chart]]) -> tuple[Line, ...]:
    """Return what the lines are compared with, once where it is the same in all runs."""
    found: dict[tuple[str, bytes], tuple[list[str], Line]] = {}
    for name, chart in charts:
        for line in chart.references:
            # Equal capacities reach as far as the longest run.
            key = (line.name, np.unique(line.y).tobytes())
            having, kept = found.setdefault(key, ([], line))
            having.append(name)
            if line.x[-1] > kept.x[-1]:
                found[key] = (having, line)
    return tuple(
        line
        if len(having) == len(charts)
        else replace(line, name=f"{', '.join(having)}: {line.name}")
        for having, line in found.values()
    )
