"""All cases, and what a run shows of its own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gargalo.evaluation.criteria.conformance import bbr_paths, bbr_probe, bbr_startup
from gargalo.evaluation.criteria.conformance.classic import CUBIC, HSTCP, RENO
from gargalo.evaluation.criteria.conformance.model import PREFIX, Case, figures_of, label
from gargalo.evaluation.criteria.conformance.seen import Seen

if TYPE_CHECKING:
    from gargalo.results import Run

BBR = (*bbr_startup.CASES, *bbr_probe.CASES, *bbr_paths.CASES)
CASES: tuple[Case, ...] = (*BBR, *RENO, *CUBIC, *HSTCP)


@cache
def registry() -> dict[str, Case]:
    """Return all cases by identifier."""
    return {c.id: c for c in CASES}


def measure(run: Run) -> dict[str, float]:
    """Return what a run shows of its case; what has no value (a bound that is not set) is left out."""
    return figures_of(registry()[label(run).removeprefix(PREFIX)], Seen.of(run))
