"""Beside others: Reno, QUIC's NewReno, CUBIC, BBR, media, short flows; harm and starvation.

Harm is what B loses beside A, against what B loses beside as many more of itself (Ware et al., HotNets 2019).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import metrics
from gargalo.evaluation.figures import figure, mean_of, worst_of
from gargalo.evaluation.model import Cell, Criterion, Figure, Plan, Scores
from gargalo.evaluation.networks import OTHER, OWN, buffer, dumbbell, flow, rate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RATE_BPS = 20e6
RTT_S = 0.04
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "reno": ("Reno (RFC 5681)", {"tcp": {"congestion": "reno"}}),
    "quic-newreno": (
        "QUIC's NewReno (RFC 9002)",
        {"quic": {"congestion": "noq-newreno", "crypto": "null"}},
    ),
    "cubic": ("CUBIC (RFC 9438)", {"tcp": {"congestion": "cubic"}}),
    "bbr": ("BBR", {"tcp": {"congestion": "bbr"}}),
}
"""Whom it meets: in words, and their transport."""


def cells(other: str, plan: Plan) -> list[Cell]:
    """One to one, one to many and many to one, and either begins."""
    _, transport = OTHERS[other]
    made = []
    for own, others in plan.pick(
        ((1, 1),), ((1, 1), (1, 4), (4, 1)), ((1, 1), (1, 4), (4, 1), (1, 16), (16, 1))
    ):
        for first in ("own", "other"):
            for factor in plan.pick((1.0,), (0.5, 1.0, 4.0), (0.25, 0.5, 1.0, 2.0, 4.0)):
                if (own, others) != (1, 1) and factor != 1.0 and not plan.full:
                    continue
                wait = {"own": 0.0, "other": 0.0} | {("other" if first == "own" else "own"): 5.0}
                flows = [
                    flow(OWN, plan.algorithm, i, start_s=wait["own"] + plan.start("own", i))
                    for i in range(own)
                ] + [
                    flow(OTHER, None, own + i, start_s=wait["other"] + plan.start("other", i), transport=transport)
                    for i in range(others)
                ]  # fmt: skip
                scenario = dumbbell(
                    flows,
                    bps=RATE_BPS,
                    rtt_s=RTT_S,
                    queue=buffer(RATE_BPS, RTT_S, factor),
                    duration_s=60,
                )
                labels = {"own": own, "others": others, "first": first, "buffer_bdp": factor}
                made.append(Cell(labels, scenario))
    return made


def fair(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what a flow's equal share of what all got would be."""
    total = pl.col("goodput_bps.own") + pl.col("goodput_bps.other")
    return rows.with_columns((total / (pl.col("own") + pl.col("others"))).alias("fair_bps"))


def share_of_others(rows: pl.DataFrame) -> float | None:
    """Return what each of the others got, over an equal share: 1 is equal, 0 is starved."""
    if "goodput_bps.other" not in rows.columns or rows.height == 0:
        return None
    shares = fair(rows).select(pl.col("goodput_bps.other") / pl.col("others") / pl.col("fair_bps"))
    values = shares.to_series().drop_nans().drop_nulls()
    return float(values.mean()) if values.len() else None  # type: ignore[arg-type]


def harm_of_others(rows: pl.DataFrame) -> float | None:
    """Return the harm to the others' goodput, against an equal share of the capacity."""
    if "goodput_bps.other" not in rows.columns or rows.height == 0:
        return None
    found = []
    for row in rows.iter_rows(named=True):
        alone = row["capacity_bps"] / (row["own"] + row["others"])
        harm = metrics.harm(alone, row["goodput_bps.other"] / row["others"])
        if harm is not None:
            found.append(harm)
    return sum(found) / len(found) if found else None


def starves(name: str, scores: Scores) -> list[str]:
    """Whether the others starve."""
    starved = scores.mean("starved")
    if starved is None or starved < 0.2:
        return []
    return [f"starves others: {name} has less than a tenth of its share {starved:.0%} of the time"]


