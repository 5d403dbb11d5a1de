"""Why packets were lost: a full buffer, a policer, or neither; the one that drops the packets that were lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.carrying import Carried, carry
from gargalo.fitting.estimate import Estimate, Interval
from gargalo.fitting.observed import CLOCK_S
from gargalo.fitting.path import Path, Policer, Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gargalo.fitting.observed import Observed

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

FULL = 0.8
"""A queue above this share of the largest one may overflow."""
LEAST_OVERFLOWS = 3
POLICED_S = 0.5
"""Time between losses whose rate is looked at."""
LEAST_POLICED = 5
TRIED = (0.25, 0.5, 0.75, 0.9)
"""Shares of the losses at which less waited than the sizes of a buffer that are tried."""
FEW = 12
LEAST_BUFFER = 2.0
"""Packets that a buffer has, at least."""
BETWEEN = (0.5, 0.75, 0.9)
"""Shares of the times between losses in which less passed than at the rates of policers that are tried."""
SAME = 0.95
"""Of how well a policer tells the losses: a queue that tells them as well is what drops them."""
OVERFLOWS = 0.5
"""A buffer that tells the losses better than this is the reason of them."""
CERTAINLY = 0.8
BELOW = 0.95
"""Share of the link's rate that a policer has at most."""
POLICED = 0.5
"""A token bucket that tells the losses better than this is there."""
ROOMY = 100.0
"""So many times a buffer that may have overflowed none does."""
LINK = 0.95
"""Quantile of the rates of a path behind a policer that is the link's: in between the link rests."""
HIGHEST = 8.0
"""So many times what has passed a policer may let pass at most."""
RATE_STEP = 0.02
NEAREST = 4
LEAST_TOLD = 0.3
"""A token bucket that tells less is not searched further."""
SEARCHES = 60
MOST_PACKETS = 60_000
"""Packets by which policers are searched."""
NEAR = 3
"""Packets by which a loss may be told wrongly."""


def backlog(seen: Observed, queue: Floats, rate: Steps) -> Floats:
    """Return for each packet the bytes that waited when it was sent, by the packet before it that tells."""
    acks = seen.acks
    waited = np.full(len(seen.sent_s), np.nan)
    waited[acks.newest] = queue
    begins = np.array([t for t, _ in rate])
    rates = np.array([r for _, r in rate])
    known = np.flatnonzero(np.isfinite(waited))
    if not len(known):
        return np.zeros(len(waited))
    # What waits is sent from now on: the bits that the link carries in that time.
    bits = np.concatenate([[0.0], np.cumsum(np.diff(begins) * rates[:-1])])

    def carried(t: Floats) -> Floats:
        at = np.clip(np.searchsorted(begins, t, side="right") - 1, 0, len(begins) - 1)
        found: Floats = bits[at] + (t - begins[at]) * rates[at]
        return found

    sent = seen.sent_s[known]
    backlog = (carried(sent + waited[known]) - carried(sent)) / 8
    found: Floats = np.interp(seen.sent_s, sent, backlog)
    return found


