"""Workers of a Dask cluster: SLURM, Kubernetes, SSH, or a few processes.

Runs come back as bytes and are written here, so that workers need no shared file system. Traces that
a scenario names travel with it; plugins and measuring functions do, too.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo.extras import need
from gargalo.running import override
from gargalo.scenarios.scenario import to_toml
from gargalo.sweeps import work
from gargalo.sweeps.errors import ClusterError, NoClusterError
from gargalo.sweeps.events import Crashed, Done, Failed
from gargalo.sweeps.job import Source
from gargalo.sweeps.model import base_tree

if TYPE_CHECKING:
    from typing import TypeAlias

    from gargalo.sweeps.events import Event
    from gargalo.sweeps.job import Task

    # Dask has no types of its own.
    Client: TypeAlias = Any
    Future: TypeAlias = Any

CONNECT_S = 10.0
"""How long to wait for a scheduler, and then for a first worker."""
LOST_S = 30.0
"""How long a cluster may be without scheduler or workers before the sweep gives up."""
AHEAD = 2
"""Runs given to the cluster for each of its threads, so that none waits for us."""


@dataclass(frozen=True)
class Parcel:
    """A task with the files that it needs."""

    task: Task
    files: tuple[tuple[str, bytes], ...] = ()
    beside: int = 1
    """Runs that the busiest machine does at once."""


class Cluster:
    """An executor that gives runs to a Dask scheduler."""

    def __init__(self, address: str, setup: bytes) -> None:
        """Connect.

        Raises:
            NoClusterError: There is no scheduler, no worker, or workers have another Gargalo.

        """
        self.address = address
        self._setup = setup
        self._news: queue.Queue[tuple[str, Future]] = queue.Queue()
        self._futures: dict[str, tuple[Task, Future]] = {}
        self._traces: dict[Path, tuple[str, bytes]] = {}
        self._client = _connect(address)
        try:
            self._slots, self._beside = _inspect(self._client, address)
        except BaseException:
            _close(self._client)
            raise
        self._seen = self._checked = time.monotonic()

    def room(self) -> int:
        """Return how many more runs can be given now."""
        return max(1, self._slots * AHEAD) - len(self._futures)

    def start(self, task: Task) -> None:
        """Send a run to the scheduler.

        Raises:
            ClusterError: There is none any more.

        """
        parcel = self._packed(task)
        try:
            # Not pure: a run that is given again after a crash is to be done again.
            future = self._client.submit(remote, parcel, self._setup, pure=False, retries=0)
        except Exception:
            if self._client.status in ("closing", "closed"):
                raise self._lost("its scheduler") from None
            raise
        self._futures[task.run] = (task, future)
        future.add_done_callback(lambda f: self._news.put((task.run, f)))

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for finished runs, at most for this time."""
        found = []
        with suppress(queue.Empty):
            found.append(self._news.get(timeout=timeout_s))
            while True:
                found.append(self._news.get_nowait())
        news = []
        for run, future in found:
            known = self._futures.get(run)
            if known is None or known[1] is not future:
                continue
            if future.cancelled():
                # Not cancelled by us: the connection to the scheduler was lost; the run is not the cause.
                self.start(known[0])
            else:
                news.append(self._heard(run, future))
        if news:
            self._seen = time.monotonic()
        elif self._futures:
            self._watch()
        return news

    def _heard(self, run: str, future: Future) -> Event:
        del self._futures[run]
        if future.status == "finished":
            try:
                kind, value = future.result(timeout=60)
            except Exception as e:  # The worker that had the result is gone.
                return Crashed(run, f"its result was lost: {type(e).__name__}")
            finally:
                future.release()
            if kind == "done":
                tables, packets = value
                return Done(run, int(packets), tables)
            return Failed(run, str(value))
        error = future.exception() if future.status == "error" else None
        if type(error).__name__ == "KilledWorker":
            return Crashed(run, "the workers that tried it died")
        if error is not None:
            return Failed(run, work.one_line(error))
        return Crashed(run, f"the cluster gave it up ({future.status})")

    def _watch(self) -> None:
        """Give up when the scheduler or all workers are gone for long."""
        now = time.monotonic()
        if now - self._checked < 1:
            return
        self._checked = now
        answered = False
        if self._client.status == "running":
            with suppress(Exception):
                workers = _workers(self._client, min(CONNECT_S, LOST_S))
                answered = True
                self._slots, self._beside = _threads(workers)
                if workers:
                    self._seen = now
        if self._client.status == "closed" or now - self._seen > LOST_S:
            raise self._lost("all its workers" if answered else "its scheduler")

    def _lost(self, what: str) -> ClusterError:
        return ClusterError(
            f"the cluster {self.address} has lost {what}; finished runs are kept: "
            "restart it and run the same command again"
        )

    def _packed(self, task: Task) -> Parcel:
        """Put the traces that a scenario names into the parcel, under names of their content."""
        files: dict[str, bytes] = {}
        tree = base_tree(Source(task.text))
        before = to_toml(tree)
        base = Path(task.path).parent if task.path is not None else Path.cwd()
        tree = self._renamed(tree, base, files)
        overrides = []
        for key, value in task.overrides:
            parsed = base_tree(Source(f"v = {value}\n")).get("v", value)
            new = self._renamed(parsed, base, files)
            if key.endswith(".trace") and isinstance(parsed, str):
                new = self._renamed({"trace": parsed}, base, files)["trace"]
            overrides.append((key, value if new == parsed else override(new)))
        text = task.text if to_toml(tree) == before else to_toml(tree)
        sent = replace(task, text=text, path=None, overrides=tuple(overrides))
        return Parcel(sent, tuple(sorted(files.items())), self._beside)

    def _renamed(self, node: Any, base: Path, files: dict[str, bytes]) -> Any:
        if isinstance(node, list):
            return [self._renamed(v, base, files) for v in node]
        if not isinstance(node, dict):
            return node
        found = {}
        for key, value in node.items():
            file = base / value if key == "trace" and isinstance(value, str) else None
            if file is not None and file.is_file():
                if file not in self._traces:
                    data = reading.data(file)
                    self._traces[file] = (f"{hashlib.sha256(data).hexdigest()}.trace", data)
                name, data = self._traces[file]
                files[name] = data
                found[key] = name
            else:
                found[key] = self._renamed(value, base, files)
        return found

    def close(self) -> None:
        """Cancel running tasks and disconnect."""
        with suppress(Exception):
            self._client.cancel([future for _, future in self._futures.values()])
        self._futures.clear()
        _close(self._client)


