"""Two sides of a comparison that are run for it: the same scenario and seeds, with different settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gargalo.sweeps.errors import SweepError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.sweeps.job import Job, World
    from gargalo.sweeps.model import SweepFile

SIDE = "side"
"""The label that distinguishes the sides."""


@dataclass(frozen=True)
class Variant:
    """One side."""

    name: str
    changes: Mapping[str, Any]
    world: World = "sim"


def plan_sides(
    description: SweepFile,
    a: Variant,
    b: Variant,
    *,
    repeat: int | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
) -> list[Job]:
    """Return the runs of both sides; they share their seeds, so that they are pairs.

    Raises:
        SweepError: The sides do not differ, or the sweep is wrong.
        ScenarioError: The scenario of a side is wrong.

    """
    if a.name == b.name:
        msg = f"both sides are {a.name}: give them different settings"
        raise SweepError(msg)
    both = []
    for side in (a, b):
        changes = {**(set or {}), **side.changes}
        jobs = description.plan(repeat=repeat, seed=seed, set=changes, world=side.world)
        if SIDE in jobs[0].labels:
            msg = f'an axis is called "{SIDE}": give it another name'
            raise SweepError(msg)
        both.append(jobs)
    if [(j.changes, j.world) for j in both[0]] == [(j.changes, j.world) for j in both[1]]:
        msg = (
            f"{a.name} and {b.name} are the same runs: give one of them a setting that differs, and that no "
            "axis of the sweep sets"
        )
        raise SweepError(msg)
    return [
        replace(job, labels={SIDE: side.name, **job.labels})
        for side, jobs in zip((a, b), both, strict=True)
        for job in jobs
    ]
