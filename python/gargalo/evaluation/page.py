"""The scorecard as one HTML file that needs no network, and a table that compares many."""

from __future__ import annotations

import base64
import io
import math
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from urllib.parse import quote

from gargalo import _core
from gargalo.evaluation.cells import cell_files, file_name
from gargalo.evaluation.model import VERDICTS, YARDSTICK, Strength, Verdict
from gargalo.evaluation.pictures import PANEL_PX, Lane, along, lane
from gargalo.evaluation.questions import QUESTIONS
from gargalo.metrics.intervals import ENOUGH
from gargalo.quantities import measured, number, quantity
from gargalo.reporting import page as reports
from gargalo.reporting.palette import Palette
from gargalo.writing import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.evaluation.cells import CellFile
    from gargalo.evaluation.model import Outcome, Result
    from gargalo.evaluation.running import Scorecard
    from gargalo.judging import FailureReason
    from gargalo.metrics import Interval
    from gargalo.reporting.model import FigureBlock
    from gargalo.reporting.palette import Style

ASSETS = Path(__file__).parent / "assets"
MARK = "gargalo scorecard"
SIGNS = {verdict: mark.sign.replace("-", "\u2212") for verdict, mark in VERDICTS.items()}
MEANINGS = {verdict: mark.meaning for verdict, mark in VERDICTS.items()}
STRENGTHS = get_args(Strength)
GROUPS = {
    "alone": ("One algorithm alone on the bottleneck", "RFC 9743 5.1"),
    "mixed": ("Mixed with others", "RFC 9743 5.2"),
    "general": ("General use", "RFC 9743 6"),
    "special": ("Special cases", "RFC 9743 7"),
    "properties": ("Properties of the study high-speed-tcp", "RFC 5166"),
    "conformance": ("Conformance to its own specification", ""),
    "tcpeval": ("Scenarios of tcpeval-01", "draft-irtf-iccrg-tcpeval-01"),
}
"""Sections of the scorecard, in order; others come after them under their own name."""
DIRECTIONS = {"less": "less is better", "more": "more is better", "neither": "for information"}
SHAPES = {
    "circle": "M5,0A5,5 0 1 1 -5,0A5,5 0 1 1 5,0Z",
    "square": "M-4.5,-4.5H4.5V4.5H-4.5Z",
    "diamond": "M0,-6L6,0L0,6L-6,0Z",
    "triangle-up": "M0,-6L5.5,4.5H-5.5Z",
    "triangle-down": "M0,6L5.5,-4.5H-5.5Z",
    "x": "M-5,-3L-3,-5L0,-2L3,-5L5,-3L2,0L5,3L3,5L0,2L-3,5L-5,3L-2,0Z",
    "star": "M0,-6.5L2,-2L6.5,-2L3,1.5L4.5,6L0,3.5L-4.5,6L-3,1.5L-6.5,-2L-2,-2Z",
    "cross": "M-2,-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
}
"""The markers of the palette as paths about the origin, in pixels."""
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Value:
    """A figure as shown."""

    text: str
    interval: str = ""
    runs: str = ""
    """How many runs are behind it, if fewer than planned."""


@dataclass(frozen=True)
class Row:
    """A figure of a criterion, with those of the references."""

    outcome: Outcome
    own: Value
    others: Sequence[Value]
    difference: Value
    lane: Lane | None
    ends: tuple[str, str] = ("", "")
    """Values at the ends of its lane."""


@dataclass(frozen=True)
class Card:
    """A criterion as shown."""

    result: Result
    anchor: str
    rows: Sequence[Row]
    told: Sequence[tuple[str, str]]
    """What stands out: a verdict and a sentence."""
    picture: FigureBlock | None
    number: int
    """Of its picture."""
    height: int
    """Of its picture, in pixels."""
    cells: Sequence[CellFile]
    archive: str
    """All of its scenario files, as an address."""
    different: bool


@dataclass(frozen=True)
class Group:
    """A section of the scorecard."""

    id: str
    title: str
    section: str
    cards: Sequence[Card]
    counts: Mapping[Verdict, int]


def write(scorecard: Scorecard, path: str | Path) -> Path:
    """Write a scorecard as one self-contained HTML file, whole or not at all; pages of cases are beside it.

    Equal scorecards give equal bytes: the date, if it should be there, is one of the scorecard's facts.

    Raises:
        OSError: The file cannot be written.

    """
    return replace(path, html(scorecard))


