"""Figures and tables: every cell's ratio, and all cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import polars as pl
from gargalo.reporting import TableBlock
from gargalo.studies.drawing import Figures, cell_tables, colour_of

from gargalo_studies.fidelity.cells import COMPARED, PLACE, SHARES, table
from gargalo_studies.fidelity.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from gargalo.reporting import FigureBlock
    from gargalo.studies import Context

    from gargalo_studies.fidelity.scenarios import Stack

DRAWN = ("reno", "cubic", "bbr")
METRICS = ("rate_bps", "completion_s", "share", "window", "retransmitted_packets", "timeouts")


def title(over: Stack, under: Stack) -> str:
    """Name a comparison."""
    return f"{over.name} against {under.name}"


def drawn(context: Context, over: Stack, under: Stack) -> go.Figure:
    """Draw the ratio of every cell of single flows; of the others the table has the difference of shares."""
    figure = go.Figure()
    rows = table(context, over, under)
    if rows.height == 0:
        return figure
    rows = rows.filter(~pl.col("experiment").is_in(SHARES)).with_columns(
        (pl.col("experiment") + ": " + pl.col("place")).alias("where")
    )
    for control in DRAWN:
        mine = rows.filter(pl.col("control") == control)
        if mine.height:
            figure.add_trace(
                go.Scatter(
                    x=mine["ratio or difference"].to_list(),
                    y=mine["where"].to_list(),
                    mode="markers",
                    name=control,
                    marker={"color": colour_of(control)},
                )
            )
    for x in (0.9, 0.95, 1.0, 1.05, 1.1):
        figure.add_vline(x=x, line={"width": 1, "dash": "solid" if x == 1 else "dot"})
    figure.update_layout(xaxis_title="ratio")
    # One below the other, the first above: the names of the cells are long.
    figure.update_yaxes(autorange="reversed", automargin=True, dtick=1, tickfont={"size": 11})
    return figure


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures of which there are runs."""
    found = Figures(restyle=False)
    caption = "Goodput, of short transfers the time to completion; means of ratios by seed."
    for over, under in COMPARED:
        found.add(title(over, under), caption, drawn(context, over, under), "cells")
    return found


def tables(context: Context) -> list[TableBlock]:
    """Return the tables of which there are runs."""
    found = []
    for over, under in COMPARED:
        rows = table(context, over, under)
        if rows.height:
            caption = (
                "Goodput in bit/s, completion in s and their ratio; of pairs the share of the first flow "
                "and its difference. With 95% intervals."
            )
            found.append(TableBlock(title(over, under), caption, rows, group="cells"))
    titles = ((e.name, e.title) for e in EXPERIMENTS)
    labels = ("stack", "control", *PLACE)
    return [*found, *cell_tables(context, titles, labels, METRICS, group="all runs")]
