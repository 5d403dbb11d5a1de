"""QUIC stacks that are installed as files: a scenario that names one loads it.

A file is called as its stack, `NAME.py` or `NAME.so`, and is in a folder of the environment variable `GARGALO_STACKS`
(several are separated as in `PATH`) or in `share/gargalo/stacks` of the Python environment, where `make stacks` puts them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, registry

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["folders", "installed", "load", "load_named", "loaded"]

VARIABLE = "GARGALO_STACKS"
SUFFIXES = (".py", ".so", ".dylib", ".dll")

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
            if file.suffix in SUFFIXES and registry.is_name(file.stem):
                found.setdefault(file.stem, file)
    return found


def load(file: Path) -> None:
    """Load a file and register its stack, which must have the name of the file.

    Raises:
        RunError: It cannot be loaded, or registers no stack of this name.

    """
    import hashlib  # loads OpenSSL's library

    name = file.stem
    try:
        data = file.read_bytes()
        if file.suffix == ".py":
            # Not by its own name: that may be the name of the library that it is around.
            spec = importlib.util.spec_from_file_location(f"gargalo_stack_{name}", file)
            if spec is None or spec.loader is None:
                raise ImportError(name)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            stack = _core.native_stack(str(file), data)
            if stack is not None and stack.name == name:
                registry.adopt_stack(stack)
    except Exception as e:
        msg = f'stack = "{name}": {file} cannot be loaded: {type(e).__name__}: {e}'
        raise _core.RunError(msg) from e
    stack = registry.registered()["stack"].get(name)
    if stack is None:
        msg = f'stack = "{name}": {file} has no stack of this name'
        raise _core.RunError(msg)
    _loaded[name] = stack, hashlib.sha256(data).hexdigest()


def load_named(text: str, values: Iterable[str] = ()) -> None:
    """Load the installed stacks whose names are in the text of a scenario, or in values that it is changed by.

    Stacks that are registered already stay as they are.

    Raises:
        RunError: A file cannot be loaded.

    """
    known = registry.registered()["stack"]
    given = "\n".join([text, *values])
    for name, file in installed().items():
        if name not in known and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", given):
            load(file)


def loaded() -> dict[str, str]:
    """Return the SHA-256 of the files that this process has loaded, in hexadecimal, by the name of their stack."""
    known = registry.registered()["stack"]
    return {n: digest for n, (stack, digest) in _loaded.items() if known.get(n) is stack}
