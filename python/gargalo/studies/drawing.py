"""What the figures and tables of studies share: lines and bars with intervals, a table of cells for each experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from gargalo.judging import cell_means
from gargalo.pictures.looks import colour_of, distinct
from gargalo.reporting.model import FigureBlock, TableBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from gargalo.metrics import Interval
    from gargalo.studies.model import Context


__all__ = [
    "Figures", "bar", "cell_tables", "colour_of", "distinct", "error_bars", "known", "line", "names_of",
]  # fmt: skip


class Figures(list[FigureBlock]):
    """The figures of a study, without those that have no runs."""

    def __init__(self, *, restyle: bool = True) -> None:
        super().__init__()
        self.restyle = restyle

    def add(
        self, title: str, caption: str, figure: go.Figure, group: str, *, own: bool = False
    ) -> None:
        """Add a figure if something is drawn in it; `own`: it keeps its colours, dashes and markers."""
        if figure.data:
            restyle = self.restyle and not own
            self.append(FigureBlock(title, caption, figure, group, restyle=restyle))


def error_bars(found: Sequence[Interval], scale: float = 1.0) -> dict[str, Any] | None:
    """Return the error bars of scaled means, as Plotly takes them; None if no interval is known."""
    if all(i.high is None for i in found):
        return None
    up = [0.0 if i.high is None or i.mean is None else scale * (i.high - i.mean) for i in found]
    down = [0.0 if i.low is None or i.mean is None else scale * (i.mean - i.low) for i in found]
    return {"type": "data", "array": up, "arrayminus": down, "thickness": 1, "width": 3}


def known(xs: Sequence[Any], found: Sequence[Interval]) -> tuple[list[Any], list[Interval]]:
    """Leave out the places without a mean."""
    kept = [(x, i) for x, i in zip(xs, found, strict=True) if i.mean is not None]
    return [x for x, _ in kept], [i for _, i in kept]


def line(
    xs: Sequence[Any], found: Sequence[Interval], name: str, scale: float = 1.0, **style: Any
) -> go.Scatter:
    """Draw a line through scaled means, with their intervals."""
    return go.Scatter(mode="lines+markers", **_series(xs, found, name, scale), **style)


def bar(
    xs: Sequence[Any], found: Sequence[Interval], name: str, scale: float = 1.0, **style: Any
) -> go.Bar:
    """Draw bars of scaled means, with their intervals."""
    return go.Bar(**_series(xs, found, name, scale), **style)


def _series(
    xs: Sequence[Any], found: Sequence[Interval], name: str, scale: float
) -> dict[str, Any]:
    means = [None if i.mean is None else scale * i.mean for i in found]
    return {"x": list(xs), "y": means, "name": name, "error_y": error_bars(found, scale)}


def cell_tables(
    context: Context,
    titles: Iterable[tuple[str, str]],
    labels: Sequence[str],
    metrics: Sequence[str],
    *more: pl.Expr,
    interval: str | None = None,
    group: str = "all cells",
) -> list[TableBlock]:
    """Return a table of all cells for each experiment that has runs.

    Args:
        context: With all runs.
        titles: Names of experiments, and titles of their tables.
        labels: As `cell_means` takes them.
        metrics: As well.
        more: As well.
        interval: As well.
        group: Section of the report.

    """
    caption = "Means over the repeats."
    if interval is not None:
        caption = "Means over the repeats, with 95% intervals of the goodput."
    blocks = []
    for name, title in titles:
        rows = context.experiment(name)
        if rows.height:
            cells = cell_means(rows, labels, metrics, *more, interval=interval)
            blocks.append(TableBlock(title, caption, cells, group=group))
    return blocks


def names_of(context: Context) -> list[tuple[str, str]]:
    """Return the experiments that have runs, each with its name as title, in the order of the runs."""
    if "experiment" not in context.frame.columns:
        return []
    return [(n, n) for n in context.frame["experiment"].unique(maintain_order=True)]
