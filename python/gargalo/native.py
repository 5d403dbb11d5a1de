"""Congestion controls compiled to shared libraries."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.registry import adopt_stack, register

if TYPE_CHECKING:
    from gargalo._core import NativeCongestion, NativeStack
    from gargalo.registry import Classes

SUFFIXES = (".so", ".dylib", ".dll")
"""What the names of shared libraries end in."""


class PluginError(ValueError):
    """A plug-in cannot be loaded; the text names its file."""


def is_library(file: str | Path) -> bool:
    """Whether a plug-in is a shared library, by its name."""
    return Path(file).suffix in SUFFIXES


def load(file: str | Path) -> tuple[list[NativeCongestion], NativeStack | None]:
    """Return the congestion controls and the QUIC stack of a shared library.

    Raises:
        PluginError: It cannot be read, or is no such library.

    """
    try:
        library = Path(file).read_bytes()
    except FileNotFoundError:
        msg = f"{file}: no such file"
        raise PluginError(msg) from None
    except OSError as e:
        msg = f"{file}: cannot be read: {e.strerror or e}"
        raise PluginError(msg) from None
    try:
        controls = _core.native_congestion(str(file), library)
        stack = _core.native_stack(str(file), library)
    except ValueError as e:
        raise PluginError(str(e)) from None
    own = {name for c in _core.congestion() for name in (c["name"], *c["aliases"])}
    for control in controls:
        if control.name in own:
            msg = f'{file}: "{control.name}" is the name of a built-in congestion control; choose another'
            raise PluginError(msg)
    return controls, stack


def packed(classes: Classes) -> list[tuple[str, str]]:
    """Return the shared libraries of congestion controls and stacks: name, and what the file has in base 64."""
    found = (*classes["congestion"].values(), *classes["stack"].values())
    native = (_core.NativeCongestion, _core.NativeStack)
    libraries = {c.digest: c for c in found if isinstance(c, native)}
    return [(c.file, base64.b64encode(c.library).decode()) for c in libraries.values()]


def load_plugin(file: str | Path) -> tuple[list[NativeCongestion], NativeStack | None]:
    """Load a shared library and make its congestion controls and QUIC stack known to scenarios of this process.

    `run`, `sweep` and `evaluate` then know them by name.

    Raises:
        PluginError: It cannot be read, or is no such library.

    """
    controls, stack = load(file)
    for control in controls:
        register(control.name, control)
    if stack is not None:
        adopt_stack(stack)
    return controls, stack