def versus(other: str, strength: str, about: str) -> Criterion:
    """Make the criterion of one of the others."""
    name, _ = OTHERS[other]
    figures: Sequence[Figure] = (
        figure("share", f"share of {name}: what it got over an equal share", "more", share_of_others, margin=0.1, least=0.05),
        figure("harm", f"harm to {name}'s goodput (0 none, 1 ruin), against equal shares", "less", harm_of_others, margin=0.1, least=0.05),
        figure("starved", f"share of time that {name} starves", "less", worst_of("starved.other"), least=0.05),
        figure("rtt_p95_s", f"round-trip time of {name}, 95th percentile", "less", mean_of("rtt_p95_s.other"), margin=0.1, least=0.002),
        figure("lost", f"share of {name}'s packets lost", "less", mean_of("lost.other"), margin=0.1, least=0.002),
        figure("own_share", "its own goodput over an equal share", "neither", own_share),
    )  # fmt: skip
    return Criterion(
        f"versus-{other}",
        f"Beside {name}",
        "RFC 9743 5.2.1" if other != "bbr" else "RFC 9743 5.2.1 (widely deployed)",
        strength,  # type: ignore[arg-type]
        about,
        "One to one at 20 Mbit/s, 40 ms and one bandwidth-delay product, either beginning 5 s before the other "
        "(standard: one to four and four to one, buffers of 0.5 to 4).",
        partial(cells, other),
        figures,
        partial(starves, name),
        group="mixed",
    )


def own_share(rows: pl.DataFrame) -> float | None:
    """Return what each of the algorithm's flows got, over an equal share."""
    if "goodput_bps.own" not in rows.columns or rows.height == 0:
        return None
    shares = fair(rows).select(pl.col("goodput_bps.own") / pl.col("own") / pl.col("fair_bps"))
    values = shares.to_series().drop_nans().drop_nulls()
    return float(values.mean()) if values.len() else None  # type: ignore[arg-type]


def media_cells(plan: Plan) -> list[Cell]:
    """Media at a constant rate on the path of RFC 8867: 1 Mbit/s, 50 ms, jitter, a tail drop of 300 ms."""
    made = []
    for mbps in plan.pick((4.0,), (1.0, 4.0)):
        bps = mbps * 1e6
        own = [flow(OWN, plan.algorithm, 0, start_s=10 + plan.start("media"))]
        video = flow(
            "media", None, 1, transport={"udp": {}},
            workload={"cbr": {"rate": rate(0.375 * bps), "packet_size": "1000B"}},
        )  # fmt: skip
        voice = flow("voice", None, 2, transport={"udp": {}}, workload={"voice": {}})
        scenario = dumbbell(
            [*own, video, voice],
            bps=bps,
            rtt_s=0.1,
            queue={"droptail": "300ms"},
            duration_s=70,
            bottleneck={"jitter": "10ms"},
        )
        made.append(Cell({"case": "long", "mbps": mbps}, scenario))
        short = flow(
            OWN, plan.algorithm, 0, start_s=10, workload={"bulk": {"bytes": "50kB"}},
            arrivals={"rate": f"{0.4 * bps / 4e5:.6g}/s"}, stop_s=60,
        )  # fmt: skip
        scenario = dumbbell(
            [short, video, voice],
            bps=bps,
            rtt_s=0.1,
            queue={"droptail": "300ms"},
            duration_s=70,
            bottleneck={"jitter": "10ms"},
        )
        made.append(Cell({"case": "short", "mbps": mbps}, scenario))
    return made


def media_faults(scores: Scores) -> list[str]:
    """Media made useless where the standards leave them alone."""
    lost, usual = scores.mean("media_lost"), scores.mean("media_lost", "cubic")
    if lost is None or usual is None or lost < max(0.1, 3 * usual):
        return []
    # RTP circuit breakers trip near such loss (RFC 8083 section 4.3).
    return [f"harms media: {lost:.0%} of their packets are lost, {usual:.0%} beside cubic"]


