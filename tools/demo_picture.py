#!/usr/bin/env python3
"""Draw the pictures of runs in README and documentation from examples and tutorials: `make pictures`.

Beside each go the figures that it shows (docs/images/NAME.csv), whose digest the picture carries. A test compares them
with what the example gives now.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

import gargalo
import polars as pl
from gargalo.pictures import runs
from gargalo.pictures.paper import DPI, draw

if TYPE_CHECKING:
    from gargalo.pictures.model import Chart

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PICTURES = {
    "cellular-race": ("examples/cellular-race.toml", runs.goodput, "README.md"),
    "mptcp-hand-over": ("examples/mptcp.toml", runs.paths, "docs/mptcp.md"),
    "race": ("docs/tutorials/race.md", runs.goodput, "docs/tutorials/race.md"),
}
"""Scenario, or the page whose first block is it; what is drawn; and the page that shows it."""
DIGEST = "Source"
"""Where a picture says which figures it belongs to (a keyword of PNG's text chunks)."""


def chart(name: str) -> Chart:
    """Run an example and return its picture as data."""
    place, drawn, _ = PICTURES[name]
    scenario: Path | str = ROOT / place
    if place.endswith(".md"):
        scenario = (ROOT / place).read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    return drawn(gargalo.run(scenario))


def figures(shown: Chart) -> str:
    """Return what a picture shows as CSV: a row per line and instant."""
    rows = pl.DataFrame(runs.facts(shown)).with_columns(pl.col("x", "y").round(3))
    out = io.StringIO()
    rows.rename({"x": "time_s", "y": shown.y_title}).write_csv(out)
    return out.getvalue()


def digest(name: str, text: str) -> str:
    """Return what a picture says of its figures."""
    return f"{name}.csv {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def main() -> None:
    """Draw them."""
    for name in PICTURES:
        shown = chart(name)
        text = figures(shown)
        (IMAGES / f"{name}.csv").write_text(text, encoding="utf-8")
        picture = IMAGES / f"{name}.png"
        draw(shown).savefig(picture, dpi=DPI, metadata={DIGEST: digest(name, text)})
        print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
