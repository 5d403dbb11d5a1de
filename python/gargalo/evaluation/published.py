"""The scorecards of all built-in algorithms, and of those of QUIC stacks, as pages of the documentation.

`python -m gargalo.evaluation.published docs` writes `docs/scorecards/index.md`, a table that compares them, what the
table shows as data beside it, and a page for each; runs are kept in a store, so that only what has changed is done
again. With `--stacks` it does so in `docs/scorecards/quic` for the algorithms of these stacks, or of all installed but
the one inside, whose algorithms are the built-in ones; what the data has of other stacks stays, and the table says
which engine made what. With `--stored` nothing is run: the table is written again from the data.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import _core, interop
from gargalo.evaluation import records
from gargalo.evaluation.criteria import CRITERIA
from gargalo.evaluation.model import VERDICTS, YARDSTICK
from gargalo.evaluation.running import STORE, evaluate
from gargalo.evaluation.stacks import INSIDE
from gargalo.metrics.intervals import ENOUGH
from gargalo.quantities import measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gargalo.evaluation.model import Verdict
    from gargalo.evaluation.running import Scorecard
    from gargalo.interop import Stack

SIGNS = {v: m.sign for v, m in VERDICTS.items()}
MARK = "<!-- Made by `python -m gargalo.evaluation.published`; do not edit. -->\n\n"
DATA = "verdicts.json"
"""What the table shows, beside it."""
WIDE = "---\nhide: [navigation, toc]\n---\n\n"
"""The table has the whole width of a page."""


@dataclass(frozen=True)
class Collection:
    """Scorecards that a table compares."""

    title: str
    """Of its table."""
    path: str
    """Of its folder, below the documentation's."""
    made_by: str
    """The command."""
    whose: str
    """Whose scorecards these are: what the table's first sentence begins with."""


BUILT_IN = Collection(
    "Scorecards", "scorecards", "make scorecards", "All built-in congestion controls"
)
OF_STACKS = Collection(
    "Scorecards of QUIC stacks",
    "scorecards/quic",
    "make stack-scorecards",
    "The [congestion controls of QUIC stacks](../../quic-stacks.md#scorecards-of-their-congestion-controls), over QUIC "
    "beside our Reno, CUBIC and BBR over QUIC,",
)


def names() -> list[str]:
    """Return all built-in algorithms."""
    return sorted(str(c["name"]) for c in _core.congestion())


def verdicts(cards: Sequence[Scorecard]) -> dict[str, Any]:
    """Return what the table shows: by criterion the verdict on each algorithm, and faults in words."""
    results = [(card.algorithm, r) for card in cards for r in card.results]
    judged = {r.criterion.id for _, r in results}
    return {
        "profile": cards[0].profile.name,
        "repeat": cards[0].profile.repeat,
        "algorithms": {card.algorithm: f"gargalo {_core.__engine__}" for card in cards},
        # In their own order, those of some algorithms only among them.
        "criteria": [
            {
                "title": c.title,
                "section": c.section,
                "strength": c.strength,
                "verdicts": {a: r.verdict for a, r in results if r.criterion.id == c.id},
            }
            for c in CRITERIA
            if c.id in judged
        ],
        "faults": [
            {"algorithm": a, "criterion": r.criterion.title, "fault": fault}
            for a, r in results
            for fault in r.faults
        ],
    }


