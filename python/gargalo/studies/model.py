"""What a study consists of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from gargalo.judging import Profile, find, select
from gargalo.metrics import Interval, mean_interval
from gargalo.metrics.intervals import ANY, POSITIVE
from gargalo.reporting.model import Evidence, FigureBlock, TableBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from gargalo.metrics._numbers import Numbers
    from gargalo.metrics.intervals import Bounds
    from gargalo.reporting.model import Verdict
    from gargalo.scenarios.tables import ScenarioTable
    from gargalo.sweeps.job import Job


@dataclass(frozen=True)
class Experiment:
    """A set of runs of one kind; its runs carry the label `experiment`."""

    name: str
    title: str
    jobs: Callable[[Profile], list[Job]]


@dataclass(frozen=True)
class Finding:
    """The result of a claim."""

    verdict: Verdict
    evidence: Sequence[Evidence] | str
    explanation: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence of the work, and how to decide it.

    The check sees all results of one reading. `because` is our explanation of a contradiction in the study's first
    reading, shown only then.
    """

    id: str
    text: str
    check: Callable[[Context], Finding]
    because: str = ""
    experiments: Sequence[str] = ()
    """Whose runs the check sees: what a reading that tries this claim repeats."""


@dataclass(frozen=True)
class Reading:
    """One way to repeat a work: the stack of its hosts, and what its text leaves open.

    A study with readings repeats its runs in each of them, with the label `reading`. The first reading is the stack
    of the work's time; claims are judged in all that do not name claims, and those that do are hypotheses, tried on
    these claims.
    """

    name: str
    title: str
    description: str
    """What it changes, and the source, in a sentence."""
    apply: Callable[[ScenarioTable], ScenarioTable] = lambda scenario: scenario
    """Makes its scenario of a copy of the study's. Default: the same."""
    claims: Sequence[str] | None = None
    """Identifiers of the claims that it tries."""
    cells: Callable[[Mapping[str, Any]], bool] | None = None
    """Which of the runs it repeats, by their labels. Default: all."""

    def judges(self, claim: Claim) -> bool:
        """Whether it decides a claim."""
        return self.claims is None or claim.id in self.claims


@dataclass(frozen=True)
class Context:
    """What checks, figures and tables see."""

    profile: Profile
    frame: pl.DataFrame
    """One row per run: labels and metrics."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What this machine cannot do, by what needs it (`lab`, `lab: bbr`), and why."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """As the study declares them."""

    def of(self, reading: Reading) -> Context:
        """Return what there is of a reading."""
        return replace(self, frame=select(self.frame, {"reading": reading.name}))

    def experiment(self, name: str, **labels: object) -> pl.DataFrame:
        """Return the runs of an experiment, of those with these labels only."""
        return select(self.frame, {"experiment": name, **labels})

    def interval(self, metric: str, experiment: str, **labels: object) -> Interval:
        """Return a metric's mean over the repeats of a cell with its 95% interval, within the metric's bounds."""
        rows = self.experiment(experiment, **labels)
        values = rows[metric].drop_nulls().to_list() if metric in rows.columns else []
        return self.interval_of(metric, [float(v) for v in values if v == v])

    def interval_of(self, metric: str, values: Numbers) -> Interval:
        """Return the mean of values of a metric with its 95% interval, within the metric's bounds."""
        return mean_interval(values, bounds=self.bounds.get(metric.partition(".")[0], ANY))

    def mean(self, metric: str, experiment: str, **labels: object) -> float:
        """Return a metric's mean over the repeats of a cell; NaN without runs."""
        found = self.interval(metric, experiment, **labels).mean
        return float("nan") if found is None else found


@dataclass(frozen=True)
class Study:
    """A published work as experiments, claims, figures and tables."""

    name: str
    title: str
    summary: str
    """One line."""
    source: str
    """The work it reproduces."""
    description: str
    """What was done there, what is done here, in a few sentences."""
    measure: str
    """`module:function` that makes metrics of a run, called in the workers."""
    bounds: Mapping[str, Bounds]
    """The least and the greatest value of every metric, by its name up to the first dot."""
    profiles: Mapping[str, Profile]
    experiments: Sequence[Experiment]
    """A profile's setting `experiments` chooses among them."""
    claims: Sequence[Claim]
    figures: Callable[[Context], list[FigureBlock]]
    tables: Callable[[Context], list[TableBlock]]
    algorithms: Sequence[str] = ()
    """In the order of their dashes and markers."""
    prepare: Callable[[Profile, Path], Profile] | None = None
    """Makes in a directory the files that runs read; returns the profile that says where they are."""
    at_once: int = 1
    """Runs in the lab at the same time."""
    readings: Sequence[Reading] = ()
    """None if there is only one. A profile's setting `readings` chooses among them."""
    notes: Sequence[str] = ()

    def profile(self, name: str) -> Profile:
        """Return a profile.

        Raises:
            KeyError: There is none of that name.

        """
        return find("profile", name, self.profiles)

    def readings_of(self, profile: Profile) -> list[Reading]:
        """Return the readings that a profile chooses, in the study's order.

        Raises:
            KeyError: There is none of a name.

        """
        known = {r.name: r for r in self.readings}
        chosen = profile.settings.readings or list(known)
        wanted = [find("reading", name, known) for name in chosen]
        return [r for r in self.readings if r in wanted]

    def experiments_of(self, profile: Profile, reading: Reading | None = None) -> list[Experiment]:
        """Return the experiments that a profile chooses; of those a reading repeats the ones of the claims it tries.

        Raises:
            KeyError: There is none of a name.

        """
        known = {e.name: e for e in self.experiments}
        chosen = profile.settings.experiments or list(known)
        wanted = [find("experiment", name, known) for name in chosen]
        found = [e for e in self.experiments if e in wanted]
        if reading is None or reading.claims is None:
            return found
        tried = {e for c in self.claims if reading.judges(c) for e in c.experiments}
        return [e for e in found if e.name in tried]


