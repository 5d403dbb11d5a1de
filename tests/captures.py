"""Captures read back: blocks of interfaces and packets of pcapng files, and fields of packets as tshark shows them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

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


def tshark(path: Path, shown: str, *fields: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """Return fields of the packets that a display filter shows; the test is skipped without tshark."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed: the capture was not read back")
    chosen = [argument for field in fields for argument in ("-e", field)]
    command = ["tshark", "-r", str(path), *options, "-Y", shown, "-T", "fields", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


CHECKSUMS = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
"""Options with which tshark verifies checksums."""

NEGATIVE_ZERO = "0xffff"
"""A TCP checksum that is 0, as Linux writes it: the same in ones' complement, and wrong for tshark (RFC 1624)."""
