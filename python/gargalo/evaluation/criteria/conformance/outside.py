"""What cases of BBR can see of an algorithm that does not show its state: rates, queues, losses, and its window if it is told.

A case whose outcome shows on the wire is decided. Where the wire shows only a part of what is expected, that part can be
missed, and then the case is not met; if it is there, the case stays undecided. All other cases are not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gargalo.evaluation.criteria.alone import MUCH_LOST
from gargalo.evaluation.criteria.conformance.bbr_paths import (
    HIGH_BPS,
    LOW_BPS,
    STEP_S,
    TINY_BPS,
    TOKENS_BPS,
)
from gargalo.evaluation.criteria.conformance.bbr_probe import AGAIN_S
from gargalo.evaluation.criteria.conformance.bbr_startup import CAPACITY_BPS
from gargalo.evaluation.criteria.conformance.model import Finding
from gargalo.evaluation.criteria.conformance.networks import RATE_BPS, RTT_S, time_text
from gargalo.evaluation.criteria.conformance.seen import SHARE, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.evaluation.criteria.conformance.model import Figures
    from gargalo.results import Run

NOT_SEEN = "not seen: the stack does not tell its phase, and the packets do not show it"
ONLY_PART = "; the rest is not seen from packets"
PACKET_BYTES = 1200
"""The least size of a full packet of QUIC."""
BIN_S = 0.05
"""Of rates at the link: a base round trip."""
DRAINED = 0.5
"""Of a round trip, what may wait when a queue counts as drained: delayed acknowledgements hold some in flight."""
LEAST_S = 0.15
"""Of a PROBE_RTT of 200 ms, the bins that are wholly in it."""


def seen_of(run: Run) -> Seen:
    """Return what the samples of the first flow have."""
    names = ("time_s", "congestion_window_bytes", "bytes_in_flight", "pacing_rate_bps")
    table = run.flow_samples.filter(pl.col("flow") == 0).sort("time_s").select(names)
    return Seen(run, table.with_columns(pl.col(n).cast(pl.Float64) for n in names), [])


def link(seen: Seen) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, bytes sent until then, and queueing delays of the forward direction of the link."""
    rows = seen.run.link_samples.filter(pl.col("direction") == "up").sort("time_s")
    return (
        rows["time_s"].to_numpy(),
        rows["sent_bytes"].to_numpy().astype(float),
        rows["queue_delay_s"].to_numpy(),
    )


def told(values: np.ndarray) -> np.ndarray:
    """Return the values that are known and not zero: a stack that does not tell its window has zero."""
    known: np.ndarray = values[np.isfinite(values) & (values > 0)]
    return known


def pauses(seen: Seen, start: float, share: float) -> list[tuple[float, float]]:
    """Return beginnings and lengths of times after `start` in which the link sends less than a share of what it can."""
    times, sent, _ = link(seen)
    edges = np.arange(start, seen.end_s, BIN_S)
    rates = 8 * np.diff(np.interp(edges, times, sent)) / BIN_S
    found: list[tuple[float, float]] = []
    since: float | None = None
    for at, low in zip(edges[:-1], rates < share * RATE_BPS, strict=True):
        if low and since is None:
            since = float(at)
        if not low and since is not None:
            found.append((since, float(at) - since))
            since = None
    return [(at, length) for at, length in found if length >= LEAST_S - 1e-9]


# --- STARTUP and DRAIN


def look_startup(seen: Seen) -> Figures:
    """What STARTUP lost, the queue that it made, and when that was gone."""
    times, _, queue = link(seen)
    early = times <= 3.0
    peak = float(queue[early].max())
    found = {"lost": seen.dropped(0, 3.0), "peak_s": peak}
    built = int(np.argmax(queue >= peak / 2))
    later = np.flatnonzero(early & (np.arange(times.size) >= built) & (queue <= DRAINED * RTT_S))
    if later.size:
        found["drained_s"] = float(times[later[0]])
    return found


def judge_startup(f: Figures, _algorithm: str) -> Finding:
    """No loss, and a queue that is drained."""
    seen = f"{f['lost']:.0f} packets lost, a queue of up to {time_text(f['peak_s'])}"
    if "drained_s" not in f:
        return Finding(False, f"{seen} that was never drained within 3 s")
    seen += f", drained at {time_text(f['drained_s'])}"
    return Finding(False, seen) if f["lost"] else Finding(None, seen + ONLY_PART)


# --- paths


