"""Is one side of a sweep different from another? Cell by cell, figure by figure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, audit
from gargalo.metrics.declared import NETWORK, STANDARD, USUAL, verdict_of
from gargalo.results import load
from gargalo.sweeps.errors import SweepError
from gargalo.sweeps.result import FACTS, Sweep
from gargalo.sweeps.rows import frame_of
from gargalo.sweeps.work import row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gargalo.metrics import Difference
    from gargalo.metrics.intervals import Bounds


@dataclass(frozen=True)
class Side:
    """Runs to compare."""

    name: str
    frame: pl.DataFrame
    labels: Sequence[str]
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """Of measured figures, as declared."""


@dataclass(frozen=True)
class Row:
    """A figure of a cell on both sides."""

    cell: Mapping[str, Any]
    metric: str
    mean_a: float | None
    mean_b: float | None
    difference: Difference
    p_value: float | None
    """Adjusted for the number of tests (Holm)."""
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        d = self.difference
        return {
            "cell": dict(self.cell),
            "metric": self.metric,
            "n_a": d.n_a,
            "n_b": d.n_b,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            "difference": d.estimate,
            "low": d.low,
            "high": d.high,
            "clipped": d.clipped,
            "p_value": self.p_value,
            "p_value_alone": d.p_value,
            "test": d.test,
            "verdict": self.verdict,
        }


def side_of(path: Path, name: str | None = None) -> Side:
    """Read the runs of a store, or the one of a results directory.

    Raises:
        StoreError: It is neither.
        RunError: A file of the results is not what was written.

    """
    if (path / "run.json").is_file():
        run = load(path)
        frame = frame_of(str(path), row(run)).with_columns(seed=pl.lit(run.info["seed"], pl.Int64))
        return Side(str(path), frame, ())
    sweep = Sweep.load(path, name)
    return Side(str(path), sweep.frame(), sweep.labels, sweep.bounds)


def split(side: Side, by: str, a: str, b: str) -> tuple[Side, Side]:
    """Return the runs with two values of a label.

    Raises:
        SweepError: There is no such label, or no such value.

    """
    if by not in side.labels:
        raise SweepError(_unknown("label", by, side.labels, side.name))
    values = side.frame[by].cast(pl.String)
    have = values.unique(maintain_order=True).drop_nulls().to_list()
    for value in (a, b):
        if value not in have:
            raise SweepError(_unknown(by, value, have, side.name))
    if a == b:
        msg = f'both sides are "{a}": name two different values of {by}'
        raise SweepError(msg)
    rest = [label for label in side.labels if label != by]
    return (
        Side(a, side.frame.filter(values == a), rest, side.bounds),
        Side(b, side.frame.filter(values == b), rest, side.bounds),
    )


def metrics_of(a: Side, b: Side, wanted: Sequence[str]) -> list[str]:
    """Return the figures to compare: those requested, else the usual ones and what was measured."""
    labels = {*a.labels, *b.labels}
    numeric = [
        name
        for name, kind in a.frame.schema.items()
        if kind.is_numeric()
        and name in b.frame.columns
        and name not in FACTS
        and name not in labels
    ]
    for name in wanted:
        if name not in numeric:
            raise SweepError(_unknown("figure", name, numeric, a.name))
    if wanted:
        return list(wanted)
    measured = [n for n in numeric if n not in STANDARD]
    chosen = [n for n in USUAL if n in numeric] + measured
    return [n for n in chosen if a.frame[n].count() and b.frame[n].count()]


def compare(
    a: Side,
    b: Side,
    metrics: Sequence[str] = (),
    *,
    level: float = 0.95,
    test: Any = "welch",
    paired: bool | None = None,
) -> list[Row]:
    """Compare two sides in every cell: every combination of values of the labels that both have.

    Repeats that share their seeds are pairs, unless `paired` says no. A cell all of whose repeats are the same run
    is a constant, and the other one is compared with it. Labels that only one side has are pooled as in
    `Sweep.summary`: every cell has the same weight.

    Raises:
        SweepError: The sides have no cell in common, or a figure is unknown.

    """
    from gargalo.metrics import difference, holm
    from gargalo.metrics.declared import bounds_in
    from gargalo.sweeps.statistics import samples

    by = [label for label in a.labels if label in b.labels]
    chosen = metrics_of(a, b, metrics)
    found: list[tuple[dict[str, Any], str, Difference, float | None, float | None]] = []
    known = {**a.bounds, **b.bounds}
    mine_by, other = (dict(_cells(samples(s.frame, s.labels, by, chosen), by)) for s in (a, b))
    for key, mine in mine_by.items():
        if key not in other:
            continue
        cell = dict(zip(by, key, strict=True))
        carried = pl.concat([_ceilings(side, cell) for side in (a, b)])
        for metric in chosen:
            x, y, pairs = _values(mine, other[key], metric, paired)
            bounds = bounds_in(metric, carried, known)
            told = difference(x, y, level=level, test=test, paired=pairs, bounds=bounds)
            found.append((cell, metric, told, _mean(x), _mean(y)))
    if not found:
        msg = f"{a.name} and {b.name} have no cell in common: nothing to compare"
        raise SweepError(msg)
    adjusted = holm([d.p_value for _, _, d, _, _ in found])
    return [
        Row(cell, metric, ma, mb, d, p, verdict(d, p, metric, level, a.name, b.name))
        for (cell, metric, d, ma, mb), p in zip(found, adjusted, strict=True)
    ]


def findings(a: Side, b: Side) -> list[audit.Finding]:
    """Return what the auditor found in the runs of both sides, with the side's name before the subject."""
    return [
        replace(f, subject=": ".join(filter(None, (side.name, f.subject))))
        for side in (a, b)
        for f in (*audit.of_runs(side.frame), *audit.equal_repeats(side.frame, side.labels))
    ]


