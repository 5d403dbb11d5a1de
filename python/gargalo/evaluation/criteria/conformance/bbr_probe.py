"""BBR's cases in PROBE_BW and PROBE_RTT (draft-ietf-ccwg-bbr, "BBR Example Test Cases")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gargalo.evaluation.criteria.conformance.bbr_startup import (
    BATCH_S,
    SECOND,
    SECTION,
    batches,
    bounding,
    bulk,
)
from gargalo.evaluation.criteria.conformance.model import (
    Case,
    Finding,
    off,
    partly,
    whole,
    within,
)
from gargalo.evaluation.criteria.conformance.networks import (
    BDP_PACKETS,
    MSS,
    RATE_BPS,
    RTT_S,
    counted,
    delays,
    lost_from,
    one_flow,
    packets_text,
    steps,
    time_text,
)
from gargalo.evaluation.criteria.conformance.seen import watch
from gargalo.evaluation.networks import in_seconds
from gargalo.evaluation.stacks import Own

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.evaluation.criteria.conformance.model import Figures, Json
    from gargalo.evaluation.criteria.conformance.seen import Seen, Span

NO_PROBE_RTT = {"probe_rtt_interval": "60s", "min_rtt_window": "60s"}
"""Keeps PROBE_RTT away from cases about something else that last long."""
LIMITED_FROM_S = 1.0
LIMITED_BPS = 10e6
LIMITED_APP = [(0.0, 22e6), (LIMITED_FROM_S, LIMITED_BPS)]
"""More than the link carries until PROBE_BW is there, then half of it."""
SETTLED_S = 2.5
"""By then what was written too much has been sent; no PROBE_REFILL begins before."""
OUTAGE_S = 0.012
CYCLES = "version 1: its PROBE_BW is a cycle of eight gains by the clock, without these states"


def first_seen(
    scenario: Json, seed: int, until_s: float, find: Callable[[Seen], Span | None]
) -> Span | None:
    """Return a time that a run shows in its beginning, or else in all of it."""
    return find(watch(scenario, seed, until_s)) or find(watch(scenario, seed))


def cuts(seen: Seen) -> tuple[str, ...]:
    """Return the phases that cut others short: PROBE_RTT, which cannot be kept away from a stack's cases."""
    return ("probe-rtt",) if seen.slack else ()


def first_up(seen: Seen, since: float = 0.0, length_s: float = 0.0) -> Span | None:
    """Return the first PROBE_UP from an instant on that lasts at least this long."""
    ups = seen.in_phase("probe-bw-up", since)
    return next((s for s in ups if s.length >= length_s), None)


# --- PROBE_UP ends on a plateau


def look_up_plateau(seen: Seen) -> Figures:
    """How PROBE_UP ended each time that PROBE_RTT, which is due in any phase, did not cut it short."""
    ups = [s for s in seen.in_phase("probe-bw-up") if s.after not in ("", "probe-rtt")]
    if not ups:
        return {}
    rounds = [seen.at("full_bandwidth_rounds", s.end) for s in ups]
    return {
        "times": float(len(ups)),
        "least_rounds": min(rounds),
        "most_rounds": max(rounds),
        "to_down": float(sum(s.after == "probe-bw-down" for s in ups)),
        "lost_packets": seen.dropped(0, seen.end_s),
    }


def judge_up_plateau(f: Figures, _algorithm: str) -> Finding:
    """Three rounds each time, without loss."""
    if not f:
        return Finding(False, "no PROBE_UP that ended")
    seen = (
        f"PROBE_UP to PROBE_DOWN {f['to_down']:.0f} of {counted(f['times'], 'time')}, after {f['least_rounds']:.0f} to "
        f"{counted(f['most_rounds'], 'round')} without growth, {counted(f['lost_packets'], 'packet')} lost"
    )
    good = f["to_down"] == f["times"]
    good &= {int(f["least_rounds"]), int(f["most_rounds"])} <= {*whole(f, 3)}
    return Finding(good and f["lost_packets"] == 0, seen)


# --- an application that limits: PROBE_UP continues until losses


def limited_up(algorithm: str, _seed: int) -> Json:
    """An application that limits its flow to half of the link once PROBE_BW is there."""
    # For a hundred rounds, with PROBE_RTT between where nothing keeps it away.
    length_s = 16 if isinstance(algorithm, Own) else 14
    return one_flow(algorithm, length_s, app=LIMITED_APP, parameters=NO_PROBE_RTT)


