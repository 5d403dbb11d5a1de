"""Goodput of cells, and ratios paired by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.metrics import ENOUGH
from gargalo.studies import above, below, between, by_repeat, positive, quotient

from gargalo_studies.mptcp_schedulers.published import ALIKE
from gargalo_studies.mptcp_schedulers.scenarios import LL, SCHEDULERS, SHORT, TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    import polars as pl
    from gargalo.metrics import Interval
    from gargalo.studies import Context
    from gargalo.sweeps import Label, Labels

    Cell: TypeAlias = tuple[str, Labels]
    """An experiment and the labels of one of its cells."""


def rates(context: Context, cell: Cell) -> dict[int, float]:
    """Return the goodput of a cell by repeat, in bit/s."""
    experiment, labels = cell
    return by_repeat(context.experiment(experiment, **labels))


def goodput(context: Context, experiment: str, **labels: Any) -> Interval:
    """Return the goodput of a cell."""
    return positive(list(rates(context, (experiment, labels)).values()))


def summed(parts: Sequence[dict[int, float]]) -> dict[int, float]:
    """Return the mean of some cells, for the seeds that all of them have."""
    if not parts:
        return {}
    common = set(parts[0]).intersection(*parts[1:])
    return {r: sum(p[r] for p in parts) / len(parts) for r in sorted(common)}


def ratio(context: Context, over: Cell, under: Cell) -> Interval:
    """Return the mean over seeds of a cell's goodput over another's: losses are the same in both."""
    return quotient(rates(context, over), rates(context, under))


def mean_ratio(context: Context, pairs: Iterable[tuple[Cell, Cell]]) -> Interval:
    """Return the mean over pairs of cells of their ratio, one value for each seed."""
    by_pair = []
    for over, under in pairs:
        a, b = rates(context, over), rates(context, under)
        found = {r: a[r] / b[r] for r in set(a) & set(b) if b[r] > 0}
        if not found:
            return positive([])
        by_pair.append(found)
    return positive(list(summed(by_pair).values()))


def gains(
    context: Context,
    experiment: str,
    places: Sequence[Labels],
    scheduler: str,
    congestion: Sequence[str],
) -> Interval:
    """Return a scheduler's goodput over the kernel's, as a mean over places and congestion controls."""
    pairs = []
    for place in places:
        for c in congestion:
            labels = {**place, "congestion": c}
            pairs.append(
                (
                    (experiment, {**labels, "scheduler": scheduler}),
                    (experiment, {**labels, "scheduler": LL}),
                )
            )
    return mean_ratio(context, pairs)


def over_schedulers(context: Context, experiment: str, **labels: Any) -> dict[int, float]:
    """Return the mean goodput of the four schedulers of the work, by seed."""
    parts = [rates(context, (experiment, {**labels, "scheduler": s})) for s in SCHEDULERS]
    return summed(parts)


def has(context: Context, experiment: str) -> bool:
    """Whether an experiment has runs."""
    return context.experiment(experiment).height > 0


def mean_of(context: Context, metric: str, experiment: str, **labels: Any) -> float | None:
    """Return the mean of a metric over the runs of a cell; None without any."""
    rows = context.experiment(experiment, **labels)
    if rows.height == 0 or metric not in rows.columns:
        return None
    found = rows[metric].drop_nulls()
    return float(found.mean()) if found.len() else None  # type: ignore[arg-type]


def place_text(labels: Mapping[str, Label | None]) -> str:
    """Write where a cell is.

    >>> place_text({"loss": 0.01}), place_text({"exp": 4})
    ('E1 1%', 'Exp4')
    """
    if (exp := labels.get("exp")) is not None:
        return f"Exp{exp:.0f}"
    return f"E1 {100 * float(labels['loss'] or 0):g}%"


def name_of(labels: Mapping[str, Label | None]) -> str:
    """Write the sender's congestion control and scheduler.

    >>> name_of({"congestion": "lia", "scheduler": "lowest-latency"})
    'LIA, LL'
    """
    scheduler = labels.get("scheduler")
    control = TITLES.get(str(labels["congestion"]), str(labels["congestion"]))
    return f"{control}, {SHORT.get(str(scheduler), str(scheduler))}" if scheduler else control


def known_places(rows: pl.DataFrame) -> list[Labels]:
    """Return the places of some runs: first E1 by loss, then E2 by number."""
    found: list[Labels] = []
    for column in ("loss", "exp"):
        if column in rows.columns:
            found += [{column: x} for x in rows[column].drop_nulls().unique().sort().to_list()]
    return found


def fine(found: Interval, low: float, high: float) -> bool | None:
    """Whether a ratio is within bounds of 2%: fewer than three seeds cannot tell, as a repeat differs by as much."""
    return between(found, low, high) if found.n >= ENOUGH else None


def alike(found: Interval) -> bool | None:
    """Whether a ratio is near 1."""
    return fine(found, 1 - ALIKE, 1 + ALIKE)


def leads(found: Interval) -> bool | None:
    """Whether a ratio is above 1 by more than counts as equal."""
    return False if alike(found) else above(found, 1.0) if found.n >= ENOUGH else None


def trails(found: Interval) -> bool | None:
    """Whether a ratio is below 1 by more than counts as equal."""
    return False if alike(found) else below(found, 1.0) if found.n >= ENOUGH else None
