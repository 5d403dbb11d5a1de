"""The objects of requests over time: a row for each, as browsers draw the loading of a page.

Over HTTP/3 an object is a stream: what one waits for another does not. On one byte stream all wait for what is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gargalo.pictures.looks import Looks
from gargalo.pictures.model import Chart, Line
from gargalo.pictures.runs import shown_flows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.results import Run

MOST_OBJECTS = 120
"""Rows of all flows together."""


def objects(run: Run, _bin_s: float | None = None, chosen: Sequence[int] | None = None) -> Chart:
    """Draw when each object waits for its first byte (dots) and when it arrives (a line), at its number in its flow.

    An object that did not arrive is drawn to the end of its flow.
    """
    title, words = "Objects", "number of the object"
    rows = run.objects
    if not rows.is_empty():
        rows = rows.filter(pl.col("flow").is_in(shown_flows(run, chosen)))
    if rows.is_empty():
        return Chart(title, words, "", ())
    flows = rows["flow"].unique(maintain_order=True).to_list()
    each = max(MOST_OBJECTS // len(flows), 1)
    ends = dict(run.flows.select("id", "end_s").iter_rows())
    of = {i: c or t for i, c, t in run.flows.select("id", "congestion", "transport").iter_rows()}
    looks, lines = Looks(dashed=False), []
    for flow in flows:
        colour, _ = looks.next(of[flow])
        for row in rows.filter(pl.col("flow") == flow).head(each).iter_rows(named=True):
            asked, waits, done = row["requested_s"], row["first_byte_s"], row["completed_s"]
            end = ends[flow] if done is None else done
            first = end if waits is None else asked + waits
            for what, dash, x in (
                ("waits", "dot", (asked, first)),
                ("arrives", "solid", (first, end)),
            ):
                if x[0] <= x[1] and not (what == "arrives" and waits is None):
                    name = f"{run.names[flow]} {what}"
                    lines.append(_row(name, x, row["object"], colour, dash, of[flow]))
    notes = ["dots: waits for the first byte; line: arrives"]
    most = int(rows.group_by("flow").len()["len"].max())  # type: ignore[arg-type]
    if most > each:
        notes.append(f"the first {each} objects of each flow, which has up to {most}")
    return Chart(title, words, "", tuple(lines), notes=tuple(notes), counted="objects")


def _row(name: str, x: tuple[float, float], place: int, colour: str, dash: str, of: str) -> Line:
    # What arrives within one packet has one instant; after the row there is nothing.
    at = np.array([x[0], max(x[1], np.nextafter(x[0], np.inf))])
    at = np.append(at, np.nextafter(at[1], np.inf))
    return Line(name, at, np.array([place, place, np.nan], float), colour, dash, of=of)
