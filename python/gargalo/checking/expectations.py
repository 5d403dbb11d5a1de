"""What is expected of a figure, and what it is."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from gargalo import _core
from gargalo.quantities import ENDINGS, SHARES, measured, si

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gargalo.results import Run

Bound: TypeAlias = "float | str | bool"
Figure: TypeAlias = "float | str | bool | None"
Row: TypeAlias = "Mapping[str, Any]"

PLACES = ("flows", "links", "summary")
BOUNDS = {
    "at_least": (operator.ge, "at least"),
    "at_most": (operator.le, "at most"),
    "equals": (operator.eq, ""),
}
NEAR = 1e-9
"""Numbers are the same if they differ by less than this share."""
NAMED = 12
"""Names that a message lists."""


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
    number: int = 0
    """In the scenario, from 0."""
    by: str = "mean"
    """What of repeats it is about: `mean`, `interval`, `each`."""

    @classmethod
    def read(cls, table: Mapping[str, Any], number: int = 0) -> Expectation:
        """Take one table of `expect`."""
        bounds = {key: table[key] for key in BOUNDS if key in table}
        return cls(
            table["metric"],
            bounds,
            table.get("of"),
            table.get("why", ""),
            number,
            table.get("by", "mean"),
        )


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
    key: str = "equals"
    """Of the bound."""
    by: str = "mean"
    """What of repeats is compared."""
    level: float | None = None
    """The figure in SI, or as a share of another one; None: not known, or no number."""
    limit: float | None = None
    """What the level is compared with; None: the bound is no number, or not known."""
    shown: str = ""
    """The value in words; empty: as it is."""
    cell: str = ""
    """In a sweep: the labels of the cell."""

    def __str__(self) -> str:
        """Return a sentence."""
        because = f": {self.why}" if self.why else ""
        value = self.shown or written(self.metric, self.value)
        at = f"{self.cell}: " if self.cell else ""
        return f"{at}{self.metric} is {value}, expected: {self.bound}{because}"


def expectations(run: Run) -> list[Expectation]:
    """Return what a run's scenario expects."""
    return [Expectation.read(table, n) for n, table in enumerate(run.scenario.get("expect", []))]


def judge(run: Run) -> list[Outcome]:
    """Compare a run with what its scenario expects.

    Raises:
        ExpectationError: A figure is not there, or a bound is not one of it.

    """
    figures = Figures(run)
    return [outcome for expected in expectations(run) for outcome in outcomes(figures, expected)]


@dataclass(frozen=True)
class Figures:
    """The figures of a run by their places."""

    run: Run

    @cached_property
    def flows(self) -> list[tuple[str, str, Row]]:
        """Label, name and row of each flow."""
        rows = self.run.flows.to_dicts()
        return [(row["label"], self.run.names[row["id"]], row) for row in rows]

    def at(self, place: str) -> list[tuple[str, Figure]]:
        """Return the figures at a place, each with its own place.

        Raises:
            ExpectationError: There is none.

        """
        kind, _, rest = place.partition(".")
        if kind == "summary":
            return [(place, self._of_summary(rest, place))]
        pattern, _, figure = rest.rpartition(".")
        found = self._rows(kind, pattern, place)
        return [(f"{kind}.{name}.{figure}", _figure(row, figure, place)) for name, row in found]

    def _of_summary(self, path: str, place: str) -> Figure:
        within: Any = self.run.summary
        *tables, figure = path.split(".")
        for table in tables:
            if not isinstance(within.get(table), dict):
                known = [k for k, v in within.items() if isinstance(v, dict)]
                raise ExpectationError(f"{place!r}: " + _none("table", table, known))
            within = within[table]
        return _figure(within, figure, place)

    def _rows(self, kind: str, pattern: str, place: str) -> list[tuple[str, Row]]:
        name = pattern
        if kind == "flows":
            known = [label for label, _, _ in self.flows]
            chosen = [(own, row) for label, own, row in self.flows if fits(pattern, label)]
        elif kind == "links":
            direction = "up"
            if pattern.endswith((" up", " down")):
                name, _, direction = pattern.rpartition(" ")
            links = [link for link in self.run.links if link["direction"] == direction]
            known = [link["name"] for link in links]
            shown = "" if name == pattern else f" {direction}"
            chosen = [(link["name"] + shown, link) for link in links if fits(name, link["name"])]
        else:
            msg = f"{place!r} is no place of a figure: those of {', '.join(PLACES)} are"
            raise ExpectationError(msg)
        if not chosen:
            raise ExpectationError(f"{place!r}: " + _none(kind, name, known))
        return chosen


