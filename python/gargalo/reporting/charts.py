"""Plotly figures from tables in long form: a row per point, a column that names the algorithm."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.metrics.intervals import Interval
    from gargalo.pictures.sweeps import Panel, Series, SweepPicture


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
