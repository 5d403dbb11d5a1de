"""The rate of a bottleneck, and that of other traffic: from acknowledgements of packets that waited in its queue.

Between two of them the bottleneck never rested, so that what was delivered is its rate, less that of other traffic
(packet trains: Dovrolis et al., INFOCOM 2001). Packets that were sent at once and have nothing between them follow each
other at the rate of the link itself (packet pairs: Keshav, SIGCOMM 1991).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.estimate import Interval
from gargalo.fitting.observed import CLOCK_S
from gargalo.fitting.path import Steps, merged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.observed import Acks, Observed

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

TRAIN = 16
"""Packets of the shortest train whose rate is looked at."""
STEADY = 0.05
"""Trains whose rates differ by less than this are of one rate."""
WANDERS = 0.2
"""Where delays vary, rates of seconds that differ by less than this are of one rate."""
RESTS = 0.2
"""Where delays vary, in this share of the seconds the link may have rested although something seemed to wait."""
VARIES = 4.0
"""So many times what round trips change by from one to the next is a queue."""
CONSTANT = 0.3
"""Other traffic whose rate differs by less than this share is of one rate."""
PEAK_WIDTHS = (0.02, 0.1)
"""Of a link's rate among those at which packets follow each other: of exact clocks, and in real time."""
LEAST_PEAK = 20
"""Packets that follow each other at a rate, at least, if it is that of the link."""
PEAK_SHARE = 0.04
"""A rate at which this share of the packets follow each other is that of the link."""
HILL = 10
SHARP = 3
"""A peak of rates is so many times what is around it, within so many half widths; noise has broad hills."""
LONG_S = 1.0
BINS_S = (0.1, 0.2, 0.5, 1.0)
"""Lengths of steps of a rate that changes."""
BIN_PACKETS = 10
"""Packets that a step has at least, in the mean."""
SURE = 0.01
"""Links of machines keep their rate no better than this."""
LEAST_PAIRS = 30
"""Fewer packets that were sent at once tell no rate of a link."""


@dataclass(frozen=True)
class Trains:
    """Runs of acknowledgements between which a queue waited all the time."""

    begin_s: Floats
    end_s: Floats
    bytes: Floats

    @property
    def rate_bps(self) -> Floats:
        """Rate of each."""
        return self.bytes * 8 / (self.end_s - self.begin_s)


def fastest(acks: Acks) -> float:
    """Return the rate that most trains do not exceed."""
    begin, end = np.arange(0, max(0, len(acks.time_s) - TRAIN)), None
    end = begin + TRAIN
    took = acks.time_s[end] - acks.time_s[begin] if len(begin) else np.array([])
    total = np.concatenate([[0.0], np.cumsum(acks.delivered_bytes)])
    carried = total[end + 1] - total[begin + 1] if len(begin) else np.array([])
    good = took > CLOCK_S
    if not good.any():
        took_all = max(float(acks.time_s[-1] - acks.time_s[0]), CLOCK_S)
        return float(total[-1] * 8 / took_all)
    return float(np.quantile(carried[good] * 8 / took[good], 0.9))


def waits(seen: Observed, queue: Floats, rate_bps: float) -> Bools:
    """Return for each acknowledgement whether a queue waited when its packet was sent."""
    packet = float(np.median(seen.size_bytes)) * 8 / rate_bps
    noise = 0.02 * float(np.nanmin(seen.acks.rtt_s))
    # What changes from one packet to the next by more than a packet is not the queue.
    known = queue[np.isfinite(queue)]
    varies = max(0.0, float(np.median(np.abs(np.diff(known)))) - packet) if len(known) > 1 else 0.0
    # All packets that an acknowledgement is of must have waited, not only the last of them for the others.
    least = np.maximum(
        max(min(noise, 0.25 * float(np.nanmax(queue))), CLOCK_S, VARIES * varies),
        (seen.acks.packets - 0.75) * packet,
    )
    found: Bools = np.nan_to_num(queue, nan=-1.0) > least
    return found


