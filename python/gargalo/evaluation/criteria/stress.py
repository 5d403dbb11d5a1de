"""Congestion collapse, loss of all feedback, sudden change: whether it backs off and recovers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.evaluation.figures import LINK_USED, RECOVERY, figure, least_of, mean_of, worst_of
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import OTHER, OWN, buffer, dumbbell, flow, rate, seconds
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gargalo.evaluation.model import Figure

RATE_BPS = 10e6
RTT_S = 0.04
NARROW_BPS = 1e6

SENT_AT_HALF = 0.1
"""Most that may be sent through 50% loss, as a share of the capacity.

Full backoff is one packet in a round trip (RFC 3714; RFC 9743 section 5.1.1), here 3% of the capacity, and
the equation of RFC 5348 section 3.1 gives less than that at such loss. Three times as much leaves room for
controls that do not know timeouts; Reno and CUBIC send under 1%.
"""
SENT_IN_OVERLOAD = 0.5
"""Most that may be sent into a link that others overload: the fair share of one flow of two."""
WASTED = 0.25
"""Most of a shared link that may be spent on packets that are dropped behind it.

Reno and CUBIC waste less than 1%; the unresponsive flows of Floyd and Fall (IEEE/ACM ToN 7(4), 1999, section II), whose
example of congestion collapse this is, waste all they take.
"""
COLLAPSED = 0.1
"""Less than this share of what Reno or CUBIC get at 30% loss is a collapse: a factor that no choice of constants
explains."""
LATE_PACKETS = 20
"""Most packets in the second half of an outage.

