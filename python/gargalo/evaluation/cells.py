"""Cells of a criterion in words: their settings, the files that run them again, and where they run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.quantities import measured, si

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

WORDS = {
    "buffer_bdp": "buffer",
    "first": "who starts first",
    "late_ms": "lateness",
    "length_s": "length",
    "mbps": "rate",
    "rate_bps": "rate",
    "rtt_s": "round-trip time",
}
"""What labels mean where their names do not say it."""
UNITS = {"bdp": "BDP", "bps": "bit/s", "mbps": "Mbit/s", "ms": "ms", "s": "s", "bytes": "B"}
KEYS = ("run", "criterion", "algorithm")
"""Columns of runs before their labels."""


@dataclass(frozen=True)
class CellFile:
    """A cell that can be run again."""

    name: str
    """As the evaluation names it: `buffer_bdp=1.0 n=1`."""
    words: str
    file: str
    text: str
    """The scenario."""
    commands: Sequence[str]
    not_lab: str
    """Why the lab cannot run it; empty if it can."""


def words(label: str) -> str:
    """Return the name of a label without its unit."""
    return WORDS.get(label, label.replace("_", " "))


def quantity_text(label: str, value: object) -> str:
    """Write the value of a label as a scenario would, so that it can be read as a number with a unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = UNITS.get(label if label in UNITS else label.rpartition("_")[2], "")
    if isinstance(value, (int, float)):
        return f"{value:.12g}{unit}" if "e" not in f"{value:.12g}" else f"{value:f}{unit}"
    return str(value)


def value_text(label: str, value: object) -> str:
    """Write the value of a label for readers."""
    text = quantity_text(label, value)
    read = si(text)
    if read is None or read[1] == "":
        return text
    number, unit = read
    return measured(number, unit) if unit in ("bit/s", "s", "byte") else f"{number:g} {unit}"


def named(cell: str) -> str:
    """Return the settings of a cell in words, from its name."""
    said = []
    for part in re.split(r" (?=[A-Za-z_][A-Za-z0-9_]*=)", cell):
        label, mark, value = part.partition("=")
        if not mark:
            said.append(part)
            continue
        try:
            plain: object = {"True": True, "False": False}.get(value)
            plain = float(value) if plain is None else plain
        except ValueError:
            plain = value
        text = value_text(label, plain)
        between = ": " if not text[:1].isdigit() else " " if " " in text else " = "
        said.append(f"{words(label)}{between}{text}")
    return ", ".join(s for s in said if s)


def labels_of(frame: pl.DataFrame) -> list[str]:
    """Return the labels that distinguish the cells of these runs."""
    columns = frame.columns
    end = columns.index("repeat") if "repeat" in columns else 0
    return [c for c in columns[:end] if c not in KEYS and frame[c].drop_nulls().n_unique() > 1]


def file_name(*parts: str) -> str:
    """Return a file name that needs no quotes in a shell."""
    text = "-".join(p for p in parts if p)
    return "".join(c if c.isascii() and (c.isalnum() or c in "=.-_") else "_" for c in text)


def why_not_lab(text: str) -> str:
    """Say why the lab cannot run a scenario; empty if it can."""
    return "; ".join(dict.fromkeys(_core.lacking(text, "lab")))


def cell_files(criterion: str, scenarios: Mapping[str, str], plugin: str = "") -> list[CellFile]:
    """Return the cells of a criterion with their files and commands.

    Args:
        criterion: Its identifier.
        scenarios: TOML by cell.
        plugin: The file that has the algorithm.

    """
    more = ["--plugin", plugin] if plugin else []
    made = []
    for name, text in scenarios.items():
        file = f"{file_name(criterion, name)}.toml"
        lacking = why_not_lab(text)
        command = ["gargalo", "run", file, *more]
        commands = [shlex.join(command)]
        if not lacking:
            commands.append(shlex.join([*command, "--world", "lab"]))
        made.append(CellFile(name, named(name) or "the only cell", file, text, commands, lacking))
    return made
