"""The progress bar on standard error."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gargalo.terminal.detection import in_terminal
from gargalo.terminal.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gargalo.running import Progress


@contextmanager
def bar(*, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show what is done, packets per second and time left, on a terminal."""
    if not (shown and in_terminal()):
        yield None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from gargalo.terminal.screen import err

    columns = (
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TextColumn("{task.fields[virtual]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(compact=True),
    )
    start, phase = time.monotonic(), ""
    with Bar(*columns, console=err, transient=True) as view:
        task = view.add_task("", total=1.0, virtual="", speed="")

        def tell(p: Progress) -> None:
            nonlocal start, phase
            if p.phase != phase:
                # Each phase has a pace of its own.
                start, phase = time.monotonic(), p.phase
                view.reset(task)
            end = f"{p.end_s:.6f}".rstrip("0").rstrip(".")
            virtual, speed = {"building": ("making flows", ""), "writing": ("writing", "")}.get(
                p.phase, (f"{p.now_s:.1f}/{end} s", "")
            )
            if p.phase == "running":
                speed = f"{count(p.packets / max(time.monotonic() - start, 1e-3))}packets/s"
            view.update(task, completed=p.fraction, virtual=virtual, speed=speed)

        yield tell
