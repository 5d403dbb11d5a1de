"""Pictures of many runs drawn by Matplotlib, for files: a panel for each combination of the further labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator, NullLocator

from gargalo.pictures import paper
from gargalo.pictures.looks import series_colour
from gargalo.pictures.paper import Picture
from gargalo.quantities import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from gargalo.pictures.sweeps import Panel, Scale, Series, SweepPicture

PANEL_IN = 2.4
"""Width from which on a panel stands beside another."""
HEIGHT_IN = 2.1
"""Height of a row of several."""
MOST_WRITTEN = 60
"""Cells of a heat map that have their numbers."""
DARK = 0.55
"""Luminance below which letters are white."""


def draw_panels(
    picture: SweepPicture,
    *,
    width_in: float = paper.WIDTH_IN,
    height_in: float | None = None,
    font_pt: float = paper.FONT_PT,
) -> Picture:
    """Draw a picture of many runs; its panels share their axes, the legend is below.

    Args:
        picture: What to draw.
        width_in: Width in inches.
        height_in: Height in inches; by default by the number of rows of panels, and room for the legend.
        font_pt: Size of the letters in points.

    """
    small = 0.85 * font_pt
    count = max(len(picture.panels), 1)
    columns = max(1, min(count, int(width_in // (PANEL_IN * font_pt / paper.FONT_PT)), 4))
    rows = -(-count // columns)
    entries = [] if picture.kind == "heat" or not picture.legend else picture.names
    across = paper.legend_columns(entries, width_in, small)
    notes = paper.wrapped("; ".join(picture.notes), width_in, small)
    if height_in is None:
        base = max(width_in * 0.5, paper.LEAST_IN) if rows == 1 else HEIGHT_IN * rows * font_pt / 8
        lines = -(-len(entries) // across) + notes.count("\n") + bool(picture.legend and entries)
        height_in = base + 1.45 * small / 72 * max(lines - 1, 0)
    with rc_context({**paper.STYLE, "font.size": font_pt}):
        figure = Picture(figsize=(width_in, height_in), layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        every: list[Axes] = list(grid.flat)
        if picture.title:
            figure.suptitle(picture.title, x=0.01, ha="left", fontsize=1.2 * font_pt)
        handles: dict[str, Any] = {}
        for axes, panel in zip(every, picture.panels, strict=False):
            _panel(axes, picture, panel, handles, font_pt)
            _horizontal(axes, picture.x, width_in / columns, font_pt)
        for axes in every[count:]:
            axes.set_visible(False)
        for i, axes in enumerate(every[:count]):
            below = i + columns >= count
            axes.tick_params(labelsize=small, labelbottom=below)
            axes.set_xlabel(picture.x.title if below else "")
            axes.set_ylabel(picture.y.title if i % columns == 0 else "")
        _vertical(every[0], picture)
        if notes:
            _told(every[0], notes, small)
        shown = [n for n in entries if n in handles]
        if shown:
            marks = [handles[n] for n in shown]
            paper.legend(figure, marks, shown, across, small, picture.legend)
        if picture.kind == "heat":
            _bar_of_colours(figure, every[:count], picture)
    return figure


def _panel(
    axes: Axes, picture: SweepPicture, panel: Panel, handles: dict[str, Any], font_pt: float
) -> None:
    """Draw one panel."""
    small = 0.85 * font_pt
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize=small, color="#222222")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, axis="y" if picture.x.named else "both")
    if picture.kind == "heat":
        axes.grid(visible=False)
        _heat(axes, picture, panel, small)
    else:
        drawers = {"points": _points, "bars": _bars, "box": _boxes, "cdf": _curve}
        drawer = drawers[picture.kind]
        places = sorted({s.place for p in picture.panels for s in p.series})
        for series in panel.series:
            where = (places.index(series.place), len(places))
            handles[series.name] = drawer(axes, picture, series, where, font_pt)


def _told(axes: Axes, notes: str, small: float) -> None:
    """Write the notes above the first panel and its title, which keeps the room for them."""
    title = axes.get_title(loc="left")
    axes.set_title("\n" * (notes.count("\n") + 1) + title if title else notes, loc="left", fontsize=small,
        color="#222222" if title else "#555555")  # fmt: skip
    if title:
        text = axes.annotate(
            notes, (0, 1), (0, 6 + 1.25 * small), xycoords="axes fraction", textcoords="offset points",
            fontsize=small, color="#555555", va="bottom",
        )  # fmt: skip
        text.set_in_layout(False)


def _vertical(axes: Axes, picture: SweepPicture) -> None:
    """Set the scale of the metric in all panels, after they are drawn: from 0 unless it is logarithmic."""
    if picture.kind == "heat":
        return
    if picture.y.log:
        # A mean of 0 is a gap, and powers are written as numbers.
        axes.set_yscale("log", nonpositive="mask")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    elif picture.kind == "cdf":
        axes.set_ylim(0, 1.02)
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _negative(picture) else 0.0)


def _negative(picture: SweepPicture) -> bool:
    return any(v < 0 for p in picture.panels for s in p.series for q in s.points for v in q.values)


def _horizontal(axes: Axes, scale: Scale, room_in: float, font_pt: float) -> None:
    """Set the scale of the levels, and what is written at them."""
    if scale.log:
        axes.set_xscale("log")
    if scale.ticks:
        axes.set_xticks([p for p, _ in scale.ticks], [t for _, t in scale.ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        letters = sum(len(t) + 1.5 for _, t in scale.ticks)
        if letters * font_pt * 0.85 * paper.LETTER / 72 > 0.85 * room_in:
            axes.tick_params(axis="x", labelrotation=35)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    if scale.named:
        axes.set_xlim(-0.5, len(scale.ticks) - 0.5)


def _look(series: Series) -> tuple[str, Any, str]:
    """Return colour, dash and marker of a series."""
    dash = list(paper.DASHES)[series.place % len(paper.DASHES)]
    colour = series_colour(series.name, series.place, len(paper.DASHES))
    return colour, paper.DASHES[dash], paper.MARKERS[dash]


def _errors(series: Series) -> tuple[list[float], list[float]]:
    """Return how far intervals reach below and above their means; 0 where there is none."""
    ends = [
        (0.0, 0.0)
        if i.low is None or i.high is None or i.mean is None
        else (max(i.mean - i.low, 0.0), max(i.high - i.mean, 0.0))
        for i in (p.interval for p in series.points)
    ]
    return [e[0] for e in ends], [e[1] for e in ends]


def _means(series: Series) -> list[float]:
    return [np.nan if p.interval.mean is None else p.interval.mean for p in series.points]


def _beside(picture: SweepPicture, series: Series, where: tuple[int, int], width: float) -> Any:
    """Return the places of a series: on an axis of names beside those of the others."""
    places = np.array([p.x for p in series.points])
    own, of = where
    alone = not picture.x.named or picture.x.title == ""
    return places if alone else places + width * (own - (of - 1) / 2)


def _points(
    axes: Axes, picture: SweepPicture, series: Series, where: tuple[int, int], font_pt: float
) -> Any:
    colour, dash, marker = _look(series)
    line = "none" if picture.x.named else dash
    return axes.errorbar(
        _beside(picture, series, where, 0.6 / where[1]), _means(series), _errors(series),
        color=colour, linestyle=line, marker=marker, markersize=0.4 * font_pt, lw=0.13 * font_pt,
        capsize=0.2 * font_pt, elinewidth=0.1 * font_pt,
    )  # fmt: skip


def _bars(
    axes: Axes, picture: SweepPicture, series: Series, where: tuple[int, int], font_pt: float
) -> Any:
    colour = _look(series)[0]
    width = 0.8 / (where[1] if picture.x.title else 1)
    return axes.bar(
        _beside(picture, series, where, width), _means(series), 0.92 * width, yerr=_errors(series),
        color=colour, alpha=0.85, hatch=("", "//", "\\\\", "xx", "..", "--")[series.place % 6],
        edgecolor="white", linewidth=0.3,
        error_kw={"elinewidth": 0.1 * font_pt, "capsize": 0.2 * font_pt, "ecolor": "#222222"},
    )  # fmt: skip


def _boxes(
    axes: Axes, picture: SweepPicture, series: Series, where: tuple[int, int], font_pt: float
) -> Any:
    colour, _, marker = _look(series)
    width = 0.8 / (where[1] if picture.x.title else 1)
    places = _beside(picture, series, where, width)
    found = axes.boxplot(
        [p.values for p in series.points], positions=list(places), widths=0.6 * width,
        manage_ticks=False, showfliers=False, patch_artist=True,
        boxprops={"facecolor": f"{colour}44", "edgecolor": colour},
        medianprops={"color": colour}, whiskerprops={"color": colour}, capprops={"color": colour},
    )  # fmt: skip
    for at, point in zip(places, series.points, strict=True):
        # Spread evenly, so that equal pictures have equal bytes.
        spots = at + 0.25 * width * np.linspace(-1, 1, len(point.values) + 2)[1:-1]
        axes.plot(spots, point.values, ".", color=colour, ms=0.3 * font_pt, alpha=0.6)
    axes.errorbar(
        places, _means(series), _errors(series), color="#222222", linestyle="none", marker=marker,
        markersize=0.4 * font_pt, capsize=0.25 * font_pt, elinewidth=0.12 * font_pt,
    )  # fmt: skip
    return found["boxes"][0] if found["boxes"] else None


def _curve(
    axes: Axes, _picture: SweepPicture, series: Series, _where: tuple[int, int], font_pt: float
) -> Any:
    colour, dash, _ = _look(series)
    values = np.sort([v for p in series.points for v in p.values])
    shares = np.arange(values.size + 1) / max(values.size, 1)
    (line,) = axes.step(
        np.concatenate((values[:1], values)), shares, where="post", color=colour, linestyle=dash,
        lw=0.14 * font_pt,
    )  # fmt: skip
    return line


def _heat(axes: Axes, picture: SweepPicture, panel: Panel, small: float) -> None:
    """Draw means as colours, and as numbers where there are few."""
    table = np.full((len(picture.y.ticks), len(picture.x.ticks)), np.nan)
    for series in panel.series:
        for point in series.points:
            if point.interval.mean is not None:
                table[series.place, int(point.x)] = point.interval.mean
    norm = _norm(picture)
    axes.imshow(table, cmap="cividis", norm=norm, aspect="auto", origin="lower")
    if table.size <= MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
                colour = "white" if norm(value) < DARK else "black"
                text = number(float(f"{value:.3g}"))
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=small)
    axes.set_yticks([p for p, _ in picture.y.ticks], [t for _, t in picture.y.ticks])


def _norm(picture: SweepPicture) -> Normalize:
    """Return the scale of colours of all panels."""
    means = [v for p in picture.panels for s in p.series for v in _means(s) if np.isfinite(v)]
    return Normalize(min(means, default=0.0), max(means, default=1.0))


def _bar_of_colours(figure: Picture, axes: Sequence[Axes], picture: SweepPicture) -> None:
    shown = [image for a in axes for image in a.get_images()]
    if shown and picture.colour is not None:
        figure.colorbar(shown[0], ax=list(axes), label=picture.colour.title)