def with_losses(
    seen: Observed, queue: Floats, path: Path, rate: Interval, unknown: list[str]
) -> Estimate:
    """Tell overflow, a policer and other losses apart, and estimate the buffer and the rest."""
    waiting = backlog(seen, queue, path.rate)
    size = float(np.median(seen.size_bytes))
    top = float(np.quantile(waiting, 0.999))
    lost = seen.lost
    near = waiting >= FULL * top
    base = Interval(path.base_rtt_s * 0.98 - CLOCK_S, path.base_rtt_s * 1.02 + CLOCK_S)
    intervals = {"rate_bps": rate, "base_rtt_s": base}
    overflow = lost & near
    share_near = overflow.sum() / max(1, near.sum())
    share_below = (lost & ~near).sum() / max(1, (~near).sum())
    # A path whose rate is a lower bound was never filled, and its buffer neither.
    may_overflow = rate.high is not None and top > 1.5 * size
    # One that was lost while most waited may be one of many others.
    several = overflow.sum() >= max(1, min(LEAST_OVERFLOWS, 0.5 * lost.sum()))
    overflowed = bool(several and share_near > 3 * share_below and may_overflow)
    loss = float(share_below) if overflowed else float(lost.mean())
    full = top + size
    if overflowed:
        full = room(max(float(np.median(waiting[overflow])), top), size)
    found = replace(path, buffer_bytes=full, loss=loss)
    if lost.sum() >= LEAST_POLICED:
        empty = replace(found, loss=0.0)
        tried = [float(b) for b in np.quantile(waiting[lost], TRIED) if b > LEAST_BUFFER * size]
        # A buffer of few packets is tried packet by packet.
        tried += [
            room(n * size, size) for n in range(int(LEAST_BUFFER), FEW + 1) if top < FEW * size
        ]
        buffers = _told(
            seen, [empty] if overflowed else [replace(empty, buffer_bytes=b) for b in tried]
        )
        low = lost & ~near if (lost & ~near).sum() >= LEAST_POLICED else lost
        # A bucket of the link's own rate drops what its buffer does.
        known = rate.high is not None or path.rate_bps > (rate.low or 0.0)
        most = BELOW * path.rate_bps if known else np.inf
        alone = replace(empty, cross=())
        policers = _policers(seen, low, replace(alone, buffer_bytes=ROOMY * full), most)
        roomy = _told(seen, [replace(alone, policer=p, buffer_bytes=2 * full) for p in policers])
        tight = (0.0, empty)
        if overflowed:
            tight = _told(seen, [replace(alone, policer=p) for p in policers])
        full_then = (lost & (waiting >= 0.5 * top)).sum() > FULL * lost.sum()
        told, nearest = max(roomy, tight, key=lambda found: found[0])
        least = max(POLICED, buffers[0] if may_overflow else 0.0)
        if full_then and may_overflow:
            least = CERTAINLY + (1 - CERTAINLY) * buffers[0]
        link = _link_instead(seen, nearest, size)
        if told > least and link[0] >= SAME * told:
            overflowed, overflow, found = True, lost, link[1]
            full, rate_bps = found.buffer_bytes, found.rate_bps
            intervals["rate_bps"] = Interval(0.98 * rate_bps, 1.02 * rate_bps)
        elif told > least and nearest.policer:
            overflowed = overflowed and tight[0] > roomy[0]
            found = replace(nearest, buffer_bytes=full)
            policed = nearest.policer.rate_bps
            if told > CERTAINLY:
                # What the flow has not of the link the policer has dropped.
                steps = [r for _, r in path.rate]
                highest = max(policed / BELOW, float(np.quantile(steps, LINK)))
                found = replace(found, rate=((0.0, highest),))
            intervals["policer_rate_bps"] = Interval(0.95 * policed, 1.05 * policed)
        elif not overflowed and may_overflow and buffers[0] > OVERFLOWS:
            full = buffers[1].buffer_bytes
            overflowed, overflow = True, lost & (waiting >= FULL * full)
            overflow = overflow if overflow.any() else lost
            found = replace(found, buffer_bytes=full)
    if overflowed:
        intervals["buffer_bytes"] = Interval(
            min(float(np.quantile(waiting[overflow], 0.25)), full - size), full + 2 * size
        )
    else:
        # A path is seldom without the buffer of a bandwidth-delay product (RFC 3439, section 3.2.1).
        usual = path.rate_bps / 8 * path.base_rtt_s
        found = replace(found, buffer_bytes=max(found.buffer_bytes, usual))
        unknown.append(
            f"no overflow seen: the buffer is at least {top / 1000:.3g} kB; simulations have "
            f"{found.buffer_bytes / 1000:.3g} kB"
        )
        intervals["buffer_bytes"] = Interval(top, None)
    overflows = seen.sent_s[overflow] if overflowed else np.zeros(0)
    return Estimate(found, intervals, unknown, overflowed=overflowed, overflows_s=overflows)


def room(waiting_bytes: float, size_bytes: float) -> float:
    """Return the buffer of which so much waits when it is full: packets are whole, and what is left is for none."""
    return (round(waiting_bytes / size_bytes) + 0.5) * size_bytes


def _told(seen: Observed, paths: Sequence[Path]) -> tuple[float, Path]:
    """Return how well the losses are told by the path that tells them best, and that path."""
    told = [(_agreement(seen, carry(path, seen)), path) for path in paths]
    return max(told, key=lambda found: found[0], default=(0.0, Path(((0.0, 1.0),), 0.0, 0.0)))


def _link_instead(seen: Observed, policed: Path, size_bytes: float) -> tuple[float, Path]:
    """Return how well a link of a policer's rate tells losses, with a queue for what its bucket keeps, and this path.

    The packets that are lost are nearly the same; but those that a queue delays are not those that a bucket lets pass.
    """
    if not policed.policer:
        return 0.0, policed
    rate, keeps = policed.policer.rate_bps, round(policed.policer.burst_bytes / size_bytes)
    queues = [room(n * size_bytes, size_bytes) for n in range(max(1, keeps - 2), keeps + 2)]
    link = replace(policed, policer=None, rate=((0.0, rate),))
    return _told(seen, [replace(link, buffer_bytes=b) for b in queues])


