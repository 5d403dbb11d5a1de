"""Figures: times and advantages by factor, both sets of defaults side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import polars as pl
from gargalo.studies import positive
from gargalo.studies.drawing import Figures, bar, colour_of, known, line

from gargalo_studies.nsquic import experiments as ex
from gargalo_studies.nsquic.gains import beside, factor_cells, gain, levels, ratio, share
from gargalo_studies.nsquic.published import SHARE_100_KB, TITLES, level_text
from gargalo_studies.nsquic.scenarios import MIXED, WIRELESS
from gargalo_studies.nsquic.transports import (
    CUBIC,
    QUIC,
    STEPS,
    TCPS,
    TLS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.metrics import Interval
    from gargalo.reporting import FigureBlock
    from gargalo.studies import Context

AXES: dict[str, tuple[str, float, bool]] = {
    "mbps": ("bandwidth (Mbit/s)", 1.0, True),
    "delay_s": ("one-way delay (ms)", 1e3, False),
    "loss": ("packet error rate", 1.0, True),
    "kb": ("transferred (kB)", 1.0, True),
}
"""Title, factor and whether the axis is logarithmic."""
NO_LOSS = 1e-5
"""Where no loss stands on a logarithmic axis."""
LINES = ((CUBIC, CUBIC, "solid"), ("cubic with TLS", TLS, "dot"))
"""Comparisons of QUIC with CUBIC: name, the TCP, dash."""


def place(factor: str, levels_: Sequence[float]) -> list[float]:
    """Return where levels stand on their axis."""
    scale = AXES[factor][1]
    return [NO_LOSS if factor == "loss" and x == 0 else scale * x for x in levels_]


def against(figure: go.Figure, factor: str, y: str, *, log_y: bool = False) -> go.Figure:
    """Title the axes of a figure against a factor."""
    title, _, log = AXES[factor]
    figure.update_layout(xaxis_title=title, yaxis_title=y, xaxis_type="log" if log else "linear")
    if factor == "loss":
        ticks = [NO_LOSS, 1e-4, 1e-3, 1e-2, 1e-1]
        figure.update_xaxes(tickvals=ticks, ticktext=["none", *(f"{x:g}" for x in ticks[1:])])
    if log_y:
        figure.update_yaxes(type="log")
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def times(rows: pl.DataFrame, factor: str, names: Sequence[str]) -> go.Figure:
    """Draw the transmission time of each protocol against a factor."""
    figure = go.Figure()
    rows = factor_cells(rows, factor)
    for p in names if rows.height else ():
        mine = rows.filter(pl.col("protocol") == p)
        xs = levels(mine, factor)
        if not xs:
            continue
        found = [positive(mine.filter(pl.col(factor) == x)["time_s"].to_list()) for x in xs]
        figure.add_trace(line(*known(place(factor, xs), found), p, legendgroup=p))
    wide = factor in ("kb", "loss", "mbps")
    return against(figure, factor, "transmission time (s)", log_y=wide)


def gains(context: Context, experiment: str, factor: str) -> go.Figure:
    """Draw the advantage of QUIC over CUBIC against a factor."""
    figure = go.Figure()
    for name, over, dash in LINES:
        xs = levels(context.experiment(experiment), factor)
        found = [gain(context, experiment, factor, x, over=over) for x in xs]
        if any(i.mean is not None for i in found):
            style = {"color": colour_of(name), "dash": dash}
            figure.add_trace(line(*known(place(factor, xs), found), name, line=style))
    if figure.data:
        figure.add_hline(y=1, line={"width": 1, "dash": "dot"})
    return against(figure, factor, "CUBIC's time over QUIC's")


def grouped(
    names: Sequence[str],
    xs: Sequence[str],
    of: Callable[[str, str], Interval],
    title: str,
) -> go.Figure:
    """Draw groups of bars, one bar for each name."""
    figure = go.Figure()
    for name in names:
        found = [of(name, x) for x in xs]
        if any(i.mean is not None for i in found):
            figure.add_trace(bar(xs, found, name, legendgroup=name))
    figure.update_layout(barmode="group", yaxis_title=title)
    figure.update_yaxes(rangemode="tozero")
    return figure


NETWORKS = {
    "simple": ("One flow", "10 Mbit/s, 50 ms, 1 MB unless a factor says otherwise."),
    "dumbbell": (
        "Two flows, the slower one",
        "Bottleneck of 10 Mbit/s and 50 ms, access links of 10 ms, 1 MB each unless a factor says otherwise.",
    ),
}


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures of which there are runs."""
    found = Figures()
    add = found.add
    add("Where the advantage comes from", STEPS_CAPTION, steps(context), "defaults", own=True)
    for network, (who, where) in NETWORKS.items():
        for factor, what in TITLES.items():
            title = f"{who}: QUIC's advantage against {what}"
            caption = f"{where} CUBIC's transmission time over QUIC's."
            add(title, caption, gains(context, network, factor), "defaults", own=True)
    for network, (who, where) in NETWORKS.items():
        for factor, what in TITLES.items():
            drawn = times(context.experiment(network), factor, (QUIC, *TCPS, TLS))
            add(f"{who}: time against {what}", where, drawn, f"{network} network")
    caption = (
        "Median, fastest and slowest flow; 10 Mbit/s and 50 ms shared by as many flows as nodes."
    )
    add("Many flows", caption, many(context), "many flows")
    add_fairness(context, add)
    add_new(context, add)
    drawn = times_by(context.experiment("tool-simple"), "kb", ex.TOOL)
    add("Tool paper: time against size", "20 Mbit/s, 30 ms.", drawn, "tool paper")
    drawn = times_by(context.experiment("tool-dumbbell"), "delay_s", ex.TOOL)
    caption = "Two flows, access and bottleneck of 10 Mbit/s, access delay 50 ms; the slower flow."
    add("Tool paper: time against the bottleneck's delay", caption, drawn, "tool paper")
    return found


