"""Means and their intervals, for all cells of a sweep at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo import audit
from gargalo.metrics.declared import bounds_in
from gargalo.metrics.intervals import of_moments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.metrics.intervals import Bounds


def samples(
    frame: pl.DataFrame, labels: Sequence[str], by: Sequence[str], metrics: Sequence[str]
) -> pl.DataFrame:
    """Return the values of which means are made: `by`, `metric`, `repeat`, `seed`, `value`, `_constant`.

    A value is that of a run, or where `by` leaves out labels, so that several cells are one, the mean over
    these cells of one repeat: every cell has the same weight however many runs it has, what differs
    between cells is not taken for chance, and cells that share their seeds may depend on each other. A cell that is
    constant, since all of its repeats are the same run, has its value in each repeat; where all are, there
    is one value, and `_constant` says so. Repeats that a cell lacks (runs that failed or are not done yet) are
    left out of all; where no repeat has all cells there is one value, the mean of their means.

    Args:
        frame: A row per run: labels, `seed`, metrics; `repeat` and `results_hash` where known.
        labels: What distinguishes the cells.
        by: Those of them that are kept.
        metrics: Figures.

    """
    repeat = pl.col("repeat" if "repeat" in frame.columns else "seed").cast(pl.Int64)
    kept = audit.counted(audit.marked(frame, labels), labels)
    cell, group = [*labels, "metric"], [*by, "metric"]
    long = (
        kept.with_columns(*(pl.col(m).cast(pl.Float64) for m in metrics), repeat.alias("repeat"))
        .unpivot(
            on=list(metrics),
            index=list(dict.fromkeys([*labels, "repeat", "seed", "_constant"])),
            variable_name="metric",
            value_name="value",
        )
        # Without a single value the column has no type of its own.
        .with_columns(pl.col("value").cast(pl.Float64))
        .drop_nulls("value")
    )
    columns = [*group, "repeat", "seed", "value", "_constant"]
    if set(labels) <= set(by):
        return long.select(columns)
    steady = (
        long.filter("_constant")
        .group_by(group)
        .agg(_sum=pl.col("value").sum(), _steady=pl.len(), _seed=pl.col("seed").first())
    )
    chance = long.filter(~pl.col("_constant")).with_columns(
        _cells=pl.struct(cell).n_unique().over(group),
        _weight=1 / pl.len().over(cell),
    )
    # A repeat that is not in all cells has no mean over them.
    whole = (
        chance.group_by([*group, "repeat"], maintain_order=True)
        .agg(
            pl.col("value").sum(),
            pl.col("_cells").first(),
            _have=pl.struct(cell).n_unique(),
            seed=pl.when(pl.col("seed").n_unique() == 1).then(pl.col("seed").first()),
        )
        .filter(pl.col("_have") == pl.col("_cells"))
    )
    # Where there is none: the mean of the cells' means.
    rest = (
        chance.join(whole.select(group), on=group, how="anti", nulls_equal=True)
        .group_by(group, maintain_order=True)
        .agg(
            (pl.col("value") * pl.col("_weight")).sum(),
            pl.col("_cells").first(),
            pl.col("repeat").min(),
        )
    )
    random = pl.concat([whole.drop("_have"), rest], how="diagonal_relaxed")
    mixed = random.join(
        steady, on=group, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(
        value=(pl.col("value") + pl.col("_sum").fill_null(0.0))
        / (pl.col("_cells") + pl.col("_steady").fill_null(0)),
        _constant=pl.lit(False),
    )
    alone = steady.join(random.select(group), on=group, how="anti", nulls_equal=True).select(
        *group,
        repeat=pl.lit(0, pl.Int64),
        seed=pl.col("_seed"),
        value=pl.col("_sum") / pl.col("_steady"),
        _constant=pl.lit(True),
    )
    return pl.concat([mixed.select(columns), alone.select(columns)], how="vertical_relaxed")


def summarise(
    frame: pl.DataFrame,
    labels: Sequence[str],
    by: Sequence[str],
    metrics: Sequence[str],
    level: float = 0.95,
    bounds: Mapping[str, Bounds] | None = None,
) -> pl.DataFrame:
    """Return a row per cell and figure with `n`, `mean`, `sd`, `low`, `high`, `method`, `reason`.

    The interval is that of `metrics.mean_interval`, of the values that `samples` returns, `bounds` those of figures
    that were measured.
    """
    cells = (
        samples(frame, labels, by, metrics)
        .group_by([*by, "metric"], maintain_order=True)
        .agg(
            n=pl.len().cast(pl.Int64),
            mean=pl.col("value").mean(),
            sd=pl.col("value").std(),
            _min=pl.col("value").min(),
            _max=pl.col("value").max(),
        )
    )
    runs = dict(frame.group_by(by)) if by else {(): frame}
    found = [
        of_moments(n, mean, sd, (least, most), level, bounds_in(metric, runs[tuple(key)], bounds))
        for *key, metric, n, mean, sd, least, most in cells.select(
            *by, "metric", "n", "mean", "sd", "_min", "_max"
        ).rows()
    ]
    result = cells.drop("_min", "_max").with_columns(
        pl.Series("low", [i.low for i in found], pl.Float64),
        pl.Series("high", [i.high for i in found], pl.Float64),
        pl.Series("method", [i.method for i in found], pl.String),
        pl.Series("reason", [i.reason or None for i in found], pl.String),
    )
    if result.is_empty():
        return result
    order = {m: i for i, m in enumerate(metrics)}
    rank = (
        {cell: i for i, cell in enumerate(frame.select(by).unique(maintain_order=True).rows())}
        if by
        else {(): 0}
    )
    places = [(rank[tuple(r[:-1])], order[r[-1]]) for r in result.select([*by, "metric"]).rows()]
    return result[sorted(range(len(places)), key=places.__getitem__)]
