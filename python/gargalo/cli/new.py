"""`gargalo new` and `gargalo example`: a first scenario, and those that come with gargalo."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gargalo import reading
from gargalo.cli.common import PATH, because, fail, json_option, to_json
from gargalo.cli.help import command
from gargalo.terminal.text import definitions, printable, say

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATE = """\
# A network and the flows on it. Run it:
#   gargalo run {file}
# Change it without editing:
#   gargalo run {file} --set topology.simple.link.delay=80ms --seed 2
# See every key with its value:
#   gargalo resolve {file}
name     = "{name}"
seed     = 1               # the same seed gives the same results, byte for byte
duration = "20s"

# Two hosts, `client` and `server`, and one link. Others: gargalo list topologies
[topology.simple.link]
rate  = "10Mbit/s"                  # gargalo list rates
delay = "20ms"                      # one way
queue = {{ droptail = "1BDP" }}       # bandwidth-delay product; gargalo list queues
# loss = {{ independent = "0.1%" }}   # gargalo list losses

[[flows]]
from = "client"
to   = "server"
transport.tcp = {{ congestion = "cubic" }}   # gargalo list congestion
workload.bulk = {{}}                         # as much as it can; gargalo list workloads

[[flows]]
from  = "client"
to    = "server"
start = "5s"
transport.tcp = {{ congestion = "bbr" }}     # gargalo list transports
workload.bulk = {{}}
"""


@command(
    examples=[
        ("gargalo new race.toml", "Write race.toml, a scenario of two flows with comments."),
        ("gargalo new - | gargalo run -", "Write it to standard output, and run it from there."),
    ]
)
@click.argument(
    "file",
    type=PATH,
    default=Path("scenario.toml"),
    metavar="[FILE]",
    help="File to write, scenario.toml if none is given; - is standard output.",
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def new(file: Path, overwrite: bool) -> None:
    """Write a small scenario with comments, to run and to change. Also called init."""
    if str(file) == "-":
        print(TEMPLATE.format(file="-", name="scenario"), end="")
        return
    if file.is_dir():
        fail(f"{file} is a directory; name a file, as in gargalo new {file}/race.toml")
    if not file.suffix:
        file = file.with_suffix(".toml")
    name = re.sub(r"[^\w.+-]", "-", file.stem, flags=re.ASCII)
    write({file: TEMPLATE.format(file=shlex.quote(str(file)), name=name)}, overwrite=overwrite)
    print(printable(f"wrote {file}; run it: gargalo run {shlex.quote(str(file))}"))


def names(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """Return the names of examples that begin with what was typed."""
    from gargalo.cli import bundled

    return [e.name for e in bundled.examples() if e.name.startswith(begun)]


@command(
    examples=[
        ("gargalo example", "List the examples."),
        ("gargalo example cellular-race", "Copy one, with the trace that it needs."),
        ("gargalo example quic --output examples", "Copy it into the directory examples."),
    ]
)
@click.argument(
    "name",
    default="",
    metavar="[NAME]",
    help="Which one; without it they are listed.",
    shell_complete=names,
)
@click.option("--output", type=PATH, metavar="DIR", help="Where to. Default: here.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist and differ.")
@json_option("The list, or what was copied, as JSON.")
def example(name: str, output: Path | None, overwrite: bool, as_json: bool) -> None:
    """List the examples that come with gargalo, or copy one with the files that it needs."""
    from gargalo.cli import bundled

    if not name:
        listed = bundled.examples()
        if as_json:
            print(to_json([{"name": e.name, "kind": e.kind, "about": e.about} for e in listed]))
            return
        for kind in bundled.KINDS:
            print(f"{kind}:")
            print(definitions([(e.name, e.about) for e in listed if e.kind == kind], indent=2))
        say("copy one: gargalo example NAME")
        return
    found = bundled.find(name)
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(Path(name).stem, [e.name for e in bundled.examples()])
        hint = f"did you mean {', '.join(near)}?" if near else "gargalo example lists them"
        fail(f'there is no example "{name}"; {hint}')
    place = "" if output is None else str(output)
    files = {Path(place) / path: text for path, text in found.copies(place).items()}
    write(files, overwrite=overwrite)
    run_it = found.command(shlex.quote(place) if place else "")
    if as_json:
        print(to_json({"files": [str(f) for f in files], "command": run_it}))
        return
    for file in files:
        print(f"wrote {printable(str(file))}")
    print(f"run it: {printable(run_it)}")


def write(files: Mapping[Path, str], *, overwrite: bool) -> None:
    """Write files, or none; those that are there with the same text are left."""
    old = [f for f, text in files.items() if f.is_file() and not has(f, text)]
    if old and not overwrite:
        fail(f"{old[0]} exists; choose another name or place, or add --overwrite")
    for file, text in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as e:
            fail(f"{file}: cannot be written: {because(e)}")


def has(file: Path, text: str) -> bool:
    """Whether a file that is there has this text."""
    try:
        return reading.data(file, reading.MOST_TEXT) == text.encode()
    except OSError:
        return False
