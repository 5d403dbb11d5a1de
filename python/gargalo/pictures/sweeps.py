"""Pictures of many runs as data: what is drawn is decided here once, for files, notebooks and pages."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import polars as pl

from gargalo import _core, audit
from gargalo.metrics.declared import bounds_in
from gargalo.metrics.intervals import ENOUGH, Interval, mean_interval
from gargalo.quantities import FACTORS, QUANTITY, SHARES, Quantity, quantity, si

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.metrics.intervals import Bounds

Kind: TypeAlias = Literal["points", "bars", "box", "cdf", "heat"]
"""Means with their intervals over an axis or as bars; quartiles; cumulative shares; means as colours."""
KINDS: tuple[Kind, ...] = get_args(Kind)
ALGORITHM_LABELS = ("congestion", "algorithm", "protocol", "cc")
ALL = "all runs"
MOST_PANELS = 12
MOST_TICKS = 9
CLOSEST = 0.06
"""Of the length of an axis: words that are nearer to each other would overlap."""
SPREAD = 30.0
"""Levels whose greatest is this many times the least are on a logarithmic axis."""
GEOMETRIC = 4.0
"""So are those of a smaller range that are more even as ratios than as differences."""


class PictureError(ValueError):
    """There is no such picture of these runs; the text names the remedy."""


@dataclass(frozen=True)
class Axes:
    """What each label of a sweep is in its pictures."""

    by: str
    """The label with a colour for each value."""
    x: str | None = None
    """The label along the horizontal axis."""
    panels: tuple[str, ...] = ()
    """Labels with a panel for each combination of their values."""
    x_words: str = ""
    """Title of the horizontal axis, instead of the label's name."""

    @property
    def cell(self) -> list[str]:
        """All labels but that of the colours."""
        return [*([self.x] if self.x else []), *self.panels]


@dataclass(frozen=True)
class Scale:
    """An axis."""

    title: str
    """With its unit."""
    unit: str = ""
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    """Where something is written, and what: the levels in the words of the scenario. Empty: plain numbers."""
    named: bool = False
    """The places are 0, 1, …, of levels without a distance."""


@dataclass(frozen=True)
class Point:
    """A cell of a sweep, in the units of the axes."""

    x: float
    level: str
    """What is on the horizontal axis, in words."""
    interval: Interval
    values: tuple[float, ...]
    """Of the runs that count."""


