"""The phases and internal quantities of a congestion control over time, as a run recorded them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gargalo.evaluation.criteria.conformance.networks import MSS
from gargalo.evaluation.networks import seconds
from gargalo.evaluation.stacks import carried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gargalo.evaluation.criteria.conformance.model import Json
    from gargalo.results import Run

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
    share: float = SHARE
    """Most of a rate that can be payload, as the algorithm counts it."""
    packet_bytes: float = MSS
    """Payload of a full packet, as the algorithm counts it."""
    slack: float = 0.0
    """How far quantities that are inferred from packets may be off, as a share; 0: all are the algorithm's own."""

    @classmethod
    def of(cls, run: Run) -> Seen:
        """Read what a run with `record.gauges` keeps of its first flow; over QUIC, infer what is not reported."""
        seen = cls.told(run)
        if not is_quic(run):
            return seen
        from gargalo.evaluation.criteria.conformance.outside import complete

        return complete(seen)

    @classmethod
    def told(cls, run: Run) -> Seen:
        """Read what a sender has reported."""
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

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """When samples were taken, in s."""
        return self.table["time_s"].to_numpy()

    def column(self, name: str, start: float, end: float) -> NDArray[np.float64]:
        """Return the values of a quantity in [start, end), NaN where it had none."""
        first, last = np.searchsorted(self.times, [start, end])
        if name not in self.table.columns:
            return np.full(max(last - first, 1), np.nan)
        return self.table[name].to_numpy()[first:last]

    def middle(self, name: str, start: float, end: float) -> float:
        """Return the median of the values that a quantity had in [start, end); NaN if it had none."""
        values = self.column(name, start, end)
        known = values[np.isfinite(values)]
        return float(np.median(known)) if known.size else float("nan")

    def at(self, name: str, at: float) -> float:
        """Return a quantity at the last sample up to an instant; NaN if it had no value."""
        row = int(np.searchsorted(self.times, at, side="right")) - 1
        if row < 0 or name not in self.table.columns:
            return float("nan")
        value = self.table[name][row]
        return float("nan") if value is None else float(value)

    def before(self, name: str, at: float) -> float:
        """Return a quantity at the last sample before an instant; NaN if it had no value."""
        return self.at(name, float(np.nextafter(at, 0.0)))

    def events(self, cause: str, since: float = 0.0) -> list[float]:
        """Return when the sender had an event of a kind."""
        rows = self.table.filter(
            pl.col("cause").str.split("+").list.contains(cause) & (pl.col("time_s") >= since)
        )
        return [float(t) for t in rows["time_s"]]

    @cached_property
    def arrivals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Instants, and the bytes of payload that had arrived by then."""
        if self.slack:
            # Packets of stacks differ in size: what passes the link is compared with what it can carry.
            rows = self.forward
            return rows["time_s"].to_numpy(), self.share * rows["sent_bytes"].to_numpy()
        rows = self.run.flow_samples.filter(pl.col("flow") == 0).sort("time_s")
        return rows["time_s"].to_numpy(), rows["delivered_bytes"].to_numpy().astype(float)

    @cached_property
    def forward(self) -> pl.DataFrame:
        """Samples of the first link's forward direction."""
        link = self.run.setup.links[0].name
        return self.run.link_samples.filter(
            (pl.col("link") == link) & (pl.col("direction") == "up")
        ).sort("time_s")

    def capacity(self, bps: float) -> float:
        """Return what of a link's rate can be payload, in bit/s."""
        return bps * self.share

    def rate(self, start: float, end: float) -> float:
        """Return the mean rate at which data arrived in [start, end], in bit/s."""
        had = np.interp([start, end], *self.arrivals)
        return 8 * float(had[1] - had[0]) / (end - start) if end > start else float("nan")

    def sending(self, since: float) -> float:
        """Return an instant from `since` on at which the first link's forward direction is sending.

        A window is sent in less than a round trip, followed by a gap: this is the sample of the next 200 ms in which
        most was sent.
        """
        rows = self.forward.filter(pl.col("time_s").is_between(since, since + 0.2))
        if rows.height < 2:
            return since
        times, sent = rows["time_s"].to_numpy(), rows["sent_bytes"].to_numpy().astype(float)
        k = int(np.argmax(np.diff(sent)))
        return float(times[k] + times[k + 1]) / 2

    def losses(self, since: float = 0.0) -> list[float]:
        """Return when the sender noticed losses.

        If it reports none: a base round trip after packets were dropped, which is the earliest possible time.
        """
        if not self.slack or self.events("loss"):
            return self.events("loss", since)
        from gargalo.evaluation.criteria.conformance.outside import base_rtt

        times = self.forward["time_s"].to_numpy()
        drops = np.diff(self.forward["dropped_packets"].to_numpy().astype(float), prepend=0.0) > 0
        return [float(t) for t in times[drops] + base_rtt(self.run) if t >= since]

    def dropped(self, start: float, end: float) -> float:
        """Return how many packets the first link's forward direction dropped in [start, end]."""
        rows = self.forward
        lost = np.interp(
            [start, end],
            rows["time_s"].to_numpy(),
            rows["dropped_packets"].to_numpy().astype(float),
        )
        return float(lost[1] - lost[0])


def is_quic(run: Run) -> bool:
    """Whether the flow of a run goes over QUIC: then its sender reports only a part of its state."""
    return "quic" in run.flows["transport"]


_label: ContextVar[str | None] = ContextVar("label", default=None)


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Give the flows that are watched this label meanwhile: random streams are named by it."""
    token = _label.set(label)
    try:
        yield
    finally:
        _label.reset(token)


def watch(scenario: Json, seed: int, until_s: float | None = None) -> Seen:
    """Run a scenario, perhaps only its beginning, and look at it.

    The world is deterministic: until an instant, a run with a change at that instant is the run without it. So
    "when the flow is in PROBE_UP" is found out by a run without what is to happen then.
    """
    label = _label.get()
    flows = [f if label is None else {"label": label, **f} for f in scenario["flows"]]
    made = carried({**scenario, "seed": seed, "flows": flows})
    assert made is not None, "cases ask nothing that QUIC cannot do"
    if until_s is not None:
        made["duration"] = seconds(until_s)
    return _watch(json.dumps(made))


# Cases of one repeat ask for the same runs; each has its own records.
@lru_cache(maxsize=64)
def _watch(text: str) -> Seen:
    from gargalo.running import run

    scenario: dict[str, Any] = json.loads(text)
    return Seen.of(run(scenario))
