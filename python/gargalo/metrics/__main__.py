"""`python -m gargalo.metrics` in the repository rewrites `docs/metrics.md`."""

from pathlib import Path

from gargalo.metrics.definitions import page

path = Path("docs/metrics.md")
if not path.parent.is_dir():
    raise SystemExit("run this at the top of the repository")
path.write_text(page(), encoding="utf-8")
