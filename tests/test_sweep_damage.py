"""Stores whose files were changed: found before they are read, named, and done again."""

from __future__ import annotations

import io
import json
import random
import shutil
from typing import TYPE_CHECKING

import gargalo as package
import polars as pl
import pytest
from gargalo import sweeps
from gargalo.reporting import report_of_sweep
from gargalo.sweeps import compact
from gargalo.sweeps import store as module
from gargalo.sweeps.checksum import matches, to_parquet, why_damaged
from gargalo.sweeps.store import RUNS
from sweep_helpers import MINI, RATES, delivered, sweep_file

if TYPE_CHECKING:
    from pathlib import Path

TIMES = ("wall_s",)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> sweeps.Sweep:
    """A store of 2 cells of 3 runs, with a kept table and figures of a function."""
    store = tmp_path_factory.mktemp("finished") / "s"
    return package.sweep(
        MINI, RATES, repeat=3, store=store, keep=["flows"], measure=delivered, workers=1, name="s"
    )


def again(store: Path, *, repair: bool = False) -> sweeps.Sweep:
    return package.sweep(
        MINI,
        RATES,
        repeat=3,
        store=store,
        keep=["flows"],
        measure=delivered,
        workers=1,
        name="s",
        repair=repair,
    )


def begin(file: Path, store: Path) -> None:
    sweeps.execute(
        sweeps.SweepFile.load(file).plan(), store, keep=["flows"], workers=1, name="test"
    )


