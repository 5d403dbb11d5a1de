"""Writing a report as one HTML file that needs no network."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from gargalo import _core
from gargalo.quantities import measured, number
from gargalo.reporting.model import VERDICTS, Evidence
from gargalo.reporting.palette import Palette
from gargalo.reporting.tables import algorithm_column, view
from gargalo.writing import replace

if TYPE_CHECKING:
    from gargalo.reporting.model import ClaimRow, FigureBlock, Judgement, Report

ASSETS = Path(__file__).parent / "assets"
MARK = "gargalo report"
# Traces drawn with WebGL compile their shaders at run time.
COMPILED = ("gl", "3d", "surface", "mesh")


def write(report: Report, path: str | Path) -> Path:
    """Write a report as one self-contained HTML file, whole or not at all.

    Equal reports give equal bytes. The file holds Plotly's library once, compressed (2 MB), which the browser unpacks.

    Args:
        report: What to show.
        path: The file; it is replaced if it exists.

    Raises:
        OSError: The file cannot be written.
        ValueError: A table or claim of the report is inconsistent.

    """
    return replace(path, html(report))


def html(report: Report) -> str:
    """Return the page as text."""
    figures = [plain_figure(f.figure) for f in report.figures]
    palette = Palette(report.algorithms or _algorithms(report, figures))
    drawn = [
        styled(data, block, palette) for block, data in zip(report.figures, figures, strict=True)
    ]
    named = [*(f.group for f in report.figures), *(t.group for t in report.tables)]
    groups = list(dict.fromkeys(g for g in named if g))
    return template("page.html.j2").render(
        report=report,
        mark=MARK,
        marks=VERDICTS,
        verdicts=[(v, sum(c.verdict == v for c in report.claims)) for v in VERDICTS],
        evidence=evidence,
        palette=palette,
        groups=groups if len(groups) > 1 else [],
        figures=[
            (i, b, alt(b), legend_letters(data), category_rows(data))
            for i, (b, data) in enumerate(zip(report.figures, figures, strict=True))
        ],
        tables=[(i, b, view(b)) for i, b in enumerate(report.tables)],
        fact=fact,
        **parts(drawn),
    )


ENTRY_LETTERS = 9
"""Room of the sample of a line in a legend, in letters."""


def legend_letters(figure: Mapping[str, Any]) -> int:
    """Return how many letters the legend of a figure has room for: a plot with a long one is higher."""
    shown = {str(t["name"]) for t in figure["data"] if t.get("name") and t.get("showlegend", True)}
    return sum(len(name) + ENTRY_LETTERS for name in shown)


ROWS = 14
"""Categories that a plot of the usual height has room for."""


def category_rows(figure: Mapping[str, Any]) -> int:
    """Return how many names of a vertical axis a figure has beyond those that fit: it is higher by them."""
    names = {y for t in figure["data"] for y in t.get("y") or () if isinstance(y, str)}
    return max(len(names) - ROWS, 0)


def styled(figure: dict[str, Any], block: FigureBlock, palette: Palette) -> dict[str, Any]:
    """Return a plain figure as the script of a page reads it, in the styles of its algorithms."""
    traces = figure["data"]
    if block.restyle:
        for trace in traces:
            palette.apply(trace)
    keys = [palette.algorithm(trace) for trace in traces]
    return {"data": traces, "layout": figure["layout"], "keys": keys}


def parts(drawn: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what every page with figures has: version, figures, Plotly's library, style and script."""
    kinds = {str(trace.get("type", "")) for d in drawn for trace in d["data"]}
    return {
        "version": _core.__engine__,
        "figure_data": packed(figure_json(drawn)),
        "plotly": plotly_library() if drawn else "",
        "compiled": any(part in kind for kind in kinds for part in COMPILED),
        "style": asset("style.css"),
        "script": asset("page.js"),
    }


def evidence(claim: ClaimRow | Judgement) -> list[tuple[str, str, str, str]]:
    """Return the figures behind a claim: label, value, interval, what was expected."""
    if isinstance(claim.evidence, str):
        return [("", claim.evidence, "", "")] if claim.evidence else []
    return [(e.label, measured(e.value, e.unit), _interval(e), e.expected) for e in claim.evidence]


def _interval(e: Evidence) -> str:
    runs = "" if e.n is None else f", {e.n} run{'' if e.n == 1 else 's'}"
    if e.value is None:
        return ""
    if e.low is None or e.high is None:
        return f"interval unknown{runs}"
    return f"{measured(e.low, e.unit)} to {measured(e.high, e.unit)}{runs}"


def fact(value: str | int | float) -> str:
    """Write a fact."""
    return value if isinstance(value, str) else number(value)


def alt(block: FigureBlock) -> str:
    """Return what a figure shows, in words."""
    return block.alt or f"{block.title}. {block.caption}"


def plain_figure(figure: Any) -> dict[str, Any]:
    """Return a figure as plain JSON values, without Plotly's default template."""
    if isinstance(figure, Mapping):
        data = json.loads(json.dumps(figure))
    else:
        data = json.loads(figure.to_json(validate=False))
    layout = data.setdefault("layout", {})
    layout.pop("template", None)
    data.setdefault("data", [])
    return dict(data)


def _algorithms(report: Report, figures: Sequence[Mapping[str, Any]]) -> list[str]:
    named: set[str] = set()
    for figure in figures:
        named |= {str(t["legendgroup"]) for t in figure["data"] if t.get("legendgroup")}
    for block in report.tables:
        key = algorithm_column(block)
        if key is not None:
            named |= {str(v) for v in block.frame[key].unique() if v}
    return sorted(named)


DIGITS = 6
"""Significant digits of numbers in figures: more than a picture or an interval shows."""


def figure_json(figures: Sequence[Mapping[str, Any]]) -> str:
    """Write figures as JSON with numbers rounded."""
    return json.dumps(rounded(figures), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def packed(text: str) -> Markup:
    """Return text for a script element that is data: compressed by gzip, in base64. The page's script unpacks it."""
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())


def rounded(value: Any) -> Any:
    """Return plain JSON values with numbers of at most `DIGITS` digits, whole ones without a point."""
    if isinstance(value, float):
        short = float(f"{value:.{DIGITS}g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, Mapping):
        return {key: rounded(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return value


@cache
def plotly_library() -> Markup:
    """Return Plotly's library, packed."""
    from plotly.offline import get_plotlyjs

    return packed(get_plotlyjs())


@cache
def asset(name: str, folder: Path = ASSETS) -> Markup:
    """Return a style sheet or script of a page."""
    return Markup((folder / name).read_text(encoding="utf-8"))


@cache
def template(name: str, folder: Path = ASSETS) -> jinja2.Template:
    """Return the template of a page, in which everything is escaped for HTML."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters["slug"] = slug
    return found.get_template(name)


def slug(parts: Iterable[str] | str) -> str:
    """Return a text as part of a name: lower case, with hyphens for other characters than letters and digits."""
    text = parts if isinstance(parts, str) else "-".join(parts)
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")