def look_limited_up(seen: Seen) -> Figures:
    """How long the first PROBE_UP lasts that begins application-limited."""
    ups = seen.in_phase("probe-bw-up", SETTLED_S)
    if not ups:
        return {}
    # PROBE_RTT cuts it short, if nothing keeps it away; the next one continues.
    others = [k for k, s in enumerate(ups) if s.after not in cuts(seen)]
    ups = ups[: (others[0] if others else len(ups) - 1) + 1]
    return {
        "length_s": sum(s.length for s in ups),
        "rounds": sum(seen.at("round_count", s.end) - seen.at("round_count", s.start) for s in ups),
        "left": float(bool(ups[-1].after) and ups[-1].after not in cuts(seen)),
        "cut": float(len(ups) - 1),
        "lost_packets": seen.dropped(ups[0].start, ups[-1].end),
    }


def judge_limited_up(f: Figures, _algorithm: str) -> Finding:
    """To the end of the run, for a hundred rounds or more."""
    if not f:
        return Finding(False, f"no PROBE_UP after {time_text(SETTLED_S)}")
    seen = f"in PROBE_UP for {time_text(f['length_s'])} and {counted(f['rounds'], 'round')}"
    if f.get("cut"):
        seen += f", with {f['cut']:.0f} PROBE_RTT between"
    seen += ", then left" if f["left"] else ", until the end"
    good = not f["left"] and f["lost_packets"] == 0
    if good and f.get("cut") and f["rounds"] < 100:
        return Finding(None, f"{seen}; a hundred rounds were not possible")
    return Finding(good and f["rounds"] >= 100, seen)


def limited_up_loss(algorithm: str, seed: int) -> Json:
    """The same, and ten packets in a row are lost in that PROBE_UP."""
    up = first_seen(limited_up(algorithm, seed), seed, 6, lambda s: first_up(s, SETTLED_S))
    at = (up.start if up else SETTLED_S) + RTT_S / 2
    return one_flow(
        algorithm, 14, app=LIMITED_APP, parameters=NO_PROBE_RTT, up=lost_from(at, OUTAGE_S)
    )


DOWN = ("probe-bw-down", "probe-bw-cruise")


def outage(seen: Seen) -> float:
    """Return when the last outage of the forward direction begins."""
    return seen.run.setup.links[0].up.outages[-1].start_s


def look_up_loss(seen: Seen) -> Figures:
    """What losses in PROBE_UP did."""
    at = outage(seen)
    found = {"in_up": float(seen.phase_at(at) == "probe-bw-up")}
    losses = seen.losses(at)
    up = next((s for s in seen.in_phase("probe-bw-up") if s.start <= at < s.end), None)
    if up is None or not losses:
        return found
    found |= {
        "share_lost": seen.dropped(at, at + OUTAGE_S)
        * seen.packet_bytes
        / seen.before("bytes_in_flight", at),
        "left": float(bool(up.after)),
        # An acknowledgement may end PROBE_DOWN too, if less is in flight than fits.
        "to_down": float(up.after in (DOWN if seen.slack else DOWN[:1])),
        "after_s": up.end - losses[0],
        "before_bytes": seen.before("inflight_longterm_bytes", at),
        "after_bytes": seen.at("inflight_longterm_bytes", up.end),
        # Without the two segments that PROBE_UP adds, and with the bandwidth of after.
        "target_bytes": seen.at("target_inflight_bytes", up.end),
        "in_flight_bytes": float(np.max(seen.column("bytes_in_flight", up.start, losses[0]))),
        "bounds": float("inflight_longterm_bytes" in seen.table.columns),
    }
    if seen.slack and not found["bounds"]:
        del found["bounds"]
    return found


