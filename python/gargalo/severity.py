"""Kinds of faults that a run may have."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["corrupt", "failure", "warning"]
"""Data that differ from what was sent; a connection that failed or was never established; a warning."""
KINDS: tuple[Kind, ...] = get_args(Kind)
"""From the worst."""


def counted(least: Kind) -> tuple[Kind, ...]:
    """Return a kind and all that are worse."""
    return KINDS[: KINDS.index(least) + 1]
