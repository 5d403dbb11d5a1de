"""Who does which run, with executors, workers and clusters that do what is written for each."""

from __future__ import annotations

import faulthandler
import io
import itertools
import queue
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from gargalo import sweeps
from gargalo.sweeps import cluster, local, realtime, work, worker
from gargalo.sweeps import running as execute
from gargalo.sweeps.checksum import to_parquet
from gargalo.sweeps.errors import ClusterError, StoreError, WorkersError
from gargalo.sweeps.events import Crashed, Done, Failed, Moved
from gargalo.sweeps.job import Task
from gargalo.sweeps.rows import Row
from gargalo.sweeps.store import RUNS, Store
from sweep_helpers import MINI

NAMES = [str(i) * 32 for i in range(1, 9)]


def task(run, world="sim", **more):
    return Task(
        run, more.pop("text", MINI), more.pop("path", None), more.pop("overrides", ()), 1, world
    )


def tables(run):
    return {RUNS: to_parquet(pl.DataFrame({"run": [run]}))}


# --- the order of runs


class Script:
    """An executor: what becomes of a run is the next in its list of fates, or it is done with 10 packets."""

    def __init__(self, size=1, **fates):
        self.size, self.given, self.started = size, [], []
        self.fates = defaultdict(list, {NAMES[int(k[1:])]: v for k, v in fates.items()})

    def room(self):
        return self.size - len(self.given)

    def start(self, given):
        assert self.room() > 0
        self.given.append(given.run)
        self.started.append(given.run)

    def poll(self, _):
        run = self.given[0]
        event = self.fates[run].pop(0) if self.fates[run] else Done(run, 10, tables(run))
        if not isinstance(event, Moved):
            self.given.remove(run)
        return [event]

    def close(self):
        pass


def go(store, tasks, simulator=None, lab=None):
    """Do runs; return the state in the end and all that progress was told."""
    told = []
    state = execute._State(
        store, store.claims(), (simulator or Script(), lab or Script()),
        execute._Wanted((), None), tasks, told.append,
        _begun=1000.0,
    )  # fmt: skip
    state.run()
    return state, told


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "s")


