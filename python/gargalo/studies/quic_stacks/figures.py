"""Figures: goodput by buffer, shares of pairs, times of objects, goodput by lateness; tables of all cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from gargalo.studies.drawing import Figures, bar, cell_tables, line
from gargalo.studies.quic_stacks.experiments import BUFFERS, EXPERIMENTS

if TYPE_CHECKING:
    from gargalo.reporting.model import FigureBlock, TableBlock
    from gargalo.studies.model import Context

MBPS = "goodput (Mbit/s)"


def stacks_of(context: Context, experiment: str) -> list[str]:
    """Return the stacks of an experiment's runs."""
    rows = context.experiment(experiment)
    return rows["stack"].unique(maintain_order=True).to_list() if rows.height else []


def by_buffer(context: Context) -> go.Figure:
    """Draw the goodput of one flow by its buffer."""
    figure = go.Figure()
    for s in stacks_of(context, "alone"):
        found = [context.interval("goodput_bps", "alone", stack=s, buffer=b) for b in BUFFERS]
        figure.add_trace(bar([f"{b:g} BDP" for b in BUFFERS], found, s, 1e-6))
    return figure.update_layout(barmode="group", xaxis_title="buffer", yaxis_title=MBPS)


def shares(context: Context) -> go.Figure:
    """Draw the share of each stack beside each other one."""
    names = stacks_of(context, "versus")
    if not names:
        return go.Figure()
    values = [[context.mean("share", "versus", stack=a, against=b) for b in names] for a in names]
    text = [[f"{100 * v:.0f}%" for v in row] for row in values]
    heat = go.Heatmap(z=values, x=names, y=names, text=text, texttemplate="%{text}", zmin=0, zmax=1, zmid=0.5, colorscale="RdBu")  # fmt: skip
    figure = go.Figure(heat)
    return figure.update_layout(xaxis_title="beside", yaxis_title="share of")


def objects(context: Context) -> go.Figure:
    """Draw how long objects and pages take."""
    figure = go.Figure()
    names = stacks_of(context, "page")
    for metric, title in (("object_p50_s", "median object"), ("object_p95_s", "95th percentile"), ("page_s", "page")):  # fmt: skip
        found = [context.interval(metric, "page", stack=s) for s in names]
        if names:
            figure.add_trace(bar(names, found, title))
    return figure.update_layout(barmode="group", yaxis_title="time (s)")


def by_lateness(context: Context) -> go.Figure:
    """Draw the goodput by how late packets are."""
    figure = go.Figure()
    xs = context.profile.settings["late_ms"]
    for s in stacks_of(context, "late"):
        found = [context.interval("goodput_bps", "late", stack=s, late_ms=x) for x in xs]
        figure.add_trace(line(xs, found, s, 1e-6))
    return figure.update_layout(xaxis_title="lateness (ms)", yaxis_title=MBPS)


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures that have runs."""
    made = Figures()
    made.add("One flow alone", "Goodput after a quarter of the run.", by_buffer(context), "alone")
    made.add("Shares", "Of the goodput of both, by the stack of the row, which starts first.", shares(context), "fairness", own=True)  # fmt: skip
    made.add("Small objects", "From the start of the connection.", objects(context), "objects")
    made.add("Late packets", "One packet in fifty is late; none is lost in the network.", by_lateness(context), "reordering")  # fmt: skip
    return made


def tables(context: Context) -> list[TableBlock]:
    """Return the tables of all cells."""
    return cell_tables(
        context,
        [(e.name, e.title) for e in EXPERIMENTS],
        ("stack", "against", "buffer", "late_ms"),
        ("goodput_bps", "share", "queue_s", "utilization", "lost_share", "object_p50_s", "object_p95_s", "page_s"),
        interval="goodput_bps",
    )  # fmt: skip
