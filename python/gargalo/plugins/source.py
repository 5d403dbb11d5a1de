"""Python files with classes of the user's own, run from their text.

The text is what a sweep sends to its workers and what a run's identifier is made of, so it is what is run everywhere. An
import would take what Python has compiled before, and two edits within a second can be one file to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gargalo.plugins.registry import added, registered

if TYPE_CHECKING:
    from gargalo.plugins.registry import Classes

MODULE = "gargalo_plugin_"
"""What names of modules made of such files begin with."""


def execute(text: str, file: str) -> Classes:
    """Run the text of a file, and return the classes that it registers.

    Raises:
        Exception: Whatever it raises.

    """
    before = registered()
    module = ModuleType(MODULE + Path(file).stem)
    module.__file__ = file
    sys.modules[module.__name__] = module
    exec(compile(text.removeprefix("\ufeff"), file, "exec"), module.__dict__)
    return added(before, registered())
