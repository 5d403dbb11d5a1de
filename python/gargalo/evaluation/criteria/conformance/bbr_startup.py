"""BBR's cases in STARTUP and DRAIN (draft-ietf-ccwg-bbr, "BBR Example Test Cases")."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gargalo.evaluation.criteria.conformance.model import (
    Case,
    Finding,
    off,
    whole,
    within,
)
from gargalo.evaluation.criteria.conformance.networks import (
    RATE_BPS,
    RTT_S,
    counted,
    one_flow,
    packets_text,
    steps,
    time_text,
)
from gargalo.evaluation.criteria.conformance.seen import watch
from gargalo.evaluation.stacks import Own

if TYPE_CHECKING:
    from gargalo.evaluation.criteria.conformance.model import Figures, Json
    from gargalo.evaluation.criteria.conformance.seen import Seen

SECTION = "draft-ietf-ccwg-bbr, BBR Example Test Cases"
APP_BPS = 8e6
"""Of an application that limits its flow: two fifths of the link."""


def bulk(algorithm: str, _seed: int) -> Json:
    """Endless data over a buffer that nothing fills."""
    return one_flow(algorithm, 12)


def beginning(algorithm: str, _seed: int) -> Json:
    """The same; of a stack's algorithm only STARTUP, DRAIN and what follows at once."""
    return one_flow(algorithm, 3 if isinstance(algorithm, Own) else 12)


def bounding(algorithm: str, usual: float) -> float:
    """Return the buffer that sets a long-term bound, in bandwidth-delay products: `usual`, and less for version 2.

    Its losses in STARTUP set none, and its probes end with a quarter of a product in the queue. Of a stack's version 2
    no bound is seen.
    """
    return 0.2 if algorithm == "bbr2" and not isinstance(algorithm, Own) else usual


def limited(algorithm: str, _seed: int) -> Json:
    """An application that never has as much as the path could carry."""
    return one_flow(algorithm, 14, app=[(0, APP_BPS)])


# --- STARTUP ends on a plateau


def look_plateau(seen: Seen) -> Figures:
    """What STARTUP ended with."""
    drain = seen.first("drain")
    if drain is None and seen.slack:
        # Where nothing is to be drained, the acknowledgement that ends STARTUP ends DRAIN too.
        drain = next((s for s in seen.spans if s.phase.startswith("probe-bw")), None)
    probe = seen.first("probe-rtt") if seen.slack else None
    if probe is not None and (drain is None or probe.start < drain.start):
        return {"cut": 1.0}
    if drain is None or drain.before != "startup":
        return {}
    return {
        "in_drain": float(drain.phase == "drain") if seen.slack else math.nan,
        "rounds": seen.at("full_bandwidth_rounds", drain.start),
        "reached": seen.at("full_bandwidth_reached", drain.start),
        "estimate": seen.at("max_bandwidth_bps", drain.start) / seen.capacity(RATE_BPS),
        "lost_packets": seen.dropped(0, drain.start),
    }


def judge_plateau(f: Figures, _algorithm: str) -> Finding:
    """Three rounds, and an estimate within 2%."""
    if not f:
        return Finding(False, "STARTUP did not go over into DRAIN")
    if f.get("cut"):
        return Finding(None, "PROBE_RTT in STARTUP: rounds without growth are those of both")
    where = "DRAIN" if f.get("in_drain", 1.0) else "PROBE_BW"
    seen = (
        f"STARTUP to {where} after {counted(f['rounds'], 'round')} without growth, the estimate "
        f"{f['estimate']:.1%} of the "
        f"link's payload rate, {counted(f['lost_packets'], 'packet')} lost"
    )
    good = f["rounds"] in whole(f, 3) and f["reached"] == 1
    good &= abs(f["estimate"] - 1) <= off(f, 0.02)
    return Finding(good and f["lost_packets"] == 0, seen)


# --- STARTUP ends on loss although the application limits

LOSS_AT_S = 1.5
LOSS_LENGTH_S = 0.6


