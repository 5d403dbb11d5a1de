"""`gargalo plugin`: congestion controls in C and Rust, and Linux's, made into plug-ins."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click

from gargalo import _core, reading
from gargalo.cli.common import FAILED, PATH, because, fail, json_option, refuse, to_json
from gargalo.cli.help import Group
from gargalo.cli.new import write
from gargalo.plugins import native
from gargalo.terminal.text import printable, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo._core import NativeStack
    from gargalo.plugins.module_comparison import Compared, Figures

Template: TypeAlias = Literal[
    "reno", "cubic", "bbr", "linux", "rust", "stack", "stack.rs", "stack.py"
]
"""What a new plug-in begins as."""

NAMES = 3
"""Columns of names in a comparison; those of numbers follow."""
FOLDER = Path(__file__).parent.parent / "examples" / "plugins"


@click.group(
    cls=Group,
    examples=[
        ("gargalo plugin new mine.c", "Write Reno in C, to be changed."),
        ("gargalo plugin build mine.c", "Compile it to mine.so."),
        ("gargalo run race.toml --plugin mine.so", "Run a scenario that names it."),
    ],
)
def plugin() -> None:
    """Congestion controls in C and Rust, and modules of Linux: new ones, and how they are compiled."""


@plugin.command(
    "new",
    examples=[
        ("gargalo plugin new mine.c", "Reno in C; --from cubic or bbr is another."),
        (
            "gargalo plugin new tcp_mine.c --from linux",
            "A module of Linux, as the kernel has them.",
        ),
        ("gargalo plugin new mine --from rust", "A crate in the directory mine."),
        ("gargalo plugin new toy.c --from stack", "A QUIC stack, as far as the interface goes."),
        (
            "gargalo plugin new toy.py --from stack.py",
            "The same as a class; stack.rs: a crate.",
        ),
    ],
)
@click.argument("file", type=PATH, metavar="FILE", help="File to write, or directory of a crate.")
@click.option(
    "--from",
    "begun",
    type=click.Choice(get_args(Template)),
    default="reno",
    metavar="NAME",
    help=f"What it begins as: {', '.join(get_args(Template))}.",
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def new(file: Path, begun: Template, overwrite: bool) -> None:
    """Write a congestion control in C or Rust, or a stack in C, Rust or Python, with the name of the file."""
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower().removeprefix("tcp_")).strip("-") or "mine"
    if begun in ("rust", "stack.rs"):
        of = "crate" if begun == "rust" else "stack"
        write(
            {
                file / "Cargo.toml": template(f"{of}.toml", name),
                file / "src" / "lib.rs": template(f"{of}.rs", name),
            },
            overwrite=overwrite,
        )
        library = f"target/release/lib{name.replace('-', '_')}.so"
        told = f"cd {shlex.quote(str(file))} && cargo build --release; then --plugin {library}"
    elif begun == "stack.py":
        if not file.suffix:
            file = file.with_suffix(".py")
        write({file: template("stack.py", name)}, overwrite=overwrite)
        print(
            printable(
                f'wrote {file}, the stack "{name}"; run it: --plugin {shlex.quote(str(file))}'
            )
        )
        return
    else:
        if not file.suffix:
            file = file.with_suffix(".c")
        write({file: template(f"{begun}.c", name)}, overwrite=overwrite)
        told = f"gargalo plugin build {shlex.quote(str(file))}"
    kind = "stack" if begun.startswith("stack") else "congestion control"
    print(printable(f'wrote {file}, the {kind} "{name}"; compile it: {told}'))


def template(file: str, name: str) -> str:
    """Return an example as the beginning of a plug-in of another name."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    return re.sub(r"\b(reno|cubic|bbr|gentle|mine|toy)-(?:c|linux|rust|stack)\b", name, text)


