"""Figures: goodput against loss, rate and trace as the work has them; worlds and stacks side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import polars as pl
from gargalo.reporting import TableBlock
from gargalo.studies.drawing import Figures, bar, cell_tables, colour_of, known, line

from gargalo_studies.userspace_bbr import experiments as ex
from gargalo_studies.userspace_bbr import published
from gargalo_studies.userspace_bbr.cells import goodput, in_lab, levels, overall, work, world
from gargalo_studies.userspace_bbr.fidelity import table
from gargalo_studies.userspace_bbr.future_work import shares_of_pairs
from gargalo_studies.userspace_bbr.scenarios import KERNEL, LAB, OURS, SENDERS, WITHOUT_SACK, Sender

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.reporting import FigureBlock
    from gargalo.studies import Context

NO_LOSS = 2e-5
"""Where no loss stands on a logarithmic axis."""


def look(sender: Sender) -> dict[str, dict[str, str]]:
    """Return colour by congestion control, dash by stack and pacing, symbol by world."""
    dash = "dash" if sender.paced else "dot"
    if sender.stack != OURS:
        dash = "solid" if sender.stack == KERNEL else "longdash"
    if not sender.sack:
        dash = "dashdot"
    symbol = "circle" if sender.stack == KERNEL else "square" if sender.world == "lab" else "x"
    colour = colour_of(sender.congestion)
    return {"line": {"color": colour, "dash": dash}, "marker": {"color": colour, "symbol": symbol}}


def title_of(sender: Sender) -> str:
    """Name a sender and, if it is ours, its world."""
    return sender.name if sender.stack != OURS else f"{sender.name}, {sender.world}"


def drawn(context: Context, experiment: str, senders: Sequence[Sender]) -> go.Figure:
    """Draw goodput against what the experiment varies."""
    figure = go.Figure()
    found_levels = levels(context, experiment)
    factor = {"loss": "loss", "rate": "mbps", "traces": "trace"}[experiment]
    for sender in senders:
        found = [goodput(context, experiment, sender, **{factor: x}) for x in found_levels]
        places, found = known(found_levels, found)
        if not places:
            continue
        xs = [NO_LOSS if factor == "loss" and x == 0 else x for x in places]
        style = look(sender)
        if factor == "trace":
            colour = {"color": style["line"]["color"]}
            pattern = {"solid": "", "longdash": "-", "dash": "/", "dot": ".", "dashdot": "x"}[
                style["line"]["dash"]
            ]
            marker = {**colour, "pattern": {"shape": pattern}}
            figure.add_trace(bar(xs, found, title_of(sender), 1e-6, marker=marker))
        else:
            figure.add_trace(line(xs, found, title_of(sender), 1e-6, **style))
    figure.update_layout(yaxis_title="goodput (Mbit/s)", barmode="group")
    figure.update_yaxes(rangemode="tozero")
    if factor == "loss":
        ticks = [NO_LOSS, *ex.LOSSES[1:]]
        figure.update_xaxes(
            type="log",
            title="packets lost",
            tickvals=ticks,
            ticktext=["none", *(f"{100 * x:g}%" for x in ticks[1:])],
        )
    elif factor == "mbps":
        figure.update_xaxes(title="rate of the link (Mbit/s)")
    return figure


def side_by_side(context: Context, experiment: str) -> go.Figure:
    """Draw the published means beside ours."""
    figure = go.Figure()
    names = list(published.MEANS[experiment])
    titles = [published.TITLES[n] for n in names]
    ys = [published.MEANS[experiment][n] for n in names]
    figure.add_trace(go.Bar(x=titles, y=ys, name="published", marker={"color": "#999999"}))
    where = world(context)
    paced = {n: Sender(n, OURS, where, paced=True) for n in names}
    sets = (
        ("BBR unpaced on our stack, others the kernel's or linux-6", work(context), "#0072B2"),
        ("our stack, paced", paced, "#009E73"),
    )
    for name, senders, colour in sets:
        found = [overall(context, experiment, senders[n]) for n in names]
        if any(i.mean is not None for i in found):
            figure.add_trace(bar(titles, found, name, 1e-6, marker={"color": colour}))
    figure.update_layout(barmode="group", yaxis_title="mean goodput (Mbit/s)")
    return figure if len(figure.data) > 1 else go.Figure()


WHERE = {
    "loss": "12 Mbit/s, 50 ms each way.",
    "rate": "0.1% of the packets lost, 50 ms each way.",
    "traces": "50 ms each way, no added loss, a queue of 100 packets.",
}
TITLES = {
    "loss": "A: goodput against loss",
    "rate": "B: goodput against rate",
    "traces": "C: goodput on cellular traces",
}


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures of which there are runs."""
    found = Figures(restyle=False)
    add = found.add
    kernels = [s for pair in ex.TWINS for s in pair]
    for experiment, title in TITLES.items():
        caption = f"{WHERE[experiment]} Bytes over duration at the receiver, 95% intervals."
        for what, senders in (
            (
                "as published, and BBR without SACK",
                (*work(context).values(), *(s for s in WITHOUT_SACK if s.world == world(context))),
            ),
            ("the kernel and the profile linux-6", kernels if in_lab(context) else ()),
            ("our stack in the lab", LAB if in_lab(context) else ()),
            ("our stack in the simulator", [s for s in SENDERS if s.world == "sim"]),
        ):
            add(f"{title}: {what}", caption, drawn(context, experiment, senders), experiment)
        add(
            f"{title}: means",
            f"Over all levels. {WHERE[experiment]}",
            side_by_side(context, experiment),
            experiment,
        )
    add("The simulator against the lab", AGREEMENT, agreement(context), "fidelity")
    add("Beside CUBIC", COMPETITION, competition(context), "new")
    return found


