"""Varying delay, reordering, tiny and huge bandwidth-delay products, data centres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.evaluation.criteria.alone import roomy, several
from gargalo.evaluation.figures import (
    QUEUE_P95,
    RETRANSMITTED,
    UTILIZATION,
    by_cell,
    figure,
    least_of,
    mean_of,
    worst_of,
)
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import OWN, dumbbell, flow
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence

INCAST_BPS = 1e9


def delay_cells(plan: Plan) -> list[Cell]:
    """The base delay steps up and down, one way of the two, and jitters."""
    made = []
    near, far, farther = [["0s", "10ms"]], [["20s", "60ms"]], [["20s", "210ms"]]
    middle = [["20s", "110ms"]]
    back = [["20s", "10ms"]]
    for name, steps in (
        ("up 50 ms", near + far),
        ("down 50 ms", [["0s", "60ms"], *back]),
        *plan.pick(
            (),
            (
                ("up 100 ms", near + middle),
                ("down 100 ms", [["0s", "110ms"], *back]),
                ("up 200 ms", near + farther),
                ("down 200 ms", [["0s", "210ms"], *back]),
                ("back and forth", [["0s", "20ms"], ["15s", "70ms"], ["25s", "20ms"], ["35s", "70ms"]]),
            ),
        ),
    ):  # fmt: skip
        scenario = several(
            plan,
            1,
            bps=20e6,
            rtt_s=0.04,
            factor=2,
            duration_s=60,
            bottleneck={"delay": {"steps": steps}},
        )
        made.append(Cell({"case": name}, scenario))
    # As slotted media do: arrivals spread over 40 ms, in order.
    scenario = several(plan, 1, bps=20e6, factor=2, duration_s=60, bottleneck={"jitter": "20ms"})
    made.append(Cell({"case": "jitter"}, scenario))
    return made


FOLLOWED = 0.5
"""Less than this share of what CUBIC has of a path 30 s after it changed: not slower, but wrong about the path.

