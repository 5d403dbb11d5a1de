"""BBR's cases about paths: rates that change, policers, tiny products, spurious recoveries (draft-ietf-ccwg-bbr)."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from gargalo.evaluation.criteria.alone import MUCH_LOST
from gargalo.evaluation.criteria.conformance.bbr_probe import NO_PROBE_RTT, ended_up, first_seen
from gargalo.evaluation.criteria.conformance.bbr_startup import SECOND, SECTION, bounding
from gargalo.evaluation.criteria.conformance.model import Case, Finding, off, partly
from gargalo.evaluation.criteria.conformance.networks import (
    MSS,
    RTT_S,
    bps_text,
    counted,
    delays,
    one_flow,
    packets_text,
    steps,
    time_text,
)

if TYPE_CHECKING:
    from gargalo.evaluation.criteria.conformance.model import Figures, Json
    from gargalo.evaluation.criteria.conformance.seen import Seen

LOW_BPS = 5e6
HIGH_BPS = 50e6
LOW_PACKETS = LOW_BPS * RTT_S / 8 / 1500
HIGH_PACKETS = HIGH_BPS * RTT_S / 8 / 1500
STEP_S = 4.0

# --- a product of less than a packet

TINY_BPS = 64e3


def tiny(algorithm: str, _seed: int) -> Json:
    """A quarter of a packet in a round trip."""
    return one_flow(
        algorithm, 60, bps=TINY_BPS, packets=20, interval_s=0.1, tcp={"delayed_ack": True}
    )


def look_tiny(seen: Seen) -> Figures:
    """Windows and pacing in PROBE_BW."""
    windows, rates = [], []
    for s in seen.spans:
        if s.phase in ("probe-bw", "probe-bw-cruise"):
            windows += list(seen.column("congestion_window_bytes", s.start, s.end))
            rates += list(seen.column("pacing_rate_bps", s.start, s.end))
    if not windows:
        return {}
    return {
        "window_bytes": float(np.min(windows)),
        "pacing": float(np.median(rates)) / seen.capacity(TINY_BPS),
        "rate": seen.rate(20, seen.end_s) / seen.capacity(TINY_BPS),
    }


def judge_tiny(f: Figures, _algorithm: str) -> Finding:
    """Four packets, the link's rate, and the link used."""
    if not f:
        return Finding(False, "no PROBE_BW within a minute")
    seen = (
        f"a window of {packets_text(f['window_bytes'])} or more in PROBE_BW, pacing at {f['pacing']:.0%} of the link, "
        f"{f['rate']:.0%} of it used"
    )
    least = 4 * f.get("packet_bytes", MSS) * (1 - off(f))
    good = f["window_bytes"] >= least and abs(f["pacing"] - 1) <= off(f, 0.1) and f["rate"] >= 0.95
    return Finding(good, seen)


# --- ten times the rate


def faster(algorithm: str, _seed: int) -> Json:
    """5 Mbit/s become 50; the buffer was small enough for losses, so that there is a long-term bound."""
    buffer = round(bounding(algorithm, 0.7) * LOW_PACKETS)
    return one_flow(algorithm, 14, bps=steps((0, LOW_BPS), (STEP_S, HIGH_BPS)), packets=buffer)


def look_faster(seen: Seen) -> Figures:
    """How soon the new rate was found, and how the bound grew meanwhile."""
    full = seen.capacity(HIGH_BPS)
    found: dict[str, float] = {"bound_bytes": seen.before("inflight_longterm_bytes", STEP_S)}
    times = np.arange(STEP_S, seen.end_s - 0.2, 0.05)
    there = [t for t in times if seen.rate(t, t + 0.2) >= 0.9 * full]
    if not there:
        return found
    at = float(there[0])
    rounds = seen.at("round_count", at) - seen.at("round_count", STEP_S)
    probing, doubled = 0.0, 0
    for s in seen.in_phase("probe-bw-up", STEP_S):
        if s.start < at:
            end = min(s.end, at)
            probing += seen.at("round_count", end) - seen.at("round_count", s.start)
            doubled = max(doubled, doublings(seen, s.start, s.end))
    return {
        **found,
        "after_s": at - STEP_S,
        "rounds": rounds,
        "probing_rounds": probing,
        "doublings": float(doubled)
        if "inflight_longterm_bytes" in seen.table.columns
        else math.nan,
    }


