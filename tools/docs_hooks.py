"""What the documentation's site has beside its pages: the run of its front page as a page to play with.

MkDocs calls `on_post_build` when the pages are written. The run is made then, so that it is the present engine's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

SCENARIO = Path(__file__).parent.parent / "examples" / "cellular-race.toml"
PAGE = "cellular-race.html"
"""What `docs/index.md` shows in a frame."""


def on_post_build(config: MkDocsConfig) -> None:
    """Write the frozen page of the front page's run."""
    import gargalo
    from gargalo import exploring
    from gargalo.explaining.model import RECORDED

    run = gargalo.run(SCENARIO, set=RECORDED)
    Path(config.site_dir, PAGE).write_text(exploring.page(run), encoding="utf-8")
