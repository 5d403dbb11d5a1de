"""Reports: one HTML file with verdicts, interactive figures and tables, which needs no network.

>>> from gargalo import reporting
>>> reporting.write(reporting.report_of_sweep("sweeps/buffers"), "report.html")
"""

from gargalo.extras import need

need("reports", "numpy", "scipy", "plotly", "jinja2")

from gargalo.reporting.model import (
    VERDICTS,
    ClaimRow,
    Evidence,
    FigureBlock,
    Judgement,
    Report,
    TableBlock,
    Verdict,
)
from gargalo.reporting.page import html, write
from gargalo.reporting.studies import report_of_study, save
from gargalo.reporting.sweeps import report_of_sweep

__all__ = [
    "VERDICTS",
    "ClaimRow",
    "Evidence",
    "FigureBlock",
    "Judgement",
    "Report",
    "TableBlock",
    "Verdict",
    "html",
    "report_of_study",
    "report_of_sweep",
    "save",
    "write",
]
