"""The algorithm alone on the bottleneck: queues, loss, fairness among its own, short flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.evaluation.figures import (
    COST,
    DROPS,
    QUEUE_P50,
    QUEUE_P95,
    RETRANSMITTED,
    STANDING,
    by_cell,
    figure,
    least_of,
    mean_of,
    starvation,
    worst_of,
)
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import OWN, buffer, dumbbell, flow
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

RATE_BPS = 20e6
RTT_S = 0.04
NEAR = 0.05
"""Each repeat's round trips are within this share of the nominal value.

A single flow on a network without chance is the same run again whenever it starts, and flows in step are an artefact
(phase effects: Floyd and Jacobson, Internetworking 3(3), 1992). All algorithms meet the same round trips.
"""
MUCH_LOST = 0.1
"""Loss is excessive from this share of packets on, if it is also three times what CUBIC causes.

At that rate the media circuit breaker of RFC 8083 section 4.3 ends a call of 0.8 Mbit/s over a round trip of 0.4 s.
BBRv1, which RFC 9743 names, causes more, BBRv3 half of it.
"""


def several(
    plan: Plan,
    n: int,
    *,
    bps: float = RATE_BPS,
    rtt_s: float | Sequence[float] = RTT_S,
    factor: float = 1.0,
    duration_s: float = 40.0,
    gap_s: float = 0.0,
    queue: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Flows of the algorithm alone, each between its own pair of hosts; round trips vary by `NEAR`."""
    base = rtt_s if isinstance(rtt_s, float) else max(rtt_s)
    near = 1 - NEAR + plan.start("round trip", within_s=2 * NEAR)
    rtts = rtt_s * near if isinstance(rtt_s, float) else [r * near for r in rtt_s]
    flows = [flow(OWN, plan.algorithm, i, start_s=i * gap_s + plan.start(i)) for i in range(n)]
    return dumbbell(
        flows,
        bps=bps,
        rtt_s=rtts,
        queue=queue or buffer(bps, base, factor),
        duration_s=duration_s,
        **more,
    )


def roomy(scenario: dict[str, Any], bps: float, rtt_s: float, factor: float) -> None:
    """Give receivers twice what path and buffer hold, so that their window is never the limit.

    A window of TCP goes no further than 1 GB (RFC 7323 section 2.3); what would hold more drops nothing.
    """
    room = min(1000, max(16, round(2 * (1 + factor) * bps * rtt_s / 8e6)))
    for f in scenario["flows"]:
        f["transport"]["tcp"]["receive_buffer"] = f"{room}MB"


def bufferbloat_cells(plan: Plan) -> list[Cell]:
    """Tail drop from shallow to deep."""
    return [
        Cell(
            {"buffer_bdp": factor, "n": n},
            several(plan, n, factor=factor, duration_s=40 if factor <= 4 else 60),
        )
        for factor in plan.pick((1.0, 8.0), (0.25, 0.5, 1.0, 2.0, 4.0, 16.0))
        for n in plan.pick((1,), (1, 4), (1, 2, 4, 16))
    ]


def loss_cells(plan: Plan) -> list[Cell]:
    """Many flows in shallow buffers."""
    return [
        Cell({"buffer_bdp": factor, "n": n}, several(plan, n, factor=factor, duration_s=30))
        for factor in plan.pick((0.25, 1.0), (0.1, 0.25, 0.5, 1.0, 2.0))
        for n in plan.pick((8,), (1, 2, 4, 8, 16, 32))
    ]


def loss_faults(scores: Scores) -> list[str]:
    """Much more loss than the standard algorithm causes."""
    own, usual = (
        by_cell(scores, name, "retransmitted.own", ("n", "buffer_bdp"))
        for name in (scores.algorithm, YARDSTICK)
    )
    much = {
        cell: lost
        for cell, lost in own.items()
        if cell in usual and lost >= max(MUCH_LOST, 3 * usual[cell])
    }
    if not much:
        return []
    (n, factor), lost = max(much.items(), key=lambda item: item[1])
    return [
        f"causes loss: {lost:.0%} of the packets of {n} flows in a buffer of {factor:g} bandwidth-delay products "
        f"are repetitions, {usual[n, factor]:.1%} of {YARDSTICK}'s"
        + (f"; likewise in {len(much) - 1} other cells" if len(much) > 1 else "")
    ]


def self_cells(plan: Plan) -> list[Cell]:
    """Equal round trips, unequal ones, and one late flow."""
    cells = [
        Cell({"case": "same", "n": n}, several(plan, n, duration_s=60))
        for n in plan.pick((4,), (2, 4, 16))
    ]
    for ratio in plan.pick((4,), (2, 4, 10)):
        rtts = [0.02, 0.02 * ratio]
        cells.append(
            Cell({"case": "round trips", "n": ratio}, several(plan, 2, rtt_s=rtts, duration_s=60))
        )
    cells.append(Cell({"case": "late", "n": 2}, several(plan, 2, gap_s=15.0, duration_s=75)))
    return cells


