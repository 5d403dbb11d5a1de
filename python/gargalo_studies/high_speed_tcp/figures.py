"""Figures like the published ones, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import polars as pl
from gargalo.reporting import FigureBlock, TableBlock
from gargalo.studies.drawing import cell_tables, names_of

from gargalo_studies.high_speed_tcp.experiments import Levels
from gargalo_studies.high_speed_tcp.ratings import RULE, table
from gargalo_studies.high_speed_tcp.scenarios import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.studies import Context

METRICS = (
    "main_utilization",
    "link_utilization",
    "jain",
    "spread",
    "variation",
    "flow_goodput_bps",
    "convergence_s",
    "share.reno",
    "long_short",
)


def lines(
    context: Context,
    rows: pl.DataFrame,
    x: str,
    y: str,
    *,
    scale: float = 1.0,
    log: bool = False,
    labels: dict[str, str],
) -> go.Figure:
    """Draw a line per protocol with 95% intervals as error bars."""
    figure = go.Figure()
    for protocol in PROTOCOLS:
        mine = rows.filter(pl.col("protocol") == protocol)
        if y not in mine.columns or mine.height == 0:
            continue
        xs, ys, up, down = [], [], [], []
        for (value,), cell in sorted(mine.group_by(x), key=lambda kv: kv[0]):
            found = context.interval_of(y, cell[y].drop_nulls().to_list())
            if found.mean is None:
                continue
            xs.append(scale * float(str(value)))
            ys.append(found.mean)
            up.append(0.0 if found.high is None else found.high - found.mean)
            down.append(0.0 if found.low is None else found.mean - found.low)
        bars = {"type": "data", "array": up, "arrayminus": down, "thickness": 1, "width": 3}
        figure.add_trace(
            go.Scatter(
                x=xs, y=ys, mode="lines+markers", name=protocol, legendgroup=protocol, error_y=bars
            )
        )
    figure.update_layout(
        xaxis_title=labels["x"], yaxis_title=labels["y"], xaxis_type="log" if log else "linear"
    )
    figure.update_yaxes(rangemode="tozero")
    return figure


def bars(context: Context, rows: pl.DataFrame, y: str, title: str) -> go.Figure:
    """Draw a bar per protocol with its 95% interval."""
    figure = go.Figure()
    for protocol in PROTOCOLS:
        mine = rows.filter(pl.col("protocol") == protocol)
        if y not in mine.columns or mine.height == 0:
            continue
        found = context.interval_of(y, mine[y].drop_nulls().to_list())
        if found.mean is None:
            continue
        error = None
        if found.low is not None and found.high is not None:
            error = {
                "type": "data",
                "array": [found.high - found.mean],
                "arrayminus": [found.mean - found.low],
            }
        figure.add_trace(
            go.Bar(x=[protocol], y=[found.mean], name=protocol, legendgroup=protocol, error_y=error)
        )
    figure.update_layout(yaxis_title=title, showlegend=False)
    figure.update_yaxes(rangemode="tozero")
    return figure


SIDES = (" short", " long")
USED = "share of the capacity used by the main flows"


def figures(context: Context) -> list[FigureBlock]:
    """Return the figures of which there are runs."""
    found = [
        *scalability(context),
        *fairness(context),
        FigureBlock(
            "Convergence of a late flow",
            "Time the 20th flow needs to its share of what the background leaves.",
            bars(context, context.experiment("convergence"), "convergence_s", "time (s)"),
            "convergence",
        ),
        by_load(
            context, "same-fairness", "variation", "coefficient of variation",
            "Coefficient of variation of the sum", "20 flows, 1 s bins, by background load.", "stability",
        ),
        by_load(
            context, "parking-fairness", "main_utilization", USED,
            "Parking lot: use of a bottleneck",
            "Three bottlenecks of 1 Gbit/s, 20 flows, half with a round trip of 90 ms and half of "
            "180 ms.", "parking lot",
        ),
        by_load(
            context, "parking-fairness", "long_short", "ratio of goodputs",
            "Parking lot: long over short round trips",
            "Mean goodput of flows of 180 ms over that of flows of 90 ms; 1 is fair.", "parking lot",
        ),
    ]  # fmt: skip
    return [block for block in found if block.figure.data]


def by_load(
    context: Context, experiment: str, y: str, axis: str, title: str, caption: str, group: str
) -> FigureBlock:
    """Draw a metric of an experiment against the load of the background."""
    labels = {"x": "background load (%)", "y": axis}
    rows = context.experiment(experiment)
    drawn = lines(context, rows, "load", y, scale=100, labels=labels)
    return FigureBlock(title, caption, drawn, group)


def levels(rows: pl.DataFrame, factor: str) -> list[tuple[Any, pl.DataFrame]]:
    """Return the rows of each level of a factor, in order; none without rows."""
    if rows.height == 0:
        return []
    found = sorted(rows[factor].unique().to_list())
    return [(level, rows.filter(pl.col(factor) == level)) for level in found]


def scalability(context: Context) -> list[FigureBlock]:
    """Draw the use of the link against connections, capacity and delay."""
    rows = context.experiment("connections")
    labels = {"x": "connections", "y": USED}
    found = [
        FigureBlock(
            f"Utilisation against connections, {100 * load:g}% background",
            f"1 Gbit/s, 200 ms, 2500 packets of buffer: {100 - 100 * load:g}% is all there is.",
            lines(context, mine, "connections", "main_utilization", log=True, labels=labels),
            "scalability",
        )
        for load, mine in levels(rows, "load")
    ]
    labels = {"x": "capacity (Mbit/s)", "y": USED}
    for load, mine in levels(context.experiment("capacity"), "load"):
        drawn = lines(context, mine, "mbps", "main_utilization", log=True, labels=labels)
        title = f"Utilisation against capacity, {100 * load:g}% background"
        caption = "20 connections, 200 ms, 2500 packets of buffer."
        found.append(FigureBlock(title, caption, drawn, "scalability"))
    rows = context.experiment("contrast", buffer="2500 packets")
    for n, mine in levels(rows.filter(pl.col("connections") > 20), "connections"):
        drawn = lines(context, mine, "mbps", "main_utilization", log=True, labels=labels)
        title = f"Utilisation against capacity, {n} connections"
        caption = "200 ms, 2500 packets of buffer, 20% background."
        found.append(FigureBlock(title, caption, drawn, "scalability"))
    rows = context.experiment("delay")
    labels = {"x": "one-way delay (ms)", "y": USED}
    for load, mine in levels(rows, "load"):
        drawn = lines(context, mine, "delay_s", "main_utilization", scale=1e3, labels=labels)
        title = f"Utilisation against propagation delay, {100 * load:g}% background"
        found.append(FigureBlock(title, "20 connections, 1 Gbit/s.", drawn, "scalability"))
    return found


def fairness(context: Context) -> list[FigureBlock]:
    """Draw what reno keeps beside others, and Jain's index."""
    labels = {"x": "flows of the other protocol", "y": "share of the capacity"}
    return [
        *(
            FigureBlock(
                f"Reno's share beside other flows, {where}, {100 * load:g}% background",
                f"20 reno flows and others, 1 Gbit/s, {rtt}.",
                lines(context, rows, "others", "share.reno", labels=labels),
                "compatibility",
            )
            for name, where, rtt in (
                ("compatibility", "dumbbell", "200 ms"),
                ("parking-compatibility", "parking lot", "half at 90 ms and half at 180 ms"),
            )
            for load, rows in levels(context.experiment(name), "load")
        ),
        *(
            by_load(context, name, "jain", "Jain's index", title, "20 flows, 1 Gbit/s.", "fairness")
            for name, title in (
                ("rtt-fairness", "Jain's index by load, access links of 10 to 105 ms"),
                ("same-fairness", "Jain's index by load, equal flows"),
                ("start-fairness", "Jain's index by load, flows that start 25 s apart"),
            )
        ),
    ]


