"""Scenarios run as tests, many at a time."""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core
from gargalo.checking.expectations import (
    ExpectationError,
    Figures,
    Outcome,
    expectations,
    outcomes,
)
from gargalo.checking.faults import Fault, faults
from gargalo.severity import Kind, counted
from gargalo.sweeps.plugins import Plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gargalo.results import Run
    from gargalo.sweeps.job import World

EXPECT = "[[expect]]"
STORY = "explain.txt"
MARK = "check.json"
"""In a directory that was kept: what came of the scenario. Only directories that have it are replaced."""
RESULTS = "results"


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
class Checked:
    """What came of a scenario."""

    file: str
    outcomes: tuple[Outcome, ...] = ()
    """Of each figure of each expectation."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the run, as far as it counts."""
    wrong: tuple[str, ...] = ()
    """Why it cannot be judged: the scenario, or expectations, are wrong."""
    kept: str | None = None
    """Where its results, pictures and story are; only of what is not as expected."""
    wall_s: float = 0.0
    lines: tuple[int, ...] = ()
    """Line in the file of each expectation; empty: not known."""

    @property
    def missed(self) -> list[Outcome]:
        """Figures that are not as expected."""
        return [o for o in self.outcomes if not o.met]

    @property
    def passed(self) -> bool:
        """All is as expected."""
        return not (self.wrong or self.faults or self.missed)

    @property
    def again(self) -> Path | None:
        """The scenario that does the same run."""
        return None if self.kept is None else Path(self.kept) / RESULTS / "scenario.toml"

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "file": self.file,
            "passed": self.passed,
            "wrong": list(self.wrong),
            "faults": [{"kind": f.kind, "text": f.text} for f in self.faults],
            "expectations": [
                {
                    "metric": o.metric,
                    "value": o.value,
                    "expected": o.bound,
                    "met": o.met,
                    "why": o.why,
                    "line": self.line(o),
                }
                for o in self.outcomes
            ],
            "kept": self.kept,
            "wall_s": self.wall_s,
        }

    def line(self, outcome: Outcome) -> int | None:
        """Return where in the file an expectation is; None if that is not known."""
        return self.lines[outcome.number] if outcome.number < len(self.lines) else None


def check(
    files: Sequence[Path],
    options: Options,
    jobs: int = 1,
    progress: Callable[[Checked], object] | None = None,
) -> list[Checked]:
    """Run scenarios and compare them with what they expect, in the order of the files.

    Args:
        files: Scenarios.
        options: How they are run.
        jobs: Runs at the same time, each in a process of its own.
        progress: Called with each as soon as it and all before it are done.

    """
    found = []
    jobs = min(jobs, len(files))
    if options.memory_limit is None and jobs > 1 and (all_of_it := _core.memory_limit()):
        options = replace(options, memory_limit=all_of_it // jobs)
    for checked in _each(files, options, jobs):
        found.append(checked)
        if progress:
            progress(checked)
    return found


def _each(files: Sequence[Path], options: Options, jobs: int) -> Iterator[Checked]:
    if jobs <= 1:
        for file in files:
            yield check_one(file, options)
        return
    arguments = (jobs, get_context("spawn"), Plugins.load, (options.plugins,))
    pool = ProcessPoolExecutor(*arguments)
    try:
        running = [(file, pool.submit(check_one, file, options)) for file in files]
        for file, task in running:
            try:
                yield task.result()
            except BrokenProcessPool:
                told = "the process of this run, or of one beside it, has ended: out of memory, or a plug-in"
                yield Checked(str(file), faults=(Fault("failure", told),))
    finally:
        # What has not begun does not begin any more.
        pool.shutdown(cancel_futures=True)


def place_of(file: Path, keep: Path) -> Path:
    """Return where it is kept what came of a file: of each another place, whatever else is checked."""
    file = file.absolute()
    try:
        below = file.relative_to(Path.cwd())
    except ValueError:
        below = file.relative_to(file.anchor)
    return keep / below


def check_one(file: Path, options: Options) -> Checked:
    """Run one scenario; its results are kept if it is not as expected."""
    from gargalo.running import run

    place = place_of(file, options.keep)
    with tempfile.TemporaryDirectory(prefix="gargalo-check-") as temporary:
        made = Path(temporary) / file.name
        try:
            done = run(
                file,
                set=dict(options.settings),
                output=made / RESULTS,
                world=options.world,
                memory_limit=options.memory_limit,
            )
            found = judged(done, file, options)
            if not found.passed:
                tell(done, made)
        except _core.ScenarioError as e:
            found = Checked(str(file), wrong=(str(e),))
        except Exception as e:
            # A class of a plug-in may raise anything.
            found = Checked(str(file), faults=(Fault("failure", _sentence(e)),))
        return _kept(found, made, place)


def _sentence(e: Exception) -> str:
    return str(e) if isinstance(e, _core.RunError) else f"{type(e).__name__}: {e}"


def _kept(found: Checked, made: Path, place: Path) -> Checked:
    """Put what was made where it is kept, in the place of what a check has put there before."""
    if (place / MARK).is_file():
        shutil.rmtree(place)
    if found.passed or not (made / RESULTS / "scenario.toml").exists():
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
