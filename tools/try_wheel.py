"""Try a wheel as a stranger would: a fresh virtual environment, one installation, a first picture.

    python tools/try_wheel.py target/dist

The newest wheel of the directory that fits this machine is installed with its extra `plots`. No compiler may be
called, the command must run an example that comes with it and draw its pictures, and the base without extras must say
what a picture needs. Prints what each step took; ends with an error at the first that fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

FIRST_PICTURE_S = 60.0


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where no compiler can be found; end with its output if it fails."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"CC": "false", "CXX": "false", "RUSTC": "false", "CARGO": "false"}
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"try_wheel: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done


def main() -> None:
    """Install and try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the wheels are")
    directory = parser.parse_args().directory.resolve()
    with tempfile.TemporaryDirectory(prefix="gargalo-wheel-") as made:
        home = Path(made)
        venv.create(home / "venv", with_pip=True)
        programs = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        pip = [programs / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        begun = time.monotonic()
        run(*pip, "--find-links", directory, "--no-index", "--no-deps", "gargalo", cwd=home)
        run(*pip, "--find-links", directory, "gargalo", cwd=home)
        base = time.monotonic()
        print(f"base installed after {base - begun:.1f} s")
        gargalo = programs / "gargalo"
        run(gargalo, "example", "cellular-race", cwd=home)
        without = run(gargalo, "run", "cellular-race.toml", cwd=home)
        if "pip install 'gargalo[plots]'" not in without.stderr:
            sys.exit(f"try_wheel: nothing says what pictures need\n{without.stderr}")
        begun_again = time.monotonic()
        run(*pip, "--find-links", directory, "gargalo[plots]", cwd=home)
        run(gargalo, "run", "cellular-race.toml", "--output", "first", cwd=home)
        pictures = sorted(p.name for p in (home / "first").glob("*.png"))
        if "goodput.png" not in pictures:
            sys.exit(f"try_wheel: no picture of goodput: {pictures}")
        took = base - begun + time.monotonic() - begun_again
        print(f"first picture after {took:.1f} s; {FIRST_PICTURE_S:.0f} are the aim")
        site = next((home / "venv").rglob("site-packages"))
        size = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
        print(f"{size / 1e6:.0f} MB installed with the extra plots and pip")
        run(gargalo, "new", "mine.toml", cwd=home)
        run(gargalo, "run", "mine.toml", "--json", cwd=home)
        print(run(gargalo, "--version", cwd=home).stdout.strip())


if __name__ == "__main__":
    main()
