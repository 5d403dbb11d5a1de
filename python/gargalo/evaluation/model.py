"""What an evaluation consists of: criteria, the runs they need, figures and faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from gargalo.evaluation.stacks import Own
from gargalo.judging import FailureReason, Mark, Profile, select
from gargalo.metrics import Interval, mean_interval
from gargalo.metrics.declared import below_ceiling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from gargalo.metrics.declared import Better
    from gargalo.metrics.intervals import Bounds
    from gargalo.reporting.model import FigureBlock
    from gargalo.sweeps.job import Label

T = TypeVar("T")

Strength: TypeAlias = Literal["MUST", "SHOULD", "should"]
"""How strongly RFC 9743 asks for it: in capitals as BCP 14 means them, else a lower-case should or ought."""
Verdict: TypeAlias = Literal[
    "fault", "worse", "trade-off", "like", "better", "conforms", "failed", "no-verdict", "unknown"
]
"""A fault, or how it compares with the yardstick, or that it does what its specification says; `failed`: runs could
not be done; `no-verdict`: one run of a side, which says nothing about chance."""

YARDSTICK = "cubic"
"""What verdicts compare with; the IETF sets no pass mark (RFC 9743 section 3.1)."""
VERDICTS: Mapping[Verdict, Mark] = {
    "fault": Mark("✗", "bold red", "something is wrong whatever one compares with"),
    "failed": Mark("!", "bold red", "runs could not be done"),
    "worse": Mark("-", "yellow", f"a figure is worse than {YARDSTICK}'s, and none is better"),
    "trade-off": Mark("⇅", "yellow", f"some figures are worse than {YARDSTICK}'s, others better"),
    "better": Mark("+", "green", f"a figure is better than {YARDSTICK}'s, and none is worse"),
    "conforms": Mark("✓", "green", "it does what its own specification says, in all cases that apply"),
    "like": Mark("=", "dim", f"no figure differs from {YARDSTICK}'s by more than its interval and its margin"),
    "no-verdict": Mark("·", "dim", "one run: no verdict; a difference takes two repeats or more"),
    "unknown": Mark("?", "dim", "nothing could be measured"),
}  # fmt: skip
"""In the order of what a reader should look at first."""
REFERENCES = ("reno", "cubic", "bbr")
"""Always on the same grid."""


PROFILES = {
    p.name: p
    for p in (
        Profile("quick", "a point or a few of each criterion, minutes", 3),
        Profile("standard", "the grid of each criterion, about ten minutes", 5),
        Profile("full", "wide grids and the scenarios of tcpeval-01, a night", 10),
    )
}


@dataclass(frozen=True)
class Plan:
    """What cells are made for: an algorithm, a profile and one repeat."""

    algorithm: Any
    """As in a scenario: a name, or a table of a name and its parameters."""
    profile: Profile
    seed: int

    @property
    def quick(self) -> bool:
        """Whether only a few points are run."""
        return self.profile.name == "quick"

    @property
    def full(self) -> bool:
        """Whether wide grids are run."""
        return self.profile.name == "full"

    def pick(
        self, quick: Sequence[T], standard: Sequence[T], full: Sequence[T] | None = None
    ) -> Sequence[T]:
        """Return the levels of a factor."""
        if self.quick:
            return quick
        return full if self.full and full is not None else standard

    def start(self, *names: object, within_s: float = 0.5) -> float:
        """Return a start time: the same for all algorithms in this repeat, another one in other repeats."""
        return random.Random(f"{self.seed} {names}").uniform(0.0, within_s)


@dataclass(frozen=True)
class Cell:
    """A network with its flows, and what distinguishes it from others of its criterion."""

    labels: Mapping[str, Label]
    scenario: Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A figure of a criterion: one number of each repeat."""

    name: str
    """As a column, with its unit at the end."""
    text: str
    unit: str
    """`s`, `bit/s`, `byte`, or nothing for shares and counts."""
    better: Better
    of: Callable[[pl.DataFrame], float | None]
    """From the runs of one algorithm and one repeat, a row each."""
    bounds: Bounds
    """The least and the greatest value that it can have: intervals stay within, on a logarithmic scale with one bound,
    on a logistic one with two."""
    margin: float = 0.05
    """Differences up to this share of the yardstick's value, or up to `least`, do not matter."""
    least: float = 0.0
    """Differences up to this do not matter, whatever the share."""


