"""What the commands share: exit codes, how they say what is wrong, what a sweep may raise."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.segment import Segment

from gargalo import _core

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import ConsoleOptions, RenderableType

    from gargalo.audit import Finding

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


class World(str, Enum):
    """Where a scenario runs."""

    sim = "sim"
    lab = "lab"


MEMORY_LIMIT = typer.Option(
    "--memory-limit",
    metavar="SIZE",
    help="What a run may take of memory, like 4GB. Default: half of what there is.",
)

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that steer a terminal, or turn the text around; line ends and tabs do not."""


class Screen(Console):
    """A console on which text of files, plugins and peers steers nothing: only styles do."""

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
        """Leave it to `gargalo.cli.main`, as what `print` raises."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def printable(text: str) -> str:
    """Return text without what would steer a terminal."""
    return CONTROL.sub("\ufffd", text)


err = Screen(stderr=True, highlight=False, soft_wrap=True)


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Say what is wrong and leave."""
    err.print(f"error: {message}", markup=False)
    raise typer.Exit(code)


def change(text: str) -> tuple[str, str]:
    """Split `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        fail(f'--set {text}: write --set KEY=VALUE, as in --set "duration=10s"')
    return key.strip(), value.strip()


def tell(findings: Sequence[Finding]) -> bool:
    """Print what the auditor found; return whether there is an error among it."""
    for finding in findings:
        err.print(str(finding), markup=False)
    return any(f.severity == "error" for f in findings)


def memory(limit: str | None) -> int | None:
    """Read an amount of memory."""
    from gargalo.running import memory_bytes

    try:
        return memory_bytes(limit)
    except ValueError as e:
        fail(f"--memory-limit {limit}: {e}")


def check_target(target: Path, *, overwrite: bool) -> None:
    """Leave if results may not be written to a directory; say what killed runs left beside it."""
    try:
        if os.path.lexists(target):
            if not overwrite:
                fail(f"{target} exists; choose another --output or add --overwrite")
            foreign = _core.foreign(target)
            if foreign is not None:
                fail(
                    f"{target} is not overwritten: {foreign} is no result that gargalo wrote; "
                    "choose another --output, or move it away"
                )
        if target.parent.is_dir():
            for path in _core.remove_stale(target.parent):
                err.print(
                    f"removed {path}: unfinished results of a run that was killed", markup=False
                )
    except _core.RunError as e:
        fail(str(e))


@contextmanager
def sweep_errors() -> Iterator[None]:
    """Turn what planning and executing a sweep may raise into a sentence and an exit code.

    The command has an option --repair.
    """
    from gargalo.sweeps import SweepInterrupted
    from gargalo.sweeps import errors as e

    try:
        yield
    except _core.ScenarioError as error:
        err.print(str(error).rstrip("\n"), markup=False)
        raise typer.Exit(BAD_INPUT) from None
    except e.DamagedError as error:
        again = shlex.join(["gargalo", *(a for a in sys.argv[1:] if a != "--repair"), "--repair"])
        fail(f"{error.what}; {again} does what it held again, and nothing else")
    except (e.SweepError, e.BadStoreError, e.NoClusterError) as error:
        fail(str(error))
    except (e.StoreError, e.ClusterError, e.WorkersError, _core.RunError) as error:
        fail(str(error), FAILED)
    except SweepInterrupted as error:
        err.print(
            f"interrupted; {error.sweep.finished} of {len(error.sweep.plan)} runs are in "
            f"{error.sweep.store.path}: the same command goes on from there",
            markup=False,
        )
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise  # What reads the output has enough: `gargalo.cli.main` knows.
    except OSError as error:
        # A full disk while the report is written, say; finished runs are in the store.
        fail(f"{error}; finished runs are kept, the same command goes on from them", FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
