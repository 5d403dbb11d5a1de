#!/usr/bin/env python3
"""What the interface of compiled plug-ins costs: processor time of a run, beside the same algorithm built in.

    .venv/bin/python benches/plugin_speed.py [--rounds N] [--only reno]

Reno, CUBIC and BBR are compiled from the examples in C and run in turns with the built-in ones, in one process, on the
dumbbells of benches/scenarios; their results are the same to the byte, which is checked. Printed are the medians of
the processor times in seconds, and of their ratios within a round with the least and the greatest; then the ratio of
the least times, which other work on the machine disturbs less. The built-in one is run twice in a round: the ratio of
the two is what the machine does by itself.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import gargalo
from gargalo.plugins.compiling import build_plugin

SCENARIOS = Path(__file__).resolve().parent / "scenarios"
SOURCES = Path(gargalo.__file__).parent / "examples" / "plugins"
WORKLOADS = {"small-windows-cubic": "240s", "large-windows": "60s"}
ALGORITHMS = ("reno", "cubic", "bbr")


def timed(workload: str, name: str) -> tuple[float, object]:
    """Run once; return processor time in seconds and what the links carried."""
    began = time.process_time()
    run = gargalo.run(
        SCENARIOS / f"{workload}.toml",
        set={"duration": WORKLOADS[workload], "flows.0.transport.tcp.congestion": name},
    )
    return time.process_time() - began, run.links


def show(workload: str, name: str, rounds: list[tuple[float, float, float]]) -> None:
    """Print a line."""
    ratios = [plugin / own for own, plugin, _ in rounds]
    again = statistics.median(b / a for a, _, b in rounds)
    own, plugin = (statistics.median(r[i] for r in rounds) for i in (0, 1))
    least = min(r[1] for r in rounds) / min(r[0] for r in rounds)
    print(
        f"{workload:>20} {name:>6} {own:9.3f} {plugin:9.3f} {statistics.median(ratios):9.3f}"
        f"   {min(ratios):.3f} to {max(ratios):.3f} {least:9.3f} {again:9.3f}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=ALGORITHMS, action="append")
    args = parser.parse_args()
    names = args.only or ALGORITHMS
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            gargalo.load_plugin(build_plugin(SOURCES / f"{name}.c", Path(place) / f"{name}.so"))
    print(
        f"{'workload':>20} {'':>6} {'built-in':>9} {'plug-in':>9} {'ratio':>9}   {'in rounds':>14} {'of least':>9}"
        f" {'itself':>9}"
    )
    for workload in WORKLOADS:
        for name in names:
            rounds = []
            for _ in range(args.rounds):
                (own, links), (plugin, same), (again, _) = (
                    timed(workload, n) for n in (name, f"{name}-c", name)
                )
                if links != same:
                    msg = f"{name} and {name}-c give different results"
                    raise SystemExit(msg)
                rounds.append((own, plugin, again))
            show(workload, name, rounds)


if __name__ == "__main__":
    main()
