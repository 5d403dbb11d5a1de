"""Statistics of repeated runs: intervals, tests of difference, correction for many tests."""

from gargalo.metrics.comparing import Difference, compare, difference, differences, holm
from gargalo.metrics.intervals import (
    ANY,
    HARM,
    POSITIVE,
    SHARE,
    Bounds,
    Interval,
    bootstrap_interval,
    mean_interval,
)

__all__ = [
    "ANY",
    "HARM",
    "POSITIVE",
    "SHARE",
    "Bounds",
    "Difference",
    "Interval",
    "bootstrap_interval",
    "compare",
    "difference",
    "differences",
    "holm",
    "mean_interval",
]
