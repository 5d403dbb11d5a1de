"""What a case of conformance is, and the criterion that a specification's cases make.

Conformance does not compare: a case says what a specification requires, runs it, and says whether that was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from gargalo.evaluation.criteria.conformance.networks import DELAYED_PACKETS
from gargalo.evaluation.criteria.conformance.seen import labelled
from gargalo.evaluation.model import CaseResult, Cell, Conformance, Criterion
from gargalo.evaluation.stacks import Own, not_said

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
NOT_TOLD = "the stack does not tell its phase"


@dataclass(frozen=True)
class Finding:
    """What the figures of a run say about a case."""

    conforms: bool | None
    """None: what was seen does not decide it."""
    seen: str
    """What was seen, with its numbers."""


@dataclass(frozen=True)
class Case:
    """What a specification requires of its algorithm, and how it is observed."""

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


def off(f: Figures, least: float = 0.0) -> float:
    """Return the share by which a figure may differ from what is expected: `least`, and more if it was inferred."""
    return least + f.get("slack", 0.0)


def whole(f: Figures, exact: int) -> range:
    """Return the counts that stand for one: those next to it too, if it was inferred."""
    more = 1 if f.get("slack") else 0
    return range(exact - more, exact + more + 1)


def within(f: Figures, value: float, bound: float) -> bool:
    """Whether bytes in flight keep a bound; inferred ones but for a delayed acknowledgement of some packets."""
    spare = DELAYED_PACKETS * f.get("packet_bytes", 0.0) if f.get("slack") else 0.0
    return value <= bound * (1 + off(f)) + spare


def partly(f: Figures, good: bool, seen: str, **asked: bool) -> Finding:
    """Judge what is seen and what else is required; a sender that does not report that leaves the case undecided.

    Args:
        f: The figures.
        good: Whether all that is seen is as expected.
        seen: What is seen.
        **asked: By the figure that is needed: whether it is as expected; false if it is missing.

    """
    missing = [name for name in asked if name not in f]
    if good and missing and f.get("slack") and all(asked[n] for n in asked if n in f):
        return Finding(None, f"{seen}; not told: {', '.join(missing)}")
    return Finding(bool(good and all(asked.values())), seen)


def named(case: Case, algorithm: str, seed: int) -> Json:
    """Return the scenario of a case, with the label by which its runs are known."""
    # Stored runs are identified by labels, not by the name of the scenario.
    label = f"{PREFIX}{case.id}"
    with labelled(label):
        made = case.scenario(algorithm, seed)
    flows = [{"label": label, **f} for f in made["flows"]]
    return {"name": case.id, **made, "flows": flows}


def cells(cases: Sequence[Case], plan: Plan) -> list[Cell]:
    """Return a cell for each case that applies to the algorithm."""
    name = name_of(plan.algorithm)
    if isinstance(name, Own) and name.follows is None:
        return []  # No run decides without a document to judge by.
    return [Cell({"case": c.id}, named(c, name, plan.seed)) for c in cases if name not in c.not_for]


def name_of(algorithm: Any) -> str:
    """Return the name of an algorithm in a scenario."""
    return algorithm if isinstance(algorithm, str) else next(iter(algorithm))


def is_case(run: Run) -> bool:
    """Whether a run is one of a case."""
    return label(run).startswith(PREFIX)


def label(run: Run) -> str:
    """Return the label of the first flow."""
    return next((f.label for f in run.setup.flows), "")


def figures_of(case: Case, seen: Seen) -> dict[str, float]:
    """Return what of a run a case looks at, with what is needed to judge figures that were inferred."""
    figures = case.look(seen) if seen.spans or not seen.slack else {"phases": 0.0}
    if seen.slack and figures:
        figures = {**figures, "slack": seen.slack, "packet_bytes": seen.packet_bytes}
    return {f"{COLUMN}{name}": float(v) for name, v in figures.items() if isfinite(v)}


def results(cases: Sequence[Case], scores: Scores) -> Conformance:
    """Judge each case by all runs of the algorithm; one run that does not conform decides."""
    by_id = {c.id: c for c in cases}
    own = scores.own()
    algorithm = scores.algorithm
    if scores.over is not None:
        if scores.over.follows is None:
            seen = not_said(scores.over)
            open_ = [CaseResult(c.id, c.title, c.section, c.expected, None, seen) for c in cases]
            return Conformance(open_, own)
        algorithm = scores.over.follows
    findings: dict[str, list[Finding]] = {}
    conforms, told = [], []
    for row in own.iter_rows(named=True):
        finding = judged(by_id[row["case"]], row, algorithm)
        findings.setdefault(row["case"], []).append(finding)
        conforms.append(finding.conforms)
        told.append(finding.seen)
    frame = own.with_columns(
        pl.Series("conforms", conforms, dtype=pl.Boolean), pl.Series("seen", told, dtype=pl.String)
    )
    return Conformance([of(c, findings.get(c.id, []), algorithm) for c in cases], frame)


def of(case: Case, findings: Sequence[Finding], algorithm: str) -> CaseResult:
    """Return the result of a case."""
    said = partial(CaseResult, case.id, case.title, case.section, case.expected)
    if algorithm in case.not_for:
        return said(None, f"not applicable to {case.not_for[algorithm]}")
    if not findings:
        return said(False, "no run, it could not be done")
    against = [f for f in findings if f.conforms is False]
    if not against:
        undecided = next((f for f in findings if f.conforms is None), None)
        return said(True, findings[0].seen) if undecided is None else said(None, undecided.seen)
    runs = f" (in {len(against)} of {len(findings)} runs)" if len(findings) > 1 else ""
    return said(False, against[0].seen + runs)


def judged(case: Case, row: Mapping[str, Any], algorithm: str) -> Finding:
    """Judge one run of a case by its row."""
    figures = {
        name.removeprefix(COLUMN): float(value)
        for name, value in row.items()
        if name.startswith(COLUMN) and value is not None and isfinite(value)
    }
    if "phases" in figures:
        return Finding(None, NOT_TOLD)
    try:
        return case.judge(figures, algorithm)
    except KeyError as e:
        conforms = None if figures.get("slack") else False
        return Finding(conforms, f"a run in which {e.args[0]} has no value")


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
