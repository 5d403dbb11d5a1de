"""The rating table: five properties for each topology, by a stated rule."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gargalo_studies.high_speed_tcp.claims import (
    compatibility,
    convergence_times,
    lot_scalability,
    scalability,
)
from gargalo_studies.high_speed_tcp.experiments import Levels
from gargalo_studies.high_speed_tcp.scenarios import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.studies import Context

RULE = (
    "Each property is scaled so that 0 is the worst protocol and 1 the best; from 0.75 on a protocol is very "
    "good, from 0.5 good, from 0.25 regular, below bad. Scalability: mean use of what the background leaves. "
    "Compatibility: reno's share beside 20 flows. Fairness: mean Jain's index with different round-trip "
    "times. Convergence: time of a late flow to its fair share, bad if it does not get there. "
    "Stability: coefficient of variation of the "
    "sum at the highest background load."
)
WORDS = ((0.75, "very good"), (0.5, "good"), (0.25, "regular"), (-math.inf, "bad"))


def rate(values: Mapping[str, float], *, more_is_better: bool) -> dict[str, str]:
    """Rate protocols by a metric; a dash where it is unknown, bad where it is infinite."""
    known = {k: v for k, v in values.items() if math.isfinite(v)}
    low, high = min(known.values(), default=0.0), max(known.values(), default=0.0)
    span = high - low
    rated = {}
    for name, value in values.items():
        if not math.isfinite(value):
            rated[name] = "-" if math.isnan(value) else "bad"
            continue
        score = 1.0 if span == 0 else (value - low) / span
        score = score if more_is_better else 1.0 - score
        if span == 0:
            score = 1.0
        rated[name] = next(word for bound, word in WORDS if score >= bound)
    return rated


def mean_over(context: Context, metric: str, experiment: str, protocol: str) -> float:
    """Return a metric's mean over all cells of a protocol, of the loads that all protocols have."""
    rows = context.experiment(experiment)
    if metric not in rows.columns or rows.height == 0:
        return math.nan
    by_load = rows.group_by("load").agg(pl.col("protocol").n_unique())
    most = by_load["protocol"].max()
    loads = by_load.filter(pl.col("protocol") == most)["load"].to_list()
    mine = rows.filter((pl.col("protocol") == protocol) & pl.col("load").is_in(loads))
    value = mine[metric].mean()
    return math.nan if value is None else float(str(value))


def properties(context: Context) -> dict[str, dict[str, dict[str, float]]]:
    """Return topology, property, protocol: value."""
    last = max(Levels.of(context.profile).stability_loads)
    shares = {**compatibility(context), "reno": math.nan}
    return {
        "dumbbell": {
            "scalability": scalability(context),
            "compatibility": shares,
            "fairness": {p: mean_over(context, "jain", "rtt-fairness", p) for p in PROTOCOLS},
            "convergence": convergence_times(
                context, Levels.of(context.profile).convergence_loads[0]
            ),
            "stability": {
                p: context.mean("variation", "same-fairness", protocol=p, load=last)
                for p in PROTOCOLS
            },
        },
        "parking lot": {
            "scalability": lot_scalability(context),
            "compatibility": {**compatibility(context, "parking-compatibility"), "reno": math.nan},
            "fairness": {p: mean_over(context, "jain", "parking-fairness", p) for p in PROTOCOLS},
            "stability": {
                p: mean_over(context, "variation", "parking-fairness", p) for p in PROTOCOLS
            },
        },
    }


MORE_IS_BETTER = {"scalability", "compatibility", "fairness"}


def table(context: Context, topology: str) -> pl.DataFrame:
    """Return the ratings of a topology, one row a protocol."""
    found = properties(context)[topology]
    columns: dict[str, list[str]] = {"protocol": list(PROTOCOLS)}
    for name, values in found.items():
        rated = rate(values, more_is_better=name in MORE_IS_BETTER)
        columns[name] = [rated[p] for p in PROTOCOLS]
    return pl.DataFrame(columns)
