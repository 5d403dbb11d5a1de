"""The study nsquic: its plan, its verdicts on made-up runs, and a few real runs."""

from __future__ import annotations

import functools
import json
import math

import polars as pl
import pytest
from conftest import of_each_value
from gargalo import run
from gargalo.studies import find
from gargalo.studies.model import Context
from gargalo.studies.running import jobs_of, verdicts
from gargalo.sweeps.job import Identifier
from gargalo_studies.nsquic import STUDY
from gargalo_studies.nsquic import experiments as ex
from gargalo_studies.nsquic import transports as t
from gargalo_studies.nsquic.figures import figures
from gargalo_studies.nsquic.gains import gain
from gargalo_studies.nsquic.measure import measure, receive_rate
from gargalo_studies.nsquic.published import RECEIVE_RATES, USED, level_text, receive_rates
from gargalo_studies.nsquic.readings import READINGS, THEN, TODAY, of_2018
from gargalo_studies.nsquic.scenarios import LIMIT_S, STEPS, dumbbell, simple
from gargalo_studies.nsquic.tables import tables

QUICK = STUDY.profiles["quick"]


@functools.cache
def plan(profile):
    """All runs of a profile."""
    return jobs_of(STUDY, STUDY.profiles[profile])


def planned(reading):
    """The runs of one reading in the quick profile."""
    return [j for j in plan("quick") if j.labels["reading"] == reading]


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_cell_of_the_plan_is_a_valid_scenario(profile):
    jobs = plan(profile)
    first = [j for j in jobs if j.repeat == 0]
    labels = [json.dumps(j.labels, sort_keys=True) for j in first]
    assert len(labels) == len(set(labels))
    assert {j.labels["experiment"] for j in jobs} == {e.name for e in STUDY.experiments}
    assert {j.labels["reading"] for j in jobs} == {r.name for r in READINGS}
    identifier = Identifier()
    ids = {identifier.task(j).run for j in of_each_value(first, "experiment")}
    assert len(ids) > 100


def test_only_chance_is_repeated():
    for job in plan("quick"):
        if job.repeat:
            chance = job.labels.get("loss", 0) > 0 or job.labels.get("reordered", 0) > 0
            assert chance or "start_jitter" in job.scenario
    for profile, few in (("quick", 5), ("full", 30)):
        lossy = [
            (j.labels["protocol"], j.repeat) for j in plan(profile) if j.labels.get("loss", 0) > 0
        ]
        assert {r for p, r in lossy if p == "quic"} == set(range(30))
        assert {r for p, r in lossy if p == "vegas"} == set(range(few))


def test_readings_give_flows_their_stacks():
    now = dumbbell([("quic", t.quic(packet_threshold=3)), ("vegas", t.tcp("vegas", tls="1.3"))])
    then = of_2018(dumbbell([(f["label"], f["transport"]) for f in now["flows"]]))
    quic, tcp = (f["transport"] for f in then["flows"])
    assert quic["quic"]["profile"] == "google-v41"
    assert quic["quic"]["congestion"] == "cubic"
    assert (quic["quic"]["packet_threshold"], quic["quic"]["crypto"]) == (3, "null")
    assert (tcp["tcp"]["profile"], tcp["tcp"]["tls"]) == ("ns3-3.27", "1.3")
    assert tcp["tcp"]["congestion"] == "vegas"
    readings = {r.name: r for r in READINGS}
    flows = [("quic", t.quic()), ("cubic", t.tcp())]
    changed = {
        "window-10": ("quic", "initial_window", "10 packets"),
        "window-20": ("quic", "initial_window", "20 packets"),
        "unpaced": ("quic", "pacing", False),
        "one-connection": ("quic", "congestion", {"cubic": {"connections": 1}}),
        "each-segment": ("tcp", "delayed_ack", False),
        "first-segment": ("tcp", "delayed_ack", {"quick": 1}),
        "tcp-2": ("tcp", "initial_window", "2 packets"),
        "tcp-10": ("tcp", "initial_window", "10 packets"),
        "tcp-10-1448": ("tcp", "mss", "1448B"),
        "rack": ("tcp", "recovery", "rack-tlp"),
        "adaptive": ("tcp", "max_dup_thresh", 300),
        "wide": ("tcp", "send_buffer", "64MiB"),
    }
    assert {THEN, TODAY, *changed} == set(readings)
    base = of_2018(dumbbell(flows))
    for name, (kind, option, value) in changed.items():
        made = readings[name].apply(dumbbell(flows))
        for before, after in zip(base["flows"], made["flows"], strict=True):
            same = kind not in before["transport"]
            assert (before == after) is same, name
        (mine,) = [f["transport"][kind] for f in made["flows"] if kind in f["transport"]]
        assert mine[option] == value
    assert readings[TODAY].apply(dumbbell(flows)) == dumbbell(flows)
    # Steps go from one set of stacks to the other themselves.
    steps = ex.default_steps(QUICK)
    assert {j.scenario["name"] for j in steps} == {STEPS}
    assert of_2018(json.loads(json.dumps(steps[0].scenario))) == steps[0].scenario


