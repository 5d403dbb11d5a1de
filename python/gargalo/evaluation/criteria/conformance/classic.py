"""Cases of Reno (RFC 5681), CUBIC (RFC 9438) and HighSpeed (RFC 3649): how the window grows, and how far it falls.

Losses are outages of the link at instants that are known beforehand. Everywhere else the path holds more than the
window, so that round trips are all as long as the base.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gargalo.evaluation.criteria.conformance.model import Case, Finding
from gargalo.evaluation.criteria.conformance.networks import MSS, lost_from, one_flow, time_text
from gargalo.evaluation.criteria.conformance.seen import watch

if TYPE_CHECKING:
    from gargalo.evaluation.criteria.conformance.model import Figures, Json
    from gargalo.evaluation.criteria.conformance.seen import Seen

RTT_S = 0.1
BPS = 50e6
"""Holds 416 packets of a round trip."""
PIECE_S = 0.001
"""Length of an outage: a few packets."""
AVOIDANCE = "congestion-avoidance"
WINDOW = "congestion_window_bytes"
NEAR = 0.02
"""Share by which a window may miss what it should be: some segments are in flight when it is looked at."""


# --- the fall after a fast retransmit

FIRST_S = 0.4
"""In slow start, with 80 packets or so in flight."""
SECOND_S = 8.0


def avoiding(algorithm: str, seed: int, *more: tuple[float, float], length_s: float = 14) -> Json:
    """A flow that a loss in slow start has put into congestion avoidance, with further outages: from when, how long."""
    base = partial(one_flow, algorithm, length_s, bps=BPS, rtt_s=RTT_S, packets=2000)
    spans: list[Any] = []
    for at, length in ((FIRST_S, PIECE_S), *more):
        before = watch(base(up={"outages": spans} if spans else None), seed)
        spans = [*spans, *lost_from(before.sending(at), length)["outages"]]
    return base(up={"outages": spans})


def lossy(algorithm: str, seed: int) -> Json:
    """A second loss after 8 s."""
    return avoiding(algorithm, seed, (SECOND_S, PIECE_S), length_s=10)


def look_fall(seen: Seen) -> Figures:
    """The window before the second loss and after it."""
    began = seen.events("recovery", SECOND_S)
    if not began or seen.phase_at(SECOND_S) != AVOIDANCE:
        return {}
    ended = seen.events("recovered", began[0])
    if not ended:
        return {}
    before = seen.before(WINDOW, began[0])
    return {
        "before_segments": before / MSS,
        "threshold": seen.at("slow_start_threshold_bytes", began[0]) / before,
        "window": seen.at(WINDOW, ended[0]) / before,
    }


def judge_fall(f: Figures, _algorithm: str, factor: float) -> Finding:
    """To a share of what it was."""
    if not f:
        return Finding(False, "no fast retransmit in congestion avoidance")
    seen = (
        f"from {f['before_segments']:.0f} segments ssthresh to {f['threshold']:.3f} of that, the "
        "window after recovery to "
        f"{f['window']:.3f}"
    )
    good = all(abs(f[n] - factor) <= NEAR for n in ("threshold", "window"))
    return Finding(good, seen)


# --- the fall after a timeout

OUTAGE_S = 1.5


def blackout(algorithm: str, seed: int) -> Json:
    """After 8 s an outage that outlasts the timer."""
    return avoiding(algorithm, seed, (SECOND_S, OUTAGE_S))


def look_timeout(seen: Seen) -> Figures:
    """The window before the outage, at the first timeout, and where slow start ended."""
    timeouts = seen.events("timeout", SECOND_S)
    if not timeouts:
        return {}
    before = seen.before("bytes_in_flight", SECOND_S)
    found = {
        "timeouts": float(len(timeouts)),
        "window_segments": seen.at(WINDOW, timeouts[0]) / MSS,
        "threshold": seen.at("slow_start_threshold_bytes", timeouts[0]) / before,
    }
    later = seen.first(AVOIDANCE, timeouts[-1])
    if later is not None:
        threshold = seen.before("slow_start_threshold_bytes", later.start)
        found["again"] = seen.at(WINDOW, later.start) / threshold
    return found


def judge_timeout(f: Figures, _algorithm: str, factor: float) -> Finding:
    """To one segment, and by slow start to ssthresh."""
    if not f:
        return Finding(False, "no timeout")
    seen = (
        f"at the timeout a window of {f['window_segments']:.3g} segments, ssthresh "
        f"{f['threshold']:.3f} of what was in flight"
    )
    if "again" not in f:
        return Finding(False, seen + ", and no congestion avoidance after it")
    seen += f", congestion avoidance again from {f['again']:.2f} of ssthresh on"
    good = f["window_segments"] <= 1 and abs(f["threshold"] - factor) <= NEAR
    return Finding(good and abs(f["again"] - 1) <= 0.1, seen)


# --- Reno's growth


def look_growth(seen: Seen) -> Figures:
    """Segments in a round trip, in congestion avoidance between the two losses."""
    span = next((s for s in seen.in_phase(AVOIDANCE) if s.end > SECOND_S - 1), None)
    if span is None:
        return {}
    start, end = span.start + RTT_S, min(span.end, SECOND_S)
    grown = seen.at(WINDOW, end) - seen.at(WINDOW, start)
    srtt = seen.run.flow_samples.filter(
        (seen.run.flow_samples["time_s"] >= start) & (seen.run.flow_samples["time_s"] <= end)
    )["srtt_s"]
    return {
        "per_round": grown / MSS / ((end - start) / RTT_S),
        "rounds": (end - start) / RTT_S,
        "rtt_s": float(np.mean(srtt.to_numpy())),
    }


def judge_growth(f: Figures, _algorithm: str) -> Finding:
    """One segment."""
    if not f or f["rounds"] < 20:
        return Finding(False, "no congestion avoidance of 20 round trips")
    seen = (
        f"{f['per_round']:.3f} segments in a round trip over {f['rounds']:.0f} of them, "
        f"each of {time_text(f['rtt_s'])}"
    )
    return Finding(0.9 <= f["per_round"] <= 1.02, seen)


# --- CUBIC's curve

CUBE_BPS = 100e6
CUBE_RTT_S = 0.1
C = 0.4
BETA = 0.7


def curve(algorithm: str, seed: int) -> Json:
    """One loss where some 300 packets are in flight, and nothing more until the window has grown past that."""
    base = partial(one_flow, algorithm, 16, bps=CUBE_BPS, rtt_s=CUBE_RTT_S, packets=4000)
    return base(up=lost_from(watch(base(), seed).sending(0.6), PIECE_S))


def look_curve(seen: Seen) -> Figures:
    """How far the window is from the curve of its last reduction, while that is above Reno's."""
    began = seen.events("recovery")
    ended = seen.events("recovered", began[0]) if began else []
    if not ended:
        return {}
    before = seen.before(WINDOW, began[0]) / MSS
    at = ended[0]
    after = seen.at(WINDOW, at) / MSS
    k = float(np.cbrt((before - after) / C))
    end = min(at + 1.8 * k, seen.end_s)
    losses = [t for t in seen.events("loss", at + 1e-6) if t < end]
    times = seen.table.filter((seen.table["time_s"] >= at + 0.5) & (seen.table["time_s"] < end))
    t = times["time_s"].to_numpy() - at
    window = times[WINDOW].to_numpy() / MSS
    cubic = C * (t - k) ** 3 + before
    # RFC 9438 section 4.3: what Reno would have with these reductions.
    reno = after + 3 * (1 - BETA) / (1 + BETA) * t / CUBE_RTT_S
    there = cubic >= reno
    error = np.abs(window[there] / cubic[there] - 1)
    return {
        "w_max_segments": before,
        "k_s": k,
        "worst": float(error.max()) if error.size else math.nan,
        "until_s": float(t[-1]),
        "losses": float(len(losses)),
        "crossing": float(np.interp(k, t, window)) / before,
    }