def published() -> pl.DataFrame:
    """Return the published figures of RTT fairness (dumbbell, 20 flows), one run each in ns-2."""
    rows = {
        "bic": ((26.98, 31.2, 0.911), (14.55, 50.0, 0.800), (6.07, 53.8, 0.776)),
        "cubic": ((27.26, 33.3, 0.900), (13.82, 42.2, 0.849), (4.34, 44.3, 0.836)),
        "fast": ((28.22, 30.0, 0.917), (16.27, 39.1, 0.867), (10.10, 45.8, 0.827)),
        "hstcp": ((29.55, 30.1, 0.917), (16.72, 43.8, 0.839), (5.06, 44.8, 0.833)),
        "htcp": ((27.71, 29.1, 0.922), (17.52, 29.4, 0.921), (8.33, 27.8, 0.928)),
        "libra": ((6.39, 16.1, 0.975), (6.37, 15.9, 0.975), (1.97, 22.0, 0.954)),
        "scalable": ((28.25, 31.0, 0.912), (14.41, 45.5, 0.828), (4.65, 49.0, 0.806)),
    }
    return pl.DataFrame(
        [
            {
                "protocol": protocol,
                "load": load,
                "published_goodput_bps": 1e6 * mbps,
                "published_spread": spread / 100,
                "published_jain": jain,
            }
            for protocol, cells in rows.items()
            for load, (mbps, spread, jain) in zip((0.2, 0.5, 0.8), cells, strict=True)
        ]
    )


