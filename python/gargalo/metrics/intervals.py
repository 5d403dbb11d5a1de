"""Means and other figures of repeated runs, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats

from gargalo.metrics._numbers import array, finite

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from gargalo.metrics._numbers import Numbers

    Statistic: TypeAlias = Literal["mean", "median"] | Callable[[NDArray[np.float64]], float]


@dataclass(frozen=True)
class Interval:
    """A figure of repeated runs and how far it is known.

    `low` and `high` are None where nothing can be said: one run has no interval.
    """

    mean: float | None
    """The estimate: the mean, or whatever statistic was asked for; None without a value."""
    low: float | None
    """Lower end of the confidence interval."""
    high: float | None
    """Upper end of the confidence interval."""
    n: int
    """Number of values."""
    level: float
    """Confidence level, 0.95 unless said otherwise."""
    method: str = "student"
    """student, bca, percentile, or none where there is no interval."""

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def __str__(self) -> str:
        if self.mean is None:
            return "unknown (no run)"
        if self.low is None or self.high is None:
            return f"{self.mean:.4g} (interval unknown: {self.n} run)"
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def check_level(level: float) -> None:
    """Refuse a confidence level that is none.

    Raises:
        ValueError: not between 0 and 1.

    """
    if not 0 < level < 1:
        msg = f"a confidence level is between 0 and 1, such as 0.95, not {level}"
        raise ValueError(msg)


def mean_interval(values: Numbers, level: float = 0.95) -> Interval:
    """Mean with the confidence interval of Student's t distribution.

    Formula: m ± t((1 + level) / 2, n - 1) · s / √n, s the sample standard deviation.
    Exact for values that are normally distributed, good for the means of most others. None: with one
    value the interval is unknown, and `low` and `high` are None.
    Unit: that of the values.
    Source: Student, Biometrika 6(1), 1908; Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 13.

    Raises:
        ValueError: the level is not between 0 and 1, or a value is not finite.

    """
    check_level(level)
    x = array(values)
    n = int(x.size)
    if n < 2:
        return Interval(float(x[0]) if n else None, None, None, n, level, "none")
    mean = float(x.mean())
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * x.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n, level)


def _statistic(statistic: Statistic) -> Callable[..., Any]:
    if statistic == "mean":
        return np.mean
    if statistic == "median":
        return np.median
    if callable(statistic):
        return statistic
    msg = f'the statistic is "mean", "median" or a function of an array, not {statistic!r}'
    raise ValueError(msg)


def bootstrap_interval(
    values: Numbers,
    statistic: Statistic = "mean",
    *,
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
    method: Literal["bca", "percentile"] = "bca",
) -> Interval:
    """Any statistic with its bootstrap confidence interval; no normal distribution is assumed.

    Formula: resample the n values with replacement `resamples` times; the interval is between the
    (corrected) (1 - level)/2 and (1 + level)/2 quantiles of the statistic, bias-corrected and accelerated ("bca",
    Efron 1987) or plain ("percentile"). Where BCa is undefined (all resamples alike on one side) the
    plain one is given, and `method` says so. Equal seeds give equal intervals. Below about ten
    values it is too narrow: prefer `mean_interval`. None: with one value the interval is unknown.
    Unit: that of the statistic.
    Source: Efron, JASA 82(397), 1987; Efron, Tibshirani, An Introduction to the Bootstrap, 1993.

    Raises:
        ValueError: the level is not between 0 and 1, or the statistic is unknown.

    """
    check_level(level)
    function = _statistic(statistic)
    x = array(values)
    n = int(x.size)
    if n == 0:
        return Interval(None, None, None, 0, level, "none")
    estimate = finite(function(x))
    if n < 2 or estimate is None:
        return Interval(estimate, None, None, n, level, "none")
    if np.ptp(x) == 0:
        return Interval(estimate, estimate, estimate, n, level, "percentile")
    vectorized = statistic in ("mean", "median") if isinstance(statistic, str) else False
    for name, kind in (("bca", "BCa"), ("percentile", "percentile")):
        if method == "percentile" and name == "bca":
            continue
        with np.errstate(all="ignore"):
            found = _bootstrap(x, function, vectorized, level, resamples, seed, kind)
        low, high = finite(found.low), finite(found.high)
        if low is not None and high is not None:
            return Interval(estimate, low, high, n, level, name)
    return Interval(estimate, None, None, n, level, "none")


def _bootstrap(
    x: NDArray[np.float64],
    function: Callable[..., Any],
    vectorized: bool,
    level: float,
    resamples: int,
    seed: int,
    kind: str,
) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        return stats.bootstrap(
            (x,),
            function,
            n_resamples=resamples,
            vectorized=vectorized,
            confidence_level=level,
            method=kind,
            rng=np.random.default_rng(seed),
        ).confidence_interval