Timers that double (RFC 6298 section 5.5) send one or two there, a constant timer of a
second, which RFC 8961 section 4 forbids, 15 in the longest outage here.
"""
REGAINED = 0.5
"""Least share of its former rate that an algorithm must have again some time after an outage."""


def collapse_cells(plan: Plan) -> list[Cell]:
    """One flow through links that lose a share of all packets, an overloaded one, and one narrow further on."""
    cells = []
    for loss in plan.pick((0.3, 0.5, 0.9), (0.1, 0.3, 0.5, 0.7, 0.9)):
        scenario = dumbbell(
            [flow(OWN, plan.algorithm, 0, start_s=plan.start("loss", loss))],
            bps=RATE_BPS,
            rtt_s=RTT_S,
            bottleneck={"up": {"loss": loss}},
        )
        cells.append(Cell({"case": "loss", "loss": loss}, scenario))
    # All packets: after the handshake, nothing arrives from 20 s on.
    scenario = dumbbell(
        [flow(OWN, plan.algorithm, 0, start_s=plan.start("all"))],
        bps=RATE_BPS,
        rtt_s=RTT_S,
        duration_s=50,
        interval_s=0.05,
        bottleneck={"up": {"outages": [["20s", "50s"]]}},
    )
    cells.append(Cell({"case": "all lost", "loss": 1.0}, scenario))
    # 110% of the capacity is offered by datagrams that never back off; what is sent into it is lost.
    over = flow(
        OTHER,
        None,
        1,
        transport={"udp": {}},
        workload={"cbr": {"rate": f"{round(1.1 * RATE_BPS)}bit/s"}},
    )
    scenario = dumbbell(
        [flow(OWN, plan.algorithm, 0, start_s=5 + plan.start("overload")), over],
        bps=RATE_BPS,
        rtt_s=RTT_S,
    )
    cells.append(Cell({"case": "overload", "loss": 0.0}, scenario))
    cells.append(Cell({"case": "undelivered", "loss": 0.0}, undelivered(plan)))
    return cells


def undelivered(plan: Plan) -> dict[str, Any]:
    """A flow that shares a link with a Reno flow, and then passes one with a tenth of its rate."""
    quarter = seconds(RTT_S / 4)
    first, second = (
        {"rate": rate(bps), "delay": quarter, "queue": buffer(bps, RTT_S, 1)}
        for bps in (RATE_BPS, NARROW_BPS)
    )
    own = {
        "label": OWN, "from": "left", "to": "right", "start": seconds(plan.start("undelivered")),
        "transport": {"tcp": {"congestion": plan.algorithm}},
    }  # fmt: skip
    other = {
        "label": OTHER, "from": "cross0", "to": "sink0", "start": seconds(plan.start("beside")),
        "transport": {"tcp": {"congestion": "reno"}},
    }  # fmt: skip
    return {
        "name": "evaluation",
        "duration": "60s",
        "record": {"interval": "100ms", "events": False},
        "topology": {"parking-lot": {"hops": 2, "bottleneck": [first, second]}},
        "flows": [own, other],
    }


def wasted(rows: pl.DataFrame) -> float | None:
    """Return the share of the wide link that carries what is dropped at the narrow one."""
    dropped = mean_of("wasted_bps", case="undelivered")(rows)
    return None if dropped is None else dropped / RATE_BPS


def collapse_faults(scores: Scores) -> list[str]:
    """Continuing to send into heavy loss, or not sending at all."""
    found = []
    at = scores.mean("offered_at_half")
    if at is not None and at > SENT_AT_HALF:
        found.append(
            f"does not back off: with half of all packets lost it still sends {at:.0%} of the capacity"
        )
    overload = scores.mean("offered_overload")
    if overload is not None and overload > SENT_IN_OVERLOAD:
        found.append(
            f"does not back off: it sends {overload:.0%} of the capacity into an overloaded link"
        )
    lost = scores.mean("wasted")
    if lost is not None and lost > WASTED:
        found.append(
            f"does not back off: {lost:.0%} of a shared link carry packets that are dropped further on"
        )
    late = scores.mean("late_packets")
    if late is not None and late > LATE_PACKETS:
        found.append(
            f"does not back off: {late:.0f} packets in 15 s, after 15 s in which all were lost"
        )
    least = scores.mean("goodput_at_third_bps")
    best = max(
        (scores.mean("goodput_at_third_bps", r) or 0.0 for r in ("reno", "cubic")), default=0.0
    )
    if least is not None and best > 0 and least < COLLAPSED * best:
        found.append(
            f"collapses at 30% loss: {least / 1e3:.3g} kbit/s, where reno or cubic get {best / 1e3:.3g}"
        )
    return found


COLLAPSE_FIGURES: Sequence[Figure] = (
    figure("offered_at_half", "sent at 50% loss, as a share of the capacity", "less",
        mean_of("offered.own", case="loss", loss=0.5), bounds=POSITIVE, least=0.02),
    figure("per_rtt_at_most", "packets sent in a round trip at 90% loss", "less",
        mean_of("per_rtt.own", case="loss", loss=0.9), bounds=POSITIVE, least=0.5),
    figure("late_packets", "packets sent in 15 s, after 15 s in which all were lost", "less",
        mean_of("outage_late_packets", case="all lost"), bounds=POSITIVE, margin=0.2, least=3),
    figure("offered_overload", "sent into 110% load, as a share of the capacity", "less",
        mean_of("offered.own", case="overload"), bounds=POSITIVE, least=0.02),
    figure("wasted", "share of a shared link spent on packets that are dropped further on", "less", wasted,
        bounds=SHARE, least=0.02),
    figure("goodput_at_third_bps", "goodput at 30% loss", "more",
        mean_of("goodput_bps.own", case="loss", loss=0.3), bounds=POSITIVE, margin=0.1),
)  # fmt: skip


def blackout_cells(plan: Plan) -> list[Cell]:
    """All acknowledgements are lost for a while."""
    cells = []
    for length in plan.pick((5.0,), (1.0, 5.0, 30.0)):
        scenario = dumbbell(
            [flow(OWN, plan.algorithm, 0, start_s=plan.start("blackout", length))],
            bps=RATE_BPS,
            rtt_s=RTT_S,
            # A timer that has doubled up to the length of the outage expires within this time again.
            duration_s=40 + 2 * length,
            interval_s=0.05,
            bottleneck={"down": {"outages": [["20s", f"{20 + length:g}s"]]}},
        )
        cells.append(Cell({"length_s": length}, scenario))
    return cells


def blackout_faults(scores: Scores) -> list[str]:
    """Continuing to send without feedback, or not recovering."""
    found = []
    late = scores.mean("late_packets")
    if late is not None and late > LATE_PACKETS:
        found.append(
            f"does not back off without feedback: {late:.0f} packets in the second half of an outage"
        )
    return found + lost_for_good(scores, "an outage of all feedback")


def lost_for_good(scores: Scores, after: str) -> list[str]:
    """Not recovering after an outage."""
    again = scores.mean("regained")
    usual = scores.mean("regained", YARDSTICK)
    if again is None or again >= REGAINED or (usual is not None and usual < REGAINED):
        return []
    return [f"does not come back after {after}: it never has more than {again:.0%} of its rate"]


REGAINED_FIGURE = figure(
    "regained", "share of its former rate that it reaches again", "more", least_of("recovered"),
        bounds=POSITIVE, margin=0.2
)  # fmt: skip


def cross_cells(plan: Plan) -> list[Cell]:
    """Datagrams at three quarters of the capacity come and go."""
    bps = 100e6
    burst = flow(
        OTHER,
        None,
        1,
        start_s=20,
        stop_s=40,
        transport={"udp": {}},
        workload={"cbr": {"rate": f"{round(0.75 * bps)}bit/s"}},
    )
    scenario = dumbbell(
        [flow(OWN, plan.algorithm, 0, start_s=plan.start("transient")), burst],
        bps=bps,
        rtt_s=0.1,
        queue={"droptail": "1024 packets"},
        duration_s=80,
    )
    return [Cell({"case": "cross traffic"}, scenario)]


CRITERIA = (
    Criterion(
        "collapse",
        "Congestion collapse",
        "RFC 9743 5.1.1",
        "should",
        "Above some drop rate it stops sending or backs off fully, as far as single packets ever further apart.",
        "One flow at 10 Mbit/s and 40 ms through 30, 50 and 90% loss (standard: 10 and 70% too), "
        "where all is lost from "
        "20 s on, against datagrams at 110% of the capacity, and across a link shared with Reno into one of 1 Mbit/s: "
        "what it still sends, and what gets through.",
        collapse_cells,
        COLLAPSE_FIGURES,
        collapse_faults,
        group="alone",
    ),
    Criterion(
        "blackout",
        "Loss of all feedback",
        "RFC 9743 5.2",
        "MUST",
        "A loss of all feedback, as with a retransmission timeout, results in backoff.",
        "One flow at 10 Mbit/s and 40 ms; no acknowledgement arrives for 5 s (standard: 1, 5 and 30 s): packets sent "
        "meanwhile, and the time until four fifths of the rate are back.",
        blackout_cells,
        (
            figure(
                "packets",
                "packets sent during the outage",
                "less",
                mean_of("outage_packets"),
                bounds=POSITIVE,
                margin=0.2,
                least=20,
            ),
            figure(
                "late_packets",
                "of those, in its second half",
                "less",
                mean_of("outage_late_packets"),
                bounds=POSITIVE,
                margin=0.2,
                least=3,
            ),
            RECOVERY,
            REGAINED_FIGURE,
        ),
        blackout_faults,
        group="mixed",
    ),
    Criterion(
        "transients",
        "Sudden congestion",
        "RFC 9743 7.8",
        "SHOULD",
        "Robust when congestion comes and goes suddenly.",
        "One flow at 100 Mbit/s and 100 ms, a buffer of 1024 packets (tcpeval-01 5.3); datagrams take three quarters "
        "of the link from 20 s to 40 s: their loss, the queue, and the use of the link.",
        cross_cells,
        (
            figure(
                "cross_lost",
                "share of the datagrams lost",
                "less",
                mean_of("lost.other"),
                bounds=SHARE,
                least=0.002,
                margin=0.1,
            ),
            figure(
                "queue_p99_s",
                "queueing delay, 99th percentile",
                "less",
                worst_of("queue_p99_s"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.002,
            ),
            LINK_USED,
        ),
        group="special",
    ),
)