def judge_limited_up_loss(f: Figures, _algorithm: str) -> Finding:
    """PROBE_DOWN at once; samples that the application limits do not lower the long-term bound."""
    if not f.get("in_up") or "after_s" not in f:
        conforms = None if f.get("slack") else False
        return Finding(conforms, "no losses in an application-limited PROBE_UP")
    lost = f"{f['share_lost']:.0%} of what was in flight lost in an application-limited PROBE_UP"
    if not f["left"]:
        return Finding(False, f"{lost}: it stayed there")
    where = "PROBE_DOWN" if f["to_down"] else "another state"
    seen = f"{lost}: {where} {time_text(f['after_s'])} after the first was noticed"
    soon = f["to_down"] and f["after_s"] <= RTT_S * (2 if f.get("slack") else 1)
    if "bounds" not in f:
        return partly(f, bool(soon), seen, inflight_longterm=False)
    # Neither is there while there is no bound.
    same = f.get("after_bytes") == f.get("before_bytes")
    seen += ", inflight_longterm "
    after = f.get("after_bytes")
    seen += "as before" if same or after is None else f"set to {packets_text(after)}"
    return Finding(bool(soon and same), seen)


def ended_up(seen: Seen) -> Span | None:
    """Return the first PROBE_UP, if it ended."""
    up = first_up(seen)
    return up if up and up.after else None


def up_loss(algorithm: str, seed: int) -> Json:
    """Losses in one PROBE_UP, and again in a later one, before it ends on a plateau."""
    base = one_flow(algorithm, 14, parameters=NO_PROBE_RTT)
    up = first_seen(base, seed, 6, ended_up)
    first = lost_from((up.start if up else 4.0) + RTT_S / 2, OUTAGE_S)
    once = one_flow(algorithm, 14, parameters=NO_PROBE_RTT, up=first)
    # One that is not ended early for caution.
    since = (up.end if up else 4.0) + 1.0
    later = first_seen(once, seed, 10, lambda s: first_up(s, since, 3 * RTT_S))
    second = lost_from((later.start if later else 8.0) + RTT_S / 2, OUTAGE_S)
    both = {"outages": [*first["outages"], *second["outages"]]}
    return one_flow(algorithm, 14, parameters=NO_PROBE_RTT, up=both)


def judge_up_loss(f: Figures, _algorithm: str) -> Finding:
    """PROBE_DOWN at once, with a bound between 0.7 of the target and what was in flight."""
    if not f.get("in_up") or "after_s" not in f:
        if f.get("slack"):
            return Finding(None, "PROBE_UP was over before losses could be noticed in it")
        return Finding(False, "no losses in PROBE_UP with an inflight_longterm")
    if "bounds" not in f:
        seen = (
            f"{f['share_lost']:.0%} of what was in flight lost in PROBE_UP: "
            + ("PROBE_DOWN" if f["to_down"] else "left" if f["left"] else "it stayed there")
            + f" {time_text(f['after_s'])} after the first was noticed"
        )
        return partly(
            f, bool(f["to_down"] and f["after_s"] <= 2 * RTT_S), seen, inflight_longterm=False
        )
    if "before_bytes" not in f or "after_bytes" not in f:
        return Finding(False, "inflight_longterm was not set by losses in PROBE_UP")
    seen = (
        f"{f['share_lost']:.0%} of what was in flight lost in PROBE_UP: PROBE_DOWN "
        f"{time_text(f['after_s'])} after the first "
        f"was noticed, inflight_longterm from {packets_text(f['before_bytes'])} to "
        f"{packets_text(f['after_bytes'])}, the "
        f"target being {packets_text(f['target_bytes'])}"
    )
    low = 0.7 * f["target_bytes"] - 3 * MSS
    good = f["to_down"] and f["after_s"] <= RTT_S and low <= f["after_bytes"]
    return Finding(bool(good and f["after_bytes"] <= f["in_flight_bytes"] + MSS), seen)


# --- PROBE_DOWN


def shallow(algorithm: str, _seed: int) -> Json:
    """A buffer of half a bandwidth-delay product (version 2: a fifth), so that there is a long-term bound."""
    return one_flow(algorithm, 14, packets=round(bounding(algorithm, 0.5) * BDP_PACKETS))


