#!/usr/bin/env python3
"""What each congestion control costs: data packets through the bottleneck per wall-clock second.

    .venv/bin/python benches/congestion_speed.py [--rounds N] [--only NAME]

All run on the same dumbbells (benches/scenarios), round by round so that whatever else the machine does
meets all of them; printed are medians and the ratio to reno in the same round. The last line is Reno
written as a Python class.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import gargalo
from gargalo import _core

SCENARIOS = Path(__file__).resolve().parent / "scenarios"
WORKLOADS = {"small-windows-cubic": "20s", "large-windows": "6s"}
PYTHON = "reno in Python"


class PythonReno(gargalo.WindowBased):
    """Reno (RFC 5681, RFC 3465)."""

    def increase(self, acked: int, ack: Any, path: Any) -> None:
        """One segment a round trip."""
        self.grow(float(self.mss) * float(acked) / float(self.window))

    def decrease(self, event: Any, path: Any) -> float:
        """Half."""
        return 0.5 * self.flight_size(event)


def speed(workload: str, name: str) -> float:
    """Run once; return packets per second."""
    congestion = "python-reno" if name == PYTHON else name
    run = gargalo.run(
        SCENARIOS / f"{workload}.toml",
        set={
            "duration": WORKLOADS[workload],
            "flows.0.transport.tcp.congestion": congestion,
        },
        controllers={"python-reno": PythonReno},
    )
    up = next(k for k in run.links if (k["name"], k["direction"]) == ("bottleneck", "up"))
    return float(up["sent_packets"]) / float(run.info["wall_s"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    args = parser.parse_args()
    names = [str(e["name"]) for e in _core.congestion()] + [PYTHON]
    names = [n for n in names if n == "reno" or args.only is None or n in args.only]
    for workload in WORKLOADS:
        found: dict[str, list[float]] = {n: [] for n in names}
        for _ in range(args.rounds):
            for name in names:
                found[name].append(speed(workload, name))
        print(f"\n{workload}\n{'':>16}  packets/s  of reno")
        for name in sorted(names, key=lambda n: -statistics.median(found[n])):
            ratio = statistics.median(
                a / b for a, b in zip(found[name], found["reno"], strict=True)
            )
            print(f"{name:>16} {statistics.median(found[name]):10,.0f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
