"""The explorer: a page in the browser that is a function of a scenario.

Every change of the scenario is a new run; the server keeps nothing between two requests. `text` changes the text of a
scenario, `view` makes what the page shows from a run, `server` answers the page, `frozen` writes a page that needs no
server.
"""

from __future__ import annotations

from gargalo.extras import need

need("pages of runs", "matplotlib", "numpy", "uplot")

from gargalo.exploring.frozen import page
from gargalo.exploring.view import view

__all__ = ["page", "view"]