def look_down(seen: Seen) -> Figures:
    """What was in flight where PROBE_DOWN ended in PROBE_CRUISE, of its bounds."""
    downs = [s for s in seen.in_phase("probe-bw-down") if s.after == "probe-bw-cruise"]
    if not downs:
        # One that is over with the acknowledgement that begins it is not seen.
        return {"none": 1.0} if seen.slack else {}
    worst = 0.0
    for s in downs:
        bounds = [
            seen.at(n, s.end) for n in ("max_target_inflight_bytes", "headroom_inflight_bytes")
        ]
        worst = max(worst, seen.at("bytes_in_flight", s.end) / float(np.nanmin(bounds)))
    # Of each as a whole, and of none that is short: where it is inferred, single samples are off.
    long = [s for s in downs if not seen.slack or s.length >= RTT_S] or downs
    gains = [seen.middle("pacing_gain", s.start, s.end) for s in long]
    bounded = [s for s in downs if not np.isnan(seen.at("headroom_inflight_bytes", s.end))]
    told = "headroom_inflight_bytes" in seen.table.columns
    return {
        "times": float(len(downs)),
        "bounded": float(len(bounded)) if told else float("nan"),
        "worst": worst,
        "least_gain": float(np.fmin.reduce(gains)),
        "most_gain": float(np.fmax.reduce(gains)),
    }


def judge_down(f: Figures, _algorithm: str) -> Finding:
    """Gain 0.9, and no more in flight than both bounds."""
    if not f:
        return Finding(False, "no PROBE_DOWN that ended in PROBE_CRUISE")
    if "none" in f:
        return Finding(None, "no PROBE_DOWN is seen that ended in PROBE_CRUISE")
    bounded = f.get("bounded")
    bounds = "" if bounded is None else f" ({bounded:.0f} with a long-term bound)"
    seen = (
        f"PROBE_DOWN with pacing gain {f['most_gain']:.3g} to PROBE_CRUISE "
        f"{counted(f['times'], 'time')}{bounds}, at most "
        f"{f['worst']:.1%} of the lower bound in flight"
    )
    good = all(abs(f[g] / 0.9 - 1) <= off(f, 1e-9) for g in ("least_gain", "most_gain"))
    bdp = RATE_BPS * RTT_S / 8
    good &= within(f, f["worst"] * bdp, bdp)
    if bounded is None:
        return partly(f, good, seen, inflight_longterm=False)
    return Finding(good and bounded > 0, seen)


LEFT = 0.88
"""Of the rate when PROBE_DOWN begins.

The draft says a decrease by a tenth; with its pacing margin of 1% PROBE_DOWN sends at 0.89 of the estimate, and that
drains the queue in three seconds.
"""


SHORTER_S = 0.01
"""By which the path becomes shorter before that PROBE_UP: more than what waits in PROBE_CRUISE."""


def down_time(algorithm: str, seed: int) -> Json:
    """The rate falls when PROBE_DOWN begins."""
    base = one_flow(algorithm, 10, parameters=NO_PROBE_RTT)
    up = first_seen(base, seed, 6, ended_up)
    more = None
    if isinstance(algorithm, Own) and up:
        # Nothing but a new lowest round-trip time puts PROBE_RTT off.
        sooner = up.start - 4 * RTT_S
        more = {"delay": delays((0, RTT_S / 2), (sooner, RTT_S / 2 - SHORTER_S))}
        again = one_flow(algorithm, 10, parameters=NO_PROBE_RTT, up=more)
        up = first_seen(again, seed, 6, ended_up)
    falls = steps((0, RATE_BPS), (up.end if up else 4.0, LEFT * RATE_BPS))
    return one_flow(algorithm, 10, bps=falls, parameters=NO_PROBE_RTT, up=more)


def look_down_time(seen: Seen) -> Figures:
    """How PROBE_DOWN ended when what was in flight did not fall."""
    at = seen.run.setup.links[0].up.rate.steps[1].time_s
    down = seen.first("probe-bw-down", at - 1e-6)
    if down is None or not down.after:
        return {}
    return {
        "length_s": down.length,
        "to_refill": float(down.after == "probe-bw-refill"),
        "cut": float(down.after in cuts(seen)),
        "least": float(
            np.min(
                seen.column("bytes_in_flight", down.start, down.end)
                / seen.column("max_target_inflight_bytes", down.start, down.end)
            )
        ),
    }


def judge_down_time(f: Figures, _algorithm: str) -> Finding:
    """PROBE_REFILL after two to three seconds."""
    if not f:
        return Finding(False, "PROBE_DOWN did not end")
    if f.get("cut"):
        return Finding(None, f"PROBE_DOWN for {time_text(f['length_s'])}, then PROBE_RTT")
    where = "straight to PROBE_REFILL" if f["to_refill"] else "to another state"
    seen = f"PROBE_DOWN for {time_text(f['length_s'])} with {f['least']:.2f} of the target in flight or more, {where}"
    return Finding(bool(f["to_refill"] and 2 <= f["length_s"] <= 3 + 2 * RTT_S), seen)


