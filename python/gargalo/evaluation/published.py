"""The scorecards of all built-in algorithms as pages of the documentation.

`python -m gargalo.evaluation.published docs` writes `docs/scorecards/index.md`, a table that compares them, and
a page for each; runs are kept in a store, so that only what has changed is done again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.evaluation import records
from gargalo.evaluation.criteria import CRITERIA
from gargalo.evaluation.model import VERDICTS, YARDSTICK
from gargalo.evaluation.running import STORE, evaluate
from gargalo.metrics.intervals import ENOUGH
from gargalo.reporting.quantities import measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gargalo.evaluation.running import Scorecard

BOLD = ("fault", "failed")
SIGNS = {v: f"**{m.sign}**" if v in BOLD else m.sign for v, m in VERDICTS.items()}
MARK = "<!-- Made by `python -m gargalo.evaluation.published`; do not edit. -->\n\n"


def names() -> list[str]:
    """Return all built-in algorithms."""
    return sorted(str(c["name"]) for c in _core.congestion())


def index(cards: Sequence[Scorecard]) -> str:
    """Return the page that compares: a row for each criterion, a column for each algorithm."""
    profile = cards[0].profile
    head = " | ".join(f"[{c.algorithm}]({c.algorithm}.md)" for c in cards)
    lines = [
        MARK + "# Scorecards",
        "",
        f"All built-in congestion controls by the criteria of RFC 9743, profile `{profile.name}` "
        f"({profile.repeat} runs of each cell), made by `make scorecards`. Signs compare with {YARDSTICK} on the same "
        "points and are advisory: - worse in some figure and better in none, ⇅ better in some and worse in others, = like, + better and nowhere worse, **✗** a fault beyond "
        "comparison; ✓ does what its own specification says (nothing: there are no cases for it). How they come about: [Evaluating a congestion control](../evaluate.md).",
        "",
        f"| criterion | RFC 9743 | {head} |",
        "| --- | --- |" + " --- |" * len(cards),
    ]
    # In their own order, those of some algorithms only among them.
    judged = {r.criterion.id for card in cards for r in card.results}
    for c in (c for c in CRITERIA if c.id in judged):
        verdicts = [
            next((r.verdict for r in card.results if r.criterion.id == c.id), None)
            for card in cards
        ]
        signs = " | ".join("" if v is None else SIGNS[v] for v in verdicts)
        lines.append(
            f"| {c.title} | {c.section.removeprefix('RFC 9743 ')} {c.strength} | {signs} |"
        )
    faults = [
        f"- **{card.algorithm}**, {r.criterion.title.lower()}: {fault}."
        for card in cards
        for r in card.results
        for fault in r.faults
    ]
    if faults:
        lines += ["", "## Faults", "", *faults]
    return "\n".join(lines) + "\n"


def page(card: Scorecard) -> str:
    """Return the page of an algorithm: every figure beside those of the references."""
    references = [r for r in card.references if r != card.algorithm]
    how = "means with 95% intervals (Student's t, within what a figure can be)"
    if card.profile.repeat < ENOUGH:
        how = f"means (intervals n/a, needs {ENOUGH} repeats)"
    lines = [
        MARK + f"# Scorecard of {card.algorithm}",
        "",
        f"Profile `{card.profile.name}`, {card.profile.repeat} runs of each cell; {how}. "
        f"`gargalo evaluate {card.algorithm}` makes it with pictures and the scenarios of all cells. "
        "[All scorecards](index.md).",
    ]
    for result in card.results:
        c = result.criterion
        lines += [
            "",
            f"## {SIGNS[result.verdict].strip('*')} {c.title}",
            "",
            f"{c.section}, {c.strength}. {c.does}",
            "",
            *(f"**Fault: {f}.**\n" for f in result.faults),
        ]
        if result.cases:
            lines += ["| case | verdict | seen | expected |", "| --- | --- | --- | --- |"]
            lines += [
                f"| {k.title} | {k.verdict} | {'' if k.conforms is None else k.seen} | {k.seen if k.conforms is None else k.expected} |"
                for k in result.cases
            ]
        if not result.outcomes:
            continue
        lines += [
            f"| figure | {card.algorithm} | | {' | '.join(references)} |",
            "| --- |" + " --- |" * (2 + len(references)),
        ]
        for outcome in result.outcomes:
            figure = records.figure(outcome, result)
            values = [written(figure["references"][r], figure["unit"]) for r in references]
            own = written(figure, figure["unit"])
            sign = SIGNS[outcome.verdict]
            lines.append(f"| {outcome.figure.text} | {own} | {sign} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def written(value: Mapping[str, Any], unit: str) -> str:
    """Write a mean with its interval."""
    if value["mean"] is None:
        return "—"
    text = measured(value["mean"], unit)
    if value["low"] is None or value["high"] is None or value["low"] == value["high"]:
        return text
    return f"{text} [{measured(value['low'], unit)}, {measured(value['high'], unit)}]"


def main() -> None:
    """Evaluate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--store", type=Path, default=STORE)
    given = parser.parse_args()
    found = evaluate(names(), profile=given.profile, repeat=given.repeat, store=given.store)
    folder = given.docs / "scorecards"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.md").write_text(index(found.scorecards), encoding="utf-8")
    for card in found.scorecards:
        (folder / f"{card.algorithm}.md").write_text(page(card), encoding="utf-8")
    facts = {
        "runs": found.sweep.plan.height,
        "packets": found.sweep.packets,
        "wall_s": found.sweep.wall_s,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
