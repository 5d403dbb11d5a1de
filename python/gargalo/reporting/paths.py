"""The parts of a run's report about the paths of Multipath TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo import metrics
from gargalo.reporting import charts
from gargalo.reporting.model import FigureBlock, TableBlock
from gargalo.reporting.palette import COLOURS, DASHES
from gargalo.reporting.quantities import number

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gargalo.results import Run

GROUP = "Paths"
MOST_STACKS = 4
MOST_LINES = 24
MOST_ROWS = 5000
BINS = 200


def figures(run: Run, named: pl.DataFrame) -> list[FigureBlock]:
    """Return pictures of what the paths carry, and of the data that waits at the receiver."""
    if run.subflows.is_empty() or run.subflow_samples.is_empty():
        return []
    blocks = []
    labels = named.select(pl.col("id").alias("flow"), pl.col("name").alias("flow_name"))
    shares = metrics.path_shares(run.subflows).join(labels, on="flow", maintain_order="left")
    end = float(run.info.get("virtual_s", 0) or 0)
    width = next((w for w in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if end / w <= BINS), 10.0)
    bins = metrics.path_bins(run.subflow_samples, run.subflows, width)
    flows = shares["flow"].unique(maintain_order=True).to_list()
    for flow in flows[:MOST_STACKS]:
        mine = bins.filter(pl.col("flow") == flow).rename({"throughput_bps": "delivery_rate_bps"})
        if mine.is_empty():
            continue
        own = shares.filter(pl.col("flow") == flow)
        title = "Delivered by path"
        if len(flows) > 1:
            title += f": {own['flow_name'][0]}"
        carried = ", ".join(
            f"{path} {share:.0%}"
            for path, share in own.select("path", "share").iter_rows()
            if share is not None
        )
        text = f"Data that reached the receiver on each path, copies included, in bins of {width:g} s. In all: {carried}."
        blocks.append(
            FigureBlock(
                title, text, charts.stacked(mine, "delivery_rate_bps", "path"), GROUP, restyle=False
            )
        )
    blocks += _waiting(run, labels)
    keys = ["flow", "subflow"]
    lines = _subflows(run, labels).head(MOST_LINES).select(*keys, "path", "name")
    samples = run.subflow_samples.join(lines, on=keys, maintain_order="right")
    for column, title, text in (
        (
            "congestion_window_bytes",
            "Congestion window of each subflow",
            "What the sender may have in flight on it.",
        ),
        (
            "srtt_s",
            "Smoothed round-trip time of each subflow",
            "As the sender measures it; the queue of the path shows here.",
        ),
    ):
        drawn = _by_path(charts.timelines(samples, column, "name"), lines)
        blocks.append(FigureBlock(title, text, drawn, GROUP, restyle=False))
    return blocks


def _waiting(run: Run, labels: pl.DataFrame) -> list[FigureBlock]:
    samples = run.flow_samples.drop_nulls("out_of_order_bytes")
    seen = samples.join(labels.head(MOST_LINES), on="flow", maintain_order="left")
    if seen.is_empty():
        return []
    drawn = charts.timelines(seen, "out_of_order_bytes", "flow_name")
    text = "Data that waits at the receiver for data before it; what waits takes room of the receive buffer."
    return [FigureBlock("Out-of-order buffer", text, _plain(drawn), GROUP, restyle=False)]


def _plain(drawn: go.Figure) -> go.Figure:
    """Lines in the order of our colours: paths are no algorithms."""
    for i, trace in enumerate(drawn.data):
        trace.legendgroup = None
        trace.line.color = COLOURS[i % len(COLOURS)]
        trace.line.dash = DASHES[i // len(COLOURS) % len(DASHES)]
    return drawn


def _by_path(drawn: go.Figure, lines: pl.DataFrame) -> go.Figure:
    """A path has one colour; its subflows differ in their dashes."""
    path_of = dict(lines.select("name", "path").iter_rows())
    order = {path: i for i, path in enumerate(lines["path"].unique(maintain_order=True))}
    used: dict[str, int] = {}
    for trace in drawn.data:
        path = path_of[trace.meta]
        trace.legendgroup = None
        trace.name, trace.showlegend = trace.meta, True
        trace.line.color = COLOURS[order[path] % len(COLOURS)]
        trace.line.dash = DASHES[used.setdefault(path, 0) % len(DASHES)]
        used[path] += 1
    return drawn


def _subflows(run: Run, labels: pl.DataFrame) -> pl.DataFrame:
    """Subflows with their path and a unique name to show."""
    rows = metrics.with_path(run.subflows).join(labels, on="flow", maintain_order="left")
    if rows["flow"].n_unique() > 1:
        rows = rows.with_columns(pl.format("{}: {}", "flow_name", "path").alias("name"))
    else:
        rows = rows.with_columns(pl.col("path").alias("name"))
    again = pl.format("{} ({})", "name", "subflow")
    return rows.with_columns(
        pl.when(pl.col("name").is_duplicated()).then(again).otherwise("name").alias("name")
    )


def tables(run: Run, named: pl.DataFrame) -> list[TableBlock]:
    """Return the table of subflows."""
    if run.subflows.is_empty():
        return []
    labels = named.select(pl.col("id").alias("flow"), pl.col("name").alias("flow_name"))
    rows = _subflows(run, labels).with_columns(
        (pl.col("measured_bytes") / pl.col("measured_bytes").sum().over("flow"))
        .fill_nan(None)
        .alias("share")
    )
    shown = rows.head(MOST_ROWS).select(
        pl.col("flow_name").alias("label"), "path", "backup", "opened_s", "closed_s", "delivered_bytes", "goodput_bps", "share",
        "sent_packets", "retransmitted_packets", "lost_packets", "timeouts", "rtt_min_s", "rtt_mean_s", "rtt_p95_s",
    )  # fmt: skip
    caption = "Every subflow; its path is the link of the data and, if another, that of the acknowledgements."
    if rows.height > MOST_ROWS:
        left = number(rows.height - MOST_ROWS)
        caption += f" The first {number(MOST_ROWS)}; {left} more are in subflows.parquet."
    return [TableBlock("Subflows", caption, shown, group=GROUP)]


def notes(run: Run) -> list[str]:
    """Say what the pictures leave out."""
    if run.subflows.is_empty():
        return []
    flows = run.subflows["flow"].n_unique()
    found = []
    if flows > MOST_STACKS:
        found.append(
            f"What each path delivers is shown for the first {MOST_STACKS} of {number(flows)} flows with several paths."
        )
    if run.subflows.height > MOST_LINES:
        found.append(
            f"Figures of subflows show the first {MOST_LINES} of {number(run.subflows.height)}."
        )
    return found
