"""`gargalo study`: published experiments repeated, with verdicts and a report."""

from __future__ import annotations

import datetime
from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import Annotated

import typer
from rich.table import Table

from gargalo.cli_common import (
    FAILED,
    Repair,
    Screen,
    Workers,
    change,
    err,
    fail,
    json_option,
    sweep_errors,
    tell_failures,
    tell_sweep,
    to_json,
)


def study(
    name: Annotated[str, typer.Argument(help="Which study; see `gargalo list studies`.")],
    profile: Annotated[
        str, typer.Option(help="quick (minutes), full (as published), or another of the study's.")
    ] = "quick",
    directory: Annotated[
        Path | None,
        typer.Option("--output", help="For store and report. Default: runs/studies/NAME/PROFILE."),
    ] = None,
    workers: Workers = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, instead of processes.")
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            "--at-once", min=1, help="Runs in the lab at the same time. Default: the study's."
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option(min=1, help="Runs per cell. Default: the profile's.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the profile."),
    ] = None,
    repair: Repair = False,
    as_json: Annotated[bool, json_option("Print verdicts and facts as JSON.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 unless every claim is reproduced.")
    ] = False,
) -> None:
    """Do what is missing of a study, decide its claims, write one HTML report."""
    from gargalo import judging, studies
    from gargalo.reporting.model import VERDICTS
    from gargalo.sweeps.progress import display

    try:
        chosen = studies.find(name)
        changes = dict(change(c) for c in settings or [])
        studies.running.change(chosen.profile(profile), changes)
    except (KeyError, ValueError) as e:
        fail(e.args[0])
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
        table = Table(box=None, show_header=False, pad_edge=False)
        for claim in outcome.claims:
            shown = []
            for found in claim.judgements():
                mark = VERDICTS[found.verdict]
                where = f" ({found.reading})" if found.reading else ""
                shown.append(f"[{mark.style}]{mark.sign} {found.verdict}[/]{where}")
            table.add_row("\n".join(shown), claim.text, end_section=True)
        Screen(highlight=False).print(table)
        print(outcome.page)
    tell_failures(outcome.sweep)
    unmet = strict and any(c.verdict != "reproduced" for c in outcome.claims)
    if outcome.sweep.failures or grave or unmet:
        raise typer.Exit(FAILED)
