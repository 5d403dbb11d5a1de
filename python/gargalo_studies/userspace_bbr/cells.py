"""Goodput of cells, and ratios paired by seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gargalo.studies import by_repeat, positive, quotient

from gargalo_studies.userspace_bbr import experiments as ex
from gargalo_studies.userspace_bbr.experiments import MBPS, Levels
from gargalo_studies.userspace_bbr.published import BBR, CUBIC, RENO
from gargalo_studies.userspace_bbr.readings import LAB
from gargalo_studies.userspace_bbr.scenarios import Sender, kernel, ours

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from gargalo.metrics import Interval
    from gargalo.studies import Context
    from gargalo.sweeps import World


IN_LAB: dict[str, Sender] = {
    BBR: ours(BBR, "lab", paced=False),
    RENO: kernel(RENO),
    CUBIC: kernel(CUBIC),
}
"""The senders of the work: a user-space BBR without pacing, and the kernel's other algorithms."""
SIMULATED = dict(zip((BBR, RENO, CUBIC), ex.SIMULATED, strict=True))
"""The same in the simulator."""
FACTORS = {"loss": "loss", "rate": "mbps", "traces": "trace"}
"""What the experiments of the work vary."""
PLACE = ("experiment", "mbps", "loss", "trace", "queue_packets", "mb")
"""Labels that make a cell, beside the sender."""


def reading(context: Context) -> str:
    """Return the name of the reading that runs are of; empty without runs."""
    frame = context.frame
    return str(frame["reading"][0]) if "reading" in frame.columns and frame.height else ""


def in_lab(context: Context) -> bool:
    """Whether runs are of the reading that judges by the lab."""
    return reading(context) == LAB


def work(context: Context) -> dict[str, Sender]:
    """Return the senders of the work in a reading."""
    return IN_LAB if in_lab(context) else SIMULATED


def world(context: Context) -> World:
    """Return the world of a reading."""
    return "lab" if in_lab(context) else "sim"


def rows_of(context: Context, experiment: str, sender: Sender, **labels: Any) -> pl.DataFrame:
    """Return the runs of a sender."""
    return context.experiment(experiment, **sender.labels, **labels)


def levels(context: Context, experiment: str) -> list[Any]:
    """Return the levels of what an experiment varies, of which there are runs."""
    rows = context.experiment(experiment)
    factor = FACTORS[experiment]
    if rows.height == 0 or factor not in rows.columns:
        return []
    found: list[Any] = rows[factor].drop_nulls().unique().sort().to_list()
    return found


def goodput(context: Context, experiment: str, sender: Sender, **labels: Any) -> Interval:
    """Return the goodput of a cell in bit/s."""
    rows = rows_of(context, experiment, sender, **labels)
    return positive([float(x) for x in rows["rate_bps"]] if rows.height else [])


def overall(context: Context, experiment: str, sender: Sender) -> Interval:
    """Return the mean over the levels of an experiment, one for each seed.

    A level without randomness has fewer runs: its mean is used for the other seeds.
    """
    by_level = []
    for level in levels(context, experiment):
        rows = rows_of(context, experiment, sender, **{FACTORS[experiment]: level})
        if rows.height == 0:
            return positive([])
        by_level.append(dict(rows.select("repeat", "rate_bps").iter_rows()))
    if not by_level:
        return positive([])
    repeats = set().union(*by_level)
    means = [sum(found.values()) / len(found) for found in by_level]
    return positive(
        [
            sum(f.get(r, m) for f, m in zip(by_level, means, strict=True)) / len(by_level)
            for r in sorted(repeats)
        ]
    )


def ratio(
    context: Context,
    experiment: str,
    over: Sender,
    under: Sender,
    metric: str = "rate_bps",
    **labels: Any,
) -> Interval:
    """Return the mean over seeds of a sender's goodput over another's with the same losses."""
    pair = [by_repeat(rows_of(context, experiment, s, **labels), metric) for s in (over, under)]
    return quotient(*pair)


def scaled(interval: Interval, factor: float) -> Interval:
    """Return an interval of something proportional."""

    def times(x: float | None) -> float | None:
        return None if x is None else x * factor

    return replace(
        interval, mean=times(interval.mean), low=times(interval.low), high=times(interval.high)
    )


def used(context: Context, experiment: str, sender: Sender, rate: float = MBPS, **labels: Any) -> Interval:  # fmt: skip
    """Return goodput as a share of the link's rate."""
    return scaled(goodput(context, experiment, sender, **labels), 1e-6 / rate)


def place_text(cell: Mapping[str, Any]) -> str:
    """Write where a cell is.

    >>> place_text({"mbps": 12.0, "loss": 0.001})
    '12 Mbit/s, 0.1% lost'
    """
    if cell.get("trace") is not None:
        text = str(cell["trace"])
    else:
        loss = cell.get("loss") or 0.0
        text = f"{cell['mbps']:g} Mbit/s, {f'{100 * loss:g}% lost' if loss else 'no loss'}"
    if cell.get("mb"):
        text += f", {cell['mb']:g} MB"
    if cell.get("queue_packets"):
        text += f", queue of {cell['queue_packets']:.0f}"
    return text


def absent(context: Context) -> str:
    """Say why there are no runs of the lab."""
    reasons = [f"{what}: {why}" for what, why in context.missing.items()]
    if in_lab(context) and not Levels.of(context.profile).lab:
        reasons.append("it was left out (lab = false)")
    if reasons:
        return "the part in the lab is missing; " + "; ".join(reasons)
    return "not all of the runs that this needs were done"