@plugin.command(
    examples=[
        ("gargalo plugin build mine.c", "To mine.so, beside it."),
        (
            "gargalo plugin build tcp_mine.c -o mine.so",
            "A module of Linux, with our struct tcp_sock.",
        ),
        ("gargalo plugin build mine.c -- -g -O0", "With options of the compiler."),
    ]
)
@click.argument("file", type=PATH, metavar="FILE.c", help="The source.")
@click.argument("options", nargs=-1, metavar="[-- OPTION...]", help="For the compiler.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="The library. Default: FILE.so.")
@click.option("--cc", default="cc", metavar="COMMAND", help="The compiler.")
@click.option(
    "--kernel",
    metavar="VERSION",
    help="A module of Linux is for this version, like 6.1. Default: 6.12.",
)
@json_option("The library and its congestion controls, as JSON.")
def build(
    file: Path,
    options: tuple[str, ...],
    output: Path | None,
    cc: str,
    kernel: str | None,
    as_json: bool,
) -> None:
    """Compile a congestion control in C, or a module of Linux, to a shared library, and load it once."""
    from gargalo.plugins.compiling import CompilerError, build_plugin

    try:
        library = build_plugin(file, output, cc=shlex.split(cc), kernel=kernel, options=options)
    except CompilerError as e:
        if e.told:
            say(e.told)
        fail(str(e), FAILED)
    except reading.UnfitFileError as e:
        fail(f"{e.filename}: cannot be read: {e}")
    except OSError as e:
        fail(f"{e.filename or file}: {because(e)}")
    try:
        controls, stack = native.load(library)
    except native.PluginError as e:
        fail(str(e), FAILED)
    report(library, [c.listed() for c in controls], stack, as_json=as_json)


@plugin.command(
    examples=[
        ("gargalo plugin compare tcp_mine.c --duration 5s", "One module."),
        (
            "gargalo plugin compare . --kernel 6.1 --seeds 1",
            "All modules in this directory, which are of Linux 6.1.",
        ),
    ]
)
@click.argument(
    "paths",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="FILE.c|DIR...",
    help="Sources, or directories of sources.",
)
@click.option(
    "--kernel", metavar="VERSION", help="They are for this version, like 6.1. Default: 6.12."
)
@click.option("--cc", default="cc", metavar="COMMAND", help="The compiler.")
@click.option(
    "--cflags",
    default="",
    metavar="OPTIONS",
    help="For the compiler, like -DICSK_CA_PRIV_SIZE=144.",
)
@click.option("--duration", default="20s", metavar="TIME", help="Of a run. Default: 20s.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=3,
    metavar="N",
    help="Runs of each scenario. Default: 3.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Processes. Default: one for each core.",
)
@json_option("All figures, as JSON.")
def compare(
    paths: tuple[Path, ...],
    kernel: str | None,
    cc: str,
    cflags: str,
    duration: str,
    seeds: int,
    workers: int | None,
    as_json: bool,
) -> None:
    """Build modules of Linux, and run each beside the built-in congestion control of its name.

    The scenarios have a bottleneck of 20 Mbit/s, 40 ms and a buffer of a bandwidth-delay product: one flow, one flow
    with 0.1 % random loss, two flows, and one with marks above 20 packets. A module that does not build is listed with
    the first thing that the shim lacks.
    """
    from dataclasses import asdict

    from gargalo.plugins.module_comparison import compare, modules

    try:
        files = modules(paths)
        found = compare(
            files,
            cc=shlex.split(cc),
            kernel=kernel,
            options=shlex.split(cflags),
            duration=duration,
            seeds=seeds,
            workers=workers,
        )
    except FileNotFoundError as e:
        fail(e.args[0] if e.filename is None else f"{e.filename}: {because(e)}")
    except reading.UnfitFileError as e:
        fail(f"{e.filename}: cannot be read: {e}")
    except OSError as e:
        fail(f"{e.filename}: {because(e)}")
    except _core.ScenarioError as e:
        refuse(e)
    if as_json:
        print(to_json([{**asdict(c), "file": str(c.file)} for c in found]))
    else:
        print(printable(comparison(found)))
    if any(c.lacks for c in found):
        raise SystemExit(FAILED)


def comparison(found: Sequence[Compared]) -> str:
    """Return the table of modules and built-in congestion controls."""
    rows: list[tuple[str, ...]] = [
        (
            "module",
            "beside",
            "scenario",
            "Mbit/s",
            "beside",
            "queue, ms",
            "beside",
            "lost",
            "beside",
        )
    ]
    lacking = []
    for c in found:
        if c.lacks:
            named = c.lacks.startswith((f"{c.file.name}:", f"{c.file}:"))
            lacking.append(c.lacks if named else f"{c.file.name}: {c.lacks}")
            continue
        for scenario, m in c.module.items():
            own = c.own.get(scenario)
            theirs = ("-",) * 3 if own is None else _cells(own)
            pairs = (cell for pair in zip(_cells(m), theirs, strict=True) for cell in pair)
            rows.append((c.name, c.built_in or "-", scenario, *pairs))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i < NAMES else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*(lines if len(rows) > 1 else []), *lacking])


def _cells(figures: Figures) -> tuple[str, str, str]:
    """Return goodput of each flow, queueing delay and losses."""
    return (
        " + ".join(f"{g / 1e6:.1f}" for g in figures.goodput_bps),
        f"{figures.queueing_delay_s * 1e3:.1f}",
        f"{figures.lost_packets:.0f}",
    )


def report(
    library: Path, controls: list[Mapping[str, Any]], stack: NativeStack | None, *, as_json: bool
) -> None:
    """Print what a library has."""
    stacks = [stack.name] if stack is not None else []
    if as_json:
        print(to_json({"library": str(library), "congestion": controls, "stacks": stacks}))
        return
    names = ", ".join([*(c["name"] for c in controls), *stacks])
    print(printable(f"wrote {library} with {names}; use it: --plugin {shlex.quote(str(library))}"))


@plugin.command(
    examples=[("gargalo plugin headers include", "Write the C headers into the directory include.")]
)
@click.argument("folder", type=PATH, metavar="DIR", help="Where to.")
def headers(folder: Path) -> None:
    """Write the C headers of plug-ins, for another build system."""
    write({folder / path: text for path, text in _core.plugin_headers().items()}, overwrite=True)
    print(printable(f"wrote gargalo_congestion.h and others into {folder}"))
