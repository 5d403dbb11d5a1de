"""Misbehaving receivers: optimistic acknowledgements, divided acknowledgements, hidden marks.

What a lie does is seen against the same network with an honest receiver: an algorithm that is greedy anyway is told so
by other criteria. Optimistic acknowledgements and hidden marks take from a sender what it answers to (Savage, Cardwell,
Wetherall, Anderson, CCR 29(5), 1999; RFC 3168 section 19): how much that costs others is a figure beside those of the
references. Divided acknowledgements help a sender that counts acknowledgements instead of bytes, which RFC 3465 section
2 corrects: that is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo import metrics
from gargalo.evaluation.criteria.mixed import HARM, HELP
from gargalo.evaluation.figures import by_cell, figure, mean_of, worst_of
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import OTHER, OWN, buffer, dumbbell, flow
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from typing import Any

    import polars as pl

RATE_BPS = 20e6
RTT_S = 0.04
LOSS = 0.004
"""Of the link on which acknowledgements are divided: some hundred losses a minute, from each of which a window grows
anew."""
MISBEHAVIOURS = {"loss": "divides-acks", "tail drop": "optimistic", "marks": "hides-ecn"}
GAINED = 1.5
"""Goodput with divided acknowledgements over that with whole ones from which on they are said to gain.

Two segments and one acknowledgement for them make four pieces: a sender that counts them grows four times as fast,
which is twice the goodput at such loss (the square root of the increase: RFC 5348 section 3.1). By bytes there is no
difference but that of other packets being lost, a tenth or so in a run.
"""


def cells(plan: Plan) -> list[Cell]:
    """One flow to a misbehaving or to an honest receiver: beside one honest CUBIC flow, or alone and with loss."""

    def toward(receiver: str, **more: Any) -> dict[str, Any]:
        tcp = {"congestion": plan.algorithm, **more}
        if receiver != "honest":
            tcp["receiver"] = receiver
        # The same start times with the honest and the misbehaving receiver.
        return flow(OWN, None, 0, start_s=plan.start("own"), transport={"tcp": tcp})

    made = []
    for receiver in ("honest", MISBEHAVIOURS["loss"]):
        scenario = dumbbell(
            [toward(receiver)],
            bps=RATE_BPS,
            rtt_s=RTT_S,
            bottleneck={"up": {"loss": LOSS}},
        )
        made.append(Cell({"case": "loss", "receiver": receiver}, scenario))
    for receiver, case in (
        ("honest", "tail drop"),
        ("optimistic", "tail drop"),
        ("honest", "marks"),
        ("hides-ecn", "marks"),
    ):
        ecn = {"ecn": "classic"} if case == "marks" else {}
        honest = {"tcp": {"congestion": "cubic", **ecn}}
        flows = [
            toward(receiver, **ecn),
            flow(OTHER, None, 1, start_s=plan.start("other"), transport=honest),
        ]
        scenario = dumbbell(
            flows,
            bps=RATE_BPS,
            rtt_s=RTT_S,
            queue={"red": {}} if ecn else buffer(RATE_BPS, RTT_S, 1),
            duration_s=40,
            bottleneck={"ecn": True} if ecn else None,
        )
        made.append(Cell({"case": case, "receiver": receiver}, scenario))
    return made


def pair(rows: pl.DataFrame, case: str, column: str) -> tuple[float, float] | None:
    """Return a measured column of a case with the honest receiver, and with the misbehaving one."""
    honest = mean_of(column, case=case, receiver="honest")(rows)
    misled = mean_of(column, case=case, receiver=MISBEHAVIOURS[case])(rows)
    return None if honest is None or misled is None else (honest, misled)


def divided_gain(rows: pl.DataFrame) -> float | None:
    """Return the goodput with divided acknowledgements over that with whole ones."""
    found = pair(rows, "loss", "goodput_bps.own")
    return found[1] / found[0] if found and found[0] > 0 else None


def hidden_harm(rows: pl.DataFrame) -> float | None:
    """Return the harm of hidden marks to the honest flow's goodput, compared with an honest receiver."""
    found = pair(rows, "marks", "goodput_bps.other")
    harm = metrics.harm(*found) if found else None
    return None if harm is None else max(HELP, harm)


def faults(scores: Scores) -> list[str]:
    """Divided acknowledgements that gain."""
    gain, usual = scores.mean("divided_gain"), scores.mean("divided_gain", YARDSTICK)
    if gain is None or gain < GAINED * max(1.0, usual or 1.0):
        return []
    got = by_cell(scores, scores.algorithm, "goodput_bps.own", ("case", "receiver"))
    mbps = [got["loss", r] / 1e6 for r in ("divides-acks", "honest")]
    return [
        f"counts acknowledgements, not bytes: {mbps[0]:.1f} Mbit/s toward a receiver that divides "
        f"them, {mbps[1]:.1f} Mbit/s "
        "toward one that does not"
    ]


CRITERIA = (
    Criterion(
        "misbehaving",
        "Misbehaving receivers",
        "RFC 9743 7.6",
        "SHOULD",
        "What non-compliant senders, receivers and routers can make of it.",
        "One flow at 20 Mbit/s and 40 ms to a receiver that divides acknowledgements, alone at a "
        "loss of 0.4%; to one that "
        "acknowledges what was lost, and to one that hides marks, beside one honest CUBIC flow: each against an honest "
        "receiver in its place.",
        cells,
        (
            figure(
                "divided_gain",
                "goodput with divided acknowledgements over that with whole ones",
                "less",
                divided_gain,
                bounds=POSITIVE,
                margin=0.1,
                least=0.2,
            ),
            figure(
                "optimistic_drops",
                "share of packets dropped, losses acknowledged",
                "less",
                mean_of("drop_rate", receiver="optimistic"),
                bounds=SHARE,
                margin=0.2,
                least=0.01,
            ),
            figure(
                "optimistic_starved",
                "share of time that the honest flow starves then",
                "less",
                worst_of("starved.other", receiver="optimistic"),
                bounds=SHARE,
                least=0.05,
            ),
            figure(
                "hidden_harm",
                "harm of hidden marks to the honest flow, against marks that are told (0 none, 1 ruin)",
                "less",
                hidden_harm,
                bounds=HARM,
                margin=0.1,
                least=0.05,
            ),
            figure(
                "hidden_drops",
                "share of packets dropped, marks hidden",
                "less",
                mean_of("drop_rate", receiver="hides-ecn"),
                bounds=SHARE,
                margin=0.2,
                least=0.01,
            ),
        ),
        faults,
        group="special",
    ),
)