def test_finished_failed_and_crashed_runs_are_counted(store, monkeypatch):
    ticks = itertools.count(1001)
    monkeypatch.setattr(execute.time, "monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr(execute, "COMMIT_S", 0.0)
    a, b, c, d = NAMES[:4]
    script = Script(
        r0=[Moved(a, 3), Done(a, 7, tables(a))],
        r1=[Failed(b, "why", "trace")],
        r2=[Crashed(c, "died")],
        r3=[Crashed(d, "died"), Crashed(d, "died again")],
    )
    state, told = go(store, [task(n) for n in NAMES[:4]], script)
    assert script.started == [a, b, c, c, d, d], "again at once"
    assert store.ids() == {a, c}
    assert state.failures == [
        sweeps.Failure(b, "why", 1, "trace"),
        sweeps.Failure(d, "died again", 2),
    ]
    assert (state.done, state.reused, state.total, state.packets) == (2, 0, 4, 17)
    last = told[-1]
    assert (last.total, last.done, last.failed, last.running, last.packets) == (4, 2, 2, 0, 17)
    assert [p.packets for p in told[:3]] == [0, 3, 7], "of runs under way, too"
    assert [p.running for p in told[:3]] == [0, 1, 0]
    elapsed = [p.elapsed_s for p in told]
    assert (elapsed[0], elapsed) == (1.0, sorted(set(elapsed)))
    finished = state.finish(sweeps.Sweep("x", store, pl.DataFrame()), 990.0)
    assert (finished.done, finished.reused, finished.packets) == (2, 0, 17)
    assert finished.wall_s == next(ticks) - 991


def test_a_run_that_fails_after_a_crash_was_tried_twice(store):
    script = Script(r0=[Crashed(NAMES[0], "died"), Failed(NAMES[0], "why")])
    state, _ = go(store, [task(NAMES[0])], script)
    assert [f.attempts for f in state.failures] == [2]


def test_what_the_store_has_is_not_done_again_and_equal_runs_once(store):
    store.commit(NAMES[0], tables(NAMES[0]))
    script = Script(size=3)
    state, told = go(store, [task(n) for n in (*NAMES[:3], NAMES[1])], script)
    assert script.started == NAMES[1:3]
    assert (state.total, state.done, state.reused, told[0].done) == (3, 2, 1, 1)


def test_the_lab_begins_when_no_simulation_is_left(store):
    lab = Script()
    tasks = [task(NAMES[0], "lab"), task(NAMES[1]), task(NAMES[2])]
    simulator = Script(r1=[Moved(NAMES[1], 1)])
    begin = lab.start
    lab.start = lambda given: (begin(given), order.append(len(simulator.started)))
    order = []
    go(store, tasks, simulator, lab)
    assert (simulator.started, lab.started, order) == (NAMES[1:3], NAMES[:1], [2])


def test_news_of_a_run_that_nobody_waits_for_is_none(store):
    script = Script(r0=[Done("x" * 32, 99, {}), Done(NAMES[0], 1, tables(NAMES[0]))])
    script.given.append(NAMES[0])
    script.size = 2
    state, _ = go(store, [task(NAMES[0])], script)
    assert (state.done, state.packets) == (1, 1)


def test_small_files_are_merged_now_and_then(store, monkeypatch):
    merged = []
    monkeypatch.setattr(execute.compact, "compact", lambda *_: merged.append(len(store.ids())))
    monkeypatch.setattr(execute, "COMPACT_EVERY", 2)
    monkeypatch.setattr(execute, "COMMIT_S", 0.0)
    go(store, [task(n) for n in NAMES[:5]], Script(r4=[Failed(NAMES[4], "why")]))
    assert merged == [0, 2, 4, 4], "before, after each second run that is done, and in the end"


def test_runs_of_another_sweep_are_waited_for_and_taken_over_if_it_ends(store, monkeypatch):
    monkeypatch.setattr(execute, "POLL_S", 0.0)
    monkeypatch.setattr(execute, "WAIT_S", 0.0)
    other = store.claims()
    for n in NAMES[:3]:
        assert other.take(n)
    told, steps = [], iter([lambda: None, lambda: store.commit(NAMES[0], tables(NAMES[0]))])

    def watch(p):
        told.append(p)
        if p.waiting_for:
            next(steps, lambda: None)()
            for n in NAMES[:3] if len(told) > 6 else NAMES[:1]:
                other.release(n) if len(told) > 4 else None

    script = Script()
    state = execute._State(
        store, store.claims(), (script, Script()), execute._Wanted((), None),
        [task(n) for n in NAMES[:4]], watch,
    )  # fmt: skip
    state.run()
    assert script.started[0] == NAMES[3], "what is free is done first"
    assert set(script.started) == set(NAMES[1:4])
    assert (state.done, state.reused) == (3, 1)
    waits = [p.waiting_for for p in told if p.waiting_for]
    assert waits[0].startswith(f"3 runs of {store.path} that another sweep does")
    assert told[-1].waiting_for == ""


def test_one_run_that_is_waited_for_is_a_run(store, monkeypatch):
    monkeypatch.setattr(execute, "POLL_S", 0.0)
    now = [10.0]
    monkeypatch.setattr(execute.time, "monotonic", lambda: now[0])
    executors = (Script(), Script())
    state = execute._State(store, store.claims(), executors, execute._Wanted((), None), [], None)
    for now[0], told in [(10.0, ""), (10.9, ""), (11.0, f"a run of {store.path} that ")]:
        state._wait([task(NAMES[0])])
        assert state._waiting.startswith(told)
        assert bool(state._waiting) is bool(told)
    state._wait([task(n) for n in NAMES[:2]])
    assert state._waiting.startswith(f"2 runs of {store.path} that ")


def test_claims_end_with_an_interrupt(store):
    class Interrupted(Script):
        def poll(self, _):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(store, [task(NAMES[0])], Interrupted())
    assert store.claims().take(NAMES[0])


def test_runs_that_were_removed_meanwhile_are_told(store):
    class Lost(Script):
        def poll(self, _):
            return [Done(self.given.pop(), 1)]

    with pytest.raises(
        StoreError, match=r"^2 finished runs were removed from .* same command again$"
    ):
        go(store, [task(n) for n in NAMES[:2]], Lost())


# --- workers of this machine


class Pipe:
    """A pipe that has been sent some messages, and remembers those that it is given."""

    def __init__(self, *messages):
        self.messages, self.sent, self.closed = list(messages), [], False

    def recv(self):
        if not self.messages:
            raise EOFError
        return self.messages.pop(0)

    def send(self, message):
        self.sent.append(message)

    def close(self):
        self.closed = True


def made(log=b"", *, ready=True, run=None):
    return local._Worker(None, Pipe(), io.BytesIO(log), ready, None if run is None else task(run))


@pytest.fixture
def pool(monkeypatch):
    """A pool whose workers are started by nobody, and end by SIGKILL."""
    monkeypatch.setattr(local, "_end", lambda *_, **__: -9)
    monkeypatch.setattr(
        local, "wait", lambda pipes, _: [p for p in pipes if p.messages or p.closed]
    )
    pool = local.LocalPool(b"setup", Path("s"), 2, stall_s=5.2)
    monkeypatch.setattr(pool, "_spawn", lambda: made(ready=False))
    return pool


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "exit code 0"), (1, "exit code 1"), (-9, "SIGKILL (perhaps out of memory)"), (-15, "SIGTERM"),
        (-1, "SIGHUP"), (-200, "signal 200"),
    ],
)  # fmt: skip
def test_an_exit_code_says_how_a_worker_ended(code, text):
    assert local._cause(code) == text