def judge_curve(f: Figures, _algorithm: str) -> Finding:
    """Within 3%."""
    if "worst" not in f or f["losses"]:
        return Finding(False, "no growth without loss after a reduction")
    seen = (
        f"W_max {f['w_max_segments']:.0f} segments, K {time_text(f['k_s'])}: at most {f['worst']:.1%} off until "
        f"{time_text(f['until_s'])} after the reduction, {f['crossing']:.1%} of W_max at K"
    )
    return Finding(f["worst"] <= 0.03 and f["until_s"] >= 1.5 * f["k_s"], seen)


# --- HighSpeed's table

LOW_WINDOW, HIGH_WINDOW = 38.0, 83000.0
HIGH_P, HIGH_DECREASE = 1e-7, 0.1
TABLE = {38: (1.0, 0.5), 1000: (7.7, 0.33), 10000: (29, 0.21), 83333: (71, 0.1)}
"""What RFC 3649 gives for these windows or those next to them, to check the formulas with (section 5, appendix B)."""
HSTCP_RTT_S = 0.1


def decrease(w: float) -> float:
    """b(w) of RFC 3649 section 5."""
    if w <= LOW_WINDOW:
        return 0.5
    part = (math.log(w) - math.log(LOW_WINDOW)) / (math.log(HIGH_WINDOW) - math.log(LOW_WINDOW))
    return (HIGH_DECREASE - 0.5) * part + 0.5


