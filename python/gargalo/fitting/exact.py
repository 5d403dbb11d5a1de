"""A path found exactly: by the packets that it dropped, of those that were sent.

Which packets a full buffer drops depends on all that came before since it was empty: by many losses a rate is told to a
millionth, and the buffer to the packet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.carrying import carry
from gargalo.fitting.losses import agreement

if TYPE_CHECKING:
    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path

BUFFERS, FINE = 40, 20
"""Buffers that are tried, and those near the best of them."""
DELAYS = 2.0
"""Weight of how much longer or shorter packets take, in the mean."""
STEPS, AROUND = (5e-4, 1e-4, 2e-5, 4e-6, 1e-6), 5
"""Of a rate that tells which packets were lost, as shares, and how many of each."""
SIMPLER = 0.2
"""A path without a policer, of one rate, is preferred if it tells the losses nearly as well."""
LEAST_AGREED = 0.5
"""A buffer that drops other packets than were lost (of 2) is not known."""


def told(seen: Observed, path: Path) -> float:
    """Return how well a path tells which packets were lost: 0 for not at all, 2 for all of them and no others.

    Less where packets take another time over it: by as much as that differs.
    """
    carried = carry(path, seen)
    both = (
        2
        * int((carried.lost & seen.lost).sum())
        / max(1, int(carried.lost.sum() + seen.lost.sum()))
    )
    rtt, over = seen.acks.rtt_s, carried.rtt_s[seen.acks.newest]
    off = 1.0
    if np.isfinite(rtt + over).any():
        off = float(np.nanmean(np.abs(over - rtt)) / np.nanmean(rtt))
    return both + agreement(seen.lost, carried.lost) - DELAYS * off


def with_buffer(seen: Observed, path: Path) -> tuple[float, Path]:
    """Return the buffer that tells the losses best, and how well."""
    size = float(np.median(seen.size_bytes))

    def holding(packets: float) -> Path:
        return replace(path, buffer_bytes=(packets + 0.5) * size, loss=0.0)

    usual = max(path.buffer_bytes, path.rate_bps / 8 * path.base_rtt_s) / size
    tried = {}
    for packets in np.unique(np.rint(np.geomspace(1, 2 * usual + 2, BUFFERS))):
        tried[float(packets)] = told(seen, holding(packets))
    best = max(tried, key=lambda n: tried[n])
    for packets in np.unique(np.rint(np.linspace(0.9 * best - 1, 1.1 * best + 1, FINE))):
        if packets >= 1 and packets not in tried:
            tried[float(packets)] = told(seen, holding(packets))
    best = max(tried, key=lambda n: tried[n])
    return tried[best], holding(best)


def simpler(found: tuple[float, Path]) -> float:
    """Return how well a path tells the losses, and more if it is a simple one."""
    is_simple = len(found[1].rate) == 1 and found[1].policer is None
    return found[0] + (SIMPLER if is_simple else 0.0)


def exactly(seen: Observed, path: Path) -> tuple[float, Path]:
    """Return how well losses are told by the path near one of a constant rate that tells them best, and that path."""
    best = (told(seen, path), path)
    if len(path.rate) > 1:
        return best
    size = float(np.median(seen.size_bytes))
    for step in STEPS:
        start = best[1]
        tried = (
            replace(start.with_rate(1 + n * step), buffer_bytes=start.buffer_bytes + more * size)
            for n in range(-AROUND, AROUND + 1)
            for more in (-1, 0, 1)
        )
        found = [(told(seen, p), p) for p in tried if p.buffer_bytes >= size]
        best = max([best, *found], key=lambda t: t[0])
    return best
