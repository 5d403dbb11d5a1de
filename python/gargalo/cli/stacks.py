"""`gargalo stacks`: which QUIC stacks there are, and what each client does with each server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from gargalo.cli.common import (
    FAILED,
    PATH,
    fail,
    json_option,
    load_plugin,
    plugin_option,
    sweep_errors,
    to_json,
    workers_option,
)
from gargalo.cli.help import command
from gargalo.cli.judged import junit_option, known_failures, known_option, writing
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gargalo.checking.known import Compared
    from gargalo.interop import Case, Cell, Matrix, Stack

MOST_NAMES = 6
"""Congestion controls that the list names."""


@command(
    examples=[
        ("gargalo stacks", "The QUIC stacks that scenarios can name."),
        ("gargalo stacks --matrix", "Every client against every server."),
        ("gargalo stacks noq --case retry --case 0-rtt --matrix", "One stack, some cases."),
        ("gargalo stacks --matrix --report faults.md", "With a report of what failed."),
        ("gargalo stacks --matrix --known known.toml", "Exit with 1 by what is not known only."),
    ]
)
@click.argument("names", nargs=-1, metavar="[NAME...]", help="Only these stacks. Default: all.")
@click.option(
    "--matrix", "with_matrix", is_flag=True, help="Run every client against every server."
)
@click.option(
    "--case", "only", multiple=True, metavar="CASE", help="Only this case; may be repeated."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, metavar="N", help="Of all runs.")
@click.option(
    "--twice",
    is_flag=True,
    help="Run all a second time in other processes, and some after others in one: is it the same?",
)
@click.option(
    "--report",
    type=PATH,
    metavar="FILE.md",
    help="Write what failed, for the maintainers of the stacks; runs go to a folder beside it.",
)
@known_option
@junit_option
@workers_option
@plugin_option
@json_option("As JSON.")
def stacks(
    names: tuple[str, ...],
    with_matrix: bool,
    only: tuple[str, ...],
    seed: int,
    twice: bool,
    report: Path | None,
    known: Path | None,
    junit: Path | None,
    workers: int | None,
    plugin: tuple[Path, ...],
    as_json: bool,
) -> None:
    """List QUIC stacks, or run every client against every server."""
    from gargalo import interop, judging

    for path in plugin:
        load_plugin(path)
    try:
        found = interop.find(names)
        by_id = {c.id: c for c in interop.CASES}
        cases = [judging.find("case", n, by_id) for n in only] or list(interop.CASES)
    except KeyError as e:
        fail(str(e.args[0]))
    if not with_matrix:
        if only or twice or report or known or junit:
            fail("--case, --twice, --report, --known and --junit are of the matrix: add --matrix")
        if as_json:
            print(to_json([s.to_json() for s in found]))
        else:
            show_list(found)
        return
    if report is not None and report.suffix != ".md":
        fail(f"--report {report}: the report is in Markdown; its name must end in .md")
    from gargalo.checking.known import compare
    from gargalo.checking.reports import write_junit
    from gargalo.interop.report import suites, write
    from gargalo.sweeps.progress import display
    from gargalo.terminal.screen import err

    entries = known_failures(known, "matrix")
    with sweep_errors(), display(err, shown=not as_json) as progress:
        made = interop.matrix(
            found,
            cases=cases,
            seed=seed,
            twice=twice,
            plugins=plugin,
            workers=workers,
            progress=progress,
        )
    told = compare([(cell.place, cell.passed) for cell in made.cells], entries)
    if report is not None:
        write(made, report, plugin)
    if junit is not None:
        with writing(junit):
            write_junit(suites(made, told), "stacks", junit)
    if as_json:
        print(to_json(made.to_json(told)))
    else:
        show_matrix(made, cases, told)
        if report is not None:
            print(report)
    broken = [s for s in found if s.broken]
    for s in broken:
        say(f"{s.name}: {s.broken}")
    if broken or not told.as_known:
        raise Exit(FAILED)


def show_list(found: Sequence[Stack]) -> None:
    """Print stacks."""
    from gargalo.terminal.fitting import Column, show_table
    from gargalo.terminal.screen import Screen

    rows = []
    for s in found:
        own = list(s.congestion[:MOST_NAMES])
        own += ["…"] if len(s.congestion) > len(own) else []
        told = s.broken or s.file or "inside gargalo"
        rows.append([s.name, s.version, ", ".join(own), ", ".join(sorted(s.features)), told])
    columns = [
        Column("stack", justify="left"),
        Column("version", justify="left"),
        Column("congestion controls", justify="left", least=14),
        Column("features", justify="left", least=14),
        Column("file", 1, justify="left", least=20),
    ]
    show_table(None, columns, rows, Screen(highlight=False))


def show_matrix(made: Matrix, cases: Sequence[Case], told: Compared) -> None:
    """Print the matrix, then what failed and what does not apply."""
    from rich.text import Text

    from gargalo.checking.known import GONE
    from gargalo.interop.model import VERDICTS
    from gargalo.interop.report import pairs
    from gargalo.terminal.fitting import Column, show_table
    from gargalo.terminal.screen import Screen

    out = Screen(highlight=False)

    def sign(cell: Cell) -> Text:
        mark = VERDICTS["fail" if cell.same is False else cell.verdict]
        return Text(mark.sign, mark.style)

    rows: list[list[str | Text]] = [
        [client, server, *(sign(cells[c.id]) for c in cases)]
        for (client, server), cells in pairs(made).items()
    ]
    columns = [Column("client", justify="left"), Column("server", justify="left")]
    columns += [Column(c.id, justify="center") for c in cases]
    show_table(None, columns, rows, out)
    expected = {c.id: f"{c.expected} ({c.section})" for c in cases}
    for number, cell in enumerate(made.cells):
        if cell.passed is not False:
            continue
        what = f"{cell.client} → {cell.server}, {cell.case}"
        is_known = number in told.known
        mark, style = ("known", "dim") if is_known else ("✗", "red")
        because = f" ({told.known[number]})" if told.known.get(number) else ""
        if cell.verdict == "fail":
            line = f"{mark} {what}: {cell.seen}; expected: {expected[cell.case]}{because}"
            out.print(line, style=style, markup=False)
        if cell.same is False:
            line = f"{mark} {what}: {cell.differs}{because}"
            out.print(line, style=style, markup=False)
    for number in told.mended:
        cell = made.cells[number]
        line = f"✓ {cell.client} → {cell.server}, {cell.case}: {GONE}"
        out.print(line, style="red", markup=False)
    for why in dict.fromkeys(
        f"- {c.case}: {c.seen}" for c in made.cells if c.verdict == "not applicable"
    ):
        out.print(why, style="dim", markup=False)
    for line in made.asked:
        out.print(f"- {line}", style="dim", markup=False)
    ran = [c for c in made.cells if c.scenario is not None]
    passed = sum(c.verdict == "pass" for c in ran)
    same = ""
    if any(c.same is not None for c in ran):
        same = f", {sum(bool(c.same) for c in ran)} of {len(ran)} the same in two processes and after others"
    failed = f", {len(told.known)} failures are known" if told.known else ""
    out.print(f"{passed} of {len(ran)} passed{failed}{same}", markup=False)
