"""Files of a store without a run: checksums, segments, claims, what is in the way."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import threading
from pathlib import Path

import polars as pl
import pytest
from gargalo import sweeps
from gargalo.sweeps import checksum, claims, compact
from gargalo.sweeps import store as module
from gargalo.sweeps.checksum import matches, to_parquet, why_damaged
from gargalo.sweeps.errors import BadStoreError, DamagedError, StoreError
from gargalo.sweeps.rows import Row, Stream
from gargalo.sweeps.store import RUNS, Store, loose

NAMES = [str(i) * 32 for i in range(1, 9)]


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "s")


def rows(*runs, **more):
    return to_parquet(
        pl.DataFrame({"run": list(runs), **{k: [v] * len(runs) for k, v in more.items()}})
    )


def commit(store, *runs, table=RUNS, **more):
    for run in runs:
        tables = {RUNS: rows(run)} if table == RUNS else {table: rows(run, **more)}
        store.commit(run, tables)


def segment(store, name, *runs, table=RUNS):
    folder = store.path / table / "segments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.parquet").write_bytes(rows(*runs))
    return folder / f"{name}.parquet"


def merge(store, **options):
    return compact.compact(store, store.claims(), **options)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def damage(file):
    file.write_bytes(file.read_bytes()[:-1] + b"x")


# --- checksums


def test_a_file_without_a_checksum_is_damaged_only_where_all_have_one(tmp_path):
    plain = tmp_path / "plain.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(plain)
    assert why_damaged(plain) == "it has no checksum"
    assert why_damaged(plain, required=False) is None
    good = tmp_path / "good.parquet"
    good.write_bytes(rows("a"))
    assert why_damaged(good, required=False) is None
    good.write_bytes(good.read_bytes().replace(b"\x15", b"\x16", 1))
    for required in (True, False):
        assert why_damaged(good, required=required) == "its checksum does not match"


def test_the_checksum_is_that_of_the_file_with_zeros_in_the_place_of_its_digits():
    import hashlib

    data = to_parquet(pl.DataFrame({"a": [1, 2]}))
    digest = data[data.index(checksum.KEY) + len(checksum.KEY) + 2 :][:64]
    assert hashlib.sha256(data.replace(digest, b"0" * 64)).hexdigest().encode() == digest
    assert (matches(io.BytesIO(data)), pl.read_parquet(data)["a"].to_list()) == (True, [1, 2])
    heavy = pl.DataFrame({"a": range(20_000)}).with_columns(b=pl.col("a").hash())
    sizes = [len(to_parquet(heavy, level=level)) for level in (1, 3)]
    assert len(to_parquet(heavy)) == sizes[0] != sizes[1]


def footed(footer, length=None):
    """Return a file that ends as one of Parquet does, with this footer."""
    size = len(footer) if length is None else length
    return b"PAR1" + footer + size.to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b"PAR1PAR", None),
        (b"\0" * 8, None),
        (footed(b""), None),
        (footed(b"x" * 100), None),
        (footed(b"x" * 100, 104), None),
        (footed(b"x" * 100, 105), None),
        (footed(checksum.KEY + b"__" + b"0" * 63), None),
        (footed(checksum.KEY + b"__" + b"0" * 64), False),
        (footed(b"0" * 80 + checksum.KEY), None),
    ],
)
def test_what_is_too_short_has_no_checksum(data, expected):
    assert matches(io.BytesIO(data)) is expected


def test_the_last_key_of_a_footer_counts():
    data = to_parquet(pl.DataFrame({"gargalo.sha256": ["gargalo.sha256" * 20]}))
    assert matches(io.BytesIO(data)) is True


# --- merging


def test_small_files_are_merged_when_there_are_enough(store):
    commit(store, *NAMES[:3])
    assert merge(store, least_files=4) == 0
    assert merge(store) == 0, "fewer than 256"
    assert merge(store, least_files=3) == 3
    assert names(store.path / RUNS) == ["segments"]
    assert store.ids() == set(NAMES[:3])
    assert store.scan().collect()["run"].to_list() == NAMES[:3], "in order"
    commit(store, NAMES[3])
    assert merge(store, least_files=1) == 2, "with the segment, as that is small"
    assert merge(store, least_files=1) == 0, "one is merged with nothing"
    assert store.ids() == set(NAMES[:4])


def test_many_runs_are_written_together_if_some_have_no_row(store):
    names = [f"{i:032x}" for i in range(70)]
    empty, one = (Stream(ipc(pl.DataFrame({"x": x}, {"x": pl.Int64}))) for x in ([], [1]))
    tables = {n: {"objects": one if i % 2 else empty} for i, n in enumerate(names)}
    store.commit_all({n: {**t, RUNS: Row.of({"y": ("i", 7)})} for n, t in tables.items()})
    again = Store(store.path)
    assert again.ids() == again.ids("objects") == set(names)
    assert len(again.files("objects")) == len(again.files(RUNS)) == 1
    assert again.scan("objects").collect()["run"].to_list() == names[1::2]
    store.commit_all({n: {RUNS: Row.of({"y": ("i", 8)})} for n in [*names[10:], *NAMES]})
    assert again.scan().collect()["run"].is_unique().all(), "in no second segment"
    commit(store, *(n.replace("0", "f") for n in names[1:3]))
    assert merge(store, least_files=2) == 11
    assert Store(store.path).ids("objects") == set(names), "merged, those without rows are known"


def ipc(frame):
    file = io.BytesIO()
    frame.write_ipc_stream(file)
    return file.getvalue()


def test_files_of_many_tables_are_merged(store):
    commit(store, *NAMES[:2])
    commit(store, *NAMES[:3], table="flows")
    assert merge(store, least_files=2) == 5
    assert len(store.files(RUNS)) == len(store.files("flows")) == 1


def test_large_files_are_left_and_segments_are_bounded(store, monkeypatch):
    commit(store, *NAMES[:5])
    size = (store.path / RUNS / f"{NAMES[0]}.parquet").stat().st_size
    monkeypatch.setattr(compact, "LARGE_BYTES", size)
    assert merge(store, least_files=2) == 0
    monkeypatch.setattr(compact, "LARGE_BYTES", size + 1)
    monkeypatch.setattr(compact, "MOST_BYTES", 2 * size)
    assert merge(store, least_files=2) == 4, "two and two; one is alone"
    assert len(names(store.path / RUNS / "segments")) == 2
    sizes = {Path(n): s for n, s in zip("abcde", (5, 5, 20, 1, 1), strict=True)}
    monkeypatch.setattr(compact, "MOST_BYTES", 10)
    groups = [[p.name for p in g] for g in compact._groups(sizes)]
    assert groups == [["a", "b"], ["c"], ["d", "e"]]
    assert list(compact._groups({})) == []


def test_what_a_killed_merge_left_is_removed(store):
    commit(store, *NAMES[:2])
    segment(store, "a", *NAMES[:2])
    segment(store, "b", NAMES[0])
    assert merge(store, least_files=99) == 2
    assert names(store.path / RUNS / "segments") == ["a.parquet"]
    assert store.ids() == set(NAMES[:2])


def test_one_process_merges_at_a_time(store):
    commit(store, *NAMES[:2])
    held = store.claims()
    assert held.lock(claims.COMPACTION)
    assert merge(store, least_files=2) == 0
    held.unlock(claims.COMPACTION)
    assert merge(store, least_files=2) == 2
    assert store.claims().lock(claims.COMPACTION), "it is free again"


def test_a_damaged_table_does_not_keep_others_from_being_merged(store):
    commit(store, *NAMES[:2])
    commit(store, *NAMES[:2], table="flows")
    damage(segment(store, "a", NAMES[3], table="flows"))
    assert merge(store, least_files=2) == 2
    few = store.path / "flows" / f"{NAMES[0]}.parquet"
    assert few.exists()


def test_a_damaged_file_is_not_merged(store):
    commit(store, *NAMES[:4])
    bad = store.path / RUNS / f"{NAMES[1]}.parquet"
    damage(bad)
    assert merge(store, least_files=2) == 3
    assert names(store.path / RUNS) == [bad.name, "segments"]
    other = Store.create(store.path.parent / "other")
    commit(other, *NAMES[:2])
    damage(other.path / RUNS / bad.name)
    assert merge(other, least_files=2) == 0, "one is left"


# --- claims


def test_a_claim_is_of_one_run_and_may_be_given_back(store):
    one, other = store.claims(), store.claims()
    assert one.take(NAMES[0])
    assert not one.take(NAMES[0])
    assert not other.take(NAMES[0])
    assert other.take("f" * 32)
    one.release(NAMES[0])
    one.release(NAMES[0])
    assert other.take(NAMES[0])
    assert one.supported
    assert claims._offset("0" * 14 + "1" + "f" * 17) == 1
    assert claims._offset("f" * 32) < claims.COMPACTION


def test_without_locks_of_the_file_system_claims_are_of_this_process(store, monkeypatch):
    def refuse(number):
        def lockf(*_):
            raise OSError(number, "no")

        monkeypatch.setattr(claims.fcntl, "lockf", lockf)

    held = store.claims()
    for number in (errno.EACCES, errno.EAGAIN):
        refuse(number)
        assert not held.take(NAMES[0])
    assert held.supported
    refuse(errno.EIO)
    with pytest.raises(OSError, match="no"):
        held.take(NAMES[0])
    for run, number in zip(
        NAMES, (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL), strict=False
    ):
        held.supported = True
        refuse(number)
        assert held.take(run)
        assert not held.supported
        assert not held.take(run)
        held.release(run)
        assert held.take(run)


def test_who_holds_a_claim_is_told_as_far_as_it_is_known(store, monkeypatch):
    held = store.claims()
    unknown = "another sweep does (in this process, another container or on another machine)"
    assert held.holder(NAMES[0]) == unknown, "nobody"

    def answer(kind, process):
        packed = struct.pack(claims._FLOCK, kind, 0, 0, 1, process)
        monkeypatch.setattr(claims.fcntl, "fcntl", lambda *_: packed)
        return held.holder(NAMES[0])

    lock, free = claims.fcntl.F_WRLCK, claims.fcntl.F_UNLCK
    me = os.getpid()
    assert answer(lock, me) == f"process {me} does"
    assert answer(lock, 1) == "process 1 does"
    assert answer(free, me) == answer(lock, 0) == answer(lock, -1) == unknown
    monkeypatch.setattr(claims, "_is_stopped", lambda _: True)
    told = "process 7 does, which is stopped: continue it (kill -CONT 7) or end it"
    assert answer(lock, 7) == told


def test_a_stopped_process_is_known_by_its_state(monkeypatch):
    for text, stopped in [
        ("7 (a) T 1", True),
        ("7 (a) b) T) S 1 T", False),
        ("7 (x) T) T 2", True),
        ("7 (a) S 1", False),
        ("", False),
    ]:
        monkeypatch.setattr(Path, "read_text", lambda *_, text=text, **__: text)
        assert claims._is_stopped(7) is stopped
    monkeypatch.undo()
    assert not claims._is_stopped(2**30)


# --- the store


def test_kept_tables_are_written_before_the_row_that_makes_a_run_finished(store, monkeypatch):
    order = []
    monkeypatch.setattr(
        module, "write_file", lambda _, target, *__: order.append(target.parent.name)
    )
    store.commit(NAMES[0], {RUNS: b"", "a": b"", "z": b""})
    assert order == ["a", "z", RUNS]


def test_runs_are_found_in_files_and_segments(store):
    commit(store, *NAMES[:2])
    segment(store, "a", *NAMES[1:4])
    segment(store, "b", *NAMES[3:5])
    assert store.ids() == set(NAMES[:5])
    assert store.ids_in_segments(RUNS) == set(NAMES[1:5])
    assert [store.has(RUNS, n) for n in NAMES[:6]] == [True] * 5 + [False]
    assert [f.name for f in store.files(RUNS)] == ["a.parquet", "b.parquet", f"{NAMES[0]}.parquet"]
    assert [f.name for f in store.files(RUNS, {NAMES[4]})] == ["b.parquet"]
    assert [f.name for f in store.files(RUNS, {NAMES[0], NAMES[2]})] == [
        "a.parquet",
        f"{NAMES[0]}.parquet",
    ]
    assert store.files("flows") == []
    assert sorted(store.scan().collect()["run"]) == NAMES[:5], "each once"
    assert store.scan("flows").collect().columns == ["run"]
    assert store.covered(RUNS) == []
    segment(store, "c", *NAMES[2:4])
    assert [p.name for p in store.covered(RUNS)] == ["c.parquet"]
    (store.path / RUNS / "segments" / "b.parquet").unlink()
    assert store.ids() == set(NAMES[:4])


def test_files_of_other_columns_are_read_together(store):
    commit(store, NAMES[0], table="flows", x=1)
    commit(store, NAMES[1], table="flows", y=2)
    commit(store, NAMES[2], table="flows", x=3)
    found = store.scan("flows").collect().sort("run")
    assert found.select("run", "x", "y").rows() == [
        (NAMES[0], 1, None), (NAMES[1], None, 2), (NAMES[2], 3, None),
    ]  # fmt: skip


def test_only_identifiers_are_runs(tmp_path):
    for name in (
        f"{NAMES[0]}.parquet",
        f"{NAMES[1]}.txt",
        "a.parquet",
        f"{'g' * 32}.parquet",
        "segments",
    ):
        (tmp_path / name).write_bytes(b"")
    assert loose(tmp_path) == {NAMES[0]}
    assert loose(tmp_path / "none") == set()


def test_tables_and_plans_are_listed(store):
    assert (store.tables(), store.plans()) == ([], [])
    commit(store, NAMES[0])
    commit(store, NAMES[0], table="flows")
    (store.path / "empty").mkdir()
    (store.path / "damaged").mkdir()
    (store.path / "damaged" / "x").write_bytes(b"")
    plan = pl.DataFrame({"run": NAMES[:1], "_measure": [None]})
    for name in ("b", "a"):
        store.write_plan(name, plan)
    assert store.tables() == ["flows", RUNS]
    assert store.plans() == ["b", "a"], "the latest last"
    assert store.plan("a").equals(plan)
    with pytest.raises(StoreError, match='no sweep "c"; it has: b, a'):
        store.plan("c")
    with pytest.raises(StoreError, match="it has: none"):
        Store.create(store.path.parent / "other").plan("c")


def test_a_plan_that_is_written_again_stays_as_it_is(store):
    plan = pl.DataFrame({"run": NAMES[:1]})
    store.write_plan("a", plan)
    file = store.path / "plans" / "a.parquet"
    os.utime(file, (5, 5))
    store.write_plan("a", plan)
    assert file.stat().st_mtime == 5
    os.utime(file, (4e9, 4e9))
    store.write_plan("b", plan)
    later = (store.path / "plans" / "b.parquet").stat().st_mtime
    assert later == 4e9 + 1, "a second after the latest, whatever the clock says"


def test_a_plan_of_the_same_instant_as_another_is_the_later_one(store, monkeypatch):
    plan = pl.DataFrame({"run": NAMES[:1]})
    write = module.write_file

    def at_once(path, target, *more):
        write(path, target, *more)
        os.utime(target, (7, 7))

    monkeypatch.setattr(module, "write_file", at_once)
    for name in ("b", "a"):
        store.write_plan(name, plan)
    assert store.plans() == ["b", "a"]


def test_others_may_read_a_store_as_the_mask_of_its_owner_says(store):
    before = os.umask(0o022)
    try:
        commit(store, NAMES[0])
        store.claims()
    finally:
        os.umask(before)
    modes = [
        (store.path / RUNS / f"{NAMES[0]}.parquet").stat(),
        (store.path / "claims.lock").stat(),
    ]
    assert [oct(m.st_mode & 0o777) for m in modes] == ["0o644"] * 2


def test_what_damaged_files_held_is_counted_for_each_sweep(store):
    commit(store, *NAMES[:4])
    segment(store, "a", *NAMES[4:7])
    plans = {"own": NAMES[:2], "other": [*NAMES[1:3], *NAMES[4:8]]}
    for name, runs in plans.items():
        store.write_plan(name, pl.DataFrame({"run": runs, "_measure": [None] * len(runs)}))
    for name in (NAMES[0], NAMES[2]):
        damage(store.path / RUNS / f"{name}.parquet")
    own = set(NAMES[:2])
    damaged = store.damaged([RUNS])
    assert [e.file.stem for e in damaged] == [NAMES[0], NAMES[2]]
    assert [e.file.stem for e in store.damaged([RUNS], own)] == [NAMES[0]]
    assert store.held(damaged, "own", own) == {"": 1, "other": 1}
    damage(store.path / RUNS / "segments" / "a.parquet")
    again = Store(store.path)
    damaged = again.damaged([RUNS], own)
    assert [e.file.stem for e in damaged] == ["a", NAMES[0]]
    # Of a segment it may be all that is planned and nowhere else: of the other sweep four, and what is damaged itself.
    assert again.held(damaged, "own", own) == {"": 1, "other": 4}
    moved = again.set_aside(damaged)
    assert [p.name for p in moved] == ["runs.a.parquet", f"runs.{NAMES[0]}.parquet"]
    assert again.damaged([RUNS], own) == []
    commit(store, NAMES[0])
    damage(store.path / RUNS / f"{NAMES[0]}.parquet")
    (twice,) = again.set_aside(Store(store.path).damaged([RUNS], own))
    assert twice.name.startswith(f"runs.{NAMES[0]}.parquet.")
    assert twice.parent.name == "damaged"


def test_measures_of_another_function_are_not_those_of_a_sweep(store):
    for run in NAMES[:2]:
        commit(store, run, table="measures-x")
    store.write_plan("with", pl.DataFrame({"run": NAMES[:2], "_measure": ["measures-x"] * 2}))
    store.write_plan("without", pl.DataFrame({"run": NAMES[:2], "_measure": ["measures-y"] * 2}))
    for run in NAMES[:2]:
        damage(store.path / "measures-x" / f"{run}.parquet")
    assert store.held(store.damaged(["measures-x"]), "new", set()) == {"": 0, "with": 2}


def test_a_file_is_verified_once_as_long_as_it_is_the_same(store, monkeypatch):
    commit(store, NAMES[0])
    file = store.path / RUNS / f"{NAMES[0]}.parquet"
    looks = []
    monkeypatch.setattr(module, "why_damaged", lambda f, **_: looks.append(f))
    for _ in range(3):
        store.verify(file)
    assert len(looks) == 1
    file.write_bytes(file.read_bytes() + b"x")
    store.verify(file)
    assert len(looks) == 2


def test_a_marker_that_is_not_what_was_written_is_damaged(store):
    marker = store.path / "store.json"
    good = json.loads(marker.read_text())
    assert (good["format"], Store(store.path).verified) == (2, True)
    for text in ("", "[]", "{}", '{"format": 2}', json.dumps({**good, "gargalo": "9"}), "null"):
        marker.write_text(text)
        with pytest.raises(DamagedError, match=r"store\.json is damaged"):
            Store(store.path)
        with pytest.raises(DamagedError):
            Store.create(store.path)
    assert Store.create(store.path, repair=True).verified
    marker.write_text('{"format": 1}')
    old = Store(store.path)
    assert (old.verified, old.version) == (False, "unknown")
    marker.write_text('{"format": 3, "gargalo": "9.9"}')
    with pytest.raises(BadStoreError, match=r"9\.9 in format 3; this is .* knows formats 1 and 2"):
        Store(store.path)


def test_a_directory_is_no_store_or_one_whose_marker_is_missing(tmp_path):
    with pytest.raises(BadStoreError, match=r"does not exist \(store\.json is missing\)"):
        Store(tmp_path / "none")
    for inside, known in [
        ([], False),
        (["other/"], False),
        (["runs/", "tmp/", "plans/"], False),
        ([f"runs/{NAMES[0]}.parquet"], True),
        (["runs/x.parquet"], False),
        (["runs/segments/x.parquet"], True),
        (["tmp/", "plans/x.parquet"], True),
        (["plans/x.parquet"], False),
    ]:
        path = tmp_path / str(abs(hash(tuple(inside))))
        path.mkdir()
        for name in inside:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).mkdir(exist_ok=True) if name.endswith("/") else (path / name).write_bytes(
                b""
            )
        wrong = DamagedError if known else BadStoreError
        with pytest.raises(BadStoreError) as told:
            Store(path)
        assert type(told.value) is wrong, inside
        if known:
            with pytest.raises(DamagedError):
                Store.create(path)
            Store.create(path, repair=True)
        elif inside:
            for repair in (True, False):
                with pytest.raises(BadStoreError, match="is not empty and is not a store"):
                    Store.create(path, repair=repair)
        else:
            Store.create(path)


def test_a_begun_store_is_continued_and_a_link_is_not_followed(tmp_path):
    path = tmp_path / "s"
    (path / "tmp").mkdir(parents=True)
    (path / "claims.lock").write_bytes(b"")
    store = Store.create(path)
    assert names(path / "tmp") == []
    (path / "tmp").rmdir()
    (path / "tmp").symlink_to(tmp_path)
    with pytest.raises(BadStoreError, match="is a symbolic link"):
        Store.create(store.path)


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (
            errno.ENOSPC,
            "the disk is full (0 B of 1 GB left): free some space and run the same command again",
        ),
        (errno.EDQUOT, "your quota is used up: free some space and run the same command again"),
        (errno.EROFS, "the file system is read-only: choose another store"),
        (errno.EACCES, "you may not write there: choose another store"),
        (errno.ENOENT, "it was removed meanwhile: run the same command again"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_why_a_store_cannot_be_written(store, monkeypatch, number, told):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, "write_file", fails)
    monkeypatch.setattr(module.reading, "space", lambda _: " (0 B of 1 GB left)")
    with pytest.raises(StoreError) as error:
        commit(store, NAMES[0])
    assert str(error.value) == f"{store.path} cannot be written: {told}"


def test_a_file_that_cannot_be_finished_leaves_nothing(store, monkeypatch):
    def fails(_):
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(module.os, "fsync", fails)
    with pytest.raises(OSError, match="no"):
        module.write_file(store.path, store.path / "x", b"data", "plan")
    assert (names(store.path / "tmp"), (store.path / "x").exists()) == ([], False)
    monkeypatch.undo()
    pieces = os.write
    monkeypatch.setattr(module.os, "write", lambda fd, view: pieces(fd, view[:3]))
    module.write_file(store.path, store.path / "x", b"0123456789", "plan")
    assert (store.path / "x").read_bytes() == b"0123456789", "whatever is written at once"


def test_a_file_that_gets_its_name_is_not_removed_as_abandoned(store, monkeypatch):
    rename = Path.rename

    def late(self, target):
        # Another sweep begins, and removes what killed ones left.
        assert store.clean() == 0
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    module.write_file(store.path, store.path / "x", b"data", "plan")
    assert (store.path / "x").read_bytes() == b"data"


def test_what_is_not_a_file_under_construction_is_left(store):
    tmp = store.path / "tmp"
    (tmp / "plan.1.a").mkdir()
    (tmp / "plan.2.b").symlink_to(store.path / "store.json")
    (tmp / "plan.3.c").write_bytes(b"")
    (tmp / "plan.x.c").write_bytes(b"")
    (tmp / "x.3.c").write_bytes(b"")
    assert store.clean() == 1
    assert names(tmp) == ["plan.1.a", "plan.2.b", "plan.x.c", "x.3.c"]


def test_without_locks_the_process_in_the_name_of_a_file_tells_whether_it_is_abandoned(
    store, monkeypatch
):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no")

    mine, gone = (store.path / "tmp" / f"plan.{p}.0" for p in (os.getpid(), 2**30))
    for file in (mine, gone):
        file.write_bytes(b"")
    monkeypatch.setattr(module.fcntl, "flock", refuse)
    assert store.clean() == 1
    assert names(mine.parent) == [mine.name]
    for name, alive in [("plan.x.0", False), ("plan", False), (f"a.b.{os.getpid()}.0", True)]:
        assert module._alive(name) is alive

    def forbidden(*_):
        raise PermissionError

    monkeypatch.setattr(module.os, "kill", forbidden)
    assert module._alive("plan.1.0") is True


def test_reading_tells_damage_before_what_went_wrong(store):
    commit(store, NAMES[0])
    file = store.path / RUNS / f"{NAMES[0]}.parquet"

    def wrong():
        raise pl.exceptions.ComputeError("odd")

    with pytest.raises(StoreError, match="cannot be read: odd"):
        store.read(wrong, lambda: [file])
    damage(file)
    with pytest.raises(DamagedError):
        store.read(wrong, lambda: [file])


def test_a_damaged_file_is_found_before_it_is_scanned(store):
    commit(store, *NAMES[:2])
    damage(store.path / RUNS / f"{NAMES[1]}.parquet")
    with pytest.raises(DamagedError):
        store.scan()
    assert store.scan(RUNS, NAMES[:1]).collect().height == 1


def test_claims_are_shared_by_threads(store):
    held = store.claims()
    found = []
    threads = [threading.Thread(target=lambda: found.append(held.take(NAMES[0]))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [False] * 7 + [True]


def test_what_was_read_is_that_of_a_moment(store):
    plan = pl.DataFrame({"run": NAMES[:1], "_measure": [None]})
    sweep = sweeps.Sweep("x", store, plan)
    tries = []

    def moving(times):
        def read():
            tries.append(1)
            if len(tries) <= times:
                raise FileNotFoundError
            return "read"

        tries.clear()
        return sweep._steadily(read)

    assert (moving(0), moving(19)) == ("read", "read")
    with pytest.raises(StoreError, match="changes too quickly"):
        moving(20)
