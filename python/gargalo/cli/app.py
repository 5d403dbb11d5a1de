"""The command `gargalo`.

Exit codes: 0 done; 1 the run failed, ended early at its memory limit (what it had is kept), or its
results contradict themselves (a finding of severity error; they are kept); 2 bad usage or bad input,
nothing written; 130 interrupted, finished work kept. A reader that closes its pipe (`| head`) ends a
command quietly, with 0. Results go to standard output, everything else
to standard error; with --json, standard output is JSON in any case: an object with `error` where there
are no results.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import FAILED, INTERRUPTED, Output, OutputError, because, fail, json_asked
from gargalo.cli.help import WIDEST, Group
from gargalo.extras import MissingExtraError
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.cli.common import Command

SECTIONS = {
    "A scenario": {
        "run": "run:run",
        "check": "check:check",
        "explain": "explain:explain",
        "explore": "explore:explore",
        "new": "new:new",
        "example": "new:example",
        "resolve": "list:resolve",
        "list": "list:list_",
        "schema": "list:schema",
        "trace": "trace:trace",
    },
    "A network": {
        "read": "read:read_",
        "fit": "fit:fit",
        "identify": "identify:identify",
    },
    "Many runs": {
        "sweep": "sweep:sweep",
        "compare": "compare:compare",
        "report": "report:report",
        "plot": "plot:plot",
        "export": "export:export",
        "study": "study:study",
        "evaluate": "evaluate:evaluate",
        "plugin": "plugin:plugin",
        "stacks": "stacks:stacks",
    },
    "In real time": {
        "lab": "lab:lab",
        "shell": "shell:shell",
        "script": "script:script",
        "iperf3": "wire:iperf3",
        "connect": "wire:connect",
    },
}
"""Where each command is, in the order of the help page; a command is loaded when it is called."""
COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}
ALIASES = {"init": "new"}
"""Other names of commands."""
INSTEAD = {
    "validate": "gargalo resolve FILE",
    "simulate": "gargalo run FILE",
    "examples": "gargalo example",
    "version": "gargalo --version",
    "help": "gargalo --help, or gargalo COMMAND --help",
}
"""Commands for words that are not commands."""


class Commands(Group):
    """A group that loads the command that is called, and all of them for the help page."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def sections(self, ctx: click.Context) -> dict[str, list[str]]:
        """Return the names of the commands under their headings."""
        return {heading: list(names) for heading, names in SECTIONS.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name in COMMANDS and name not in self.commands:
            module, _, attribute = COMMANDS[name].partition(":")
            loaded = importlib.import_module(f"gargalo.cli.{module}")
            self.add_command(getattr(loaded, attribute), name)
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; for a word that is none, name the command that does it."""
        word = args[0]
        if word in COMMANDS or word in ALIASES or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if Path(word).suffix in (".toml", ".py", ".pkt") or Path(word).exists():
            from gargalo.cli.kinds import told

            ctx.fail(f"{word} is a file, not a command: {told(Path(word))}")
        if word in INSTEAD:
            ctx.fail(f"No such command '{word}'. There is: {INSTEAD[word]}")
        raise click.NoSuchCommand(word, possibilities=COMMANDS, ctx=ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; one that does not handle an interrupt itself ends quietly."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Exit(INTERRUPTED) from None
        except MissingExtraError as e:
            fail(str(e), FAILED)
        except _core.RunError as e:
            # Results that are read back and are not what was written: commands handle what a run raises.
            fail(str(e))


def version(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    """Print the version and leave."""
    if value:
        print(f"gargalo {_core.__version__}")
        raise Exit


def completion(_context: click.Context, option: click.Parameter, value: bool) -> None:
    """Install or print the completion of the shell that called, and leave."""
    if value:
        from gargalo.cli import completion as cli_completion

        cli_completion.offer(app, install=option.name == "install_completion")
        raise Exit


def flag(name: str, callback: Any, help: str) -> Callable[[Command], Command]:  # noqa: A002 (the word of click)
    """Return an option that does something else than a command."""
    return click.option(
        name, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=help
    )


@click.group(
    cls=Commands,
    no_args_is_help=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": WIDEST,
    },
    examples=[
        ("gargalo example cellular-race", "Copy an example: three congestion controls race."),
        ("gargalo run cellular-race.toml", "Simulate it: tables, pictures, a directory in runs."),
        ("gargalo run --help", "All options of a command, with examples."),
    ],
)
@flag("--version", version, "Print the version.")
@flag("--install-completion", completion, "Install completion for the current shell.")
@flag("--show-completion", completion, "Print completion for the current shell.")
def app() -> None:
    """A laboratory for transport protocols: one scenario, a deterministic simulation, results."""
    json_asked.set(False)


def main() -> None:
    """Run the command; the entry point of the package."""
    # Schedulers and containers send SIGTERM before they kill: finished work is kept, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code: str | int | None = 0
    if isinstance(sys.stdout, io.TextIOWrapper):  # None where it was closed.
        out = sys.stdout
        facts = {"encoding": out.encoding, "errors": out.errors}
        sys.stdout = Output(
            out.detach(), **facts, line_buffering=out.line_buffering, write_through=False
        )
    try:
        try:
            app(prog_name="gargalo")
        except SystemExit as e:
            code = e.code
        if sys.stdout is not None:  # None where it was closed.
            sys.stdout.flush()
    except BrokenPipeError:
        # `gargalo … | head` is not a failure.
        _drop_output()
    except OutputError as e:
        told = str(e)
        _drop_output()
        with contextlib.suppress(OSError):
            say(f"error: {told}")
        code = FAILED
    except OSError as e:
        # For example a full disk. Every step keeps what it has finished.
        where = "" if e.filename is None else f"{e.filename}: "
        _drop_output()
        with contextlib.suppress(OSError):
            say(f"error: {where}{because(e)}")
        code = FAILED
    sys.exit(code)


def _drop_output() -> None:
    """Discard output that is still buffered, so that the interpreter does not complain at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
