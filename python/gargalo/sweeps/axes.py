"""The axes of a sweep: each is a list of points, a point is a set of settings with labels.

Forms, in a sweep file below `[axes]` or as a dictionary in Python:

    topology.simple.link.rate = ["1Mbit/s", "10Mbit/s"]       one key; the label is its last part
    rate = { key = "topology.simple.link.rate", values = [ … ] }        the same under a chosen label
    rate = { keys = ["topology.…up.rate", "topology.…down.rate"], values = [ … ] }   several keys, same value
    size = { zip = { "topology.…rate" = [ … ], "topology.…queue.droptail" = [ … ] }, names = [ … ] }
    loss = { key = "…loss.independent", from = 1e-4, to = 1e-1, steps = 4, scale = "log" }
    network = [{ name = "dsl", set = { … } }, { name = "fibre", set = { … } }]       any settings, named

A range goes as well at the place of a list of values; `unit = "ms"` turns its numbers into text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from gargalo import _core
from gargalo.scenarios.scenario import plain
from gargalo.sweeps.errors import SweepError
from gargalo.sweeps.job import label_of
from gargalo.sweeps.keys import flat

if TYPE_CHECKING:
    from gargalo.sweeps.job import Label

RANGE = ("from", "to", "steps", "scale", "unit", "integer")
RESERVED = ("run", "seed", "repeat")


@dataclass(frozen=True)
class Point:
    """One place on an axis."""

    labels: Mapping[str, Label]
    changes: Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """Settings that change together, and all the values they take."""

    name: str
    points: tuple[Point, ...]

    @property
    def keys(self) -> list[str]:
        """All settings that some point changes."""
        return list(dict.fromkeys(k for p in self.points for k in p.changes))


def axis(name: str, key: str | Sequence[str], values: Sequence[Any]) -> Axis:
    """Return an axis where one key, or several with the same value, take each of the values."""
    keys = [key] if isinstance(key, str) else list(key)
    points = [Point({name: label_of(v)}, dict.fromkeys(keys, plain(v))) for v in values]
    return _checked(Axis(name, tuple(points)))


def parse(
    axes: Mapping[str, Any] | Sequence[Axis], base: Mapping[str, Any] | None = None
) -> list[Axis]:
    """Read axes from their form in a sweep file; `base` is the scenario they change.

    Raises:
        SweepError: An axis is wrong; the text names it.

    """
    if not isinstance(axes, Mapping):
        found = list(axes)
    else:
        plainly: dict[str, Any] = {}
        found = []
        for name, node in plain(axes).items():
            known = _named(str(name), node, base or {})
            if known is None:
                _flatten(str(name), node, plainly)
            else:
                found.append(known)
        labels = _short(list(plainly), {a.name for a in found})
        # In the order of the file, whatever their form.
        order = {str(n): i for i, n in enumerate(axes)}
        found += [axis(labels[k], k, _values(labels[k], v)) for k, v in plainly.items()]
        found.sort(key=lambda a: order.get(a.name, order.get(_root(a, order), 0)))
    for a in found:
        _checked(a)
    _no_clash(found)
    return found


def _root(a: Axis, order: Mapping[str, int]) -> str:
    key = a.keys[0]
    return next((n for n in order if key == n or key.startswith(f"{n}.")), key)


def _named(name: str, node: Any, base: Mapping[str, Any]) -> Axis | None:
    """Return the axis if the node is one of the named forms."""
    if isinstance(node, list) and node and all(isinstance(v, dict) and "set" in v for v in node):
        return _overrides(name, node, base)
    if not isinstance(node, dict):
        return None
    if isinstance(node.get("zip"), dict):
        _only(name, node, ("zip", "names"))
        return _zip(name, node["zip"], node.get("names"))
    if "key" in node or isinstance(node.get("keys"), list):
        key = node.get("key", node.get("keys"))
        _only(name, node, ("key", "keys", "values", *RANGE))
        if "key" in node and "keys" in node:
            _bad(name, "has both key and keys: give one")
        keys = [key] if isinstance(key, str) else key
        if not (isinstance(keys, list) and keys and all(isinstance(k, str) for k in keys)):
            _bad(name, "key must be a dotted key as text, keys a list of them")
        more = {k: v for k, v in node.items() if k in RANGE}
        if "values" in node and more:
            _bad(name, "has both values and a range: give one")
        return axis(name, keys, _values(name, node.get("values", more)))
    return None


def _overrides(name: str, rows: list[dict[str, Any]], base: Mapping[str, Any]) -> Axis:
    points = []
    for i, row in enumerate(rows, 1):
        _only(name, row, ("name", "set"))
        label = row.get("name")
        if not isinstance(label, (str, int, float)) or isinstance(label, bool):
            _bad(name, f'entry {i} has no name: write name = "…"')
        if not isinstance(row["set"], dict):
            _bad(name, f"entry {i}: set must be a table of settings")
        points.append(Point({name: label}, flat(row["set"], base)))
    return _checked(Axis(name, tuple(points)))


def _zip(name: str, table: dict[str, Any], names: Any) -> Axis:
    columns: dict[str, Any] = {}
    for key, node in table.items():
        _flatten(key, node, columns)
    lists = {key: _values(name, v) for key, v in columns.items()}
    lengths = {key: len(v) for key, v in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{k} has {n}" for k, n in lengths.items())
        _bad(name, f"the lists of a zip must be equally long, but {told}")
    if not lengths:
        _bad(name, "zip has no keys")
    count = next(iter(lengths.values()))
    if names is not None and (not isinstance(names, list) or len(names) != count):
        _bad(name, f"names must be a list of {count}, one for each point")
    points = []
    for i in range(count):
        changes = {key: v[i] for key, v in lists.items()}
        label = (
            names[i] if names is not None else " ".join(str(label_of(v)) for v in changes.values())
        )
        points.append(Point({name: label}, changes))
    return _checked(Axis(name, tuple(points)))


def _flatten(path: str, node: Any, found: dict[str, Any]) -> None:
    """Collect lists and ranges below a key: TOML's dotted keys arrive as nested tables."""
    if isinstance(node, list) or _is_range(node):
        found[path] = node
    elif isinstance(node, dict) and node:
        for key, inner in node.items():
            _flatten(f"{path}.{key}", inner, found)
    else:
        _bad(path, f"has the single value {node!r}: write a list, or put it into [set]")


