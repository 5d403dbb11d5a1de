"""Gargalo: a laboratory for transport protocols.

>>> import gargalo
>>> run = gargalo.run("examples/cubic-vs-bbr.toml", set={"duration": "20s"})
>>> run.flows.select("label", "goodput_bps")
>>> run.plot.congestion_window().savefig("window.png")
"""

from typing import TYPE_CHECKING, Any

from gargalo._core import Diagnostic, RunError, ScenarioError, __version__
from gargalo.controller import (
    Acked,
    Congestion,
    Controller,
    Init,
    Lost,
    Path,
    RateSample,
    Sent,
    Sibling,
    Spurious,
    congestion,
)
from gargalo.multipath import (
    ConnectionInit,
    Context,
    LocalAddress,
    Open,
    PathManager,
    PathView,
    RemoteAddress,
    Scheduler,
    SendAll,
    SubflowView,
    View,
    path_manager,
    scheduler,
)
from gargalo.registry import register
from gargalo.results import Run, load
from gargalo.running import Interrupted, Progress, resolve, run
from gargalo.scenario import Scenario
from gargalo.window import WindowBased
from gargalo.worlds import Capability, capabilities

if TYPE_CHECKING:
    from gargalo.sweeps import Job, Sweep, sweep

__all__ = [
    "Acked",
    "Capability",
    "Congestion",
    "ConnectionInit",
    "Context",
    "Controller",
    "Diagnostic",
    "Init",
    "Interrupted",
    "Job",
    "LocalAddress",
    "Lost",
    "Open",
    "Path",
    "PathManager",
    "PathView",
    "Progress",
    "RateSample",
    "RemoteAddress",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "SendAll",
    "Sent",
    "Sibling",
    "Spurious",
    "SubflowView",
    "Sweep",
    "View",
    "WindowBased",
    "__version__",
    "capabilities",
    "congestion",
    "load",
    "path_manager",
    "register",
    "resolve",
    "run",
    "scheduler",
    "sweep",
]


def __getattr__(name: str) -> Any:
    # Sweeps are loaded when they are used: a single run must not wait for them.
    if name in ("Job", "Sweep", "sweep", "sweeps"):
        from importlib import import_module

        sweeps = import_module("gargalo.sweeps")
        return sweeps if name == "sweeps" else getattr(sweeps, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
