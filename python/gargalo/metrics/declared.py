"""The figures of every run: their names, and the least and the greatest value that each can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.metrics.intervals import ANY, POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def bounds_of(name: str, more: Mapping[str, Bounds] | None = None) -> Bounds:
    """Return the declared bounds of a figure: those in `more`, else a run's own; undeclared it may be anything."""
    return (more or {}).get(name, FIGURES.get(name, ANY))
