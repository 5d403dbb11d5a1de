"""The store of a sweep: a directory of Parquet files that is whole at every instant.

    store.json                     the format, the version that began it, a checksum of both
    plans/NAME.parquet             the runs of a sweep: identifier, labels, seed, how to repeat it
    runs/IDENTIFIER.parquet        a finished run: one row of figures
    flows/IDENTIFIER.parquet       a table that was kept, one folder each
    measures-KEY/IDENTIFIER.parquet   what a function of the user measured in the run
    */segments/HASH.parquet        many runs in one: merged files, or short runs finished at nearly the same time
    tmp/                           files under construction
    claims.lock                    see `gargalo.sweeps.claims`
    damaged/                       what a repair moved aside; nothing reads it

A file is written to tmp/, synced and renamed. A run's kept tables and measures come before its row in runs/, which
makes it finished. Nothing is ever changed in place. Every Parquet file carries its checksum (see
`gargalo.sweeps.checksum`), which is verified before the file is read; in stores of format 1, files without one are
taken as they are.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from gargalo import _core, reading
from gargalo.sweeps.checksum import EMPTY, to_parquet, why_damaged
from gargalo.sweeps.claims import Claims
from gargalo.sweeps.errors import DAMAGED, BadStoreError, DamagedError, StoreError
from gargalo.sweeps.rows import RUNS, files, frames

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from gargalo.sweeps.rows import Tables

FORMAT = 2
WITHOUT_CHECKSUMS = 1
"""The format before checksums: its files are read, and more are written."""
PLANS = "plans"
SUFFIX = ".parquet"
TOGETHER = 12
"""Runs that are written as one segment; where there are fewer, each has a file, and damage concerns it alone."""
MARKER = "store.json"
_RUN = re.compile(r"[0-9a-f]{32}")
_TEMPORARY = re.compile(r"([0-9a-f]{32}|plan|segment|store\.json|probe)\.\d+\.[0-9a-f]+")
"""Names of files under construction: whose, the process, a random number."""


class Store:
    """A directory of finished runs."""

    def __init__(self, path: str | Path) -> None:
        """Open a store that exists.

        Raises:
            BadStoreError: There is none, or another version wrote it.

        """
        self.path = Path(path)
        self._segments: dict[str, dict[str, set[str]]] = {}
        self._whole: dict[Path, tuple[int, int, int, int]] = {}
        facts = self._marker()
        form = facts.get("format")
        self.version = str(facts.get("gargalo", "unknown"))
        """The version of Gargalo that began the store."""
        self.verified = form != WITHOUT_CHECKSUMS
        """Whether every file has a checksum."""
        if form not in (FORMAT, WITHOUT_CHECKSUMS):
            msg = (
                f"{self.path} was written by gargalo {self.version} in format {form}; this is gargalo "
                f"{_core.__engine__}, which knows formats {WITHOUT_CHECKSUMS} and {FORMAT}: use that version, "
                "or another store"
            )
            raise BadStoreError(msg)

    def _marker(self) -> dict[str, Any]:
        file = self.path / MARKER
        try:
            text = reading.data(file)
        except FileNotFoundError:
            if _was_store(self.path):
                raise DamagedError(self.path, file, "it is missing") from None
            what = "has no results of a sweep" if self.path.exists() else "does not exist"
            msg = f"{self.path} {what} ({MARKER} is missing)"
            raise BadStoreError(msg) from None
        except NotADirectoryError:
            msg = f"{self.path} is {reading.kind(self.path)}, not a directory"
            raise BadStoreError(msg) from None
        except OSError as e:
            msg = f"{file} cannot be read: {reading.reason(e)}"
            raise BadStoreError(msg) from None
        try:
            facts: dict[str, Any] = json.loads(text)
            form, digest = facts["format"], facts.pop("sha256", None)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DamagedError(self.path, file, "it is no longer what was written") from None
        if (digest is not None or form == FORMAT) and text != _marker_of(facts):
            raise DamagedError(self.path, file, "its checksum does not match")
        return facts

    @classmethod
    def create(cls, path: str | Path, *, repair: bool = False) -> Store:
        """Open a store for writing; made if there is none.

        With `repair` a store.json that is damaged or missing is made anew.

        Raises:
            DamagedError: Its store.json is damaged or missing.
            BadStoreError: It cannot be written, or the directory holds something else.

        """
        path = Path(path)
        try:
            with _writing(path):
                return cls._create(path, repair=repair)
        except BadStoreError:
            raise
        except StoreError as e:
            raise BadStoreError(str(e)) from None

    @classmethod
    def _create(cls, path: Path, *, repair: bool) -> Store:
        tmp = path / "tmp"
        if tmp.is_symlink():
            # Do not write to, or clean, what it points to.
            msg = f"{tmp} is a symbolic link: remove it, or choose another directory"
            raise BadStoreError(msg)
        marker = path / MARKER
        if not marker.exists() and path.is_dir() and not (repair and _was_store(path)):
            foreign = any(p.name not in ("tmp", "claims.lock") for p in path.iterdir())
            # Looked for again: another sweep may have begun the store meanwhile.
            if foreign and not marker.exists():
                if _was_store(path):
                    raise DamagedError(path, marker, "it is missing")
                msg = f"{path} is not empty and is not a store of sweeps: choose another directory"
                raise BadStoreError(msg)
        tmp.mkdir(parents=True, exist_ok=True)
        if not marker.exists():
            cls._mark(path)
        try:
            store = cls(path)
        except DamagedError:
            if not repair:
                raise
            cls._mark(path)
            store = cls(path)
        # Fails now, not after the first run, if nothing can be written.
        probe = path / "tmp" / f"probe.{os.getpid()}.{secrets.token_hex(4)}"
        probe.write_bytes(b"")
        # Another sweep that begins takes it for an abandoned one.
        probe.unlink(missing_ok=True)
        return store

    @staticmethod
    def _mark(path: Path) -> None:
        facts = {"format": FORMAT, "gargalo": _core.__engine__}
        write_file(path, path / MARKER, _marker_of(facts), MARKER)

    # --- writing

    def claims(self) -> Claims:
        """Return the claims of this process."""
        with _writing(self.path):
            return Claims(self.path / "claims.lock")

    def commit(self, run: str, tables: Tables) -> None:
        """Write the tables of a run: kept ones first, the row that makes it finished last.

        Raises:
            StoreError: The disk is full, or the directory cannot be written.

        """
        self.commit_all({run: tables})

    def commit_all(self, runs: Mapping[str, Tables]) -> None:
        """Write the tables of several runs as `commit` does, those of many short ones in a segment.

        Raises:
            StoreError: The disk is full, or the directory cannot be written.

        """
        names = {name for tables in runs.values() for name in tables}
        with _writing(self.path):
            for name in sorted(names, key=lambda n: (n == RUNS, n)):
                given = {run: tables[name] for run, tables in runs.items() if name in tables}
                folder = self.path / name
                folder.mkdir(exist_ok=True)
                small = {r: t for r, t in given.items() if not isinstance(t, bytes)}
                if small:
                    # A run that is done again for another table stays where it is: no two segments have it.
                    merged = list(self.in_segments(name).values())
                    there = {r for r in small if any(r in ids for ids in merged)}
                    given = {r: t for r, t in given.items() if r not in there}
                    there |= loose(folder)
                    small = {r: t for r, t in small.items() if r not in there}
                if len(small) >= TOGETHER:
                    for frame, of in frames(small):
                        self._write_segment(name, frame, of)
                        given = {r: t for r, t in given.items() if r not in of}
                for run, table in given.items():
                    data = files({name: table}, run)[name]
                    write_file(self.path, folder / f"{run}{SUFFIX}", data, run)

    def _write_segment(self, table: str, frame: pl.DataFrame, runs: Collection[str]) -> None:
        name = f"{hashlib.sha256(' '.join(sorted(runs)).encode()).hexdigest()[:32]}{SUFFIX}"
        folder = self.path / table / "segments"
        folder.mkdir(exist_ok=True)
        write_file(self.path, folder / name, segment(frame, runs), "segment")
        self._segments.setdefault(table, {})[name] = set(runs)

    def write_plan(self, name: str, plan: pl.DataFrame) -> None:
        """Write the runs of a sweep under its name, instead of what was there."""
        with _writing(self.path):
            (self.path / PLANS).mkdir(exist_ok=True)
            data = to_parquet(plan)
            target = self.path / PLANS / f"{name}{SUFFIX}"
            if not target.exists() or target.read_bytes() != data:
                others = [p for p in (self.path / PLANS).glob(f"*{SUFFIX}") if p != target]
                latest = max((p.stat().st_mtime_ns for p in others), default=0)
                write_file(self.path, target, data, "plan")
                # It is the latest, even if the clock was set back.
                if target.stat().st_mtime_ns <= latest:
                    os.utime(target, ns=(latest + 10**9, latest + 10**9))

    def clean(self) -> int:
        """Remove what killed sweeps left under construction; return how many files."""
        removed = 0
        with _writing(self.path):
            for file in sorted((self.path / "tmp").iterdir()):
                named = _TEMPORARY.fullmatch(file.name)
                if named is None or not file.is_file() or file.is_symlink():
                    continue  # Nothing of ours.
                with suppress(FileNotFoundError):
                    removed += _remove_abandoned(file)
        return removed

    def damaged(
        self, tables: Sequence[str], runs: Collection[str] | None = None
    ) -> list[DamagedError]:
        """Return what is wrong with the files of some tables: those of the runs, and all segments."""
        found = []
        for table in tables:
            folder = self.path / table
            single = loose(folder)
            files = sorted((folder / "segments").glob(f"*{SUFFIX}"))
            files += [
                folder / f"{run}{SUFFIX}"
                for run in sorted(single if runs is None else single.intersection(runs))
            ]
            for file in files:
                # One that has become part of a segment meanwhile is gone, not damaged.
                with suppress(FileNotFoundError):
                    try:
                        self.verify(file)
                    except DamagedError as e:
                        found.append(e)
        return found

    def set_aside(self, damaged: Iterable[DamagedError]) -> list[Path]:
        """Move damaged files to a folder that nothing reads, and return where they are.

        Their runs are to be done again.
        """
        moved = []
        with _writing(self.path):
            for e in damaged:
                # Another sweep may have written it anew meanwhile.
                with suppress(FileNotFoundError):
                    try:
                        self.verify(e.file)
                    except DamagedError:
                        moved.append(self._set_aside(e.file))
        return moved

    def _set_aside(self, file: Path) -> Path:
        folder = self.path / DAMAGED
        folder.mkdir(exist_ok=True)
        target = folder / f"{file.relative_to(self.path).parts[0]}.{file.name}"
        while target.exists():
            target = folder / f"{target.name}.{secrets.token_hex(4)}"
        file.rename(target)
        return target

    def held(
        self, damaged: Sequence[DamagedError], sweep: str, runs: Collection[str]
    ) -> dict[str, int]:
        """Return how many runs damaged files had at most, by sweep: that of these runs is called "".

        What is in a damaged segment cannot be known: it may be every planned run that no other file has.
        """
        files: dict[str, list[Path]] = {}
        for e in damaged:
            files.setdefault(e.file.relative_to(self.path).parts[0], []).append(e.file)
        planned = {"": (set(runs), set(files))}
        for name in self.plans():
            if name == sweep:
                continue
            with suppress(StoreError):  # A damaged plan says nothing.
                plan = self.plan(name)
                # Which tables it keeps is not written down.
                foreign = {t for t in files if t.startswith("measures-")}
                tables = set(files) - (foreign - set(plan["_measure"].drop_nulls()))
                planned[name] = (set(plan["run"]) - set(runs), tables)
        lost: dict[str, set[str]] = {name: set() for name in planned}
        for table, bad in files.items():
            segments = {f.name for f in bad if f.parent.name == "segments"}
            single = {f.name[: -len(SUFFIX)] for f in bad if f.parent.name != "segments"}
            folder = self.path / table
            whole = loose(folder) - single
            for segment in (folder / "segments").glob(f"*{SUFFIX}"):
                if segment.name not in segments:
                    whole |= self._runs_of(segment)
            for name, (own, tables) in planned.items():
                if table in tables:
                    lost[name] |= (own if segments else own & single) - whole
        return {name: len(found) for name, found in lost.items() if found or not name}

    # --- reading

    def verify(self, file: Path) -> None:
        """Compare a file with its checksum, once as long as it is the same file.

        Raises:
            DamagedError: It is not what was written.
            FileNotFoundError: There is none.

        """
        facts = file.stat()
        known = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        if self._whole.get(file) == known:
            return
        why = why_damaged(file, required=self.verified)
        if why is not None:
            raise DamagedError(self.path, file, why)
        self._whole[file] = known

    def read(
        self, frame: Callable[[], pl.DataFrame], files: Callable[[], Iterable[Path]]
    ) -> pl.DataFrame:
        """Read files that were verified, and verify them again: one may have been damaged in between.

        Raises:
            DamagedError: One is not what was written.
            FileNotFoundError: There is none.
            StoreError: They are what was written, and cannot be read.

        """
        found, why = None, ""
        try:
            found = frame()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as e:
            why = str(e)
        for file in files():
            self.verify(file)
        if found is None:
            msg = f"{self.path} cannot be read: {why}"
            raise StoreError(msg)
        return found

    def tables(self) -> list[str]:
        """Return the names of all tables that some run has."""
        return sorted(
            p.name
            for p in self.path.iterdir()
            if p.is_dir() and p.name not in (PLANS, DAMAGED, "tmp") and any(p.iterdir())
        )

    def plans(self) -> list[str]:
        """Return the names of the sweeps in the store, the latest last."""
        found = list((self.path / PLANS).glob(f"*{SUFFIX}"))
        return [
            p.name[: -len(SUFFIX)] for p in sorted(found, key=lambda p: (p.stat().st_mtime_ns, p))
        ]

    def plan(self, name: str) -> pl.DataFrame:
        """Return the runs of a sweep: `run`, labels, `repeat`, `seed`, and columns that begin with _."""
        file = self.path / PLANS / f"{name}{SUFFIX}"
        try:
            self.verify(file)
            return self.read(lambda: pl.read_parquet(file), lambda: [file])
        except FileNotFoundError:
            msg = f'{self.path} has no sweep "{name}"; it has: {", ".join(self.plans()) or "none"}'
            raise StoreError(msg) from None

    def ids(self, table: str = RUNS) -> set[str]:
        """Return the identifiers of all runs that have a table."""
        # Loose files first: one that becomes part of a segment meanwhile is then seen twice, not missed.
        found = loose(self.path / table)
        return found | self.ids_in_segments(table)

    def ids_in_segments(self, table: str) -> set[str]:
        """Return the identifiers of all runs whose table is part of a segment."""
        return set().union(*self.in_segments(table).values())

    def has(self, table: str, run: str) -> bool:
        """Return whether a run has a table."""
        if os.path.exists(f"{self.path}/{table}/{run}{SUFFIX}"):  # noqa: PTH110 (before each run)
            return True
        return any(run in ids for ids in self.in_segments(table).values())

    def in_segments(self, table: str) -> dict[str, set[str]]:
        """Return the identifiers in each segment; files are read once, as they never change."""
        folder = f"{self.path}/{table}/segments"
        known, gone = self._segments.get(table, {}), set[str]()
        while True:
            # Listed every time: the folder's time may be set back, or too coarse to show two changes.
            names = {n for n in _names(folder) if n not in gone}
            if known.keys() == names:
                return known
            found: dict[str, set[str]] = {}
            for name in sorted(names):
                try:
                    found[name] = known.get(name) or self._runs_of(Path(folder, name))
                except FileNotFoundError:
                    # Merged meanwhile: what it had is in a new one, which is listed next.
                    gone.add(name)
            self._segments[table] = known = found

    def covered(self, table: str) -> list[Path]:
        """Return segments of which every run is in others, too, so that they can all be removed."""
        inside = dict(self.in_segments(table))
        found = []
        for name in sorted(inside, key=lambda n: len(inside[n])):
            if inside[name] <= set().union(*(ids for n, ids in inside.items() if n != name)):
                del inside[name]
                found.append(self.path / table / "segments" / name)
        return found

    def _runs_of(self, segment: Path) -> set[str]:
        self.verify(segment)

        def runs() -> pl.DataFrame:
            named = pl.read_parquet_metadata(segment).get(EMPTY, "").split()
            found = pl.scan_parquet(segment).select(pl.col("run").unique()).collect()
            return found.extend(pl.DataFrame({"run": named}, {"run": pl.String}))

        return set(self.read(runs, lambda: [segment])["run"])

    def files(self, table: str, runs: Collection[str] | None = None) -> list[Path]:
        """Return the files of a table, segments first; with `runs` those that may have one of them."""
        folder = self.path / table
        single = loose(folder)
        merged = self.in_segments(table)
        # A file that a killed compaction left beside its segment is not read twice.
        single -= set().union(*merged.values())
        if runs is not None:
            wanted = set(runs)
            single &= wanted
            merged = {n: inside for n, inside in merged.items() if inside & wanted}
        return [
            *(folder / "segments" / n for n in merged),
            *(folder / f"{run}{SUFFIX}" for run in sorted(single)),
        ]

    def scan(self, table: str = RUNS, runs: Collection[str] | None = None) -> pl.LazyFrame:
        """Return a table of all runs, lazily; the column `run` has the run of each row.

        With `runs`, files that have none of them are left out; others have more. A run that is in two
        segments is read once.

        Raises:
            DamagedError: A file is not what was written.
            FileNotFoundError: One was merged into a segment meanwhile.

        """
        files = self.files(table, runs)
        for file in files:
            self.verify(file)
        if not files:
            return pl.LazyFrame(schema={"run": pl.String})
        # Where the file system has no locks, or lost the locked file, two sweeps may merge the same files.
        once, again = [], []
        seen: set[str] = set()
        merged = self.in_segments(table)
        for file in files:
            ids = merged.get(file.name, set()) if file.parent != self.path / table else set()
            if twice := ids & seen:
                again.append(scan_files([file]).filter(~pl.col("run").is_in(sorted(twice))))
            else:
                once.append(file)
            seen |= ids
        return (
            pl.concat([scan_files(once), *again], how="diagonal_relaxed")
            if again
            else scan_files(once)
        )


def scan_files(files: Sequence[Path]) -> pl.LazyFrame:
    """Scan Parquet files; those of other versions, or of the lab, may have other columns."""
    groups: dict[str, list[Path]] = {}
    for file in files:
        groups.setdefault(repr(pl.read_parquet_schema(file)), []).append(file)
    scans = [pl.scan_parquet(group) for group in groups.values()]
    return scans[0] if len(scans) == 1 else pl.concat(scans, how="diagonal_relaxed")


def segment(frame: pl.DataFrame, runs: Iterable[str]) -> bytes:
    """Return a segment: a table of some runs; those that have no row in it are named in its footer."""
    return to_parquet(frame, level=3, empty=sorted(set(runs).difference(frame["run"].unique())))


def loose(folder: Path) -> set[str]:
    """Return the identifiers of the runs that have a file of their own in a folder."""
    runs = (n[: -len(SUFFIX)] for n in _names(folder))
    return {run for run in runs if _RUN.fullmatch(run)}


def _names(folder: str | Path) -> list[str]:
    """Return the names of the Parquet files in a folder; none if there is no folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (ten thousand names, or asked for before each run)
    except FileNotFoundError:
        return []
    return [n for n in names if n.endswith(SUFFIX)]


