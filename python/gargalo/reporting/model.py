"""What a report consists of, as plain dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gargalo.judging import Mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    import polars as pl


Verdict: TypeAlias = Literal["reproduced", "contradicted", "inconclusive"]

VERDICTS: Mapping[Verdict, Mark] = {
    "reproduced": Mark("✓", "green"),
    "contradicted": Mark("✗", "red"),
    "inconclusive": Mark("?", "yellow"),
}


@dataclass(frozen=True)
class Evidence:
    """A figure behind a verdict."""

    label: str
    """What was measured, as "share of reno at 20 other flows"."""
    value: float | None
    """In SI; None if it could not be measured."""
    low: float | None = None
    """Lower end of its confidence interval; None if unknown."""
    high: float | None = None
    """Upper end of its confidence interval; None if unknown."""
    unit: str = ""
    """SI unit without prefix: bit/s, s, byte; empty for shares and counts."""
    n: int | None = None
    """Runs behind it."""
    expected: str = ""
    """What the claim says it should be."""


@dataclass(frozen=True)
class Judgement:
    """What a claim is found to be in one reading of its work."""

    reading: str
    """Title of the reading."""
    verdict: Verdict
    evidence: str | Sequence[Evidence] = ()
    explanation: str = ""
    tried: bool = False
    """Whether the reading is a hypothesis that was tried on this claim, not one that judges all claims."""


@dataclass(frozen=True)
class ClaimRow:
    """A claim, its verdict and the reason."""

    id: str
    text: str
    verdict: Verdict
    evidence: str | Sequence[Evidence] = ()
    explanation: str = ""
    reading: str = ""
    """Title of the reading that this verdict is of; empty if the study has only one."""
    others: Sequence[Judgement] = ()
    """The same claim in the other readings."""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            msg = f'claim {self.id}: the verdict is one of {", ".join(VERDICTS)}, not "{self.verdict}"'
            raise ValueError(msg)

    def judgements(self) -> list[Judgement]:
        """Return the verdict in each reading, the first one first."""
        first = Judgement(self.reading, self.verdict, self.evidence, self.explanation)
        return [first, *self.others]


@dataclass(frozen=True)
class FigureBlock:
    """An interactive figure.

    Traces belong to the algorithm that their `legendgroup` names, or their name if that is one of
    the report's algorithms: the filter hides them, and they get its colour, dash and marker.
    """

    title: str
    caption: str
    figure: Any
    """A Plotly figure (or its dictionary)."""
    group: str = ""
    """Section of the report it belongs to; the filter bar chooses among them."""
    alt: str = ""
    """What it shows, in words, for readers who cannot see it; the caption if empty."""
    restyle: bool = True
    """Give traces the colours, dashes and markers of their algorithms."""


@dataclass(frozen=True)
class TableBlock:
    """A table of figures in SI, sortable and filterable.

    Columns are named as in results tables: the ending gives the unit, and a column `x` with `x_low`
    and `x_high` beside it is shown as one, with its interval. Cells "very good", "good", "regular"
    and "bad" are shown as ratings.
    """

    title: str
    caption: str
    frame: pl.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit by column, where the name does not give it: bit/s, s, byte, or any text."""
    group: str = ""
    """Section of the report it belongs to."""
    algorithm: str | None = None
    """Column the algorithm filter looks at; by default the first of congestion, algorithm, protocol."""
    shown: int = 50
    """Rows shown before "show all"."""


@dataclass(frozen=True)
class Report:
    """A page: verdicts first, then figures, tables, scenarios and how to run it all again."""

    title: str
    subtitle: str = ""
    claims: Sequence[ClaimRow] = ()
    figures: Sequence[FigureBlock] = ()
    tables: Sequence[TableBlock] = ()
    scenarios: Mapping[str, str] = field(default_factory=dict)
    """TOML by file name."""
    commands: Sequence[str] = ()
    """Shell commands that run everything again."""
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    """Engine version, seeds, runs, packets, wall time, date (given, never read from the clock)."""
    highlights: Mapping[str, str] = field(default_factory=dict)
    """A handful of figures to see at a glance."""
    notes: Sequence[str] = ()
    """Warnings and limits a reader should know."""
    algorithms: Sequence[str] = ()
    """In the order of their dashes and markers; by default all that figures and tables name, sorted."""
