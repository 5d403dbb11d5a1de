"""The store of sweeps: whole at every instant, shared, quick to read, honest about what is wrong."""

from __future__ import annotations

import errno
import os
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
from gargalo.sweeps.progress import display
from gargalo.sweeps.rows import files
from gargalo.sweeps.store import RUNS
from gargalo.sweeps.work import row
from rich.console import Console
from sweep_helpers import MINI, RATES, sweep_file

TESTS = Path(__file__).parent


def check_whole(store: Path) -> list[str]:
    """Read every file; return the runs in them, each as often as it is found."""
    found: list[str] = []
    for file in sorted(store.rglob("*.parquet")):
        frame = pl.read_parquet(file)
        if file.is_relative_to(store / RUNS):
            assert frame["goodput_bps"].null_count() == 0
            found += frame["run"].to_list()
    return found


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
    claims = store.claims()
    assert not claims.take(run)
    other.kill()
    other.wait()
    assert claims.take(run)
    assert not store.claims().take(run), "nor by another sweep of this process"
    claims.release(run)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux who holds a lock")
def test_a_sweep_names_the_process_it_waits_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["gargalo.sweeps.running"], "WAIT_S", 0.0)
    run = gargalo.sweep(MINI, store=tmp_path / "a", workers=1).plan["run"][0]
    store = sweeps.Store.create(tmp_path / "b")
    code = (
        "import sys, time; from gargalo import sweeps\n"
        f"claims = sweeps.Store(sys.argv[1]).claims(); assert claims.take('{run}')\n"
        "print('claimed', flush=True); time.sleep(60)\n"
    )
    env = {**environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    told: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.path)], stdout=subprocess.PIPE, env=env
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.send_signal(signal.SIGSTOP)

        with display(Console(stderr=True, soft_wrap=True), shown=False) as tell:

            def watch(p: sweeps.SweepProgress) -> None:
                tell(p)
                if "stopped" in p.waiting_for:
                    told.append(p.waiting_for)
                    other.kill()

            done = gargalo.sweep(MINI, store=store.path, workers=1, progress=watch)
    assert done.done == 1
    what = f"a run of {store.path} that process {other.pid} does, which is stopped: continue it"
    assert told[0].startswith(f"{what} (kill -CONT {other.pid})")
    # Once, although no progress is asked for.
    assert capsys.readouterr().err.count(f"0/1 runs, waiting for {what}") == 1


def test_a_table_is_collected_while_files_are_merged(tmp_path):
    done = gargalo.sweep(MINI, repeat=3, store=tmp_path / "s", workers=1, keep=["flows"])
    lazily = done.table("flows")
    picked = lazily.filter(pl.col("label") == "other").select("run", "delivered_bytes")
    whole = lazily.collect()
    opened = sweeps.Store(tmp_path / "s")
    assert compact.compact(opened, opened.claims(), least_files=2) == 6
    assert lazily.collect().equals(whole)
    assert whole.height == 6
    expected = whole.filter(pl.col("label") == "other").select("run", "delivered_bytes")
    assert picked.collect().equals(expected)
    assert lazily.head(2).collect().equals(whole.head(2))
    (segment,) = (tmp_path / "s" / "flows" / "segments").iterdir()
    segment.write_bytes(segment.read_bytes()[:-20])
    with pytest.raises(Exception, match=segment.name):
        lazily.collect()


def test_files_under_construction_are_distinguished_from_abandoned_ones(tmp_path):
    # The number of a process does not tell: in a container every sweep has the same.
    store = sweeps.Store.create(tmp_path / "s")
    owners = ("0123456789abcdef" * 2, "plan", "segment", "store.json", "probe")
    for owner in owners:
        (store.path / "tmp" / f"{owner}.{os.getpid()}.00").write_bytes(b"half a file")
    (store.path / "tmp" / "notes.txt").write_text("not ours")
    code = (
        "import os, sys, time; from gargalo.sweeps import store\n"
        "os.fsync = lambda fd: (print('half', flush=True), time.sleep(60))\n"
        "store.write_file(store.Path(sys.argv[1]), store.Path('never'), b'half a file', 'plan')\n"
    )
    env = {**environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.path)], stdout=subprocess.PIPE, env=env
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert store.clean() == len(owners)
        assert len(list((store.path / "tmp").iterdir())) == 2, "somebody is at it"
        other.kill()
    assert store.clean() == 1
    assert [p.name for p in (store.path / "tmp").iterdir()] == ["notes.txt"]


def test_two_sweeps_may_begin_a_store(tmp_path, monkeypatch):
    path, is_dir = tmp_path / "s", Path.is_dir

    def meanwhile(self: Path) -> bool:
        if self == path:
            monkeypatch.setattr(Path, "is_dir", is_dir)
            (sweeps.Store.create(path).path / "plans").mkdir()
        return is_dir(self)

    monkeypatch.setattr(Path, "is_dir", meanwhile)
    assert sweeps.Store.create(path).verified


