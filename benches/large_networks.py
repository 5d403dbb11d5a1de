#!/usr/bin/env python3
"""What a network of many hosts costs: to build it and write its results, and to run it.

    .venv/bin/python benches/large_networks.py [PAIRS ...]
    .venv/bin/python benches/large_networks.py --web [PERCENT ...]
    .venv/bin/python benches/large_networks.py --arrivals

A dumbbell with 10 Mbit/s for each pair of hosts and a Reno flow between each. Each size runs in a process of its own,
once for a millisecond, of which next to nothing is simulated, and once for a second.

With `--web`: web traffic in both directions of 1 Gbit/s with a round trip of 200 ms, a connection for each object, at
shares of the capacity.

With `--arrivals`: 10,000 transfers of 100 kB a second over 10 Gbit/s, which come and go for 1 and for 10 s.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import gargalo

if TYPE_CHECKING:
    from collections.abc import Sequence

PAIRS = (100, 1000, 5000)
PERCENT = (1, 5, 20, 60)
# Seconds at 1% of load; at a larger one fewer, for as many connections.
WEB_S = 600
ROUNDS = 3


def dumbbell(
    pairs: int, access: tuple[str, str], bottleneck: tuple[str, str]
) -> dict[str, dict[str, object]]:
    """Return the topology; of links their rate and delay."""
    links = {"access": access, "bottleneck": bottleneck}
    return {
        "dumbbell": {
            "pairs": pairs,
            **{name: {"rate": rate, "delay": delay} for name, (rate, delay) in links.items()},
        }
    }


def network(pairs: int, duration: str) -> dict[str, object]:
    """Return the scenario."""
    return {
        "name": "large-network",
        "duration": duration,
        "topology": dumbbell(pairs, ("100Mbit/s", "1ms"), (f"{10 * pairs}Mbit/s", "10ms")),
        "flows": [
            {
                "from": "left*",
                "to": "right*",
                "count": pairs,
                "transport": {"tcp": {"congestion": "reno"}},
            }
        ],
    }


def web(percent: int, duration: str) -> dict[str, object]:
    """Return the scenario."""
    return {
        "name": "short-transfers",
        "duration": duration,
        "topology": dumbbell(1, ("10Gbit/s", "10ms"), ("1Gbit/s", "80ms")),
        "flows": [
            {
                "from": "left0",
                "to": "right0",
                "transport": {"tcp": {"congestion": "reno"}},
                "workload": {"mix": {"load": f"{percent}%", "shares": {"web": 1.0}}},
            }
        ],
    }


def arrivals(duration: str) -> dict[str, object]:
    """Return the scenario."""
    return {
        "name": "come-and-go",
        "duration": duration,
        "topology": dumbbell(4, ("10Gbit/s", "1ms"), ("10Gbit/s", "8ms")),
        "flows": [
            {
                "from": "left*",
                "to": "right*",
                "arrivals": {"rate": "2500/s"},
                "transport": {"tcp": {"congestion": "cubic"}},
                "workload": {"bulk": {"bytes": "100kB"}},
            }
        ],
        "record": {"events": False},
    }


def memory_bytes() -> int:
    """Return the most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(scenario: dict[str, object]) -> dict[str, float]:
    """Run a network and write its results: processor time in s, packets, memory in bytes, size of `run.json`."""
    with tempfile.TemporaryDirectory() as place:
        before, begun = memory_bytes(), time.process_time()
        run = gargalo.run(scenario, output=Path(place) / "run")
        spent = time.process_time() - begun
        return {
            "cpu_s": spent,
            "packets": run.info["packets"],
            "flows": run.info["flows"],
            "peak_flows": run.info["peak_flows"],
            "memory_bytes": memory_bytes() - before,
            "file_bytes": (Path(place) / "run" / "run.json").stat().st_size,
        }


def apart(scenario: dict[str, object]) -> dict[str, float]:
    """Measure in a process of its own."""
    words = [sys.executable, __file__, "--one", json.dumps(scenario)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def print_networks(sizes: Sequence[int]) -> None:
    """Print a table with a row for each number of pairs."""
    print("| pairs | build and write, s | kB a pair | `run.json`, kB a pair | ns a packet |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for pairs in sizes:
        still, running = apart(network(pairs, "1ms")), apart(network(pairs, "1s"))
        price = (running["cpu_s"] - still["cpu_s"]) / (running["packets"] - still["packets"])
        print(
            f"| {pairs:,} | {still['cpu_s']:.2f} | {still['memory_bytes'] / pairs / 1000:.0f} "
            f"| {still['file_bytes'] / pairs / 1000:.1f} | {1e9 * price:,.0f} |"
        )


def print_web(loads: Sequence[int]) -> None:
    """Print a table with a row for each load in percent: the least of some rounds."""
    print("| load | connections at once | us a connection | ns a packet |")
    print("| ---: | ---: | ---: | ---: |")
    for percent in loads:
        scenario = web(percent, f"{WEB_S / percent:g}s")
        rounds = [apart(scenario) for _ in range(ROUNDS)]
        run, least_s = rounds[0], min(found["cpu_s"] for found in rounds)
        print(
            f"| {percent}% | {run['peak_flows']:,} | {1e6 * least_s / run['flows']:.1f} "
            f"| {1e9 * least_s / run['packets']:,.0f} |"
        )


def print_arrivals() -> None:
    """Print a table with one row: what a packet costs, and a flow that has ended."""
    few, many = apart(arrivals("1s")), apart(arrivals("10s"))
    more = {key: many[key] - few[key] for key in many}
    print("| flows | at once | ns a packet | kB a flow that has ended |")
    print("| ---: | ---: | ---: | ---: |")
    print(
        f"| {many['flows']:,} | {many['peak_flows']:,} | {1e9 * more['cpu_s'] / more['packets']:,.0f} "
        f"| {more['memory_bytes'] / more['flows'] / 1000:.2f} |"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=int, metavar="PAIRS or PERCENT")
    parser.add_argument("--web", action="store_true", help="short transfers")
    parser.add_argument("--arrivals", action="store_true", help="transfers that come and go")
    parser.add_argument("--one", metavar="SCENARIO", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        sys.stdout.write(json.dumps(measured(json.loads(options.one))))
    elif options.arrivals:
        print_arrivals()
    elif options.web:
        print_web(options.sizes or PERCENT)
    else:
        print_networks(options.sizes or PAIRS)


if __name__ == "__main__":
    main()
