"""Delays over UDP over time: round trips of pings, one-way delays of datagrams, and frames of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gargalo.pictures.looks import Looks
from gargalo.pictures.model import Chart
from gargalo.pictures.runs import Look, left_out, looks_of, measured_window, numbers, shown_flows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.results import Run


class Series(NamedTuple):
    """A column of delays in seconds over time."""

    rows: pl.DataFrame
    """With a column `flow`."""
    time: str
    delay: str
    end: str = ""
    """What it adds to the name of the flow."""


def round_trips(
    run: Run, _bin_s: float | None = None, chosen: Sequence[int] | None = None
) -> Chart:
    """Draw the round trip of each echo request over the time at which it was sent; one without an answer is a gap."""
    series = [Series(run.pings, "sent_s", "rtt_s")]
    return _drawn(run, "Round-trip time of pings", "RTT", series, chosen, _unanswered(run, chosen))


def one_way_delays(
    run: Run, _bin_s: float | None = None, chosen: Sequence[int] | None = None
) -> Chart:
    """Draw the one-way delays of echo requests and of their answers, over the time at which the request was sent.

    With `record.datagrams` those of all datagrams of other flows are drawn, too.
    """
    pings, others = run.pings, run.datagrams
    series = [Series(others, "sent_s", "delay_s")]
    if not pings.is_empty():
        if not others.is_empty():
            others = others.filter(~pl.col("flow").is_in(pings["flow"].unique().implode()))
        series = [
            Series(pings, "sent_s", "forward_delay_s", " there"),
            Series(pings, "sent_s", "return_delay_s", " back"),
            Series(others, "sent_s", "delay_s"),
        ]
    title = "One-way delay of datagrams"
    return _drawn(run, title, "one-way delay", series, chosen, _unanswered(run, chosen))


def frame_delays(
    run: Run, _bin_s: float | None = None, chosen: Sequence[int] | None = None
) -> Chart:
    """Draw how long after the encoder each frame of a call had arrived, over the time at which it was encoded.

    A frame that has lost a packet is a gap.
    """
    notes = []
    mine = _of(run.media_frames, shown_flows(run, chosen))
    if not mine.is_empty() and (missing := mine["delay_s"].null_count()):
        notes = [f"gaps: {missing} of {mine.height} frames are not complete"]
    series = [Series(run.media_frames, "encoded_s", "delay_s")]
    return _drawn(run, "Delay of frames", "from the encoder", series, chosen, notes)


def _of(rows: pl.DataFrame, flows: Sequence[int]) -> pl.DataFrame:
    return rows if rows.is_empty() else rows.filter(pl.col("flow").is_in(flows))


def _unanswered(run: Run, chosen: Sequence[int] | None) -> list[str]:
    pings = _of(run.pings, shown_flows(run, chosen))
    missing = 0 if pings.is_empty() else pings["rtt_s"].null_count()
    return [f"gaps: {missing} of {pings.height} requests have no answer"] if missing else []


def _drawn(
    run: Run,
    title: str,
    words: str,
    series: Sequence[Series],
    chosen: Sequence[int] | None,
    notes: Sequence[str],
) -> Chart:
    """Draw series of delays (ms), flow by flow; if a flow may have several, all lines have dashes of their own."""
    looks, used = looks_of(run, chosen), Looks()
    parts = [
        (one, one.rows.partition_by("flow", as_dict=True))
        for one in series
        if not one.rows.is_empty()
    ]
    lines = []
    for flow in shown_flows(run, chosen):
        for one, of_flows in parts:
            rows = of_flows.get((flow,), one.rows.clear()).sort(one.time)
            if rows[one.delay].null_count() < rows.height:
                of = looks[flow].of
                its = looks[flow] if len(series) == 1 else Look(of, *used.next(of))
                name = f"{run.names[flow]}{one.end}"
                lines.append(
                    its.line(name, numbers(rows[one.time]), numbers(rows[one.delay] * 1e3))
                )
    told = (*left_out(run, chosen), *notes)
    return Chart(title, words, "ms", tuple(lines), notes=told, window=measured_window(run))