def test_each_core_has_a_worker(monkeypatch):
    assert local.cores() >= 1
    monkeypatch.setattr(local.os, "sched_getaffinity", lambda _: {3, 5, 9}, raising=False)
    assert local.cores() == 3
    monkeypatch.delattr(local.os, "sched_getaffinity")
    for count, found in [(4, 4), (None, 1)]:
        monkeypatch.setattr(local.os, "cpu_count", lambda count=count: count)
        assert local.cores() == found


def test_no_more_workers_are_started_than_there_are_runs(pool):
    assert pool.room() == 2
    pool.start(task(NAMES[0]))
    assert (len(pool._workers), pool.room()) == (1, 1)
    pool.start(task(NAMES[1]))
    assert (len(pool._workers), pool.room()) == (2, 0)
    pool.start(task(NAMES[2]))
    assert (len(pool._workers), pool.room()) == (2, -1)
    first, second = pool._workers
    first.pipe.messages.append(("ready",))
    assert pool.poll(0) == []
    assert [t.run for t in first.pipe.sent] == NAMES[:1], "in order"
    assert (first.idle, second.idle, pool.room()) == (False, False, -1)
    first.pipe.messages.append(("done", 5, False))
    assert pool.poll(0) == [Done(NAMES[0], 5)]
    assert [t.run for t in first.pipe.sent] == NAMES[:2]
    first.pipe.messages += [("moved", 3), ("done", 6, True)]
    assert pool.poll(0) == [Moved(NAMES[1], 3)]
    assert pool.poll(0) == [Done(NAMES[1], 6)]
    assert first not in pool._workers, "it is to be replaced"
    assert len(pool._workers) == 1, "one is enough for the last run"


