#!/usr/bin/env python3
"""Events, instructions and cache misses a data packet, counted by callgrind: figures that other work does not disturb.

    .venv/bin/python benches/count.py [--htsim DIR] [--cache BYTES] [SCENARIO ...]

Needs valgrind. Each scenario runs twice, for two lengths of virtual time, and the difference is divided by the data
packets in between: start-up, building the network and the first seconds cancel out, and no symbols are needed. The
caches are simulated: 32 KiB of data and one behind it for everything (1 MiB, as a core of today's has for itself; what
it misses waits for a cache shared with others, or for memory). What callgrind counts are data misses, reads and writes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import compare
from ns3_build import BenchError

# Virtual seconds of the two runs: after the first slow start, and some ten thousand packets later.
SPANS = {"large-windows": (3.0, 4.0), "large-windows-staggered": (4.0, 5.0)}
SMALL_SPAN = (3.0, 6.0)
MANY_FLOWS_SPAN = (0.3, 0.4)
DEFAULT = ("large-windows", "small-windows-reno")
WANTED = (compare.OURS, compare.ACK_EACH, compare.ALL, compare.HTSIM)


def totals(text: str) -> dict[str, int]:
    """Read the totals of a file that callgrind wrote.

    Raises:
        BenchError: It has none.

    """
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        events, values = lines["events"].split(), lines["totals"].split()
    except KeyError as key:
        raise BenchError(f"callgrind wrote no line {key}") from None
    return dict(zip(events, map(int, values), strict=False))


def counted(runner: compare.Runner, cache: int) -> dict[str, int]:
    """Run under callgrind; counts of the whole process, data packets and events of the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        caches = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", f"--LL={cache},16,64"]
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *caches]
        one = compare.Runner(runner.name, [*valgrind, *runner.command]).measure()
        found = totals(out.read_text(encoding="utf-8"))
    return {
        "packets": one["packets"],
        "events": one["events"],
        "instructions": found["Ir"],
        "first": found["D1mr"] + found["D1mw"],
        "last": found["DLmr"] + found["DLmw"],
    }


def per_packet(short: dict[str, int], long: dict[str, int]) -> dict[str, float]:
    """What each data packet between two runs took.

    Raises:
        BenchError: There is none.

    """
    packets = long["packets"] - short["packets"]
    if packets <= 0:
        raise BenchError("no packet passed between the two lengths of virtual time")
    return {key: max(long[key] - short[key], 0) / packets for key in short if key != "packets"}


def span(name: str) -> tuple[float, float]:
    """Return the two lengths of virtual time, s."""
    return MANY_FLOWS_SPAN if name == compare.MANY_FLOWS else SPANS.get(name, SMALL_SPAN)


def main(words: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    files = [compare.SCENARIOS / f"{name}.toml" for name in DEFAULT]
    parser.add_argument("scenarios", nargs="*", type=Path, help=f"default: {', '.join(DEFAULT)}")
    parser.add_argument("--htsim", type=Path, metavar="DIR", help="a checkout of htsim's sources")
    parser.add_argument("--cache", type=int, default=1 << 20, metavar="BYTES", help="default 1 MiB")
    given = parser.parse_args(words)
    if shutil.which("valgrind") is None:
        raise BenchError("valgrind is missing; install it (apt install valgrind)")
    options = compare.parse_arguments(["--ns3", "none"])
    options.htsim = given.htsim
    peers, said = compare.find_peers(options)
    print(f"htsim: {said['htsim']}")
    print("\n| scenario | | events | instructions | misses of 32 KiB | of the cache behind |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for file in given.scenarios or files:
        bell = compare.read(file)
        short, long = (compare.runners(file, bell, s, peers) for s in span(bell.name))
        for first, second in zip(short, long, strict=True):
            if first.name not in WANTED:
                continue
            one = per_packet(counted(first, given.cache), counted(second, given.cache))
            print(
                f"| {bell.name} | {first.name} | {one['events']:.2f} | {one['instructions']:,.0f}"
                f" | {one['first']:.1f} | {one['last']:.1f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"count: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
