"""What is inferred of the BBR of a QUIC stack, which reports its phase and a part of its quantities.

The simulator sees every packet at the link: what is in flight, round trips and rates are measured there. Estimates of
the bandwidth follow from the pacing rate, which is a gain of the phase times the estimate. Quantities that follow from
neither (bounds of the model, extra_acked) stay missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gargalo.evaluation.criteria.conformance.networks import DELAYED_PACKETS, RTT_S
from gargalo.interop.stacks import specification

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from gargalo.evaluation.criteria.conformance.seen import Seen
    from gargalo.results import Run

    Values = NDArray[np.float64]

SLACK = 0.05
"""How far inferred quantities may be off: samples 10 ms apart, a pacing margin of 1%, acknowledgements that are
delayed."""
SPACING_SLACK = 0.1
"""The same where the pacing rate is that of packets at the link."""
HEADERS_BYTES = 28
"""IPv4 and UDP."""
LEAST_BYTES = 1228.0
"""The smallest size of a full packet of QUIC, with these."""
TELLS_ESTIMATE = frozenset({"quiche"})
"""Stacks whose delivery rate is the estimate of BBR, not its latest sample."""
GROWTH = 1.25
"""A round in which the rate grows by less counts as one without growth."""
GAINS = {
    "bbr": {"drain": 1 / 2.885, "probe-bw": 1.0, "probe-rtt": 1.0},
    "bbr2": {
        "probe-bw-down": 0.9,
        "probe-bw-cruise": 1.0,
        "probe-bw-refill": 1.0,
        "probe-bw-up": 1.25,
        "probe-rtt": 1.0,
    },
}
GAINS["bbr3"] = GAINS["bbr2"]
"""Pacing gains by version and phase: draft-cardwell-iccrg-bbr-congestion-control-00 and -02, draft-ietf-ccwg-bbr.

STARTUP is missing, as its pacing rate never falls and may still be the initial one, and later versions' DRAIN, as its
gain differs. In version 1's PROBE_BW it is that of six round trips in eight.
"""
STEADY = ("probe-bw", "probe-bw-cruise", "probe-bw-refill")
"""Phases in which the pacing rate stays the same for a round trip or more."""
UNBOUNDED = ("probe-bw", "probe-bw-refill", "probe-bw-up")
"""Phases in which no short-term bound lowers the estimate that paces, whatever was lost before."""
PHASES = ("startup", "drain", "probe-bw", "probe-bw-down", "probe-bw-up")
"""Words by which a stack is known to report them."""


@dataclass(frozen=True)
class Wire:
    """What passes the first link's forward direction, over time."""

    times: Values
    sent: Values
    """Bytes that it has sent since the start, with headers."""
    taken: Values
    """The same and those that wait: what the sender has handed over, without what was dropped."""
    packet_bytes: float
    """Of a full packet, with headers."""
    base_s: float
    """Round-trip time without queues, before any change of the delay."""

    @classmethod
    def of(cls, seen: Seen) -> Wire:
        """Read the samples of the link."""
        rows = seen.forward
        sent = rows["sent_bytes"].to_numpy().astype(float)
        waits = rows["queue_bytes"].to_numpy().astype(float)
        packets = rows["queue_packets"].to_numpy()
        several = packets > 0
        # Of those that wait some are not full.
        size = float(np.max(waits[several] / packets[several])) if several.any() else LEAST_BYTES
        return cls(rows["time_s"].to_numpy(), sent, sent + waits, size, base_rtt(seen.run))

    def taken_by(self, at: Values) -> Values:
        """Return what was handed over by some instants."""
        return np.interp(at, self.times, self.taken)

    def acknowledged(self, at: Values) -> Values:
        """Return what was acknowledged by some instants: what had left the link a base round trip before."""
        return np.interp(at - self.base_s, self.times, self.sent)

    def rounds(self, start: float | None = None, end: float = np.inf) -> Values:
        """Return when rounds began, from an instant on.

        Each ends when what was handed over by its beginning is acknowledged.
        """
        first = float(self.times[int(np.argmax(self.taken > 0))])
        starts = [first if start is None else max(start, first)]
        end = min(end, float(self.times[-1]))
        while starts[-1] < end:
            goal = np.interp(starts[-1], self.times, self.taken)
            k = min(int(np.searchsorted(self.sent, goal - 1.0)), self.times.size - 1)
            low, high = self.sent[max(k - 1, 0)], self.sent[k]
            part = (goal - low) / (high - low) if high > low else 1.0
            left = self.times[max(k - 1, 0)] + min(part, 1.0) * (
                self.times[k] - self.times[max(k - 1, 0)]
            )
            starts.append(max(left, starts[-1]) + self.base_s)
        return np.array(starts)


