"""One colour for each algorithm, the same on every page; one dash and marker, the same in every figure of a page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gargalo.pictures.looks import DASHES, series_colour

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
PATTERNS = ("", "/", "\\", "x", "-", "|", "+", ".")


PERIOD = math.lcm(len(DASHES), len(MARKERS))
"""Dashes and markers repeat together after so many names."""


@dataclass(frozen=True)
class Style:
    """How an algorithm looks."""

    colour: str
    dash: str
    marker: str
    pattern: str


class Palette:
    """Styles by name.

    The colour is that of the algorithm, path or stack (`gargalo.pictures.looks`), whatever else is drawn; dash,
    marker and pattern tell apart those that share one.

    Args:
        names: In the order of their dashes, markers and patterns.

    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names: Sequence[str] = list(dict.fromkeys(names))
        of = [
            (series_colour(n, i, PERIOD), DASHES[i % len(DASHES)]) for i, n in enumerate(self.names)
        ]
        self._styles = {
            name: Style(colour, dash, MARKERS[i % len(MARKERS)], PATTERNS[i % len(PATTERNS)])
            for i, (name, (colour, dash)) in enumerate(zip(self.names, of, strict=True))
        }

    def __contains__(self, name: object) -> bool:
        return name in self._styles

    def __getitem__(self, name: str) -> Style:
        return self._styles[name]

    def algorithm(self, trace: dict[str, Any]) -> str | None:
        """Return the algorithm a trace belongs to."""
        for key in ("legendgroup", "name"):
            if trace.get(key) in self._styles:
                return str(trace[key])
        return None

    def apply(self, trace: dict[str, Any]) -> None:
        """Give a trace the style of its algorithm; a dash or symbol it has stays."""
        name = self.algorithm(trace)
        if name is None:
            return
        style, kind = self[name], trace.get("type", "scatter")
        if kind in ("scatter", "scattergl"):
            line = trace.setdefault("line", {})
            # Bands have no line of their own; their area is a tint.
            if trace.get("fill") in ("toself", "tonexty"):
                trace["fillcolor"] = f"{style.colour}33"
                line.setdefault("width", 0)
            line["color"] = style.colour
            line.setdefault("dash", style.dash)
            marker = trace.setdefault("marker", {})
            marker["color"] = style.colour
            marker.setdefault("symbol", style.marker)
        elif kind in ("bar", "histogram"):
            marker = trace.setdefault("marker", {})
            marker["color"] = style.colour
            marker.setdefault("pattern", {}).setdefault("shape", style.pattern)
        elif kind in ("box", "violin"):
            trace.setdefault("line", {})["color"] = style.colour
            trace.setdefault("marker", {})["color"] = style.colour
            trace["marker"].setdefault("symbol", style.marker)
            trace["fillcolor"] = f"{style.colour}44"
