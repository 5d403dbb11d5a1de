"""Completion of the command line in shells: Click's scripts, put where the shell reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import shellingham
from click.shell_completion import get_completion_class

from gargalo import reading
from gargalo.cli.common import FAILED, because, fail

if TYPE_CHECKING:
    import click

NAME = "gargalo"
PLACES = {
    "bash": (
        f"~/.bash_completions/{NAME}.sh",
        "~/.bashrc",
        f"source ~/.bash_completions/{NAME}.sh",
    ),
    "zsh": (f"~/.zfunc/_{NAME}", "~/.zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (f"~/.config/fish/completions/{NAME}.fish", None, ""),
}
"""The file of the script, the file that a shell reads when it starts, and the line there that loads the script."""


def offer(app: click.Command, *, install: bool) -> None:
    """Print the script for the shell that called, or install it."""
    shell = current()
    kind = get_completion_class(shell)
    if kind is None or shell not in PLACES:
        fail(f"{shell}: completion is offered for {', '.join(PLACES)}", FAILED)
    script = kind(app, {}, NAME, f"_{NAME.upper()}_COMPLETE").source()
    if not install:
        print(script)
        return
    try:
        print(
            f"{shell} completion is in {put(shell, script)}; it is used by shells started from now on"
        )
    except OSError as e:
        where = e.filename or PLACES[shell][1]
        fail(f"{where}: {because(e)}; add the output of --show-completion yourself", FAILED)


def current() -> str:
    """Return the name of the shell that called, or of the login shell."""
    try:
        return str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        return Path(os.environ.get("SHELL", "this shell")).name


def put(shell: str, script: str) -> Path:
    """Write a script where its shell finds it; return that place."""
    place, start, line = PLACES[shell]
    path = Path(place).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script + "\n", encoding="utf-8")
    if start is not None:
        file = Path(start).expanduser()
        there = reading.text(file) if file.exists() else ""
        if line not in there.splitlines():
            with file.open("a", encoding="utf-8") as opened:
                opened.write(f"\n{line}\n")
    return path
