"""Gargalo: a laboratory for transport protocols.

>>> import gargalo
>>> run = gargalo.run("examples/cubic-vs-bbr.toml", set={"duration": "20s"})
>>> run.flows.select("label", "goodput_bps")
>>> run.plot.congestion_window().savefig("window.png")
"""

from gargalo._core import RunError, ScenarioError, __version__
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
    register,
)
from gargalo.results import Run, load
from gargalo.running import Interrupted, Progress, run
from gargalo.scenario import Scenario
from gargalo.window import WindowBased

__all__ = [
    "Acked",
    "Congestion",
    "Controller",
    "Init",
    "Interrupted",
    "Lost",
    "Path",
    "Progress",
    "RateSample",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Sibling",
    "Spurious",
    "WindowBased",
    "__version__",
    "congestion",
    "load",
    "register",
    "run",
]
