"""`gargalo evaluate`: the scorecard of a congestion control."""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    PATH,
    check_target,
    fail,
    json_option,
    plugin_option,
    recover,
    refuse_another,
    repair_option,
    sweep_errors,
    tell_sweep,
    to_json,
    workers_option,
)
from gargalo.cli.help import command
from gargalo.cli.judged import junit_option, known_failures, known_option, writing
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from gargalo.evaluation.model import Verdict
    from gargalo.evaluation.records import Change
    from gargalo.evaluation.running import Scorecard
    from gargalo.judging import Profile

RESULTS = Path("runs") / "evaluation"


FailOn: TypeAlias = Literal["regression", "fault", "never"]
"""What makes the command exit with 1."""


@command(
    examples=[
        ("gargalo evaluate cubic", "The scorecard of a built-in one, in half a minute."),
        ("gargalo evaluate mine.py", "Of a class in a Python file; mine.so is a compiled one."),
        ("gargalo evaluate --stack quiche cubic", "Of a QUIC stack's own one."),
        ("gargalo evaluate mine.py --only bufferbloat --repeat 2", "One criterion, sooner."),
        (
            "gargalo evaluate mine.py --baseline old.json --fail-on regression",
            "In the tests of another project: exit with 1 if it got worse.",
        ),
    ]
)
@click.argument(
    "algorithms",
    nargs=-1,
    required=True,
    metavar="ALGORITHM...",
    help="Python files that register congestion controls, shared libraries (.so), or names of "
    "`gargalo list congestion`.",
)
@click.option(
    "--stack",
    metavar="NAME",
    help="A QUIC stack of `gargalo stacks`: algorithms are its own, and the references are over QUIC too.",
)
@click.option(
    "--against",
    default="reno,cubic,bbr",
    metavar="NAMES",
    help="Also on the same grid; reno, cubic and bbr always are.",
)
@click.option(
    "--profile",
    default="quick",
    metavar="NAME",
    help="quick (half a minute), standard (ten minutes) or full (a night).",
)
@click.option(
    "--only", multiple=True, metavar="CRITERION", help="Only this criterion; may be repeated."
)
@click.option(
    "--output",
    type=PATH,
    metavar="DIR",
    help="For scorecards. Default: runs/evaluation/NAME-PROFILE.",
)
@click.option(
    "--store",
    type=PATH,
    metavar="DIR",
    help="Where runs are kept for the next time. Default: runs/evaluation/store.",
)
@click.option("--overwrite", is_flag=True, help="Replace earlier scorecards.")
@click.option(
    "--baseline", type=PATH, metavar="FILE", help="An earlier scorecard.json to compare with."
)
@click.option(
    "--fail-on",
    type=click.Choice(get_args(FailOn)),
    default="never",
    help="Exit with 1 if a figure got worse than the baseline beyond its interval, or on any fault.",
)
@plugin_option
@known_option
@junit_option
@workers_option
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs of each cell. Default: the profile's.",
)
@click.option(
    "--stall",
    type=click.FloatRange(min=1),
    default=60.0,
    metavar="S",
    help="A run without progress for this time fails.",
)
@repair_option
@json_option("Print the scorecards as a JSON list.")
def evaluate(
    algorithms: tuple[str, ...],
    stack: str | None,
    against: str,
    profile: str,
    only: tuple[str, ...],
    output: Path | None,
    store: Path | None,
    overwrite: bool,
    baseline: Path | None,
    fail_on: FailOn,
    plugin: tuple[Path, ...],
    known: Path | None,
    junit: Path | None,
    workers: int | None,
    repeat: int | None,
    stall: float,
    repair: bool,
    as_json: bool,
) -> None:
    """Judge congestion controls by what RFC 9743 asks, beside Reno, CUBIC and BBR."""
    from gargalo import judging
    from gargalo.checking.known import compare
    from gargalo.checking.reports import write_junit
    from gargalo.evaluation import evaluate as run
    from gargalo.evaluation import records
    from gargalo.evaluation.judged import cases_of, mended, suites
    from gargalo.evaluation.running import UnknownNameError
    from gargalo.plugins.native import is_library
    from gargalo.sweeps.progress import display
    from gargalo.terminal.screen import err

    earlier = baseline_of(baseline)
    if earlier is None and fail_on == "regression":
        fail("--fail-on regression needs a --baseline FILE to compare with")
    entries = known_failures(known, "conformance")
    built_in = {n for a in _core.congestion() for n in (a["name"], *a["aliases"])}
    for name in algorithms:
        if stack is not None or name in built_in:
            continue
        if Path(name).suffix != ".py" and not is_library(name):
            refuse_another(Path(name), "algorithm")
    places = Places(output, overwrite)
    try:
        with sweep_errors(), display(err, shown=not as_json) as progress:
            found = run(
                algorithms,
                stack=stack,
                plugins=plugin,
                against=[n for n in against.split(",") if n],
                profile=profile,
                only=only,
                store=store,
                workers=workers,
                repeat=repeat,
                stall_s=stall,
                repair=repair,
                begin=places.check,
                progress=progress,
            )
    except UnknownNameError as e:
        fail(f"--{e.args[0]}")
    grave = tell_sweep(found.sweep, judging.findings(found.sweep))
    try:
        with sweep_errors():
            regressed = keep(found.scorecards, places, earlier, as_json=as_json)
    except records.BaselineError as e:
        fail(f"--baseline {baseline}: {e}")
    cases = cases_of(found.scorecards)
    told = compare([(c.place, c.result.conforms) for c in cases], entries)
    if junit is not None:
        with writing(junit):
            write_junit(suites(found.scorecards, cases, told), "evaluate", junit)
    for line in mended(cases, told):
        say(line)
    failed = any(c.broken or any(r.failures for r in c.results) for c in found.scorecards)
    faulty = any(c.faults for c in found.scorecards)
    asked = {"regression": regressed, "fault": faulty, "never": False}
    if failed or grave or asked[fail_on] or (known is not None and not told.as_known):
        raise Exit(FAILED)