def test_what_a_worker_says(pool):
    one = made(run=NAMES[0])
    pool._workers.append(one)
    assert pool._heard(one, ("failed", "why", "trace", False)) == [Failed(NAMES[0], "why", "trace")]
    assert one.idle
    assert pool._heard(one, ("done", 1, False)) == [], "it has nothing to do"
    with pytest.raises(WorkersError, match="workers cannot do this sweep: why"):
        pool._heard(one, ("unfit", "why"))
    one.task = task(NAMES[0])
    with pytest.raises(StoreError, match=r"^full$"):
        pool._heard(one, ("store", "full"))


@pytest.mark.parametrize(
    ("log", "event"),
    [
        (b"", Crashed(NAMES[0], "the worker process died: SIGKILL (perhaps out of memory)")),
        (b" \n", Crashed(NAMES[0], "the worker process died: SIGKILL (perhaps out of memory)")),
        (b"error: boom\n",
         Failed(NAMES[0], "boom", "SIGKILL (perhaps out of memory): error: boom")),
        (b"Timeout!\n line\n", Failed(NAMES[0], "no progress for 5 s: the run hangs", "Timeout!\n line")),
    ],
)  # fmt: skip
def test_why_a_worker_has_gone(pool, log, event):
    one = made(log, run=NAMES[0])
    one.log.seek(0, io.SEEK_END)
    pool._workers.append(one)
    assert pool._gone(one) == [event]
    assert pool._workers == []


def test_workers_that_die_as_they_start_are_tried_three_times(pool):
    def die(*, ready=False):
        one = made(ready=ready)
        pool._workers.append(one)
        return pool._gone(one)

    assert (die(), die(ready=True), die()) == ([], [], [])
    with pytest.raises(WorkersError, match=r"die as they start: SIGKILL"):
        die()
    one = made(ready=False)
    assert pool._heard(one, ("ready",)) == []
    assert (one.ready, die(), die()) == (True, [], []), "one that works begins a new count"


def test_a_limit_without_progress_is_a_second_at_least():
    limits = [local.LocalPool(b"", Path(), 1, stall_s=s)._stall_s for s in (None, 0.2, 1.4, 2.6)]
    assert limits == [0, 1, 1, 3]


def test_a_pool_without_workers_waits(pool, monkeypatch):
    waited = []
    monkeypatch.setattr(local.time, "sleep", waited.append)
    assert pool.poll(0.5) == []
    assert waited == [0.5]


def test_a_worker_that_does_not_end_is_killed():
    begun = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    one = local._Worker(begun, Pipe(), io.BytesIO())
    begun.kill()
    assert local._end(one, gently=False) == -9
    assert one.pipe.closed


# --- a worker


@pytest.fixture
def ready(monkeypatch):
    """A worker whose runs have as many packets as their seed, and take no memory."""
    monkeypatch.setattr(worker.work, "perform", lambda t, *_: (tables(t.run), {"packets": t.seed}))
    monkeypatch.setattr(worker, "resident_bytes", lambda: 0)
    monkeypatch.setattr(worker._core, "has_stuck_calls", lambda: False)
    return work.Setup().dumps()


def served(pipe, *, memory_bytes=10, most_runs=9):
    worker._serve(pipe, memory_bytes, most_runs, worker.Watch(0, -1))
    return pipe.sent


def test_a_worker_does_what_it_is_given_until_its_pipe_ends(store, ready):
    pipe = Pipe((ready, str(store.path)), task(NAMES[0]), task(NAMES[1]))
    with pytest.raises(EOFError):
        served(pipe)
    assert pipe.sent == [("ready",), ("done", 1, {}, False), ("done", 1, {}, False)]
    assert store.ids() == set(NAMES[:2]), "files it writes itself"


def test_a_worker_sends_what_is_small(store, ready, monkeypatch):
    small = Row.of({"x": ("f", 1.0)})
    both = {RUNS: small, "flows": to_parquet(pl.DataFrame({"run": [NAMES[0]]}))}
    monkeypatch.setattr(worker.work, "perform", lambda *_: (both, {"packets": 1}))
    sent = served(Pipe((ready, str(store.path)), task(NAMES[0])), most_runs=1)
    assert sent[1] == ("done", 1, {RUNS: small}, True)
    assert (store.ids("flows"), store.ids()) == ({NAMES[0]}, set())


