"""A report of what failed, a section for each failure that its stack's maintainers can use."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.checking.reports import Reported, Suite, reported
from gargalo.interop.cases import CASES
from gargalo.interop.model import VERDICTS
from gargalo.scenarios.scenario import to_toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gargalo.checking.known import Compared
    from gargalo.interop.model import Cell, Matrix, Stack

RECORD = {"interval": "10ms", "verify": True, "events": True, "qlog": True, "captures": ["link"]}
MOST_EVENTS = 40
"""Rows of the table of events that a section has."""
TIMEOUT_S = 300
"""A run that takes longer is ended."""


@dataclass(frozen=True)
class Evidence:
    """A cell that was run again with everything recorded."""

    text: str
    """The scenario."""
    command: str
    folder: Path
    told: str
    """What the command said, if it failed."""


def write(matrix: Matrix, file: Path, plugins: Sequence[Path] = ()) -> None:
    """Write the report; scenarios and results of what failed go to a folder beside it.

    Args:
        matrix: What was found.
        file: For the report, in Markdown.
        plugins: Python files that register stacks.

    """
    beside = file.with_suffix("")
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = [head(matrix)]
    for cell in matrix.failed:
        beside.mkdir(exist_ok=True)
        parts.append(section(cell, matrix, repeat(cell, beside, plugins)))
    file.write_text("\n".join(parts), encoding="utf-8")


def head(matrix: Matrix) -> str:
    """Return the title, the versions and the table."""
    used = [case for case in CASES if any(c.case == case.id for c in matrix.cells)]
    lines = [
        "# QUIC stacks against each other",
        "",
        f"gargalo {_core.__engine__}, seed {matrix.seed}. Everything is in virtual time: the same "
        "seed gives the same datagrams.",
        "",
        "| stack | version | congestion controls | features |",
        "| --- | --- | --- | --- |",
        *(stack_row(s) for s in matrix.stacks),
        "",
        " ".join(f"{m.sign} {v}: {m.meaning}." for v, m in VERDICTS.items()),
        "",
        f"| client | server | {' | '.join(c.id for c in used)} |",
        "| --- | --- |" + " --- |" * len(used),
    ]
    for (client, server), cells in pairs(matrix).items():
        signs = " | ".join(VERDICTS[cells[c.id].verdict].sign for c in used)
        lines.append(f"| {client} | {server} | {signs} |")
    lines += ["", "What is expected:", ""]
    lines += [f"- {c.id}: {c.expected} ({c.section})." for c in used]
    why = dict.fromkeys(
        f"- {c.case}: {c.seen}." for c in matrix.cells if c.verdict == "not applicable"
    )
    if why:
        lines += ["", "Not applicable:", "", *why]
    if not matrix.failed:
        lines += ["", "Nothing failed."]
    return "\n".join(lines) + "\n"


def stack_row(stack: Stack) -> str:
    """Return a stack as a row of the table."""
    if stack.broken:
        return f"| {stack.name} | {stack.broken} | | |"
    own = list(stack.congestion[:4])
    own += ["…"] if len(stack.congestion) > len(own) else []
    features = ", ".join(sorted(stack.features)) or "none"
    return f"| {stack.name} | {stack.version} | {', '.join(own)} | {features} |"


def pairs(matrix: Matrix) -> Mapping[tuple[str, str], Mapping[str, Cell]]:
    """Return the cells by client and server, then by case."""
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in matrix.cells:
        found.setdefault((cell.client, cell.server), {})[cell.case] = cell
    return found


def repeat(cell: Cell, beside: Path, plugins: Sequence[Path]) -> Evidence:
    """Run a cell again, in a process of its own and with everything recorded."""
    text = to_toml({**(cell.scenario or {}), "record": RECORD})
    file = beside / f"{cell.name}.toml"
    file.write_text(text, encoding="utf-8")
    folder = beside / cell.name
    more = [word for plugin in plugins for word in ("--plugin", str(plugin))]
    options = ["run", str(file), *more, "--quiet", "--overwrite", "--output", str(folder)]
    command = [sys.executable, "-m", "gargalo", *options]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        told = "" if done.returncode == 0 else f"{done.stderr.strip()}\nexit code {done.returncode}"
    except subprocess.TimeoutExpired:
        told = f"no end within {TIMEOUT_S} s"
    shown = shlex.join(["gargalo", *options])
    return Evidence(text, shown, folder, told.strip())


def section(cell: Cell, matrix: Matrix, evidence: Evidence) -> str:
    """Return the section of a failure."""
    case = next(c for c in CASES if c.id == cell.case)
    of_name = {s.name: s for s in matrix.stacks}
    ends = ", ".join(
        f"{role} {name} {of_name[name].version}"
        for role, name in (("client", cell.client), ("server", cell.server))
    )
    seen = cell.seen
    if cell.same is False:
        seen += f"; {cell.differs}"
    lines = [
        f"## {cell.client} → {cell.server}: {case.title}",
        "",
        f"- Versions: {ends}; gargalo {_core.__engine__}.",
        f"- Expected ({case.section}): {case.expected}.",
        f"- Seen: {seen}.",
        f"- Seed: {matrix.seed}.",
        "- Results, with the capture (`capture.pcapng`, secrets inside) and the qlog of ends that "
        f"write one (`qlog`): `{evidence.folder}`.",
        "",
        "```sh",
        evidence.command,
        "```",
        "",
        "```toml",
        evidence.text.rstrip("\n"),
        "```",
        "",
    ]
    if evidence.told:
        lines += ["The command said:", "", "```text", evidence.told, "```", ""]
    lines += ["Events of both ends:", "", "```text", *events(evidence.folder), "```", ""]
    return "\n".join(lines)


def events(folder: Path) -> list[str]:
    """Return the first events of a run, a line each."""
    import polars as pl

    file = folder / "events.parquet"
    if not file.is_file():
        return ["none were recorded"]
    rows = pl.read_parquet(file)
    lines = [
        f"{r['time_s']:10.6f} s  flow {r['flow']}  {r['kind']}  {r['detail']}".rstrip()
        for r in rows.head(MOST_EVENTS).iter_rows(named=True)
    ]
    left = rows.height - len(lines)
    return lines + ([f"… and {left} more in events.parquet"] if left else []) or ["none"]


def suites(matrix: Matrix, told: Compared) -> list[Suite]:
    """Return a suite for each pair of stacks, for CI servers; failures that are known do not count."""
    found: dict[str, list[Reported]] = {}
    for number, cell in enumerate(matrix.cells):
        differs = cell.verdict == "pass" and cell.same is False
        text = cell.differs if differs else cell.seen
        one = reported(cell.case, number, told, passed=cell.passed, text=text)
        found.setdefault(f"{cell.client} to {cell.server}", []).append(one)
    return [Suite(name, cases) for name, cases in found.items()]
