"""Captures: one end and headers unless more is asked for, and nothing in them that did not happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gargalo as package
import pytest
from captures import HEADERS, blocks, tshark

if TYPE_CHECKING:
    from pathlib import Path

# Nothing is lost: the receiver's window fits into the queue.
CLEAN = """\
name     = "clean"
duration = "3s"

[topology.simple]
link = { rate = "10Mbit/s", delay = "10ms", queue = { droptail = "500 packets" } }

[[flows]]
from = "client"
to   = "server"
transport.tcp = { receive_buffer = "256kB" }

[[flows]]
from = "client"
to   = "server"
transport.udp = {}
workload.cbr = { rate = "500kbit/s", packet_size = "1000B" }
"""
PER_PACKET = 32 + HEADERS
"""Most bytes in the file for a packet whose headers are kept."""


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "clean.toml"
    path.write_text(CLEAN)
    return path


def capture(inside, scenario: Path, out: Path, *more: object) -> Path:
    done = inside(
        "run", scenario, "--no-plots", "--quiet", "--capture", "link", "--output", out, *more
    )
    assert done.returncode == 0, done.stderr
    return out / "capture.pcapng"


def test_how_to_capture_without_a_link_to_capture(inside, clean):
    for option in (["--capture-ends", "both"], ["--capture-payload"]):
        done = inside("run", clean, "--no-plots", *option)
        assert done.returncode == 2, done.stderr
        assert f"{option[0]} says how to capture" in done.stderr
        assert "add --capture LINK; links: link" in done.stderr
    # The scenario may name the links.
    done = inside(
        "run",
        clean,
        "--no-plots",
        "--quiet",
        "--capture-payload",
        "--set",
        'record.captures=["link"]',
    )
    assert done.returncode == 0, done.stderr


def test_headers_of_one_end_by_default(inside, clean, tmp_path):
    one = capture(inside, clean, tmp_path / "one")
    interfaces, packets = blocks(one)
    assert interfaces == 1
    assert len(packets) > 2000
    assert {p.original for p in packets} >= {1500, 1028, 52}
    assert max(p.captured for p in packets) <= HEADERS
    assert one.stat().st_size < 1000 + len(packets) * PER_PACKET
    # Each packet once: what came to one direction of the link, and what arrived from the other.
    run = package.load(tmp_path / "one")
    up, down = run.links
    inside = up["offered_packets"] + down["offered_packets"] - len(packets)
    assert 0 <= inside <= 10


def test_the_other_end_and_payload_are_options(inside, clean, tmp_path):
    one = blocks(capture(inside, clean, tmp_path / "one"))[1]
    interfaces, both = blocks(
        capture(inside, clean, tmp_path / "both", "--capture-ends", "both", "--capture-payload")
    )
    assert interfaces == 2
    assert all(p.captured == p.original for p in both)
    sides = [[p.original for p in both if p.interface == i] for i in range(2)]
    assert len(sides[0]) == len(one)
    other = blocks(capture(inside, clean, tmp_path / "to", "--set", "record.capture_ends=to"))
    assert other[0] == 1
    assert [p.original for p in other[1]] == sides[1]


def test_tshark_sees_no_repetition_where_nothing_is_repeated(inside, clean, tmp_path):
    path = capture(inside, clean, tmp_path / "out")
    run = package.load(tmp_path / "out")
    assert run.flows["retransmitted_packets"].to_list() == [0, 0]

    def frames(shown: str) -> list[str]:
        return [length for (length,) in tshark(path, shown, "tcp.len")]

    # It knows the true lengths though there is no payload.
    assert sum(map(int, frames("tcp"))) >= run.flows["delivered_bytes"][0] > 2_000_000
    for phantom in (
        "retransmission",
        "out_of_order",
        "lost_segment",
        "duplicate_ack",
        "ack_lost_segment",
    ):
        assert frames(f"tcp.analysis.{phantom}") == [], phantom
    assert frames("_ws.malformed") == []
