"""Senders of both stacks in both worlds, and one link with the work's delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport, Value
    from gargalo.sweeps import Labels, World

DELAY_MS = 50
"""One way, in each direction."""
LIMIT_S = 1200
"""A transfer that takes longer counts with what it had delivered by then."""
UNLIMITED = 0
"""Packets of a queue without a limit, as mahimahi's is by default; in the runs a million."""
RECORD = {"flows": False, "links": False, "events": False}
KERNEL = "kernel"
LINUX = "linux-6"
"""Our TCP with the profile of that name: what stands for the kernel's in the simulator."""
OURS = "ours"


NEWRENO: Table = {"sack": False, "recovery": "newreno"}
"""Of a TCP that detects and repairs losses without selective acknowledgements."""


@dataclass(frozen=True)
class Sender:
    """An implementation of a congestion control, and where it runs."""

    congestion: str
    stack: str
    """`kernel`, `linux-6` or `ours`."""
    world: World
    paced: bool
    """For ours: at the controller's rate or, where it gives none, over the window."""
    sack: bool = True
    """Losses are found and repaired with selective acknowledgements."""

    @property
    def name(self) -> str:
        """Its name in figures, in both worlds."""
        words = [self.congestion if self.stack == OURS else f"{self.stack} {self.congestion}"]
        if self.stack == OURS:
            words.append("paced" if self.paced else "unpaced")
        return ", ".join([*words, *([] if self.sack else ["no SACK"])])

    @property
    def labels(self) -> Labels:
        """What distinguishes its runs from others."""
        return {
            "world": self.world,
            "stack": self.stack,
            "congestion": self.congestion,
            "paced": self.paced,
            "sack": self.sack,
            "sender": self.name,
        }

    @property
    def transport(self) -> Transport:
        """Its transport in a scenario."""
        if self.stack == KERNEL:
            return {"tcp": {"congestion": self.congestion}}
        if self.stack == LINUX:
            made: Table = {"profile": LINUX, "congestion": self.congestion}
            return {"tcp": made if self.sack else {**made, **NEWRENO}}
        pacing = "window" if self.paced else "off"
        made = {"congestion": self.congestion, "pacing": pacing}
        return {"tcp": made if self.sack else {**made, **NEWRENO}}

    def hosts(self, sending: str = "client", receiving: str = "server") -> Table:
        """Return the hosts that have the kernel's stack: in the lab the receiver's always is."""
        if self.world == "sim":
            return {}
        hosts: Table = {receiving: {"stack": "kernel"}}
        if self.stack == KERNEL:
            sack = {} if self.sack else {"sysctl": {"net.ipv4.tcp_sack": "0"}}
            hosts[sending] = {"stack": "kernel", **sack}
        return hosts


def kernel(congestion: str) -> Sender:
    """A sender of the kernel's; its BBR paces, the others do not."""
    return Sender(congestion, KERNEL, "lab", paced=congestion == "bbr")


def ours(congestion: str, world: World, *, paced: bool) -> Sender:
    """A sender of our user-space TCP."""
    return Sender(congestion, OURS, world, paced)


def twin(of: Sender) -> Sender:
    """Return the sender in the simulator that corresponds to a sender of the kernel's stack in the lab."""
    return Sender(of.congestion, LINUX, "sim", of.paced, of.sack)


CONTROLS = ("reno", "cubic", "bbr")
"""Those of both stacks."""
KERNELS = tuple(kernel(c) for c in CONTROLS)
LINUXES = tuple(twin(k) for k in KERNELS)
LAB = tuple(ours(c, "lab", paced=p) for c in CONTROLS for p in (True, False))
SIM = tuple(ours(c, "sim", paced=p) for c in (*CONTROLS, "bbr3") for p in (True, False))
WITHOUT_SACK = (
    Sender("bbr", KERNEL, "lab", paced=True, sack=False),
    Sender("bbr", OURS, "lab", paced=False, sack=False),
    Sender("bbr", OURS, "sim", paced=False, sack=False),
    Sender("bbr", LINUX, "sim", paced=True, sack=False),
)
"""BBR on a TCP that detects losses as the work's does."""
SENDERS = (*KERNELS, *LAB, *LINUXES, *SIM, *WITHOUT_SACK)
NAMES = tuple(dict.fromkeys(s.name for s in SENDERS))


def queue(packets: int) -> dict[str, str]:
    """A queue of so many packets."""
    return {"droptail": f"{packets or 1_000_000} packets"}


def link(rate: Value, packets: int, loss: float = 0.0, discipline: Value | None = None) -> Table:
    """The work's link: it restricts the direction of the data; acknowledgements are only delayed.

    `discipline` is its queue instead of one of so many packets.
    """
    up: Table = {"rate": rate, "queue": discipline or queue(packets)}
    if loss > 0:
        up["loss"] = loss
    down: Table = {"rate": "1Gbit/s", "queue": queue(1000)}
    return {"delay": f"{DELAY_MS}ms", "up": up, "down": down}


def rate_of(value: float) -> str:
    """Write a rate."""
    return f"{value:g}Mbit/s"


def bulk(sender: Sender, mb: float) -> FlowTable:
    """A transfer of so many megabytes."""
    return {
        "label": sender.name,
        "from": "client",
        "to": "server",
        "transport": sender.transport,
        "workload": {"bulk": {"bytes": f"{round(1e6 * mb)}B"}},
    }


def scenario(
    topology: Mapping[str, Table],
    flows: list[FlowTable],
    hosts: Table,
    *,
    limit_s: float = LIMIT_S,
) -> ScenarioTable:
    """Put a scenario together."""
    made: ScenarioTable = {
        "name": "userspace-bbr",
        "duration": f"{limit_s:g}s",
        "record": RECORD,
        "topology": topology,
        "flows": flows,
    }
    return {**made, "hosts": hosts} if hosts else made


def transfer(
    sender: Sender,
    rate: Value,
    packets: int,
    loss: float,
    mb: float,
    limit_s: float = LIMIT_S,
) -> ScenarioTable:
    """One transfer over one link."""
    topology: dict[str, Table] = {"simple": {"link": link(rate, packets, loss)}}
    return scenario(topology, [bulk(sender, mb)], sender.hosts(), limit_s=limit_s)
