"""What a congestion control shows of itself: its flight over time and what follows from it, as groups of numbers.

Each number has a floor: a difference that a path, a receiver and chance make between two runs of one algorithm. Numbers
of two flows are compared in units of that; only flows over the same path are comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path

    Floats = NDArray[np.float64]

PER_ROUND = 4
"""Instants in a round trip at which the flight is looked at."""
MOST_INSTANTS = 40_000
STARTUP_ROUNDS = 24
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
WIDE = (0.05, 0.25, 0.5, 0.75, 0.95)
LAGS = (1, 2, 4, 8, 16, 32, 64)
RHYTHM = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SLICES = 16
PARTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of the time between two losses."""
ROUNDED = 0.5
"""Packets: the half that a window is rounded by."""
LEAST_ROUNDS = 6
"""Round trips between two losses whose growth has a shape."""


@dataclass(frozen=True)
class Flight:
    """What was on its way over time, in packets, and when losses were noticed."""

    step_s: float
    packets: Floats
    """At multiples of the step."""
    noticed_s: Floats
    """Begin of each episode of losses."""
    lost: Floats
    """Packets lost in each."""
    round_s: float
    """The round trip without a queue, with the time of transmission."""


@dataclass(frozen=True)
class Group:
    """Numbers that tell one thing; NaN where it did not occur."""

    values: Floats
    floor: Floats


Behaviour = dict[str, Group]


def behaviour(seen: Observed, path: Path, *, startup: bool = True) -> Behaviour:
    """Return what is compared of a flow; without its startup where the recording does not have it."""
    packet = float(np.median(seen.size_bytes))
    flight = flight_of(seen, path.base_rtt_s + packet * 8 / path.rate_bps)
    begins = _settled(flight, seen.duration_s)
    steady = flight.packets[int(begins / flight.step_s) :]
    found = {
        "flight": _flight(steady),
        "delay": _delay(seen, path, begins),
        "growth": _growth(steady),
        "rhythm": _rhythm(steady),
        "losses": _losses(flight, begins),
        "decrease": _decrease(flight, seen, begins),
        "shape": _shape(flight, begins, seen.duration_s),
        "slices": _slices(flight),
        "bursts": _bursts(seen, packet * 8 / path.rate_bps),
    }
    if startup:
        found["startup"] = _startup(flight)
    return found


def flight_of(seen: Observed, round_s: float) -> Flight:
    """Return the flight of a flow."""
    # What is lost is noticed as later packets are acknowledged.
    ends = np.where(np.isfinite(seen.acknowledged_s), seen.acknowledged_s, np.inf)
    noticed = np.minimum.accumulate(ends[::-1])[::-1]
    left = np.where(np.isfinite(noticed), noticed, seen.duration_s)
    step = max(round_s / PER_ROUND, seen.duration_s / MOST_INSTANTS)
    at = np.arange(0.0, seen.duration_s, step)
    packets = np.searchsorted(seen.sent_s, at, side="right") - np.searchsorted(
        np.sort(left), at, side="right"
    )
    begins, counts = _episodes(seen, noticed)
    return Flight(step, packets.astype(float), begins, counts, round_s)


def _episodes(seen: Observed, noticed: Floats) -> tuple[Floats, Floats]:
    """Return when each episode of losses was noticed, and how many packets it lost.

    Packets that were sent before the first loss was noticed belong to it.
    """
    begins: list[float] = []
    counts: list[int] = []
    for n in np.flatnonzero(seen.lost & np.isfinite(noticed)):
        if begins and seen.sent_s[n] <= begins[-1]:
            counts[-1] += 1
        else:
            begins.append(float(noticed[n]))
            counts.append(1)
    return np.array(begins), np.array(counts, dtype=float)


def _settled(flight: Flight, duration_s: float) -> float:
    """Return when the startup is over: after its rounds and the first losses."""
    begins = STARTUP_ROUNDS * flight.round_s
    if len(flight.noticed_s):
        begins = max(begins, flight.noticed_s[0] + 4 * flight.round_s)
    return float(min(begins, duration_s / 3))


def _log(values: Floats) -> Floats:
    found: Floats = np.log(np.maximum(values, 0) + 1)
    return found


def _group(values: list[float] | Floats, floor: float) -> Group:
    found = np.asarray(values, dtype=float)
    return Group(found, np.full(len(found), floor))


def _share(floor: float, packets: float) -> float:
    """Return the floor of a share of so many packets: it is no more exact than a part of one."""
    return float(np.hypot(floor, ROUNDED / max(packets, 1.0)))


