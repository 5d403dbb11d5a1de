"""The command line itself: help pages, wrong words, completion, interrupts."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from conftest import environment
from gargalo import reading
from gargalo.cli import completion as cli_completion
from gargalo.cli.app import COMMANDS, app

CALLED_GARGALO = "import sys\nfrom gargalo.cli.app import main\nsys.argv[0] = 'gargalo'\nmain()"


def as_shell(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command by its name, with more environment variables."""
    return subprocess.run(
        [sys.executable, "-c", CALLED_GARGALO, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), **variables},
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_page_with_a_line_for_each_option(name):
    done = CliRunner().invoke(app, [name, "-h"], terminal_width=200, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    loaded = app.commands[name]
    assert loaded.name == name
    shown = [p for p in loaded.params if isinstance(p, click.Option) and not p.hidden]
    assert all(p.help for p in shown)
    assert all(max(p.opts, key=len) in done.output for p in shown)


def test_the_help_page_lists_the_commands_in_their_order():
    done = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"})
    words = re.findall(r"^  ([a-z]\S*)", done.output, re.MULTILINE)
    assert [w for w in words if w in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rum"], "No such command 'rum'. Did you mean 'run'?"),
        (["run"], "Missing argument 'FILE'."),
        (["run", "x", "--sed", "3"], "'--seed'"),
        (["run", "x", "--seed", "many"], "Invalid value for '--seed'"),
        (["run", "x", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["list", "queue"], "Invalid value for '[WHAT]': 'queue' is not one of 'congestion'"),
        (["run", "x", "--world", "moon"], "'moon' is not one of 'sim', 'lab'"),
    ],
)
def test_wrong_words_are_named(arguments, told):
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_messages_are_printed_as_they_are(gargalo):
    done = gargalo("run", "[red]:warning:.toml")
    assert done.returncode == 2
    assert "[red]:warning:.toml: cannot be read" in done.stderr


def test_an_interrupt_that_a_command_does_not_handle_is_exit_code_130(monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gargalo.cli.list.listing", interrupted)
    done = CliRunner().invoke(app, ["list", "queues"])
    assert (done.exit_code, done.output) == (130, "")


def test_shells_complete_commands_and_values():
    variables = {
        "_GARGALO_COMPLETE": "bash_complete",
        "COMP_WORDS": "gargalo re",
        "COMP_CWORD": "1",
    }
    assert as_shell(**variables).stdout.split() == ["plain,resolve", "plain,read", "plain,report"]
    variables |= {"COMP_WORDS": "gargalo list p", "COMP_CWORD": "2"}
    assert as_shell(**variables).stdout.split() == ["plain,path-managers", "plain,profiles"]
    variables |= {"COMP_WORDS": "gargalo example cel"}
    assert as_shell(**variables).stdout.split() == ["plain,cellular-race"]


@pytest.mark.parametrize("shell", cli_completion.PLACES)
def test_completion_is_printed_and_installed_once(shell, tmp_path, monkeypatch):
    monkeypatch.setattr(cli_completion, "current", lambda: shell)
    monkeypatch.setenv("HOME", str(tmp_path))
    printed = CliRunner().invoke(app, ["--show-completion"])
    assert printed.exit_code == 0, printed.output
    assert f"_GARGALO_COMPLETE={shell}_complete" in printed.output
    for _ in range(2):
        done = CliRunner().invoke(app, ["--install-completion"])
        assert done.exit_code == 0, done.output
    place, start, line = cli_completion.PLACES[shell]
    assert (tmp_path / place.removeprefix("~/")).read_text() == printed.output
    if start is not None:
        assert (tmp_path / start.removeprefix("~/")).read_text().split("\n").count(line) == 1


def test_what_a_shell_reads_at_its_start_is_read_with_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(cli_completion, "current", lambda: "bash")
    monkeypatch.setenv("HOME", str(tmp_path))
    with (tmp_path / ".bashrc").open("wb") as file:
        file.truncate(reading.MOST_TEXT + 1)
    done = CliRunner().invoke(app, ["--install-completion"])
    assert done.exit_code == 1
    assert ".bashrc: it has 67.1 MB, more than the 67.1 MB that are read" in done.output


def test_an_example_in_the_place_of_a_huge_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "l4s.toml").open("wb") as file:
        file.truncate(8 << 40)
    done = CliRunner().invoke(app, ["example", "l4s"])
    assert done.exit_code == 2
    assert "l4s.toml exists; choose another name or place" in done.output


def test_a_shell_without_completion_is_named(monkeypatch):
    monkeypatch.setattr(cli_completion, "current", lambda: "tcsh")
    done = CliRunner().invoke(app, ["--install-completion"])
    assert done.exit_code == 1
    assert "tcsh: completion is offered for bash, zsh, fish" in done.stderr
