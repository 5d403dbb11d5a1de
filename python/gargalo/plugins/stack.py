"""QUIC implementations written in Python, or around a Python library.

An object is one end of one connection. It reads no clock, no socket and no random source of its own: every call has
the time, datagrams are arguments and results, and random bytes come from the host. So it runs in virtual time as well
as over real sockets, and the same seed gives the same bytes. The interface for shared libraries, `gargalo_stack.h`,
has the same functions with the same names.

Times are seconds since the start of the run (floats), amounts bytes, rates bit/s. An address is a pair of the IP
address as text and the port, as in the module `socket`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from gargalo._core import QuicHost
from gargalo.plugins.registry import base, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Address",
    "QuicConfig",
    "QuicDatagram",
    "QuicHost",
    "QuicPath",
    "QuicStack",
    "QuicStats",
    "quic_stack",
]

Address: TypeAlias = tuple[str, int]
"""An IP address as text and a port."""


class QuicDatagram(NamedTuple):
    """A UDP datagram, with the addresses as this end has them: it leaves from `local` or has arrived there."""

    data: bytes
    """The UDP payload."""
    local: Address
    remote: Address
    ecn: int = 0
    """The two bits of the IP header (RFC 3168 §5): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE."""


@dataclass(frozen=True)
class QuicConfig:
    """What a scenario asks of one end."""

    is_server: bool
    local: Address
    remote: Address
    congestion: str
    """One of `QuicStack.congestion`."""
    server_name: str
    """For SNI and the certificate."""
    alpn: str
    """The only application protocol."""
    certificate: bytes
    """DER, self-signed: a client trusts exactly this one. Ed25519, or ECDSA with P-256 if an end has "ecdsa"."""
    private_key: bytes
    """DER, PKCS #8; empty for a client."""
    ticket_key: bytes
    """64 secret bytes: the same for all connections of a server until it restarts."""
    session: bytes
    """Client: what it gave to `QuicHost.session` in an earlier connection, or empty."""
    initial_window: int
    """Congestion window in bytes."""
    stream_window: int
    """Receive window of a stream in bytes."""
    connection_window: int
    """Receive window of the connection in bytes."""
    send_window: int
    """Capacity of the send buffer in bytes."""
    idle_timeout: float
    """Seconds."""
    initial_rtt: float
    """Seconds; before the first sample (RFC 9002 §6.2.2)."""
    max_streams: int
    """Streams that the peer may have open at once."""
    datagram_size: int
    """UDP payload of a full packet in bytes."""
    max_datagram_size: int
    """The greatest that discovery may find, in bytes; equal to `datagram_size`: no discovery."""
    early_data: bool
    """Client: send early data if there is a session. Server: accept it."""
    retry: bool
    """Server: answer the first Initial packet with a Retry."""
    ecn: bool
    pacing: bool
    qlog: bool
    """Call `QuicHost.qlog`."""
    secrets: bool
    """Call `QuicHost.secret`."""
    notices: bool
    """Call `QuicHost.notice`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the scenario has for this stack."""
    max_unidirectional_streams: int = 0
    """Streams that the peer may have open at once; 0: the flow has none, and the peer may be told another limit."""
    max_datagram_frame: int = 0
    """The largest DATAGRAM frame to accept in bytes (RFC 9221 §3); 0: no datagrams."""
    packets: bool = False
    """Call `QuicHost.packet`."""
    max_paths: int = 1
    """At once; 1: no multipath."""


