"""The walk-through in CONTRIBUTING.md, followed word by word on a copy of the repository."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG, ROOT
from gargalo import _core
from gargalo._generate import filled, has_pictures
from gargalo.exploring.lessons.model import read
from walkthrough import blocks, follow, patched

CONGESTION = "A congestion control in an hour"
SECTIONS: list[tuple[str, str, list[str], list[tuple[str, str]]]] = [
    (
        "A queueing discipline",
        "gargalo-link",
        ["crates/link/src/queue/blue.rs", "crates/link/src/queue/mod.rs"],
        [("--lib", "blue"), ("--lib", "properties")],
    ),
    (
        "A key of a link",
        "gargalo-link",
        [
            "crates/link/src/config.rs",
            "crates/link/src/screen.rs",
            "crates/link/tests/bleach.rs",
        ],
        [("--test", "bleach")],
    ),
    (
        "A workload",
        "gargalo-scenario",
        [
            "crates/workload/src/game.rs",
            "crates/workload/src/lib.rs",
            "crates/scenario/tests/game.rs",
        ],
        [("--test", "game")],
    ),
    (
        "A scheduler of Multipath TCP",
        "gargalo-mptcp",
        ["crates/mptcp/src/scheduler/lowest_loss.rs", "crates/mptcp/src/scheduler/mod.rs"],
        [("--lib", "lowest_loss"), ("--lib", "registry")],
    ),
    (
        "A column of a result",
        "gargalo-scenario",
        [
            "crates/trace/src/schema.rs",
            "crates/scenario/src/tables.rs",
            "crates/scenario/tests/retransmissions.rs",
        ],
        [("--test", "retransmissions")],
    ),
    (
        "A counter of a sender",
        "gargalo-scenario",
        [
            "crates/units/src/counters.rs",
            "crates/tcp/src/sender/transmit.rs",
            "crates/trace/src/schema.rs",
            "crates/scenario/tests/probes.rs",
        ],
        [("--test", "probes")],
    ),
    (
        "A profile of TCP",
        "gargalo-tcp",
        [
            "crates/tcp/src/config/profiles.rs",
            "crates/tcp/src/config/controls.rs",
            "crates/tcp/tests/rfc2581.rs",
        ],
        [("--test", "rfc2581"), ("--lib", "controls")],
    ),
]
"""Heading, package, files and tests of each other section in Rust."""
TRIED = [s for s in SECTIONS if LONG or s[0] != "A scheduler of Multipath TCP"]
"""A scheduler is registered as a queueing discipline is; a crate less is compiled without LONG=1."""
IN_PYTHON: list[tuple[str, list[str], list[str]]] = [
    (
        "A command",
        ["python/gargalo/cli/flows.py", "python/gargalo/cli/app.py", "tests/test_flows.py"],
        ["tests/test_flows.py", "tests/test_commands.py"],
    ),
    (
        "A claim of a study",
        ["python/gargalo_studies/quic_stacks/claims.py", "tests/studies/test_claim_lost.py"],
        ["tests/studies/test_claim_lost.py", "tests/studies/test_quic_stacks.py"],
    ),
]
"""Heading, files and tests of each section in Python: its own, and those of what it adds to."""
HEADINGS = ["## Idea", "## Equations", "## Parameters", "## Behaviour", "## Known weaknesses"]


@functools.cache
def followed() -> tuple[Path, dict[str, str]]:
    """Return a copy of what cargo needs, with the changes of all sections, and the environment to build it.

    The copy stays where it is, and a file that is as it should be is not touched, so that a second run builds nothing.
    Cargo tells crates by name and version, not by place: those of the copy have a version of their own. They are
    compiled without optimization; the libraries have levels of their own and are those of the other tests.
    """
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    to = target / "walkthrough"
    wanted = {n: ROOT / n for n in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"]}
    for folder in ["crates", "fuzz"]:
        files = (p for p in (ROOT / folder).rglob("*") if p.is_file())
        wanted |= {str(p.relative_to(ROOT)): p for p in files}
    contents = {n: p.read_bytes() for n, p in wanted.items() if p.exists()}
    source, registration, _ = steps = blocks(CONGESTION)
    lines = contents[registration].decode().splitlines()
    for line in steps[registration].splitlines():
        insert_sorted(lines, line)
    contents |= {source: steps[source].encode(), registration: "\n".join([*lines, ""]).encode()}
    for heading, *_ in SECTIONS:
        for name, text in blocks(heading).items():
            known = contents.get(name)
            contents[name] = (text if known is None else patched(known.decode(), text)).encode()
    own = rb"\g<1>+walkthrough\g<2>"
    version = rb'(name = "gargalo-\w+"\nversion = "[^"]+)(")'
    contents["Cargo.lock"] = re.sub(version, own, contents["Cargo.lock"])
    version = rb'(\[workspace\.package\]\nversion = "[^"]+)(")'
    contents["Cargo.toml"], found = re.subn(version, own, contents["Cargo.toml"])
    assert found == 1
    for there in [p for p in to.rglob("*") if p.is_file()]:
        if str(there.relative_to(to)) not in contents:
            there.unlink()
    for n, content in contents.items():
        file = to / n
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_bytes() != content:
            file.write_bytes(content)
    level = {"CARGO_PROFILE_TEST_OPT_LEVEL": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}
    return to, {**os.environ, **level, "CARGO_TARGET_DIR": str(target)}


def cargo(folder: Path, env: dict[str, str], *words: str) -> str:
    """Run cargo in a copy; return what it printed, which must be a success."""
    program = shutil.which("cargo")
    assert program, "the walk-through needs cargo"
    done = subprocess.run(
        [program, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def insert_sorted(lines: list[str], new: str) -> None:
    """Put a line among its like, in alphabetical order."""
    word = re.match(r"\s*(pub mod )?", new)
    assert word
    like = re.compile(r"pub mod \w+;$" if word.group(1) else r" {4}\w+::ALGORITHM,$")
    places = [i for i, line in enumerate(lines) if like.match(line)]
    assert places
    after = [i for i in places if lines[i] < new]
    lines.insert(after[-1] + 1 if after else places[0], new)


@pytest.mark.xdist_group("walkthrough")
def test_three_things_are_enough():
    steps = blocks(CONGESTION)
    assert list(steps) == [
        "crates/cc/src/algorithms/gentle.rs",
        "crates/cc/src/algorithms/mod.rs",
        "docs/congestion/gentle.md",
    ]
    folder, env = followed()

    # The registry's tests build every algorithm with every bound of every parameter.
    for name in ["gentle", "registry"]:
        told = cargo(folder, env, "test", "-p", "gargalo-cc", "--locked", "-q", "--lib", name)
        assert "0 passed" not in told
    cargo(folder, env, "fmt", "--check", "-p", "gargalo-cc")

    text = filled(filled(list(steps.values())[2], "parameters", "table"), "pictures", "two")
    assert all(heading in text for heading in HEADINGS)


@pytest.mark.xdist_group("walkthrough")
@pytest.mark.parametrize(("heading", "package", "files", "tests"), TRIED)
def test_a_few_files_are_enough(heading, package, files, tests):
    assert list(blocks(heading)) == files
    folder, env = followed()
    # Libraries have the features that any chosen package asks for: with the bindings beside it, which have no test of a
    # name, those of a scenario are the libraries of the other tests, and are not compiled again.
    beside = ("-p", "gargalo-py") if package == "gargalo-scenario" else ()
    for words in tests:
        assert "--test" in words or not beside
        told = cargo(folder, env, "test", "-p", package, *beside, "--locked", "-q", *words)
        assert "0 passed" not in told
    cargo(folder, env, "fmt", "--check", "-p", package)


@pytest.mark.parametrize(("heading", "files", "tests"), IN_PYTHON)
def test_two_files_of_python_are_enough(heading, files, tests, tmp_path):
    steps = blocks(heading)
    assert list(steps) == files
    left_out = shutil.ignore_patterns("__pycache__", "*.so", "test_*.py")
    for folder in ("python", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out, symlinks=True)
    (tmp_path / "python" / "gargalo" / Path(_core.__file__).name).symlink_to(_core.__file__)
    (tmp_path / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    for name in tests:
        if name not in steps:
            shutil.copy(ROOT / name, tmp_path / name)
    follow(heading, tmp_path)
    quiet = ("--quiet", "--no-cache")
    for words in (
        ("pytest", "-q", "-p", "no:cacheprovider", *tests),
        ("ruff", "check", *quiet, *files),
        ("ruff", "format", "--check", *quiet, *files),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_is_enough_for_a_lesson(tmp_path):
    steps = blocks("A lesson")
    assert list(steps) == ["python/gargalo/exploring/lessons/slow-start.toml"]
    file = tmp_path / "slow-start.toml"
    file.write_text(*steps.values(), encoding="utf-8")
    made = read(file)
    assert len(made.steps) >= 3
    for number in range(1, len(made.steps) + 1):
        assert all(figure.holds for figure in made.figures(number)), made.explanation(number)


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
