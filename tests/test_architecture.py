"""The page on the architecture says what the crates really stand on."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_of_crates_is_true():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", page, re.MULTILINE))
    told = {name: set(re.findall(r"`(\w+)`", cell)) for name, cell in rows.items()}
    real = {}
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        text = manifest.read_text(encoding="utf-8")
        own = text.split("[dependencies]")[1].split("[dev-dependencies]")[0]
        real[manifest.parent.name] = set(re.findall(r"^gargalo-(\w+)", own, re.MULTILINE))
    assert told == real


def test_no_crate_stands_on_one_above_it():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", page, re.MULTILINE)
    below: set[str] = set()
    for name, cell in rows:
        assert set(re.findall(r"`(\w+)`", cell)) <= below, name
        below.add(name)
