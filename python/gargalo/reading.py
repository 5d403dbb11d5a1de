"""Reading files of users: of bounded size and of a kind that has an end.

A device or a pipe can have no end, and a sparse file can be longer than the memory. All that users name is read
here, so that no such file takes the memory of the machine.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

MOST_TEXT = 64 << 20
"""Bytes of a text that people write: scenarios, sweeps, scripts, sources."""
MOST_DATA = 256 << 20
"""Bytes of what programs write: traces, libraries, the JSON of results; the engine has the same bound."""
DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Where pipes without a name of their own are, as the shell's <(command) and standard input."""
KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a named pipe",
}


class UnfitFileError(OSError):
    """A file is of a kind that is not read, or longer than what is read; the text says what to do.

    `filename` is the file, as that of other errors of files; None: standard input.
    """

    def __init__(self, text: str, path: Path | None = None) -> None:
        super().__init__(text)
        self.filename = None if path is None else os.fspath(path)

    def __str__(self) -> str:
        return str(self.args[0])


def data(path: str | Path, most: int = MOST_DATA) -> bytes:
    """Return the content of a regular file, or of a pipe that the shell made, of at most so many bytes.

    Raises:
        UnfitFileError: It is of another kind, or longer.
        OSError: It cannot be read.

    """
    path = Path(path)
    check(path, most)
    with path.open("rb") as file:
        return _bounded(file, most, path)


def text(path: str | Path, most: int = MOST_TEXT, *, errors: str = "strict") -> str:
    """Return a text in UTF-8 whose lines end in newlines alone; see `data`.

    Raises:
        UnicodeDecodeError: It is not in UTF-8, and `errors` is "strict".
        UnfitFileError: It is of another kind, or longer.
        OSError: It cannot be read.

    """
    return _lines(data(path, most).decode("utf-8", errors))


def stdin(most: int = MOST_TEXT) -> str:
    """Return the text of standard input in UTF-8.

    Raises:
        UnicodeDecodeError: It is not in UTF-8.
        UnfitFileError: It is longer.

    """
    return _bounded(sys.stdin.buffer, most).decode("utf-8")


def check(path: Path, most: int = MOST_DATA) -> None:
    """Check the kind and the size of a file, without opening it: a named pipe would be waited for.

    Raises:
        UnfitFileError: It is of a kind that is not read, or longer.
        OSError: It is not there.

    """
    facts = path.stat()
    kind = KINDS.get(stat.S_IFMT(facts.st_mode))
    if kind is not None and not is_pipe(path):
        msg = f"it is {kind}, and only regular files and the pipes of a shell are read; copy what is needed to a file"
        raise UnfitFileError(msg, path)
    if facts.st_size > most:
        raise _too_long(f"{size(facts.st_size)}, more than the", most, path)


def kind(path: Path) -> str:
    """Return what a place is: "a device", "a directory", "a file" and so on; empty if there is nothing."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""
    return "a directory" if stat.S_ISDIR(mode) else KINDS.get(stat.S_IFMT(mode), "a file")


def is_pipe(path: Path) -> bool:
    """Whether a path is that of a pipe without a name of its own, which can be read once."""
    return os.fspath(path).startswith(DESCRIPTORS) and path.is_fifo()


def reason(error: OSError) -> str:
    """Return why a file cannot be read, and what to do."""
    if isinstance(error, UnfitFileError):
        return str(error)
    return f"{error.strerror or error}; check the path"


def size(count: int) -> str:
    """Write an amount of bytes with a unit."""
    if count < 10_000:
        return f"{count} bytes"
    value, unit = next(
        (count / 10**p, u) for p, u in ((9, "GB"), (6, "MB"), (3, "kB")) if count >= 10**p
    )
    return f"{value:.3g} {unit}"


def space(path: str | Path) -> str:
    """Return how much the file system of a place has and how much of it is free, in brackets; nothing if unknown."""
    for place in (Path(path), *Path(path).absolute().parents):
        with suppress(OSError):
            facts = os.statvfs(place)
            free, whole = (n * facts.f_frsize for n in (facts.f_bavail, facts.f_blocks))
            return f" ({size(free)} of {size(whole)} are free there)"
    return ""


def _bounded(file: BinaryIO, most: int, path: Path | None = None) -> bytes:
    found = file.read(most + 1)
    if len(found) > most:
        raise _too_long("more than the", most, path)
    return found


def _too_long(what: str, most: int, path: Path | None) -> UnfitFileError:
    return UnfitFileError(
        f"it has {what} {size(most)} that are read; check that it is the right file", path
    )


def _lines(found: str) -> str:
    return found.replace("\r\n", "\n").replace("\r", "\n")
