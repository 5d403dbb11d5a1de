#!/usr/bin/env python3
"""Draw the two pictures of every congestion control's page into docs/images/congestion/.

    make pictures [ONLY=NAME]

Window and queueing delay against time, alone on a link of 100 Mbit/s and 50 ms; mean window against
loss rate on the same link. Coupled controls, which are another alone on a path, have none.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gargalo
import matplotlib as mpl
import polars as pl
from gargalo import _core
from gargalo._generate import has_pictures
from gargalo.pictures.looks import colour_of

mpl.use("Agg")
from matplotlib import pyplot as plt

DOCS = Path(__file__).resolve().parent.parent / "docs"
IMAGES = DOCS / "images" / "congestion"
MSS = 1448
LOSS = [30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
DURATION_S = 60.0
WARM_UP_S = 20.0
STYLE = {
    "svg.hashsalt": "gargalo",
    "svg.fonttype": "none",
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "figure.constrained_layout.use": True,
}
QUEUE, REFERENCE = "#444444", "#777777"


def scenario(name: str, **link: Any) -> gargalo.Scenario:
    """One flow of `name` on the link of the pictures; step marking for DCTCP and Prague, which need it."""
    step = {"step": {"mark_above": "70 packets", "limit": "417 packets"}}
    queue = step if name in ("dctcp", "prague") else {"droptail": "1BDP"}
    tcp = {"congestion": name}
    return (
        gargalo.Scenario(
            name,
            duration=f"{DURATION_S:g}s",
            more={"record": {"interval": "100ms"}},
        )
        .simple(rate="100Mbit/s", delay="25ms", queue=queue, **link)
        .flow(transport={"tcp": tcp})
    )


def samples(run: gargalo.Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the flow's samples and the bottleneck's."""
    links = run.link_samples
    return run.flow_samples, links.filter(pl.col("direction") == "up")


def draw_time(name: str) -> None:
    """Draw window and queueing delay against time."""
    flow, link = samples(gargalo.run(scenario(name)))
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 3.6), height_ratios=[2, 1])
    above.plot(
        flow["time_s"], flow["congestion_window_bytes"] / MSS, color=colour_of(name), linewidth=1.0
    )
    above.set_ylabel("window (segments)")
    above.set_ylim(bottom=0)
    # 100 Mbit/s for 50 ms in packets of 1500 bytes.
    above.axhline(416.7, color=REFERENCE, linewidth=0.8, linestyle="--")
    above.annotate(
        "bandwidth-delay product", (60, 416.7), ha="right", va="bottom", color=REFERENCE, fontsize=8
    )
    below.plot(link["time_s"], 1e3 * link["queue_delay_s"], color=QUEUE, linewidth=0.9)
    below.set_ylabel("queue (ms)")
    below.set_ylim(bottom=0)
    below.set_xlabel("time (s)")
    below.set_xlim(0, DURATION_S)
    save(figure, f"{name}-time.svg")


def draw_loss(name: str) -> None:
    """Draw the mean window against the loss rate."""
    means = []
    for every in LOSS:
        run = gargalo.run(scenario(name, up={"loss": {"periodic": every}}))
        flow, _ = samples(run)
        late = flow.filter(pl.col("time_s") > WARM_UP_S)
        means.append(float(late["congestion_window_bytes"].to_numpy().mean()) / MSS)
    rates = [1 / n for n in LOSS]
    figure, axes = plt.subplots(figsize=(7, 2.9))
    axes.loglog(
        rates,
        [math.sqrt(1.5 / p) for p in rates],
        color=REFERENCE,
        linestyle="--",
        linewidth=1.0,
        label="1.2/√p",
    )
    axes.loglog(
        rates, means, color=colour_of(name), marker="o", markersize=4, linewidth=1.2, label=name
    )
    axes.axhline(833.3, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.annotate(
        "link and buffer full", (rates[-1], 833.3), va="bottom", color=REFERENCE, fontsize=8
    )
    axes.set_xlabel("loss rate p")
    axes.set_ylabel("mean window (segments)")
    figure.legend(loc="outside lower left", ncols=2, frameon=False)
    save(figure, f"{name}-loss.svg")


def save(figure: Any, name: str) -> None:
    """Write a picture that is the same whenever it is drawn."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / name, metadata={"Date": None})
    plt.close(figure)


def draw(name: str) -> str:
    """Draw both."""
    with mpl.rc_context(STYLE):
        draw_time(name)
        draw_loss(name)
    return name


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [str(e["name"]) for e in _core.congestion()]
    names = [n for n in names if has_pictures((DOCS / "congestion" / f"{n}.md").read_text("utf-8"))]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME")
    chosen = parser.parse_args().only or names
    with ProcessPoolExecutor() as pool:
        for name in pool.map(draw, chosen):
            print(name)


if __name__ == "__main__":
    main()
