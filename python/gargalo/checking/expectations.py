"""What is expected of a figure, and what it is."""

from __future__ import annotations

import difflib
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gargalo import _core
from gargalo.quantities import ENDINGS, SHARES, measured, si

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gargalo.results import Run

Bound: TypeAlias = "float | str | bool"
Figure: TypeAlias = "float | str | bool | None"

PLACES = ("flows", "links", "summary")
BOUNDS = {
    "at_least": (operator.ge, "at least"),
    "at_most": (operator.le, "at most"),
    "equals": (operator.eq, ""),
}
NEAR = 1e-9
"""Numbers are the same if they differ by less than this share."""


class ExpectationError(ValueError):
    """An expectation that cannot be judged: of what, and why."""


@dataclass(frozen=True)
class Expectation:
    """What a figure has to be, as a scenario has it."""

    metric: str
    bounds: Mapping[str, Bound]
    """By the name of the key: `at_least`, `at_most`, `equals`."""
    of: str | None
    why: str

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Expectation:
        """Take one table of `expect`."""
        bounds = {key: table[key] for key in BOUNDS if key in table}
        return cls(table["metric"], bounds, table.get("of"), table.get("why", ""))


@dataclass(frozen=True)
class Outcome:
    """Whether a figure is as expected."""

    metric: str
    """Its place, with the name of the flow or link that it is of."""
    value: Figure
    """None: not known."""
    bound: str
    """What was expected, in words."""
    met: bool
    why: str
    number: int
    """Of the expectation in the scenario, from 0."""

    def __str__(self) -> str:
        """Return a sentence."""
        because = f": {self.why}" if self.why else ""
        return (
            f"{self.metric} is {_written(self.metric, self.value)}, expected: {self.bound}{because}"
        )


def expectations(run: Run) -> list[Expectation]:
    """Return what a run's scenario expects."""
    return [Expectation.read(table) for table in run.scenario.get("expect", [])]


def judge(run: Run) -> list[Outcome]:
    """Compare a run with what its scenario expects.

    Raises:
        ExpectationError: A figure is not there, or a bound is not one of it.

    """
    return [
        outcome
        for number, expected in enumerate(expectations(run))
        for outcome in _outcomes(run, number, expected)
    ]


def _outcomes(run: Run, number: int, expected: Expectation) -> Iterator[Outcome]:
    found = figures(run, expected.metric)
    others = _others(run, expected, [name for name, _ in found])
    for (name, value), other in zip(found, others, strict=True):
        for key, bound in expected.bounds.items():
            wanted = _limit(name, bound, other)
            words = BOUNDS[key][1]
            told = f"{words} {_written(name, wanted)}".strip()
            if expected.of is not None:
                told += f" ({bound} of {expected.of})"
            met = _holds(key, value, wanted)
            yield Outcome(name, value, told, met, expected.why, number)


def _others(run: Run, expected: Expectation, names: list[str]) -> list[Figure]:
    """Return the figures that bounds are shares of, one for each; 1 where they are none's."""
    if expected.of is None:
        return [1.0] * len(names)
    if expected.of.partition(".")[0] in PLACES:
        others = [value for _, value in figures(run, expected.of)]
        if len(others) not in (1, len(names)):
            msg = f"of = {expected.of!r} has {len(others)} figures for {len(names)} of {expected.metric}"
            raise ExpectationError(msg)
        return others * (len(names) // len(others))
    from gargalo.results import load

    place = Path(str(run.source.get("path") or ".")).parent / expected.of
    try:
        before = dict(figures(load(place), expected.metric))
    except (_core.RunError, OSError) as e:
        msg = f"of = {expected.of!r}: {e}"
        raise ExpectationError(msg) from None
    return [before.get(name) for name in names]


def figures(run: Run, place: str) -> list[tuple[str, Figure]]:
    """Return the figures at a place of the results, each with its own place.

    Raises:
        ExpectationError: There is none.

    """
    kind, _, rest = place.partition(".")
    if kind == "summary":
        within: Mapping[str, Any] = run.summary
        *tables, rest = rest.split(".")
        for table in tables:
            inner = within.get(table)
            within = inner if isinstance(inner, dict) else {}
        return [(place, _figure(within, rest, place))]
    pattern, _, figure = rest.rpartition(".")
    if kind == "flows":
        rows = [(str(row["label"]), row) for row in run.flows.to_dicts()]
    elif kind == "links":
        # Without a direction it is the first: from a link's first end to its second.
        rows = [
            (
                link["name"] if link["direction"] == "up" and not pattern.endswith(" up") else full,
                link,
            )
            for link in run.links
            for full in (f"{link['name']} {link['direction']}",)
        ]
    else:
        msg = f"{place!r} is no place of a figure"
        raise ExpectationError(msg)
    chosen = [(name, row) for name, row in rows if fits(pattern, name)]
    if not chosen:
        msg = f"{place!r}: none of the {kind} of the results is named {pattern!r}"
        raise ExpectationError(msg)
    return [(f"{kind}.{name}.{figure}", _figure(row, figure, place)) for name, row in chosen]


def fits(pattern: str, name: str) -> bool:
    """Tell whether a name is meant: `*` at the end of a pattern stands for any text."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _figure(row: Mapping[str, Any], name: str, place: str) -> Figure:
    if name not in row or isinstance(row[name], (dict, list)):
        known = [k for k, v in row.items() if not isinstance(v, (dict, list))]
        near = difflib.get_close_matches(name, known, 1)
        told = f"did you mean {near[0]!r}? " if near else ""
        msg = f"{place!r}: there is no figure {name!r}; {told}there are {', '.join(known)}"
        raise ExpectationError(msg)
    value: Figure = row[name]
    return value


def _unit(place: str) -> str:
    """Return the unit of a figure by its name."""
    name = place.rpartition(".")[2]
    if name in SHARES:
        return "%"
    return ENDINGS.get(name.rpartition("_")[2], "") if "_" in name else ""


def _limit(place: str, bound: Bound, other: Figure) -> Figure:
    """Return a bound as a figure in SI; None if what it is a share of is not known."""
    if isinstance(bound, bool) or not isinstance(bound, (int, float, str)):
        return bound
    read = si(bound)
    if read is None:
        return bound
    value, unit = read
    if isinstance(other, bool) or not isinstance(other, (int, float)):
        return None
    wanted = _unit(place)
    if unit and unit != wanted:
        msg = f"{place}: {bound!r} is in {unit}, and the figure in {wanted or 'nothing: it is a number'}"
        raise ExpectationError(msg)
    return value * other


def _holds(key: str, value: Figure, wanted: Figure) -> bool:
    if key == "equals" and (isinstance(wanted, (str, bool)) or wanted is None):
        return (value or "") == wanted if isinstance(wanted, str) else value == wanted
    numbers = [
        v for v in (value, wanted) if isinstance(v, (int, float)) and not isinstance(v, bool)
    ]
    if len(numbers) != len((value, wanted)):
        return False
    a, b = numbers
    same = abs(a - b) <= NEAR * max(abs(a), abs(b))
    return same or bool(BOUNDS[key][0](a, b))


def _written(place: str, value: Figure) -> str:
    if value is None:
        return "not known"
    if isinstance(value, (bool, str)):
        return str(value).lower() if isinstance(value, bool) else repr(value)
    return measured(value, _unit(place))