def positive(values: Numbers) -> Interval:
    """Return the mean of rates, times or ratios of these with its 95% interval, which stays above zero."""
    return mean_interval(values, bounds=POSITIVE)


def by_repeat(rows: pl.DataFrame, metric: str = "rate_bps") -> dict[int, float]:
    """Return a metric of the runs of a cell by repeat; those without it are left out."""
    if rows.height == 0 or metric not in rows.columns:
        return {}
    return {int(r): float(x) for r, x in rows.select("repeat", metric).drop_nulls().iter_rows()}


def quotient(over: Mapping[int, float], under: Mapping[int, float]) -> Interval:
    """Return the mean over repeats of one value over another; a repeat has the same losses in both."""
    common = sorted(over.keys() & under.keys())
    found = [over[r] / under[r] for r in common if under[r] > 0]
    return positive([x for x in found if math.isfinite(x)])


def evidence(label: str, interval: Interval, *, unit: str = "", expected: str = "") -> Evidence:
    """Make a line of evidence of an interval."""
    return Evidence(
        label,
        interval.mean,
        interval.low,
        interval.high,
        unit=unit,
        n=interval.n,
        expected=expected,
    )


class Unmeasured(Exception):  # noqa: N818 (it ends a check and is not an error)
    """Runs that a claim needs were not done."""

    def __init__(self, why: str = "not all of the runs that this needs were done") -> None:
        super().__init__(why)


class Assessment:
    """Evidence and conditions of a claim, as its check collects them."""

    def __init__(self) -> None:
        self.lines: list[Evidence] = []
        self.conditions: list[tuple[bool | None, str]] = []
        """As `decide` takes them."""

    def show(self, label: str, interval: Interval, *, unit: str = "", expected: str = "") -> None:
        """Add a line of evidence."""
        self.lines.append(evidence(label, interval, unit=unit, expected=expected))

    def require(self, holds: bool | None, otherwise: str) -> None:
        """Add a condition, and what was found if it does not hold."""
        self.conditions.append((holds, otherwise))

    def measured(self, interval: Interval, *why: str) -> Interval:
        """Return an interval that the claim cannot do without.

        Raises:
            Unmeasured: It has no mean.

        """
        if interval.mean is None:
            raise Unmeasured(*why)
        return interval


def assessed(
    check: Callable[[Context, Assessment], None],
) -> Callable[[Context], Finding]:
    """Make the check of a claim of a function that collects evidence and conditions."""

    @wraps(check)
    def decided(context: Context) -> Finding:
        case = Assessment()
        try:
            check(context, case)
        except Unmeasured as e:
            return inconclusive(case.lines, str(e))
        return decide(case.lines, case.conditions)

    return decided


def reproduced(lines: Sequence[Evidence] | str) -> Finding:
    """The claim holds."""
    return Finding("reproduced", lines)


def contradicted(lines: Sequence[Evidence] | str, explanation: str = "") -> Finding:
    """The claim does not hold."""
    return Finding("contradicted", lines, explanation)


def inconclusive(lines: Sequence[Evidence] | str, explanation: str = "") -> Finding:
    """The runs do not decide the claim."""
    return Finding("inconclusive", lines, explanation)


def decide(lines: Sequence[Evidence], conditions: Sequence[tuple[bool | None, str]]) -> Finding:
    """Reproduced if all conditions hold, inconclusive if one is unknown, else contradicted.

    Each condition has a text that says, if it does not hold, what was found instead.
    """
    unknown = [text for holds, text in conditions if holds is None]
    broken = [text for holds, text in conditions if holds is False]
    if broken:
        return contradicted(lines, "; ".join(broken))
    if unknown:
        return inconclusive(lines, "not decided whether: " + "; ".join(unknown))
    return reproduced(lines)


def below(interval: Interval, bound: float) -> bool | None:
    """Whether a mean is below a bound.

    None if it was not measured, or if the bound is within its interval. Fewer than three runs have none, and are judged
    by their mean.
    """
    if interval.mean is None or straddles(interval, bound):
        return None
    return interval.mean < bound


def above(interval: Interval, bound: float) -> bool | None:
    """Whether a mean is above a bound; see `below`."""
    if interval.mean is None or straddles(interval, bound):
        return None
    return interval.mean > bound


def straddles(interval: Interval, bound: float) -> bool:
    """Whether a bound is within an interval."""
    return bound in interval


def between(interval: Interval, low: float, high: float) -> bool | None:
    """Whether a mean is within bounds; see `below`."""
    parts = [above(interval, low), below(interval, high)]
    return False if False in parts else None if None in parts else True
