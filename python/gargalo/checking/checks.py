"""Scenarios run as tests, many at a time."""

from __future__ import annotations

import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gargalo import _core
from gargalo.checking.expectations import ExpectationError, Outcome, expectations, judge
from gargalo.checking.faults import Fault, Kind, counted, faults
from gargalo.sweeps.plugins import Plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gargalo.results import Run

World: TypeAlias = Literal["sim", "lab"]
EXPECT = "[[expect]]"


@dataclass(frozen=True)
class Options:
    """How scenarios are run."""

    keep: Path
    """Where the results are kept of what is not as expected."""
    fail_on: Kind = "failure"
    """What is wrong with a run, whatever it expects: this and what is worse."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Changes by their dotted keys."""
    world: World = "sim"
    plugins: tuple[Path, ...] = ()
    """Files that processes load which run scenarios."""


@dataclass(frozen=True)
class Checked:
    """What came of a scenario."""

    file: str
    name: str
    outcomes: tuple[Outcome, ...] = ()
    """Of each figure of each expectation."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the run, as far as it counts."""
    wrong: str | None = None
    """Why it cannot be judged: the scenario or an expectation is wrong."""
    kept: str | None = None
    """Where its results are, with the scenario that repeats them; only of what is not as expected."""
    wall_s: float = 0.0
    lines: tuple[int, ...] = ()
    """Line in the file of each expectation."""

    @property
    def missed(self) -> list[Outcome]:
        """Figures that are not as expected."""
        return [o for o in self.outcomes if not o.met]

    @property
    def passed(self) -> bool:
        """All is as expected."""
        return self.wrong is None and not self.faults and not self.missed

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "file": self.file,
            "name": self.name,
            "passed": self.passed,
            "wrong": self.wrong,
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
            "results": self.kept,
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
    tasks = list(zip(files, names(files), strict=True))
    if jobs == 1 or len(files) == 1:
        for file, name in tasks:
            found.append(check_one(file, name, options))
            if progress:
                progress(found[-1])
        return found
    with ProcessPoolExecutor(
        min(jobs, len(files)), get_context("spawn"), Plugins.load, (options.plugins,)
    ) as pool:
        running = [pool.submit(check_one, file, name, options) for file, name in tasks]
        for task in running:
            found.append(task.result())
            if progress:
                progress(found[-1])
    return found


def names(files: Sequence[Path]) -> list[str]:
    """Return a name for the results of each file that no other has."""
    found: list[str] = []
    for file in files:
        name = file.stem if file.stem not in found else f"{file.parent.name}-{file.stem}"
        n = 2
        while name in found:
            name, n = f"{file.stem}-{n}", n + 1
        found.append(name)
    return found


def check_one(file: Path, name: str, options: Options) -> Checked:
    """Run one scenario; its results stay if it is not as expected."""
    from gargalo.running import run

    place = options.keep / name
    try:
        done = run(
            file,
            set=dict(options.settings),
            output=place,
            existing="replace",
            world=options.world,
        )
    except _core.ScenarioError as e:
        return Checked(str(file), name, wrong=str(e))
    except _core.RunError as e:
        return Checked(str(file), name, faults=(Fault("failure", str(e)),))
    found = judged(done, file, name, options)
    if found.passed:
        shutil.rmtree(place, ignore_errors=True)
        story(place).unlink(missing_ok=True)
        return replace(found, kept=None)
    tell(done, place)
    return found


def judged(done: Run, file: Path, name: str, options: Options) -> Checked:
    """Compare a run with what its scenario expects."""
    wrong = None
    outcomes: list[Outcome] = []
    try:
        outcomes = judge(done)
    except ExpectationError as e:
        wrong = str(e)
    places = {expected.metric for expected in expectations(done)}
    return Checked(
        str(file),
        name,
        outcomes=tuple(outcomes),
        faults=tuple(f for f in faults(done, places) if f.kind in counted(options.fail_on)),
        wrong=wrong,
        kept=str(done.directory),
        wall_s=done.info["wall_s"],
        lines=lines_of(file),
    )


def lines_of(file: Path) -> tuple[int, ...]:
    """Return the lines at which expectations begin."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return tuple(n for n, line in enumerate(text.splitlines(), 1) if line.strip() == EXPECT)


def story(place: Path) -> Path:
    """Return the file with the story of a run, beside its results."""
    return place.with_name(f"{place.name}.txt")


def tell(done: Run, place: Path) -> None:
    """Write the pictures and the story of a run."""
    from gargalo.extras import MissingExtraError

    told = str(done.explain())
    try:
        from gargalo.plots import Plots

        Plots(done).save(place)
    except (MissingExtraError, OSError, _core.RunError) as e:
        told += f"\nno pictures: {e}"
    story(place).write_text(f"{told}\n", encoding="utf-8")