@dataclass(frozen=True)
class Scores:
    """The figures of an algorithm in a criterion, and those of the references."""

    algorithm: str
    values: Mapping[str, Mapping[str, Sequence[float | None]]]
    """By algorithm and figure: a value of each repeat."""
    frame: pl.DataFrame
    """All runs of the criterion, one row each, with the column `algorithm`."""
    figures: Sequence[Figure] = ()
    """Those of the criterion."""
    over: Own | None = None
    """The algorithm as a QUIC stack has it, if it is one."""
    constant: frozenset[str] = frozenset()
    """Algorithms all of whose repeats are the same runs: their figures have one value, without error."""

    def side(self, figure: str, algorithm: str | None = None) -> list[float] | float:
        """Return the values of a figure to compare with others; one number for a constant."""
        name = algorithm or self.algorithm
        known = [v for v in self.values.get(name, {}).get(figure, ()) if v is not None]
        return known[0] if name in self.constant and known else known

    def interval(self, figure: str, algorithm: str | None = None) -> Interval:
        """Return the mean of a figure with its interval."""
        name = algorithm or self.algorithm
        values = self.values.get(name, {}).get(figure, ())
        declared = next(f for f in self.figures if f.name == figure)
        bounds = declared.bounds
        if declared.unit == "bit/s":
            bounds = below_ceiling(bounds, select(self.frame, {"algorithm": name}))
        return mean_interval(values, bounds=bounds)

    def mean(self, figure: str, algorithm: str | None = None) -> float | None:
        """Return the mean of a figure."""
        return mean_interval(self.values.get(algorithm or self.algorithm, {}).get(figure, ())).mean

    def own(self) -> pl.DataFrame:
        """Return the runs of the algorithm itself."""
        return select(self.frame, {"algorithm": self.algorithm})


@dataclass(frozen=True)
class Criterion:
    """A test: what RFC 9743 asks, the runs that answer, and what is a fault."""

    id: str
    title: str
    section: str
    """As "RFC 9743 5.1.1"."""
    strength: Strength
    asks: str
    """What the text asks for, in our words."""
    does: str
    """What is run and measured."""
    cells: Callable[[Plan], list[Cell]]
    """The cells of an algorithm; labels do not depend on the seed."""
    figures: Sequence[Figure]
    faults: Callable[[Scores], list[str]] = lambda _: []
    """Sentences that say what is wrong whatever one compares with; empty if nothing is."""
    picture: Callable[[Scores], FigureBlock | None] = lambda _: None
    group: str = "alone"
    """Section of the scorecard: alone, mixed, general, special, properties, tcpeval."""
    profiles: Sequence[str] = ("quick", "standard", "full")
    algorithms: Sequence[str] = ()
    """The algorithms it applies to, if not to all; then it is run for the judged algorithm, not for the references."""
    cases: Callable[[Scores], Conformance] | None = None
    """The results of cases of conformance, which are not compared; None: there are no cases."""
    repeat: int | None = None
    """The most runs of a cell, where more would only repeat the same run."""
    of_stacks: bool = False
    """Where it is for some algorithms only: whether it can judge those of QUIC stacks, which show less of
    themselves."""

    def applies_to(self, algorithm: str) -> bool:
        """Whether an algorithm is judged by it."""
        if not self.algorithms:
            return True
        if not isinstance(algorithm, Own):
            return algorithm in self.algorithms
        # By its name alone, that is all that is known: then it says that it cannot judge.
        return self.of_stacks and (algorithm.follows or algorithm.congestion) in self.algorithms


@dataclass(frozen=True)
class Question:
    """A criterion that no run can answer: printed as a blank to fill."""

    section: str
    strength: Strength
    text: str


@dataclass(frozen=True)
class CaseResult:
    """The result of a case of conformance."""

    id: str
    title: str
    section: str
    expected: str
    conforms: bool | None
    """None: it does not apply to the algorithm, or what is seen of it does not decide."""
    seen: str
    """What was seen, or why it does not apply: "not applicable to …"."""
    page: str = ""
    """Address of the page with a run in which it was not met, beside the scorecard; empty: there is none."""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.conforms is None:
            applies = not self.seen.startswith("not applicable")
            return "not decided" if applies else "not applicable"
        return "conforms" if self.conforms else "does not conform"

    @property
    def fault(self) -> str:
        """A sentence about what is wrong."""
        return f'does not conform in "{self.title}" ({self.section}): seen {self.seen}; expected {self.expected}'


@dataclass(frozen=True)
class Conformance:
    """The results of a specification's cases."""

    cases: Sequence[CaseResult]
    frame: pl.DataFrame
    """The runs of the criterion with the result of each: `conforms`, and `seen` in words."""


@dataclass(frozen=True)
class Outcome:
    """The result of a figure."""

    figure: Figure
    own: Interval
    references: Mapping[str, Interval]
    verdict: Verdict
    difference: float | None = None
    """Own less yardstick."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Result:
    """The result of a criterion."""

    criterion: Criterion
    verdict: Verdict
    outcomes: Sequence[Outcome]
    faults: Sequence[str]
    scores: Scores
    failures: Sequence[FailureReason] = ()
    """Why runs could not be done, each reason once."""
    scenarios: Mapping[str, str] = field(default_factory=dict)
    """A scenario file for each cell, by name."""
    cases: Sequence[CaseResult] = ()
    """Of conformance."""
