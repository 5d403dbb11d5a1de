"""Means and their intervals, for all cells of a sweep at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence


def summarise(
    frame: pl.DataFrame, by: Sequence[str], metrics: Sequence[str], level: float = 0.95
) -> pl.DataFrame:
    """Return a row per cell and figure with `n`, `mean`, `sd`, `low`, `high`.

    The interval is mean ± t · sd / √n, with the quantile t of Student's distribution with n - 1
    degrees of freedom (Student 1908).
    """
    from scipy.stats import t

    order = {m: i for i, m in enumerate(metrics)}
    long = frame.with_columns(pl.col(m).cast(pl.Float64) for m in metrics).unpivot(
        on=list(metrics), index=list(by), variable_name="metric", value_name="value"
    )
    cells = (
        long.drop_nulls("value")
        .group_by([*by, "metric"], maintain_order=True)
        .agg(
            n=pl.len().cast(pl.Int64),
            mean=pl.col("value").mean(),
            sd=pl.col("value").std(),
        )
    )
    counts = [int(n) for n in cells["n"].unique() if n > 1]
    quantiles = pl.DataFrame(
        {"n": counts, "_t": [float(t.ppf(0.5 + level / 2, n - 1)) for n in counts]},
        schema={"n": pl.Int64, "_t": pl.Float64},
    )
    half = pl.col("_t") * pl.col("sd") / pl.col("n").sqrt()
    cells_in_order = frame.select(by).unique(maintain_order=True).rows() if by else [()]
    rank = {cell: i for i, cell in enumerate(cells_in_order)}
    result = (
        cells.join(quantiles, on="n", how="left", maintain_order="left")
        .with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half)
        .drop("_t")
    )
    if result.is_empty():
        return result
    places = [(rank[tuple(r[:-1])], order[r[-1]]) for r in result.select([*by, "metric"]).rows()]
    return result[sorted(range(len(places)), key=places.__getitem__)]