def startup_loss(algorithm: str, _seed: int) -> Json:
    """A quarter of the packets of an application-limited flow is lost for some round trips, in single pieces."""
    spans = []
    at = LOSS_AT_S
    while at < LOSS_AT_S + LOSS_LENGTH_S:
        spans.append([f"{at:.4f}s", f"{at + 0.0015:.4f}s"])
        at += 0.006
    return one_flow(algorithm, 4, app=[(0, APP_BPS)], up={"outages": spans})


def look_startup_loss(seen: Seen) -> Figures:
    """When it left STARTUP, and what it knew of plateaus by then."""
    found = {
        "rounds_before": seen.before("full_bandwidth_rounds", LOSS_AT_S),
        "in_startup": float(seen.phase_at(LOSS_AT_S) == "startup"),
        "share_lost": seen.dropped(LOSS_AT_S, LOSS_AT_S + LOSS_LENGTH_S)
        / (APP_BPS * LOSS_LENGTH_S / 8 / seen.packet_bytes),
    }
    # Where nothing is to be drained, the acknowledgement that ends STARTUP ends DRAIN too.
    left = next((s for s in seen.spans if s.before == "startup" and s.start >= LOSS_AT_S), None)
    if left is not None:
        found["after_s"] = left.start - LOSS_AT_S
        found["reached"] = seen.at("full_bandwidth_reached", left.start)
        found["in_drain"] = float(left.phase == "drain")
        found["in_flight_bytes"] = seen.at("bytes_in_flight", left.start)
        found["target_bytes"] = seen.at("target_inflight_bytes", left.start)
    return found


def judge_startup_loss(f: Figures, _algorithm: str) -> Finding:
    """DRAIN, by loss alone."""
    if not f["in_startup"] or f["rounds_before"] > 0:
        return Finding(
            False, "it was not in STARTUP, limited by its application, when losses began"
        )
    lost = f"{f['share_lost']:.0%} of the packets of an application-limited STARTUP lost"
    if "after_s" not in f:
        return Finding(False, f"{lost}: it stayed in STARTUP")
    seen = f"{lost}: DRAIN {time_text(f['after_s'])} after the first loss"
    drained = within(f, f["in_flight_bytes"], f["target_bytes"])
    if not f["in_drain"]:
        seen += ", and out of it by the same acknowledgement, nothing being there to drain"
    good = f["reached"] == 1 and f["after_s"] <= LOSS_LENGTH_S + 3 * RTT_S
    return Finding(bool(good and (f["in_drain"] or drained)), seen)


# --- DRAIN ends by what is in flight, or after three rounds


def look_drain(seen: Seen) -> Figures:
    """The gain in DRAIN, and what was in flight at its end."""
    drain = seen.first("drain")
    if seen.slack and drain is None and any(s.phase.startswith("probe-bw") for s in seen.spans):
        return {"none": 1.0}
    if drain is None or not drain.after:
        return {}
    return {
        "gain": seen.middle("pacing_gain", drain.start, drain.end),
        "in_flight_bytes": seen.at("bytes_in_flight", drain.end),
        "before_bytes": seen.before("bytes_in_flight", drain.end),
        "target_bytes": seen.at("target_inflight_bytes", drain.end),
        "rounds": seen.at("round_count", drain.end) - seen.at("round_count", drain.start),
        "to_probe_bw": float(drain.after.startswith("probe-bw")),
        "length_s": drain.length,
    }


NO_DRAIN = "no DRAIN is seen: the acknowledgement that ended STARTUP ended it too"
DRAIN_GAINS = {"bbr": (1 / 2.885,), "bbr2": (0.5, 1 / 2.885, 1 / 2.77), "bbr3": (0.5,)}
"""By version. Version 2's draft has one over the window's gain in STARTUP in its code, one over the pacing gain in
its text."""


def judge_drain(f: Figures, algorithm: str) -> Finding:
    """In flight at most what fits, and before that more."""
    if not f:
        return Finding(False, "DRAIN did not end")
    if "none" in f:
        return Finding(None, NO_DRAIN)
    seen = (
        f"DRAIN with pacing gain {f['gain']:.3g} ended at {packets_text(f['in_flight_bytes'])} in flight, the target "
        f"being {packets_text(f['target_bytes'])}"
    )
    good = any(abs(f["gain"] / g - 1) < off(f, 0.01) for g in DRAIN_GAINS[algorithm])
    good &= within(f, f["in_flight_bytes"], f["target_bytes"])
    return Finding(bool(good and f["to_probe_bw"]), seen)


