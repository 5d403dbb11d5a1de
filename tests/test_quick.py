"""`make quick` chooses the tests of what has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import quick
from conftest import ROOT


def chosen(*files: str) -> set[str]:
    return {str(Path(t).relative_to(quick.TESTS)) for t in quick.tests_of([Path(f) for f in files])}


def test_a_module_is_tested_by_who_imports_it_and_by_its_namesake():
    assert chosen("crates/tcp/src/lib.rs") == quick.STRUCTURE
    assert "test_plot.py" in chosen("python/gargalo/cli/plot.py")
    of_lab = chosen("python/gargalo/lab.py")
    assert {"test_lab.py", "studies/test_fidelity.py"} <= of_lab
    assert len(of_lab) < len(list(quick.TESTS.rglob("test_*.py"))) / 2


def test_a_test_and_a_page_are_tested_themselves():
    assert "test_quick.py" in chosen("tests/test_quick.py")
    assert chosen("docs/tcp.md") >= quick.PAGES
    assert not quick.PAGES & chosen("examples/cellular-race.toml")
    named = {p.partition("::") for p in quick.PAGES}
    assert all(f"def {test}(" in (quick.TESTS / file).read_text() for file, _, test in named)


def test_crates_are_packages():
    files = [Path("crates/tcp/src/lib.rs"), Path("crates/tcp/Cargo.toml"), Path("docs/tcp.md")]
    assert quick.crates_of(files) == ["gargalo-tcp"]


def test_what_git_does_not_know_yet_has_changed(tmp_path, monkeypatch):
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name in ("kept.py", "removed.py", "edited.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    (tmp_path / "removed.py").unlink()
    (tmp_path / "edited.py").write_text("2\n")
    (tmp_path / "new.py").write_text("3\n")
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    assert quick.changed("HEAD") == [Path("edited.py"), Path("new.py")]


def test_the_commands_are_printed():
    done = subprocess.run(
        [sys.executable, "tools/quick.py", "--dry-run"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("quick: cargo fmt --all --check\n")
    assert "quick: python -m pytest" in done.stdout