def together(found: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was found, with what is stored of other algorithms, in the order of names.

    Raises:
        SystemExit: The others are of another profile, or of other numbers of runs.

    """
    others = {a: by for a, by in stored["algorithms"].items() if a not in found["algorithms"]}
    if others and any(found[key] != stored[key] for key in ("profile", "repeat")):
        msg = (
            f"{', '.join(others)} are of profile {stored['profile']} with {stored['repeat']} runs: "
            "make them again as well, or these in the same way"
        )
        raise SystemExit(msg)
    merged: dict[str, dict[str, Any]] = {}
    for part in (found, stored):
        for c in part["criteria"]:
            known = merged.setdefault(c["title"], {**c, "verdicts": {}})["verdicts"]
            known |= {a: v for a, v in c["verdicts"].items() if part is found or a in others}
    order = [c.title for c in CRITERIA if merged.get(c.title, {}).get("verdicts")]
    return {
        **found,
        # Stacks in the order of names, their algorithms in their own.
        "algorithms": dict(
            sorted((found["algorithms"] | others).items(), key=lambda a: a[0].split("-")[0])
        ),
        "criteria": [merged[title] for title in order],
        "faults": [*found["faults"], *(f for f in stored["faults"] if f["algorithm"] in others)],
    }


def makers(algorithms: Mapping[str, str]) -> str:
    """Return which engines made the scorecards: the one of most, then each other with what it made."""
    engines = sorted(set(algorithms.values()), key=lambda e: -list(algorithms.values()).count(e))
    first, *rest = engines
    told = [f"{', '.join(a for a, by in algorithms.items() if by == e)} by {e}" for e in rest]
    return f"by {first}" + (f" ({'; '.join(told)})" if told else "")


def index(found: Mapping[str, Any], collection: Collection = BUILT_IN) -> str:
    """Return the page that compares: a row for each criterion, a column for each algorithm."""
    algorithms = found["algorithms"]
    up = "/".join([".."] * len(Path(collection.path).parts))
    shown = {v for c in found["criteria"] for v in c["verdicts"].values()}
    lines = [
        WIDE + MARK + f"# {collection.title}",
        "",
        f"{collection.whose} by the criteria of RFC 9743, profile `{found['profile']}` "
        f"({found['repeat']} runs of each cell), made by `{collection.made_by}` {makers(algorithms)}. "
        f"Signs compare with {YARDSTICK} on the same points and are advisory: "
        f"[what they mean]({up}/evaluate.md#verdicts).",
        "",
        ", ".join(f"{cell(v)} {v}" for v in VERDICTS if v in shown),
        "",
        '<div class="matrix" markdown>',
        "",
        f"| criterion | RFC 9743 | {' | '.join(f'[{a}]({a}.md)' for a in algorithms)} |",
        "| --- | --- |" + " --- |" * len(algorithms),
    ]
    for c in found["criteria"]:
        section = re.sub(r"^RFC 9743 | \(.*\)|, [A-Z].*|;.*", "", c["section"])
        cells = " | ".join(cell(c["verdicts"].get(a)) for a in algorithms)
        lines.append(f"| {c['title']} | {section} {c['strength']} | {cells} |")
    lines += ["", "</div>"]
    if found["faults"]:
        told = [f"- **{f['algorithm']}**, {f['criterion']}: {f['fault']}." for f in found["faults"]]
        lines += ["", "## Faults", "", *told]
    return "\n".join(lines) + "\n"


def cell(verdict: Verdict | None) -> str:
    """Return a verdict as a sign with a colour; the sign says it without the colour, too."""
    if verdict is None:
        return ""
    return f'<abbr class="{verdict}" title="{verdict}">{SIGNS[verdict]}</abbr>'


def page(card: Scorecard, named: str | None = None) -> str:
    """Return the page of an algorithm: every figure beside those of the references.

    Args:
        card: Its scorecard.
        named: What `gargalo evaluate` calls it, if that is not its name on the scorecard.

    """
    references = [r for r in card.references if r != card.algorithm]
    how = "means with 95% intervals (Student's t, within what a figure can be)"
    if card.profile.repeat < ENOUGH:
        how = f"means (intervals n/a, needs {ENOUGH} repeats)"
    lines = [
        MARK + f"# Scorecard of {card.algorithm}",
        "",
        f"Profile `{card.profile.name}`, {card.profile.repeat} runs of each cell; {how}. "
        f"`gargalo evaluate {named or card.algorithm}` makes it with pictures and the scenarios of all cells. "
        "[All scorecards](index.md).",
    ]
    for result in card.results:
        c = result.criterion
        lines += [
            "",
            f"## {SIGNS[result.verdict]} {c.title}",
            "",
            f"{c.section}, {c.strength}. {c.does}",
            "",
            *(f"**Fault: {f}.**\n" for f in result.faults),
        ]
        if result.cases:
            lines += ["| case | verdict | seen | expected |", "| --- | --- | --- | --- |"]
            lines += [
                f"| {k.title} | {k.verdict} | {'' if k.conforms is None else k.seen} | "
                f"{k.seen if k.conforms is None else k.expected} |"
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


def chosen(names: Sequence[str]) -> list[Stack]:
    """Return the stacks of these names, or all but the one inside.

    Raises:
        SystemExit: One is not installed, or cannot be loaded.

    """
    known = interop.known()
    missing = [n for n in names if n not in known]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not installed; there are {', '.join(known)}")
    stacks = [known[n] for n in names] or [s for s in known.values() if s.name != INSIDE]
    broken = [s.broken for s in stacks if s.broken]
    if broken:
        raise SystemExit(broken[0])
    return stacks


def main() -> None:
    """Evaluate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--stacks", nargs="*", help="those of these QUIC stacks, or all installed")
    parser.add_argument(
        "--stored", action="store_true", help="write the table from the data beside it"
    )
    given = parser.parse_args()
    collection = BUILT_IN if given.stacks is None else OF_STACKS
    folder = given.docs / collection.path
    folder.mkdir(parents=True, exist_ok=True)
    if not given.stored:
        how = {"profile": given.profile, "repeat": given.repeat, "store": given.store}
        if given.stacks is not None:
            stacks = chosen(given.stacks)
            found = [evaluate(s.congestion, stack=s.name, **how) for s in stacks]
            named = [f"--stack {s.name} {name}" for s in stacks for name in s.congestion]
        else:
            found = [evaluate(names(), **how)]
            named = names()
        cards = [card for e in found for card in e.scorecards]
        data = verdicts(cards)
        if given.stacks and (folder / DATA).is_file():
            data = together(data, json.loads((folder / DATA).read_text(encoding="utf-8")))
        text = json.dumps(data, indent=1, ensure_ascii=False)
        (folder / DATA).write_text(text + "\n", encoding="utf-8")
        for name, card in zip(named, cards, strict=True):
            (folder / f"{card.algorithm}.md").write_text(page(card, name), encoding="utf-8")
        facts = {
            "runs": sum(e.sweep.plan.height for e in found),
            "packets": sum(e.sweep.packets for e in found),
            "wall_s": sum(e.sweep.wall_s for e in found),
        }
        print(json.dumps(facts))
    stored = json.loads((folder / DATA).read_text(encoding="utf-8"))
    (folder / "index.md").write_text(index(stored, collection), encoding="utf-8")


if __name__ == "__main__":
    main()
