"""Fitting a path to a recording: measure, fit, verify, change.

>>> fit = gargalo.fitting.fit("upload.pcap")
>>> fit.path, fit.intervals, fit.unknown
>>> fit.what_if({"congestion": "bbr3"})
>>> gargalo.fitting.identify("upload.pcap").answer
"""

from __future__ import annotations

from gargalo.extras import need

need("fits", "numpy", "scipy")
from gargalo.fitting.estimate import Estimate, Interval
from gargalo.fitting.identifying import Identified, Ranked, identify
from gargalo.fitting.model import Fit, fit
from gargalo.fitting.observed import Figures, FitError
from gargalo.fitting.path import Bursts, Path, Policer, Reordering
from gargalo.fitting.predicting import Compared, Predicted

__all__ = [
    "Bursts",
    "Compared",
    "Estimate",
    "Figures",
    "Fit",
    "FitError",
    "Identified",
    "Interval",
    "Path",
    "Policer",
    "Predicted",
    "Ranked",
    "Reordering",
    "fit",
    "identify",
]
