"""The stacks that scenarios can name.

The one inside, those that are registered, and those that are installed as files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo import _core, judging
from gargalo.interop.model import Stack
from gargalo.plugins import discovery
from gargalo.plugins.registry import registered

if TYPE_CHECKING:
    from collections.abc import Sequence

NOQ = "noq"
NOQ_VERSION = "1.4.0"
"""Of noq-proto, as in Cargo.lock."""
NOQ_FEATURES = frozenset(
    [
        "0-rtt",
        "retry",
        "migration",
        "ecn",
        "qlog",
        "no-pacing",
        "mtu-discovery",
        "initial-window",
        "unidirectional",
        "datagrams",
        "cancel",
        "urgency",
        "key-update",
        "multipath",
    ]
)


def noq() -> Stack:
    """Return the stack inside, which has all congestion controls of the project."""
    names = [str(c["name"]) for c in _core.congestion()]
    own = ["cubic", *(n for n in names if n != "cubic")]
    return Stack(NOQ, NOQ_VERSION, tuple(own), NOQ_FEATURES, {n: n for n in own})


def known() -> dict[str, Stack]:
    """Return all stacks by name; those that are installed are loaded."""
    files = {name: str(path) for name, path in discovery.installed().items()}
    found = {NOQ: noq()}
    for name, path in discovery.installed().items():
        if name not in registered()["stack"]:
            try:
                discovery.load(path)
            except _core.RunError as e:
                found[name] = Stack(name, file=str(path), broken=str(e))
    for name, stack in registered()["stack"].items():
        file = getattr(stack, "file", None) or files.get(name, "")
        found[name] = Stack(
            name,
            stack.version,
            tuple(stack.congestion),
            frozenset(stack.features),
            dict(stack.specifications),
            str(file),
        )
    return dict(sorted(found.items()))


def find(names: Sequence[str]) -> list[Stack]:
    """Return the stacks of these names; all of them if there are no names.

    Raises:
        KeyError: There is none of a name.

    """
    every = known()
    return [judging.find("stack", n, every) for n in names] or list(every.values())


def specification(stack: str, congestion: str) -> str | None:
    """Return what a loaded stack says that a congestion control of it follows, such as `bbr2`.

    None if it does not say.
    """
    if stack == NOQ:
        return congestion
    found = registered()["stack"].get(stack)
    return None if found is None else found.specifications.get(congestion)


def common_congestion(*stacks: Stack) -> str | None:
    """Return a congestion control that all of these have, CUBIC before others."""
    first, *others = stacks
    shared = [n for n in first.congestion if all(n in o.congestion for o in others)]
    return "cubic" if "cubic" in shared else next(iter(shared), None)
