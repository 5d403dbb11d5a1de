"""The study nsquic: its plan, its verdicts on made-up runs, and a few real runs."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest
from gargalo import run
from gargalo.studies import find
from gargalo.studies.model import Context
from gargalo.studies.nsquic import STUDY
from gargalo.studies.nsquic import experiments as ex
from gargalo.studies.nsquic import transports as t
from gargalo.studies.nsquic.figures import figures
from gargalo.studies.nsquic.gains import gain
from gargalo.studies.nsquic.measure import measure
from gargalo.studies.nsquic.published import level_text, receive_rates
from gargalo.studies.nsquic.scenarios import LIMIT_S, dumbbell, simple
from gargalo.studies.nsquic.tables import tables
from gargalo.studies.running import jobs_of, verdicts
from gargalo.sweeps.job import Identifier

QUICK = STUDY.profiles["quick"]


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_cell_of_the_plan_is_a_valid_scenario(profile):
    jobs = jobs_of(STUDY, STUDY.profiles[profile])
    first = [j for j in jobs if j.repeat == 0]
    labels = [json.dumps(j.labels, sort_keys=True) for j in first]
    assert len(labels) == len(set(labels))
    assert {j.labels["experiment"] for j in jobs} == {e.name for e in STUDY.experiments}
    identifier = Identifier()
    ids = {identifier.task(j).run for j in first[:: 1 if profile == "quick" else 5]}
    assert len(ids) > 100


def test_only_chance_is_repeated():
    for job in jobs_of(STUDY, QUICK):
        if job.repeat:
            assert job.labels.get("loss", 0) > 0 or job.labels.get("reordered", 0) > 0
    for profile, few in (("quick", 5), ("full", 30)):
        lossy = [
            (j.labels["protocol"], j.repeat)
            for j in jobs_of(STUDY, STUDY.profiles[profile])
            if j.labels.get("loss", 0) > 0
        ]
        assert {r for p, r in lossy if p == "quic"} == set(range(30))
        assert {r for p, r in lossy if p == "vegas"} == set(range(few))


def test_every_factor_of_the_work_is_varied():
    rows = ex.one_at_a_time()
    assert len(rows) == 1 + 5 + 4 + 4 + 6
    for factor, levels in ex.FACTORS.items():
        assert {r[factor] for r in rows} == set(levels)
    assert find("nsquic") is STUDY


def test_levels_in_words():
    found = [level_text(f, x) for f in ex.FACTORS for x in ex.FACTORS[f]]
    assert found[:6] == [
        "5 Mbit/s",
        "10 Mbit/s",
        "50 Mbit/s",
        "100 Mbit/s",
        "500 Mbit/s",
        "1 Gbit/s",
    ]
    assert "no loss" in found
    assert "loss 0.0001" in found
    assert found[-1] == "210 MB"


def made_up(*, advantage=2.0, left=0.1, slower_when_late=1.5, saved=1.0):
    """Runs as the work describes them; arguments change what claims judge."""
    rows = []
    for job in jobs_of(STUDY, QUICK):
        x = dict(job.labels)
        p, old = x.get("protocol", ""), x.get("defaults") == t.PUBLISHED
        noise = 0.01 * (job.repeat or 0)
        experiment = x["experiment"]
        step = [s.name for s in t.STEPS].index(x["step"]) if "step" in x else 0
        factor = 1.0 + (advantage - 1.0) * (1.0 if old or experiment == "steps" else left)
        if experiment == "steps":
            factor = 1.0 + (factor - 1.0) * (1 - step / 10)
        grow = 1.0 if p == t.QUIC else 1.0 + 0.3 * (x.get("loss", 0) > 0) + 3 * noise
        wide = 1.0 + 0.1 * math.log10(x["mbps"] / 5) if "mbps" in x else 1.0
        far = 1.0 + x.get("delay_s", 0.05)
        time = (1.0 + noise) if p == t.QUIC else factor * grow * wide * far
        time += {"hybla": -0.5, "vegas": 1.0}.get(p, 0.0)
        if experiment == "reordering":
            time = 1.0 + noise + (slower_when_late - 1.0) * x["reordered"] * (p == ex.FIXED)
        if experiment == "zero-rtt":
            time = 1.0 - 2 * x["delay_s"] * saved * (p == ex.EARLY)
        row = {
            **x,
            "repeat": job.repeat,
            "time_s": time,
            "fastest_s": 0.9 * time if p == t.QUIC else time,
            "median_s": 0.95 * time,
            "jain": 1.0 if x.get("pair") != "quic + cubic" else 0.8,
            "wire_rate_bps": 8e6 / time,
            "receive_rate.quic": factor,
            "receive_rate.cubic": 1.0,
        }
        if experiment == "objects":
            slow = {ex.STREAMS: 1.0, ex.ONE: 3.0}.get(p, 2.0)
            row["object_mean_s"] = row["object_p95_s"] = row["page_s"] = (
                slow + (slow + noise) * x["loss"]
            )
        rows.append(row)
    return Context(QUICK, pl.from_dicts(rows, infer_schema_length=None))


def test_claims_decide_on_runs_as_the_work_has_them():
    found = {c.id: c for c in verdicts(STUDY, made_up())}
    assert {i: c.verdict for i, c in found.items()} == dict.fromkeys(found, "reproduced")


def test_claims_are_contradicted_by_other_runs():
    cases = {
        "always-faster": {"advantage": 0.9},
        "advantage-grows": {"advantage": 8.0},
        "what-is-left": {"left": 0.9},
        "reordering": {"slower_when_late": 0.5},
        "zero-rtt": {"saved": 1.5},
    }
    for claim, change in cases.items():
        rows = verdicts(STUDY, made_up(**change))
        found = next(c for c in rows if c.id == claim)
        assert found.verdict == "contradicted", claim
        assert found.explanation, claim


def test_claims_are_inconclusive_without_runs():
    for frame in (pl.DataFrame(), made_up().frame.filter(pl.col("experiment") == "tool-simple")):
        for claim in STUDY.claims:
            found = claim.check(Context(QUICK, frame))
            assert found.verdict == "inconclusive", claim.id
            assert found.explanation, claim.id
            assert "nan" not in found.explanation, claim.id


def test_gains_pair_the_same_seeds():
    rows = [
        {**ex.STANDARD, "loss": 0.01, "experiment": "simple", "defaults": "modern"}
        | {"protocol": p, "repeat": r, "time_s": x}
        for p, times in (("quic", (1.0, 2.0, 4.0)), ("cubic", (2.0, 4.0, 8.1)))
        for r, x in enumerate(times)
    ]
    context = Context(QUICK, pl.DataFrame(rows))
    found = gain(context, "simple", "loss", 0.01, "modern")
    assert found.mean == pytest.approx((2.0 + 2.0 + 2.025) / 3)
    assert (found.low, found.high) == pytest.approx((1.9725, 2.0442), abs=1e-3), (
        "of ratios, not of times"
    )


def test_figures_and_tables_of_all_kinds():
    context = made_up()
    drawn = figures(context)
    groups = {f.group for f in drawn}
    assert groups == {
        "defaults",
        "simple network",
        "dumbbell network",
        "many flows",
        "fairness",
        "reordering",
        "small objects",
        "0-RTT",
        "tool paper",
    }
    assert len({f.title for f in drawn}) == len(drawn)
    made = {b.title: b.frame for b in tables(context)}
    beside = made["Mean receive rate: published and here"]
    assert beside.height == receive_rates().height
    assert beside["as_published_bps"].drop_nulls().len() >= 4
    assert made["Advantage after each step"].height == len(t.STEPS)
    assert figures(Context(QUICK, pl.DataFrame())) == []
    assert tables(Context(QUICK, pl.DataFrame())) == []


def test_the_published_receive_rate_of_tcp():
    # 1 MB at 1 Gbit/s and 50 ms: the work has 3.99 Mbit/s for CUBIC of ns-3.27.
    found = measure(run(simple("cubic", t.tcp(t.PUBLISHED), mbps=1000)))
    assert found["wire_rate_bps"] == pytest.approx(3.99e6, rel=0.005)
    # Of its 2.3 s two round trips are for the handshake and the request.
    assert found["receive_rate_bps"] == pytest.approx(8e6 / (found["time_s"] - 0.2), rel=1e-3)
    assert found["completed"] == 1.0


def test_the_slowest_flow_counts():
    flows = [("a", t.tcp(t.MODERN)), ("b", t.tcp(t.MODERN, "ledbat"))]
    found = measure(run(dumbbell(flows, kb=1000)))
    assert found["time_s"] == max(found["time.a"], found["time.b"])
    assert found["fastest_s"] == min(found["time.a"], found["time.b"])
    assert found["time.a"] < found["time.b"]
    assert 0.5 <= found["jain"] < 1.0


def test_what_does_not_end_counts_with_the_limit():
    scenario = simple("cubic", t.tcp(t.PUBLISHED), kb=10)
    scenario["topology"]["simple"]["link"]["loss"] = 1.0
    found = measure(run(scenario))
    assert found["time_s"] == LIMIT_S
    assert found["completed"] == 0.0
    assert found["receive_rate_bps"] == 0.0


def test_quic_is_compared_with_tcp():
    old = [measure(run(simple(p, t.transport(p, t.PUBLISHED), kb=100))) for p in ("quic", "cubic")]
    assert old[0]["time_s"] < old[1]["time_s"]
    # With equal windows and no TLS both are done after as many round trips.
    new = [measure(run(simple(p, t.transport(p, t.MODERN), kb=100))) for p in ("quic", "cubic")]
    assert new[0]["time_s"] == pytest.approx(new[1]["time_s"], abs=0.1)


def test_a_page_has_times_of_objects():
    jobs = [j for j in ex.objects(QUICK) if j.labels["loss"] == 0]
    found = {j.labels["protocol"]: measure(run(j.scenario)) for j in jobs}
    for figures_of in found.values():
        assert 0 < figures_of["object_p50_s"] <= figures_of["object_p95_s"]
        assert figures_of["object_p95_s"] <= figures_of["page_s"]


def test_0_rtt_is_one_round_trip_sooner():
    jobs = [
        j
        for j in ex.zero_rtt(QUICK)
        if j.labels["kb"] == 10
        and j.labels["delay_s"] == 0.05
        and j.labels["protocol"].startswith("quic")
    ]
    full, early = (measure(run(j.scenario))["time_s"] for j in jobs)
    assert full - early == pytest.approx(0.1, rel=ex_one_rtt())


def ex_one_rtt():
    from gargalo.studies.nsquic.claims_new import ONE_RTT

    return ONE_RTT
