"""Figures: goodput over loss, E2 as bars, bytes by path, the out-of-order buffer over time; tables of all cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import polars as pl
from gargalo.reporting import TableBlock
from gargalo.studies.drawing import Figures, bar, cell_tables, colour_of, distinct, line

from gargalo_studies.mptcp_schedulers import experiments as ex
from gargalo_studies.mptcp_schedulers import scenarios as sc
from gargalo_studies.mptcp_schedulers.cells import (
    goodput,
    known_places,
    mean_of,
    name_of,
    place_text,
    rates,
)
from gargalo_studies.mptcp_schedulers.measure import PATHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gargalo.metrics import Interval
    from gargalo.reporting import FigureBlock
    from gargalo.studies import Context
    from gargalo.sweeps import Labels

    from gargalo_studies.mptcp_schedulers.cells import Cell

NAMES = {short: name for name, short in sc.SHORT.items()}
"""Schedulers by what figures call them."""
GOODPUT = "goodput (Mbit/s)"


def colours_of(names: Iterable[str]) -> list[str]:
    """Return the colours of what figures name after a scheduler or a congestion control."""
    return distinct(NAMES.get(name.split(",")[0], name) for name in names)


def over_loss(context: Context, cells: dict[str, dict[str, str]]) -> go.Figure:
    """Draw E1's goodput against loss, a line for each sender."""
    figure = go.Figure()
    percent = [100 * x for x in ex.LOSSES]
    for (name, cell), colour in zip(cells.items(), colours_of(cells), strict=True):
        found = [goodput(context, "congested", loss=x, **cell) for x in ex.LOSSES]
        if any(i.mean is not None for i in found):
            figure.add_trace(line(percent, found, name, 1e-6, line={"color": colour}))
    figure.update_layout(xaxis_title="packets lost on each path (%)", yaxis_title=GOODPUT)
    return figure


def schedulers_over_loss(context: Context, congestion: str) -> go.Figure:
    """Draw E1's goodput against loss, a line a scheduler."""
    cells = {sc.SHORT[s]: {"congestion": congestion, "scheduler": s} for s in sc.SCHEDULERS}
    return over_loss(context, cells).update_yaxes(rangemode="tozero")


def controls_over_loss(context: Context) -> go.Figure:
    """Draw E1's goodput with the kernel's scheduler, a line a congestion control."""
    cells = {sc.TITLES[c]: {"congestion": c, "scheduler": sc.LL} for c in sc.COUPLED}
    return over_loss(context, cells).update_yaxes(type="log")


def bars(xs: Sequence[str], series: dict[str, list[Interval]]) -> go.Figure:
    """Draw groups of bars with intervals."""
    figure = go.Figure()
    for (name, found), colour in zip(series.items(), colours_of(series), strict=True):
        if any(i.mean is not None for i in found):
            figure.add_trace(bar(xs, found, name, 1e-6, marker={"color": colour}))
    figure.update_layout(barmode="group", yaxis_title=GOODPUT)
    return figure


def by_exp(context: Context, congestion: str) -> go.Figure:
    """Draw E2: eight groups, a bar a scheduler and one for single mesh."""
    series = {
        sc.SHORT[s]: [goodput(context, "mixed", exp=n, congestion=congestion, scheduler=s) for n in sc.EXPS]
        for s in sc.SCHEDULERS
    }  # fmt: skip
    series["LL, single mesh"] = [goodput(context, "mesh", exp=n, congestion=congestion) for n in sc.EXPS]  # fmt: skip
    return bars([f"Exp{n}" for n in sc.EXPS], series)


def by_scheduler(context: Context, congestion: str, mesh: str) -> go.Figure:
    """Draw all schedulers at a few places."""
    names = (*sc.SCHEDULERS, *sc.OTHERS)
    series: dict[str, list[Interval]] = {}
    for s in names:
        cell = {"congestion": congestion, "scheduler": s, "mesh": mesh}
        series[s] = []
        for place in ex.FEW:
            own = "schedulers"
            if mesh == sc.FULL and s in sc.SCHEDULERS:
                own = "mixed" if "exp" in place else "congested"
            series[s].append(goodput(context, own, **place, **cell))
    return bars([place_text(p) for p in ex.FEW], series)


def boxes(context: Context, series: dict[str, list[Cell]]) -> go.Figure:
    """Draw the spread of goodputs over the runs of each sender's cells."""
    figure = go.Figure()
    for (name, cells), colour in zip(series.items(), colours_of(series), strict=True):
        runs = [1e-6 * x for cell in cells for x in rates(context, cell).values()]
        if runs:
            figure.add_trace(go.Box(y=runs, name=name, marker={"color": colour}, boxpoints=False))
    figure.update_layout(yaxis_title=GOODPUT, showlegend=False)
    return figure.update_yaxes(rangemode="tozero")


