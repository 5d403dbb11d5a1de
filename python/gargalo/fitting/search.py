"""A search with the simulator in the loop: the packets of the recording over paths near an estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gargalo.fitting.carrying import carry
from gargalo.fitting.estimate import Interval
from gargalo.fitting.exact import LEAST_AGREED, exactly, told, with_buffer
from gargalo.fitting.losses import FEW, backlog, room
from gargalo.fitting.observed import CLOCK_S
from gargalo.fitting.path import Bursts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.carrying import Carried
    from gargalo.fitting.estimate import Estimate
    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Result: TypeAlias = tuple[Path, float]

MOST_PACKETS = 150_000
"""Packets that a candidate carries; more would make a fit slow and tell little more."""
MOST_CANDIDATES = 80
CLOSE = 0.01
"""A path that is as close as this is not searched further."""
RATES = 0.04
"""Share by which a rate is searched."""
MOST_RATES = 24
BASES, FINER = 32, 8
"""Steps in which a propagation is searched, and steps of these."""
ALIKE = 1.2
"""Distances that differ by less than this factor are the same."""
NEARER = 0.8
"""A rate of the search is taken if the distance is below this share of the one before."""
QUANTILES = np.linspace(0.005, 0.995, 100)
ENOUGH = 30_000
"""Packets by which a buffer is told exactly."""
BETTER = 0.05
"""A buffer that tells the losses better by less than this, of 2, is the one that was searched for."""
MARGIN = 0.02
EVEN = 1e-3
"""Share by which the time of aggregation may be off: clocks differ by no more (RFC 7323, section 5.4)."""
VARIED = 0.2
SEARCHED = 0.95
LEAST_EMPTY = 30
"""So many packets tell a delay that varies."""
FAR = 1e3
"""Distance of a path over which too little arrives to compare."""
APART = 2.0
"""Round trips from an overflow at which a loss is another one."""
HALF = 0.5
"""Of a buffer: where less waits no packet is lost because it is full."""
LEAST_LOST = 3
"""Losses at so many times are no overflows that were not seen."""
LEAST_BURSTS = 10
"""Fewer losses do not tell whether they come together."""
TOGETHER_PACKETS = 0.25
"""Packets that arrive within this share of the time that one takes at the bottleneck were held up together."""
TOGETHER = 5.0
"""So many times the usual probability of a loss behind another one is no chance."""
LEAST_APART = 0.05
LOSSES = 0.3
VARIATION = 0.5


@dataclass(frozen=True)
class Shape:
    """What is compared of round trips: their distribution, and that of their changes from one to the next."""

    rtt_s: Floats
    change_s: Floats
    lost: int
    packet_s: float
    """Time of transmission of a packet."""

    def distance(self, other: Shape) -> float:
        """Return how far another one is, as a sum of shares; 0 if it is the same."""
        rtt = np.mean(np.abs(self.rtt_s - other.rtt_s)) / np.mean(self.rtt_s)
        scale = np.mean(np.abs(self.change_s)) + self.packet_s
        change = np.mean(np.abs(self.change_s - other.change_s)) / scale
        lost = abs(self.lost - other.lost) / (self.lost + other.lost + 10)
        return float(rtt + VARIATION * change + LOSSES * lost)


def refine(seen: Observed, estimate: Estimate) -> tuple[Estimate, float]:
    """Return the estimate with the rate, the buffer and the jitter that come nearest, and the distance that is left.

    The propagation follows from the jitter: the shortest round trips are those that were seen.
    """
    part = seen.first(MOST_PACKETS)
    start = estimate.path
    if estimate.overflowed:
        empty = replace(start, loss=0.0)
        start = replace(empty, loss=unexplained(part, empty, estimate.overflows_s))
    search = Search(part, replace(estimate, path=start))
    path, found = search.nearest()
    if not estimate.overflowed:
        path = replace(path, buffer_bytes=estimate.path.buffer_bytes)
    elif not path.policer:
        empty = _by_losses(part, replace(path, loss=0.0))
        path = replace(empty, loss=unexplained(part, empty, estimate.overflows_s))
    if path.loss > 0:
        path = replace(path, bursts=bursts_of(_others(part, path, estimate.overflows_s)))
    return replace(estimate, path=path, intervals=_wider(estimate, path)), found


def _by_losses(seen: Observed, path: Path) -> Path:
    """Return the path with the buffer that tells best which packets were lost, if it does so better."""
    if path.cross or len(path.rate) > 1:
        return path
    seen = seen.first(ENOUGH)
    before = told(seen, path)
    agreed, best = max(
        (exactly(seen, p) for p in (path, with_buffer(seen, path)[1])), key=lambda found: found[0]
    )
    return best if agreed > max(LEAST_AGREED, before + BETTER) else path


@dataclass(frozen=True)
class Search:
    """A search from an estimate; a result is a path and its distance."""

    part: Observed
    """The packets that are carried."""
    estimate: Estimate

    def nearest(self) -> Result:
        """Return the nearest path."""
        found = self.with_base(self.candidate(self.estimate.path))
        if found[1] <= CLOSE or len(found[0].cross) > 1:
            return found
        # Either may be the reason of what differs.
        rate, buffer = self.with_rate(found), self.with_buffer(found)
        ways = [found, self.with_rate(buffer)]
        if rate is not found:
            ways.insert(1, self.with_buffer(rate))
        return self.with_base(min(ways, key=_distance))

    def with_base(self, before: Result) -> Result:
        """Search the propagation where packets are aggregated: those that waited least may all have waited."""
        start, every = before[0], self.estimate.path.aggregation_s
        if not every:
            return before
        smallest = self.estimate.path.base_rtt_s

        def at(shares: Floats) -> list[Result]:
            bases = (max(CLOCK_S, smallest - every * float(share)) for share in shares)
            return [self.candidate(replace(start, base_rtt_s=b)) for b in bases]

        coarse = [before, *at(np.arange(BASES) / BASES)]
        near = (smallest - min(coarse, key=_distance)[0].base_rtt_s) / every
        tried = coarse + at(np.clip(near + np.arange(-FINER, FINER + 1) / (BASES * FINER), 0, 1))
        best = min(tried, key=_distance)
        # All that put each packet at the same instant do as well; the middle of these is nearest to the truth.
        good = sorted(p.base_rtt_s for p, found in tried if found < ALIKE * best[1])
        middle = self.candidate(replace(start, base_rtt_s=good[len(good) // 2]))
        return middle if middle[1] < ALIKE * best[1] else best

    def with_rate(self, before: Result) -> Result:
        """Search the rate, if it is constant and known.

        Trains of packets tell a rate to a percent or so where the link or the clock is not exact; a flow that fills the
        link for long has other losses and round trips if the rate is that much off.
        """
        from scipy.optimize import minimize_scalar

        start = before[0]
        if not self.estimate.filled or start.cross or len(start.rate) > 1:
            return before

        def at(x: float) -> Result:
            return self.candidate(start.with_rate(float(np.exp(x))))

        best = minimize_scalar(
            lambda x: at(x)[1],
            bounds=(-RATES, RATES),
            method="bounded",
            options={"maxiter": MOST_RATES, "xatol": 1e-4},
        )
        return at(best.x) if best.fun < NEARER * before[1] else before

    def with_buffer(self, before: Result) -> Result:
        """Search the buffer and, where delays vary, the jitter: a buffer of few packets by the packet."""
        start, noisy = before[0], self.jitters
        size = float(np.median(self.part.size_bytes))
        if self.estimate.overflowed and start.buffer_bytes < FEW * size:
            tried = [before, *(self.candidate(p) for p in packet_by_packet(start, size))]
            if noisy:
                tried = [self.with_variation(r, buffers=False) for r in tried]
            return min(tried, key=_distance)
        if start.cross or not (self.estimate.noisy or len(start.rate) > 1):
            return before
        return self.with_variation(before, buffers=True)

    def with_variation(self, before: Result, *, buffers: bool) -> Result:
        """Search the jitter, where delays vary, and with `buffers` the buffer; other traffic stays as it is."""
        from scipy.optimize import minimize

        start, noisy, measured = before[0], self.jitters, self.measured
        unit = measured.packet_s + 0.1 * float(np.mean(np.abs(measured.change_s)))

        def at(x: Floats) -> Path:
            jitter = max(0.0, float(x[0])) * unit if noisy else 0.0
            factor = float(np.exp(x[-1])) if buffers else 1.0
            return replace(start, jitter_s=jitter, buffer_bytes=start.buffer_bytes * factor)

        variation = float(np.quantile(np.abs(measured.change_s), 0.9)) / unit
        jitter, buffer = [variation, 2 * variation + 0.5], [0.0, -0.15]
        free = ([jitter] if noisy else []) + ([buffer] if buffers else [])
        usual = [values[0] for values in free]
        # A simplex: in each corner but the first one of them has its other value.
        corners = [usual, *([*usual[:n], free[n][1], *usual[n + 1 :]] for n in range(len(free)))]
        best = minimize(
            lambda x: self.candidate(at(x))[1],
            np.array(usual),
            method="Nelder-Mead",
            options={
                "maxfev": MOST_CANDIDATES // (1 if len(free) == 2 else 2 if buffers else 4),
                "xatol": 0.01,
                "fatol": 1e-4,
                "initial_simplex": np.array(corners),
            },
        )
        return self.candidate(at(best.x)) if best.fun < before[1] else before

    def candidate(self, path: Path) -> Result:
        """Return a path and its distance; where delays vary, with the base delay that the emptiest packets tell."""
        seen = self.part
        carried = carry(path, seen)
        answered = np.isfinite(carried.rtt_s)
        if self.estimate.noisy:
            # Packets that a late one holds up arrive with it, and the last of them is acknowledged.
            times = (seen.sent_s + carried.rtt_s)[answered]
            last = _last(times, self.together_s)
            held = np.append([True], last[:-1])
            answered[answered] = last & (~held | self.acknowledged[answered])
        else:
            answered &= self.acknowledged
        rtt = carried.rtt_s[answered]
        if len(rtt) < len(QUANTILES):
            return path, FAR
        shape = _shape(rtt, int(carried.lost.sum()), self.packet_s)
        if path.jitter_s > 0:
            # How far the shortest is from the mean depends on how many there are, and on how close packets follow.
            here, there = (which & self.emptiest for which in (self.acknowledged, answered))
            off = 0.0
            if here.any() and there.any():
                off = float(np.mean(self.rtt_s[here]) - np.mean(carried.rtt_s[there]))
            # The smallest round trip is one of those that were shortened, by no more than that.
            smallest = self.estimate.path.base_rtt_s
            base = np.clip(path.base_rtt_s + off, smallest, smallest + path.jitter_s)
            off = max(float(base), 2 * path.jitter_s) - path.base_rtt_s
            path = replace(path, base_rtt_s=path.base_rtt_s + off)
            shape = replace(shape, rtt_s=shape.rtt_s + off)
        return path, self.measured.distance(shape)

    @property
    def jitters(self) -> bool:
        """Whether delays vary, and not because packets are aggregated."""
        return self.estimate.noisy and not self.estimate.path.aggregation_s

    @cached_property
    def packet_s(self) -> float:
        """Time that a packet takes at the bottleneck."""
        return float(np.median(self.part.size_bytes)) * 8 / self.estimate.path.rate_bps

    @cached_property
    def measured(self) -> Shape:
        """Of the recording."""
        rtt = self.rtt_s[self.acknowledged]
        return _shape(rtt, int(self.part.lost.sum()), self.packet_s)

    @cached_property
    def together_s(self) -> float:
        """Packets that arrive within this time have waited for the same one."""
        return max(CLOCK_S, TOGETHER_PACKETS * self.packet_s)

    @cached_property
    def rtt_s(self) -> Floats:
        """Round trip of each packet whose acknowledgement tells it; NaN of others."""
        found = np.full(len(self.part.sent_s), np.nan)
        acks = self.part.acks
        # Of those that come together the last one.
        together_s = self.together_s if self.estimate.noisy else 0.0
        which = np.isfinite(acks.rtt_s) & _last(acks.time_s, together_s)
        found[acks.newest[which]] = acks.rtt_s[which]
        return found

    @cached_property
    def acknowledged(self) -> Bools:
        """Packets whose round trip is known."""
        return np.isfinite(self.rtt_s)

    @cached_property
    def emptiest(self) -> Bools:
        """Packets that waited least at a queue, if delays did not vary."""
        rtt = carry(replace(self.estimate.path, jitter_s=0.0), self.part).rtt_s
        known = np.sort(rtt[np.isfinite(rtt) & self.acknowledged])
        if not len(known):
            return np.zeros(len(rtt), dtype=bool)
        least = known[min(len(known), LEAST_EMPTY) - 1]
        found: Bools = rtt <= max(least, known[0] + self.packet_s)
        return found


def _distance(result: Result) -> float:
    return result[1]


def packet_by_packet(path: Path, size_bytes: float) -> list[Path]:
    """Return the path with buffers for one packet less, and for one and two more."""
    waits = int(path.buffer_bytes / size_bytes)
    return [
        replace(path, buffer_bytes=room(n * size_bytes, size_bytes))
        for n in (waits - 1, waits + 1, waits + 2)
        if n > 0
    ]


def _wider(estimate: Estimate, path: Path) -> dict[str, Interval]:
    """Return the intervals, wider by what cannot be told where delays or rates vary."""
    found = dict(estimate.intervals)
    base, buffer, rate = found["base_rtt_s"], found["buffer_bytes"], found["rate_bps"]
    if rate.low is not None and rate.high is not None:
        factor = path.rate_bps / estimate.path.rate_bps
        found["rate_bps"] = Interval(rate.low * factor, rate.high * factor)
    if path.jitter_s > 0:
        margin = MARGIN * path.base_rtt_s + path.jitter_s / 2
        found["base_rtt_s"] = Interval(max(0.0, path.base_rtt_s - margin), path.base_rtt_s + margin)
        found["jitter_s"] = Interval(0.7 * path.jitter_s, 1.5 * path.jitter_s)
    elif path.aggregation_s > 0:
        # Those that waited least may have waited for all of that time.
        smallest, every = estimate.path.base_rtt_s, path.aggregation_s
        low = max(0.0, smallest - every)
        found["base_rtt_s"] = Interval(low, smallest * (1 + MARGIN) + CLOCK_S)
        found["aggregation_s"] = Interval(every * (1 - EVEN), every * (1 + EVEN))
    elif base.low is not None and base.high is not None:
        found["base_rtt_s"] = Interval(
            min(base.low, path.base_rtt_s), max(base.high, path.base_rtt_s)
        )
    varies = path.jitter_s > 0 or path.aggregation_s > 0 or len(path.rate) > 1
    if buffer.high is not None and varies:
        margin = VARIED * path.buffer_bytes + 2 * path.jitter_s * path.rate_bps / 8
        low, high = path.buffer_bytes - margin, path.buffer_bytes + margin
        found["buffer_bytes"] = Interval(
            max(0.0, min(low, buffer.low or low)), max(high, buffer.high)
        )
    elif buffer.high is not None:
        # The buffer that was searched for and the one that was seen.
        low, high = SEARCHED * path.buffer_bytes, path.buffer_bytes / SEARCHED
        found["buffer_bytes"] = Interval(min(low, buffer.low or low), max(high, buffer.high))
    return found


def unexplained(seen: Observed, path: Path, overflows_s: Floats) -> float:
    """Return the probability of losses that no overflow explains."""
    others = _others(seen, path, overflows_s)
    lost, all_of_them = np.flatnonzero(others == 1), int(np.sum(others >= 0))
    # Losses within a round trip may be one overflow, where a rate is not known exactly.
    episodes = int(np.sum(np.diff(seen.sent_s[lost], prepend=-np.inf) > path.base_rtt_s))
    if episodes < LEAST_LOST or all_of_them < LEAST_APART * len(others):
        return 0.0
    return len(lost) / all_of_them


def _others(seen: Observed, path: Path, overflows_s: Floats) -> NDArray[np.int8]:
    """Return for each packet a round trip and more from any overflow whether it was lost, 1 or 0; of others -1."""
    path = replace(path, loss=0.0)
    carried = carry(path, seen)
    overflows = np.sort(np.concatenate([seen.sent_s[carried.lost], overflows_s]))
    after = np.searchsorted(overflows, seen.sent_s)
    near = np.full(len(seen.sent_s), np.inf)
    for index in (after - 1, after):
        there = (index >= 0) & (index < len(overflows))
        near[there] = np.minimum(near[there], np.abs(seen.sent_s[there] - overflows[index[there]]))
    apart = near > APART * path.base_rtt_s
    # A rate that is not known exactly tells not when a buffer is full, but when it is far from that.
    roomy = apart & (_waiting(path, seen, carried) < HALF * path.buffer_bytes)
    if roomy.sum() >= LEAST_APART * len(roomy):
        apart = roomy
    return np.where(apart, seen.lost.astype(np.int8), np.int8(-1)).astype(np.int8)


def _waiting(path: Path, seen: Observed, carried: Carried) -> Floats:
    """Return for each packet the bytes that waited when it was sent over a path."""
    queue = carried.rtt_s[seen.acks.newest] - path.base_rtt_s
    return backlog(seen, queue - seen.size_bytes[seen.acks.newest] * 8 / path.rate_bps, path.rate)


def bursts_of(others: NDArray[np.int8]) -> Bursts | None:
    """Return how losses come together, if they do (Gilbert, "Capacity of a burst-noise channel", 1960).

    Args:
        others: For each packet in the order of sending: 1 lost, 0 not, -1 not to be looked at.

    """
    lost = np.flatnonzero(others == 1)
    share = len(lost) / max(1, int(np.sum(others >= 0)))
    if len(lost) < LEAST_BURSTS:
        return None
    # How probable the loss of the packet behind a lost one is, and of the second behind it.
    one, two = (float(np.mean(others[np.minimum(lost + n, len(others) - 1)] == 1)) for n in (1, 2))
    if one < TOGETHER * share or one < 2 / len(lost):
        return None
    stays = min(0.98, max(two, 0.02 * one) / one)
    fails = min(1.0, one / stays)
    bad = min(0.9, share / fails)
    end = 1 - stays
    return Bursts(begin=min(1.0, end * bad / (1 - bad)), end=end, arrive=1 - fails)


def _last(times_s: Floats, together_s: float) -> Bools:
    """Tell of instants in order which are followed by none within a time."""
    return np.append(np.diff(times_s) > together_s, [True])[: len(times_s)]


def _shape(rtt: Floats, lost: int, packet_s: float) -> Shape:
    change = np.diff(rtt)
    return Shape(np.quantile(rtt, QUANTILES), np.quantile(change, QUANTILES), lost, packet_s)
