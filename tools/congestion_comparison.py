#!/usr/bin/env python3
"""Compare all congestion controls on the six networks of examples/networks.

    make comparison [ONLY=NAME]

Per network and algorithm: utilisation and median queueing delay of one flow alone, Jain's index of
four equal flows, and the share of one flow beside one of cubic and one of reno (a half is fair; mean of
both orders of starting). Figures are of the second half of each run. Results are kept in
docs/congestion/comparison.csv, from which docs/congestion/comparison.md is written; ONLY renews one
algorithm's rows. Coupled controls, which are another alone on a path, are left out.
"""

from __future__ import annotations

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gargalo
import polars as pl
from gargalo import _core
from gargalo._generate import has_pictures
from gargalo._toml import loads
from gargalo.metrics import jain_index

ROOT = Path(__file__).resolve().parent.parent
NETWORKS = ROOT / "examples" / "networks"
CSV = ROOT / "docs" / "congestion" / "comparison.csv"
PAGE = ROOT / "docs" / "congestion" / "comparison.md"
ORDER = ["access", "lan", "transatlantic", "satellite", "wifi", "cellular"]
SEEDS = {"lan": [1], "transatlantic": [1]}
MORE_SEEDS = [1, 2, 3, 4, 5]
RATES_MBPS = {"20Mbit/s": 20.0, "50Mbit/s": 50.0, "1Gbit/s": 1000.0}
FIGURES = ["utilization", "queue_delay_p50_s", "jain", "share_cubic", "share_reno"]
# DCTCP needs marks: above a sixth of the bandwidth-delay product (Alizadeh et al. 2010: more than a
# seventh), behind the same buffers in packets.
STEP = {
    "access": ("6 packets", "100 packets"),
    "lan": ("20 packets", "200 packets"),
    "transatlantic": ("1389 packets", "4167 packets"),
    "satellite": ("83 packets", "500 packets"),
    "wifi": ("21 packets", "250 packets"),
    "cellular": ("20 packets", "500 packets"),
}


def read_network(network: str) -> dict[str, Any]:
    """Read the scenario file of a network."""
    return loads((NETWORKS / f"{network}.toml").read_text(encoding="utf-8"))


def scenario(network: str, names: list[str], starts: list[float]) -> dict[str, Any]:
    """Put one flow per name on a network."""
    base = read_network(network)
    bottleneck = base["topology"]["dumbbell"]["bottleneck"]
    up = bottleneck.setdefault("up", {})
    if "trace" in str(up.get("rate", "")):
        up["rate"] = {"trace": str(NETWORKS / up["rate"]["trace"])}
    if "prague" in names:
        up["queue"] = "dualpi2"
    elif "dctcp" in names:
        mark_above, limit = STEP[network]
        up["queue"] = {"step": {"mark_above": mark_above, "limit": limit}}
    flows = []
    for i, (name, start) in enumerate(zip(names, starts, strict=True)):
        flows.append(
            {
                "from": f"left{i}",
                "to": f"right{i}",
                "start": f"{start:g}s",
                "transport": {"tcp": {"congestion": name}},
            }
        )
    return {**base, "flows": flows, "record": {"interval": "50ms"}}


def middle_and_end(run: gargalo.Run) -> tuple[float, float]:
    """Return the bounds of the second half of a run, in s."""
    end = float(run.flow_samples["time_s"].max() or 0.0)
    return end / 2, end


def rates(run: gargalo.Run) -> list[float]:
    """Return the flows' rates in the second half, in bit/s."""
    samples = run.flow_samples
    middle, end = middle_and_end(run)
    found = []
    for flow in run.flows["id"]:
        mine = samples.filter(pl.col("flow") == flow)
        before = mine.filter(pl.col("time_s") <= middle)["delivered_bytes"]
        after = mine["delivered_bytes"]
        got = (after[-1] if len(after) else 0) - (before[-1] if len(before) else 0)
        found.append(8.0 * got / (end - middle))
    return found


def link_figures(network: str, run: gargalo.Run) -> tuple[float, float]:
    """Return the bottleneck's utilisation and median queueing delay in s, in the second half."""
    middle, end = middle_and_end(run)
    links = run.link_samples.filter(
        (pl.col("link") == "bottleneck")
        & (pl.col("direction") == "up")
        & (pl.col("time_s") > middle)
    )
    sent = links["sent_bytes"]
    used = 8.0 * (sent[-1] - sent[0]) / capacity_bits(network, middle, end)
    return used, float(links["queue_delay_s"].median() or 0.0)


