"""Whether standard error is a terminal, by Rich's rules; Rich is loaded only if it may be one."""

from __future__ import annotations

import os
import sys

FORCED = {"FORCE_COLOR", "TTY_COMPATIBLE"}
"""Variables that Rich takes for a terminal."""


def in_terminal() -> bool:
    """Whether standard error is a terminal."""
    if sys.stderr is None or not (sys.stderr.isatty() or FORCED & os.environ.keys()):
        return False
    from gargalo.terminal.screen import err

    return err.is_terminal


def in_color() -> bool:
    """Whether standard error takes colours."""
    if not in_terminal():
        return False
    from gargalo.terminal.screen import err

    return not err.no_color
