"""Figures that several criteria have, and how to make them of runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gargalo.evaluation.model import YARDSTICK, Figure
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal, TypeAlias

    from gargalo.evaluation.model import Scores
    from gargalo.metrics.declared import Better
    from gargalo.metrics.intervals import Bounds
    from gargalo.sweeps.job import Label

    How: TypeAlias = Literal["mean", "max", "min"]


def mean_of(column: str, **labels: Label) -> Callable[[pl.DataFrame], float | None]:
    """Return the mean of a measured column over the cells with these labels."""
    return lambda rows: reduce(rows, column, "mean", labels)


def worst_of(column: str, **labels: Label) -> Callable[[pl.DataFrame], float | None]:
    """Return the largest value of a measured column over the cells with these labels."""
    return lambda rows: reduce(rows, column, "max", labels)


def least_of(column: str, **labels: Label) -> Callable[[pl.DataFrame], float | None]:
    """Return the smallest value of a measured column over the cells with these labels."""
    return lambda rows: reduce(rows, column, "min", labels)


def reduce(rows: pl.DataFrame, column: str, how: How, labels: dict[str, Label]) -> float | None:
    """Return one number of a column; None where nothing was measured."""
    if not {column, *labels} <= set(rows.columns):
        return None
    # In lists: there are few rows, and very many calls.
    own = [rows[name].to_list() for name in labels]
    wanted = tuple(labels.values())
    values = [v for v, *of in zip(rows[column].to_list(), *own, strict=True) if tuple(of) == wanted]
    known = [v for v in values if v is not None and not math.isnan(v)]
    if not known:
        return None
    if how == "mean":
        return float(pl.Series(known).mean())  # type: ignore[arg-type]
    return float(max(known) if how == "max" else min(known))


def by_cell(
    scores: Scores, algorithm: str, column: str, labels: Sequence[str]
) -> dict[tuple[Label, ...], float]:
    """Return the mean of a measured column over the repeats of each cell of an algorithm."""
    if column not in scores.frame.columns:
        return {}
    rows = scores.frame.filter(
        (pl.col("algorithm") == algorithm) & pl.col(column).is_not_null()
    ).sort([*labels, "repeat"])
    return {
        tuple(cell): float(own[column].mean())  # type: ignore[arg-type]
        for cell, own in rows.group_by(labels, maintain_order=True)
    }


STARVING = 0.2
"""A flow starves if it has less than a tenth of its fair share for more than this share of the time.

The text sets no bound. Reno and CUBIC are far below it wherever they meet each other; probing for the round-trip time
(BBR: 2% of the time), a timeout, or the start of a late flow do not reach it.
"""


def starvation(scores: Scores, whom: str) -> list[str]:
    """Whether flows starve for much of the time, and more than with the yardstick in its place."""
    starved, usual = scores.mean("starved"), scores.mean("starved", YARDSTICK)
    if starved is None or starved < max(STARVING, 2 * (usual or 0.0)):
        return []
    return [
        f"starves {whom} less than a tenth of the fair share {starved:.0%} of the time, "
        f"{usual or 0.0:.0%} with {YARDSTICK} in its place"
    ]


def figure(
    name: str,
    text: str,
    better: Better,
    of: Callable[[pl.DataFrame], float | None],
    *,
    bounds: Bounds,
    margin: float = 0.05,
    least: float = 0.0,
) -> Figure:
    """Make a figure; the unit is what the name ends in."""
    ends = {"_s": "s", "_bps": "bit/s", "_bytes": "byte"}
    unit = next((unit for end, unit in ends.items() if name.endswith(end)), "")
    return Figure(name, text, unit, better, of, bounds, margin, least)


UTILIZATION = figure(
    "utilization",
    "share of the bottleneck used",
    "more",
    mean_of("utilization"),
    bounds=SHARE,
    margin=0.02,
)
COST = figure(
    "utilization",
    "share of the bottleneck used",
    "more",
    mean_of("utilization"),
    bounds=SHARE,
    margin=0.1,
)
"""Where a criterion is about something else, use of the link is its cost, and differences matter from a tenth on."""
QUEUE_P50 = figure(
    "queue_p50_s",
    "queueing delay, median over time",
    "less",
    mean_of("queue_p50_s"),
    bounds=POSITIVE,
    least=0.001,
)
QUEUE_P95 = figure(
    "queue_p95_s", "queueing delay, 95th percentile over time", "less", mean_of("queue_p95_s"),
        bounds=POSITIVE, least=0.001
)  # fmt: skip
STANDING = figure(
    "standing_queue_s", "standing queue (least delay in a round trip, median)", "less",
    mean_of("standing_queue_s"), bounds=POSITIVE, least=0.001,
)  # fmt: skip
DROPS = figure(
    "drop_rate", "share of packets dropped", "less", mean_of("drop_rate"), bounds=SHARE, least=0.001
)
RETRANSMITTED = figure(
    "retransmitted", "share of packets retransmitted", "less", mean_of("retransmitted.own"), bounds=SHARE, least=0.001
)  # fmt: skip
LINK_USED = figure(
    "utilization", "share of the link used", "more", mean_of("utilization"), bounds=SHARE, margin=0.03
)  # fmt: skip
RECOVERY = figure(
    "recovery_s", "time until four fifths of the rate are back", "less", mean_of("recovery_s"),
        bounds=POSITIVE, margin=0.2, least=1
)  # fmt: skip
