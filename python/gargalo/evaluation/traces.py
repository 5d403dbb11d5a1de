"""Pictures of the runs in which a case of conformance was not met: a page for each, with the state of the control."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gargalo import _core
from gargalo.running import run

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.evaluation.model import CaseResult, Result
    from gargalo.evaluation.running import Scorecard

FOLDER = "cases"
RECORDED = {"record.events": True}
"""Beside what the scenarios of cases record."""


def add(card: Scorecard, folder: Path) -> Scorecard:
    """Write a page for each case that was not met, and return the scorecard with their addresses.

    A run is done again with what its control decided, with the first seed that shows it. A case of which no run could
    be done has none.

    Args:
        card: The scorecard.
        folder: Where it is written; the pages are in a directory in it.

    """
    results = [
        replace(result, cases=[_with_page(c, result, folder) for c in result.cases])
        for result in card.results
    ]
    return replace(card, results=results)


def _with_page(case: CaseResult, result: Result, folder: Path) -> CaseResult:
    frame = result.scores.frame
    if case.conforms is not False or not {"case", "conforms", "seed"} <= set(frame.columns):
        return case
    # Of a case alone, whose only label is its name.
    scenario = result.scenarios.get(f"case={case.id}")
    against = frame.filter(pl.col("case") == case.id, pl.col("conforms").not_())
    if scenario is None or against.is_empty():
        return case
    from gargalo.exploring import page

    try:
        done = run(scenario, seed=int(against["seed"][0]), set=RECORDED)
    except (_core.RunError, _core.ScenarioError):
        return case
    (folder / FOLDER).mkdir(exist_ok=True)
    address = f"{FOLDER}/{case.id}.html"
    (folder / address).write_text(page(done), encoding="utf-8")
    return replace(case, page=address)
