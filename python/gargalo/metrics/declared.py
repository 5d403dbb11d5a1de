"""The figures of every run: their names, the least and the greatest value that each can have, and which is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from gargalo.metrics.intervals import ANY, POSITIVE, SHARE
from gargalo.names import CEILING, DRAIN, ROUND_TRIP, TRANSFER

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from gargalo.metrics.intervals import Bounds

Better: TypeAlias = Literal["less", "more", "neither"]
"""Which of two values of a figure is better; `neither` where that depends on the question."""


class Declared(NamedTuple):
    """What is known of a figure by its name."""

    bounds: Bounds
    better: Better = "neither"


STANDARD: Mapping[str, Declared] = {
    "goodput_bps": Declared(POSITIVE, "more"),
    "goodput_cov": Declared(POSITIVE, "less"),
    "jain_index": Declared(SHARE, "more"),
    "utilization": Declared(SHARE, "more"),
    "bottleneck": Declared(ANY),
    "loss_rate": Declared(SHARE, "less"),
    "retransmission_rate": Declared(SHARE, "less"),
    "queue_delay_mean_s": Declared(POSITIVE, "less"),
    "queue_delay_p50_s": Declared(POSITIVE, "less"),
    "queue_delay_p95_s": Declared(POSITIVE, "less"),
    "queue_delay_p99_s": Declared(POSITIVE, "less"),
    "completed_flows": Declared(POSITIVE, "more"),
    "completion_p50_s": Declared(POSITIVE, "less"),
    "completion_p95_s": Declared(POSITIVE, "less"),
    "completion_p99_s": Declared(POSITIVE, "less"),
    "packets": Declared(POSITIVE),
    "events": Declared(POSITIVE),
    "flows": Declared(POSITIVE),
    "peak_flows": Declared(POSITIVE),
    "virtual_s": Declared(POSITIVE),
}
"""What every run has; `bottleneck` is a name."""
SPECIAL: Mapping[str, Declared] = {
    "completed_objects": Declared(POSITIVE, "more"),
    "object_completion_p50_s": Declared(POSITIVE, "less"),
    "object_completion_p95_s": Declared(POSITIVE, "less"),
    "object_completion_max_s": Declared(POSITIVE, "less"),
    "pings_sent": Declared(POSITIVE),
    "pings_answered": Declared(POSITIVE, "more"),
    "pings_lost": Declared(POSITIVE, "less"),
    "ping_duplicates": Declared(POSITIVE, "less"),
    "ping_loss": Declared(SHARE, "less"),
    "ping_rtt_min_s": Declared(POSITIVE, "less"),
    "ping_rtt_mean_s": Declared(POSITIVE, "less"),
    "ping_rtt_p50_s": Declared(POSITIVE, "less"),
    "ping_rtt_p95_s": Declared(POSITIVE, "less"),
    "ping_rtt_max_s": Declared(POSITIVE, "less"),
    "ping_rtt_mdev_s": Declared(POSITIVE, "less"),
    "media_frames": Declared(POSITIVE),
    "media_frames_completed": Declared(POSITIVE, "more"),
    "media_frame_delay_p50_s": Declared(POSITIVE, "less"),
    "media_frame_delay_p95_s": Declared(POSITIVE, "less"),
    "media_frame_delay_max_s": Declared(POSITIVE, "less"),
    "subflows": Declared(POSITIVE),
    "reinjected_packets": Declared(POSITIVE),
    "opportunistic_packets": Declared(POSITIVE),
    "copied_packets": Declared(POSITIVE),
    "duplicate_bytes": Declared(POSITIVE, "less"),
    "out_of_order_max_bytes": Declared(POSITIVE, "less"),
    "path_share_max": Declared(SHARE),
    "wall_s": Declared(POSITIVE),
    "late_p99_s": Declared(POSITIVE, "less"),
    "late_max_s": Declared(POSITIVE, "less"),
}
"""What some runs have: those with objects, with pings, with calls, over several paths, in the lab."""
FIGURES: Mapping[str, Declared] = {**STANDARD, **SPECIAL}
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


class Limit(NamedTuple):
    """What the network of a run says of figures, besides their declared bounds."""

    column: str
    """Of the rows of runs; null where it is not known."""
    lower: bool
    """Whether it is the least value, and not the greatest."""
    figures: tuple[str, ...]


_STATISTICS = ("min", "mean", "p50", "p95", "p99", "max")
LIMITS = (
    Limit(CEILING, False, ("goodput_bps",)),
    Limit(DRAIN, False, tuple(f"queue_delay_{s}_s" for s in _STATISTICS)),
    Limit(ROUND_TRIP, True, tuple(f"{n}_{s}_s" for n in ("rtt", "ping_rtt") for s in _STATISTICS)),
    Limit(TRANSFER, True, tuple(f"completion_{s}_s" for s in _STATISTICS)),
)
"""All of them; a figure has one at most."""
NETWORK = tuple(limit.column for limit in LIMITS)
"""Their columns."""
_LIMITS = {figure: limit for limit in LIMITS for figure in limit.figures}


def bounds_in(name: str, rows: pl.DataFrame, more: Mapping[str, Bounds] | None = None) -> Bounds:
    """Return the bounds of a figure in some runs: those declared, and what their networks allow."""
    bounds = bounds_of(name, more)
    return within(_LIMITS[name], bounds, rows) if name in _LIMITS else bounds


def below_ceiling(bounds: Bounds, rows: pl.DataFrame) -> Bounds:
    """Return the bounds of a rate of flows in some runs."""
    return within(_LIMITS["goodput_bps"], bounds, rows)


def within(limit: Limit, bounds: Bounds, rows: pl.DataFrame) -> Bounds:
    """Return bounds that are no wider than the loosest limit of some runs, where all of them have it."""
    if limit.column not in rows.columns or not rows.height or rows[limit.column].null_count():
        return bounds
    values = rows[limit.column].cast(float)
    if limit.lower:
        return max(bounds[0], float(values.min())), bounds[1]
    return bounds[0], min(bounds[1], float(values.max()))


def bounds_of(name: str, more: Mapping[str, Bounds] | None = None) -> Bounds:
    """Return the declared bounds of a figure: those in `more`, else a run's own; undeclared it may be anything."""
    return (more or {}).get(name) or FIGURES.get(name, Declared(ANY)).bounds


def better_of(name: str) -> Better:
    """Return which of two values of a figure is better, as it is declared."""
    return FIGURES.get(name, Declared(ANY)).better


def verdict_of(name: str, estimate: float, a: str, b: str) -> str:
    """Say which side a difference of A less B favours; where neither value is better, which one is higher."""
    higher, other = (a, b) if estimate > 0 else (b, a)
    better = better_of(name)
    if better == "neither":
        return f"{higher} higher"
    return f"{higher if better == 'more' else other} better"
