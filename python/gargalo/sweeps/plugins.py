"""Classes written in Python and shared libraries.

What they are made of is part of a run's identifier, and is sent to workers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import math
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle  # type: ignore[import-untyped]

from gargalo import reading
from gargalo._core import NativeCongestion, NativeStack
from gargalo.plugins import discovery, native, source
from gargalo.plugins.registry import KINDS, Classes, Kind, registered
from gargalo.sweeps import work
from gargalo.sweeps.errors import SweepError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gargalo.results import Run


@dataclass(frozen=True)
class Plugins:
    """The congestion controls, schedulers, path managers and stacks that workers must be given."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and text of Python files."""
    digests: Mapping[Kind, Mapping[str, str]] = field(default_factory=dict)
    """A digest of the source of each class, by kind and name."""
    others: Classes = field(default_factory=dict)
    """What is registered in this process by other code, and what is of shared libraries."""

    @classmethod
    def load(cls, files: Sequence[Path] = ()) -> Plugins:
        """Read plugin files and register what they define; add what is registered already.

        Raises:
            SweepError: A file cannot be read, or fails.

        """
        texts = []
        digests: dict[Kind, dict[str, str]] = {kind: {} for kind in KINDS}
        for file in files:
            if native.is_library(file):
                try:
                    native.load_plugin(file)
                except native.PluginError as e:
                    msg = f"--plugin {e}"
                    raise SweepError(msg) from None
                continue
            text = _text(file)
            try:
                classes = source.execute(text, str(file))
            except (Exception, SystemExit) as e:
                msg = f"--plugin {file}: {work_place(e, file)}{type(e).__name__}: {e}"
                raise SweepError(msg) from None
            if not any(classes.values()):
                msg = (
                    f'--plugin {file} registers no class; decorate it with @gargalo.congestion("name"), '
                    '@gargalo.scheduler("name") or @gargalo.path_manager("name")'
                )
                raise SweepError(msg)
            texts.append((str(file), text))
            for kind, names in classes.items():
                digests[kind].update(dict.fromkeys(names, _digest(text)))
        others: Classes = {
            kind: {n: c for n, c in classes.items() if n not in digests[kind]}
            for kind, classes in registered().items()
        }
        # Workers load them themselves.
        others["stack"] = {n: c for n, c in others["stack"].items() if n not in discovery.loaded()}
        for kind, classes_of_kind in others.items():
            digests[kind].update({n: _digest_of(c) for n, c in classes_of_kind.items()})
        return cls(tuple(texts), digests, others)

    def pickled(self, *, by_value: bool) -> bytes | None:
        """Return the classes that are in no plugin file, as bytes."""
        classes = [c for of_kind in self.others.values() for c in of_kind.values()]
        if not classes:
            return None
        # The module of a plugin file that was loaded before exists in this process alone.
        modules = {c.__module__ for c in classes if isinstance(c, type)}
        loaded = [m for m in modules if m.startswith(source.MODULE)]
        with travelling([*modules] if by_value else loaded):
            data: bytes = cloudpickle.dumps(self.others)
        return data


def work_place(e: BaseException, file: Path) -> str:
    """Return the line of a file where an exception came from, to put before its text."""
    line = getattr(e, "lineno", None)
    trace = e.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f"line {line}: "


def _text(file: Path) -> str:
    try:
        return source.read(file)
    except (UnicodeDecodeError, SyntaxError) as e:
        msg = f"--plugin {file}: not a text file: {e}"
    except OSError as e:
        msg = f"--plugin {file}: cannot be read: {reading.reason(e)}"
    raise SweepError(msg)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest_of(thing: Any) -> str:
    return (
        thing.digest
        if isinstance(thing, (NativeCongestion, NativeStack))
        else _digest(source_of(thing))
    )


def source_of(thing: Any) -> str:
    """Return the source that decides what a function or class does.

    That is its own text and, from the same module, that of everything it names, and so on.
    """
    seen: dict[str, str] = {}
    todo = [thing]
    while todo:
        one = inspect.unwrap(todo.pop())
        name = f"{getattr(one, '__module__', '')}.{getattr(one, '__qualname__', repr(one))}"
        if name in seen:
            continue
        try:
            seen[name] = inspect.getsource(one)
        except (OSError, TypeError):
            seen[name] = hashlib.sha256(cloudpickle.dumps(one)).hexdigest()
            continue
        module = sys.modules.get(getattr(one, "__module__", "") or "")
        for word in _names(one):
            found = getattr(module, word, None)
            if inspect.isroutine(found) or inspect.isclass(found):
                if getattr(found, "__module__", None) == getattr(one, "__module__", ""):
                    todo.append(found)
            elif isinstance(found, (int, float, str, bool, tuple)):
                seen[f"{name} {word}"] = repr(found)
    return "\n".join(f"{k}: {v}" for k, v in sorted(seen.items()))


