"""The parts of a run's report about the paths of Multipath TCP."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gargalo import metrics
from gargalo.pictures import runs as pictures
from gargalo.pictures.model import MOST_LINES
from gargalo.quantities import number
from gargalo.reporting import charts
from gargalo.reporting.model import FigureBlock, TableBlock

if TYPE_CHECKING:
    from gargalo.results import Run

GROUP = "Paths"
MOST_STACKS = 4
MOST_ROWS = 5000


def figures(run: Run) -> list[FigureBlock]:
    """Return pictures of what the paths carry, and of the data that waits at the receiver."""
    if run.subflows.is_empty() or run.subflow_samples.is_empty():
        return []
    blocks = []
    names = run.names
    shares = metrics.path_shares(run.subflows)
    flows = shares["flow"].unique(maintain_order=True).to_list()
    for flow in flows[:MOST_STACKS]:
        chart = pictures.paths(run, chosen=[flow])
        if not chart.lines or not chart.lines[0].x.size:
            continue
        own = shares.filter(pl.col("flow") == flow)
        if len(flows) > 1:
            chart = replace(chart, title=f"{chart.title}: {names[flow]}")
        carried = ", ".join(
            f"{path} {share:.0%}"
            for path, share in own.select("path", "share").iter_rows()
            if share is not None
        )
        text = f"Data that reached the receiver on each path, copies included, in all: {carried}"
        blocks.append(charts.block(chart, text, GROUP))
    for chart, text in (
        (
            pictures.sampled(
                run, "out_of_order_bytes", "Out-of-order buffer", "waiting", "kB", 1e-3
            ),
            "Data that waits at the receiver for data before it; it takes room of the receive buffer",
        ),
        (
            pictures.subflow_sampled(
                run, "congestion_window_bytes", "Congestion window of each subflow",
                "congestion window", "kB", 1e-3,
            ),
            "What the sender may have in flight on it",
        ),
        (
            pictures.subflow_sampled(
                run, "srtt_s", "Smoothed round-trip time of each subflow", "smoothed RTT", "ms", 1e3
            ),
            "As the sender measures it; the queue of the path shows here",
        ),
    ):  # fmt: skip
        if chart.lines:
            blocks.append(charts.block(chart, text, GROUP))
    return blocks


def tables(run: Run, named: pl.DataFrame) -> list[TableBlock]:
    """Return the table of subflows."""
    if run.subflows.is_empty():
        return []
    labels = named.select(pl.col("id").alias("flow"), pl.col("name").alias("flow_name"))
    rows = pictures.subflow_names(run).join(labels, on="flow", maintain_order="left")
    rows = rows.with_columns(
        (pl.col("measured_bytes") / pl.col("measured_bytes").sum().over("flow"))
        .fill_nan(None)
        .alias("share")
    )
    shown = rows.head(MOST_ROWS).select(
        pl.col("flow_name").alias("flow"), "path", "backup", "opened_s", "closed_s", "delivered_bytes",
            "goodput_bps", "share",
        "sent_packets", "retransmitted_packets", "lost_packets", "timeouts", "rtt_min_s", "rtt_mean_s", "rtt_p95_s",
    )  # fmt: skip
    caption = "Every subflow; its path is the link of the data and, if another, that of the acknowledgements."
    if rows.height > MOST_ROWS:
        left = number(rows.height - MOST_ROWS)
        caption += f" The first {number(MOST_ROWS)}; {left} more are in subflows.parquet."
    return [TableBlock("Subflows", caption, shown, group=GROUP, algorithm="flow")]


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
