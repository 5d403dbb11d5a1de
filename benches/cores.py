#!/usr/bin/env python3
"""What two cores give to two runs at the same time, and how often one run on both would have to wait.

    .venv/bin/python benches/cores.py [ROUNDS]

A run that is divided between cores does no less work than it does on one, and shares caches and memory with itself, so
two independent runs at the same time are the bound of what it can gain. A part may run ahead of the others by the
delay of the links between them, so that often all have to wait for each other.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import gargalo

ROUNDS = 5
TCP = {"tcp": {"congestion": "cubic"}}
HOP_DELAY_S = 0.005


def parking_lot(hops: int, rate: str, through: int, across: int) -> dict[str, object]:
    """Return a scenario: flows through all bottlenecks, and flows across each."""
    crossing = [
        {"from": f"cross{i}", "to": f"sink{i}", "count": across, "transport": TCP}
        for i in range(hops)
    ]
    return {
        "name": "two-cores",
        "duration": "4s",
        "topology": {
            "parking-lot": {
                "hops": hops,
                "access": {"rate": "10Gbit/s", "delay": "1ms"},
                "bottleneck": {"rate": rate, "delay": f"{HOP_DELAY_S}s"},
            }
        },
        "flows": [{"from": "left", "to": "right", "count": through, "transport": TCP}, *crossing],
    }


SCENARIOS = {
    "parking lot, three bottlenecks of 1 Gbit/s, 40 flows": parking_lot(3, "1Gbit/s", 10, 10),
    "1,040 flows over four bottlenecks of 2.5 Gbit/s": parking_lot(4, "2.5Gbit/s", 20, 255),
}


def at_once(scenario: dict[str, object], runs: int) -> tuple[float, dict[str, float]]:
    """Run a scenario in several processes at the same time: the longest wall-clock time in s, and one's figures."""
    words = [sys.executable, __file__, "--one", json.dumps(scenario)]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(runs)]
    found: list[dict[str, float]] = [json.loads(p.communicate()[0]) for p in started]
    return max(f["wall_s"] for f in found), found[0]


def one(scenario: dict[str, object]) -> dict[str, float]:
    """Run a scenario here."""
    begun = time.perf_counter()
    run = gargalo.run(scenario)
    wall_s = time.perf_counter() - begun
    return {"wall_s": wall_s, "events": run.info["events"], "virtual_s": run.info["virtual_s"]}


def main() -> None:
    """Print a table."""
    if sys.argv[1:2] == ["--one"]:
        sys.stdout.write(json.dumps(one(json.loads(sys.argv[2]))))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print("| scenario | alone, s | two at once, s | two cores give | events between waits | us |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, scenario in SCENARIOS.items():
        alone, both = [], []
        for _ in range(rounds):
            alone_s, found = at_once(scenario, 1)
            alone.append(alone_s)
            both.append(at_once(scenario, 2)[0])
        gains = [2 * a / b for a, b in zip(alone, both, strict=True)]
        windows = found["virtual_s"] / HOP_DELAY_S
        print(
            f"| {name} | {min(alone):.2f} | {min(both):.2f} | {statistics.median(gains):.2f} "
            f"| {found['events'] / 2 / windows:,.0f} | {1e6 * min(alone) / 2 / windows:,.0f} |"
        )


if __name__ == "__main__":
    main()
