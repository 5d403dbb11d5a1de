"""The scorecard of a congestion control: what RFC 9743 asks, run and measured.

>>> found = gargalo.evaluation.evaluate(["my_algorithm.py"], profile="quick")
>>> found.scorecards[0].faults
{}
"""

from gargalo.extras import need

need("studies and evaluations", "numpy", "scipy", "plotly", "jinja2", "cloudpickle")

from gargalo.evaluation.criteria import CRITERIA
from gargalo.evaluation.model import PROFILES, REFERENCES, YARDSTICK, Criterion, Figure, Result
from gargalo.evaluation.questions import QUESTIONS
from gargalo.evaluation.running import Evaluation, Scorecard, evaluate

__all__ = [
    "CRITERIA",
    "PROFILES",
    "QUESTIONS",
    "REFERENCES",
    "YARDSTICK",
    "Criterion",
    "Evaluation",
    "Figure",
    "Result",
    "Scorecard",
    "evaluate",
]
