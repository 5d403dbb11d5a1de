"""Paths drawn at random, and a flow over each, captured at its sender: the truth that fits are judged by.

The distributions were written down before any fit was judged: rates from 1 to 500 Mbit/s, round trips from 4 to 300 ms
and buffers from 0.2 to 8 bandwidth-delay products, each uniform in its logarithm; at least 4 packets of buffer. One
packet of 20 to 1000 is late by 1 to 30% of the round trip; packets are aggregated for 1 to 20 ms.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = ("plain", "loss", "jitter", "trace", "policer", "cbr", "tcp")
OTHER_KINDS = ("reordering", "aggregation")
PACKET_BYTES = 1500
LEAST_PACKETS = 4
IN_KERNEL = ("reno", "cubic", "bbr")
OTHERS = ("reno", "cubic", "bbr", "bbr3", "vegas")


@dataclass(frozen=True)
class Truth:
    """A path that was drawn."""

    number: int
    kind: str
    congestion: str
    other: str
    """Another congestion control, to be predicted."""
    rate_bps: float
    base_rtt_s: float
    buffer_bytes: float
    duration_s: float
    up: dict[str, Any]
    cross: list[dict[str, Any]]
    policer_bps: float | None = None

    @property
    def path_bps(self) -> float:
        """The rate that a flow can have for long."""
        return min(self.rate_bps, self.policer_bps or self.rate_bps)

    def scenario(self, congestion: str, world: str = "sim") -> dict[str, Any]:
        """Return the scenario, captured at the sender; in the lab by the stack of the kernel."""
        lab = {"lab": {"stack": "kernel"}} if world == "lab" else {}
        return {
            **lab,
            "name": f"path-{self.number}",
            "duration": f"{self.duration_s}s",
            "seed": self.number + 1,
            "topology": {
                "simple": {
                    "link": {"up": self.up, "down": {"delay": f"{self.base_rtt_s * 500:.6f}ms"}}
                }
            },
            "record": {"captures": ["link"], "capture_ends": "from"},
            "flows": [
                {
                    "label": congestion,
                    "from": "client",
                    "to": "server",
                    "transport": {"tcp": {"congestion": congestion}},
                    "workload": {"bulk": {}},
                },
                *self.cross,
            ],
        }


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw(
    number: int,
    seed: int,
    most_bps: float = 500e6,
    world: str = "sim",
    kinds: Sequence[str] = KINDS,
) -> Truth:
    """Draw a path of one of the kinds; in the lab with another congestion control that the kernel has."""
    rng = random.Random(f"{seed}/{number}")
    kind = kinds[number % len(kinds)]
    rate = log_uniform(rng, 1e6, most_bps)
    base = log_uniform(rng, 0.004, 0.3)
    buffer = max(LEAST_PACKETS * PACKET_BYTES, rate / 8 * base * log_uniform(rng, 0.2, 8))
    duration = round(rng.uniform(10, 30), 1)
    congestion = rng.choice(("cubic", "bbr"))
    others = OTHERS if world == "sim" else IN_KERNEL
    other = rng.choice([c for c in others if c != congestion])
    up: dict[str, Any] = {
        "rate": f"{round(rate)}bit/s",
        "delay": f"{base * 500:.6f}ms",
        "queue": {"droptail": f"{round(buffer)}B"},
    }
    cross: list[dict[str, Any]] = []
    policed = None
    if kind == "loss":
        up["loss"] = log_uniform(rng, 1e-4, 1e-2)
    elif kind == "jitter":
        up["jitter"] = f"{base * 1000 * log_uniform(rng, 0.01, 0.2):.4f}ms"
    elif kind == "trace":
        # A rate that wanders: steps of 200 ms, each within 30% of the one before, between a fifth and all of the rate.
        rate = min(rate, 50e6)
        now, steps = rate / 2, []
        for n in range(int(duration * 5) + 1):
            steps.append([f"{n * 200}ms", f"{round(now)}bit/s"])
            now = min(rate, max(rate / 5, now * rng.uniform(0.77, 1.3)))
        up["rate"] = {"steps": steps}
        values = [float(s[1][:-5]) for s in steps]
        rate = sum(values) / len(values)
    elif kind == "policer":
        policed = rate * rng.uniform(0.2, 0.8)
        burst = max(10 * PACKET_BYTES, policed / 8 * log_uniform(rng, 0.02, 0.5))
        up["policer"] = {"rate": f"{round(policed)}bit/s", "burst": f"{round(burst)}B"}
    elif kind == "cbr":
        share = rng.uniform(0.2, 0.6)
        size = rng.choice((200, 500, 1000, 1400))
        payload = rate * share * size / (size + 28)
        cross = [
            {
                "label": "other",
                "from": "client",
                "to": "server",
                "transport": {"udp": {}},
                "workload": {"cbr": {"rate": f"{round(payload)}bit/s", "packet_size": f"{size}B"}},
            }
        ]
    elif kind == "tcp":
        count = rng.randint(1, 3)
        cross = [
            {
                "label": f"other{n}",
                "from": "client",
                "to": "server",
                "start": f"{round(rng.uniform(0, duration / 2), 1)}s",
                "transport": {"tcp": {"congestion": rng.choice(("cubic", "reno"))}},
                "workload": {"bulk": {}},
            }
            for n in range(count)
        ]
    elif kind == "reordering":
        up["reorder"] = {
            "probability": float(f"{log_uniform(rng, 1e-3, 0.05):.4g}"),
            "late": f"{base * 1000 * log_uniform(rng, 0.01, 0.3):.4f}ms",
        }
    elif kind == "aggregation":
        up["aggregation"] = f"{log_uniform(rng, 1, 20):.4f}ms"
    return Truth(number, kind, congestion, other, rate, base, buffer, duration, up, cross, policed)
