"""How long transfers take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo.metrics._numbers import finite, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# Upper ends (byte) of the classes of sizes: a window's worth, web objects, files, the rest.
SIZE_EDGES = (15_000.0, 100_000.0, 1_000_000.0, 10_000_000.0)


def size_class(edges: Sequence[float] = SIZE_EDGES, column: str = "delivered_bytes") -> pl.Expr:
    """Class of a flow by its size, for `completion_times(..., by=...)`.

    Formula: the first edge the size does not exceed; the name is that edge as `<=100kB`.
    Unit: none (text).
    Source: RFC 9743 section 5.1.5 (short flows apart from long ones); draft-irtf-iccrg-tcpeval-01 (results by file
        size).
    """

    def text(edge: float) -> str:
        for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
            if edge >= factor:
                return f"{edge / factor:g}{unit}"
        return f"{edge:g}B"

    ordered = sorted(edges)
    classes = pl.lit(f">{text(ordered[-1])}")
    for edge in reversed(ordered):
        classes = pl.when(pl.col(column) <= edge).then(pl.lit(f"<={text(edge)}")).otherwise(classes)
    return classes.alias("size")


def completion_times(
    flows: pl.DataFrame,
    *,
    by: Sequence[str | pl.Expr] = (),
    percentiles: Sequence[float] = (50, 95, 99),
) -> pl.DataFrame:
    """Flow completion times, from the start of a flow to its last byte delivered.

    Formula: mean, greatest and percentiles (linear interpolation) over the flows that completed; the
    share that did not is told beside them, because leaving the slowest out flatters.
    Unit: s. Returns a row per group of `by`: `flows`, `completed`, `unfinished_share`,
    `completion_mean_s`, `completion_p50_s`, …, `completion_max_s`.
    Source: Dukkipati, McKeown, CCR 36(1), 2006; RFC 7928 section 2.1; RFC 5166 section 2.1.1 (transfer times).
    """
    time = pl.col("completion_s")
    figures = [
        pl.len().cast(pl.Int64).alias("flows"),
        time.count().cast(pl.Int64).alias("completed"),
        (1 - time.count() / pl.len()).alias("unfinished_share"),
        time.mean().alias("completion_mean_s"),
        *(
            time.quantile(p / 100, interpolation="linear").alias(f"completion_{name_of(p)}_s")
            for p in percentiles
        ),
        time.max().alias("completion_max_s"),
    ]
    if not by:
        return flows.select(figures)
    keys = [pl.col(key) if isinstance(key, str) else key for key in by]
    named = [key.meta.output_name() for key in keys]
    return flows.group_by(keys, maintain_order=True).agg(figures).sort(named)


def slowdown(completion_s: float, size_bytes: float, rate_bps: float, rtt_s: float) -> float | None:
    """Completion time over the least possible on the empty path.

    Formula: T / (RTT + 8·S / C), one round-trip time for the request and the rate C for the data.
    Unit: none; 1 is ideal. None: there is no rate.
    Source: Alizadeh and others, "pFabric", SIGCOMM 2013 (normalised completion time).
    """
    if rate_bps <= 0:
        return None
    return finite(completion_s / (rtt_s + 8 * size_bytes / rate_bps))
