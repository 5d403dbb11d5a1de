"""The networks of the study: dumbbell and parking lot with background traffic in both directions."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table

PROTOCOLS = ("bic", "cubic", "fast", "hstcp", "htcp", "libra", "reno", "scalable")
LOADS = (0.2, 0.5, 0.8)
"""The background of the work, as a share of the capacity."""
BUFFER_PACKETS = 2500
PACKET_BYTES = 1500
ACCESS_S = 0.010
"""One-way delay of a dumbbell's access link."""
JITTER_S = 0.0001
"""Most that chance adds to the delay of an access link."""
SPREAD_S = tuple(0.010 + 0.005 * i for i in range(20))
"""Access delays of the experiment on different round trips: 240 to 620 ms with 100 ms of the bottleneck."""
HOPS = 3


def rate(mbps: float) -> str:
    """Write a rate."""
    return f"{mbps:g}Mbit/s"


def seconds(value: float) -> str:
    """Write a time, to the microsecond."""
    return f"{round(value, 6):g}s"


def background(load: float, link: str, source: str, to: str) -> list[FlowTable]:
    """Background traffic on a link, in both directions; none if `load` is 0."""
    if load <= 0:
        return []
    return [
        {
            "label": f"background {link}",
            "from": source,
            "to": to,
            "transport": {"tcp": {"congestion": "reno"}},
            "workload": {"mix": {"load": f"{100 * load:g}%", "link": link}},
        }
    ]


def bulk(label: str, protocol: str, source: str, to: str, start_s: float) -> FlowTable:
    """A main flow: data until the end."""
    return {
        "label": label,
        "from": source,
        "to": to,
        "start": seconds(start_s),
        "transport": {"tcp": {"congestion": protocol}},
    }


RECORD: Table = {"interval": "1s", "events": False}
"""What the metrics need: samples each second."""


def dumbbell(
    protocols: Sequence[str],
    *,
    mbps: float,
    load: float,
    duration_s: float,
    seed: int,
    one_way_s: float = 0.1,
    access_s: Sequence[float] | None = None,
    buffer: str = f"{BUFFER_PACKETS} packets",
    starts_s: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
) -> ScenarioTable:
    """One flow per entry of `protocols` over one bottleneck, and background traffic between two other hosts.

    `one_way_s` is the delay from end to end; the access links at both ends have 10 ms of it each, but not more than
    half together. With `access_s`, the delay of each flow's access links, it is that of the bottleneck alone.

    Starts (within the first second) and access delays (by up to a tenth of a millisecond) are slightly random to avoid
    synchronisation; the same seed gives the same values for all protocols.
    """
    chance = random.Random(f"dumbbell {seed}")
    n = len(protocols)
    own_s = min(ACCESS_S, one_way_s / 4)
    common_s = one_way_s if access_s else one_way_s - 2 * own_s
    access: list[Table] = [
        {
            "rate": rate(10 * mbps),
            "delay": seconds(d + chance.uniform(0.0, JITTER_S)),
            "queue": {"droptail": "100000 packets"},
        }
        for d in [*(access_s or [own_s] * n), own_s]
    ]
    starts = starts_s or [chance.uniform(0.0, 1.0) for _ in range(n)]
    names = labels or list(protocols)
    flows = [
        bulk(label, protocol, f"left{i}", f"right{i}", start)
        for i, (label, protocol, start) in enumerate(zip(names, protocols, starts, strict=True))
    ]
    bottleneck: Table = {
        "rate": rate(mbps),
        "delay": seconds(common_s),
        "queue": {"droptail": buffer},
    }
    return {
        "name": "high-speed-tcp",
        "duration": seconds(duration_s),
        "seed": seed,
        "record": RECORD,
        "topology": {"dumbbell": {"pairs": n + 1, "access": access, "bottleneck": bottleneck}},
        "flows": flows + background(load, "bottleneck", f"left{n}", f"right{n}"),
    }


def parking_lot(
    protocols: Sequence[str],
    *,
    mbps: float,
    load: float,
    duration_s: float,
    seed: int,
    buffer: str = f"{BUFFER_PACKETS} packets",
) -> ScenarioTable:
    """A chain of three bottlenecks; every second main flow has a round trip of 90 ms, the others 180 ms.

    Background flows cross one hop with a round trip of 30 ms.
    """
    chance = random.Random(f"parking lot {seed}")
    hop_s = 0.014
    access_s = {0.090: (0.045 - HOPS * hop_s) / 2, 0.180: (0.090 - HOPS * hop_s) / 2}
    nodes = [f"router{i}" for i in range(HOPS + 1)]
    queue = {"droptail": buffer}
    links: list[Table] = [
        {
            "name": f"bottleneck{i}",
            "from": f"router{i}",
            "to": f"router{i + 1}",
            "rate": rate(mbps),
            "delay": seconds(hop_s),
            "queue": queue,
        }
        for i in range(HOPS)
    ]
    flows = []
    big = {"droptail": "100000 packets"}

    def attach(host: str, router: str, delay_s: float) -> None:
        nodes.append(host)
        links.append(
            {
                "from": host,
                "to": router,
                "rate": rate(10 * mbps),
                "delay": seconds(delay_s),
                "queue": big,
            }
        )

    for i, protocol in enumerate(protocols):
        rtt_s, kind = ((0.090, "short"), (0.180, "long"))[i % 2]
        delay = access_s[rtt_s] + chance.uniform(0.0, JITTER_S)
        attach(f"left{i}", "router0", delay)
        attach(f"right{i}", f"router{HOPS}", delay)
        start = chance.uniform(0.0, 1.0)
        flows.append(bulk(f"{protocol} {kind}", protocol, f"left{i}", f"right{i}", start))
    if load > 0:
        for hop in range(HOPS):
            attach(f"cross{hop}", f"router{hop}", 0.0005)
            attach(f"sink{hop}", f"router{hop + 1}", 0.0005)
            flows += background(load, f"bottleneck{hop}", f"cross{hop}", f"sink{hop}")
    return {
        "name": "high-speed-tcp",
        "duration": seconds(duration_s),
        "seed": seed,
        "record": RECORD,
        "topology": {"graph": {"nodes": nodes, "links": links}},
        "flows": flows,
    }