def times_by(rows: pl.DataFrame, factor: str, names: Sequence[str]) -> go.Figure:
    """Draw times against a factor that alone is varied."""
    others = [c for c in ex.STANDARD if c != factor and c in rows.columns]
    return times(rows.drop(others), factor, names)


STEPS_CAPTION = (
    "CUBIC's transmission time over QUIC's for 1 MB, and beside each other QUIC's receive rate over CUBIC's for "
    "100 kB. Each step keeps the changes of those before it: "
    + "; ".join(s.name for s in STEPS)
    + "."
)


def steps(context: Context) -> go.Figure:
    """Draw the advantage after each change of the defaults."""
    figure = go.Figure()
    names = [s.name for s in STEPS]
    found = {w: [ratio(context, "steps", step=n, where=w) for n in names] for w in ex.CORNERS}
    found[f"{ex.SHARED}: rates"] = [beside(context, n) for n in names]
    looks = (
        ("#0072B2", "circle"),
        ("#D55E00", "square"),
        ("#009E73", "diamond"),
        ("#CC79A7", "triangle-up"),
    )
    for (where, intervals), (colour, symbol) in zip(found.items(), looks, strict=True):
        if any(i.mean is not None for i in intervals):
            figure.add_trace(
                go.Scatter(
                    x=[i.mean for i in intervals],
                    y=[s.short for s in STEPS],
                    mode="lines+markers",
                    name=where,
                    line={"color": colour, "dash": "dash" if ex.SHARED in where else "solid"},
                    marker={"color": colour, "symbol": symbol},
                )
            )
    if figure.data:
        figure.add_vline(x=1, line={"width": 1, "dash": "dot"})
    figure.update_layout(xaxis_title="QUIC's advantage", xaxis_type="log")
    figure.update_xaxes(tickvals=[1, 1.5, 2, 3, 5, 8])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def many(context: Context) -> go.Figure:
    """Draw the median time against the number of nodes, with bars to the fastest and the slowest flow."""
    figure = go.Figure()
    rows = context.experiment("nodes")
    for p in (QUIC, *TCPS, TLS):
        mine = rows.filter(pl.col("protocol") == p).sort("nodes") if rows.height else rows
        if mine.height == 0:
            continue
        middle = mine["median_s"]
        bars = {
            "type": "data",
            "array": (mine["time_s"] - middle).to_list(),
            "arrayminus": (middle - mine["fastest_s"]).to_list(),
            "thickness": 1,
            "width": 3,
        }
        figure.add_trace(
            go.Scatter(
                x=mine["nodes"].to_list(),
                y=middle.to_list(),
                error_y=bars,
                mode="lines+markers",
                name=p,
                legendgroup=p,
            )
        )
    figure.update_layout(xaxis_title="nodes per side", yaxis_title="transmission time (s)")
    figure.update_yaxes(rangemode="tozero")
    return figure