# --- PROBE_RTT


def probe_window(seen: Seen, probe: Span) -> float:
    """Return the window in PROBE_RTT.

    It is that at its beginning, or for a stack, whose order of changes is its own, the least.
    """
    if not seen.slack:
        return seen.at("congestion_window_bytes", probe.start)
    return float(np.min(seen.column("congestion_window_bytes", probe.start, probe.end)))


def look_probe_rtt(seen: Seen) -> Figures:
    """When PROBE_RTT came, how long it was, and what followed."""
    probe = seen.first("probe-rtt")
    if probe is None or not probe.after:
        return {}
    times = seen.table["time_s"].to_numpy()
    least = seen.table["min_rtt_s"].to_numpy()
    fell = times[1:][(np.diff(least) < 0) & (times[1:] < probe.start)]
    return {
        "waited_s": probe.start - (float(fell[-1]) if fell.size else 0.0),
        "length_s": probe.length,
        "gain": seen.at("cwnd_gain", probe.start),
        "window_bytes": probe_window(seen, probe),
        "half_bytes": seen.at("bandwidth_bps", probe.start)
        * seen.at("min_rtt_s", probe.start)
        / 16,
        "least_bytes": float(np.min(seen.column("bytes_in_flight", probe.start, probe.end))),
        "to_probe_bw": float(probe.after.startswith("probe-bw")),
        "rate": seen.rate(probe.end + 2 * RTT_S, min(probe.end + 1.0, seen.end_s))
        / seen.capacity(RATE_BPS),
    }


LOWEST_S = 2.0
"""When the lowest round-trip time has been seen, where that is not reported."""


def judge_probe_rtt(f: Figures, algorithm: str) -> Finding:
    """After five seconds, for 200 ms and a round trip, with half a bandwidth-delay product."""
    if not f:
        return Finding(False, "no PROBE_RTT that ended")
    wait = 10 if algorithm == "bbr" else 5
    window = 4 * f.get("packet_bytes", MSS) if algorithm == "bbr" else f["half_bytes"]
    gain = f", cwnd_gain {f['gain']:.2g}" if "gain" in f else ""
    since = "in" if f.get("slack") else "after the last lower round-trip time"
    seen = (
        f"PROBE_RTT {time_text(f['waited_s'])} {since}{gain}, a window of "
        f"{packets_text(f['window_bytes'])}, for {time_text(f['length_s'])}, then {f['rate']:.0%} of the link"
    )
    gains = 1.0 if algorithm == "bbr" else 0.5
    good = (
        wait - 0.02 <= f["waited_s"] <= wait + (LOWEST_S if f.get("slack") else 0.5)
        and abs(f["window_bytes"] / window - 1) < off(f, 0.02)
        and f.get("gain", gains) == gains
        and 0.2 * (1 - off(f)) <= f["length_s"] <= 0.2 + 3 * RTT_S
        and within(f, f["least_bytes"], f["window_bytes"])
        and f["rate"] >= 0.9
    )
    return Finding(bool(good and f["to_probe_bw"]), seen)


IDLE_FROM_S = 3.0
AGAIN_S = 14.0


def idle(algorithm: str, _seed: int) -> Json:
    """An application that pauses for longer than any interval between two PROBE_RTTs, and continues."""
    return one_flow(algorithm, 16, app=[(0, 22e6), (IDLE_FROM_S, 0), (AGAIN_S, 22e6)])


def look_idle(seen: Seen) -> Figures:
    """What happened after the pause."""
    later = [s for s in seen.in_phase("probe-rtt") if s.start >= AGAIN_S]
    return {
        "in_flight_bytes": seen.before("bytes_in_flight", AGAIN_S),
        "in_probe_bw": float(seen.phase_at(AGAIN_S - 0.1).startswith("probe-bw")),
        "idle_restart": float(np.max(seen.column("idle_restart", AGAIN_S, AGAIN_S + RTT_S))),
        "probes": float(len(later)),
        "rate": seen.rate(AGAIN_S + 2 * RTT_S, AGAIN_S + 1.0) / seen.capacity(RATE_BPS),
    }


