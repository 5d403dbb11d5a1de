"""`gargalo plugin`: congestion controls in C and Rust, and Linux's, made into plug-ins."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click

from gargalo import _core, native
from gargalo.cli_common import FAILED, PATH, because, fail, json_option, printable, say, to_json
from gargalo.cli_help import Group
from gargalo.cli_new import write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo._core import NativeStack

Template: TypeAlias = Literal["reno", "cubic", "bbr", "linux", "rust", "stack"]
"""What a new plug-in begins as."""

FOLDER = Path(__file__).parent / "examples" / "plugins"


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
    ],
)
@click.argument("file", type=PATH, metavar="FILE", help="File to write, or directory of a crate.")
@click.option(
    "--from",
    "begun",
    type=click.Choice(get_args(Template)),
    default="reno",
    help="What it begins as.",
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def new(file: Path, begun: Template, overwrite: bool) -> None:
    """Write a congestion control in C or Rust, or a stack in C, to be changed, with the name of the file."""
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower().removeprefix("tcp_")).strip("-") or "mine"
    if begun == "rust":
        write(
            {
                file / "Cargo.toml": template("crate.toml", name),
                file / "src" / "lib.rs": template("crate.rs", name),
            },
            overwrite=overwrite,
        )
        library = f"target/release/lib{name.replace('-', '_')}.so"
        told = f"cd {shlex.quote(str(file))} && cargo build --release; then --plugin {library}"
    else:
        if not file.suffix:
            file = file.with_suffix(".c")
        write({file: template(f"{begun}.c", name)}, overwrite=overwrite)
        told = f"gargalo plugin build {shlex.quote(str(file))}"
    kind = "stack" if begun == "stack" else "congestion control"
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
    from gargalo.compiling import CompilerError, build_plugin

    try:
        library = build_plugin(file, output, cc=shlex.split(cc), kernel=kernel, options=options)
    except CompilerError as e:
        if e.told:
            say(e.told)
        fail(str(e), FAILED)
    except OSError as e:
        fail(f"{e.filename or file}: {because(e)}")
    try:
        controls, stack = native.load(library)
    except native.PluginError as e:
        fail(str(e), FAILED)
    report(library, [c.listed() for c in controls], stack, as_json=as_json)


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
