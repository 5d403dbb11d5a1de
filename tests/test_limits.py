"""Runs that would never end, never begin or take all memory: each ends, says why, and obeys meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import gargalo as package
import pytest
from conftest import LONG, environment

NOTHING_TAKES_TIME = """
duration = "10s"
topology.simple.link = {}
[[flows]]
from = "client"
to = "server"
transport.tcp = {}
"""

SHORT_MIX = """
duration = "10s"
topology.dumbbell = { pairs = 4, bottleneck = { rate = "10Mbit/s", delay = "5ms" } }
[[flows]]
from = "left*"
to = "right*"
stop = "STOP"
transport.tcp = {}
workload.mix.load = "50%"
"""

FINE = """
duration = "1000s"
topology.simple.link = { rate = "10Mbit/s", delay = "10ms" }
record.interval = "1us"
[[flows]]
from = "client"
to = "server"
transport.tcp = {}
"""

MANY = """
duration = "10s"
topology.simple.link = { rate = "10Mbit/s", delay = "10ms" }
[[flows]]
from = "client"
to = "server"
count = 10000
transport.quic = {}
"""


def test_a_network_in_which_nothing_takes_time_is_refused(gargalo, tmp_path):
    path = tmp_path / "zero.toml"
    path.write_text(NOTHING_TAKES_TIME)
    done = gargalo("run", path)
    assert done.returncode == 2, done.stderr
    for part in ("stands still at 0 s", "flow cubic", "over link", "a delay or a rate"):
        assert part in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["zero.toml"]


def test_a_transfer_arrives_at_once_where_nothing_takes_time():
    run = package.run(NOTHING_TAKES_TIME + 'workload.bulk.bytes = "10MB"\n')
    assert run.flows["completion_s"].to_list() == [0.0]


@pytest.mark.parametrize("stop", ["1ns", "1us", "700us"])
def test_time_does_not_run_backwards_in_a_short_mix(stop):
    # A flow whose phase lies behind the end used to send a packet and then stop in the past.
    run = package.run(SHORT_MIX.replace("STOP", stop))
    assert run.info["packets"] == 2, "the first pair of hosts, there and back"
    groups = run.summary["background"]["groups"]
    assert [g["flows"] for g in groups if "cbr" in g["label"]] == [1, 1]


def test_flows_are_made_with_progress_that_can_stop_it():
    seen = []

    def stop(p: package.Progress) -> bool:
        seen.append(p)
        return False

    run = package.run(MANY, set={"flows.0.count": 5000}, progress=stop)
    assert run.interrupted
    assert run.info["virtual_s"] == 0
    assert [p.phase for p in seen][:1] == ["building"]
    assert 0 <= seen[0].fraction < 1, "the first report may come before the first flow is made"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_is_obeyed_while_flows_are_made(tmp_path):
    code = "import gargalo, sys; print('go', flush=True); gargalo.run(sys.stdin.read())"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        process.stdin.write(MANY)
        process.stdin.close()
        assert process.stdout.readline() == "go\n"
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        # Generous: it obeys in a twentieth of a second.
        process.wait(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert "Interrupt" in process.stderr.read()


def test_more_samples_than_memory_are_refused_before_the_start(gargalo, tmp_path):
    path = tmp_path / "fine.toml"
    path.write_text(FINE)
    done = gargalo("run", path, "--memory-limit", "2GB")
    assert done.returncode == 2, done.stderr
    for part in (
        'record.interval = "1us"', "3000000000 rows", "the limit is 2GB", "--memory-limit",
    ):  # fmt: skip
        assert part in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["fine.toml"]
    with pytest.raises(package.ScenarioError, match="3000000000 rows"):
        package.run(FINE)


def test_a_run_that_grows_beyond_its_memory_ends_with_what_it_has(gargalo, tmp_path):
    path = tmp_path / "grows.toml"
    # What a transfer with an end will record is not known beforehand.
    path.write_text(FINE.replace("1us", "100us") + 'workload.bulk.bytes = "10GB"\n')
    done = gargalo("run", path, "--memory-limit", "60MB", "--output", "out", "--no-plots")
    assert done.returncode == 1, done.stderr
    assert "ended early: the run reached its memory limit of 60MB" in done.stderr
    run = package.load(tmp_path / "out")
    assert run.interrupted
    assert "memory limit" in run.ended_early
    assert 0 < run.info["virtual_s"] < 1000
    assert len(run.link_samples) > 1000


@pytest.mark.parametrize("limit", ["much", "0GB", "4"])
def test_a_limit_that_is_no_amount_is_refused(gargalo, tiny, limit):
    done = gargalo("run", tiny, "--memory-limit", limit)
    assert done.returncode == 2
    assert f"--memory-limit {limit}" in done.stderr
    assert "4GB" in done.stderr


def test_a_run_of_a_sweep_that_wants_too_much_fails_alone(tmp_path):
    from gargalo import sweeps

    jobs = sweeps.plan(FINE.replace("1000s", "1s"), {"record.interval": ["1us", "10ms"]})
    done = sweeps.execute(jobs, tmp_path / "s", workers=1, memory_limit="10MB")
    assert done.finished == 1
    [failure] = done.failures
    assert "the limit is 10MB" in failure.reason


CROWD = """
duration = "60s"
record.events = false
[topology.dumbbell]
pairs = 1
access = { rate = "10Gbit/s", delay = "1ms", queue = { droptail = "QUEUE packets" } }
bottleneck = { rate = "10Gbit/s", delay = "8ms" }
[[flows]]
from = "left0"
to = "right0"
transport.tcp = { congestion = "reno" }
workload.bulk = { bytes = "3kB" }
count = COUNT
"""
PEAK = """
import resource, sys, gargalo
run = gargalo.run(sys.argv[1])
print(run.flows["completion_s"].count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("flows", [20_000, *([100_000] if LONG else [])])
@pytest.mark.parametrize(("queue", "whole", "bound"), [(1000, 0.0, 4500), (400_000, 0.99, 12_000)])
def test_flows_that_start_at_once_cost_some_kilobytes_each(queue, whole, bound, flows):
    """With a short queue most SYNs are lost and most flows wait; with a long one all are connections at once."""

    def peak(count: int) -> tuple[int, int]:
        text = CROWD.replace("COUNT", str(count)).replace("QUEUE", str(queue))
        words = [sys.executable, "-c", PEAK, text]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment())
        completed, kilobytes = map(int, done.stdout.split())
        return completed, kilobytes * 1024

    completed, with_all = peak(flows)
    assert completed >= whole * flows
    assert (with_all - peak(1)[1]) / flows < bound
