"""What came of a scenario or a sweep that was checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gargalo.checking.expectations import Outcome
    from gargalo.checking.faults import Fault

RESULTS = "results"
"""The directory of a run in what is kept of it."""


@dataclass(frozen=True)
class Checked:
    """What came of a scenario."""

    file: str
    outcomes: tuple[Outcome, ...] = ()
    """Of each figure of each expectation."""
    faults: tuple[Fault, ...] = ()
    """What is wrong with the run, as far as it counts."""
    wrong: tuple[str, ...] = ()
    """Why it cannot be judged: the scenario, or expectations, are wrong."""
    kept: str | None = None
    """Where its results, pictures and story are; only of what is not as expected."""
    wall_s: float = 0.0
    lines: tuple[int, ...] = ()
    """Line in the file of each expectation; empty: not known."""

    @property
    def missed(self) -> list[Outcome]:
        """Figures that are not as expected."""
        return [o for o in self.outcomes if not o.met]

    @property
    def passed(self) -> bool:
        """All is as expected."""
        return not (self.wrong or self.faults or self.missed)

    @property
    def again(self) -> Path | None:
        """The scenario that does the same run."""
        return None if self.kept is None else Path(self.kept) / RESULTS / "scenario.toml"

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "file": self.file,
            "passed": self.passed,
            "wrong": list(self.wrong),
            "faults": [{"kind": f.kind, "text": f.text} for f in self.faults],
            "expectations": [
                {
                    "cell": o.cell or None,
                    "metric": o.metric,
                    "value": o.value,
                    "expected": o.bound,
                    "met": o.met,
                    "why": o.why,
                    "line": self.line(o),
                }
                for o in self.outcomes
            ],
            "kept": self.kept,
            "wall_s": self.wall_s,
        }

    def line(self, outcome: Outcome) -> int | None:
        """Return where in the file an expectation is; None if that is not known."""
        return self.lines[outcome.number] if outcome.number < len(self.lines) else None
