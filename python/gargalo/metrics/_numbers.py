"""What the metrics share: lists of numbers, results that may be undefined, windows of time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from numpy.typing import NDArray

    Numbers: TypeAlias = pl.Series | NDArray[np.float64] | Iterable[float | None]


def array(values: Numbers) -> NDArray[np.float64]:
    """Return the numbers as an array; missing ones are left out.

    Raises:
        ValueError: a number is not finite.

    """
    found: NDArray[np.float64]
    if isinstance(values, pl.Series):
        found = values.drop_nulls().cast(pl.Float64).to_numpy()
    elif isinstance(values, np.ndarray):
        found = values.astype(np.float64).ravel()
    else:
        found = np.array([v for v in values if v is not None], dtype=np.float64)
    if not np.isfinite(found).all():
        msg = "a value is not finite: leave undefined values out or write None"
        raise ValueError(msg)
    return found


def finite(value: float | None) -> float | None:
    """Return None where a figure is undefined, as the engine does."""
    return None if value is None or not math.isfinite(value) else float(value)


def summed(counts: pl.Series) -> int | None:
    """Return the sum of a counter of flows; None if the stack of one does not report it."""
    return None if counts.null_count() else int(counts.sum())


def quantile(values: NDArray[np.float64], percent: float) -> float | None:
    """Percentile with linear interpolation (Hyndman and Fan 1996, definition 7), as the engine's."""
    return float(np.percentile(values, percent)) if values.size else None


def name_of(percent: float) -> str:
    """Write a percentile as columns name it: p50, p99.9."""
    return f"p{percent:g}"


def within(samples: pl.DataFrame, start_s: float, end_s: float | None) -> pl.DataFrame:
    """Keep the samples of a window of time: later than its start, up to its end."""
    times = samples["time_s"].to_numpy()
    if np.all(times[:-1] <= times[1:]):  # Usual: a part of the table, which is not copied.
        first = int(np.searchsorted(times, start_s, "right")) if start_s > 0 else 0
        last = len(times) if end_s is None else int(np.searchsorted(times, end_s, "right"))
        return samples.slice(first, max(last - first, 0))
    kept = samples.filter(pl.col("time_s") > start_s) if start_s > 0 else samples
    return kept if end_s is None else kept.filter(pl.col("time_s") <= end_s)


def direction_of(link_samples: pl.DataFrame, link: str, direction: str) -> pl.DataFrame:
    """Return the samples of one direction of a link, in order of time.

    Raises:
        KeyError: there is no such link direction.

    """
    chosen = (link_samples["link"] == link) & (link_samples["direction"] == direction)
    rows = link_samples if chosen.all() else link_samples.filter(chosen)
    if not rows["time_s"].is_sorted():
        rows = rows.sort("time_s")
    if rows.is_empty():
        pairs = link_samples.select("link", "direction").unique(maintain_order=True).rows()
        known = ", ".join(f"{a} {b}" for a, b in pairs[:12]) or "none"
        msg = f'no samples of link "{link}" direction "{direction}"; sampled are: {known}'
        raise KeyError(msg)
    return rows