def test_finished_runs_are_written_together(store, monkeypatch):
    written = []
    commit = Store.commit_all
    monkeypatch.setattr(
        Store, "commit_all", lambda s, runs: (written.append(list(runs)), commit(s, runs))
    )
    small = {RUNS: Row.of({"x": ("f", 1.0)})}
    go(
        store,
        [task(n) for n in NAMES[:3]],
        Script(**{f"r{i}": [Done(NAMES[i], 1, small)] for i in range(3)}),
    )
    assert written == [NAMES[:3]]
    # What was finished is kept, whatever ends the sweep.
    fates = {"r3": [Done(NAMES[3], 1, small)], "r4": [None]}
    with pytest.raises(AttributeError):
        go(store, [task(n) for n in NAMES[3:5]], Script(**fates))
    assert store.ids() == set(NAMES[:4])


def test_a_worker_is_replaced_after_many_runs_or_when_it_has_grown(store, ready, monkeypatch):
    begin = (ready, str(store.path))
    tasks = [task(n) for n in NAMES[:3]]
    more, last = ("done", 1, {}, False), ("done", 1, {}, True)
    assert served(Pipe(begin, *tasks), most_runs=2)[1:] == [more, last]
    assert served(Pipe(begin, *tasks), most_runs=1)[1:] == [last]
    sizes = iter([100, 110, 111])
    monkeypatch.setattr(worker, "resident_bytes", lambda: next(sizes))
    assert served(Pipe(begin, *tasks))[1:] == [more, last]
    monkeypatch.setattr(worker, "resident_bytes", lambda: 0)
    monkeypatch.setattr(worker._core, "has_stuck_calls", lambda: True)
    assert served(Pipe(begin, *tasks))[1:] == [last]


def test_a_worker_tells_why_a_run_or_all_runs_failed(store, ready, monkeypatch):
    def wrong(*_):
        raise ValueError("odd")

    (told,) = served(Pipe((b"no setup", str(store.path))))
    assert told[0] == "unfit"
    monkeypatch.setattr(worker.work, "perform", wrong)
    _, told = served(Pipe((ready, str(store.path)), task(NAMES[0])), most_runs=1)
    assert told[0] == "failed"
    assert told[1].startswith("ValueError: odd (")
    assert told[2].endswith("ValueError: odd")
    assert told[3] is True
    monkeypatch.setattr(worker.work, "perform", lambda *_: None)
    assert served(Pipe((ready, str(store.path)), task(NAMES[0]))) == [("ready",)], (
        "not needed any more"
    )
    monkeypatch.setattr(worker.work, "perform", lambda *_: ({RUNS: b""}, {"packets": 1}))
    monkeypatch.setattr(Store, "commit", lambda *_: (_ for _ in ()).throw(StoreError("full")))
    assert served(Pipe((ready, str(store.path)), task(NAMES[0])), most_runs=1)[1] == (
        "store",
        "full",
        True,
    )


def test_a_worker_reports_now_and_then(monkeypatch):
    now, looks = [0.0], []
    monkeypatch.setattr(worker.time, "monotonic", lambda: now[0])
    watch = SimpleNamespace(look=lambda: looks.append(now[0]), rest=lambda: looks.append("rest"))

    def perform(_task, _ready, tell):
        for now[0], packets in [(0.1, 1), (0.2499, 2), (0.25, 3), (0.4, 4), (0.5, 5)]:
            assert tell(0.0, 1.0, packets) is True
        return {}, {"packets": 9}

    monkeypatch.setattr(worker.work, "perform", perform)
    pipe = Pipe()
    done = worker._one(task(NAMES[0]), None, SimpleNamespace(commit=lambda *_: None), pipe, watch)
    assert done == ("done", 9, {})
    assert pipe.sent == [("moved", 3), ("moved", 5)]
    assert looks == [0.0, 0.25, 0.5, "rest"]

    def gone(_):
        raise BrokenPipeError

    pipe.send = gone
    monkeypatch.setattr(
        worker.work, "perform", lambda *a: found.append((now.__setitem__(0, 9), a[2](0, 1, 1))[1])
    )
    found: list[bool] = []
    assert worker._one(task(NAMES[0]), None, None, pipe, watch) is None
    assert found == [False], "the run is no longer needed"


