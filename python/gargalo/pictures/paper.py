"""Pictures drawn by Matplotlib, for files: PNG, SVG, PDF."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from gargalo.pictures.model import Chart, Line

DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dot": (0, (1.2, 1.6)),
    "dashdot": (0, (5, 1.5, 1, 1.5)),
    "longdash": (0, (9, 3)),
    "longdashdot": (0, (9, 2, 1.5, 2)),
}
MARKERS = dict(zip(DASHES, "osD^Xv", strict=True))
"""Of a point that stands alone."""
WIDTH_IN, HEIGHT_IN = 8.0, 4.0
LEAST_IN = 2.3
"""Height of a narrow picture without room for the legend."""
DPI = 130
FONT_PT = 10.0
WIDTHS = {"one-column": 3.5, "two-columns": 7.16}
"""In inches, as journals have them."""
PAPER_IN = 7.5
"""A picture that is not wider has the small letters of papers, and is finer."""
MARGIN = 6.0
"""Width of what is beside the axes over the size of the font, about."""
GAP = 4.0
"""Points between what is written above the axes."""
LETTER = 0.56
"""Width of a letter over the size of the font, about."""
STYLE: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "gargalo"}
"""PDF files have their fonts as TrueType; equal runs give equal files."""


class Picture(Figure):
    """A Matplotlib figure that a notebook shows without `%matplotlib` and without pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return a PNG with two pixels for each of CSS, and its size in these."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=200)
        width, height = (round(inches * 100) for inches in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}


def draw(
    chart: Chart,
    *,
    width_in: float = WIDTH_IN,
    height_in: float | None = None,
    font_pt: float = FONT_PT,
) -> Picture:
    """Draw a picture; the legend is below the data. Title, notes and legend begin where the axes do.

    Args:
        chart: What to draw.
        width_in: Width in inches.
        height_in: Height in inches; by default half the width, and room for the legend.
        font_pt: Size of the letters in points.

    """
    small = 0.85 * font_pt
    with rc_context({**STYLE, "font.size": font_pt}):
        names = list(dict.fromkeys(line.name for line in (*chart.lines, *chart.references)))
        room = max(width_in - MARGIN * font_pt / 72, width_in / 2)
        columns, entries = legend_columns(names, room, small), len(names)
        rows = -(-entries // columns)
        notes = wrapped("; ".join(chart.remarks), room, small)
        title = wrapped(chart.title, room, 1.2 * font_pt)
        if height_in is None:
            base = max(width_in * HEIGHT_IN / WIDTH_IN, LEAST_IN)
            height_in = base + 1.45 * small / 72 * (max(rows - 1, 0) + max(notes.count("\n"), 0))
        figure = Picture(figsize=(width_in, height_in), layout="constrained")
        axes = figure.add_subplot()
        if notes:
            _above(axes, notes, GAP, fontsize=small, color="#555555")
        lines = notes.count("\n") + 1 if notes else 0
        pad = 1.5 * GAP + 1.35 * small * lines
        axes.set_title(title, loc="left", fontsize=1.2 * font_pt, pad=pad)
        axes.set_xlabel("time (s)")
        axes.set_ylabel(chart.y_title)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=small)
        if width_in < WIDTH_IN / 2:
            axes.xaxis.set_major_locator(MaxNLocator(6))
        _lines(axes, chart, font_pt)
        if entries:
            # Below the title of the horizontal axis: ticks, their labels, the title.
            below = 11.5 + 1.2 * small + 1.2 * font_pt
            down = ScaledTranslation(0, -below / 72, figure.dpi_scale_trans)
            axes.legend(
                loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=axes.transAxes + down, ncols=columns,
                frameon=False, fontsize=small, columnspacing=1.4, handlelength=2.2, borderaxespad=0, borderpad=0.2,
            )  # fmt: skip
        else:
            text = "nothing was sampled in this run"
            axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    return figure


