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

from importlib import import_module
from typing import TYPE_CHECKING

from gargalo.extras import need

need("sweeps and comparisons", "numpy", "scipy", "cloudpickle")

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from gargalo.results import Run
    from gargalo.running import ScenarioLike
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
    from gargalo.sweeps.job import Job, Label, Labels, Source, World, derive_seed, derive_seeds
    from gargalo.sweeps.model import SweepFile, plan
    from gargalo.sweeps.progress import SweepProgress
    from gargalo.sweeps.result import Failure, Sweep, SweepInterrupted
    from gargalo.sweeps.running import execute
    from gargalo.sweeps.store import Store

    load = Sweep.load

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

# Loaded when they are used: a worker does without.
_MODULES = {
    "axes": ("Axis", "Point", "axis"),
    "errors": (
        "BadStoreError",
        "ClusterError",
        "DamagedError",
        "NoClusterError",
        "StoreError",
        "SweepError",
        "WorkersError",
    ),
    "job": ("Job", "Label", "Labels", "Source", "World", "derive_seed", "derive_seeds"),
    "model": ("SweepFile", "plan"),
    "progress": ("SweepProgress",),
    "result": ("Failure", "Sweep", "SweepInterrupted"),
    "running": ("execute",),
    "store": ("Store",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "load":
        return __getattr__("Sweep").load
    if name in _MODULES:
        return import_module(f"gargalo.sweeps.{name}")
    if name in _MODULE_OF:
        return getattr(import_module(f"gargalo.sweeps.{_MODULE_OF[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


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
    from gargalo.sweeps.model import plan
    from gargalo.sweeps.plugins import Plugins
    from gargalo.sweeps.running import execute

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
