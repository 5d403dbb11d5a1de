"""How often `gargalo identify` is right: each congestion control over paths drawn at random.

    python benches/fitting/identify.py                             # all built-in ones, ten paths each, simulated
    python benches/fitting/identify.py --world lab                 # the kernel's own, in real time
    python benches/fitting/identify.py --only strangers            # two that are in no list: the answer is "unknown"

With `--captures DIR` captures are kept there, and those that are there are not made again; with `--record` they are
made, one at a time, and nothing is judged.

Paths are plain: a rate of 2 to 50 Mbit/s, a round trip of 10 to 150 ms and a buffer of 0.5 to 4 bandwidth-delay
products (at least 4 packets), each uniform in its logarithm; a flow lasts 20 to 30 s. The distributions, the groups
of numbers and their floors were settled with seeds below 100; figures are told of others.

An answer is *right* if it is the one that sent the flow, and *tie* if that is among several which the program says it
cannot tell apart; *wrong* if it is not among them, and *unknown* if the program says so. "Left out" is the answer that
there would have been without the right ones: it should be unknown.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path as File
from typing import Any, Literal, TypeAlias

from captures import captured
from gargalo.fitting import Path, identify
from gargalo.fitting.identifying import known_names

World: TypeAlias = Literal["sim", "lab"]
PACKET_BYTES = 1500
KERNEL = ("reno", "cubic", "bbr")
SAME = {"cubic": {"cubic", "cubic-linux"}}
"""In the lab: what the kernel calls cubic."""
STRANGERS = ("pendulum", "stairs")


@dataclass(frozen=True)
class Outcome:
    """What came of one recording."""

    number: int
    congestion: str
    verdict: str
    answer: tuple[str, ...]
    distance: float
    nearest: str
    bound: float
    left_out: float
    """Distance of the nearest that is not in the tie."""
    took_s: float

    def __str__(self) -> str:
        """Return a line."""
        answer = ", ".join(self.answer) or "unknown"
        return (
            f"{self.number:3d} {self.congestion:12s} {self.verdict:8s} {self.distance:5.2f} {self.left_out:5.2f} "
            f"{self.took_s:5.1f}s  {answer} (nearest: {self.nearest})"
        )


def draw(number: int, seed: int) -> tuple[Path, float]:
    """Return a path and for how long a flow sends."""
    rng = random.Random(f"identify/{seed}/{number}")

    def uniform(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    rate, base = uniform(2e6, 50e6), uniform(0.01, 0.15)
    buffer = max(4 * PACKET_BYTES, rate / 8 * base * uniform(0.5, 4))
    return Path(((0.0, rate),), base, buffer), rng.uniform(20, 30)


@dataclass(frozen=True)
class Task:
    """A flow that is judged."""

    number: int
    seed: int
    congestion: str
    world: World
    captures: File
    """Where they are kept."""


def record(task: Task) -> File:
    """Let a flow send over a path, unless that was done before, and return its capture."""
    made = task.captures / f"{task.world}-{task.seed}-{task.number}-{task.congestion}.pcapng"
    if task.congestion in STRANGERS:
        import strangers  # noqa: F401 (registers them)
    path, duration = draw(task.number, task.seed)
    changes: dict[str, Any] = {"record.captures": ["link"], "record.capture_ends": "from"}
    if task.world == "lab":
        changes |= {"hosts.client.stack": "kernel", "hosts.server.stack": "kernel"}
    scenario = path.scenario(task.congestion, duration, "drawn")
    return captured(made, scenario, set=changes, world=task.world, seed=task.number + 1000)


def judge(task: Task) -> Outcome:
    """Record one flow and identify it."""
    candidates = [n for n in known_names() if n not in STRANGERS]
    capture = record(task)
    begins = time.process_time()
    found = identify(capture, candidates=candidates)
    took = time.process_time() - begins
    congestion = task.congestion
    right = SAME.get(congestion, {congestion}) if task.world == "lab" else {congestion}
    answer = found.answer
    if not answer:
        verdict = "unknown"
    elif not right & set(answer):
        verdict = "wrong"
    else:
        verdict = "right" if set(answer) <= right else "tie"
    others = [r.distance for r in found.ranking if not r.tied and r.congestion not in right]
    first = found.ranking[0]
    return Outcome(
        task.number,
        congestion,
        verdict,
        answer,
        first.distance,
        first.congestion,
        found.bound,
        min(others),
        took,
    )


def main() -> None:
    """Judge, and print lines and a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--paths", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first path")
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--only", help="names, with commas between, or strangers")
    parser.add_argument("--world", choices=("sim", "lab"), default="sim")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--captures", type=File, help="keep captures here")
    parser.add_argument("--record", action="store_true", help="make the captures only")
    args = parser.parse_args()
    built_in = KERNEL if args.world == "lab" else tuple(known_names())
    names = built_in if args.only is None else tuple(args.only.split(","))
    if args.only == "strangers":
        names = STRANGERS
    with tempfile.TemporaryDirectory() as place:
        kept = args.captures or File(place)
        kept.mkdir(parents=True, exist_ok=True)
        tasks = [
            Task(n, args.seed, name, args.world, kept)
            for n in range(args.first, args.first + args.paths)
            for name in names
        ]
        if args.record:
            for task in tasks:
                record(task)
            return
        outcomes = []
        with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
            for outcome in pool.map(judge, tasks):
                outcomes.append(outcome)
                print(outcome, flush=True)
    verdicts = ("right", "tie", "wrong", "unknown")
    print(f"\n{'':12s}" + "".join(f"{v:>9s}" for v in verdicts) + "  taken for, or tied with")
    for name in names:
        own = [o for o in outcomes if o.congestion == name]
        counts = Counter(o.verdict for o in own)
        others = Counter(a for o in own for a in o.answer if a != name)
        told = ", ".join(f"{a} {n}" for a, n in others.most_common(8))
        print(f"{name:12s}" + "".join(f"{counts[v]:9d}" for v in verdicts) + f"  {told}")
    counts = Counter(o.verdict for o in outcomes)
    total = len(outcomes)
    print(f"{'all':12s}" + "".join(f"{counts[v]:9d}" for v in verdicts))
    print(f"right or tied {(counts['right'] + counts['tie']) / total:.1%} of {total}")
    print(f"left out: unknown {sum(o.left_out > o.bound for o in outcomes) / total:.1%}")
    print(
        f"processor time: mean {sum(o.took_s for o in outcomes) / total:.1f} s, "
        f"longest {max(o.took_s for o in outcomes):.1f} s"
    )


if __name__ == "__main__":
    main()