def trains_of(acks: Acks, waiting: Bools, least: int) -> Trains:
    """Return the trains: acknowledgements one after the other whose packets all waited."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], waiting, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2] - 1
    total = np.cumsum(acks.delivered_bytes)
    packets = np.cumsum(acks.packets)
    long = packets[ends] - packets[begins] >= least
    begins, ends = begins[long], ends[long]
    took = acks.time_s[ends] - acks.time_s[begins]
    good = took > CLOCK_S
    begins, ends = begins[good], ends[good]
    return Trains(acks.time_s[begins], acks.time_s[ends], total[ends] - total[begins])


def _blocks(acks: Acks, waiting: Bools, span_s: float, duration_s: float) -> tuple[Floats, Floats]:
    """Return for each span of time the bytes delivered and the time in which a queue waited."""
    count = max(1, int(np.ceil(duration_s / span_s)))
    both = waiting[1:] & waiting[:-1]
    gap = np.diff(acks.time_s)
    where = np.minimum((acks.time_s[1:] / span_s).astype(np.int64), count - 1)
    carried: Floats = np.bincount(
        where[both], weights=acks.delivered_bytes[1:][both], minlength=count
    ).astype(float)
    busy: Floats = np.bincount(where[both], weights=gap[both], minlength=count).astype(float)
    return carried, busy


def rates_of(
    seen: Observed, acks: Acks, waiting: Bools, trains: Trains, *, aggregated: bool = False
) -> tuple[Steps, Steps, Interval, bool]:
    """Return the rate of the bottleneck, that of other traffic, the interval of the rate, and whether delays vary.

    Packets that are aggregated do not follow each other at the rate of the bottleneck.
    """
    total = float(trains.bytes.sum() * 8 / np.sum(trains.end_s - trains.begin_s))
    span = span_of(seen)
    rates, told = _spans(seen, acks, waiting, span)
    link, local, noisy = (None, None, True) if aggregated else link_rate(acks, seen, waiting, span)
    steady = _steady(rates, total)
    if noisy and not steady:
        # What varies on the way has a mean over longer times.
        long, _ = _spans(seen, acks, waiting, LONG_S)
        middle = float(np.nanmedian(long))
        steady = _steady(long, middle, WANDERS) or _steady(long, middle, below=RESTS)
        total = _sustained(acks) if steady else total
    if (
        link is not None
        and link > total * (1 + STEADY)
        and (steady or _is_shared(rates, local, link))
    ):
        other = np.clip(link - rates, 0, None)
        usual = float(np.nanmean(other))
        certain = Interval(0.98 * link, 1.02 * link)
        return ((0.0, link),), _filled(other, span, usual), certain, noisy
    if steady:
        exact = link if link is not None and abs(link / total - 1) < STEADY else total
        return ((0.0, exact),), (), _certain(rates, exact, trains), noisy
    # While nothing waits the rate is that of the sender or more.
    every, _ = np.histogram(
        acks.time_s, bins=len(rates), range=(0, len(rates) * span), weights=acks.delivered_bytes
    )
    if local is not None:
        # Or packets that were sent at once tell it, even where no queue stays.
        pairs = np.full(len(rates), np.nan)
        pairs[: len(local)] = local[: len(rates)]
        rates = np.where(told, rates, pairs)
        told = np.isfinite(rates)
    known = np.flatnonzero(told)
    values = np.interp(np.arange(len(rates)), known, rates[known])
    values = np.maximum(values, np.where(told, 0, every * 8 / span))
    average = float(values.mean())
    error = 0.03 + 0.5 * (1 - len(known) / len(rates))
    return (
        merged([n * span for n in range(len(values))], [float(v) for v in values]),
        (),
        Interval(average * (1 - error), average * (1 + error)),
        noisy,
    )


def _spans(seen: Observed, acks: Acks, waiting: Bools, span: float) -> tuple[Floats, Bools]:
    """Return the rate in each span of time, and whether a queue waited long enough to tell it; NaN where not."""
    carried, busy = _blocks(acks, waiting, span, seen.duration_s)
    told = busy > 0.3 * span
    if told.sum() < 3:
        told = busy > 0
    return np.where(told, carried * 8 / np.maximum(busy, CLOCK_S), np.nan), told


def _steady(rates: Floats, total: float, within: float = STEADY, below: float = 0.1) -> bool:
    low, high = np.nanquantile(rates, [below, 0.9])
    return bool(high - low < within * total)


def _sustained(acks: Acks) -> float:
    """Return the rate that nine tenths of all longer times do not exceed."""
    total = np.concatenate([[0.0], np.cumsum(acks.delivered_bytes)])
    begins = np.arange(acks.time_s[0], acks.time_s[-1] - LONG_S, LONG_S / 10)
    if not len(begins):
        return float(total[-1] * 8 / max(acks.time_s[-1] - acks.time_s[0], CLOCK_S))
    until = total[np.searchsorted(acks.time_s, begins + LONG_S)]
    return float(np.quantile(until - total[np.searchsorted(acks.time_s, begins)], 0.9) * 8 / LONG_S)


def _is_shared(rates: Floats, local: Floats | None, link: float) -> bool:
    """Tell other traffic from a rate that changes: packets follow each other at the same rate all the time."""
    if local is None or np.nanquantile(rates, 0.98) > 1.03 * link:
        return False
    known = local[np.isfinite(local)]
    return len(known) > 0 and float(np.mean(known > 0.95 * link)) > 0.6


def _certain(rates: Floats, total: float, trains: Trains) -> Interval:
    """Return the interval of a constant rate, from the spread of the spans."""
    known = rates[np.isfinite(rates)]
    spread = float(np.std(known) / np.sqrt(len(known))) if len(known) > 1 else 0.02 * total
    step = 1500 * 8 / float(np.sum(trains.end_s - trains.begin_s))
    wide = max(2.5 * spread, 2 * step, SURE * total)
    return Interval(total - wide, total + wide)


def span_of(seen: Observed) -> float:
    """Return the length of a step in which enough packets are delivered."""
    per_second = len(seen.sent_s) / max(seen.duration_s, CLOCK_S)
    return next((s for s in BINS_S if per_second * s >= BIN_PACKETS), BINS_S[-1])


def _filled(values: Floats, span_s: float, usual: float) -> Steps:
    """Return a rate over time whose gaps have the usual value; constant if it is."""
    known = values[np.isfinite(values)]
    if len(known) and _steady(known, float(np.median(known)), CONSTANT):
        return ((0.0, float(np.median(known))),)
    filled = np.where(np.isfinite(values), values, usual)
    return merged([n * span_s for n in range(len(filled))], [float(v) for v in filled])


def link_rate(
    acks: Acks, seen: Observed, waiting: Bools, span: float
) -> tuple[float | None, Floats | None, bool]:
    """Return the rate at which packets follow each other that were sent at once, and that within each span.

    Between these nothing else is sent, but for what came between them on the way. The third is whether delays vary, so
    that no rate stands out, or one that is not exact.
    """
    gap = np.diff(acks.time_s)
    apart = seen.sent_s[acks.newest[1:]] - seen.sent_s[acks.newest[:-1]]
    good = waiting[1:] & (gap > CLOCK_S / 2) & (apart < 0.5 * gap) & (apart >= 0)
    if good.sum() < LEAST_PAIRS:
        return None, None, True
    carried = acks.delivered_bytes[1:][good]
    pairs = np.log(carried * 8 / gap[good])
    packet = float(np.median(seen.size_bytes))
    exact, other = (_peak(pairs, carried, packet, width) for width in PEAK_WIDTHS)
    link = other if exact is None else exact
    if link is None:
        return None, None, True
    where = (acks.time_s[1:][good] / span).astype(np.int64)
    local = np.full(int(where.max()) + 1, np.nan)
    for n in np.flatnonzero(np.bincount(where) >= 5):
        local[n] = np.exp(np.quantile(pairs[where == n], 0.9))
    return link, local, exact is None


def _peak(pairs: Floats, carried: Floats, packet: float, width: float) -> float | None:
    """Return the highest rate at which many packets follow each other, of logarithms of rates."""
    edges = np.arange(pairs.min(), pairs.max() + 2 * width, width / 2)
    counts, _ = np.histogram(pairs, edges, weights=carried)
    two = counts[:-1] + counts[1:]
    peaks = np.flatnonzero(two >= max(PEAK_SHARE * carried.sum(), LEAST_PEAK * packet))
    if not len(peaks):
        return None
    at = peaks[-1]
    # The top of the last hill.
    while at > 0 and two[at - 1] > two[at]:
        at -= 1
    around = two[max(0, at - HILL) : at + HILL + 1]
    if two[at] < SHARP * np.median(around):
        return None
    within = (pairs >= edges[at]) & (pairs <= edges[at + 2])
    return float(np.exp(np.average(pairs[within], weights=carried[within])))