SLOW_SHARE = 0.4
"""Of the rate that is left when DRAIN begins.

The draft says a decrease by a tenth, but DRAIN paces at half of the estimate, and that is still less than what is left:
what is in flight falls below its target before three round trips are over.
"""


def drain_time(algorithm: str, seed: int) -> Json:
    """The rate falls when DRAIN begins."""
    base = bulk(algorithm, seed)
    drain = watch(base, seed, 3).first("drain") or watch(base, seed).first("drain")
    at = drain.start if drain else 1.0
    return one_flow(algorithm, 4, bps=steps((0, RATE_BPS), (at, SLOW_SHARE * RATE_BPS)))


def judge_drain_time(f: Figures, _algorithm: str) -> Finding:
    """Three rounds, although more is in flight than should be."""
    if not f:
        return Finding(False, "DRAIN did not end")
    if "none" in f:
        return Finding(None, NO_DRAIN)
    seen = (
        f"DRAIN ended after {counted(f['rounds'], 'round')} with "
        f"{packets_text(f['in_flight_bytes'])} in flight, the target "
        f"being {packets_text(f['target_bytes'])}"
    )
    # The pseudocode says more than three: the acknowledgement that begins the fourth.
    good = 3 <= f["rounds"] <= 4 and f["in_flight_bytes"] > f["target_bytes"]
    return Finding(bool(good and f["to_probe_bw"]), seen)


# --- an application that limits does not end STARTUP


def look_limited(seen: Seen) -> Figures:
    """Where an application-limited flow without loss was."""
    others = [s for s in seen.spans if s.phase not in ("startup", "probe-rtt")]
    found = {
        "lost_packets": seen.dropped(0, seen.end_s),
        "others": float(len(others)),
        "length_s": others[0].start if others else seen.end_s,
        "rounds": seen.at("round_count", seen.end_s),
    }
    probe = seen.first("probe-rtt")
    if probe is not None:
        found |= {
            "probe_at_s": probe.start,
            "probe_length_s": probe.length,
            "from_startup": float(probe.before == "startup"),
            "to_startup": float(probe.after == "startup"),
        }
    return found


def judge_limited(f: Figures, _algorithm: str) -> Finding:
    """Nothing but STARTUP, save for PROBE_RTT."""
    seen = f"in STARTUP for {time_text(f['length_s'])} and {counted(f['rounds'], 'round')}"
    return Finding(f["others"] == 0 and f["lost_packets"] == 0, seen)


def judge_probe_rtt_in_startup(f: Figures, _algorithm: str) -> Finding:
    """PROBE_RTT, and back to STARTUP."""
    if "probe_at_s" not in f:
        return Finding(False, f"no PROBE_RTT in a STARTUP of {time_text(f['length_s'])}")
    where = "back to STARTUP" if f["to_startup"] else "not to STARTUP"
    seen = (
        f"PROBE_RTT at {time_text(f['probe_at_s'])} for {time_text(f['probe_length_s'])}, {where}"
    )
    long = f["probe_length_s"] >= 0.2 * (1 - off(f))
    return Finding(bool(f["from_startup"] and f["to_startup"] and long), seen)


# --- aggregation of acknowledgements

BATCH_S = 0.02
OPEN_S = 0.001


def batches(start: float, end: float) -> Json:
    """A way back that opens for a millisecond every 20 ms, as a radio link does."""
    pairs = [(0.0, 1e9)] if start > 0 else []
    at = start
    while at < end:
        pairs += [(at, 0.0), (at + BATCH_S - OPEN_S, 1e9)]
        at += BATCH_S
    return {"rate": steps(*pairs), "queue": {"droptail": "100000 packets"}}


def startup_batches(algorithm: str, _seed: int) -> Json:
    """Acknowledgements come in batches from the beginning."""
    return one_flow(algorithm, 3, down=batches(0, 3))


