"""What a case of conformance is, and the criterion that a specification's cases make.

Conformance does not compare: a case says what a specification asks, runs it, and says whether that was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from gargalo.evaluation.model import CaseResult, Cell, Conformance, Criterion
from gargalo.evaluation.stacks import Own, specification

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gargalo.evaluation.criteria.conformance.outside import Outside
    from gargalo.evaluation.criteria.conformance.seen import Seen
    from gargalo.evaluation.model import Plan, Scores
    from gargalo.results import Run

Json: TypeAlias = dict[str, Any]
Figures: TypeAlias = "Mapping[str, float]"
PREFIX = "conformance "
"""Prefix of the labels of their flows, which say what is measured of a run."""
COLUMN = "seen."
"""Prefix of the columns of their figures."""


@dataclass(frozen=True)
class Finding:
    """What the figures of a run say about a case."""

    conforms: bool | None
    """None: what was seen does not decide it."""
    seen: str
    """What was seen, with its numbers."""


@dataclass(frozen=True)
class Case:
    """What a specification asks of its algorithm, and how it is seen."""

    id: str
    title: str
    section: str
    """Where the specification says it."""
    expected: str
    """What must be seen, with its numbers."""
    scenario: Callable[[str, int], Json]
    """Of an algorithm and a seed; without its name and seed."""
    look: Callable[[Seen], Figures]
    """What a run shows, SI units; what has no value is missing for `judge`, as what could not be seen."""
    judge: Callable[[Figures, str], Finding]
    """Of these figures and the algorithm."""
    not_for: Mapping[str, str] = field(default_factory=dict)
    """Algorithms that it does not apply to, and why; continues "not applicable to …: "."""


def named(case: Case, algorithm: str, seed: int) -> Json:
    """Return the scenario of a case, with the label by which its runs are known."""
    made = case.scenario(algorithm, seed)
    # Stored runs are identified by labels, not by the name of the scenario.
    flows = [{"label": f"{PREFIX}{case.id}", **f} for f in made["flows"]]
    return {"name": case.id, **made, "flows": flows}


def cells(cases: Sequence[Case], plan: Plan) -> list[Cell]:
    """Return a cell for each case that applies to the algorithm, and can be seen."""
    name = name_of(plan.algorithm)
    wanted = [c for c in cases if name not in c.not_for]
    if isinstance(name, Own):
        wanted = [c for c in wanted if c.id in outside()]
    return [Cell({"case": c.id}, named(c, name, plan.seed)) for c in wanted]


@cache
def outside() -> Mapping[str, Outside]:
    """Return how cases are seen of an algorithm that does not show its state."""
    from gargalo.evaluation.criteria.conformance.outside import OUTSIDE

    return OUTSIDE


def is_foreign(run: Run) -> bool:
    """Whether the algorithm of a run is one of a QUIC stack."""
    return any(f["transport"] == "quic" for f in run.flows.select("transport").to_dicts())


def name_of(algorithm: Any) -> str:
    """Return the name of an algorithm in a scenario."""
    return algorithm if isinstance(algorithm, str) else next(iter(algorithm))


@cache
def registry() -> dict[str, Case]:
    """Return all cases by identifier."""
    from gargalo.evaluation.criteria.conformance import CASES

    return {c.id: c for c in CASES}


def is_case(run: Run) -> bool:
    """Whether a run is one of a case."""
    return label(run).startswith(PREFIX)


def label(run: Run) -> str:
    """Return the label of the first flow."""
    return next((f.label for f in run.setup.flows), "")


def measure(run: Run) -> dict[str, float]:
    """Return what a run shows of its case; what has no value (a bound that is not set) is left out."""
    from gargalo.evaluation.criteria.conformance.seen import Seen

    case = registry()[label(run).removeprefix(PREFIX)]
    if is_foreign(run):
        from gargalo.evaluation.criteria.conformance.outside import seen_of

        figures = outside()[case.id].look(seen_of(run))
    else:
        figures = case.look(Seen.of(run))
    return {f"{COLUMN}{name}": float(v) for name, v in figures.items() if isfinite(v)}


def results(cases: Sequence[Case], scores: Scores) -> Conformance:
    """Judge each case by all runs of the algorithm; one run that does not conform decides."""
    by_id: dict[str, Case | Outside] = {c.id: c for c in cases}
    algorithm = scores.algorithm
    if scores.of_stack:
        by_id |= outside()
        algorithm = specification(algorithm)
    own = scores.own()
    findings: dict[str, list[Finding]] = {}
    conforms, seen = [], []
    for row in own.iter_rows(named=True):
        finding = judged(by_id[row["case"]], row, algorithm)
        findings.setdefault(row["case"], []).append(finding)
        conforms.append(finding.conforms)
        seen.append(finding.seen)
    frame = own.with_columns(
        pl.Series("conforms", conforms, dtype=pl.Boolean), pl.Series("seen", seen, dtype=pl.String)
    )
    seen_cases = outside() if scores.of_stack else by_id
    return Conformance(
        [of(c, findings.get(c.id, []), algorithm, is_seen=c.id in seen_cases) for c in cases], frame
    )


def of(case: Case, findings: Sequence[Finding], algorithm: str, *, is_seen: bool) -> CaseResult:
    """Return the result of a case."""
    said = partial(CaseResult, case.id, case.title, case.section, case.expected)
    if algorithm in case.not_for:
        return said(None, f"not applicable to {case.not_for[algorithm]}")
    if not is_seen:
        from gargalo.evaluation.criteria.conformance.outside import NOT_SEEN

        return said(None, NOT_SEEN)
    if not findings:
        return said(False, "no run, it could not be done")
    against = [f for f in findings if f.conforms is False]
    if not against:
        undecided = next((f for f in findings if f.conforms is None), None)
        return said(True, findings[0].seen) if undecided is None else said(None, undecided.seen)
    runs = f" (in {len(against)} of {len(findings)} runs)" if len(findings) > 1 else ""
    return said(False, against[0].seen + runs)


def judged(case: Case | Outside, row: Mapping[str, Any], algorithm: str) -> Finding:
    """Judge one run of a case by its row."""
    figures = {
        name.removeprefix(COLUMN): float(value)
        for name, value in row.items()
        if name.startswith(COLUMN) and value is not None and isfinite(value)
    }
    try:
        return case.judge(figures, algorithm)
    except KeyError as e:
        return Finding(False, f"a run in which {e.args[0]} has no value")


def criterion(
    name: str,
    title: str,
    section: str,
    does: str,
    algorithms: Sequence[str],
    cases: Sequence[Case],
    repeat: int | None = None,
    *,
    of_stacks: bool = False,
) -> Criterion:
    """Make the criterion of a specification's cases."""
    return Criterion(
        name,
        title,
        section,
        "should",
        "An implementation does what its specification says.",
        does,
        partial(cells, cases),
        (),
        group="conformance",
        algorithms=algorithms,
        cases=partial(results, cases),
        repeat=repeat,
        of_stacks=of_stacks,
    )