def _above(axes: Axes, text: str, points: float, **style: Any) -> None:
    """Write text above the axes, from their left edge on."""
    axes.annotate(
        text, (0, 1), (0, points), "axes fraction", "offset points", ha="left", va="bottom", **style
    )


def legend(
    figure: Figure,
    handles: Sequence[Any],
    labels: Sequence[str],
    columns: int,
    small: float,
    title: str = "",
) -> None:
    """Put the legend of several axes below them."""
    figure.legend(
        handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=small,
        columnspacing=1.4, handlelength=2.2, borderaxespad=0.2, borderpad=0.2,
        title=title or None, title_fontsize=small, alignment="left",
    )  # fmt: skip


def legend_columns(names: Sequence[str], width_in: float, small: float) -> int:
    """Return how many entries of the legend fit side by side."""
    widest = max((len(n) for n in names), default=0)
    room = 72 * width_in / (small * (widest * LETTER + 4.5))
    return max(1, min(int(room), len(names), 6))


def wrapped(text: str, width_in: float, size_pt: float) -> str:
    """Return a text in lines of the width of the picture."""
    import textwrap

    letters = int(72 * width_in / (size_pt * 0.5))
    return "\n".join(textwrap.wrap(text, max(letters, 20)))


def _lines(axes: Axes, chart: Chart, font_pt: float) -> None:
    """Draw lines and what they are compared with."""
    thick = 1.3 * font_pt / FONT_PT
    if chart.stacked and chart.lines:
        axes.stackplot(
            chart.lines[0].x, [line.y for line in chart.lines], labels=[line.name for line in chart.lines],
            colors=[line.colour for line in chart.lines], alpha=0.85, step="post",
        )  # fmt: skip
    elif not chart.stacked:
        told: set[str] = set()
        for line in chart.lines:
            # Lines of one name have one entry in the legend.
            _line(axes, line, thick, label=not chart.counted or line.name not in told)
            told.add(line.name)
    for line in chart.references:
        _line(axes, line, 0.8 * thick)
    if chart.window is not None:
        axes.axvspan(*chart.window, color="#000000", alpha=0.05, lw=0, zorder=0)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    if chart.span is not None:
        axes.set_xlim(*chart.span)


def _line(axes: Axes, line: Line, thick: float, *, label: bool = True) -> None:
    # A point between gaps has no line.
    known = np.pad(~np.isnan(line.y), 1)
    alone = np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:]).tolist()
    marker = MARKERS[line.dash] if alone else None
    axes.plot(
        line.x, line.y, label=line.name if label else None, color=line.colour, linestyle=DASHES[line.dash], lw=thick,
        drawstyle="steps-post" if line.step else "default", marker=marker, markersize=4, markevery=alone or None,
    )  # fmt: skip


def style(width_in: float) -> tuple[float, float]:
    """Return the size of the letters in points, and the pixels to an inch, of a picture of this width."""
    return (8.0, 300) if width_in <= PAPER_IN else (FONT_PT, DPI)


def encoded(figure: Figure, format_: str, dpi: float = DPI) -> bytes:
    """Return a picture as the bytes of a file: png, svg or pdf."""
    file = io.BytesIO()
    _write(figure, file, format_, dpi)
    return file.getvalue()


def save(figure: Figure, path: Path, dpi: float = DPI) -> None:
    """Write a picture, whole or not at all; the ending of the name is the format.

    Raises:
        OSError: The file cannot be written.

    """
    try:
        _write(figure, path, path.suffix.removeprefix("."), dpi)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write(figure: Figure, file: Path | io.BytesIO, format_: str, dpi: float) -> None:
    # No date in the file: equal runs give equal pictures.
    dated = {"svg": "Date", "pdf": "CreationDate"}.get(format_)
    metadata = None if dated is None else {dated: None}
    with rc_context(STYLE):
        figure.savefig(file, format=format_, dpi=dpi, metadata=metadata)
