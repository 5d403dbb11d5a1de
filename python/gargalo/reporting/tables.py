"""A data frame as rows of a page: units, intervals, ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.quantities import SPACE, number, quantity, spread

if TYPE_CHECKING:
    from gargalo.quantities import Quantity
    from gargalo.reporting.model import TableBlock

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
    """In SI, as `exact` writes it; empty if missing."""
    text: str
    interval: str = ""
    low: str = ""
    """Ends of the interval, in SI as well."""
    high: str = ""
    rating: str = ""

    @property
    def is_shown(self) -> bool:
        """Whether the text says the value, so that the page need not have it twice; missing ones are a dash."""
        told = self.text.replace(SPACE, "") == self.raw and not self.interval
        return not self.rating and (told or not self.raw)


@dataclass(frozen=True)
class View:
    """A table ready for the template."""

    columns: list[Column]
    rows: list[list[Cell]]
    algorithm: int | None = None
    """Number of the column that names algorithms, if there is one."""


def algorithm_column(block: TableBlock) -> str | None:
    """Return the column that names algorithms, if there is one."""
    names = block.frame.columns
    if block.algorithm is not None:
        if block.algorithm not in names:
            msg = f'table "{block.title}" has no column "{block.algorithm}"; there are: {", ".join(names)}'
            raise ValueError(msg)
        return block.algorithm
    return next((c for c in ALGORITHM_COLUMNS if c in names), None)


def view(block: TableBlock) -> View:
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
    place = next((i for i, c in enumerate(columns) if c.name == key), None)
    return View(
        columns, [[_cell(row, c) for c in columns] for row in frame.iter_rows(named=True)], place
    )


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
    scaled = value if column.factor == 1 else value / column.factor
    interval, low, high = "", None, None
    if column.low is not None and column.high is not None:
        low, high = row[column.low], row[column.high]
        ends = [None if e is None else e / column.factor for e in (low, high)]
        interval = spread(scaled, *ends)
    ends_written = ["" if e is None else exact(e) for e in (low, high)]
    return Cell(exact(value), number(scaled), interval, *ends_written)


def exact(value: float) -> str:
    """Write a number as a page sorts and exports it.

    With six significant digits, large and whole ones as whole numbers.

    The files of tables beside a page have all digits.
    """
    if isinstance(value, int):
        return str(value)
    whole = value.is_integer() or abs(value) >= 1e5
    return str(round(value)) if whole and abs(value) < 1e15 else f"{value:.6g}"


def csv(block: TableBlock) -> str:
    """Write a table as CSV, in SI with all digits."""
    plain = block.frame.with_columns(pl.col(pl.Boolean).cast(pl.String))
    return plain.write_csv()
