"""Senders of the kernel's stack and of ours, and the places where they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gargalo.sweeps import World

CONTROLS = ("reno", "cubic", "bbr")
"""Congestion controls by the kernel's names."""
MBPS = 12.0
DELAY_MS = 50.0
"""One way, in each direction."""
BDP = 100
"""Packets of the bandwidth-delay product of 12 Mbit/s and 50 ms each way."""
UNLIMITED = 1_000_000
RECORD = {"flows": False, "links": False, "events": False}


@dataclass(frozen=True)
class Stack:
    """A TCP and the world in which it runs."""

    name: str
    """As in the label `stack`."""
    world: World
    kernel: bool

    def transport(self, control: str, *, ecn: bool = False) -> dict[str, Any]:
        """Return the transport of a flow."""
        tcp = {"congestion": control}
        if not self.kernel:
            tcp["profile"] = "linux-6"
        return {"tcp": {**tcp, **({"ecn": True} if ecn else {})}}

    def hosts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the hosts of a scenario."""
        return {name: {"stack": "kernel"} for name in sorted(names)} if self.kernel else {}


KERNEL = Stack("kernel", "lab", kernel=True)
LAB = Stack("ours, lab", "lab", kernel=False)
SIM = Stack("ours, simulated", "sim", kernel=False)
STACKS = (KERNEL, LAB, SIM)

QUEUES: dict[str, Any] = {
    "droptail of 1 BDP": {"droptail": f"{BDP} packets"},
    "droptail of 4 BDP": {"droptail": f"{4 * BDP} packets"},
    "codel": "codel",
    "fq-codel": "fq-codel",
    "pie": "pie",
}
"""Queues that two flows share."""
DEEP: dict[str, Any] = {
    "48 Mbit/s, droptail of 1 BDP": {"droptail": f"{4 * BDP} packets"},
    "48 Mbit/s, droptail of 4 BDP": {"droptail": f"{16 * BDP} packets"},
}
"""The same at four times the rate."""


def processing(mbps: float) -> str:
    """Jitter as wide as the time of a packet at a bottleneck.

    Flows that share one meet in traffic phases without it: which of them finds the queue full is decided by their exact
    times (Floyd and Jacobson, On Traffic Phase Effects in Packet-Switched Gateways, 1992, which adds a random
    processing time of this length).
    """
    return f"{1500 * 8 / mbps / 2:g}us"


def link(rate: Any, *, delay_ms: float = DELAY_MS, queue: Any = None, loss: float = 0.0, jitter: str = "") -> dict[str, Any]:  # fmt: skip
    """A link that restricts the direction of the data; acknowledgements are only delayed."""
    up: dict[str, Any] = {
        "rate": rate if isinstance(rate, dict) else f"{rate:g}Mbit/s",
        "queue": queue or {"droptail": f"{UNLIMITED} packets"},
    }
    if loss > 0:
        up["loss"] = loss
    down = {"rate": "1Gbit/s", "queue": {"droptail": "1000 packets"}}
    if jitter:
        down["jitter"] = jitter
    return {"delay": f"{delay_ms:g}ms", "up": up, "down": down}


def flow(transport: Mapping[str, Any], workload: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A flow from the client to the server."""
    ends = {"from": "client", "to": "server"}
    return {**ends, "transport": dict(transport), "workload": dict(workload), **more}


def round_trips(rtts_ms: Sequence[float], queue_packets: int) -> dict[str, Any]:
    """A dumbbell of the standard rate with a pair of hosts for each round trip."""
    common = min(rtts_ms) / 4
    access = [
        {
            "rate": "1Gbit/s",
            "delay": f"{(rtt / 2 - common) / 2:g}ms",
            "jitter": processing(MBPS),
            "queue": {"droptail": "10000 packets"},
        }
        for rtt in rtts_ms
    ]
    queue = {"droptail": f"{queue_packets} packets"}
    bottleneck = {"rate": f"{MBPS:g}Mbit/s", "delay": f"{common:g}ms", "queue": queue}
    return {"dumbbell": {"pairs": len(rtts_ms), "access": access, "bottleneck": bottleneck}}


def scenario(
    stack: Stack,
    shared: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    limit_s: float,
    **more: Any,
) -> dict[str, Any]:
    """Put a scenario together; `topology` instead of the link, with hosts named as its flows name them."""
    made: dict[str, Any] = {
        "name": "fidelity",
        "duration": f"{limit_s:g}s",
        "record": RECORD,
        "topology": {"simple": {"link": dict(shared)}},
        "flows": list(flows),
        **more,
    }
    names = {str(f[end]) for f in flows for end in ("from", "to")}
    hosts = stack.hosts(names)
    return {**made, "hosts": hosts} if hosts else made
