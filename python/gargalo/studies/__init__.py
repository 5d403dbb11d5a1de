"""Studies: published experiments as sweeps with claims that a program decides.

A study has experiments (sets of runs), claims (sentences of the work that is reproduced, each with a
check), figures and tables. `gargalo study NAME` does what is missing in the study's store and writes
one HTML report.
"""

from gargalo.judging import Profile
from gargalo.studies.model import (
    Claim,
    Context,
    Experiment,
    Finding,
    Study,
    contradicted,
    decide,
    inconclusive,
    reproduced,
)
from gargalo.studies.registry import STUDIES, find
from gargalo.studies.running import Outcome, run_study

__all__ = [
    "STUDIES",
    "Claim",
    "Context",
    "Experiment",
    "Finding",
    "Outcome",
    "Profile",
    "Study",
    "contradicted",
    "decide",
    "find",
    "inconclusive",
    "reproduced",
    "run_study",
]
