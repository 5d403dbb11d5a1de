"""Sweeps: many runs of a scenario, with workers, a crash-safe store, and statistics.

>>> sweep = gargalo.sweep(
...     "examples/cubic-vs-bbr.toml",
...     {"topology.dumbbell.bottleneck.queue.droptail": ["0.5BDP", "1BDP", "4BDP"]},
...     repeat=5,
...     store="sweeps/buffers",
... )
>>> sweep.summary(metrics=["goodput_bps", "jain_index"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.extras import need

need("sweeps and comparisons", "numpy", "scipy", "cloudpickle")

from gargalo.sweeps.axes import Axis, Point, axis
from gargalo.sweeps.errors import (
    BadStoreError,
    ClusterError,
    DamagedError,
    NoClusterError,
    StoreError,
    SweepError,
    WorkersError,
)
from gargalo.sweeps.execute import execute
from gargalo.sweeps.job import Job, Label, Labels, Source, World, derive_seed, derive_seeds
from gargalo.sweeps.model import SweepFile, plan
from gargalo.sweeps.progress import SweepProgress
from gargalo.sweeps.result import Failure, Sweep, SweepInterrupted
from gargalo.sweeps.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from gargalo.results import Run
    from gargalo.running import ScenarioLike

__all__ = [
    "Axis",
    "BadStoreError",
    "ClusterError",
    "DamagedError",
    "Failure",
    "Job",
    "Label",
    "Labels",
    "NoClusterError",
    "Point",
    "Source",
    "Store",
    "StoreError",
    "Sweep",
    "SweepError",
    "SweepFile",
    "SweepInterrupted",
    "SweepProgress",
    "WorkersError",
    "World",
    "axis",
    "derive_seed",
    "derive_seeds",
    "execute",
    "load",
    "plan",
    "sweep",
]

load = Sweep.load


def sweep(
    scenario: ScenarioLike | Source,
    axes: Mapping[str, Any] | Sequence[Axis] = (),
    *,
    store: str | Path,
    repeat: int = 1,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    measure: Callable[[Run], Mapping[str, float]] | str | None = None,
    keep: Sequence[str] = (),
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[SweepProgress], object] | None = None,
    plugins: Sequence[Path] = (),
    name: str | None = None,
    world: World = "sim",
    at_once: int = 1,
    repair: bool = False,
    start_jitter: str | None = None,
    memory_limit: int | str | None = None,
) -> Sweep:
    """Plan and execute a sweep; see `plan` and `execute` for the arguments and errors."""
    from gargalo.sweeps.plugins import Plugins

    loaded = Plugins.load(plugins)
    jobs = plan(scenario, axes, repeat, seed, set=set, world=world, start_jitter=start_jitter)
    return execute(
        jobs,
        store,
        measure=measure,
        keep=keep,
        workers=workers,
        at_once=at_once,
        cluster=cluster,
        progress=progress,
        plugins=loaded,
        name=name,
        repair=repair,
        memory_limit=memory_limit,
    )
