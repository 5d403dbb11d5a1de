"""Receivers that lie: optimistic acknowledgements, divided ones, hidden marks."""

from __future__ import annotations

import polars as pl

from gargalo.evaluation.figures import figure, mean_of, worst_of
from gargalo.evaluation.model import Cell, Criterion, Plan
from gargalo.evaluation.networks import OTHER, OWN, buffer, dumbbell, flow

RATE_BPS = 20e6
RTT_S = 0.04
LIES = ("optimistic", "divides-acks", "hides-ecn")


def cells(plan: Plan) -> list[Cell]:
    """One flow to a liar beside one honest CUBIC flow."""
    made = []
    for lie in LIES:
        hides = lie == "hides-ecn"
        own = {"tcp": {"congestion": plan.algorithm, "receiver": lie}}
        other = {"tcp": {"congestion": "cubic"}}
        if hides:
            own["tcp"]["ecn"] = other["tcp"]["ecn"] = "classic"
        flows = [
            flow(OWN, None, 0, start_s=plan.start("own", lie), transport=own),
            flow(OTHER, None, 1, start_s=plan.start("other", lie), transport=other),
        ]
        queue = {"red": {}} if hides else buffer(RATE_BPS, RTT_S, 1)
        scenario = dumbbell(
            flows,
            bps=RATE_BPS,
            rtt_s=RTT_S,
            queue=queue,
            duration_s=40,
            bottleneck={"ecn": True} if hides else None,
        )
        made.append(Cell({"lie": lie}, scenario))
    return made


def honest_share(rows: pl.DataFrame) -> float | None:
    """Return what the honest flow got over half of the bottleneck, where acknowledgements are divided."""
    rows = rows.filter(pl.col("lie") == "divides-acks")
    if "goodput_bps.other" not in rows.columns or rows.height == 0:
        return None
    ratio = rows.select(2 * pl.col("goodput_bps.other") / pl.col("capacity_bps")).to_series()
    return float(ratio.mean()) if ratio.len() else None  # type: ignore[arg-type]


CRITERIA = (
    Criterion(
        "misbehaving",
        "Misbehaving receivers",
        "RFC 9743 7.6",
        "SHOULD",
        "What non-compliant senders, receivers and routers can make of it.",
        "One flow at 20 Mbit/s and 40 ms to a receiver that acknowledges what was lost, divides acknowledgements, or "
        "hides marks, beside one honest CUBIC flow: what is left for that, what is dropped.",
        cells,
        (
            figure(
                "divided_share",
                "share of the honest flow over half, acknowledgements divided",
                "more",
                honest_share,
                margin=0.1,
                least=0.05,
            ),
            figure(
                "optimistic_drops",
                "share of packets dropped, losses acknowledged",
                "less",
                mean_of("drop_rate", lie="optimistic"),
                margin=0.2,
                least=0.01,
            ),
            figure(
                "optimistic_starved",
                "share of time that the honest flow starves then",
                "less",
                worst_of("starved.other", lie="optimistic"),
                least=0.05,
            ),
            figure(
                "hidden_drops",
                "share of packets dropped, marks hidden",
                "less",
                mean_of("drop_rate", lie="hides-ecn"),
                margin=0.2,
                least=0.01,
            ),
        ),
        group="special",
    ),
)