def doublings(seen: Seen, start: float, end: float) -> int:
    """Return how often in a row the step of inflight_longterm from round to round about doubled."""
    rounds = seen.column("round_count", start, end)
    bounds = seen.column("inflight_longterm_bytes", start, end)
    last = [bounds[rounds == r][-1] for r in np.unique(rounds)]
    grown = np.diff(last)
    best = run = 0
    for a, b in itertools.pairwise(grown):
        run = run + 1 if a > 0 and 1.5 <= b / a <= 3 else 0
        best = max(best, run)
    return best


def judge_faster(f: Figures, algorithm: str) -> Finding:
    """O(log BDP) rounds of probing."""
    if "after_s" not in f:
        return Finding(False, "a rate of 50 Mbit/s after 5 Mbit/s was not found within 10 s")
    log = math.log2(HIGH_PACKETS)
    if algorithm == "bbr":
        # A quarter more in one of eight rounds.
        most = 8 * (math.log(10, 1.25) + 2)
        seen = f"nine tenths of ten times the rate {counted(f['rounds'], 'round')} after the step"
        return Finding(f["rounds"] <= most, seen)
    seen = (
        f"nine tenths of ten times the rate {time_text(f['after_s'])} after the step, "
        f"{counted(f['probing_rounds'], 'round')} of them in "
        f"PROBE_UP (log2 of the new product: {log:.1f})"
    )
    if "doublings" not in f:
        return partly(f, f["probing_rounds"] <= 3 * log, seen, inflight_longterm=False)
    seen += f", the step of inflight_longterm doubling {counted(f['doublings'], 'time')} in a row"
    if "bound_bytes" not in f:
        return Finding(False, "no inflight_longterm to grow: nothing was lost before the step")
    grows = f["doublings"] >= 2
    return Finding(f["probing_rounds"] <= 3 * log and grows, seen)


# --- a tenth of the rate


def slower(algorithm: str, _seed: int) -> Json:
    """50 Mbit/s become 5; the buffer is two bandwidth-delay products of then."""
    return one_flow(
        algorithm, 20, bps=steps((0, HIGH_BPS), (STEP_S, LOW_BPS)), packets=round(2 * LOW_PACKETS)
    )


def look_slower(seen: Seen) -> Figures:
    """How soon the estimates followed."""
    rate = seen.capacity(LOW_BPS)
    later = seen.table.filter(seen.table["time_s"] >= STEP_S)
    told = "inflight_shortterm_bytes" in later.columns
    times = later["time_s"].to_numpy()
    found: dict[str, float] = {"estimate": seen.at("max_bandwidth_bps", seen.end_s) / rate}
    for name, column, share in (
        ("short_s", "bandwidth_bps", 1.5),
        ("long_s", "max_bandwidth_bps", 1.1),
    ):
        there = times[later[column].to_numpy() <= share * (1 + seen.slack) * rate]
        if there.size:
            found[name] = float(there[0]) - STEP_S
    # A product, the buffer and the packet that is being sent.
    holds = (3 * LOW_PACKETS + 1) * MSS
    held = times[later["inflight_shortterm_bytes"].to_numpy() <= holds] if told else times[:0]
    if held.size:
        found["held_s"] = float(held[0]) - STEP_S
    if "long_s" in found:
        end = STEP_S + found["long_s"]
        ups = [s for s in seen.in_phase("probe-bw-up", STEP_S) if s.start < end]
        found["cycles"] = float(len(ups))
        found["rounds"] = seen.at("round_count", end) - seen.at("round_count", STEP_S)
    return found


