"""The phases and internal quantities of a congestion control over time, as a run recorded them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gargalo.evaluation.stacks import is_foreign
from gargalo.results import Run
from gargalo.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gargalo.evaluation.criteria.conformance.model import Json

MSS = 1448
"""Payload of a full packet of 1500 bytes with IPv4, TCP and timestamps."""
SHARE = MSS / 1500
"""Most of a rate that can be payload."""


@dataclass(frozen=True)
class Span:
    """A time in one phase."""

    phase: str
    start: float
    end: float
    """Of the run, if it never ended."""
    before: str
    """The phase before; empty for the first."""
    after: str
    """The phase after; empty for the last."""

    @property
    def length(self) -> float:
        """How long it lasted, in s."""
        return self.end - self.start


@dataclass(frozen=True)
class Seen:
    """The only flow of a run."""

    run: Run
    table: pl.DataFrame
    """A row for each sample: time_s, cause, phase, and a column for each quantity."""
    spans: Sequence[Span]

    @classmethod
    def of(cls, run: Run) -> Seen:
        """Read what a run with `record.gauges` keeps of its first flow."""
        rows = run.gauges.filter(pl.col("flow") == 0)
        names = rows["name"].unique(maintain_order=True).to_list()
        # Each sample is a block of rows with all quantities in the same order.
        values = rows["value"].cast(pl.Float64).to_numpy().reshape(-1, len(names))
        looks = rows.gather_every(len(names)).select("time_s", "cause", "phase")
        table = looks.with_columns(pl.Series(n, values[:, i]) for i, n in enumerate(names))
        end = float(run.info["virtual_s"])
        changed = table.filter(pl.col("cause").str.contains("phase", literal=True))
        times = [*changed["time_s"].to_list(), end]
        phases = ["", *changed["phase"].to_list(), ""]
        spans = [
            Span(phases[i + 1], times[i], times[i + 1], phases[i], phases[i + 2])
            for i in range(len(times) - 1)
        ]
        return cls(run, table, spans)

    @property
    def end_s(self) -> float:
        """When the run ended."""
        return float(self.run.info["virtual_s"])

    def in_phase(self, phase: str, since: float = 0.0) -> list[Span]:
        """Return the times in a phase that began at or after an instant."""
        return [s for s in self.spans if s.phase == phase and s.start >= since]

    def first(self, phase: str, since: float = 0.0) -> Span | None:
        """Return the first of these."""
        return next(iter(self.in_phase(phase, since)), None)

    def phase_at(self, at: float) -> str:
        """Return the phase at an instant."""
        return next((s.phase for s in self.spans if s.start <= at < s.end), "")

    def column(self, name: str, start: float, end: float) -> NDArray[np.float64]:
        """Return the values of a quantity in [start, end), NaN where it had none."""
        rows = self.table.filter((pl.col("time_s") >= start) & (pl.col("time_s") < end))
        if name not in rows.columns:
            return np.empty(0)
        return rows[name].to_numpy()

    def at(self, name: str, at: float) -> float:
        """Return a quantity at the last sample up to an instant; NaN if it had no value."""
        rows = self.table.filter(pl.col("time_s") <= at)
        if rows.height == 0 or name not in rows.columns:
            return float("nan")
        return float(rows[name][-1])

    def before(self, name: str, at: float) -> float:
        """Return a quantity at the last sample before an instant; NaN if it had no value."""
        return self.at(name, float(np.nextafter(at, 0.0)))

    def events(self, cause: str, since: float = 0.0) -> list[float]:
        """Return when the sender had an event of a kind."""
        rows = self.table.filter(
            pl.col("cause").str.split("+").list.contains(cause) & (pl.col("time_s") >= since)
        )
        return [float(t) for t in rows["time_s"]]

    def rate(self, start: float, end: float) -> float:
        """Return the mean rate at which data arrived in [start, end], in bit/s."""
        rows = self.run.flow_samples.filter(pl.col("flow") == 0).sort("time_s")
        had = np.interp(
            [start, end],
            rows["time_s"].to_numpy(),
            rows["delivered_bytes"].to_numpy().astype(float),
        )
        return 8 * float(had[1] - had[0]) / (end - start) if end > start else float("nan")

    def sending(self, since: float) -> float:
        """Return an instant from `since` on at which the first link's forward direction is sending.

        A window is sent in less than a round trip, followed by a gap: this is the sample of the next 200 ms in which most
        was sent.
        """
        link = self.run.setup.links[0].name
        rows = self.run.link_samples.filter(
            (pl.col("link") == link)
            & (pl.col("direction") == "up")
            & pl.col("time_s").is_between(since, since + 0.2)
        ).sort("time_s")
        if rows.height < 2:
            return since
        times, sent = rows["time_s"].to_numpy(), rows["sent_bytes"].to_numpy().astype(float)
        k = int(np.argmax(np.diff(sent)))
        return float(times[k] + times[k + 1]) / 2

    def dropped(self, start: float, end: float) -> float:
        """Return how many packets the first link's forward direction dropped in [start, end]."""
        link = self.run.setup.links[0].name
        rows = self.run.link_samples.filter(
            (pl.col("link") == link) & (pl.col("direction") == "up")
        ).sort("time_s")
        lost = np.interp(
            [start, end],
            rows["time_s"].to_numpy(),
            rows["dropped_packets"].to_numpy().astype(float),
        )
        return float(lost[1] - lost[0])


NOTHING = Run({}, [], {}, {}, Setup(), {}, interrupted=False)
"""Stands for a run that would show nothing."""


def watch(scenario: Json, seed: int) -> Seen:
    """Run a scenario and look at it.

    The world is deterministic: until an instant, a run with a change at that instant is the run without it. So
    "when the flow is in PROBE_UP" is found out by a run without what is to happen then.
    """
    if is_foreign(scenario):
        return Seen(NOTHING, pl.DataFrame(), [])  # It tells no phases: a run would show no instant.
    return _watch(json.dumps({**scenario, "seed": seed}))


@cache
def _watch(text: str) -> Seen:
    from gargalo.running import run

    scenario: dict[str, Any] = json.loads(text)
    return Seen.of(run(scenario))
