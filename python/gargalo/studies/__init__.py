"""Studies: published experiments as sweeps with claims that a program decides.

A study has experiments (sets of runs), claims (sentences of the work that is reproduced, each with a
check), figures and tables. `gargalo study NAME` does what is missing in the study's store and writes
one HTML report. The studies themselves are in other packages, which entry points declare.
"""

from gargalo.judging import Profile, Settings
from gargalo.metrics._numbers import summed
from gargalo.scenarios.tables import FlowTable, ScenarioTable, Table, Transport, Value
from gargalo.studies.model import (
    Assessment,
    Claim,
    Context,
    Experiment,
    Finding,
    Reading,
    Study,
    Unmeasured,
    above,
    assessed,
    below,
    between,
    by_repeat,
    contradicted,
    decide,
    evidence,
    inconclusive,
    positive,
    quotient,
    reproduced,
)
from gargalo.studies.registry import STUDIES, StudyError, find
from gargalo.studies.running import Outcome, run_study

__all__ = [
    "STUDIES",
    "Assessment",
    "Claim",
    "Context",
    "Experiment",
    "Finding",
    "FlowTable",
    "Outcome",
    "Profile",
    "Reading",
    "ScenarioTable",
    "Settings",
    "Study",
    "StudyError",
    "Table",
    "Transport",
    "Unmeasured",
    "Value",
    "above",
    "assessed",
    "below",
    "between",
    "by_repeat",
    "contradicted",
    "decide",
    "evidence",
    "find",
    "inconclusive",
    "positive",
    "quotient",
    "reproduced",
    "run_study",
    "summed",
]