def test_a_watch_without_a_limit_does_nothing(monkeypatch):
    calls = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *a, **k: calls.append((a, k)))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: calls.append("rest"))
    for limit in (0, 1):
        watch = worker.Watch(limit, 7)
        watch.look()
        watch.rest()
    assert calls == [((1,), {"exit": True, "file": 7}), "rest"]


def test_resident_memory_is_that_of_this_process():
    psutil = pytest.importorskip("psutil")
    assert worker.resident_bytes() == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)


# --- real time


def test_runs_in_real_time_are_told_when_they_end(monkeypatch):
    fates = {
        NAMES[0]: lambda: ({RUNS: b"x"}, {"packets": 4.0}),
        NAMES[1]: lambda: None,
        NAMES[2]: lambda: (_ for _ in ()).throw(realtime.lab.DiedError("died")),
        NAMES[3]: lambda: (_ for _ in ()).throw(ValueError("odd")),
    }
    monkeypatch.setattr(realtime.work, "perform", lambda t, *_: fates[t.run]())
    executor = realtime.RealTime(work.Setup().dumps(), 5)
    for run in fates:
        executor.start(task(run, "lab"))
    assert executor.room() == 1
    news = {}
    while len(news) < 4:
        news.update({e.run: e for e in executor.poll(1)})
    assert executor.room() == 5
    assert news[NAMES[0]] == Done(NAMES[0], 4, {RUNS: b"x"})
    assert news[NAMES[1]] == Failed(NAMES[1], "the run was interrupted")
    assert news[NAMES[2]] == Crashed(NAMES[2], "died")
    assert news[NAMES[3]].reason.startswith("ValueError: odd")
    assert executor.poll(0) == []
    with pytest.raises(WorkersError, match="cannot be measured: UnpicklingError"):
        realtime.RealTime(b"x", 1).start(task(NAMES[0], "lab"))


def test_runs_that_are_no_longer_needed_end(monkeypatch):
    begun = queue.SimpleQueue()

    def perform(_task, _ready, tell):
        begun.put(tell())
        while True:
            tell()

    monkeypatch.setattr(realtime.work, "perform", perform)
    executor = realtime.RealTime(work.Setup().dumps(), 1)
    executor.start(task(NAMES[0], "lab"))
    assert begun.get(timeout=10) is True
    (thread,) = executor._running.values()
    executor.close()
    assert (thread.is_alive(), executor.room(), executor.poll(0)) == (False, 1, [])


# --- clusters


class Future:
    """A run on a cluster."""

    def __init__(self, status="finished", result=None, error=None):
        self.status, self._result, self._error, self.released = status, result, error, False

    def cancelled(self):
        return self.status == "cancelled"

    def result(self, timeout):
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self):
        return self._error

    def release(self):
        self.released = True

    def add_done_callback(self, call):
        self.call = call


