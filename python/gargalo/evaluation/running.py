"""Running an evaluation: what is missing in the store, then a scorecard for each algorithm."""

from __future__ import annotations

import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, judging, reading
from gargalo.evaluation import scoring
from gargalo.evaluation.criteria import CRITERIA, find
from gargalo.evaluation.model import PROFILES, REFERENCES, Plan
from gargalo.evaluation.stacks import INSIDE, Own, carried, label_of, not_said
from gargalo.plugins import native
from gargalo.plugins.registry import registered
from gargalo.scenarios.scenario import to_toml
from gargalo.sweeps import Job, derive_seed, execute
from gargalo.sweeps.errors import SweepError
from gargalo.sweeps.plugins import Plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gargalo import audit
    from gargalo.evaluation.model import Criterion, Result
    from gargalo.interop import Stack
    from gargalo.judging import Profile
    from gargalo.sweeps import Sweep
    from gargalo.sweeps.progress import SweepProgress

STORE = Path("runs") / "evaluation" / "store"
STALL_S = 60.0
"""A run without progress for this time hangs."""
SEED = 9743


@dataclass(frozen=True)
class Candidate:
    """An algorithm to evaluate: a name of the registry, or one that a file registers."""

    name: str
    file: Path | None = None
    broken: str = ""
    """The traceback, if its file cannot be loaded."""
    over: Own | None = None
    """The algorithm as a QUIC stack has it; `name` is then its label."""

    @property
    def algorithm(self) -> str:
        """What is planned."""
        return self.name if self.over is None else self.over