@dataclass(frozen=True)
class QuicStats:
    """Counters and state of the sender; None where the implementation does not tell."""

    sent_packets: int | None = None
    """Ack-eliciting packets sent."""
    sent_bytes: int | None = None
    """Stream data sent, retransmissions included."""
    retransmitted_packets: int | None = None
    """Packets with stream data that was sent before."""
    lost_packets: int | None = None
    """Packets declared lost."""
    timeouts: int | None = None
    """Probe timeouts."""
    spurious: int | None = None
    """Losses found to be spurious."""
    cwnd: int | None = None
    """Congestion window in bytes."""
    ssthresh: int | None = None
    """Slow-start threshold in bytes; None also while it is infinite."""
    in_flight: int | None = None
    """Bytes in flight."""
    srtt: float | None = None
    """Smoothed round-trip time in seconds; None before the first sample."""
    pacing_rate: float | None = None
    """Bit/s."""
    delivery_rate: float | None = None
    """Bit/s."""
    phase: str | None = None
    """State of the congestion control in one word."""


@dataclass(frozen=True)
class QuicPath:
    """A path of a connection with several (draft-ietf-quic-multipath)."""

    id: int
    """The same at both ends."""
    local: Address
    remote: Address
    opened: float
    """When it could carry data, in seconds."""
    closed: float | None = None
    """When it was abandoned, in seconds."""
    received_bytes: int = 0
    """Stream data that arrived first on this path."""
    sender: QuicStats = field(default_factory=QuicStats)


