"""Statistics of repeated runs: intervals, tests of difference, correction for many tests."""

from gargalo.metrics.comparing import Difference, compare, difference, differences, holm
from gargalo.metrics.intervals import Interval, bootstrap_interval, bounds_of, mean_interval

__all__ = [
    "Difference",
    "Interval",
    "bootstrap_interval",
    "bounds_of",
    "compare",
    "difference",
    "differences",
    "holm",
    "mean_interval",
]
