"""Sweeps and comparisons as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.metrics.declared import STANDARD, USUAL
from gargalo.metrics.intervals import ENOUGH
from gargalo.quantities import SHARES
from gargalo.summary import measured_in, percent, rate, span
from gargalo.terminal.fitting import NONE, Column, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from gargalo.sweeps.compare import Row
    from gargalo.sweeps.result import Sweep


def amount(metric: str, value: float | None) -> str:
    """Write a figure with its unit, as its name says."""
    if value is None:
        return NONE
    sign, size = ("-", -value) if value < 0 else ("", value)
    if metric.endswith("_bps"):
        return f"{sign}{rate(size)}"
    if metric.endswith("_s"):
        return f"{sign}{span(size)}"
    return f"{sign}{percent(size)}" if metric in SHARES else f"{value:.4g}"


def cells(sweep: Sweep) -> tuple[list[Column], list[list[str]], pl.DataFrame]:
    """Return a row per cell, means of the usual figures with their 95% intervals, and the summary of these."""
    measured = [m for m in sweep.metrics if m not in STANDARD]
    names = [*(m for m in USUAL if m in sweep.metrics), *measured]
    summary = sweep.summary(metrics=names)
    present = [m for m in names if m in set(summary["metric"].to_list())]
    found: dict[tuple[Any, ...], dict[str, str]] = {}
    for r in summary.iter_rows(named=True):
        cell = found.setdefault(tuple(r[n] for n in sweep.labels), {})
        cell[r["metric"]] = f"{amount(r['metric'], r['mean'])}{_spread(r)}"
    # What the sweep measures itself, and the first of the usual figures, are left out last.
    kept = dict.fromkeys(m for m in (*measured, *present) if m in present)
    rank = {m: i for i, m in enumerate(kept)}
    columns = [Column(label, justify="left") for label in sweep.labels]
    columns += [Column(name, rank.get(name, 0)) for name in present]
    rows = [
        [*map(str, key), *(values.get(m, NONE) for m in present)] for key, values in found.items()
    ]
    return columns, rows, summary


def show(sweep: Sweep, console: Console, most_rows: int) -> None:
    """Print a row per cell: means of the usual figures with their 95% intervals."""
    _wide(console)
    columns, rows, summary = cells(sweep)
    title = f"{sweep.name}: mean and its 95% interval"
    show_table(title, columns, rows[:most_rows], console)
    if len(rows) > most_rows:
        console.print(f"  … and {len(rows) - most_rows} more cells\n")
    few = summary.filter(pl.col("n") < ENOUGH)
    without = few.select(sweep.labels).n_unique() if sweep.labels else min(few.height, 1)
    if without:
        console.print(
            f"Interval n/a, needs {ENOUGH} repeats: in {without} of {len(rows)} cells for some or all figures."
        )
    if (window := measured_in(sweep.frame())) is not None:
        console.print(f"Rates, ratios and delays are {window}.")


def _spread(row: dict[str, Any]) -> str:
    """Write an interval: ± its half width if it is even about the mean, else its ends."""
    low, high, mean = row["low"], row["high"], row["mean"]
    if low is None:
        return ""
    half = (high - low) / 2
    if abs(high + low - 2 * mean) <= 0.05 * half:
        return f" ± {amount(row['metric'], half)}"
    return f" [{amount(row['metric'], low)}, {amount(row['metric'], high)}]"


def show_rows(rows: Sequence[Row], a: str, b: str, level: float, console: Console) -> None:
    """Print a row per cell and figure."""
    _wide(console)
    labels = list(dict.fromkeys(k for r in rows for k in r.cell))
    columns = [Column(label, justify="left") for label in [*labels, "figure"]]
    columns += [
        Column(a, 2),
        Column(b, 2),
        Column("difference"),
        Column(f"{level:.0%} interval", 1),
    ]
    columns += [Column("p", 3), Column("verdict", justify="left", least=13)]
    told = []
    for r in rows:
        d = r.difference
        ends = [amount(r.metric, v) for v in (d.low, d.high)]
        own = [
            *(str(r.cell.get(label, NONE)) for label in labels),
            r.metric,
            amount(r.metric, r.mean_a),
            amount(r.metric, r.mean_b),
            amount(r.metric, d.estimate),
            NONE if d.low is None else f"{ends[0]} … {ends[1]}{'*' if d.clipped else ''}",
            NONE if r.p_value is None else f"{r.p_value:.2g}",
            r.verdict,
        ]
        told.append(own)
    show_table(f"{a} less {b}", columns, told, console)
    if any(r.difference.clipped for r in rows):
        console.print("* clipped to the greatest difference that there can be.")
    tested = [r.difference.test for r in rows if r.difference.p_value is not None]
    tests = sorted(set(tested))
    if tests:
        console.print(
            f"Tests: {', '.join(tests)}; p-values adjusted for {len(tested)} tests (Holm)."
        )
    constant = sum(r.difference.p_value is None and r.difference.estimate == 0 for r in rows)
    if constant:
        console.print(f"{constant} of the rows have no variation: they are no tests.")


def _wide(console: Console) -> None:
    if not console.is_terminal:
        console.width = max(console.width, 200)
