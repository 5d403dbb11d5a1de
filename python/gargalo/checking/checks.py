"""Scenarios run as tests, many at a time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo._toml import tables
from gargalo.checking.checked import RESULTS, Checked
from gargalo.checking.expectations import (
    ExpectationError,
    Figures,
    Outcome,
    expectations,
    outcomes,
)
from gargalo.checking.faults import Fault, faults
from gargalo.checking.processes import ENDED, alone, each
from gargalo.checking.repeats import of_sweep
from gargalo.running import Text
from gargalo.severity import Kind, counted
from gargalo.sweeps.errors import SweepError
from gargalo.sweeps.job import Source
from gargalo.sweeps.model import SweepFile

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from gargalo.results import Run
    from gargalo.running import ScenarioLike
    from gargalo.sweeps.job import World

EXPECT = "[[expect]]"
STORY = "explain.txt"
LONGEST_NAME = 100
MARK = "check.json"
"""In a directory that was kept: what came of the scenario. Only directories that have it are replaced."""


@dataclass(frozen=True)
class Options:
    """How scenarios are run."""

    keep: Path
    """Where it is kept what is not as expected."""
    fail_on: Kind = "failure"
    """What is wrong with a run, whatever it expects: this and what is worse."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Changes by their dotted keys."""
    world: World = "sim"
    plugins: tuple[Path, ...] = ()
    """Files that processes load which run scenarios."""
    memory_limit: int | None = None
    """Of each run, in bytes; None: half of what is available, over the runs at a time."""


@dataclass(frozen=True)
class Case:
    """One run of a file: a scenario's only one, or one of a sweep."""

    file: Path
    scenario: ScenarioLike
    settings: Mapping[str, Any]
    seed: int | None = None
    """None: the scenario's."""
    cell: str = ""
    """Of a sweep: its labels."""
    place: Path | None = None
    """Where it is kept what came of it, if it is not as expected; None: nowhere."""


