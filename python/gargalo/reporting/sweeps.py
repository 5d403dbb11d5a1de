"""The report of a sweep: every metric over its axes, with intervals and tests of difference."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, audit, metrics
from gargalo.metrics.declared import NETWORK, bounds_in, bounds_of
from gargalo.metrics.intervals import ENOUGH
from gargalo.pictures.sweeps import axes_of, describe, words
from gargalo.quantities import measured, number, quantity
from gargalo.reporting import charts
from gargalo.reporting.model import FigureBlock, Report, TableBlock
from gargalo.summary import measured_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gargalo.metrics.comparing import Difference
    from gargalo.metrics.intervals import Bounds
    from gargalo.pictures.sweeps import Axes
    from gargalo.sweeps import Sweep

# In the order of interest; what a function of the user measured goes before them.
MAIN = (
    "goodput_bps", "utilization", "jain_index", "queue_delay_p95_s", "loss_rate", "completion_p50_s",
    "completion_p95_s", "goodput_cov",
)  # fmt: skip
NO_METRIC = (
    "run", "repeat", "seed", "version", "scenario_hash", "warnings", "wall_s", "packets", "events", "flows",
    "peak_flows", "virtual_s", "completed_flows", "bottleneck", "retransmission_rate", "queue_delay_mean_s",
    "queue_delay_p50_s", "queue_delay_p99_s", "completion_p99_s", "measured_from_s", "measured_until_s",
    *NETWORK,
)  # fmt: skip
BASELINES = ("cubic", "reno", "newreno")
MOST_MEASURED = 12
MOST_PANELS = 6
MOST_COMMANDS = 200
MOST_ROWS = 5000


def report_of_sweep(
    sweep: Sweep | str | Path,
    *,
    name: str | None = None,
    level: float = 0.95,
    facts: Mapping[str, str | int | float] | None = None,
) -> Report:
    """Return the report of a sweep, as far as its runs are done.

    Args:
        sweep: The sweep, or the directory of its store.
        name: Of the sweep in the store; by default the latest.
        level: Of the confidence intervals.
        facts: More facts, such as the date: the clock is never read.

    Raises:
        StoreError: The directory is not a store, or has no such sweep.
        ValueError: No run is done yet.

    """
    if isinstance(sweep, (str, Path)):
        from gargalo.sweeps import Sweep as Stored

        sweep = Stored.load(sweep, name)
    frame = sweep.frame()
    if frame.is_empty():
        msg = f'the sweep "{sweep.name}" has no finished run: run it first'
        raise ValueError(msg)
    found = report_of_runs(frame, sweep.labels, title=sweep.name, level=level, bounds=sweep.bounds)
    planned = sweep.plan.height
    notes = list(found.notes)
    if frame.height < planned:
        notes.insert(0, f"{number(frame.height)} of {number(planned)} planned runs are done.")
    scenarios, commands = _again(sweep.plan)
    return replace(
        found,
        notes=notes,
        scenarios=scenarios,
        commands=commands,
        facts={**found.facts, **(facts or {})},
    )


def report_of_runs(
    frame: pl.DataFrame,
    labels: Sequence[str],
    *,
    title: str,
    level: float = 0.95,
    bounds: Mapping[str, Bounds] | None = None,
) -> Report:
    """Return the report of a table of runs.

    Args:
        frame: A row per run: the labels, `seed`, metrics in SI, `packets`, `wall_s`.
        labels: Columns that distinguish cells.
        title: Of the page.
        level: Of the confidence intervals.
        bounds: The least and the greatest value of metrics, where they are no figures of every run.

    """
    frame, axes = axes_of(frame, labels)
    chosen = _metrics(frame, labels)
    known = {m: bounds_of(m, bounds) for m in chosen}
    cells_of = list(dict.fromkeys([axes.by, *labels]))
    once = audit.counted(audit.marked(frame, cells_of), cells_of)
    repeats = frame.group_by([axes.by, *axes.cell]).len()["len"]
    cells = repeats.len()
    least, most = min(repeats.to_list()), max(repeats.to_list())
    summary = _summary(once, axes, known, level)
    subtitle = f"{number(frame.height)} runs, {number(cells)} cells of " + (
        f"{number(least)} repeats" if least == most else f"{least} to {most} repeats"
    )
    notes = [str(f) for f in (*audit.of_runs(frame), *audit.equal_repeats(frame, labels))]
    if least < ENOUGH:
        notes.append(
            f"Cells with fewer than {ENOUGH} runs have no interval (n/a, needs {ENOUGH} repeats): repeat with more "
            "seeds to know how sure a figure is."
        )
    if (window := measured_in(frame)) is not None:
        notes.append(f"Rates, ratios and delays are {window}.")
    tables = [
        TableBlock("Cells", f"Mean and {level:.0%} interval (Student's t, within what the figure "
            "can be) of each cell.", summary.head(MOST_ROWS), algorithm=axes.by),
        *_comparisons(once, axes, known, level),
        TableBlock("Runs", "Every run, in the order of the plan.", _runs(frame), algorithm=axes.by),
    ]  # fmt: skip
    figures, more = _figures(once, axes, known, level)
    return Report(
        title=title,
        subtitle=subtitle,
        figures=figures,
        tables=tables,
        facts=_facts(frame),
        notes=[*notes, *more],
        algorithms=[str(v) for v in frame[axes.by].unique(maintain_order=True)],
    )


def _metrics(frame: pl.DataFrame, labels: Sequence[str]) -> list[str]:
    def varies(name: str) -> bool:
        values = frame[name].drop_nulls()
        return values.dtype.is_numeric() and values.n_unique() > 1

    other = [c for c in frame.columns if c not in (*MAIN, *NO_METRIC, *labels, "cell")]
    own = [c for c in other if varies(c)][:MOST_MEASURED]
    found = [*own, *(c for c in MAIN if c in frame.columns and varies(c))]
    return found or [c for c in MAIN if c in frame.columns and frame[c].drop_nulls().len()][:1]


def _figures(
    frame: pl.DataFrame, axes: Axes, chosen: Mapping[str, Bounds], level: float
) -> tuple[list[FigureBlock], list[str]]:
    blocks: dict[str, list[FigureBlock]] = {}
    for name in chosen:
        if not frame[name].drop_nulls().len():
            continue
        picture = describe(frame, name, axes, level=level, bounds=chosen)
        text = "; ".join(picture.notes)
        for panel in picture.panels:
            drawn = charts.panel(picture, panel)
            block = FigureBlock(picture.title, f"{text[:1].upper()}{text[1:]}.", drawn, panel.title)
            blocks.setdefault(panel.title, []).append(block)
    notes = []
    if len(blocks) > MOST_PANELS:
        notes.append(
            f"Figures show the first {MOST_PANELS} of {len(blocks)} combinations of "
            f"{', '.join(map(words, axes.panels))}; tables have all."
        )
    shown = list(blocks.values())[:MOST_PANELS]
    return [block for group in shown for block in group], notes


def _summary(
    frame: pl.DataFrame, axes: Axes, chosen: Mapping[str, Bounds], level: float
) -> pl.DataFrame:
    rows = []
    for key, part in frame.group_by([axes.by, *axes.cell], maintain_order=True):
        row: dict[str, Any] = dict(zip([axes.by, *axes.cell], key, strict=True))
        row["runs"] = part.height
        for name in chosen:
            found = metrics.mean_interval(part[name], level, bounds_in(name, part, chosen))
            row |= {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}
        rows.append(row)
    figures = {f"{n}{end}": pl.Float64 for n in chosen for end in ("", "_low", "_high")}
    return pl.DataFrame(rows, schema_overrides=figures, infer_schema_length=None)


def _runs(frame: pl.DataFrame) -> pl.DataFrame:
    hidden = ("run", "version", "scenario_hash", "results_hash", "warnings", "findings")
    shown = frame.drop([c for c in hidden if c in frame.columns])
    # A seed is a name: as text it keeps all its digits.
    return shown.head(MOST_ROWS).with_columns(pl.col("seed").cast(pl.String))


def _comparisons(
    frame: pl.DataFrame, axes: Axes, chosen: Mapping[str, Bounds], level: float
) -> Iterator[TableBlock]:
    names = frame[axes.by].unique(maintain_order=True).to_list()
    if len(names) < 2 or frame.height <= frame.select([axes.by, *axes.cell]).n_unique():
        return
    base = next((b for b in BASELINES if b in names), names[0])
    for metric in list(chosen)[:4]:
        rows: list[tuple[dict[str, Any], str, Difference]] = []
        parts = frame.group_by(axes.cell, maintain_order=True) if axes.cell else [((), frame)]
        for key, part in parts:
            cell = dict(zip(axes.cell, key, strict=True))
            for name in names:
                if name != base and part.drop_nulls(metric).height:
                    bounds = bounds_in(metric, part, chosen)
                    found = _difference(part, metric, axes, (name, base), level, bounds)
                    rows.append((cell, name, found))
        if not rows:
            continue
        adjusted = metrics.holm([d.p_value for _, _, d in rows])
        q = quantity(metric)
        ending = metric.rpartition("_")[2]
        column = f"difference_{ending}" if q.unit else "difference"
        table = [
            {
                axes.by: name,
                **cell,
                column: d.estimate,
                f"{column}_low": d.low,
                f"{column}_high": d.high,
                "p, adjusted": p,
                "effect size": d.effect_size,
                "runs": min(d.n_a, d.n_b),
                "paired": d.paired,
                "verdict": _verdict(d, p, metric, level, (name, base)),
            }
            for (cell, name, d), p in zip(rows, adjusted, strict=True)
        ]
        text = (
            f"Mean less that of {base} in the same cell, with its {level:.0%} interval; paired by "
            "seed where both have the "
            "same seeds, else Welch's t test, or against a constant, where all repeats are the "
            "same run, Student's of one sample. p-values are adjusted for the number of tests "
            "(Holm); a row without variation is none."
        )
        kinds = {f"{column}{e}": pl.Float64 for e in ("", "_low", "_high")} | {
            "p, adjusted": pl.Float64,
            "effect size": pl.Float64,
        }
        yield TableBlock(
            f"Difference in {q.words} against {base}", text,
                pl.DataFrame(table, schema_overrides=kinds, infer_schema_length=None), algorithm=axes.by
        )  # fmt: skip


def _difference(
    part: pl.DataFrame,
    metric: str,
    axes: Axes,
    names: tuple[str, str],
    level: float,
    bounds: Bounds,
) -> Difference:
    """Compare two algorithms in a cell; one whose repeats are all the same run is a constant."""
    sides = [part.filter(pl.col(axes.by) == n) for n in names]
    if not any(s["_constant"].any() for s in sides):
        return metrics.compare(part, metric, axes.by, *names, level=level, bounds=bounds)
    a, b = (
        float(s[metric][0]) if s["_constant"].any() and s[metric].count() else s[metric]
        for s in sides
    )
    return metrics.difference(a, b, level=level, bounds=bounds)


def _verdict(
    d: Difference, p: float | None, metric: str, level: float, names: tuple[str, str]
) -> str:
    from gargalo.sweeps.compare import verdict

    if p is None and d.test != "none":
        return f"not testable: {d.short_reason or 'too few runs'}"
    return verdict(d, p, metric, level, *names)


def _facts(frame: pl.DataFrame) -> dict[str, str | int | float]:
    versions = (
        frame["version"].unique().sort().to_list()
        if "version" in frame.columns
        else [_core.__engine__]
    )
    seeds = frame["seed"].unique(maintain_order=True).to_list()
    shown = ", ".join(map(str, seeds[:10])) + (
        f" and {len(seeds) - 10} more" if len(seeds) > 10 else ""
    )
    facts: dict[str, str | int | float] = {
        "engine": "gargalo " + ", ".join(map(str, versions)),
        "runs": frame.height,
        "seeds": shown,
    }
    for column in ("packets", "events"):
        if column in frame.columns:
            facts[column] = int(frame[column].sum())
    if "virtual_s" in frame.columns:
        facts["virtual time"] = measured(float(frame["virtual_s"].sum()), "s")
    if "wall_s" in frame.columns:
        facts["wall time, all runs"] = measured(float(frame["wall_s"].sum()), "s")
    return facts


def _again(plan: pl.DataFrame) -> tuple[dict[str, str], list[str]]:
    """Return the scenarios of a sweep by file name, and a command for each cell."""
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    for text, path in plan.select("_scenario", "_path").unique(maintain_order=True).rows():
        stem = Path(path).name if path else "scenario.toml"
        name = next(n for n in (stem, *(f"{i}-{stem}" for i in range(2, 10_000))) if n not in files)
        files[name] = text
        names[text] = name
    first = plan.unique(["_scenario", "_changes"], keep="first", maintain_order=True)
    commands = ["# One line a cell, with its first seed; the table of runs has the others."]
    rows = first.select("_scenario", "_changes", "seed").rows()
    for text, changes, seed in rows[:MOST_COMMANDS]:
        given = json.loads(changes)
        words = ["gargalo", "run", names[text], "--seed", str(seed)]
        for key, value in given.items():
            words += ["--set", f"{key}={value}"]
        commands.append(shlex.join(words))
    if len(rows) > MOST_COMMANDS:
        commands.append(f"# … and {len(rows) - MOST_COMMANDS} more cells")
    return files, commands