def boxes_by_scheduler(context: Context, name: str, places: Sequence[Labels]) -> go.Figure:
    """Draw the spread of each scheduler over places and coupled controls."""
    series: dict[str, list[Cell]] = {}
    for s in sc.SCHEDULERS:
        senders = [{"congestion": c, "scheduler": s} for c in sc.COUPLED]
        series[sc.SHORT[s]] = [(name, {**p, **x}) for p in places for x in senders]
    return boxes(context, series)


def boxes_by_mesh(context: Context) -> go.Figure:
    """Draw the spread of full and of single mesh over E2, for each coupled control."""
    series: dict[str, list[Cell]] = {}
    for c in sc.COUPLED:
        cells: list[Labels] = [{"exp": n, "congestion": c} for n in sc.EXPS]
        series[f"{sc.TITLES[c]}, full"] = [("mixed", {**x, "scheduler": sc.LL}) for x in cells]
        series[f"{sc.TITLES[c]}, single"] = [("mesh", x) for x in cells]
    return boxes(context, series)


def by_path(context: Context, experiment: str, places: Sequence[Labels], scheduler: str) -> go.Figure:  # fmt: skip
    """Draw which path brought which part of the goodput, stacked, for each place and congestion control."""
    figure = go.Figure()
    labels = [(p, c) for p in places for c in sc.COUPLED]
    xs = [[place_text(p) for p, _ in labels], [sc.TITLES[c] for _, c in labels]]
    for i in range(PATHS):
        ys = []
        for place, c in labels:
            cell = {**place, "congestion": c, "scheduler": scheduler}
            share = mean_of(context, f"share.path{i}", experiment, **cell)
            rate = mean_of(context, "rate_bps", experiment, **cell)
            ys.append(None if share is None or rate is None else 1e-6 * share * rate)
        if any(y is not None for y in ys):
            figure.add_trace(
                go.Bar(x=xs, y=ys, name=f"path{i}", marker={"color": colour_of(f"path{i}")})
            )
    figure.update_layout(barmode="stack", yaxis_title=GOODPUT)
    return figure


def course(context: Context, metric: str, place: Labels, *, scale: float = 1.0) -> go.Figure:  # fmt: skip
    """Draw a metric second by second for the runs whose course is kept."""
    figure = go.Figure()
    rows = context.experiment("traces", **place)
    pattern = re.compile(rf"{re.escape(metric)}\.(\d\d)$")
    seconds = sorted(int(m[1]) for c in rows.columns if (m := pattern.match(c)))
    shown = rows.rows(named=True)
    for row, colour in zip(shown, colours_of(name_of(row) for row in shown), strict=True):
        ys = [row[f"{metric}.{n:02}"] for n in seconds]
        if any(y is not None for y in ys):
            mesh = "" if row["mesh"] == sc.FULL else ", single mesh"
            figure.add_trace(
                go.Scatter(
                    x=seconds,
                    y=[None if y is None else scale * y for y in ys],
                    name=f"{name_of(row)}{mesh}",
                    mode="lines",
                    line={"color": colour},
                )
            )
    figure.update_layout(xaxis_title="time (s)")
    figure.update_yaxes(rangemode="tozero")
    return figure


