"""Sweeps on a Dask cluster of real processes: a scheduler and two workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import gargalo
import pytest
from click.testing import CliRunner
from conftest import environment
from gargalo import sweeps
from gargalo.cli.app import app
from gargalo.sweeps import cluster as module
from gargalo.sweeps import work
from gargalo.sweeps.job import Task
from sweep_helpers import MINI, RATES, sweep_file
from test_sweep_workers import HALVING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


class Processes:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, workers: int, path: Sequence[Path] = ()) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.folder, self.path = folder, [str(p) for p in path]
        self.all: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.begin(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"
        )
        for _ in range(workers):
            self.worker()

    def worker(self, **env: str) -> subprocess.Popen[bytes]:
        more = ["--nthreads", 1, "--no-nanny", "--no-dashboard"]
        return self.begin("worker", self.address, *more, **env)

    def begin(self, *args: object, **env: str) -> subprocess.Popen[bytes]:
        # Workers see the package, but neither the tests nor the directory of the sweep.
        package = os.path.dirname(os.path.dirname(gargalo.__file__))  # noqa: PTH120
        away = self.folder / f"away{len(self.all)}"
        away.mkdir()
        with (away / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *map(str, args)],
                cwd=away,
                env={**environment(), "PYTHONPATH": os.pathsep.join([*self.path, package]), **env},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.all.append(process)
        return process

    def end(self) -> None:
        for process in self.all:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    processes = Processes(tmp_path_factory.mktemp("dask"), 2)
    yield processes.address
    processes.end()


def test_the_same_results_as_here(dask, tmp_path):
    def measure(run):
        # Not importable there: travels by value.
        return {"worker": float(os.getpid()), "megabytes": run.flows["delivered_bytes"].sum() / 1e6}

    there = gargalo.sweep(
        MINI, RATES, repeat=5, store=tmp_path / "a", cluster=dask, measure=measure, keep=["flows"]
    )
    here = gargalo.sweep(
        MINI, RATES, repeat=5, store=tmp_path / "b", workers=1, measure=measure, keep=["flows"]
    )
    assert (there.done, list(there.failures)) == (10, [])
    assert there.frame()["worker"].n_unique() == 2, "both workers had a share"
    different = ["wall_s", "worker"]
    assert there.frame().drop(different).equals(here.frame().drop(different))
    assert there.table("flows").collect().equals(here.table("flows").collect())


def test_each_of_several_runs_on_a_machine_has_its_share_of_the_memory(monkeypatch):
    threads = {"a": ("one", 3), "b": ("one", 2), "c": ("other", 4)}
    workers = {k: {"host": host, "nthreads": n} for k, (host, n) in threads.items()}
    assert module._threads(workers) == (9, 5)
    given = []
    monkeypatch.setattr(module._core, "memory_limit", lambda: 1000)
    monkeypatch.setattr(work, "perform", lambda _, ready: given.append(ready.memory_limit))
    task = Task("0", MINI, None, (), 1, "sim")
    for limit, beside in [(None, 5), (77, 5), (None, 1)]:
        module.remote(module.Parcel(task, (), beside), work.Setup(memory_limit=limit).dumps())
    assert given == [200, 77, 1000]


def test_command_with_a_plugin_and_a_trace(dask, gargalo, tmp_path):
    (tmp_path / "halving.py").write_text(HALVING)
    (tmp_path / "up.trace").write_text("".join(f"{i}\n" for i in range(5, 1000, 5)))
    traced = MINI.replace('rate = "2Mbit/s"', 'rate = { trace = "up.trace" }')
    text = 'repeat = 3\n[axes]\n"flows.*.transport.tcp.congestion" = ["reno", "halving"]\n'
    path = sweep_file(tmp_path, text, traced)
    options = ("--plugin", "halving.py", "--json")
    done = gargalo("sweep", path, "--cluster", dask, "--store", "there", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"]["done"] == 6
    here = gargalo("sweep", path, "--store", "here", *options)
    assert here.returncode == 0, here.stderr
    frames = [sweeps.load(tmp_path / s).frame().drop("wall_s") for s in ("there", "here")]
    assert frames[0].equals(frames[1])


def test_failures_on_a_cluster(dask, tmp_path):
    def measure(run):
        if run.setup.links[0].up.rate.constant_bps == 1_000_000:
            msg = "no good"
            raise ValueError(msg)
        return {}

    done = gargalo.sweep(MINI, RATES, repeat=2, store=tmp_path / "a", cluster=dask, measure=measure)
    assert done.done == 2
    assert all("ValueError: no good" in f.reason for f in done.failures)
    assert len(done.failures) == 2


@pytest.mark.parametrize(
    ("number", "connect_s", "lost_s"),
    # A scheduler that is frozen; one that is gone for so long that the client hangs up by itself.
    [(signal.SIGSTOP, 10.0, 2.0), (signal.SIGKILL, 2.0, 30.0)],
)
def test_a_lost_cluster(tmp_path, monkeypatch, capfd, number, connect_s, lost_s):
    processes, struck = Processes(tmp_path, 1), []
    try:

        def measure(_run):
            time.sleep(0.05)
            return {}

        def watch(p: sweeps.SweepProgress) -> None:
            if p.done >= 5 and not struck:
                struck.append(p.done)
                os.killpg(processes.scheduler.pid, number)

        def begin() -> sweeps.Sweep:
            return gargalo.sweep(
                MINI, repeat=60, store=tmp_path / "s", cluster=processes.address,
                measure=measure, progress=watch, name="lost",
            )  # fmt: skip

        monkeypatch.setattr(module, "LOST_S", lost_s)
        monkeypatch.setattr(module, "_connect", connected(module._connect, connect_s))
        with pytest.raises(
            sweeps.ClusterError, match=r"lost its scheduler; finished runs are kept"
        ):
            begin()
        assert 5 <= len(sweeps.load(tmp_path / "s").frame()) < 60
        assert "Traceback" not in capfd.readouterr().err
    finally:
        processes.end()


def connected(connect: Callable[[str], object], timeout_s: float) -> Callable[[str], object]:
    """Give a client less time to come back than to connect: processes start slowly."""

    def patient(address: str) -> object:
        client: Any = connect(address)
        client._timeout = timeout_s
        return client

    return patient


def test_dead_addresses(gargalo, tmp_path, monkeypatch):
    path = sweep_file(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "CONNECT_S", 2.0)
    monkeypatch.setattr(sys, "path", list(sys.path))
    done = CliRunner().invoke(app, ["sweep", str(path), "--cluster", "tcp://127.0.0.1:9"])
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "error: no Dask scheduler answers at tcp://127.0.0.1:9 within 2 s"
    )
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "sweeps").exists()
    wrong = gargalo("sweep", path, "--cluster", "telnet://x")
    assert wrong.returncode == 2
    assert "not an address of a Dask scheduler" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1
    both = gargalo("sweep", path, "--cluster", "tcp://127.0.0.1:9", "--workers", 2)
    assert both.returncode == 2
    lonely = Processes(tmp_path, 0)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(
                    ("127.0.0.1", int(lonely.address.rpartition(":")[2]))
                ).close()
                break
            except OSError:
                time.sleep(0.1)
        with pytest.raises(sweeps.NoClusterError, match="has no workers"):
            sweeps.sweep(MINI, store=tmp_path / "s", cluster=lonely.address)
    finally:
        lonely.end()
    assert not (tmp_path / "s").exists()
