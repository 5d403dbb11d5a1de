"""The walk-through in CONTRIBUTING.md, followed word by word on a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT
from gargalo._generate import filled, has_pictures

if TYPE_CHECKING:
    from pathlib import Path

HEADINGS = ["## Idea", "## Equations", "## Parameters", "## Behaviour", "## Known weaknesses"]


def blocks(heading: str) -> dict[str, str]:
    """Return the code blocks of a section of CONTRIBUTING.md that have a title, by title."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    # Headings within a block are not those of the page.
    parts = re.findall(
        r'^```\w+ title="([^"]+)"\n(.*?)^```$|^## ([^\n]+)$', text, re.DOTALL | re.MULTILINE
    )
    inside, found = False, {}
    for title, code, page_heading in parts:
        if page_heading:
            inside = page_heading == heading
        elif inside:
            found[title] = code
    return found


def copy(to: Path) -> dict[str, str]:
    """Copy what cargo needs; return the environment that shares what is built already."""
    for name in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"]:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, to)
    for folder in ["crates", "fuzz"]:
        shutil.copytree(ROOT / folder, to / folder)
    target = os.environ.get("CARGO_TARGET_DIR") or str(ROOT / "target")
    return {**os.environ, "CARGO_TARGET_DIR": target}


def cargo(folder: Path, env: dict[str, str], *words: str) -> str:
    """Run cargo in a copy; return what it printed, which must be a success."""
    program = shutil.which("cargo")
    assert program, "the walk-through needs cargo"
    done = subprocess.run(
        [program, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def patched(text: str, diff: str) -> str:
    """Return a text with changes, of which each has lines around that stand there once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def insert_sorted(lines: list[str], new: str) -> None:
    """Put a line among its like, in alphabetical order."""
    word = re.match(r"\s*(pub mod )?", new)
    assert word
    like = re.compile(r"pub mod \w+;$" if word.group(1) else r" {4}\w+::ALGORITHM,$")
    places = [i for i, line in enumerate(lines) if like.match(line)]
    assert places
    after = [i for i in places if lines[i] < new]
    lines.insert(after[-1] + 1 if after else places[0], new)


def test_three_things_are_enough(tmp_path):
    steps = blocks("A congestion control in an hour")
    assert list(steps) == [
        "crates/cc/src/algorithms/gentle.rs",
        "crates/cc/src/algorithms/mod.rs",
        "docs/congestion/gentle.md",
    ]
    source, registration, page = steps
    env = copy(tmp_path)
    (tmp_path / source).write_text(steps[source])
    lines = (tmp_path / registration).read_text().splitlines()
    for line in steps[registration].splitlines():
        insert_sorted(lines, line)
    (tmp_path / registration).write_text("\n".join(lines) + "\n")

    # The registry's tests build every algorithm with every bound of every parameter.
    for name in ["gentle", "registry"]:
        told = cargo(tmp_path, env, "test", "-p", "gargalo-cc", "--locked", "-q", "--lib", name)
        assert "0 passed" not in told
    cargo(tmp_path, env, "fmt", "--check", "-p", "gargalo-cc")

    text = filled(filled(steps[page], "parameters", "table"), "pictures", "two")
    assert all(heading in text for heading in HEADINGS)


@pytest.mark.parametrize(
    ("heading", "files", "tests"),
    [
        (
            "A queueing discipline",
            ["crates/link/src/queue/blue.rs", "crates/link/src/queue/mod.rs"],
            [("--lib", "blue"), ("--lib", "properties")],
        ),
        (
            "A key of a link",
            [
                "crates/link/src/config.rs",
                "crates/link/src/link.rs",
                "crates/link/tests/bleach.rs",
            ],
            [("--test", "bleach")],
        ),
    ],
)
def test_two_files_are_enough(tmp_path, heading, files, tests):
    steps = blocks(heading)
    assert list(steps) == files
    env = copy(tmp_path)
    for name, text in steps.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        known = file.read_text() if file.exists() else None
        file.write_text(text if known is None else patched(known, text))
    for words in tests:
        told = cargo(tmp_path, env, "test", "-p", "gargalo-link", "--locked", "-q", *words)
        assert "0 passed" not in told
    cargo(tmp_path, env, "fmt", "--check", "-p", "gargalo-link")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "congestion").glob("*.md")), ids=lambda p: p.stem
)
def test_pages_have_the_form(path):
    if path.stem in ("index", "comparison"):
        return
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.stem}\n")
    assert "**Source:**" in text
    positions = [text.index(heading) for heading in HEADINGS]
    assert positions == sorted(positions)
    if not has_pictures(text):
        # Coupled: alone it is another, whose page has the pictures.
        found = re.search(r"<!-- no pictures: alone it is (\S+) -->", text)
        assert found, "say which one it is alone"
        base = found.group(1)
        assert f"[{base}]({base}.md)" in text
        assert (ROOT / "docs" / "images" / "congestion" / f"{base}-time.svg").exists()
        return
    for kind in ("time", "loss"):
        picture = f"{path.stem}-{kind}.svg"
        assert picture in text
        assert (ROOT / "docs" / "images" / "congestion" / picture).exists()
