"""What the commands share: exit codes, options, error messages, the errors of sweeps."""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, get_args

import click
from click.exceptions import Exit

from gargalo import _core, reading
from gargalo.diagnostics import sentence
from gargalo.severity import KINDS
from gargalo.terminal.text import CONTROL, printable, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gargalo.audit import Finding
    from gargalo.running import Text
    from gargalo.sweeps import Sweep

Command = TypeVar("Command", bound="Callable[..., Any] | click.Command")

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
MOST_FAILURES = 5


World: TypeAlias = Literal["sim", "lab"]
"""Where a scenario runs."""
Stack: TypeAlias = Literal["gargalo", "kernel"]
"""Whose TCP/IP stack a host has, or a script runs on."""

json_asked: ContextVar[bool] = ContextVar("json_asked", default=False)
"""Whether the command prints JSON; then errors are JSON, too."""


def ask_json(_context: click.Context, _option: click.Parameter, value: bool) -> bool:
    """Remember whether the command prints JSON."""
    json_asked.set(value)
    return value


PATH = click.Path(readable=False, path_type=Path)
"""A path that may be there or not: what is wrong with it is said where it is used."""


def json_option(help: str) -> Callable[[Command], Command]:  # noqa: A002 (the word of click)
    """Return the option `--json` of a command."""
    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=ask_json, help=help
    )


def fail_on_option(default: str | None) -> Callable[[Command], Command]:
    """Return the option `--fail-on` of a command."""
    return click.option(
        "--fail-on",
        type=click.Choice(KINDS),
        default=default,
        help="What no run may have, whatever it is expected to show: data that differ from what was sent; besides, "
        "connections that failed or were never established; besides, any warning."
        + (f" Default: {default}." if default else ""),
    )


STDIN = Path("-")
"""The file that stands for standard input."""

scenario_argument = click.argument(
    "file", type=PATH, metavar="FILE", help="The scenario, a TOML file; - is standard input."
)
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting; may be repeated.",
)
plugin_option = click.option(
    "--plugin",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="Python file that registers congestion controls, schedulers or path managers, or a shared library "
    "with congestion controls.",
)
world_option = click.option(
    "--world",
    type=click.Choice(get_args(World)),
    default="sim",
    help="Simulated, or in real time on this machine (Linux, no root needed).",
)
memory_limit_option = click.option(
    "--memory-limit",
    metavar="SIZE",
    help="The most memory of a run, like 4GB. Default: half of what is available.",
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes. Default: one for each core.",
)
repair_option = click.option(
    "--repair",
    is_flag=True,
    help="Move damaged files of the store aside; do again what they held of these runs.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")


def fail(
    message: str, code: int = BAD_INPUT, diagnostics: Iterable[_core.Diagnostic] = ()
) -> NoReturn:
    """Print what is wrong and end the command."""
    say(f"error: {message}")
    leave(message, code, diagnostics)


def given(file: Path) -> Path | Text:
    """Return a file of the command line; of `-`, the text that standard input has, and of <(command) its output."""
    pipe = reading.is_pipe(file)
    if file != STDIN and not pipe:
        return file
    from gargalo.running import Text

    place = Path("<pipe>" if pipe else "<stdin>")
    if not pipe and sys.stdin is None:
        fail("-: standard input is closed")
    if not pipe and sys.stdin.isatty():
        say("note: reading from the terminal; Ctrl-D at the start of a line ends it")
    try:
        return Text(reading.text(file) if pipe else reading.stdin(), place)
    except reading.UnfitFileError as e:
        fail(f"{place}: {e}")
    except UnicodeDecodeError as e:
        fail(f"{place}: not UTF-8 text (byte {e.start}); a scenario or a sweep is in TOML")


def refuse_another(file: Path | Text, *wanted: str) -> None:
    """End the command if a file that it cannot read is of a kind that another command takes.

    `wanted` are names of kinds in `gargalo.cli.kinds`.
    """
    from gargalo.cli import kinds

    path, text = (file.path, file.text) if isinstance(file, tuple) else (file, None)
    told = kinds.instead(path, *(kinds.KINDS[name] for name in wanted), text=text)
    if told is not None:
        fail(told)


def refuse(error: _core.ScenarioError, *, colored: bool = False) -> NoReturn:
    """Show what is wrong with a scenario and end the command."""
    text = str(error).rstrip("\n")
    if colored:
        print(text, file=sys.stderr)  # A screen would replace the engine's colours.
    else:
        say(text)
    from gargalo.cli.hints import hints

    for hint in hints(error.diagnostics):
        say(f"note: {hint}")
    leave(sentence(error), BAD_INPUT, error.diagnostics)


def leave(message: str, code: int, diagnostics: Iterable[_core.Diagnostic]) -> NoReturn:
    """End a command that failed; with --json it prints an object with `error` instead of results."""
    if json_asked.get():
        told = [d.to_json() for d in diagnostics]
        error = {"message": message, "exit_code": code, "diagnostics": told}
        print(to_json({"error": error}))
    raise Exit(code)


