"""What a matrix of stacks consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gargalo.judging import Mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.checking.known import Compared

Json: TypeAlias = dict[str, Any]
Verdict: TypeAlias = Literal["pass", "fail", "not applicable"]

VERDICTS: Mapping[Verdict, Mark] = {
    "pass": Mark("✓", "green", "what was expected was seen"),
    "fail": Mark("✗", "bold red", "something else was seen"),
    "not applicable": Mark("-", "dim", "one of the two stacks cannot do it"),
}


@dataclass(frozen=True)
class Stack:
    """A QUIC implementation that scenarios can name."""

    name: str
    version: str = ""
    congestion: tuple[str, ...] = ()
    """Its congestion controls, the default first."""
    features: frozenset[str] = frozenset()
    """What a scenario may ask of it; see `gargalo.QuicStack.features`."""
    specifications: Mapping[str, str] = field(default_factory=dict)
    """What its congestion controls follow, by name, where it says so; see `gargalo.QuicStack.specifications`."""
    file: str = ""
    """Where it is from; empty for the one inside."""
    broken: str = ""
    """Why it cannot be loaded."""

    def to_json(self) -> Json:
        """Return it as an object of JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "congestion": list(self.congestion),
            "specifications": dict(self.specifications),
            "features": sorted(self.features),
            "file": self.file,
            "broken": self.broken,
        }


@dataclass(frozen=True)
class Seen:
    """What a run showed."""

    good: bool
    text: str


@dataclass(frozen=True)
class Cell:
    """A client against a server in one case."""

    client: str
    server: str
    case: str
    verdict: Verdict
    seen: str
    """What was seen, or why the case does not apply."""
    scenario: Mapping[str, Any] | None = None
    """What was run."""
    results_hash: str | None = None
    packets_hash: str | None = None
    """SHA-256 of the capture."""
    same: bool | None = None
    """Whether further runs had the same results, in other processes and after others; None: there were none."""
    differs: str = ""
    """How they differed."""

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.client}-{self.server}-{self.case}"

    @property
    def place(self) -> Mapping[str, str]:
        """What names it among all."""
        return {"client": self.client, "server": self.server, "case": self.case}

    @property
    def passed(self) -> bool | None:
        """Whether it did what was expected, twice the same; None: it does not apply."""
        if self.verdict == "not applicable":
            return None
        return self.verdict == "pass" and self.same is not False

    def to_json(self) -> Json:
        """Return it as an object of JSON."""
        return {
            "client": self.client,
            "server": self.server,
            "case": self.case,
            "verdict": self.verdict,
            "seen": self.seen,
            "results_hash": self.results_hash,
            "packets_hash": self.packets_hash,
            "same": self.same,
            "differs": self.differs or None,
        }


@dataclass(frozen=True)
class Matrix:
    """Every client against every server in every case."""

    stacks: Sequence[Stack]
    cells: Sequence[Cell]
    seed: int
    outside: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By stack, what its library asked the system for by itself in a run that was done again, and how often."""

    @property
    def asked(self) -> list[str]:
        """A sentence for each stack whose library asked the system for something by itself."""
        return [
            f"{stack} asks the system for "
            + ", ".join(
                f"{what} ({many} time{'' if many == 1 else 's'})" for what, many in own.items()
            )
            + " by itself: what it gets is not of the run"
            for stack, own in self.outside.items()
        ]

    @property
    def failed(self) -> list[Cell]:
        """The cells that failed, or that were not the same twice."""
        return [c for c in self.cells if c.passed is False]

    def to_json(self, told: Compared) -> Json:
        """Return it as an object of JSON, with what was known of failures."""
        return {
            "seed": self.seed,
            "stacks": [s.to_json() for s in self.stacks],
            "cells": [
                {**c.to_json(), "known": told.known.get(n)} for n, c in enumerate(self.cells)
            ],
            "outside": {stack: dict(own) for stack, own in self.outside.items()},
            "as_known": told.as_known,
        }