def self_faults(scores: Scores) -> list[str]:
    """Flows of its own that starve."""
    # Where all flows have little, none starves because of another.
    used = by_cell(scores, scores.algorithm, "utilization", ("case", "n"))
    return starvation(scores, "its own: a flow has") if min(used.values(), default=0) > 0.5 else []


def short_cells(plan: Plan) -> list[Cell]:
    """Short flows beside long ones, all of the algorithm."""
    cells = []
    for size in plan.pick(
        ("50kB",), ("10kB", "100kB", "1MB", "10MB"), ("10kB", "30kB", "100kB", "1MB", "10MB")
    ):
        bits = {"10kB": 8e4, "30kB": 2.4e5, "50kB": 4e5, "100kB": 8e5, "1MB": 8e6, "10MB": 8e7}[
            size
        ]
        for load in plan.pick((0.25,), (0.1, 0.4)):
            per_second = load * RATE_BPS / bits
            short = flow(
                "short", plan.algorithm, 2, start_s=5,
                workload={"bulk": {"bytes": size}}, arrivals={"rate": f"{per_second:.6g}/s"}, stop_s=45,
            )  # fmt: skip
            long = [flow(OWN, plan.algorithm, i, start_s=plan.start(i)) for i in range(2)]
            scenario = dumbbell([*long, short], bps=RATE_BPS, rtt_s=RTT_S)
            cells.append(Cell({"size": size, "load": load}, scenario))
    return cells


CRITERIA = (
    Criterion(
        "bufferbloat",
        "Bufferbloat",
        "RFC 9743 5.1.2",
        "should",
        "It tries not to maintain excessive queues; Reno and CUBIC are the baseline to improve on.",
        "Flows at 20 Mbit/s and 40 ms behind tail drop of one and of eight bandwidth-delay products (standard: 0.25 to "
        "16): queueing delay over time and the part of it that never goes away.",
        bufferbloat_cells,
        (QUEUE_P50, QUEUE_P95, STANDING, COST),
    ),
    Criterion(
        "loss-caused",
        "Loss caused",
        "RFC 9743 5.1.3",
        "should",
        "It avoids excessive increases and cuts its rate under high loss (BBRv1 did not, with several flows and "
        "buffers under one and a half bandwidth-delay products).",
        "Eight flows at 20 Mbit/s and 40 ms in buffers of 0.25 and 1 bandwidth-delay product (standard: 1 to 32 "
        "flows, 0.1 to 2): packets dropped and sent again.",
        loss_cells,
        (RETRANSMITTED, DROPS, COST),
        loss_faults,
    ),
    Criterion(
        "self-fairness",
        "Fairness among its own",
        "RFC 9743 5.1.4",
        "should",
        "How capacity is shared among flows of the algorithm.",
        "Four flows of one round-trip time, two of unequal ones, and one that comes 15 s after the "
        "other, at 20 Mbit/s: "
        "Jain's index, the least of the flows against the most, time to share, time starved.",
        self_cells,
        (
            figure(
                "jain",
                "Jain's index, same round trips",
                "more",
                mean_of("jain", case="same"),
                bounds=SHARE,
                margin=0.03,
            ),
            figure(
                "jain_rtt",
                "Jain's index, round trips of 1 to 4",
                "more",
                mean_of("jain", case="round trips"),
                bounds=SHARE,
                margin=0.05,
            ),
            figure(
                "jain_late",
                "Jain's index, one comes late",
                "more",
                mean_of("jain", case="late"),
                bounds=SHARE,
                margin=0.03,
            ),
            figure(
                "convergence_s",
                "time until the late one has its share",
                "less",
                mean_of("convergence_s", case="late"),
                bounds=POSITIVE,
                margin=0.2,
                least=2,
            ),
            figure(
                "starved",
                "share of time that the worst of its flows starves",
                "less",
                worst_of("starved.own"),
                bounds=SHARE,
                least=0.05,
            ),
        ),
        self_faults,
    ),
    Criterion(
        "short-long",
        "Short and long flows",
        "RFC 9743 5.1.5",
        "MUST",
        "The effect of new and short flows on long ones, and the reverse.",
        "Two long flows and short ones of 50 kB at a quarter of 20 Mbit/s (standard: 10 kB to 10 MB, 10 and 40%): how "
        "long the short ones take, what the long ones have left.",
        short_cells,
        (
            figure(
                "short_p50_s",
                "completion of short flows, median",
                "less",
                mean_of("completion_p50_s.short"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.01,
            ),
            figure(
                "short_p95_s",
                "completion of short flows, 95th percentile",
                "less",
                mean_of("completion_p95_s.short"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.02,
            ),
            figure(
                "long_bps",
                "goodput of the long flows",
                "more",
                mean_of("goodput_bps.own"),
                bounds=POSITIVE,
                margin=0.05,
            ),
            figure(
                "short_lost",
                "share of the short flows' packets lost",
                "less",
                mean_of("lost.short"),
                bounds=SHARE,
                least=0.002,
                margin=0.1,
            ),
            figure(
                "least_bps",
                "the lesser of the long flows",
                "more",
                least_of("least_bps.own"),
                bounds=POSITIVE,
                margin=0.1,
            ),
        ),
    ),
)
