"""Fewer points where there are more than a screen can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_POINTS = 1500


def thin(
    x: NDArray[np.float64], y: NDArray[np.float64], most: int = MOST_POINTS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Keep the least and the greatest value of each bucket, so that peaks survive, and a gap if it has one."""
    if x.size <= most:
        return x, y
    kept = {0, x.size - 1}
    gap = np.isnan(y)
    for part in np.array_split(np.arange(x.size), most // 2):
        known = part[~gap[part]]
        if known.size < part.size:
            kept.add(int(part[gap[part]][0]))
        if known.size:
            kept |= {int(known[y[known].argmin()]), int(known[y[known].argmax()])}
    places = np.array(sorted(kept))
    return x[places], y[places]
