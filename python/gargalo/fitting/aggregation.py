"""Packets that arrive together, at multiples of a time: frames of many packets, grants, coalesced interrupts.

Acknowledgements come at these instants only, so that all times between them are multiples of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.observed import Observed

    Floats = NDArray[np.float64]

LEAST_S, MOST_S = 3e-4, 0.06
"""Times that are looked for."""
TRIED = 4000
FIRST = 2000
"""Times between acknowledgements by which they are tried."""
TOGETHER_S = 1e-4
"""Acknowledgements within this time came together."""
LONGEST, MOST = 20.0, 0.5
"""Of the times between acknowledgements, this share is within so many times the one that is looked for."""
TOLD = 0.75
"""Length of the mean of all instants on the circle, at least; a link's rate has such a time between two rests only."""
LEAST_TIMES = 100
LIKELY = 0.9
"""Mean of the cosines of times between acknowledgements, of which 1 is that all are multiples."""


def aggregation_of(seen: Observed) -> float | None:
    """Return the longest time of which all instants of acknowledgements are multiples, but for an offset.

    Packets that follow each other at a constant rate have such a time, too.
    """
    times = seen.acks.time_s
    times = times[np.append([True], np.diff(times) > TOGETHER_S)] if len(times) else times
    if len(times) < LEAST_TIMES:
        return None
    apart = np.diff(times)[:FIRST]
    tried = np.geomspace(LEAST_S, MOST_S, TRIED)
    likely = np.array([_likely(apart, t) for t in tried])
    good = np.flatnonzero(likely > LIKELY)
    if not len(good):
        return None
    # The top of the last hill.
    foot = good[np.flatnonzero(np.diff(good, prepend=-2) > 1)[-1]]
    at = foot + int(np.argmax(likely[foot : good[-1] + 1]))
    found = _refined(times, float(tried[at]))
    return found if abs(_direction(seen.acks.time_s, found)) > TOLD else None


def _likely(apart: Floats, every_s: float) -> float:
    """Return how near to multiples of a time others are: 1 for all, and less where most are far shorter or longer."""
    near = apart < LONGEST * every_s
    if np.mean(near) < MOST:
        return -1.0
    apart = apart[near]
    return float(np.where(apart > every_s / 2, np.cos(2 * np.pi / every_s * apart), -1.0).mean())


def offset_s(seen: Observed, every_s: float) -> float:
    """Return by how much the instants of acknowledgements are behind multiples of a time, in the mean."""
    angle = np.angle(_direction(seen.acks.time_s, every_s))
    return float(angle / (2 * np.pi) * every_s % every_s)


def _direction(times: Floats, every_s: float) -> complex:
    """Return the mean of instants on a circle of this time: 1 long if all are a multiple of it apart."""
    return complex(np.mean(np.exp(2j * np.pi / every_s * times)))


def _refined(times: Floats, every_s: float) -> float:
    """Return the time nearest to another one of which instants are multiples: a line through more and more of them."""
    since = times - times[0]
    until = 50 * every_s
    while True:
        part = since[since <= until]
        numbers = np.rint(part / every_s)
        if len(np.unique(numbers)) >= 2:
            every_s = float(np.polyfit(numbers, part, 1)[0])
        if until > since[-1]:
            return every_s
        until *= 1.5
