"""Rank tests' estimates of a shift and its exact confidence interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gargalo.extras import need

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Above these sizes the normal approximation is accurate enough.
EXACT_UNPAIRED = 50
EXACT_PAIRED = 200


def _normal(level: float) -> float:
    """Return the quantile of the normal distribution that makes an interval."""
    need("tests and intervals", "scipy")
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def _rank_sum_counts(n: int, m: int) -> NDArray[np.float64]:
    """Null distribution of U of Mann and Whitney: probability of 0 … n·m."""
    # Ways to choose j of the ranks so far, by the sum of the chosen: additions only, so exact to rounding.
    least = n * (n + 1) // 2
    ways = np.zeros((n + 1, least + n * m + 1))
    ways[0, 0] = 1.0
    for place in range(1, n + m + 1):
        for j in range(min(place, n), 0, -1):
            ways[j, place:] += ways[j - 1, :-place]
    chances: NDArray[np.float64] = ways[n, least:] / ways[n].sum()
    return chances


def _signed_rank_counts(n: int) -> NDArray[np.float64]:
    """Null distribution of Wilcoxon's signed-rank statistic: probability of 0 … n(n+1)/2."""
    chance = np.zeros(n * (n + 1) // 2 + 1)
    chance[0] = 1.0
    for rank in range(1, n + 1):
        moved = np.zeros_like(chance)
        moved[rank:] = chance[:-rank]
        chance = (chance + moved) / 2
    return chance


def _depth(chance: NDArray[np.float64], level: float) -> int:
    """How many of the sorted differences to leave out at each end, plus one; 0: the level is out of reach."""
    below = np.cumsum(chance)
    return int(np.searchsorted(below, (1 - level) / 2))


def _interval(pairs: NDArray[np.float64], depth: int) -> tuple[float, float | None, float | None]:
    pairs.sort()
    estimate = float(np.median(pairs))
    if depth < 1:
        return estimate, None, None
    return estimate, float(pairs[depth - 1]), float(pairs[pairs.size - depth])


def shift(
    a: NDArray[np.float64], b: NDArray[np.float64], level: float
) -> tuple[float, float | None, float | None]:
    """Estimate by which `a` lies above `b`, with the interval that the rank-sum test accepts.

    Formula: median of all aᵢ - bⱼ; the interval is between the k-th least and k-th greatest of them.
    None: too few values for that level.
    Unit: that of the values.
    Source: Hodges, Lehmann, Annals of Mathematical Statistics 34(2), 1963; Hollander, Wolfe, 1973.
    """
    pairs = np.subtract.outer(a, b).ravel()
    n, m = a.size, b.size
    if max(n, m) <= EXACT_UNPAIRED:
        depth = _depth(_rank_sum_counts(n, m), level)
    else:
        spread = np.sqrt(n * m * (n + m + 1) / 12)
        depth = int(np.floor(n * m / 2 - _normal(level) * spread))
    return _interval(pairs, depth)


def paired_shift(
    differences: NDArray[np.float64], level: float
) -> tuple[float, float | None, float | None]:
    """Estimate the centre of paired differences, with the interval the signed-rank test accepts.

    Formula: median of all (dᵢ + dⱼ) / 2 with i <= j (Walsh averages), ends as in `shift`.
    None: too few values for that level.
    Unit: that of the values.
    Source: Hodges, Lehmann, 1963; Hollander, Wolfe, Nonparametric Statistical Methods, 1973.
    """
    i, j = np.triu_indices(differences.size)
    pairs = (differences[i] + differences[j]) / 2
    n = differences.size
    if n <= EXACT_PAIRED:
        depth = _depth(_signed_rank_counts(n), level)
    else:
        spread = np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        depth = int(np.floor(n * (n + 1) / 4 - _normal(level) * spread))
    return _interval(pairs, depth)
