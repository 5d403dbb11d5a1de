"""One colour, dash and marker for each algorithm, the same in every figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gargalo.pictures.model import DASHES, look

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
PATTERNS = ("", "/", "\\", "x", "-", "|", "+", ".")


@dataclass(frozen=True)
class Style:
    """How an algorithm looks."""

    colour: str
    dash: str
    marker: str
    pattern: str


class Palette:
    """Styles by name; the lists have lengths without a common period, so styles repeat late.

    Args:
        names: In the order of their colours.
        lines: The names are of lines over time, such as flows: they are solid until the colours are used up.

    """

    def __init__(self, names: Iterable[str], *, lines: bool = False) -> None:
        self._lines = lines
        self.names: Sequence[str] = list(dict.fromkeys(names))
        self._index = {name: i for i, name in enumerate(self.names)}

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Style:
        i = self._index[name]
        colour, dash = look(i)
        return Style(
            colour,
            dash if self._lines else DASHES[i % len(DASHES)],
            MARKERS[i % len(MARKERS)],
            PATTERNS[i % len(PATTERNS)],
        )

    def algorithm(self, trace: dict[str, Any]) -> str | None:
        """Return the algorithm a trace belongs to."""
        for key in ("legendgroup", "name"):
            if trace.get(key) in self._index:
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
