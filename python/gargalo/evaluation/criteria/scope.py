"""General use: the range of rates, delays and queues; wired and wireless; queue management."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.evaluation.criteria.alone import RATE_BPS, roomy, several
from gargalo.evaluation.figures import (
    DROPS,
    QUEUE_P50,
    QUEUE_P95,
    RETRANSMITTED,
    UTILIZATION,
    by_cell,
    figure,
    least_of,
    mean_of,
    reduce,
)
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import PACKET_BYTES
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.sweeps.job import Label

QUEUES: dict[str, Any] = {
    "red": {"red": {}},
    "codel": {"codel": {}},
    "fq-codel": {"fq-codel": {}},
    "pie": {"pie": {}},
    "dualpi2": {"dualpi2": {}},
}


def range_cells(plan: Plan) -> list[Cell]:
    """Rates and round trips behind tail drop; the largest of them with one flow and one buffer only."""
    slow, delays = (1e6, 10e6, 100e6), (0.001, 0.01, 0.04, 0.1, 0.3, 0.6)
    grid: Sequence[tuple[float, float]] = plan.pick(
        ((1e6, 0.04), (10e6, 0.1), (100e6, 0.02)),
        tuple((r, d) for r in slow for d in delays),
        tuple((r, d) for r in (*slow, 1e9) for d in delays),
    )
    ways = [
        (n, factor)
        for n in plan.pick((1,), (1, 4), (1, 2, 4, 16, 64))
        for factor in plan.pick((1.0,), (0.25, 1.0, 4.0), (0.25, 1.0, 4.0, 16.0))
    ]
    points = [(bps, rtt, n, factor) for bps, rtt in grid for n, factor in ways]
    large: Sequence[tuple[float, float]] = plan.pick(
        (), ((1e9, 0.01), (1e9, 0.1)), ((10e9, 0.01), (10e9, 0.1))
    )
    points += [(bps, rtt, 1, 1.0) for bps, rtt in large]
    cells = []
    for bps, rtt, n, factor in points:
        length = min(60.0, max(20.0, 200 * rtt))
        scenario = several(plan, n, bps=bps, rtt_s=rtt, factor=factor, duration_s=length)
        roomy(scenario, bps, rtt, factor)
        cells.append(Cell({"rate_bps": bps, "rtt_s": rtt, "n": n, "buffer_bdp": factor}, scenario))
    return cells


STEP: dict[str, Any] = {"step": {"mark_above": "20 packets", "limit": "400 packets"}}
"""Marks every packet that finds 20 packets waiting, and drops only far above: an algorithm that ignores marks fills
it."""
MARKED = 0.5
"""Marks count as ignored from this share of marked packets on."""
STANDING_S = 0.03
"""They count as ignored from this median queueing delay on.

