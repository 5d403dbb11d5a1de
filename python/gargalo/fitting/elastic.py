"""Other traffic that gives way: TCP flows beside the one that was recorded, told by simulating both."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.losses import FEW
from gargalo.fitting.observed import FitError
from gargalo.fitting.predicting import compared, simulate
from gargalo.fitting.search import packet_by_packet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path

MOST_FLOWS = 4
STARTS = 6
"""Instants at which a flow may have started that are tried, for each one."""
OTHERS = ("cubic", "reno")
"""Congestion controls that other flows may have: those of most hosts."""
MOST_PACKETS = 8_000_000
"""Packets of all simulations together, about; fewer instants are tried of a flow with many."""
SPANS = 12
"""Parts of the time in which goodputs are compared."""
FINE = 20
"""Instants in each at which the rate of other traffic is looked up."""
BETTER = 0.95
"""One flow more explains the recording if the distance is below this share of the one without it."""
NEARLY = 0.3
BEGUN = 0.1
"""Other traffic has begun when it has this share of the rate."""
ROUND_TRIPS = ("rtt_p50_s", "rtt_p95_s")


def with_flows(path: Path, congestion: str, seen: Observed) -> Path:
    """Return the path with TCP flows in the place of a rate, if the recorded flow fares as it did beside these.

    Flows are added one after the other, each at the instant at which it explains most, while each makes the recording
    and the simulation more alike. A rate that does not change is taken as it is: a flow that gives way has none.
    """
    if len(path.cross) <= 1:
        return path
    measured, spans = seen.figures(), _goodputs(seen)

    def distance(candidate: Path) -> float:
        try:
            found = simulate(candidate, congestion, seen.duration_s, transport=seen.transport).seen
        except FitError:
            # It sent next to nothing beside these.
            return math.inf
        told = {c.name: c.difference for c in compared(measured, found.figures())}
        delivered = float(np.mean(np.abs(_goodputs(found) - spans)) / np.mean(spans))
        return delivered + sum(abs(told[name] or 0.0) for name in ROUND_TRIPS)

    flows = [(start, other) for start in _starts(path, seen) for other in OTHERS]

    def with_another(present: Path) -> tuple[float, Path]:
        paths = (replace(present, elastic=(*present.elastic, flow)) for flow in flows)
        return min(((distance(p), p) for p in paths), key=lambda found: found[0])

    best = with_another(path)
    for _ in range(1, MOST_FLOWS):
        more = with_another(best[1])
        if more[0] > BETTER * best[0]:
            break
        best = more
    # A rate that was measured beside the flow fits it always; flows that fit nearly as well explain it.
    if best[0] >= max(NEARLY, 2 * distance(path)):
        return path

    def nearest(candidates: list[Path]) -> tuple[float, Path]:
        return min([best, *((distance(p), p) for p in candidates)], key=lambda found: found[0])

    span = seen.duration_s / SPANS
    for step in (span / 2, span / 4):
        for n in range(len(best[1].elastic)):
            best = nearest([_moved(best[1], n, by) for by in (-step, step)])
    size = float(np.median(seen.size_bytes))
    if path.buffer_bytes < FEW * size:
        best = nearest(packet_by_packet(best[1], size))
    return best[1]


def _moved(path: Path, n: int, by_s: float) -> Path:
    """Return the path with one of the other flows that starts at another time."""
    flows = list(path.elastic)
    start, other = flows[n]
    flows[n] = (max(0.0, start + by_s), other)
    return replace(path, elastic=tuple(flows))


def _goodputs(seen: Observed) -> NDArray[np.float64]:
    """Return the bytes that were acknowledged in each part of the time."""
    known = np.isfinite(seen.acknowledged_s)
    found, _ = np.histogram(
        seen.acknowledged_s[known],
        bins=SPANS,
        range=(0, seen.duration_s),
        weights=seen.payload_bytes[known],
    )
    return found.astype(float)


def _starts(path: Path, seen: Observed) -> list[float]:
    """Return when other flows may have started: when the rate of all others rose most, and when they began."""
    begins = next((t for t, r in path.cross if r > BEGUN * path.rate_bps), 0.0)
    each = MOST_FLOWS * len(OTHERS) * len(seen.sent_s)
    tried = max(2, min(STARTS, MOST_PACKETS // each))
    grid = np.linspace(begins, seen.duration_s, SPANS * FINE, endpoint=False)
    at = np.searchsorted([t for t, _ in path.cross], grid, side="right") - 1
    means = np.array([r for _, r in path.cross])[at].reshape(SPANS, FINE).mean(axis=1)
    rises = np.argsort(means[:-1] - means[1:])[: tried - 1] + 1
    return [begins, *(float(grid[n * FINE]) for n in rises)]