def test_a_store_is_begun_while_another_sweep_removes_what_is_abandoned(tmp_path, monkeypatch):
    written = Path.write_bytes

    def cleaned(self: Path, data: bytes) -> int:
        done = written(self, data)
        if self.name.startswith("probe"):
            sweeps.Store(tmp_path).clean()
        return done

    monkeypatch.setattr(Path, "write_bytes", cleaned)
    assert sweeps.Store.create(tmp_path).verified


def test_removed_while_a_sweep_runs(tmp_path):
    def watch(p: sweeps.SweepProgress) -> None:
        if p.done == 3:
            shutil.rmtree(tmp_path / "s" / RUNS, ignore_errors=True)

    with pytest.raises(sweeps.StoreError, match=r"3 finished runs were removed .* same command"):
        gargalo.sweep(MINI, repeat=3, store=tmp_path / "s", workers=1, progress=watch)
    assert gargalo.sweep(MINI, repeat=3, store=tmp_path / "s", workers=1).frame().height == 3


def test_times_of_files_are_ignored(tmp_path):
    gargalo.sweep(MINI, RATES, repeat=3, store=tmp_path / "s", workers=1, name="first")
    store = sweeps.Store(tmp_path / "s")
    # A plan from the future, by a clock that was set back since.
    os.utime(store.path / "plans" / "first.parquet", (4e9, 4e9))
    store.write_plan("second", store.plan("first").head(2))
    assert store.plans() == ["first", "second"]
    assert sweeps.load(store.path).name == "second"
    # Merged by another sweep, in a folder whose time is as before.
    folder = store.path / RUNS / "segments"
    folder.mkdir()
    os.utime(folder, (5, 5))
    assert len(store.ids()) == 6
    other = sweeps.Store(store.path)
    assert compact.compact(other, other.claims(), least_files=2) == 6
    os.utime(folder, (5, 5))
    assert len(store.ids()) == 6


def test_a_run_in_two_segments_is_there_once(tmp_path):
    # As two sweeps leave it that merge at once, where the file system has no locks.
    done = gargalo.sweep(MINI, RATES, repeat=3, store=tmp_path / "s", workers=1, keep=["flows"])
    before, flows = done.frame(), done.table("flows").collect()
    for table in (RUNS, "flows"):
        folder = tmp_path / "s" / table
        files = sorted(folder.glob("*.parquet"))
        (folder / "segments").mkdir()
        for name, some in (("a", files[:4]), ("b", files[2:]), ("c", files[:4])):
            data = to_parquet(pl.concat([pl.read_parquet(f) for f in some]))
            (folder / "segments" / f"{name}.parquet").write_bytes(data)
    again = sweeps.load(tmp_path / "s")
    assert again.frame().equals(before)
    assert again.table("flows").collect().equals(flows)
    assert len(compact_all(again.store)) == 4, "those of which all is in others are gone"
    assert again.frame().equals(before)
    assert again.table("flows").collect().equals(flows)


def compact_all(store: sweeps.Store) -> list[Path]:
    compact.compact(store, store.claims(), least_files=2)
    return [p for p in store.path.rglob("*.parquet") if p.parent.name == "segments"]


def test_without_space_files_are_not_merged(tmp_path, monkeypatch):
    done = gargalo.sweep(MINI, repeat=3, store=tmp_path / "s", workers=1)
    before = done.frame()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(compact, "write_file", full)
    assert compact_all(done.store) == []
    assert done.frame().equals(before)


def test_many_files_become_few(tmp_path, monkeypatch):
    monkeypatch.setattr("gargalo.sweeps.store.TOGETHER", 100)
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
    one = pl.read_parquet(files({RUNS: row(gargalo.run(MINI))}, "x")[RUNS])
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


def test_stores_of_other_versions_are_refused_with_the_reason(inside, tmp_path):
    path = sweep_file(tmp_path, "")
    assert inside("sweep", path, "--store", "s").returncode == 0
    marker = tmp_path / "s" / "store.json"
    marker.write_text('{"format": 99, "gargalo": "7.0"}')
    refused = inside("sweep", path, "--store", "s")
    assert refused.returncode == 2
    assert "gargalo 7.0 in format 99" in refused.stderr
    marker.write_text('{"format": 1, "gargalo": "0.0.1"}')
    told = inside("sweep", path, "--store", "s")
    assert told.returncode == 0
    assert "begun by gargalo 0.0.1" in told.stderr


def test_unusable_directories(inside, tmp_path):
    path = sweep_file(tmp_path, "")
    (tmp_path / "file").write_text("precious")
    for store, told in [("file", "in the way"), ("file/inside", "in the way")]:
        done = inside("sweep", path, "--store", store)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.tex").write_text("precious")
    done = inside("sweep", path, "--store", "thesis")
    assert done.returncode == 2
    assert "is not a store" in done.stderr
    assert [p.name for p in thesis.iterdir()] == ["chapter.tex"]
    assert "does not exist" in inside("compare", "a", "b").stderr


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
