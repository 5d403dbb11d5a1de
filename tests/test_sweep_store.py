"""The store of sweeps: whole at every instant, shared, quick to read, honest about what is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gargalo
import polars as pl
import pytest
from conftest import command, environment
from gargalo import sweeps
from gargalo.sweeps import compact
from gargalo.sweeps.checksum import to_parquet
from gargalo.sweeps.job import Identifier
from gargalo.sweeps.store import RUNS
from gargalo.sweeps.work import row
from sweep_helpers import MINI, RATES, sweep_file

TESTS = Path(__file__).parent


def start(*args: object, cwd: Path, **options: object) -> subprocess.Popen[str]:
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.Popen(
        command(*args), cwd=cwd, env=env, text=True, start_new_session=True, **options
    )


def check_whole(store: Path) -> list[str]:
    """Read every file; return the runs in them, each as often as it is found."""
    found: list[str] = []
    for file in sorted(store.rglob("*.parquet")):
        frame = pl.read_parquet(file)
        if file.is_relative_to(store / RUNS):
            assert frame["goodput_bps"].null_count() == 0
            found += frame["run"].to_list()
    return found


def wait_for_a_run(store: Path, known: int) -> None:
    """Wait until a store has more runs than are known; at most half a minute."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with contextlib.suppress(Exception):  # A store that is being made or compacted.
            if len(sweeps.Store(store).ids()) > known:
                return
        time.sleep(0.05)


def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path):
    # A low threshold, so that some kills meet a compaction.
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\n"
        "from gargalo import sweeps\n"
        "from gargalo.sweeps import compact, execute\n"
        "from sweep_helpers import MINI, slowly\n"
        "compact.LEAST_FILES, execute.COMPACT_EVERY = 16, 8\n"
        "jobs = sweeps.plan(MINI, {'duration': ['100ms', '150ms']}, repeat=200)\n"
        "done = sweeps.execute(jobs, 'store', measure=slowly, keep=['flows'], workers=2, name='s')\n"
        "print(done.done, done.reused)\n"
    )
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    begin = [sys.executable, str(driver)]
    dice = random.Random(20)
    store, seen = tmp_path / "store", set()
    for attempt in range(12):
        sweep = subprocess.Popen(begin, cwd=tmp_path, env=env, start_new_session=True)
        if attempt % 4:
            # However slow the machine: some kills come while runs are being finished.
            wait_for_a_run(store, len(seen))
        time.sleep(dice.random())
        if attempt % 2:
            sweep.kill()  # Its workers have to find out by themselves.
        else:
            os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
        if (store / "store.json").exists():
            if attempt % 2 == 0:
                check_whole(store)
            now = sweeps.Store(store).ids()
            assert seen <= now, "a finished run is lost"
            seen = now
    planned = {
        t.run
        for t in map(
            Identifier().task,
            sweeps.plan(MINI, {"duration": ["100ms", "150ms"]}, repeat=200),
        )
    }
    assert 20 < len(seen) < len(planned), "the kills came too early or too late to show anything"
    assert seen <= planned
    # The rest without the pause in each run; what was measured does not change.
    last = subprocess.run(
        begin, cwd=tmp_path, env={**env, "GARGALO_TEST_PAUSE": "0"}, capture_output=True, text=True
    )
    assert last.returncode == 0, last.stderr
    done, reused = map(int, last.stdout.split())
    assert done + reused == len(planned) == 400
    assert done <= 400 - len(seen)
    found = check_whole(store)
    assert len(found) == len(set(found)) == 400
    assert set(found) == planned
    assert list((store / "tmp").iterdir()) == []
    frame = sweeps.load(store).frame()
    assert (len(frame), frame["run"].n_unique()) == (400, 400)
    assert sweeps.load(store).table("flows").select(pl.len()).collect().item() == 800


