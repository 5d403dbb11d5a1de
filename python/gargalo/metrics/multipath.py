"""Several paths: what each carries, what they gain, what waits for reordering."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo.metrics._numbers import array, finite, name_of, quantile, within
from gargalo.metrics.convergence import throughput_bins
from gargalo.names import with_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.metrics._numbers import Numbers

PATH_BINS = {
    "flow": pl.UInt64,
    "path": pl.String,
    "time_s": pl.Float64,
    "throughput_bps": pl.Float64,
}


def path_shares(subflows: pl.DataFrame) -> pl.DataFrame:
    """Share of each path in what reached the receiver of a flow.

    Formula: Bᵢ / Σ B, with Bᵢ the data delivered on all subflows of path i, copies included.
    Unit: none. Returns columns `flow`, `path`, `delivered_bytes`, `share`. None: nothing was delivered.
    Source: usual in the field, as in Paasch, Khalili, Bonaventure, CoNEXT 2013.
    """
    total = pl.col("delivered_bytes").sum().over("flow")
    return (
        with_path(subflows)
        .group_by("flow", "path", maintain_order=True)
        .agg(pl.col("delivered_bytes").sum())
        .with_columns(
            pl.when(total > 0).then(pl.col("delivered_bytes") / total).alias("share"),
        )
    )


def path_bins(
    subflow_samples: pl.DataFrame,
    subflows: pl.DataFrame,
    bin_s: float = 1.0,
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> pl.DataFrame:
    """Rate of delivery of each flow by each path in consecutive bins of time.

    Formula: as `throughput_bins`, with D the data that reached the receiver on all subflows of the path,
    copies included.
    Unit: bit/s. Returns columns `flow`, `path`, `time_s` (beginning of the bin), `throughput_bps`.
    Source: RFC 5166 section 2.2.2.

    Raises:
        ValueError: the bin has no width.

    """
    # For the bins each subflow counts as a flow.
    keys = with_path(subflows).with_row_index("id").with_columns(pl.col("id").cast(pl.UInt64))
    samples = subflow_samples.join(keys.select("id", "flow", "subflow"), on=["flow", "subflow"])
    last = subflow_samples["time_s"].max()
    ends = keys.select(
        "id",
        pl.col("opened_s").alias("start_s"),
        pl.col("closed_s").fill_null(pl.lit(last, pl.Float64)).alias("end_s"),
        "delivered_bytes",
    ).filter(pl.col("end_s") >= pl.col("start_s"))
    bins = throughput_bins(
        samples.select(pl.col("id").alias("flow"), "time_s", "delivered_bytes"),
        bin_s,
        start_s=start_s,
        end_s=end_s,
        flows=ends,
    )
    if bins.is_empty():
        return pl.DataFrame(schema=PATH_BINS)
    return (
        bins.rename({"flow": "id"})
        .join(keys.select("id", "flow", "path"), on="id", maintain_order="left")
        .group_by("flow", "path", "time_s", maintain_order=True)
        .agg(pl.col("throughput_bps").sum())
        .cast({"flow": pl.UInt64})
    )


def aggregation_benefit(goodput_bps: float, path_goodput_bps: Numbers) -> float | None:
    """What several paths gain over the best of them.

    Formula: (g - m) / (Σc - m) where g >= m, else (g - m) / m, with c the goodput of a single-path
    transport on each path alone and m the greatest of these. Range: 1 is the sum of all paths, 0 the
    best alone, -1 nothing at all.
    Unit: none. None: fewer than two paths carry data.
    Source: Kaspar, PhD thesis, University of Oslo, 2012; Paasch, Khalili, Bonaventure, CoNEXT 2013.
    """
    alone = array(path_goodput_bps)
    if (alone > 0).sum() < 2:
        return None
    best = float(alone.max())
    gain = goodput_bps - best
    scale = float(alone.sum()) - best if gain >= 0 else best
    return finite(gain / scale)


def out_of_order_percentiles(
    flow_samples: pl.DataFrame,
    flow: int,
    *,
    percentiles: Sequence[float] = (50, 95, 100),
    start_s: float = 0.0,
    end_s: float | None = None,
) -> dict[str, float | None]:
    """Percentiles of the data that waits at the receiver of a flow for data before it, over time.

    Formula: percentile with linear interpolation (Hyndman and Fan 1996, definition 7) of
    `out_of_order_bytes` at the equidistant sampling instants of the window.
    Unit: byte; keys are `out_of_order_p50_bytes` and so on. None: the window has no sample.
    Source: RFC 5236 section 5 (reorder buffer-occupancy density, there in packets).
    """
    rows = within(flow_samples.filter(pl.col("flow") == flow), start_s, end_s)
    waiting = rows["out_of_order_bytes"].drop_nulls().to_numpy()
    return {f"out_of_order_{name_of(p)}_bytes": quantile(waiting, p) for p in percentiles}


def duplicate_share(duplicate_bytes: float, delivered_bytes: float) -> float | None:
    """Share of what reached the receiver that it had already: the price of redundancy and reinjection.

    Formula: duplicates / (delivered + duplicates).
    Unit: none, 0 to 1. None: nothing arrived.
    Source: RFC 5166 section 2.4 (useful data over all data), at the receiver.
    """
    arrived = delivered_bytes + duplicate_bytes
    return finite(duplicate_bytes / arrived) if arrived > 0 else None