def _was_store(path: Path) -> bool:
    """Whether a directory without a store.json has what sweeps wrote."""
    runs = path / RUNS
    if runs.is_dir() and (loose(runs) or any((runs / "segments").glob(f"*{SUFFIX}"))):
        return True
    return (path / "tmp").is_dir() and any((path / PLANS).glob(f"*{SUFFIX}"))


def _marker_of(facts: Mapping[str, Any]) -> bytes:
    """Return what store.json says, with a checksum of it."""
    text = json.dumps(facts)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{json.dumps({**facts, 'sha256': digest})}\n".encode()


def write_file(store: Path, target: Path, data: bytes, owner: str) -> None:
    """Write a file so that it appears whole or not at all, even if the power fails."""
    temporary, fd = _temporary(store, owner)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
        # While it is locked: a file that no process holds may be removed as one that a killed sweep left.
        temporary.rename(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(fd)


def _temporary(store: Path, owner: str) -> tuple[Path, int]:
    """Make a temporary file, locked while it is open, so that other processes see that it is in use."""
    while True:
        path = store / "tmp" / f"{owner}.{os.getpid()}.{secrets.token_hex(4)}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with suppress(OSError):  # No locks here: use the process in its name.
            fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return path, fd
        os.close(fd)  # Another process removed it before it was locked.


def _remove_abandoned(file: Path) -> bool:
    """Remove a temporary file unless a process is writing it.

    The number in its name does not identify it: in containers, processes have the same few numbers.
    """
    fd = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            if _alive(file.name):
                return False
        file.unlink()
        return True
    finally:
        os.close(fd)


def _alive(name: str) -> bool:
    """Whether the process in the name of a temporary file lives, as far as is known here."""
    parts = name.split(".")
    try:
        os.kill(int(parts[-2]), 0)
    except (ProcessLookupError, ValueError, IndexError):
        return False
    except PermissionError:
        return True
    return True


_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space and run the same command again",
    errno.EDQUOT: "your quota is used up: free some space and run the same command again",
    errno.EROFS: "the file system is read-only: choose another store",
    errno.EACCES: "you may not write there: choose another store",
    errno.EPERM: "you may not write there: choose another store",
    errno.ENOTDIR: "there is a file in the way: choose another store",
    errno.EEXIST: "there is a file in the way: choose another store",
    errno.ENOENT: "it was removed meanwhile: run the same command again",
}


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in one sentence why a store cannot be written."""
    try:
        yield
    except OSError as e:
        why = _REMEDIES.get(e.errno or 0, f"{e.strerror or e}")
        if e.errno == errno.ENOSPC:
            why = why.replace(":", f"{reading.space(path)}:")
        msg = f"{path} cannot be written: {why}"
        raise StoreError(msg) from None
