"""Beside others: Reno, QUIC's NewReno, CUBIC, BBR, media, short flows; harm and starvation.

Harm is what B loses beside A, of what it has alone on the same network (Ware et al., HotNets 2019). What is acceptable
is no more than what standard algorithms do to B, and B to itself (RFC 9743 section 5.2): the references stand beside
it.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import metrics
from gargalo.evaluation.figures import figure, mean_of, reduce, starvation
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Figure, Plan, Scores
from gargalo.evaluation.networks import OTHER, OWN, buffer, dumbbell, flow, rate
from gargalo.metrics.intervals import OPINION, POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.evaluation.figures import How

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
"""The other algorithms: in words, and their transport."""


def cells(other: str, plan: Plan) -> list[Cell]:
    """One to one, one to many and many to one, with either first; and each number of the others alone (`own` is 0)."""
    _, transport = OTHERS[other]
    made = []
    alone = set()
    for own, others in plan.pick(((1, 1),), ((1, 1), (1, 4), (4, 1), (1, 16), (16, 1))):
        for first in ("own", "other"):
            for factor in plan.pick((1.0,), (0.5, 1.0, 4.0), (0.25, 0.5, 1.0, 2.0, 4.0)):
                wait = {"own": 0.0, "other": 0.0} | {("other" if first == "own" else "own"): 5.0}
                theirs = [
                    flow(OTHER, None, own + i, start_s=wait["other"] + plan.start("other", i), transport=transport)
                    for i in range(others)
                ]  # fmt: skip
                flows = [
                    flow(OWN, plan.algorithm, i, start_s=wait["own"] + plan.start("own", i))
                    for i in range(own)
                ]
                labels = {"own": own, "others": others, "first": first, "buffer_bdp": factor}
                made.append(Cell(labels, network([*flows, *theirs], factor)))
                if (others, first, factor) not in alone:
                    # Their load is the same, and the algorithm has no part in it: one run serves all algorithms.
                    alone.add((others, first, factor))
                    moved = [
                        {**f, "from": f"left{i}", "to": f"right{i}"} for i, f in enumerate(theirs)
                    ]
                    made.append(Cell({**labels, "own": 0}, network(moved, factor)))
    return made


def network(flows: Sequence[dict[str, Any]], factor: float) -> dict[str, Any]:
    """Their common bottleneck, with a buffer of so many bandwidth-delay products."""
    return dumbbell(
        flows, bps=RATE_BPS, rtt_s=RTT_S, queue=buffer(RATE_BPS, RTT_S, factor), duration_s=60
    )


def together(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the runs with flows of both."""
    if "own" not in rows.columns:
        return rows.head(0)
    # Few of many calls have others among them, and a filter is slow for few rows.
    return rows if all(rows["own"].to_list()) else rows.filter(pl.col("own") > 0)


def beside(column: str, how: How = "mean") -> Callable[[pl.DataFrame], float | None]:
    """Return the mean (or the largest value) of a measured column in runs with flows of both."""
    return lambda rows: reduce(together(rows), column, how, {})


