"""What `gargalo plot` draws of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from gargalo import _core
from gargalo.cli.common import fail, key_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gargalo.pictures.sweeps import SweepPicture

Kind: TypeAlias = Literal["points", "bars", "box", "cdf", "heat"]
"""As `gargalo.pictures.sweeps.Kind`, without the libraries of pictures; a test compares them."""


@dataclass(frozen=True)
class Chosen:
    """The options that say what is drawn of a sweep, as they were given."""

    x: str | None
    by: str | None
    kind: Kind | None
    flows: Sequence[str]
    group: str | None
    where: Sequence[str]
    level: float
    log_y: bool


def picture_of(store: Path, name: str | None, metric: str, chosen: Chosen) -> SweepPicture:
    """Return the picture of a sweep, or end the command."""
    if not 0 < chosen.level < 1:
        fail(f"--level {chosen.level}: between 0 and 1, like 0.95")
    where = dict(key_value("--where", text, "loss=1%") for text in chosen.where)
    from gargalo.sweeps import Sweep
    from gargalo.sweeps.errors import StoreError
    from gargalo.sweeps.picture import Selection, picture

    selection = Selection(
        chosen.x,
        chosen.by,
        chosen.kind,
        chosen.flows,
        chosen.group,
        where,
        chosen.level,
        chosen.log_y,
    )
    try:
        return picture(Sweep.load(store, name), metric, selection)
    except (ValueError, StoreError, _core.RunError) as e:
        fail(f"{store}: {e}")
