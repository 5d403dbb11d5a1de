"""One flow over one link, as the cases of conformance have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.evaluation.networks import PACKET_BYTES, rate, seconds
from gargalo.quantities import measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.evaluation.criteria.conformance.model import Json

RATE_BPS = 20e6
MSS = 1448
"""Payload of a full packet of 1500 bytes with IPv4, TCP and timestamps."""
DELAYED_PACKETS = 3
"""Of which an acknowledgement may be on its way when bytes in flight are inferred."""
RTT_S = 0.05
BDP_PACKETS = RATE_BPS * RTT_S / 8 / PACKET_BYTES


def steps(*pairs: tuple[float, float]) -> Json:
    """A rate that changes: instants in s and rates in bit/s."""
    return {"steps": [[seconds(at), rate(bps)] for at, bps in pairs]}


def one_flow(
    algorithm: str,
    length_s: float,
    *,
    bps: Any = RATE_BPS,
    rtt_s: float = RTT_S,
    packets: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    app: Sequence[tuple[float, float]] | None = None,
    up: Mapping[str, Any] | None = None,
    down: Mapping[str, Any] | None = None,
    tcp: Mapping[str, Any] | None = None,
    interval_s: float = 0.01,
) -> Json:
    """A flow that is recorded from the inside.

    Args:
        algorithm: Its congestion control.
        length_s: Of the run.
        bps: Rate of the link in bit/s, or a table of steps.
        rtt_s: Base round-trip time.
        packets: That may wait; by default four bandwidth-delay products of `RATE_BPS` and `RTT_S`, more than
            any of these algorithms fills.
        parameters: Of the congestion control.
        app: What the application writes: instants in s and rates in bit/s; by default all it can.
        up: More of the link's forward direction.
        down: More of the way back.
        tcp: More of the transport.
        interval_s: Between two samples.

    """
    limit = round(4 * BDP_PACKETS) if packets is None else packets
    link: Json = {
        "rate": bps if isinstance(bps, dict) else rate(bps),
        "delay": seconds(rtt_s / 2),
        "queue": {"droptail": f"{limit} packets"},
        # Acknowledgements never wait.
        "down": {"rate": "unlimited", **(down or {})},
    }
    if up:
        link["up"] = dict(up)
    flow: Json = {
        "from": "client",
        "to": "server",
        "transport": {
            "tcp": {
                "congestion": {algorithm: dict(parameters)} if parameters else algorithm,
                **(tcp or {}),
            }
        },
    }
    if app is not None:
        flow["workload"] = {"cbr": {"rate": steps(*app), "packet_size": "1448B"}}
    return {
        "duration": seconds(length_s),
        "record": {"interval": seconds(interval_s), "events": False, "gauges": True},
        "topology": {"simple": {"link": link}},
        "flows": [flow],
    }


def lost_from(at: float, length_s: float) -> Json:
    """All packets that come in a time are lost."""
    return {"outages": [[seconds(at), seconds(at + length_s)]]}


def delays(*pairs: tuple[float, float]) -> Json:
    """One-way delays from some instants on."""
    return {"steps": [[f"{at:.6f}s", f"{d:.6f}s"] for at, d in pairs]}


def bps_text(value: float) -> str:
    """Write a rate."""
    return measured(value, "bit/s")


def time_text(value: float) -> str:
    """Write a time."""
    return measured(value, "s")


def counted(value: float, what: str) -> str:
    """Write a number of things, each of which has this name."""
    return f"{value:.0f} {what}" if round(value) == 1 else f"{value:.0f} {what}s"


def packets_text(value: float) -> str:
    """Write bytes as full packets."""
    return f"{value / MSS:.0f} packets" if value >= 10 * MSS else f"{value / MSS:.3g} packets"
