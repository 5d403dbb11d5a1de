"""`gargalo run`: output, files, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import gargalo
import polars as pl
from captures import tshark
from conftest import TINY, command, environment
from gargalo import _core

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ["flows", "flow_samples", "link_samples", "events"]


def test_json_is_one_object_and_nothing_else(gargalo, tiny):
    done = gargalo("run", tiny, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result) >= {"summary", "flows", "links", "run"}
    assert [f["id"] for f in result["flows"]] == [0, 1]
    assert [f["label"] for f in result["flows"]] == ["upload", "file"]
    for flow in result["flows"]:
        assert {"goodput_bps", "completion_s", "delivered_bytes"} <= set(flow)
    upload, file = result["flows"]
    assert upload["completion_s"] is None
    assert file["delivered_bytes"] == 200_000
    assert 0 < file["completion_s"] < 2.5
    busiest = max(link["utilization"] for link in result["links"])
    assert 0.5 < busiest <= 1
    assert all({"name", "utilization", "dropped_packets"} <= set(link) for link in result["links"])
    assert {"seed", "packets", "events", "wall_s"} <= set(result["run"])
    assert result["run"]["seed"] == 3
    assert not (tiny.parent / "runs").exists(), "--json alone writes no files"


def test_results_directory(gargalo, tiny):
    done = gargalo("run", tiny)
    assert done.returncode == 0, done.stderr
    assert "upload" in done.stdout
    assert "Mbit/s" in done.stdout
    run = tiny.parent / "runs" / "tiny-3"
    names = {p.name for p in run.iterdir()}
    assert {"run.json", "summary.json", *(f"{t}.parquet" for t in TABLES)} <= names
    assert {"congestion_window.png", "goodput.svg", "rtt.png", "queue.svg"} <= names
    facts = json.loads((run / "run.json").read_text())
    assert facts["seed"] == 3
    assert facts["version"] == _core.__engine__
    assert facts["scenario"]["name"] == "tiny"
    flows = pl.read_parquet(run / "flows.parquet")
    assert flows["label"].to_list() == ["upload", "file"]
    samples = pl.read_parquet(run / "flow_samples.parquet")
    assert samples["congestion_window_bytes"].max() > 10_000


def test_existing_directories(gargalo, tiny, tmp_path):
    for expected in ["tiny-3", "tiny-3-2", "tiny-3-3"]:
        assert gargalo("run", tiny, "--no-plots", "--quiet").returncode == 0
        assert (tmp_path / "runs" / expected / "run.json").exists()
    refused = gargalo("run", tiny, "--no-plots", "--output", "runs/tiny-3")
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    again = gargalo(
        "run", tiny, "--no-plots", "--overwrite", "--seed", 4, "--output", "runs/tiny-3"
    )
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "runs/tiny-3/run.json").read_text())["seed"] == 4
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("precious")
    assert gargalo("run", tiny, "--overwrite", "--output", mine).returncode == 2
    assert (mine / "thesis.tex").read_text() == "precious"


def test_quiet_and_no_plots(gargalo, tiny):
    done = gargalo("run", tiny, "--quiet", "--no-plots", "--output", "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert not list((tiny.parent / "out").glob("*.png"))


def test_settings_and_seed_change_the_run(gargalo, tiny):
    plain = json.loads(gargalo("run", tiny, "--json").stdout)
    slow = gargalo("run", tiny, "--json", "--set", "topology.simple.link.rate=1Mbit/s")
    assert slow.returncode == 0, slow.stderr
    slow = json.loads(slow.stdout)
    assert slow["flows"][0]["goodput_bps"] < plain["flows"][0]["goodput_bps"] / 2
    other = json.loads(gargalo("run", tiny, "--json", "--seed", 99).stdout)
    assert other["run"]["seed"] == 99


def digests(directory: Path) -> dict[str, bytes]:
    # The wall time is in run.json, and so its checksum in the manifest.
    own = ("run.json", "manifest.json")
    return {p.name: p.read_bytes() for p in directory.iterdir() if p.name not in own}


def test_runs_repeat_byte_for_byte(tiny, tmp_path):
    # One process after another, then two at once: neither order nor company matters.
    def start(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command("run", tiny, "--quiet", "--no-plots", "--output", tmp_path / name),
            env=environment(),
        )

    assert start("a").wait(300) == 0
    both = [start("b"), start("c")]
    assert [p.wait(300) for p in both] == [0, 0]
    first = digests(tmp_path / "a")
    assert {f"{t}.parquet" for t in TABLES} <= set(first)
    assert digests(tmp_path / "b") == first
    assert digests(tmp_path / "c") == first


LONG = TINY.replace('"3s"', '"100000s"').replace("5Mbit/s", "100Mbit/s")


def test_interrupt_keeps_what_was_done(tmp_path):
    scenario = tmp_path / "long.toml"
    scenario.write_text(
        LONG.replace("workload.bulk = {}", "workload.bulk = {}\n", 1)
        + '\n[record]\ninterval = "10s"\n'
    )
    process = subprocess.Popen(
        command("run", scenario, "--output", "out", "--no-plots"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".out.*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["interrupted"] is True
    assert any("interrupted" in w for w in facts["warnings"])
    flows = pl.read_parquet(tmp_path / "out" / "flows.parquet")
    assert flows["delivered_bytes"][0] > 0
    assert not list(tmp_path.glob(".out.*"))


def test_capture(gargalo, tiny, tmp_path):
    done = gargalo(
        "run", tiny, "--no-plots", "--capture", "link", "--output", "out", "--set", "duration=1s"
    )
    assert done.returncode == 0, done.stderr
    captures = list((tmp_path / "out").glob("*.pcapng"))
    assert captures
    assert captures[0].read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    first, *_ = tshark(captures[0], "tcp", "tcp.flags.syn")
    assert first[0] in ("1", "True")


def test_version_and_help(gargalo):
    import gargalo as package

    assert gargalo("--version").stdout == f"gargalo {package.__version__}\n"
    help_text = gargalo("run", "--help")
    assert help_text.returncode == 0
    assert "--set" in help_text.stdout


def test_closed_pipes_are_no_failure():
    shell = " ".join(f"'{a}'" for a in command("list", "congestion")) + " | true"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, env=environment())
    assert "Traceback" not in done.stderr


def test_package_names_are_exported():
    assert all(hasattr(gargalo, name) for name in gargalo.__all__)
    assert os.path.basename(gargalo.__file__) == "__init__.py"  # noqa: PTH119
