"""Texts in TOML as dictionaries; `tomllib`, which Python 3.10 lacks."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError, loads
else:
    from tomli import TOMLDecodeError, loads  # type: ignore[import-not-found, unused-ignore]

__all__ = ["TOMLDecodeError", "loads", "tables"]


def tables(text: str) -> dict[str, Any]:
    """Return a text as a dictionary; empty if it is not TOML."""
    try:
        tree: dict[str, Any] = loads(text)
    except TOMLDecodeError:
        return {}
    return tree
