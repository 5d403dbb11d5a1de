"""From runs to verdicts: figures of each repeat, their intervals, and how they compare."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gargalo import metrics
from gargalo.evaluation.model import YARDSTICK, Outcome, Result, Scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.evaluation.model import CaseResult, Criterion, Figure, Verdict
    from gargalo.evaluation.stacks import Own
    from gargalo.judging import FailureReason


def scores(
    criterion: Criterion,
    algorithm: str,
    frame: pl.DataFrame,
    algorithms: Sequence[str],
    *,
    over: Own | None = None,
) -> Scores:
    """Return the figures of an algorithm and of the others in a criterion."""
    values: dict[str, dict[str, list[float | None]]] = {}
    constant = set()
    for name in dict.fromkeys((algorithm, *algorithms)):
        every = frame.filter(pl.col("algorithm") == name)
        rows = distinct(every)
        if rows.height < every.height:
            constant.add(name)
        own = values[name] = {f.name: [] for f in criterion.figures}
        for repeat in sorted(rows["repeat"].unique().to_list()):
            cells = rows.filter(pl.col("repeat") == repeat)
            for f in criterion.figures:
                own[f.name].append(f.of(cells))
    return Scores(algorithm, values, frame, criterion.figures, over, constant=frozenset(constant))


def distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of the first repeat alone if all others are the same runs again."""
    if "results_hash" not in rows.columns:
        return rows
    found = rows.group_by("repeat").agg(
        pl.col("results_hash").sort(), gaps=pl.col("results_hash").null_count()
    )
    if found.height < 2 or found["gaps"].sum() or found["results_hash"].n_unique() > 1:
        return rows
    return rows.filter(pl.col("repeat") == pl.col("repeat").min())


def outcome(figure: Figure, found: Scores, references: Sequence[str]) -> Outcome:
    """Compare a figure with the yardstick.

    Better or worse only if the interval of the difference says so (Welch's t test, 95%; where all repeats of one are
    the same runs, Student's of one sample) and the difference of the means is more than the figure's margin. One run of
    a side that is not a constant has no verdict.
    """
    own = found.interval(figure.name)
    others = {r: found.interval(figure.name, r) for r in references}
    yard = others.get(YARDSTICK)
    if own.mean is None:
        return Outcome(figure, own, others, "unknown")
    if figure.better == "neither" or yard is None or yard.mean is None:
        return Outcome(figure, own, others, "like")
    sides = found.side(figure.name), found.side(figure.name, YARDSTICK)
    gap = own.mean - yard.mean
    margin = max(figure.margin * abs(yard.mean), figure.least)
    low = high = None
    certain = True
    lists = [s for s in sides if isinstance(s, list)]
    if lists and min(map(len, lists)) < 2:
        return Outcome(figure, own, others, "no-verdict", gap)
    if lists:
        found_difference = metrics.difference(*sides)
        low, high = found_difference.low, found_difference.high
        # If all values of each side are equal, the difference is certain.
        certain = low is None or high is None or low > 0 or high < 0
    verdict: Verdict = "like"
    if abs(gap) > margin and certain:
        verdict = "better" if (gap < 0) == (figure.better == "less") else "worse"
    return Outcome(figure, own, others, verdict, gap, low, high)


def result(
    criterion: Criterion,
    algorithm: str,
    frame: pl.DataFrame,
    references: Sequence[str],
    failures: Sequence[FailureReason] = (),
    scenarios: Mapping[str, str] | None = None,
    *,
    over: Own | None = None,
) -> Result:
    """Judge an algorithm by a criterion.

    Its verdict is `failed` if runs could not be done, `fault` if something is wrong beyond comparison,
    `trade-off` if some figures are worse and others better, else what those that differ are; where cases of conformance
    are all there is, `conforms`.
    """
    found = scores(criterion, algorithm, frame, references, over=over)
    outcomes = [outcome(f, found, references) for f in criterion.figures]
    faults: list[str] = [] if failures and found.own().height == 0 else criterion.faults(found)
    cases: Sequence[CaseResult] = ()
    if criterion.cases is not None:
        conformance = criterion.cases(found)
        cases, found = conformance.cases, replace(found, frame=conformance.frame)
        if not failures or found.own().height:
            faults = [c.fault for c in cases if c.conforms is False]
    verdicts = [o.verdict for o in outcomes]
    differ = {v for v in verdicts if v in ("worse", "better")}
    verdict: Verdict = "trade-off" if len(differ) > 1 else differ.pop() if differ else "like"
    if not differ and "no-verdict" in verdicts:
        verdict = "no-verdict"
    if all(v == "unknown" for v in verdicts):
        verdict = "conforms" if any(c.conforms for c in cases) else "unknown"
    if faults:
        verdict = "fault"
    if failures:
        verdict = "failed"
    return Result(criterion, verdict, outcomes, faults, found, failures, scenarios or {}, cases)
