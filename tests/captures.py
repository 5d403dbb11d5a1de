"""Reads pcapng files as far as tests need it: blocks of interfaces and of packets."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = 120
"""Most bytes of IPv4 and TCP headers with all options."""


@dataclass(frozen=True)
class Packet:
    """A captured packet."""

    interface: int
    captured: int
    original: int


def blocks(path: Path) -> tuple[int, list[Packet]]:
    """Return how many interfaces a capture has, and its packets."""
    data, at = path.read_bytes(), 0
    interfaces, packets = 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        interfaces += kind == 1
        if kind == 6:
            interface, _, _, captured, original = struct.unpack_from("<5I", data, at + 8)
            packets.append(Packet(interface, captured, original))
        at += length
    return interfaces, packets