def sizes(context: Context) -> list[float]:
    """Return the sizes of the fairness experiment."""
    rows = context.experiment("fairness")
    return sorted(float(x) for x in rows["kb"].unique().to_list()) if rows.height else []


def add_fairness(context: Context, add: Callable[..., None]) -> None:
    """Add the figures of two flows beside each other."""
    by_text = {level_text("kb", kb): kb for kb in sizes(context)}

    def index(pair: str, size: str) -> Interval:
        return context.interval("jain", "fairness", pair=pair, kb=by_text[size])

    drawn = grouped(list(ex.PAIRS), list(by_text), index, "Jain's index")
    caption = "Two flows on the dumbbell, mean receive rates; 1 is even, 0.5 is all to one."
    add("Fairness by size", caption, drawn, "fairness")

    def one(_: str, size: str) -> Interval:
        found = share(context, by_text[size])
        return positive([found] if found == found else [])

    drawn = grouped(["quic + cubic"], list(by_text), one, "QUIC's receive rate over CUBIC's")
    if drawn.data:
        drawn.add_hline(y=1, line={"width": 1, "dash": "dot"})
    drawn.update_yaxes(type="log", rangemode="normal")
    caption = f"One QUIC beside one TCP CUBIC; 1 is fair. Published: {SHARE_100_KB} at 100 kB."
    add("QUIC beside TCP", caption, drawn, "fairness", own=True)


def add_new(context: Context, add: Callable[..., None]) -> None:
    """Add the figures of what the work left to others."""
    rows = context.experiment("reordering")
    figure = go.Figure()
    for p in ex.DETECTION:
        mine = rows.filter(pl.col("protocol") == p) if rows.height else rows
        xs = mine["reordered"].unique().sort().to_list() if mine.height else []
        found = [positive(mine.filter(pl.col("reordered") == x)["time_s"].to_list()) for x in xs]
        if xs:
            figure.add_trace(line(*known([100 * x for x in xs], found), p, legendgroup=p))
    figure.update_layout(xaxis_title="late packets (%)", yaxis_title="transmission time (s)")
    figure.update_yaxes(rangemode="tozero")
    caption = f"10 MB over 10 Mbit/s and 50 ms; late packets arrive {1e3 * ex.LATE_S:g} ms late."
    add("Reordering", caption, figure, "reordering")

    losses = context.experiment("objects")
    xs = sorted(losses["loss"].unique().to_list()) if losses.height else []
    by_text = {f"{100 * x:g}% lost": x for x in xs}
    for metric, title in (
        ("object_mean_s", "mean time to an object (s)"),
        ("object_p95_s", "95% of the objects are there (s)"),
        ("page_s", "the whole page is there (s)"),
    ):

        def of(protocol: str, loss: str, metric: str = metric) -> Interval:
            return context.interval(metric, "objects", protocol=protocol, loss=by_text[loss])

        drawn = grouped(list(ex.PAGES), list(by_text), of, title)
        n, low, high = len(ex.OBJECT_KB), min(ex.OBJECT_KB), max(ex.OBJECT_KB)
        caption = (
            f"{n} objects of {low} to {high} kB over 10 Mbit/s and 50 ms, from the first packet on."
        )
        add(f"Small objects: {title}", caption, drawn, "small objects")

    rows = context.experiment("zero-rtt")
    for delay_s in sorted(rows["delay_s"].unique().to_list()) if rows.height else []:
        drawn = times_by(rows.filter(pl.col("delay_s") == delay_s), "kb", list(ex.HANDSHAKES))
        caption = "The second connection between two hosts, 10 Mbit/s; the first one left a ticket."
        add(f"0-RTT, one-way delay {1e3 * delay_s:g} ms", caption, drawn, "0-RTT")

    for where in (WIRELESS, MIXED):
        rows = context.experiment("wireless", where=where)
        drawn = times_by(rows, "loss", (QUIC, CUBIC, "westwood", TLS))
        caption = "1 MB, 50 ms one way; packets of the wireless link are lost in bursts of four."
        add(f"Wireless networks: {where}", caption, drawn, "wireless")