def _names(thing: Any) -> set[str]:
    """Return the global names that the code of a function or class uses."""
    if inspect.isclass(thing):
        members = [m for m in vars(thing).values() if inspect.isfunction(m)]
        bases = {b.__name__ for b in thing.__bases__}
        return bases.union(*(_names(m) for m in members))
    code = getattr(thing, "__code__", None)
    names: set[str] = set()
    todo = [code] if code is not None else []
    while todo:
        one = todo.pop()
        names.update(one.co_names)
        todo += [c for c in one.co_consts if inspect.iscode(c)]
    return names


@dataclass(frozen=True)
class Measure:
    """A function of the user that measures runs, and the table for its results."""

    name: str
    function: Callable[[Run], Mapping[str, Any]]
    table: str
    bounds: str | None = None
    """What its attribute `bounds` declares, as JSON: by figure the least and the greatest value, null for none."""

    @classmethod
    def of(cls, measure: Callable[[Run], Mapping[str, Any]] | str | None) -> Measure | None:
        """Look a function up and find out what it is made from.

        Raises:
            SweepError: It cannot be imported, or what it declares is wrong.

        """
        if measure is None:
            return None
        try:
            function = work.load_measure(measure) if isinstance(measure, str) else measure
        except work.MeasureError as e:
            raise SweepError(str(e)) from None
        if function is None or not callable(function):
            msg = f"measure must be a function or its name, not {measure!r}"
            raise SweepError(msg)
        module = getattr(function, "__module__", "?")
        name = f"{module}:{getattr(function, '__qualname__', repr(function))}"
        # The same function may be known as __main__ or by its module; its source decides.
        packages = [package_source(p) for p in getattr(function, "packages", ())]
        table = f"measures-{_digest(''.join([source_of(function), *packages]))[:12]}"
        return cls(name, function, table, declared_bounds(name, getattr(function, "bounds", None)))

    def pickled(self, *, by_value: bool) -> bytes:
        """Return the function as bytes."""
        with travelling([self.function.__module__] if by_value else []):
            data: bytes = cloudpickle.dumps(self.function)
        return data


def package_source(package: str) -> str:
    """Return the sources of a package that a measuring function declares to use, besides those of its own module.

    Raises:
        SweepError: There is no such package.

    """
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:
        spec = None
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    files = sorted(f for folder in folders for f in Path(folder).rglob("*.py"))
    if not files:
        msg = f'a measuring function declares the package "{package}", which is not there'
        raise SweepError(msg)
    return "".join(f"{f.name}: {f.read_text(encoding='utf-8')}" for f in files)


def declared_bounds(name: str, bounds: Any) -> str | None:
    """Return what a measuring function declares of its figures as JSON.

    Raises:
        SweepError: It is not a mapping of names to pairs, the lesser first.

    """
    if bounds is None:
        return None
    try:
        found = {str(k): (float(least), float(most)) for k, (least, most) in dict(bounds).items()}
        if not all(least < most for least, most in found.values()):
            raise ValueError
    except (TypeError, ValueError):
        msg = (
            f"{name}.bounds must name the least and the greatest value of figures, "
            f'like {{"delay_s": (0, math.inf)}}, not {bounds!r}'
        )
        raise SweepError(msg) from None
    pairs = {k: [v if math.isfinite(v) else None for v in pair] for k, pair in found.items()}
    return json.dumps(pairs, ensure_ascii=False)


@contextmanager
def travelling(modules: Sequence[str]) -> Iterator[None]:
    """Pickle what these modules define by value: where it goes they may be missing."""
    chosen = []
    for name in {m.partition(".")[0] for m in modules} | set(modules):
        module = sys.modules.get(name)
        if module is not None and not _installed(name, module):
            cloudpickle.register_pickle_by_value(module)
            chosen.append(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)


def _installed(name: str, module: Any) -> bool:
    root = name.partition(".")[0]
    file = getattr(module, "__file__", None) or ""
    return (
        root in ("gargalo", "__main__")
        or "site-packages" in file
        or root in sys.stdlib_module_names
    )
