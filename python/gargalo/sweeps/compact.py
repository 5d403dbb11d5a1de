"""Merges many small files of a store into a few large ones.

A segment is written and renamed before the files it is made of are removed. Killed in between, a run
is in both: readers take the segment, and the next sweep removes the rest. Merging only saves files: where
it is not possible, for want of space say, they stay as they are.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from gargalo.sweeps.claims import COMPACTION
from gargalo.sweeps.errors import DamagedError
from gargalo.sweeps.store import SUFFIX, Store, loose, scan_files, segment, write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from gargalo.sweeps.claims import Claims

LEAST_FILES = 256
"""Fewer files are left as they are."""
MOST_BYTES = 64 << 20
"""A segment is not made of more than this."""
LARGE_BYTES = 4 << 20
"""A file of this size is left as it is."""


def compact(store: Store, claims: Claims, *, least_files: int | None = None) -> int:
    """Merge small files of every table; return how many were removed. One process does it at a time."""
    if not claims.lock(COMPACTION):
        return 0
    try:
        least = LEAST_FILES if least_files is None else least_files
        removed = 0
        with suppress(OSError):
            for table in store.tables():
                # A table with a damaged segment stays as it is; reading it raises an error.
                with suppress(DamagedError):
                    removed += _table(store, table, least)
        return removed
    finally:
        claims.unlock(COMPACTION)


def _table(store: Store, table: str, least_files: int) -> int:
    folder = store.path / table
    for file in store.covered(table):
        _remove(file)
    inside = store.in_segments(table)
    merged: set[str] = set().union(*inside.values())
    removed = 0
    for run in sorted(loose(folder) & merged):
        _remove(folder / f"{run}{SUFFIX}")
        removed += 1
    runs: dict[Path, set[str]] = {folder / f"{run}{SUFFIX}": {run} for run in sorted(loose(folder))}
    times = Counter(run for ids in inside.values() for run in ids)
    for name, ids in inside.items():
        if all(times[run] == 1 for run in ids):  # Otherwise rows would be there twice.
            runs[folder / "segments" / name] = ids
    sizes = {f: f.stat().st_size for f in runs}
    small = {f: size for f, size in sizes.items() if size < LARGE_BYTES}
    if len(small) < least_files:
        return removed
    # A damaged file must not get a good checksum: it stays as it is until it is repaired.
    small = {f: size for f, size in small.items() if _is_whole(store, f)}
    if len(small) < 2:
        return removed
    for group in _groups(small):
        names = "\n".join(f.name for f in group)
        name = hashlib.sha256(names.encode()).hexdigest()[:32]
        # Rows of a run stay together and in order.
        whole = segment(_read(store, group), {run for file in group for run in runs[file]})
        (folder / "segments").mkdir(exist_ok=True)
        write_file(store.path, folder / "segments" / f"{name}{SUFFIX}", whole, "segment")
        for file in group:
            _remove(file)
        removed += len(group)
    return removed


def _read(store: Store, group: list[Path]) -> pl.DataFrame:
    return store.read(lambda: scan_files(group).collect(), lambda: group)


def _is_whole(store: Store, file: Path) -> bool:
    try:
        store.verify(file)
    except DamagedError:
        return False
    return True


def _groups(sizes: dict[Path, int]) -> Iterator[list[Path]]:
    group: list[Path] = []
    total = 0
    for file, size in sizes.items():
        if group and total + size > MOST_BYTES:
            yield group
            group, total = [], 0
        group.append(file)
        total += size
    if len(group) > 1:
        yield group


def _remove(file: Path) -> None:
    with suppress(FileNotFoundError):
        file.unlink()
