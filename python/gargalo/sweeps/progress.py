"""How far a sweep is."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from gargalo.progress import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

LINE_EVERY_S = 10.0
"""Without a terminal, seconds between two lines."""


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
    """Runs of other sweeps that are waited for, if there was nothing else to do for a second, and which processes do them."""

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

    def __str__(self) -> str:
        """Return one line."""
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
def display(console: Console, *, shown: bool) -> Iterator[Callable[[SweepProgress], None]]:
    """Show progress: a bar on a terminal, elsewhere a line from time to time; always what it waits for."""
    if not (shown and console.is_terminal):
        yield _lines(console, LINE_EVERY_S if shown else math.inf)
        return
    columns = (BarColumn(bar_width=30), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as view:
        task = view.add_task("", total=1)

        def tell(p: SweepProgress) -> None:
            view.update(task, completed=p.done + p.failed, total=p.total, description=str(p))

        yield tell


def _lines(console: Console, every_s: float) -> Callable[[SweepProgress], None]:
    last, waiting_for = time.monotonic(), ""

    def tell(p: SweepProgress) -> None:
        nonlocal last, waiting_for
        now = time.monotonic()
        if now - last >= every_s or p.waiting_for not in ("", waiting_for):
            last = now
            console.print(str(p), markup=False)
        waiting_for = p.waiting_for

    return tell