That is 50 packets, beside 67 that the path holds: one reduction to 0.7 of that (RFC 9438 section 4.6), let alone to a
half (RFC 3168 section 6.1.2), leaves fewer than the 20 above which packets are marked. Where the median is higher,
marks come and no reduction follows.
"""


def aqm_cells(plan: Plan) -> list[Cell]:
    """Queue management, with and without marks."""
    cells = []
    queues = QUEUES | {"step": STEP}
    for name in plan.pick(("red", "fq-codel", "dualpi2", "step"), tuple(queues)):
        for ecn in (False, True) if name != "step" else (True,):
            scenario = several(
                plan,
                2,
                queue=queues[name],
                duration_s=40,
                bottleneck={"ecn": True} if ecn else None,
            )
            if ecn:
                for f in scenario["flows"]:
                    # Classic; DCTCP's feedback for DCTCP itself, and ECT(1) for Prague.
                    f["transport"]["tcp"]["ecn"] = True
            cells.append(Cell({"queue": name, "ecn": ecn}, scenario))
    return cells


def aqm_faults(scores: Scores) -> list[str]:
    """Marks that change nothing."""
    marked, usual = scores.mean("unanswered"), scores.mean("unanswered", YARDSTICK)
    queue = by_cell(scores, scores.algorithm, "queue_p50_s", ("queue",)).get(("step",))
    if marked is None or usual is None or queue is None or marked < MARKED or queue < STANDING_S:
        return []
    return [
        f"ignores ECN: {marked:.0%} of its packets are marked behind a queue that marks all above 20 packets "
        f"({usual:.1%} of {YARDSTICK}'s), and {queue * RATE_BPS / 8 / PACKET_BYTES:.0f} packets stand there"
    ]


def wireless_cells(plan: Plan) -> list[Cell]:
    """Loss of the medium, a capacity that varies, jitter."""
    cells = []
    for loss in plan.pick((0.001, 0.01), (0.0001, 0.001, 0.01, 0.03)):
        scenario = several(plan, 1, bps=10e6, duration_s=40, bottleneck={"loss": loss})
        cells.append(Cell({"case": "loss", "loss": loss}, scenario))
    if not plan.quick:
        # The same 1% in bursts of eight (RFC 8868 section 4.4 prefers Gilbert and Elliott's).
        bursts = {"loss": {"gilbert-elliott": {"p": 0.00126, "r": 0.125}}}
        scenario = several(plan, 1, bps=10e6, duration_s=40, bottleneck=bursts)
        cells.append(Cell({"case": "bursts", "loss": 0.01}, scenario))
    steps = [[f"{5 * i}s", f"{m}Mbit/s"] for i, m in enumerate((10, 4, 16, 2, 12, 6, 20, 8))]
    varying = {"rate": {"steps": steps}, "jitter": {"scale": "5ms", "distribution": "normal"}}
    scenario = several(plan, 1, bps=10e6, factor=2, duration_s=40, bottleneck=varying)
    cells.append(Cell({"case": "varying", "loss": 0.0}, scenario))
    return cells


def managed(column: str, **labels: Label) -> Callable[[pl.DataFrame], float | None]:
    """Return the mean of a column over the queues that manage themselves, all but the step."""
    return lambda rows: mean_of(column, **labels)(rows.filter(pl.col("queue") != "step"))


def lossy(rows: pl.DataFrame) -> float | None:
    """Return the mean goodput on the links that lose packets."""
    return reduce(rows.filter(pl.col("case") != "varying"), "goodput_bps.own", "mean", {})


CRITERIA = (
    Criterion(
        "tail-drop",
        "Tail drop over rates and delays",
        "RFC 9743 6.1, 6.3",
        "MUST",
        "It works behind tail-drop queues over a representative range of bandwidths, delays and queue depths.",
        "Single flows at 1 Mbit/s and 40 ms, 10 Mbit/s and 100 ms, 100 Mbit/s and 20 ms, buffers "
        "of one bandwidth-delay "
        "product (standard: 1 Mbit/s to 1 Gbit/s, 1 to 600 ms, one and four flows, 0.25 to 4; "
        "full: 10 Gbit/s, up to 64 "
        "flows, 16).",
        range_cells,
        (
            UTILIZATION,
            figure(
                "least_utilization",
                "the same where it is least",
                "more",
                least_of("utilization"),
                bounds=SHARE,
                margin=0.05,
            ),
            QUEUE_P95,
            RETRANSMITTED,
        ),
        group="general",
    ),
    Criterion(
        "wireless",
        "Wireless",
        "RFC 9743 6.4",
        "should",
        "Radio loss, capacity that varies, jitter of media access.",
        "One flow at 10 Mbit/s and 40 ms with 0.1% and 1% loss (standard: 0.01 to 3%, and in "
        "bursts), and on a link whose rate steps "
        "between 2 and 20 Mbit/s every 5 s with jitter.",
        wireless_cells,
        (
            figure(
                "lossy_bps",
                "goodput on links with loss",
                "more",
                lossy,
                bounds=POSITIVE,
                margin=0.1,
            ),
            figure(
                "varying_utilization",
                "share of the varying capacity used",
                "more",
                mean_of("utilization", case="varying"),
                bounds=SHARE,
                margin=0.05,
            ),
            figure(
                "varying_queue_s",
                "queueing delay there, 95th percentile",
                "less",
                mean_of("queue_p95_s", case="varying"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.005,
            ),
        ),
        group="general",
    ),
    Criterion(
        "aqm",
        "Queue management and ECN",
        "RFC 9743 7.1",
        "SHOULD",
        "It works with active queue management; if it sets ECT, it reacts to marks as the codepoint's rules say.",
        "Two flows at 20 Mbit/s and 40 ms behind RED, FQ-CoDel and DualPI2 (standard: CoDel and "
        "PIE too), with and without ECN, and "
        "behind a queue that marks all above 20 packets: delay, drops, marks, use of the link.",
        aqm_cells,
        (
            replace(QUEUE_P50, of=managed("queue_p50_s")),
            replace(UTILIZATION, of=managed("utilization")),
            replace(DROPS, of=managed("drop_rate")),
            figure(
                "mark_rate",
                "share of packets marked, with ECN",
                "less",
                managed("mark_rate", ecn=True),
                bounds=SHARE,
                margin=0.2,
                least=0.002,
            ),
            figure(
                "unanswered",
                "share of packets marked by a queue that marks all above 20 packets",
                "less",
                mean_of("mark_rate", queue="step"),
                bounds=SHARE,
                margin=0.2,
                least=0.02,
            ),
            figure(
                "marked_delay_s",
                "queueing delay with ECN, 95th percentile",
                "less",
                managed("queue_p95_s", ecn=True),
                bounds=POSITIVE,
                margin=0.1,
                least=0.002,
            ),
        ),
        aqm_faults,
        group="special",
    ),
)
