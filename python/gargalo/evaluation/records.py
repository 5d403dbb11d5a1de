"""The scorecard as JSON, and what became worse since an earlier one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from gargalo import _core, metrics, reading
from gargalo.evaluation.model import YARDSTICK
from gargalo.evaluation.questions import QUESTIONS
from gargalo.metrics._numbers import finite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gargalo.evaluation.model import CaseResult, Outcome, Result
    from gargalo.evaluation.running import Scorecard
    from gargalo.metrics import Interval

FORMAT = 2
"""Version of the JSON; raised when readers of the former version would read it wrongly."""


class BaselineError(ValueError):
    """A baseline that cannot be read, or is of another evaluation."""


def to_json(card: Scorecard) -> dict[str, Any]:
    """Return a scorecard as plain values, SI units; equal scorecards give equal values."""
    return {
        "format": FORMAT,
        "engine": _core.__engine__,
        "algorithm": card.algorithm,
        "profile": card.profile.name,
        "repeat": card.profile.repeat,
        "references": list(card.references),
        "yardstick": YARDSTICK,
        "broken": card.broken or None,
        "criteria": [criterion(r) for r in card.results],
        "findings": [f.to_json() for f in card.findings],
        "questions": [
            {"section": q.section, "strength": q.strength, "text": q.text} for q in QUESTIONS
        ],
        **({"facts": dict(card.facts)} if card.facts else {}),
    }


def criterion(result: Result) -> dict[str, Any]:
    """Return the result of a criterion."""
    c = result.criterion
    return {
        "id": c.id,
        "title": c.title,
        "section": c.section,
        "strength": c.strength,
        "group": c.group,
        "verdict": result.verdict,
        "faults": list(result.faults),
        "failures": [asdict(f) for f in result.failures],
        "figures": [figure(o, result) for o in result.outcomes],
        "cells": sorted(result.scenarios),
        **({"cases": [case(k) for k in result.cases]} if result.cases else {}),
    }


def case(found: CaseResult) -> dict[str, Any]:
    """Return the result of a case of conformance."""
    return {
        "id": found.id,
        "title": found.title,
        "section": found.section,
        "verdict": found.verdict,
        "expected": found.expected,
        "seen": found.seen,
        **({"page": found.page} if found.page else {}),
    }


def figure(outcome: Outcome, result: Result) -> dict[str, Any]:
    """Return the result of a figure."""
    f, scores = outcome.figure, result.scores
    return {
        "name": f.name,
        "text": f.text,
        "unit": f.unit,
        "better": f.better,
        "margin": f.margin,
        "least": f.least,
        "bounds": [finite(b) for b in f.bounds],
        "verdict": outcome.verdict,
        "constant": scores.algorithm in scores.constant,
        "values": [finite(v) for v in scores.values[scores.algorithm][f.name]],
        **interval(outcome.own),
        "difference": finite(outcome.difference),
        "difference_low": finite(outcome.low),
        "difference_high": finite(outcome.high),
        "references": {name: interval(i) for name, i in outcome.references.items()},
    }


def interval(i: Interval) -> dict[str, Any]:
    """Return a mean with its interval; `reason` says why there is none."""
    found = {"mean": finite(i.mean), "low": finite(i.low), "high": finite(i.high), "n": i.n}
    return {**found, **({"reason": i.reason} if i.reason else {})}


@dataclass(frozen=True)
class Change:
    """How a criterion or figure differs from a baseline."""

    kind: Literal["worse", "better", "no verdict", "new fault", "mended", "new failure", "gone"]
    criterion: str
    figure: str
    text: str
    """A sentence with both values."""

    @property
    def is_regression(self) -> bool:
        """Whether something became worse."""
        return self.kind in ("worse", "new fault", "new failure", "gone")


def read(path: Path) -> dict[str, Any]:
    """Read a scorecard that `gargalo evaluate` wrote.

    Raises:
        BaselineError: It cannot be read, or is not a scorecard.

    """
    try:
        found = json.loads(reading.data(path))
    except OSError as e:
        msg = f"{path}: cannot be read: {reading.reason(e)}"
        raise BaselineError(msg) from None
    except ValueError as e:
        msg = f"{path}: no JSON: {e}"
        raise BaselineError(msg) from None
    if not isinstance(found, dict) or "criteria" not in found or "format" not in found:
        msg = f"{path}: no scorecard; give a scorecard.json of `gargalo evaluate`"
        raise BaselineError(msg)
    if found["format"] != FORMAT:
        msg = f"{path}: a scorecard of format {found['format']}, not {FORMAT}; make it anew"
        raise BaselineError(msg)
    return found


def compare(baseline: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Return what differs beyond chance and beyond the figures' margins.

    Figures are compared by Welch's t test of their values (95%) where each has two or more, by that of one sample where
    one is a constant (all of its repeats are the same runs). Where one is of a single run a difference has no verdict.

    Raises:
        BaselineError: The baseline is of another profile.

    """
    if baseline["profile"] != now["profile"]:
        msg = (
            f"the baseline is of profile {baseline['profile']}, this is {now['profile']}: "
            "figures of different grids cannot be compared"
        )
        raise BaselineError(msg)
    changes: list[Change] = []
    present = {c["id"]: c for c in now["criteria"]}
    for old in baseline["criteria"]:
        name = old["id"]
        new = present.get(name)
        if new is None:
            continue  # Left out on purpose: by --only, or as a criterion that no longer exists.
        changes += faults(name, old, new)
        figures = {f["name"]: f for f in new["figures"]}
        for before in old["figures"]:
            after = figures.get(before["name"])
            if after is not None:
                changes += figure_change(name, before, after)
    return changes


