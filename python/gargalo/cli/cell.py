"""`gargalo study NAME --cell …`: one run of a study, printed as a scenario or done."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gargalo import studies
from gargalo.cli.common import FAILED, fail, key_value
from gargalo.cli.run import carry_out, checked, directory, end_with, report, usual
from gargalo.metrics._numbers import finite
from gargalo.studies import cells
from gargalo.sweeps import work
from gargalo.terminal.text import definitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gargalo.judging import Profile
    from gargalo.results import Run
    from gargalo.studies import Study
    from gargalo.sweeps import Job


def check(labels: Sequence[str], options: Mapping[str, object]) -> None:
    """End the command if its options do not say one run and one thing to do with it.

    `options` are those of the command by their names, as they were given.
    """
    asked = [o for o in ("--print-scenario", "--run") if options[o]]
    if not labels:
        fail(
            f"{asked[0]} is of one run: choose it with --cell KEY=VALUE, as in --cell experiment=NAME"
        )
    if not asked:
        fail("--cell chooses a run: add --run to do it, or --print-scenario to see it")
    if len(asked) > 1:
        fail("give either --print-scenario or --run")
    whole = ["--workers", "--cluster", "--at-once", "--repair", "--strict"]
    unfit = whole + (["--json", "--output"] if options["--print-scenario"] else [])
    wrong = [o for o in unfit if options[o]]
    if wrong:
        fail(f"{wrong[0]} does not go with --cell and {asked[0]}: leave it out")


def chosen(study: Study, profile: Profile, labels: Sequence[str]) -> Job:
    """Return the run that has the labels given to --cell; if that is not one, the command ends."""
    wanted = dict(key_value("--cell", text, "experiment=NAME") for text in labels)
    root = studies.running.STORES.absolute() / study.name / profile.name
    try:
        return cells.cell(study, profile, wanted, root)
    except (KeyError, ValueError) as e:
        fail(e.args[0])


def text(study: Study, profile: Profile, job: Job) -> str:
    """Return the run as a scenario."""
    return cells.toml(job, f"gargalo study {study.name} --profile {profile.name}")


def run(study: Study, job: Job, output: Path | None, *, as_json: bool) -> None:
    """Do the run as `gargalo run` does, then print what the study measures of it."""
    from gargalo.running import run as simulate

    for what, why in studies.running.possible([job])[1].items():
        fail(f"not possible here: {what}. {why}", FAILED)
    scenario, changes = cells.scenario_of(job)
    made = checked(scenario, changes)
    target = directory(usual(made), output, overwrite=False, as_json=as_json)
    begin = partial(simulate, scenario, set=changes, output=target, world=job.world)
    done, interrupted = carry_out(begin, target, quiet=as_json)
    figures = {} if interrupted else measured(study, done)
    report(done, as_json=as_json, quiet=False, plots=not as_json, more={"metrics": figures})
    if figures and not as_json:
        print(f"\nmetrics of {study.name}:")
        print(definitions([(k, f"{v:.6g}") for k, v in figures.items() if v is not None], indent=2))
    end_with(done, interrupted=interrupted)


def measured(study: Study, done: Run) -> dict[str, float | None]:
    """Return the figures that a study takes of a run; where that fails the command ends."""
    measure = work.load_measure(study.measure)
    if measure is None:
        return {}
    try:
        return {k: finite(float(v)) for k, v in measure(done).items()}
    except Exception as e:
        fail(f"{study.measure} failed: {type(e).__name__}: {e}", FAILED)
