"""The networks of the study: two hosts and a link, and a dumbbell. Clients ask, servers send."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport, Value

MBPS = 10.0
DELAY_S = 0.05
LOSS = 0.0
KB = 1000
QUEUE_PACKETS = 1000
"""ns-3.27's queue above the device: pfifo_fast with 1000 packets."""
ACCESS_MBPS = 1000.0
ACCESS_S = 0.01
LIMIT_S = 3600.0
"""Runs end when all is delivered; what takes longer than this counts as this long."""
WARM_UP = "warm-up"
"""Label of a flow that is not judged."""
RECORD = {"flows": False, "links": False, "events": False}
"""What the metrics need is in the rows of flows and objects."""


def rate(mbps: float) -> str:
    """Write a rate."""
    return f"{mbps:g}Mbit/s"


def seconds(value: float) -> str:
    """Write a time, to the microsecond."""
    return f"{round(value, 6):.10g}s"


def link(mbps: float = MBPS, delay_s: float = DELAY_S, loss: float = LOSS, **more: Value) -> Table:
    """A link with the queue of the work; loss is independent, in both directions."""
    queue = {"droptail": f"{QUEUE_PACKETS} packets"}
    made: Table = {"rate": rate(mbps), "delay": seconds(delay_s), "queue": queue}
    if loss > 0:
        made["loss"] = loss
    return {**made, **more}


def download(
    label: str,
    transport: Transport,
    kb: float,
    client: str = "client",
    server: str = "server",
) -> FlowTable:
    """A flow: the client connects and asks for so many kilobytes, the server sends them."""
    return {
        "label": label,
        "from": client,
        "to": server,
        "transport": dict(transport),
        "workload": {"request": {"size": f"{round(1000 * kb)}B"}},
    }


STEPS = "nsquic-steps"
"""Name of scenarios whose transports are the same in all readings."""


def scenario(
    topology: Mapping[str, Table], flows: list[FlowTable], name: str = "nsquic"
) -> ScenarioTable:
    """Put a scenario together."""
    return {
        "name": name,
        "duration": seconds(LIMIT_S),
        "record": RECORD,
        "topology": topology,
        "flows": flows,
    }


def simple(
    label: str,
    transport: Transport,
    *,
    mbps: float = MBPS,
    delay_s: float = DELAY_S,
    loss: float = LOSS,
    kb: float = KB,
) -> ScenarioTable:
    """One flow over one link."""
    return scenario(
        {"simple": {"link": link(mbps, delay_s, loss)}}, [download(label, transport, kb)]
    )


def dumbbell(
    flows: Sequence[tuple[str, Transport]],
    *,
    mbps: float = MBPS,
    delay_s: float = DELAY_S,
    loss: float = LOSS,
    kb: float = KB,
    access: Table | None = None,
) -> ScenarioTable:
    """A client, a server and a flow for each entry, all from time 0 over one bottleneck."""
    return scenario(
        {
            "dumbbell": {
                "pairs": len(flows),
                "access": access or link(ACCESS_MBPS, ACCESS_S),
                "bottleneck": link(mbps, delay_s, loss),
            }
        },
        [
            download(label, transport, kb, f"left{i}", f"right{i}")
            for i, (label, transport) in enumerate(flows)
        ],
    )


WIRELESS = "wireless"
MIXED = "wired, then wireless"
BURST = 4
"""Packets for which a wireless link stays bad, on average; in that state half of them are lost. If all were, a sender
that waits twice as long for each retransmission would need hours to get out of it: the state changes by packets."""


def bursts(loss: float) -> Table:
    """Return a loss model whose losses come in bursts, with this share of packets lost in the long run."""
    leave, bad = 1.0 / BURST, 2.0 * loss
    return {"gilbert-elliott": {"p": leave * bad / (1.0 - bad), "r": leave, "h": 0.5}}


def radio(delay_s: float, loss: float) -> Table:
    """A wireless link: losses in bursts in both directions, and a delay that varies by the turns of the channel."""
    return {
        **link(20.0, delay_s),
        "jitter": "2ms",
        **({"loss": bursts(loss)} if loss > 0 else {}),
    }


def wireless(where: str, label: str, transport: Transport, loss: float, kb: float) -> ScenarioTable:  # fmt: skip
    """One flow over one wireless link, or from a wired network to a host behind such a link; 50 ms one way."""
    flow = download(label, transport, kb)
    if where == WIRELESS:
        return scenario({"simple": {"link": radio(DELAY_S, loss)}}, [flow])
    near = 0.002
    ends = {"from": "client", "to": "access", **radio(near, loss)}
    core = {"from": "access", "to": "core", **link(delay_s=DELAY_S - 2 * near)}
    far = {"from": "core", "to": "server", **link(ACCESS_MBPS, near)}
    nodes = ["client", "access", "core", "server"]
    return scenario({"graph": {"nodes": nodes, "links": [ends, core, far]}}, [flow])
