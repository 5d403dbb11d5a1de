"""Cells: one control at one place, in two stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from gargalo.metrics import mean_interval
from gargalo.studies import by_repeat, quotient

from gargalo_studies.fidelity.scenarios import KERNEL, LAB, SIM, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gargalo.metrics import Interval
    from gargalo.studies import Context
    from gargalo.sweeps import Label

SINGLE = ("loss", "rate", "delay", "queue", "trace", "ecn", "pause")
"""Experiments that are judged by goodput."""
SHARES = ("pair", "round-trips", "crowd")
"""Experiments that are judged by the share of the first flow."""
METRIC = {"short": "completion_s", **dict.fromkeys(SHARES, "share")}
PLACE = ("loss", "mbps", "delay_ms", "queue_packets", "trace", "kb", "queue", "every")
UNITS = {
    "loss": "lost {:g}",
    "mbps": "{:g} Mbit/s",
    "delay_ms": "{:g} ms",
    "queue_packets": "queue of {:g}",
    "kb": "{:g} kB",
}
COMPARED = ((SIM, KERNEL), (LAB, SIM))
"""What is compared with what: our simulated stack with the kernel, our stack in the lab with the simulated one."""


@dataclass(frozen=True)
class Cell:
    """What two stacks have at one place."""

    experiment: str
    control: str
    place: str
    over: float
    under: float
    difference: Interval
    """Ratio of `over` to `under`, paired by seed; of shares the difference of the means."""

    @property
    def text(self) -> str:
        """Where it is."""
        return f"{self.control}, {self.experiment}: {self.place}"

    def within(self, bound: float) -> bool:
        """Whether the two agree."""
        mean = self.difference.mean
        expected = 0.0 if self.experiment in SHARES else 1.0
        return mean is not None and abs(mean - expected) <= bound


def cells(context: Context, over: Stack, under: Stack, experiments: Sequence[str]) -> Iterator[Cell]:  # fmt: skip
    """Yield the cells in which both stacks were measured."""
    for experiment in experiments:
        rows = context.experiment(experiment)
        if rows.height == 0:
            continue
        columns = [c for c in PLACE if c in rows.columns]
        metric = METRIC.get(experiment, "rate_bps")
        places = rows.select("control", *columns).unique(maintain_order=True)
        for labels in places.iter_rows(named=True):
            given = {k: v for k, v in labels.items() if v is not None}
            sides = [
                by_repeat(context.experiment(experiment, stack=s.name, **given), metric)
                for s in (over, under)
            ]
            if not all(sides):
                continue
            means = [sum(s.values()) / len(s) for s in sides]
            place = place_text(given)
            found = difference(*sides) if experiment in SHARES else quotient(*sides)
            yield Cell(experiment, labels["control"], place, means[0], means[1], found)


def difference(over: dict[int, float], under: dict[int, float]) -> Interval:
    """Return the mean over repeats of the difference of two shares."""
    common = sorted(over.keys() & under.keys())
    return mean_interval([over[r] - under[r] for r in common], bounds=(-1.0, 1.0))


def place_text(labels: Mapping[str, Label]) -> str:
    """Write where a cell is.

    >>> place_text({"control": "reno", "mbps": 12.0, "loss": 0.001})
    'lost 0.001, 12 Mbit/s'
    """
    parts = [UNITS.get(k, "{}").format(labels[k]) for k in PLACE if labels.get(k) is not None]
    return ", ".join(parts)


def table(context: Context, over: Stack, under: Stack) -> pl.DataFrame:
    """Return all cells."""
    rows = [
        {
            "experiment": c.experiment,
            "control": c.control,
            "place": c.place,
            over.name: c.over,
            under.name: c.under,
            "ratio or difference": c.difference.mean,
            "low": c.difference.low,
            "high": c.difference.high,
            "runs": c.difference.n,
        }
        for c in cells(context, over, under, (*SINGLE, *METRIC))
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
