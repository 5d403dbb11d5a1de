"""What packets of QUIC show without their keys: addresses, types, connection IDs.

RFC 8999; RFC 9000 §17; RFC 9369 §3.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from gargalo import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Kind: TypeAlias = Literal["initial", "0-rtt", "handshake", "retry", "negotiation", "1-rtt"]

LONG: dict[int, tuple[Kind, Kind, Kind, Kind]] = {
    1: ("initial", "0-rtt", "handshake", "retry"),
    0x6B3343CF: ("retry", "initial", "0-rtt", "handshake"),
}
"""The types of long headers, by version."""
MOST_ID = 20
"""Bytes of a connection ID, at most."""

INTERFACE, PACKET = 1, 6
"""Blocks of pcapng."""
RAW_IP = 101
UDP = 17


class Address(NamedTuple):
    """Of a UDP socket."""

    ip: bytes
    port: int


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram of a capture."""

    time_s: float
    source: Address
    destination: Address
    payload: bytes


class Header(NamedTuple):
    """What is not encrypted of a packet's header."""

    kind: Kind
    destination: bytes
    """The connection ID that the receiver has chosen."""
    source: bytes
    """The sender's own; empty in short headers."""


class NotQuicError(ValueError):
    """A datagram is not one of QUIC."""


def datagrams(file: Path) -> Iterator[Datagram]:
    """Return the UDP datagrams over IPv4 of a capture that Gargalo has written, in their order.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a capture.

    """
    data = reading.data(file)
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12 or at + length > len(data):
            msg = f"{file}: the block at byte {at} is damaged"
            raise ValueError(msg)
        if kind == INTERFACE and struct.unpack_from("<H", data, at + 8)[0] != RAW_IP:
            msg = f"{file}: not a capture of IP packets"
            raise ValueError(msg)
        if kind == PACKET:
            _, high, low, captured = struct.unpack_from("<4I", data, at + 8)
            packet = data[at + 28 : at + 28 + captured]
            made = datagram((high << 32 | low) / 1e9, packet)
            if made is not None:
                yield made
        at += length


def datagram(time_s: float, packet: bytes) -> Datagram | None:
    """Return the UDP datagram in a packet of IPv4; None if there is none."""
    if len(packet) < 20 or packet[0] >> 4 != 4 or packet[9] != UDP:
        return None
    udp = 4 * (packet[0] & 15)
    if len(packet) < udp + 8:
        return None
    source, destination = struct.unpack_from(">HH", packet, udp)
    return Datagram(
        time_s,
        Address(packet[12:16], source),
        Address(packet[16:20], destination),
        packet[udp + 8 :],
    )


def headers(payload: bytes, id_length: int | None) -> list[Header]:
    """Return the headers of a datagram's packets.

    Args:
        payload: Of the datagram.
        id_length: Bytes of the receiver's connection IDs, which short headers do not contain. None: it has sent no long
            header yet.

    Raises:
        NotQuicError: It has no packet of a known version, or ends within one.

    """
    found: list[Header] = []
    at = 0
    try:
        while at < len(payload):
            header, at = packet(payload, at, id_length)
            # Packets of a datagram have one connection ID (RFC 9000 §12.2); other bytes are padding.
            if found and header.destination != found[0].destination:
                break
            found.append(header)
    except (IndexError, struct.error):
        msg = "it ends within a packet"
        raise NotQuicError(msg) from None
    except NotQuicError:
        if not found:
            raise
    return found


def packet(data: bytes, at: int, id_length: int | None) -> tuple[Header, int]:
    """Return the header of the packet at a place, and where the next packet is."""
    first = data[at]
    # The fixed bit says nothing: ends may agree to send it with any value (RFC 9287).
    if not first & 0x80:
        if id_length is None:
            msg = "a short header for an end that has sent no long one"
            raise NotQuicError(msg)
        return Header("1-rtt", part(data, at + 1, id_length), b""), len(data)
    (version,) = struct.unpack_from(">I", data, at + 1)
    at += 5
    destination, at = identifier(data, at)
    source, at = identifier(data, at)
    if version == 0:
        return Header("negotiation", destination, source), len(data)
    if version not in LONG:
        msg = f"a long header of version {version:#x}"
        raise NotQuicError(msg)
    kind = LONG[version][first >> 4 & 3]
    header = Header(kind, destination, source)
    if kind == "retry":
        return header, len(data)
    if kind == "initial":
        token, at = variable(data, at)
        at += token
    length, at = variable(data, at)
    part(data, at, length)
    return header, at + length


