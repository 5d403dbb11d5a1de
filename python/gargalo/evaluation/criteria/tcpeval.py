"""The scenarios of draft-irtf-iccrg-tcpeval-01, for the profile `full`.

What differs from the text: there is no campus trace for Tmix, so that load comes from web pages and files, half of it
each; new flows keep their slow start, which not every algorithm can be told to leave out; 1 Gbit/s
runs are shorter than 600 s; the 802.11g scenario is left out, since there is no model of its medium.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.evaluation.figures import figure, least_of, mean_of, worst_of
from gargalo.evaluation.model import Cell, Criterion, Plan
from gargalo.evaluation.networks import OWN, PACKET_BYTES, buffer, dumbbell, flow, rate, seconds
from gargalo.metrics.intervals import POSITIVE, SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.sweeps.job import Label

Json = dict[str, Any]

LEFT_S = (0.0, 0.012, 0.025)
RIGHT_S = (0.002, 0.037, 0.075)
"""One-way delays of the edges: nine paths between 4 and 200 ms, and the centre besides."""
ONLY = ("full",)
SOURCE = "draft-irtf-iccrg-tcpeval-01"


def network(
    centre: Json,
    *,
    left_s: Sequence[float] = LEFT_S,
    right_s: Sequence[float] = RIGHT_S,
    edge_bps: float = 100e6,
) -> Json:
    """Three hosts on each side, each with its own delay, and one link between them."""
    links: list[Json] = [{"name": "centre", "from": "L", "to": "R", **centre}]
    for i, delay in enumerate(left_s):
        links.append({"from": f"l{i}", "to": "L", "rate": rate(edge_bps), "delay": seconds(delay)})
    for i, delay in enumerate(right_s):
        links.append({"from": "R", "to": f"r{i}", "rate": rate(edge_bps), "delay": seconds(delay)})
    for link in links[1:]:
        link["queue"] = {"droptail": "100000 packets"}
    hosts = [f"{side}{i}" for side in "lr" for i in range(3)]
    return {"graph": {"nodes": [*hosts, "L", "R"], "hosts": hosts, "links": links}}


def traffic(
    plan: Plan, load: float, up_bps: float, down_bps: float | None = None, label: str = OWN
) -> list[Json]:
    """Web pages and files over all nine paths in both directions, a tenth of them in packets of 536 bytes."""
    made = []
    for there, bps in (("lr", up_bps), ("rl", down_bps or up_bps)):
        for i in range(3):
            for j in range(3):
                for share, mss in ((0.9, None), (0.1, "536B")):
                    tcp: Json = {"congestion": plan.algorithm} | ({"mss": mss} if mss else {})
                    for kind, part in (("web", 0.5), ("ftp", 0.5)):
                        made.append(
                            {
                                "label": label,
                                "from": f"{there[0]}{i}",
                                "to": f"{there[1]}{j}",
                                "transport": {"tcp": tcp},
                                "workload": {
                                    kind: {"link": "centre", "load": rate(load * bps * share * part / 9)}
                                },
                            }
                        )  # fmt: skip
    return made


def made_of(topology: Json, flows: list[Json], duration_s: float, interval_s: float = 0.1) -> Json:
    """A scenario."""
    return {
        "name": "evaluation",
        "duration": seconds(duration_s),
        "record": {"interval": seconds(interval_s), "events": False},
        "topology": topology,
        "flows": flows,
    }


def waiting(bps: float, wait_s: float) -> Json:
    """A tail-drop queue with this longest wait, in packets."""
    return {"droptail": f"{max(2, round(bps * wait_s / 8 / PACKET_BYTES))} packets"}


def basic_cells(plan: Plan) -> list[Cell]:
    """The scenarios of section 4 but the wireless one, at three loads."""
    made = []
    for load in (0.6, 0.85, 1.1):
        for name, bps, delay_s, wait_s, length in (
            ("access link", 100e6, 0.002, 0.1, 100.0),
            ("trans-oceanic", 1e9, 0.065, 0.1, 30.0),
            ("dial-up", 64e3, 0.005, 1.25, 600.0),
        ):
            centre = {"rate": rate(bps), "delay": seconds(delay_s), "queue": waiting(bps, wait_s)}
            top = network(centre, edge_bps=max(bps, 100e6))
            scenario = made_of(top, traffic(plan, load, bps), length)
            made.append(Cell({"scenario": name, "load": load}, scenario))
        up, down = (
            {"rate": rate(bps), "delay": "300ms", "queue": waiting(bps, wait)}
            for bps, wait in ((4e6, 1.0), (40e6, 0.1))
        )
        # Satellite: down, to the right, 40 Mbit/s, up 4 Mbit/s.
        scenario = made_of(network({"up": down, "down": up}), traffic(plan, load, 40e6, 4e6), 120)
        made.append(Cell({"scenario": "satellite", "load": load}, scenario))
        queue = waiting(1e9, 0.01)
        left, right = (1e-5, 1e-5, 1e-4), (1e-5, 1e-4, 1e-4)
        top = network({"rate": rate(1e9), "queue": queue}, left_s=left, right_s=right, edge_bps=1e9)
        scenario = made_of(top, traffic(plan, load, 1e9), 10, 0.01)
        made.append(Cell({"scenario": "data centre", "load": load}, scenario))
    return made


def tradeoff_cells(plan: Plan) -> list[Cell]:
    """Section 5.1: the access link at 85% behind five buffers."""
    made = []
    for share in (0.1, 0.2, 0.5, 1.0, 2.0):
        centre = {"rate": rate(100e6), "delay": "2ms", "queue": buffer(100e6, 0.1, share)}
        scenario = made_of(network(centre), traffic(plan, 0.85, 100e6), 100)
        made.append(Cell({"buffer_bdp": share}, scenario))
    return made


def ramp_cells(plan: Plan) -> list[Cell]:
    """Section 5.2: a flow joins one in equilibrium; half of the link is taken."""
    made = []
    for bps, length, joins in ((10e6, 600.0, 200.0), (1e9, 120.0, 40.0)):
        for old, new in ((0.08, 0.08), (0.12, 0.03), (0.03, 0.12)):
            flows = [
                flow("old", plan.algorithm, 0, start_s=plan.start("old")),
                flow("new", plan.algorithm, 1, start_s=joins + plan.start("new")),
                {
                    "label": "background", "from": "left2", "to": "right2",
                    "transport": {"tcp": {"congestion": plan.algorithm}},
                    "workload": {"ftp": {"load": rate(0.5 * bps)}},
                },
            ]  # fmt: skip
            scenario = dumbbell(
                flows, bps=bps, rtt_s=[old, new, 0.08], queue=waiting(bps, 0.08), duration_s=length
            )
            for f in scenario["flows"][:2]:
                f["transport"]["tcp"]["receive_buffer"] = f"{max(16, round(bps * 0.4 / 8e6))}MB"
            labels: dict[str, Label] = {"rate_bps": bps, "old_s": old, "new_s": new}
            made.append(Cell(labels, scenario))
    return made


CHANGE_S = 100.0
"""When cross traffic changes, and how long it is watched."""


def transient_cells(plan: Plan) -> list[Cell]:
    """Section 5.3: cross traffic of 75 Mbit/s goes, comes, and comes in 30 steps."""
    made = []
    for case in ("goes", "comes", "grows"):
        own = flow(OWN, plan.algorithm, 0, start_s=plan.start("transient"))
        own["transport"]["tcp"]["receive_buffer"] = "16MB"
        n, mbps = (30, 2.5) if case == "grows" else (1, 75.0)
        cross = [
            flow(
                "cross", None, 1 + i, transport={"udp": {}},
                start_s=0.0 if case == "goes" else CHANGE_S + i,
                stop_s=CHANGE_S if case == "goes" else None,
                # On the wire: 1000 bytes of payload have 28 of headers.
                workload={"cbr": {"rate": rate(mbps * 1e6 * 1000 / 1028)}},
            )
            for i in range(n)
        ]  # fmt: skip
        scenario = dumbbell(
            [own, *cross],
            bps=100e6,
            rtt_s=0.1,
            queue={"droptail": "1024 packets"},
            duration_s=2 * CHANGE_S,
        )
        made.append(Cell({"case": case}, scenario))
    return made


def dropped(case: str) -> Callable[[pl.DataFrame], float | None]:
    """Return how many packets of the cross traffic are lost in 100 s."""

    def of(rows: pl.DataFrame) -> float | None:
        if "lost.cross" not in rows.columns:
            return None
        rows = rows.filter(pl.col("case") == case)
        counts = rows["lost.cross"] * rows["sent_packets.cross"]
        return float(counts.mean()) if counts.len() else None  # type: ignore[arg-type]

    return of


def impact_cells(plan: Plan) -> list[Cell]:
    """Section 6.1: two groups with the same files at the same times; one uses Reno, the other Reno or the algorithm."""
    made = []
    for bps, mean, length in ((10e6, 1e5, 120.0), (1e9, 4e6, 30.0)):
        for load in (0.5, 1.0):
            dice = random.Random(f"{plan.seed} impact {bps} {load}")
            # Pareto from 40% of the mean with index 1.67 has that mean; the largest files are cut off.
            files = []
            at = 0.0
            while at < length:
                at += dice.expovariate(load * bps / 2 / (8 * mean))
                files.append((at, min(0.4 * mean * dice.paretovariate(1.67), 100 * mean)))
            for case in ("base", "mix"):
                flows = [
                    flow(
                        camp, cc, k % 3, start_s=at, workload={"bulk": {"bytes": f"{round(size)}B"}}
                    )
                    for k, (at, size) in enumerate(files)
                    for camp, cc in (("A", "reno"), ("B", "reno" if case == "base" else plan.algorithm))
                ]  # fmt: skip
                rtts = (0.028, 0.098, 0.2)
                scenario = dumbbell(
                    flows, bps=bps, rtt_s=rtts, queue=waiting(bps, 0.1), duration_s=length + 20, interval_s=1.0
                )  # fmt: skip
                made.append(Cell({"rate_bps": bps, "load": load, "case": case}, scenario))
    return made


def over_base(column: str) -> Callable[[pl.DataFrame], float | None]:
    """Return what a camp's flows have in the mix over what they have among Reno: G for camp B, L for A."""

    def of(rows: pl.DataFrame) -> float | None:
        if column not in rows.columns:
            return None
        both = rows.pivot(
            "case", index=["rate_bps", "load"], values=column, aggregate_function="mean"
        )
        if not {"base", "mix"} <= set(both.columns):
            return None
        ratios = (both["mix"] / both["base"]).drop_nulls()
        return float(ratios.mean()) if ratios.len() else None  # type: ignore[arg-type]

    return of


