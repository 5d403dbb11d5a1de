"""Congestion collapse, loss of all feedback, sudden change: whether it backs off and comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.evaluation.figures import figure, mean_of, worst_of
from gargalo.evaluation.model import Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import OTHER, OWN, buffer, dumbbell, flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.evaluation.model import Figure

RATE_BPS = 10e6
RTT_S = 0.04


def collapse_cells(plan: Plan) -> list[Cell]:
    """One flow through links that lose a share of all packets, and an overloaded one."""
    cells = []
    for loss in plan.pick((0.3, 0.5), (0.1, 0.3, 0.5, 0.9)):
        scenario = dumbbell(
            [flow(OWN, plan.algorithm, 0, start_s=plan.start("loss", loss))],
            bps=RATE_BPS,
            rtt_s=RTT_S,
            queue=buffer(RATE_BPS, RTT_S, 1),
            duration_s=60,
            bottleneck={"up": {"loss": loss}},
        )
        cells.append(Cell({"case": "loss", "loss": loss}, scenario))
    # 110% of the capacity is offered by datagrams that never back off; what is sent into it is in vain.
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
        queue=buffer(RATE_BPS, RTT_S, 1),
        duration_s=60,
    )
    cells.append(Cell({"case": "overload", "loss": 0.0}, scenario))
    return cells


def collapse_faults(scores: Scores) -> list[str]:
    """Sending on into heavy loss, or none at all."""
    found = []
    at = scores.mean("offered_at_half")
    if at is not None and at > 0.5:
        found.append(
            f"does not back off: with half of all packets lost it still sends {at:.0%} of the capacity"
        )
    overload = scores.mean("offered_overload")
    if overload is not None and overload > 0.5:
        found.append(
            f"does not back off: it sends {overload:.0%} of the capacity into an overloaded link"
        )
    least = scores.mean("goodput_at_third_bps")
    best = max(
        (scores.mean("goodput_at_third_bps", r) or 0.0 for r in ("reno", "cubic")), default=0.0
    )
    if least is not None and best > 0 and least < 0.1 * best:
        found.append(
            f"collapses at 30% loss: {least / 1e3:.3g} kbit/s, where reno or cubic get {best / 1e3:.3g}"
        )
    return found


COLLAPSE_FIGURES: Sequence[Figure] = (
    figure("offered_at_half", "sent at 50% loss, as a share of the capacity", "less", mean_of("offered.own", case="loss", loss=0.5), least=0.02),
    figure("offered_overload", "sent into 110% load, as a share of the capacity", "less", mean_of("offered.own", case="overload"), least=0.02),
    figure("goodput_at_third_bps", "goodput at 30% loss", "more", mean_of("goodput_bps.own", case="loss", loss=0.3), margin=0.1),
)  # fmt: skip


def blackout_cells(plan: Plan) -> list[Cell]:
    """All acknowledgements are lost for a while."""
    cells = []
    for length in plan.pick((5.0,), (1.0, 5.0, 30.0)):
        scenario = dumbbell(
            [flow(OWN, plan.algorithm, 0, start_s=plan.start("blackout", length))],
            bps=RATE_BPS,
            rtt_s=RTT_S,
            queue=buffer(RATE_BPS, RTT_S, 1),
            duration_s=40 + 2 * length,
            interval_s=0.05,
            bottleneck={"down": {"outages": [["20s", f"{20 + length:g}s"]]}},
        )
        cells.append(Cell({"length_s": length}, scenario))
    return cells


def blackout_faults(scores: Scores) -> list[str]:
    """Sending on without feedback, or never coming back."""
    found = []
    late = scores.mean("late_packets")
    if late is not None and late > 20:
        found.append(f"sends {late:.0f} packets in the second half of an outage of all feedback")
    took, own = scores.mean("recovery_s"), scores.own()
    left = float(own["virtual_s"].min() or 0.0) - 25.0 if own.height else 0.0  # type: ignore[arg-type]
    if took is not None and left > 0 and took > 0.9 * left:
        found.append("does not come back after an outage of all feedback")
    return found


def cross_cells(plan: Plan) -> list[Cell]:
    """Datagrams at three quarters of the capacity come and go."""
    rate = 100e6
    burst = flow(
        OTHER,
        None,
        1,
        start_s=20,
        stop_s=40,
        transport={"udp": {}},
        workload={"cbr": {"rate": f"{round(0.75 * rate)}bit/s"}},
    )
    scenario = dumbbell(
        [flow(OWN, plan.algorithm, 0, start_s=plan.start("transient")), burst],
        bps=rate,
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
        "One flow at 10 Mbit/s and 40 ms through 30% and 50% loss, and against datagrams at 110% of the capacity: "
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
                margin=0.2,
                least=20,
            ),
            figure(
                "late_packets",
                "of those, in its second half",
                "less",
                mean_of("outage_late_packets"),
                margin=0.2,
                least=3,
            ),
            figure(
                "recovery_s",
                "time until four fifths of the rate are back",
                "less",
                mean_of("recovery_s"),
                margin=0.2,
                least=0.5,
            ),
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
                least=0.002,
                margin=0.1,
            ),
            figure(
                "queue_p99_s",
                "queueing delay, 99th percentile",
                "less",
                worst_of("queue_p99_s"),
                margin=0.1,
                least=0.002,
            ),
            figure(
                "utilization", "share of the link used", "more", mean_of("utilization"), margin=0.03
            ),
        ),
        group="special",
    ),
)
