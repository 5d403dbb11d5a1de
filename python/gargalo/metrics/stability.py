"""How much rates vary over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gargalo.metrics._numbers import array, finite
from gargalo.metrics.convergence import throughput_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.metrics._numbers import Numbers


def coefficient_of_variation(values: Numbers, *, ddof: int = 1) -> float | None:
    """Standard deviation over mean: oscillation of a rate over time, or spread over flows.

    Formula: s / m, s with n - ddof in the denominator (1: sample, as in the engine's summary; 0:
    population, for which Jain's index is 1 / (1 + c²)).
    Unit: none. None: fewer than ddof + 1 values, or mean zero.
    Source: RFC 5166 section 2.2.2; Floyd, Handley, Padhye, Widmer, SIGCOMM 2000, section 4.1.2.
    """
    x = array(values)
    if x.size <= ddof or x.mean() == 0:
        return None
    return finite(x.std(ddof=ddof) / x.mean())


def aggregate_variation(
    flow_samples: pl.DataFrame,
    scales_s: Sequence[float] = (0.1, 1.0, 10.0),
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> dict[float, float | None]:
    """Coefficient of variation of the summed rate of all flows, on several time scales.

    Formula: `coefficient_of_variation` of Σ over flows of `throughput_bins`, for each width of bin.
    Unit: none; keys are the widths in seconds. None: fewer than two bins.
    Source: RFC 5166 section 2.2.2 (several time scales, and the aggregate at the bottleneck).
    """
    found: dict[float, float | None] = {}
    for width in scales_s:
        bins = throughput_bins(flow_samples, width, start_s=start_s, end_s=end_s)
        total = bins.group_by("time_s").agg(pl.col("throughput_bps").sum()).sort("time_s")
        found[width] = coefficient_of_variation(total["throughput_bps"])
    return found


def smoothness(throughput_bps: Numbers) -> float | None:
    """Largest cut of a rate from one bin to the next, as a share of the rate before.

    Formula: max over k of (xₖ - xₖ₊₁) / xₖ, at least 0. Choose bins of one round-trip time.
    Unit: none, 0 to 1. None: fewer than two bins, or no rate at all.
    Source: RFC 5166 section 2.2.1.
    """
    x = array(throughput_bps)
    before, after = x[:-1], x[1:]
    busy = before > 0
    if not busy.any():
        return None
    return finite(max(0.0, float(((before - after)[busy] / before[busy]).max())))


def aggressiveness(throughput_bps: Numbers, bin_s: float) -> float | None:
    """Largest increase of a rate from one bin to the next.

    Formula: max over k of (xₖ₊₁ - xₖ) / b, at least 0. Choose bins of one round-trip time.
    Unit: bit/s². None: fewer than two bins.
    Source: RFC 5166 section 2.2.1 (there in packets per second in one round-trip time).
    """
    x = array(throughput_bps)
    return finite(max(0.0, float(np.diff(x).max()) / bin_s)) if x.size > 1 and bin_s > 0 else None
