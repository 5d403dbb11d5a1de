#!/usr/bin/env python3
"""What sweeps cost besides their runs: processor time of short runs in a sweep and alone, and of a worker's start.

    .venv/bin/python benches/sweeps.py [--runs N] [--rounds N] [--evaluate] [--package DIR]…

Processor time is user and system time of a command and all that it starts (getrusage of children). The runs are of
1 s over one link of 10 Mbit/s, ten delays, each with a tenth of the seeds; alone they are done by the engine one after
the other, and the start of the interpreter is subtracted. `--evaluate` adds `gargalo evaluate reno --profile quick`
with an empty store. Folders that have a package `gargalo` take turns, so that whatever else the machine does meets all
of them; without any it is the one of this interpreter. Printed are minima.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile

SCENARIO = """{
    "name": "short", "duration": "1s",
    "topology": {"simple": {"link": {"rate": "10Mbit/s", "delay": "10ms"}}},
    "flows": [{"from": "client", "to": "server", "transport": {"tcp": {}}, "workload": {"bulk": {}}}],
}"""
KEY = "topology.simple.link.delay"
DELAYS = [f"{10 + 2 * i}ms" for i in range(10)]
LEAST = 10
"""Runs of the smallest sweep, one for each delay: what is left is not for each run."""

SWEEP = f"""
import gargalo, sys
made = gargalo.sweep({SCENARIO}, {{{KEY!r}: {DELAYS}}}, repeat=int(sys.argv[2]) // 10, store=sys.argv[1], workers=2)
assert made.done == int(sys.argv[2]) and not made.failures
"""
ALONE = f"""
import sys
from gargalo import _core
from gargalo.scenarios.scenario import to_toml
text = to_toml({SCENARIO})
for i in range(int(sys.argv[2])):
    changes = [({KEY!r}, {DELAYS}[i % 10]), ("seed", str(i))]
    _core.run(text, None, changes, {{}}, output=None, world="sim", memory_limit=None)
"""
WORKER = "from gargalo.sweeps import work, worker; work.prepare(work.Setup().dumps())"
EVALUATE = ["-m", "gargalo", "evaluate", "reno", "--profile", "quick", "--workers", "2"]


def processor_time(arguments: list[str], package: str) -> float:
    """Run the interpreter in an empty folder; return user and system time in seconds."""

    def used() -> float:
        of = resource.getrusage(resource.RUSAGE_CHILDREN)
        return of.ru_utime + of.ru_stime

    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPATH": os.path.abspath(package)} if package else {}  # noqa: PTH100 (a name alone)
    with tempfile.TemporaryDirectory() as folder:
        before = used()
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, check=False
        )
        if done.returncode:
            sys.exit(f"{arguments[:2]}: exit code {done.returncode}\n{done.stderr.decode()}")
        return used() - before


def measure(runs: int, package: str, *, evaluate: bool) -> dict[str, float]:
    """Return what each costs, in seconds."""
    sweep, least = (processor_time(["-c", SWEEP, "store", str(n)], package) for n in (runs, LEAST))
    alone, none = (processor_time(["-c", ALONE, "", str(n)], package) for n in (runs, 0))
    found = {
        "interpreter alone": processor_time(["-c", "pass"], package),
        "start of a worker": processor_time(["-c", WORKER], package),
        f"{runs} runs alone": alone - none,
        f"sweep of {runs} runs": sweep,
        f"sweep of {LEAST} runs": least,
    }
    if evaluate:
        found["evaluate reno, quick"] = processor_time([*EVALUATE, "--store", "store"], package)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000, help="a multiple of 10 (1000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--package", action="append", metavar="DIR")
    args = parser.parse_args()
    if args.rounds < 1 or args.runs <= LEAST or args.runs % 10:
        parser.error("nothing to measure")
    packages = args.package or [""]
    for package in packages:  # Bytecode is there then, as pip writes it when it installs.
        processor_time(["-c", SWEEP, "store", str(LEAST)], package)
    rounds = [
        [measure(args.runs, p, evaluate=args.evaluate) for p in packages]
        for _ in range(args.rounds)
    ]
    least = [{k: min(r[i][k] for r in rounds) for k in rounds[0][i]} for i in range(len(packages))]
    print(f"| processor time, s |{' | '.join(packages)} |\n| --- |{' ---: |' * len(packages)}")
    for name in least[0]:
        print(f"| {name} | {' | '.join(f'{of[name]:.3f}' for of in least)} |")
    alone, whole, start = (
        f"{args.runs} runs alone",
        f"sweep of {args.runs} runs",
        f"sweep of {LEAST} runs",
    )
    each = [
        1e3 * ((of[whole] - of[start]) / (args.runs - LEAST) - of[alone] / args.runs)
        for of in least
    ]
    print(
        f"| sweep over runs alone | {' | '.join(f'{of[whole] / of[alone]:.2f}' for of in least)} |"
    )
    print(f"| for each run besides it, ms | {' | '.join(f'{ms:.2f}' for ms in each)} |")


if __name__ == "__main__":
    main()
