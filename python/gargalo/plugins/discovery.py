"""QUIC stacks that are installed as files: a scenario that names one loads it.

A file is called as its stack, `NAME.py` or `NAME.so`, and is in a folder of the environment variable `GARGALO_STACKS`
(several are separated as in `PATH`) or in `share/gargalo/stacks` of the Python environment, where `make stacks` puts
them. Several builds of one stack are beside each other as `NAME@BUILD.so`: they are `stack = "NAME@BUILD"`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "folders",
    "installed",
    "load",
    "load_named",
    "loaded",
    "named",
    "names",
    "with_installed",
]

VARIABLE = "GARGALO_STACKS"
SUFFIXES = (".py", ".so", ".dylib", ".dll")

BUILD = re.compile(r"[\w-]+(@[\w.-]+)?")
"""The name of a stack, and of a build of it."""

_loaded: dict[str, tuple[Any, str]] = {}


def folders() -> list[Path]:
    """Return where stacks are looked for, the first first."""
    given = os.environ.get(VARIABLE, "").split(os.pathsep)
    return [Path(f) for f in given if f] + [Path(sys.prefix) / "share" / "gargalo" / "stacks"]


def installed() -> dict[str, Path]:
    """Return the files of stacks by name; nothing is loaded."""
    found: dict[str, Path] = {}
    for folder in folders():
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        for file in files:
            if file.suffix in SUFFIXES and BUILD.fullmatch(file.stem):
                found.setdefault(file.stem, file)
    return found


def load(file: Path) -> None:
    """Load a file and register its stack, which must have the name of the file, without that of the build.

    Raises:
        RunError: It cannot be loaded, or registers no stack of this name.

    """
    import hashlib  # loads OpenSSL's library

    from gargalo.plugins import native

    name = file.stem
    own = name.partition("@")[0]
    try:
        data = reading.data(file)
        if file.suffix == ".py":
            # Not by its own name: that may be the name of the library that it is around.
            spec = importlib.util.spec_from_file_location(f"gargalo_stack_{name}", file)
            if spec is None or spec.loader is None:
                raise ImportError(name)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            with _beside(own, name):
                spec.loader.exec_module(module)
        else:
            native.try_out(str(file), data)
            stack = _core.native_stack(str(file), data)
            if stack is not None and stack.name == own:
                registry.adopt_build(stack, name)
    except (Exception, SystemExit) as e:
        msg = f'stack = "{name}": {file} cannot be loaded: {type(e).__name__}: {e}'
        raise _core.RunError(msg) from e
    stack = registry.registered()["stack"].get(name)
    if stack is None:
        msg = f'stack = "{name}": {file} has no stack "{own}"'
        raise _core.RunError(msg)
    _loaded[name] = stack, hashlib.sha256(data).hexdigest()


@contextmanager
def _beside(own: str, name: str) -> Iterator[None]:
    """Register what is registered as a stack's own name as that of a build, and keep the one that had this name."""
    if own == name:
        yield
        return
    before = registry.registered()["stack"].get(own)
    registry.forget_stack(own)
    try:
        yield
        if (made := registry.registered()["stack"].get(own)) is not None:
            registry.adopt_build(made, name)
    finally:
        registry.forget_stack(own)
        if before is not None:
            registry.adopt_build(before, own)


def load_named(text: str, changes: Iterable[tuple[str, str]] = ()) -> None:
    """Load the installed stacks that a scenario names.

    Stacks that are registered already stay as they are.

    Args:
        text: The scenario in TOML. One that is wrong names none: the engine says what is wrong.
        changes: Dotted keys and values by which it is changed.

    Raises:
        RunError: A file cannot be loaded.

    """
    known = registry.registered()["stack"]
    missing = {name: file for name, file in installed().items() if name not in known}
    if not missing:
        return
    changes = list(changes)
    # A scenario without any of the names, and without escapes that could write one, is not read twice.
    parts = [text, *(value for _, value in changes)]
    if not any(word in part for part in parts for word in (*missing, "\\")):
        return
    for name in sorted(named(text, changes) & missing.keys()):
        load(missing[name])


def named(text: str, changes: Iterable[tuple[str, str]] = ()) -> set[str]:
    """Return the names that a scenario has for QUIC stacks: values of `stack` in tables `quic`."""
    # Most commands do without, and it takes longer to load than the rest of this module.
    from gargalo._toml import tables

    found = set(in_text(text))
    for key, value in changes:
        tree: Any = tables(f"value = {value}").get("value", value)
        for part in reversed(key.split(".")):
            tree = {part: tree}
        found.update(of_tree(tree))
    return found


@functools.lru_cache(maxsize=16)
def in_text(text: str) -> frozenset[str]:
    """Return the names in a scenario without changes, which is the same for all runs of a sweep."""
    from gargalo._toml import tables

    return frozenset(of_tree(tables(text)))


def of_tree(tree: Any) -> Iterator[str]:
    """Return the names of stacks in tables and lists."""
    if isinstance(tree, list):
        for item in tree:
            yield from of_tree(item)
    if not isinstance(tree, dict):
        return
    quic = tree.get("quic")
    stack = quic.get("stack") if isinstance(quic, dict) else None
    ends = stack.values() if isinstance(stack, dict) else [stack]
    yield from (name for name in ends if isinstance(name, str))
    for value in tree.values():
        yield from of_tree(value)


def names(known: registry.Classes | None = None) -> dict[str, list[str]]:
    """Return the names that scenarios can have: `registry.names`, and under `installed` those of stacks in files."""
    found: dict[str, list[str]] = {str(k): of_kind for k, of_kind in registry.names(known).items()}
    return found | {"installed": list(installed())}


def with_installed(classes: registry.Classes) -> dict[str, dict[str, Any]]:
    """Return classes, and under `installed` the files of stacks by name."""
    found: dict[str, dict[str, Any]] = {str(k): of_kind for k, of_kind in classes.items()}
    return found | {"installed": dict(installed())}


def loaded() -> dict[str, str]:
    """Return the SHA-256 of the files that this process has loaded, in hexadecimal, by the name of their stack."""
    known = registry.registered()["stack"]
    return {n: digest for n, (stack, digest) in _loaded.items() if known.get(n) is stack}