def judge_idle(f: Figures, _algorithm: str) -> Finding:
    """No PROBE_RTT."""
    if not within(f, f["in_flight_bytes"], 0) or not f["in_probe_bw"]:
        return Finding(False, "the flow was not idle in PROBE_BW at the end of the pause")
    # What idle_restart is for is seen anyway: that no PROBE_RTT follows.
    restart = f.get("idle_restart", 1.0) if f.get("slack") else f["idle_restart"]
    mark = "idle_restart " + ("set, " if restart else "not set, ") if "idle_restart" in f else ""
    seen = f"after a pause of 11 s {mark}{f['probes']:.0f} PROBE_RTT within 2 s, {f['rate']:.0%} of the link"
    return Finding(bool(restart and not f["probes"] and f["rate"] >= 0.9), seen)


# --- aggregation in PROBE_CRUISE


def cruise_batches(algorithm: str, seed: int) -> Json:
    """Acknowledgements come in batches from PROBE_CRUISE on."""
    phase = "probe-bw" if algorithm == "bbr" else "probe-bw-cruise"
    cruise = first_seen(bulk(algorithm, seed), seed, 3, lambda s: s.first(phase))
    at = (cruise.start if cruise else 1.0) + RTT_S
    return one_flow(algorithm, 5, down=batches(at, 5))


def look_cruise_batches(seen: Seen) -> Figures:
    """What batches did to the window and to the use of the link."""
    at = seen.run.setup.links[0].down.rate.steps[1].time_s
    first = at + 4 * RTT_S
    bdp = seen.at("max_bandwidth_bps", first) * seen.at("min_rtt_s", first) / 8
    if seen.slack:
        # Batches lead the estimates of some stacks astray; the path has not changed.
        bdp = seen.capacity(RATE_BPS) * RTT_S / 8
    return {
        "extra_bytes": float(np.median(seen.column("extra_acked_bytes", first, seen.end_s))),
        "batch_bytes": seen.capacity(RATE_BPS) * BATCH_S / 8,
        "window_bytes": float(np.median(seen.column("congestion_window_bytes", first, seen.end_s))),
        "bdp_bytes": bdp,
        "rate": seen.rate(first, seen.end_s) / seen.capacity(RATE_BPS),
    }


def judge_cruise_batches(f: Figures, _algorithm: str) -> Finding:
    """The window has room for a batch, and the link is used."""
    told = "extra_bytes" in f
    # Where extra_acked is not reported, the window must still have room for half of a batch.
    extra = f["extra_bytes"] if told else 0.5 * f["batch_bytes"]
    text = f"extra_acked {packets_text(extra)} of the {packets_text(f['batch_bytes'])} of a batch, "
    seen = (
        f"{text if told else ''}a window of "
        f"{packets_text(f['window_bytes'])} (bandwidth-delay product "
        f"{packets_text(f['bdp_bytes'])}), {f['rate']:.1%} of the link"
    )
    good = (
        extra >= 0.5 * f["batch_bytes"]
        and f["window_bytes"] >= (2 * f["bdp_bytes"] + 0.5 * extra) * (1 - off(f))
        and f["rate"] >= 0.95
    )
    return Finding(good, seen)


# --- an application that pauses in PROBE_REFILL

PAUSE_S = 1.2 * RTT_S


def refill_pause(algorithm: str, seed: int) -> Json:
    """An application that limits its flow pauses for a round trip when PROBE_REFILL begins."""
    base = limited_up(algorithm, seed)
    refill = first_seen(base, seed, 6, lambda s: s.first("probe-bw-refill", SETTLED_S))
    at = refill.start if refill else SETTLED_S
    app = [*LIMITED_APP, (at, 0.0), (at + PAUSE_S, LIMITED_BPS)]
    return one_flow(algorithm, 14, app=app, parameters=NO_PROBE_RTT)


def look_refill(seen: Seen) -> Figures:
    """What the estimate was before and after an application-limited PROBE_REFILL."""
    at = in_seconds(seen.run.setup.flows[0].workload["cbr"]["rate"]["steps"][2][0])
    refill = seen.first("probe-bw-refill", at - 1e-6)
    if refill is None or not refill.after:
        return {}
    later = refill.end + 4 * RTT_S
    return {
        "before": seen.at("max_bandwidth_bps", refill.start) / seen.capacity(RATE_BPS),
        "after": seen.at("max_bandwidth_bps", later) / seen.capacity(RATE_BPS),
        "sample": seen.rate(refill.start, later) / seen.capacity(RATE_BPS),
        "to_up": float(refill.after == "probe-bw-up"),
        "rounds": seen.at("round_count", refill.end) - seen.at("round_count", refill.start),
    }