def baseline_of(file: Path | None) -> dict[str, Any] | None:
    """Read the scorecard to compare with, if there is one."""
    from gargalo.evaluation import records

    try:
        return None if file is None else records.read(file)
    except records.BaselineError as e:
        fail(f"--baseline {e}")


@dataclass
class Places:
    """Where scorecards go."""

    output: Path | None
    overwrite: bool
    several: bool = False

    @property
    def index(self) -> Path:
        """The table of several scorecards."""
        return (self.output or RESULTS) / "index.html"

    def folder(self, algorithm: str, profile: Profile) -> Path:
        """Return the directory of a scorecard."""
        own = f"{algorithm}-{profile.name}"
        if self.output is None:
            return RESULTS / own
        return self.output / own if self.several else self.output

    def check(self, algorithms: Sequence[str], profile: Profile) -> None:
        """End the command if a scorecard of these may not be written."""
        self.several = len(algorithms) > 1
        folders = [self.folder(name, profile) for name in algorithms]
        for parent in {folder.parent for folder in folders}:
            recover(parent)
        for name, folder in zip(algorithms, folders, strict=True):
            why = _core.bad_name(name)
            if why is not None:
                fail(f"no scorecard can be called that: {why}")
            check_target(folder, overwrite=self.overwrite)
        if self.several:
            check_index(self.index, overwrite=self.overwrite)


def keep(
    cards: Sequence[Scorecard], places: Places, earlier: dict[str, Any] | None, *, as_json: bool
) -> bool:
    """Write and print scorecards; return whether one is worse than the baseline.

    Raises:
        BaselineError: The baseline is of another profile.

    """
    from gargalo.evaluation import page, records

    printed: list[dict[str, Any]] = []
    regressed = False
    for judged in cards:
        today = {"date": datetime.date.today().isoformat()}
        card = replace(judged, facts={**judged.facts, **today})
        folder = places.folder(card.algorithm, card.profile)
        whole, folder = save(card, folder, overwrite=places.overwrite)
        printed.append(whole)
        changes = [] if earlier is None else records.compare(earlier, whole)
        regressed |= any(c.is_regression for c in changes)
        if not as_json:
            show(card, changes, folder, compared=earlier is not None)
    if places.several:
        index = places.index
        pages = {c.algorithm: f"{c.algorithm}-{c.profile.name}/scorecard.html" for c in cards}
        page.write_index(cards, index, pages)
        _core.add_files(index.parent, [index.name], make=True)
        if not as_json:
            print(index)
    if as_json:
        print(to_json(printed, indent=1))
    return regressed


def check_index(index: Path, *, overwrite: bool) -> None:
    """End the command if the table of several scorecards may not be written, by the rule of results directories.

    It is replaced only if the manifest beside it lists it and it is unchanged. Older versions wrote no manifest:
    then any page that this command made is replaced.
    """
    if not os.path.lexists(index):
        return
    if not overwrite:
        fail(f"{index} exists; choose another --output or add --overwrite")
    try:
        listed = _core.replaceable(index.parent, index.name)
    except _core.RunError as e:
        fail(str(e))
    if not listed and not (index.is_file() and is_page(index)):
        fail(f"{index} is not a page of gargalo: choose another --output, or move it away")


