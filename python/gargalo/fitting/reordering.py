"""Packets that arrived in another order than that in which they were sent, by when they were acknowledged.

What the receiver has is acknowledged at once when it is out of order (RFC 9293, section 3.8.6.3; RFC 2018), so that the
order of acknowledgements is that of arrivals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.carrying import carry
from gargalo.fitting.estimate import Interval
from gargalo.fitting.path import Reordering

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.estimate import Estimate
    from gargalo.fitting.observed import Observed

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

LEAST_DISPLACED = 3
"""Fewer packets out of order tell nothing."""
SURE = 0.9
UNSEEN = 0.1
"""Share of a probability by which it is less certain: late packets that arrive after one that was sent again
are dropped by their time stamps (RFC 7323, section 5.3)."""
HALF_WIDTH = 0.82
"""Ranks beside the middle one between which the median is in nine of ten cases, as a share of the root of all."""


def in_order(seen: Observed) -> Observed:
    """Return what would have been seen had no packet overtaken another: displaced ones come with the next in order."""
    known = np.flatnonzero(np.isfinite(seen.acknowledged_s))
    displaced, _ = displaced_of(seen.acknowledged_s[known])
    if not displaced.any():
        return seen
    kept = known[~displaced]
    following = kept[np.minimum(np.searchsorted(kept, known[displaced]), len(kept) - 1)]
    acknowledged = seen.acknowledged_s.copy()
    acknowledged[known[displaced]] = acknowledged[following]
    return replace(seen, acknowledged_s=acknowledged)


def with_reordering(found: Estimate, seen: Observed, ordered: Observed) -> Estimate:
    """Return an estimate that displaces packets as those of a recording were; of one in order the same.

    Args:
        found: For packets in order.
        seen: The recording.
        ordered: The same in order.

    """
    known = np.flatnonzero(np.isfinite(seen.acknowledged_s))
    times = seen.acknowledged_s[known]
    displaced, are_late = displaced_of(times)
    if displaced.sum() < LEAST_DISPLACED:
        return found
    # When each would have been acknowledged: as over the path, but for what its neighbours in order differ by.
    rtt = carry(replace(found.path, loss=0.0), ordered).rtt_s
    acks = ordered.acks
    off = acks.rtt_s - rtt[acks.newest]
    told = np.isfinite(off)
    if not told.any():
        return found
    order = np.argsort(acks.newest[told])
    rtt += np.interp(np.arange(len(rtt)), acks.newest[told][order], off[told][order])
    carried = np.isfinite(rtt[known])
    known, displaced, times = known[carried], displaced[carried], times[carried]
    if displaced.sum() < LEAST_DISPLACED:
        return found
    expected = seen.sent_s[known] + rtt[known]
    by = np.sort(np.abs(times - expected)[displaced])
    by_s = float(np.median(by))
    # Only who has another one so near can overtake it.
    near = np.diff(expected) < by_s
    could = int(near.sum())
    count = min(int(displaced.sum()), could)
    if not count or by_s <= 0:
        return found
    beside = HALF_WIDTH * np.sqrt(len(by))
    ranks = [len(by) / 2 - beside, len(by) / 2 + beside]
    low, high = by[np.clip(np.rint(ranks).astype(int), 0, len(by) - 1)]
    gap = float(np.median(np.diff(expected)[near])) / 2
    intervals = {
        **found.intervals,
        "reorder_probability": _share(count, could),
        "reorder_by_s": Interval(max(0.0, float(low) - gap), float(high) + gap),
    }
    reordering = Reordering(count / could, by_s, late=are_late)
    return replace(found, path=replace(found.path, reordering=reordering), intervals=intervals)


def displaced_of(times: Floats) -> tuple[Bools, bool]:
    """Return which packets, in the order of sending, came in another one, and whether they were late or early.

    Where one is late others are early; those are displaced that are fewer.
    """
    late = times > np.minimum.accumulate(times[::-1])[::-1]
    early = times < np.maximum.accumulate(times)
    are_late = bool(late.sum() <= early.sum())
    return (late if are_late else early), are_late


def _share(count: int, of: int) -> Interval:
    """Return the interval of a probability (Clopper and Pearson 1934), and a little more."""
    from scipy.stats import binomtest

    found = binomtest(count, of).proportion_ci(SURE, "exact")
    return Interval(float(found.low) * (1 - UNSEEN), min(1.0, float(found.high) * (1 + UNSEEN)))
