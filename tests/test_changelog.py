"""Changes have files of their own until a release."""

from __future__ import annotations

import subprocess
import sys

import changelog
import pytest
from conftest import ROOT

RELEASED = "# Changelog\n\n## 0.2.0, unreleased\n\n- One.\n\n## 0.1.0, 2026-12-01\n\n- Old.\n"


def test_changes_become_items_of_the_section_that_is_not_released(tmp_path):
    (tmp_path / "changes").mkdir()
    (tmp_path / "CHANGELOG.md").write_text(RELEASED)
    for name, text in [("b.md", "Three.\n"), ("a.md", "Two\nlines.\n"), ("README.md", "How.\n")]:
        (tmp_path / "changes" / name).write_text(text)
    tool = [sys.executable, ROOT / "tools" / "changelog.py", tmp_path]
    done = subprocess.run(tool, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["changes/a.md", "changes/b.md"]
    expected = RELEASED.replace("- One.\n", "- One.\n- Two lines.\n- Three.\n")
    assert (tmp_path / "CHANGELOG.md").read_text() == expected
    assert [p.name for p in (tmp_path / "changes").iterdir()] == ["README.md"]
    subprocess.run(tool, check=True)
    assert (tmp_path / "CHANGELOG.md").read_text() == expected


def test_the_last_section_and_long_lines():
    long = "word " * 40
    text = changelog.collected("# C\n\n## 1, unreleased\n\n- One.\n", [long])
    assert text.startswith("# C\n\n## 1, unreleased\n\n- One.\n- word word")
    assert text.endswith("word\n")
    assert text.split()[-41:] == ["-", *long.split()]
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("text", ["# C\n", "# C\n\n## 1, 2026-12-01\n\n- One.\n"])
def test_a_section_that_is_released_stays(text):
    with pytest.raises(ValueError, match="unreleased"):
        changelog.collected(text, ["More."])


def test_the_changes_here_can_be_moved():
    files = sorted(p for p in (ROOT / "changes").iterdir() if p.name != "README.md")
    assert all(p.suffix == ".md" and p.read_text(encoding="utf-8").strip() for p in files)
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changelog.collected(text, ["A change."]).count("- A change.\n") == 1
