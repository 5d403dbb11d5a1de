"""Names and numbers for readers: units from column names, prefixes, significant digits."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ENDINGS = {"bps": "bit/s", "s": "s", "bytes": "byte", "packets": "packets"}
PREFIXES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "byte": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
# Quantities as scenarios write them, in SI.
FACTORS = {
    "bit/s": ("bit/s", 1.0), "kbit/s": ("bit/s", 1e3), "Mbit/s": ("bit/s", 1e6), "Gbit/s": ("bit/s", 1e9),
    "ns": ("s", 1e-9), "us": ("s", 1e-6), "µs": ("s", 1e-6), "ms": ("s", 1e-3), "s": ("s", 1.0), "min": ("s", 60.0),
    "B": ("byte", 1.0), "kB": ("byte", 1e3), "MB": ("byte", 1e6), "GB": ("byte", 1e9),
    "packets": ("packets", 1.0), "BDP": ("BDP", 1.0), "%": ("", 0.01),
}  # fmt: skip
# Titles of columns whose names are not clear by themselves.
NAMES = {
    "jain_index": "Jain's index",
    "goodput_cov": "variation of goodput",
    "ce_marks": "CE marks",
    "srtt": "smoothed RTT",
}
SHARES = ("utilization", "loss_rate", "retransmission_rate", "share")
"""Figures that are written in percent where there is room for the sign."""
QUANTITY = re.compile(r"^\s*([0-9.]+(?:[eE][+-]?\d+)?)\s*(\D.*?)?\s*$")
SPACE = "\u202f"


@dataclass(frozen=True)
class Quantity:
    """How a column is named and scaled."""

    words: str
    unit: str
    """With its prefix; empty if there is none."""
    factor: float
    """SI value of one such unit."""

    @property
    def title(self) -> str:
        """Name with unit, for a heading or an axis."""
        return f"{self.words} ({self.unit})" if self.unit else self.words


def quantity(column: str, values: Iterable[float | None] = (), unit: str | None = None) -> Quantity:
    """Find name, unit and prefix of a column from its name and its greatest value."""
    words = column
    if unit is None:
        stem, _, ending = column.rpartition("_")
        unit = ENDINGS.get(ending, "") if stem else ""
        words = stem if unit else column
    elif "_" in column and ENDINGS.get(column.rpartition("_")[2]) == unit:
        words = column.rpartition("_")[0]
    words = NAMES.get(words, re.sub(r"\brtt\b", "RTT", words.replace("_", " ")))
    if unit not in PREFIXES:
        return Quantity(words, unit, 1.0)
    greatest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)
    scales = PREFIXES[unit]
    fitting = next((s for s in scales if greatest >= s[0]), scales[-1] if greatest else scales[0])
    return Quantity(words, fitting[1], fitting[0])


def decimal(value: float, digits: int = 6) -> str:
    """Write a number with at most so many significant digits, without an exponent: for numbers in a text."""
    text = f"{value:.{digits}g}"
    return f"{Decimal(text):f}" if "e" in text else text


def number(value: float | None) -> str:
    """Write a number with at most four significant digits, whole numbers in full."""
    if value is None:
        return "–"  # noqa: RUF001 (a dash for "not known")
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", SPACE)
    if not math.isfinite(value):
        return str(value)
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.3e}" if abs(value) < 1e-3 else f"{value:,.0f}".replace(",", SPACE)


def spread(value: float, low: float | None, high: float | None) -> str:
    """Write an interval: ± its half width if it is even about the value, else its ends."""
    if low is None or high is None:
        return "interval unknown"
    half = (high - low) / 2
    if abs(high + low - 2 * value) <= 0.05 * half:
        return f"± {half:.2g}" if half else "± 0"
    return f"{number(low)} to {number(high)}"


def measured(value: float | None, unit: str = "") -> str:
    """Write an SI value with a fitting prefix."""
    if value is None:
        return "unknown"
    if unit == "%":
        return f"{number(value * 100)} %"
    q = quantity("x", [value], unit)
    return f"{number(value / q.factor)} {q.unit}".rstrip()


def si(value: object) -> tuple[float, str] | None:
    """Read a label of a sweep as a number in SI and its unit; None if it is only a name."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value), ""
    found = QUANTITY.match(str(value))
    if not found:
        return None
    unit = found[2] or ""
    if unit and unit not in FACTORS:
        return None
    si_unit, factor = FACTORS.get(unit, ("", 1.0))
    try:
        return float(found[1]) * factor, si_unit
    except ValueError:
        return None