def judge_slower(f: Figures, algorithm: str) -> Finding:
    """The short-term bound at once, the estimate within two cycles."""
    if "short_s" not in f or "long_s" not in f:
        return Finding(
            False, f"max_bw still {f['estimate']:.0%} of the new rate 26 s after the step down"
        )
    if algorithm == "bbr":
        seen = f"the estimate at the tenth {counted(f['rounds'], 'round')} after the step"
        # Ten rounds, the one with the step, and the one in which the estimate changes.
        return Finding(f["rounds"] <= 13 + (4 if f.get("slack") else 0), seen)
    seen = (
        f"bw at the tenth {time_text(f['short_s'])} after the step, max_bw {time_text(f['long_s'])} after it and "
        f"{f['cycles']:.0f} PROBE_UP later, at the end {f['estimate']:.0%} of the new rate"
    )
    short = f["short_s"]
    if algorithm == "bbr2" and "held_s" in f:
        # Losses end when no more is in flight than the path holds: bw_lo then stays.
        seen = f"inflight_lo within what the path holds {time_text(f['held_s'])} after the step, {seen}"
        short = min(short, f["held_s"])
    soon = short <= 3 * (1 + off(f))
    return Finding(soon and f["cycles"] <= 3 and abs(f["estimate"] - 1) <= off(f, 0.05), seen)


# --- a policer

TOKENS_BPS = 10e6
BURST_BYTES = 10e6
"""Enough for PROBE_BW to begin before the bucket is empty."""


def policed(algorithm: str, _seed: int) -> Json:
    """50 Mbit/s, of which a policer lets 10 through when its bucket of 10 MB is empty."""
    policer = {"rate": f"{TOKENS_BPS:.0f}bit/s", "burst": f"{BURST_BYTES:.0f}B"}
    return one_flow(
        algorithm, 20, bps=HIGH_BPS, packets=round(4 * HIGH_PACKETS), up={"policer": policer}
    )


def look_policed(seen: Seen) -> Figures:
    """When the bucket was empty, what bounds there were soon after, and what came of it."""
    losses = seen.losses()
    if not losses:
        return {}
    at = losses[0]
    soon = at + 1.0
    sent = seen.forward.filter(seen.forward["time_s"] >= 10)
    size = seen.packet_bytes / seen.share
    packets = (sent["sent_bytes"][-1] - sent["sent_bytes"][0]) / size
    lost = seen.dropped(10, seen.end_s)
    bounds = {
        name: float(np.isfinite(seen.column(column, at, soon)).sum())
        for name, column in (
            ("bw_bounds", "bandwidth_shortterm_bps"),
            ("inflight_bounds", "inflight_shortterm_bytes"),
        )
        if column in seen.table.columns
    }
    return {
        **bounds,
        "in_probe_bw": float(seen.phase_at(at).startswith("probe-bw")),
        "rate": seen.rate(10, seen.end_s) / seen.capacity(TOKENS_BPS),
        "lost": lost / (packets + lost),
    }


def judge_policed(f: Figures, algorithm: str) -> Finding:
    """Short-term bounds, the tokens' rate, and little loss."""
    if not f:
        return Finding(False, "the bucket never ran empty")
    seen = f"{f['rate']:.0%} of the tokens' rate and {f['lost']:.1%} of packets lost from 10 s on"
    good = f["rate"] >= 0.8 and f["lost"] <= MUCH_LOST
    if not f["in_probe_bw"]:
        early = "the bucket ran empty before PROBE_BW"
        if not f.get("slack"):
            return Finding(False, early)
        return Finding(None if good else False, f"{seen}; {early}")
    if algorithm == "bbr":
        return Finding(good, seen)
    if "inflight_bounds" not in f and not f["bw_bounds"]:
        return partly(f, good, seen, inflight_shortterm=False)
    # Where one bound is not reported, the other is enough.
    bounded = f["bw_bounds"] > 0 and f.get("inflight_bounds", 1.0) > 0
    seen += ", short-term bounds " + ("set" if bounded else "not set")
    return Finding(good and bounded, seen)


# --- spurious recoveries

LATE_S = 0.02
SPIKE_S = 0.5


def unspoilt(algorithm: str) -> Json:
    """The run into which a spurious recovery will be put."""
    return one_flow(algorithm, 9, parameters=None if algorithm == "bbr" else NO_PROBE_RTT)


