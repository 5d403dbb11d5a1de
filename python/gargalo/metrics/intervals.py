"""Means and other figures of repeated runs, with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from gargalo.extras import need
from gargalo.metrics._numbers import array, finite

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gargalo.metrics._numbers import Numbers

    Statistic: TypeAlias = Literal["mean", "median"] | Callable[[NDArray[np.float64]], float]

Bounds: TypeAlias = tuple[float, float]
"""The least and the greatest value that a quantity can have: part of its declaration, never guessed from its name."""
ANY: Bounds = (-math.inf, math.inf)
"""The range of a quantity that may be anything."""
POSITIVE: Bounds = (0.0, math.inf)
"""The range of rates, delays, sizes, counts, and ratios of these."""
SHARE: Bounds = (0.0, 1.0)
"""The range of shares, among them utilization, loss rates and Jain's index."""
HARM: Bounds = (-math.inf, 1.0)
"""The range of `harm`: 1 means that nothing is left, below 0 is a benefit."""
OPINION: Bounds = (1.0, 4.5)
"""The range of the mean opinion score that ITU-T G.107 computes."""
ENOUGH = 3
"""Values from which on there is an interval: with two, the t of one degree of freedom is 12.7, and an interval
on a logarithmic scale may span decades."""
SAME = 1e-12
"""Values whose spread is at most this share of them are equal up to rounding."""
BEYOND = 1e-9
"""Values beyond a bound by no more than this, as a share of the values or of 1, are there by rounding."""


@dataclass(frozen=True)
class Interval:
    """A figure of repeated runs and its confidence interval.

    `low` and `high` are None where nothing can be said: fewer than three values (`ENOUGH`) have no interval,
    nor have values that are all the same; `reason` says which it is.
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
    """student, logit, log, bca, percentile, or none where there is no interval."""

    @property
    def reason(self) -> str:
        """Why there is no interval; empty where there is one."""
        if self.low is not None:
            return ""
        return no_interval(self.n)

    def __contains__(self, value: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def __str__(self) -> str:
        if self.mean is None:
            return "unknown (no run)"
        if self.low is None or self.high is None:
            return f"{self.mean:.4g} (interval n/a, {self.reason})"
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def check_level(level: float) -> None:
    """Check a confidence level.

    Raises:
        ValueError: not between 0 and 1.

    """
    if not 0 < level < 1:
        msg = f"a confidence level is between 0 and 1, such as 0.95, not {level}"
        raise ValueError(msg)


def no_interval(n: int) -> str:
    """Say why so many values have no interval."""
    if n == 0:
        return "no run"
    return f"needs {ENOUGH} repeats" if n < ENOUGH else f"{n} equal values"


def check_bounds(bounds: Bounds) -> None:
    """Check a range.

    Raises:
        ValueError: the least value is not below the greatest.

    """
    if not bounds[0] < bounds[1]:
        msg = f"the bounds of a quantity are its least and its greatest value, such as (0, 1), not {bounds}"
        raise ValueError(msg)


def mean_interval(values: Numbers, level: float = 0.95, bounds: Bounds = ANY) -> Interval:
    """Mean with the confidence interval of Student's t distribution, within the quantity's range.

    Formula: m ± t((1 + level) / 2, n - 1) · s / √n, s the sample standard deviation. With `bounds` (a, b) the
    interval is made on a scale without bounds, where the standard error is that of the delta method, and
    taken back: with one bound on the logarithmic scale, a + (m - a) · exp(± h / (m - a)) or the mirror image of it,
    with two on the logistic one, a + (b - a) · p with p the logistic function of ln(q / (1 - q)) ± h / ((b - a) · q ·
    (1 - q)), q = (m - a) / (b - a), h being t · s / √n. It holds the mean, never leaves the range, and is not
    symmetric; of skewed values it covers the true mean more often than the plain one. A bound that a value
    is beyond is left out; without bounds the interval is the plain one.
    Exact for values that are normally distributed, good for the means of most others. None: with fewer than three
    values the interval is unknown, and `low` and `high` are None; likewise if all values are the same, since
    they show no spread to make it of.
    Unit: that of the values.
    Source: Student, Biometrika 6(1), 1908; Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 13;
    Meeker, Escobar, Statistical Methods for Reliability Data, 1998 (intervals of positive quantities and of shares).

    Raises:
        ValueError: the level is not between 0 and 1, the bounds are no range, or a value is not finite.

    """
    check_level(level)
    check_bounds(bounds)
    x = array(values)
    n = int(x.size)
    if n == 0:
        return Interval(None, None, None, n, level, "none")
    if np.ptp(x) == 0:
        return Interval(float(x[0]), None, None, n, level, "none")
    ends = (float(x.min()), float(x.max()))
    return of_moments(n, float(x.mean()), float(x.std(ddof=1)), ends, level, bounds)


def of_moments(
    n: int, mean: float, sd: float, ends: tuple[float, float], level: float, bounds: Bounds
) -> Interval:
    """Return the interval of `mean_interval` for values of which only this is known.

    Args:
        n: How many, at least one.
        mean: Theirs.
        sd: Their sample standard deviation; of a single value anything.
        ends: The least and the greatest of them.
        level: Of confidence.
        bounds: Of the quantity.

    """
    if n < ENOUGH or ends[1] - ends[0] <= SAME * max(map(abs, ends)):
        return Interval(mean, None, None, n, level, "none")
    half = _quantile(level, n) * sd / math.sqrt(n)
    least, most = bounds
    slack = BEYOND * max(1.0, *map(abs, ends))
    # A bound that a value is beyond is none.
    least = least if least - slack <= ends[0] and least < mean else -math.inf
    most = most if ends[1] <= most + slack and mean < most else math.inf
    if (least, most) == ANY:
        return Interval(mean, mean - half, mean + half, n, level)
    if math.isfinite(least) and math.isfinite(most):
        width, q = most - least, (mean - least) / (most - least)
        middle, reach = math.log(q / (1 - q)), half / (width * q * (1 - q))
        low, high = (least + width * _logistic(middle + r) for r in (-reach, reach))
        return Interval(mean, low, high, n, level, "logit")
    # If values differ much, an end may be beyond what a float can hold.
    above = mean - least if math.isfinite(least) else most - mean
    factor = math.exp(min(half / above, 700.0))
    if math.isfinite(least):
        return Interval(mean, least + above / factor, least + above * factor, n, level, "log")
    return Interval(mean, most - above * factor, most - above / factor, n, level, "log")


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


@lru_cache(maxsize=256)
def _quantile(level: float, n: int) -> float:
    """Return the quantile of Student's t that makes an interval of n values."""
    need("tests and intervals", "scipy")
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2))


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
    Efron 1987) or plain ("percentile"). Where BCa is undefined (all resamples equal on one side) the
    plain one is given, and `method` says so. Equal seeds give equal intervals. Below about ten
    values it is too narrow: prefer `mean_interval`. None: with fewer than three values, or values that are all the
    same, the interval is unknown.
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
    if n < ENOUGH or estimate is None:
        return Interval(estimate, None, None, n, level, "none")
    if np.ptp(x) == 0:
        return Interval(estimate, None, None, n, level, "none")
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

    need("tests and intervals", "scipy")
    from scipy import stats

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
