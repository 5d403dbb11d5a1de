"""Delays over UDP over time: round trips of pings, one-way delays of datagrams, and frames of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gargalo.pictures.looks import Looks
from gargalo.pictures.model import Chart, Line
from gargalo.pictures.runs import Look, left_out, looks_of, measured_window, numbers, shown_flows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    if not (pings.is_empty() or others.is_empty()):
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
    """Draw series of delays (ms), flow by flow."""
    looks, used = looks_of(run, chosen), Looks()
    found = {flow: list(_lines(run, flow, looks[flow], series, used)) for flow in looks}
    order = shown_flows(run, chosen)
    lines = tuple(line for flow in order for line in found.get(flow, ()))
    told = (*left_out(run, chosen), *notes)
    return Chart(title, words, "ms", lines, notes=told, window=measured_window(run))


def _lines(
    run: Run, flow: int, look: Look, series: Sequence[Series], used: Looks
) -> Iterator[Line]:
    for one in series:
        rows = _of(one.rows, [flow])
        if rows.is_empty() or rows[one.delay].null_count() == rows.height:
            continue
        rows = rows.sort(one.time)
        its = Look(look.of, *used.next(look.of)) if one.end else look
        name = f"{run.names[flow]}{one.end}"
        yield its.line(name, numbers(rows[one.time]), numbers(rows[one.delay] * 1e3))