AGREEMENT = (
    "Goodput in the simulator over that in the lab, for each place; paired by seed, 95% intervals."
)
COMPETITION = "Share of one flow beside one of CUBIC, by the droptail queue's limit; 12 Mbit/s, 50 ms each way."


def agreement(context: Context) -> go.Figure:
    """Draw the ratio of the worlds for each cell."""
    figure = go.Figure()
    rows = table(context)
    if rows.height == 0:
        return figure
    for name in rows["lab"].unique(maintain_order=True).to_list():
        mine = rows.filter(pl.col("lab") == name)
        mean = mine["ratio"].to_list()
        high = [0.0 if h is None else h - m for h, m in zip(mine["ratio_high"], mean, strict=True)]
        figure.add_trace(
            go.Scatter(
                x=mine["where"].to_list(),
                y=mean,
                mode="markers",
                name=name,
                error_y={"type": "data", "array": high, "thickness": 1, "width": 3},
            )
        )
    for y in (0.9, 1.0, 1.1):
        figure.add_hline(y=y, line={"width": 1, "dash": "solid" if y == 1 else "dot"})
    figure.update_layout(yaxis_title="simulator / lab")
    figure.update_xaxes(automargin=True)
    return figure


def competition(context: Context) -> go.Figure:
    """Draw shares against the limit of the queue."""
    figure = go.Figure()
    rows = shares_of_pairs(context)
    if rows.height == 0:
        return figure
    rows = rows.filter(pl.col("rival") == "cubic")
    for key, mine in rows.group_by("world", "sender", maintain_order=True):
        one = mine.sort("queue_packets")
        middle = one["share"]
        bars = {
            "type": "data",
            "array": (one["most"] - middle).to_list(),
            "arrayminus": (middle - one["least"]).to_list(),
            "thickness": 1,
        }
        figure.add_trace(
            go.Scatter(
                x=[n / ex.BDP for n in one["queue_packets"]],
                y=middle.to_list(),
                error_y=bars,
                mode="lines+markers",
                name=f"{key[1]}, {key[0]}",
            )
        )
    figure.add_hline(y=0.5, line={"width": 1, "dash": "dot"})
    figure.update_layout(
        yaxis_title="share", xaxis_title="limit of the queue (BDP)", xaxis_type="log"
    )
    return figure


LABELS = (
    "world",
    "sender",
    "mbps",
    "loss",
    "trace",
    "queue_packets",
    "mb",
    "rival",
    "first",
    "discipline",
)
METRICS = (
    "rate_bps", "share", "mos", "game_p95_s", "bitrate_bps", "rebuffering_s", "startup_s", "timeouts",
    "lost_packets", "retransmitted_packets", "dropped_packets",
)  # fmt: skip


def tables(context: Context) -> list[TableBlock]:
    """Return the tables of which there are runs."""
    found = []
    rows = table(context)
    if rows.height:
        caption = "Goodput of the same transfer in both worlds, and the ratio paired by seed."
        found.append(TableBlock("The simulator against the lab", caption, rows, group="fidelity"))
    for e in ex.EXPERIMENTS:
        rows = context.experiment(e.name)
        late = "late_p99_s" in rows.columns and rows["late_p99_s"].null_count() < rows.height
        worst = [pl.col("late_p99_s").max()] if late else []
        titles = [(e.name, e.title)]
        found += cell_tables(context, titles, LABELS, METRICS, *worst, interval="rate_bps")
    return found
