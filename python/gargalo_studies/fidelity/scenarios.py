"""Senders of the kernel's stack and of ours, and the places where they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport, Value
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

    def transport(self, control: str, *, ecn: bool = False) -> Transport:
        """Return the transport of a flow."""
        tcp: Table = {"congestion": control}
        if not self.kernel:
            tcp["profile"] = "linux-6"
        return {"tcp": {**tcp, **({"ecn": True} if ecn else {})}}

    def hosts(self, names: Iterable[str]) -> Table:
        """Return the hosts of a scenario."""
        return {name: {"stack": "kernel"} for name in sorted(names)} if self.kernel else {}


KERNEL = Stack("kernel", "lab", kernel=True)
LAB = Stack("ours, lab", "lab", kernel=False)
SIM = Stack("ours, simulated", "sim", kernel=False)
STACKS = (KERNEL, LAB, SIM)

QUEUES: dict[str, Value] = {
    "droptail of 1 BDP": {"droptail": f"{BDP} packets"},
    "droptail of 4 BDP": {"droptail": f"{4 * BDP} packets"},
    "codel": "codel",
    "fq-codel": "fq-codel",
    "pie": "pie",
}
"""Queues that two flows share."""
DEEP: dict[str, Value] = {
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


def link(
    rate: float | Table,
    *,
    delay_ms: float = DELAY_MS,
    queue: Value | None = None,
    loss: Value = 0.0,
    jitter: str = "",
) -> Table:
    """A link that restricts the direction of the data; acknowledgements are only delayed."""
    up: Table = {
        "rate": rate if isinstance(rate, dict) else f"{rate:g}Mbit/s",
        "queue": queue or {"droptail": f"{UNLIMITED} packets"},
    }
    if loss:
        up["loss"] = loss
    down: Table = {"rate": "1Gbit/s", "queue": {"droptail": "1000 packets"}}
    if jitter:
        down["jitter"] = jitter
    return {"delay": f"{delay_ms:g}ms", "up": up, "down": down}


def flow(transport: Transport, workload: Table) -> FlowTable:
    """A flow from the client to the server."""
    return {"from": "client", "to": "server", "transport": transport, "workload": workload}


def round_trips(rtts_ms: Sequence[float], queue_packets: int) -> dict[str, Table]:
    """A dumbbell of the standard rate with a pair of hosts for each round trip."""
    common = min(rtts_ms) / 4
    access: list[Table] = [
        {
            "rate": "1Gbit/s",
            "delay": f"{(rtt / 2 - common) / 2:g}ms",
            "jitter": processing(MBPS),
            "queue": {"droptail": "10000 packets"},
        }
        for rtt in rtts_ms
    ]
    queue = {"droptail": f"{queue_packets} packets"}
    bottleneck: Table = {"rate": f"{MBPS:g}Mbit/s", "delay": f"{common:g}ms", "queue": queue}
    return {"dumbbell": {"pairs": len(rtts_ms), "access": access, "bottleneck": bottleneck}}


def scenario(
    stack: Stack,
    topology: Mapping[str, Table],
    flows: list[FlowTable],
    limit_s: float,
    more: ScenarioTable | None = None,
) -> ScenarioTable:
    """Put a scenario together, with hosts named as its flows name them."""
    made: ScenarioTable = {
        "name": "fidelity",
        "duration": f"{limit_s:g}s",
        "record": RECORD,
        "topology": topology,
        "flows": flows,
        **(more or {}),
    }
    names = {name for f in flows for name in (f["from"], f["to"])}
    hosts = stack.hosts(names)
    return {**made, "hosts": hosts} if hosts else made
