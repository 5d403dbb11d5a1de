"""Python files with classes of the user's own, run from their text.

The text is what a sweep sends to its workers and what a run's identifier is made of, so it is what is run everywhere.
An import would take what Python has compiled before, and two edits within a second can be one file to it.
"""

from __future__ import annotations

import sys
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gargalo import reading
from gargalo.plugins.registry import added, registered

if TYPE_CHECKING:
    from gargalo.plugins.registry import Classes

MODULE = "gargalo_plugin_"
"""What names of modules made of such files begin with."""


def read(file: Path) -> str:
    """Return the text of a file, in the encoding that it declares; without that, UTF-8 (PEP 263).

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is not in its encoding.
        SyntaxError: There is no such encoding.

    """
    return decode_source(reading.data(file, reading.MOST_TEXT))


def execute(text: str, file: str) -> Classes:
    """Run the text of a file, and return the classes that it registers.

    Raises:
        Exception: Whatever it raises.

    """
    before = registered()
    module = ModuleType(MODULE + Path(file).stem)
    module.__file__ = file
    sys.modules[module.__name__] = module
    # Without the future statements of this module.
    exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    return added(before, registered())