@dataclass(frozen=True)
class Scorecard:
    """The results of an algorithm."""

    algorithm: str
    profile: Profile
    references: Sequence[str]
    results: Sequence[Result]
    broken: str = ""
    """Why nothing of it could be run."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    """The file that has it, for `gargalo run --plugin`."""
    findings: Sequence[audit.Finding] = ()
    """What the auditor found in its runs and those of the references."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from gargalo import notebook

        return notebook.of_scorecard(self)

    @property
    def faults(self) -> dict[str, Sequence[str]]:
        """What is wrong, by criterion."""
        return {r.criterion.id: r.faults for r in self.results if r.faults}


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found."""

    scorecards: Sequence[Scorecard]
    sweep: Sweep


class UnknownNameError(KeyError):
    """An argument of `evaluate` has a name that is not known; the text begins with the argument."""


@contextmanager
def argument(name: str) -> Iterator[None]:
    """Put the name of an argument before what is wrong with a name in it."""
    try:
        yield
    except KeyError as e:
        msg = f"{name}: {e.args[0]}"
        raise UnknownNameError(msg) from None


def known_controls() -> dict[str, str]:
    """Return every name of a congestion control that is known here, with the one under which it is listed."""
    built_in = {n: str(c["name"]) for c in _core.congestion() for n in (c["name"], *c["aliases"])}
    return built_in | {n: n for n in registered()["congestion"]}


def candidates(names: Sequence[str | Path]) -> tuple[list[Candidate], list[Path]]:
    """Return the algorithms that names, Python files and shared libraries stand for, and the files that can be loaded.

    Raises:
        SweepError: A name is not known.

    """
    found: list[Candidate] = []
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if path.suffix != ".py" and not native.is_library(path):
            known = known_controls()
            if str(name) not in known:
                near = _core.nearest(str(name), sorted(known))
                hint = (
                    f'did you mean "{near}"?'
                    if near
                    else "see `gargalo list congestion`, or give a Python file or a shared library"
                )
                msg = f'there is no congestion control "{name}"; {hint}'
                raise SweepError(msg)
            found.append(Candidate(known[str(name)]))
            continue
        try:
            reading.check(path)
        except FileNotFoundError:
            msg = f"{path}: no such file"
            raise SweepError(msg) from None
        except OSError as e:
            msg = f"{path}: cannot be read: {reading.reason(e)}"
            raise SweepError(msg) from None
        if path.is_dir():
            msg = f"{path}: cannot be read: it is a directory; name a file"
            raise SweepError(msg)
        before = registered()["congestion"]
        try:
            controls = Plugins.load([path]).digests["congestion"]
        except SweepError as e:
            found.append(Candidate(path.stem, path, broken=because(e)))
            continue
        after = registered()["congestion"]
        new = [n for n in controls if before.get(n) is not after.get(n)]
        if not new:
            why = f'{path} registers no congestion control; decorate the class with @gargalo.congestion("name")'
            found.append(Candidate(path.stem, path, broken=why))
            continue
        files.append(path)
        found += [Candidate(n, path) for n in new]
    return found, files


def candidates_of(stack: Stack, names: Sequence[str | Path]) -> list[Candidate]:
    """Return congestion controls of a QUIC stack.

    Raises:
        SweepError: The stack cannot be loaded, or has none of a name.

    """
    if stack.broken:
        raise SweepError(stack.broken)
    found = []
    for name in names:
        if str(name) not in stack.congestion:
            own = ", ".join(stack.congestion)
            msg = f'{stack.name} has no congestion control "{name}"; it has {own}'
            raise SweepError(msg)
        own = Own(str(name), stack.name, follows=stack.specifications.get(str(name)))
        found.append(Candidate(own.label, over=own))
    return found


def because(e: BaseException) -> str:
    """Return why a file could not be loaded, with the traceback of the first cause."""
    cause = e.__context__ or e
    return "".join(traceback.format_exception(cause)).rstrip("\n")


def plan(
    algorithms: Sequence[str],
    profile: Profile,
    criteria: Sequence[Criterion],
    seed: int = SEED,
    judged: Sequence[str] | None = None,
    stacks: Mapping[str, Stack] | None = None,
    workers: int | None = None,
) -> tuple[list[Job], dict[tuple[str, str], Mapping[str, Any]]]:
    """Return all runs, and a scenario of each criterion's cells by criterion and name.

    Criteria of some algorithms only are run for those of them that are `judged` (by default all). `stacks` are those of
    algorithms over QUIC; what QUIC cannot do is left out. `workers` repeats are planned at a time, by default one for
    each core.
    """
    jobs: list[Job] = []
    scenarios: dict[tuple[str, str], Mapping[str, Any]] = {}
    for criterion in criteria:
        if profile.name not in criterion.profiles:
            continue
        for algorithm in algorithms:
            name_of = label_of(algorithm)
            if not criterion.applies_to(algorithm) or (
                criterion.algorithms and judged is not None and name_of not in judged
            ):
                continue
            repeats = min(profile.repeat, criterion.repeat or profile.repeat)
            plans = [Plan(algorithm, profile, derive_seed(seed, r)) for r in range(repeats)]
            # Some cells are found by runs; the engine does not hold the interpreter's lock.
            with ThreadPoolExecutor(workers or os.cpu_count()) as threads:
                cells = list(threads.map(criterion.cells, plans))
            for repeat, own in enumerate(p.seed for p in plans):
                for cell in cells[repeat]:
                    labels = {"criterion": criterion.id, "algorithm": name_of, **cell.labels}
                    made = carried(cell.scenario, stacks)
                    if made is None:
                        continue
                    scenario = {**made, "seed": own}
                    jobs.append(Job(labels, scenario, own, repeat))
                    name = " ".join(f"{k}={v}" for k, v in cell.labels.items())
                    scenarios.setdefault((criterion.id, f"{name_of} {name}"), scenario)
    return jobs, scenarios


def evaluate(
    names: Sequence[str | Path],
    *,
    stack: str | None = None,
    plugins: Sequence[Path] = (),
    against: Sequence[str] = REFERENCES,
    profile: str = "quick",
    only: Sequence[str] = (),
    store: Path | None = None,
    workers: int | None = None,
    repeat: int | None = None,
    stall_s: float = STALL_S,
    repair: bool = False,
    begin: Callable[[Sequence[str], Profile], object] | None = None,
    progress: Callable[[SweepProgress], object] | None = None,
) -> Evaluation:
    """Do what is missing and judge each algorithm by each criterion.

    Args:
        names: Names of the registry, Python files that register congestion controls, or shared libraries.
        stack: A QUIC stack; names are then those of its congestion controls, and the references are ours over QUIC.
        plugins: Files that register stacks, or anything else that runs need.
        against: Algorithms on the same grid; those of `REFERENCES` are always there.
        profile: `quick`, `standard` or `full`.
        only: Identifiers of criteria, instead of all.
        store: Where runs are kept; the next evaluation takes from there what it can.
        workers: Processes; by default one for each core.
        repeat: Runs of each cell, instead of the profile's.
        stall_s: A run that makes no progress for this time fails, in s.
        repair: Move damaged files of the store aside, and do again what they held of these runs.
        begin: Called with the algorithms that will have a scorecard, before anything runs.
        progress: Called a few times a second.

    Raises:
        UnknownNameError: There is no such profile, criterion, stack or reference; the text begins with the argument.
        SweepError: An algorithm is not known; see `gargalo.sweeps.execute` for the other errors.

    """
    with argument("profile"):
        chosen = judging.find("profile", profile, PROFILES).with_repeat(repeat)
    with argument("only"):
        criteria = [find(o) for o in only] or list(CRITERIA)
    # What they register can be named.
    Plugins.load(plugins)
    known = {} if stack is None else interop_stacks()
    if stack is None:
        wanted, files = candidates(names)
    else:
        with argument("stack"):
            inside = judging.find("stack", stack, known)
        wanted, files = candidates_of(inside, names), []
    with argument("against"):
        # Those that the files of candidates register are known now.
        beside = [judging.find("congestion control", n, known_controls()) for n in against]
    if begin is not None:
        begin([c.name for c in wanted], chosen)
    references = list(dict.fromkeys((*REFERENCES, *beside)))
    whole = [c.name for c in wanted if not c.broken]
    planned: dict[str, str] = {
        name: name if stack is None else Own(name, INSIDE, label=name) for name in references
    }
    planned |= {c.name: c.algorithm for c in wanted if not c.broken}
    algorithms = list(planned.values())
    jobs, scenarios = plan(
        algorithms, chosen, criteria, judged=whole, stacks=known, workers=workers
    )
    if whole and not jobs:
        told = "; ".join(
            f"{c.id} is for {', '.join(c.algorithms)}" for c in criteria if c.algorithms
        )
        silent = [c.over for c in wanted if c.over is not None and c.over.follows is None]
        if silent:
            told += "; " + "; ".join(not_said(own) for own in silent)
        msg = f"nothing to run for {', '.join(whole)}: {told or 'no criterion is of this profile'}"
        raise SweepError(msg)
    sweep = execute(
        jobs,
        store or STORE,
        measure="gargalo.evaluation.measure:measure",
        workers=workers,
        progress=progress,
        plugins=Plugins.load([*files, *plugins]),
        name=f"evaluation-{chosen.name}",
        stall_s=stall_s,
        repair=repair,
    )
    frame = sweep.frame()
    cards = []
    for candidate in wanted:
        file = "" if candidate.file is None else str(candidate.file)
        if candidate.broken:
            cards.append(
                Scorecard(candidate.name, chosen, references, [], candidate.broken, file=file)
            )
            continue
        results = []
        for criterion in criteria:
            if chosen.name not in criterion.profiles or not criterion.applies_to(
                candidate.algorithm
            ):
                continue
            rows = frame.filter(pl.col("criterion") == criterion.id)
            over = candidate.over
            ran = over is None or any(c == criterion.id for c, _ in scenarios)
            unsaid = over is not None and over.follows is None and criterion.cases is not None
            if not ran and not unsaid:
                continue  # QUIC cannot do any of its cells.
            own = {
                name.removeprefix(f"{candidate.name} "): to_toml(dict(s))
                for (c, name), s in scenarios.items()
                if c == criterion.id and name.startswith(f"{candidate.name} ")
            }
            failed = judging.failures(sweep, criterion=criterion.id, algorithm=candidate.name)
            judged = scoring.result(
                criterion,
                candidate.name,
                rows,
                references,
                failed,
                own,
                over=candidate.over,
            )
            results.append(judged)
        seen = findings(sweep, results, [candidate.name, *references])
        cards.append(
            Scorecard(candidate.name, chosen, references, results, file=file, findings=seen)
        )
    return Evaluation(cards, sweep)


def interop_stacks() -> dict[str, Stack]:
    """Return all QUIC stacks by name."""
    from gargalo import interop

    return interop.known()


def findings(
    sweep: Sweep, results: Sequence[Result], algorithms: Sequence[str]
) -> list[audit.Finding]:
    """Return what the auditor found in the runs of some algorithms by the criteria of these results."""
    criteria = [r.criterion.id for r in results]
    among = pl.col("criterion").is_in(criteria) & pl.col("algorithm").is_in(list(algorithms))
    return judging.findings(sweep, sweep.frame().filter(among))