def simple(context: Context, experiment: str, column: str, **cell: Any) -> go.Figure:
    """Draw an experiment's goodput at its places, a bar for each value of a label."""
    rows = context.experiment(experiment, **cell)
    if rows.height == 0 or column not in rows.columns:
        return go.Figure()
    places = known_places(rows)
    values = rows[column].drop_nulls().unique(maintain_order=True).to_list()
    series = {
        str(v): [goodput(context, experiment, **p, **cell, **{column: v}) for p in places]
        for v in values
    }
    return bars([place_text(p) for p in places], series)


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures of which there are runs."""
    found = Figures(restyle=False)
    add = found.add
    mean = "Means with 95% intervals."
    add("E1: goodput over loss, LL", f"{mean} A logarithmic axis.", controls_over_loss(context), "E1")  # fmt: skip
    for c in sc.COUPLED:
        add(f"E1: goodput over loss, {sc.TITLES[c]}", mean, schedulers_over_loss(context, c), "E1")
        add(f"E2: {sc.TITLES[c]}", mean, by_exp(context, c), "E2")
    add(
        "E1: goodput by path, LL",
        "Which path brought how much.",
        by_path(context, "congested", [{"loss": x} for x in (0.0, 0.01, 0.04, 0.12)], sc.LL),
        "paths",
    )
    add(
        "E2: goodput by path, LL, full mesh",
        "Which path brought how much.",
        by_path(context, "mixed", [{"exp": n} for n in sc.EXPS], sc.LL),
        "paths",
    )
    add(
        "E2: goodput by path, LL, single mesh",
        "Which path brought how much.",
        by_path(context, "mesh", [{"exp": n} for n in sc.EXPS], sc.LL),
        "paths",
    )
    spread = (
        "Boxes from the first to the third quartile of all runs, with the median; whiskers to one "
        "and a half times that."
    )
    add(
        "E1: spread by scheduler",
        spread,
        boxes_by_scheduler(context, "congested", ex.ALL_LOSSES),
        "spread",
    )
    add("E2: spread by scheduler", spread, boxes_by_scheduler(context, "mixed", ex.ALL_EXPS), "spread")  # fmt: skip
    add("E2: spread by path manager, LL", spread, boxes_by_mesh(context), "spread")
    add(
        "Today's kernel in the lab beside this stack: CUBIC, single mesh",
        mean,
        simple(context, "kernel", "sender"),
        "new",
    )
    for place in (*ex.ALL_LOSSES[:2], ex.ALL_EXPS[3]):
        where = place_text(place)
        waiting = course(context, "out_of_order", place, scale=1e-6)
        waiting.update_layout(yaxis_title="out of order at the receiver (MB)")
        add(
            f"{where}: the out-of-order buffer over time",
            f"Means of a second; the window is {sc.WINDOW / 1e6:.2f} MB.",
            waiting,
            "traces",
        )
        rate = course(context, "rate", place, scale=1e-6)
        rate.update_layout(yaxis_title=GOODPUT)
        add(f"{where}: goodput over time", "Of each second.", rate, "traces")
    for c, mesh in ((sc.LIA, sc.FULL), ("cubic", sc.SINGLE)):
        add(f"Schedulers: {sc.TITLES[c]}, {mesh}", mean, by_scheduler(context, c, mesh), "new")
    for mesh in (sc.FULL, sc.SINGLE):
        add(f"Uncoupled, LL, {mesh}", mean, simple(context, "uncoupled", "congestion", mesh=mesh), "new")  # fmt: skip
    for kind in ("tcp", "udp"):
        add(
            f"Beside {kind.upper()} on each path: LIA, single mesh",
            mean,
            simple(context, "background", "scheduler", background=kind, congestion=sc.LIA),
            "new",
        )
    for c in ex.QUIC_CONTROLS:
        add(
            f"MPQUIC and MPTCP, {c}", mean, simple(context, "quic", "protocol", congestion=c), "new"
        )
    return found


LABELS = ("loss", "exp", "sender", "background", "protocol", "backup", "congestion", "scheduler", "mesh")  # fmt: skip
METRICS = (
    "rate_bps", "completed", "timeouts", "retransmitted_share", "out_of_order_bytes", "opportunistic_packets",
    "reinjected_packets", "duplicate_bytes", "others_bps", "gap_s", "before_bps", "alone_bps", "after_bps",
    *(f"share.path{i}" for i in range(PATHS)), *(f"duplicate_acks.path{i}" for i in range(PATHS)),
        *(f"queue.path{i}" for i in range(PATHS)),
)  # fmt: skip


def with_interval(name: str, found: Interval) -> dict[str, float | None]:
    """Return the columns of a goodput in a table."""
    return {f"{name}_bps": found.mean, f"{name}_bps_low": found.low, f"{name}_bps_high": found.high}


def measured(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a table of the rows that have a goodput."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.filter(pl.any_horizontal(pl.col("^.*_bps$").is_not_null()))


def by_control(context: Context) -> pl.DataFrame:
    """Return the goodput of LL by place and path manager, for each coupled control."""
    rows: list[dict[str, Any]] = []
    for place in (*ex.losses(context.profile), *ex.ALL_EXPS):
        for mesh in (sc.FULL, sc.SINGLE):
            own = "mesh" if mesh == sc.SINGLE else "mixed" if "exp" in place else "congested"
            row: dict[str, Any] = {"place": place_text(place), "path manager": mesh}
            for c in sc.COUPLED:
                cell = {**place, "congestion": c, "scheduler": sc.LL, "mesh": mesh}
                row |= with_interval(sc.TITLES[c], goodput(context, own, **cell))
            rows.append(row)
    return measured(rows)


def kernels(context: Context) -> pl.DataFrame:
    """Return the goodput of today's kernel in the lab and of a reading's stack at the same places."""
    rows: list[dict[str, Any]] = []
    for place in ex.FEW:
        row: dict[str, Any] = {"place": place_text(place)}
        for sender in (ex.KERNEL, ex.OURS):
            row |= with_interval(sender, goodput(context, "kernel", sender=sender, **place))
        rows.append(row)
    return measured(rows)


def tables(context: Context) -> list[TableBlock]:
    """Return the tables of which there are runs."""
    numbers = [
        TableBlock(
            "Goodput by congestion control, LL",
            "Means over seeds, with 95% intervals.",
            by_control(context),
            group="numbers",
        ),
        TableBlock(
            "Today's kernel in the lab beside this stack",
            "CUBIC, one subflow a path; means over seeds, with 95% intervals.",
            kernels(context),
            group="numbers",
        ),
    ]
    titles = ((e.name, e.title) for e in ex.EXPERIMENTS)
    cells = cell_tables(context, titles, LABELS, METRICS, interval="rate_bps")
    return [*(block for block in numbers if block.frame.height), *cells]