def base_rtt(run: Run) -> float:
    """Return the round-trip time that the delays of the first link give at the start, in s."""
    link = run.setup.links[0]
    ways = [w.delay for w in (link.up, link.down)]
    return sum(w.constant_s if w.constant_s is not None else w.steps[0].delay_s for w in ways)


def is_limited(run: Run) -> bool:
    """Whether an application limits the flow."""
    return "cbr" in run.setup.flows[0].workload


def complete(seen: Seen, hidden: Collection[str] = ()) -> Seen:
    """Add what can be inferred to what a sender has reported.

    Args:
        seen: What was reported.
        hidden: Columns of it to infer nevertheless.

    """
    wire = Wire.of(seen)
    share = 1 - HEADERS_BYTES / wire.packet_bytes
    packet_bytes = share * wire.packet_bytes
    seen = replace(seen, share=share, packet_bytes=packet_bytes, slack=SLACK)
    if not any(s.phase in PHASES for s in seen.spans):
        return replace(seen, spans=[])  # It reports no phase of BBR.
    options: dict[str, Any] = seen.run.setup.flows[0].transport["quic"]
    stack, name = options.get("stack", ""), options["congestion"]
    name = name if isinstance(name, str) else next(iter(name))
    variant = specification(str(stack), name) or name
    times = seen.times
    phases = seen.table["phase"].to_numpy()
    more: dict[str, Values] = {}

    def told(column: str) -> Values | None:
        values = seen.table[column].to_numpy() if column in seen.table.columns else np.empty(0)
        return values if column not in hidden and np.isfinite(values).any() else None

    sent = told("bytes_in_flight")
    if sent is None:
        flying = wire.taken_by(times) - wire.acknowledged(times)
        more["bytes_in_flight"] = share * np.maximum(flying, 0.0)
    rates = told("pacing_rate_bps")
    pacing = share * spacing(wire, times) if rates is None else rates
    by_phase = GAINS[variant]
    if rates is None:
        # Packets show it only while nothing but pacing holds them back, and an estimate only while that is steady.
        windows = told("congestion_window_bytes")
        flying = more["bytes_in_flight"] if sent is None else sent
        if windows is not None:
            full = flying > windows - DELAYED_PACKETS * packet_bytes
            pacing[np.convolve(full, [1, 1, 1], mode="same") > 0] = np.nan
        # Neither where the application does, nor where acknowledgements come in batches.
        if is_limited(seen.run) or seen.run.setup.links[0].down.rate.steps:
            pacing[:] = np.nan
        more["pacing_rate_bps"] = pacing
        by_phase = {p: by_phase[p] for p in STEADY if p in by_phase}
    gains = np.array([by_phase.get(str(p), np.nan) for p in phases])
    estimate = pacing / gains
    tells = str(stack) in TELLS_ESTIMATE and (rate := told("delivery_rate_bps")) is not None
    if tells:
        estimate = rate
    elif variant == "bbr":
        cycle = phases == "probe-bw"
        estimate[cycle] = steady(times, np.where(cycle, pacing, np.nan))[cycle]
    free = np.isin(phases, UNBOUNDED) | (times < min(seen.losses(), default=np.inf))
    # What STARTUP found shows in the phases after it.
    best, bandwidth = (
        held(held(v)[::-1])[::-1] for v in (np.where(free, estimate, np.nan), estimate)
    )
    budget = quanta(bandwidth, packet_bytes) if variant == "bbr" else 0.0
    # Of DRAIN and PROBE_DOWN the gain is what a case looks at: the phase after them shows the estimate.
    asked = np.isin(phases, ("drain", "probe-bw-down"))
    now = estimate if tells else held(np.where(asked, np.nan, estimate)[::-1])[::-1]
    more |= {
        "bandwidth_bps": bandwidth,
        "bandwidth_shortterm_bps": np.where(bandwidth < (1 - SLACK) * best, bandwidth, np.nan),
        "max_bandwidth_bps": best,
        "pacing_gain": np.divide(pacing, now, out=np.full(now.size, np.nan), where=now > 0),
        "min_rtt_s": np.full(times.size, wire.base_s),
        "target_inflight_bytes": bandwidth * wire.base_s / 8 + budget,
        "max_target_inflight_bytes": best * wire.base_s / 8 + budget,
    }
    starts = wire.rounds()
    more["round_count"] = np.searchsorted(starts, times, side="right").astype(float)
    more["full_bandwidth_rounds"] = plateau(seen, wire)
    left = [s.start for s in seen.spans if s.phase not in ("startup", "probe-rtt")]
    more["full_bandwidth_reached"] = (times >= min(left, default=np.inf)).astype(float)
    slack = SLACK if rates is not None else SPACING_SLACK
    return replace(
        seen, slack=slack, table=seen.table.with_columns(pl.Series(n, v) for n, v in more.items())
    )


