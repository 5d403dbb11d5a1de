"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace(path: str | Path, text: str) -> Path:
    """Write a page whole or not at all; a file that exists is replaced.

    Raises:
        OSError: The file cannot be written.

    """
    target = Path(path)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as file:
        part = Path(file.name)
        try:
            file.write(text)
            file.close()
            # As a file made with open(): what the umask leaves of rw-rw-rw-.
            umask = os.umask(0)
            os.umask(umask)
            part.chmod(0o666 & ~umask)
            os.replace(part, target)  # noqa: PTH105
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return target
