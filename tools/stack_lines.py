"""Prints how many lines of glue each QUIC stack in `stacks` needs, as a table in Markdown.

Lines that are empty or only a comment or docstring do not count; those of `stacks/common` count for each stack that
uses it.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "stacks"
LANGUAGES = {".c": "C", ".h": "C", ".rs": "Rust", ".py": "Python"}
BLOCK = re.compile(r"/\*.*?\*/", re.DOTALL)


def of_python(text: str) -> int:
    """Return the lines with code; a string that stands alone is a docstring."""
    used: set[int] = set()
    alone = True
    skipped = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            alone = True
        elif token.type not in skipped and not (token.type == tokenize.STRING and alone):
            alone = False
            used.update(range(token.start[0], token.end[0] + 1))
    return len(used)


def of_braces(text: str) -> int:
    """Return the lines of C or Rust with code."""
    stripped = (line.strip() for line in BLOCK.sub("", text).splitlines())
    return sum(bool(line) and not line.startswith("//") for line in stripped)


def lines(folder: Path) -> dict[str, int]:
    """Return the lines of the sources of a folder by language; tests are not glue."""
    found: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        language = LANGUAGES.get(path.suffix)
        if language is None or {"target", "tests"} & set(path.parts) or path.stem == "tests":
            continue
        text = path.read_text(encoding="utf-8")
        count = of_python(text) if language == "Python" else of_braces(text)
        found[language] = found.get(language, 0) + count
    return found


def table() -> str:
    """Return the table."""
    rows = ["| stack | language | lines of its own | shared |", "| --- | --- | ---: | ---: |"]
    shared = sum(lines(ROOT / "common").values())
    for folder in sorted(p for p in ROOT.iterdir() if p.is_dir() and p.name != "common"):
        own = lines(folder)
        manifest = folder / "Cargo.toml"
        uses = manifest.is_file() and "../common" in manifest.read_text(encoding="utf-8")
        rows.append(
            f"| {folder.name} | {', '.join(own)} | {sum(own.values())} | {shared if uses else 0} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