def remote(parcel: Parcel, setup: bytes) -> tuple[str, Any]:
    """Do a run on a worker; return `("done", (tables, packets))` or `("failed", reason)`."""
    try:
        ready = work.prepare(setup)
        with tempfile.TemporaryDirectory(prefix="gargalo-") as folder:
            task = parcel.task
            if parcel.files:
                for name, data in parcel.files:
                    (Path(folder) / name).write_bytes(data)
                task = replace(task, path=str(Path(folder) / "scenario.toml"))
            done = work.perform(task, _with_share(ready, parcel.beside))
    except Exception as e:
        return "failed", work.reason_of(e)
    if done is None:
        return "failed", "the run was stopped"
    tables, facts = done
    return "done", (tables, facts["packets"])


def _with_share(ready: work.Ready, beside: int) -> work.Ready:
    """Give a run its share of what the machine has left, as among the workers of a sweep here."""
    usual = None if ready.memory_limit is not None else _core.memory_limit()
    return ready if usual is None else replace(ready, memory_limit=usual // beside)


def remote_version() -> str:
    """Return the version of Gargalo on a worker."""
    return _core.__engine__


def _connect(address: str) -> Client:
    need("clusters", "distributed")
    import distributed
    from distributed.comm import registry

    # Dask logs every attempt with tracebacks; one sentence of ours is enough. When imported it gives
    # some of its loggers levels of their own.
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    scheme, separator, _ = address.partition("://")
    if separator and scheme not in registry.backends:
        known = ", ".join(f"{s}://" for s in registry.backends)
        msg = f'"{address}" is not an address of a Dask scheduler: write tcp://HOST:8786 (known: {known})'
        raise NoClusterError(msg)
    make: Any = distributed.Client
    try:
        return make(address, timeout=CONNECT_S, set_as_default=False)
    except ValueError as e:
        msg = (
            f'"{address}" is not an address of a Dask scheduler ({e}); write it as tcp://HOST:8786'
        )
        raise NoClusterError(msg) from None
    except Exception as e:
        msg = (
            f"no Dask scheduler answers at {address} within {CONNECT_S:g} s ({type(e).__name__}); "
            "start one with `dask scheduler`, or check the address"
        )
        raise NoClusterError(msg) from None


def _threads(workers: dict[str, Any]) -> tuple[int, int]:
    """Return how many threads workers have, and how many on the machine with most."""
    by_host: dict[str, int] = {}
    for worker in workers.values():
        host = str(worker["host"])
        by_host[host] = by_host.get(host, 0) + int(worker["nthreads"])
    return sum(by_host.values()), max(by_host.values(), default=1)


def _inspect(client: Client, address: str) -> tuple[int, int]:
    """Return how many threads the workers have, all being of our version, as `_threads` does."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except Exception:
        msg = f"the cluster {address} has no workers; start some with `dask worker {address}`"
        raise NoClusterError(msg) from None
    try:
        # One that is frozen would be waited for without end.
        versions = client.run(remote_version, on_error="return", callback_timeout=CONNECT_S)
        workers = _workers(client, CONNECT_S)
    except Exception as e:
        msg = f"the workers of {address} do not answer: {type(e).__name__}"
        raise NoClusterError(msg) from None
    for worker, version in versions.items():
        if version != _core.__engine__:
            has = f"gargalo {version}" if isinstance(version, str) else "no usable gargalo"
            told = "" if isinstance(version, str) else f" ({work.one_line(version)})"
            msg = (
                f"the worker {worker} has {has}{told}, here is {_core.__engine__}: "
                "install the same version on all workers"
            )
            raise NoClusterError(msg)
    return _threads(workers)


def _workers(client: Client, timeout_s: float) -> dict[str, Any]:
    """Return what the scheduler says of its workers; an error if it does not in time."""
    identity = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=timeout_s)
    return dict(identity["workers"])


def _close(client: Client) -> None:
    with suppress(Exception):
        client.close(timeout=5)