def write_index(
    scorecards: Sequence[Scorecard], path: str | Path, pages: Mapping[str, str] | None = None
) -> Path:
    """Write a table of many scorecards: a row for each criterion, a column for each algorithm.

    Args:
        scorecards: In the order of their columns.
        path: The file; it is replaced if it exists.
        pages: Address of the page of each algorithm, relative to this one; by default `page_name`.

    Raises:
        OSError: The file cannot be written.

    """
    return replace(path, index_html(scorecards, pages))


def page_name(scorecard: Scorecard) -> str:
    """Return the file name under which `write_index` looks for a page: `ALGORITHM-PROFILE.html`."""
    return f"{file_name(scorecard.algorithm, scorecard.profile.name)}.html"


def html(scorecard: Scorecard) -> str:
    """Return the page of a scorecard as text."""
    references = [r for r in scorecard.references if r != scorecard.algorithm]
    # The yardstick comes first, next to the algorithm.
    references.sort(key=lambda r: r != YARDSTICK)
    palette = palette_of(scorecard)
    cards: list[Card] = []
    drawn = []
    for result in scorecard.results:
        block = result.criterion.picture(result.scores)
        if block is None and result.outcomes and result.scores.own().height:
            block = along(result, [scorecard.algorithm, *references])
        if block is not None:
            data = reports.styled(reports.plain_figure(block.figure), block, palette)
            axes = sum(k.startswith("yaxis") for k in data["layout"])
            drawn.append({**data, "keys": [None] * len(data["data"])})
        else:
            axes = 0
        height = 130 + PANEL_PX * max(axes, 1) if axes < 2 else 90 + PANEL_PX * axes
        cards.append(card(result, scorecard, references, block, len(drawn) - 1, height))
    own = scorecard.algorithm
    found: list[tuple[str, Style]] = [(n, palette[n]) for n in [own, *references]]
    return reports.template("scorecard.html.j2", ASSETS).render(
        card=scorecard,
        references=references,
        yardstick=YARDSTICK,
        enough=ENOUGH,
        first_told=first_told(scorecard),
        mark=MARK,
        signs=SIGNS,
        meanings=MEANINGS,
        directions=DIRECTIONS,
        strengths=[s for s in STRENGTHS if any(c.result.criterion.strength == s for c in cards)],
        counts=counted(c.result.verdict for c in cards),
        groups=grouped(cards),
        total=len(cards),
        troubled=[c for c in cards if c.result.faults],
        failed=[c for c in cards if c.result.failures],
        unmet=unmet(scorecard),
        questions=QUESTIONS,
        facts=facts(scorecard),
        styles=found,
        style_of=dict(found),
        shapes=SHAPES,
        figures=len(drawn),
        own_style=reports.asset("scorecard.css", ASSETS),
        own_script=reports.asset("scorecard.js", ASSETS),
        **reports.parts(drawn),
    )


def card(
    result: Result,
    scorecard: Scorecard,
    references: Sequence[str],
    picture: FigureBlock | None,
    place: int,
    height: int,
) -> Card:
    """Prepare a criterion for the page."""
    rows = [row(o, scorecard, references) for o in result.outcomes]
    cells = cell_files(result.criterion.id, result.scenarios, scorecard.file)
    return Card(
        result,
        anchor(result.criterion.id),
        rows,
        told(result, rows),
        picture,
        place,
        height,
        cells,
        archive(cells) if len(cells) > 1 else "",
        result.verdict not in ("like", "conforms", "no-verdict", "unknown")
        or any(o.verdict in ("worse", "better") for o in result.outcomes),
    )


def row(outcome: Outcome, scorecard: Scorecard, references: Sequence[str]) -> Row:
    """Write a figure, those of the references and the difference."""
    unit, runs = outcome.figure.unit, scorecard.profile.repeat
    others = [
        written(outcome.references[r], unit, runs) if r in outcome.references else Value("–")  # noqa: RUF001
        for r in references
    ]
    found = lane(outcome, scorecard.algorithm, references) if outcome.own.n else None
    ends = ("", "")
    if found is not None:
        ends = (rounded(found.least, unit), rounded(found.most, unit) if found.most else "")
    return Row(outcome, written(outcome.own, unit, runs), others, difference(outcome), found, ends)


def rounded(value: float | None, unit: str) -> str:
    """Write an SI value with three significant digits."""
    if value is None or not math.isfinite(value):
        return measured(value, unit) if value is None else str(value)
    if value == 0:
        return "0"
    short = f"{value:.3g}" if not unit and 0 < abs(value) < 1e-3 else ""
    return (short or measured(float(f"{value:.3g}"), unit)).replace("-", "\u2212")


