"""Paths that change, links that are cut, several paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.evaluation.criteria.alone import several
from gargalo.evaluation.criteria.robustness import behind
from gargalo.evaluation.criteria.stress import REGAINED_FIGURE, lost_for_good
from gargalo.evaluation.figures import RECOVERY, figure, mean_of, starvation, worst_of
from gargalo.evaluation.model import YARDSTICK, Cell, Criterion, Plan, Scores
from gargalo.evaluation.networks import OTHER, OWN, buffer, rate, seconds
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def change_cells(plan: Plan) -> list[Cell]:
    """The path's rate, or rate and delay, change at once.

    The buffer of 67 packets makes up for no change: the window that fills the slow path and the buffer is 80 packets,
    the fast path alone takes 133 or more.
    """
    cases: Sequence[tuple[str, dict[str, Any]]] = (
        ("faster", {"rate": {"steps": [["0s", "4Mbit/s"], ["20s", "40Mbit/s"]]}}),
        ("slower", {"rate": {"steps": [["0s", "40Mbit/s"], ["20s", "4Mbit/s"]]}}),
        (
            "other path",
            {
                "rate": {"steps": [["0s", "10Mbit/s"], ["20s", "40Mbit/s"]]},
                "delay": {"steps": [["0s", "5ms"], ["20s", "30ms"]]},
            },
        ),
        # Two alternating routes.
        (
            "to and fro",
            {
                "rate": {"steps": [[f"{t}s", ("20Mbit/s", "10Mbit/s")[t // 10 % 2]] for t in range(0, 60, 10)]},
                "delay": {"steps": [[f"{t}s", ("5ms", "30ms")[t // 10 % 2]] for t in range(0, 60, 10)]},
            },
        ),
    )  # fmt: skip
    return [
        Cell({"case": name}, several(plan, 1, bps=20e6, duration_s=60, bottleneck=link))
        for name, link in cases
    ]


def change_faults(scores: Scores) -> list[str]:
    """Capacity that is never found."""
    return [
        (
            "does not cope with a path change"
            if case == "slower"
            else "does not probe again after a path change"
        )
        + f" ({case}): it uses {own:.0%} of the new capacity, {YARDSTICK} {usual:.0%}"
        for case, (own, usual) in behind(scores, STEPPED).items()
    ]


def cut_faults(scores: Scores) -> list[str]:
    """A link that comes back and is not used."""
    return lost_for_good(scores, "a cut of the link")


def multipath_faults(scores: Scores) -> list[str]:
    """Flows that starve beside two subflows."""
    return starvation(scores, "others: at a bottleneck that two subflows share, CUBIC has")


STEPPED = ("faster", "slower", "other path")
"""The cases with one step."""


def stepped(column: str) -> Callable[[pl.DataFrame], float | None]:
    """Return the mean of a column over the cases with one step."""
    return lambda rows: mean_of(column)(rows.filter(pl.col("case").is_in(STEPPED)))


def cut_cells(plan: Plan) -> list[Cell]:
    """The link is cut in both directions and comes back."""
    made = []
    for length in plan.pick((3.0,), (0.5, 3.0, 15.0)):
        scenario = several(
            plan, 1, bps=20e6, duration_s=40 + 2 * length, interval_s=0.05,
            bottleneck={"outages": [["20s", seconds(20 + length)]]},
        )  # fmt: skip
        made.append(Cell({"length_s": length}, scenario))
    return made


def multipath_cells(plan: Plan) -> list[Cell]:
    """Two subflows and one TCP flow at a shared bottleneck, and two subflows on paths of their own."""
    bps, rtt = 20e6, 0.04
    transport = {"mptcp": {"congestion": plan.algorithm, "path_manager": "single-mesh"}}
    half = seconds(rtt / 4)
    own = {
        "label": OWN,
        "from": "a",
        "to": "b",
        "start": seconds(plan.start("multi")),
        "transport": transport,
    }
    other = {
        "label": OTHER, "from": "c", "to": "d", "start": seconds(plan.start("single")),
        "transport": {"tcp": {"congestion": "cubic"}},
    }  # fmt: skip
    links = [
        {
            "name": "bottleneck",
            "from": "l",
            "to": "r",
            "rate": rate(bps),
            "delay": half,
            "queue": buffer(bps, rtt, 1),
        },
        {"name": "a0", "from": "a", "to": "l", "delay": seconds(rtt / 8)},
        {"name": "a1", "from": "a", "to": "l", "delay": seconds(rtt / 8)},
        {"name": "b0", "from": "r", "to": "b", "delay": seconds(rtt / 8)},
        {"name": "b1", "from": "r", "to": "b", "delay": seconds(rtt / 8)},
        {"name": "c0", "from": "c", "to": "l", "delay": seconds(rtt / 8)},
        {"name": "d0", "from": "r", "to": "d", "delay": seconds(rtt / 8)},
    ]
    shared = {
        "name": "evaluation",
        "duration": "60s",
        "record": {"interval": "100ms", "events": False},
        "topology": {"graph": {"nodes": ["a", "b", "c", "d", "l", "r"], "hosts": ["a", "b", "c", "d"], "links": links}},
        "flows": [own, other],
    }  # fmt: skip
    path = {"rate": rate(bps / 2), "delay": seconds(rtt / 2), "queue": buffer(bps / 2, rtt, 1)}
    failing = path | {"outages": [["20s", "25s"]]}
    apart = {
        "name": "evaluation",
        "duration": "45s",
        "record": {"interval": "100ms", "events": False},
        "topology": {"multipath": {"paths": [path, failing]}},
        "flows": [own | {"from": "client", "to": "server"}],
    }
    return [
        Cell({"case": "shared", "own": 1, "others": 1}, shared),
        Cell({"case": "failover", "own": 1, "others": 0}, apart),
    ]


def multipath_share(rows: pl.DataFrame) -> float | None:
    """Return what the single-path flow got at the shared bottleneck, over half of what both got."""
    rows = rows.filter(pl.col("case") == "shared")
    if "goodput_bps.other" not in rows.columns or rows.height == 0:
        return None
    ratio = rows.select(
        2 * pl.col("goodput_bps.other") / (pl.col("goodput_bps.own") + pl.col("goodput_bps.other"))
    ).to_series()
    return float(ratio.mean()) if ratio.len() else None  # type: ignore[arg-type]


CRITERIA = (
    Criterion(
        "path-change",
        "Sudden path change",
        "RFC 9743 7.9",
        "MUST",
        "Evaluated for, and robust against, changes of the path on usual re-routing intervals.",
        "One flow; at 20 s the rate steps from 4 to 40 Mbit/s, from 40 to 4, or rate and delay change together, or two "
        "routes take turns every 10 s: share of the new capacity used, time without four fifths of it, loss and delay "
        "meanwhile.",
        change_cells,
        (
            figure(
                "followed",
                "share of the new capacity used at the end",
                "more",
                stepped("followed"),
                bounds=POSITIVE,
                margin=0.05,
            ),
            figure(
                "follow_s",
                "time with less than four fifths of it",
                "less",
                stepped("follow_s"),
                bounds=POSITIVE,
                margin=0.2,
                least=1,
            ),
            figure(
                "step_drops",
                "packets dropped within 2 s of the change",
                "less",
                stepped("step_drops"),
                bounds=POSITIVE,
                margin=0.2,
                least=20,
            ),
            figure(
                "to_and_fro",
                "share of the capacity used while routes take turns",
                "more",
                mean_of("utilization", case="to and fro"),
                bounds=SHARE,
                margin=0.05,
            ),
            figure(
                "step_queue_s",
                "worst queueing delay after it",
                "less",
                worst_of("step_queue_s"),
                bounds=POSITIVE,
                margin=0.1,
                least=0.01,
            ),
        ),
        change_faults,
        group="special",
    ),
    Criterion(
        "link-cut",
        "A cut link",
        "RFC 9743 7.8",
        "SHOULD",
        "Robust against transient events: a link that is cut and comes back.",
        "One flow at 20 Mbit/s and 40 ms; nothing passes for 3 s in either direction (standard: 0.5, 3 and 15 s).",
        cut_cells,
        (
            RECOVERY,
            figure(
                "packets",
                "packets sent during the cut",
                "less",
                mean_of("outage_packets"),
                bounds=POSITIVE,
                margin=0.2,
                least=20,
            ),
            REGAINED_FIGURE,
        ),
        cut_faults,
        group="special",
    ),
    Criterion(
        "multipath",
        "Several paths",
        "RFC 9743 7.10",
        "MUST",
        "Independent state for each path; a failover does no harm; used at once, paths that share a bottleneck do not "
        "harm others more than one flow does.",
        "Multipath TCP with the algorithm on each of two subflows: beside one CUBIC flow at a shared bottleneck of "
        "20 Mbit/s, and on two paths of 10 Mbit/s of which one is cut for 5 s.",
        multipath_cells,
        (
            figure(
                "share",
                "share of the single-path flow over half of the bottleneck",
                "more",
                multipath_share,
                bounds=POSITIVE,
                margin=0.1,
                least=0.05,
            ),
            figure(
                "starved",
                "share of time that it starves",
                "less",
                worst_of("starved.other"),
                bounds=SHARE,
                least=0.05,
            ),
            figure(
                "failover_bps",
                "goodput over two paths, one cut for a while",
                "more",
                mean_of("goodput_bps.own", case="failover"),
                bounds=POSITIVE,
                margin=0.05,
            ),
        ),
        multipath_faults,
        group="special",
    ),
)
