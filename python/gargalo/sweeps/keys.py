"""Keys of settings: nested tables become dotted keys, the label of flows is replaced by their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from gargalo import _core
from gargalo.scenarios.model import Model, Node
from gargalo.scenarios.scenario import plain
from gargalo.sweeps.errors import SweepError


def flat(settings: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Write a table of settings as dotted keys.

    Tables merge into the scenario; but where it knows alternatives (a topology, a queue, …) another
    alternative replaces the one it has. A value under a key that was written with dots in quotes is
    taken whole.
    """
    found: dict[str, Any] = {}
    for key, value in plain(settings).items():
        if "." in key or not isinstance(value, dict):
            found[key] = value
        else:
            _merge(key, key, value, base.get(key), found)
    return found


def _merge(path: str, key: str, new: dict[str, Any], old: Any, found: dict[str, Any]) -> None:
    known = old if isinstance(old, Mapping) else {}
    other = len(new) == 1 and not set(new) & set(known)
    replaced = other and set(new) <= _alternatives().get(key, set())
    if not new or replaced:
        found[path] = new
        return
    for name, value in new.items():
        inside = f"{path}.{name}"
        if isinstance(value, dict):
            _merge(inside, name, value, known.get(name), found)
        else:
            found[inside] = value


@cache
def _alternatives() -> dict[str, set[str]]:
    """Return the names of all keys that hold exactly one of several tables, and those tables."""
    model = Model.load()
    found: dict[str, set[str]] = {
        "congestion": {c["name"] for c in _core.congestion()},
        "scheduler": {s["name"] for s in _core.schedulers()},
        "path_manager": {m["name"] for m in _core.path_managers()},
    }
    for node in [model.root, *model.definitions.values()]:
        variants = [content for _, content in (Model.variants(node) or {}).values()]
        for table in [node, *variants]:
            for key, content in table.get("properties", {}).items():
                found.setdefault(key, set()).update(_choices(model, content))
    return found


def _choices(model: Model, node: Node, depth: int = 0) -> set[str]:
    """Return the tables of which a value is exactly one."""
    if depth > 6:
        return set()
    if "$ref" in node:
        return _choices(model, model.definitions.get(Model.reference(node) or "", {}), depth + 1)
    own = Model.variants(node)
    if own:
        return set(own)
    several = [*node.get("anyOf", []), *node.get("oneOf", [])]
    return {name for one in several for name in _choices(model, one, depth + 1)}


def named_flows(settings: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Replace `flows.LABEL.…` by the numbers of the flows of that label.

    Raises:
        SweepError: No flow has the label.

    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        first, _, rest = key.partition(".")
        who, _, inside = rest.partition(".")
        if first != "flows" or not who or who == "*" or who.isdigit():
            found[key] = value
            continue
        flows = base.get("flows", [])
        labels = [f.get("label") for f in flows if isinstance(f, Mapping)]
        numbers = [i for i, label in enumerate(labels) if label == who]
        if not numbers:
            have = sorted({str(label) for label in labels if label})
            near = _core.nearest(who, have)
            hint = f'did you mean "{near}"?' if near else f"labels: {', '.join(have) or 'none'}"
            msg = f'{key}: no flow has the label "{who}"; {hint}; flows.* are all, flows.0 is the first'
            raise SweepError(msg)
        for i in numbers:
            found[f"flows.{i}.{inside}" if inside else f"flows.{i}"] = value
    return found
