"""Other traffic that gives way: TCP flows beside the one that was recorded, told by simulating both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gargalo.fitting.predicting import compared, simulate

if TYPE_CHECKING:
    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path

MOST_FLOWS = 4
NEARLY = 0.3
BEGUN = 0.1
"""Other traffic has begun when it has this share of the rate."""
FIGURES = ("goodput_bps", "rtt_p50_s", "rtt_p95_s")


def with_flows(path: Path, congestion: str, seen: Observed) -> Path:
    """Return the path with TCP flows in the place of a rate, if the recorded flow fares as it did beside these.

    A rate that does not change is taken as it is: a flow that gives way has none.
    """
    if len(path.cross) <= 1:
        return path
    begins = next((t for t, r in path.cross if r > BEGUN * path.rate_bps), 0.0)
    measured = seen.figures()

    def distance(candidate: Path) -> float:
        found = simulate(candidate, congestion, seen.duration_s).seen.figures()
        told = {c.name: c.difference for c in compared(measured, found)}
        return sum(abs(told[name] or 0.0) for name in FIGURES)

    flows = [replace(path, elastic=(begins,) * n) for n in range(1, MOST_FLOWS + 1)]
    nearest, best = min((distance(p), n) for n, p in enumerate(flows))
    # A rate that was measured beside the flow fits it always; flows that fit nearly as well explain it.
    return flows[best] if nearest < max(NEARLY, 2 * distance(path)) else path
