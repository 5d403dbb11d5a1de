"""Recordings of files that other programs have written, of traffic between real kernels."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import gargalo as package
import pytest
from conftest import ROOT, command, environment
from lab_helpers import needs, needs_namespaces

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_namespaces, pytest.mark.xdist_group("real-time")]
BYTES = 500_000
RATE_BPS = 12e6
DELAY_S = 0.01
PORT = 5201
#: The client's own capture, and what it says of itself while it sends.
WORK = r"""
{capture} &
capture=$!
sleep 0.5
(while sleep 0.02; do date +%s.%N; ss -tin dst "$GARGALO_BASE"; done > ss.log) &
asking=$!
until iperf3 -c "$GARGALO_BASE" -n 500K --json > iperf3.json; do sleep 0.1; done
sleep 0.3
kill -INT $capture $asking
wait $capture
"""


def behind_a_link(folder: Path, capture: str) -> None:
    """Send through a link of `gargalo shell`, with a capture at the sender, and logs of the kernel and of the link."""
    words = [
        "shell", "--isolated", "--rate", "12Mbit/s", "--delay", "10ms", "--uplink-log", "up.log",
        "--outside", "iperf3 -s -1", "--", "sh", "-c", WORK.format(capture=capture),
    ]  # fmt: skip
    done = subprocess.run(
        command(*words),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (folder / "iperf3.json").exists(), done.stderr
    told = json.loads((folder / "iperf3.json").read_text())
    assert "error" not in told, told


def data_flow(run: package.Run) -> dict[str, Any]:
    """Return the flow that carries the data: iperf3 has another for its control."""
    return max(run.flows.to_dicts(), key=lambda row: row["delivered_bytes"] or 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of one transfer, captured by dumpcap if it is there."""
    for name in ("iperf3", "ss"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed: its files were not read")
    folder = tmp_path_factory.mktemp("programs")
    capture = "dumpcap -q -i any -w capture.pcapng" if shutil.which("dumpcap") else "sleep 60"
    behind_a_link(folder, capture)
    return folder


def test_a_log_of_ss_has_the_figures_of_the_kernel(files):
    run = package.read(files / "ss.log", interval_s=0.02)
    row = data_flow(run)
    assert row["congestion"] in ("cubic", "bbr", "reno")
    # From the first answer that shows it to the last; on a busy machine there are few.
    assert 0 < row["delivered_bytes"] <= BYTES + 65_536
    samples = run.flow_samples.filter(run.flow_samples["flow"] == row["id"])
    assert samples.height > 1
    assert samples["congestion_window_bytes"].min() >= 1_448
    assert 2 * DELAY_S <= row["rtt_min_s"] < 2 * DELAY_S + 0.2
    # With a longer interval there are fewer of the same.
    few = package.read(files / "ss.log", interval_s=0.2)
    assert few.flow_samples.height <= run.flow_samples.height
    assert data_flow(few)["delivered_bytes"] == row["delivered_bytes"]


def test_a_result_of_iperf3_is_what_it_says_itself(files):
    told = json.loads((files / "iperf3.json").read_text())["end"]["streams"][0]
    row = data_flow(package.read(files / "iperf3.json"))
    assert row["delivered_bytes"] == told["receiver"]["bytes"]
    assert row["retransmitted_packets"] == told["sender"]["retransmits"]
    assert math.isclose(row["goodput_bps"], told["receiver"]["bits_per_second"], rel_tol=1e-3)


def test_the_log_of_a_shell_is_its_link(files):
    run = package.read(files / "up.log")
    samples = run.link_samples
    assert samples["direction"].unique().to_list() == ["up"]
    assert [link.name for link in run.setup.links] == ["shell"]
    lines = [line.split() for line in (files / "up.log").read_text().splitlines()]
    left = [int(words[2]) for words in lines if words[1:2] == ["-"]]
    told = json.loads((files / "iperf3.json").read_text())["end"]["streams"][0]
    assert samples["sent_bytes"][-1] == sum(left) > told["receiver"]["bytes"]
    assert samples["dropped_packets"][-1] == sum(w[1:2] == ["+"] for w in lines) - len(left)
    # It was full while data was sent, and then empty.
    assert samples["utilization"].max() > 0.9
    assert samples["queue_packets"].max() > 3
    assert samples["queue_bytes"][-1] == 0
    assert run.warnings == []


def test_a_capture_and_the_kernels_log_agree(files):
    if not (files / "capture.pcapng").exists():
        pytest.skip("dumpcap is not installed: its capture was not read")
    agree(files, files / "capture.pcapng")


@needs("tcpdump", "iperf3", "ss")
def test_a_capture_of_tcpdump_is_read(tmp_path):
    behind_a_link(tmp_path, "tcpdump -q -i any -s 96 -w capture.pcap")
    agree(tmp_path, tmp_path / "capture.pcap")


def agree(folder: Path, capture: Path) -> None:
    """Compare a capture at the sender with what iperf3 and the kernel say."""
    run = package.read(capture)
    row = data_flow(run)
    (told,) = [f for f in run.info["recording"]["flows"] if f["id"] == row["id"]]
    own = json.loads((folder / "iperf3.json").read_text())["end"]["streams"][0]
    assert told["captured_at"] == "sender"
    assert row["transport"] == "tcp"
    # iperf3 says its name before the data, in 37 bytes. On a busy machine the receiver ends with a reset: what it has
    # taken of the last two segments was not acknowledged then.
    least = own["receiver"]["bytes"] - 2 * 1448
    assert least <= row["delivered_bytes"] <= own["sender"]["bytes"] + 37
    assert row["retransmitted_packets"] == own["sender"]["retransmits"]
    kernel = data_flow(package.read(folder / "ss.log", interval_s=0.02))
    # The kernel sees an acknowledgement later.
    assert row["rtt_min_s"] <= 1.1 * kernel["rtt_min_s"]
    assert row["goodput_bps"] < RATE_BPS
    assert run.info["recording"]["left_out"]["malformed"] == 0


def test_captures_of_the_lab_have_the_figures_of_its_flows(tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed: the example of the lab was not run")
    changes = {
        "record.captures": ["*"], "record.capture_ends": "both", "duration": "3s",
        "flows.0.workload.bulk.bytes": "2MB", "flows.1.workload.bulk.bytes": "2MB", "commands.1.start": "500ms",
    }  # fmt: skip
    out = tmp_path / "run"
    run = package.run(ROOT / "examples" / "lab-mixed.toml", set=changes, world="lab", output=out)
    recording = package.read(out / "capture.pcapng")
    found = {row["label"]: row for row in recording.flows.to_dicts()}
    read = sorted(
        (row for row in found.values() if row["delivered_bytes"] == 2_000_000),
        key=lambda row: row["from"],
    )
    own = sorted(run.flows.to_dicts(), key=lambda row: row["from"])
    assert len(read) == len(own) == 2, found
    for one, other in zip(own, read, strict=True):
        assert one["delivered_bytes"] == other["delivered_bytes"]
        for figure, within in (("sent_packets", 0.01), ("goodput_bps", 0.05)):
            close = math.isclose(one[figure], other[figure], rel_tol=within)
            assert close, (one["label"], figure, one[figure], other[figure])
        # A stack sees an acknowledgement after the capture does: on a busy machine, long after.
        assert 0.02 <= other["rtt_min_s"] <= 1.1 * one["rtt_min_s"]
    # What programs do there is in the capture, too: the page that curl has fetched.
    assert any(re.search(r":80( >|$)", label) for label in found), found
