"""What the tests of scorecards as pages share: made-up figures, cards and cells; nothing is simulated."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import polars as pl
from gargalo.evaluation import (
    CRITERIA,
    PROFILES,
    scoring,
)
from gargalo.evaluation.figures import figure, mean_of
from gargalo.evaluation.model import Criterion, Plan, Result
from gargalo.evaluation.running import Scorecard
from gargalo.judging import FailureReason
from gargalo.reporting import FigureBlock
from gargalo.scenarios.scenario import to_toml

if TYPE_CHECKING:
    from collections.abc import Sequence


REFERENCES = ("reno", "cubic", "bbr")
HOSTILE = '</script><img src=x onerror="window.owned=1">&'
TRACE = f'Traceback (most recent call last):\n  File "x.py", line 3\nValueError: {HOSTILE}'
QUEUE = figure(
    "queue_s", "queueing delay", "less", mean_of("queue_s"), bounds=(0.0, math.inf), least=0.001
)
USED = figure(
    "used",
    "share of the bottleneck used",
    "more",
    mean_of("used"),
    bounds=(0.0, math.inf),
    margin=0.02,
)
LOST = figure(
    "lost",
    "share of QUIC's packets lost (RFC 9002), against equal shares of what there is",
    "less",
    mean_of("lost"),
    bounds=(0.0, math.inf),
    least=0.001,
)
RATE = figure("rate_bps", "goodput", "neither", mean_of("rate_bps"), bounds=(0.0, math.inf))


def criterion(name: str, figures: Sequence[Any], **more: Any) -> Criterion:
    given = {
        "title": name.replace("-", " ").capitalize(),
        "section": "RFC 9743 5.1.2",
        "strength": "should",
    }
    return Criterion(
        name, asks="What the text wants.", does="What is run.", cells=lambda _: [], figures=figures, **given | more
    )  # fmt: skip


def runs(own: str, values: dict[str, dict[str, float]], label: str, levels: Sequence[Any]) -> pl.DataFrame:  # fmt: skip
    """Three repeats at each level; values rise with the level and differ a little by repeat."""
    rows = []
    for name in (own, *REFERENCES):
        figures = values.get("own" if name == own else name)
        if figures is None:
            continue
        for i, level in enumerate(levels):
            for repeat in range(3):
                factor = (1 + i) * (1 + 0.01 * (repeat - 1))
                made = {k: v * factor if k != "used" else v for k, v in figures.items()}
                rows.append(
                    {
                        "run": f"{name}{i}{repeat}",
                        "criterion": "",
                        "algorithm": name,
                        label: level,
                        "repeat": repeat,
                        **made,
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def scenarios(name: str) -> dict[str, str]:
    """Scenario files of a criterion of RFC 9743, as an evaluation makes them."""
    found = next(c for c in CRITERIA if c.id == name)
    made = found.cells(Plan("vegas", PROFILES["quick"], 1))
    return {
        " ".join(f"{k}={v}" for k, v in c.labels.items()): to_toml({**c.scenario, "seed": 1})
        for c in made
    }


def scorecard(own: str = "vegas", repeat: int = 3) -> Scorecard:
    """Every verdict, every group, and everything else there is to show; numbers are made up."""
    usual = {
        "reno": {"queue_s": 0.09, "used": 0.97, "lost": 0.01, "rate_bps": 9e6},
        "cubic": {"queue_s": 0.1, "used": 0.99, "lost": 0.01, "rate_bps": 1e7},
        "bbr": {"queue_s": 0.02, "used": 0.95, "lost": 0.05, "rate_bps": 1.1e7},
    }

    def judge(
        c: Criterion,
        label: str,
        levels: Sequence[Any],
        mine: dict[str, float] | None,
        failures: Sequence[FailureReason] = (),
        files: str = "bufferbloat",
    ) -> Result:
        values = usual if mine is None else {**usual, "own": usual["cubic"] | mine}
        frame = runs(own, values, label, levels).filter(pl.col("repeat") < repeat)
        return scoring.result(c, own, frame, REFERENCES, failures, scenarios(files))

    bars = go.Figure([go.Bar(x=["a"], y=[i + 1.0], name=n) for i, n in enumerate([own, "cubic"])])
    drawn = FigureBlock("A picture of its own", "Bars.", bars, alt="Two bars.")
    results = [
        judge(criterion("queues", (QUEUE, USED, RATE)), "buffer_bdp", [0.5, 1.0, 8.0], {"queue_s": 0.004, "used": 0.8}),
        judge(criterion("same", (QUEUE, USED), strength="MUST"), "n", [1, 4], {}),
        judge(
            criterion("starver", (LOST,), strength="MUST", group="mixed",
                faults=lambda _: [f"starves others {HOSTILE}"]),
            "first", ["own", "other"], {"lost": 0.2}, files="versus-quic-newreno",
        ),
        judge(criterion("raises", (QUEUE,), strength="SHOULD", group="special"), "case", ["a", "b"], None,
            [FailureReason(f"ValueError: {HOSTILE}", TRACE), FailureReason("died")], "multipath"),
        judge(criterion("short", (QUEUE,), group="general"), "size", ["10kB", "1MB"], {"queue_s": 0.05},
            files="short-long"),
        judge(criterion("drawn", (QUEUE,), strength="SHOULD", group="properties", picture=lambda _: drawn),
            "n", [1], {"queue_s": 0.3}),
        judge(criterion("unmeasured", (figure("x_s", "nothing", "less", mean_of("x_s"),
            bounds=(0.0, math.inf)),), group="tcpeval"), "n", [1], {}),
        judge(criterion("probes", (QUEUE,), group="elsewhere"), "n", [1], {"queue_s": 0.01}),
    ]  # fmt: skip
    return Scorecard(
        own,
        replace(PROFILES["quick"], repeat=repeat),
        REFERENCES,
        results,
        facts={"date": "2026-06-01"},
        file="my algorithms/vegas.py",
    )


def text_of(part: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())


def article(whole: str, name: str) -> str:
    start = whole.index('<article class="criterion', whole.index(f'id="criterion-{name}"') - 200)
    return whole[start : whole.index("</article>", start)]


def cards() -> list[Scorecard]:
    other = scorecard("copa")
    kept = [r for r in other.results if r.criterion.id != "short"]
    fewer = replace(other, results=[replace(kept[0], verdict="like"), *kept[1:]])
    broken = Scorecard("mine", other.profile, REFERENCES, [], broken=TRACE, file="mine.py")
    return [scorecard(), fewer, broken]