def _flight(steady: Floats) -> Group:
    """How much is on its way: delay-based algorithms keep it at the path's product, the others fill the buffer."""
    return _group(_log(np.quantile(steady, QUANTILES)), _share(0.04, float(np.median(steady))))


def _delay(seen: Observed, path: Path, begins: float) -> Group:
    """Round trips, in those of the empty path: whether the queue is kept short, full, or emptied now and then."""
    acks = seen.acks
    rtt = acks.rtt_s[np.isfinite(acks.rtt_s) & (acks.time_s > begins)]
    if not len(rtt):
        return _group(np.full(len(QUANTILES), np.nan), 0.03)
    return _group(np.log(np.quantile(rtt, QUANTILES) / path.base_rtt_s), 0.03)


def _growth(steady: Floats) -> Group:
    """Changes of the flight over some round trips: additive, multiplicative, cubic, stepwise growth, and its falls."""
    usual = max(float(np.median(steady)), 1.0)
    found: list[float] = []
    for lag in LAGS:
        step = lag * PER_ROUND
        change = steady[step:] - steady[:-step] if len(steady) > 2 * step else np.array([])
        found += list(np.quantile(change, WIDE) / usual) if len(change) else [np.nan] * len(WIDE)
    return _group(found, _share(0.04, usual))


def _rhythm(steady: Floats) -> Group:
    """Autocorrelation of the flight: what comes back after some round trips, as probes for bandwidth do."""
    centred = steady - steady.mean()
    power = float(np.mean(centred**2)) + 0.25
    found = [
        float(np.mean(centred[s:] * centred[:-s])) / power if len(steady) > 2 * s else np.nan
        for s in (lag * PER_ROUND for lag in RHYTHM)
    ]
    return _group(found, 0.08)


def _losses(flight: Flight, begins: float) -> Group:
    """How often and how many packets are lost at once."""
    late = flight.noticed_s > begins
    counts = flight.lost[late]
    sizes = _log(np.quantile(counts, [0.25, 0.5, 0.75])) if len(counts) else np.full(3, np.nan)
    # The square root of a count that chance has a part in differs by about a half (Anscombe 1948).
    number = np.sqrt(late.sum())
    return Group(np.append(number, sizes), np.array([0.5, 0.15, 0.15, 0.15]))


def _decrease(flight: Flight, seen: Observed, begins: float) -> Group:
    """What is left of the flight after a loss: 0.5 of Reno, 0.7 of CUBIC, 0.875 of Scalable, all of BBR."""
    acks = seen.acks
    known = np.isfinite(acks.rtt_s)
    ratios: list[float] = []
    most: list[float] = []
    for t in flight.noticed_s[flight.noticed_s > begins]:
        rtt = float(np.interp(t, acks.time_s[known], acks.rtt_s[known]))
        before = _between(flight, t - rtt, t)
        after = _between(flight, t + rtt, t + 2 * rtt)
        if len(before) and len(after):
            most.append(max(float(before.max()), 1.0))
            ratios.append(float(np.median(after)) / most[-1])
    if not ratios:
        return _group([np.nan] * 3, 0.04)
    return _group(np.quantile(ratios, [0.25, 0.5, 0.75]), _share(0.04, float(np.median(most))))


def _shape(flight: Flight, begins: float, duration_s: float) -> Group:
    """The flight between two losses, in parts of the time between: straight, concave, convex, a plateau."""
    times = np.append(flight.noticed_s[flight.noticed_s > 0.5 * begins], duration_s)
    curves: list[Floats] = []
    most: list[float] = []
    for t, end in pairwise(times):
        begin = t + 2 * flight.round_s
        if end - begin < LEAST_ROUNDS * flight.round_s or (end == duration_s and curves):
            continue
        parts = begin + np.array(PARTS) * (end - begin)
        at = np.arange(len(flight.packets)) * flight.step_s
        smooth = _between(flight, begin, end)
        if len(smooth) < LEAST_ROUNDS:
            continue
        most.append(max(float(smooth.max()), 1.0))
        curves.append(np.interp(parts, at, flight.packets) / most[-1])
    if not curves:
        return _group(np.full(len(PARTS), np.nan), 0.04)
    return _group(np.median(curves, axis=0), _share(0.04, float(np.median(most))))


def _between(flight: Flight, begin: float, end: float) -> Floats:
    first = max(0, int(np.ceil(begin / flight.step_s)))
    return flight.packets[first : max(first, int(end / flight.step_s)) + 1]