class Client:
    """A scheduler whose workers have three threads on two machines."""

    status = "running"

    def __init__(self, futures=()):
        self.futures, self.submitted, self.cancelled = list(futures), [], []
        self.workers = {"a": {"host": "x", "nthreads": 2}, "b": {"host": "y", "nthreads": 1}}
        self.scheduler = SimpleNamespace(identity=None)

    def wait_for_workers(self, count, timeout):
        pass

    def run(self, function, **_):
        return {k: function() for k in self.workers}

    def sync(self, *_, **__):
        return {"workers": self.workers}

    def submit(self, function, parcel, setup, **options):
        if self.status != "running":
            raise RuntimeError("gone")
        self.submitted.append(parcel)
        return self.futures.pop(0)

    def cancel(self, futures):
        self.cancelled += futures

    def close(self, timeout):
        self.status = "closed"


def connected(monkeypatch, *futures):
    client = Client(futures)
    monkeypatch.setattr(cluster, "_connect", lambda _: client)
    return cluster.Cluster("tcp://c", work.Setup().dumps()), client


def heard(executor, future):
    future.call(future)
    return executor.poll(0)


KilledWorker = type("KilledWorker", (Exception,), {})
"""As Dask calls it."""


def test_a_cluster_is_given_two_runs_for_each_thread(monkeypatch):
    futures = [Future(result=("done", (tables(n), 5.0))) for n in NAMES[:2]]
    executor, client = connected(monkeypatch, *futures)
    assert executor.room() == 6
    for n in NAMES[:2]:
        executor.start(task(n))
    assert executor.room() == 4
    assert [p.beside for p in client.submitted] == [2, 2]
    assert executor.poll(0) == []
    assert heard(executor, futures[0]) == [Done(NAMES[0], 5, tables(NAMES[0]))]
    assert (futures[0].released, executor.room()) == (True, 5)
    assert heard(executor, futures[0]) == [], "it is known already"
    executor.close()
    assert (client.cancelled, client.status) == ([futures[1]], "closed")


@pytest.mark.parametrize(
    ("future", "event"),
    [
        (Future(result=("failed", "why")), Failed(NAMES[0], "why")),
        (Future(error=OSError("x")), Crashed(NAMES[0], "its result was lost: OSError")),
        (
            Future("error", error=KilledWorker("x")),
            Crashed(NAMES[0], "the workers that tried it died"),
        ),
        (Future("error", error=ValueError("odd")), Failed(NAMES[0], "ValueError: odd")),
        (Future("lost"), Crashed(NAMES[0], "the cluster gave it up (lost)")),
    ],
)
def test_what_became_of_a_run_on_a_cluster(monkeypatch, future, event):
    executor, _ = connected(monkeypatch, future)
    executor.start(task(NAMES[0]))
    assert heard(executor, future) == [event]
    assert executor.room() == 6


def test_a_run_whose_connection_was_lost_is_given_again(monkeypatch):
    lost, good = Future("cancelled"), Future(result=("failed", "why"))
    executor, client = connected(monkeypatch, lost, good)
    executor.start(task(NAMES[0]))
    assert heard(executor, lost) == []
    assert len(client.submitted) == 2
    assert heard(executor, lost) == [], "it is another one that counts"
    assert heard(executor, good) == [Failed(NAMES[0], "why")]


def test_a_cluster_is_lost_after_some_time_without_workers_or_scheduler(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now[0])
    executor, client = connected(monkeypatch, Future())
    assert executor.poll(0) == [], "nothing is waited for"
    executor.start(task(NAMES[0]))
    client.workers["c"] = {"host": "x", "nthreads": 4}
    now[0] = 100.9
    assert (executor.poll(0), executor.room()) == ([], 5)
    now[0] = 101.0
    assert (executor.poll(0), executor.room()) == ([], 13), "it is looked at once a second"
    client.workers = {}
    now[0] = 131.0
    assert (executor.poll(0), executor.room()) == ([], 0)
    now[0] = 132.1
    with pytest.raises(
        ClusterError, match="tcp://c has lost all its workers; finished runs are kept"
    ):
        executor.poll(0)
    client.status = "connecting"
    now[0] = 140
    with pytest.raises(ClusterError, match="has lost its scheduler"):
        executor.poll(0)
    client.status = "closed"
    with pytest.raises(ClusterError, match="has lost its scheduler"):
        executor.start(task(NAMES[1]))


