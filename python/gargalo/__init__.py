"""Gargalo: a laboratory for transport protocols.

>>> import gargalo
>>> run = gargalo.run("examples/cubic-vs-bbr.toml", set={"duration": "20s"})
>>> run.flows.select("label", "goodput_bps")
>>> run.plot.congestion_window().savefig("window.png")
"""

from typing import TYPE_CHECKING, Any

from gargalo._core import Diagnostic, RunError, ScenarioError, __version__, trace_generate
from gargalo.plugins.controller import (
    Acked,
    Congestion,
    Controller,
    Established,
    Init,
    Lost,
    Path,
    RateSample,
    Sent,
    Sibling,
    Spurious,
    congestion,
)
from gargalo.plugins.multipath import (
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
from gargalo.plugins.native import PluginError, load_plugin
from gargalo.plugins.registry import register
from gargalo.plugins.stack import (
    QuicConfig,
    QuicDatagram,
    QuicHost,
    QuicPath,
    QuicStack,
    QuicStats,
    quic_stack,
)
from gargalo.plugins.window import WindowBased
from gargalo.recording import read
from gargalo.results import Run, load
from gargalo.running import Interrupted, Progress, resolve, run
from gargalo.scenarios.scenario import Scenario
from gargalo.scenarios.worlds import Capability, capabilities

if TYPE_CHECKING:
    from gargalo import evaluation as evaluation
    from gargalo import explaining as explaining
    from gargalo import exploring as exploring
    from gargalo import fitting as fitting
    from gargalo import metrics as metrics
    from gargalo import reporting as reporting
    from gargalo import scenario_types as scenario_types
    from gargalo import studies as studies
    from gargalo import sweeps as sweeps
    from gargalo.sweeps import Job, Sweep, sweep

__all__ = [
    "Acked",
    "Capability",
    "Congestion",
    "ConnectionInit",
    "Context",
    "Controller",
    "Diagnostic",
    "Established",
    "Init",
    "Interrupted",
    "Job",
    "LocalAddress",
    "Lost",
    "Open",
    "Path",
    "PathManager",
    "PathView",
    "PluginError",
    "Progress",
    "QuicConfig",
    "QuicDatagram",
    "QuicHost",
    "QuicPath",
    "QuicStack",
    "QuicStats",
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
    "load_plugin",
    "path_manager",
    "quic_stack",
    "read",
    "register",
    "resolve",
    "run",
    "scheduler",
    "sweep",
    "trace_generate",
]


# Loaded when they are used: a single run must not wait for them.
_MODULES = (
    "evaluation",
    "explaining",
    "exploring",
    "fitting",
    "metrics",
    "reporting",
    "scenario_types",
    "studies",
    "sweeps",
)
_OF_SWEEPS = ("Job", "Sweep", "sweep")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"gargalo.{name}")
    if name in _OF_SWEEPS:
        return getattr(import_module("gargalo.sweeps"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
