"""What each protocol is under each set of defaults, and the steps from one set to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

QUIC = "quic"
CUBIC = "cubic"
TLS = "cubic + TLS"
VARIANTS = (
    "newreno",
    "bic",
    "cubic",
    "vegas",
    "hstcp",
    "htcp",
    "hybla",
    "illinois",
    "ledbat",
    "scalable",
    "veno",
    "westwood",
    "yeah",
)
"""The thirteen of the work."""
TCPS = (*VARIANTS, "bbr")

PUBLISHED = "as-published"
MODERN = "modern"
DEFAULTS = (PUBLISHED, MODERN)


QUIC_CUBIC: dict[str, dict[str, Any]] = {
    PUBLISHED: {"connections": 2, "slow_start": "hystart", "reduce_from": "cwnd"},
    MODERN: {"reduce_from": "cwnd"},
}
"""CUBIC of QUIC: after a loss RFC 9002 and Google's QUIC keep a share of the window, not of what is in flight."""


def quic(defaults: str, **more: Any) -> dict[str, Any]:
    """QUIC as the work had it, or of RFC 9000; packets are not encrypted, which changes no timing."""
    profile = {PUBLISHED: "google-v41", MODERN: "rfc9000"}[defaults]
    congestion = {CUBIC: QUIC_CUBIC[defaults]}
    return {"quic": {"profile": profile, "crypto": "null", "congestion": congestion, **more}}


def tcp(defaults: str, congestion: str | dict[str, Any] = CUBIC, **more: Any) -> dict[str, Any]:
    """TCP of ns-3.27, or one like a current Linux.

    BBR is not of that time; it paces.
    """
    if defaults == MODERN:
        return {"tcp": {"profile": "modern", "congestion": congestion, **more}}
    if congestion == "bbr":
        return {"tcp": {"profile": "ns3-3.27", "congestion": "bbr", "pacing": "controller", **more}}
    if isinstance(congestion, str):
        congestion = old(congestion)
    return {"tcp": {"profile": "ns3-3.27", "congestion": congestion, **more}}


OLD: dict[str, dict[str, Any]] = {
    "cubic": {"slow_start": "standard"},
    "hybla": {"rtt0": "50ms", "scale_initial_window": False, "bandwidth_estimate": False},
    "ledbat": {"initial_slow_start": True, "slow_start_exit": 1, "init_cwnd": 0},
    "vegas": {"alternate": False},
}
"""Where ns-3.27's congestion controls have other defaults than ours."""


def old(congestion: str) -> dict[str, Any]:
    """A congestion control as in ns-3.27, which in slow start grows by a segment per acknowledgement."""
    return {congestion: {"abc_limit": 1, **OLD.get(congestion, {})}}


def transport(protocol: str, defaults: str) -> dict[str, Any]:
    """Return the transport of a protocol of the figures."""
    if protocol == QUIC:
        return quic(defaults)
    if protocol == TLS:
        return tcp(defaults, CUBIC, tls="1.3")
    return tcp(defaults, protocol)


@dataclass(frozen=True)
class Step:
    """Both ends of a comparison on the way from the old defaults to the new ones."""

    name: str
    """What changed since the step before."""
    short: str
    """The same for the axis of a figure."""
    quic: Mapping[str, Any]
    tcp: Mapping[str, Any]


def steps() -> tuple[Step, ...]:
    """Return the steps: first TCP's defaults are renewed one by one, then QUIC's."""
    then, now = quic(PUBLISHED), quic(MODERN)
    segment: dict[str, Any] = {"mss": "1448B"}
    counting = {**segment, "congestion": {CUBIC: {"slow_start": "standard"}}}
    window = {**counting, "initial_window": "10 packets"}
    buffers = {**window, "send_buffer": "64MiB", "receive_buffer": "64MiB"}
    single = quic(PUBLISHED, congestion={CUBIC: {**QUIC_CUBIC[PUBLISHED], "connections": 1}})
    return (
        Step("as published", "as published", then, tcp(PUBLISHED)),
        Step("TCP: segments of 1448 bytes", "TCP: 1448 B", then, tcp(PUBLISHED, **segment)),
        Step("TCP: slow start counts bytes", "TCP: bytes", then, tcp(PUBLISHED, **counting)),
        Step("TCP: initial window 10", "TCP: window 10", then, tcp(PUBLISHED, **window)),
        Step("TCP: buffers of 64 MiB", "TCP: buffers", then, tcp(PUBLISHED, **buffers)),
        Step("TCP: RFC 9438 CUBIC, RACK-TLP, PRR", "TCP: recovery", then, tcp(MODERN)),
        Step("QUIC: CUBIC of one connection", "QUIC: 1 flow", single, tcp(MODERN)),
        Step("QUIC: initial window 10, RFC 9000 and 9438", "QUIC: window 10", now, tcp(MODERN)),
        Step("TCP: TLS 1.3 in front", "TCP: TLS", now, tcp(MODERN, tls="1.3")),
    )


STEPS = steps()
