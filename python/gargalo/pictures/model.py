"""A picture as data: lines with names and colours, what they are compared with, and what to know about them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gargalo.quantities import decimal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LINES = 24


@dataclass(frozen=True)
class Line:
    """A line of a picture, in the unit of its axis; a value that is not a number is a gap."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    colour: str
    dash: str = "solid"
    step: bool = False
    """Values hold until the next."""
    of: str = ""
    """The algorithm, path or link that its colour belongs to; what lines are compared with has none."""


@dataclass(frozen=True)
class Chart:
    """A picture over time."""

    title: str
    words: str
    """What is on the vertical axis."""
    unit: str
    lines: tuple[Line, ...]
    references: tuple[Line, ...] = ()
    """What the lines are compared with, such as the capacity of a link."""
    notes: tuple[str, ...] = ()
    """Sentences without a full stop: the width of bins, what is left out."""
    stacked: bool = False
    """Areas on top of each other."""
    counted: str = ""
    """What each line is one of, if lines of one name are told together, as how many there are at an instant."""
    window: tuple[float, float] | None = None
    """The measured part of the run, if it is not all of it."""
    span: tuple[float, float] | None = field(default=None)
    """What the horizontal axis shows; by default what the lines need."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what is shaded."""
        if self.window is None:
            return self.notes
        start, end = self.window
        return (*self.notes, f"grey is the measured window, {decimal(start)} s to {decimal(end)} s")

    def without_window(self) -> Chart:
        """Return the picture without the measured window."""
        return replace(self, window=None)

    @property
    def y_title(self) -> str:
        """Title of the vertical axis."""
        return f"{self.words} ({self.unit})" if self.unit else self.words
