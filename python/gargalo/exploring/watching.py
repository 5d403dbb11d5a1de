"""Python files with classes of the user's own that are edited while the page is open."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo.plugins import source
from gargalo.plugins.registry import register, registered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.plugins.registry import Classes


class Watched:
    """Files that were named on the command line, which a run takes as they are then.

    The page cannot name a file: whoever has the link runs what the user started with, and nothing else.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        """Take files that have been loaded; shared libraries stay as they are."""
        self._texts = {file: source.read(file) for file in files if file.suffix == ".py"}

    def refresh(self) -> None:
        """Load each file again that has changed.

        Raises:
            Exception: Whatever a file raises, or that it cannot be read; the next call tries again.

        """
        for file, loaded in self._texts.items():
            text = source.read(file)
            if text != loaded:
                source.execute(text, str(file.absolute()))
                self._texts[file] = text


def classes(file: Path) -> Classes:
    """Return the classes of a Python file; what is registered by their names stays so."""
    before = registered()
    found = source.execute(source.read(file), str(file.absolute()))
    for kind, own in found.items():
        for name in own:
            if name in before[kind]:
                register(name, before[kind][name])
    return found


def told(error: Exception) -> str:
    """Return an error's text in one line; of one within a file of the user's, with its place."""
    text = " ".join(str(error).split())
    package = str(Path(__file__).parent.parent)
    own = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith(("<frozen", package))
    ]
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    if own:
        return f"{own[-1].filename}:{own[-1].lineno}: {type(error).__name__}: {text}"
    return text
