"""A server of the explorer for tests, in a process of its own as the command starts it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def served(*words: str) -> Iterator[str]:
    """Run `gargalo explore`; give the link that it prints."""
    command = [sys.executable, "-m", "gargalo", "explore", "--no-open", *words]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert not told, "a page that works leaves nothing to say"
