"""The paths of the work and the senders: MPTCP as in Linux of 2017, TCP, QUIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport, Value

RATES = (10.0, 25.0, 50.0, 75.0, 100.0)
"""Mbit/s, path by path."""
DELAYS_MS = (5.0, 10.0, 20.0, 40.0, 80.0)
LOSSES = (0.0, 0.01, 0.02, 0.06, 0.12)
SAME_RATE, SAME_DELAY_MS = 10.0, 5.0
"""Of homogeneous paths; their loss is 0."""
LAN_MS = 0.1
"""One way, of the Gigabit links without any added delay."""
JITTER_MS = 0.05
"""What a real network adds at random: without it, runs without loss would all be equal."""
QUEUE = 1000
"""Packets: the default limit of netem, which shapes, delays and loses on the sender's interfaces."""
WINDOW = 4 << 20
"""Bytes that a connection of today may have in flight: the send buffer, tcp_wmem. The receive window is 16 MiB."""
LIMIT_S = 1200
"""A transfer that takes longer counts with what it had delivered by then."""
RECORD = {"flows": False, "links": False, "events": False}

LL, LWS, LTS, HSR = "lowest-latency", "largest-window-space", "lowest-time-space", "highest-sending-rate"  # fmt: skip
SCHEDULERS = (LL, LWS, LTS, HSR)
"""Those of the work; the first is the default of its kernel."""
SHORT = {LL: "LL", LWS: "LWS", LTS: "LTS", HSR: "HSR"}
OTHERS = ("window-aware", "adaptive", "blest", "ecf", "redundant", "round-robin")
"""Schedulers that the work did not measure; the first is our default."""
LIA, OLIA, BALIA, WVEGAS = "lia", "olia", "balia", "wvegas"
COUPLED = (LIA, OLIA, BALIA, WVEGAS)
UNCOUPLED = ("reno", "cubic", "bbr")
TITLES = {
    LIA: "LIA",
    OLIA: "OLIA",
    BALIA: "BALIA",
    WVEGAS: "wVegas",
    "reno": "Reno",
    "cubic": "CUBIC",
    "bbr": "BBR",
}
FULL, SINGLE = "full-mesh", "single-mesh"


@dataclass(frozen=True)
class Paths:
    """Five disjoint paths."""

    rates: Sequence[float]
    """Mbit/s."""
    delays_ms: Sequence[float]
    """Added on the way of the data, beside `LAN_MS` each way."""
    losses: Sequence[float]
    """On the way of the data."""

    def only(self, index: int) -> Paths:
        """One of them."""
        one = slice(index, index + 1)
        return Paths(self.rates[one], self.delays_ms[one], self.losses[one])

    @property
    def best(self) -> int:
        """The path that a single TCP would have most on: least loss, then the highest rate, then the least delay."""
        keys = zip(self.losses, (-r for r in self.rates), self.delays_ms, strict=True)
        ranked = sorted((key, i) for i, key in enumerate(keys))
        return ranked[0][1]


def congested(loss: float) -> Paths:
    """E1: rates differ, the loss is the same everywhere, no delay is added."""
    return Paths(RATES, (0.0,) * 5, (loss,) * 5)


EXPS = tuple(range(1, 9))


def mixed(exp: int) -> Paths:
    """E2: loss, rate and delay alike or different on the paths; loss changes slowest, delay fastest."""
    loss, rate, delay = ((exp - 1) >> bit & 1 for bit in (2, 1, 0))
    return Paths(
        RATES if rate else (SAME_RATE,) * 5,
        DELAYS_MS if delay else (SAME_DELAY_MS,) * 5,
        LOSSES if loss else (0.0,) * 5,
    )


def milliseconds(value: float) -> str:
    """Write a delay."""
    return f"{value:g}ms"


def link(paths: Paths, index: int) -> Table:
    """One path as netem on the sender's interface makes it; acknowledgements come back over the bare Gigabit link."""
    loss, delay = paths.losses[index], paths.delays_ms[index]
    up: Table = {
        "rate": f"{paths.rates[index]:g}Mbit/s",
        "delay": milliseconds(LAN_MS + delay),
        "queue": {"droptail": f"{QUEUE} packets"},
    }
    down: Table = {
        "rate": "1Gbit/s",
        "delay": milliseconds(LAN_MS),
        "queue": {"droptail": f"{QUEUE} packets"},
    }
    if loss > 0:
        up["loss"] = loss
    return {"jitter": milliseconds(JITTER_MS), "up": up, "down": down}


def topology(paths: Paths) -> Mapping[str, Table]:
    """Two hosts and the paths between them."""
    return {"multipath": {"paths": [link(paths, i) for i in range(len(paths.rates))]}}


TODAY = "linux-6"


def mptcp(congestion: str, scheduler: str, path_manager: str, **more: Value) -> Transport:
    """Multipath TCP of today; readings make other stacks of it."""
    chosen = {"congestion": congestion, "scheduler": scheduler, "path_manager": path_manager}
    return {"mptcp": {"profile": TODAY, **chosen, **more}}


def tcp(congestion: str) -> Transport:
    """Plain TCP of today."""
    return {"tcp": {"profile": TODAY, "congestion": congestion}}


def upload(transport: Transport, mb: float) -> FlowTable:
    """So many megabytes from the client on one connection."""
    return {
        "label": "upload",
        "from": "client",
        "to": "server",
        "transport": transport,
        "workload": {"bulk": {"bytes": f"{round(1e6 * mb)}B"}},
    }


MESSAGE_MB = 3.0


def messages(transport: Transport, mb: float) -> FlowTable:
    """So many megabytes from the client as messages on one connection, each after a request from the server."""
    objects: Table = {
        "objects": max(1, round(mb / MESSAGE_MB)),
        "size": f"{round(1e6 * MESSAGE_MB)}B",
    }
    ends: FlowTable = {"label": "upload", "from": "server", "to": "client"}
    return {**ends, "transport": transport, "workload": {"request": objects}}


def scenario(
    net: Mapping[str, Table],
    flows: list[FlowTable],
    *,
    limit_s: float = LIMIT_S,
    record: Mapping[str, Value] = RECORD,
) -> ScenarioTable:
    """Put a scenario together."""
    return {
        "name": "mptcp-schedulers",
        "duration": f"{limit_s:g}s",
        "record": record,
        "topology": net,
        "flows": flows,
    }


def transfer(
    paths: Paths,
    transport: Transport,
    mb: float,
    *,
    limit_s: float = LIMIT_S,
    record: Mapping[str, Value] = RECORD,
) -> ScenarioTable:
    """One upload over some paths."""
    return scenario(topology(paths), [upload(transport, mb)], limit_s=limit_s, record=record)  # fmt: skip


def directions(made: ScenarioTable) -> list[Table]:
    """Return the ways of the data over the paths of a scenario, alone or shared with others, to change them."""
    net = cast("dict[str, dict[str, list[Table]]]", made["topology"])
    paths = net["multipath"]["paths"] if "multipath" in net else net["graph"]["links"]
    return [cast("Table", path["up"]) for path in paths if "up" in path]