def test_claims_name_the_experiments_that_readings_repeat():
    known = {e.name for e in STUDY.experiments}
    ids = {c.id for c in STUDY.claims}
    assert all(set(c.experiments) <= known and c.experiments for c in STUDY.claims)
    assert all(set(r.claims or ()) <= ids for r in READINGS)


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


PRINTED = {(x, p): bps for x, _, p, bps in RECEIVE_RATES[:4]}
USES = {(x, p): used for x, p, used in USED}


def made_up(*, advantage=2.0, slower_when_late=1.5, saved=1.0, equal=1.0):
    """Runs as the work describes them; arguments change what claims judge."""
    rows = []
    for job in planned(THEN):
        x = dict(job.labels)
        p = x.get("protocol", "")
        noise = 0.01 * (job.repeat or 0)
        experiment = x["experiment"]
        step = [s.name for s in t.STEPS].index(x["step"]) if "step" in x else 0
        factor = advantage
        if experiment == "steps" and step >= len(t.STEPS) - 2:
            factor = equal
        grow = 1.0 if p == t.QUIC else 1.0 + 0.3 * (x.get("loss", 0) > 0) + 3 * noise
        wide = 1.0 + 0.1 * math.log10(x["mbps"] / 5) if "mbps" in x else 1.0
        far = 1.0 + x.get("delay_s", 0.05)
        time = (1.0 + noise) if p == t.QUIC else factor * grow * wide * far
        time += {"hybla": -0.5, "vegas": 1.0}.get(p, 0.0)
        if experiment == "reordering":
            time = 1.0 + noise + (slower_when_late - 1.0) * x["reordered"] * (p == ex.FIXED)
        if experiment == "zero-rtt":
            time = 1.0 - 2 * x["delay_s"] * saved * (p == ex.EARLY)
        bps = 8e6 / time
        if experiment == "simple" and x["kb"] == 210000.0:
            bps = 9.9e6
        elif experiment == "simple" and x["kb"] == 1000.0 and x["loss"] == 0:
            bps = PRINTED.get((x["mbps"], p), bps)
            used = USES.get((x["delay_s"], p))
            time, bps = (time, bps) if used is None else (0.8 / used, used * 1e7)
        if experiment == "small":
            time = {"quic": 0.125}.get(p, 0.12)
        row = {
            **x,
            "repeat": job.repeat,
            "time_s": time,
            "fastest_s": 0.9 * time if p == t.QUIC else time,
            "median_s": 0.95 * time,
            "jain": 1.0 if x.get("pair") != "quic + cubic" else 0.8,
            "wire_rate_bps": bps,
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
        "what-is-left": {"equal": 1.9},
        "figures-quic": {},
        "reordering": {"slower_when_late": 0.5},
        "zero-rtt": {"saved": 1.5},
    }
    for claim, change in cases.items():
        context = made_up(**change)
        if claim == "figures-quic":
            slower = context.frame.with_columns(pl.col("wire_rate_bps") * 0.9)
            context = Context(QUICK, slower)
        found = next(c for c in verdicts(STUDY, context) if c.id == claim)
        assert found.verdict == "contradicted", claim
        assert found.explanation, claim


def test_printed_figures_that_no_single_definition_has_are_inconclusive():
    printed = (
        pl.col("experiment").eq("simple")
        & pl.col("kb").eq(1000.0)
        & pl.col("mbps").is_in([5.0, 1000.0])
    )
    frame = made_up().frame
    # Payload over the whole time as printed at 5 Mbit/s and 1 Gbit/s, with headers only elsewhere.
    mixed = frame.with_columns(
        pl.when(printed).then(8e6 / pl.col("wire_rate_bps")).otherwise("time_s").alias("time_s"),
        pl.when(printed)
        .then(2 * pl.col("wire_rate_bps"))
        .otherwise("wire_rate_bps")
        .alias("wire_rate_bps"),
    )
    for claim in ("figures-quic", "figures-tcp"):
        found = next(c for c in verdicts(STUDY, Context(QUICK, mixed)) if c.id == claim)
        assert found.verdict == "inconclusive", found
        assert "definition" in found.explanation


