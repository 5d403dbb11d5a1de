"""What a step of a lesson expects of its run: a figure with bounds, which its explanation may quote by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import polars as pl

from gargalo import metrics
from gargalo.pictures.metrics import COUNTS, amount
from gargalo.quantities import ENDINGS, PREFIXES, SHARES, quantity

if TYPE_CHECKING:
    from gargalo.results import Run

Statistic: TypeAlias = Literal["mean", "min", "p5", "p50", "p85", "p95", "max"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
GOODPUT = "goodput_bps"


class UnknownFigureError(ValueError):
    """The run has no such figure."""


@dataclass(frozen=True)
class Figure:
    """A figure that was measured."""

    name: str
    what: str
    value: float
    """In SI."""
    unit: str
    holds: bool
    """Whether it is within the bounds of the expectation."""

    def __str__(self) -> str:
        """Return it as a reader sees it: three digits and a unit; a ratio with two decimals."""
        if self.unit == "%":
            return f"{_digits(self.value * 100)}%"
        if self.unit not in PREFIXES:  # Counts, whose words say of what, and ratios.
            return f"{self.value:,.0f}" if self.value.is_integer() else f"{self.value:.2f}"
        if not self.value:
            return f"0 {self.unit}"
        q = quantity("x", [self.value], self.unit)
        return f"{_digits(self.value / q.factor)} {q.unit}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Expectation:
    """A figure that the run of a step must have, and its bounds."""

    name: str
    """The word by which an explanation quotes it."""
    what: str
    metric: str
    """A column of the results tables, with its unit at the end; or `losses`, `timeouts`, `recoveries`, counted."""
    flow: str | None = None
    """The flow's name, or the label of several; without flow and link the figure is of all flows together."""
    path: str | None = None
    """The link on which a subflow of that flow sends."""
    link: str | None = None
    """Link and direction, as `bottleneck up`."""
    during: tuple[float, float] | None = None
    """Seconds of the run; by default its measured window."""
    statistic: Statistic | None = None
    """Of what samples: those of the flow, of its objects or pings, of the subflow or of the link."""
    over: str | None = None
    """Another flow, or path of this flow, by whose figure this one is divided."""
    least: float | None = None
    most: float | None = None

    def measured(self, run: Run) -> Figure:
        """Return the figure of a run.

        Raises:
            UnknownFigureError: The run does not have it.

        """
        value = self._value(run, self.flow, self.path)
        if self.over is not None:
            other = (self.flow, self.over) if self.path is not None else (self.over, None)
            below = self._value(run, *other)
            if not below:
                msg = f"{self.metric} of {self.over} is 0, and nothing can be divided by it"
                raise UnknownFigureError(msg)
            value /= below
        holds = (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )
        return Figure(self.name, self.what, value, self.unit, holds)

    @property
    def unit(self) -> str:
        """Its unit as `quantities` has them, `%` for shares."""
        if self.over is not None:
            return ""
        if self.metric in SHARES:
            return "%"
        return ENDINGS.get(self.metric.rpartition("_")[2], "") if "_" in self.metric else ""

    @property
    def bounds(self) -> str:
        """Its bounds in words."""
        found = [
            f"at {word} {bound:g}"
            for word, bound in (("least", self.least), ("most", self.most))
            if bound is not None
        ]
        return " and ".join(found)

    def _value(self, run: Run, flow: str | None, path: str | None) -> float:
        flows = list(run.names) if flow is None else _flows(run, flow)
        if self.metric in COUNTS:
            return self._counted(run, flows)
        if self.link is not None:
            return self._of_link(run, self.link)
        if flow is None:
            return self._of_all(run)
        for table in (run.objects, run.pings):
            if self.statistic is not None and self.metric in table.columns:
                return self._statistic(table.filter(pl.col("flow").is_in(flows)))
        if len(flows) > 1:
            msg = f"there are {len(flows)} flows {flow!r}"
            raise UnknownFigureError(msg)
        return self._of_flow(run, flows[0]) if path is None else self._of_path(run, flows[0], path)

    def _counted(self, run: Run, flows: list[int]) -> float:
        kind = COUNTS[self.metric][0]
        events = run.events.filter(pl.col("kind") == kind, pl.col("flow").is_in(flows))
        counted = self._within(events).with_columns(amount(kind))
        return float(counted["amount"].sum())

    def _of_path(self, run: Run, number: int, path: str) -> float:
        if self.statistic is None and self.during is None:
            rows = run.subflows.filter(pl.col("flow") == number, pl.col("link") == path)
            column = _column(rows, self.metric)
            return float(column.sum()) if column.dtype.is_numeric() else _number(column[0], self)
        samples = run.subflow_samples
        mine = samples.filter(pl.col("flow") == number, pl.col("link") == path)
        if self.metric == GOODPUT and self.during is not None:
            # Of each subflow that the path had.
            sent = [
                _at(s, "delivered_bytes", self.during[1])
                - _at(s, "delivered_bytes", self.during[0])
                for s in mine.partition_by("subflow", maintain_order=True)
            ]
            return 8 * sum(sent) / (self.during[1] - self.during[0])
        return self._statistic(mine)

    def _of_link(self, run: Run, link: str) -> float:
        name, _, direction = link.rpartition(" ")
        if self.statistic is None:
            for row in run.links:
                if (row["name"], row["direction"]) == (name, direction):
                    return _number(row.get(self.metric), self)
            msg = f"there is no link {link!r}"
            raise UnknownFigureError(msg)
        samples = run.link_samples
        return self._statistic(
            samples.filter(pl.col("link") == name, pl.col("direction") == direction)
        )

    def _of_flow(self, run: Run, number: int) -> float:
        if self.statistic is None:
            if self.during is None:
                row = run.flows.filter(pl.col("id") == number)
                return _number(_column(row, self.metric)[0], self)
            if self.metric == GOODPUT:
                return self._goodputs(run)[number]
        return self._statistic(run.flow_samples.filter(pl.col("flow") == number))

    def _of_all(self, run: Run) -> float:
        if self.during is None:
            return _number(run.summary.get(self.metric), self)
        rates = self._goodputs(run)
        if self.metric == GOODPUT:
            return sum(rates.values())
        if self.metric == "jain_index":
            return _number(metrics.jain_index(list(rates.values())), self)
        msg = f"{self.metric} of all flows has no part of the run"
        raise UnknownFigureError(msg)

    def _goodputs(self, run: Run) -> dict[int, float]:
        start, end = self.during or (0.0, 0.0)
        found = metrics.goodput_in(run.flow_samples, start, end, flows=run.flows)
        return {
            int(row["flow"]): float(row["goodput_bps"] or 0.0)
            for row in found.select("flow", GOODPUT).iter_rows(named=True)
        }

    def _within(self, rows: pl.DataFrame) -> pl.DataFrame:
        if self.during is None:
            return rows
        # An object counts by when it was asked for, an echo by when its request was sent.
        at = next(c for c in ("time_s", "requested_s", "sent_s") if c in rows.columns)
        return rows.filter(pl.col(at).is_between(*self.during))

    def _statistic(self, rows: pl.DataFrame) -> float:
        values = _column(self._within(rows), self.metric).drop_nulls()
        if self.statistic is None or values.is_empty():
            msg = f"{self.metric} has no samples, or no statistic: {', '.join(STATISTICS)}"
            raise UnknownFigureError(msg)
        if self.statistic.startswith("p"):
            share = int(self.statistic[1:]) / 100
            return _number(values.cast(pl.Float64).quantile(share, "linear"), self)
        return _number(getattr(values, self.statistic)(), self)


def _flows(run: Run, name: str) -> list[int]:
    """Return the numbers of the flow of a name, or of all with that label."""
    found = [number for number, known in run.names.items() if known == name]
    found = found or run.flows.filter(pl.col("label") == name)["id"].to_list()
    if not found:
        msg = f"there is no flow {name!r}; there are {', '.join(run.names.values())}"
        raise UnknownFigureError(msg)
    return found


def _column(rows: pl.DataFrame, name: str) -> pl.Series:
    if name not in rows.columns or rows.is_empty():
        msg = f"nothing was recorded of {name}"
        raise UnknownFigureError(msg)
    return rows[name]


def _at(samples: pl.DataFrame, column: str, time_s: float) -> float:
    """Return the last value that is not after an instant, 0 before the first."""
    before = samples.filter(pl.col("time_s") <= time_s)
    return 0.0 if before.is_empty() else float(before[column][-1])


def _number(value: Any, of: Expectation) -> float:
    if value is None:
        msg = f"{of.metric} is unknown in this run"
        raise UnknownFigureError(msg)
    return float(value)
