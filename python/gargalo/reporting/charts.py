"""Plotly figures from tables in long form: a row per point, a column that names the algorithm."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from gargalo.metrics.declared import bounds_of
from gargalo.metrics.intervals import Interval, mean_interval
from gargalo.pictures.model import DASHES
from gargalo.pictures.thinning import thin
from gargalo.reporting.model import FigureBlock
from gargalo.reporting.palette import MARKERS
from gargalo.reporting.quantities import quantity, si

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from gargalo.metrics.intervals import Bounds
    from gargalo.pictures.model import Chart

REFERENCE_ON_PAGES = "#7F7F7F"
"""Seen on white and on black."""


def figure(x_title: str, y_title: str, *, log_x: bool = False, log_y: bool = False) -> go.Figure:
    """Return an empty figure with titled axes; the page gives colours and fonts."""
    return go.Figure(
        layout={
            "template": None,
            "xaxis": {"title": {"text": x_title}, **({"type": "log"} if log_x else {})},
            "yaxis": {
                "title": {"text": y_title},
                **({"type": "log"} if log_y else {"rangemode": "tozero"}),
            },
        }
    )


def drawn(chart: Chart) -> go.Figure:
    """Draw a picture of a run as the files of the run have it: the same lines, names and colours."""
    made = figure("time (s)", chart.y_title)
    unit = chart.unit
    for line in chart.lines:
        at, values = thin(line.x, line.y)
        shape = {"shape": "hv"} if line.step else {}
        own: dict[str, Any] = {
            "line": {"width": 1.5, "color": line.colour, "dash": line.dash, **shape},
            "marker": {"color": line.colour, "symbol": MARKERS[DASHES.index(line.dash)]},
        }
        if chart.stacked:
            own["line"] |= {"width": 1}
            own |= {"stackgroup": "all", "fillcolor": f"{line.colour}99"}
        made.add_scatter(
            x=at, y=_gaps(values), mode="lines" if at.size > 1 else "markers",
            name=html.escape(line.name), meta=line.name,
            legendgroup=line.name, connectgaps=False, **own,
            hovertemplate=f"%{{x:.4g}} s, %{{y:.4g}} {unit}<extra>%{{fullData.name}}</extra>",
        )  # fmt: skip
    for line in chart.references:
        shape = {"shape": "hv"} if line.step else {}
        made.add_scatter(
            x=line.x, y=_gaps(line.y), mode="lines", name=html.escape(line.name), meta=line.name,
            line={"width": 1.2, "color": REFERENCE_ON_PAGES, "dash": line.dash, **shape},
            hovertemplate=f"%{{x:.4g}} s, %{{y:.4g}} {unit}<extra>%{{fullData.name}}</extra>",
        )  # fmt: skip
    if chart.window is not None:
        start, end = chart.window
        made.add_vrect(x0=start, x1=end, fillcolor="#7f7f7f", opacity=0.1, line_width=0)
    return made


def _gaps(values: NDArray[np.float64]) -> list[float | None]:
    """Return values as Plotly takes them: what is not a number is missing."""
    return [None if np.isnan(v) else float(v) for v in values]


def _scale(values: Sequence[Any]) -> tuple[list[Any], str, bool]:
    """Return places on an axis, its unit, and whether it should be logarithmic."""
    read = [si(v) for v in values]
    units = {r[1] for r in read if r is not None}
    if any(r is None for r in read) or len(units) != 1:
        return ["–" if v is None else str(v) for v in values], "", False  # noqa: RUF001
    numbers = [r[0] for r in read if r is not None]
    unit = units.pop()
    q = quantity("x", numbers, unit)
    places = [float(f"{n / q.factor:.12g}") for n in numbers]
    logarithmic = len(places) > 2 and min(places) > 0 and max(places) / min(places) >= 30
    return list(places), q.unit, logarithmic


def trends(
    frame: pl.DataFrame,
    x: str,
    y: str,
    series: str,
    *,
    detail: str | None = None,
    level: float = 0.95,
    x_title: str | None = None,
    y_unit: str | None = None,
    bounds: Bounds | None = None,
) -> go.Figure:
    """Draw means with confidence intervals over an axis of a sweep, a line per algorithm.

    Args:
        frame: A row per run.
        x: The axis; text such as "10Mbit/s" is read as a number where it can be.
        y: The metric, in SI; its name gives the unit unless `y_unit` does.
        series: Column that names the algorithm.
        detail: A further column that splits an algorithm into several lines, distinguished by their dash.
        level: Of the intervals (Student's t); fewer than three runs have none.
        x_title: Title of the axis instead of its name.
        y_unit: Unit of the metric.
        bounds: The least and the greatest value of the metric; by default those of a run's own figure of
            this name, else it may be anything.

    """
    rows = frame.drop_nulls(y)
    within = bounds_of(y) if bounds is None else bounds
    q = quantity(y, rows[y].to_list(), y_unit)
    labels = frame[x].unique(maintain_order=True).to_list()
    places, unit, logarithmic = _scale(labels)
    place = dict(zip(labels, places, strict=True))
    title = x_title or x.replace("_", " ")
    drawn = figure(f"{title} ({unit})" if unit else title, q.title, log_x=logarithmic)
    if all(isinstance(p, str) for p in places):
        drawn.layout.xaxis.update(type="category", categoryorder="array", categoryarray=places)
    keys = [series] if detail is None else [series, detail]
    order: dict[str, int] = {}
    for key, cell in rows.group_by(keys, maintain_order=True):
        means = [
            (place[at], mean_interval(part[y], level, within))
            for (at,), part in cell.group_by(x, maintain_order=True)
        ]
        if not isinstance(means[0][0], str):
            means.sort(key=lambda m: m[0])
        else:
            means.sort(key=lambda m: places.index(m[0]))
        group = str(key[0])
        index = order.setdefault(group, 0)
        order[group] += 1
        name = group if detail is None else f"{group}, {detail.replace('_', ' ')} {key[1]}"
        drawn.add_scatter(
            x=[p for p, _ in means],
            y=[None if i.mean is None else i.mean / q.factor for _, i in means],
            error_y={**_bars([i for _, i in means], q.factor), "thickness": 1.2, "width": 4},
            mode="lines+markers", name=name, legendgroup=group,
            line={"dash": DASHES[index % len(DASHES)]} if index else {},
            customdata=[i.n for _, i in means],
            hovertemplate=f"%{{x}}: %{{y:.4g}} {q.unit} (%{{customdata}} runs)",
        )  # fmt: skip
    return drawn


def _bars(intervals: Sequence[Interval], factor: float) -> dict[str, Any]:
    """Return the error bars of intervals: what is above and below each mean."""

    def part(end: float | None, mean: float | None) -> float | None:
        return None if end is None or mean is None else abs(end - mean) / factor

    return {
        "type": "data",
        "symmetric": False,
        "array": [part(i.high, i.mean) for i in intervals],
        "arrayminus": [part(i.low, i.mean) for i in intervals],
    }


def strips(
    frame: pl.DataFrame,
    y: str,
    series: str,
    *,
    level: float = 0.95,
    bounds: Bounds | None = None,
) -> go.Figure:
    """Draw every run as a dot, and the mean with its interval beside them, for each algorithm."""
    rows = frame.drop_nulls(y)
    q = quantity(y, rows[y].to_list())
    drawn = figure("", q.title)
    names = [str(n) for n in frame[series].unique(maintain_order=True)]
    drawn.layout.xaxis.update(type="category", categoryorder="array", categoryarray=names)
    for (key,), part in rows.group_by(series, maintain_order=True):
        name = str(key)
        values = (part[y] / q.factor).to_list()
        drawn.add_box(
            x=[name] * len(values), y=values, name=name, legendgroup=name, boxpoints="all",
            jitter=0.5, pointpos=-1.6, whiskerwidth=0.4, hovertemplate=f"%{{y:.4g}} {q.unit}",
        )  # fmt: skip
        found = mean_interval(part[y], level, bounds_of(y) if bounds is None else bounds)
        middle = None if found.mean is None else found.mean / q.factor
        drawn.add_scatter(
            x=[name], y=[middle], mode="markers", name=f"{name}: mean", legendgroup=name,
            showlegend=False, marker={"size": 10},
            error_y={**_bars([found], q.factor), "thickness": 2, "width": 8},
            hovertemplate=f"mean %{{y:.4g}} {q.unit} ({found.n} runs)",
        )  # fmt: skip
    return drawn


def distribution(
    frame: pl.DataFrame, column: str, series: str, *, log_x: bool = False
) -> go.Figure:
    """Draw the share of values up to x, for each algorithm."""
    rows = frame.drop_nulls(column)
    q = quantity(column, rows[column].to_list())
    drawn = figure(q.title, "share of flows up to that", log_x=log_x)
    for (key,), part in rows.group_by(series, maintain_order=True):
        values = np.sort(part[column].to_numpy()) / q.factor
        shares = np.arange(1, values.size + 1) / values.size
        x, y = thin(values, shares)
        drawn.add_scatter(
            x=x, y=y, mode="lines", name=str(key), legendgroup=str(key), line={"shape": "hv"},
            hovertemplate=f"%{{y:.1%}} up to %{{x:.4g}} {q.unit}",
        )  # fmt: skip
    return drawn


def block(chart: Chart, text: str, group: str) -> FigureBlock:
    """Return a picture as a figure of the page; its notes are part of the caption."""
    caption = f"{'; '.join([text, *chart.remarks])}."
    return FigureBlock(chart.title, caption, drawn(chart), group, restyle=False)
