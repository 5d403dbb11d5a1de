"""Consoles of Rich for tables and progress.

Imported where one is drawn, since Rich takes longer to load than most runs.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment

from gargalo.terminal.text import CONTROL, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType


class Screen(Console):
    """A console on which text of files, plugins and peers cannot control the terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Show a replacement character for each control character."""
        for segment in super().render(renderable, options):
            if segment.control is None and CONTROL.search(segment.text):
                yield Segment(printable(segment.text), segment.style)
            else:
                yield segment

    def on_broken_pipe(self) -> None:
        """Raise what `print` raises, for `gargalo.cli.app.main` to handle."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


err = Screen(stderr=True, highlight=False, soft_wrap=True)
"""Standard error."""