def _policers(seen: Observed, policed: Bools, path: Path, most_bps: float) -> list[Policer]:
    """Return the token bucket below a rate that explains these losses best, found on a path with much room.

    Between two losses each gave what passed (Flach et al., "An Internet-wide analysis of traffic policing", SIGCOMM
    2016, section 3), but for what it could not keep while it was full. So all rates are tried, and the nearest one is
    searched further.
    """
    part = seen.first(MOST_PACKETS)
    passed = np.cumsum(np.where(seen.lost, 0.0, seen.size_bytes))
    lost = np.flatnonzero(policed)
    times, bits = seen.sent_s[lost], passed[lost] * 8
    apart = np.searchsorted(times, times + POLICED_S)
    pairs = np.flatnonzero(apart < len(times))
    if len(pairs) < 2:
        pairs, apart = np.array([0]), np.full(len(times), len(times) - 1)
    took = np.maximum(times[apart[pairs]] - times[pairs], CLOCK_S)
    between = np.quantile((bits[apart[pairs]] - bits[pairs]) / took, BETWEEN)
    least = 0.9 * passed[-1] * 8 / max(seen.duration_s, CLOCK_S)
    highest = min(most_bps, HIGHEST * least)
    steps = max(2, int(np.log(max(highest / least, 1.0)) / RATE_STEP))
    rates = np.unique(np.concatenate([between, np.geomspace(least, max(highest, least), steps)]))

    lost_of_part = int(part.lost.sum())

    def told(policer: Policer) -> float:
        if policer.rate_bps >= most_bps:
            return 0.0
        lost = carry(replace(path, policer=policer), part).lost
        # Where many are lost each has another near, so that how many there are counts, too.
        alike = min(lost.sum(), lost_of_part) / max(1, lost.sum(), lost_of_part)
        return agreement(part.lost, lost) * float(alike)

    buckets = (Policer(r, _burst(seen, passed, r)) for r in map(float, rates) if 1 < r < most_bps)
    tried = [(told(p), p) for p in buckets]
    tried.sort(key=lambda found: -found[0])
    if not tried or tried[0][0] < LEAST_TOLD:
        return [p for _, p in tried[:1]]
    return [max((_searched(p, told) for _, p in tried[:NEAREST]), key=told)]


def _burst(seen: Observed, passed: Floats, rate_bps: float) -> float:
    """Return the bytes that a token bucket of a rate keeps at least, if all that arrived has passed it."""
    # While the bucket is full it gets nothing more.
    above = passed - rate_bps / 8 * seen.sent_s
    most = float(np.max(above - np.minimum.accumulate(above)))
    return most + float(np.median(seen.size_bytes)) / 2


def _searched(policer: Policer, told: Callable[[Policer], float]) -> Policer:
    """Return the token bucket near another one that tells the losses best."""
    from scipy.optimize import minimize

    def at(x: Floats) -> Policer:
        return Policer(
            policer.rate_bps * float(np.exp(x[0])), policer.burst_bytes * float(np.exp(x[1]))
        )

    best = minimize(
        lambda x: -told(at(x)),
        np.zeros(2),
        method="Nelder-Mead",
        options={
            "maxfev": SEARCHES,
            "xatol": 1e-4,
            "fatol": 1e-4,
            "initial_simplex": np.array([[0.0, 0.0], [RATE_STEP / 2, 0.0], [0.0, -0.1]]),
        },
    )
    return at(best.x)


def _agreement(seen: Observed, carried: Carried) -> float:
    """Return how well losses are told by what a path does to the packets, if round trips are about as long over it."""
    usual = float(np.nanmedian(seen.acks.rtt_s))
    over = carried.rtt_s[~carried.lost]
    there = float(np.median(over)) if len(over) else np.inf
    return agreement(seen.lost, carried.lost) * (min(usual, there) / max(usual, there)) ** 2


def agreement(lost: Bools, predicted: Bools) -> float:
    """Return how well losses are told by others: twice the share of both that have one of the other near, F1."""
    a, b = np.flatnonzero(lost), np.flatnonzero(predicted)
    if not len(a) or not len(b):
        return 0.0

    def near(these: NDArray[np.int64], those: NDArray[np.int64]) -> float:
        after = np.searchsorted(those, these)
        right = those[np.minimum(after, len(those) - 1)]
        left = those[np.maximum(after - 1, 0)]
        return float(np.mean(np.minimum(abs(right - these), abs(these - left)) <= NEAR))

    precision, recall = near(b, a), near(a, b)
    return 2 * precision * recall / max(precision + recall, 1e-9)
