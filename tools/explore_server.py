"""The explorer in a process of its own, as the command starts it: for tests, pictures and benchmarks."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent


@contextlib.contextmanager
def served(*words: str, folder: Path = ROOT) -> Iterator[str]:
    """Run `gargalo explore` in a folder; give the link that it prints."""
    command = [sys.executable, "-m", "gargalo", "explore", "--no-open", *words]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, told = process.communicate(timeout=30)
        finally:
            process.kill()
    if process.returncode or told:
        msg = f"gargalo explore ended with {process.returncode} and said: {told}"
        raise RuntimeError(msg)