def spacing(wire: Wire, times: Values) -> Values:
    """Return the rate at which packets arrive at the link around some instants, in bit/s."""
    half = RTT_S / 5
    return 8 * (wire.taken_by(times + half) - wire.taken_by(times - half)) / (2 * half)


def quanta(bandwidth: Values, packet_bytes: float) -> Values:
    """Return the three send quanta that version 1 adds to what should be in flight."""
    slow = np.where(bandwidth < 1.2e6, packet_bytes, 2 * packet_bytes)
    return 3 * np.where(bandwidth < 24e6, slow, np.minimum(bandwidth * 0.001 / 8, 65536.0))


def held(values: Values) -> Values:
    """Return the values with gaps filled by the last known one."""
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(values.size), -1))
    return np.where(last >= 0, values[np.maximum(last, 0)], np.nan)


def steady(times: Values, pacing: Values) -> Values:
    """Return the pacing rate in PROBE_BW without the two round trips in eight in which version 1 probes and drains.

    It is the median of ten round trips around each instant, five at the ends of PROBE_BW: most have a gain of 1, and
    the others lie on both sides of it.
    """
    step = RTT_S / 5
    grid = np.arange(0.0, float(times[-1]) + step, step)
    rates = pacing[np.maximum(np.searchsorted(times, grid, side="right") - 1, 0)]
    half = round(5 * RTT_S / step)
    padded = np.pad(rates, half, constant_values=np.nan)
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    medians = np.full(grid.size, np.nan)
    some = np.isfinite(around).any(axis=1)
    medians[some] = np.nanmedian(around[some], axis=1)
    return medians[np.minimum(np.searchsorted(grid, times), grid.size - 1)]


def plateau(seen: Seen, wire: Wire) -> Values:
    """Return the rounds without growth so far in each STARTUP and PROBE_UP.

    Rounds that an application limits do not count.
    """
    counts = np.zeros(seen.times.size)
    if is_limited(seen.run):
        return counts
    fine = np.arange(0.0, float(wire.times[-1]), 0.002)
    rates = (wire.acknowledged(fine) - wire.acknowledged(fine - wire.base_s)) / wire.base_s
    for span in seen.spans:
        if span.phase not in ("startup", "probe-bw-up"):
            continue
        best, count = 0.0, 0
        for begin, end in pairwise(wire.rounds(span.start, span.end)):
            if end > span.end + wire.base_s / 4:
                break
            top = rates[(fine >= begin) & (fine < end)]
            if top.size and float(top.max()) >= GROWTH * best:
                best, count = float(top.max()), 0
            else:
                count += 1
            # The sample at the end of the span still belongs to it.
            counts[(seen.times >= min(end, span.end)) & (seen.times <= span.end)] = count
    return counts
