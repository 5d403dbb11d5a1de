"""Figures: goodput by buffer, shares of pairs, times of pages and objects, what late packets cost; all cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from gargalo.studies.drawing import Figures, bar, cell_tables, line

from gargalo_studies.quic_stacks.experiments import BUFFERS, EXPERIMENTS, Levels

if TYPE_CHECKING:
    from gargalo.reporting import FigureBlock, TableBlock
    from gargalo.studies import Context

MBPS = "goodput (Mbit/s)"
OBJECT_TIMES = (("object_p50_s", "median object"), ("object_p95_s", "95th percentile"))
METRICS = (
    "goodput_bps",
    "share",
    "page_s",
    "object_p50_s",
    "object_p95_s",
    "object_span",
    "queue_s",
    "utilization",
    "drops",
    "dropped_share",
    "lost_share",
    "timeouts",
    "sent_ratio",
    "packet_bytes",
    "acks",
)
"""Columns of the tables."""


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
    heat = go.Heatmap(
        z=values,
        x=names,
        y=names,
        text=text,
        texttemplate="%{text}",
        zmin=0,
        zmax=1,
        zmid=0.5,
        colorscale="RdBu",
    )
    figure = go.Figure(heat)
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(xaxis_title="beside", yaxis_title="share of")


def pages(context: Context) -> go.Figure:
    """Draw how long pages take."""
    figure = go.Figure()
    for s in stacks_of(context, "page"):
        figure.add_trace(bar([s], [context.interval("page_s", "page", stack=s)], s))
    return figure.update_layout(showlegend=False, yaxis_title="time (s)")


def objects(context: Context) -> go.Figure:
    """Draw how long objects take."""
    figure = go.Figure()
    names = stacks_of(context, "page")
    for metric, title in OBJECT_TIMES if names else ():
        found = [context.interval(metric, "page", stack=s) for s in names]
        figure.add_trace(bar(names, found, title))
    return figure.update_layout(barmode="group", yaxis_title="time (s)")


def by_lateness(context: Context, metric: str, title: str, scale: float) -> go.Figure:
    """Draw a metric by how late packets are."""
    figure = go.Figure()
    xs = Levels.of(context.profile).late_ms
    for s in stacks_of(context, "late"):
        found = [context.interval(metric, "late", stack=s, late_ms=x) for x in xs]
        figure.add_trace(line(xs, found, s, scale))
    figure.update_yaxes(rangemode="tozero")
    return figure.update_layout(xaxis_title="lateness (ms)", yaxis_title=title)


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures that have runs."""
    made = Figures()
    made.add("One flow alone", "Goodput after a quarter of the run.", by_buffer(context), "alone")
    made.add(
        "Shares",
        "Of the goodput of both, by the stack of the row, which starts first.",
        shares(context),
        "fairness",
        own=True,
    )
    made.add(
        "Pages",
        "From the start of the connection to the end of the last object.",
        pages(context),
        "objects",
    )
    made.add(
        "Objects",
        "From the start of the connection. Objects one after another end earlier "
        "than objects in turns, in pages of the same length.",
        objects(context),
        "objects",
    )
    made.add(
        "Late packets",
        "The application sends 15 Mbit/s; one packet in fifty is late, none is dropped.",
        by_lateness(context, "goodput_bps", MBPS, 1e-6),
        "reordering",
    )
    made.add(
        "Late packets declared lost",
        "Of the packets that came to the link; none was dropped.",
        by_lateness(context, "lost_share", "declared lost (%)", 100),
        "reordering",
    )
    return made


def tables(context: Context) -> list[TableBlock]:
    """Return the tables of all cells."""
    return cell_tables(
        context,
        [(e.name, e.title) for e in EXPERIMENTS],
        ("stack", "against", "buffer", "late_ms"),
        METRICS,
        interval="goodput_bps",
    )
