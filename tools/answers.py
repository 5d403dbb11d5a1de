"""Measures the answers to open questions of the field, `docs/answers`, with all stacks that are installed.

`python tools/answers.py [PAGE...]`: the scenario is the one of the page, and the tables between its marks are made
again. Some minutes for all.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import gargalo
import polars as pl
from gargalo import interop
from gargalo.evaluation.stacks import INSIDE
from gargalo.interop import wire

PAGES = Path(__file__).resolve().parent.parent / "docs" / "answers"
STACKS = PAGES.parent.parent / "stacks"
SERVER_PORT = 443
SAME_S = 10e-6
"""What leaves so soon after the packet before is of the same burst."""
OWN = {"noq-bbr3": "bbr3", "noq-cubic": "cubic"}
"""noq's own congestion controls; the others over it are ours."""
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Control:
    """A congestion control of a stack."""

    stack: str
    name: str

    @property
    def settings(self) -> dict[str, str]:
        """What makes it that of the flow."""
        at = "flows.0.transport.quic"
        return {f"{at}.stack": self.stack, f"{at}.congestion": self.name}

    @property
    def label(self) -> str:
        """Its name in a table."""
        if self.stack != INSIDE:
            return f"{self.stack} `{self.name}`"
        return f"noq `{OWN[self.name]}`" if self.name in OWN else f"ours `{self.name}`, over noq"


def controls() -> list[Control]:
    """Return the BBRs and CUBICs of all stacks, and of picoquic what it alone has."""
    found = [Control(INSIDE, name) for name in ("bbr3", "bbr", "cubic", *OWN)]
    for stack in interop.known().values():
        # Not builds of a checkout, nor stacks of somebody else's.
        if stack.name == INSIDE or stack.broken or not (STACKS / stack.name).is_dir():
            continue
        chosen = [c for c in stack.congestion if c.startswith("bbr") or c in ("cubic", "c4")]
        found += [Control(stack.name, c) for c in chosen]
    return found


