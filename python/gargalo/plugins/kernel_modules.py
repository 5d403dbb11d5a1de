"""Modules of Linux as plug-ins: which files they consist of, and what they use that the shim does not have."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from gargalo import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Kind: TypeAlias = Literal["function", "name", "field", "structure", "header", "private state"]
"""What a module may use that is missing. A name is a constant, a variable or a type."""

KERNEL_HEADER = re.compile(
    r"^\s*#\s*include\s*<((?:linux|net|asm|asm-generic|trace|uapi|crypto|vdso)/[\w./-]+)>",
    re.MULTILINE,
)
OWN_HEADER = re.compile(r'^\s*#\s*include\s*"([\w./-]+\.h)"', re.MULTILINE)
FEW = 30
"""Fields of a structure that are all listed; of a larger one, only similar ones."""
SHIM = "linux/gargalo_linux.h"
FORWARD = '#include "gargalo_linux.h"\n'


def is_module(source: str) -> bool:
    """Whether a source is a module of Linux: it includes headers of the kernel."""
    return re.search(r"^\s*#\s*include\s*<(?:linux|net)/", source, re.MULTILINE) is not None


def sources(file: Path) -> list[Path]:
    """Return a module's source and those beside it whose functions it calls.

    A module that includes "tcp_vegas.h" uses what tcp_vegas.c exports; the kernel's loader finds that in another
    module, here both become one library.
    """
    found = [file]
    for current in found:
        for header in included(current):
            other = header.with_suffix(".c")
            if other.is_file() and other.resolve() not in {f.resolve() for f in found}:
                found.append(other)
    return found


def included(file: Path) -> Iterator[Path]:
    """Yield the headers of its own that a source includes and that exist."""
    for name in OWN_HEADER.findall(reading.text(file, errors="replace")):
        header = file.parent / name
        if header.is_file():
            yield header


def kernel_headers(files: Iterable[Path]) -> set[str]:
    """Return the headers of the kernel that sources and their own headers include."""
    files = list(files)
    every = {*files, *(header for file in files for header in included(file))}
    return {
        name
        for file in every
        for name in KERNEL_HEADER.findall(reading.text(file, errors="replace"))
    }


@dataclass(frozen=True, slots=True)
class Missing:
    """Something of the kernel that a module uses and the shim does not have."""

    kind: Kind
    name: str
    place: str
    """File and line, like "tcp_lp.c:152"."""
    of: str = ""
    """The structure, for a field."""
    near: tuple[str, ...] = ()
    """What the shim has instead: names alike, or the fields of the structure."""

    def __str__(self) -> str:
        """Return one line about it."""
        if self.kind == "private state":
            return f"{self.place}: {self.name}"
        if self.kind == "header":
            return f'{self.place}: the module\'s own "{self.name}" is not beside it'
        what = f"{self.kind} {self.name}"
        if self.of:
            what += f" in struct {self.of}"
        text = f"{self.place}: the shim has no {what}"
        if self.near:
            text += f"; it has {', '.join(self.near)}"
        return text


# What GCC and Clang say, with plain quotes (LC_ALL=C). A place is a file and a line.
PLACE = r"^(?P<place>[^\s:][^:\n]*:\d+):\d+: (?:fatal )?(?:error|warning): "
SAID: tuple[tuple[Kind, str], ...] = (
    ("header", PLACE + r"'?(?P<name>[\w./-]+\.h)'?(?:: No such file| file not found)"),
    ("field", PLACE + r"'(?:const )?struct (?P<of>\w+)' has no member named '(?P<name>\w+)'"),
    ("field", PLACE + r"no member named '(?P<name>\w+)' in 'struct (?P<of>\w+)'"),
    ("field", PLACE + r"field designator '(?P<name>\w+)' does not refer to .* 'struct (?P<of>\w+)'"),
    ("function", PLACE + r"implicit declaration of function '(?P<name>\w+)'"),
    ("function", PLACE + r"call to undeclared (?:library )?function '(?P<name>\w+)'"),
    ("name", PLACE + r"'(?P<name>\w+)' undeclared"),
    ("name", PLACE + r"use of undeclared identifier '(?P<name>\w+)'"),
    ("name", PLACE + r"unknown type name '(?P<name>\w+)'"),
    ("structure", PLACE + r"invalid use of undefined type '(?:const )?struct (?P<name>\w+)'"),
    ("structure", PLACE + r"incomplete definition of type '(?:const )?struct (?P<name>\w+)'"),
    ("structure", PLACE + r"storage size of '\w+' isn't known.*?struct (?P<name>\w+)"),
    ("private state", PLACE + r"static assertion failed.*?(?P<name>sizeof.*ICSK_CA_PRIV_SIZE)"),
    ("function", r"^(?P<place>[^\n]*?): undefined reference to [`'](?P<name>\w+)'"),
    ("function", r"undefined symbol: (?P<name>\w+)\n>>> referenced by (?P<place>[^\s(]+)"),
)  # fmt: skip


def missing(told: str, headers: Mapping[str, str]) -> list[Missing]:
    """Return what a compiler's messages say is missing, in their order, each thing once.

    Args:
        told: The messages, in the C locale.
        headers: The shim, as `_core.plugin_headers()` has it.

    """
    shim = headers[SHIM]
    found: dict[tuple[Kind, str, str], tuple[int, Missing]] = {}
    for kind, pattern in SAID:
        for match in re.finditer(pattern, told, re.MULTILINE):
            groups = match.groupdict()
            name, of = groups["name"], groups.get("of") or ""
            if (kind, name, of) in found:
                continue
            place = groups["place"].rsplit("/", 1)[-1]
            item = Missing(kind, name, place, of, tuple(alike(shim, kind, name, of)))
            found[kind, name, of] = (match.start(), item)
    return [item for _, item in sorted(found.values(), key=lambda pair: pair[0])]


def alike(shim: str, kind: Kind, name: str, of: str) -> list[str]:
    """Return what the shim has in the place of a missing thing."""
    if kind == "field":
        every = fields(shim, of)
        return every if len(every) <= FEW else difflib.get_close_matches(name, every, 5, 0.6)
    if kind in ("private state", "structure", "header"):
        return []
    words = sorted(set(re.findall(r"\b[A-Za-z]\w{3,}\b", shim)))
    return difflib.get_close_matches(name, words, 3, 0.75)


def fields(shim: str, structure: str) -> list[str]:
    """Return the fields of a structure of the shim."""
    match = re.search(rf"^struct {structure} \{{\n(.*?)^\}};", shim, re.MULTILINE | re.DOTALL)
    if match is None:
        return []
    text = re.sub(r"/\*.*?\*/|^#.*?$", "", match[1], flags=re.DOTALL | re.MULTILINE)
    names: list[str] = []
    for declaration in text.split(";"):
        pointer = re.search(r"\(\*(\w+)\)", declaration)
        plain = re.search(r"(\w+)\s*(?:\[[^\]]*\]|:\s*\d+)?\s*$", declaration)
        names.extend(m[1] for m in (pointer or plain,) if m is not None)
    return list(dict.fromkeys(names))
