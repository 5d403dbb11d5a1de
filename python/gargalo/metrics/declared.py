"""The figures of every run: their names, and the least and the greatest value that each can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.metrics.intervals import ANY, POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from gargalo.metrics.intervals import Bounds

STANDARD: Mapping[str, Bounds] = {
    "goodput_bps": POSITIVE,
    "goodput_cov": POSITIVE,
    "jain_index": SHARE,
    "utilization": SHARE,
    "bottleneck": ANY,
    "loss_rate": SHARE,
    "retransmission_rate": SHARE,
    "queue_delay_mean_s": POSITIVE,
    "queue_delay_p50_s": POSITIVE,
    "queue_delay_p95_s": POSITIVE,
    "queue_delay_p99_s": POSITIVE,
    "completed_flows": POSITIVE,
    "completion_p50_s": POSITIVE,
    "completion_p95_s": POSITIVE,
    "completion_p99_s": POSITIVE,
    "packets": POSITIVE,
    "events": POSITIVE,
    "flows": POSITIVE,
    "peak_flows": POSITIVE,
    "virtual_s": POSITIVE,
}
"""What every run has; `bottleneck` is a name."""
SPECIAL: Mapping[str, Bounds] = {
    "completed_objects": POSITIVE,
    "object_completion_p50_s": POSITIVE,
    "object_completion_p95_s": POSITIVE,
    "object_completion_max_s": POSITIVE,
    "subflows": POSITIVE,
    "reinjected_packets": POSITIVE,
    "opportunistic_packets": POSITIVE,
    "copied_packets": POSITIVE,
    "duplicate_bytes": POSITIVE,
    "out_of_order_max_bytes": POSITIVE,
    "path_share_max": SHARE,
    "wall_s": POSITIVE,
    "late_p99_s": POSITIVE,
    "late_max_s": POSITIVE,
}
"""What some runs have: those with objects, over several paths, in the lab."""
FIGURES: Mapping[str, Bounds] = {**STANDARD, **SPECIAL}
USUAL = (
    "goodput_bps",
    "jain_index",
    "queue_delay_p95_s",
    "loss_rate",
    "completion_p50_s",
    "utilization",
)
"""What is shown and compared unless asked for otherwise, besides what was measured; in a narrow terminal the last
are left out."""


CEILING = "ceiling_bps"
"""The column of what the network of a run can carry for all of its flows together: no goodput is more."""


def bounds_in(name: str, rows: pl.DataFrame, more: Mapping[str, Bounds] | None = None) -> Bounds:
    """Return the bounds of a figure in some runs: goodput is no more than what their networks can carry."""
    bounds = bounds_of(name, more)
    if name != "goodput_bps":
        return bounds
    return below_ceiling(bounds, rows)


def below_ceiling(bounds: Bounds, rows: pl.DataFrame) -> Bounds:
    """Return the bounds of a rate of flows in some runs."""
    if CEILING not in rows.columns or not rows.height or rows[CEILING].null_count():
        return bounds
    return bounds[0], min(bounds[1], float(rows[CEILING].max()))  # type: ignore[arg-type]


def bounds_of(name: str, more: Mapping[str, Bounds] | None = None) -> Bounds:
    """Return the declared bounds of a figure: those in `more`, else a run's own; undeclared it may be anything."""
    return (more or {}).get(name, FIGURES.get(name, ANY))