def fairness_cells(plan: Plan) -> list[Cell]:
    """Section 6.2: two flows of one round trip, then one of 160 ms and another that joins."""
    made = []
    for bps, length, shares in ((10e6, 300.0, (0.25, 0.5, 1.0, 2.0)), (1e9, 60.0, (1.0,))):
        for share in shares:
            for case in ("same", "160 ms first"):
                for rtt in (0.01, 0.02, 0.04, 0.08, 0.16):
                    starts = [plan.start(k, within_s=0.1 * length) for k in range(2)]
                    rtts = [rtt, rtt]
                    if case != "same":
                        starts.sort()
                        rtts[0] = 0.16
                    flows = [flow(OWN, plan.algorithm, k, start_s=starts[k]) for k in range(2)]
                    for f in flows:
                        f["transport"]["tcp"]["receive_buffer"] = (
                            f"{max(16, round(bps * 0.8 / 8e6))}MB"
                        )
                    scenario = dumbbell(
                        flows, bps=bps, rtt_s=rtts, queue=buffer(bps, 0.1, share), duration_s=length
                    )
                    labels: dict[str, Label] = {
                        "rate_bps": bps,
                        "buffer_bdp": share,
                        "case": case,
                        "rtt_s": rtt,
                    }
                    made.append(Cell(labels, scenario))
    return made  # fmt: skip


