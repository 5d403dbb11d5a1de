"""QUIC from the command line: captures that decrypt, traces, determinism across processes, bad input."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import gargalo
import polars as pl
import pytest
from captures import tshark
from click.testing import CliRunner
from gargalo.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """
name     = "page"
duration = "30s"
record   = { captures = ["link"], qlog = true }

[topology.simple]
link = { rate = "10Mbit/s", delay = "25ms", loss = { independent = 0.005 } }

[[flows]]
from = "client"
to   = "server"
transport.quic   = { congestion = "cubic" }
workload.request = { objects = 5, size = "100kB", order = "multiplexed" }

[[flows]]
from  = "client"
to    = "server"
start = "5s"
transport.quic   = { congestion = "bbr", handshake = "0-rtt" }
workload.request = { objects = 1, size = "10kB" }
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.toml"
    path.write_text(PAGE, encoding="utf-8")
    return path


# The command writes it once, in one worker.
of_out = pytest.mark.xdist_group("quic")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command writes of the page."""
    place = tmp_path_factory.mktemp("quic")
    (place / "page.toml").write_text(PAGE, encoding="utf-8")
    words = ["run", str(place / "page.toml"), "--output", str(place / "out")]
    done = CliRunner().invoke(app, words, prog_name="gargalo", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return place / "out"


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of every file with packets, keys or events."""
    files = [*folder.glob("*.pcapng"), *folder.glob("*.log"), *folder.glob("qlog/*.sqlog")]
    files += [*folder.glob("*.parquet")]
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(files)}


def test_the_same_bits_in_every_process(gargalo, page, tmp_path):
    found = []
    for name in ("one", "two"):
        done = gargalo("run", page, "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
        found.append(digests(tmp_path / name))
    assert found[0] == found[1]
    assert {"capture.pcapng", "keys.log", "flow0-client.sqlog", "flow1-server.sqlog"} <= set(
        found[0]
    )
    done = gargalo("run", page, "--output", tmp_path / "three", "--seed", "9")
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "three")["capture.pcapng"] != found[0]["capture.pcapng"]


@of_out
def test_tshark_decrypts_what_was_captured(out):
    # Whole datagrams at the client's end, though other packets are cut behind their headers.
    capture = out / "capture.pcapng"

    def streams_of(*options: str) -> list[list[str]]:
        return tshark(capture, "quic.stream_data", "quic.stream.stream_id", options=options)

    # The secrets are in the capture; a key log beside it does as well.
    inside = streams_of()
    assert len(inside) > 100
    streams = {s for (ids,) in inside for s in ids.split(",") if s}
    assert {"0", "4", "8", "12", "16"} <= streams
    beside = streams_of("-o", f"tls.keylog_file:{out / 'keys.log'}")
    assert beside == inside
    assert tshark(capture, "_ws.malformed || quic.decryption_failed", "frame.number") == []
    # The second connection's request left before the handshake was complete.
    assert tshark(capture, "quic.long.packet_type == 1", "frame.number")


@of_out
def test_traces_are_qlog(out):
    for end, role in (("client", "client"), ("server", "server")):
        text = (out / "qlog" / f"flow0-{end}.sqlog").read_text(encoding="utf-8")
        # JSON text sequences (RFC 7464): a record separator before each, a newline after.
        records = [json.loads(r) for r in text.split("\x1e") if r.strip()]
        header, events = records[0], records[1:]
        # The newest version that qvis opens.
        assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
        assert header["trace"]["vantage_point"]["type"] == role
        names = {e["name"] for e in events}
        assert {"transport:packet_sent", "transport:packet_received"} <= names
        assert "recovery:metrics_updated" in names
        times = [e["time"] for e in events]
        assert times == sorted(times)
        assert all(0 <= t < 30_000 for t in times)


@of_out
def test_tables_are_those_of_tcp(out):
    flows = pl.read_parquet(out / "flows.parquet")
    assert flows["transport"].to_list() == ["quic", "quic"]
    assert flows["congestion"].to_list() == ["cubic", "bbr"]
    assert flows["delivered_bytes"].to_list() == [500_000, 10_000]
    assert flows["rtt_min_s"].min() > 0.05
    events = pl.read_parquet(out / "events.parquet")
    assert {"handshake", "loss"} <= set(events["kind"].to_list())
    samples = pl.read_parquet(out / "flow_samples.parquet")
    assert samples["congestion_window_bytes"].min() > 0


def test_a_congestion_control_in_python_runs_under_quic():
    class Halving(gargalo.WindowBased):
        """Reno."""

        def increase(self, acked, ack, path):
            self.grow(path.mss * acked / self.cwnd())

        def decrease(self, event, path):
            return self.cwnd() / 2

    link = {"rate": "10Mbit/s", "delay": "20ms", "queue": {"droptail": "1BDP"}}
    run = gargalo.run(
        {
            "duration": "5s",
            "topology": {"simple": {"link": link}},
            "flows": [
                {
                    "from": "client",
                    "to": "server",
                    "transport": {"quic": {"congestion": "halving"}},
                    "workload": {"bulk": {}},
                }
            ],
        },
        controllers={"halving": Halving},
    )
    assert run.flows["congestion"].to_list() == ["halving"]
    assert run.flows["goodput_bps"][0] > 5e6


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('congestion = "cubic"', 'congestion = "cubik"', "cubic"),
        ('congestion = "cubic"', "speed = 3", 'no key "speed"'),
        ('start = "5s"', 'start = "0s"', "0-RTT without an earlier connection"),
        (
            'congestion = "cubic"',
            'datagram_size = "1480B", mtu_discovery = false',
            "leaves 1472",
        ),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(inside, page, tmp_path, old, new, told):
    page.write_text(PAGE.replace(old, new, 1), encoding="utf-8")
    done = inside("run", page, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "out").exists()


def test_traces_need_a_place(inside, page):
    page.write_text(PAGE.replace('captures = ["link"], ', ""), encoding="utf-8")
    done = inside("run", page, "--json")
    assert done.returncode == 2
    assert "qlog traces were asked for, but no output directory" in done.stderr


def test_a_retry_takes_a_round_trip_unless_the_client_has_a_token():
    flow = """
        [[flows]]
        from = "client"
        to = "server"
        start = "%s"
        transport.quic = { congestion = "cubic", handshake = "%s", retry = %s }
        workload.request = { objects = 1, size = "10kB" }
        """
    network = """
        name = "retry"
        duration = "5s"
        [topology.simple]
        link = { rate = "1Gbit/s", delay = "20ms" }
        """
    with_retry, without = (
        gargalo.run(network + flow % ("0s", "1-rtt", retry) + flow % ("2s", "0-rtt", retry)).flows
        for retry in ("true", "false")
    )
    assert without["handshake_s"].to_list() == pytest.approx([0.04, 0], abs=2e-3)
    # An address token of the first connection (RFC 9000 §8.1.3) spares the second the Retry.
    assert with_retry["handshake_s"].to_list() == pytest.approx([0.08, 0], abs=2e-3)
    assert with_retry["completion_s"].null_count() == 0
