"""What studies and evaluations share: profiles, rows by label, means of cells, findings, reasons of failures.

Both make jobs of cells, do them with `gargalo.sweeps.execute`, measure every run, judge the figures and write a page: a
study judges the claims of a work, an evaluation an algorithm by criteria.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from gargalo.extras import need

need("studies and evaluations", "numpy", "scipy", "plotly", "jinja2", "cloudpickle")

from gargalo import _core, audit
from gargalo.metrics import mean_interval
from gargalo.metrics.intervals import POSITIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.sweeps import Sweep

T = TypeVar("T")
S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """What a profile of a study sets: each study derives a class with durations, factors and their levels.

    `gargalo study --set` changes all but names that begin with an underscore.
    """

    experiments: Sequence[str] = ()
    """Names of those that are done. Default: all."""
    readings: Sequence[str] = ()
    """Names of those that are repeated. Default: all."""

    @classmethod
    def of(cls: type[S], profile: Profile) -> S:
        """Return the settings of a profile of this study.

        Raises:
            TypeError: It is of another study.

        """
        if not isinstance(profile.settings, cls):
            msg = f"the profile {profile.name} has {type(profile.settings).__name__}, not {cls.__name__}"
            raise TypeError(msg)
        return profile.settings


@dataclass(frozen=True)
class Profile:
    """How much is run."""

    name: str
    description: str
    repeat: int
    """Runs of each cell, each with a seed of its own."""
    settings: Settings = field(default_factory=Settings)

    def with_repeat(self, repeat: int | None) -> Profile:
        """Return the profile with another number of runs, if there is one."""
        return self if repeat is None else replace(self, repeat=repeat)


@dataclass(frozen=True)
class Mark:
    """How a verdict is shown."""

    sign: str
    style: str
    """In a terminal, as Rich names styles."""
    meaning: str = ""
    """A sentence for the legend of a page."""


@dataclass(frozen=True)
class FailureReason:
    """Why runs could not be done."""

    reason: str
    """What was raised, on one line."""
    trace: str = ""
    """The traceback, where there is one."""

    def __str__(self) -> str:
        """Return both."""
        return f"{self.reason}\n{self.trace}".strip()


def find(kind: str, name: str, known: Mapping[str, T]) -> T:
    """Return the entry with a name.

    Raises:
        KeyError: There is none; the message has the nearest name, or all names.

    """
    if name in known:
        return known[name]
    near = _core.nearest(name, list(known))
    hint = f'did you mean "{near}"?' if near else f"there are {', '.join(known) or 'none'}"
    msg = f'there is no {kind} "{name}"; {hint}'
    raise KeyError(msg)


def select(rows: pl.DataFrame, labels: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows with these labels; none if a column is missing."""
    if not labels:
        return rows
    if not labels.keys() <= set(rows.columns):
        return rows.clear()
    return rows.filter(*(pl.col(name) == value for name, value in labels.items()))


def cell_means(
    rows: pl.DataFrame,
    labels: Sequence[str],
    metrics: Sequence[str],
    *more: pl.Expr,
    interval: str | None = None,
) -> pl.DataFrame:
    """Return the means over the repeats of each cell, and how many runs it has.

    Args:
        rows: The runs of an experiment, one row each.
        labels: Columns that distinguish cells; those without any value are left out.
        metrics: Columns to take the mean of; those without any value are left out.
        more: Other aggregates.
        interval: A positive metric whose 95% interval is added, as columns `_low` and `_high`.

    """
    known = {c for c in rows.columns if rows[c].null_count() < rows.height}
    aggregates = [pl.col(m).mean() for m in metrics if m in known]
    values = [pl.col(interval).alias("_values")] if interval in known else []
    cells = rows.group_by([c for c in labels if c in known], maintain_order=True).agg(
        *aggregates, *more, *values, pl.len().alias("runs")
    )
    if not values:
        return cells
    found = [mean_interval(v, bounds=POSITIVE) for v in cells["_values"].to_list()]
    return cells.drop("_values").with_columns(
        pl.Series(f"{interval}_low", [i.low for i in found], pl.Float64),
        pl.Series(f"{interval}_high", [i.high for i in found], pl.Float64),
    )


def findings(sweep: Sweep, rows: pl.DataFrame | None = None) -> list[audit.Finding]:
    """Return what the auditor found in the runs that are judged, by default all of a sweep."""
    frame = sweep.frame() if rows is None else rows
    return [*audit.of_runs(frame), *audit.equal_repeats(frame, sweep.labels)]


def failures(sweep: Sweep, **labels: object) -> list[FailureReason]:
    """Return why runs with these labels failed, each reason once."""
    runs = set(select(sweep.plan, labels)["run"].to_list())
    told = (FailureReason(f.reason, f.trace) for f in sweep.failures if f.run in runs)
    return list(dict.fromkeys(told))
