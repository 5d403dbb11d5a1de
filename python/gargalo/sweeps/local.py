"""Worker processes on this machine.

Each is a fresh interpreter (no fork, no import of the caller's `__main__`) with a pipe of its own, so
that whatever happens to one is seen at once and concerns the run that it did alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO, TYPE_CHECKING, Any

from gargalo.sweeps.errors import StoreError, WorkersError
from gargalo.sweeps.events import Crashed, Done, Failed, Moved

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gargalo.sweeps.events import Event
    from gargalo.sweeps.job import Task

MEMORY_BYTES = 256 << 20
"""A worker whose memory has grown by this much is replaced."""
MOST_RUNS = 1000
"""A worker that has done this many runs is replaced."""
MOST_BAD_STARTS = 3
CRASHED = "error: "
"""What the engine says of a plug-in that crashes begins with this."""

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gargalo.sweeps.worker import main; main(*map(int, sys.argv[2:]))"
)


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection
    log: IO[bytes]
    """Where a traceback goes if a run hangs, and what crashed."""
    ready: bool = False
    task: Task | None = None

    @property
    def idle(self) -> bool:
        return self.ready and self.task is None


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


class LocalPool:
    """An executor of worker processes."""

    def __init__(
        self,
        setup: bytes,
        store: Path,
        workers: int,
        *,
        memory_bytes: int = MEMORY_BYTES,
        most_runs: int = MOST_RUNS,
        stall_s: float | None = None,
    ) -> None:
        self._stall_s = 0 if stall_s is None else max(1, round(stall_s))
        self._first = (setup, str(store.absolute()))
        self._size = workers
        self._limits = (memory_bytes, most_runs)
        self._workers: list[_Worker] = []
        self._waiting: list[Task] = []
        self._bad_starts = 0
        self._closed = False

    def room(self) -> int:
        """Return how many more runs can be given now."""
        busy = sum(w.task is not None for w in self._workers)
        return self._size - busy - len(self._waiting)

    def expect(self, runs: int) -> None:
        """Start the workers that so many runs will need."""
        for _ in range(min(self._size, runs) - len(self._workers)):
            self._workers.append(self._spawn())

    def start(self, task: Task) -> None:
        """Begin a run, or start the worker that will do it."""
        self._waiting.append(task)
        self._feed()

    def _feed(self) -> None:
        for worker in [w for w in self._workers if w.idle]:
            if not self._waiting:
                return
            task = self._waiting.pop(0)
            worker.task = task
            with suppress(OSError):  # If it died, the next poll sees it.
                worker.pipe.send(task)
        starting = sum(not w.ready for w in self._workers)
        for _ in range(min(self._size - len(self._workers), len(self._waiting) - starting)):
            self._workers.append(self._spawn())

    def _spawn(self) -> _Worker:
        # One core each: libraries must not start threads for all cores in every worker.
        threads = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            ours, theirs = Pipe(duplex=True)
            log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
            numbers = (theirs.fileno(), *self._limits, self._stall_s, log.fileno())
            command = [sys.executable, "-c", _BOOT, json.dumps(sys.path), *map(str, numbers)]
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno(), log.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # What plugins print must not mix with results.
                env={**threads, **os.environ, "MPLBACKEND": "agg"},
            )
        except OSError as e:
            msg = f"a worker process cannot be started: {e.strerror or e}"
            raise WorkersError(msg) from None
        theirs.close()
        with suppress(OSError):
            ours.send(self._first)
        return _Worker(process, ours, log)

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for news, at most for this time."""
        pipes = {w.pipe: w for w in self._workers}
        if not pipes:
            time.sleep(timeout_s)
            return []
        news: list[Event] = []
        for pipe in wait(list(pipes), timeout_s):
            worker = pipes[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                news += self._gone(worker)
            else:
                news += self._heard(worker, message)
        self._feed()
        return news

    def _heard(self, worker: _Worker, message: Sequence[Any]) -> list[Event]:
        kind = message[0]
        if kind == "ready":
            worker.ready = True
            self._bad_starts = 0
            return []
        if kind == "unfit":
            msg = f"workers cannot do this sweep: {message[1]}"
            raise WorkersError(msg)
        if worker.task is None:
            return []
        run = worker.task.run
        if kind == "moved":
            return [Moved(run, message[1])]
        if kind == "store":
            raise StoreError(message[1])
        worker.task = None
        if message[-1]:
            self._workers.remove(worker)
            _end(worker, gently=True)
        if kind == "failed":
            return [Failed(run, message[1], message[2])]
        return [Done(run, *message[1:-1])]

    def _gone(self, worker: _Worker) -> list[Event]:
        self._workers.remove(worker)
        how = _cause(_end(worker, gently=True))
        if worker.task is not None:
            worker.log.seek(0)
            trace = worker.log.read().decode("utf-8", "replace").strip()
            if trace.startswith(CRASHED):
                # It would crash again.
                return [Failed(worker.task.run, trace.removeprefix(CRASHED), f"{how}: {trace}")]
            if trace:
                # It would hang again.
                reason = f"no progress for {self._stall_s} s: the run hangs"
                return [Failed(worker.task.run, reason, trace)]
            return [Crashed(worker.task.run, f"the worker process died: {how}")]
        if not worker.ready:
            self._bad_starts += 1
            if self._bad_starts >= MOST_BAD_STARTS:
                msg = f"worker processes die as they start: {how}"
                raise WorkersError(msg)
        return []

    def close(self) -> None:
        """Stop all workers, whatever they are doing."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            _end(worker, gently=False)
        self._workers.clear()
        self._waiting.clear()


def _end(worker: _Worker, *, gently: bool) -> int:
    worker.pipe.close()
    try:
        return worker.process.wait(5 if gently else None)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        return worker.process.wait()


def _cause(code: int) -> str:
    """Return what an exit code means."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"{name} (perhaps out of memory)" if name == "SIGKILL" else name
