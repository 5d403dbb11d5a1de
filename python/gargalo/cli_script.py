"""`gargalo script`: packet scripts on our stack or on the kernel."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from gargalo import _core
from gargalo.cli_common import (
    BAD_INPUT,
    FAILED,
    because,
    err,
    fail,
    json_option,
    printable,
    to_json,
)
from gargalo.scripts import TOLERANCE_MS, find, run

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Scripts, or directories of files *.pkt.")
]


class Stack(str, Enum):
    """Whose stack a script runs on."""

    gargalo = "gargalo"
    kernel = "kernel"


def script(
    files: Files,
    stack: Annotated[
        Stack,
        typer.Option(help="Our stack in virtual time, or the kernel's in real time (Linux)."),
    ] = Stack.gargalo,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of our TCP, as under transport.tcp; may be repeated.",
        ),
    ] = None,
    tolerance: Annotated[
        int,
        typer.Option(metavar="MS", min=1, max=10_000, help="How early or late the kernel may be."),
    ] = TOLERANCE_MS,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Scripts at a time. Default: 16 on the kernel, else 1."),
    ] = None,
    as_json: Annotated[bool, json_option("Print one JSON object.")] = False,
) -> None:
    """Run packet scripts (packetdrill's language): packets, socket calls, and what TCP must answer.

    Exit codes: 0 all passed; 1 a script found something else; 2 a script cannot be read or asks for what is not
    supported.
    """
    pairs = []
    for text in options or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            fail(f"--option {text}: write --option KEY=VALUE, as in --option sack=false")
        pairs.append((key.strip(), value.strip()))
    paths = find(files)
    if not paths:
        fail("no scripts: there is no file *.pkt in the directory")
    texts = [read(path) for path in paths]

    def show(i: int, verdict: dict[str, Any]) -> None:
        if not as_json:
            print(printable("\n".join(lines(paths[i], verdict))), flush=True)

    try:
        verdicts = run(
            texts,
            kernel=stack is Stack.kernel,
            tolerance_ms=tolerance,
            jobs=jobs,
            options=pairs,
            done=show,
        )
    except _core.RunError as e:
        fail(str(e), FAILED)
    if as_json:
        rows = [{"file": str(p), **v} for p, v in zip(paths, verdicts, strict=True)]
        print(to_json({"stack": stack.value, "scripts": rows}))
    kinds = [v["verdict"] for v in verdicts]
    if not as_json and len(kinds) > 1:
        counts = {k: kinds.count(k) for k in ("passed", "failed", "unsupported", "broken")}
        err.print(", ".join(f"{n} {k}" for k, n in counts.items() if n), markup=False)
    if "unsupported" in kinds:
        raise typer.Exit(BAD_INPUT)
    if set(kinds) != {"passed"}:
        raise typer.Exit(FAILED)


def read(path: Path) -> str:
    """Return the text of a script; a file that cannot be read ends the command."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        fail(f"{path}: not a text in UTF-8")
    except OSError as e:
        fail(f"{path}: {e.strerror or because(e)}")


def lines(path: Path, verdict: dict[str, Any]) -> list[str]:
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
