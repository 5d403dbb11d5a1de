"""Judges fits by the truth: paths drawn at random, a flow captured at its sender, and the path fitted to the capture.

    python benches/fitting/judge.py --paths 200 --seed 1
    python benches/fitting/judge.py --paths 60 --seed 2 --world lab --most-mbps 50

With `--captures DIR` captures are kept there, and those that are there are not made again; with `--record` they are
made and nothing is fitted: in the lab on an idle machine, and the fits at any time.

For each path: the error of the rate (of a policed path: the rate of the policer, if that is less than the
link's), of the round trip without a queue (in the lab with what the links were late, in the median), of the buffer
where it overflowed, and of the goodput and the 95th percentile of the round trip that another congestion control has
over the path, which the fit did not see; and whether intervals hold the truth. The bounds are those of the columns: 5%,
3%, 15%, 10%, 15%. Of paths that displace or aggregate packets (`--kinds reordering,aggregation`) also: the share of
displaced packets within 25%, by how much they are late within 10%, for how long packets are aggregated within 1%.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parent))

import gargalo
from captures import captured, late_s
from gargalo.fitting import FitError, fit
from gargalo.fitting.observed import Observed
from paths import KINDS, OTHER_KINDS, PACKET_BYTES, Truth, draw

BOUNDS = {
    "rate": 0.05,
    "base": 0.03,
    "buffer": 0.15,
    "goodput": 0.10,
    "rtt_p95": 0.15,
    "displaced": 0.25,
    "late": 0.10,
    "aggregation": 0.01,
}
INTERVALS = {
    "rate": "rate_bps",
    "base": "base_rtt_s",
    "buffer": "buffer_bytes",
    "displaced": "reorder_probability",
    "late": "reorder_by_s",
    "aggregation": "aggregation_s",
}


@dataclass(frozen=True)
class Task:
    """Which paths are judged."""

    seed: int
    world: Literal["sim", "lab"]
    most_bps: float
    kinds: tuple[str, ...]
    captures: Path
    """Where they are kept."""

    def draw(self, number: int) -> Truth:
        """Return one of the paths."""
        return draw(number, self.seed, self.most_bps, self.world, self.kinds)

    def capture(self, truth: Truth, congestion: str) -> Path:
        """Run a flow over a path, unless that was done before, and return its capture at the sender."""
        name = f"{self.world}-{self.seed}-{self.most_bps / 1e6:g}-{truth.number}-{congestion}"
        if truth.kind in OTHER_KINDS:
            name += f"-{truth.kind}"
        made = self.captures / f"{name}.pcapng"
        return captured(made, truth.scenario(congestion, self.world), world=self.world)


def record(number: int, task: Task) -> None:
    """Make the two captures of a path."""
    truth = task.draw(number)
    for congestion in (truth.congestion, truth.other):
        task.capture(truth, congestion)


def judged(number: int, task: Task) -> dict[str, Any]:
    """Fit one path, and return its errors as shares; missing ones are not known."""
    truth = task.draw(number)
    capture = task.capture(truth, truth.congestion)
    base = truth.base_rtt_s + 2 * late_s(capture)
    found = gargalo.read(capture, packets=True)
    other_run = gargalo.read(task.capture(truth, truth.other), packets=True)
    begun = time.perf_counter()
    try:
        fitted = fit(found, flow=0, congestion=truth.congestion)
        other = Observed.of(other_run, 0).figures()
    except FitError as e:
        return {"number": number, "kind": truth.kind, "unfit": str(e), "errors": {}, "held": {}}
    took = time.perf_counter() - begun
    path = fitted.path
    rate = path.mean_rate_bps(fitted.seen.duration_s)
    errors = {
        "rate": min(rate, path.policer.rate_bps if path.policer else rate) / truth.path_bps - 1,
        "base": path.base_rtt_s / base - 1,
    }
    if fitted.estimate.overflowed:
        errors["buffer"] = path.buffer_bytes / truth.buffer_bytes - 1
    truths = {"rate": truth.rate_bps, "base": base, "buffer": truth.buffer_bytes}
    if truth.kind == "reordering" and (
        milliseconds(truth.up["reorder"]["late"]) > PACKET_BYTES * 8 / truth.rate_bps
    ):
        # Others are overtaken by none.
        reorder = path.reordering
        truths |= {"displaced": truth.up["reorder"]["probability"]}
        truths |= {"late": milliseconds(truth.up["reorder"]["late"])}
        errors["displaced"] = (reorder.probability if reorder else 0.0) / truths["displaced"] - 1
        errors["late"] = (reorder.by_s if reorder else 0.0) / truths["late"] - 1
    elif truth.kind == "aggregation":
        truths |= {"aggregation": milliseconds(truth.up["aggregation"])}
        errors["aggregation"] = path.aggregation_s / truths["aggregation"] - 1
    told = fitted.what_if({"congestion": truth.other})
    for name, figure in (("goodput", "goodput_bps"), ("rtt_p95", "rtt_p95_s")):
        actual, predicted = getattr(other, figure), told[figure].value
        if actual and predicted:
            errors[name] = predicted / actual - 1
    held = {}
    for name, true in truths.items():
        interval = fitted.intervals.get(INTERVALS[name])
        if interval is None:
            # What was not found has none.
            held[name] = False
            continue
        low, high = interval.low or 0.0, interval.high or float("inf")
        held[name] = low * (1 - 1e-9) <= true <= high * (1 + 1e-9)
    return {
        "number": number,
        "kind": truth.kind,
        "congestion": truth.congestion,
        "other": truth.other,
        "filled": fitted.estimate.filled,
        "errors": errors,
        "held": held,
        "fit_s": took,
    }


def milliseconds(text: str) -> float:
    """Return a time of a scenario that is written in these, in seconds."""
    return float(text.removesuffix("ms")) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--paths", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", choices=("sim", "lab"), default="sim")
    parser.add_argument("--most-mbps", type=float, default=500.0)
    parser.add_argument(
        "--kinds", default=",".join(KINDS), help=f"also {' and '.join(OTHER_KINDS)}"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write every path's errors here")
    parser.add_argument("--captures", type=Path, help="keep captures here")
    parser.add_argument("--record", action="store_true", help="make the captures only")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fitting-") as place:
        kept: Path = asked.captures or Path(place)
        kept.mkdir(parents=True, exist_ok=True)
        kinds = tuple(asked.kinds.split(","))
        task = Task(asked.seed, asked.world, asked.most_mbps * 1e6, kinds, kept)
        if asked.world == "lab" or asked.record:
            # In real time flows of two runs would disturb each other.
            with ProcessPoolExecutor(1 if asked.world == "lab" else asked.jobs) as pool:
                list(pool.map(partial(record, task=task), range(asked.paths)))
        if asked.record:
            return
        with ProcessPoolExecutor(asked.jobs) as pool:
            rows = list(pool.map(partial(judged, task=task), range(asked.paths)))
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1))
    known = {name for r in rows for name in r["errors"]}
    bounds = {name: bound for name, bound in BOUNDS.items() if name in known}
    print(f"| kind | paths | {' | '.join(f'{n} within {b:.0%}' for n, b in bounds.items())} |")
    print("| --- " * (2 + len(bounds)) + "|")
    for kind in (*kinds, "all"):
        mine = [r for r in rows if kind in (r["kind"], "all")]
        cells = []
        for name, bound in bounds.items():
            errors = [r["errors"][name] for r in mine if name in r["errors"]]
            cells.append(f"{sum(abs(e) <= bound for e in errors)} of {len(errors)}")
        print(f"| {kind} | {len(mine)} | {' | '.join(cells)} |")
    held: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        for name, holds in row["held"].items():
            held[name].append(holds)
    print("intervals that hold the truth:", {n: f"{sum(h)} of {len(h)}" for n, h in held.items()})
    print("never filled:", sum(not r.get("filled", True) for r in rows), "of", len(rows))
    print("no fit:", [r["unfit"] for r in rows if "unfit" in r])
    print(f"longest fit: {max(r.get('fit_s', 0.0) for r in rows):.1f} s")


if __name__ == "__main__":
    main()