def ratio(case: str) -> Callable[[pl.DataFrame], float | None]:
    """Return the lesser flow's throughput over the other's."""

    def of(rows: pl.DataFrame) -> float | None:
        if "least_bps.own" not in rows.columns:
            return None
        rows = rows.filter((pl.col("case") == case) & (pl.col("most_bps.own") > 0))
        ratios = rows["least_bps.own"] / rows["most_bps.own"]
        return float(ratios.mean()) if ratios.len() else None  # type: ignore[arg-type]

    return of


def parking_cells(plan: Plan) -> list[Cell]:
    """Section 6.3: three links of 100 Mbit/s in a row, all paths of 60 ms."""
    made = []
    for load in (0.3, 0.4, 0.5):
        ends = [
            ("multi", "left", "right"),
            *(("single", f"cross{i}", f"sink{i}") for i in range(3)),
        ]
        flows: list[Json] = [
            {
                "label": label, "from": a, "to": b, "record": "full",
                "transport": {"tcp": {"congestion": plan.algorithm}},
                "workload": {"ftp": {"load": rate(load * 100e6)}},
            }
            for label, a, b in ends
        ]  # fmt: skip
        top = {
            "parking-lot": {
                "hops": 3,
                "access": {"rate": "1Gbit/s", "delay": "15ms", "queue": {"droptail": "100000 packets"}},
                "bottleneck": {"rate": rate(100e6), "queue": buffer(100e6, 0.06, 1)},
            }
        }  # fmt: skip
        made.append(Cell({"load": load}, made_of(top, flows, 60, 0.5)))
    return made


