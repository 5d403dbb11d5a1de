"""What sweeps under faults are played with: sweeps, faults, and looks at every file of a store."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import psutil
from conftest import LONG, environment
from gargalo import sweeps
from gargalo.sweeps import compact
from gargalo.sweeps.checksum import why_damaged
from gargalo.sweeps.store import MARKER, RUNS
from sweep_helpers import sweep_file
from test_sweep_cluster import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


TESTS = Path(__file__).parent
SEED = int(os.environ.get("GARGALO_CHAOS_SEED", "1"))
ROUNDS = int(os.environ.get("GARGALO_CHAOS_ROUNDS", "0"))
PROCESSES_ROUNDS, DASK_ROUNDS = (16, 6) if LONG else (7, 5)
"""So many that each kind of fault comes once at least."""
AT_ONCE = (2, 2, 3, 1)
"""Faults in a round, and in the next ones."""
FIRST, MORE = 8, 5
"""Repeats of each of the two cells in the first round, and more in each round after it."""
HANG_S = 120
"""No sweep takes so long: this is a guard, not a measure."""
LOOKS = 10
"""How often files are listed again because a running sweep has changed them."""
DISK = 24 << 20

AXES = '[axes]\nduration = ["100ms", "150ms"]\n'
# Few files are merged, so that faults meet merging; a lost cluster is given up soon.
DRIVER = """\
from gargalo.sweeps import cluster, compact, running, store
compact.LEAST_FILES, running.COMPACT_EVERY, store.TOGETHER, cluster.LOST_S = 12, 8, 3, 6.0
from gargalo.cli.app import main
main()
"""
# What a process sees as the time of day; the machine's clock stays as it is.
CLOCK = """\
import os, time
jump = os.environ.get("GARGALO_TEST_CLOCK")
if jump:
    by, after = map(float, jump.split(":"))
    begun, real, real_ns = time.monotonic(), time.time, time.time_ns
    def shift():
        return by if time.monotonic() - begun > after else 0.0
    time.time = lambda: real() + shift()
    time.time_ns = lambda: real_ns() + int(shift() * 1e9)
"""
DAY = 86_400.0
SENTENCES: dict[str, list[set[str]]] = {
    "the disk is full": [{"full disk"}],
    "removed meanwhile": [{"removed"}],
    # A repair moves files aside that the other sweep has counted as finished.
    "were removed from": [{"removed"}, {"corrupted", "two at once"}],
    "worker processes die as they start": [{"kill worker"}, {"kill workers"}],
    "the worker process died": [{"kill worker"}, {"kill workers"}],
    "the workers that tried it died": [{"kill a Dask worker"}],
    "its result was lost": [{"kill a Dask worker"}],
    # Both workers were killed, and the next ones are slow to start.
    "has lost all its workers": [{"kill the scheduler"}, {"kill a Dask worker"}],
    "has lost its scheduler": [{"kill the scheduler"}],
    # It was killed before the sweep had connected to it, or had asked it for its workers.
    "no Dask scheduler answers at": [{"kill the scheduler"}],
    "has no workers; start some": [{"kill the scheduler"}, {"kill a Dask worker"}],
    "do not answer": [{"kill the scheduler"}, {"kill a Dask worker"}],
}
"""What a sweep may say when it fails, and the faults that lead to it: all of one of the sets.

