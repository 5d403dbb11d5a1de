"""Execution of the missing runs of a sweep."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, reading
from gargalo.running import memory_bytes
from gargalo.sweeps import compact
from gargalo.sweeps.errors import StoreError, SweepError
from gargalo.sweeps.events import Done, Executor, Failed, Moved
from gargalo.sweeps.job import Identifier, Job, Task
from gargalo.sweeps.local import LocalPool, cores
from gargalo.sweeps.model import label_names
from gargalo.sweeps.plugins import Measure, Plugins
from gargalo.sweeps.progress import SweepProgress
from gargalo.sweeps.realtime import RealTime
from gargalo.sweeps.result import Failure, Repaired, Sweep, SweepInterrupted, check_labels
from gargalo.sweeps.rows import RUNS
from gargalo.sweeps.store import Store
from gargalo.sweeps.work import Setup, check_keep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gargalo.results import Run
    from gargalo.sweeps.claims import Claims
    from gargalo.sweeps.events import Event
    from gargalo.sweeps.rows import Tables

MOST_CRASHES = 2
"""A run that killed this many workers is given up."""
POLL_S = 0.2
COMMIT_S = 0.5
"""A finished run is written at most this time later, with all that were finished meanwhile."""
WAIT_S = 1.0
"""After this time without a run to do, progress says which runs are waited for."""
COMPACT_EVERY = 1000
WORLDS = ("sim", "lab")
"""In the order in which their runs are done."""


def execute(
    jobs: Sequence[Job],
    store: str | Path,
    *,
    measure: Callable[[Run], Mapping[str, float]] | str | None = None,
    keep: Sequence[str] = (),
    workers: int | None = None,
    at_once: int = 1,
    cluster: str | None = None,
    progress: Callable[[SweepProgress], object] | None = None,
    plugins: Sequence[Path] | Plugins = (),
    name: str | None = None,
    stall_s: float | None = None,
    repair: bool = False,
    memory_limit: int | str | None = None,
    files: bool = False,
) -> Sweep:
    """Do the runs that the store does not have yet.

    A run that fails is listed in `Sweep.failures`; the others continue.

    Args:
        jobs: The runs, from `plan` or made one by one.
        store: Directory for results; made if there is none.
        measure: Called in the worker with every `Run`; the numbers it returns become columns of
            `Sweep.frame()`. When its source changes, runs are done again: its module, and packages that it declares
            (`measure.packages = ("mine.cases",)`).
        keep: Tables to keep whole, of those that `gargalo list tables` has.
        workers: Processes for simulations; by default one for each core.
        at_once: Runs in the lab at the same time; they are done here, after all simulations.
        cluster: Address of a Dask scheduler, instead of processes.
        progress: Called a few times a second.
        plugins: Python files that register congestion controls, schedulers or path managers.
        name: Of the sweep in the store; by default made from its labels.
        stall_s: A simulation on this machine that makes no progress for this time fails, with a
            traceback of where it was; by default there is no limit.
        memory_limit: What each run may take of memory, in bytes or like `"4GB"`; one that needs more
            fails. By default half of what its machine has left, divided among the workers on it.
        repair: Move the files of the store that are damaged aside, and do again what they held of these runs;
            see `Sweep.repaired`.
        files: `measure` finds the files of the run, captures and qlog among them, in `Run.directory`, which is removed
            after it.

    Raises:
        SweepError: A job is wrong; nothing was written.
        ScenarioError: A scenario is wrong; nothing was written.
        DamagedError: Files of the store are not what was written, and are not to be repaired.
        StoreError: The store cannot be written; finished runs are kept.
        ClusterError: The cluster is unusable, or was lost; finished runs are kept.
        SweepInterrupted: A keyboard interrupt; finished runs are kept.

    """
    _check(jobs, workers, at_once, cluster)
    check_keep(tuple(keep))
    check_labels(jobs)
    loaded = plugins if isinstance(plugins, Plugins) else Plugins.load(plugins)
    measuring = Measure.of(measure)
    wanted = _Wanted(tuple(dict.fromkeys(keep)), measuring)
    title = name if name is not None else default_name(jobs)
    why = _core.bad_name(title)
    if why is not None:
        msg = f"a sweep cannot be called that: {why}; use letters, digits, - and _"
        raise SweepError(msg)
    with_cluster = cluster is not None
    try:
        limit = memory_bytes(memory_limit)
    except ValueError as e:
        raise SweepError(str(e)) from None
    if limit is None and not with_cluster and (usual := _core.memory_limit()) is not None:
        limit = usual // (workers or cores())
    setup = Setup(
        keep=wanted.keep,
        measure=None if measuring is None else measuring.pickled(by_value=with_cluster),
        measure_table=None if measuring is None else measuring.table,
        plugins=loaded.files,
        classes=loaded.pickled(by_value=with_cluster),
        memory_limit=limit,
        files=files,
    ).dumps()
    with ExitStack() as stack:
        pool = LocalPool(setup, Path(store), workers or cores(), stall_s=stall_s)
        stack.enter_context(closing(pool))
        if cluster is None and not reading.kind(Path(store)):
            # All is to be done: they load their libraries while the scenarios are read here.
            pool.expect(sum(j.world == "sim" for j in jobs))
        identifier = Identifier(loaded.digests)
        tasks = [identifier.task(j) for j in jobs]
        plan = plan_frame(jobs, tasks, measuring)
        executor: Executor = pool
        if cluster is not None:
            from gargalo.sweeps.cluster import Cluster

            # Before the store is made: a wrong address must not leave an empty store.
            executor = stack.enter_context(closing(Cluster(cluster, setup)))
        opened, repaired = _open(store, wanted, tasks, title, repair=repair)
        lab = RealTime(setup, at_once)
        empty = Sweep(title, opened, plan, repaired=repaired)
        return _execute(empty, (executor, lab), wanted, tasks, progress)


def _check(jobs: Sequence[Job], workers: int | None, at_once: int, cluster: str | None) -> None:
    """Check what was requested.

    Raises:
        SweepError: It cannot be done.

    """
    if not jobs:
        msg = "a sweep needs at least one run"
        raise SweepError(msg)
    if workers is not None and workers < 1:
        msg = f"workers = {workers}: at least 1"
        raise SweepError(msg)
    if at_once < 1:
        msg = f"at_once = {at_once}: at least 1"
        raise SweepError(msg)
    if cluster is not None and all(j.world == "lab" for j in jobs):
        msg = "runs in real time are done on this machine: leave the cluster out"
        raise SweepError(msg)
    if workers is not None and cluster is not None:
        msg = "give either workers or a cluster"
        raise SweepError(msg)


def _open(
    path: str | Path, wanted: _Wanted, tasks: Sequence[Task], name: str, *, repair: bool
) -> tuple[Store, Repaired | None]:
    """Open a store; its files of these runs are verified; damaged ones are moved aside."""
    store = Store.create(path, repair=repair)
    runs = {t.run for t in tasks}
    damaged = store.damaged(wanted.tables, runs)
    if not damaged:
        return store, None
    held = store.held(damaged, name, runs)
    if not repair:
        raise damaged[0].among(len(damaged), held)
    moved = store.set_aside(damaged)
    return store, Repaired(moved, held) if moved else None


def _execute(
    sweep: Sweep,
    executors: tuple[Executor, Executor],
    wanted: _Wanted,
    tasks: Sequence[Task],
    progress: Callable[[SweepProgress], object] | None,
) -> Sweep:
    begun = time.monotonic()
    store = sweep.store
    store.write_plan(sweep.name, sweep.plan)
    state = _State(store, store.claims(), executors, wanted, tasks, progress)
    sweep = replace(sweep, failures=state.failures)
    try:
        state.run()
    except KeyboardInterrupt:
        raise SweepInterrupted(state.finish(sweep, begun)) from None
    finally:
        for executor in executors:
            executor.close()
        with suppress(
            StoreError
        ):  # What killed workers were writing; if it fails, the next sweep does it.
            store.clean()
    return state.finish(sweep, begun)


@dataclass(frozen=True)
class _Wanted:
    """What the store must have of a run."""

    keep: tuple[str, ...]
    measure: Measure | None

    @property
    def tables(self) -> tuple[str, ...]:
        more = () if self.measure is None else (self.measure.table,)
        return (RUNS, *self.keep, *more)

    def have(self, store: Store) -> set[str]:
        found = store.ids(RUNS)
        for table in self.tables[1:]:
            found &= store.ids(table)
        return found

    def has(self, store: Store, run: str) -> bool:
        return all(store.has(table, run) for table in self.tables)


@dataclass
class _State:
    """A sweep under way."""

    store: Store
    claims: Claims
    executors: tuple[Executor, Executor]
    """For simulations, and for the lab."""
    wanted: _Wanted
    tasks: Sequence[Task]
    progress: Callable[[SweepProgress], object] | None
    failures: list[Failure] = field(default_factory=list)
    reused: int = 0
    done: int = 0
    total: int = 0
    packets: int = 0
    _running: dict[str, tuple[Task, int]] = field(default_factory=dict)
    """Runs that are claimed: until they are written, or have failed."""
    _finished: dict[str, Tables] = field(default_factory=dict)
    """What of them is to be written."""
    _due: float = 0.0
    _crashes: dict[str, int] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)
    _idle_since: float | None = None
    _waiting: str = ""

    def run(self) -> None:
        self.store.clean()
        compact.compact(self.store, self.claims)
        have = self.wanted.have(self.store)
        unique = {t.run: t for t in self.tasks}
        self.total = len(unique)
        missing = [t for run, t in unique.items() if run not in have]
        self.reused = self.total - len(missing)
        self._tell()
        try:
            # One after the other: simulations would delay the lab.
            for executor, world in zip(self.executors, WORLDS, strict=True):
                self._do(executor, deque(t for t in missing if t.world == world))
        except BaseException:
            with suppress(StoreError):
                self._commit()
            raise
        finally:
            for run in self._running:
                self.claims.release(run)
        compact.compact(self.store, self.claims)
        gone = unique.keys() - self.wanted.have(self.store) - {f.run for f in self.failures}
        if gone:
            msg = (
                f"{len(gone)} finished runs were removed from {self.store.path} meanwhile: "
                "run the same command again"
            )
            raise StoreError(msg)

    def _do(self, executor: Executor, queue: deque[Task]) -> None:
        elsewhere: list[Task] = []
        while queue or elsewhere or self._running:
            while queue and executor.room() > 0:
                self._begin(queue.popleft(), executor, elsewhere)
            if not queue and elsewhere and executor.room() > 0:
                # Another sweep has claimed these: done there, or free again if it is killed.
                if not self._running:
                    self._wait(elsewhere)
                queue.extend(elsewhere)
                elsewhere = []
            if self._running:
                self._idle_since, self._waiting = None, ""
                for event in executor.poll(POLL_S):
                    self._handle(event, queue)
            if self._finished:
                idle = len(self._finished) == len(self._running)
                if time.monotonic() >= self._due or (idle and not queue):
                    self._commit()
            self._tell()

    def _commit(self) -> None:
        """Write finished runs."""
        self.store.commit_all(self._finished)
        before = self.done
        for run in self._finished:
            self.packets += self._running.pop(run)[1]
            self.claims.release(run)
        self.done += len(self._finished)
        self._finished.clear()
        if self.done // COMPACT_EVERY > before // COMPACT_EVERY:
            compact.compact(self.store, self.claims)

    def _wait(self, elsewhere: Sequence[Task]) -> None:
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since >= WAIT_S:
            count = "a run" if len(elsewhere) == 1 else f"{len(elsewhere)} runs"
            holder = self.claims.holder(elsewhere[0].run)
            self._waiting = f"{count} of {self.store.path} that {holder}"
        time.sleep(POLL_S)

    def _begin(self, task: Task, executor: Executor, elsewhere: list[Task]) -> None:
        if not self.claims.take(task.run):
            elsewhere.append(task)
            return
        if self.wanted.has(self.store, task.run):
            self.claims.release(task.run)
            self.reused += 1
            return
        self._running[task.run] = (task, 0)
        executor.start(task)

    def _handle(self, event: Event, queue: deque[Task]) -> None:
        if event.run not in self._running or event.run in self._finished:
            return
        task, packets = self._running[event.run]
        if isinstance(event, Moved):
            self._running[event.run] = (task, event.packets)
            return
        if isinstance(event, Done):
            if not self._finished:
                self._due = time.monotonic() + COMMIT_S
            self._running[event.run] = (task, event.packets)
            self._finished[event.run] = event.tables
            return
        if isinstance(event, Failed):
            self.failures.append(
                Failure(event.run, event.reason, self._crashes.get(event.run, 0) + 1, event.trace)
            )
        else:
            crashes = self._crashes[event.run] = self._crashes.get(event.run, 0) + 1
            if crashes < MOST_CRASHES:
                queue.appendleft(task)
            else:
                self.failures.append(Failure(event.run, event.reason, crashes))
        self.packets += packets
        del self._running[event.run]
        self.claims.release(event.run)

    def _tell(self) -> None:
        if self.progress is None:
            return
        self.progress(
            SweepProgress(
                total=self.total,
                done=self.done + self.reused,
                reused=self.reused,
                failed=len(self.failures),
                running=len(self._running) - len(self._finished),
                packets=self.packets + sum(p for _, p in self._running.values()),
                elapsed_s=time.monotonic() - self._begun,
                waiting_for=self._waiting,
            )
        )

    def finish(self, sweep: Sweep, begun: float) -> Sweep:
        return sweep.with_facts(
            done=self.done,
            reused=self.reused,
            packets=self.packets,
            wall_s=time.monotonic() - begun,
        )


def plan_frame(jobs: Sequence[Job], tasks: Sequence[Task], measure: Measure | None) -> pl.DataFrame:
    """Return the table of a sweep's runs, in order, as it goes into the store."""
    names = label_names(jobs)
    columns: list[pl.Series] = [pl.Series("run", [t.run for t in tasks], pl.String)]
    columns += [_labels(name, [j.labels.get(name) for j in jobs]) for name in names]
    columns.append(pl.Series("repeat", repeats(jobs, names), pl.Int64))
    columns.append(pl.Series("seed", [j.seed for j in jobs], pl.Int64))
    changes = [json.dumps(dict(t.overrides), ensure_ascii=False) for t in tasks]
    columns.append(pl.Series("_changes", changes, pl.String))
    columns.append(pl.Series("_scenario", [t.text for t in tasks], pl.String))
    columns.append(pl.Series("_path", [t.path for t in tasks], pl.String))
    table = None if measure is None else measure.table
    columns.append(pl.Series("_measure", [table] * len(jobs), pl.String))
    if measure is not None and measure.bounds is not None:
        columns.append(pl.Series("_bounds", [measure.bounds] * len(jobs), pl.String))
    return pl.DataFrame(columns)