def moment(algorithm: str, seed: int) -> float:
    """When: in PROBE_UP, or in version 1 at some time in PROBE_BW."""
    if algorithm == "bbr":
        return STEP_S
    up = first_seen(unspoilt(algorithm), seed, 6, ended_up)
    return (up.start if up else STEP_S) + RTT_S / 2


def reordered(algorithm: str, seed: int) -> Json:
    """What is sent in three milliseconds arrives 20 ms late, behind what was sent after it."""
    at = moment(algorithm, seed)
    way = delays((0, RTT_S / 2), (at, RTT_S / 2 + LATE_S), (at + 0.003, RTT_S / 2))
    # A link that may reorder, but draws no packet for it: the change of the delay does.
    return {
        **unspoilt(algorithm),
        **one_flow(
            algorithm,
            9,
            parameters=None if algorithm == "bbr" else NO_PROBE_RTT,
            up={"delay": way, "reorder": {"probability": 0, "late": "1ms"}},
        ),
    }


def stalled(algorithm: str, seed: int) -> Json:
    """Nothing arrives for half a second, and then everything does."""
    at = moment(algorithm, seed)
    way = delays((0, RTT_S / 2), (at, RTT_S / 2 + SPIKE_S), (at + RTT_S, RTT_S / 2))
    return one_flow(
        algorithm,
        9,
        parameters=None if algorithm == "bbr" else NO_PROBE_RTT,
        up={"delay": way},
    )


def look_spurious(seen: Seen) -> Figures:
    """The first recovery that was taken back: the model before it, in it, and after."""
    at = seen.run.setup.links[0].up.delay.steps[1].time_s
    undone = seen.events("undo", at)
    began = [*seen.events("recovery", at), *seen.events("timeout", at)]
    if seen.slack and not undone:
        return look_undone(seen, at)
    if not undone or not began:
        return {"undone": float(len(undone)), "began": float(len(began))}
    begin, end = min(began), undone[0]
    names = ("bandwidth_shortterm_bps", "inflight_shortterm_bytes", "inflight_longterm_bytes")
    soon = end + 2 * RTT_S
    found = {
        "undone": float(len(undone)),
        "began": float(len(began)),
        "timeouts": float(len(seen.events("timeout", at))),
        "took_s": end - begin,
        "window_before_bytes": seen.before("congestion_window_bytes", at),
        "window_after_bytes": float(np.max(seen.column("congestion_window_bytes", end, soon))),
        "up_before": float(seen.phase_at(at) == "probe-bw-up"),
        "up_after": float(
            any(seen.in_phase(p, end - 1e-6) for p in ("probe-bw-refill", "probe-bw-up"))
            and seen.phase_at(end) in ("probe-bw-refill", "probe-bw-up")
        ),
        "same": float(seen.phase_at(end) == seen.phase_at(at)),
    }
    for name in names:
        # Infinite where there is none.
        before, after = (
            v if math.isfinite(v) else math.inf for v in (seen.before(name, at), seen.at(name, end))
        )
        found[f"lower_{name}"] = float(after < before)
    return found


def look_undone(seen: Seen, at: float) -> Figures:
    """What is left of a recovery that the sender does not report, when the late packets have been acknowledged."""
    end = seen.run.setup.links[0].up.delay.steps[2].time_s + LATE_S + 2 * RTT_S
    windows = seen.column("congestion_window_bytes", end, end + 2 * RTT_S)
    return {
        "window_before_bytes": seen.before("congestion_window_bytes", at),
        "window_after_bytes": float(np.max(windows)),
        "same": float(seen.phase_at(end) == seen.phase_at(at)),
    }


def judge_undone(f: Figures, algorithm: str) -> Finding:
    """The window and the state as before; the bounds of later versions are not seen."""
    state = "in the same state" if f["same"] else "in another state"
    seen = (
        f"the window {packets_text(f['window_before_bytes'])} before and "
        f"{packets_text(f['window_after_bytes'])} after, {state}"
    )
    window = f["window_after_bytes"] >= (0.95 - off(f)) * f["window_before_bytes"]
    if algorithm == "bbr":
        return Finding(bool(window and f["same"]), seen)
    return partly(f, window, seen, undo=False)