def is_page(path: Path) -> bool:
    """Whether a file is a page that `gargalo evaluate` made."""
    with path.open("rb") as file:
        return b'<meta name="generator" content="gargalo' in file.read(4096)


def save(card: Scorecard, target: Path, *, overwrite: bool) -> tuple[dict[str, Any], Path]:
    """Write what a scorecard consists of: page, JSON, runs, scenarios; return the JSON, and where it is."""
    directory = _core.ResultsDir(target, replace=overwrite)
    try:
        whole = write(card, directory.path)
        return whole, directory.commit()
    finally:
        directory.discard()


def write(card: Scorecard, folder: Path) -> dict[str, Any]:
    """Write the files of a scorecard into a directory; return its JSON."""
    from gargalo.evaluation import page, records, traces
    from gargalo.evaluation.cells import cell_files
    from gargalo.sweeps.checksum import to_parquet

    card = traces.add(card, folder)
    whole = records.to_json(card)
    page.write(card, folder / "scorecard.html")
    (folder / "scorecard.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    frames = [r.scores.frame for r in card.results]
    if frames:
        import polars as pl

        runs = to_parquet(pl.concat(frames, how="diagonal_relaxed"))
        (folder / "runs.parquet").write_bytes(runs)
    for result in card.results:
        for cell in cell_files(result.criterion.id, result.scenarios):
            at = folder / "scenarios" / result.criterion.id
            at.mkdir(parents=True, exist_ok=True)
            (at / cell.file).write_text(cell.text, encoding="utf-8")
    return whole


def show(
    card: Scorecard,
    changes: list[Change],
    folder: Path,
    *,
    compared: bool,
    out: Console | None = None,
) -> None:
    """Print a scorecard."""
    from rich.text import Text

    from gargalo.terminal.fitting import Column, show_table
    from gargalo.terminal.screen import Screen

    out = out or Screen(highlight=False)
    out.print(
        f"[bold]{card.algorithm}[/], profile {card.profile.name}, {card.profile.repeat} runs of each cell"
    )
    if card.broken:
        out.print(card.broken, markup=False, style="red")
        return
    if not card.results:
        out.print("none of these criteria applies to it")
        return
    columns = [Column("", justify="left"), Column("criterion", justify="left", least=24)]
    columns.append(Column(card.algorithm, justify="left", least=16))
    columns += [Column(name, rank, justify="left") for rank, name in enumerate(card.references, 1)]
    rows: list[list[str | Text]] = []

    def add(*cells: str) -> None:
        rows.append([Text.from_markup(c) for c in (*cells, *[""] * (len(columns) - len(cells)))])

    for result in card.results:
        c = result.criterion
        add(
            shown(result.verdict),
            f"[bold]{c.id}[/] [dim]{c.section.removeprefix('RFC 9743 ')} {c.strength}[/]",
        )
        for outcome in result.outcomes:
            unit = outcome.figure.unit
            values = [written(outcome.references[r], unit) for r in card.references]
            own = shown(outcome.verdict, written(outcome.own, unit))
            add("", f"  {outcome.figure.name}", own, *values)
        for case in result.cases:
            kind: Verdict = "conforms" if case.conforms else "fault"
            skipped = f"[dim]– {case.verdict}[/]"  # noqa: RUF001
            told = skipped if case.conforms is None else shown(kind, case.verdict)
            add("", f"  {case.id}", told)
    show_table(None, columns, rows, out, frame=None)
    for result in card.results:
        for fault in result.faults:
            out.print(
                f"✗ {result.criterion.id} ({result.criterion.section}): {fault}",
                style="red",
                markup=False,
            )
        for failure in result.failures:
            out.print(f"! {result.criterion.id}: {failure}", style="red", markup=False)
    if compared:
        for change in changes:
            colour = "red" if change.is_regression else "green"
            colour = "dim" if change.kind == "no verdict" else colour
            out.print(
                f"{change.kind}: {change.criterion}: {change.text}", style=colour, markup=False
            )
        if not changes:
            out.print("nothing differs from the baseline beyond its intervals")
    print(folder / "scorecard.html")


def shown(verdict: Verdict, text: str = "") -> str:
    """Return the sign of a verdict and a text, in its style."""
    from gargalo.evaluation.model import VERDICTS

    mark = VERDICTS[verdict]
    return f"[{mark.style}]{f'{mark.sign} {text}'.rstrip()}[/]"


def written(interval: Any, unit: str) -> str:
    """Write a mean."""
    from gargalo.quantities import measured

    return measured(interval.mean, unit)
