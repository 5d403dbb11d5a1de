"""Networks beyond those of the work: paths shared with others, and paths that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo_studies.mptcp_schedulers import scenarios as sc

if TYPE_CHECKING:
    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport

    from gargalo_studies.mptcp_schedulers.scenarios import Paths

TCP, UDP = "tcp", "udp"
BACKGROUNDS = (TCP, UDP)
UDP_SHARE = 1 / 3
"""Of each path's rate."""
ACCESS = {"rate": "1Gbit/s", "delay": sc.milliseconds(sc.LAN_MS / 2)}


def shared(paths: Paths, transport: Transport, background: str, seconds: float) -> ScenarioTable:
    """MPTCP beside one flow on each path; every flow until the end."""
    nodes = ["client", "server"]
    links: list[Table] = []
    flows: list[FlowTable] = [{**sc.upload(transport, 1), "workload": {"bulk": {}}, "start": "1s"}]
    for i in range(len(paths.rates)):
        near, far, source, sink = (f"{name}{i}" for name in ("near", "far", "source", "sink"))
        nodes += [near, far, source, sink]
        links += [
            {"name": f"path{i}", "from": near, "to": far, **sc.link(paths, i)},
            {"name": f"client{i}", "from": "client", "to": near, **ACCESS},
            {"name": f"server{i}", "from": far, "to": "server", **ACCESS},
            {"name": f"source{i}", "from": source, "to": near, **ACCESS},
            {"name": f"sink{i}", "from": far, "to": sink, **ACCESS},
        ]
        flow: FlowTable = {"label": f"other{i}", "from": source, "to": sink}
        if background == TCP:
            flow |= {"transport": sc.tcp("cubic"), "workload": {"bulk": {}}}
        else:
            rate = f"{UDP_SHARE * paths.rates[i]:.6g}Mbit/s"
            flow |= {"transport": {"udp": {}}, "workload": {"cbr": {"rate": rate}}}
        flows.append(flow)
    hosts = ["client", "server", *(f"{n}{i}" for n in ("source", "sink") for i in range(len(paths.rates)))]  # fmt: skip
    net: dict[str, Table] = {"graph": {"nodes": nodes, "links": links, "hosts": hosts}}
    return sc.scenario(net, flows, limit_s=seconds)


WIRELESS = sc.Paths((50.0, 20.0), (5.0, 25.0), (0.001, 0.0))
"""Like a wireless LAN and a cellular network."""
LEAVES_S, RETURNS_S, ENDS_S = 10, 20, 30
QUEUE = "100 packets"
SAMPLE_MS = 10


def hand_over(congestion: str, scheduler: str, *, backup: bool) -> ScenarioTable:
    """The first path goes and comes back; the second is there all the time, as a backup or not."""
    changes = [
        {"after": f"{LEAVES_S}s", "remove": "path0"},
        {"after": f"{RETURNS_S}s", "add": "path0"},
    ]
    more: Table = {"changes": changes}
    if backup:
        more["backup"] = ["path1"]
    transport = sc.mptcp(congestion, scheduler, sc.SINGLE, **more)
    record: Table = {
        "flows": True,
        "links": False,
        "events": False,
        "interval": sc.milliseconds(SAMPLE_MS),
    }
    made = sc.transfer(WIRELESS, transport, 1e4, limit_s=ENDS_S, record=record)
    for up in sc.directions(made):
        up["queue"] = {"droptail": QUEUE}
    return made
