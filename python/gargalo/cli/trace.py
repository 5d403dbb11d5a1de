"""`gargalo trace`: packet-delivery traces in mahimahi's format."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from gargalo import _core, reading
from gargalo.cli.common import PATH, STDIN, because, fail, json_option, refuse_another
from gargalo.cli.help import Group
from gargalo.terminal.text import definitions

if TYPE_CHECKING:
    from pathlib import Path

trace_argument = click.argument(
    "file", type=PATH, metavar="FILE", help="The trace; - is standard input."
)
out_argument = click.argument(
    "out", type=PATH, metavar="OUT", help="File to write; - is standard output."
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")


@click.group(
    cls=Group,
    examples=[
        ("gargalo trace generate cellular.down --seed 7", "A minute of a cellular link."),
        ("gargalo trace info cellular.down", "Length, rates, the longest gap."),
    ],
)
def trace() -> None:
    """Packet-delivery traces: what is in them, new ones, other formats."""


def read(path: Path) -> str:
    """Return a file's text; of `-`, what standard input has."""
    try:
        if path == STDIN:
            return reading.stdin(reading.MOST_DATA)
        return reading.text(path, reading.MOST_DATA)
    except UnicodeDecodeError:
        fail(f"{path}: not a text file; a trace has one integer millisecond a line")
    except OSError as e:
        fail(f"{path}: cannot be read: {reading.reason(e)}")


def write(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a whole file."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fail(f"{path} exists; choose another name or add --overwrite")
    except OSError as e:
        fail(f"{path}: cannot be written: {because(e, path)}")


@trace.command(examples=[("gargalo trace info cellular.down", "Length, rates, the longest gap.")])
@trace_argument
@json_option("In SI units, as JSON.")
def info(
    file: Path,
    as_json: bool,
) -> None:
    """Print the properties of a trace."""
    try:
        facts = _core.trace_info(read(file))
    except ValueError as e:
        refuse_another(file, "trace")
        fail(f"{file}: {e}")
    if as_json:
        print(json.dumps({"file": str(file), **facts}))
        return
    parts = ("min", "p5", "p25", "p50", "p75", "p95", "max")
    rates = "  ".join(f"{p} {facts[f'rate_{p}_bps'] / 1e6:.2f}" for p in parts)
    told = [
        ("opportunities", f"{facts['opportunities']} of 1500 bytes"),
        ("duration", f"{facts['duration_s']:.3f} s, then it repeats"),
        ("longest gap", f"{facts['longest_gap_s'] * 1e3:.0f} ms"),
        ("mean rate", f"{facts['rate_mean_bps'] / 1e6:.3f} Mbit/s"),
        ("1 s bins", f"{rates} (Mbit/s)"),
    ]
    print(definitions(told))


@trace.command(
    examples=[
        ("gargalo trace generate cellular.down --seed 7", "A minute of a cellular link."),
        ("gargalo trace generate - --duration 10s", "Ten seconds to standard output."),
    ]
)
@out_argument
@click.option("--duration", default="60s", metavar="TIME", help="Length.")
@click.option("--seed", type=click.IntRange(min=0), default=1, metavar="N", help="Seed.")
@click.option("--rate", default="5Mbit/s", metavar="RATE", help="Rate at the start.")
@click.option("--max-rate", default="12Mbit/s", metavar="RATE", help="Rate that is never exceeded.")
@click.option(
    "--volatility",
    type=float,
    default=200.0,
    metavar="X",
    help="Of the rate, in packets/s per square root of a second.",
)
@click.option(
    "--outage-escape",
    type=float,
    default=1.0,
    metavar="X",
    help="Rate of leaving an outage, per second.",
)
@overwrite_option
def generate(
    out: Path,
    duration: str,
    seed: int,
    rate: str,
    max_rate: str,
    volatility: float,
    outage_escape: float,
    overwrite: bool,
) -> None:
    """Make a synthetic cellular trace (the model of Sprout, NSDI 2013)."""
    try:
        text = _core.trace_generate(
            seed=seed,
            duration=duration,
            initial_rate=rate,
            max_rate=max_rate,
            volatility=volatility,
            outage_escape=outage_escape,
        )
    except (ValueError, OverflowError) as e:
        fail(str(e))
    write(out, text, overwrite=overwrite)


@trace.command(examples=[("gargalo trace convert rates.txt rates.down", "From rates to a trace.")])
@trace_argument
@out_argument
@overwrite_option
def convert(
    file: Path,
    out: Path,
    overwrite: bool,
) -> None:
    """Make a trace from lines of "seconds Mbit/s" (Pensieve's format)."""
    rows = []
    for number, line in enumerate(read(file).splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            time, rate = map(float, words)
        except ValueError:
            fail(f'{file}:{number}: "{line.strip()}": write two numbers, seconds and Mbit/s')
        rows.append((time, rate))
    try:
        text = _core.trace_from_rates(rows)
    except ValueError as e:
        fail(f"{file}: {e}")
    write(out, text, overwrite=overwrite)


@trace.command(examples=[("gargalo trace check cellular.down", "Is it one?")])
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE...", help="Traces.")
def check(
    files: tuple[Path, ...],
) -> None:
    """Check that files are traces; exit code 2 if one is not."""
    bad = False
    for file in files:
        try:
            facts = _core.trace_info(read(file))
        except ValueError as e:
            print(f"{file}: {e}", file=sys.stderr)
            bad = True
        else:
            mbps = facts["rate_mean_bps"] / 1e6
            print(f"{file}: ok, {mbps:.3f} Mbit/s over {facts['duration_s']:.3f} s")
    if bad:
        raise Exit(2)