def look_tiny(seen: Seen) -> Figures:
    """The use of the link, the window and the pacing from 20 s on."""
    found = {"rate": seen.rate(20, seen.end_s) / (TINY_BPS * SHARE)}
    windows = told(seen.column("congestion_window_bytes", 20, seen.end_s))
    paces = told(seen.column("pacing_rate_bps", 20, seen.end_s))
    if windows.size:
        found["window_packets"] = float(np.median(windows)) / PACKET_BYTES
    if paces.size:
        found["pacing"] = float(np.median(paces)) / TINY_BPS
    return found


def judge_tiny(f: Figures, _algorithm: str) -> Finding:
    """The link used; four packets and the link's rate, where they are told."""
    seen = f"{f['rate']:.0%} of the link used"
    wrong = f["rate"] < 0.9
    if "window_packets" in f:
        seen += f", a window of {f['window_packets']:.3g} packets"
        wrong |= f["window_packets"] < 4
    if "pacing" in f:
        seen += f", pacing at {f['pacing']:.0%} of the link"
        wrong |= abs(f["pacing"] - 1) > 0.1
    if wrong:
        return Finding(False, seen)
    whole = {"window_packets", "pacing"} <= f.keys()
    return Finding(True, seen) if whole else Finding(None, seen + ONLY_PART)


def look_faster(seen: Seen) -> Figures:
    """How soon the new rate was used."""
    full = HIGH_BPS * SHARE
    times = np.arange(STEP_S, seen.end_s - 0.2, 0.05)
    there = [t for t in times if seen.rate(t, t + 0.2) >= 0.9 * full]
    return {"after_s": float(there[0]) - STEP_S} if there else {"most": 1.0}


def judge_faster(f: Figures, algorithm: str) -> Finding:
    """At all; and version 1 within eight rounds for each quarter more."""
    if "after_s" not in f:
        return Finding(False, "a rate of 50 Mbit/s after 5 Mbit/s was not found within 10 s")
    seen = f"nine tenths of ten times the rate {time_text(f['after_s'])} after the step"
    if algorithm == "bbr":
        rounds = f["after_s"] / RTT_S
        within = rounds <= 8 * (math.log(10, 1.25) + 2)
        return Finding(within, f"{seen}, at most {rounds:.0f} rounds")
    return Finding(None, seen + ONLY_PART)


def look_slower(seen: Seen) -> Figures:
    """What comes to the link, and what it loses, from 8 s after the step on."""
    start = STEP_S + 8
    times, sent, _ = link(seen)
    got = np.interp([start, seen.end_s], times, sent)
    lost = seen.dropped(start, seen.end_s)
    carried = float(got[1] - got[0])
    offered = carried + lost * carried / max(carried / 1480, 1.0)
    return {
        "offered": 8 * offered / (seen.end_s - start) / LOW_BPS,
        "rate": seen.rate(start, seen.end_s) / (LOW_BPS * SHARE),
    }


def judge_slower(f: Figures, _algorithm: str) -> Finding:
    """No more than a third too much comes, and the link is used."""
    seen = f"8 s after the step {f['offered']:.0%} of the new rate comes to the link, {f['rate']:.0%} of it used"
    good = f["offered"] <= 4 / 3 and f["rate"] >= 0.8
    return Finding(None, seen + ONLY_PART) if good else Finding(False, seen)


def look_policed(seen: Seen) -> Figures:
    """What came of the policer."""
    times, sent, _ = link(seen)
    got = np.interp([10, seen.end_s], times, sent)
    lost = seen.dropped(10, seen.end_s)
    packets = float(got[1] - got[0]) / 1480
    return {
        "rate": seen.rate(10, seen.end_s) / (TOKENS_BPS * SHARE),
        "lost": lost / max(packets + lost, 1.0),
    }


def judge_policed(f: Figures, algorithm: str) -> Finding:
    """The tokens' rate and little loss; bounds are not seen."""
    seen = f"{f['rate']:.0%} of the tokens' rate and {f['lost']:.1%} of packets lost from 10 s on"
    if f["rate"] < 0.8 or f["lost"] > MUCH_LOST:
        return Finding(False, seen)
    return Finding(True, seen) if algorithm == "bbr" else Finding(None, seen + ONLY_PART)


