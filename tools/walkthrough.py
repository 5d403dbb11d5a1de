"""Follows the walk-throughs of CONTRIBUTING.md: their code blocks have the file as their title."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def blocks(heading: str) -> dict[str, str]:
    """Return the code blocks of a section of CONTRIBUTING.md that have a title, by title."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    # Headings within a block are not those of the page.
    parts = re.findall(
        r'^```\w+ title="([^"]+)"\n(.*?)^```$|^## ([^\n]+)$', text, re.DOTALL | re.MULTILINE
    )
    inside, found = False, {}
    for title, code, page_heading in parts:
        if page_heading:
            inside = page_heading == heading
        elif inside:
            found[title] = code
    return found


def patched(text: str, diff: str) -> str:
    """Return a text with changes, of which each has lines around that stand there once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def follow(heading: str, folder: Path) -> list[Path]:
    """Write the files of a section, and change those that are there; return them."""
    written = []
    for name, text in blocks(heading).items():
        file = folder / name
        before = file.read_text(encoding="utf-8") if file.exists() else None
        file.write_text(text if before is None else patched(before, text), encoding="utf-8")
        written.append(file)
    return written