def _slices(flight: Flight) -> Group:
    """The mean of the flight in parts of the time: slow changes, and what happens at certain times."""
    return _group(
        [float(_log(part).mean()) for part in np.array_split(flight.packets, SLICES)], 0.06
    )


def _bursts(seen: Observed, packet_s: float) -> Group:
    """Gaps between packets, in the time that one takes at the bottleneck: pacing, acknowledgement clocking, bursts."""
    gaps = np.diff(seen.sent_s) / packet_s
    edges = np.array([0.0, 0.2, 0.75, 0.95, 1.05, 1.25, 1.9, 2.1, 4.0, np.inf])
    shares = np.histogram(gaps, edges)[0] / max(1, len(gaps))
    breaks = np.flatnonzero(gaps > 0.2)
    sizes = np.diff(np.concatenate([[-1], breaks, [len(gaps)]]))
    return Group(
        np.concatenate([shares, _log(np.quantile(sizes, [0.5, 0.9, 0.99]))]),
        np.concatenate([np.full(len(shares), 0.06), np.full(3, 0.15)]),
    )


def _startup(flight: Flight) -> Group:
    """The flight in the first round trips: how it grows, and where it stops: at a loss, or before."""
    at = np.arange(1, STARTUP_ROUNDS + 1) * PER_ROUND
    instants = np.minimum(at, len(flight.packets) - 1)
    first = flight.noticed_s[:1] / flight.round_s
    lost = flight.lost[:1]
    values = np.concatenate(
        [
            _log(flight.packets[instants]),
            _log(first) if len(first) else [np.nan],
            _log(lost) if len(lost) else [np.nan],
        ]
    )
    floors = np.concatenate([np.full(len(instants), 0.12), [0.1, 0.2]])
    return Group(values, floors)


FAR = 4.0
"""A number that is off by more tells no more."""
MISSING = 1.0
"""What only one of two flows shows, such as a loss, is off by so much."""
SPREAD = 1.2
"""The spread of few runs is less than that of many."""


@dataclass(frozen=True)
class Likeness:
    """How a flow compares with runs of a candidate."""

    apart: dict[str, float]
    """For each group the mean of how far its numbers are off, in floors and spreads; without what neither has."""
    spread: float
    """How much the runs differ among each other: mean logarithm, 0 for not at all."""

    @classmethod
    def of(cls, one: Behaviour, runs: list[Behaviour]) -> Likeness:
        """Compare with all runs together, and with each alone: the nearest counts.

        Runs together know their spread; one alone may be the very path.
        """
        sets = [runs, *([run] for run in runs)] if len(runs) > 1 else [runs]
        return min((cls._with(one, some) for some in sets), key=lambda found: found.cost)

    @classmethod
    def _with(cls, one: Behaviour, runs: list[Behaviour]) -> Likeness:
        apart, spreads = {}, []
        for name, group in one.items():
            off, spread = _off(group, np.array([r[name].values for r in runs]))
            if len(off):
                apart[name] = float(np.mean(off))
                spreads.append(spread)
        return cls(apart, float(np.mean(spreads)))

    @property
    def distance(self) -> float:
        """Over all groups, each of the same weight."""
        return float(np.mean(list(self.apart.values())))

    @property
    def cost(self) -> float:
        """The negative logarithm of the likelihood, as of Laplace's distribution: one number far off is not the end.

        Of two that are as near, the one that is more certain is better.
        """
        return self.distance + self.spread

    def without(self, *names: str) -> float:
        """Return the distance over the other groups."""
        return float(np.mean([v for k, v in self.apart.items() if k not in names]))


def _off(group: Group, runs: Floats) -> tuple[Floats, float]:
    """Return how far the numbers are off that any has, and the mean logarithm of what runs differ by."""
    known = np.isfinite(runs)
    count = known.sum(axis=0)
    filled = np.where(known, runs, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    square = np.where(known, (filled - mean) ** 2, 0.0).sum(axis=0)
    deviation = SPREAD * np.sqrt(square / np.maximum(count - 1, 1))
    unit = np.hypot(deviation, group.floor)
    here = np.isfinite(group.values)
    off = np.abs(np.where(here, group.values, 0.0) - mean) / unit
    # Where only some of the runs show it, what is missing is off by their share.
    missing = MISSING * np.where(here, 1.0, count / len(runs))
    off = np.minimum(np.where(here & (count > 0), off, missing), FAR)
    some = here | (count > 0)
    return off[some], float(np.mean(np.log(unit / group.floor)[some])) if some.any() else 0.0
