"""The scenario's JSON Schema, read for listings, for Python types and for the reference page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gargalo import _core

Node = dict[str, Any]


@dataclass(frozen=True)
class Model:
    """A JSON Schema with its definitions."""

    root: Node

    @classmethod
    def load(cls) -> Model:
        """Return the schema of this version."""
        return cls(json.loads(_core.schema()))

    @property
    def definitions(self) -> dict[str, Node]:
        """The named parts, in the order of the schema."""
        defs: dict[str, Node] = self.root.get("$defs", {})
        return defs

    @staticmethod
    def reference(node: Node) -> str | None:
        """Return the definition that a node refers to, directly or as its only alternative to null."""
        if "$ref" in node:
            return str(node["$ref"]).rpartition("/")[2]
        several = [n for n in node.get("anyOf", []) if n.get("type") != "null"]
        if len(several) == 1:
            return Model.reference(several[0])
        return None

    @staticmethod
    def variants(node: Node) -> dict[str, tuple[str, Node]] | None:
        """Return name -> (description, content) of a table of which exactly one key is given."""
        found: dict[str, tuple[str, Node]] = {}
        for one in node.get("oneOf", []):
            keys = list(one.get("properties", {}))
            if one.get("type") != "object" or len(keys) != 1 or one.get("required") != keys:
                return None
            content = one["properties"][keys[0]]
            text = one.get("description") or content.get("description", "")
            found[keys[0]] = (text, content)
        return found or None

    def listing(self, definition: str) -> list[dict[str, Any]]:
        """Return the entries of a definition that is a choice: name, summary, source."""
        node = self.definitions.get(definition, {})
        return [
            {
                "name": name,
                "summary": first_sentence(text or self._described(content)),
                "source": "",
            }
            for name, (text, content) in (self.variants(node) or {}).items()
        ]

    def _described(self, node: Node) -> str:
        name = self.reference(node)
        return str(self.definitions.get(name, {}).get("description", "")) if name else ""


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, without its full stop."""
    first = " ".join(text.split("\n\n")[0].split())
    head, dot, _ = first.partition(". ")
    return head if dot else first.rstrip(".")
