"""Plain text that fits the terminal; Rich is not loaded for it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import textwrap
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal or reverse the direction of text, except line ends and tabs."""


def printable(text: str) -> str:
    """Return text without characters that control a terminal."""
    return CONTROL.sub("\ufffd", text)


def say(text: str) -> None:
    """Print a line to standard error, where there is one."""
    if sys.stderr is not None:
        print(printable(text), file=sys.stderr, flush=True)


def count(n: float) -> str:
    """Write a number with a prefix: 1.23 M."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= factor:
            return f"{n / factor:.3g} {prefix}"
    return f"{n:.3g} "


def columns() -> int | None:
    """Return the columns of the terminal that standard output is; None for a file or a pipe."""
    return terminal_columns() if sys.stdout is not None and sys.stdout.isatty() else None


def terminal_columns() -> int:
    """Return the columns of the terminal, 80 where there is none; the variable COLUMNS goes before."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    for descriptor in (1, 2, 0):
        with contextlib.suppress(OSError):
            return os.get_terminal_size(descriptor).columns or 80
    return 80


def definitions(rows: Sequence[tuple[str, str]], *, indent: int = 0) -> str:
    """Write names and what they mean, one below the other.

    In a terminal the meaning is wrapped; elsewhere each is one line.
    """
    return "\n".join(definitions_each(rows, indent=indent))


def definitions_each(rows: Sequence[tuple[str, str]], *, indent: int = 0) -> list[str]:
    """Write the same, a text for each name."""
    widest, width = max((len(name) for name, _ in rows), default=0), columns()
    margin = " " * indent
    if width is None:
        return [f"{margin}{name:<{widest}}  {text}".rstrip() for name, text in rows]
    column = min(widest, max(width // 3, 12))
    hang = f"{margin}{'':{column}}  "
    wrap = partial(textwrap.wrap, width=width, subsequent_indent=hang, break_on_hyphens=False)
    told = []
    for name, text in rows:
        first = f"{margin}{name:<{column}}  "
        above = []
        if len(name) > column:
            above = wrap(name, initial_indent=margin, subsequent_indent=f"{margin}  ")
            first = hang
        told.append("\n".join([*above, *wrap(text, initial_indent=first)] or [first.rstrip()]))
    return told