def short_mixed_cells(plan: Plan) -> list[Cell]:
    """Short CUBIC flows beside long ones of the algorithm, and the reverse."""
    made = []
    for size, bits in plan.pick((("50kB", 4e5),), (("10kB", 8e4), ("100kB", 8e5), ("1MB", 8e6))):
        per_second = {"rate": f"{0.25 * RATE_BPS / bits:.6g}/s"}
        for case in ("long", "short"):
            long_cc, short_cc = (
                (plan.algorithm, "cubic") if case == "long" else ("cubic", plan.algorithm)
            )
            long = [flow("long", long_cc, i, start_s=plan.start(i)) for i in range(2)]
            short = flow(
                "short", short_cc, 2, start_s=5, stop_s=45,
                workload={"bulk": {"bytes": size}}, arrivals=per_second,
            )  # fmt: skip
            scenario = dumbbell(
                [*long, short],
                bps=RATE_BPS,
                rtt_s=RTT_S,
                queue=buffer(RATE_BPS, RTT_S, 1),
                duration_s=60,
            )
            made.append(Cell({"case": case, "size": size}, scenario))
    return made


def in_case(case: str, column: str) -> Callable[[pl.DataFrame], float | None]:
    """Return the mean of a column in the cells of a case."""
    return mean_of(column, case=case)


CRITERIA = (
    versus(
        "reno",
        "MUST",
        "It competes with standard congestion controls: no more harm than they do to each other.",
    ),
    versus("quic-newreno", "MUST", "It competes with QUIC's standard congestion control."),
    versus("cubic", "MUST", "It competes with the standard that most of the Internet runs."),
    versus(
        "bbr",
        "should",
        "The community also weighs non-standard algorithms that are widely deployed.",
    ),
    Criterion(
        "versus-media",
        "Beside real-time media",
        "RFC 9743 5.2.2",
        "SHOULD",
        "It coexists with flows of finite rate that are bound by delay (RFC 8836), and does not trip their circuit breakers.",
        "The path of RFC 8867 (50 ms, jitter, tail drop of 300 ms) at 4 Mbit/s (standard: 1 and 4): a video of constant "
        "rate and a call beside a long flow (5.6) and beside short ones (5.7).",
        media_cells,
        (
            figure(
                "media_lost",
                "share of the video's packets lost",
                "less",
                mean_of("lost.media"),
                margin=0.1,
                least=0.002,
            ),
            figure(
                "media_delay_s",
                "one-way delay of the video, 95th percentile",
                "less",
                mean_of("rtt_p95_s.media"),
                margin=0.1,
                least=0.005,
            ),
            figure(
                "mos",
                "mean opinion score of the call (1 to 4.5)",
                "more",
                mean_of("mos.voice"),
                margin=0.03,
            ),
            figure(
                "long_bps",
                "goodput of the long flow beside them",
                "more",
                mean_of("goodput_bps.own", case="long"),
                margin=0.05,
            ),
        ),
        media_faults,
        group="mixed",
    ),
    Criterion(
        "short-long-mixed",
        "Short and long flows of others",
        "RFC 9743 5.2.3",
        "MUST",
        "The effect of short and long flows on each other, where one kind is CUBIC's.",
        "Two long flows and short ones at a quarter of 20 Mbit/s: short CUBIC flows beside long ones of the algorithm, "
        "and its short ones beside long CUBIC flows.",
        short_mixed_cells,
        (
            figure(
                "cubic_short_p50_s",
                "short CUBIC flows beside long own: completion, median",
                "less",
                in_case("long", "completion_p50_s.short"),
                margin=0.1,
                least=0.01,
            ),
            figure(
                "cubic_short_p95_s",
                "the same, 95th percentile",
                "less",
                in_case("long", "completion_p95_s.short"),
                margin=0.1,
                least=0.02,
            ),
            figure(
                "own_short_p50_s",
                "short own flows beside long CUBIC: completion, median",
                "less",
                in_case("short", "completion_p50_s.short"),
                margin=0.1,
                least=0.01,
            ),
            figure(
                "cubic_long_bps",
                "goodput of long CUBIC flows beside short own",
                "more",
                in_case("short", "goodput_bps.long"),
                margin=0.05,
            ),
        ),
        group="mixed",
    ),
)
