"""What the Makefile installs, and what it does not do again: with programs that only write down how they are called."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MATURIN = """\
#!/bin/sh
echo "$@" >> "{log}"
while [ $# -gt 0 ]; do
    if [ "$1" = --out ]; then mkdir -p "$2"; touch "$2/gargalo-0.1.0-any.whl"; fi
    shift
done
"""
TESTED = "build --locked --quiet"
RELEASE = "build --release --locked --quiet"
TREE = "develop --locked --quiet"


class Venv:
    """A virtual environment with all packages, in which nothing is really installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder / "venv", folder / "log"
        programs = self.folder / "bin"
        programs.mkdir(parents=True)
        for name in ("python", "gargalo"):
            (programs / name).write_text("#!/bin/sh\n")
        (programs / "maturin").write_text(MATURIN.format(log=self.log))
        for program in programs.iterdir():
            program.chmod(0o755)
        for mark in (".maturin", ".deps", ".dev"):
            (self.folder / mark).touch()

    def make(self, *words: str) -> list[str]:
        """Make targets; return how maturin was called, without the paths."""
        self.log.write_text("")
        done = subprocess.run(
            ["make", "--no-print-directory", f"VENV={self.folder}", *words],
            cwd=ROOT,
            # Not what the make that runs these tests was given.
            env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKEOVERRIDES")}
            | {"CARGO_TARGET_DIR": str(self.folder.parent / "target")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.said = done.stdout
        return [line.partition(" --interpreter")[0] for line in self.log.read_text().splitlines()]


@pytest.fixture
def venv(tmp_path: Path) -> Venv:
    return Venv(tmp_path)


def test_the_wheel_for_speed_is_that_of_the_tests_too(venv: Venv):
    assert venv.make("setup") == [RELEASE]
    assert venv.make("setup") == []
    assert venv.make("dev") == []


def test_tests_alone_are_content_with_a_wheel_of_their_profile(venv: Venv):
    assert venv.make("dev") == [TESTED]
    assert venv.make("dev") == []
    assert venv.make("setup") == [RELEASE]


def test_setup_and_tests_put_a_wheel_in_the_place_of_the_working_tree(venv: Venv):
    assert venv.make("setup") == [RELEASE]
    for target, mark in [("setup", ".gargalo"), ("dev", ".tested")]:
        assert venv.make("develop") == [TREE, f"{TREE} --skip-install"]
        assert venv.make("develop") == [f"{TREE} --skip-install"]
        assert not (venv.folder / mark).exists()
        # The wheel is still there.
        assert venv.make(target) == []
        assert (venv.folder / mark).exists()
        assert not (venv.folder / ".develop").exists()


def test_quick_tests_what_is_there(venv: Venv):
    assert venv.make("dev") == [TESTED]
    assert venv.make("quick") == []
    venv.make("develop")
    assert venv.make("quick") == [f"{TREE} --skip-install"]
    assert (venv.folder / ".develop").exists()


def test_formatting_and_types_need_no_wheel(venv: Venv):
    for program in ("ruff", "mypy"):
        (venv.folder / "bin" / program).symlink_to("gargalo")
    assert venv.make("style") == []


def test_what_is_installed_for_tests_is_said_first(venv: Venv):
    venv.make("test", "--dry-run")
    first, second, *_ = [line for line in venv.said.splitlines() if "test: " in line]
    assert all(name in first for name in ("tshark", "chromium-driver", "nginx-light", "iproute2"))
    assert "min" in second


def features(*words: str) -> set[str]:
    """Return the packages that cargo compiles, with their features."""
    tree = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p} {f}", *words]
    done = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.removesuffix(" (*)") for line in done.stdout.splitlines()}


def test_the_wheel_of_tests_is_made_of_what_is_compiled_for_tests():
    of_wheel = features("--package", "gargalo-py", "--edges", "normal")
    assert len(of_wheel) > 100
    assert of_wheel <= features("--workspace", "--edges", "normal,build,dev")
    # `cargo test` has the profile of `cargo build`, which is that of `maturin build`.
    assert "[profile.test" not in (ROOT / "Cargo.toml").read_text(encoding="utf-8")