def look_window(seen: Seen) -> Figures:
    """The window before packets were late, and the greatest within a second after; the rate then."""
    at = seen.run.setup.links[0].up.delay.steps[1].time_s
    back = seen.run.setup.links[0].up.delay.steps[2].time_s
    found = {"rate": seen.rate(back + 1.0, back + 2.0) / CAPACITY_BPS}
    before = told(seen.column("congestion_window_bytes", at - 2 * RTT_S, at))
    after = told(seen.column("congestion_window_bytes", back + RTT_S, back + 1.5))
    if before.size and after.size:
        found["window"] = float(np.max(after)) / float(before[-1])
    return found


def judge_window(f: Figures, _algorithm: str) -> Finding:
    """As before."""
    seen = f"a second after packets were late the flow has {f['rate']:.0%} of the link"
    if "window" in f:
        seen += f", a window of up to {f['window']:.0%} of the one before"
    good = f["rate"] >= 0.8 and f.get("window", 1.0) >= 0.95
    return Finding(None, seen + ONLY_PART) if good else Finding(False, seen)


# --- PROBE_RTT


def look_probe_rtt(seen: Seen) -> Figures:
    """The first time after STARTUP in which little is sent."""
    found = {}
    for name, share in (("four", 0.2), ("half", 0.7)):
        there = pauses(seen, 3.0, share)
        if there:
            found[f"{name}_at_s"], found[f"{name}_length_s"] = there[0]
    return found


def judge_probe_rtt(f: Figures, algorithm: str) -> Finding:
    """Version 1 after ten seconds with four packets, later ones after five with half of the product."""
    which, wait = ("four", 10.0) if algorithm == "bbr" else ("half", 5.0)
    what = "a fifth" if algorithm == "bbr" else "seven tenths"
    if f"{which}_at_s" not in f:
        return Finding(False, f"no 200 ms in which less than {what} of the link was used")
    at, length = f[f"{which}_at_s"], f[f"{which}_length_s"]
    seen = f"less than {what} of the link used from {time_text(at)} on for {time_text(length)}"
    # The lowest round-trip time was seen in the first one and a half seconds.
    good = wait - 0.1 <= at <= wait + 2.0 and length <= 0.2 + 4 * RTT_S + BIN_S
    return Finding(good, seen)


def look_idle(seen: Seen) -> Figures:
    """How a flow goes on after a pause."""
    there = pauses(seen, AGAIN_S + 2 * RTT_S, 0.7)
    return {
        "rate": seen.rate(AGAIN_S + 2 * RTT_S, AGAIN_S + 1.0) / CAPACITY_BPS,
        "probes": float(len(there)),
    }


def judge_idle(f: Figures, _algorithm: str) -> Finding:
    """At the full rate, without a PROBE_RTT."""
    seen = f"after a pause of 11 s {f['rate']:.0%} of the link, {f['probes']:.0f} times of 200 ms with less than seven tenths within 2 s"
    return Finding(f["rate"] >= 0.85 and not f["probes"], seen)


def look_batches(seen: Seen) -> Figures:
    """The use of the link behind batches."""
    at = seen.run.setup.links[0].down.rate.steps[1].time_s
    return {"rate": seen.rate(at + 4 * RTT_S, seen.end_s) / CAPACITY_BPS}


def judge_batches(f: Figures, _algorithm: str) -> Finding:
    """The link is used."""
    seen = f"{f['rate']:.1%} of the link used"
    return Finding(None, seen + ONLY_PART) if f["rate"] >= 0.95 else Finding(False, seen)


@dataclass(frozen=True)
class Outside:
    """How a case is seen without the state of the algorithm."""

    look: Callable[[Seen], Figures]
    judge: Callable[[Figures, str], Finding]


OUTSIDE = {
    "bbr-startup-plateau": Outside(look_startup, judge_startup),
    "bbr-drain-inflight": Outside(look_startup, judge_startup),
    "bbr-tiny-bdp": Outside(look_tiny, judge_tiny),
    "bbr-rate-up": Outside(look_faster, judge_faster),
    "bbr-rate-down": Outside(look_slower, judge_slower),
    "bbr-policer": Outside(look_policed, judge_policed),
    "bbr-spurious-recovery": Outside(look_window, judge_window),
    "bbr-spurious-timeout": Outside(look_window, judge_window),
    "bbr-probe-rtt": Outside(look_probe_rtt, judge_probe_rtt),
    "bbr-skip-probe-rtt": Outside(look_idle, judge_idle),
    "bbr-cruise-aggregation": Outside(look_batches, judge_batches),
}
"""By the identifier of the case."""
