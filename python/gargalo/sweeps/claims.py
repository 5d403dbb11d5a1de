"""Claims: which running sweep does which run, when several write one store.

A claim is a lock on one byte of an empty file, at an offset made from the run's identifier. The
kernel drops it with the process that holds it, however that ends: there are no stale locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path

COMPACTION = (1 << 62) + 1
"""The byte that a process locks while it merges small files; no identifier is equal to it."""

_guard = threading.Lock()
_files: dict[tuple[int, int], tuple[int, set[int]]] = {}
"""Open lock files by device and inode. They stay open: closing one descriptor of a file would drop
all locks that the process has on it."""


class Claims:
    """The claims of this process on the runs of a store."""

    def __init__(self, path: Path) -> None:
        """Open the lock file, made if need be."""
        with _guard:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            facts = os.fstat(fd)
            self._key = (facts.st_dev, facts.st_ino)
            if self._key in _files:
                # To close this one would drop the locks of the other: it stays open, too.
                self._fd = _files[self._key][0]
            else:
                _files[self._key] = (fd, set())
                self._fd = fd
        self.supported = True
        """Whether the file system has locks; without, sweeps may do a run twice, but store it once."""

    def take(self, run: str) -> bool:
        """Claim a run; False if another sweep, or one in another thread, holds it."""
        return self.lock(_offset(run))

    def release(self, run: str) -> None:
        """Give a claim back."""
        self.unlock(_offset(run))

    def holder(self, run: str) -> str:
        """Return which process has a claim on a run and its state, as in "process 7 does", as far as is known here."""
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _offset(run), 1, 0)
        process = 0
        # Elsewhere the structure is another.
        if sys.platform == "linux":
            with _guard, suppress(OSError):
                answer = struct.unpack(_FLOCK, fcntl.fcntl(self._fd, fcntl.F_GETLK, query))
                process = 0 if answer[0] == fcntl.F_UNLCK else answer[4]
        if process <= 0:
            return "another sweep does (in this process, another container or on another machine)"
        if _is_stopped(process):
            return f"process {process} does, which is stopped: continue it (kill -CONT {process}) or end it"
        return f"process {process} does"

    def lock(self, offset: int) -> bool:
        """Lock a byte without waiting."""
        with _guard:
            held = _files[self._key][1]
            if offset in held:
                return False
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except OSError as e:
                if e.errno in (errno.EACCES, errno.EAGAIN):
                    return False
                if e.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                    raise
                self.supported = False
            held.add(offset)
            return True

    def unlock(self, offset: int) -> None:
        """Unlock a byte."""
        with _guard:
            held = _files[self._key][1]
            if offset in held:
                held.discard(offset)
                if self.supported:
                    fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, offset)


_FLOCK = "hhqqi4x"
"""`struct flock` of Linux: type, whence, start, length, process."""


def _is_stopped(process: int) -> bool:
    try:
        facts = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name before the state is in brackets, and may have any character in it.
    return facts.rpartition(")")[2].split()[:1] == ["T"]


def _offset(run: str) -> int:
    return int(run[:15], 16)
