#!/usr/bin/env python3
"""What it costs to start: processor time of commands and of the Python package.

    .venv/bin/python benches/startup.py [--rounds N] [--only WORD] [--python PROGRAM]

Processor time is user and system time of the whole process (getrusage of children). The commands take turns, so
that whatever else the machine does meets all of them. Printed are the minimum, which other work on the machine
disturbs little, and the median. The first row is the interpreter alone. Run each once before measuring: bytecode is
then there, as pip writes it when it installs.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHORT = ["examples/cellular-race.toml", "--set", "duration=0.1s"]
SMALLEST = """{
    "name": "smallest", "duration": "0.1s",
    "topology": {"simple": {"link": {"rate": "10Mbit/s", "delay": "10ms"}}},
    "flows": [{"from": "client", "to": "server", "transport": {"tcp": {}}, "workload": {"bulk": {}}}],
}"""


def commands(output: str) -> dict[str, list[str]]:
    """Return what is measured: name, arguments of the interpreter."""
    gargalo = ["-m", "gargalo"]
    run = [*gargalo, "run", *SHORT]
    kept = ["--output", output, "--overwrite"]
    return {
        "interpreter alone": ["-c", "pass"],
        "gargalo --version": [*gargalo, "--version"],
        "gargalo --help": [*gargalo, "--help"],
        "gargalo run --help": [*gargalo, "run", "--help"],
        "gargalo list congestion": [*gargalo, "list", "congestion"],
        "gargalo run --json": [*run, "--json"],
        "gargalo run --no-plots": [*run, "--no-plots", *kept],
        "gargalo run, with pictures": [*run, *kept],
        "import gargalo": ["-c", "import gargalo"],
        "gargalo.run of the smallest": ["-c", f"import gargalo\ngargalo.run({SMALLEST})"],
    }


def processor_time(command: list[str]) -> float:
    """Run a command; return its user and system time in seconds."""

    def used() -> float:
        of = resource.getrusage(resource.RUSAGE_CHILDREN)
        return of.ru_utime + of.ru_stime

    before = used()
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.decode()}")
    return used() - before


ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", metavar="WORD", help="only rows with this word")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has gargalo")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = {
            name: [args.python, *rest]
            for name, rest in commands(f"{folder}/results").items()
            if args.only is None or args.only in name
        }
        if not chosen or args.rounds < 1:
            parser.error("nothing to measure")
        for command in chosen.values():
            processor_time(command)
        rounds = [{n: processor_time(c) for n, c in chosen.items()} for _ in range(args.rounds)]
    print("| | minimum, s | median, s |\n| --- | ---: | ---: |")
    for name in chosen:
        times = [r[name] for r in rounds]
        print(f"| {name} | {min(times):.3f} | {statistics.median(times):.3f} |")


if __name__ == "__main__":
    main()
