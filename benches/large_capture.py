"""How fast a large capture is read, and in how much memory: writes one, reads it, and removes it.

    .venv/bin/python benches/large_capture.py --size 5GB
    .venv/bin/python benches/large_capture.py --size 300MB --quic

Of each packet the headers are kept, as `tcpdump -s 96` does: that is most packets for the size. There are transfers
over TCP of which each thousandth packet is lost and sent again, and a stream over UDP. With `--quic` it is the capture
of a simulated transfer over QUIC, with all that its packets carry and the keys that decrypt it.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CONNECTIONS = 4
PAYLOAD = 1448
ROUND = 100
"""Packets in flight of a connection."""
ROUNDS_AT_ONCE = 200
GAP_NS = 5_000
LOST_OF = 1_000
RECORD = np.dtype(
    [
        ("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("length", "<u4"),
        ("version", "u1"), ("tos", "u1"), ("total", ">u2"), ("ident", ">u2"), ("fragment", ">u2"),
        ("ttl", "u1"), ("protocol", "u1"), ("sum", ">u2"), ("from", ">u4"), ("to", ">u4"),
        ("sport", ">u2"), ("dport", ">u2"), ("seq", ">u4"), ("ack", ">u4"), ("offset", "u1"), ("flags", "u1"),
        ("window", ">u2"), ("tcp_sum", ">u2"), ("urgent", ">u2"),
    ]
)  # fmt: skip
"""A record of pcap with the headers of IP and TCP; a datagram has its own, and the rest is payload."""
HEADERS = RECORD.itemsize - 16
TCP, UDP = 6, 17
A, B = 0x0A000001, 0x0A000002


def packets(count: int) -> np.ndarray:
    """Return records without anything that differs between them."""
    made = np.zeros(count, RECORD)
    made["kept"], made["version"], made["ttl"], made["fragment"] = HEADERS, 0x45, 64, 0x4000
    made["protocol"], made["offset"], made["flags"], made["window"] = TCP, 0x50, 0x10, 60_000
    return made


def rounds(first: int, before: int) -> np.ndarray:
    """Return some rounds of all connections and of the stream, from one on, behind so many packets."""
    n = np.arange(first * ROUND, (first + ROUNDS_AT_ONCE) * ROUND, dtype=np.uint64)
    kinds = []
    for connection in range(CONNECTIONS):
        data, acks = packets(len(n)), packets(len(n) // 2)
        data["from"], data["to"], data["sport"], data["dport"] = A, B, 1_000 + connection, 80
        data["seq"], data["ack"] = (n * PAYLOAD).astype(np.uint32), 1
        acks["from"], acks["to"], acks["sport"], acks["dport"] = B, A, 80, 1_000 + connection
        # Of each second packet, a round later; not of a hole until it is filled, at the end of its round.
        arrived = n[1::2].astype(np.int64) - ROUND
        hole = arrived // LOST_OF * LOST_OF
        open_hole = (arrived - hole < ROUND) & (hole > 0)
        acked = np.maximum(np.where(open_hole, hole, arrived + 1), 0)
        acks["seq"], acks["ack"] = 1, (acked * PAYLOAD).astype(np.uint32)
        again = data[(n % LOST_OF == ROUND + 3) & (n > LOST_OF)].copy()
        again["seq"] -= (ROUND + 3) * PAYLOAD
        at = 2 * (CONNECTIONS * n + connection)
        of_acks = at[1::2] + 1
        of_again = at[(n % LOST_OF == ROUND + 3) & (n > LOST_OF)] + 1
        kinds += [(data, at, PAYLOAD), (acks, of_acks, 0), (again, of_again, PAYLOAD)]
    stream = packets(len(n))
    stream["protocol"], stream["from"], stream["to"], stream["sport"], stream["dport"] = (
        UDP,
        A,
        B,
        5_000,
        5_001,
    )
    stream["ident"], stream["ack"] = n & 0xFFFF, (n & 0xFFFFFFFF).astype(np.uint32)
    kinds.append((stream, 2 * CONNECTIONS * n + 1, 160 - 12))
    for made, _, payload in kinds:
        made["length"] = HEADERS + payload
        made["total"] = HEADERS + payload
    # The length of a datagram is where the sequence number of TCP is.
    stream["seq"] = (8 + 160) << 16
    order = np.argsort(np.concatenate([at for _, at, _ in kinds]), kind="stable")
    # `concatenate` would turn the bytes of numbers around.
    whole = np.empty(len(order), RECORD)
    filled = 0
    for made, _, _ in kinds:
        whole[filled : filled + len(made)] = made
        filled += len(made)
    whole = whole[order]
    ns = np.arange(before, before + len(whole), dtype=np.uint64) * GAP_NS
    whole["s"], whole["ns"] = 1_767_323_045 + ns // 1_000_000_000, ns % 1_000_000_000
    return whole


def write(file: Path, size: int) -> None:
    """Write a capture of this size."""
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101))
        first = 0
        while out.tell() < size:
            before = (out.tell() - 24) // RECORD.itemsize
            out.write(rounds(first, before).tobytes())
            first += ROUNDS_AT_ONCE


QUIC = """\
name = "quic"
record = { captures = ["link"], capture_ends = "from", capture_payload = true }
topology.simple.link = { rate = "300Mbit/s", delay = "10ms", loss = { independent = 0.001 } }
[[flows]]
from = "client"
to = "server"
transport.quic = { congestion = "bbr" }
workload.bulk = { bytes = "SIZE" }
"""


def simulated(folder: Path, size: int) -> Path:
    """Let a transfer of this size run, and return its capture."""
    import gargalo

    scenario = QUIC.replace("SIZE", f"{size}B")
    gargalo.run(scenario, set={"duration": "1h"}, output=folder / "run")
    return folder / "run" / "capture.pcapng"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="5GB", help="bytes, with GB or MB (default: 5GB)")
    parser.add_argument(
        "--directory", type=Path, help="where it is written (default: that of temporary files)"
    )
    parser.add_argument("--quic", action="store_true", help="packets of QUIC, to be decrypted")
    told = parser.parse_args()
    unit = {"GB": 10**9, "MB": 10**6}[told.size[-2:]]
    with tempfile.TemporaryDirectory(dir=told.directory) as folder:
        size = int(float(told.size[:-2]) * unit)
        if told.quic:
            file = simulated(Path(folder), size)
        else:
            file = Path(folder) / "large.pcap"
            write(file, size)
        begun = time.perf_counter()
        command = [sys.executable, "-m", "gargalo", "read", file, "--json"]
        reading = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert reading.stdout is not None
        facts = json.loads(reading.stdout.read())
        _, status, used = os.wait4(reading.pid, 0)
        took = time.perf_counter() - begun
        assert status == 0
        frames = facts["run"]["packets"]
        print(
            f"{file.stat().st_size / 1e9:.2f} GB, {frames / 1e6:.1f} million packets, {len(facts['flows'])} flows"
        )
        print(
            f"{took:.1f} s: {frames / took / 1e6:.2f} million packets a second, {used.ru_utime:.1f} s of one processor"
        )
        print(f"at most {used.ru_maxrss / 1e3:.0f} MB of memory")


if __name__ == "__main__":
    main()
