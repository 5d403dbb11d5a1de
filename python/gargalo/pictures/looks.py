"""Colours by name: an algorithm, a path, a stack has one, the same in every picture, on every page and of every run."""

from __future__ import annotations

import colorsys
import re
import zlib
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from gargalo.quantities import si

if TYPE_CHECKING:
    from collections.abc import Iterable

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#9333EA", "#A0522D", "#3B97E3", "#D81BC4",
)  # fmt: skip
"""The first four are Okabe and Ito's. Each has a contrast of 3 or more with a white and with a dark page (WCAG 2.1,
1.4.11), and colour-blind readers can tell them apart."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
REFERENCE = "#777777"
"""Colour of what lines are compared with, which no line has."""
LUMINANCES = (0.34, 0.105, 0.20)
"""Relative luminances of the further shades of a colour: seen on white and on a dark page."""
SHADES = 1 + len(LUMINANCES)

# Names with a place of their own among the colours: those that are often compared have different ones. Others of a
# family share that of its best known member, and differ from it in their dash.
_FAMILIES = (
    ("cubic", "cubic-linux", "hybla", "lowest-latency", "redundant", "noq", "noq-cubic", "wifi", "path0"),
    ("reno", "newreno", "tahoe", "largest-window-space", "round-robin", "aioquic", "lte", "cellular", "path1"),
    ("bbr", "hstcp", "balia", "lowest-time-space", "ngtcp2", "path2"),
    ("bbr3", "scalable", "highest-sending-rate", "quiche", "path3"),
    ("bbr2", "htcp", "prague", "veno", "lia", "window-aware", "quinn", "satellite", "path4"),
    ("bic", "dctcp", "illinois", "ledbat", "olia", "adaptive", "path5"),
    ("vegas", "fast", "yeah", "wvegas", "blest", "path6"),
    ("copa", "compound", "westwood", "westwood+", "libra", "ecf", "udp", "path7"),
)  # fmt: skip
PLACES = {name: place for place, names in enumerate(_FAMILIES) for name in names}


@cache
def _aliases() -> dict[str, str]:
    from gargalo import _core

    return {a: str(e["name"]) for e in _core.congestion() for a in e.get("aliases", [])}


@cache
def place_of(name: str) -> int:
    """Return which of the colours a name has.

    A name that has a known one in it as a word, such as `cubic with TLS`, has its colour; any other is spread over the
    colours by a hash of its letters, which is the same everywhere.
    """
    low = name.lower()
    for word in (low, *re.findall(r"[a-z0-9+_-]+", low)):
        known = _aliases().get(word, word)
        if known in PLACES:
            return PLACES[known]
    return zlib.crc32(name.encode()) % len(COLOURS)


def colour_of(name: str, shade: int = 0) -> str:
    """Return the colour of an algorithm, a path or a stack.

    Args:
        name: Its name.
        shade: 0, or the number of a further shade of the colour, for several lines of one name.

    """
    return _shaded(COLOURS[place_of(name)], shade % SHADES)


def series_colour(name: str, index: int, period: int) -> str:
    """Return the colour of one of several series.

    Args:
        name: Its name; levels of a quantity, such as `10ms`, have no colour of their own.
        index: Its place among the series.
        period: After so many series, dashes and markers come again; a name then has another shade.

    """
    if si(name) is not None:
        return COLOURS[index % len(COLOURS)]
    return colour_of(name, index // period)


def distinct(names: Iterable[str]) -> list[str]:
    """Return the colours of the names of one picture without dashes: those that share one have shades of it."""
    looks = Looks(dashed=False)
    return [looks.next(name)[0] for name in names]


class Looks:
    """Colours and dashes of the lines of a picture, one after the other.

    Lines of one colour differ by their dash and, when the dashes are used up, by lightness.

    Args:
        dashed: They may have dashes; areas and bars have lightness alone.

    """

    def __init__(self, *, dashed: bool = True) -> None:
        self._dashes = DASHES if dashed else DASHES[:1]
        self._used: Counter[int] = Counter()

    def next(self, name: str) -> tuple[str, str]:
        """Return colour and dash of the next line, which belongs to this algorithm, path or stack."""
        place = place_of(name)
        shade, dash = divmod(self._used[place], len(self._dashes))
        self._used[place] += 1
        return colour_of(name, shade), self._dashes[dash]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour `#rrggbb`, from 0 to 1 (WCAG 2.1)."""
    return _luminance(_rgb(colour))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.1)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _luminance(rgb: tuple[float, float, float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@cache
def _shaded(colour: str, shade: int) -> str:
    """Return a colour with the luminance of a shade; those farthest from its own come first."""
    if shade == 0:
        return colour
    own = luminance(colour)
    wanted = sorted(LUMINANCES, key=lambda v: -abs(v - own))[shade - 1]
    hue, _, saturation = colorsys.rgb_to_hls(*_rgb(colour))
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        dark = _luminance(colorsys.hls_to_rgb(hue, middle, saturation)) < wanted
        low, high = (middle, high) if dark else (low, middle)
    rgb = colorsys.hls_to_rgb(hue, low, saturation)
    return "#" + "".join(f"{round(255 * c):02X}" for c in rgb)