def outcomes(figures: Figures, expected: Expectation) -> Iterator[Outcome]:
    """Compare figures with what is expected of them.

    Raises:
        ExpectationError: A figure is not there, or a bound is not one of it.

    """
    found = figures.at(expected.metric)
    others = _others(figures, expected, found)
    for (name, value), other in zip(found, others, strict=True):
        for key, bound in expected.bounds.items():
            if expected.of is None:
                wanted = limit = _limit(name, key, bound, value)
                level = value
                told = f"{BOUNDS[key][1]} {written(name, wanted)}"
            else:
                limit = _share(name, bound)
                wanted, level = _product(limit, other), _ratio(value, other)
                told = f"{BOUNDS[key][1]} {bound} of {expected.of} ({written(name, wanted)})"
            yield Outcome(
                name,
                value,
                told.strip(),
                holds(key, value, wanted),
                expected.why,
                expected.number,
                key,
                expected.by,
                float(level) if _is_number(level) else None,
                float(limit) if _is_number(limit) else None,
            )


def _others(
    figures: Figures, expected: Expectation, found: Sequence[tuple[str, Figure]]
) -> Sequence[Figure]:
    """Return the figures that bounds are shares of, one for each; None where there is no such figure."""
    if expected.of is None:
        return [None] * len(found)
    if expected.of.partition(".")[0] in PLACES:
        if _unit(expected.of) != _unit(expected.metric):
            msg = f"of = {expected.of!r} is no figure of the unit of {expected.metric}"
            raise ExpectationError(msg)
        others = [value for _, value in figures.at(expected.of)]
        if len(others) not in (1, len(found)):
            msg = f"of = {expected.of!r} has {len(others)} figures for {len(found)} of {expected.metric}"
            raise ExpectationError(msg)
        return others * (len(found) // len(others))
    from gargalo.results import load

    place = Path(str(figures.run.source.get("path") or ".")).parent / expected.of
    try:
        before = dict(Figures(load(place)).at(expected.metric))
    except (_core.RunError, OSError, ExpectationError) as e:
        msg = f"of = {expected.of!r}: {e}"
        raise ExpectationError(msg) from None
    return [before.get(name) for name, _ in found]


def fits(pattern: str, name: str) -> bool:
    """Tell whether a name is meant: `*` at the end of a pattern stands for any text."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _figure(row: Row, name: str, place: str) -> Figure:
    if name not in row or isinstance(row[name], (dict, list)):
        known = [k for k, v in row.items() if not isinstance(v, (dict, list))]
        raise ExpectationError(f"{place!r}: " + _none("figure", name, known, len(known)))
    value: Figure = row[name]
    return value


def _none(kind: str, name: str, known: Sequence[str], most: int = NAMED) -> str:
    """Say that there is none of a name, and which there are."""
    near = _core.nearest(name, list(known))
    told = "" if near is None else f"; did you mean {near!r}?"
    more = ", …" if len(known) > most else ""
    return f"there is no {kind.rstrip('s')} {name!r}{told} There are: {', '.join(known[:most]) or 'none'}{more}"


def _unit(place: str) -> str:
    """Return the unit of a figure by its name."""
    name = place.rpartition(".")[2]
    if name in SHARES:
        return "%"
    return ENDINGS.get(name.rpartition("_")[2], "") if "_" in name else ""


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _limit(place: str, key: str, bound: Bound, value: Figure) -> Figure:
    """Return a bound as a figure in SI; a word or yes or no only where that is asked for."""
    read = None if isinstance(bound, bool) else si(bound)
    if read is None:
        if key != "equals" or _is_number(value):
            msg = f"{place}: {key} = {bound!r} is no number with a unit, and the figure is one"
            raise ExpectationError(msg)
        return bound
    number, unit = read
    wanted = _unit(place)
    if unit and unit != wanted:
        msg = f"{place}: {bound!r} is in {unit}, and the figure in {wanted or 'nothing: it is a number'}"
        raise ExpectationError(msg)
    return number


def _share(place: str, bound: Bound) -> float:
    """Return a bound that is a share of another figure."""
    read = None if isinstance(bound, bool) else si(bound)
    if read is None or read[1]:
        msg = f"{place}: {bound!r} is no share of another figure: write a number or percent"
        raise ExpectationError(msg)
    return read[0]


def _product(share: float, other: Figure) -> float | None:
    return share * other if _is_number(other) else None


def _ratio(value: Figure, other: Figure) -> float | None:
    return value / other if _is_number(value) and _is_number(other) and other else None


def holds(key: str, value: Figure, wanted: Figure) -> bool:
    """Tell whether a figure is as a bound of this key says."""
    if isinstance(wanted, bool):
        return value is wanted
    if isinstance(wanted, str):
        return ("" if value is None else value) == wanted
    if isinstance(value, (bool, str)) or value is None or wanted is None:
        return False
    same = abs(value - wanted) <= NEAR * max(abs(value), abs(wanted))
    return same or bool(BOUNDS[key][0](value, wanted))


def written(place: str, value: Figure) -> str:
    """Write a figure with its unit."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value) if value else "none"
    return measured(value, _unit(place))
