"""`gargalo trace`: packet-delivery traces in mahimahi's format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from gargalo import _core
from gargalo.cli_common import fail, json_option

app = typer.Typer(help="Packet-delivery traces: what is in them, new ones, other formats.")

In = Annotated[Path, typer.Argument(metavar="FILE", help="The trace.")]
Out = Annotated[Path, typer.Argument(metavar="OUT", help="File to write; - is standard output.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]


def read(path: Path) -> str:
    """Return a file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        fail(f"{path}: not a text file; a trace has one integer millisecond a line")
    except OSError as e:
        fail(f"{path}: cannot be read: {e.strerror or e}; check the path")


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
        fail(f"{path}: cannot be written: {e.strerror or e}")


@app.command()
def info(file: In, as_json: Annotated[bool, json_option("In SI units, as JSON.")] = False) -> None:
    """Print the properties of a trace."""
    try:
        facts = _core.trace_info(read(file))
    except ValueError as e:
        fail(f"{file}: {e}")
    if as_json:
        print(json.dumps({"file": str(file), **facts}))
        return
    print(f"opportunities  {facts['opportunities']} of 1500 bytes")
    print(f"duration       {facts['duration_s']:.3f} s, then it repeats")
    print(f"longest gap    {facts['longest_gap_s'] * 1e3:.0f} ms")
    print(f"mean rate      {facts['rate_mean_bps'] / 1e6:.3f} Mbit/s")
    parts = ("min", "p5", "p25", "p50", "p75", "p95", "max")
    rates = "  ".join(f"{p} {facts[f'rate_{p}_bps'] / 1e6:.2f}" for p in parts)
    print(f"1 s bins       {rates} (Mbit/s)")


@app.command()
def generate(
    out: Out,
    duration: Annotated[str, typer.Option(help="Length.")] = "60s",
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 1,
    rate: Annotated[str, typer.Option(help="Rate at the start.")] = "5Mbit/s",
    max_rate: Annotated[str, typer.Option(help="Rate that is never exceeded.")] = "12Mbit/s",
    volatility: Annotated[
        float, typer.Option(help="Of the rate, in packets/s per square root of a second.")
    ] = 200.0,
    outage_escape: Annotated[
        float, typer.Option(help="Rate of leaving an outage, per second.")
    ] = 1.0,
    overwrite: Overwrite = False,
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


@app.command()
def convert(file: In, out: Out, overwrite: Overwrite = False) -> None:
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


@app.command()
def check(files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Traces.")]) -> None:
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
        raise typer.Exit(2)
