"""The commands of the documentation: those of some pages are run, those of all are read with their options."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from conftest import ROOT, environment
from gargalo.cli.app import ALIASES, COMMANDS, app
from gargalo.cli.help import Context
from lab_helpers import needs, needs_namespaces

PAGES = sorted(
    p
    for folder in (
        "",
        "docs",
        "docs/answers",
        "docs/congestion",
        "docs/faults",
        "docs/studies",
        "docs/reference",
        "docs/tutorials",
    )
    for p in (ROOT / folder).glob("*.md")
    if p.name != "CHANGELOG.md"
)
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TUTORIALS = ("tutorials/race", "tutorials/question", "tutorials/congestion")
RUN = (
    "index",
    "quickstart",
    "coming-from",
    "faq",
    "cookbook",
    "plugins",
    "your-network",
    "your-stack",
    "check",
    *TUTORIALS,
)
"""Pages of which every command is run, in their order, in one directory."""
REAL_TIME = re.compile(r"gargalo shell|--world lab")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|…")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of the code of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def lines(page: Path) -> list[str]:
    """Return the lines of a page for a shell, continued lines as one."""
    told = [text for language, text in blocks(page) if language in ("sh", "bash", "console")]
    joined = "\n".join(told).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in joined.splitlines() if line.strip()]


def calls(line: str) -> list[list[str]]:
    """Return the words of each call of the command in a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("();<>|&"):
            found.append([])
        else:
            found[-1].append(word)
    return [w for w in found if w and Path(w[0]).name == "gargalo"]


EVERY = [(p, line) for p in PAGES for line in lines(p) if "gargalo " in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_have_the_options_that_are_written(page):
    for line in lines(page):
        for words in calls(line) if "gargalo " in line else []:
            read(words[1:], line)


def read(words: list[str], line: str) -> None:
    """Read the words of a call; what is not a command or an option of it is an error."""
    if not words or words[0].startswith("-"):
        assert set(words) <= {"--version", "--help", "--show-completion", "--install-completion"}, (
            line
        )
        return
    above = Context(app, info_name="gargalo", **app.context_settings)
    name = ALIASES.get(words[0], words[0])
    if PLACEHOLDER.fullmatch(name):
        return
    assert name in COMMANDS, line
    found, rest = app.get_command(above, name), words[1:]
    while hasattr(found, "commands") and rest:
        above, name = Context(found, parent=above, info_name=name), rest[0]
        found, rest = found.get_command(above, name), rest[1:]
        assert found is not None, line
    if "--help" in rest or "-h" in rest:
        return
    found.make_context(name, rest, parent=above)


def test_the_command_has_one_spelling():
    assert [line for _, line in EVERY if "bin/gargalo " in line] == []
    first = lines(ROOT / "docs" / "index.md")[0]
    assert first.startswith("make setup"), (
        "what is published works: there is no package on an index"
    )


def test_many_lines_are_read_and_wrong_ones_found():
    assert len(EVERY) > 150
    with pytest.raises(click.NoSuchOption):
        read(calls("gargalo run x.toml --sead 2 | jq .")[0][1:], "")
    with pytest.raises(AssertionError):
        read(["runn", "x.toml"], "")


def execute(line: str, folder: Path, path: str) -> None:
    """Run a line: a command alone in this process, which has the libraries, and others in a shell."""
    found = calls(line)
    if len(found) == 1 and not set("|<>$") & set(line) and found[0][1] != "shell":
        before = Path.cwd()
        os.chdir(folder)
        try:
            done = CliRunner().invoke(app, found[0][1:], prog_name="gargalo")
        finally:
            os.chdir(before)
        assert done.exit_code == 0, (line, done.output)
        return
    # Root's shells are in the network of their command, where somebody else may have the ports.
    alone = ["unshare", "--net"] if "gargalo shell" in line and os.geteuid() == 0 else []
    ran = subprocess.run(
        [*alone, "sh", "-c", line],
        cwd=folder,
        env={**environment(), "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, (line, ran.stdout, ran.stderr)


def work(page: str, folder: Path, *, real_time: bool) -> None:
    """Run the commands of a page, those in real time or the others, with the files that it has."""
    program = folder / "bin" / "gargalo"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gargalo "$@"\n')
    program.chmod(0o755)
    python = Path(sys.executable).parent
    path = os.pathsep.join([str(program.parent), str(python), os.environ["PATH"]])
    here = ROOT / "docs" / f"{page}.md"
    for language, text in blocks(here):
        named = re.match(r"# ([\w.-]+\.(?:toml|py))\n", text)
        if language in ("toml", "python") and named:
            (folder / named[1]).write_text(text)
    done = 0
    for line in lines(here):
        if bool(REAL_TIME.search(line)) != real_time and "trace generate" not in line:
            continue
        if line.startswith(("make ", "pip ")) or ("| jq " in line and shutil.which("jq") is None):
            continue
        execute(line, folder, path)
        done += 1
    assert done


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_run(page, tmp_path):
    work(page, tmp_path, real_time=False)


@needs_namespaces
@needs("ip", "iperf3", "unshare")
@pytest.mark.xdist_group("real-time")
@pytest.mark.parametrize("page", ["coming-from", "cookbook"])
def test_the_commands_of_a_page_run_in_real_time(page, tmp_path):
    work(page, tmp_path, real_time=True)