What is meant is an estimate that outlives the path it was made on, like the least round-trip time of Vegas after a
re-routing (Mo, La, Anantharam, Walrand, INFOCOM 1999, section IV).
"""


RISING = 1.1
"""Growth of the rate over a third of that time from which on an algorithm is slow, but under way."""


def behind(scores: Scores, cases: Sequence[str] = ()) -> dict[str, tuple[float, float]]:
    """Return the cases in which capacity stays unused after a change: what it has of it, and the yardstick.

    An algorithm that did not use the path before the change either has another fault; one that still grows is slow, not
    wrong.
    """
    own, usual = (
        by_cell(scores, name, "followed", ("case",)) for name in (scores.algorithm, YARDSTICK)
    )
    before, rising = (
        by_cell(scores, scores.algorithm, column, ("case",)) for column in ("before", "rising")
    )
    return {
        str(case): (share, usual[case,])
        for (case,), share in own.items()
        if (not cases or case in cases)
        and (case,) in usual
        and share < FOLLOWED * usual[case,]
        and before.get((case,), 0.0) >= FOLLOWED
        and rising.get((case,), 1.0) < RISING
    }


def delay_faults(scores: Scores) -> list[str]:
    """Capacity that is never used again."""
    return [
        f"loses the path when its delay changes: {case}, and it uses {own:.0%} of the capacity at the end, "
        f"{YARDSTICK} {usual:.0%}"
        for case, (own, usual) in behind(scores).items()
    ]


def reordering_cells(plan: Plan) -> list[Cell]:
    """Packets that come late."""
    return [
        Cell(
            {"share": share, "late_ms": late},
            several(
                plan, 1, bps=20e6, duration_s=30,
                bottleneck={"up": {"reorder": {"probability": share, "late": f"{late}ms"}}},
            ),
        )
        for share in plan.pick((0.01, 0.1), (0.001, 0.01, 0.1, 0.3))
        for late in plan.pick((20,), (2, 20, 60))
    ]  # fmt: skip


def slow_cells(plan: Plan) -> list[Cell]:
    """Rates at which one packet is already a large window."""
    return [
        Cell(
            {"rate_bps": bps, "n": n},
            several(plan, n, bps=bps, rtt_s=0.1, queue={"droptail": "20 packets"}, duration_s=120),
        )
        for bps in plan.pick((64e3,), (64e3, 256e3))
        for n in plan.pick((1, 2), (1, 2, 4))
    ]


def fast_cells(plan: Plan) -> list[Cell]:
    """Large bandwidth-delay products: a satellite link and a long, fast path."""
    grid: Sequence[tuple[float, float, float, float]] = plan.pick(
        ((40e6, 0.6, 0.0, 60.0), (100e6, 0.2, 1e-5, 60.0), (100e6, 0.1, 1e-4, 60.0)),
        (
            (40e6, 0.6, 0.0, 120.0), (100e6, 0.2, 0.0, 120.0), (100e6, 0.2, 1e-5, 120.0), (100e6, 0.1, 1e-4, 120.0),
            (400e6, 0.1, 0.0, 120.0), (400e6, 0.1, 1e-5, 60.0),
        ),
        (
            (40e6, 0.6, 0.0, 300.0), (100e6, 0.2, 0.0, 300.0), (100e6, 0.2, 1e-5, 300.0), (100e6, 0.1, 1e-4, 120.0),
            (400e6, 0.1, 1e-5, 120.0), (1e9, 0.1, 1e-6, 120.0), (1e9, 0.2, 0.0, 120.0), (10e9, 0.1, 1e-7, 30.0),
        ),
    )  # fmt: skip
    made = []
    for bps, rtt, loss, length in grid:
        scenario = several(
            plan, 1, bps=bps, rtt_s=rtt, factor=0.5, duration_s=length,
            bottleneck={"up": {"loss": loss}} if loss else None,
        )  # fmt: skip
        roomy(scenario, bps, rtt, 0.5)
        made.append(Cell({"rate_bps": bps, "rtt_s": rtt, "loss": loss}, scenario))
    return made


def incast_cells(plan: Plan) -> list[Cell]:
    """Many answer at once."""
    made = []
    for n in plan.pick((16,), (8, 32), (8, 32, 128)):
        senders = [
            flow(
                OWN, plan.algorithm, i, start_s=0.01 + plan.start(i, within_s=0.0001),
                workload={"bulk": {"bytes": "256kB"}},
            )
            for i in range(n)
        ]  # fmt: skip
        scenario = dumbbell(
            senders, bps=INCAST_BPS, rtt_s=0.0002, queue={"droptail": "100 packets"}, duration_s=5,
            interval_s=0.001,
        )  # fmt: skip
        for f in scenario["flows"]:
            f["transport"]["tcp"]["min_rto"] = "10ms"
        made.append(Cell({"n": n}, scenario))
    return made


def slow_faults(scores: Scores) -> list[str]:
    """Nothing gets through at low rates."""
    used = scores.mean("utilization")
    return (
        [f"fails at low rates: {used:.0%} of 64 kbit/s used"]
        if used is not None and used < 0.5
        else []
    )


CRITERIA = (
    Criterion(
        "varying-delay",
        "Varying delay",
        "RFC 9743 7.3",
        "SHOULD",
        "Robust when the minimum delay changes significantly.",
        "One flow at 20 Mbit/s, two bandwidth-delay products; the one-way delay steps between 10 and 60 ms at 20 s, up "
        "and down (standard: by 100 and 200 ms, and back and forth), or jitters by 40 ms.",
        delay_cells,
        (
            figure(
                "followed",
                "share of the capacity used at the end",
                "more",
                mean_of("followed"),
                bounds=POSITIVE,
                margin=0.05,
            ),
            figure(
                "follow_s",
                "time after the step with less than four fifths of it",
                "less",
                mean_of("follow_s"),
                bounds=POSITIVE,
                margin=0.3,
                least=2,
            ),
            figure(
                "jitter_utilization",
                "share of the link used under jitter",
                "more",
                mean_of("utilization", case="jitter"),
                bounds=SHARE,
                margin=0.05,
            ),
            QUEUE_P95,
        ),
        delay_faults,
        group="special",
    ),
    Criterion(
        "low-rate",
        "Very low rates",
        "RFC 9743 7.4",
        "should",
        "It works where the bandwidth-delay product is less than a packet.",
        "One and two flows at 64 kbit/s and 100 ms behind 20 packets (standard: 256 kbit/s too): use of the link, "
        "repetitions, delay.",
        slow_cells,
        (UTILIZATION, RETRANSMITTED, QUEUE_P95),
        slow_faults,
        group="special",
    ),
    Criterion(
        "high-bdp",
        "High bandwidth-delay products",
        "RFC 9743 7.5",
        "should",
        "It works over satellites (RFC 2488) and large windows (RFC 3649).",
        "One flow at 40 Mbit/s and 600 ms, and at 100 Mbit/s with loss: one packet in 100,000 over "
        "200 ms, one in 10,000 over "
        "100 ms; buffers of half a bandwidth-delay product (standard: up to 400 Mbit/s; full: 10 "
        "Gbit/s). Reno's response "
        "to such loss is a fifth of the link (RFC 3649 section 5).",
        fast_cells,
        (
            UTILIZATION,
            figure(
                "least_utilization",
                "the same where it is least",
                "more",
                least_of("utilization"),
                bounds=SHARE,
                margin=0.1,
            ),
            figure(
                "goodput_bps",
                "goodput",
                "more",
                mean_of("goodput_bps.own"),
                bounds=POSITIVE,
                margin=0.05,
            ),
            QUEUE_P95,
        ),
        group="special",
    ),
    Criterion(
        "reordering",
        "Extreme reordering",
        "RFC 9743 7.7",
        "should",
        "Robust against reordering (RFC 4653).",
        "One flow at 20 Mbit/s and 40 ms; 1% and 10% of packets come 20 ms late (standard: 0.1 to 30%, 2 to 60 ms).",
        reordering_cells,
        (
            figure(
                "goodput_bps",
                "goodput",
                "more",
                mean_of("goodput_bps.own"),
                bounds=POSITIVE,
                margin=0.1,
            ),
            RETRANSMITTED,
        ),
        group="special",
    ),
    Criterion(
        "data-centre",
        "Data centre",
        "RFC 9743 7.11",
        "SHOULD",
        "Under 2 ms, with synchronised bursts.",
        "Sixteen hosts answer with 256 kB at once over 1 Gbit/s, 0.2 ms and 100 packets (standard: "
        "8 and 32): completion, "
        "loss, timeouts.",
        incast_cells,
        (
            figure(
                "completion_p50_s",
                "completion, median",
                "less",
                mean_of("completion_p50_s.own"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.001,
            ),
            figure(
                "completion_p95_s",
                "completion, 95th percentile",
                "less",
                worst_of("completion_p95_s.own"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.002,
            ),
            RETRANSMITTED,
            figure(
                "timeouts",
                "timeouts",
                "less",
                mean_of("timeouts.own"),
                bounds=POSITIVE,
                margin=0.1,
                least=1,
            ),
        ),
        group="special",
    ),
)
