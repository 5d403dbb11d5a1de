"""Runs in real time: each has a process of its own in the sandbox, a thread here waits for it.

They need little processor time, but precise timing: a thread is enough for each, and simulations
are done before or after, never beside them.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gargalo import lab
from gargalo.sweeps import work
from gargalo.sweeps.errors import WorkersError
from gargalo.sweeps.events import Crashed, Done, Failed

if TYPE_CHECKING:
    from gargalo.sweeps.events import Event
    from gargalo.sweeps.job import Task

CLOSE_S = 10.0
"""How long to wait for the end of runs that are no longer needed."""


class _UnwantedError(Exception):
    """The run is no longer needed: its process is killed."""


class RealTime:
    """An executor that does some runs in real time at once."""

    def __init__(self, setup: bytes, at_once: int) -> None:
        self._setup = setup
        self._size = at_once
        self._running: dict[str, threading.Thread] = {}
        self._news: queue.SimpleQueue[Done | Failed | Crashed] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._ready: work.Ready | None = None

    def room(self) -> int:
        """Return how many more runs can be given now."""
        return self._size - len(self._running)

    def start(self, task: Task) -> None:
        """Begin a run."""
        if self._ready is None:
            try:
                self._ready = work.prepare(self._setup)
            except Exception as e:
                msg = f"runs in real time cannot be measured: {type(e).__name__}: {e}"
                raise WorkersError(msg) from None
        args = (task, self._ready)
        thread = threading.Thread(target=self._do, args=args, name=f"run-{task.run}", daemon=True)
        self._running[task.run] = thread
        thread.start()

    def _do(self, task: Task, ready: work.Ready) -> None:
        def tell(*_: object) -> bool:
            if self._closed.is_set():
                raise _UnwantedError
            return True

        try:
            done = work.perform(task, ready, tell)
        except _UnwantedError:
            return
        except lab.DiedError as e:
            self._news.put(Crashed(task.run, str(e)))
            return
        except Exception as e:
            self._news.put(Failed(task.run, work.reason_of(e)))
            return
        if done is None:
            self._news.put(Failed(task.run, "the run was interrupted"))
            return
        tables, facts = done
        self._news.put(Done(task.run, int(facts["packets"]), tables))

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for news, at most for this time."""
        news: list[Event] = []
        with suppress(queue.Empty):
            news.append(self._news.get(timeout=timeout_s))
            while True:
                news.append(self._news.get_nowait())
        for event in news:
            self._running.pop(event.run).join()
        return news

    def close(self) -> None:
        """Stop all runs."""
        self._closed.set()
        until = time.monotonic() + CLOSE_S
        for thread in self._running.values():
            thread.join(max(0.0, until - time.monotonic()))
        self._running.clear()
