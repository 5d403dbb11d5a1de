"""Throughput over time, and how long flows take to reach their fair share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gargalo.metrics._numbers import array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gargalo.metrics._numbers import Numbers

BINS = {"flow": pl.UInt64, "time_s": pl.Float64, "throughput_bps": pl.Float64}
# Bins count as whole and times as equal within this share of a bin.
SLACK = 1e-6


def delivered_at(
    flow_samples: pl.DataFrame,
    times_s: Sequence[float] | NDArray[np.float64],
    *,
    flows: pl.DataFrame | None = None,
    column: str = "delivered_bytes",
) -> dict[int, NDArray[np.float64]]:
    """Data each flow had delivered at given instants (byte), linear between samples.

    Before its first sample a flow rises from zero within one sampling interval, after its last it
    rests. With the table `flows` its exact start, end and total replace these guesses. With another
    `column` it is the data counted there, and where that is missing the data delivered.
    """
    at = np.asarray(times_s, dtype=np.float64)
    known = [c for c in (column, "delivered_bytes") if c in flow_samples.columns]
    had = flow_samples[known[0]]
    for other in known[1:] if had.null_count() else ():
        had = had.fill_null(flow_samples[other])
    flow, times = flow_samples["flow"].to_numpy(), flow_samples["time_s"].to_numpy()
    order = np.lexsort((times, flow))
    flow, times, data = flow[order], times[order], had.cast(pl.Float64).to_numpy()[order]
    numbers, begins = np.unique(flow, return_index=True)
    steps = np.diff(times)[np.diff(flow) == 0]
    ends: dict[int, tuple[float, float, float]] = {}
    if flows is not None:
        exact = (flows[c].to_list() for c in ("start_s", "end_s", "delivered_bytes"))
        ends = dict(zip(flows["id"].to_list(), zip(*exact, strict=True), strict=True))
    curves: dict[int, NDArray[np.float64]] = {}
    interval = float(np.median(steps)) if steps.size else None
    parts = zip(np.split(times, begins[1:]), np.split(data, begins[1:]), strict=True)
    for number, (t, d) in zip(numbers.tolist(), parts if numbers.size else (), strict=True):
        if number in ends:
            start, end, total = ends[number]
            inside = (t > start) & (t < end)
            t = np.concatenate(([start], t[inside], [end]))
            # A flow that is stopped may have received more than it delivered.
            last = max([float(total), *d[inside][-1:]])
            d = np.concatenate(([0.0], d[inside], [last]))
        elif d[0] > 0:
            begin = 0.0 if interval is None else max(0.0, float(t[0]) - interval)
            t, d = np.concatenate(([begin], t)), np.concatenate(([0.0], d))
        curves[number] = np.interp(at, t, d)
    return curves


def throughput_bins(
    flow_samples: pl.DataFrame,
    bin_s: float = 1.0,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
    flows: pl.DataFrame | None = None,
    column: str = "delivered_bytes",
) -> pl.DataFrame:
    """Rate of delivery of each flow in consecutive bins of time.

    Formula: xₖ = 8 · (D(t₀ + (k+1)·b) - D(t₀ + k·b)) / b, D being data delivered to the
    application, in order, linear between samples; with `column="received_bytes"` data that has
    reached the receiver, in order or not, so that a filled hole does not count at once. Every flow
    has every bin; a last, partial bin is left out.
    Unit: bit/s. Returns columns `flow`, `time_s` (beginning of the bin), `throughput_bps`. Give
    `flows` as well to take exact starts and ends of flows into account.
    Source: RFC 5166 section 2.2.2 (rates over several time scales); 1 s bins as usual in the field.

    Raises:
        ValueError: the bin has no width.

    """
    if not bin_s > 0:
        msg = f"bins must be wider than 0 s, not {bin_s}"
        raise ValueError(msg)
    if flow_samples.is_empty():
        return pl.DataFrame(schema=BINS)
    last = float(flow_samples["time_s"].max()) if end_s is None else end_s  # type: ignore[arg-type]
    count = max(int(np.floor((last - start_s) / bin_s + SLACK)), 0)
    edges = start_s + bin_s * np.arange(count + 1, dtype=np.float64)
    curves = delivered_at(flow_samples, edges, flows=flows, column=column)
    return pl.DataFrame(
        {
            "flow": np.repeat(np.array(list(curves), dtype=np.uint64), count),
            "time_s": np.tile(edges[:-1], len(curves)),
            "throughput_bps": np.concatenate([np.diff(d) * 8 / bin_s for d in curves.values()]),
        },
        schema=BINS,
    )


def _held(good: NDArray[np.bool_], bins: int) -> int | None:
    """Find the first bin from which `bins` bins in a row are good."""
    run = 0
    for k, ok in enumerate(good):
        run = run + 1 if ok else 0
        if run >= bins:
            return k - bins + 1
    return None


def _after(
    times_s: NDArray[np.float64], good: NDArray[np.bool_], start_s: float, hold_s: float
) -> float | None:
    bin_s = float(times_s[1] - times_s[0]) if times_s.size > 1 else 1.0
    later = times_s >= start_s - SLACK * bin_s
    needed = max(1, int(np.ceil(hold_s / bin_s - SLACK)))
    first = _held(good[later], needed)
    return None if first is None else float(times_s[later][first] + bin_s - start_s)


def convergence_time(
    bins: pl.DataFrame,
    flow: int,
    target_bps: float,
    *,
    start_s: float = 0.0,
    tolerance: float = 0.0,
    hold_s: float = 0.0,
) -> float | None:
    """Time a flow needs, from its start, to reach its fair share.

    Formula: end of the first bin k with xₖ >= (1 - tolerance) · target (and of which the bins of the
    next `hold_s` seconds say so too), less `start_s`. The resolution is the width of a bin, so the
    least value is one bin. `fair_share` gives the target; `throughput_bins` the bins.
    Unit: s. None: the flow does not get there before the bins end.
    Source: RFC 5166 section 2.3.3; usual with 1 s bins and the target C·(1 - b)/N.
    """
    rows = bins.filter(pl.col("flow") == flow).sort("time_s")
    good = rows["throughput_bps"].to_numpy() >= (1 - tolerance) * target_bps
    return _after(rows["time_s"].to_numpy(), good, start_s, hold_s)


def fairness_time(
    bins: pl.DataFrame,
    *,
    flows: Sequence[int] | None = None,
    epsilon: float = 0.1,
    start_s: float = 0.0,
    hold_s: float = 0.0,
) -> float | None:
    """Time from an instant (the start of the last flow, say) until an allocation is ε-fair.

    Formula: end of the first bin with min(x) / max(x) >= 1 - ε, less `start_s`. For two flows this
    is the δ-fair convergence time of RFC 5166 with shares (1+δ)/2 and (1-δ)/2, ε = 2δ/(1+δ).
    Unit: s. None: not before the bins end.
    Source: RFC 5166 section 2.3.3; Bansal, Balakrishnan, Floyd, Shenker, SIGCOMM 2001 (δ-fair).
    """
    times, rates = bins["time_s"].to_numpy(), bins["throughput_bps"].to_numpy()
    if flows is not None:
        chosen = np.isin(bins["flow"].to_numpy(), list(flows))
        times, rates = times[chosen], rates[chosen]
    if not times.size:
        return None
    order = np.argsort(times, kind="stable")
    times, begins = np.unique(times[order], return_index=True)
    low, high = (f.reduceat(rates[order], begins) for f in (np.minimum, np.maximum))
    return _after(times, (high > 0) & (low >= (1 - epsilon) * high), start_s, hold_s)


def responsiveness(throughput_bps: Numbers, bin_s: float, *, change: int = 0) -> float | None:
    """Time after a change until a flow's rate has halved.

    Formula: end of the first bin k >= c with xₖ <= x_{c-1} / 2, less the beginning of bin c.
    Unit: s. None: it does not halve, or nothing precedes the change.
    Source: RFC 5166 section 2.2.1 (there in round-trip times of persistent congestion).
    """
    x = array(throughput_bps)
    if not 0 < change < x.size:
        return None
    halved = np.flatnonzero(x[change:] <= x[change - 1] / 2)
    return float((halved[0] + 1) * bin_s) if halved.size else None
