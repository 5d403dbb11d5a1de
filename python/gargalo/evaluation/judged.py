"""Cases of conformance as tests: which failures are new, known or gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gargalo.checking.known import GONE
from gargalo.checking.reports import Reported, Suite, reported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.checking.known import Compared
    from gargalo.evaluation.model import CaseResult
    from gargalo.evaluation.running import Scorecard


@dataclass(frozen=True)
class Of:
    """A case of an algorithm."""

    algorithm: str
    result: CaseResult

    @property
    def place(self) -> Mapping[str, str]:
        """What names it among all."""
        return {"algorithm": self.algorithm, "case": self.result.id}


def cases_of(cards: Sequence[Scorecard]) -> list[Of]:
    """Return all cases of conformance of scorecards."""
    return [
        Of(card.algorithm, case)
        for card in cards
        for result in card.results
        for case in result.cases
    ]


def suites(cards: Sequence[Scorecard], cases: Sequence[Of], told: Compared) -> list[Suite]:
    """Return a suite for each algorithm, for CI servers; failures that are known do not count."""
    found: dict[str, list[Reported]] = {}
    for card in cards:
        failures = dict.fromkeys(str(f) for result in card.results for f in result.failures)
        errors = [*([card.broken] if card.broken else []), *failures]
        found[card.algorithm] = [Reported("run", errors=errors)]
    for number, case in enumerate(cases):
        result = case.result
        text = f"{result.verdict}: {result.seen}" if result.conforms is None else result.fault
        one = reported(result.id, number, told, passed=result.conforms, text=text)
        found.setdefault(case.algorithm, []).append(one)
    return [Suite(name, own) for name, own in found.items()]


def mended(cases: Sequence[Of], told: Compared) -> list[str]:
    """Return a sentence for each known failure that is gone."""
    return [f"{cases[n].algorithm}, {cases[n].result.id}: {GONE}" for n in told.mended]