def _is_range(node: Any) -> bool:
    if not isinstance(node, dict) or not {"from", "to"} <= set(node):
        return False
    return not isinstance(node["from"], (list, dict)) and set(node) <= set(RANGE)


def _values(name: str, node: Any) -> list[Any]:
    """Return the values of a list or a range."""
    if isinstance(node, list):
        return node
    if not isinstance(node, dict):
        _bad(name, f"values must be a list or a range, not {node!r}")
    _only(name, node, RANGE)
    first, last = node.get("from"), node.get("to")
    if not (_number(first) and _number(last)):
        _bad(name, "a range needs numbers: { from = 1, to = 100, steps = 3 }")
    steps = node.get("steps")
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 2:
        _bad(name, "a range needs steps = 2 or more: how many values, both ends included")
    scale = node.get("scale", "linear")
    if scale not in ("linear", "log"):
        _bad(name, f'scale = {scale!r} is unknown: "linear" or "log"')
    if scale == "log" and (first <= 0 or last <= 0):
        _bad(name, "a logarithmic range needs from and to above 0")
    return _points(first, last, steps, scale, node)


def _points(first: float, last: float, steps: int, scale: str, node: dict[str, Any]) -> list[Any]:
    whole = bool(node.get("integer", False))
    values: list[float] = []
    for i in range(steps):
        share = i / (steps - 1)
        if i in (0, steps - 1):
            value = float(last if i else first)
        elif scale == "log":
            value = math.exp(math.log(first) + share * (math.log(last) - math.log(first)))
        else:
            value = first + share * (last - first)
        # 12 digits hide the rounding of logarithms, so that 0.01 is 0.01.
        value = round(value) if whole else float(f"{value:.12g}")
        values.append(int(value) if whole or _integral(first, last, value) else value)
    unit = node.get("unit")
    return list(values) if unit is None else [f"{v}{unit}" for v in values]


def _integral(first: float, last: float, value: float) -> bool:
    return isinstance(first, int) and isinstance(last, int) and float(value).is_integer()


def _number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _short(keys: list[str], taken: set[str]) -> dict[str, str]:
    """Return for each key the shortest ending that no other key has."""
    labels: dict[str, str] = {}
    for key in keys:
        parts = key.split(".")
        for n in range(1, len(parts) + 1):
            end = ".".join(parts[-n:])
            clash = [k for k in keys if k != key and (k == end or k.endswith(f".{end}"))]
            if not clash and end not in taken and not end.isdigit():
                break
        labels[key] = end
    return labels


def _checked(a: Axis) -> Axis:
    if not a.points:
        _bad(a.name, "has no values")
    for label in {label for p in a.points for label in p.labels}:
        if label in RESERVED:
            hint = (
                "repeats have their own key: repeat = 5"
                if label != "run"
                else "choose another name"
            )
            _bad(a.name, f'the label "{label}" is taken: {hint}')
    shown = [tuple(p.labels.values()) for p in a.points]
    for values in shown:
        if shown.count(values) > 1:
            _bad(a.name, f'has "{" ".join(map(str, values))}" twice')
    if "seed" in a.keys:
        _bad(a.name, "changes the seed: use repeat, or seed, of the sweep")
    return a


def _no_clash(axes: Sequence[Axis]) -> None:
    names: set[str] = set()
    owner: dict[str, str] = {}
    for a in axes:
        for label in a.points[0].labels:
            if label in names:
                _bad(a.name, f'another axis has the label "{label}" too')
            names.add(label)
        for key in a.keys:
            if key in owner:
                _bad(a.name, f"the key {key} is changed by the axis {owner[key]} too")
            owner[key] = a.name


def _only(name: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            near = _core.nearest(key, known)
            hint = f'did you mean "{near}"?' if near else f"known here: {', '.join(known)}"
            _bad(name, f'has an unknown key "{key}"; {hint}')


def _bad(name: str, what: str) -> NoReturn:
    msg = f'axis "{name}": {what}'
    raise SweepError(msg)