def written(interval: Interval, unit: str, runs: int) -> Value:
    """Write a mean with its interval and, if they are not as many as planned, its runs."""
    if interval.mean is None:
        return Value("unknown")
    text = rounded(interval.mean, unit)
    few = "" if interval.n == runs else f"{interval.n} run{'' if interval.n == 1 else 's'}"
    if interval.low is None or interval.high is None:
        if few and interval.n < ENOUGH <= runs:
            few += f"; interval n/a, {interval.reason}"
        return Value(text, "", few)
    return Value(text, ends_text(interval.low, interval.high, interval.mean, unit), few)


def ends_text(low: float, high: float, mean: float, unit: str) -> str:
    """Write an interval in one unit: ± its half if it is even about the mean, else its ends."""
    half = (high - low) / 2
    if half < 1e-9 * abs(mean):
        half = 0.0  # A remainder of rounding.
    even = half == 0 or abs(high + low - 2 * mean) <= 0.05 * half
    q = quantity("x", [mean or half] if even else [low, high], unit)
    if even:
        return f"± {digits(half / q.factor, 2)} {q.unit}".rstrip()
    return f"{digits(low / q.factor, 3)} to {digits(high / q.factor, 3)} {q.unit}".rstrip()


def digits(value: float, most: int) -> str:
    """Write a number with at most this many significant digits."""
    short = f"{value:.{most}g}"
    text = short if 0 < abs(value) < 1e-3 else number(float(short))
    return text.replace("-", "\u2212")


def difference(outcome: Outcome) -> Value:
    """Write how far a figure is from the yardstick's."""
    gap, yard = outcome.difference, outcome.references.get(YARDSTICK)
    if gap is None:
        return Value("–")  # noqa: RUF001
    unit = outcome.figure.unit
    text = rounded(gap, unit) if gap <= 0 else f"+{rounded(gap, unit)}"
    own = outcome.own.mean
    # A ratio of values with different signs has no meaning.
    if (
        gap
        and own
        and yard is not None
        and yard.mean
        and own / yard.mean > 0
        and abs(gap / yard.mean) < 100
    ):
        text += f" ({gap / yard.mean:+.0%})".replace("-", "\u2212").replace("%", "\u202f%")
    if outcome.low is None or outcome.high is None:
        return Value(text)
    return Value(text, ends_text(outcome.low, outcome.high, gap, unit))