def test_workers_of_another_version_are_refused(monkeypatch):
    for version, told in [
        ("0.0", "has gargalo 0.0, here is"),
        (OSError("x"), r"has no usable gargalo \(OSError: x\)"),
    ]:
        client = Client()
        monkeypatch.setattr(client, "run", lambda *_, version=version, **__: {"tcp://w": version})
        with pytest.raises(sweeps.NoClusterError, match=f"worker tcp://w {told}"):
            cluster._inspect(client, "tcp://c")

    def silent(*_, **__):
        raise TimeoutError

    for method, told in [
        ("run", "do not answer: TimeoutError"),
        ("wait_for_workers", "has no workers"),
    ]:
        client = Client()
        monkeypatch.setattr(client, method, silent)
        with pytest.raises(sweeps.NoClusterError, match=told):
            cluster._inspect(client, "tcp://c")
        monkeypatch.setattr(cluster, "_connect", lambda _, client=client: client)
        with pytest.raises(sweeps.NoClusterError):
            cluster.Cluster("tcp://c", b"")
        assert client.status == "closed"
    assert cluster._inspect(Client(), "tcp://c") == (3, 2)
    assert cluster._threads({}) == (0, 1)


def test_traces_travel_under_names_of_their_content(tmp_path, monkeypatch):
    for name, text in (("up.trace", "1\n"), ("same.trace", "1\n"), ("down.trace", "2\n")):
        (tmp_path / name).write_text(text)
    executor, _ = connected(monkeypatch)
    traced = MINI.replace('rate = "2Mbit/s"', 'rate = { trace = "up.trace" }').replace(
        '"mini"', '"up.trace"'
    )
    overrides = (
        ("topology.simple.link.down.rate.trace", "down.trace"),
        ("topology.simple.link.up.rate", '{ trace = "same.trace" }'),
        ("x.trace", "none.trace"),
        ("duration", "2s"),
        ("flows.0.start", '"1s"'),
    )
    given = task(NAMES[0], text=traced, path=str(tmp_path / "race.toml"), overrides=overrides)
    parcel = executor._packed(given)
    assert len(parcel.files) == 2, "of equal content there is one"
    texts = {data: name for name, data in parcel.files}
    up, down = texts[b"1\n"], texts[b"2\n"]
    assert up in parcel.task.text
    assert parcel.task.text.count("up.trace") == 1, "in the name, which is no file"
    sent = dict(parcel.task.overrides)
    assert sent["topology.simple.link.down.rate.trace"].strip('"') == down
    assert up in sent["topology.simple.link.up.rate"]
    assert (sent["x.trace"], sent["duration"], sent["flows.0.start"]) == (
        "none.trace",
        "2s",
        '"1s"',
    )
    assert (parcel.task.path, parcel.task.seed, parcel.task.run) == (None, 1, NAMES[0])
    plain = executor._packed(task(NAMES[0]))
    assert (plain.files, plain.task.text) == ((), MINI), "as it was written"


def test_a_parcel_is_unpacked_where_it_is_done(monkeypatch):
    seen = []

    def perform(given, _):
        seen.append(given.path and (Path(given.path).parent / "a.trace").read_bytes())
        return {RUNS: b"x"}, {"packets": 3}

    setup = work.Setup().dumps()
    monkeypatch.setattr(work, "perform", perform)
    parcels = [cluster.Parcel(task(NAMES[0]), f) for f in ((("a.trace", b"1"),), ())]
    assert [cluster.remote(p, setup) for p in parcels] == [("done", ({RUNS: b"x"}, 3))] * 2
    assert seen == [b"1", None]
    monkeypatch.setattr(work, "perform", lambda *_: None)
    assert cluster.remote(parcels[0], setup) == ("failed", "the run was stopped")
    assert cluster.remote(parcels[0], b"")[0] == "failed"
