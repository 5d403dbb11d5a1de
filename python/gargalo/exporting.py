"""Results as CSV, a file for each table, for programs that do not read Parquet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from gargalo import _core, results
from gargalo.quantities import si

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from gargalo.sweeps import Sweep

ENDINGS = {"bit/s": "bps", "s": "s", "byte": "bytes", "packets": "packets", "BDP": "bdp"}
"""What the column of a label in SI ends with, by its unit."""
RESULTS, CELLS = "results", "cells"
SUMMARY = "summary"

Tables: TypeAlias = "Mapping[str, Callable[[], Iterator[pl.DataFrame]]]"
"""The parts of each table, by its name."""


def tables_of_run(directory: Path) -> Tables:
    """Return the tables of a run: those that were recorded, and `summary` with its figures in one row.

    Raises:
        FileNotFoundError: The directory has no results.
        RunError: A file is not what was written.

    """
    run = results.load(directory)
    found: dict[str, Callable[[], Iterator[pl.DataFrame]]] = {}
    facts = {**run.info, **run.summary}
    found[SUMMARY] = lambda: iter([flat([facts])])
    for name in results.TABLES:
        if (directory / f"{name}.parquet").is_file():
            found[name] = partial(parts, directory, name)
        elif name == "links" and run.links:
            # Older results have them beside the tables.
            found[name] = lambda: iter([flat(run.links)])
    return found


def parts(directory: Path, table: str, rows: int = 200_000) -> Iterator[pl.DataFrame]:
    """Yield a table of a run in parts of so many rows: it need not fit into memory.

    Raises:
        RunError: The file is not what was written.

    """
    file = directory / f"{table}.parquet"
    _core.verify(directory, [file.name])
    try:
        scan = pl.scan_parquet(file)
        count = int(scan.select(pl.len()).collect().item())
        for at in range(0, max(count, 1), rows):
            yield scan.slice(at, rows).collect()
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as e:
        raise results.damaged(file, e) from None


def tables_of_sweep(sweep: Sweep) -> Tables:
    """Return the tables of a sweep.

    `results` has a row per run, `cells` the mean and the interval of each figure and cell, and the kept tables have
    the labels of their runs. A label that is a quantity is there as it is written and, beside it, in SI.

    Raises:
        StoreError: The store is damaged.

    """
    from gargalo.sweeps.rows import RUNS

    labels = sweep.labels
    found: dict[str, Callable[[], Iterator[pl.DataFrame]]] = {
        RESULTS: lambda: iter([in_si(sweep.frame(), labels)]),
        CELLS: lambda: iter([in_si(sweep.summary(), labels)]),
    }
    for name in sweep.store.tables():
        if name != RUNS and not name.startswith("measures-"):
            found[name] = partial(kept, sweep, name)
    return found


def kept(sweep: Sweep, table: str) -> Iterator[pl.DataFrame]:
    """Yield a kept table of a sweep in parts, with its labels in SI as well."""
    every = sweep.plan.select(sweep.labels)
    for part in sweep.batches(table):
        yield in_si(part, sweep.labels, every)


def in_si(frame: pl.DataFrame, labels: list[str], plan: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return a table with a column in SI beside each label whose values are quantities with a unit.

    Args:
        frame: The table, or a part of it.
        labels: Of the sweep; a column has its name, or that with "sweep." before it where another has the name.
        plan: All values of the labels, by which all parts have the same columns.

    """
    for label in labels:
        own = f"sweep.{label}" if f"sweep.{label}" in frame.columns else label
        every = frame[own] if plan is None else plan[label]
        found = {v: si(v) for v in every.unique().drop_nulls()}
        numbers = {v: n[0] for v, n in found.items() if n is not None}
        units = {n[1] for n in found.values() if n is not None}
        if len(numbers) < len(found) or len(units) != 1:
            continue
        unit = units.pop()
        shares = not unit and any("%" in str(v) for v in found)
        ending = "share" if shares else ENDINGS.get(unit)
        name = f"{own}_{ending}"
        if ending is None or name in frame.columns:
            continue
        column = pl.col(own).replace_strict(numbers, return_dtype=pl.Float64).alias(name)
        place = frame.columns.index(own) + 1
        frame = frame.insert_column(place, frame.select(column).to_series())
    return frame


def flat(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a table, without what is no single value."""
    single = [
        {k: v for k, v in row.items() if not isinstance(v, (dict, list, tuple))} for row in rows
    ]
    return pl.DataFrame(single, infer_schema_length=None)


def write(tables: Tables, output: Path) -> Iterator[Path]:
    """Write each table into a file of a directory that exists; yields them as they are done.

    A file is renamed to its name when it is whole.

    Raises:
        OSError: A file cannot be written.

    """
    for name, read in tables.items():
        target = output / f"{name}.csv"
        draft = output / f".{name}.csv.part"
        try:
            with draft.open("wb") as file:
                for i, part in enumerate(read()):
                    part.write_csv(file, include_header=i == 0)
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        yield target