def look_startup_batches(seen: Seen) -> Figures:
    """What STARTUP found behind batches."""
    drain = seen.first("drain")
    if drain is None:
        return {}
    bdp = seen.before("max_bandwidth_bps", drain.start) * seen.at("min_rtt_s", drain.start) / 8
    return {
        "extra_bytes": float(np.max(seen.column("extra_acked_bytes", 0, drain.start))),
        "batch_bytes": seen.capacity(RATE_BPS) * BATCH_S / 8,
        "windows_of_bdp": float(np.max(seen.column("congestion_window_bytes", 0, drain.start)))
        / bdp,
        "estimate": seen.at("max_bandwidth_bps", drain.start) / seen.capacity(RATE_BPS),
        "rate": seen.rate(drain.start - RTT_S, drain.start) / seen.capacity(RATE_BPS),
    }


def judge_startup_batches(f: Figures, _algorithm: str) -> Finding:
    """A window above two bandwidth-delay products, the full rate, and no more than a batch of a round trip too much."""
    if not f:
        return Finding(False, "STARTUP did not end within 3 s")
    seen = (
        f"a window of {f['windows_of_bdp']:.2f} bandwidth-delay products, the estimate "
        f"{f['estimate']:.1%} of the link's payload "
        "rate"
    )
    good = f["windows_of_bdp"] > 2 and 0.98 - off(f) <= f["estimate"] <= 1 + off(f, BATCH_S / RTT_S)
    if "extra_bytes" in f:
        extra = (
            f"extra_acked up to {packets_text(f['extra_bytes'])} of the "
            f"{packets_text(f['batch_bytes'])} of a batch, "
        )
        return Finding(good and f["extra_bytes"] >= 0.5 * f["batch_bytes"], extra + seen)
    # What extra_acked is for is seen: room for a batch beyond two products, and the estimate.
    return Finding(good, seen)


FIXED = "version 1"
SECOND = "version 2"
CASES = (
    Case(
        "bbr-startup-plateau",
        "Exiting STARTUP on bandwidth plateau",
        SECTION,
        "STARTUP to DRAIN when three rounds in a row have not brought a quarter more, with an "
        "estimate within 2% of the link",
        beginning,
        look_plateau,
        judge_plateau,
    ),
    Case(
        "bbr-startup-loss",
        "Exiting STARTUP on loss when application-limited",
        SECTION,
        "STARTUP to DRAIN by losses above 2% in six pieces (version 2: three) or more of a round, "
        "although all samples are "
        "application-limited",
        startup_loss,
        look_startup_loss,
        judge_startup_loss,
        {"bbr": f"{FIXED}: loss does not end its STARTUP"},
    ),
    Case(
        "bbr-drain-inflight",
        "Exiting DRAIN based on inflight",
        SECTION,
        "DRAIN at pacing gain 0.5 (version 1: 1/2.885) to PROBE_BW when no more is in flight than Inflight(1.0)",
        beginning,
        look_drain,
        judge_drain,
    ),
    Case(
        "bbr-drain-time",
        "Exiting DRAIN based on time",
        SECTION,
        "DRAIN to PROBE_BW after three rounds although more is in flight than Inflight(1.0)",
        drain_time,
        look_drain,
        judge_drain_time,
        {
            v: f"{text}: nothing but what is in flight ends its DRAIN"
            for v, text in (("bbr", FIXED), ("bbr2", SECOND))
        },
    ),
    Case(
        "bbr-limited-startup",
        "Never exiting STARTUP when application-limited with no loss",
        SECTION,
        "STARTUP as long as the run, but for PROBE_RTT",
        limited,
        look_limited,
        judge_limited,
    ),
    Case(
        "bbr-startup-aggregation",
        "Achieving expected STARTUP bandwidth on a link with aggregation",
        SECTION,
        "extra_acked of half a batch or more, a window above two bandwidth-delay products, an "
        "estimate of 98% of the link or more, and "
        "of at most what arrives in a round trip and a batch (140%)",
        startup_batches,
        look_startup_batches,
        judge_startup_batches,
        {"bbr": f"{FIXED}: it provides for aggregation after STARTUP only"},
    ),
    Case(
        "bbr-probe-rtt-in-startup",
        "Entering and exiting PROBE_RTT during STARTUP",
        SECTION,
        "PROBE_RTT from STARTUP for 200 ms or more, and back to STARTUP",
        limited,
        look_limited,
        judge_probe_rtt_in_startup,
    ),
)
