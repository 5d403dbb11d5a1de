"""How far a sweep is."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from gargalo.terminal.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

LINE_EVERY_S = 60.0
"""Without a terminal, seconds after which there is another line."""
LEAST_S = 10.0
"""Seconds before a line that reports another tenth of the runs, so that a sweep of seconds reports none."""


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is; counts are of runs."""

    total: int
    done: int
    """Finished, those of earlier sweeps included."""
    reused: int
    """Of those: found in the store."""
    failed: int
    running: int
    packets: int
    """Simulated by this sweep, runs under way included."""
    elapsed_s: float
    waiting_for: str = ""
    """Runs of other sweeps that are waited for, if there was nothing else to do for a second, and which processes do
    them."""

    @property
    def runs_per_s(self) -> float:
        """Runs finished by this sweep, per second."""
        return (self.done - self.reused) / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def packets_per_s(self) -> float:
        """Packets simulated per second of wall time."""
        return self.packets / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds until the end, at the present rate; None if unknown."""
        rate = self.runs_per_s
        return (self.total - self.done - self.failed) / rate if rate > 0 else None

    @property
    def tenths(self) -> int:
        """Whole tenths of the runs that are finished, failed ones included."""
        return 10 * (self.done + self.failed) // max(self.total, 1)

    @property
    def line(self) -> str:
        """What a log has: also how much of the whole that is, and since when."""
        whole = f"{100 * (self.done + self.failed) // max(self.total, 1)}%"
        return f"{whole} after {clock(self.elapsed_s)}: {self}"

    def __str__(self) -> str:
        """Return what a terminal has beside the bar."""
        if self.waiting_for:
            return f"{self.done}/{self.total} runs, waiting for {self.waiting_for}"
        parts = [f"{self.done}/{self.total} runs"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        parts.append(f"{self.runs_per_s:.3g} runs/s")
        parts.append(f"{count(self.packets_per_s)}packets/s")
        if self.left_s is not None:
            parts.append(f"{clock(self.left_s)} left")
        return ", ".join(parts)


def clock(seconds: float) -> str:
    """Write a span of time: 45 s, 3:05 min, 2:10 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


@contextmanager
def display(
    console: Console, *, shown: bool, now: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[SweepProgress], None]]:
    """Show progress: a bar on a terminal, elsewhere lines; always what it waits for.

    There is a line each minute, and one at each tenth of the runs unless the last was less than ten seconds ago.
    `now` is the clock, in seconds.
    """
    if not (shown and console.is_terminal):
        yield _lines(console, now, shown=shown)
        return
    columns = (BarColumn(bar_width=30), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as view:
        task = view.add_task("", total=1)

        def tell(p: SweepProgress) -> None:
            view.update(task, completed=p.done + p.failed, total=p.total, description=str(p))

        yield tell


def _lines(
    console: Console, now: Callable[[], float], *, shown: bool
) -> Callable[[SweepProgress], None]:
    last, waiting_for = now(), ""
    tenths: int | None = None

    def tell(p: SweepProgress) -> None:
        nonlocal last, tenths, waiting_for
        # Tenths that an earlier sweep did are no news.
        tenths = p.tenths if tenths is None else tenths
        since = now() - last
        due = since >= LINE_EVERY_S or (p.tenths > tenths and since >= LEAST_S)
        if (shown and due) or p.waiting_for not in ("", waiting_for):
            last, tenths = now(), p.tenths
            console.print(p.line, markup=False)
        waiting_for = p.waiting_for

    return tell
