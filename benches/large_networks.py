#!/usr/bin/env python3
"""What a network of many hosts costs: to build it and write its results, and to run it.

    .venv/bin/python benches/large_networks.py [PAIRS ...]

A dumbbell with 10 Mbit/s for each pair of hosts and a Reno flow between each. Each size runs in a process of its own,
once for a millisecond, of which next to nothing is simulated, and once for a second.
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

import gargalo

PAIRS = (100, 1000, 5000)


def network(pairs: int, duration: str) -> dict[str, object]:
    """Return the scenario."""
    return {
        "name": "large-network",
        "duration": duration,
        "topology": {
            "dumbbell": {
                "pairs": pairs,
                "access": {"rate": "100Mbit/s", "delay": "1ms"},
                "bottleneck": {"rate": f"{10 * pairs}Mbit/s", "delay": "10ms"},
            }
        },
        "flows": [
            {
                "from": "left*",
                "to": "right*",
                "count": pairs,
                "transport": {"tcp": {"congestion": "reno"}},
            }
        ],
    }


def memory_bytes() -> int:
    """Return the most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(pairs: int, duration: str) -> dict[str, float]:
    """Run a network and write its results: processor time in s, packets, memory in bytes, size of `run.json`."""
    with tempfile.TemporaryDirectory() as place:
        before, begun = memory_bytes(), time.process_time()
        run = gargalo.run(network(pairs, duration), output=Path(place) / "run")
        spent = time.process_time() - begun
        return {
            "cpu_s": spent,
            "packets": run.info["packets"],
            "memory_bytes": memory_bytes() - before,
            "file_bytes": (Path(place) / "run" / "run.json").stat().st_size,
        }


def apart(pairs: int, duration: str) -> dict[str, float]:
    """Measure in a process of its own."""
    words = [sys.executable, __file__, "--one", duration, str(pairs)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pairs", nargs="*", type=int, default=PAIRS)
    parser.add_argument("--one", metavar="DURATION", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        sys.stdout.write(json.dumps(measured(options.pairs[0], options.one)))
        return
    print("| pairs | build and write, s | kB a pair | `run.json`, kB a pair | ns a packet |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for pairs in options.pairs:
        still, running = apart(pairs, "1ms"), apart(pairs, "1s")
        price = (running["cpu_s"] - still["cpu_s"]) / (running["packets"] - still["packets"])
        print(
            f"| {pairs:,} | {still['cpu_s']:.2f} | {still['memory_bytes'] / pairs / 1000:.0f} "
            f"| {still['file_bytes'] / pairs / 1000:.1f} | {1e9 * price:,.0f} |"
        )


if __name__ == "__main__":
    main()
