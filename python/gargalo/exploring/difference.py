"""The first instant at which two runs differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from gargalo.results import Run

TABLES = {
    "events": ("flow", "kind"),
    "flow_samples": ("flow",),
    "link_samples": ("link", "direction"),
    "subflow_samples": ("flow", "subflow"),
}
"""Tables with a time, and the columns that tell their rows of one instant apart."""


@dataclass(frozen=True)
class Difference:
    """Where two runs part."""

    time_s: float
    table: str
    subject: str
    """The flow or link, by its name."""
    column: str
    first: Any
    """The value in the first run; None if it has no such row."""
    second: Any

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return asdict(self)


def difference(a: Run, b: Run) -> Difference | None:
    """Return where two runs first differ in what both recorded; None if they do not."""
    found = [d for name, keys in TABLES.items() if (d := _of_table(a, b, name, keys)) is not None]
    return min(found, key=lambda d: d.time_s, default=None)


def _of_table(a: Run, b: Run, name: str, keys: tuple[str, ...]) -> Difference | None:
    left, right = getattr(a, name), getattr(b, name)
    if left.is_empty() or right.is_empty():
        return None
    on = ["time_s", *keys, "nth"]
    # Several events of a kind may have one instant.
    count = pl.int_range(pl.len()).over("time_s", *keys).alias("nth")
    left, right = left.with_columns(count), right.with_columns(count)
    columns = [c for c in left.columns if c not in on]
    both = left.join(right, on=on, how="full", coalesce=True, suffix="_of_b", nulls_equal=True)
    missing = pl.col(f"{columns[0]}_of_b").is_null() & pl.col(columns[0]).is_null()
    differs = pl.any_horizontal(pl.col(c).ne_missing(pl.col(f"{c}_of_b")) for c in columns)
    rows = both.filter(differs & ~missing).sort("time_s", maintain_order=True).head(1).to_dicts()
    if not rows:
        return None
    row = rows[0]
    column = next(c for c in columns if row[c] != row[f"{c}_of_b"])
    subject = (
        f"{row['link']} {row['direction']}" if "link" in row else a.names.get(row["flow"], str(row["flow"]))
    )  # fmt: skip
    return Difference(row["time_s"], name, subject, column, row[column], row[f"{column}_of_b"])
