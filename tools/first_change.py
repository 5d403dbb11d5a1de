"""What a stranger's first change takes: clones the repository, adds a queueing discipline, tests it; prints times.

    python tools/first_change.py
    python tools/first_change.py --keep /tmp/first

The steps are those of CONTRIBUTING.md: `make develop`, its walk-through of a queueing discipline, `make develop` again,
a run with the new discipline, `make quick`. Of this clone only what is committed takes part, and of the machine the
downloads of cargo and pip.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from walkthrough import ROOT, follow

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
STEPS: list[tuple[str, list[str]]] = [
    ("the first `make develop`", ["make", "develop"]),
    (f"the walk-through '{SECTION}'", []),
    ("`make develop` after it", ["make", "develop"]),
    ("a run with it", [".venv/bin/gargalo", "run", "first.toml", "--no-plots", "--output", "out"]),
    ("`make quick`", ["make", "quick"]),
]
"""What is done, and the command; without one the walk-through is followed."""


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
    for name, words in STEPS:
        begun = time.monotonic()
        if words:
            subprocess.run(words, cwd=folder, env=environment(), check=True, stdout=2)
        else:
            follow(SECTION, folder)
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
