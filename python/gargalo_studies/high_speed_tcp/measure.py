"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from gargalo import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo import Run

WARM_UP = 1 / 3
"""Share of a run that is not judged: slow start and first convergence."""
LATE = "late"
"""Label of the flow whose convergence is timed."""


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; rates in bit/s, times in s, shares from 0 to 1.

    `main_utilization`: share of the bottleneck's capacity that the main flows' packets take.
    `link_utilization`: that of all traffic. `jain`: Jain's index of the main flows' goodputs.
    `spread`: their coefficient of variation. `variation`: coefficient of variation of their sum over
    1 s bins. `goodput.X` and `share.X`: mean goodput of a flow of protocol X, and the share of the
    capacity that all of them take; in a parking lot also `goodput.X short` and `goodput.X long`, by round trip.
    `long_short`: mean goodput of long over that of short round trips. `timeouts`: of a main flow, on average.
    `convergence_s`: time the late flow needs to a fair share of what the background leaves. `converged`: 1 if it gets
    there, else 0, and there is no time.
    """
    flows = run.flows.filter(~pl.col("label").str.starts_with("background"))
    end_s = float(run.info["duration_s"])
    start_s = end_s * WARM_UP
    late = flows.filter(pl.col("label") == LATE)
    if late.height:
        start_s = float(late["start_s"][0])
    main = run.flow_samples.filter(pl.col("flow").is_in(flows["id"].to_list()))
    bins = metrics.throughput_bins(main, 1.0, start_s=start_s, end_s=end_s, flows=flows)
    rates = dict(bins.group_by("flow").agg(pl.col("throughput_bps").mean()).iter_rows())
    by_flow = [float(rates.get(i, 0.0)) for i in flows["id"]]
    links = [k for k in run.links if k["name"].startswith("bottleneck") and k["direction"] == "up"]
    capacity = float(links[0]["capacity_bps"])
    # Goodput counts payload; the link carries headers and options too.
    wire = 1500 / payload_bytes(run)
    total = bins.group_by("time_s").agg(pl.col("throughput_bps").sum()).sort("time_s")
    sums = total["throughput_bps"].to_numpy()
    used = [
        metrics.link_utilization(run.link_samples, k["name"], start_s=start_s, end_s=end_s)
        for k in links
    ]
    found: dict[str, float | None] = {
        "main_utilization": wire * sum(by_flow) / capacity,
        "link_utilization": float(np.mean([u for u in used if u is not None])),
        "jain": metrics.jain_index(by_flow),
        "spread": metrics.coefficient_of_variation(by_flow),
        "variation": metrics.coefficient_of_variation(sums),
        "flow_goodput_bps": float(np.mean(by_flow)),
        "dropped_packets": float(sum(k["dropped_packets"] for k in links)),
        "timeouts": float(np.mean(flows["timeouts"].to_numpy())),
    }
    names = flows["label"].to_list()
    protocols = [name.removesuffix(" short").removesuffix(" long") for name in names]
    for protocol in sorted(set(protocols)):
        mine = [r for r, p in zip(by_flow, protocols, strict=True) if p == protocol]
        found[f"goodput.{protocol}"] = float(np.mean(mine))
        found[f"share.{protocol}"] = wire * sum(mine) / capacity
    for name in sorted(set(names) - set(protocols)):
        mine = [r for r, n in zip(by_flow, names, strict=True) if n == name]
        found[f"goodput.{name}"] = float(np.mean(mine))
    long = [r for r, n in zip(by_flow, names, strict=True) if n.endswith(" long")]
    short = [r for r, n in zip(by_flow, names, strict=True) if n.endswith(" short")]
    if long and short:
        found["long_short"] = float(np.mean(long) / max(float(np.mean(short)), 1.0))
    if late.height:
        taken = background_share(run)
        target = (1 - taken) * capacity / wire / flows.height
        reached = metrics.convergence_time(bins, int(late["id"][0]), target, start_s=start_s)
        found["converged"] = float(reached is not None)
        found["convergence_s"] = reached
    return {k: float(v) for k, v in found.items() if v is not None}


def background_share(run: Run) -> float:
    """Return the share of the bottleneck that the background was asked to take.

    It is in the scenario: the engine makes several sources of a mix.
    """
    mixes = (flow["workload"].get("mix") for flow in run.scenario["flows"])
    return next((float(mix["load"]) for mix in mixes if mix), 0.0)


def payload_bytes(run: Run) -> int:
    """Return the payload of a main flow's full segment; all have the same."""
    tcp = run.scenario["flows"][0]["transport"]["tcp"]
    return int(tcp["mss"].removesuffix("B"))
