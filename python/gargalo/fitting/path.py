"""A path from a sender to a receiver and back, as a table of numbers and as a scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKET_BYTES = 1500
"""Size of the packets of cross traffic, IP header included."""
UDP_HEADERS_BYTES = 28

Steps = tuple[tuple[float, float], ...]
"""Pairs of an instant (s) and the rate from then on (bit/s); the first instant is 0."""


@dataclass(frozen=True)
class Policer:
    """A token bucket in front of the queue."""

    rate_bps: float
    burst_bytes: float


@dataclass(frozen=True)
class Bursts:
    """Losses that come together: a channel with a good state, in which none is lost, and a bad one (Gilbert 1960)."""

    begin: float
    """Probability that the state becomes bad with a packet."""
    end: float
    """Probability that it becomes good again."""
    arrive: float
    """Probability that a packet arrives while it is bad."""


@dataclass(frozen=True)
class Reordering:
    """Packets that arrive in another order."""

    probability: float
    """Of a packet to be displaced."""
    by_s: float
    """How much later it arrives, or sooner."""
    late: bool
    """Whether it is later."""


@dataclass(frozen=True)
class Path:
    """What lies between a sender and its receiver; sizes and rates are those of IP packets."""

    rate: Steps
    """Rate of the bottleneck over time."""
    base_rtt_s: float
    """Round trip of a packet of no size on the empty path: propagation."""
    buffer_bytes: float
    """Packets that wait at the bottleneck, beside the one that is sent."""
    loss: float = 0.0
    """Probability that a packet is lost before the queue."""
    bursts: Bursts | None = None
    """How these losses come together; None: each by itself."""
    jitter_s: float = 0.0
    """Half the width of the uniform distribution of what a packet's delay varies by."""
    aggregation_s: float = 0.0
    """Packets that left the bottleneck arrive together, at multiples of this time."""
    reordering: Reordering | None = None
    policer: Policer | None = None
    cross: Steps = ()
    """Rate of other traffic through the bottleneck over time; empty: none."""
    elastic: tuple[tuple[float, str], ...] = ()
    """Other traffic as TCP flows that take what they get: when each starts (s), and its congestion control. They stand
    for `cross`."""

    @property
    def rate_bps(self) -> float:
        """The highest rate."""
        return max(rate for _, rate in self.rate)

    def mean_rate_bps(self, until_s: float) -> float:
        """Return the rate's mean over a time."""
        return mean(self.rate, until_s)

    def mean_cross_bps(self, until_s: float) -> float:
        """Return the mean of the other traffic's rate over a time."""
        return mean(self.cross, until_s) if self.cross else 0.0

    def direction(self) -> dict[str, Any]:
        """Return the direction of the data as a table of a scenario."""
        table: dict[str, Any] = {
            "rate": written(self.rate),
            "delay": seconds(self.base_rtt_s / 2),
            "queue": {"droptail": f"{max(PACKET_BYTES, round(self.buffer_bytes))}B"},
        }
        if self.loss > 0 and self.bursts:
            named = {"p": self.bursts.begin, "r": self.bursts.end, "h": self.bursts.arrive}
            table["loss"] = {"gilbert-elliott": {k: float(f"{v:.4g}") for k, v in named.items()}}
        elif self.loss > 0:
            table["loss"] = float(f"{self.loss:.4g}")
        if self.jitter_s > 0:
            # What varies one way is drawn on one way.
            table["jitter"] = seconds(min(self.jitter_s, self.base_rtt_s / 2))
        if self.aggregation_s > 0:
            table["aggregation"] = seconds(self.aggregation_s)
        if self.reordering:
            table["reorder"] = {
                "probability": float(f"{self.reordering.probability:.4g}"),
                "late" if self.reordering.late else "early": seconds(self.reordering.by_s),
            }
        if self.policer:
            table["policer"] = {
                "rate": rate(self.policer.rate_bps),
                "burst": f"{max(PACKET_BYTES, round(self.policer.burst_bytes))}B",
            }
        return table

    def scenario(
        self, congestion: str, duration_s: float, name: str, transport: str = "tcp"
    ) -> dict[str, Any]:
        """Return a scenario in which a flow with this congestion control fills the path."""
        flows: list[dict[str, Any]] = [
            {
                "label": congestion,
                "from": "client",
                "to": "server",
                "transport": {transport: {"congestion": congestion}},
                "workload": {"bulk": {}},
            }
        ]
        flows.extend(
            {
                "label": f"other{n}",
                "from": "client",
                "to": "server",
                "start": seconds(start),
                "transport": {"tcp": {"congestion": other}},
                "workload": {"bulk": {}},
            }
            for n, (start, other) in enumerate(self.elastic, 1)
        )
        if self.cross and not self.elastic:
            payload = PACKET_BYTES - UDP_HEADERS_BYTES
            share = payload / PACKET_BYTES
            flows.append(
                {
                    "label": "cross",
                    "from": "client",
                    "to": "server",
                    "transport": {"udp": {}},
                    "workload": {
                        "cbr": {
                            "rate": written(tuple((t, r * share) for t, r in self.cross)),
                            "packet_size": f"{payload}B",
                        }
                    },
                }
            )
        back = {"delay": seconds(self.base_rtt_s / 2)}
        return {
            "name": name,
            "description": "A path fitted to a recording, and a flow that fills it",
            "duration": seconds(duration_s),
            "topology": {"simple": {"link": {"up": self.direction(), "down": back}}},
            "flows": flows,
        }

    def with_rate(self, factor: float) -> Path:
        """Return the same path with all rates of the bottleneck times a factor."""
        return replace(self, rate=tuple((t, r * factor) for t, r in self.rate))


def mean(steps: Steps, until_s: float) -> float:
    """Return the mean of a rate over time, until an instant."""
    ends = [t for t, _ in steps[1:]] + [until_s]
    total = sum(r * max(0.0, min(e, until_s) - t) for (t, r), e in zip(steps, ends, strict=True))
    return total / until_s


def seconds(value: float) -> str:
    """Write a time as scenarios have it, to the microsecond."""
    return f"{value * 1000:.6g}ms"


def rate(value: float) -> str:
    """Write a rate as scenarios have it."""
    return f"{max(1, round(value))}bit/s"


def written(steps: Steps) -> Any:
    """Write a rate that may change."""
    if len(steps) == 1:
        return rate(steps[0][1])
    return {"steps": [[seconds(t), rate(r)] for t, r in steps]}


def merged(times: Sequence[float], rates: Sequence[float]) -> Steps:
    """Return steps without those that change nothing."""
    found: list[tuple[float, float]] = []
    for t, r in zip(times, rates, strict=True):
        if not found or found[-1][1] != r:
            found.append((float(t), float(r)))
    return tuple(found)