def judge_refill(f: Figures, _algorithm: str) -> Finding:
    """The same estimate, and PROBE_UP after a round."""
    if not f:
        return Finding(False, "no PROBE_REFILL that ended")
    seen = (
        f"max_bw {f['before']:.1%} of the link before and {f['after']:.1%} after a PROBE_REFILL in which "
        f"{f['sample']:.0%} of it arrived, PROBE_UP after {counted(f['rounds'], 'round')}"
    )
    good = f["after"] >= f["before"] * (1 - off(f)) and f["sample"] < 0.7 * f["before"]
    return Finding(bool(good and f["to_up"] and f["rounds"] <= max(whole(f, 2))), seen)


V1 = {"bbr": CYCLES}
V2 = {**V1, "bbr2": f"{SECOND}: what is in flight ends its PROBE_UP"}
CASES = (
    Case(
        "bbr-up-plateau",
        "Exiting PROBE_UP on bandwidth plateau",
        SECTION,
        "PROBE_UP to PROBE_DOWN when three rounds in a row have not brought a quarter more, without loss",
        bulk,
        look_up_plateau,
        judge_up_plateau,
        V2,
    ),
    Case(
        "bbr-up-loss-limited",
        "Exiting PROBE_UP on loss when application-limited",
        SECTION,
        "PROBE_UP to PROBE_DOWN with the losses, inflight_longterm as it was: samples are application-limited",
        limited_up_loss,
        look_up_loss,
        judge_limited_up_loss,
        V1,
    ),
    Case(
        "bbr-limited-up",
        "Never exiting PROBE_UP when application-limited with no loss",
        SECTION,
        "PROBE_UP for a hundred rounds, to the end of the run",
        limited_up,
        look_limited_up,
        judge_limited_up,
        V1,
    ),
    Case(
        "bbr-down-inflight",
        "Exiting PROBE_DOWN on inflight",
        SECTION,
        "PROBE_DOWN at pacing gain 0.9 to PROBE_CRUISE when no more is in flight than "
        "InflightWithHeadroom and Inflight(1.0)",
        shallow,
        look_down,
        judge_down,
        V1,
    ),
    Case(
        "bbr-down-time",
        "Exiting PROBE_DOWN after max time",
        SECTION,
        "PROBE_DOWN straight to PROBE_REFILL after bw_probe_wait, 2 to 3 s",
        down_time,
        look_down_time,
        judge_down_time,
        V1,
    ),
    Case(
        "bbr-probe-rtt",
        "Entering and exiting PROBE_RTT",
        SECTION,
        "PROBE_RTT 5 s after the last lower round-trip time with cwnd_gain 0.5 (version 1: 10 s, "
        "four packets), for 200 ms and "
        "a round trip, then PROBE_BW and the link again",
        lambda algorithm, _: one_flow(
            algorithm, 14 if algorithm == "bbr" or isinstance(algorithm, Own) else 8
        ),
        look_probe_rtt,
        judge_probe_rtt,
    ),
    Case(
        "bbr-skip-probe-rtt",
        "Skipping PROBE_RTT due to application-limited sending",
        SECTION,
        "idle_restart and no PROBE_RTT after a pause that was longer than its interval",
        idle,
        look_idle,
        judge_idle,
    ),
    Case(
        "bbr-cruise-aggregation",
        "Achieving expected cruise bandwidth on a link with aggregation",
        SECTION,
        "extra_acked of half a batch or more, added to the window, and 95% of the link used",
        cruise_batches,
        look_cruise_batches,
        judge_cruise_batches,
    ),
    Case(
        "bbr-up-loss",
        "Handling loss during PROBE_UP after inflight_longterm is set",
        SECTION,
        "PROBE_UP to PROBE_DOWN with the losses, inflight_longterm to what was in flight, not under 0.7 of the target",
        up_loss,
        look_up_loss,
        judge_up_loss,
        V1,
    ),
    Case(
        "bbr-refill-limited",
        "Handling application-limited sending during PROBE_REFILL",
        SECTION,
        "max_bw not lowered by lower samples that are application-limited, and PROBE_UP after the round trip",
        refill_pause,
        look_refill,
        judge_refill,
        V1,
    ),
)
