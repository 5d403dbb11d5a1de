"""The networks of the study: dumbbell and parking lot with background traffic in both directions."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PROTOCOLS = ("bic", "cubic", "fast", "hstcp", "htcp", "libra", "reno", "scalable")
BUFFER_PACKETS = 2500
PACKET_BYTES = 1500
ACCESS_S = 0.001
HOPS = 3
VARIANTS: dict[str, dict[str, Any]] = {
    "fast, alpha 200": {"fast": {"tuning": False, "alpha": 200}},
    "libra, capacity 1": {"libra": {"capacity": 1}},
}
"""Other readings of what the work leaves open: FAST's queued segments, the unit of Libra's capacity."""


def rate(mbps: float) -> str:
    """Write a rate."""
    return f"{mbps:g}Mbit/s"


def seconds(value: float) -> str:
    """Write a time, to the microsecond."""
    return f"{round(value, 6):g}s"


def background(load: float, link: str = "bottleneck", **ends: str) -> list[dict[str, Any]]:
    """Background traffic on a link, in both directions; none if `load` is 0."""
    if load <= 0:
        return []
    return [
        {
            "label": f"background {link}",
            **({"from": "left*", "to": "right*"} | ends),
            "transport": {"tcp": {"congestion": "reno"}},
            "workload": {"mix": {"load": f"{100 * load:g}%", "link": link}},
        }
    ]


def bulk(label: str, protocol: str, source: str, to: str, start_s: float) -> dict[str, Any]:
    """A main flow: data until the end."""
    return {
        "label": label,
        "from": source,
        "to": to,
        "start": seconds(start_s),
        "transport": {"tcp": {"congestion": VARIANTS.get(protocol, protocol)}},
    }


RECORD = {"interval": "1s", "events": False}
"""What the metrics need: samples each second."""


def dumbbell(
    protocols: Sequence[str],
    *,
    mbps: float,
    one_way_s: Sequence[float] | float,
    load: float,
    duration_s: float,
    seed: int,
    buffer: str = f"{BUFFER_PACKETS} packets",
    starts_s: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
) -> dict[str, Any]:
    """One flow per entry of `protocols` over one bottleneck.

    Starts (within the first second) and access delays (by a tenth of a millisecond and more) are slightly
    random to avoid synchronisation; the same seed gives the same values for all protocols.
    """
    chance = random.Random(f"dumbbell {seed}")
    n = len(protocols)
    delays = [one_way_s] * n if isinstance(one_way_s, float) else list(one_way_s)
    # Half of the shortest path is common; each access link, one at either end, has half of the rest.
    common = max(min(delays) - 2 * ACCESS_S, min(delays) / 2)
    access = [
        {
            "rate": rate(10 * mbps),
            "delay": seconds(max((d - common) / 2, 0.0) + chance.uniform(0.0, 0.1) * ACCESS_S),
            "queue": {"droptail": "100000 packets"},
        }
        for d in delays
    ]
    starts = starts_s or [chance.uniform(0.0, 1.0) for _ in range(n)]
    names = labels or list(protocols)
    flows = [
        bulk(label, protocol, f"left{i}", f"right{i}", start)
        for i, (label, protocol, start) in enumerate(zip(names, protocols, starts, strict=True))
    ]
    return {
        "name": "high-speed-tcp",
        "duration": seconds(duration_s),
        "seed": seed,
        "record": RECORD,
        "topology": {
            "dumbbell": {
                "pairs": n,
                "access": access,
                "bottleneck": {
                    "rate": rate(mbps),
                    "delay": seconds(common),
                    "queue": {"droptail": buffer},
                },
            }
        },
        "flows": flows + background(load),
    }


def parking_lot(
    protocols: Sequence[str],
    *,
    mbps: float,
    load: float,
    duration_s: float,
    seed: int,
    buffer: str = f"{BUFFER_PACKETS} packets",
) -> dict[str, Any]:
    """A chain of three bottlenecks; every second main flow has a round trip of 90 ms, the others 180 ms.

    Background flows cross one hop with a round trip of 30 ms.
    """
    chance = random.Random(f"parking lot {seed}")
    hop_s = 0.014
    access_s = {0.090: (0.045 - HOPS * hop_s) / 2, 0.180: (0.090 - HOPS * hop_s) / 2}
    nodes = [f"router{i}" for i in range(HOPS + 1)]
    queue = {"droptail": buffer}
    links: list[dict[str, Any]] = [
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
        delay = access_s[rtt_s] + chance.uniform(0.0, 0.1) * ACCESS_S
        attach(f"left{i}", "router0", delay)
        attach(f"right{i}", f"router{HOPS}", delay)
        start = chance.uniform(0.0, 1.0)
        flows.append(bulk(f"{protocol} {kind}", protocol, f"left{i}", f"right{i}", start))
    if load > 0:
        for hop in range(HOPS):
            attach(f"cross{hop}", f"router{hop}", 0.0005)
            attach(f"sink{hop}", f"router{hop + 1}", 0.0005)
            flows += background(
                load,
                f"bottleneck{hop}",
                **{"from": f"cross{hop}", "to": f"sink{hop}"},
            )
    return {
        "name": "high-speed-tcp",
        "duration": seconds(duration_s),
        "seed": seed,
        "record": RECORD,
        "topology": {"graph": {"nodes": nodes, "links": links}},
        "flows": flows,
    }
