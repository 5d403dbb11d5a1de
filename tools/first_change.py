"""What a stranger's first change takes: clones the repository, adds a queueing discipline, tests it; prints times.

    python tools/first_change.py
    python tools/first_change.py --keep /tmp/first

The steps are those of CONTRIBUTING.md: `make develop`, its walk-through of a queueing discipline, `make develop` again,
a run with the new discipline, an edit of its algorithm, `make develop` and a run again, `make quick`. Of this clone
only what is committed takes part, and of the machine the downloads of cargo and pip.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from walkthrough import ROOT, follow

if TYPE_CHECKING:
    from collections.abc import Callable

SECTION = "A queueing discipline"
OF_THE_CALLER = ("CARGO_", "PYTHON", "PYO3_", "VIRTUAL_ENV", "RUSTFLAGS", "MAKE")
"""Beginnings of variables that would have the clone use what this machine has built."""
SCENARIO = """\
duration = "5s"
topology.simple.link = { rate = "5Mbit/s", delay = "10ms", queue = { blue = { limit = "20 packets" } } }
[[flows]]
from = "client"
to = "server"
transport.tcp = {}
"""
RUN = [".venv/bin/gargalo", "run", "first.toml", "--no-plots", "--overwrite", "--output", "out"]
EDITED = "crates/link/src/queue/blue.rs"
EDIT = (".clamp(0.0, 1.0)", ".min(1.0).max(0.0)")
"""Text of the new file, and what stands there after the edit."""


def edit(folder: Path) -> None:
    """Change a line of the new discipline."""
    file = folder / EDITED
    before, after = EDIT
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    file.write_text(text.replace(before, after), encoding="utf-8")


STEPS: list[tuple[str, list[str] | Callable[[Path], object]]] = [
    ("the first `make develop`", ["make", "develop"]),
    (f"the walk-through '{SECTION}'", partial(follow, SECTION)),
    ("`make develop` after it", ["make", "develop"]),
    ("a run with it", RUN),
    ("an edit of its algorithm", edit),
    ("`make develop` after the edit", ["make", "develop"]),
    ("a run with the edit", RUN),
    ("`make quick`", ["make", "quick"]),
]
"""What is done: a command, or a function of the clone's folder."""


def environment() -> dict[str, str]:
    """Return what a stranger's shell has."""
    return {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_CALLER)}


def clone(to: Path) -> None:
    """Clone what is committed here."""
    words = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(to)]
    subprocess.run(words, check=True)
    (to / "first.toml").write_text(SCENARIO, encoding="utf-8")
    with (to / ".git" / "info" / "exclude").open("a", encoding="utf-8") as out:
        out.write("first.toml\nout/\n")


def change(folder: Path) -> None:
    """Do all steps in a clone; print how long each takes.

    Raises:
        subprocess.CalledProcessError: One fails.

    """
    for name, step in STEPS:
        begun = time.monotonic()
        if callable(step):
            step(folder)
        else:
            subprocess.run(step, cwd=folder, env=environment(), check=True, stdout=2)
        print(f"{time.monotonic() - begun:6.1f} s  {name}", flush=True)


def main() -> None:
    """Clone and change."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="clone to here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gargalo-first-") as made:
        folder = given.keep or Path(made) / "gargalo"
        begun = time.monotonic()
        clone(folder)
        print(f"{time.monotonic() - begun:6.1f} s  a clone", flush=True)
        try:
            change(folder)
        except subprocess.CalledProcessError as e:
            sys.exit(f"first_change: {e}")
        print(f"{time.monotonic() - begun:6.1f} s  in all")


if __name__ == "__main__":
    main()