def key_value(option: str, text: str, example: str) -> tuple[str, str]:
    """Split the `key=value` of an option."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        fail(f"{option} {text}: write {option} KEY=VALUE, as in {option} {example}")
    return key.strip(), value.strip()


def change(text: str) -> tuple[str, str]:
    """Split the `key=value` of --set."""
    return key_value("--set", text, '"duration=10s"')


def tell(findings: Sequence[Finding]) -> bool:
    """Print the findings of the auditor; return whether one is an error."""
    for finding in findings:
        say(str(finding))
    return any(f.severity == "error" for f in findings)


def tell_sweep(sweep: Sweep, findings: Sequence[Finding]) -> bool:
    """Print what was done with damaged files of the store, and the findings; return whether one is an error."""
    if sweep.repaired is not None:
        say(f"note: {sweep.repaired}")
    return tell(findings)


def tell_failures(sweep: Sweep) -> None:
    """Print the first runs that failed, and how many more did."""
    for f in sweep.failures[:MOST_FAILURES]:
        say(f"failed: {place_of(sweep, f.run)}: {f.reason}")
    if len(sweep.failures) > MOST_FAILURES:
        say(f"… and {len(sweep.failures) - MOST_FAILURES} more failed")


def place_of(sweep: Sweep, run: str) -> str:
    """Return the labels of a run in words."""
    import polars as pl

    rows = sweep.plan.filter(pl.col("run") == run).head(1).to_dicts()
    row = rows[0] if rows else {}
    return ", ".join(f"{k} = {v}" for k, v in row.items() if k in (*sweep.labels, "repeat"))


def load_plugin(path: Path) -> None:
    """Run a Python file that registers classes, or load a shared library."""
    from gargalo.plugins import native, source

    if native.is_library(path):
        try:
            native.load_plugin(path)
        except native.PluginError as e:
            fail(f"--plugin {e}")
        return

    try:
        reading.check(path, reading.MOST_TEXT)
        if path.suffix != ".py":
            fail(f"--plugin {path}: neither a Python file (.py) nor a shared library (.so)")
        text = source.read(path)
    except FileNotFoundError:
        fail(f"--plugin {path}: no such file")
    except OSError as e:
        fail(f"--plugin {path}: cannot be read: {reading.reason(e)}")
    except (UnicodeDecodeError, SyntaxError) as e:
        fail(f"--plugin {path}: not a text file: {e}")
    try:
        found = source.execute(text, str(path.absolute()))
    except (Exception, SystemExit) as e:
        trace, place = of_user(e)
        say(trace)
        fail(f"--plugin {place or f'{path}: '}{type(e).__name__}: {e}")
    if not any(found.values()):
        say(
            f'warning: {path} registers no class; decorate it with @gargalo.congestion("name"), '
            '@gargalo.scheduler("name") or @gargalo.path_manager("name")'
        )


def of_user(error: BaseException) -> tuple[str, str]:
    """Return an error's traceback without the frames of this package, and the user's line to put before its text."""
    import traceback

    package = Path(__file__).parent.parent
    here, examples = str(package), str(package / "examples")
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith("<frozen ")
        and (f.filename.startswith(examples) or not f.filename.startswith(here))
    ]
    head = ["Traceback (most recent call last):\n"] if frames else []
    lines = [*head, *traceback.format_list(frames), *traceback.format_exception_only(error)]
    place = ""
    if frames:
        place = f"{frames[-1].filename}:{frames[-1].lineno}: "
        if frames[-1].name != "<module>":
            place += f"{frames[-1].name}(): "
    elif isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}: "
    return "".join(lines).rstrip("\n"), place


def memory(limit: str | None) -> int | None:
    """Read an amount of memory."""
    try:
        return None if limit is None else _core.memory_bytes(limit)
    except ValueError as e:
        fail(f"--memory-limit {limit}: {e}")


def recover(parent: Path) -> None:
    """Remove what killed runs left in a directory, restore what they were replacing, and say so."""
    try:
        for sentence in _core.recover(parent):
            say(sentence)
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


def lacks(directory: Path, what: str) -> str:
    """Say why a place has no results: that there is nothing, that it is no directory, or `what`."""
    kind = reading.kind(directory)
    facts = {
        "": "does not exist",
        "a directory": what,
        "a file": "is not a directory",
    }
    return f"{directory} {facts.get(kind, f'is {kind}, not a directory')}"


def because(error: OSError, place: str | Path | None = None) -> str:
    """Return why the system refused something, and what to do; `place` is the file if the error does not name it."""
    if isinstance(error, reading.UnfitFileError):
        return str(error)
    where = place if error.filename is None else error.filename
    if error.errno == errno.ENOSPC and where is not None:
        return f"the disk is full{reading.space(where)}: free some space"
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
        raise SystemExit(
            0
        ) from None  # The reader has closed the pipe: no failure, whatever is written then.
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
        say(
            f"interrupted; {error.sweep.finished} of {len(error.sweep.plan)} runs are in "
            f"{error.sweep.store.path}: the same command continues from there"
        )
        raise Exit(INTERRUPTED) from None
    except (BrokenPipeError, OutputError):
        raise  # Output cannot be written: `gargalo.cli.app.main` handles it.
    except OSError as error:
        # For example a full disk while the report is written; finished runs are in the store.
        where = "" if error.filename is None else f"{error.filename}: "
        fail(
            f"{where}{because(error)}; finished runs are kept, the same command continues from them",
            FAILED,
        )
    except KeyboardInterrupt:
        say("interrupted; finished runs are kept: the same command continues from there")
        raise Exit(INTERRUPTED) from None
