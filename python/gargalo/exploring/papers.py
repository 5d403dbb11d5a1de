"""A panel as a file for a paper: the picture that `gargalo plot` makes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gargalo.pictures.metrics import names_of, picture
from gargalo.pictures.paper import WIDTHS, draw, encoded, style
from gargalo.pictures.runs import cropped

if TYPE_CHECKING:
    from gargalo.results import Run

FORMATS = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
"""Formats of files, and their media types."""
ALONE = threading.Lock()
"""Matplotlib's settings are those of the process."""


def file_of(
    run: Run,
    metric: str,
    format_: str,
    width: str = "one-column",
    span: tuple[float, float] | None = None,
) -> bytes:
    """Return a picture of a run as a file.

    Args:
        run: A finished run.
        metric: Its name, as `gargalo plot --metric` has it.
        format_: One of `FORMATS`.
        width: `one-column` or `two-columns`.
        span: The part of the run to show, in seconds; by default all.

    Raises:
        ValueError: There is no such metric, format or width, or nothing to draw.

    """
    for what, given, known in (("format", format_, FORMATS), ("width", width, WIDTHS)):
        if given not in known:
            msg = f"there is no {what} {given!r}; there are {', '.join(known)}"
            raise ValueError(msg)
    if metric not in names_of([run]):
        msg = f"the run has no metric {metric!r}"
        raise ValueError(msg)
    chart = picture(run, metric)
    if span is not None:
        chart = cropped(chart, span)
    if not chart.lines:
        msg = f"there is nothing to draw of {metric} in this part of the run"
        raise ValueError(msg)
    width_in = WIDTHS[width]
    font_pt, dpi = style(width_in)
    with ALONE:
        return encoded(draw(chart, width_in=width_in, font_pt=font_pt), format_, dpi)
