"""What the commands share: exit codes, options, error messages, the errors of sweeps."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer
from rich.console import Console
from rich.segment import Segment

from gargalo import _core
from gargalo.diagnostics import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import ConsoleOptions, RenderableType

    from gargalo.audit import Finding
    from gargalo.sweeps import Sweep

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
MOST_FAILURES = 5


class World(str, Enum):
    """Where a scenario runs."""

    sim = "sim"
    lab = "lab"


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal or reverse the direction of text, except line ends and tabs."""


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
        """Raise what `print` raises, for `gargalo.cli.main` to handle."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def printable(text: str) -> str:
    """Return text without characters that control a terminal."""
    return CONTROL.sub("\ufffd", text)


err = Screen(stderr=True, highlight=False, soft_wrap=True)


_json_asked: ContextVar[bool] = ContextVar("json_asked", default=False)
"""Whether the command prints JSON; then errors are JSON, too."""


def ask_json(value: bool) -> bool:
    """Remember whether the command prints JSON."""
    _json_asked.set(value)
    return value


def json_option(help: str) -> Any:  # noqa: A002 (the word of typer)
    """Return the option `--json` of a command."""
    return typer.Option("--json", help=help, is_eager=True, callback=ask_json)


ScenarioFile: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE", help="The scenario, a TOML file.")
]
Changes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
]
PluginFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="Python file that registers congestion controls, schedulers or path managers.",
    ),
]
InWorld: TypeAlias = Annotated[
    World,
    typer.Option(
        "--world", help="Simulated, or in real time on this machine (Linux, no root needed)."
    ),
]
MemoryLimit: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="The most memory of a run, like 4GB. Default: half of what is available.",
    ),
]
Workers: TypeAlias = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes. Default: one for each core.")
]
Repair: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Move damaged files of the store aside; do again what they held of these runs.",
    ),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")]
OneObject: TypeAlias = Annotated[bool, json_option("Print one JSON object.")]


def fail(
    message: str, code: int = BAD_INPUT, diagnostics: Iterable[_core.Diagnostic] = ()
) -> NoReturn:
    """Print what is wrong and end the command."""
    err.print(f"error: {message}", markup=False)
    leave(message, code, diagnostics)


def refuse(error: _core.ScenarioError, *, in_color: bool = False) -> NoReturn:
    """Show what is wrong with a scenario and end the command."""
    text = str(error).rstrip("\n")
    if in_color:
        print(text, file=sys.stderr)  # A screen would replace the engine's colours.
    else:
        err.print(text, markup=False)
    leave(sentence(error), BAD_INPUT, error.diagnostics)


def leave(message: str, code: int, diagnostics: Iterable[_core.Diagnostic]) -> NoReturn:
    """End a command that failed; with --json it prints an object with `error` instead of results."""
    if _json_asked.get():
        told = [d.to_json() for d in diagnostics]
        error = {"message": message, "exit_code": code, "diagnostics": told}
        print(to_json({"error": error}))
    raise typer.Exit(code)


def change(text: str) -> tuple[str, str]:
    """Split `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        fail(f'--set {text}: write --set KEY=VALUE, as in --set "duration=10s"')
    return key.strip(), value.strip()


def tell(findings: Sequence[Finding]) -> bool:
    """Print the findings of the auditor; return whether one is an error."""
    for finding in findings:
        err.print(str(finding), markup=False)
    return any(f.severity == "error" for f in findings)


def tell_sweep(sweep: Sweep, findings: Sequence[Finding]) -> bool:
    """Print what was done with damaged files of the store, and the findings; return whether one is an error."""
    if sweep.repaired is not None:
        err.print(f"note: {sweep.repaired}", markup=False)
    return tell(findings)


def tell_failures(sweep: Sweep) -> None:
    """Print the first runs that failed, and how many more did."""
    for f in sweep.failures[:MOST_FAILURES]:
        err.print(f"failed: {place_of(sweep, f.run)}: {f.reason}", markup=False)
    if len(sweep.failures) > MOST_FAILURES:
        err.print(f"… and {len(sweep.failures) - MOST_FAILURES} more failed", markup=False)


def place_of(sweep: Sweep, run: str) -> str:
    """Return the labels of a run in words."""
    import polars as pl

    rows = sweep.plan.filter(pl.col("run") == run).head(1).to_dicts()
    row = rows[0] if rows else {}
    return ", ".join(f"{k} = {v}" for k, v in row.items() if k in (*sweep.labels, "repeat"))


def memory(limit: str | None) -> int | None:
    """Read an amount of memory."""
    from gargalo.running import memory_bytes

    try:
        return memory_bytes(limit)
    except ValueError as e:
        fail(f"--memory-limit {limit}: {e}")


def recover(parent: Path) -> None:
    """Remove what killed runs left in a directory, restore what they were replacing, and say so."""
    try:
        for sentence in _core.recover(parent):
            err.print(sentence, markup=False)
    except _core.RunError as e:
        fail(str(e))


def check_target(target: Path, *, overwrite: bool) -> None:
    """End the command if results may not be written to a directory, or to a file beside a manifest."""
    if not os.path.lexists(target):
        return
    if not overwrite:
        fail(f"{target} exists; choose another --output or add --overwrite")
    try:
        _core.replaceable(target)
    except _core.RunError as e:
        fail(str(e))


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON for a terminal: readable, with control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # JSON itself escapes those below U+0020; the others are only inside of strings.
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def because(error: OSError) -> str:
    """Return why the system refused something, and what to do."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)


_REASONS = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "your quota is used up: free some space",
    errno.EFBIG: "the file is larger than your limit: see `ulimit -f`",
    errno.EIO: "the device reports an error: use another",
    errno.EROFS: "the file system is read-only: choose a place elsewhere",
    errno.EACCES: "you may not write there: choose a place elsewhere",
    errno.EPERM: "you may not write there: choose a place elsewhere",
    errno.EBADF: "it is closed, or not open for writing: redirect it to a file or a program",
}


class OutputError(OSError):
    """Standard output cannot be written."""

    def __str__(self) -> str:
        """Return which file it is, where that can be known, and why."""
        return (
            f"standard output{_file_of(1)} cannot be written: {because(self)}, or send it elsewhere"
        )


def _file_of(descriptor: int) -> str:
    """Return the path of an open file in brackets; nothing where it has none."""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except OSError:
        return ""
    return f" ({printable(path)})" if path.startswith("/") else ""


class Output(io.TextIOWrapper):
    """Standard output whose errors say that they are about standard output."""

    def write(self, text: str) -> int:
        """Write text."""
        with _output_errors():
            return super().write(text)

    def flush(self) -> None:
        """Flush what was written."""
        with _output_errors():
            super().flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # The reader has closed the pipe.
    except OSError as e:
        raise OutputError(e.errno, e.strerror) from None


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
        refuse(error)
    except e.DamagedError as error:
        again = shlex.join(["gargalo", *(a for a in sys.argv[1:] if a != "--repair"), "--repair"])
        fail(f"{error.what}; {again} {error.remedy}")
    except e.SweepError as error:
        fail(str(error), diagnostics=error.diagnostics)
    except (e.BadStoreError, e.NoClusterError) as error:
        fail(str(error))
    except (e.StoreError, e.ClusterError, e.WorkersError, _core.RunError) as error:
        fail(str(error), FAILED)
    except SweepInterrupted as error:
        err.print(
            f"interrupted; {error.sweep.finished} of {len(error.sweep.plan)} runs are in "
            f"{error.sweep.store.path}: the same command continues from there",
            markup=False,
        )
        raise typer.Exit(INTERRUPTED) from None
    except (BrokenPipeError, OutputError):
        raise  # Output cannot be written: `gargalo.cli.main` handles it.
    except OSError as error:
        # For example a full disk while the report is written; finished runs are in the store.
        where = "" if error.filename is None else f"{error.filename}: "
        fail(
            f"{where}{because(error)}; finished runs are kept, the same command continues from them",
            FAILED,
        )
    except KeyboardInterrupt:
        err.print(
            "interrupted; finished runs are kept: the same command continues from there",
            markup=False,
        )
        raise typer.Exit(INTERRUPTED) from None
