"""One HTML file that shows a run without a server: the cursor, the zoom and the panels work, nothing can be changed."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.exploring.view import Part
    from gargalo.results import Run

HERE = files("gargalo.exploring") / "assets"


def asset(name: str) -> str:
    """Return a file of the page."""
    return (HERE / name).read_text(encoding="utf-8")


def library(name: str) -> str:
    """Return a file of the charting library, from its own package."""
    # Found, not imported: it would load what its own pictures need.
    spec = find_spec("uplot")
    folder = Path((spec and spec.origin) or "").parent
    return (folder / "static" / name).read_text(encoding="utf-8")


def page(
    run: Run,
    panels: Sequence[str] | None = None,
    *,
    facts: Mapping[str, str | int | float] | None = None,
    more: Sequence[Part] = (),
) -> str:
    """Return the page of a run.

    Args:
        run: A finished run.
        panels: Names of metrics, as `gargalo plot --metric` has them; by default all in which something happens.
        facts: More facts, such as the date: the clock is never read.
        more: More parts of the view, such as the packets of a window.

    """
    from gargalo.exploring.report import section
    from gargalo.exploring.view import FIRST, MORE, view

    parts = [*view(run, panels, usual=(*FIRST, *MORE)), *more]
    title = run.setup.name
    # A closing tag within a text would end the element.
    data = json.dumps(parts, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    scripts = [library("uPlot.iife.js"), *map(asset, ("viewer.js", "packets.js", "frozen.js"))]
    styles = [library("uPlot.min.css"), asset("page.css")]
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src {' '.join(map(digest, scripts))}; style-src {' '.join(map(digest, styles))}"
    )
    return asset("frozen.html").format(
        title=html.escape(title),
        policy=html.escape(policy),
        styles="".join(f"<style>{s}</style>\n" for s in styles),
        report=section(run, facts),
        data=data,
        scripts="".join(f"<script>{s}</script>\n" for s in scripts),
    )


def digest(text: str) -> str:
    """Return what a content security policy has for an inline element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
