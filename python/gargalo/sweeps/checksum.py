"""Checksums that the Parquet files of a store carry in themselves.

The footer of a file has the key `gargalo.sha256`: the SHA-256 of the whole file, taken with 64 zeros in
the place of its digits. So a file and its checksum appear at once, by one rename, whichever process writes it and
whenever that is killed, and stay together when files are merged, copied or moved. Other readers of
Parquet see a key that they do not know.
"""

from __future__ import annotations

import hashlib
import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    import polars as pl

KEY = b"gargalo.sha256"
DIGITS = 64
BLANK = b"0" * DIGITS
CHUNK = 1 << 20
TAIL = 8
"""What ends a Parquet file: the length of the footer, then a magic number."""
EMPTY = "gargalo.empty"
"""The key of the footer that has the runs of which the file has no row."""
BETWEEN = 2
"""Bytes between key and value: the kind of the next field, and its length."""


def to_parquet(frame: pl.DataFrame, *, level: int = 1, empty: Sequence[str] = ()) -> bytes:
    """Return a data frame as a Parquet file with its checksum, compressed by zstd at a level.

    `empty` are runs that it is to name besides those that have rows.
    """
    file = io.BytesIO()
    metadata = {KEY.decode(): BLANK.decode()}
    if empty:
        metadata[EMPTY] = " ".join(empty)
    frame.write_parquet(file, compression="zstd", compression_level=level, metadata=metadata)
    data = file.getvalue()
    at = data.rindex(KEY) + len(KEY) + BETWEEN
    digest = hashlib.sha256(data).hexdigest().encode()
    return b"".join((data[:at], digest, data[at + DIGITS :]))


def why_damaged(path: Path, *, required: bool = True) -> str | None:
    """Return what is wrong with a file of a store; None if it is as it was written.

    Args:
        path: The file.
        required: A file without a checksum is damaged, too.

    Raises:
        FileNotFoundError: There is none.

    """
    try:
        with path.open("rb") as file:
            right = matches(file)
    except FileNotFoundError:
        raise
    except OSError as e:
        return f"it cannot be read: {e.strerror or e}"
    if right is None:
        return "it has no checksum" if required else None
    return None if right else "its checksum does not match"


def matches(file: BinaryIO) -> bool | None:
    """Return whether a file matches its checksum; None if it has none."""
    size = file.seek(0, os.SEEK_END)
    found = _digits(file, size)
    if found is None:
        return None
    at, digits = found
    file.seek(0)
    seen = hashlib.sha256()
    position = 0
    while chunk := bytearray(file.read(CHUNK)):
        begin, end = at - position, at - position + DIGITS
        if begin < len(chunk) and end > 0:
            inside = slice(max(begin, 0), min(end, len(chunk)))
            chunk[inside] = BLANK[: inside.stop - inside.start]
        seen.update(chunk)
        position += len(chunk)
    return seen.hexdigest().encode() == digits


def _digits(file: BinaryIO, size: int) -> tuple[int, bytes] | None:
    """Return where the digits of the checksum are, and the digits."""
    if size < TAIL:
        return None
    file.seek(size - TAIL)
    footer = int.from_bytes(file.read(4), "little")
    begin = size - TAIL - footer
    if begin < 0:
        return None
    file.seek(begin)
    data = file.read(footer)
    key = data.rfind(KEY)
    at = key + len(KEY) + BETWEEN
    if key < 0 or at + DIGITS > len(data):
        return None
    return begin + at, data[at : at + DIGITS]
