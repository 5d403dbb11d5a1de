"""What each protocol is today and was in 2018, and the steps from one to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gargalo.studies import Table, Transport, Value

QUIC = "quic"
CUBIC = "cubic"
NEWRENO = "newreno"
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

ONE_CONNECTION: Table = {CUBIC: {"connections": 1}}
"""Google's CUBIC without the window of two connections."""


def quic(**more: Value) -> Transport:
    """QUIC of RFC 9000; packets are not encrypted, which changes no timing."""
    return {"quic": {"profile": "rfc9000", "crypto": "null", "congestion": CUBIC, **more}}


def tcp(congestion: str = CUBIC, **more: Value) -> Transport:
    """TCP like a current Linux."""
    return {"tcp": {"profile": "modern", "congestion": congestion, **more}}


def old(transport: Transport) -> Transport:
    """Return the transport of 2018 in the place of today's; what else it says stays."""
    ((kind, options),) = transport.items()
    profile = "google-v41" if kind == "quic" else "ns3-3.27"
    return {kind: {**options, "profile": profile}}


def transport(protocol: str) -> Transport:
    """Return the transport of a protocol of the figures."""
    if protocol == QUIC:
        return quic()
    if protocol == TLS:
        return tcp(tls="1.3")
    return tcp(protocol)


@dataclass(frozen=True)
class Step:
    """Both ends of a comparison on the way from the old defaults to the new ones."""

    name: str
    """What changed since the step before."""
    short: str
    """The same for the axis of a figure."""
    quic: Transport
    tcp: Transport


def steps() -> tuple[Step, ...]:
    """Return the steps: first TCP's defaults are renewed one by one, then QUIC's."""
    then, now = old(quic()), quic()
    segment: Table = {"mss": "1448B"}
    counting: Table = {**segment, "congestion": {CUBIC: {"abc_limit": 0}}}
    window: Table = {**counting, "initial_window": "10 packets"}
    buffers: Table = {**window, "send_buffer": "64MiB", "receive_buffer": "64MiB"}
    single: Transport = {"quic": {**then["quic"], "congestion": ONE_CONNECTION}}

    def changed(**more: Value) -> Transport:
        return {"tcp": {**old(tcp())["tcp"], **more}}

    return (
        Step("as published", "as published", then, changed()),
        Step("TCP: segments of 1448 bytes", "TCP: 1448 B", then, changed(**segment)),
        Step("TCP: slow start counts bytes", "TCP: bytes", then, changed(**counting)),
        Step("TCP: initial window 10", "TCP: window 10", then, changed(**window)),
        Step("TCP: buffers of 64 MiB", "TCP: buffers", then, changed(**buffers)),
        Step("TCP: RFC 9438 CUBIC, RACK-TLP, PRR", "TCP: recovery", then, tcp()),
        Step("QUIC: CUBIC of one connection", "QUIC: 1 flow", single, tcp()),
        Step("QUIC: initial window 10, RFC 9000 and 9438", "QUIC: window 10", now, tcp()),
        Step("TCP: TLS 1.3 in front", "TCP: TLS", now, tcp(tls="1.3")),
    )


STEPS = steps()