def judge_spurious(f: Figures, algorithm: str, kind: str) -> Finding:
    """Everything as before."""
    if f.get("slack") and "began" not in f:
        return judge_undone(f, algorithm)
    if not f["began"]:
        return Finding(False, f"no {kind} was provoked")
    if not f["undone"]:
        return Finding(False, f"the {kind} was not found to be spurious")
    lower = [n.removeprefix("lower_") for n, v in f.items() if n.startswith("lower_") and v]
    back = f["same"] if algorithm == "bbr" else f["up_before"] and f["up_after"]
    seen = (
        f"taken back after {time_text(f['took_s'])}, the window {packets_text(f['window_before_bytes'])} before and "
        f"{packets_text(f['window_after_bytes'])} after, "
        + (f"lower than before: {', '.join(lower)}, " if lower else "no bound lower than before, ")
        + ("probing for bandwidth again" if algorithm != "bbr" and back else "")
        + ("in the same state" if algorithm == "bbr" and back else "")
        + ("" if back else "in another state")
    )
    window = f["window_after_bytes"] >= 0.95 * f["window_before_bytes"]
    return Finding(bool(back and not lower and window), seen)


def judge_fast(f: Figures, algorithm: str) -> Finding:
    """A fast recovery."""
    return judge_spurious(f, algorithm, "fast recovery")


def judge_timeout(f: Figures, algorithm: str) -> Finding:
    """A timeout."""
    if "began" in f and not f.get("timeouts", f["began"]):
        return Finding(False, "no timeout was provoked")
    return judge_spurious(f, algorithm, "timeout")


NO_UNDO = {"bbr2": f"{SECOND}: its draft takes nothing back"}
CASES = (
    Case(
        "bbr-tiny-bdp",
        "Correctly managing sub-packet BDPs",
        SECTION,
        "at 64 kbit/s and 50 ms a window of four packets or more, pacing within 10% of the link, 95% of it used",
        tiny,
        look_tiny,
        judge_tiny,
    ),
    Case(
        "bbr-rate-up",
        "Increasing bandwidth 10x and ensuring full bandwidth is reached",
        SECTION,
        f"from {bps_text(LOW_BPS)} to {bps_text(HIGH_BPS)}: nine tenths of it after at most 3 "
        "log2(BDP) rounds in PROBE_UP, the "
        "step of inflight_longterm doubling each round (version 1: within eight rounds for each quarter more)",
        faster,
        look_faster,
        judge_faster,
    ),
    Case(
        "bbr-rate-down",
        "Decreasing bandwidth 10x and ensuring max bandwidth adapts down",
        SECTION,
        f"from {bps_text(HIGH_BPS)} to {bps_text(LOW_BPS)}: bw within half again of it after 3 s, "
        "max_bw within a tenth by the third "
        "PROBE_UP and within 5% at the end (version 2: inflight_lo or bw after 3 s; version 1: "
        "within the ten rounds of its filter)",
        slower,
        look_slower,
        judge_slower,
    ),
    Case(
        "bbr-policer",
        "Handling token bucket policers",
        SECTION,
        "short-term bounds when the bucket is empty, then four fifths of the tokens' rate and at "
        "most a tenth of the packets lost (version "
        "1: by its own detection of policers)",
        policed,
        look_policed,
        judge_policed,
    ),
    Case(
        "bbr-spurious-recovery",
        "Handling spurious fast recovery",
        SECTION,
        "no bound lower than before, the window as before, and probing for bandwidth again (version 1: the same state)",
        reordered,
        look_spurious,
        judge_fast,
        NO_UNDO,
    ),
    Case(
        "bbr-spurious-timeout",
        "Handling spurious RTO recovery",
        SECTION,
        "no bound lower than before, the window as before, and probing for bandwidth again (version 1: the same state)",
        stalled,
        look_spurious,
        judge_timeout,
        NO_UNDO,
    ),
)