def test_two_sweeps_at_once_share_the_work(tmp_path):
    path = sweep_file(tmp_path, 'repeat = 150\nmeasure = "sweep_helpers:slowly"\n')
    both = [
        start("sweep", path, "--json", "--workers", 1, cwd=tmp_path, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    facts = [json.loads(p.communicate(timeout=120)[0])["runs"] for p in both]
    assert [p.returncode for p in both] == [0, 0]
    assert sum(f["done"] for f in facts) == 150, "no run was done twice"
    assert all(f["done"] > 0 for f in facts), "both had a share"
    assert all(f["done"] + f["reused"] == 150 for f in facts)
    assert len(sweeps.load(tmp_path / "sweeps" / "test").frame()) == 150


def test_claims_end_with_their_process(tmp_path):
    store = sweeps.Store.create(tmp_path / "s")
    run = "0123456789abcdef" * 2
    code = (
        "import sys, time; from gargalo import sweeps\n"
        f"claims = sweeps.Store(sys.argv[1]).claims(); assert claims.take('{run}')\n"
        "print('claimed', flush=True); time.sleep(60)\n"
    )
    env = {**environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(store.path)], stdout=subprocess.PIPE, env=env
    )
    assert other.stdout is not None
    other.stdout.readline()
    half = store.path / "tmp" / f"{run}.{other.pid}.00"
    half.write_bytes(b"half a file")
    claims = store.claims()
    assert not claims.take(run)
    assert store.clean(claims) == 0, "somebody is at it"
    other.kill()
    other.wait()
    assert store.clean(claims) == 1
    assert not half.exists()
    assert claims.take(run)
    assert not store.claims().take(run), "nor by another sweep of this process"
    claims.release(run)


def test_many_files_become_few(tmp_path):
    done = gargalo.sweep(MINI, RATES, repeat=10, store=tmp_path / "s", keep=["flows"], workers=2)
    before, flows = done.frame(), done.table("flows").collect()
    store = sweeps.Store(tmp_path / "s")
    copies = tmp_path / "copies"
    shutil.copytree(store.path / RUNS, copies)
    assert compact.compact(store, store.claims(), least_files=2) == 40
    assert not list((store.path / RUNS).glob("*.parquet"))
    assert done.frame().equals(before)
    assert done.table("flows").collect().equals(flows)
    # Killed before the small files were removed: each run is there twice, and read once.
    for file in copies.glob("*.parquet"):
        shutil.copy(file, store.path / RUNS)
    assert sweeps.load(store.path).frame().equals(before)
    again = gargalo.sweep(MINI, RATES, repeat=10, store=store.path, keep=["flows"])
    assert (again.done, again.reused) == (0, 20)
    assert sorted(check_whole(store.path)) == sorted(before["run"])


def test_ten_thousand_runs_are_read_quickly(tmp_path):
    store = sweeps.Store.create(tmp_path / "s")
    (store.path / RUNS).mkdir()
    one = row("x", gargalo.run(MINI))
    names = [f"{i:032x}" for i in range(10_000)]
    for name in names[:1500]:
        data = to_parquet(one.with_columns(run=pl.lit(name)))
        (store.path / RUNS / f"{name}.parquet").write_bytes(data)
    plan = pl.DataFrame({"run": names, "repeat": range(10_000), "seed": range(10_000)})
    store.write_plan("all", plan.with_columns(_measure=pl.lit(None, pl.String)))

    def seconds() -> float:
        begin = time.perf_counter()
        assert len(sweeps.load(store.path).frame()) == 10_000
        return time.perf_counter() - begin

    # A sweep compacts at every thousand runs: at most so many have a file of their own.
    (store.path / RUNS / "segments").mkdir()
    for i in range(1500, 10_000, 1700):
        many = pl.concat([one.with_columns(run=pl.lit(n)) for n in names[i : i + 1700]])
        (store.path / RUNS / "segments" / f"{i}.parquet").write_bytes(to_parquet(many))
    assert seconds() < 5, "1,500 of them each in a file of its own"
    compact.compact(store, store.claims())
    assert len(list((store.path / RUNS).rglob("*.parquet"))) < 20
    assert seconds() < 1, "after compaction"


def test_stores_of_other_versions_say_so(gargalo, tmp_path):
    path = sweep_file(tmp_path, "")
    assert gargalo("sweep", path, "--store", "s").returncode == 0
    marker = tmp_path / "s" / "store.json"
    marker.write_text('{"format": 99, "gargalo": "7.0"}')
    refused = gargalo("sweep", path, "--store", "s")
    assert refused.returncode == 2
    assert "gargalo 7.0 in format 99" in refused.stderr
    marker.write_text('{"format": 1, "gargalo": "0.0.1"}')
    told = gargalo("sweep", path, "--store", "s")
    assert told.returncode == 0
    assert "begun by gargalo 0.0.1" in told.stderr


def test_unusable_directories(gargalo, tmp_path):
    path = sweep_file(tmp_path, "")
    (tmp_path / "file").write_text("precious")
    for store, told in [("file", "in the way"), ("file/inside", "in the way")]:
        done = gargalo("sweep", path, "--store", store)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.tex").write_text("precious")
    done = gargalo("sweep", path, "--store", "thesis")
    assert done.returncode == 2
    assert "is no store" in done.stderr
    assert [p.name for p in thesis.iterdir()] == ["chapter.tex"]
    assert "does not exist" in gargalo("compare", "a", "b").stderr


def in_tmpfs(tmp_path: Path, options: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script where ./disk is a file system of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o {options} tmpfs {disk}"
    tried = subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")
    env = {**environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mount} || exit 99\n{script}"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare of util-linux to mount")
def test_read_only(tmp_path):
    path = sweep_file(tmp_path, "")
    go = " ".join(command("sweep", path, "--store", "disk/s"))
    done = in_tmpfs(tmp_path, "size=1m", f"mount -o remount,ro {tmp_path}/disk; {go}")
    assert done.returncode == 2, done.stderr
    assert "read-only" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare of util-linux to mount")
def test_full_disk_keeps_what_is_done_and_goes_on(tmp_path):
    path = sweep_file(tmp_path, 'repeat = 60\nkeep = ["flows", "flow_samples"]\n')
    go = " ".join(command("sweep", path, "--store", "disk/s", "--quiet", "--workers", 2))
    look = (
        f"{sys.executable} -c \"from test_sweep_store import *; s = Path('disk/s'); "
        "print(len(check_whole(s)), len(sweeps.load(s).frame()), len(list((s / 'tmp').iterdir())))\""
    )
    done = in_tmpfs(
        tmp_path,
        "size=400k",
        f"{go}; echo $?; {look}\nmount -o remount,size=50m {tmp_path}/disk\n{go}; echo $?; {look}",
    )
    first, kept, second, whole = done.stdout.splitlines()
    assert (first, second) == ("1", "0"), done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    files, rows, half = map(int, kept.split())
    assert 0 < rows == files < 60, done.stderr
    assert half == 0
    assert whole.split() == ["60", "60", "0"]
