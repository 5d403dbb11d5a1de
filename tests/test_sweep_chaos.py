"""Sweeps under faults, in a random order that a seed gives: nothing is lost, doubled or silently other.

Each round damages files of the store, begins a sweep, or two, and harms its processes, files, disk and clock while
it runs; then it looks at every file. In the end the command that the messages name makes it whole: every run is
there once, equal to that of a sweep without faults.

GARGALO_CHAOS_SEED chooses another order; with GARGALO_CHAOS_ROUNDS there are more rounds than usual, on a fresh
store with the next seed every so many.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from gargalo import sweeps
from sweep_chaos import (
    AT_ONCE,
    AXES,
    DASK_FAULTS,
    DASK_ROUNDS,
    DISK,
    FIRST,
    FULL_DISK,
    MORE,
    PROCESS_FAULTS,
    PROCESSES_ROUNDS,
    ROUNDS,
    SEED,
    SENTENCES,
    Dask,
    World,
    due,
    play,
    settle,
    shuffled,
    told,
)
from sweep_helpers import sweep_file

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> sweeps.Sweep:
    """All runs of all rounds, done in one go without faults."""
    folder = tmp_path_factory.mktemp("reference")
    repeat = FIRST + MORE * max(PROCESSES_ROUNDS, DASK_ROUNDS)
    jobs = sweeps.SweepFile.load(sweep_file(folder, AXES)).plan(repeat=repeat)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARGALO_TEST_PAUSE", "0")
        done = sweeps.execute(
            jobs,
            folder / "s",
            measure="sweep_helpers:slowly",
            keep=["flows"],
            workers=2,
            name="test",
        )
    assert done.done == len(jobs)
    return done


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory on a small file system of its own; without, the reason why there is none."""
    inside = tmp_path / "disk"
    inside.mkdir()
    if not shutil.which("unshare"):
        yield inside, "needs unshare of util-linux to mount a small file system"
        return
    # The file system lives as long as a process that waits for the end of its input.
    script = f"mount -t tmpfs -o size={DISK} tmpfs {shlex.quote(str(inside))} && echo && exec cat"
    with subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stderr is not None
        seen = Path(f"/proc/{holder.pid}/root{inside}")
        try:
            if not holder.stdout.readline():
                why = holder.stderr.read().strip()
                yield inside, f"no file system can be mounted here: {why}"
            elif not os.access(seen, os.W_OK):
                yield inside, "a file system of another namespace cannot be reached here"
            else:
                yield seen, ""
        finally:
            holder.kill()


def test_a_sentence_needs_its_fault():
    died = "error: 1 run failed: the worker process died: SIGKILL (perhaps out of memory)"
    assert due(died, {"kill workers", "clock"})
    assert not due(died, {"kill group", "stop workers", "removed"})
    gone = "error: 3 finished runs were removed from s meanwhile: run the same command again"
    assert due(gone, {"corrupted", "two at once"})
    assert not due(gone, {"corrupted"})
    assert not due("error: out of ideas", set(PROCESS_FAULTS + DASK_FAULTS))
    dealt = {*PROCESS_FAULTS, *DASK_FAULTS, "full disk"}
    assert all(reason <= dealt for reasons in SENTENCES.values() for reason in reasons)


def test_each_kind_of_fault_comes():
    for kinds, rounds in (
        (PROCESS_FAULTS + FULL_DISK, PROCESSES_ROUNDS),
        (DASK_FAULTS, DASK_ROUNDS),
    ):
        deck = shuffled(kinds, random.Random(SEED))
        dealt = [next(deck) for n in range(rounds) for _ in range(AT_ONCE[n % len(AT_ONCE)])]
        assert set(dealt) == set(kinds)


def test_on_processes(reference, disk, tmp_path):
    place, without = disk
    kinds = PROCESS_FAULTS + ([] if without else FULL_DISK)
    for seed in range(SEED, SEED + max(1, ROUNDS // PROCESSES_ROUNDS)):
        folder, store = tmp_path / str(seed), place / str(seed) / "s"
        folder.mkdir()
        store.parent.mkdir()
        world = World(folder, store, reference, seed)
        with told(world):
            deck = shuffled(kinds, world.dice)
            for number in range(PROCESSES_ROUNDS):
                play(world, deck, {}, number)
            settle(world)
        shutil.rmtree(store.parent)
    if without:
        pytest.skip(f"all is well, without a full disk: {without}")


def test_on_dask(reference, tmp_path):
    for seed in range(SEED, SEED + max(1, ROUNDS // DASK_ROUNDS)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(folder, folder / "s", reference, seed)
        dask = Dask(world)
        special = {
            "kill a Dask worker": dask.kill_worker,
            "stop a Dask worker": dask.stop_worker,
            "stop the scheduler": dask.stop_scheduler,
            "kill the scheduler": dask.kill_scheduler,
        }
        try:
            with told(world):
                deck = shuffled(DASK_FAULTS, world.dice)
                for number in range(DASK_ROUNDS):
                    play(world, deck, special, number)
                settle(world)
        finally:
            dask.processes.end()
