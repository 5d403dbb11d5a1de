"""Schedulers and path managers of Multipath TCP written in Python.

A scheduler decides which subflow carries the next segment, a path manager which subflows there are; the
connection does the rest: mappings, acknowledgements, reinjection, joins and announcements.
Times are seconds (floats, virtual), amounts bytes, rates bit/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from gargalo._core import (
    ConnectionInit,
    Context,
    LocalAddress,
    Open,
    PathView,
    RemoteAddress,
    SendAll,
    SubflowView,
    View,
)
from gargalo.plugins.registry import base, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "Choice",
    "ConnectionInit",
    "Context",
    "LocalAddress",
    "Open",
    "PathManager",
    "PathView",
    "RemoteAddress",
    "Scheduler",
    "SendAll",
    "SubflowView",
    "View",
    "path_manager",
    "scheduler",
]

Choice: TypeAlias = "PathView | int | SendAll | None"
"""A path of `Context.paths` or its index, `SendAll` of one of these, or None to wait."""


@base("scheduler")
class Scheduler:
    """Base class of schedulers; one instance per end of a connection.

    Only `select` must be defined. Parameters of the scenario, as in
    `scheduler = { mine = { gain = 0.5 } }`, are keyword arguments of the constructor.

    Take randomness from `random.Random(init.seed)` and time from the context: then a run repeats byte
    for byte.
    """

    def __init__(self, init: ConnectionInit) -> None:
        """Start a connection; `init` has `seed`."""

    def select(self, context: Context) -> Choice:
        """Return the path for the next segment.

        Asked for each segment, while there is data and the peer's window has room for it: return one of
        `context.paths` (or its index), `SendAll(path)` for a copy on every other path too, or None to
        send nothing now though a path may have room. A path that cannot send counts as None. After None
        the question comes again with the next acknowledgement; while nothing is in flight it is
        overruled.
        """
        raise NotImplementedError

    def minds_window(self) -> bool:
        """Return whether the class takes care itself that no path fills the window for the others.

        Then a path is penalised for it only if it carries less than the one that waits. Asked once.
        """
        return False


@base("path_manager")
class PathManager:
    """Base class of path managers; one instance per end of a connection.

    Only `missing` must be defined. Parameters of the scenario are keyword arguments of the constructor.
    """

    def __init__(self, init: ConnectionInit) -> None:
        """Start a connection; `init` has `seed`."""

    def missing(self, view: View) -> Iterable[Open | tuple[int, int]]:
        """Return the subflows that should be opened, by the identifiers of their addresses.

        Asked when the connection is open and whenever an address or a subflow has come or gone, at both
        ends: usually only a client (`view.is_client`) opens subflows. What cannot be had at present (a
        pair that failed a moment ago, too many subflows) is not done; when that changes the question
        comes again.
        """
        raise NotImplementedError

    def announces(self) -> bool:
        """Return whether a server announces its other addresses to the client (ADD_ADDR)."""
        return True


_S = TypeVar("_S", bound=type[Scheduler])
_P = TypeVar("_P", bound=type[PathManager])


def scheduler(name: str) -> Callable[[_S], _S]:
    """Register the decorated class as `scheduler = "name"`."""

    def decorate(class_: _S) -> _S:
        register(name, class_)
        return class_

    return decorate


def path_manager(name: str) -> Callable[[_P], _P]:
    """Register the decorated class as `path_manager = "name"`."""

    def decorate(class_: _P) -> _P:
        register(name, class_)
        return class_

    return decorate