def faults(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return faults and failures that are new or gone, each case of conformance separately."""
    found: list[Change] = []
    cases = {c["id"]: c for c in new.get("cases", ())}
    for before in old.get("cases", ()):
        after = cases.get(before["id"])
        if after is None or after["verdict"] == before["verdict"]:
            continue
        text = f"{after['title']}: {after['verdict']}: {after['seen']}"
        if after["verdict"] == "does not conform":
            found.append(Change("new fault", name, before["id"], text))
        elif before["verdict"] == "does not conform":
            found.append(Change("mended", name, before["id"], text))
    if new["faults"] and not old["faults"] and not found:
        found.append(Change("new fault", name, "", "; ".join(new["faults"])))
    if old["faults"] and not new["faults"] and not found:
        found.append(Change("mended", name, "", "; ".join(old["faults"])))
    if new["failures"] and not old["failures"]:
        found.append(Change("new failure", name, "", new["failures"][0]["reason"]))
    return found


def figure_change(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return how a figure changed, if it did."""
    a, b = values(after), values(before)
    if not b:
        return []
    if not a:
        return [Change("gone", name, before["name"], f"{before['text']}: not measured any more")]
    gap = sum(a) / len(a) - sum(b) / len(b)
    margin = max(before["margin"] * abs(sum(b) / len(b)), before["least"])
    if before["better"] == "neither" or abs(gap) <= margin:
        return []
    sides = [v[0] if f.get("constant") else v for f, v in ((after, a), (before, b))]
    lists = [s for s in sides if isinstance(s, list)]
    if lists and min(map(len, lists)) < 2:
        text = (
            f"{before['text']}: {written(after)} (baseline {written(before)}); one run: no verdict"
        )
        return [Change("no verdict", name, before["name"], text)]
    if lists:
        found = metrics.difference(*sides)
        if found.low is not None and found.high is not None and found.low <= 0 <= found.high:
            return []
    better = (gap < 0) == (before["better"] == "less")
    text = f"{before['text']}: {written(after)} (baseline {written(before)})"
    return [Change("better" if better else "worse", name, before["name"], text)]


def values(figure: Mapping[str, Any]) -> list[float]:
    """Return the values of the repeats that have one."""
    return [float(v) for v in figure["values"] if v is not None]


def written(figure: Mapping[str, Any]) -> str:
    """Write a figure with its interval."""
    from gargalo.quantities import measured

    unit = figure["unit"]
    if figure["low"] is None or figure["high"] is None:
        return measured(figure["mean"], unit)
    low, high = measured(figure["low"], unit), measured(figure["high"], unit)
    return f"{measured(figure['mean'], unit)} [{low}, {high}]"