def fair(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what a flow's equal share of what all got would be."""
    total = pl.col("goodput_bps.own") + pl.col("goodput_bps.other")
    return rows.with_columns((total / (pl.col("own") + pl.col("others"))).alias("fair_bps"))


def share_of_others(rows: pl.DataFrame) -> float | None:
    """Return what each of the others got, over an equal share: 1 is equal, 0 is starved."""
    rows = together(rows)
    if "goodput_bps.other" not in rows.columns or rows.height == 0:
        return None
    shares = fair(rows).select(pl.col("goodput_bps.other") / pl.col("others") / pl.col("fair_bps"))
    values = shares.to_series().drop_nans().drop_nulls()
    return float(values.mean()) if values.len() else None  # type: ignore[arg-type]


HELP = -1.0
"""The least harm: below it, less loss or delay makes no difference."""
HARM = (HELP, 1.0)
"""Bounds of harm: 1 means that nothing is left."""


def harm(column: str, *, more_is_better: bool) -> Callable[[pl.DataFrame], float | None]:
    """Return the harm to what the others have of a measured column, mean over the cells where both are there.

    (solo - with) / solo where more is better, (with - solo) / with where less is (Ware et al., HotNets 2019, section
    3): solo is the run of the same number of others alone, started at the same instants.
    """
    return partial(harm_of_others, column=column, more_is_better=more_is_better)


def harm_of_others(rows: pl.DataFrame, *, column: str, more_is_better: bool) -> float | None:
    """See `harm`."""
    if column not in rows.columns or "own" not in rows.columns:
        return None
    # In lists: there are few rows, and very many calls.
    cells = list(zip(*(rows[k].to_list() for k in ("others", "first", "buffer_bdp")), strict=True))
    own, values = rows["own"].to_list(), rows[column].to_list()
    solo = {c: v for c, n, v in zip(cells, own, values, strict=True) if n == 0}
    found = []
    for cell, n, now in zip(cells, own, values, strict=True):
        alone = solo.get(cell)
        if not n or alone is None or now is None:
            continue
        if now == alone:
            found.append(0.0)
            continue
        value = metrics.harm(alone, now, more_is_better=more_is_better)
        # No loss where there was some: the quotient has no value, and there is no harm.
        found.append(HELP if value is None else max(HELP, value))
    return sum(found) / len(found) if found else None


def starves(name: str, scores: Scores) -> list[str]:
    """Whether the others starve."""
    return starvation(scores, f"others: {name} has")


def versus(other: str, strength: str, about: str) -> Criterion:
    """Return the criterion of one of the other algorithms."""
    name, _ = OTHERS[other]
    figures: Sequence[Figure] = (
        figure("share", f"share of {name}: what it got over an equal share", "more", share_of_others,
            bounds=POSITIVE, margin=0.1, least=0.05),
        figure("harm_goodput", f"harm to {name}'s goodput, of what it has alone (0 none, 1 ruin)", "less",
            harm("goodput_bps.other", more_is_better=True), bounds=HARM, margin=0.1, least=0.05),
        figure("harm_delay", f"harm to {name}'s round-trip time, median", "less",
            harm("rtt_p50_s.other", more_is_better=False), bounds=HARM, margin=0.1, least=0.05),
        figure("harm_loss", f"harm by loss of {name}'s packets", "less",
            harm("lost.other", more_is_better=False), bounds=HARM, margin=0.1, least=0.1),
        figure("starved", f"share of time that the worst of {name}'s flows starves", "less",
            beside("starved.other", "max"), bounds=SHARE, least=0.05),
        figure("rtt_p95_s", f"round-trip time of {name}, 95th percentile", "less", beside("rtt_p95_s.other"),
            bounds=POSITIVE, margin=0.1, least=0.002),
        figure("lost", f"share of {name}'s packets lost", "less", beside("lost.other"), bounds=SHARE,
            margin=0.1, least=0.002),
        figure("own_share", "its own goodput over an equal share", "neither", own_share, bounds=POSITIVE),
        figure("own_starved", "share of time that the worst of its own flows starves", "less",
            beside("starved.own", "max"), bounds=SHARE, least=0.05),
    )  # fmt: skip
    return Criterion(
        f"versus-{other}",
        f"Beside {name}",
        "RFC 9743 5.2.1" if other != "bbr" else "RFC 9743 5.2.1 (widely deployed)",
        strength,  # type: ignore[arg-type]
        about,
        "One to one at 20 Mbit/s, 40 ms and one bandwidth-delay product, either beginning 5 s before the other "
        "(standard: one and four and sixteen to one, either way, buffers of 0.5 to 4; full: 0.25 to 4). "
        f"Harm compares with {name} alone there; the columns of the references say what standard algorithms do to it. "
        "An algorithm that is starved harms nobody, which does not make it compatible: how long "
        "its own flows starve is a figure too.",
        partial(cells, other),
        figures,
        partial(starves, name),
        group="mixed",
    )


def own_share(rows: pl.DataFrame) -> float | None:
    """Return what each of the algorithm's flows got, over an equal share."""
    rows = together(rows)
    if "goodput_bps.own" not in rows.columns or rows.height == 0:
        return None
    shares = fair(rows).select(pl.col("goodput_bps.own") / pl.col("own") / pl.col("fair_bps"))
    values = shares.to_series().drop_nans().drop_nulls()
    return float(values.mean()) if values.len() else None  # type: ignore[arg-type]


def media_cells(plan: Plan) -> list[Cell]:
    """Media on the paths of RFC 8867 sections 5.6 and 5.7.

    50 ms one way, a jitter of up to 30 ms, 2 Mbit/s and tail drop of 300 ms (standard: 1 Mbit/s, the default of section
    4, and 1000 ms too). 5.6: a long flow from 0 s on, media from 5 s to 119 s. 5.7: ten senders of short flows, two of
    which begin at once; files of 30 to 50 kB, idle times of 10 s in the mean (RFC 8868 section 5.1), media for as long
    (there 300 s; here 120 s except in `full`). Media follow the network between 0.15 and 1.5 Mbit/s by NADA (RFC 8698);
    a further case, `constant`, has those of 5.6 at a constant rate in the middle of that, which cannot yield.
    """
    made = []
    points = plan.pick(((2e6, 300),), ((2e6, 300), (2e6, 1000), (1e6, 300)))
    for (bps, queue_ms), case in product(points, ("long", "short", "constant")):
        if case == "constant" and bps < 2e6:
            continue  # It would leave nothing.
        end = 300.0 if case == "short" and plan.full else 120.0
        own = (
            downloads(plan, 10, end - 5)
            if case == "short"
            else [flow(OWN, plan.algorithm, 0, start_s=plan.start("media"))]
        )
        pair = len({f["from"] for f in own})
        workload: dict[str, Any] = (
            {"cbr": {"rate": rate(0.375 * bps), "packet_size": "1000B"}}
            if case == "constant"
            else {"media": {}}
        )
        video, voice = (
            flow(
                label, None, pair + i, start_s=5, stop_s=end - 1, transport={"udp": {}},
                workload=carried,
            )
            for i, (label, carried) in enumerate((("media", workload), ("voice", {"voice": {}})))
        )  # fmt: skip
        scenario = dumbbell(
            [*own, video, voice],
            bps=bps,
            rtt_s=0.1,
            queue={"droptail": f"{queue_ms}ms"},
            duration_s=end,
            bottleneck={"jitter": "15ms"},
        )
        made.append(Cell({"case": case, "queue_ms": queue_ms, "rate_bps": bps}, scenario))
    return made


def adaptive(column: str) -> Callable[[pl.DataFrame], float | None]:
    """Return the mean of a column over the cells whose media follow the network."""
    return lambda rows: mean_of(column)(rows.filter(pl.col("case") != "constant"))


def downloads(plan: Plan, senders: int, until_s: float) -> list[dict[str, Any]]:
    """Files of 30 to 50 kB from each of some senders, with idle times of 10 s in the mean (RFC 8868 section 5.1)."""
    dice = random.Random(f"{plan.seed} downloads")
    made = []
    for sender in range(senders):
        # Two are on at the start (RFC 8867 section 5.7).
        at = 5.0 if sender < 2 else 5.0 + dice.expovariate(1 / 10)
        while at < until_s:
            size = f"{dice.randint(30_000, 50_000)}B"
            made.append(
                flow(OWN, plan.algorithm, sender, start_s=at, workload={"bulk": {"bytes": size}})
            )
            at += dice.expovariate(1 / 10)
    return made


MEDIA_LOST = 0.1
"""Media cannot continue from this share of lost packets on.

The breaker of RFC 8083 section 4.3 opens when media send ten times what TCP could: for the 0.75 Mbit/s of the video and
the 0.4 s of a full queue's round trip, at a tenth (8 * 1028 / (0.4 * sqrt(2 * 0.1 / 3)) = 80 kbit/s).
"""


def media_faults(scores: Scores) -> list[str]:
    """Media made useless where the standard algorithms do not make them useless."""
    lost, usual = scores.mean("constant_lost"), scores.mean("constant_lost", YARDSTICK)
    if lost is None or usual is None or lost < max(MEDIA_LOST, 3 * usual):
        return []
    return [f"harms media: {lost:.0%} of their packets are lost, {usual:.0%} beside {YARDSTICK}"]


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
            scenario = dumbbell([*long, short], bps=RATE_BPS, rtt_s=RTT_S)
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
        "It coexists with flows of finite rate that are bound by delay (RFC 8836), and does not "
        "trip their circuit breakers.",
        "The path of RFC 8867 (2 Mbit/s, 50 ms, jitter, tail drop of 300 ms; standard: 1000 ms and "
        "1 Mbit/s too): a video "
        "whose rate follows the network by NADA (RFC 8698) and a call beside a long flow (5.6) and "
        "beside short ones from "
        "ten senders (5.7); a video of constant rate beside a long flow.",
        media_cells,
        (
            figure(
                "media_bps",
                "rate of the video that follows the network",
                "more",
                adaptive("goodput_bps.media"),
                bounds=POSITIVE,
                margin=0.1,
                least=20e3,
            ),
            figure(
                "media_lost",
                "share of its packets lost",
                "less",
                adaptive("lost.media"),
                bounds=SHARE,
                margin=0.1,
                least=0.002,
            ),
            figure(
                "media_delay_s",
                "its one-way delay, 95th percentile",
                "less",
                adaptive("delay_p95_s.media"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.005,
            ),
            figure(
                "constant_lost",
                "share of packets lost of a video of constant rate",
                "less",
                mean_of("lost.media", case="constant"),
                bounds=SHARE,
                margin=0.1,
                least=0.002,
            ),
            figure(
                "mos",
                "mean opinion score of the call (1 to 4.5)",
                "more",
                mean_of("mos.voice"),
                bounds=OPINION,
                margin=0.03,
            ),
            figure(
                "long_bps",
                "goodput of the long flow beside them",
                "more",
                mean_of("goodput_bps.own", case="long"),
                bounds=POSITIVE,
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
                bounds=POSITIVE,
                margin=0.1,
                least=0.01,
            ),
            figure(
                "cubic_short_p95_s",
                "the same, 95th percentile",
                "less",
                in_case("long", "completion_p95_s.short"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.02,
            ),
            figure(
                "own_short_p50_s",
                "short own flows beside long CUBIC: completion, median",
                "less",
                in_case("short", "completion_p50_s.short"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.01,
            ),
            figure(
                "own_long_bps",
                "goodput of its long flows beside short CUBIC flows",
                "more",
                in_case("long", "goodput_bps.long"),
                bounds=POSITIVE,
                margin=0.05,
            ),
            figure(
                "cubic_long_bps",
                "goodput of long CUBIC flows beside short own",
                "more",
                in_case("short", "goodput_bps.long"),
                bounds=POSITIVE,
                margin=0.05,
            ),
        ),
        group="mixed",
    ),
)