def repeats(jobs: Sequence[Job], names: Sequence[str]) -> list[int]:
    """Return the repeat of each job: as given, or counted among jobs of equal labels."""
    seen: dict[tuple[Any, ...], int] = {}
    found = []
    for job in jobs:
        cell = tuple(job.labels.get(n) for n in names)
        given = job.repeat if job.repeat is not None else job.labels.get("repeat")
        found.append(seen.get(cell, 0) if given is None else int(given))
        seen[cell] = seen.get(cell, 0) + 1
    return found


def _labels(name: str, values: list[Any]) -> pl.Series:
    """Return a column of labels; of different kinds they become text."""
    given = [v for v in values if v is not None]
    if all(isinstance(v, bool) for v in given):
        return pl.Series(name, values, pl.Boolean)
    if any(isinstance(v, (bool, str)) for v in given):
        return pl.Series(name, [None if v is None else str(v) for v in values], pl.String)
    whole = all(isinstance(v, int) for v in given)
    return pl.Series(name, values, pl.Int64 if whole else pl.Float64, strict=False)


def default_name(jobs: Sequence[Job]) -> str:
    """Return the default name of a sweep, made of its labels."""
    names = label_names(jobs)
    name = "-by-".join(["sweep", "-".join(names)]) if names else "sweep"
    name = "".join(c if c.isprintable() and c not in "/\\" else "-" for c in name)
    if _core.bad_name(name) is not None:
        name = f"sweep-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return name