def agreement(beside: pl.DataFrame) -> pl.DataFrame:
    """Return how the published figures of RTT fairness and ours agree, a row for each load and quantity.

    Correlations are over the protocols: Pearson's of the values, and Spearman's of their ranks, which do not rest on
    one that is far from the others, as Libra is.
    """
    found = []
    others = pl.col("protocol") != "libra"
    for load in sorted(beside["load"].unique()):
        rows = beside.filter(pl.col("load") == load)
        for name, ours in (
            ("goodput of a flow", "flow_goodput_bps"),
            ("coefficient of variation", "spread"),
            ("Jain's index", "jain"),
        ):
            theirs = pl.col(f"published_{ours.removeprefix('flow_')}")
            of_both = rows.select(
                pl.corr(theirs, pl.col(ours)).alias("correlation"),
                pl.corr(theirs, pl.col(ours), method="spearman").alias("rank correlation"),
                pl.corr(theirs.filter(others), pl.col(ours).filter(others)).alias("without Libra"),
                (pl.col(ours) / theirs).median().alias("median of here over published"),
                (pl.col(ours) / theirs).min().alias("least"),
                (pl.col(ours) / theirs).max().alias("most"),
            )
            found.append({"load": load, "quantity": name, **of_both.row(0, named=True)})
    return pl.DataFrame(found)


def together(context: Context, experiment: str, groups: Sequence[str]) -> pl.DataFrame:
    """Return the goodput of a flow of every protocol when all share a link, in Mbit/s, one row a cell and protocol.

    Args:
        context: With all runs.
        experiment: Whose runs.
        groups: What follows the protocol in the name of the metric: a column each.

    """
    rows = context.experiment(experiment)
    cells = [c for c in ("load", "libra") if c in rows.columns and rows[c].null_count() == 0]
    found = []
    for _, cell in rows.group_by(cells, maintain_order=True):
        for protocol in PROTOCOLS:
            names = {g: f"goodput.{protocol}{g}" for g in groups}
            means = {g: cell[n].mean() for g, n in names.items() if n in cell.columns}
            if any(m is not None for m in means.values()):
                row: dict[str, str | float | bool] = {
                    "protocol": protocol,
                    **{c: cell[c][0] for c in cells},
                }
                for g, m in means.items():
                    if isinstance(m, float):
                        row[f"{g.strip()} round trip, Mbit/s" if g else "Mbit/s"] = m / 1e6
                found.append(row)
    return pl.DataFrame(found)


LONG_S = 300.0
"""Runs that are shorter tell nothing of shares: Libra and Reno grow by 0.07 and 1 segments a round trip."""
LABELS = ("protocol", "connections", "mbps", "delay_s", "load", "buffer", "others", "libra")


def tables(context: Context) -> list[TableBlock]:
    """Return the ratings and the published figures beside ours, of runs that are long enough, and every cell."""
    cells = cell_tables(context, names_of(context), LABELS, METRICS)
    if Levels.of(context.profile).fairness_duration_s < LONG_S:
        return cells
    found = [
        TableBlock(f"Ratings, {name}", RULE, table(context, name), group="ratings")
        for name in ("dumbbell", "parking lot")
    ]
    rows = context.experiment("rtt-fairness")
    if rows.height:
        ours = rows.group_by("protocol", "load").agg(
            pl.col("flow_goodput_bps").mean(), pl.col("spread").mean(), pl.col("jain").mean()
        )
        beside = (
            published().join(ours, on=["protocol", "load"], how="left").sort("protocol", "load")
        )
        found += [
            TableBlock(
                "RTT fairness: published and here",
                "Published figures are of one run each, in ns-2.29 with the code of 2008.",
                beside,
                group="fairness",
            ),
            TableBlock(
                "RTT fairness: agreement with the published",
                'Over the seven protocols that are published; "without Libra" is the correlation of the other six.',
                agreement(beside),
                group="fairness",
            ),
        ]
    for name, title, caption, groups in (
        ("inter-fairness", "All protocols together, dumbbell", "with and without libra", ("",)),
        (
            "parking-inter",
            "All protocols together, parking lot",
            "one at 90 ms and one at 180 ms",
            SIDES,
        ),
    ):
        if context.experiment(name).height:
            caption = f"Two flows of every protocol at once, {caption}: goodput of a flow."
            found.append(
                TableBlock(title, caption, together(context, name, groups), group="fairness")
            )
    return [*found, *cells]