def single_over_multi(rows: pl.DataFrame) -> float | None:
    """Return the mean throughput of files over one hop, over that of files over three."""
    if not {"flow_bps.single", "flow_bps.multi"} <= set(rows.columns):
        return None
    ratios = (rows["flow_bps.single"] / rows["flow_bps.multi"]).drop_nulls().drop_nans()
    return float(ratios.mean()) if ratios.len() else None  # type: ignore[arg-type]


USED = figure(
    "utilization",
    "share of the centre link used",
    "more",
    mean_of("utilization"),
    bounds=SHARE,
    margin=0.05,
)
LOST = figure(
    "drop_rate",
    "share of packets dropped there",
    "less",
    mean_of("drop_rate"),
    bounds=SHARE,
    margin=0.1,
    least=0.001,
)
WAIT = figure(
    "queue_mean_s",
    "mean queueing delay there",
    "less",
    mean_of("queue_mean_s"),
    bounds=POSITIVE,
    margin=0.1,
    least=0.001,
)


CRITERIA = (
    Criterion(
        "tcpeval-basic", "Basic scenarios", f"{SOURCE} 4", "should",
        "Where all flows run the algorithm: use of the centre link, loss and delay there.",
        "Nine paths of 4 to 200 ms, traffic both ways at 60, 85 and 110% of an access link, a trans-oceanic one, a "
        "satellite, a modem and a data centre.",
        basic_cells, (USED, LOST, WAIT), group="tcpeval", profiles=ONLY,
    ),
    Criterion(
        "tcpeval-trade-off", "Delay and throughput", f"{SOURCE} 5.1", "should",
        "What delay and loss it takes for throughput, as buffers grow.",
        "The access link at 85% load behind tail drop of 10, 20, 50, 100 and 200% of the product "
        "of 100 Mbit/s and 100 ms.",
        tradeoff_cells, (USED, LOST, WAIT), group="tcpeval", profiles=ONLY,
    ),
    Criterion(
        "tcpeval-ramp-up", "Ramp-up", f"{SOURCE} 5.2", "should",
        "How soon a new flow gets going beside one in equilibrium.",
        "10 Mbit/s and 1 Gbit/s, half of it taken by files, round trips of (80, 80), (120, 30) and "
        "(30, 120) ms: time until "
        "the new flow's byte 1500 * 10^n.",
        ramp_cells,
        (
            figure("reach_3_s", "time until 1.5 MB", "less", mean_of("reach_3_s.new"), bounds=POSITIVE,
                margin=0.1, least=0.1),
            figure("reach_4_s", "time until 15 MB", "less", mean_of("reach_4_s.new"), bounds=POSITIVE,
                margin=0.1, least=0.5),
            figure("reach_5_s", "time until 150 MB, at 1 Gbit/s", "less",
                mean_of("reach_5_s.new", rate_bps=1e9), bounds=POSITIVE, margin=0.1, least=1),
            figure("old_bps", "goodput of the old flow", "more", mean_of("goodput_bps.old"), bounds=POSITIVE,
                margin=0.1),
        ),
        group="tcpeval", profiles=ONLY,
    ),
    Criterion(
        "tcpeval-transients", "Transients", f"{SOURCE} 5.3", "should",
        "How it takes to capacity that is suddenly there, or gone.",
        "One flow of 100 ms at 100 Mbit/s and 1024 packets; after 100 s 75 Mbit/s of datagrams go, come, or come in 30 "
        "steps a second apart: time to 60, 80 and 90% of the bandwidth-delay product, largest "
        "change of the window in a "
        "round trip, datagrams lost in 100 s.",
        transient_cells,
        (
            figure("to_60_s", "time to 60% of the bandwidth-delay product", "less",
                mean_of("window_60_s", case="goes"), bounds=POSITIVE, margin=0.2, least=0.5),
            figure("to_80_s", "time to 80%", "less", mean_of("window_80_s", case="goes"), bounds=POSITIVE,
                margin=0.2, least=0.5),
            figure("to_90_s", "time to 90%", "less", mean_of("window_90_s", case="goes"), bounds=POSITIVE,
                margin=0.2, least=0.5),
            figure("leap_bytes", "largest growth of the window in 100 ms", "neither",
                mean_of("window_leap_bytes", case="goes"), bounds=POSITIVE),
            figure("step_lost", "datagrams lost in 100 s, all at once", "less", dropped("comes"),
                bounds=POSITIVE, margin=0.2, least=50),
            figure("ramp_lost", "datagrams lost in 100 s, in steps", "less", dropped("grows"), bounds=POSITIVE,
                margin=0.2, least=50),
        ),
        group="tcpeval", profiles=ONLY,
    ),
    Criterion(
        "tcpeval-impact", "Impact on standard TCP", f"{SOURCE} 6.1", "should",
        "What its flows gain (G) and what those of the standard lose (L) when half of the flows change to it.",
        "Two camps with the same files at the same times, 10 Mbit/s and 1 Gbit/s at 50 and 100% "
        "load: throughput of files, "
        "over that with Reno in both camps.",
        impact_cells,
        (
            figure("gain", "G: what files of the new camp have, over Reno's", "neither",
                over_base("flow_bps.B"), bounds=POSITIVE),
            figure("loss", "L: what files of the camp that stays have, over before", "more",
                over_base("flow_bps.A"), bounds=POSITIVE, margin=0.05),
            figure("loss_small", "L of the smallest quarter of files", "more", over_base("flow_bps_small.A"),
                bounds=POSITIVE, margin=0.05),
            figure("loss_large", "L of the largest quarter", "more", over_base("flow_bps_large.A"),
                bounds=POSITIVE, margin=0.05),
        ),
        group="tcpeval", profiles=ONLY,
    ),
    Criterion(
        "tcpeval-fairness", "Two flows, one or two round trips", f"{SOURCE} 6.2", "should",
        "How two flows of it share, with equal round trips and with unequal ones.",
        "10 Mbit/s and 1 Gbit/s, buffers of 25 to 200% of the product with 100 ms; round trips of "
        "10 to 160 ms, both the "
        "same, or 160 ms first.",
        fairness_cells,
        (
            figure("same", "lesser over greater throughput, same round trips", "more", ratio("same"),
                bounds=SHARE, margin=0.1),
            figure("unequal", "the same, 160 ms first", "more", ratio("160 ms first"), bounds=SHARE, margin=0.1),
            LOST,
        ),
        group="tcpeval", profiles=ONLY,
    ),
    Criterion(
        "tcpeval-bottlenecks", "Several bottlenecks", f"{SOURCE} 6.3", "should",
        "What flows across several bottlenecks have beside those across one.",
        "Three links of 100 Mbit/s in a row, files over each and over all, 30, 40 and 50% of load "
        "each, all paths 60 ms.",
        parking_cells,
        (
            figure("single_over_multi", "throughput over one hop, over that over three", "less",
                single_over_multi, bounds=POSITIVE, margin=0.1),
            figure("drop_rate", "share of packets dropped at the fullest link", "less", worst_of("drop_rate"),
                bounds=SHARE, margin=0.1, least=0.001),
            figure("least_bps", "throughput of files over three hops where it is least", "more",
                least_of("flow_bps.multi"), bounds=POSITIVE, margin=0.1),
        ),
        group="tcpeval", profiles=ONLY,
    ),
)  # fmt: skip
