"""A worker process: takes tasks from a pipe, sends finished runs back; only large tables it writes to the store itself.

It ends when the pipe does, in the middle of a run too: a killed sweep leaves no process behind.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.sweeps import work
from gargalo.sweeps.errors import StoreError

if TYPE_CHECKING:
    from gargalo.sweeps.job import Task

REPORT_EVERY_S = 0.25


def main(
    descriptor: int, memory_bytes: int, most_runs: int, stall_s: int = 0, log: int = -1
) -> None:
    """Do tasks until the pipe is closed, or until the process is to be replaced.

    Args:
        descriptor: Of the pipe.
        memory_bytes: Growth of resident memory after which the process ends.
        most_runs: Runs after which to do so.
        stall_s: A run without progress for this time ends the process; 0: no limit.
        log: Descriptor of the file that then gets a traceback of where it was.

    """
    # Ctrl-C reaches the whole group; what to do about it is decided where the sweep is.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if log >= 0:
        _core.tell_crashes_to(log)
    with (
        Connection(descriptor) as pipe,
        contextlib.suppress(EOFError, BrokenPipeError, ConnectionError),
    ):
        _serve(pipe, memory_bytes, most_runs, Watch(stall_s, log))


class Watch:
    """Ends the process when a run makes no progress; works while Python code holds the interpreter."""

    def __init__(self, stall_s: int, log: int) -> None:
        """Start it; it does nothing if `stall_s` is 0."""
        self._stall_s, self._log = stall_s, log

    def look(self) -> None:
        """Begin to wait again."""
        if self._stall_s:
            faulthandler.dump_traceback_later(self._stall_s, exit=True, file=self._log)

    def rest(self) -> None:
        """Wait for nothing."""
        if self._stall_s:
            faulthandler.cancel_dump_traceback_later()


def _serve(pipe: Connection, memory_bytes: int, most_runs: int, watch: Watch) -> None:
    setup, store = pipe.recv()
    try:
        ready = work.prepare(setup)
    except Exception as e:
        pipe.send(("unfit", f"{type(e).__name__}: {e}"))
        return
    pipe.send(("ready",))
    before = resident_bytes()
    for count in range(1, most_runs + 1):
        task = pipe.recv()
        message = _one(task, ready, store, pipe, watch)
        if message is None:
            return
        grown = resident_bytes() - before > memory_bytes
        retire = count == most_runs or grown or _core.has_stuck_calls()
        pipe.send((*message, retire))
        if retire:
            return


def _one(
    task: Task, ready: work.Ready, store: str, pipe: Connection, watch: Watch
) -> tuple[object, ...] | None:
    last = time.monotonic()
    watch.look()

    def tell(_now_s: float, _end_s: float, packets: int, *_: object) -> bool:
        nonlocal last
        if time.monotonic() - last < REPORT_EVERY_S:
            return True
        last = time.monotonic()
        watch.look()
        try:
            pipe.send(("moved", packets))
        except OSError:
            return False  # The run is no longer needed.
        return True

    try:
        done = work.perform(task, ready, tell)
        if done is None:
            return None
        tables, facts = done
        # The row that makes the run finished is written after these, where all others are.
        large = {name: data for name, data in tables.items() if isinstance(data, bytes)}
        if large:
            from gargalo.sweeps.store import Store

            Store(store).commit(task.run, large)
    except StoreError as e:
        return ("store", str(e))
    except Exception as e:
        return ("failed", work.reason_of(e), work.trace_of(e))
    finally:
        watch.rest()
    return ("done", facts["packets"], {n: t for n, t in tables.items() if n not in large})


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (called after every run)
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
