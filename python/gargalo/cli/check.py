"""`gargalo check`: scenarios as tests."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from gargalo.cli.common import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    PATH,
    STDIN,
    World,
    change,
    fail,
    fail_on_option,
    json_option,
    memory,
    memory_limit_option,
    plugin_option,
    refuse_another,
    set_option,
    sweep_errors,
    to_json,
    world_option,
)
from gargalo.cli.help import command
from gargalo.cli.judged import junit_option, writing
from gargalo.terminal.text import printable, say

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.checking import Checked
    from gargalo.severity import Kind

KEPT = "checks"
MOST_TOLD = 20
"""Figures of a scenario that are told."""


@command(
    examples=[
        ("gargalo check video.toml", "Does it show what its tables [[expect]] say?"),
        ("gargalo check scenarios --junit results.xml", "All of a directory, for a CI server."),
        ("gargalo check scenarios --github", "With annotations at the lines of the files."),
        ("gargalo check video.toml --fail-on warning", "Nor may there be a warning."),
    ]
)
@click.argument(
    "files",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="FILE...",
    help="Scenarios and sweeps, or directories of them.",
)
@set_option
@fail_on_option("failure")
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    metavar="N",
    help="Runs at a time. Default: one for each processor.",
)
@click.option(
    "--keep",
    type=PATH,
    default=KEPT,
    metavar="DIR",
    help=f"Results of what is not as expected: tables, picture, story, scenario. Default: {KEPT}.",
)
@junit_option
@click.option("--github", is_flag=True, help="Print annotations for a workflow of GitHub.")
@plugin_option
@world_option
@memory_limit_option
@json_option("Print one JSON object.")
@click.option("--quiet", "-q", is_flag=True, help="Only what is not as expected.")
def check(
    files: tuple[Path, ...],
    changes: tuple[str, ...],
    fail_on: Kind,
    jobs: int | None,
    keep: Path,
    junit: Path | None,
    plugin: tuple[Path, ...],
    world: World,
    memory_limit: str | None,
    *,
    github: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run scenarios and sweeps, and say whether their results are as their tables [[expect]] say.

    A connection that failed or was never established, and data that differ from what was sent, are never as expected.

    Exit codes: 0 all is as expected; 1 something is not; 2 a scenario or an expectation is wrong.
    """
    from gargalo.checking.checks import Options
    from gargalo.checking.checks import check as carry_out
    from gargalo.checking.reports import annotated, suite_of, write_junit
    from gargalo.sweeps.plugins import Plugins

    if github and as_json:
        fail("--github and --json exclude each other: both are on standard output")
    with sweep_errors():
        Plugins.load(plugin)
    paths = scenarios(files, keep)
    settings = dict(change(c) for c in changes)
    options = Options(keep, fail_on, settings, world, plugin, memory(memory_limit))
    found: list[Checked] = []

    def show(checked: Checked) -> None:
        found.append(checked)
        if as_json or (quiet and checked.passed):
            return
        print(printable("\n".join(lines(checked))), flush=True)
        if github:
            for line in annotated(checked):
                print(printable(line), flush=True)

    # In real time flows of two runs would disturb each other.
    usual = 1 if world == "lab" else os.cpu_count() or 1
    interrupted = False
    try:
        carry_out(paths, options, jobs or usual, show)
    except KeyboardInterrupt:
        interrupted = True
        say(f"interrupted: {len(found)} of {len(paths)} scenarios were checked")
    if junit is not None:
        with writing(junit):
            write_junit([suite_of(c) for c in found], "check", junit)
    if as_json:
        print(
            to_json(
                {"passed": all(c.passed for c in found), "scenarios": [c.to_json() for c in found]}
            )
        )
    elif len(found) > 1 and not quiet:
        say(f"{sum(c.passed for c in found)} of {len(found)} scenarios are as expected")
    if interrupted:
        raise Exit(INTERRUPTED)
    if any(c.wrong for c in found):
        raise Exit(BAD_INPUT)
    if not all(c.passed for c in found):
        raise Exit(FAILED)


def scenarios(places: tuple[Path, ...], keep: Path, *, sweeps: bool = True) -> list[Path]:
    """Return the scenarios that are named, and those of directories, in the order of their names.

    Of a directory all files *.toml are taken but those that are known to be something else, sweeps without [[expect]],
    and what was kept before; and texts *.txt that are specifications of picoquic's simulator.
    """
    from gargalo.cli.kinds import SCENARIO, SWEEP, of_file

    found: list[Path] = []
    for place in places:
        if place == STDIN:
            fail("standard input is not checked: name the file of the scenario")
        if not place.is_dir():
            refuse_another(place, "scenario", "sweep")
            found.append(place)
            continue
        files, texts = (
            [
                f
                for f in sorted(place.rglob(pattern))
                if keep.absolute() not in f.absolute().parents
                and not (f.parent / "run.json").exists()
            ]
            for pattern in ("*.toml", "*.txt")
        )
        kinds = [of_file(file) for file in files]
        own = [
            f
            for f, k in zip(files, kinds, strict=True)
            if k is None or k.kind is SCENARIO or (sweeps and k.kind is SWEEP and expects(f))
        ]
        own += [f for f in texts if is_specification(f)]
        if not own:
            fail(
                f"{place}: no file *.toml in it is a scenario, and no *.txt a specification of pico_sim"
            )
        found += own
    return list(dict.fromkeys(found))


def is_specification(file: Path) -> bool:
    """Tell whether a text is a specification of picoquic's simulator."""
    from gargalo import reading
    from gargalo.scenarios import picoquic

    try:
        return picoquic.is_one(reading.text(file))
    except (OSError, UnicodeDecodeError):
        return False


def expects(sweep: Path) -> bool:
    """Tell whether a sweep says what its cells have to show."""
    from gargalo import reading
    from gargalo._toml import tables

    return bool(tables(reading.text(sweep)).get("expect"))


def lines(checked: Checked) -> list[str]:
    """Return what is said of a scenario: a line, and more where it is not as expected."""
    if checked.passed:
        many = len(checked.outcomes)
        met = f"{many} of {many} as expected" if many else "nothing is expected"
        return [f"ok    {checked.file}: {met} ({checked.wall_s:.2g} s)"]
    told = [f"wrong {checked.file}: {wrong}" for wrong in checked.wrong]
    told += [f"FAIL  {checked.file}: {fault.kind}: {fault.text}" for fault in checked.faults]
    missed = checked.missed
    told += [f"FAIL  {checked.file}: {outcome}" for outcome in missed[:MOST_TOLD]]
    if len(missed) > MOST_TOLD:
        told.append(f"      and {len(missed) - MOST_TOLD} more figures are not as expected")
    if checked.kept is not None:
        again = shlex.quote(str(checked.again))
        told.append(f"      what happened is in {checked.kept}; gargalo run {again} does it again")
    return told
