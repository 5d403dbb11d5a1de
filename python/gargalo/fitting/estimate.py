"""How certain a path is: each parameter, and what is not known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.path import Path

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """What a value lies in with a probability of nine tenths; an open end is None."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """A path, how certain each number is, and what the recording cannot tell."""

    path: Path
    intervals: dict[str, Interval]
    unknown: list[str] = field(default_factory=list)
    overflowed: bool = False
    """Packets were lost because the buffer was full."""
    filled: bool = True
    """A queue waited long enough to tell the rate."""
    overflows_s: Floats = field(default_factory=lambda: np.zeros(0))
    """When packets were sent that were lost for that reason."""
    noisy: bool = False
    """Packets follow each other at no rate that is sharper than the rest: delays vary on the way."""
