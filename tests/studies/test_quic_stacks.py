"""The study quic-stacks: its plan for the stacks here, its verdicts on made-up runs, a real run of each kind."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from gargalo import run
from gargalo.judging import Profile
from gargalo.studies import find
from gargalo.studies.model import Context
from gargalo.studies.running import change, jobs_of, verdicts
from gargalo_studies.quic_stacks import STUDY
from gargalo_studies.quic_stacks import experiments as ex
from gargalo_studies.quic_stacks.figures import figures, tables
from gargalo_studies.quic_stacks.measure import measure

QUICK = STUDY.profiles["quick"]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two stacks."""
    monkeypatch.setattr(ex, "stacks", lambda: ["noq", "other"])


@pytest.mark.usefixtures("two")
def test_every_stack_meets_every_other():
    assert find("quic-stacks") is STUDY
    jobs = jobs_of(STUDY, QUICK)
    by_kind = {
        e.name: [j.labels for j in jobs if j.labels["experiment"] == e.name]
        for e in STUDY.experiments
    }
    assert {k: len(v) for k, v in by_kind.items()} == {
        "alone": 2 * 3 * 5,
        "versus": 2 * 2 * 5,
        "page": 2 * 5 * ex.PAGES,
        "late": 2 * 3 * 5,
    }
    pairs = {(x["stack"], x["against"]) for x in by_kind["versus"]}
    assert pairs == {(a, b) for a in ("noq", "other") for b in ("noq", "other")}


def test_only_stacks_with_the_congestion_control_are_asked():
    assert "noq" in ex.stacks()


@pytest.mark.usefixtures("two")
def test_stacks_have_the_same_settings_and_their_own_cubic():
    flows = [f for j in jobs_of(STUDY, QUICK) if isinstance(j.scenario, dict) for f in j.scenario["flows"]]  # fmt: skip
    asked = {f["transport"]["quic"]["stack"]: f["transport"]["quic"] for f in flows}
    assert {name: q.pop("congestion") for name, q in asked.items()} == {
        "noq": "noq-cubic",
        "other": "cubic",
    }
    for name, settings in asked.items():
        assert settings == {"stack": name, "datagram_size": "1200B", "mtu_discovery": False}


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("in_packets", "sizes"), [("false", {"125000B"}), ("true", {"102 packets"})]
)
def test_queues_count_bytes_or_packets(in_packets, sizes):
    jobs = jobs_of(STUDY, change(QUICK, {"queue_in_packets": in_packets}))
    scenarios = [
        j.scenario
        for j in jobs
        if j.labels["experiment"] == "versus" and isinstance(j.scenario, dict)
    ]
    links = [s["topology"]["dumbbell"]["bottleneck"] for s in scenarios]
    assert {link["queue"]["droptail"] for link in links} == sizes


def runs(**changes: float) -> pl.DataFrame:
    """Return runs of two stacks that behave, but for what is changed: a metric of the stack `other`."""
    rows = []
    for job in jobs_of(STUDY, QUICK):
        own = {
            "goodput_bps": 19e6,
            "page_s": 1.0,
            "share": 0.5,
            "queue_s": 0.01,
            "drops": 0.0,
            "lost_share": 0.01,
        }
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


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("drops", [1.0, None])
def test_late_packets_are_not_judged_where_packets_may_have_been_dropped(drops):
    frame = runs(late_bps=9e6).with_columns(drops=pl.lit(drops, pl.Float64))
    told = verdicts(STUDY, Context(QUICK, frame, bounds=STUDY.bounds))
    late = next(c for c in told if c.id == "late")
    assert late.verdict == "inconclusive"
    assert "dropped" in late.explanation


def test_one_stack_alone_decides_nothing(monkeypatch):
    monkeypatch.setattr(ex, "stacks", lambda: ["noq"])
    frame = pl.DataFrame(
        [{**j.labels, "repeat": j.repeat, "goodput_bps": 1e7, "page_s": 1.0,
            "share": 0.5} for j in jobs_of(STUDY, QUICK)],
        infer_schema_length=None,
    )  # fmt: skip
    told = verdicts(STUDY, Context(QUICK, frame, bounds=STUDY.bounds))
    assert {c.verdict for c in told} == {"inconclusive"}


@pytest.mark.usefixtures("two")
def test_figures_and_tables_of_what_there_is():
    context = Context(QUICK, runs(), bounds=STUDY.bounds)
    assert [f.title for f in figures(context)] == [
        "One flow alone",
        "Shares",
        "Pages",
        "Objects",
        "Late packets",
        "Late packets declared lost",
    ]
    assert len(tables(context)) == 4
    assert figures(Context(QUICK, pl.DataFrame())) == []


def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Return the scenario of a short run of noq in each experiment."""
    monkeypatch.setattr(ex, "stacks", lambda: ["noq"])
    short = Profile("short", "", 1, ex.Levels(length_s=4, late_ms=(5,)))
    jobs = [j for j in jobs_of(STUDY, short) if j.labels.get("buffer", 1.0) == 1.0]
    return {str(j.labels["experiment"]): j.scenario for j in jobs if isinstance(j.scenario, dict)}


def test_measures_of_real_runs(monkeypatch):
    found = {name: measure(run(scenario)) for name, scenario in seen(monkeypatch).items()}
    alone, late = found["alone"], found["late"]
    assert alone["goodput_bps"] > 0.8 * ex.RATE_BPS
    assert 1 < alone["sent_ratio"] < 1.2
    assert 1200 < alone["packet_bytes"] <= 1228
    assert 0.4 < alone["acks"] < 0.6
    # Without reordering, noq declares lost what the link dropped.
    assert alone["lost_share"] == pytest.approx(alone["dropped_share"], rel=0.05)
    assert 0.2 < found["versus"]["share"] < 0.8
    assert 0 < found["page"]["object_p50_s"] <= found["page"]["page_s"] < 4
    assert late["drops"] == 0 < late["lost_share"]
    assert late["goodput_bps"] == pytest.approx(ex.ASKED_BPS, rel=0.02)
    assert all(m in STUDY.bounds for values in found.values() for m in values)


def test_span_of_objects_tells_turns_from_one_after_another(monkeypatch):
    scenario = seen(monkeypatch)["page"]
    spans = {}
    for order in ("multiplexed", "pipelined"):
        scenario["flows"][0]["workload"]["request"]["order"] = order
        spans[order] = measure(run(scenario))["object_span"]
    assert spans["pipelined"] < 0.2
    assert spans["multiplexed"] > 0.6