def identifier(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a connection ID with its length before it, and what is after it."""
    length = data[at]
    if length > MOST_ID:
        msg = f"a connection ID of {length} bytes"
        raise NotQuicError(msg)
    return part(data, at + 1, length), at + 1 + length


def part(data: bytes, at: int, length: int) -> bytes:
    """Return some bytes, which must be there."""
    if at + length > len(data):
        raise IndexError
    return data[at : at + length]


def variable(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer of variable length (RFC 9000 §16), and what is after it."""
    length = 1 << (data[at] >> 6)
    number = int.from_bytes(part(data, at, length), "big")
    return number & (1 << (8 * length - 2)) - 1, at + length


@dataclass(frozen=True)
class Move:
    """What packets show after the client's address has changed."""

    at_s: float
    """When the client first sent from the new address, since the start of the run."""
    id_length: int
    """Bytes of the server's connection IDs."""
    ids: int
    """Connection IDs of the server on 1-RTT packets from the new address."""
    reused: list[str]
    """Those of them that were on packets from the old address too, in hexadecimal."""
    answer_s: float | None
    """From then until the first 1-RTT packet from the server to the new address."""
    answer_reused: list[str]
    """Connection IDs of the client on packets to both addresses."""


@dataclass(frozen=True)
class Connection:
    """What the packets of a connection show."""

    retries: int
    """Retry packets."""
    retry_first: bool
    """The first packet of the server is one."""
    early: int
    """0-RTT packets of the client."""
    strange: int
    """Datagrams that are not QUIC's."""
    move: Move | None
    """None: the client had one address."""
    answered_bytes: int = 0
    """Payload of the server's datagrams."""

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> Connection:
        """Return what `dataclasses.asdict` has made fields of."""
        move = fields["move"]
        return cls(**{**fields, "move": None if move is None else Move(**move)})


@dataclass
class End:
    """What one end has sent so far."""

    id_length: int | None = None
    """Of its own connection IDs; unknown before its first long header."""
    kinds: list[Kind] = field(default_factory=list)
    """Types of its packets in their order."""
    used: dict[Address, dict[bytes, float]] = field(default_factory=dict)
    """When each of the peer's connection IDs was first on a 1-RTT packet, by the client's address."""


@dataclass
class Watched:
    """A connection whose packets are being looked at."""

    client: End = field(default_factory=End)
    server: End = field(default_factory=End)
    addresses: dict[Address, float] = field(default_factory=dict)
    """When the client first sent from each of its addresses."""
    strange: int = 0
    answered_bytes: int = 0

    def take(self, seen: Datagram, *, from_client: bool) -> None:
        """Look at a datagram."""
        sender, receiver = (self.client, self.server) if from_client else (self.server, self.client)
        address = seen.source if from_client else seen.destination
        if from_client:
            self.addresses.setdefault(address, seen.time_s)
        else:
            self.answered_bytes += len(seen.payload)
        try:
            found = headers(seen.payload, receiver.id_length)
        except NotQuicError:
            self.strange += 1
            return
        for header in found:
            sender.kinds.append(header.kind)
            if header.kind == "1-rtt":
                used = sender.used.setdefault(address, {})
                used.setdefault(header.destination, seen.time_s)
            elif header.kind != "retry":
                sender.id_length = len(header.source)

    def shown(self) -> Connection:
        """Return what has been seen."""
        server = self.server.kinds
        return Connection(
            retries=server.count("retry"),
            retry_first=server[:1] == ["retry"],
            early=self.client.kinds.count("0-rtt"),
            strange=self.strange,
            answered_bytes=self.answered_bytes,
            move=self.move(),
        )

    def move(self) -> Move | None:
        """Return what is known of the client's first change of its address."""
        if len(self.addresses) < 2:
            return None
        (old, _), (new, at_s), *_ = self.addresses.items()
        ids, answers = self.client.used.get(new, {}), self.server.used.get(new, {})
        first = min(answers.values(), default=None)
        return Move(
            at_s=at_s,
            id_length=self.server.id_length or 0,
            ids=len(ids),
            reused=both(ids, self.client.used.get(old, {})),
            answer_s=None if first is None else first - at_s,
            answer_reused=both(answers, self.server.used.get(old, {})),
        )


def both(some: Iterable[bytes], others: Iterable[bytes]) -> list[str]:
    """Return the connection IDs that are in both, in hexadecimal; empty ones cannot be distinguished."""
    return sorted(i.hex() for i in set(some) & set(others) if i)


def connections(seen: Iterable[Datagram]) -> dict[int, Connection]:
    """Return what the datagrams at the client's end of a link show, by the client's port.

    A client keeps its port when its address changes. The end that sends first is the client.
    """
    found: dict[int, Watched] = {}
    servers: set[Address] = set()
    for one in seen:
        from_client = one.source not in servers
        if from_client:
            servers.add(one.destination)
        port = (one.source if from_client else one.destination).port
        found.setdefault(port, Watched()).take(one, from_client=from_client)
    return {port: one.shown() for port, one in found.items()}
