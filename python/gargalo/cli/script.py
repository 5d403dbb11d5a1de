"""`gargalo script`: packet scripts on our stack or on the kernel."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, get_args

import click
from click.exceptions import Exit

from gargalo import _core, reading
from gargalo.cli.common import (
    BAD_INPUT,
    FAILED,
    PATH,
    Stack,
    fail,
    json_option,
    key_value,
    refuse_another,
    to_json,
)
from gargalo.cli.help import command
from gargalo.scripts import TOLERANCE_MS, Counts, Verdict, count, find, run
from gargalo.terminal.text import printable, say

if TYPE_CHECKING:
    from pathlib import Path


@command(
    examples=[
        ("gargalo script handshake.pkt", "On our stack, in virtual time."),
        ("gargalo script scripts --stack kernel", "All of a directory, on Linux."),
        ("gargalo script handshake.pkt --option sack=false", "With an option of our TCP."),
        ("gargalo script handshake.pkt --option profile=linux-6", "As Linux does it."),
    ]
)
@click.argument(
    "files",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="FILE...",
    help="Scripts, or directories of files *.pkt.",
)
@click.option(
    "--stack",
    type=click.Choice(get_args(Stack)),
    default="gargalo",
    help="Our stack in virtual time, or the kernel's in real time (Linux).",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of our TCP, as under transport.tcp; may be repeated.",
)
@click.option(
    "--init",
    type=PATH,
    metavar="FILE",
    help="A shell file whose lines sysctl NAME=VALUE each script begins with; nothing in it is run.",
)
@click.option(
    "--define",
    "defines",
    multiple=True,
    metavar="WORD=TEXT",
    help="A word of the scripts, and what stands for it; may be repeated.",
)
@click.option(
    "--strict-end",
    is_flag=True,
    help="What is sent before the last event and not expected is a fault also at the end.",
)
@click.option(
    "--tolerance",
    type=click.IntRange(min=1, max=10_000),
    default=TOLERANCE_MS,
    metavar="MS",
    help="How early or late the kernel may be.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    metavar="N",
    help="Scripts at a time. Default: 16 on the kernel, else 1.",
)
@json_option("Print one JSON object.")
def script(
    files: tuple[Path, ...],
    stack: Stack,
    options: tuple[str, ...],
    init: Path | None,
    defines: tuple[str, ...],
    *,
    strict_end: bool,
    tolerance: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run packet scripts (packetdrill's language): packets, socket calls, and what TCP must answer.

    Several scripts end with a table: how many of each directory were read, passed, failed and are not supported, and
    why.

    Exit codes: 0 all passed; 1 a script found something else; 2 a script cannot be read or asks for what is not
    supported.
    """
    pairs = [key_value("--option", text, "sack=false") for text in options]
    words = [key_value("--define", text, "COOKIE=1234abcd") for text in defines]
    if init is not None:
        read(init)
    paths = find(files)
    if not paths:
        fail("no scripts: there is no file *.pkt in the directory")
    for path in paths:
        if path.suffix != ".pkt":
            refuse_another(path, "script")
    texts = [read(path) for path in paths]

    def show(i: int, verdict: Verdict) -> None:
        if not as_json:
            print(printable("\n".join(lines(paths[i], verdict))), flush=True)

    try:
        verdicts = run(
            texts,
            kernel=stack == "kernel",
            tolerance_ms=tolerance,
            jobs=jobs,
            paths=paths,
            init=init,
            defines=words,
            strict_end=strict_end,
            options=pairs,
            done=show,
        )
    except _core.RunError as e:
        fail(str(e), FAILED)
    if as_json:
        rows = [{"file": str(p), **v} for p, v in zip(paths, verdicts, strict=True)]
        tables = [{"directory": str(d), **asdict(c)} for d, c in count(paths, verdicts).items()]
        print(to_json({"stack": stack, "scripts": rows, "directories": tables}))
    kinds = [v["verdict"] for v in verdicts]
    if not as_json and len(kinds) > 1:
        print(printable("\n".join(["", *table(count(paths, verdicts))])), flush=True)
        for note in dict.fromkeys(n for v in verdicts for n in v.get("notes", ())):
            say(f"note: {note}")
        counts = {k: kinds.count(k) for k in ("passed", "failed", "unsupported", "broken")}
        say(", ".join(f"{n} {k}" for k, n in counts.items() if n))
    if "unsupported" in kinds:
        raise Exit(BAD_INPUT)
    if set(kinds) != {"passed"}:
        raise Exit(FAILED)


def read(path: Path) -> str:
    """Return the text of a script; a file that cannot be read ends the command."""
    try:
        return reading.text(path)
    except UnicodeDecodeError:
        fail(f"{path}: not a text in UTF-8")
    except OSError as e:
        refuse_another(path, "script")
        fail(f"{path}: cannot be read: {reading.reason(e)}")


def table(directories: dict[Path, Counts]) -> list[str]:
    """Return lines with what became of the scripts of each directory, and why some are not supported."""
    names = ("scripts", "read", "passed", "failed", "not supported", "broken")
    rows = [
        (str(d), c.scripts, c.read, c.passed, c.failed, c.unsupported, c.broken)
        for d, c in directories.items()
    ]
    if len(rows) > 1:
        rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    width = max(len(str(row[0])) for row in rows)
    told = [" " * width + "".join(f"  {n}" for n in names)]
    for first, *numbers in rows:
        cells = (f"  {n:>{len(name)}}" for n, name in zip(numbers, names, strict=True))
        told.append(f"{first:<{width}}" + "".join(cells))
    reasons: dict[str, int] = {}
    for c in directories.values():
        for reason, n in c.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + n
    if reasons:
        told += ["", "not supported or broken:"]
        told += [f"{n:>5}  {r}" for r, n in sorted(reasons.items(), key=lambda x: (-x[1], x[0]))]
    return told


def lines(path: Path, verdict: Verdict) -> list[str]:
    """Say how a script ended."""
    kind = verdict["verdict"]
    if kind == "passed":
        return [f"passed  {path}"]
    if kind == "broken":
        return [f"broken  {path}: {verdict['message']}"]
    place = f"{path}:{verdict['line']}:{verdict['column']}"
    if kind == "unsupported":
        told = "; ".join(filter(None, (verdict["message"], verdict["help"])))
        return [f"{place}: {told}"]
    return [
        f"failed  {place}",
        f"  expected: {verdict['expected']}",
        f"  came:     {verdict['came']}",
        "  packets so far:",
        *(f"    {p}" for p in verdict["packets"]),
    ]