def told(result: Result, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return what stands out in a criterion: faults, else failures, else figures that differ."""
    if result.faults:
        return [("fault", f) for f in result.faults]
    if result.failures:
        return [("failed", f.reason) for f in result.failures]
    if result.cases:
        apply = [c for c in result.cases if c.conforms is not None]
        rest = len(result.cases) - len(apply)
        if not apply:
            return [("unknown", f"no case is decided: {result.cases[0].seen}")]
        open_ = any(c.verdict == "not decided" for c in result.cases)
        left = "not decided or not applicable" if open_ else "not applicable"
        text = f"{len(apply)} case{'' if len(apply) == 1 else 's'}" + (
            f", {rest} {left}" if rest else ""
        )
        return [("conforms", text)]
    found: list[tuple[str, str]] = []
    for verdict in ("worse", "better"):
        for r in rows:
            if r.outcome.verdict == verdict:
                yard = rounded(r.outcome.references[YARDSTICK].mean, r.outcome.figure.unit)
                found.append(
                    (verdict, f"{r.outcome.figure.text}: {r.own.text}, {YARDSTICK} {yard}")
                )
    return found


def archive(cells: Sequence[CellFile]) -> str:
    """Return the scenario files as a ZIP archive, in an address."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as files:
        for cell in cells:
            info = zipfile.ZipInfo(cell.file, ZIP_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            files.writestr(info, cell.text)
    return f"data:application/zip;base64,{base64.b64encode(held.getvalue()).decode()}"


def grouped(cards: Sequence[Card]) -> list[Group]:
    """Return the sections that have criteria."""
    names = dict.fromkeys((*GROUPS, *(c.result.criterion.group for c in cards)))
    found = []
    for name in names:
        mine = [c for c in cards if c.result.criterion.group == name]
        if mine:
            title, section = GROUPS.get(name, (name.capitalize(), ""))
            counts = counted(c.result.verdict for c in mine)
            found.append(Group(reports.slug(name), title, section, mine, counts))
    return found


def counted(verdicts: object) -> dict[Verdict, int]:
    """Count verdicts, in their order; zero where there is none."""
    found: Counter[Verdict] = Counter(verdicts)  # type: ignore[call-overload]
    return {v: found[v] for v in SIGNS}


def palette_of(scorecard: Scorecard) -> Palette:
    """Return styles in which the references look the same on every page."""
    own = scorecard.algorithm
    first = own if own not in scorecard.references else "\0"
    return Palette([first, *scorecard.references])


def first_told(scorecard: Scorecard) -> set[tuple[str, FailureReason]]:
    """Return the first criterion of each reason of failures."""
    found: dict[FailureReason, str] = {}
    for r in scorecard.results:
        for failure in r.failures:
            found.setdefault(failure, r.criterion.id)
    return {(criterion, failure) for failure, criterion in found.items()}


def unmet(scorecard: Scorecard) -> list[Result]:
    """Return criteria marked SHOULD that are at fault, failed, or in some figure worse than the yardstick."""
    lacking = ("fault", "failed", "worse", "trade-off")
    return [
        r for r in scorecard.results if r.criterion.strength == "SHOULD" and r.verdict in lacking
    ]


def facts(scorecard: Scorecard) -> dict[str, str]:
    """Return what was run, and the scorecard's own facts."""
    profile = scorecard.profile
    own = sum(r.scores.own().height for r in scorecard.results)
    every = sum(r.scores.frame.height for r in scorecard.results)
    found = {
        "algorithm": scorecard.algorithm,
        **({"file": scorecard.file} if scorecard.file else {}),
        "profile": f"{profile.name}: {profile.description}",
        "runs of each cell": number(profile.repeat),
        "references": ", ".join(scorecard.references),
        "criteria": number(len(scorecard.results)),
        "cells": number(sum(len(r.scenarios) for r in scorecard.results)),
        "runs of the algorithm": number(own),
        "runs with the references'": number(every),
        "engine": f"gargalo {_core.__engine__}",
    }
    return found | {str(k): v if isinstance(v, str) else str(v) for k, v in scorecard.facts.items()}


def anchor(criterion: str) -> str:
    """Return the fragment of a criterion on its page."""
    return f"criterion-{reports.slug(criterion)}"


@dataclass(frozen=True)
class Mark:
    """The verdict on an algorithm by a criterion, with the address of its reasons."""

    verdict: Verdict
    address: str
    why: str


def index_html(scorecards: Sequence[Scorecard], pages: Mapping[str, str] | None = None) -> str:
    """Return the table of many scorecards as text."""
    criteria = {r.criterion.id: r.criterion for s in scorecards for r in s.results}
    names = dict.fromkeys((*GROUPS, *(c.group for c in criteria.values())))
    columns = []
    for s in scorecards:
        page = (pages or {}).get(s.algorithm, quote(page_name(s)))
        columns.append((s, page, counted(r.verdict for r in s.results)))
    groups = []
    for name in names:
        rows = []
        for criterion in criteria.values():
            if criterion.group != name:
                continue
            marks: list[Mark | None] = []
            for s, page, _ in columns:
                result = next((r for r in s.results if r.criterion.id == criterion.id), None)
                if result is None:
                    marks.append(None)
                    continue
                why = "; ".join(
                    t for _, t in told(result, [row(o, s, []) for o in result.outcomes])
                )
                marks.append(Mark(result.verdict, f"{page}#{anchor(criterion.id)}", why))
            differ = len({m.verdict for m in marks if m}) > 1
            rows.append((criterion, marks, differ))
        if rows:
            groups.append((*GROUPS.get(name, (name.capitalize(), "")), rows))
    return reports.template("index.html.j2", ASSETS).render(
        columns=columns,
        groups=groups,
        signs=SIGNS,
        meanings=MEANINGS,
        strengths=[s for s in STRENGTHS if any(c.strength == s for c in criteria.values())],
        profiles=list(dict.fromkeys((s.profile.name, s.profile.repeat) for s in scorecards)),
        references=list(dict.fromkeys(r for s in scorecards for r in s.references)),
        yardstick=YARDSTICK,
        version=_core.__engine__,
        mark=MARK,
        style=reports.asset("style.css"),
        own_style=reports.asset("scorecard.css", ASSETS),
        own_script=reports.asset("scorecard.js", ASSETS),
    )