def increase(w: float) -> float:
    """a(w) of RFC 3649 section 5."""
    if w <= LOW_WINDOW:
        return 1.0
    b = decrease(w)
    p = 0.078 / math.pow(w, 1.2)
    return w * w * p * 2 * b / (2 - b)


def first_window(w: int) -> int:
    """The initial window that a first loss reduces to w."""
    start = float(w)
    for _ in range(50):
        start = w / (1 - decrease(start))
    return round(start)


ROUNDS = 3
"""Round trips in which growth is looked at."""


def large(algorithm: str, start: int, rounds: float) -> tuple[Any, Any]:
    """A flow with so large an initial window, by the link's outages; and an outage of a few of its packets.

    The first round trip is the handshake; in the second the peer's window is not scaled yet (RFC 7323 section 2.2). The
    window leaves in half of the third, and a quarter of a round trip after its beginning some of it is lost.
    """
    rtt = HSTCP_RTT_S
    bps = 2.5 * start * 12000 / rtt
    tcp = {
        "initial_window": f"{start} packets",
        "receive_buffer": "1000MB",
        "send_buffer": "1000MB",
        "pacing": "window",
    }
    base = partial(
        one_flow, algorithm, rounds * rtt, bps=bps, rtt_s=rtt, packets=2 * start, interval_s=rtt / 20, tcp=tcp
    )  # fmt: skip
    piece = max(2.5 * rtt / start, 20e-6)
    return base, partial(lost_from, length_s=piece)


def highspeed(w: int, algorithm: str, seed: int) -> Json:
    """A flow that a first loss leaves about the window w, and another loss some round trips later."""
    rtt = HSTCP_RTT_S
    start = first_window(w)
    # What is in flight when the loss is noticed is more than the initial window, by what slow start has added.
    for _ in range(1 if w > 20000 else 4):
        base, lost = large(algorithm, start, 4.5)
        began = watch(base(up=lost(2.25 * rtt)), seed)
        left = began.at("slow_start_threshold_bytes", began.end_s) / MSS
        if math.isnan(left) or abs(left / w - 1) < 0.01:
            break
        start = max(10, round(start * w / left))
    # One round trip until the loss is known, one of recovery; paced, windows leave in five sixths of a round trip.
    base, lost = large(algorithm, start, ROUNDS + 7)
    both = [lost(at)["outages"][0] for at in (2.25 * rtt, (4.75 + ROUNDS) * rtt)]
    return base(up={"outages": both})  # type: ignore[no-any-return]