def scenario(page: str) -> str:
    """Return the scenario of a page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, page
    return found[1]


def bursts(folder: Path, since: float) -> list[tuple[float, int]]:
    """Return the bursts of the client: when each began, and its packets."""
    found: list[tuple[float, int]] = []
    last = -1.0
    for one in wire.datagrams(folder / "capture.pcapng"):
        if one.source.port == SERVER_PORT or one.time_s < since:
            continue
        if one.time_s - last <= SAME_S:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((one.time_s, 1))
        last = one.time_s
    return found


def limited(control: Control) -> list[str]:
    """Return a row: bursts of frames, how long one takes to leave, pacing rates and losses."""
    since, until, frame_s = 1.0, 4.0, 1 / 60
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "run"
        run = gargalo.run(scenario("application-limited"), set=control.settings, output=folder)
        frames: dict[int, list[tuple[float, int]]] = {}
        for at, count in bursts(folder, since):
            if at < until:
                frames.setdefault(int(at / frame_s + 0.25), []).append((at, count))
    largest = [max(n for _, n in frame) for frame in frames.values()]
    took = median(frame[-1][0] - frame[0][0] for frame in frames.values())
    told = run.flow_samples.select("time_s", "pacing_rate_bps").drop_nulls()
    rates = [told.filter(pl.col("time_s") >= at)["pacing_rate_bps"] for at in (2.0, 15.0)]
    up = next(x for x in run.links if x["direction"] == "up")
    return [
        f"{median(largest):.0f}, {max(largest)}",
        f"{took * 1e3:.1f} ms",
        *(f"{r[0] / 1e6:.1f} Mbit/s" if len(r) else "not told" for r in rates),
        f"{up['dropped_packets'] / up['offered_packets']:.1%}",
    ]


def jittered(control: Control) -> list[str]:
    """Return a row: completion times without jitter, with it in order, and out of order."""
    link = "topology.simple.link"
    kinds: list[dict[str, Any]] = [
        {f"{link}.jitter": "0ms"},
        {},
        {f"{link}.reorder": "{ probability = 0 }"},
    ]
    told = []
    for changes in kinds:
        text = scenario("jitter")
        runs = [gargalo.run(text, seed=s, set={**control.settings, **changes}) for s in SEEDS]
        times = [r.flows["completion_s"][0] for r in runs]
        late = [t for t in times if t is None]
        told.append("not within 200 s" if late else f"{mean(times):.1f}")
    return told


def bursting(control: Control) -> list[str]:
    """Return a row: the largest burst and the share of packets in large ones, without and with pauses."""
    pauses = '{ onoff = { rate = "1Gbit/s", on = "8ms", off = "2s" } }'
    told = []
    for changes in ({}, {"flows.0.workload": pauses}):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) / "run"
            gargalo.run(scenario("bursts"), set={**control.settings, **changes}, output=folder)
            sizes = [n for _, n in bursts(folder, 1.0)]
        share = sum(n for n in sizes if n > 10) / max(1, sum(sizes))
        told += [str(max(sizes, default=0)), f"{share:.0%}"]
    return told


def in_probes(gauges: pl.DataFrame, name: str) -> list[float]:
    """Return the value of a gauge of a flow 100 ms after each entry into PROBE_RTT, from 20 s on."""
    phases = gauges.select("time_s", "phase").unique(maintain_order=True)
    entered = phases.filter(
        pl.col("phase") == "probe-rtt",
        pl.col("phase").shift(1) != "probe-rtt",
        pl.col("time_s") > 20,
    )
    values = gauges.filter(pl.col("name") == name).select("time_s", "value")
    at = entered.select(pl.col("time_s") + 0.1).set_sorted("time_s")
    return at.join_asof(values.set_sorted("time_s"), on="time_s")["value"].drop_nulls().to_list()


def probing(interval: str) -> list[str]:
    """Return a row of what BBRv3 does with this time between two probes."""
    at = "flows.0.transport.tcp.congestion.bbr3.probe_rtt_interval"
    least: list[float] = []
    windows: list[float] = []
    rates, queues, shares = [], [], []
    for seed in SEEDS:
        run = gargalo.run(scenario("probe-rtt"), seed=seed, set={at: interval})
        own = run.flows.filter(pl.col("congestion") == "bbr3")
        for flow in own["id"]:
            of_flow = run.gauges.filter(pl.col("flow") == flow)
            least += in_probes(of_flow, "min_rtt_s")
            windows += in_probes(of_flow, "congestion_window_bytes")
        rates.append(own["goodput_bps"].sum())
        shares.append(own["goodput_bps"].sum() / run.flows["goodput_bps"].sum())
        queues.append(run.summary["queue_delay_p50_s"])
    return [
        f"{mean(least) * 1e3:.1f} ms" if least else "none",
        f"{max(least) * 1e3:.1f} ms" if least else "none",
        f"{median(windows) / 1e3:.0f} kB" if windows else "none",
        f"{mean(rates) / 1e6:.1f} Mbit/s",
        f"{mean(shares):.0%}",
        f"{mean(queues) * 1e3:.1f} ms",
    ]


Row = Callable[[Any], list[str]]
ANSWERS: dict[str, tuple[tuple[str, ...], Row, Callable[[], Sequence[Any]]]] = {
    "application-limited": (
        (
            "largest burst of a frame: median, most",
            "a frame leaves within",
            "pacing rate at 2 s, as told",
            "at 15 s",
            "lost",
        ),
        limited,
        controls,
    ),
    "jitter": (("no jitter", "in order", "out of order"), jittered, controls),
    "bursts": (
        ("largest, always sending", "in large ones", "largest, after pauses", "in large ones"),
        bursting,
        controls,
    ),
    "probe-rtt": (
        (
            "least round trip in PROBE_RTT: mean",
            "most",
            "window in PROBE_RTT",
            "both BBRs",
            "their share",
            "queue, median",
        ),
        probing,
        lambda: ("2.5s", "5s", "9s", "10s", "20s"),
    ),
}


def rows(page: str) -> Iterator[str]:
    """Yield the lines of a page's table."""
    heads, row, of = ANSWERS[page]
    what = "time between probes" if page == "probe-rtt" else "congestion control"
    yield f"| {what} | {' | '.join(heads)} |"
    yield f"| --- |{' ---: |' * len(heads)}"
    each = of()
    with ProcessPoolExecutor(2) as pool:
        for one, cells in zip(each, pool.map(partial(_safely, row), each), strict=True):
            label = one.label if isinstance(one, Control) else one
            yield f"| {label} | {' | '.join(cells)} |"


def _safely(row: Row, one: Any) -> list[str]:
    try:
        return row(one)
    except gargalo.RunError as e:
        return [f"failed: {e}"]


def main() -> None:
    """Make the tables of some pages, or of all."""
    for page in sys.argv[1:] or ANSWERS:
        path = PAGES / f"{page}.md"
        table = "\n".join(rows(page))
        print(table, flush=True)
        text = path.read_text(encoding="utf-8")
        mark = f"<!-- results {page} -->"
        begin, end = text.index(mark) + len(mark), text.index("<!-- /results -->")
        path.write_text(f"{text[:begin]}\n{table}\n{text[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
