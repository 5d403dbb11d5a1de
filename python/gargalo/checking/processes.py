"""Runs in processes, of which one may end at any time: a plug-in, or memory."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, TypeVar

from gargalo.sweeps.plugins import Plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

T = TypeVar("T")
R = TypeVar("R")

ENDED = "the process of this run has ended: out of memory, or a plug-in"


def each(
    work: Callable[[T], R], items: Sequence[T], plugins: tuple[Path, ...], jobs: int
) -> Generator[R | None]:
    """Do some work with each item in processes, and return the results in order; None if its process has ended.

    What others have taken with them is done again alone.

    Args:
        work: A function of a module.
        items: What can be sent to processes.
        plugins: Files that processes load.
        jobs: Processes at the same time.

    """
    pool = _pool(jobs, plugins)
    try:
        running = [pool.submit(work, item) for item in items]
        for item, task in zip(items, running, strict=True):
            try:
                yield task.result()
            except BrokenProcessPool:
                yield alone(work, item, plugins)
    finally:
        # What has not begun does not begin any more.
        pool.shutdown(cancel_futures=True)


def alone(
    work: Callable[[T], R], item: T, plugins: tuple[Path, ...], longest_s: float | None = None
) -> R | None:
    """Do some work in a process of its own; None if that has ended.

    Raises:
        TimeoutError: It took longer than it may, and was ended.

    """
    with _pool(1, plugins) as pool:
        try:
            return pool.submit(work, item).result(longest_s)
        except BrokenProcessPool:
            return None
        except WaitedTooLong as e:
            for process in pool._processes.values():
                process.kill()
            raise TimeoutError from e


def _pool(jobs: int, plugins: tuple[Path, ...]) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, get_context("spawn"), Plugins.load, (plugins,))
