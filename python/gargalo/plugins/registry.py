"""What scenarios of this process know by name: classes written in Python, congestion controls of shared libraries."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from gargalo import _core
from gargalo._core import NativeCongestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gargalo._core import NativeStack

Kind: TypeAlias = Literal["congestion", "scheduler", "path_manager", "stack"]
"""The key of a scenario that takes the name."""
Classes: TypeAlias = dict[Kind, dict[str, Any]]
"""Classes by kind and name."""
KINDS: tuple[Kind, ...] = get_args(Kind)

WORDS: dict[Kind, str] = {
    "congestion": "congestion control",
    "scheduler": "scheduler",
    "path_manager": "path manager",
    "stack": "QUIC stack",
}
"""Kinds in words."""

_bases: dict[type, Kind] = {}
_registered: Classes = {kind: {} for kind in KINDS}
_C = TypeVar("_C", bound=type)


def base(kind: Kind) -> Callable[[_C], _C]:
    """Make the decorated class the base of a kind."""

    def decorate(class_: _C) -> _C:
        _bases[class_] = kind
        return class_

    return decorate


def kind_of(class_: object) -> Kind | None:
    """Return the kind of a class; None if it derives from no base."""
    if isinstance(class_, NativeCongestion):
        return "congestion"
    if not isinstance(class_, type):
        return None
    return next((kind for base, kind in _bases.items() if issubclass(class_, base)), None)


def register(name: str, class_: type | NativeCongestion) -> None:
    """Make a class known to scenarios of this process.

    A class derived from `gargalo.Controller` is then `congestion = "name"`, one from
    `gargalo.Scheduler` is `scheduler = "name"`, one from `gargalo.PathManager` is `path_manager = "name"`, and one
    from `gargalo.QuicStack` is `stack = "name"` of QUIC.
    A congestion control of a shared library (`gargalo.plugins.native.load`) is taken, too.

    Raises:
        TypeError: It does not derive from one of these classes.
        ValueError: This cannot be a name, or is that of something built in.

    """
    kind = kind_of(class_)
    if kind is None:
        bases = " or ".join(f"gargalo.{b.__name__}" for b in _bases)
        msg = f"{class_!r} is not a class derived from {bases}"
        raise TypeError(msg)
    if not is_name(name):
        msg = f"{name!r} cannot be a name; use letters, digits and hyphens"
        raise ValueError(msg)
    if name in _built_in(kind):
        what = WORDS[kind]
        msg = f'"{name}" is the name of a built-in {what}; choose another, as "my-{name}"'
        raise ValueError(msg)
    _registered[kind][name] = class_


@functools.cache
def _built_in(kind: Kind) -> frozenset[str]:
    """Return the names of a kind that the engine has itself."""
    if kind == "stack":
        return frozenset({"noq"})
    listed = {
        "congestion": _core.congestion,
        "scheduler": _core.schedulers,
        "path_manager": _core.path_managers,
    }[kind]()
    return frozenset(name for one in listed for name in (one["name"], *one["aliases"]))


def is_name(name: str) -> bool:
    """Return whether a class can have this name in scenarios."""
    return name.replace("-", "").replace("_", "").isalnum()


def adopt_stack(stack: NativeStack) -> None:
    """Make the QUIC stack of a shared library known to scenarios of this process, by its own name.

    Raises:
        ValueError: That is the name of a built-in one.

    """
    if stack.name in _built_in("stack"):
        msg = f'{stack.file}: "{stack.name}" is the name of a built-in QUIC stack; choose another'
        raise ValueError(msg)
    adopt_build(stack, stack.name)


def adopt_build(stack: NativeStack | type, name: str) -> None:
    """Make a QUIC stack known to scenarios of this process by a name."""
    _registered["stack"][name] = stack


def forget_stack(name: str) -> None:
    """Make a QUIC stack unknown to scenarios of this process, if it was known."""
    _registered["stack"].pop(name, None)


def registered(more: Mapping[Kind, Mapping[str, Any] | None] | None = None) -> Classes:
    """Return the classes registered in this process, and some more."""
    more = more or {}
    return {kind: {**_registered[kind], **(more.get(kind) or {})} for kind in KINDS}


def names(known: Classes | None = None) -> dict[Kind, list[str]]:
    """Return the names of classes, by default of those registered in this process."""
    known = known or _registered
    found = {kind: sorted(classes) for kind, classes in known.items()}
    # Stacks have congestion controls of their own.
    for stack in known["stack"].values():
        found["congestion"] += [n for n in stack.congestion if n not in found["congestion"]]
    return found


def added(before: Classes, after: Classes) -> Classes:
    """Return the classes that were not there before."""
    return {
        kind: {n: c for n, c in classes.items() if before[kind].get(n) is not c}
        for kind, classes in after.items()
    }
