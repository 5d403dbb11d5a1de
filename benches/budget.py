#!/usr/bin/env python3
"""What a packet costs in instructions, part by part, beside what it should cost.

    .venv/bin/python benches/budget.py [--check PAGE]

Needs valgrind. The parts are differences: the same flows over more links, and with a link at which they queue; ends are
what is left. Each run is made for two lengths of virtual time, so that start-up and the building of the network cancel
out. Callgrind counts instructions, the same for each run of one build, and other work does not disturb it.

With --check the table is compared with that of a page between `<!-- budget -->` and `<!-- /budget -->`: a part that
takes 3% more is an error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import count
from ns3_build import BenchError

ROOT = Path(__file__).resolve().parents[1]
# Virtual seconds of the two runs.
SPAN = (2, 4)
# Of links without a queue: few, and many.
FEW, MANY = 2, 10
SLACK = 0.03


class Run(NamedTuple):
    """What the second half of a run took."""

    instructions: float
    data: float
    packets: float
    events: float


class Part(NamedTuple):
    """A row of the table."""

    name: str
    instructions: float
    wanted: float


def built() -> Path:
    """Build the example; return its file."""
    build = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "gargalo-sim"]
    build += ["--example", "budget", "--message-format", "json"]
    done = subprocess.run(build, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    found = re.findall(r'"executable":"([^"]*budget[^"]*)"', done.stdout)
    if done.returncode or not found:
        raise BenchError("the example budget of crates/sim does not compile")
    return Path(found[-1])


def once(program: Path, what: str, links: int, seconds: int) -> Run:
    """Run under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command += [str(program), what, str(links), str(seconds)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise BenchError(f"{what}: {done.stderr.strip()}")
        instructions = count.totals(out.read_text(encoding="utf-8"))["Ir"]
    return Run(instructions, *map(float, done.stdout.split()))


def run(program: Path, what: str, links: int = FEW) -> Run:
    """Return what the second half of a run took."""
    short, long = (once(program, what, links, seconds) for seconds in SPAN)
    return Run(*(b - a for a, b in zip(short, long, strict=True)))


def parts(program: Path) -> list[Part]:
    """Measure all parts."""
    queue = run(program, "queue")
    event = queue.instructions / queue.events
    plain = run(program, "udp")
    longer = run(program, "udp", MANY)
    queued = run(program, "udp+bottleneck")
    tcp = run(program, "tcp+bottleneck")

    def apart(more: Run, less: Run) -> float:
        """Return the instructions a packet between two runs of the same packets, without those of the event queue."""
        events = event * (more.events - less.events)
        return (more.instructions - less.instructions - events) / plain.packets

    hop = apart(longer, plain) / (MANY - FEW)
    bottleneck = apart(queued, plain)
    whole = tcp.instructions / tcp.data
    acks = tcp.packets / tcp.data - 1
    # An acknowledgement finds no queue on its way back.
    links = FEW * hop + bottleneck + (FEW + 1) * hop * acks
    ends = whole - links - event * tcp.events / tcp.data
    return [
        Part("a link where no queue can form, a packet", hop, 100),
        Part("the bottleneck, a packet", bottleneck, 250),
        Part("the queue of events, an event", event, 120),
        Part(
            "ends and application of TCP (Reno, delayed acknowledgements), a data packet",
            ends,
            1050,
        ),
        Part("all of it, a data packet over two such links and a bottleneck", whole, 2000),
    ]


def table(found: list[Part]) -> str:
    """Return the table in Markdown."""
    rows = [f"| {p.name} | {p.instructions:,.0f} | {p.wanted:,.0f} |" for p in found]
    return "\n".join(["| part | instructions | wanted |", "| --- | ---: | ---: |", *rows])


def check(found: list[Part], page: Path) -> list[str]:
    """Return the parts that take more than the page says.

    Raises:
        BenchError: It does not have one of them.

    """
    text = page.read_text(encoding="utf-8").split("<!-- budget -->")[1].split("<!-- /budget -->")[0]
    told = {
        name: float(value.replace(",", ""))
        for name, value in re.findall(r"^\| ([^|]+) \| ([\d,]+) \|", text, re.MULTILINE)
    }
    missing = [p.name for p in found if p.name not in told]
    if missing:
        raise BenchError(f"{page.name} has no part {missing[0]}")
    return [
        f"{p.name}: {p.instructions:,.0f} instructions, {page.name} says {told[p.name]:,.0f}"
        for p in found
        if p.instructions > told[p.name] * (1 + SLACK)
    ]


def main(words: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", type=Path, metavar="PAGE", help="such as docs/benchmarks.md")
    given = parser.parse_args(words)
    if shutil.which("valgrind") is None:
        raise BenchError("valgrind is missing; install it (apt install valgrind)")
    found = parts(built())
    print(table(found))
    worse = check(found, given.check) if given.check else []
    for line in worse:
        print(f"budget: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"budget: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
