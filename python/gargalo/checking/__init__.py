"""Scenarios that are tests: what their results have to show, and whether they do."""

from gargalo.checking.checked import Checked
from gargalo.checking.checks import Options, check
from gargalo.checking.expectations import Expectation, ExpectationError, Outcome, judge
from gargalo.checking.faults import Fault, faults

__all__ = [
    "Checked",
    "Expectation",
    "ExpectationError",
    "Fault",
    "Options",
    "Outcome",
    "check",
    "faults",
    "judge",
]
