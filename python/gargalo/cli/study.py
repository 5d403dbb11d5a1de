"""`gargalo study`: published experiments repeated, with verdicts and a report."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from gargalo.cli.common import (
    FAILED,
    PATH,
    change,
    fail,
    json_option,
    refuse_another,
    repair_option,
    sweep_errors,
    tell_failures,
    tell_sweep,
    to_json,
    workers_option,
)
from gargalo.cli.help import command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from gargalo.reporting.model import ClaimRow


@command(
    examples=[
        ("gargalo list studies", "The studies."),
        ("gargalo study high-speed-tcp", "Do one in minutes: verdicts and a page."),
        ("gargalo study nsquic --profile full", "As published."),
        (
            "gargalo study nsquic --cell experiment=nodes --cell reading=2018 --cell protocol=cubic "
            "--cell nodes=2 --print-scenario > cell.toml",
            "One run of a study, to change and to run by hand.",
        ),
    ]
)
@click.argument("name", metavar="NAME", help="Which study; see `gargalo list studies`.")
@click.option(
    "--profile",
    default="quick",
    metavar="NAME",
    help="quick (minutes), full (as published), or another of the study's.",
)
@click.option(
    "--output",
    "directory",
    type=PATH,
    metavar="DIR",
    help="For store and report. Default: runs/studies/NAME/PROFILE.",
)
@workers_option
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler, instead of processes.")
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs in the lab at the same time. Default: the study's.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs per cell. Default: the profile's.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a setting of the profile."
)
@click.option(
    "--cell",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Choose the run with this label instead of doing the study; may be repeated.",
)
@click.option("--print-scenario", is_flag=True, help="Print the scenario of the run of --cell.")
@click.option(
    "--run",
    "run_it",
    is_flag=True,
    help="Do the run of --cell as `gargalo run`; print the study's figures of it.",
)
@repair_option
@json_option("Print verdicts and facts as JSON.")
@click.option("--strict", is_flag=True, help="Exit with 1 unless every claim is reproduced.")
def study(
    name: str,
    profile: str,
    directory: Path | None,
    workers: int | None,
    cluster: str | None,
    at_once: int | None,
    repeat: int | None,
    settings: tuple[str, ...],
    labels: tuple[str, ...],
    print_scenario: bool,
    run_it: bool,
    repair: bool,
    as_json: bool,
    strict: bool,
) -> None:
    """Do what is missing of a study, decide its claims, write one HTML report."""
    from gargalo import judging, studies
    from gargalo.sweeps.progress import display
    from gargalo.terminal.screen import Screen, err

    try:
        chosen = studies.find(name)
        changes = dict(change(c) for c in settings)
        of_profile = studies.running.profile_of(chosen, profile, repeat=repeat, settings=changes)
    except (KeyError, ValueError) as e:
        if name not in studies.STUDIES:
            refuse_another(Path(name), "study")
        fail(e.args[0])
    if labels or print_scenario or run_it:
        from gargalo.cli import cell as cli_cell

        cli_cell.check(labels, given_options())
        job = cli_cell.chosen(chosen, of_profile, labels)
        if print_scenario:
            print(cli_cell.text(chosen, of_profile, job), end="")
        else:
            cli_cell.run(chosen, job, directory, as_json=as_json)
        return
    with sweep_errors(), display(err, shown=not as_json) as progress:
        outcome = studies.run_study(
            chosen,
            profile,
            directory=directory,
            workers=workers,
            cluster=cluster,
            at_once=at_once,
            repeat=repeat,
            settings=changes,
            progress=progress,
            facts={"date": datetime.date.today().isoformat()},
            repair=repair,
        )
    grave = tell_sweep(outcome.sweep, judging.findings(outcome.sweep))
    if as_json:
        print(to_json(outcome.to_json(), indent=1))
    else:
        show(outcome.claims, Screen(highlight=False))
        print(outcome.page)
    tell_failures(outcome.sweep)
    unmet = strict and any(c.verdict != "reproduced" for c in outcome.claims)
    if outcome.sweep.failures or grave or unmet:
        raise Exit(FAILED)


def given_options() -> dict[str, object]:
    """Return what the options of the command at hand are set to, by their longest names."""
    context = click.get_current_context()
    options = (p for p in context.command.params if isinstance(p, click.Option))
    return {max(o.opts, key=len): context.params.get(o.name or "") for o in options}


def show(claims: Iterable[ClaimRow], console: Console) -> None:
    """Print claims with their verdicts."""
    from rich.text import Text

    from gargalo.reporting.model import VERDICTS
    from gargalo.terminal.fitting import Column, show_table

    rows = []
    for claim in claims:
        told = Text()
        for found in claim.judgements():
            mark = VERDICTS[found.verdict]
            where = f" ({found.reading})" if found.reading else ""
            told.append("\n" if told else "")
            told.append(f"{mark.sign} {found.verdict}", style=mark.style).append(where)
        rows.append([told, Text(claim.text)])
    columns = [
        Column("verdict", justify="left", least=16),
        Column("claim", justify="left", least=24),
    ]
    show_table(None, columns, rows, console)
