"""Pictures of a criterion: its figures beside those of the references, and against what varies."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.evaluation.cells import labels_of, quantity_text, words
from gargalo.evaluation.model import YARDSTICK
from gargalo.pictures.sweeps import Axes, describe
from gargalo.quantities import si
from gargalo.reporting import charts
from gargalo.reporting.model import FigureBlock
from gargalo.reporting.page import plain_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.evaluation.model import Figure, Outcome, Result
    from gargalo.metrics import Interval

MOST_PANELS = 3
PANEL_PX = 160
"""Of a figure along a label, with its title."""
TITLE_PX = 42
ORDER = {"worse": 0, "better": 1}
"""Figures that differ are drawn first."""


@dataclass(frozen=True)
class Dot:
    """A value on a lane, in percent of its width."""

    algorithm: str
    at: float
    low: float | None
    high: float | None


WIDEST = 3.0
"""A lane ends at most at this many times its greatest mean."""


@dataclass(frozen=True)
class Lane:
    """A figure of an algorithm and of the references, from zero to the largest of them."""

    outcome: Outcome
    dots: Sequence[Dot]
    """The algorithm's own first."""
    yardstick: float | None
    """Where the yardstick is."""
    zero: float
    """Where nothing is."""
    least: float
    most: float
    """Values at the ends, in SI."""


def lane(outcome: Outcome, algorithm: str, references: Sequence[str]) -> Lane | None:
    """Place the values of a figure on a lane; None if there are none."""
    known: dict[str, Interval] = {}
    for name in (algorithm, *references):
        found = outcome.own if name == algorithm else outcome.references.get(name)
        if found is not None and found.mean is not None:
            known[name] = found
    means = [i.mean for i in known.values() if i.mean is not None]
    if not means:
        return None
    # Intervals of small values may reach below zero or far above all values: they are cut.
    least = min([0.0, *means])
    far = WIDEST * max([0.0, *means])
    most = max([0.0, *means, *(min(i.high, far) for i in known.values() if i.high is not None)])
    width = (most - least) or 1.0

    def place(value: float) -> float:
        return round(100 * min(max((value - least) / width, 0.0), 1.0), 2)

    dots = []
    for name, i in known.items():
        low = None if i.low is None else place(i.low)
        high = None if i.high is None else place(i.high)
        dots.append(Dot(name, place(i.mean or 0.0), low, high))
    yard = known.get(YARDSTICK)
    at = None if yard is None or yard.mean is None else place(yard.mean)
    return Lane(outcome, dots, at, place(0.0), least, most)


