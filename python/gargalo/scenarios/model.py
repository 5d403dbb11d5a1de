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
        """Return the entries of a definition that is a choice: name, summary, source, parameters."""
        node = self.definitions.get(definition, {})
        return [
            {
                "name": name,
                "summary": first_sentence(text or self._described(content)),
                "source": "",
                "parameters": self.parameters(content)
                or self._alone(name, self._target(content), text),
            }
            for name, (text, content) in (self.variants(node) or {}).items()
        ]

    def parameters(self, node: Node) -> list[dict[str, str]]:
        """Return the keys of a table: name, default, doc, valid, as the registries list theirs."""
        table = self._target(node)
        needed = table.get("required", [])
        return [
            {
                "name": name,
                "default": default_text(content, required=name in needed),
                "doc": first_sentence(content.get("description") or self._described(content)),
                "valid": self.takes(content),
            }
            for name, content in table.get("properties", {}).items()
        ]

    def takes(self, node: Node) -> str:
        """Say in words what a key takes: its kind, unit and range."""
        target = self._target(node)
        several = target.get("anyOf") or target.get("oneOf")
        if several:
            if self.variants(target):
                return "a table of one of " + ", ".join(self.variants(target) or {})
            words = [one["const"] for one in several if "const" in one]
            kinds = dict.fromkeys(self.takes(one) for one in several if "const" not in one)
            known = [*words, *kinds]
            return " or ".join([", ".join(known[:-1]), known[-1]] if known[1:] else known)
        if "enum" in target:
            return "one of " + ", ".join(str(name) for name in target["enum"] if name is not None)
        if "format" in target and target.get("examples"):
            return f'a {target["format"]} like "{target["examples"][0]}"' + span(
                target.get("formatMinimum"), target.get("formatMaximum")
            )
        kind = target.get("type")
        if kind == "object":
            keys = list(target.get("properties", {}))
            return f"a table of {', '.join(keys)}" if keys else "a table"
        if kind == "array":
            inside = target.get("items") or {}
            return f"a list, each {self.takes(inside)}" if inside else "a list"
        plain = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}
        least = target.get("minimum")
        return plain.get(str(kind), "text") + span(least, target.get("maximum"))

    def _alone(self, name: str, content: Node, doc: str) -> list[dict[str, str]]:
        """Return the single parameter of a kind whose content is not a table; nothing for an empty table."""
        if content.get("type") == "object":
            return []
        valid = self.takes(content)
        about = {"name": name, "default": "required", "doc": first_sentence(doc), "valid": valid}
        return [about]

    def _target(self, node: Node) -> Node:
        name = self.reference(node)
        return self.definitions.get(name, node) if name else node

    def _described(self, node: Node) -> str:
        name = self.reference(node)
        return str(self.definitions.get(name, {}).get("description", "")) if name else ""


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, without its full stop."""
    first = " ".join(text.split("\n\n")[0].split())
    head, dot, _ = first.partition(". ")
    return head if dot else first.rstrip(".")


def default_text(node: Node, *, required: bool) -> str:
    """Return a default as the registries write theirs; "required" or "none" without one."""
    default = node.get("default")
    if default is None:
        return "required" if required else "none"
    return default if isinstance(default, str) else json.dumps(default)


def span(least: object, most: object) -> str:
    """Say a range in words; empty without one."""
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least not in (None, 0):
        return f" of {least} or more"
    return f" of {most} or less" if most is not None else ""
