"""The story of a run as sentences, each with its times and figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

# Files such as captures are of no use to what tells of a run in memory.
RECORDED: Mapping[str, Any] = {
    **{f"record.{name}": True for name in ("flows", "links", "events", "gauges")},
    "record.captures": [],
    "record.qlog": False,
}
"""What is set in a scenario that is run for its story."""


def of_flow(rows: pl.DataFrame, flow: int) -> pl.DataFrame:
    """Return the rows of a flow; a table that the run has not written has none."""
    return rows if rows.is_empty() else rows.filter(rows["flow"] == flow)


@dataclass(frozen=True)
class Sentence:
    """Something that happened, derived from the tables of the run."""

    topic: str
    """run, flow, slow-start, probe-rtt, losses, timeouts, limits, paths, shares, queue, finding or missing."""
    text: str
    time_s: float | None = None
    """When, or since when; None: of the whole run."""
    until_s: float | None = None
    """Until when, if it is about a part of the run."""
    flow: int | None = None
    """Number of the flow it is about."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The figures in it, in SI."""

    def to_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return asdict(self)


@dataclass(frozen=True)
class Period:
    """A part of the run that is described by itself."""

    start_s: float
    end_s: float
    name: str = ""
    """What it is: start-up, steady, what changed at its beginning."""

    def __str__(self) -> str:
        text = period(self.start_s, self.end_s).capitalize()
        return f"{text} ({self.name})" if self.name else text


@dataclass(frozen=True)
class Story:
    """What happened in a run."""

    name: str
    seed: int | None
    """None: of a recording."""
    sentences: tuple[Sentence, ...]
    names: Mapping[int, str]
    """Names of the flows by number."""

    def of(self, topic: str, flow: int | None = None) -> list[Sentence]:
        """Return the sentences of a topic, of all flows or of one."""
        return [s for s in self.sentences if s.topic == topic and flow in (None, s.flow)]

    def sections(self) -> list[tuple[str, list[str]]]:
        """Return headings and the texts below them, in order."""
        found: dict[str, list[str]] = {}
        for s in self.sentences:
            found.setdefault(self.heading(s), []).append(s.text)
        return list(found.items())

    def heading(self, sentence: Sentence) -> str:
        """Return what a sentence stands below: its flow, or its topic."""
        if sentence.flow is not None:
            return self.names[sentence.flow]
        return HEADINGS[sentence.topic]

    def to_json(self) -> dict[str, Any]:
        """Return what `gargalo explain --json` prints."""
        return {
            "name": self.name,
            "seed": self.seed,
            "flows": {str(i): name for i, name in self.names.items()},
            "sentences": [s.to_json() for s in self.sentences],
        }

    def __str__(self) -> str:
        return "\n\n".join("\n".join([head, *texts]) for head, texts in self.sections())


HEADINGS = {
    "run": "The run",
    "flow": "Other flows",
    "shares": "Who had what",
    "queue": "The queues",
    "finding": "Findings",
    "missing": "Not recorded",
}
"""Of sentences that are not about one flow."""


def instant(seconds: float) -> str:
    """Write an instant to the millisecond."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def period(start: float, end: float) -> str:
    """Write a part of the run."""
    return f"from {instant(start)} to {instant(end)}"


def size(count: float) -> str:
    """Write an amount of data."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def counted(n: int, word: str, words: str = "") -> str:
    """Write a number of things."""
    return f"{n} {word if n == 1 else words or word + 's'}"


def listed(parts: Iterable[str]) -> str:
    """Write a list in a sentence."""
    texts: Sequence[str] = list(parts)
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
