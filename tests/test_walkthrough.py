"""The walk-through in CONTRIBUTING.md, followed word by word on a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from gargalo._generate import filled, has_pictures

HEADINGS = ["## Idea", "## Equations", "## Parameters", "## Behaviour", "## Known weaknesses"]


def blocks() -> dict[str, str]:
    """Return the code blocks of CONTRIBUTING.md that have a title, by title."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, re.DOTALL | re.MULTILINE)
    return dict(found)


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
    steps = blocks()
    assert list(steps) == [
        "crates/cc/src/algorithms/gentle.rs",
        "crates/cc/src/algorithms/mod.rs",
        "docs/congestion/gentle.md",
    ]
    source, registration, page = steps
    for name in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"]:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path)
    for folder in ["crates", "fuzz"]:
        shutil.copytree(ROOT / folder, tmp_path / folder)

    (tmp_path / source).write_text(steps[source])
    lines = (tmp_path / registration).read_text().splitlines()
    for line in steps[registration].splitlines():
        insert_sorted(lines, line)
    (tmp_path / registration).write_text("\n".join(lines) + "\n")

    target = os.environ.get("CARGO_TARGET_DIR") or str(ROOT / "target")
    env = {**os.environ, "CARGO_TARGET_DIR": target}
    cargo = shutil.which("cargo")
    assert cargo, "the walk-through needs cargo"
    # The registry's tests build every algorithm with every bound of every parameter.
    for command in [
        [cargo, "test", "-p", "gargalo-cc", "--locked", "--quiet", "--lib", "gentle"],
        [cargo, "test", "-p", "gargalo-cc", "--locked", "--quiet", "--lib", "registry"],
    ]:
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "0 passed" not in done.stdout
    formatted = subprocess.run(
        [cargo, "fmt", "--check", "-p", "gargalo-cc"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert formatted.returncode == 0, formatted.stdout

    text = filled(filled(steps[page], "parameters", "table"), "pictures", "two")
    assert all(heading in text for heading in HEADINGS)


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
