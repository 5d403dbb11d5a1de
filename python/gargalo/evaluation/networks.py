"""Networks and flows of which the criteria are made, as scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json = dict[str, Any]

OWN = "own"
"""Label of flows of the algorithm under test."""
OTHER = "other"
"""Label of flows that it meets."""
PACKET_BYTES = 1500


def rate(bps: float) -> str:
    """Write a rate."""
    return f"{round(bps)}bit/s"


def seconds(value: float) -> str:
    """Write a time, to the microsecond."""
    return f"{round(value, 6):.6f}".rstrip("0").rstrip(".") + "s"


def in_seconds(text: str) -> float:
    """Return a duration as a resolved scenario writes it, like `950ms`, in s."""
    number = text.rstrip("mnsu")
    return float(number) * {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[text[len(number) :]]


def buffer(bps: float, rtt_s: float, factor: float) -> Json:
    """A tail-drop queue of so many bandwidth-delay products, at least two packets."""
    packets = max(2, round(factor * bps * rtt_s / (8 * PACKET_BYTES)))
    return {"droptail": f"{packets} packets"}


def flow(
    label: str,
    congestion: Any,
    pair: int,
    *,
    start_s: float = 0.0,
    stop_s: float | None = None,
    to: str = "right",
    **more: Any,
) -> Json:
    """A flow from one pair of hosts of a dumbbell, until the end unless its workload says otherwise."""
    transport = more.pop("transport", None) or {"tcp": {"congestion": congestion}}
    made: Json = {
        "label": label,
        "from": f"left{pair}",
        "to": f"{to}{pair}",
        "start": seconds(start_s),
        "transport": transport,
        **more,
    }
    if stop_s is not None:
        made["stop"] = seconds(stop_s)
    return made


def dumbbell(
    flows: Sequence[Json],
    *,
    bps: float,
    rtt_s: float | Sequence[float],
    queue: Any = None,
    duration_s: float = 60,
    interval_s: float = 0.1,
    bottleneck: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
) -> Json:
    """Flows over one bottleneck; `rtt_s` is the base round trip of each pair of hosts, or of all.

    The queue holds one bandwidth-delay product of the shortest round trip, unless another is given.
    """
    pairs = 1 + max(int(str(f["from"]).lstrip("left")) for f in flows)
    rtts = (
        [float(r) for r in rtt_s] if not isinstance(rtt_s, (int, float)) else [float(rtt_s)] * pairs
    )
    # Half of the shortest path is common, and each access link at either end has half of the rest.
    common = min(rtts) / 4
    access = [
        {"delay": seconds((r / 2 - common) / 2), "queue": {"droptail": "100000 packets"}}
        for r in rtts
    ]
    link: Json = {
        "rate": rate(bps),
        "delay": seconds(common),
        "queue": queue or buffer(bps, min(rtts), 1),
    }
    return {
        "name": "evaluation",
        "duration": seconds(duration_s),
        "record": {"interval": seconds(interval_s), "events": False, **(record or {})},
        "topology": {
            "dumbbell": {
                "pairs": pairs,
                "access": access if len(set(rtts)) > 1 else access[0],
                "bottleneck": link | dict(bottleneck or {}),
            }
        },
        "flows": list(flows),
    }


def spread(n: int, until_s: float) -> list[float]:
    """Starts of n flows that do not move in step: the fractional parts of multiples of the golden ratio."""
    return [round(until_s * ((k * 0.6180339887498949) % 1.0), 6) for k in range(n)]
