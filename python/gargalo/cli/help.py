"""Help pages: plain text that fits the terminal, with examples at the end."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gargalo.terminal.text import terminal_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WIDEST = 100
"""Columns of a help page in a wide terminal."""
NARROW = 76
"""Below this many columns the names of options have a narrower column."""


class Example(NamedTuple):
    """A command line that works, and what it does."""

    line: str
    about: str

    @property
    def arguments(self) -> list[str]:
        """The words after the name of the command `gargalo`."""
        return shlex.split(self.line)[1:]


class Page(click.HelpFormatter):
    """A help page as wide as the terminal, whose column of names is narrow in narrow ones."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        wide = min(terminal_columns(), max_width or WIDEST) - 2
        super().__init__(indent_increment, max(width or wide, 40))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int | None = None, col_spacing: int = 2
    ) -> None:
        """Write names and what they mean."""
        widest = 30 if self.width >= NARROW else 22
        super().write_dl(rows, col_max or widest, col_spacing)

    def write_heading(self, heading: str) -> None:
        """Write a heading, bold where the terminal has colours."""
        super().write_heading(
            heading if "NO_COLOR" in os.environ else click.style(heading, bold=True)
        )


class Context(click.Context):
    """What a command is called with."""

    formatter_class = Page


class Command(click.Command):
    """A command whose help page ends with examples."""

    context_class = Context

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = [Example(*e) for e in examples]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A group that lists its commands in their order, each with its whole first line."""

    context_class = Context
    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = [Example(*e) for e in examples]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def sections(self, ctx: click.Context) -> dict[str, list[str]]:
        """Return the names of the commands under their headings."""
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands."""
        for heading, names in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl([(n, first_line(self.get_command(ctx, n))) for n in names])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


def command(*args: Any, **more: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function, as `click.command` does; `examples` are lines and what they do."""
    return click.command(*args, cls=Command, **more)


def first_line(command: click.Command | None) -> str:
    """Return the first paragraph of a command's help in one line."""
    text = "" if command is None else command.help or ""
    return " ".join(text.strip().partition("\n\n")[0].split())


def broken(line: str, width: int) -> list[str]:
    """Break a command line before options and pipes where it is too long, as a shell takes it."""
    told = [""]
    for part in re.split(r" (?=--|\| )", line):
        longer = f"{told[-1]} {part}".lstrip(" ") if len(told) == 1 else f"{told[-1]} {part}"
        if told[-1].strip() and len(longer) + 2 > width:
            told[-1] += " \\"
            told.append(f"    {part}")
        else:
            told[-1] = longer
    return told


def write_examples(examples: Sequence[Example], formatter: click.HelpFormatter) -> None:
    """Write examples: each a line that can be copied, and below it what it does."""
    if not examples:
        return
    with formatter.section("Examples"):
        margin = " " * formatter.current_indent
        for example in examples:
            for line in broken(example.line, formatter.width - len(margin)):
                formatter.write(f"{margin}{line}\n")
            with formatter.indentation(), formatter.indentation():
                formatter.write_text(example.about)