def look_highspeed(seen: Seen) -> Figures:
    """Growth between the losses, and the fall at the second."""
    at = seen.run.setup.links[0].up.outages[1].start_s
    span = next((s for s in seen.in_phase(AVOIDANCE) if s.start < at < s.end + HSTCP_RTT_S), None)
    began = seen.events("recovery", at)
    if span is None or not began:
        return {}
    ended = seen.events("recovered", began[0])
    end = at
    start = end - ROUNDS * HSTCP_RTT_S
    if start < span.start:
        return {}
    low, high = seen.at(WINDOW, start) / MSS, seen.at(WINDOW, end) / MSS
    before = seen.before(WINDOW, began[0]) / MSS
    found = {
        "w_segments": (low + high) / 2,
        "a": (high - low) / ROUNDS,
        "before_segments": before,
        "b": 1 - seen.at("slow_start_threshold_bytes", began[0]) / MSS / before,
    }
    if ended:
        found["b_after"] = 1 - seen.at(WINDOW, ended[0]) / MSS / before
    return found


def judge_highspeed(f: Figures, _algorithm: str) -> Finding:
    """Both within a few percent of the formulas."""
    if not f:
        return Finding(False, "no growth between two losses")
    a, b = increase(f["w_segments"]), decrease(f["before_segments"])
    seen = (
        f"a = {f['a']:.3g} segments in a round trip at a window of {f['w_segments']:.0f} (a(w) = "
        f"{a:.3g}), b = {f['b']:.3f} at "
        f"{f['before_segments']:.0f} (b(w) = {b:.3f})"
    )
    return Finding(abs(f["a"] / a - 1) <= 0.1 and abs(f["b"] - b) <= NEAR, seen)


def highspeed_case(w: int) -> Case:
    """Make the case of a window."""
    a, b = TABLE[w]
    return Case(
        f"hstcp-{w}",
        f"a(w) and b(w) at w = {w}",
        "RFC 3649 section 5, appendix B",
        f"about {a} segments in a round trip and a reduction by {b:.2f} of the window: within a "
        f"tenth of a(w) and {NEAR} of b(w) "
        "at the window that was reached",
        partial(highspeed, w),
        look_highspeed,
        judge_highspeed,
    )


RENO = (
    Case(
        "reno-growth",
        "Congestion avoidance",
        "RFC 5681 section 3.1",
        "about one segment in a round trip, not more (0.9 to 1.02)",
        lossy,
        look_growth,
        judge_growth,
    ),
    Case(
        "reno-fall",
        "Fast retransmit and fast recovery",
        "RFC 5681 section 3.2, equation 4",
        f"ssthresh and, after recovery, the window at half of what was in flight (within {NEAR})",
        lossy,
        look_fall,
        partial(judge_fall, factor=0.5),
    ),
    Case(
        "reno-timeout",
        "Retransmission timeout",
        "RFC 5681 section 3.1",
        "a window of one segment, ssthresh at half of what was in flight, slow start up to it",
        blackout,
        look_timeout,
        partial(judge_timeout, factor=0.5),
    ),
)
CUBIC = (
    Case(
        "cubic-curve",
        "Window growth",
        "RFC 9438 sections 4.2, 4.4, 4.5",
        "C (t - K)^3 + W_max with C = 0.4 within 3%, t from the end of recovery, where that is "
        "above Reno's window (section 4.3)",
        curve,
        look_curve,
        judge_curve,
    ),
    Case(
        "cubic-fall",
        "Multiplicative decrease",
        "RFC 9438 section 4.6",
        f"ssthresh and, after recovery, the window at 0.7 of the window before (within {NEAR})",
        lossy,
        look_fall,
        partial(judge_fall, factor=0.7),
    ),
    Case(
        "cubic-timeout",
        "Timeout",
        "RFC 9438 section 4.8",
        "a window of one segment, ssthresh at 0.7 of what was in flight, slow start up to it",
        blackout,
        look_timeout,
        partial(judge_timeout, factor=0.7),
    ),
)
HSTCP = tuple(highspeed_case(w) for w in TABLE)
