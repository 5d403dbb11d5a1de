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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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

    conforms: bool
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
    """Return a cell for each case that applies to the algorithm."""
    name = name_of(plan.algorithm)
    return [Cell({"case": c.id}, named(c, name, plan.seed)) for c in cases if name not in c.not_for]


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
    return {
        f"{COLUMN}{name}": float(v) for name, v in case.look(Seen.of(run)).items() if isfinite(v)
    }


def results(cases: Sequence[Case], scores: Scores) -> Conformance:
    """Judge each case by all runs of the algorithm; one run that does not conform decides."""
    by_id = {c.id: c for c in cases}
    own = scores.own()
    findings: dict[str, list[Finding]] = {}
    conforms, seen = [], []
    for row in own.iter_rows(named=True):
        finding = judged(by_id[row["case"]], row, scores.algorithm)
        findings.setdefault(row["case"], []).append(finding)
        conforms.append(finding.conforms)
        seen.append(finding.seen)
    frame = own.with_columns(
        pl.Series("conforms", conforms, dtype=pl.Boolean), pl.Series("seen", seen, dtype=pl.String)
    )
    return Conformance([of(c, findings.get(c.id, []), scores.algorithm) for c in cases], frame)


def of(case: Case, findings: Sequence[Finding], algorithm: str) -> CaseResult:
    """Return the result of a case."""
    said = partial(CaseResult, case.id, case.title, case.section, case.expected)
    if algorithm in case.not_for:
        return said(None, f"not applicable to {case.not_for[algorithm]}")
    if not findings:
        return said(False, "no run, it could not be done")
    against = [f for f in findings if not f.conforms]
    if not against:
        return said(True, findings[0].seen)
    runs = f" (in {len(against)} of {len(findings)} runs)" if len(findings) > 1 else ""
    return said(False, against[0].seen + runs)


def judged(case: Case, row: Mapping[str, Any], algorithm: str) -> Finding:
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
    )
