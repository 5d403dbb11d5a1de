"""Where a key belongs that stands in the wrong table of a scenario."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gargalo import _core

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEEPEST = 4
"""Tables below the one in which a key was written."""
MOST_PLACES = 3


def hints(diagnostics: Sequence[_core.Diagnostic]) -> list[str]:
    """Return what to say besides the engine's help."""
    told = []
    for d in diagnostics:
        above, _, key = (d.path or "").rpartition(".")
        if key == "trace":
            told.append(
                "gargalo trace generate FILE makes a trace; gargalo example NAME copies an example with its own"
            )
        elif key:
            places = belongs(above.split(".") if above else [], key)
            told += [f'"{key}" is a key of {" and of ".join(places)}'] if places else []
    return list(dict.fromkeys(told))


def belongs(above: Sequence[str], key: str) -> list[str]:
    """Return the nearest tables that have a key which the table at some place does not have, by their paths.

    Those below that table go before others. Nothing is returned if it has the key, or one of a similar name, and if
    it is a table whose keys are names.
    """
    schema = json.loads(_core.schema())
    root = list(_tables(schema, schema))
    tables = root
    for step in above:
        tables = [t for found in tables for t in _below(schema, found, step)]
    known = {name for t in tables for name in t.get("properties", {})}
    if not known or key in known or _core.nearest(key, sorted(known)) is not None:
        return []
    return _nearest_tables(schema, tables, key) or _nearest_tables(schema, root, key)


def _nearest_tables(
    schema: dict[str, Any], tables: Sequence[dict[str, Any]], key: str
) -> list[str]:
    level = [("", t) for t in tables]
    for _ in range(DEEPEST):
        level = [
            (f"{path}.{name}".lstrip("."), t)
            for path, table in level
            for name in table.get("properties", {})
            for t in _below(schema, table, name)
        ]
        found = dict.fromkeys(path for path, t in level if key in t.get("properties", {}))
        if found:
            return list(found)[:MOST_PLACES]
    return []


def _tables(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the tables that a part of the schema may be: alternatives, items of lists."""
    for _ in range(8):
        if "$ref" not in node:
            break
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    several = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if isinstance(node.get("items"), dict):
        several.append(node["items"])
    for each in several:
        yield from _tables(schema, each)
    if "properties" in node:
        yield node


def _below(schema: dict[str, Any], table: dict[str, Any], step: str) -> Iterator[dict[str, Any]]:
    """Return the tables at a key, or the table itself for the number of an item."""
    if step.isdecimal() or step == "*":
        yield table
    elif step in table.get("properties", {}):
        yield from _tables(schema, table["properties"][step])
    elif isinstance(table.get("additionalProperties"), dict):
        yield from _tables(schema, table["additionalProperties"])
