"""The five properties of the study `high-speed-tcp`, on points of it that minutes allow."""

from __future__ import annotations

from gargalo.evaluation.criteria.alone import several
from gargalo.evaluation.criteria.mixed import share_of_others
from gargalo.evaluation.figures import LINK_USED, figure, mean_of
from gargalo.evaluation.model import Cell, Criterion, Plan
from gargalo.evaluation.networks import OTHER, OWN, dumbbell, flow
from gargalo.metrics.intervals import POSITIVE, SHARE

RATE_BPS = 100e6


def scalability_cells(plan: Plan) -> list[Cell]:
    """One flow at rising rates."""
    return [
        Cell({"rate_bps": bps}, several(plan, 1, bps=bps, rtt_s=0.1, factor=0.5, duration_s=60))
        for bps in plan.pick((10e6, 200e6), (10e6, 50e6, 200e6, 500e6))
    ]


def compatibility_cells(plan: Plan) -> list[Cell]:
    """One flow beside one Reno flow with a large window."""
    flows = [
        flow(OWN, plan.algorithm, 0, start_s=plan.start("own")),
        flow(OTHER, "reno", 1, start_s=plan.start("other")),
    ]
    scenario = dumbbell(flows, bps=RATE_BPS, rtt_s=0.06, duration_s=60)
    return [Cell({"own": 1, "others": 1}, scenario)]


def convergence_cells(plan: Plan) -> list[Cell]:
    """A second flow comes after 20 s."""
    return [Cell({"n": 2}, several(plan, 2, bps=RATE_BPS, rtt_s=0.06, gap_s=20, duration_s=80))]


CRITERIA = (
    Criterion(
        "scalability",
        "Scalability",
        "RFC 5166 2.1; high-speed-tcp",
        "should",
        "It uses fast links as well as slow ones.",
        "One flow at 10 and 200 Mbit/s (standard: up to 500), 100 ms and half a bandwidth-delay product.",
        scalability_cells,
        (LINK_USED,),
        group="properties",
    ),
    Criterion(
        "compatibility",
        "Compatibility with Reno at large windows",
        "RFC 9743 5.2.1; high-speed-tcp",
        "should",
        "It leaves Reno its share where windows are large.",
        "One flow beside one Reno flow at 100 Mbit/s and 60 ms.",
        compatibility_cells,
        (
            figure(
                "share",
                "what Reno got over half of the link",
                "more",
                share_of_others,
                bounds=POSITIVE,
                margin=0.1,
                least=0.05,
            ),
        ),
        group="properties",
    ),
    Criterion(
        "convergence",
        "Convergence and stability",
        "RFC 5166 2.2, 2.3.3; high-speed-tcp",
        "should",
        "Rates converge soon and then keep still.",
        "Two flows at 100 Mbit/s and 60 ms, the second 20 s after the first.",
        convergence_cells,
        (
            figure(
                "convergence_s",
                "time until the rates differ by less than a fifth",
                "less",
                mean_of("convergence_s"),
                bounds=POSITIVE,
                margin=0.2,
                least=2,
            ),
            figure(
                "variation",
                "coefficient of variation of the rates",
                "less",
                mean_of("variation.own"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.02,
            ),
            figure("jain", "Jain's index", "more", mean_of("jain"), bounds=SHARE, margin=0.03),
        ),
        group="properties",
    ),
)
