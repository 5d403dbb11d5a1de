#!/usr/bin/env python3
"""What each congestion control costs.

Data packets per second of processor time, through the bottleneck and offered to it.

    .venv/bin/python benches/congestion_speed.py [--rounds N] [--only NAME]

All run on the same dumbbells (benches/scenarios), round by round in one process, so that whatever else the
machine does meets all of them; printed are medians and the ratios to reno in the same round. A control that
floods its path has many packets dropped there, which are work too: so packets are counted as they leave the
bottleneck, and as they are offered to it. The last lines are classes in Python: Reno as a window that grows with
each acknowledgement (`increase`), which says its growth once a round trip (`segments_per_round`), or which is told
of acknowledgements once a round trip (`ack_interval`); and an additive increase that derives from
`gargalo.Controller`, told each acknowledgement or once a round trip. `--python` runs these and reno alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import gargalo
from gargalo import _core

SCENARIOS = Path(__file__).resolve().parent / "scenarios"
WORKLOADS = {"small-windows-cubic": "20s", "large-windows": "6s"}


class Reno(gargalo.WindowBased):
    """Reno (RFC 5681, RFC 3465)."""

    def increase(self, acked: int, ack: Any, path: Any) -> None:
        """One segment a round trip."""
        self.grow(float(self.mss) * float(acked) / float(self.window))

    def decrease(self, event: Any, path: Any) -> float:
        """Half."""
        return 0.5 * self.flight_size(event)


class RenoByRound(gargalo.WindowBased):
    """The same."""

    def segments_per_round(self, path: Any) -> float:
        """One."""
        return 1.0

    def decrease(self, event: Any, path: Any) -> float:
        """Half."""
        return 0.5 * self.flight_size(event)


class CoarseReno(Reno):
    """Reno that grows once a round trip."""

    ack_interval = "round"


class Aimd(gargalo.Controller):
    """Additive increase, multiplicative decrease; slow start up to the first loss."""

    def __init__(self, init: Any) -> None:
        """From the transport's initial window."""
        self.window = float(init.initial_window)
        self.threshold = float("inf")

    def on_ack(self, ack: Any, path: Any) -> None:
        """One segment a round trip, or as much as was acknowledged."""
        if ack.in_recovery or not ack.cwnd_limited:
            return
        if self.window < self.threshold:
            self.window += ack.acknowledged
        else:
            self.window += path.mss * ack.acknowledged / self.window

    def on_congestion(self, event: Any, path: Any) -> None:
        """Half."""
        self.threshold = max(self.window / 2, 2 * path.mss)
        self.window = path.mss if event.cause == "timeout" else self.threshold

    def cwnd(self) -> float:
        """The window."""
        return self.window


class CoarseAimd(Aimd):
    """The same once a round trip."""

    ack_interval = "round"


CLASSES = {
    "py-increase": Reno,
    "py-segments": RenoByRound,
    "py-increase-round": CoarseReno,
    "py-aimd": Aimd,
    "py-aimd-round": CoarseAimd,
}


def speed(workload: str, name: str) -> tuple[float, float]:
    """Run once; return packets per second of this thread's processor time, through the bottleneck and offered to it."""
    began = time.thread_time()
    run = gargalo.run(
        SCENARIOS / f"{workload}.toml",
        set={"duration": WORKLOADS[workload], "flows.0.transport.tcp.congestion": name},
        controllers=CLASSES,
    )
    took = time.thread_time() - began
    up = next(k for k in run.links if (k["name"], k["direction"]) == ("bottleneck", "up"))
    return float(up["sent_packets"]) / took, float(up["offered_packets"]) / took


def show(workload: str, found: dict[str, list[tuple[float, float]]]) -> None:
    """Print the medians of each control and of its ratios to reno, the fastest first."""

    def middle(name: str, which: int) -> float:
        return statistics.median(s[which] for s in found[name])

    def of_reno(name: str, which: int) -> float:
        both = zip(found[name], found["reno"], strict=True)
        return statistics.median(a[which] / b[which] for a, b in both)

    print(f"\n{workload}\n{'':>18}  packets/s  of reno   offered/s  of reno")
    for name in sorted(found, key=lambda n: -middle(n, 0)):
        sent, offered = f"{middle(name, 0):10,.0f}", f"{middle(name, 1):11,.0f}"
        print(f"{name:>18} {sent} {of_reno(name, 0):8.2f} {offered} {of_reno(name, 1):8.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    parser.add_argument("--python", action="store_true", help="only reno and the classes in Python")
    args = parser.parse_args()
    names = [*(str(e["name"]) for e in _core.congestion()), *CLASSES]
    only = [*CLASSES] if args.python else args.only
    names = [n for n in names if n == "reno" or only is None or n in only]
    for workload in WORKLOADS:
        found: dict[str, list[tuple[float, float]]] = {n: [] for n in names}
        for _ in range(args.rounds):
            for name in names:
                found[name].append(speed(workload, name))
        show(workload, found)


if __name__ == "__main__":
    main()
