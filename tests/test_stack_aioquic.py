"""aioquic in scenarios, where `make stacks` has installed it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from gargalo.plugins import discovery
from stack_scenarios import LOSSY, QUIC, QUIET, connection, flow

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    "aioquic" not in discovery.installed(), reason="aioquic is not installed (make stacks)"
)

OWN = '"aioquic"'
CLIENT = '{ client = "aioquic", server = "noq" }'
SERVER = '{ client = "noq", server = "aioquic" }'


@pytest.mark.parametrize("stack", [OWN, CLIENT, SERVER])
@pytest.mark.parametrize("congestion", ["reno", "cubic"])
def test_transfers_complete_under_loss_and_reordering(stack: str, congestion: str) -> None:
    text = LOSSY.replace("STACK", stack)
    row, events = flow(text, **{"flows.0.transport.quic.congestion": congestion})
    assert row["delivered_bytes"] == 500_000
    assert row["lost_packets"] > 0
    assert "loss" in [kind for kind, _ in events]


@pytest.mark.parametrize("stack", [OWN, CLIENT, SERVER])
def test_early_data_arrives_after_half_a_round_trip(stack: str, tmp_path: Path) -> None:
    row, events = flow(QUIET.replace("STACK", stack), 1, **{f"{QUIC}.handshake": "0-rtt"})
    assert row["first_byte_s"] < 0.02
    told = [detail for kind, detail in events if kind == "zero-rtt"]
    assert "accepted" in told
    text = QUIET.replace("STACK", stack)
    assert connection(text, tmp_path / "early", **{f"{QUIC}.handshake": "0-rtt"}).early > 0
    assert ("keys" in told) == (stack != SERVER)  # noq does not tell of them.


@pytest.mark.parametrize("stack", [OWN, CLIENT, SERVER])
def test_a_retry_takes_one_round_trip_more(stack: str, tmp_path: Path) -> None:
    text = QUIET.replace("STACK", stack)
    usual, _ = flow(text, 1)
    retried, _ = flow(text, 1, **{f"{QUIC}.retry": True})
    assert connection(text, tmp_path / "retried", **{f"{QUIC}.retry": True}).retry_first
    assert connection(text, tmp_path / "usual").retries == 0
    more = retried["first_byte_s"] - usual["first_byte_s"]
    assert 0.03 < more < 0.035


@pytest.mark.parametrize("stack", [OWN, SERVER])
@pytest.mark.parametrize("change", ["address", "port"])
def test_a_client_migrates(stack: str, change: str, tmp_path: Path) -> None:
    moves = {f"{QUIC}.migration": f'{{ after = "100ms", change = "{change}" }}'}
    text = QUIET.replace("STACK", stack).replace("50kB", "300kB")
    row, events = flow(text, 1, **moves)
    assert row["delivered_bytes"] == 300_000
    # A client does not notice that only its port is another.
    assert ("path" in [kind for kind, _ in events]) == (change == "address")
    if change == "address":
        move = connection(text, tmp_path / "moved", **moves).move
        assert move is not None
        assert move.ids > 0
        assert not move.reused
        assert move.answer_s is not None


def test_two_processes_give_the_same_bytes_and_qlog_and_secrets_are_there(tmp_path: Path) -> None:
    scenario = tmp_path / "aioquic.toml"
    text = (
        LOSSY.replace("STACK", OWN)
        .replace("500kB", "100kB")
        .replace('"reno"', '"reno", streams = 5')
    )
    scenario.write_text(text + 'qlog = true\ncaptures = ["*"]\ncapture_payload = true\n')
    digests = []
    for seed in ("1", "2"):
        output = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "gargalo", "run", str(scenario), "--output", str(output)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        files = sorted(
            f for f in output.rglob("*") if f.suffix in (".parquet", ".sqlog", ".pcapng")
        )
        digests.append([(f.name, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files])
    assert digests[0] == digests[1]
    assert b"CLIENT_TRAFFIC_SECRET_0" in (output / "capture.pcapng").read_bytes()
    records = (output / "qlog" / "flow0-client.sqlog").read_text(encoding="utf-8").split("\x1e")
    events = [json.loads(record) for record in records[1:]]
    assert events[0]["trace"]["vantage_point"] == {"name": "aioquic", "type": "client"}
    times = [event["time"] for event in events[1:]]
    assert times == sorted(times)
    assert 0 <= times[-1] < 60_000
