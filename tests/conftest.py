"""What the tests share: the command, tiny scenarios."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from gargalo.cli.app import app
from gargalo.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gargalo.sweeps import Job

# What a shell starts in the background ignores SIGINT, and so would every command that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

TINY = """\
name     = "tiny"
seed     = 3
duration = "3s"

[topology.simple]
link = { rate = "5Mbit/s", delay = "10ms", queue = { droptail = "50 packets" }, loss = { independent = 0.001 } }

[[flows]]
from  = "client"
to    = "server"
label = "upload"
transport.tcp = { congestion = "cubic" }
workload.bulk = {}

[[flows]]
from  = "client"
to    = "server"
start = "500ms"
label = "file"
transport.tcp = { congestion = "reno" }
workload.bulk = { bytes = "200kB" }
"""

Gargalo = "Callable[..., subprocess.CompletedProcess[str]]"


# Runs in real time disturb each other: one worker does them all, one after the other.
REAL_TIME = {
    "test_lab",
    "test_lab_examples",
    "test_lab_flows",
    "test_watch",
    "test_wire",
    "test_userspace_bbr",
    "test_multipath_results",
    "test_try_wheel",
}


LONG = bool(os.environ.get("LONG"))
"""`make test LONG=1`: what is otherwise checked for some of many is checked for all."""
LESS_URGENT = 5
"""Niceness of tests that another worker's tests in real time must not wait for."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave the processors to the worker that runs in real time: it does so first, and mostly waits."""
    of_many = "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "nice")
    if of_many and item.path.stem not in REAL_TIME and (now := os.nice(0)) < LESS_URGENT:
        os.nice(LESS_URGENT - now)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group what must not run at the same time."""
    for item in items:
        if item.path.stem in REAL_TIME:
            item.add_marker(pytest.mark.xdist_group("real-time"))


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    """What a test makes known by a name is unknown to the next."""
    before = {kind: dict(classes) for kind, classes in registry._registered.items()}
    yield
    registry._registered.update(before)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A scenario of two flows and three virtual seconds."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def gargalo(tmp_path: Path) -> Gargalo:
    """The command, run in an empty directory."""

    def run(*args: object, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*args), cwd=cwd, capture_output=True, text=True, timeout=300, env=environment()
        )

    return run


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gargalo:
    """The command in this process, which has the libraries, in an empty directory; not for plug-ins, which stay."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> subprocess.CompletedProcess[str]:
        words = [str(a) for a in args]
        done = CliRunner().invoke(app, words, prog_name="gargalo", catch_exceptions=False)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return run


def of_each_value(jobs: Iterable[Job], within: str) -> list[Job]:
    """Return of the jobs of a plan those that have each value of each label in each group, `within` a label.

    Others combine the same values; with LONG=1 it is all jobs.
    """
    seen: set[tuple[object, ...]] = set()
    chosen = []
    for job in jobs:
        own = {(job.labels[within], *pair) for pair in job.labels.items()}
        if LONG or not own <= seen:
            seen |= own
            chosen.append(job)
    return chosen


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "gargalo", *map(str, args)]


def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "MPLBACKEND": "agg"}
