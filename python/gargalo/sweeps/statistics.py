"""Means and their intervals, for all cells of a sweep at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo.metrics.intervals import POSITIVE, SHARE, bounds_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def summarise(
    frame: pl.DataFrame, by: Sequence[str], metrics: Sequence[str], level: float = 0.95
) -> pl.DataFrame:
    """Return a row per cell and figure with `n`, `mean`, `sd`, `low`, `high`, `method`.

    The interval is that of `metrics.mean_interval` with the bounds that the figure's name tells.
    """
    from scipy.stats import t

    order = {m: i for i, m in enumerate(metrics)}
    long = frame.with_columns(pl.col(m).cast(pl.Float64) for m in metrics).unpivot(
        on=list(metrics), index=list(by), variable_name="metric", value_name="value"
    )
    cells = (
        # Without a single value the column has no type of its own.
        long.with_columns(pl.col("value").cast(pl.Float64))
        .drop_nulls("value")
        .group_by([*by, "metric"], maintain_order=True)
        .agg(
            n=pl.len().cast(pl.Int64),
            mean=pl.col("value").mean(),
            sd=pl.col("value").std(),
            _min=pl.col("value").min(),
            _max=pl.col("value").max(),
        )
    )
    counts = [int(n) for n in cells["n"].unique() if n > 1]
    quantiles = pl.DataFrame(
        {"n": counts, "_t": [float(t.ppf(0.5 + level / 2, n - 1)) for n in counts]},
        schema={"n": pl.Int64, "_t": pl.Float64},
    )
    kinds = {m: bounds_of(m) for m in metrics}
    positive = pl.col("metric").is_in([m for m in metrics if kinds[m] == POSITIVE])
    share = pl.col("metric").is_in([m for m in metrics if kinds[m] == SHARE])
    mean = pl.col("mean")
    half = pl.col("_t") * pl.col("sd") / pl.col("n").sqrt()
    factor = pl.min_horizontal(half / mean, 700.0).exp()
    odds = (mean / (1 - mean)).log()
    reach = half / (mean * (1 - mean))
    spread = pl.col("_min") < pl.col("_max")
    logs = spread & positive & (pl.col("_min") >= 0)
    logits = spread & share & (pl.col("_min") >= 0) & (pl.col("_max") <= 1)

    def end(log: pl.Expr, logit: pl.Expr, plain: pl.Expr, none: pl.Expr) -> pl.Expr:
        chosen = pl.when(logs).then(log).when(logits).then(logit).when(spread).then(plain)
        return chosen.otherwise(none)

    nothing = pl.lit(None, pl.Float64)
    methods = [pl.lit(name) for name in ("log", "logit", "student", "none")]

    cells_in_order = frame.select(by).unique(maintain_order=True).rows() if by else [()]
    rank = {cell: i for i, cell in enumerate(cells_in_order)}
    result = (
        cells.join(quantiles, on="n", how="left", maintain_order="left")
        .with_columns(
            low=end(mean / factor, 1 / (1 + (reach - odds).exp()), mean - half, nothing),
            high=end(mean * factor, 1 / (1 + (-reach - odds).exp()), mean + half, nothing),
            method=end(*methods),
        )
        .drop("_t", "_min", "_max")
    )
    if result.is_empty():
        return result
    places = [(rank[tuple(r[:-1])], order[r[-1]]) for r in result.select([*by, "metric"]).rows()]
    return result[sorted(range(len(places)), key=places.__getitem__)]