def test_claims_are_inconclusive_without_runs():
    for frame in (pl.DataFrame(), made_up().frame.filter(pl.col("experiment") == "late")):
        for claim in STUDY.claims:
            found = claim.check(Context(QUICK, frame))
            assert found.verdict == "inconclusive", claim.id
            assert found.explanation, claim.id
            assert "nan" not in found.explanation, claim.id


def test_gains_pair_the_same_seeds():
    rows = [
        {**ex.STANDARD, "loss": 0.01, "experiment": "simple"}
        | {"protocol": p, "repeat": r, "time_s": x}
        for p, times in (("quic", (1.0, 2.0, 4.0)), ("cubic", (2.0, 4.0, 8.1)))
        for r, x in enumerate(times)
    ]
    context = Context(QUICK, pl.DataFrame(rows))
    found = gain(context, "simple", "loss", 0.01)
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
        "wireless",
        "tool paper",
    }
    assert len({f.title for f in drawn}) == len(drawn)
    made = {b.title: b.frame for b in tables(context)}
    beside = made["Mean receive rate: published and here"]
    assert beside.height == receive_rates().height
    assert beside["here_bps"].drop_nulls().len() >= 4
    assert made["Advantage after each step"].height == len(t.STEPS)
    assert figures(Context(QUICK, pl.DataFrame())) == []
    assert tables(Context(QUICK, pl.DataFrame())) == []


def test_the_published_receive_rate_of_tcp():
    # 1 MB at 1 Gbit/s and 50 ms: the work has 3.99 Mbit/s for CUBIC of ns-3.27.
    found = measure(run(simple("cubic", t.old(t.tcp()), mbps=1000)))
    assert found["wire_rate_bps"] == pytest.approx(3.99e6, rel=0.005)
    # The clock of the receive rate begins with the first packet back, not with the first byte.
    assert found["receive_rate_bps"] == pytest.approx(8e6 / (found["time_s"] - 0.1), rel=1e-3)
    assert found["completed"] == 1.0


def test_small_transfers_of_2018_wait_for_a_lone_segment():
    times = {}
    for name in (THEN, "first-segment", "tcp-10-1448"):
        reading = next(r for r in READINGS if r.name == name)
        made = reading.apply(simple("cubic", t.tcp(), kb=10))
        times[name] = measure(run(made))["time_s"]
    assert times[THEN] - times["first-segment"] == pytest.approx(0.2, abs=0.001)
    quic = measure(run(of_2018(simple("quic", t.quic(), kb=10))))["time_s"]
    assert abs(quic - times["tcp-10-1448"]) < 0.01 < 0.6 < times[THEN] - quic


def test_a_rate_needs_bytes_and_time():
    flow = {"rtt_min_s": 0.1, "delivered_bytes": 1000, "completion_s": 0.2}
    assert receive_rate(flow) == pytest.approx(80000.0)
    assert receive_rate({**flow, "rtt_min_s": None}) == 0.0
    ended = {**flow, "completion_s": None, "start_s": 1.0, "end_s": 1.6}
    assert receive_rate(ended) == pytest.approx(16000.0)


def test_the_slowest_flow_counts():
    flows = [("a", t.tcp()), ("b", t.tcp("ledbat"))]
    found = measure(run(dumbbell(flows, kb=1000)))
    assert found["time_s"] == max(found["time.a"], found["time.b"])
    assert found["fastest_s"] == min(found["time.a"], found["time.b"])
    assert found["time.a"] < found["time.b"]
    assert 0.5 <= found["jain"] < 1.0


def test_what_does_not_end_counts_with_the_limit():
    scenario = simple("cubic", t.old(t.tcp()), kb=10)
    scenario["topology"]["simple"]["link"]["loss"] = 1.0
    found = measure(run(scenario))
    assert found["time_s"] == LIMIT_S
    assert found["completed"] == 0.0
    assert found["receive_rate_bps"] == 0.0


def test_quic_is_compared_with_tcp():
    old = [measure(run(simple(p, t.old(t.transport(p)), kb=100))) for p in ("quic", "cubic")]
    assert old[0]["time_s"] < old[1]["time_s"]
    # With equal windows and no TLS both are done after as many round trips.
    new = [measure(run(simple(p, t.transport(p), kb=100))) for p in ("quic", "cubic")]
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
    from gargalo_studies.nsquic.future_work import ONE_RTT

    return ONE_RTT
