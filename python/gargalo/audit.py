"""The auditor of sweeps and studies: findings about several runs together.

A run's own findings come from the engine (`gargalo.Run.findings`); here they are counted, and
repeats that are the same run and intervals beyond a quantity's range are found.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from gargalo.metrics.intervals import Bounds

    Severity = Literal["note", "warning", "error"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The gravest first."""
NAMED = 3
"""A sentence names at most this many cells."""


@dataclass(frozen=True)
class Finding:
    """Something of which a reader of the results should know; those of a run have the same keys."""

    code: str
    """Stable, as `equal-repeats`."""
    severity: Severity
    """`note`, `warning`, or `error` for what can only be a fault of Gargalo itself."""
    subject: str
    """The flow, link or cells meant."""
    text: str
    """A sentence."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The figures behind it, in SI units."""

    def to_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return asdict(self)

    def __str__(self) -> str:
        return told(self.to_json())


def told(finding: Mapping[str, Any]) -> str:
    """Write a finding, of the engine or of a sweep, as one line."""
    subject = f"{finding['subject']}: " if finding["subject"] else ""
    return f"{finding['severity']}: {subject}{finding['text']} [{finding['code']}]"


def _equal(labels: Sequence[str]) -> pl.Expr:
    """Whether all runs of a row's cell have the same results."""
    import polars as pl

    found = pl.col("results_hash")
    equal = (found.n_unique() == 1) & (found.null_count() == 0) & (pl.len() > 1)
    return equal.over(list(labels)) if labels else equal


def marked(frame: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    """Return the runs with a column `_constant`.

    All repeats of the cell gave the same results, so nothing in it is random.
    """
    import polars as pl

    if "results_hash" not in frame.columns:
        return frame.with_columns(_constant=pl.lit(False))
    return frame.with_columns(_constant=_equal(labels))


def counted(frame: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    """Return the runs that count in statistics.

    Where all repeats of a cell have the same results nothing in it depends on the seed: they are one run done
    several times, and the first stands for all. If only some are the same they are what chance made of
    them, and all count. Where cells are pooled see `gargalo.sweeps.statistics.samples`.

    Args:
        frame: A row per run with `results_hash` and `seed`; without, all rows count.
        labels: What distinguishes the cells.

    """
    if "results_hash" not in frame.columns or frame.is_empty():
        return frame
    import polars as pl

    cell = list(labels)
    place = pl.int_range(pl.len())
    first = (place.over(cell) if cell else place) == 0
    return frame.filter(~_equal(cell) | first)


def equal_repeats(frame: pl.DataFrame, labels: Sequence[str]) -> list[Finding]:
    """Find cells all of whose repeats are the same run."""
    if "results_hash" not in frame.columns or frame.is_empty():
        return []
    cell = list(labels)
    same = frame.filter(_equal(cell))
    if same.is_empty():
        return []
    cells = same.select(cell).unique(maintain_order=True).to_dicts() if cell else [{}]
    every = frame.select(cell).n_unique() if cell else 1
    names = [", ".join(f"{k} = {v}" for k, v in c.items()) for c in cells[:NAMED]]
    more = f" and {len(cells) - NAMED} more" if len(cells) > NAMED else ""
    where = "In all cells" if len(cells) == every else f"In {len(cells)} of {every} cells"
    text = (
        f"{where if every > 1 else 'Here'} all repeats gave the same results: nothing depends on the seed. They count "
        "as one run, without interval or test; vary something at random, as start_jitter does for "
        "flows that meet, or leave repeat out"
    )
    figures = {"cells": len(cells), "of_cells": every, "runs": same.height, "counted": len(cells)}
    return [
        Finding("equal-repeats", "warning", "; ".join(filter(None, names)) + more, text, figures)
    ]


def intervals(
    summary: pl.DataFrame, labels: Sequence[str], bounds: Mapping[str, Bounds] | None = None
) -> list[Finding]:
    """Find intervals of means that leave what the quantity can be, in a table as of `Sweep.summary`."""
    from gargalo.metrics.declared import bounds_of

    found = []
    for row in summary.iter_rows(named=True):
        least, most = bounds_of(row["metric"], bounds)
        low, high, mean = row["low"], row["high"], row["mean"]
        if low is None or not least <= mean <= most or (least <= low and high <= most):
            continue
        if row.get("method") == "student":
            continue  # Values themselves are beyond the range, so that its scale could not be used.
        cell = ", ".join(f"{n} = {row[n]}" for n in labels)
        text = f"the interval of {row['metric']} is beyond what it can be, {least:g} to {most:g}"
        figures = {"low": low, "high": high, "mean": mean}
        found.append(Finding("interval-out-of-range", "error", cell, text, figures))
    return found


def of_runs(frame: pl.DataFrame) -> list[Finding]:
    """Count the findings of all runs, by their code; the first of each is reported."""
    if "findings" not in frame.columns:
        return []
    first: dict[tuple[str, str], Mapping[str, Any]] = {}
    runs: Counter[tuple[str, str]] = Counter()
    for text in frame["findings"].drop_nulls().to_list():
        seen = set()
        for finding in json.loads(text):
            key = (finding["severity"], finding["code"])
            first.setdefault(key, finding)
            seen.add(key)
        runs.update(seen)
    found = []
    for severity in SEVERITIES:
        for (of, code), finding in first.items():
            if of != severity:
                continue
            n = runs[of, code]
            text = f"in {n} of {frame.height} runs, as this one: {finding['text']}"
            figures = {**finding["figures"], "runs": n, "of_runs": frame.height}
            found.append(Finding(code, severity, finding["subject"], text, figures))
    return found
