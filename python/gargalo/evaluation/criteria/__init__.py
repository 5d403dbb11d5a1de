"""The criteria of RFC 9743 and RFC 5166 that can be run, one file for each family."""

from gargalo import judging
from gargalo.evaluation.criteria import (
    alone,
    conformance,
    misbehaving,
    mixed,
    paths,
    properties,
    robustness,
    scope,
    stress,
    tcpeval,
)
from gargalo.evaluation.model import Criterion

CRITERIA: tuple[Criterion, ...] = (
    *stress.CRITERIA,
    *alone.CRITERIA,
    *mixed.CRITERIA,
    *scope.CRITERIA,
    *robustness.CRITERIA,
    *misbehaving.CRITERIA,
    *paths.CRITERIA,
    *properties.CRITERIA,
    *conformance.CRITERIA,
    *tcpeval.CRITERIA,
)
"""In the order of the scorecard."""


def find(name: str) -> Criterion:
    """Return a criterion by its identifier.

    Raises:
        KeyError: There is none.

    """
    return judging.find("criterion", name, {c.id: c for c in CRITERIA})
