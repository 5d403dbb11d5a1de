"""Worker processes: crashes, failures, memory, interrupts, controllers written in Python."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gargalo
import polars as pl
import psutil
import pytest
import sweep_helpers
from conftest import command, environment
from gargalo import sweeps
from gargalo.sweeps import progress
from gargalo.sweeps.events import Done
from gargalo.sweeps.local import LocalPool
from gargalo.sweeps.work import reason_of
from rich.console import Console
from sweep_helpers import MINI, RATES, sweep_file

TESTS = Path(__file__).parent

HALVING = """\
import gargalo

@gargalo.congestion("halving")
class Halving(gargalo.Controller):
    def __init__(self, init, share=0.5):
        self.window, self.share = float(init.initial_window), share

    def on_ack(self, ack, path):
        self.window += path.mss * ack.bytes / self.window

    def on_congestion(self, event, path):
        self.window = max(self.window * self.share, path.mss)

    def cwnd(self):
        return self.window
"""


def test_a_crashed_worker_loses_its_run_alone_which_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GARGALO_TEST_FLAG", str(tmp_path / "died"))
    done = gargalo.sweep(
        MINI, RATES, repeat=5, store=tmp_path / "s", measure=sweep_helpers.die_once, workers=2
    )
    assert (tmp_path / "died").exists()
    assert done.done == 10
    assert list(done.failures) == []
    assert len(done.frame()) == 10


def test_a_run_that_always_crashes_is_given_up_and_reported(tmp_path):
    done = gargalo.sweep(
        MINI, RATES, repeat=3, store=tmp_path / "s", measure=sweep_helpers.die_always, workers=2
    )
    assert done.done == 3
    assert done.frame()["rate"].to_list() == ["2Mbit/s"] * 3
    slow = done.plan.filter(pl.col("rate") == "1Mbit/s")["run"].to_list()
    assert {f.run for f in done.failures} == set(slow)
    assert all(f.attempts == 2 and "SIGKILL" in f.reason for f in done.failures)


def test_failures_are_reported_and_the_other_runs_continue(tmp_path):
    path = sweep_file(
        tmp_path,
        'measure = "sweep_helpers:fail"\nrepeat = 2\n'
        '[axes]\ntopology.simple.link.rate = ["1Mbit/s", "2Mbit/s"]\n',
    )
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        command("sweep", path, "--json"), cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert facts["runs"] == {"planned": 4, "done": 2, "reused": 0, "failed": 2}
    assert "rate = 1Mbit/s, repeat = 0: ValueError: no good" in done.stderr
    assert "sweep_helpers.py:" in done.stderr, "the place in the user's code"
    assert len(sweeps.load(tmp_path / "sweeps" / "test").frame()) == 2


def test_workers_that_cannot_work(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(sweeps.WorkersError, match=r"die as they start.*exit code 1"):
        gargalo.sweep(MINI, store=tmp_path / "s", workers=1)


def test_memory_stays_flat_over_a_thousand_runs(tmp_path, monkeypatch):
    # Runs are counted as they are written: half a second of them would be too many between two looks.
    monkeypatch.setattr("gargalo.sweeps.running.COMMIT_S", 0.1)
    jobs = sweeps.plan(MINI, {"duration": ["100ms", "200ms"]}, repeat=500)
    me = psutil.Process()
    samples: list[tuple[int, int, int]] = []

    def watch(p: sweeps.SweepProgress) -> None:
        # After the last run files are merged, once, in memory that comes back.
        if p.done == p.total or (samples and p.done - samples[-1][0] < 50):
            return
        workers = [c.memory_info().rss for c in me.children() if c.is_running()]
        samples.append((p.done, me.memory_info().rss, max(workers, default=0)))

    done = sweeps.execute(jobs, tmp_path / "s", keep=["flows"], workers=2, progress=watch)
    assert len(done.frame()) == 1000
    early = [s for s in samples if 100 <= s[0] <= 300]
    late = [s for s in samples if s[0] >= 700]
    assert early
    assert late
    mib = 1 << 20
    for index, limit in ((1, 40), (2, 60)):
        growth = max(s[index] for s in late) - max(s[index] for s in early)
        assert growth < limit * mib, f"{growth / mib:.0f} MiB; {samples}"


def test_workers_are_replaced_when_they_grow(tmp_path):
    store = sweeps.Store.create(tmp_path / "s")
    jobs = sweeps.plan(MINI, repeat=6)
    identifier = sweeps.job.Identifier()
    setup = sweeps.work.Setup().dumps()
    pool = LocalPool(setup, store.path, 1, most_runs=2)
    seen, done = set(), 0
    try:
        for job in jobs:
            pool.start(identifier.task(job))
            while not (news := [e for e in pool.poll(1) if isinstance(e, Done)]):
                seen.update(w.process.pid for w in pool._workers)
            store.commit_all({e.run: e.tables for e in news})
            done += 1
    finally:
        pool.close()
    assert (done, len(seen)) == (6, 3)
    assert len(store.ids()) == 6


def wait_for_runs(store: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (store / "store.json").is_file() and len(sweeps.Store(store).ids("runs")) >= count:
            return
        time.sleep(0.02)
    pytest.fail("the sweep does not begin")


def slow_sweep(tmp_path: Path) -> subprocess.Popen[str]:
    path = sweep_file(tmp_path, 'repeat = 400\nmeasure = "sweep_helpers:slowly"\n')
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.Popen(
        command("sweep", path, "--workers", 2),
        cwd=tmp_path,
        env=env,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_interrupt_keeps_finished_runs(tmp_path):
    sweep = slow_sweep(tmp_path)
    store = tmp_path / "sweeps" / "test"
    wait_for_runs(store, 5)
    os.killpg(sweep.pid, signal.SIGINT)
    _, stderr = sweep.communicate(timeout=30)
    assert sweep.returncode == 130, stderr
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    kept = len(sweeps.load(store).frame())
    assert f"{kept} of 400 runs" in stderr
    assert 5 <= kept < 400


def test_controllers_in_files(gargalo, tmp_path):
    (tmp_path / "halving.py").write_text(HALVING)
    text = '[axes]\n"flows.*.transport.tcp.congestion" = ["reno", "halving", { halving = { share = 0.9 } }]\n'
    path = sweep_file(tmp_path, f"repeat = 2\n{text}")
    missing = gargalo("sweep", path)
    assert missing.returncode == 2
    assert 'axis "congestion" at halving' in missing.stderr
    done = gargalo("sweep", path, "--plugin", "halving.py", "--json", "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"]["done"] == 6
    again = gargalo("sweep", path, "--plugin", "halving.py", "--json")
    assert json.loads(again.stdout)["runs"]["done"] == 0
    (tmp_path / "halving.py").write_text(HALVING.replace("path.mss * ack", "0.5 * path.mss * ack"))
    changed = gargalo("sweep", path, "--plugin", "halving.py", "--json")
    runs = json.loads(changed.stdout)["runs"]
    assert (runs["done"], runs["reused"]) == (4, 2), "new source, new runs; reno's are the same"
    (tmp_path / "halving.py").write_text("1 / 0\n")
    broken = gargalo("sweep", path, "--plugin", "halving.py")
    assert broken.returncode == 2
    assert "line 1: ZeroDivisionError" in broken.stderr


def test_controllers_of_this_process(tmp_path):
    @gargalo.congestion("fixed-window")
    class Fixed(gargalo.Controller):
        def __init__(self, init):
            self.window = 5 * init.mss

        def on_ack(self, ack, path):
            pass

        def on_congestion(self, event, path):
            pass

        def cwnd(self):
            return self.window

    axes = {"flows.*.transport.tcp.congestion": ["fixed-window", "reno"]}
    frame = gargalo.sweep(MINI, axes, store=tmp_path / "s", workers=1).frame()
    alone = gargalo.run(MINI, seed=frame["seed"][0], set={k: v[0] for k, v in axes.items()})
    assert frame["goodput_bps"][0] == alone.summary["goodput_bps"]
    assert frame["queue_delay_p95_s"][0] < frame["queue_delay_p95_s"][1] / 2


def told(steps, *, shown=True, waiting_for=""):
    """Return the lines of a log of a sweep of 1,000 runs: when each step is told, and how many are finished then."""
    out, clock = io.StringIO(), [0.0]
    console = Console(file=out, soft_wrap=True)
    with progress.display(console, shown=shown, now=lambda: clock[0]) as tell:
        for clock[0], finished in steps:
            tell(
                sweeps.SweepProgress(
                    1000, finished, 0, 0, 2, 5_000_000, clock[0], waiting_for=waiting_for
                )
            )
    return out.getvalue().splitlines()


def test_a_failure_names_the_innermost_line_that_raised_it():
    with pytest.raises(ValueError, match="Expecting value") as raised:
        json.loads("no")
    *_, first, last = raised.traceback
    told = reason_of(raised.value)
    assert told.endswith(f"({last.path}:{last.lineno + 1})")
    assert (first.path, first.lineno) != (last.path, last.lineno)


def test_progress_tells_the_share_of_any_number_of_runs():
    for total, finished, share in [(0, 0, "0%"), (1, 0, "0%"), (1, 1, "100%"), (3, 2, "66%")]:
        state = sweeps.SweepProgress(total, finished, 0, 0, 1, 0, 1.0)
        assert state.line.startswith(f"{share} after 1 s: {finished}/{total} runs")


def test_progress_without_a_terminal_is_a_line_a_minute_and_at_each_tenth():
    # Five times a second for an hour, in which 200 runs are finished.
    hour = [(s / 5, int(s / 5 / 18)) for s in range(5 * 3600 + 1)]
    lines = told(hour)
    assert 60 <= len(lines) <= 62
    assert lines[0] == "0% after 1:00 min: 3/1000 runs, 0.05 runs/s, 83.3 kpackets/s, 5:32 h left"
    assert lines[-1].startswith("20% after 1:00 h: 200/1000 runs, ")
    # Ten minutes for all: tenths come with the minutes. Fast ones are told at most every ten seconds.
    assert [x.split()[0] for x in told([(s, 5 * s) for s in range(201)])] == [
        f"{n}%" for n in range(10, 101, 10)
    ]
    assert len(told([(s / 10, 10 * s) for s in range(101)])) == 1
    assert told([(s / 10, 20 * s) for s in range(51)]) == []
    # What was there before is no news.
    assert told([(s, 950) for s in range(60)]) == []
    assert len(told([(s, 950) for s in range(61)])) == 1


def test_without_progress_a_log_has_only_what_is_waited_for():
    assert told([(s, s) for s in range(1000)], shown=False) == []
    waits = told([(s, 7) for s in range(1000)], shown=False, waiting_for="another")
    assert waits == ["0% after 0 s: 7/1000 runs, waiting for another"]


def test_progress_on_a_terminal_is_a_bar():
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=120)
    with progress.display(terminal, shown=True) as tell:
        tell(sweeps.SweepProgress(100, 40, 20, 0, 2, 5_000_000, 10.0))
    assert "40/100 runs, 2 runs/s, 500 kpackets/s, 30 s left" in out.getvalue()


def test_plugins_of_an_earlier_sweep_do_not_break_the_next(tmp_path):
    file = tmp_path / "earlier.py"
    file.write_text(
        "import gargalo\n\n\n"
        '@gargalo.congestion("earlier")\n'
        "class Earlier(gargalo.Controller):\n"
        "    def on_ack(self, ack, path): ...\n"
        "    def on_congestion(self, event, path): ...\n"
        "    def cwnd(self):\n"
        "        return 30_000\n"
    )
    axes = {"flows.0.transport.tcp.congestion": ["earlier"]}
    sweeps.sweep(MINI, axes, store=tmp_path / "a", plugins=[file], workers=1)
    # Its module is known in this process only, the class is still registered.
    again = sweeps.sweep(MINI, axes, store=tmp_path / "b", workers=1)
    assert again.frame().height == 1
