"""A sweep's results: one row a run, one table of all runs, a summary of cells."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from gargalo import audit
from gargalo.metrics.declared import NETWORK, STANDARD
from gargalo.sweeps.errors import StoreError, SweepError, whose
from gargalo.sweeps.model import label_names
from gargalo.sweeps.rows import RUNS
from gargalo.sweeps.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gargalo.metrics.intervals import Bounds
    from gargalo.pictures.paper import Picture
    from gargalo.pictures.sweeps import Kind
    from gargalo.sweeps.job import Job

T = TypeVar("T")

FACTS = (
    "run", "repeat", "seed", "version", "scenario_hash", "results_hash", "warnings", "findings", "wall_s",
        "late_p99_s", "late_max_s",
    "kernel", "measured_from_s", "measured_until_s", *NETWORK,
)  # fmt: skip
"""Columns of a run that are neither labels nor figures to compare."""


BATCH_ROWS, BATCH_RUNS = 200_000, 1000
"""Rows and runs of a part of a table that is read part by part."""


@dataclass(frozen=True)
class Failure:
    """A run that could not be done."""

    run: str
    reason: str
    attempts: int
    trace: str = ""
    """The traceback, where there is one."""


@dataclass(frozen=True)
class Repaired:
    """What a repair did."""

    files: Sequence[Path]
    """Where the damaged files are now."""
    runs: Mapping[str, int]
    """How many runs they held at most, by sweep; the sweep that was repaired is called ""."""

    def __str__(self) -> str:
        """Return a sentence."""
        files = (
            "a damaged file is" if len(self.files) == 1 else f"{len(self.files)} damaged files are"
        )
        done = (
            f"; what {'it' if len(self.files) == 1 else 'they'} held of this sweep was done again"
        )
        return f"{files} now in {self.files[0].parent}{done}{whose(self.runs)}"

    def to_json(self) -> dict[str, Any]:
        """Return `moved`, the paths, and `other_sweeps`, runs of others that were in them at most."""
        others = {name: n for name, n in self.runs.items() if name}
        return {"moved": [str(f) for f in self.files], "other_sweeps": others}


class SweepInterrupted(KeyboardInterrupt):
    """The user interrupted a sweep; `sweep` has what was done until then."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__("the sweep was interrupted; finished runs are kept, see .sweep")
        self.sweep = sweep


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep, as far as they are done."""

    name: str
    store: Store
    plan: pl.DataFrame
    """A row per planned run: `run`, labels, `repeat`, `seed`; columns that begin with _ say how to
    repeat it."""
    failures: Sequence[Failure] = ()
    done: int = 0
    """Runs that were done now."""
    reused: int = 0
    """Runs that the store had."""
    packets: int = 0
    wall_s: float = 0.0
    repaired: Repaired | None = None
    """What was done about damaged files of the store."""

    @classmethod
    def load(cls, store: str | Path, name: str | None = None) -> Sweep:
        """Return a sweep of a store: the one of that name, or the latest.

        Raises:
            StoreError: There is none.

        """
        opened = Store(store)
        if name is None:
            names = opened.plans()
            if not names:
                msg = f"{opened.path} has no sweep"
                raise StoreError(msg)
            name = names[-1]
        return cls(name, opened, opened.plan(name))

    def __repr__(self) -> str:
        """Return one line."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Sweep {self.name!r}: {len(self.plan)} runs{failed} in {str(self.store.path)!r}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from gargalo import notebook

        return notebook.of_sweep(self)

    def with_facts(self, *, done: int, reused: int, packets: int, wall_s: float) -> Sweep:
        """Return it with the outcome of the runs."""
        return replace(self, done=done, reused=reused, packets=packets, wall_s=wall_s)

    @property
    def finished(self) -> int:
        """How many of the planned runs the store has now."""
        return len(self.store.ids(RUNS) & set(self.plan["run"]))

    @property
    def labels(self) -> list[str]:
        """The names of the labels."""
        facts = ("run", "repeat", "seed")
        return [c for c in self.plan.columns if c not in facts and not c.startswith("_")]

    @property
    def metrics(self) -> list[str]:
        """The names of all numeric figures of `frame()`."""
        frame = self.frame()
        return [
            c
            for c, kind in frame.schema.items()
            if kind.is_numeric() and c not in FACTS and c not in self.labels
        ]

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The least and the greatest value of measured figures, as the measuring function declares them."""
        if "_bounds" not in self.plan.columns:
            return {}
        found: dict[str, Bounds] = {}
        for text in self.plan["_bounds"].drop_nulls().unique(maintain_order=True):
            for name, (least, most) in json.loads(text).items():
                found[name] = (
                    -math.inf if least is None else float(least),
                    math.inf if most is None else float(most),
                )
        return found

    def frame(self) -> pl.DataFrame:
        """Return one row per finished run, in the order of the plan.

        Columns: `run`, labels, `repeat`, `seed`, what was measured, standard figures, `packets`,
        `events`, `wall_s`, …
        """
        frame = self._keys()
        for table in [*self._measures(), RUNS]:
            rows = self._collect(table)
            more = [c for c in rows.columns if c == "run" or c not in frame.columns]
            frame = frame.join(rows.select(more), on="run", how="inner", maintain_order="left")
        return frame

    def table(self, name: str) -> pl.LazyFrame:
        """Return a kept table of all runs, lazily, with `run`, labels, `repeat` and `seed` joined.

        A label that has the name of a column of the table becomes `sweep.NAME`. It may be collected while
        sweeps write and merge files of the store: what is read is found at that moment.
        """
        if name not in self.store.tables():
            kept = [t for t in self.store.tables() if t != RUNS and not t.startswith("measures-")]
            msg = (
                f'{self.store.path} has no table "{name}"; kept: {", ".join(kept) or "none"} '
                f'(keep it with keep = ["{name}"])'
            )
            raise StoreError(msg)
        runs = self.plan["run"].to_list()
        schema = self._steadily(lambda: self.store.scan(name, runs).collect_schema())

        def read(
            columns: list[str] | None, where: pl.Expr | None, most: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            def rows() -> pl.DataFrame:
                found = self.store.scan(name, runs)
                found = found if most is None else found.head(most)
                found = found if where is None else found.filter(where)
                return (found if columns is None else found.select(columns)).collect()

            yield self._steadily(
                lambda: self.store.read(rows, lambda: self.store.files(name, runs))
            )

        rows = register_io_source(read, schema=schema)
        keys = self._keys_beside(schema.names())
        return keys.lazy().join(rows, on="run", how="inner", maintain_order="left_right")

    def batches(self, name: str, most_rows: int = BATCH_ROWS) -> Iterator[pl.DataFrame]:
        """Yield a kept table as `table` returns it, in the order of the plan, in parts of whole runs.

        A part has about `most_rows` rows, or those of one run if it has more: the table need not fit into memory.

        Raises:
            StoreError: The table was not kept.

        """
        columns = self.table(name).collect_schema()
        keys = self._keys_beside(self.store.scan(name, self.plan["run"].to_list()).collect_schema())
        at, size = 0, 1
        while at < keys.height:
            part = keys.slice(at, size)
            rows = self._collect(name, part["run"].to_list())
            found = part.join(rows, on="run", how="inner", maintain_order="left_right")
            lacking = [pl.lit(None, columns[c]).alias(c) for c in columns if c not in found.columns]
            yield found.with_columns(lacking).select(columns.names())
            at += part.height
            size = max(1, min(BATCH_RUNS, most_rows * part.height // max(rows.height, 1)))

    def summary(
        self,
        by: Sequence[str] | None = None,
        metrics: Sequence[str] | None = None,
        level: float = 0.95,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> pl.DataFrame:
        """Return a row per cell and figure: `n`, `mean`, `sd`, and the interval `low` to `high`.

        The interval is that of `metrics.mean_interval`, within the figure's declared bounds; with fewer than three
        repeats, or values that are all the same, it is missing, and `reason` says why. Repeats that are the same
        run are counted once.

        Where `by` leaves out labels, several cells become one. The mean is that of these cells, each of the
        same weight however many of its runs count, and the interval says how far chance moves that mean: it is made of
        one value for each repeat, the mean over the cells, so that `n` is the number of repeats. A cell whose
        repeats are all the same run has its value in each of them. What differs between the cells is not chance, and
        repeats that not all cells have yet are left out.

        Args:
            by: Labels that make a cell; by default all.
            metrics: Figures; by default all.
            level: Of confidence.
            bounds: The least and the greatest value that figures can have, of those that were measured and not
                declared by the measuring function (`measure.bounds = {"x_s": (0, math.inf)}`); undeclared they may
                be anything.

        """
        from gargalo.sweeps.statistics import summarise

        by = self.labels if by is None else list(by)
        for label in by:
            if label not in self.labels:
                msg = f'the sweep has no label "{label}"; labels: {", ".join(self.labels)}'
                raise SweepError(msg)
        frame = self.frame()
        chosen = self.metrics if metrics is None else list(metrics)
        for name in chosen:
            if name not in frame.columns:
                msg = f'the sweep has no figure "{name}"; figures: {", ".join(self.metrics)}'
                if not frame.is_empty() and self._unmeasured():
                    msg = (
                        f"what was measured in the runs of {self.store.path} was removed "
                        "meanwhile: run the same command again"
                    )
                raise SweepError(msg)
        return summarise(frame, self.labels, by, chosen, level, {**self.bounds, **(bounds or {})})

    def plot(
        self,
        metric: str = "goodput_bps",
        *,
        x: str | None = None,
        by: str | None = None,
        kind: Kind | None = None,
        flow: str | Sequence[str] = (),
        group: str | None = None,
        where: Mapping[str, str] | None = None,
        level: float = 0.95,
        log_y: bool = False,
        width_in: float = 8.0,
        height_in: float | None = None,
    ) -> Picture:
        """Draw a figure over the axes, as `gargalo plot` does.

        Args:
            metric: A figure of `frame()`; with `flow` or `group` one of the table of flows, or `share`: what they
                delivered of the data of all.
            x: The label along the horizontal axis; by default the first of numbers.
            by: The label of the colours; by default that of congestion controls.
            kind: points, bars, box, cdf or heat; by default points over numbers, bars over names.
            flow: Only flows of this label or number, or of these; their table has to be kept (`keep=["flows"]`).
            group: A colour for each value of this column of flows: label, congestion, transport, workload, from, to.
            where: Only runs with these values of labels.
            level: Of the confidence intervals.
            log_y: The axis of the figure is logarithmic.
            width_in: Width in inches.
            height_in: Height in inches; by default by the number of panels.

        Raises:
            SweepError: No run is done, or a label, value, figure or flow is unknown.
            StoreError: The table of flows was not kept.
            ValueError: An axis is unknown, or has one value in these runs.

        """
        from gargalo.pictures.panels import draw_panels
        from gargalo.sweeps.picture import Selection, picture

        flows = (flow,) if isinstance(flow, str) else tuple(flow)
        chosen = Selection(x, by, kind, flows, group, where, level, log_y)
        return draw_panels(picture(self, metric, chosen), width_in=width_in, height_in=height_in)

    def findings(self) -> list[audit.Finding]:
        """Return what the auditor found in the runs that are done: in each, and in all together."""
        frame = self.frame()
        if frame.is_empty():
            return []
        return [
            *audit.of_runs(frame),
            *audit.intervals(self.summary(), self.labels, self.bounds),
            *audit.equal_repeats(frame, self.labels),
        ]

    def _keys(self) -> pl.DataFrame:
        return self.plan.select(pl.exclude("^_.*$"))

    def _keys_beside(self, taken: Iterable[str]) -> pl.DataFrame:
        """Return the keys of the finished runs, to be joined with a table that has these columns."""
        others = set(taken) - {"run"}
        keys = self._keys().rename(lambda c: f"sweep.{c}" if c in others else c)
        # Kept tables are written before a run's row: only the latter makes it finished.
        return keys.filter(pl.col("run").is_in(sorted(self.store.ids(RUNS))))

    def _planned_measures(self) -> list[str]:
        names: list[str] = self.plan["_measure"].unique(maintain_order=True).drop_nulls().to_list()
        return names

    def _measures(self) -> list[str]:
        return [n for n in self._planned_measures() if n in self.store.tables()]

    def _unmeasured(self) -> bool:
        """Whether a table of measures has no rows, though runs are to be measured."""
        known = self._measures()
        return any(n not in known or self._collect(n).is_empty() for n in self._planned_measures())

    def _collect(self, table: str, some: Sequence[str] | None = None) -> pl.DataFrame:
        """Return a table of all runs of the plan, or the rows of some of them."""
        runs = self.plan["run"].to_list() if some is None else list(some)

        def rows() -> pl.DataFrame:
            found = self.store.scan(table, runs)
            return (found if some is None else found.filter(pl.col("run").is_in(runs))).collect()

        return self._steadily(
            lambda: self.store.read(
                rows,
                lambda: self.store.files(table, runs),
            )
        )

    def _steadily(self, read: Callable[[], T]) -> T:
        """Read again if another sweep merged files since they were listed, so that no row is missed."""
        for _ in range(20):
            try:
                return read()
            except FileNotFoundError:
                continue
        msg = f"{self.store.path} changes too quickly to be read; try again"
        raise StoreError(msg)


def check_labels(jobs: Sequence[Job]) -> None:
    """Check that labels are not names of other columns, and that they distinguish all runs."""
    for name in label_names(jobs):
        if name in FACTS or name in STANDARD or name.startswith("_"):
            msg = f'a label cannot be called "{name}": that is a column of the results'
            raise SweepError(msg)
