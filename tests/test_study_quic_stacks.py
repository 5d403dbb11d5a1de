"""The study quic-stacks: its plan for the stacks that are here, its verdicts on made-up runs, one real run of each kind."""

from __future__ import annotations

import polars as pl
import pytest
from gargalo import run
from gargalo.studies import find
from gargalo.studies.model import Context
from gargalo.studies.quic_stacks import STUDY
from gargalo.studies.quic_stacks import experiments as ex
from gargalo.studies.quic_stacks.figures import figures, tables
from gargalo.studies.quic_stacks.measure import measure
from gargalo.studies.running import jobs_of, verdicts

QUICK = STUDY.profiles["quick"]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two stacks."""
    monkeypatch.setattr(ex, "stacks", lambda: ["noq", "other"])


@pytest.mark.usefixtures("two")
def test_every_stack_meets_every_other():
    assert find("quic-stacks") is STUDY
    jobs = jobs_of(STUDY, QUICK)
    by_kind = {e.name: [j.labels for j in jobs if j.labels["experiment"] == e.name] for e in STUDY.experiments}  # fmt: skip
    assert {k: len(v) for k, v in by_kind.items()} == {
        "alone": 2 * 3 * 3,
        "versus": 2 * 2 * 3,
        "page": 2 * 3,
        "late": 2 * 3 * 3,
    }
    pairs = {(x["stack"], x["against"]) for x in by_kind["versus"]}
    assert pairs == {(a, b) for a in ("noq", "other") for b in ("noq", "other")}


def test_only_stacks_with_the_congestion_control_are_asked():
    assert "noq" in ex.stacks()


def runs(**changes: float) -> pl.DataFrame:
    """Return runs of two stacks that behave, but for what is changed: a metric of the stack `other`."""
    rows = []
    for job in jobs_of(STUDY, QUICK):
        own = {"goodput_bps": 19e6, "page_s": 1.0, "share": 0.5, "queue_s": 0.01}
        if job.labels["stack"] == "other":
            own |= {k: v for k, v in changes.items() if k != "late_bps"}
            if job.labels.get("late_ms") == 20 and "late_bps" in changes:
                own["goodput_bps"] = changes["late_bps"]
        noise = 1 + 1e-3 * (job.repeat or 0)
        rows.append({**job.labels, "repeat": job.repeat, **{k: v * noise for k, v in own.items()}})
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"goodput_bps": 9e6}, "alone"),
        ({"share": 0.9}, "fair"),
        ({"page_s": 2.0}, "page"),
        ({"late_bps": 9e6}, "late"),
    ],
)
def test_verdicts_follow_the_runs(changes, claim):
    def found(frame: pl.DataFrame) -> dict[str, str]:
        context = Context(QUICK, frame, bounds=STUDY.bounds)
        return {c.id: c.verdict for c in verdicts(STUDY, context)}

    fine = found(runs())
    assert set(fine.values()) == {"reproduced"}
    assert found(runs(**changes)) == {**fine, claim: "contradicted"}


def test_one_stack_alone_decides_nothing(monkeypatch):
    monkeypatch.setattr(ex, "stacks", lambda: ["noq"])
    frame = pl.DataFrame(
        [{**j.labels, "repeat": j.repeat, "goodput_bps": 1e7, "page_s": 1.0, "share": 0.5} for j in jobs_of(STUDY, QUICK)],
        infer_schema_length=None,
    )  # fmt: skip
    told = verdicts(STUDY, Context(QUICK, frame, bounds=STUDY.bounds))
    assert {c.verdict for c in told} == {"inconclusive"}


@pytest.mark.usefixtures("two")
def test_figures_and_tables_of_what_there_is():
    context = Context(QUICK, runs(), bounds=STUDY.bounds)
    assert [f.title for f in figures(context)] == ["One flow alone", "Shares", "Small objects", "Late packets"]  # fmt: skip
    assert len(tables(context)) == 4
    assert figures(Context(QUICK, pl.DataFrame())) == []


def test_measures_of_real_runs(monkeypatch):
    monkeypatch.setattr(ex, "stacks", lambda: ["noq"])
    short = STUDY.profiles["quick"]
    short = type(short)("short", "", 1, {"length_s": 4, "late_ms": [5]})
    seen = {}
    for job in jobs_of(STUDY, short):
        if job.labels.get("buffer", 1.0) == 1.0:
            seen[job.labels["experiment"]] = measure(run(job.scenario))
    assert seen["alone"]["goodput_bps"] > 0.8 * ex.RATE_BPS
    assert 0.2 < seen["versus"]["share"] < 0.8
    assert 0 < seen["page"]["object_p50_s"] <= seen["page"]["page_s"] < 4
    assert seen["late"]["utilization"] > 0.3
    assert all(m in STUDY.bounds for values in seen.values() for m in values)
