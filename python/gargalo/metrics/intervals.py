"""Means and other figures of repeated runs, with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats
from scipy.special import expit, logit

from gargalo.metrics._numbers import array, finite

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from gargalo.metrics._numbers import Numbers

    Statistic: TypeAlias = Literal["mean", "median"] | Callable[[NDArray[np.float64]], float]
    Bounds: TypeAlias = tuple[float, float]

ANY: Bounds = (-math.inf, math.inf)
"""The range of a quantity that may be anything."""
POSITIVE: Bounds = (0.0, math.inf)
"""The range of rates, delays, sizes and counts."""
SHARE: Bounds = (0.0, 1.0)
"""The range of shares, among them utilization, loss rates and Jain's index."""
SHARES = frozenset(
    ("utilization", "loss_rate", "retransmission_rate", "jain_index", "share", "path_share_max")
)
AMOUNTS = frozenset(
    ("goodput_cov", "packets", "events", "flows", "peak_flows", "completed_flows", "subflows")
)
UNITS = ("_bps", "_s", "_bytes", "_packets")
SIGNED = frozenset(
    ("benefit", "change", "delta", "diff", "difference", "error", "excess", "gain", "gap", "less",
     "minus", "offset")
)  # fmt: skip
"""Words in the names of quantities that may be below zero whatever their unit."""


@dataclass(frozen=True)
class Interval:
    """A figure of repeated runs and how far it is known.

    `low` and `high` are None where nothing can be said: one run has no interval, nor have values
    that are all the same.
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
    def half_width(self) -> float | None:
        """Half of the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def __str__(self) -> str:
        if self.mean is None:
            return "unknown (no run)"
        if self.low is None or self.high is None:
            runs = "1 run" if self.n == 1 else f"{self.n} equal values"
            return f"{self.mean:.4g} (interval unknown: {runs})"
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def check_level(level: float) -> None:
    """Refuse a confidence level that is none.

    Raises:
        ValueError: not between 0 and 1.

    """
    if not 0 < level < 1:
        msg = f"a confidence level is between 0 and 1, such as 0.95, not {level}"
        raise ValueError(msg)


def bounds_of(name: str) -> Bounds:
    """Return the least and the greatest value that a figure of this name can have.

    Shares lie between 0 and 1; what has a unit at the end of its name (`_bps`, `_s`, `_bytes`,
    `_packets`) is at least 0 unless a word of the name says that it is signed, as `gain` does; what
    else there is may be anything.
    """
    if name in SHARES or name.endswith("_share"):
        return SHARE
    if name in AMOUNTS or (name.endswith(UNITS) and not SIGNED & set(name.split("_"))):
        return POSITIVE
    return ANY


def mean_interval(values: Numbers, level: float = 0.95, bounds: Bounds = ANY) -> Interval:
    """Mean with the confidence interval of Student's t distribution, within the quantity's range.

    Formula: m ± t((1 + level) / 2, n - 1) · s / √n, s the sample standard deviation. With `bounds` the
    interval is made on a scale without bounds, where the standard error is that of the delta method, and
    taken back: for positive quantities m · exp(± h / m), for shares the logistic function of
    ln(m / (1 - m)) ± h / (m · (1 - m)), h being t · s / √n. It holds the mean, never leaves the range, and is not
    symmetric; of skewed values it covers the true mean more often than the plain one. Values that are
    beyond the bounds get the plain one.
    Exact for values that are normally distributed, good for the means of most others. None: with one
    value the interval is unknown, and `low` and `high` are None; likewise if all values are the same, since
    they show no spread to make it of.
    Unit: that of the values.
    Source: Student, Biometrika 6(1), 1908; Jain, The Art of Computer Systems Performance Analysis, 1991, chapter 13;
    Meeker, Escobar, Statistical Methods for Reliability Data, 1998 (intervals of positive quantities and of shares).

    Raises:
        ValueError: the level is not between 0 and 1, or a value is not finite.

    """
    check_level(level)
    x = array(values)
    n = int(x.size)
    if n == 0:
        return Interval(None, None, None, n, level, "none")
    if np.ptp(x) == 0:
        return Interval(float(x[0]), None, None, n, level, "none")
    mean = float(x.mean())
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * x.std(ddof=1) / np.sqrt(n))
    within = bounds[0] <= x.min() and x.max() <= bounds[1]
    if within and bounds == SHARE:
        middle, reach = logit(mean), half / (mean * (1 - mean))
        low, high = (float(expit(middle + r)) for r in (-reach, reach))
        return Interval(mean, low, high, n, level, "logit")
    if within and bounds == POSITIVE:
        # With two runs that differ much the upper end has no bound that a float could hold.
        reach = min(half / mean, 700.0)
        return Interval(mean, mean * math.exp(-reach), mean * math.exp(reach), n, level, "log")
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
    values it is too narrow: prefer `mean_interval`. None: with one value, or values that are all the same, the
    interval is unknown.
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