def _ceilings(side: Side, cell: Mapping[str, Any]) -> pl.DataFrame:
    """Return what the networks of the runs of a cell can carry and hold; null where it is not known."""
    rows = side.frame.filter(*(pl.col(k).eq_missing(pl.lit(v)) for k, v in cell.items()))
    return rows.select(
        (pl.col(c) if c in rows.columns else pl.lit(None).alias(c)).cast(pl.Float64)
        for c in NETWORK
    )


def _cells(values: pl.DataFrame, by: Sequence[str]) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    if not by:
        return [((), values)]
    groups = values.group_by(by, maintain_order=True)
    return [(tuple(key), rows) for key, rows in groups]


def _values(
    a: pl.DataFrame, b: pl.DataFrame, metric: str, paired: bool | None
) -> tuple[pl.Series | float, pl.Series | float, bool]:
    """Return the values of both sides, and whether they are pairs; one number for a constant."""
    x, y = (rows.filter(pl.col("metric") == metric) for rows in (a, b))
    if x["_constant"].any() or y["_constant"].any():
        first, second = (
            float(rows["value"][0]) if rows["_constant"].any() else rows["value"] for rows in (x, y)
        )
        return first, second, False
    seeds = [rows["seed"] for rows in (x, y)]
    unique = not any(s.is_duplicated().any() or s.null_count() for s in seeds)
    if paired is not False and unique and len(x) > 1:
        both = x.join(y, on="seed", suffix="_b", maintain_order="left")
        if len(both) == len(x) == len(y):
            return both["value"], both["value_b"], True
    return x["value"], y["value"], False


def _mean(values: pl.Series | float) -> float | None:
    return values if isinstance(values, float) else values.mean()  # type: ignore[return-value]


def verdict(d: Difference, p: float | None, metric: str, level: float, a: str, b: str) -> str:
    """Say what a difference of A less B means, with its p-value adjusted: which side is better, or higher."""
    if d.test == "none":
        return f"{verdict_of(metric, d.estimate, a, b)}, exact" if d.estimate else "equal"
    if p is None:
        return d.short_reason or d.verdict
    if p >= 1 - level or not d.estimate:
        return "no difference shown"
    return verdict_of(metric, d.estimate, a, b)


def _unknown(what: str, value: str, have: Sequence[str], where: str) -> str:
    near = _core.nearest(value, have)
    hint = f'did you mean "{near}"?' if near else f"it has: {', '.join(have) or 'none'}"
    return f'{where} has no {what} "{value}"; {hint}'