def capacity_bits(network: str, start_s: float, end_s: float) -> float:
    """Return what the bottleneck can carry between two instants, in bits."""
    link = read_network(network)["topology"]["dumbbell"]["bottleneck"]
    rate = link["rate"] if "rate" in link else link["up"]["rate"]
    if isinstance(rate, str):
        return (end_s - start_s) * 1e6 * RATES_MBPS[rate]
    text = (NETWORKS / rate["trace"]).read_text(encoding="utf-8")
    bins = _core.trace_rates(text, "100ms")
    return sum(0.1 * rate for time, rate in bins if start_s <= time < end_s)


def cell(job: tuple[str, str]) -> dict[str, Any]:
    """Measure one algorithm on one network."""
    network, name = job
    found: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for seed in SEEDS.get(network, MORE_SEEDS):
        alone = gargalo.run(scenario(network, [name], [0.0]), seed=seed)
        used, queue = link_figures(network, alone)
        found["utilization"].append(used)
        found["queue_delay_p50_s"].append(queue)
        four = gargalo.run(scenario(network, [name] * 4, [0.0, 0.31, 0.73, 1.13]), seed=seed)
        found["jain"].append(jain_index(rates(four)) or 0.0)
        for other in ("cubic", "reno"):
            shares = []
            for starts in ([0.0, 1.0], [1.0, 0.0]):
                both = gargalo.run(scenario(network, [name, other], starts), seed=seed)
                mine, theirs = rates(both)
                shares.append(mine / (mine + theirs) if mine + theirs else 0.0)
            found[f"share_{other}"].append(sum(shares) / 2)
    means = {figure: sum(v) / len(v) for figure, v in found.items()}
    return {"network": network, "algorithm": name, **means}


def read() -> dict[tuple[str, str], dict[str, Any]]:
    """Read the kept results."""
    if not CSV.exists():
        return {}
    with CSV.open(encoding="utf-8", newline="") as file:
        return {(r["network"], r["algorithm"]): r for r in csv.DictReader(file)}


def write(rows: dict[tuple[str, str], dict[str, Any]], names: list[str]) -> None:
    """Write the results and the page."""
    kept = [rows[n, a] for n in ORDER for a in names if (n, a) in rows]
    with CSV.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["network", "algorithm", *FIGURES], lineterminator="\n")
        writer.writeheader()
        for row in kept:
            writer.writerow({**row, **{f: f"{float(row[f]):.6g}" for f in FIGURES}})
    text = PAGE.read_text(encoding="utf-8")
    tables = ""
    for network in ORDER:
        tables += f"## {network}\n\n{read_network(network)['description']}.\n\n"
        tables += (
            "| algorithm | utilisation | median queueing delay | Jain's index, 4 flows "
            "| share beside cubic | share beside reno |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
        )
        for row in kept:
            if row["network"] == network:
                f = {k: float(row[k]) for k in FIGURES}
                tables += (
                    f"| [{row['algorithm']}]({row['algorithm']}.md) | {100 * f['utilization']:.1f}% "
                    f"| {1e3 * f['queue_delay_p50_s']:.2f} ms | {f['jain']:.3f} "
                    f"| {100 * f['share_cubic']:.0f}% | {100 * f['share_reno']:.0f}% |\n"
                )
        tables += "\n"
    begin, end = "<!-- tables: written by `make comparison` -->", "<!-- end of tables -->"
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    PAGE.write_text(f"{head}{begin}\n\n{tables.strip()}\n\n{end}{tail}", encoding="utf-8")


def main() -> None:
    """Measure what is asked for, write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [str(e["name"]) for e in _core.congestion()]
    names = [n for n in names if has_pictures((PAGE.parent / f"{n}.md").read_text("utf-8"))]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME")
    parser.add_argument("--network", action="append", choices=ORDER, metavar="NAME")
    args = parser.parse_args()
    rows = read()
    # Longest first, so that no worker is left alone with one of them.
    heavy = sorted(args.network or ORDER, key=lambda n: n not in SEEDS)
    jobs = [(n, a) for n in heavy for a in args.only or names]
    with ProcessPoolExecutor() as pool:
        for row in pool.map(cell, jobs):
            rows[row["network"], row["algorithm"]] = row
            print(row["network"], row["algorithm"], *(f"{row[f]:.4g}" for f in FIGURES), flush=True)
    write(rows, names)


if __name__ == "__main__":
    main()
