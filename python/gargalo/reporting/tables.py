"""A data frame as rows of a page: units, intervals, ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.reporting.quantities import number, quantity, spread

if TYPE_CHECKING:
    from collections.abc import Collection

    from gargalo.reporting.model import TableBlock
    from gargalo.reporting.quantities import Quantity

ALGORITHM_COLUMNS = ("congestion", "algorithm", "protocol")
RATINGS = {"very good": "++", "good": "+", "regular": "o", "bad": "\u2212"}


@dataclass(frozen=True)
class Column:
    """A column as shown."""

    name: str
    """Of the data frame, for the CSV file."""
    title: str
    numeric: bool
    quantity: Quantity
    factor: float
    low: str | None = None
    """Column with the lower ends of intervals."""
    high: str | None = None


@dataclass(frozen=True)
class Cell:
    """A value as shown, and as sorted."""

    raw: str
    """In SI, all digits; empty if missing."""
    text: str
    interval: str = ""
    low: str = ""
    """Ends of the interval in SI, all digits."""
    high: str = ""
    rating: str = ""


@dataclass(frozen=True)
class Row:
    """A row and the algorithm it belongs to."""

    cells: list[Cell]
    algorithm: str = ""


@dataclass(frozen=True)
class View:
    """A table ready for the template."""

    columns: list[Column]
    rows: list[Row]


def algorithm_column(block: TableBlock) -> str | None:
    """Return the column that names algorithms, if there is one."""
    names = block.frame.columns
    if block.algorithm is not None:
        if block.algorithm not in names:
            msg = f'table "{block.title}" has no column "{block.algorithm}"; there are: {", ".join(names)}'
            raise ValueError(msg)
        return block.algorithm
    return next((c for c in ALGORITHM_COLUMNS if c in names), None)


def view(block: TableBlock, algorithms: Collection[str]) -> View:
    """Prepare a table for the page."""
    frame = block.frame
    names = frame.columns
    ends = {
        f"{n}{end}"
        for n in names
        if {f"{n}_low", f"{n}_high"} <= set(names)
        for end in ("_low", "_high")
    }
    columns = [_column(block, n, ends) for n in names if n not in ends]
    key = algorithm_column(block)
    rows = []
    for row in frame.iter_rows(named=True):
        named = str(row[key]) if key is not None and row[key] is not None else ""
        cells = [_cell(row, c) for c in columns]
        rows.append(Row(cells, named if named in algorithms else ""))
    return View(columns, rows)


def _column(block: TableBlock, name: str, ends: set[str]) -> Column:
    series = block.frame[name]
    numeric = series.dtype.is_numeric()
    values = series.drop_nulls().to_list() if numeric else []
    q = quantity(name, values, block.units.get(name))
    if not numeric:
        # Text has no unit.
        q = quantity(name, (), "")
    bounds = (f"{name}_low", f"{name}_high") if f"{name}_low" in ends else (None, None)
    return Column(name, q.title, numeric, q, q.factor, *bounds)


def _cell(row: dict[str, Any], column: Column) -> Cell:
    value = row[column.name]
    if value is None:
        return Cell("", "–")  # noqa: RUF001
    if isinstance(value, bool):
        return Cell(str(value), "yes" if value else "no")
    if not column.numeric:
        text = str(value)
        return Cell(text, text, rating=RATINGS.get(text, ""))
    exact = repr(value)
    scaled = value if column.factor == 1 else value / column.factor
    interval, low, high = "", None, None
    if column.low is not None and column.high is not None:
        low, high = row[column.low], row[column.high]
        ends = [None if e is None else e / column.factor for e in (low, high)]
        interval = spread(scaled, *ends)
    written = ["" if e is None else repr(e) for e in (low, high)]
    return Cell(exact, number(scaled), interval, *written)


def csv(block: TableBlock) -> str:
    """Write a table as CSV, in SI with all digits."""
    plain = block.frame.with_columns(pl.col(pl.Boolean).cast(pl.String))
    return plain.write_csv()
