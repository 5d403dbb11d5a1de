"""General use: the range of rates, delays and queues; wired and wireless; queue management."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.evaluation.criteria.alone import several
from gargalo.evaluation.figures import (
    DROPS,
    QUEUE_P50,
    QUEUE_P95,
    RETRANSMITTED,
    UTILIZATION,
    figure,
    least_of,
    mean_of,
)
from gargalo.evaluation.model import Cell, Criterion, Plan, Scores

if TYPE_CHECKING:
    from collections.abc import Sequence

QUEUES: dict[str, Any] = {
    "red": {"red": {}},
    "codel": {"codel": {}},
    "fq-codel": {"fq-codel": {}},
    "pie": {"pie": {}},
}


def range_cells(plan: Plan) -> list[Cell]:
    """Rates and round trips behind tail drop of one bandwidth-delay product, single flows."""
    grid: Sequence[tuple[float, float]] = plan.pick(
        ((1e6, 0.04), (10e6, 0.1), (100e6, 0.02)),
        tuple((r, d) for r in (1e6, 10e6, 100e6) for d in (0.01, 0.04, 0.1, 0.3)),
        tuple((r, d) for r in (1e6, 10e6, 100e6, 1e9) for d in (0.001, 0.01, 0.04, 0.1, 0.3, 0.6)),
    )
    cells = []
    for bps, rtt in grid:
        for n in plan.pick((1,), (1, 4), (1, 2, 4, 16)):
            # A second of 100 Mbit/s is as much work as a hundred of 1 Mbit/s.
            length = min(60.0, max(20.0, 200 * rtt))
            scenario = several(plan, n, bps=bps, rtt_s=rtt, duration_s=length)
            cells.append(Cell({"rate_bps": bps, "rtt_s": rtt, "n": n}, scenario))
    return cells


def aqm_cells(plan: Plan) -> list[Cell]:
    """Queue management, with and without marks."""
    cells = []
    for name in plan.pick(("red", "fq-codel"), tuple(QUEUES)):
        for ecn in (False, True):
            scenario = several(
                plan,
                2,
                queue=QUEUES[name],
                duration_s=40,
                bottleneck={"ecn": True} if ecn else None,
            )
            if ecn:
                for f in scenario["flows"]:
                    f["transport"]["tcp"]["ecn"] = "classic"
            cells.append(Cell({"queue": name, "ecn": ecn}, scenario))
    return cells


def aqm_faults(scores: Scores) -> list[str]:
    """Marks that change nothing."""
    own, usual = scores.mean("marked_delay_s"), scores.mean("marked_delay_s", "cubic")
    marked, usually = scores.mean("mark_rate"), scores.mean("mark_rate", "cubic")
    if own is None or usual is None or marked is None or usually is None:
        return []
    if marked > 5 * max(usually, 0.002):
        return [f"ignores ECN: {marked:.0%} of its packets are marked, {usually:.1%} of cubic's"]
    return []


def wireless_cells(plan: Plan) -> list[Cell]:
    """Loss of the medium, a capacity that varies, jitter."""
    cells = []
    for loss in plan.pick((0.001, 0.01), (0.0001, 0.001, 0.01, 0.03)):
        scenario = several(plan, 1, bps=10e6, duration_s=40, bottleneck={"loss": loss})
        cells.append(Cell({"case": "loss", "loss": loss}, scenario))
    steps = [[f"{5 * i}s", f"{m}Mbit/s"] for i, m in enumerate((10, 4, 16, 2, 12, 6, 20, 8))]
    varying = {"rate": {"steps": steps}, "jitter": {"scale": "5ms", "distribution": "normal"}}
    scenario = several(plan, 1, bps=10e6, factor=2, duration_s=40, bottleneck=varying)
    cells.append(Cell({"case": "varying", "loss": 0.0}, scenario))
    return cells


CRITERIA = (
    Criterion(
        "tail-drop",
        "Tail drop over rates and delays",
        "RFC 9743 6.1, 6.3",
        "MUST",
        "It works behind tail-drop queues over a representative range of bandwidths, delays and queue depths.",
        "Single flows at 1 Mbit/s and 40 ms, 10 Mbit/s and 100 ms, 100 Mbit/s and 20 ms (standard: 1 to 100 Mbit/s, "
        "10 to 300 ms, one and four flows; full: up to 1 Gbit/s and 600 ms).",
        range_cells,
        (
            UTILIZATION,
            figure(
                "least_utilization",
                "the same where it is least",
                "more",
                least_of("utilization"),
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
        "One flow at 10 Mbit/s and 40 ms with 0.1% and 1% loss (standard: 0.01 to 3%), and on a link whose rate steps "
        "between 2 and 20 Mbit/s every 5 s with jitter.",
        wireless_cells,
        (
            figure(
                "lossy_bps",
                "goodput on links with loss",
                "more",
                mean_of("goodput_bps.own", case="loss"),
                margin=0.1,
            ),
            figure(
                "varying_utilization",
                "share of the varying capacity used",
                "more",
                mean_of("utilization", case="varying"),
                margin=0.05,
            ),
            figure(
                "varying_queue_s",
                "queueing delay there, 95th percentile",
                "less",
                mean_of("queue_p95_s", case="varying"),
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
        "Two flows at 20 Mbit/s and 40 ms behind RED and FQ-CoDel (standard: CoDel and PIE too), with and without ECN: "
        "delay, drops, marks, use of the link.",
        aqm_cells,
        (
            QUEUE_P50,
            UTILIZATION,
            DROPS,
            figure(
                "mark_rate",
                "share of packets marked, with ECN",
                "less",
                mean_of("mark_rate", ecn=True),
                margin=0.2,
                least=0.002,
            ),
            figure(
                "marked_delay_s",
                "queueing delay with ECN, 95th percentile",
                "less",
                mean_of("queue_p95_s", ecn=True),
                margin=0.1,
                least=0.002,
            ),
        ),
        aqm_faults,
        group="special",
    ),
)
