"""A path from what was seen of it, without a search: each parameter from the packets that tell it.

The propagation is the smallest round trip without the time of transmission; the rest is in `rates` and `losses`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.estimate import Estimate, Interval
from gargalo.fitting.losses import with_losses
from gargalo.fitting.observed import CLOCK_S, CONTROL_BYTES
from gargalo.fitting.path import Path, mean
from gargalo.fitting.rates import (
    TRAIN,
    fastest,
    link_rate,
    rates_of,
    span_of,
    trains_of,
    waits,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.observed import Observed

    Floats = NDArray[np.float64]

LEAST_TRAINS = 3
"""So many packets of trains tell a rate."""


def estimate(seen: Observed, aggregation_s: float = 0.0) -> Estimate:
    """Estimate a path, on which packets are aggregated for a time."""
    acks = seen.acks
    unknown: list[str] = []
    first = fastest(acks)
    base = _base(seen, first)
    queue = _queueing(seen, base, first)
    # What waited for longer than packets are aggregated waited in a queue.
    waiting = waits(seen, queue - aggregation_s, first)
    trains = trains_of(acks, waiting, TRAIN)
    filled = trains.bytes.sum() >= LEAST_TRAINS * TRAIN * np.median(seen.size_bytes)
    if not filled:
        unknown.append("never filled the path: the rate is a lower bound")
        # Packets that followed each other may tell the rate of the link, or nothing does how long a packet takes to be
        # transmitted; that of the handshake takes next to no time.
        link = None
        if not aggregation_s:
            link, *_ = link_rate(acks, seen, np.ones(len(acks.time_s), dtype=bool), span_of(seen))
        known = link if link is not None and link > first else None
        least = Path(
            ((0.0, known or first),),
            _base(seen, known or np.inf),
            0.0,
            aggregation_s=aggregation_s,
        )
        return replace(
            with_losses(seen, queue, least, Interval(first, None), unknown), filled=False
        )
    rate, cross, spread, noisy = rates_of(seen, acks, waiting, trains, aggregated=aggregation_s > 0)
    base = _base(seen, max(r for _, r in rate))
    queue = _queueing(seen, base, mean(rate, seen.duration_s))
    path = Path(rate, base, 0.0, cross=cross, aggregation_s=aggregation_s)
    found = with_losses(seen, queue, path, spread, unknown)
    return replace(found, noisy=noisy)


def _base(seen: Observed, rate_bps: float) -> float:
    """Return the smallest round trip, without the time that the packet took to be transmitted."""
    acks = seen.acks
    good = np.isfinite(acks.rtt_s)
    times = acks.rtt_s[good] - seen.size_bytes[acks.newest[good]] * 8 / rate_bps
    smallest = [float(times.min())] if len(times) else []
    if seen.handshake_s is not None:
        smallest.append(seen.handshake_s - CONTROL_BYTES * 8 / rate_bps)
    return max(CLOCK_S, min(smallest))


def _queueing(seen: Observed, base_s: float, rate_bps: float) -> Floats:
    """Return for each acknowledgement how long its packet waited; NaN where its round trip is not known."""
    acks = seen.acks
    return np.maximum(0.0, acks.rtt_s - base_s - seen.size_bytes[acks.newest] * 8 / rate_bps)