@dataclass(frozen=True)
class Series:
    """What has one colour."""

    name: str
    place: int
    """Which colour, dash and marker: the same in all panels."""
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """A part of the picture with axes of its own."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class SweepPicture:
    """A picture of many runs."""

    kind: Kind
    title: str
    x: Scale
    y: Scale
    """Of the metric; of the label of the colours in a heat map, whose `colour` is that of the metric."""
    panels: tuple[Panel, ...]
    legend: str = ""
    """What distinguishes the series, in words."""
    notes: tuple[str, ...] = ()
    """Sentences without a full stop."""
    colour: Scale | None = field(default=None)

    @property
    def names(self) -> list[str]:
        """The names of all series, in the order of their colours."""
        found = {s.place: s.name for panel in self.panels for s in panel.series}
        return [found[place] for place in sorted(found)]

    def to_json(self) -> dict[str, Any]:
        """Return what it shows."""
        return {
            "title": self.title,
            "kind": self.kind,
            "x": {"title": self.x.title, "log": self.x.log, "ticks": [t for _, t in self.x.ticks]},
            "quantity": (self.colour or self.y).title,
            "panels": [
                {"title": p.title, "series": [_series_json(s) for s in p.series]}
                for p in self.panels
            ],
            "notes": list(self.notes),
        }


def _series_json(series: Series) -> dict[str, Any]:
    points = [
        {
            "level": p.level,
            "n": p.interval.n,
            "mean": p.interval.mean,
            "low": p.interval.low,
            "high": p.interval.high,
            "values": list(p.values),
        }
        for p in series.points
    ]
    return {"name": series.name, "points": points}


def words(label: str) -> str:
    """Return a label in words."""
    return label.rpartition(".")[2].replace("_", " ")


# --- which label is what


def axes_of(
    frame: pl.DataFrame, labels: Sequence[str], *, x: str | None = None, by: str | None = None
) -> tuple[pl.DataFrame, Axes]:
    """Return the runs, and what each label is in a picture of them.

    By default the colours are those of the congestion controls, else of the first label that is no number, and the
    horizontal axis is the first label that is one; every further label with several values makes panels. Runs without
    a label for the colours get one.

    Raises:
        PictureError: There is no such label, or it has one value.

    """
    for option, name in (("x", x), ("by", by)):
        if name is not None:
            _check_label(frame, labels, option, name)
    if x is not None and x == by:
        msg = f'x and by are both "{x}": choose another label for one of them'
        raise PictureError(msg)
    rest = [n for n in labels if n != x]
    chosen = by if by is not None else _algorithm(frame, rest)
    if chosen is None:
        frame, chosen = frame.with_columns(pl.lit(ALL).alias("cell")), "cell"
    varied = [n for n in rest if n != chosen and frame[n].n_unique() > 1]
    if x is None:
        numeric = [n for n in varied if _is_numeric(frame[n])]
        x = next(iter(numeric or varied), None)
    made = frame.with_columns(pl.col(chosen).cast(pl.String))
    return made, Axes(chosen, x, tuple(n for n in varied if n != x))


def _check_label(frame: pl.DataFrame, labels: Sequence[str], option: str, name: str) -> None:
    if name not in labels:
        raise PictureError(unknown(f"label for {option}", name, labels))
    values = frame[name].unique(maintain_order=True).to_list()
    if len(values) == 1:
        others = [n for n in labels if frame[n].n_unique() > 1]
        remedy = f"; these vary: {', '.join(others)}" if others else "; no label varies"
        msg = f"{option} {name}: all of these runs have the same value, {values[0]}{remedy}"
        raise PictureError(msg)


def unknown(what: str, name: str, have: Sequence[str]) -> str:
    """Say that there is no such thing, and what is nearest."""
    near = _core.nearest(name, have)
    hint = f'did you mean "{near}"?' if near else f"there are: {', '.join(have) or 'none'}"
    return f'there is no {what} "{name}"; {hint}'


def _is_numeric(values: pl.Series) -> bool:
    return all(si(v) is not None for v in values.drop_nulls().unique())


def _algorithm(frame: pl.DataFrame, labels: Sequence[str]) -> str | None:
    for name in labels:
        if name.rpartition(".")[2] in ALGORITHM_LABELS:
            return name
    known = {n for e in _core.congestion() for n in (e["name"], *e.get("aliases", []))}
    for name in labels:
        if {str(v) for v in frame[name].unique()} <= known:
            return name
    return next((n for n in labels if not _is_numeric(frame[n])), None)


# --- the picture


def describe(
    frame: pl.DataFrame,
    metric: str,
    axes: Axes,
    *,
    kind: Kind | None = None,
    level: float = 0.95,
    bounds: Mapping[str, Bounds] | None = None,
    unit: str | None = None,
) -> SweepPicture:
    """Return the picture of a metric of many runs.

    Args:
        frame: A row per run (or per flow): labels, `seed`, the metric in SI; repeats that are the same run count once.
        metric: Its column.
        axes: What each label is.
        kind: By default points over an axis of numbers, bars over one of names, and quartiles without an axis.
        level: Of the confidence intervals (`metrics.mean_interval`).
        bounds: The least and the greatest value of metrics that are no figures of every run; those of a run's
            own figures, and of what its network can carry and hold, are known.
        unit: Of the metric, where its name does not give it.

    Raises:
        PictureError: The kind is unknown, or needs another axis.

    """
    made = _kind(frame, axes, kind)
    rows = audit.counted(frame, [axes.by, *axes.cell]).drop_nulls(metric)
    values = rows[metric].cast(pl.Float64)
    rows = rows.filter(values.is_finite())
    q = _quantity(metric, rows[metric].to_list(), unit)
    levels, x = _x_scale(frame, axes, made)
    places = {str(n): i for i, n in enumerate(frame[axes.by].unique(maintain_order=True))}
    panels = []
    for title, part in _panels(rows, axes):
        groups = part.group_by(axes.by, maintain_order=True)
        found = [(str(key), mine) for (key,), mine in groups]
        series = []
        for name, mine in sorted(found, key=lambda g: places[g[0]]):
            points = _points(mine, metric, axes, levels, (level, bounds, q.factor), places[name])
            series.append(Series(name, places[name], points))
        panels.append(Panel(title, tuple(series)))
    metric_scale = Scale(q.title, q.unit)
    y, colour = metric_scale, None
    if made == "cdf":
        panels = [_curves(p, axes) for p in panels]
        x, y = metric_scale, Scale("share of values up to that")
    elif made == "heat":
        ticks = tuple((float(i), name) for name, i in places.items())
        y, colour = Scale(words(axes.by), ticks=ticks, named=True), metric_scale
    over = f" over {axes.x_words or words(axes.x)}" if axes.x and made != "cdf" else ""
    title = f"{q.words[:1].upper()}{q.words[1:]}{over}"
    notes = tuple(_notes(made, panels, level))
    legend = "" if axes.by == "cell" else words(axes.by)
    if made == "cdf" and axes.x is not None:
        legend = f"{legend}, {words(axes.x)}".removeprefix(", ")
    return SweepPicture(made, title, x, y, tuple(panels), legend, notes, colour)


def _kind(frame: pl.DataFrame, axes: Axes, kind: Kind | None) -> Kind:
    if kind is None:
        if axes.x is None:
            return "box"
        return "points" if _is_numeric(frame[axes.x]) else "bars"
    if kind not in KINDS:
        raise PictureError(unknown("kind of picture", kind, KINDS))
    if kind == "heat" and (axes.x is None or axes.by == "cell"):
        msg = "a heat map needs two labels with several values, as x and as by"
        raise PictureError(msg)
    return kind


def _quantity(metric: str, values: Sequence[float | None], unit: str | None) -> Quantity:
    q = quantity(metric, values, unit)
    return Quantity(q.words, "%", 0.01) if unit is None and metric in SHARES else q


def _panels(rows: pl.DataFrame, axes: Axes) -> list[tuple[str, pl.DataFrame]]:
    if not axes.panels:
        return [("", rows)]
    return [
        (", ".join(f"{words(n)} {v}" for n, v in zip(axes.panels, key, strict=True)), part)
        for key, part in rows.group_by(list(axes.panels), maintain_order=True)
    ]


def _points(
    rows: pl.DataFrame,
    metric: str,
    axes: Axes,
    levels: Mapping[Any, tuple[float, str]],
    figures: tuple[float, Mapping[str, Bounds] | None, float],
    place: int,
) -> tuple[Point, ...]:
    """Return the cells of one colour; without an axis it is one, at the place of its colour."""
    level, bounds, factor = figures
    parts: list[tuple[tuple[float, str], pl.DataFrame]]
    if axes.x is None:
        parts = [((float(place), str(rows[axes.by][0])), rows)]
    else:
        groups = rows.group_by(axes.x, maintain_order=True)
        parts = [(levels[key], part) for (key,), part in groups]
    found = []
    for (x, text), part in sorted(parts, key=lambda p: p[0][0]):
        interval = mean_interval(part[metric], level, bounds_in(metric, part, bounds))
        values = tuple(float(v) / factor for v in part[metric])
        found.append(Point(x, text, _scaled(interval, factor), values))
    return tuple(found)


def _scaled(i: Interval, factor: float) -> Interval:
    mean, low, high = (None if v is None else v / factor for v in (i.mean, i.low, i.high))
    return Interval(mean, low, high, i.n, i.level, i.method)


def _curves(panel: Panel, axes: Axes) -> Panel:
    """Return a series for each colour and level: a curve of cumulative shares has no other axis."""
    if axes.x is None:
        return panel
    series = [
        Series(f"{s.name}, {words(axes.x)} {p.level}", 0, (p,))
        for s in panel.series
        for p in s.points
    ]
    return Panel(panel.title, tuple(Series(s.name, i, s.points) for i, s in enumerate(series)))


def _notes(kind: Kind, panels: Sequence[Panel], level: float) -> list[str]:
    counts = [p.interval.n for panel in panels for s in panel.series for p in s.points]
    if not counts:
        return []
    least, most = min(counts), max(counts)
    many = f"{least} values" if least == most else f"{least} to {most} values"
    if kind == "cdf":
        return [f"of {many} a curve"]
    if kind == "heat":
        return [f"means of {many}"]
    told = [
        f"every run is a dot; quartiles, and the mean of {many} with its {level:.0%} interval"
        if kind == "box"
        else f"means of {many} with {level:.0%} intervals"
    ]
    if any(p.interval.low is None for panel in panels for s in panel.series for p in s.points):
        told.append(f"no interval where there are fewer than {ENOUGH}, or all are equal")
    return told


# --- the horizontal axis


def _x_scale(
    frame: pl.DataFrame, axes: Axes, kind: Kind
) -> tuple[dict[Any, tuple[float, str]], Scale]:
    """Return place and words of each level, and the axis."""
    if axes.x is None:
        names = [str(n) for n in frame[axes.by].unique(maintain_order=True)]
        ticks = tuple((float(i), n) for i, n in enumerate(names))
        return {}, Scale("", ticks=ticks, named=True)
    values = frame[axes.x].unique(maintain_order=True).to_list()
    return scale_of(values, axes.x_words or words(axes.x), named=kind in ("bars", "box", "heat"))


def scale_of(
    values: Sequence[Any], title: str, *, named: bool = False
) -> tuple[dict[Any, tuple[float, str]], Scale]:
    """Return place and words of each level of a label, and the axis that they make.

    Args:
        values: The levels, as the sweep has them.
        title: Of the axis, without a unit.
        named: Their distances do not matter.

    """
    found = [si(v) for v in values]
    numbers = [n[0] for n in found if n is not None]
    if len(numbers) < len(values) or len({n[1] for n in found if n is not None}) != 1:
        places = {v: (float(i), _text(v)) for i, v in enumerate(values)}
        return places, Scale(title, ticks=tuple(places.values()), named=True)
    written = {_unit(v) for v in values}
    unit = written.pop() if len(written) == 1 else ""
    factor = FACTORS[unit][1] if unit else 1.0
    alone = bool(unit) and unit != "%"
    if not unit and found[0] is not None and found[0][1]:
        factor = quantity("x", numbers, found[0][1]).factor
    at = {v: float(f"{n / factor:.12g}") for v, n in zip(values, numbers, strict=True)}
    order = sorted(values, key=at.__getitem__)
    short = {v: f"{at[v]:g}" if alone else _text(v) for v in values}
    name = f"{title} ({unit})" if alone else title
    log = not named and logarithmic(list(at.values()))
    if named:
        at = {v: float(i) for i, v in enumerate(order)}
    elif log and at[order[0]] == 0:
        at[order[0]] = _beside([at[v] for v in order[1:]])
    ticks = [(at[v], short[v]) for v in order]
    shown = tuple(ticks) if named else _spaced(ticks, log=log)
    return {v: (at[v], _text(v)) for v in order}, Scale(name, unit, log, shown, named)


def _text(value: Any) -> str:
    if value is None:
        return "–"  # noqa: RUF001 (a dash for "not known")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _unit(value: Any) -> str:
    """Return the unit that a level is written with."""
    found = None if isinstance(value, (int, float)) else QUANTITY.match(str(value))
    return (found[2] or "") if found else ""


def logarithmic(places: Sequence[float]) -> bool:
    """Whether levels are spread as on a logarithmic axis; none at all (0) may be among them."""
    positive = sorted({p for p in places if p > 0})
    if len(positive) < 3 or min(places) < 0:
        return False
    ratio = positive[-1] / positive[0]
    if ratio >= SPREAD:
        return True
    if ratio < GEOMETRIC or min(places) == 0:
        return False
    pairs = list(itertools.pairwise(positive))
    gaps = [b - a for a, b in pairs]
    factors = [math.log(b / a) for a, b in pairs]
    return max(factors) / min(factors) < max(gaps) / min(gaps)


def _beside(positive: Sequence[float]) -> float:
    """Return where a logarithmic axis has its 0: as far below the least level as that is from the next."""
    return positive[0] * positive[0] / positive[1]


def _spaced(ticks: Sequence[tuple[float, str]], *, log: bool) -> tuple[tuple[float, str], ...]:
    """Return those of some words, in the order of their places, that have room beside each other; the ends do."""
    if len(ticks) < 2:
        return tuple(ticks)
    at = [math.log(p) if log else p for p, _ in ticks]
    least = (at[-1] - at[0]) * max(CLOSEST, 1 / (MOST_TICKS + 1))
    kept = [0]
    for i in range(1, len(ticks) - 1):
        if at[i] - at[kept[-1]] >= least and at[-1] - at[i] >= least:
            kept.append(i)
    return tuple(ticks[i] for i in [*kept, len(ticks) - 1])