def flip(file: Path, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    file.write_bytes(data)


def test_every_single_bit_counts():
    data = to_parquet(pl.DataFrame({"run": ["a" * 32], "goodput_bps": [1.25e6]}))
    assert matches(io.BytesIO(data)) is True
    assert pl.read_parquet(io.BytesIO(data))["goodput_bps"].to_list() == [1.25e6]
    changed = bytearray(data)
    for bit in range(8 * len(data)):
        changed[bit // 8] ^= 1 << bit % 8
        assert not matches(io.BytesIO(changed)), f"bit {bit}"
        changed[bit // 8] ^= 1 << bit % 8
    for size in range(len(data)):
        assert not matches(io.BytesIO(data[:size])), f"cut to {size} bytes"


def test_a_checksum_across_the_pieces_in_which_a_file_is_read(tmp_path, monkeypatch):
    data = to_parquet(pl.DataFrame({"run": ["a" * 32] * 50, "x": range(50)}))
    file = tmp_path / "x.parquet"
    file.write_bytes(data)
    for piece in (1, 7, 64, len(data) // 2, len(data)):
        monkeypatch.setattr("gargalo.sweeps.checksum.CHUNK", piece)
        assert why_damaged(file) is None, f"pieces of {piece} bytes"


def test_a_file_that_cannot_be_read_is_damaged_for_the_reason_that_the_system_gives(tmp_path):
    assert why_damaged(tmp_path) == "it cannot be read: Is a directory"
    with pytest.raises(FileNotFoundError):
        why_damaged(tmp_path / "none")


@pytest.mark.parametrize("seed", range(8))
def test_damage_is_found_named_and_done_again(finished, tmp_path, seed):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    dice = random.Random(seed)
    file = dice.choice(sorted(p for p in store.rglob("*") if p.is_file() and p.stat().st_size))
    harm = dice.choice(["flip", "cut", "empty", "text"])
    if harm == "flip":
        flip(file, dice.randrange(1 << 30))
    else:
        size = dice.randrange(file.stat().st_size)
        file.write_bytes({"cut": file.read_bytes()[:size], "empty": b"", "text": b"no\n"}[harm])
    plan = file.parent.name == "plans"
    with pytest.raises(sweeps.DamagedError, match="--repair") as told:
        # A plan is written by every sweep: only who reads the store alone meets a damaged one.
        (lambda: sweeps.load(store) if plan else again(store))()
    assert str(file) in str(told.value)
    repaired = again(store, repair=True)
    lost = 0 if plan or file.name == "store.json" else 1
    assert (repaired.done, repaired.reused) == (lost, 6 - lost), (file, harm)
    assert repaired.frame().drop(TIMES).equals(finished.frame().drop(TIMES))
    assert repaired.table("flows").collect().equals(finished.table("flows").collect())
    assert again(store).reused == 6


def test_a_damaged_segment_costs_the_runs_in_it(finished, tmp_path):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    opened = sweeps.Store(store)
    compact.compact(opened, opened.claims(), least_files=2)
    (segment,) = (store / RUNS / "segments").iterdir()
    flip(segment, 12345)
    with pytest.raises(sweeps.DamagedError, match=segment.name):
        again(store)
    repaired = again(store, repair=True)
    assert (repaired.done, repaired.reused) == (6, 0)
    assert repaired.frame().drop(TIMES).equals(finished.frame().drop(TIMES))


def test_measures_removed_after_the_end_are_told_as_such(finished, tmp_path):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    (table,) = (t for t in finished.store.tables() if t.startswith("measures-"))
    for file in (store / table).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(sweeps.SweepError, match="removed meanwhile"):
        sweeps.load(store).summary(metrics=["delivered_mb"])
    with pytest.raises(sweeps.SweepError, match="has no figure"):
        finished.summary(metrics=["delivered"])


def test_a_damaged_segment_of_two_sweeps_is_moved_aside(tmp_path):
    store = tmp_path / "s"
    short = {"duration": "300ms"}

    def sweep(name: str, seed: int, repeat: int, **more: bool) -> sweeps.Sweep:
        return package.sweep(
            MINI, seed=seed, repeat=repeat, store=store, workers=1, name=name, set=short, **more
        )

    a, b = sweep("a", 1, 3), sweep("b", 2, 2)
    before = {s.name: s.frame() for s in (a, b)}
    opened = sweeps.Store(store)
    compact.compact(opened, opened.claims(), least_files=2)
    (segment,) = (store / RUNS / "segments").iterdir()
    flip(segment, 12345)
    broken = segment.read_bytes()
    with pytest.raises(sweeps.DamagedError) as told:
        sweep("a", 1, 3)
    text = str(told.value)
    assert f"moves it to {store / 'damaged'} and does again what it held of its runs" in text
    assert text.endswith(
        'at most 3; runs of other sweeps that were there are done again by these ("b" at most 2)'
    )
    repaired = sweep("a", 1, 3, repair=True)
    assert (repaired.done, repaired.reused) == (3, 0)
    assert repaired.repaired is not None
    (moved,) = repaired.repaired.files
    assert moved.read_bytes() == broken
    assert repaired.repaired.runs == {"": 3, "b": 2}
    assert repaired.repaired.to_json()["other_sweeps"] == {"b": 2}
    assert str(repaired.repaired) == (
        f"a damaged file is now in {store / 'damaged'}; what it held of this sweep was done again, at most 3; "
        'runs of other sweeps that were there are done again by these ("b" at most 2)'
    )
    assert "damaged" not in sweeps.Store(store).tables()
    again = sweep("b", 2, 2)
    assert (again.done, again.reused, again.repaired) == (2, 0, None)
    for done in (repaired, again):
        assert done.frame().drop(TIMES).equals(before[done.name].drop(TIMES))


def test_a_missing_store_json_is_made_anew(finished, tmp_path):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    (store / "store.json").unlink()
    for read in (again, sweeps.load):
        with pytest.raises(
            sweeps.DamagedError,
            match=r"store\.json is damaged: it is missing.*--repair.* writes it anew",
        ):
            read(store)
    repaired = again(store, repair=True)
    assert (repaired.done, repaired.reused) == (0, 6)
    assert repaired.frame().equals(finished.frame())


def test_repair_leaves_what_another_sweep_repaired(finished, tmp_path):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    file = sorted((store / RUNS).glob("*.parquet"))[1]
    good = file.read_bytes()
    flip(file, 4321)
    opened = sweeps.Store(store)
    damaged = opened.damaged([RUNS])
    assert [e.file for e in damaged] == [file]
    file.write_bytes(good)
    assert opened.set_aside(damaged) == []
    assert file.read_bytes() == good


def test_merging_gives_a_damaged_file_no_good_checksum(finished, tmp_path):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    file = sorted((store / RUNS).glob("*.parquet"))[2]
    flip(file, 999)
    opened = sweeps.Store(store)
    compact.compact(opened, opened.claims(), least_files=2)
    assert list((store / RUNS).glob("*.parquet")) == [file]
    with pytest.raises(sweeps.DamagedError, match=file.name):
        sweeps.load(store).frame()
    repaired = again(store, repair=True)
    assert (repaired.done, repaired.reused) == (1, 5)


@pytest.mark.parametrize("harm", ["flipped", "cut"])
def test_damage_between_verification_and_reading(finished, tmp_path, monkeypatch, harm):
    store = tmp_path / "s"
    shutil.copytree(finished.store.path, store)
    file = sorted((store / RUNS).glob("*.parquet"))[2]
    scan_files = module.scan_files

    def late(files):
        found = scan_files(files)
        if file in files:
            if harm == "cut":
                file.write_bytes(file.read_bytes()[:100])
            else:
                flip(file, 999)
        return found

    loaded = sweeps.load(store)
    monkeypatch.setattr(module, "scan_files", late)
    with pytest.raises(sweeps.DamagedError, match=file.name):
        loaded.frame()


def test_command_line(gargalo, tmp_path):
    path = sweep_file(tmp_path, "repeat = 3\n")
    begin(path, tmp_path / "s")
    file = sorted((tmp_path / "s" / RUNS).glob("*.parquet"))[1]
    flip(file, 4321)
    again = f"gargalo sweep {path} --store s --repair"
    for arguments, remedy in (
        (["sweep", path, "--store", "s"], again),
        (["compare", "s", "s"], "--repair"),
    ):
        done = gargalo(*arguments)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert str(file.relative_to(tmp_path)) in done.stderr
        assert remedy in done.stderr
    with pytest.raises(sweeps.DamagedError):
        report_of_sweep(tmp_path / "s")
    repaired = gargalo("sweep", path, "--store", "s", "--repair", "--json")
    assert repaired.returncode == 0, repaired.stderr
    assert json.loads(repaired.stdout)["runs"] == {
        "planned": 3,
        "done": 1,
        "reused": 2,
        "failed": 0,
    }
    assert len(sweeps.load(tmp_path / "s").frame()) == 3


def test_stores_from_before_checksums(inside, tmp_path):
    path = sweep_file(tmp_path, "repeat = 2\n")
    store = tmp_path / "s"
    begin(path, store)
    (store / "store.json").write_text('{"format": 1, "gargalo": "0.1.0"}\n')
    for file in store.rglob("*.parquet"):
        pl.read_parquet(file).write_parquet(file)
    before = sweeps.load(store).frame()
    more = inside("sweep", path, "--store", "s", "--repeat", 3, "--json")
    assert more.returncode == 0, more.stderr
    assert "before files had checksums" in more.stderr
    assert json.loads(more.stdout)["runs"] == {"planned": 3, "done": 1, "reused": 2, "failed": 0}
    assert sweeps.load(store).frame().head(2).equals(before)
