"""The steps of a first change, on a clone without what takes minutes; `tools/first_change.py` does them all."""

from __future__ import annotations

import subprocess
import sys

import first_change
import gargalo
from conftest import ROOT


def test_a_clone_is_changed_by_the_walk_through(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CARGO_TARGET_DIR", "of this machine")
    monkeypatch.setenv("PYTHONPATH", "of this machine")
    steps = [(n, s if callable(s) else print_place()) for n, s in first_change.STEPS]
    monkeypatch.setattr(first_change, "STEPS", steps)
    folder = tmp_path / "clone"
    first_change.clone(folder)
    first_change.change(folder)
    queues = folder / "crates" / "link" / "src" / "queue"
    assert first_change.EDIT[1] in (queues / "blue.rs").read_text()
    assert "mod blue;" in (queues / "mod.rs").read_text()
    told = subprocess.run(
        ["git", "status", "--short"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == [
        " M crates/link/src/queue/mod.rs",
        "?? crates/link/src/queue/blue.rs",
    ]
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" s  ")[2] for line in lines] == [n for n, _ in first_change.STEPS]


def print_place() -> list[str]:
    """Return a command that fails if it finds what this machine has built."""
    alone = "import os; assert 'of this machine' not in os.environ.values()"
    return [sys.executable, "-c", alone]


def test_the_commands_are_those_of_the_makefile():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for _, step in first_change.STEPS:
        assert callable(step) or step[0] != "make" or f"\n{step[1]}:" in text


def test_its_scenario_is_right_but_for_the_new_queue():
    gargalo.resolve(first_change.SCENARIO.replace("blue", "codel"))
