"""How much earlier one protocol finishes than another, paired by seed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
from gargalo.reporting import Evidence
from gargalo.studies import by_repeat, positive, quotient

from gargalo_studies.nsquic.experiments import SHARED, STANDARD
from gargalo_studies.nsquic.transports import CUBIC, QUIC

if TYPE_CHECKING:
    from gargalo.metrics import Interval
    from gargalo.studies import Context


def value(label: str, number: float, *, unit: str = "", expected: str = "") -> Evidence:
    """Make a line of evidence of a number that has no interval."""
    return Evidence(label, None if math.isnan(number) else number, unit=unit, expected=expected)


def factor_cells(rows: pl.DataFrame, factor: str) -> pl.DataFrame:
    """Keep the rows in which all other factors have their standard values."""
    for other, value in STANDARD.items():
        if other != factor and other in rows.columns:
            rows = rows.filter(pl.col(other) == value)
    return rows


def levels(rows: pl.DataFrame, factor: str) -> list[float]:
    """Return the levels of a factor of which there are runs."""
    if factor not in rows.columns:
        return []
    found = factor_cells(rows, factor)[factor].drop_nulls().unique().sort().to_list()
    return [float(x) for x in found]


def ratio(
    context: Context,
    experiment: str,
    *,
    metric: str = "time_s",
    over: str = CUBIC,
    under: str = QUIC,
    **cell: object,
) -> Interval:
    """Return the mean over seeds of a metric of one protocol over that of another.

    The same seed has the same losses of the n-th packets, so that the ratio is steadier than its parts.
    """
    above, below = (
        by_repeat(context.experiment(experiment, protocol=p, **cell), metric) for p in (over, under)
    )
    return quotient(above, below)


def gain(
    context: Context,
    experiment: str,
    factor: str,
    level: float,
    *,
    over: str = CUBIC,
) -> Interval:
    """Return how many times as long TCP needs as QUIC, with one factor off its standard value."""
    cell = {**STANDARD, factor: level}
    return ratio(context, experiment, metric="time_s", over=over, under=QUIC, **cell)


def share(context: Context, kb: float) -> float:
    """Return QUIC's mean receive rate over that of TCP CUBIC beside it."""
    cell = {"pair": "quic + cubic", "kb": kb}
    mine = context.mean(f"receive_rate.{QUIC}", "fairness", **cell)
    other = context.mean(f"receive_rate.{CUBIC}", "fairness", **cell)
    return mine / other if other > 0 else math.nan


def beside(context: Context, step: str) -> Interval:
    """Return QUIC's receive rate over CUBIC's beside it after a step."""
    rows = context.experiment("steps", step=step, where=SHARED)
    columns = [f"receive_rate.{QUIC}", f"receive_rate.{CUBIC}"]
    if rows.height == 0 or not set(columns) <= set(rows.columns):
        return positive([])
    return positive([q / c for q, c in rows.select(columns).drop_nulls().iter_rows() if c > 0])
