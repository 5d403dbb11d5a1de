"""Plotly figures from tables in long form: a row per point, a column that names the algorithm."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from gargalo.pictures.looks import DASHES
from gargalo.pictures.thinning import thin
from gargalo.quantities import quantity
from gargalo.reporting.model import FigureBlock
from gargalo.reporting.palette import MARKERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from gargalo.metrics.intervals import Interval
    from gargalo.pictures.model import Chart
    from gargalo.pictures.sweeps import Panel, Series, SweepPicture

REFERENCE_ON_PAGES = "#7F7F7F"
"""Seen on white and on black."""


def figure(x_title: str, y_title: str, *, log_x: bool = False, log_y: bool = False) -> go.Figure:
    """Return an empty figure with titled axes; the page gives colours and fonts."""
    return go.Figure(
        layout={
            "template": None,
            # Units have prefixes already: no "µ" for millionths of them.
            "xaxis": {
                "title": {"text": x_title},
                "exponentformat": "power",
                **({"type": "log"} if log_x else {}),
            },
            "yaxis": {
                "title": {"text": y_title},
                "exponentformat": "power",
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


def panel(picture: SweepPicture, shown: Panel) -> go.Figure:
    """Draw a panel of a picture of many runs, as files have it."""
    made = figure(picture.x.title, picture.y.title, log_x=picture.x.log, log_y=picture.y.log)
    axis = made.layout.xaxis
    if picture.x.named:
        names = [text for _, text in picture.x.ticks]
        axis.update(type="category", categoryorder="array", categoryarray=names)
    elif picture.x.ticks:
        axis.update(
            tickmode="array",
            tickvals=[at for at, _ in picture.x.ticks],
            ticktext=[html.escape(text) for _, text in picture.x.ticks],
        )
    draw = {"bars": _bars, "box": _boxes}.get(picture.kind, _points)
    for series in shown.series:
        draw(made, picture, series)
    return made


def _at(picture: SweepPicture, series: Series) -> list[Any]:
    """Return the places of a series: names on an axis of names."""
    if picture.x.named:
        return [picture.x.ticks[int(p.x)][1] for p in series.points]
    return [p.x for p in series.points]


def _hover(picture: SweepPicture, value: str = "%{y:.4g}") -> str:
    return f"%{{customdata[1]}}: {value} {picture.y.unit} (%{{customdata[0]}} runs)"


def _common(picture: SweepPicture, series: Series) -> dict[str, Any]:
    """Return what points and bars have in common: places, means, intervals, what a pointer shows."""
    intervals = [p.interval for p in series.points]
    return {
        "x": _at(picture, series),
        "y": [i.mean for i in intervals],
        "error_y": {**_errors(intervals), "thickness": 1.2, "width": 4},
        "name": series.name,
        "legendgroup": series.name,
        "customdata": [(p.interval.n, p.level) for p in series.points],
        "hovertemplate": _hover(picture),
    }


def _points(made: go.Figure, picture: SweepPicture, series: Series) -> None:
    made.add_scatter(mode="lines+markers", **_common(picture, series))


def _bars(made: go.Figure, picture: SweepPicture, series: Series) -> None:
    made.add_bar(**_common(picture, series))


def _boxes(made: go.Figure, picture: SweepPicture, series: Series) -> None:
    """Draw every run as a dot, the quartiles, and the mean with its interval."""
    at = _at(picture, series)
    made.update_layout(boxmode="group", scattermode="group")
    made.add_box(
        x=[name for name, p in zip(at, series.points, strict=True) for _ in p.values],
        y=[v for p in series.points for v in p.values],
        name=series.name, legendgroup=series.name, boxpoints="all", jitter=0.5, pointpos=-1.6,
        whiskerwidth=0.4, hovertemplate=f"%{{y:.4g}} {picture.y.unit}",
    )  # fmt: skip
    common = _common(picture, series)
    common["error_y"] |= {"thickness": 2, "width": 8}
    made.add_scatter(
        **common | {"name": f"{series.name}: mean"}, mode="markers", showlegend=False, marker={"size": 10},
    )  # fmt: skip


def _errors(intervals: Sequence[Interval]) -> dict[str, Any]:
    """Return the error bars of intervals: what is above and below each mean."""

    def part(end: float | None, mean: float | None) -> float | None:
        return None if end is None or mean is None else abs(end - mean)

    return {
        "type": "data",
        "symmetric": False,
        "array": [part(i.high, i.mean) for i in intervals],
        "arrayminus": [part(i.low, i.mean) for i in intervals],
    }


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