def check(
    files: Sequence[Path],
    options: Options,
    jobs: int = 1,
    progress: Callable[[Checked], object] | None = None,
) -> list[Checked]:
    """Run scenarios and sweeps and compare them with what they expect, in the order of the files.

    Args:
        files: Scenarios and sweeps.
        options: How they are run.
        jobs: Runs at the same time, each in a process of its own.
        progress: Called with each as soon as it and all before it are done.

    """
    planned = [cases_of(file, options) for file in files]
    runs = [case for cases in planned if not isinstance(cases, Checked) for case in cases]
    jobs = min(jobs, len(runs))
    if options.memory_limit is None and jobs > 1 and (all_of_it := _core.memory_limit()):
        options = replace(options, memory_limit=all_of_it // jobs)
    found = []
    with closing(_each(runs, options, jobs)) as results:
        for file, cases in zip(files, planned, strict=True):
            checked = (
                cases if isinstance(cases, Checked) else _of_file(file, cases, results, options)
            )
            found.append(checked)
            if progress:
                progress(checked)
    return found


def cases_of(file: Path, options: Options) -> list[Case] | Checked:
    """Return the runs of a file; or why there are none."""
    try:
        if not is_sweep(file):
            return [Case(file, file, options.settings, place=place_of(file, options.keep))]
        plan = SweepFile.load(file).plan(set=options.settings, world=options.world)
    except (SweepError, _core.ScenarioError) as e:
        return Checked(str(file), wrong=(str(e),))
    except _core.RunError as e:
        # A stack that it names cannot be loaded.
        return Checked(str(file), faults=(Fault("failure", str(e)),))
    cases = []
    for job in plan:
        source = Source.of(job.scenario)
        cell = ", ".join(f"{name} = {value}" for name, value in job.labels.items())
        text = source.text if source.path is None else Text(source.text, source.path)
        cases.append(Case(file, text, job.changes, job.seed, cell))
    return cases


def is_sweep(file: Path) -> bool:
    """Tell a sweep from a scenario; what cannot be read is taken for one, which says why."""
    try:
        return "scenario" in tables(reading.text(file))
    except (OSError, UnicodeDecodeError):
        return False


def _of_file(
    file: Path, cases: Sequence[Case], results: Generator[Checked], options: Options
) -> Checked:
    """Take what came of the runs of a file, which are next of all."""
    if len(cases) == 1 and cases[0].place is not None:
        return next(results)
    found, worst = of_sweep(file, cases, list(islice(results, len(cases))))
    place = place_of(file, options.keep)
    _clear(place)
    kept = [_again(case, place, options) for case in worst]
    return replace(found, kept=next((one.kept for one in kept if one.kept), None))


def _again(case: Case, place: Path, options: Options) -> Checked:
    """Do a run of a sweep once more, in a process of its own, and keep what comes of it."""
    name = re.sub(r"[^\w.=+-]+", "_", case.cell)[:LONGEST_NAME] or "cell"
    digest = hashlib.sha256(case.cell.encode()).hexdigest()[:6]
    kept = replace(case, place=place / f"{name}-{digest}")
    again = partial(check_one, options=options, always=True)
    return alone(again, kept, options.plugins) or Checked(str(case.file))


def _each(cases: Sequence[Case], options: Options, jobs: int) -> Generator[Checked]:
    if jobs <= 1:
        for case in cases:
            yield check_one(case, options)
        return
    results = each(partial(check_one, options=options), cases, options.plugins, jobs)
    for case, checked in zip(cases, results, strict=True):
        yield checked or Checked(str(case.file), faults=(Fault("failure", ENDED),))


def place_of(file: Path, keep: Path) -> Path:
    """Return where it is kept what came of a file: of each another place, whatever else is checked."""
    file = Path(os.path.normpath(file.absolute()))
    try:
        below = file.relative_to(Path.cwd())
    except ValueError:
        below = file.relative_to(file.anchor)
    return keep / below


def check_one(case: Case, options: Options, *, always: bool = False) -> Checked:
    """Do one run; its results are kept if it is not as expected, or always."""
    from gargalo.running import run

    with tempfile.TemporaryDirectory(prefix="gargalo-check-") as temporary:
        made = Path(temporary) / case.file.name
        try:
            done = run(
                case.scenario,
                seed=case.seed,
                set=dict(case.settings),
                output=made / RESULTS if case.place is not None else None,
                world=options.world,
                memory_limit=options.memory_limit,
            )
            found = judged(done, case.file, options)
            if case.place is not None and (always or not found.passed):
                tell(done, made)
        except _core.ScenarioError as e:
            found = Checked(str(case.file), wrong=(str(e),))
        except Exception as e:
            # A class of a plug-in may raise anything.
            found = Checked(str(case.file), faults=(Fault("failure", _sentence(e)),))
        if case.place is None:
            return found
        return _kept(found, made, case.place, always=always)


def _sentence(e: Exception) -> str:
    return str(e) if isinstance(e, _core.RunError) else f"{type(e).__name__}: {e}"


def _clear(place: Path) -> None:
    """Remove what a check has kept before, of a scenario or of a sweep's runs, and nothing else."""
    if (place / MARK).is_file():
        shutil.rmtree(place)
    elif place.is_dir():
        for mark in list(place.glob(f"*/{MARK}")):
            shutil.rmtree(mark.parent)
        if not any(place.iterdir()):
            place.rmdir()


def _kept(found: Checked, made: Path, place: Path, *, always: bool) -> Checked:
    """Put what was made where it is kept, in the place of what a check has put there before."""
    _clear(place)
    if (found.passed and not always) or not (made / RESULTS / "scenario.toml").exists():
        return found
    if place.exists():
        told = f"{place} is in the way: it is none of what was kept before, so nothing was"
        return replace(found, wrong=(*found.wrong, told))
    found = replace(found, kept=str(place))
    (made / MARK).write_text(json.dumps(found.to_json(), indent=1), encoding="utf-8")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, place)
    return found


def judged(done: Run, file: Path, options: Options) -> Checked:
    """Compare a run with what its scenario expects."""
    kinds = counted(options.fail_on)
    expected = expectations(done)
    figures = Figures(done)
    wrong: list[str] = []
    found: list[Outcome] = []
    for one in expected:
        try:
            found += outcomes(figures, one)
        except ExpectationError as e:
            wrong.append(str(e))
    return Checked(
        str(file),
        outcomes=tuple(found),
        faults=tuple(f for f in faults(done, {e.metric for e in expected}) if f.kind in kinds),
        wrong=tuple(wrong),
        wall_s=done.info["wall_s"],
        lines=lines_of(file, len(expected)),
    )


def lines_of(file: Path, many: int) -> tuple[int, ...]:
    """Return the lines at which tables of expectations begin; none if there are not so many."""
    text = file.read_text(encoding="utf-8", errors="replace")
    found = [n for n, t in enumerate(text.splitlines(), 1) if t.strip().startswith(EXPECT)]
    return tuple(found) if len(found) == many else ()


def tell(done: Run, place: Path) -> None:
    """Write the pictures and the story of a run beside its results."""
    from gargalo.extras import MissingExtraError

    told = str(done.explain())
    try:
        from gargalo.plots import Plots

        Plots(done).save(place)
    except (MissingExtraError, OSError, _core.RunError) as e:
        told += f"\nno pictures: {e}"
    (place / STORY).write_text(f"{told}\n", encoding="utf-8")
