"""The command `gargalo`.

Exit codes: 0 done; 1 the run failed, ended early at its memory limit (what it had is kept), or its
results contradict themselves (a finding of severity error; they are kept); 2 bad usage or bad input,
nothing written; 130 interrupted, finished work kept. Results go to standard output, everything else
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
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli_common import FAILED, INTERRUPTED, Output, OutputError, because, json_asked, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.cli_common import Command

COMMANDS = {
    "sweep": "cli_sweep:sweep",
    "compare": "cli_sweep:compare",
    "study": "cli_study:study",
    "evaluate": "cli_evaluate:evaluate",
    "shell": "cli_shell:shell",
    "lab": "cli_lab:lab",
    "script": "cli_script:script",
    "report": "cli_report:report",
    "iperf3": "cli_wire:iperf3",
    "connect": "cli_wire:connect",
    "run": "cli_run:run",
    "resolve": "cli_list:resolve",
    "list": "cli_list:list_",
    "schema": "cli_list:schema",
    "trace": "cli_trace:trace",
}
"""Where each command is, in the order of the help page; a command is loaded when it is called."""


class Commands(click.RichGroup):
    """A group that loads the command that is called, and all of them for the help page."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command. With a name that does not exist all are: the message names similar ones."""
        for name in (cmd_name,) if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                module, _, attribute = COMMANDS[name].partition(":")
                loaded = importlib.import_module(f"gargalo.{module}")
                self.add_command(getattr(loaded, attribute), name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; one that does not handle an interrupt itself ends quietly."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Exit(INTERRUPTED) from None


def version(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    """Print the version and leave."""
    if value:
        print(f"gargalo {_core.__version__}")
        raise Exit


def completion(_context: click.Context, option: click.Parameter, value: bool) -> None:
    """Install or print the completion of the shell that called, and leave."""
    if value:
        from gargalo import cli_completion

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
        "rich_help_config": {"text_paragraph_linebreaks": "\n\n"},
    },
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
            app()
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
