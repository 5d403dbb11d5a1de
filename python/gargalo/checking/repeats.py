"""A sweep as a test: what its cells have to show, by the means, the intervals or each of their repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gargalo.checking.checked import Checked
from gargalo.checking.expectations import Outcome, holds, written
from gargalo.checking.faults import Fault
from gargalo.metrics import mean_interval
from gargalo.quantities import measured

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gargalo.checking.checks import Case
    from gargalo.metrics import Interval

MOST_KEPT = 3
"""Cells of which a run is kept."""


def of_sweep(
    file: Path, cases: Sequence[Case], results: Sequence[Checked]
) -> tuple[Checked, list[Case]]:
    """Return what came of a sweep, and runs that show what is not as expected.

    Args:
        file: The sweep.
        cases: Its runs.
        results: What came of each.

    """
    cells: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        cells.setdefault(case.cell, []).append(number)
    outcomes: list[Outcome] = []
    faults: list[Fault] = []
    wrong: dict[str, None] = {}
    shows: list[Case] = []
    for cell, numbers in cells.items():
        runs = [results[n] for n in numbers]
        wrong.update(dict.fromkeys(text for run in runs for text in run.wrong))
        own = [
            Fault(fault.kind, f"{cell}: repeat {repeat}: {fault.text}")
            for repeat, run in enumerate(runs)
            for fault in run.faults
        ]
        found = [replace(o, cell=cell) for o in over_repeats(runs)]
        faults += own
        outcomes += found
        if own or not all(o.met for o in found):
            bad = [n for n, run in zip(numbers, runs, strict=True) if not run.passed]
            shows.append(cases[(bad or numbers)[0]])
    checked = Checked(
        str(file),
        outcomes=tuple(outcomes),
        faults=tuple(faults),
        wrong=tuple(wrong),
        wall_s=sum(run.wall_s for run in results),
        lines=results[0].lines if results else (),
    )
    return checked, shows[:MOST_KEPT]


def over_repeats(runs: Sequence[Checked]) -> list[Outcome]:
    """Return what came of each expectation of a cell, in the order of the scenario."""
    same: dict[tuple[int, str, str], list[Outcome]] = {}
    for run in runs:
        for outcome in run.outcomes:
            place = (outcome.number, outcome.metric, outcome.key)
            same.setdefault(place, []).append(outcome)
    return [_judged(outcomes) for outcomes in same.values()]


def _judged(outcomes: Sequence[Outcome]) -> Outcome:
    """Compare the repeats of a figure with its bound."""
    first, many = outcomes[0], len(outcomes)
    missed = [o for o in outcomes if not o.met]
    # Of shares, that of each run follows in brackets.
    bound = first.bound.partition(" (")[0]
    # Shares of nothing are no numbers, but a bound says whether they are met.
    of_nothing = any(o.level is None and o.value is not None and o.met for o in outcomes)
    if first.by == "each" or first.limit is None or of_nothing:
        shown = missed[0] if missed else first
        of = f" in {len(missed)} of {many} repeats" if missed and many > 1 else ""
        text = f"{written(shown.metric, shown.value)}{of}"
        return replace(shown, bound=bound, met=not missed, shown=text)
    levels = [o.level for o in outcomes if o.level is not None]
    unknown = many - len(levels)
    if unknown:
        text = f"not known in {unknown} of {many} repeats"
        return replace(first, bound=bound, value=None, met=False, shown=text)
    interval = mean_interval(levels)
    mean = interval.mean
    met = holds(first.key, mean, first.limit)
    if first.by == "interval" and interval.low is not None:
        ends = (interval.low, interval.high)
        met = all(holds(first.key, end, first.limit) for end in ends)
    elif first.by == "interval" and not _are_the_same(levels):
        met = False
    return replace(first, bound=bound, value=mean, met=met, shown=_shown(first, interval, levels))


def _shown(outcome: Outcome, interval: Interval, levels: Sequence[float]) -> str:
    """Write a mean and its interval."""

    def told(value: float | None) -> str:
        is_share = outcome.level != outcome.value
        return measured(value, "%") if is_share else written(outcome.metric, value)

    if len(levels) == 1:
        return told(interval.mean)
    if interval.low is not None:
        ends = f", 95%: {told(interval.low)} to {told(interval.high)}"
    elif _are_the_same(levels):
        ends = ", all the same"
    else:
        ends = ", too few for an interval"
    return f"{told(interval.mean)} (mean of {len(levels)}{ends})"


def _are_the_same(levels: Sequence[float]) -> bool:
    return len(levels) > 1 and min(levels) == max(levels)