No "kill group": it ends the sweep before a run was tried twice and before workers were started again.
"""


def due(told: str, faults: set[str]) -> bool:
    """Whether one of the faults is the reason of what a sweep said."""
    said = [reasons for sentence, reasons in SENTENCES.items() if sentence in told]
    return any(reason <= faults for reasons in said for reason in reasons)


class Sweep:
    """A sweep under way in a process group of its own."""

    def __init__(self, world: World, arguments: list[str], env: dict[str, str]) -> None:
        self.arguments = arguments
        self.log = (world.folder / f"stderr{world.begun}").open("w+")
        command = [sys.executable, "driver.py", *arguments]
        self.process = subprocess.Popen(
            command, cwd=world.folder, env=env, stdout=subprocess.DEVNULL, stderr=self.log, start_new_session=True
        )  # fmt: skip
        self.killed = False

    @property
    def over(self) -> bool:
        return self.process.poll() is not None

    def members(self) -> list[psutil.Process]:
        """Its processes besides the first."""
        found = []
        for pid in psutil.pids():
            with contextlib.suppress(OSError, psutil.Error):
                if os.getsid(pid) == self.process.pid != pid:
                    found.append(psutil.Process(pid))
        return found

    def signal(self, number: int, whom: str, dice: random.Random) -> None:
        workers = sorted(self.members(), key=lambda p: p.pid)
        chosen = {
            "driver": [],
            "worker": [dice.choice(workers)] if workers else [],
            "workers": workers,
            "group": workers,
        }[whom]
        for process in chosen:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
        if whom in ("driver", "group"):
            self.process.send_signal(number)
            self.killed |= number == signal.SIGKILL

    def end(self) -> str:
        """Wait; return what it said."""
        try:
            self.process.wait(HANG_S)
            _, alive = psutil.wait_procs(self.members(), timeout=HANG_S)
            assert not alive, "processes stay behind"
        finally:
            for process in [*self.members(), self.process]:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            self.process.wait()
            self.log.seek(0)
            told = self.log.read()
            self.log.close()
        return told


class World:
    """A store, and what is known of it."""

    def __init__(self, folder: Path, store: Path, reference: sweeps.Sweep, seed: int) -> None:
        self.folder, self.store, self.dice = folder, store, random.Random(seed)
        self.seed, self.begun, self.repeat = seed, 0, FIRST
        self.reference = {
            RUNS: reference.store.scan(RUNS).drop("wall_s").collect(),
            **{t: reference.store.scan(t).collect() for t in reference.store.tables() if t != RUNS},
        }
        self.frame, self.flows = (
            reference.frame().drop("wall_s"),
            reference.table("flows").collect(),
        )
        self.story: list[str] = []
        self.faults: Counter[str] = Counter()
        self.harmed: set[Path] = set()
        """Files that were damaged or removed."""
        self.repair: list[str] = []
        """The command that a message named."""
        self.where: list[str] = ["--workers", "2"]
        self.ballast = store.parent / "ballast"
        folder.joinpath("driver.py").write_text(DRIVER)
        folder.joinpath("clock").mkdir()
        folder.joinpath("clock", "sitecustomize.py").write_text(CLOCK)
        self.file = sweep_file(
            folder, f'keep = ["flows"]\nmeasure = "sweep_helpers:slowly"\n{AXES}'
        )

    # --- sweeps

    def arguments(self) -> list[str]:
        begin = self.repair or ["sweep", str(self.file), "--store", str(self.store)]
        return [*begin, "--repeat", str(self.repeat), *self.where]

    def environment(self, clock: str = "", pause: str = "0.05") -> dict[str, str]:
        path = os.pathsep.join([str(self.folder / "clock"), str(TESTS), *sys.path])
        return {
            **environment(),
            "PYTHONPATH": path,
            "GARGALO_TEST_CLOCK": clock,
            "GARGALO_TEST_PAUSE": pause,
        }

    def begin(self, clock: str = "", pause: str = "0.05") -> Sweep:
        self.begun += 1
        return Sweep(self, self.arguments(), self.environment(clock, pause))

    def end(self, sweep: Sweep, faults: set[str]) -> int:
        """Wait for a sweep; check what it says; return its exit code."""
        arguments, told, code = sweep.arguments, sweep.end(), sweep.process.returncode
        self.story.append(f"  exit code {code}: {told.strip()[-600:]}")
        assert "Traceback" not in told
        assert code in (0, 1, 2) or (sweep.killed and code == -signal.SIGKILL)
        if code == 0:
            self.repair = []
        damaged = code == 2 and "error: " in told and " is damaged" in told
        if code in (1, 2) and not damaged:
            assert due(told, faults), f"{told!r} is due to none of {faults}"
        if damaged:
            named = re.search(
                r"error: (.*) is damaged[^;]*; (gargalo sweep .* --repair) (moves|writes)", told
            )
            assert named, f"{told!r} names no file and command"
            assert Path(named[1]) in self.harmed, f"{named[1]} was not harmed"
            command = shlex.split(named[2])[1:]
            # The same command, of which later rounds have more repeats, perhaps on another cluster.
            self.repair = [*command[: command.index("--repeat")], "--repair"]
            assert command == [*(a for a in arguments if a != "--repair"), "--repair"]
        return code

    # --- what is there

    def whole(self) -> set[str]:
        """Return the finished runs; every file that is whole is compared with the reference."""
        # While it is read, files of runs may become one segment: what is in neither then was not seen, but is not lost.
        for _ in range(LOOKS):
            files = self.tables()
            found = {t: self.runs_of(t) for t in self.reference}
            if files == self.tables():
                break
        return set.intersection(*found.values())

    def tables(self) -> list[Path]:
        return sorted(f for t in self.reference for f in (self.store / t).rglob("*.parquet"))

    def runs_of(self, table: str) -> set[str]:
        frames = []
        for file in sorted((self.store / table).rglob("*.parquet")):
            with contextlib.suppress(FileNotFoundError):
                if why_damaged(file):
                    assert file in self.harmed, f"{file} is damaged"
                else:
                    frames.append(pl.read_parquet(file))
        if not frames:
            return set()
        wanted = self.reference[table]
        got = pl.concat([f.select(wanted.columns) for f in frames]).unique()
        expected = wanted.filter(pl.col("run").is_in(got["run"].unique().to_list()))
        assert got.sort(pl.all()).equals(expected.sort(pl.all())), f"{table} has other figures"
        return set(got["run"])

    def check_frame(self, whole: set[str]) -> None:
        """What readers get is equal to the reference, too; or they are told why not."""
        try:
            frame = sweeps.load(self.store).frame().drop("wall_s", strict=False)
        except sweeps.StoreError as e:
            assert self.harmed, e  # noqa: PT017
            return
        assert frame["run"].is_unique().all(), "a run is there twice"
        expected = self.frame.filter(pl.col("run").is_in(frame["run"].to_list()))
        assert frame.equals(expected.select(frame.columns))
        planned = set(sweeps.load(self.store).plan["run"])
        assert set(frame["run"]) >= whole & planned

    # --- faults

    def files(self) -> list[Path]:
        found = sorted(p for p in self.store.rglob("*") if p.is_file())
        kinds = sorted({p.relative_to(self.store).parts[0] for p in found})
        if not found:
            return []
        # Not runs alone, of which there are most, nor store.json all the time.
        folders = [k for k in kinds if (self.store / k).is_dir()]
        kind = self.dice.choice(folders if folders and self.dice.random() < 0.7 else kinds)
        chosen = [p for p in found if p.relative_to(self.store).parts[0] == kind]
        segments = [p for p in chosen if p.parent.name == "segments"]
        return segments if segments and self.dice.random() < 0.5 else chosen

    def corrupt(self) -> None:
        if not (files := self.files()):
            return
        file = self.dice.choice(files)
        harm = self.dice.choice(["flip", "cut", "empty", "text", "longer"])
        with contextlib.suppress(FileNotFoundError):
            times = file.stat()
            data = bytearray(file.read_bytes())
            if harm == "flip" and data:
                data[self.dice.randrange(len(data))] ^= 1 << self.dice.randrange(8)
            new = {
                "flip": bytes(data),
                "cut": bytes(data[: self.dice.randrange(len(data) + 1)]),
                "empty": b"",
                "text": b"no\n" * 40,
                "longer": bytes(data) + b"\0",
            }[harm]
            if new == file.read_bytes():
                return
            with file.open("r+b") as out:  # In place: a disk or a person did it, not the store.
                out.write(new)
                out.truncate()
            self.harmed.add(file)
            if self.dice.random() < 0.5:
                os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.story.append(f"  {harm} {file.relative_to(self.store)}")

    def remove(self) -> None:
        if not (files := self.files()):
            return
        file = self.dice.choice(files)
        whole_folder = file.parent != self.store and self.dice.random() < 0.25
        with contextlib.suppress(FileNotFoundError):
            if whole_folder:
                shutil.rmtree(file.parent, ignore_errors=True)
            else:
                file.unlink()
        self.harmed.add(file)
        self.story.append(
            f"  removed {(file.parent if whole_folder else file).relative_to(self.store)}"
        )

    def litter(self) -> None:
        """Leave what killed sweeps leave, in containers too, where numbers of processes repeat."""
        with contextlib.suppress(FileNotFoundError):
            for owner in ("plan", "segment", "store.json", "probe", "0" * 32):
                number = self.dice.choice([1, os.getpid(), 4_000_000])
                name = f"{owner}.{number}.{self.dice.randrange(1 << 30):08x}"
                (self.store / "tmp" / name).write_bytes(b"half a file")

    def touch(self) -> None:
        """Set times of files and folders years forwards and backwards."""
        for path in sorted(self.store.rglob("*")):
            if self.dice.random() < 0.4:
                by = self.dice.choice([-3000, -1, 1, 3000]) * DAY
                with contextlib.suppress(FileNotFoundError):
                    os.utime(path, (time.time() + by,) * 2)

    def fill(self) -> None:
        """Fill the disk but for a few pages."""
        try:
            with self.ballast.open("wb", buffering=0) as out:
                while True:
                    out.write(bytes(1 << 16))
        except OSError:
            size = self.ballast.stat().st_size
            os.truncate(self.ballast, max(0, size - 4096 * self.dice.randrange(24)))

    def forget(self) -> None:
        """Harm counts as long as the file is as it was left."""
        self.harmed = {f for f in self.harmed if not f.exists() or why_harmed(f)}


def why_harmed(file: Path) -> str | None:
    """Say what is wrong with a file of a store."""
    if file.suffix == ".parquet":
        return why_damaged(file)
    if file.name == MARKER:
        try:
            sweeps.Store(file.parent)
        except sweeps.DamagedError as e:
            return str(e)
    return None


def moment(world: World, sweep: Sweep, known: int) -> None:
    """Wait for a random moment: mostly while runs are being finished, sometimes before."""
    dice = world.dice
    early, pause, until = dice.random() < 0.2, dice.random(), time.monotonic() + HANG_S
    while not early and not sweep.over and time.monotonic() < until:
        # However slow the machine.
        if sum(1 for _ in (world.store / RUNS).rglob("*.parquet")) != known:
            break
        time.sleep(0.02)
    time.sleep(pause * (1.5 if early else 0.4))


def harm_processes(world: World, sweep: Sweep, kind: str) -> None:
    dice = world.dice
    verb, _, whom = kind.partition(" ")
    if verb == "kill":
        sweep.signal(signal.SIGKILL, whom, dice)
        return
    sweep.signal(signal.SIGSTOP, whom, dice)
    time.sleep(dice.random() * 0.6)
    if dice.random() < 0.3:
        sweep.signal(signal.SIGKILL, "driver", dice)  # Stopped workers go on without it.
    sweep.signal(signal.SIGCONT, "group", dice)


def play(
    world: World, deck: Iterator[str], special: dict[str, Callable[[Sweep], None]], number: int
) -> None:
    """Play a round: faults in files, a sweep, faults while it runs."""
    dice = world.dice
    kinds = [next(deck) for _ in range(AT_ONCE[number % len(AT_ONCE)])]
    world.faults.update(kinds)
    world.story.append(f"round {number}, {2 * world.repeat} runs: {', '.join(kinds)}")
    world.forget()
    before = world.whole()
    later: list[str] = []
    clock = ""
    two = "two at once" in kinds
    for kind in kinds:
        if kind == "clock":
            clock = f"{dice.choice([-3000, -1, 1, 3000]) * DAY}:{dice.random() * 4}"
            world.touch()
        if kind in ("corrupted", "removed", "litter", "clock") and dice.random() < 0.5:
            harm_files(world, kind)
        elif kind != "two at once":
            later.append(kind)
    intact = before & world.whole()
    known = sum(1 for _ in (world.store / RUNS).rglob("*.parquet"))
    running = [world.begin(clock) for _ in range(1 + two)]
    for kind in later:
        at = dice.randrange(len(running))
        moment(world, running[at], known)
        if running[at].process.poll() == 2 and world.end(running[at], set(kinds)) == 2:
            # Damaged before: what is to happen happens to the repair.
            running[at] = world.begin(clock)
            moment(world, running[at], known)
        sweep = running[at]
        if sweep.over:
            continue
        if kind in special:
            special[kind](sweep)
        elif kind == "full disk":
            world.fill()
        elif kind in ("corrupted", "removed", "litter", "clock"):
            between = world.whole()
            harm_files(world, kind)
            intact &= world.whole() | (intact - between)
        else:
            harm_processes(world, sweep, kind)
    codes = [world.end(s, set(kinds)) for s in running]
    world.ballast.unlink(missing_ok=True)
    after = world.whole()
    lost = intact - after
    assert not lost, f"{len(lost)} finished runs are lost: {sorted(lost)[:3]}"
    world.check_frame(after)
    # What is left there while a sweep ends may come after it has looked for the last time.
    if codes == [0] and "litter" not in later:
        check_tidy(world)
    world.repeat += MORE


def harm_files(world: World, kind: str) -> None:
    harms = {
        "corrupted": world.corrupt,
        "removed": world.remove,
        "litter": world.litter,
        "clock": world.touch,
    }
    harms[kind]()


def check_tidy(world: World) -> None:
    left = (
        [p.name for p in (world.store / "tmp").iterdir()] if (world.store / "tmp").exists() else []
    )
    assert left == [], "temporary files of dead processes"


def settle(world: World) -> None:
    """Make it whole with the command that is named, at most one; compare all of it with the reference."""
    world.story.append("the end")
    for _ in range(2):
        code = world.end(world.begin(pause="0"), set())
        if code == 0:
            break
    assert code == 0, "the command that was named does not make it whole"
    check_tidy(world)
    sweep = sweeps.load(world.store, "test")
    runs = sweep.plan["run"].to_list()
    assert len(runs) == 2 * world.repeat
    assert sweep.frame().drop("wall_s").equals(world.frame.filter(pl.col("run").is_in(runs)))
    assert sweep.table("flows").collect().equals(world.flows.filter(pl.col("run").is_in(runs)))
    # What a killed compaction left beside its segment is removed by the next.
    compact.compact(sweep.store, sweep.store.claims())
    for table, every in world.reference.items():
        wanted = every.filter(pl.col("run").is_in(runs))
        files = [pl.read_parquet(f) for f in sorted((world.store / table).rglob("*.parquet"))]
        rows = pl.concat([f.select(wanted.columns) for f in files])
        assert rows.sort(pl.all()).equals(wanted.sort(pl.all())), f"{table}: each run once"


def shuffled(kinds: list[str], dice: random.Random) -> Iterator[str]:
    """Deal all kinds in a random order, again and again: with LONG=1 some more often than others."""
    kinds = kinds if LONG else sorted(set(kinds))
    while True:
        yield from dice.sample(kinds, len(kinds))


@contextlib.contextmanager
def told(world: World) -> Iterator[None]:
    """Print what happened, which is seen on failure, and the seed."""
    try:
        yield
    finally:
        print("\n".join(world.story))
        print(f"the same again: GARGALO_CHAOS_SEED={world.seed}; the store is {world.store}")
        print(
            f"seed {world.seed}: {world.begun} sweeps, faults: {dict(sorted(world.faults.items()))}"
        )


PROCESS_FAULTS = [
    "kill driver", "kill driver", "kill group", "kill worker", "kill workers", "stop driver", "stop worker",
    "stop workers", "corrupted", "corrupted", "corrupted", "removed", "removed", "removed", "two at once",
    "two at once", "clock", "clock", "litter",
]  # fmt: skip
FULL_DISK = ["full disk", "full disk"]


class Dask:
    """A scheduler and two workers, which are replaced when they are killed."""

    def __init__(self, world: World) -> None:
        self.world, self.count = world, 0
        self.begin()

    def begin(self) -> None:
        self.count += 1
        folder = self.world.folder / f"dask{self.count}"
        folder.mkdir()
        self.processes = Processes(folder, 2, [self.world.folder / "clock"])
        self.workers = self.processes.all[1:]
        self.world.where = ["--cluster", self.processes.address]

    def kill_worker(self, _: Sweep) -> None:
        victim = self.workers.pop(self.world.dice.randrange(len(self.workers)))
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
        # The clock of the next one jumps.
        by = self.world.dice.choice([-3000, -1, 1, 3000]) * DAY
        clock = f"{by}:{self.world.dice.random() * 3}"
        self.workers.append(self.processes.worker(GARGALO_TEST_CLOCK=clock))

    def stop_worker(self, _: Sweep) -> None:
        self.stop(self.world.dice.choice(self.workers))

    def stop_scheduler(self, _: Sweep) -> None:
        self.stop(self.processes.scheduler)

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(self.world.dice.random())
        os.killpg(process.pid, signal.SIGCONT)

    def kill_scheduler(self, _: Sweep) -> None:
        self.processes.end()
        self.begin()


DASK_FAULTS = [
    "kill driver", "stop driver", "corrupted", "corrupted", "removed", "two at once", "clock",
    "kill a Dask worker", "kill a Dask worker", "stop a Dask worker", "stop the scheduler", "kill the scheduler",
]  # fmt: skip