@base("stack")
class QuicStack:
    """Base class of QUIC implementations; one instance per end of a connection.

    Calls come in the order of time, for several objects in turn. After `datagram_in`, `timeout` and every call with a
    time that comes from the application comes `datagram_out` until it returns None, then `next_timer`. The functions of
    the host may be called during a call to the object only.

    Attributes:
        version: Version of the implementation inside.
        congestion: Names of its congestion controls, the default first. A scenario's name that is one of them is handed
            on as it is; any other that is an alias of one of Gargalo's is handed on by the name that it stands for.
        specifications: What they follow, by name, where that is known: of BBR "bbr" (version 1,
            draft-cardwell-iccrg-bbr-congestion-control-00), "bbr2" (the same draft, -02) or "bbr3"
            (draft-ietf-ccwg-bbr). Cases of conformance judge by it; without it they decide nothing.
        features: What a scenario may ask of it, of "0-rtt" (early data with a session of an earlier connection,
            RFC 9001 §4.6), "retry" (as a server, RFC 9000 §8.1.2), "migration" (as a client, a new local address,
            RFC 9000 §9), "ecn" (RFC 9000 §13.4), "qlog", "no-pacing" (pacing can be switched off), "mtu-discovery"
            (RFC 8899), "initial-window" (it starts with another window than ten packets, RFC 9002 §7.2), "options"
            (it has some of its own, in `QuicConfig.options`; `__init__` refuses those that it does not know),
            "unidirectional" (streams, RFC 9000 §2.1), "datagrams" (RFC 9221), "cancel" (RESET_STREAM and
            STOP_SENDING, RFC 9000 §3.5), "urgency" (of streams, RFC 9218 §4.1), "key-update" (RFC 9001 §6),
            "multipath" (several paths at once, draft-ietf-quic-multipath; it needs "local-address"), "packets" (it
            reports them by `QuicHost.packet`; the host counts them where `stats` does not, and writes qlog of them
            without "qlog"), "local-address" (`QuicDatagram.local` counts: after `migrate` it may go on to use the
            address before; otherwise a datagram leaves from the present one) and "ecdsa" (it cannot use Ed25519:
            the certificate of its connections is ECDSA with P-256). A request for anything else is an error before
            the run.

    """

    version: ClassVar[str] = ""
    congestion: ClassVar[tuple[str, ...]] = ()
    specifications: ClassVar[Mapping[str, str]] = MappingProxyType({})
    features: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, config: QuicConfig, host: QuicHost, now: float) -> None:
        """Create one end; a client connects."""

    def datagram_in(self, now: float, datagram: QuicDatagram) -> None:
        """Process a datagram that has arrived."""
        raise NotImplementedError

    def datagram_out(self, now: float) -> QuicDatagram | None:
        """Return the next datagram that may be sent now; None if there is none."""
        raise NotImplementedError

    def next_timer(self) -> float | None:
        """Return when `timeout` must be called, pacing included, in seconds; None: never."""
        raise NotImplementedError

    def timeout(self, now: float) -> None:
        """Run the timers that are due."""
        raise NotImplementedError

    def open_stream(self, now: float) -> int | None:
        """Open a bidirectional stream and return its number; None if the peer's limit is reached."""
        raise NotImplementedError

    def write(self, now: float, stream: int, data: bytes, fin: bool) -> int:
        """Take stream data; return how many bytes were taken. The host keeps the rest and offers it again.

        With `fin` the stream ends here; there is no data then.
        """
        raise NotImplementedError

    def open_unidirectional_stream(self, now: float) -> int | None:
        """Open a unidirectional stream and return its number; None if the peer's limit is reached.

        Called only with the feature "unidirectional".
        """
        raise NotImplementedError

    def send_datagram(self, now: float, data: bytes) -> bool | None:
        """Take a datagram that is sent once, in one packet (RFC 9221), and return True.

        False: not now, and the host offers it again, or discards it; None: it does not fit into a packet, or the peer
        takes none. Called only with the feature "datagrams".
        """
        raise NotImplementedError

    def reset_stream(self, now: float, stream: int) -> None:
        """End a stream at once, which may have ended, with the application's error H3_REQUEST_CANCELLED (0x10c).

        Called only with the feature "cancel", as the next.
        """
        raise NotImplementedError

    def stop_sending(self, now: float, stream: int) -> None:
        """Ask the peer to end a stream, with the same error."""
        raise NotImplementedError

    def set_urgency(self, now: float, stream: int, urgency: int) -> None:
        """Set the urgency of a stream, from 0, which goes first, to 7 (RFC 9218 §4.1); without a call it is 3.

        Called only with the feature "urgency".
        """
        raise NotImplementedError

    def update_keys(self, now: float) -> bool:
        """Begin to send with the next keys; return False if that is not allowed yet (RFC 9001 §6.1).

        The host asks again then. Called only with the feature "key-update".
        """
        raise NotImplementedError

    def open_path(self, now: float, local: Address, remote: Address) -> None:
        """Open a further path as soon as the peer allows it; of a client, once the handshake is complete.

        Called only with the feature "multipath", as the next.
        """
        raise NotImplementedError

    def paths(self) -> Sequence[QuicPath]:
        """Return the paths that can or could carry data, in the order of opening, abandoned ones included."""
        raise NotImplementedError

    def packet_too_big(self, now: float, local: Address, remote: Address, mtu: int) -> None:
        """Take note that a datagram was larger than the MTU of a link (RFC 1191, RFC 8201); by default that is ignored.

        `local` and `remote` are the datagram's addresses, `mtu` is in bytes with the IP header. Anybody can forge such
        a report (RFC 9000 §14.2.1).
        """

    def unacknowledged(self) -> int | None:
        """Return stream data and ends of streams that are written and not acknowledged.

        Not 0 while there are any, in bytes or any other measure; None if the implementation does not tell.
        """
        return None

    def migrate(self, now: float, local: Address) -> None:
        """Send from another local address from now on; called only with the feature "migration"."""
        raise NotImplementedError

    def close(self, now: float) -> None:
        """Close the connection in order, without an error."""
        raise NotImplementedError

    def is_over(self) -> bool:
        """Return whether the connection has ended and nothing more will be sent."""
        raise NotImplementedError

    def stats(self) -> QuicStats:
        """Return counters, and the state of the sender; after the end what was counted until then."""
        return QuicStats()


_C = TypeVar("_C", bound=type[QuicStack])


def quic_stack(name: str) -> Callable[[_C], _C]:
    """Register the decorated class as `stack = "name"` of QUIC transports."""

    def decorate(class_: _C) -> _C:
        register(name, class_)
        return class_

    return decorate
