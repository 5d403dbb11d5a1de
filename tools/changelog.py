"""Moves the files of `changes/` to the first section of CHANGELOG.md: before a release, or whenever there are many.

    python tools/changelog.py [DIRECTORY]

Each becomes an item of the section's list, in the order of their names.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 118


def item(text: str) -> str:
    """Write a change as an item of a list."""
    words = " ".join(text.split())
    return textwrap.fill(
        words, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def collected(changelog: str, changes: list[str]) -> str:
    """Return the text of a changelog with more items at the end of its first section.

    Raises:
        ValueError: The first section is of a release.

    """
    heading = re.search(r"^## (.+)$", changelog, re.MULTILINE)
    if heading is None or "unreleased" not in heading[1]:
        found = "none" if heading is None else f"'{heading[1]}'"
        msg = f"the first section must be an unreleased one, and is {found}: begin one"
        raise ValueError(msg)
    next_section = changelog.find("\n## ", heading.end())
    end = len(changelog) if next_section < 0 else next_section
    section, rest = changelog[:end].rstrip("\n"), changelog[end:]
    return "\n".join([section, *map(item, changes), rest])


def main() -> None:
    """Move them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", type=Path, default=ROOT)
    directory = parser.parse_args().directory
    files = [p for p in sorted((directory / "changes").glob("*.md")) if p.name != "README.md"]
    file = directory / "CHANGELOG.md"
    changes = [p.read_text(encoding="utf-8") for p in files]
    try:
        text = collected(file.read_text(encoding="utf-8"), changes)
    except ValueError as e:
        parser.exit(2, f"{file.name}: {e}\n")
    if files:
        file.write_text(text, encoding="utf-8")
    for p in files:
        p.unlink()
        print(p.relative_to(directory))


if __name__ == "__main__":
    main()