def levels(frame: pl.DataFrame, label: str, figures: Sequence[Figure]) -> pl.DataFrame:
    """Return each figure of each algorithm and repeat at each value of a label, in long form."""
    rows = []
    for (algorithm, repeat, level), part in frame.drop_nulls(label).group_by(
        ["algorithm", "repeat", label], maintain_order=True
    ):
        at = quantity_text(label, level)
        for figure in figures:
            value = figure.of(part)
            if value is not None:
                rows.append((str(algorithm), repeat, at, figure.name, float(value)))
    schema = {
        "algorithm": pl.String, "repeat": pl.Int64, "level": pl.String, "figure": pl.String, "value": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def along(result: Result, algorithms: Sequence[str]) -> FigureBlock | None:
    """Draw the figures along the label that varies most; None if there are not two values of one.

    Other labels are not fixed: a point is the figure over all cells with this value.
    """
    frame = result.scores.frame
    if frame.height == 0 or "repeat" not in frame.columns:
        return None
    frame = frame.filter(pl.col("algorithm").is_in(list(algorithms)))
    figures = [o.figure for o in result.outcomes]
    best: tuple[tuple[int, int], str, pl.DataFrame, list[str]] | None = None
    for label in labels_of(frame):
        long = levels(frame, label, figures)
        # A figure with one value everywhere is not drawn.
        counts = {
            str(name): part["level"].n_unique()
            for (name,), part in long.group_by("figure", maintain_order=True)
            if part["value"].n_unique() > 1
        }
        drawn = [f.name for f in figures if counts.get(f.name, 0) > 1]
        # Numbers are drawn on an axis, names as categories.
        numbers = all(si(v) is not None for v in long["level"].to_list())
        rank = (max(counts.values(), default=0) + (1 if numbers else 0), len(drawn))
        if drawn and (best is None or rank > best[0]):
            best = (rank, label, long, drawn)
    if best is None:
        return None
    _, label, long, names = best
    by_name = {o.figure.name: o for o in result.outcomes}
    names.sort(key=lambda n: ORDER.get(by_name[n].verdict, 2))
    chosen = [by_name[n].figure for n in names[:MOST_PANELS]]
    at = words(label)
    left = len(names) - len(chosen)
    caption = f"Means of the runs by {at}, with 95% intervals where there are repeats."
    if len(labels_of(frame)) > 1:
        caption += " Other settings of the cells vary as well."
    if left:
        more = "One more figure is" if left == 1 else f"{left} more figures are"
        caption += f" {more} in the table."
    return FigureBlock(f"By {at}", caption, panels(long, chosen, label, algorithms))


def panels(
    long: pl.DataFrame, figures: Sequence[Figure], label: str, algorithms: Sequence[str]
) -> dict[str, Any]:
    """Draw a panel for each figure, one above the other."""
    share = 1 / len(figures)
    title_room = TITLE_PX / (PANEL_PX * len(figures))
    drawn: dict[str, Any] = {"data": [], "layout": {"annotations": []}}
    layout = drawn["layout"]
    rank = {name: i for i, name in enumerate(algorithms)}
    for i, figure in enumerate(figures):
        last = i == len(figures) - 1
        rows = (
            long.filter(pl.col("figure") == figure.name)
            .with_columns(pl.col("algorithm").replace_strict(rank).alias("rank"))
            .sort("rank", maintain_order=True)
            .rename({"value": figure.name})
        )
        axes = Axes("algorithm", "level", x_words=words(label))
        made = describe(rows, figure.name, axes, kind="points", unit=figure.unit)
        plain = plain_figure(charts.panel(made, made.panels[0]))
        end = "" if i == 0 else str(i + 1)
        x, y = plain["layout"]["xaxis"], plain["layout"]["yaxis"]
        for trace in plain["data"]:
            trace |= {"xaxis": f"x{end}", "yaxis": f"y{end}", "showlegend": i == 0}
            trace["meta"] = f"{trace['name']}: {figure.text}"
            if x.get("type") == "category":
                # Between categories there are no values: draw dots beside each other.
                trace |= {"mode": "markers", "offsetgroup": trace["name"]}
                layout["scattermode"] = "group"
            # Plotly reads names as markup.
            trace["name"] = html.escape(trace["name"])
            drawn["data"].append(trace)
        title = y["title"]["text"]
        unit = title[title.rindex("(") + 1 : -1] if title.endswith(")") else ""
        y["title"] = {"text": unit, "font": {"size": 12}}
        # Between panels there is room for the title of the next.
        top = 1 - i * share
        y["domain"] = [top - share + (0 if last else 0.04), top - title_room]
        y["nticks"] = 5
        x["title"]["font"] = {"size": 12}
        if not last:
            x |= {"showticklabels": False, "title": {"text": ""}}
        layout[f"xaxis{end}"] = x | {"anchor": f"y{end}"}
        layout[f"yaxis{end}"] = y | {"anchor": f"x{end}"}
        layout["annotations"].append(
            {
                "text": "<br>".join(html.escape(line) for line in lines(figure.text)),
                "font": {"size": 12}, "showarrow": False, "align": "left",
                # From the edge of the picture rather than that of the axis.
                "x": 0, "xref": "paper", "xanchor": "left", "xshift": -50,
                "y": top - title_room, "yref": "paper", "yanchor": "bottom", "yshift": 6,
            }
        )  # fmt: skip
    return drawn


def lines(text: str) -> list[str]:
    """Break a title into at most two lines that fit on a phone."""
    return textwrap.wrap(text, 34, max_lines=2, placeholder=" …")
