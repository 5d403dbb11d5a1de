"""The study high-speed-tcp: its geometry, its readings, what it measures and how it judges."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import gargalo as lib
import polars as pl
import pytest
from gargalo.studies.model import Context
from gargalo.studies.running import jobs_of
from gargalo_studies.high_speed_tcp import STUDY
from gargalo_studies.high_speed_tcp.claims import (
    rank_correlation,
    use_of,
    who_converges,
    who_scales,
)
from gargalo_studies.high_speed_tcp.experiments import EXPERIMENTS
from gargalo_studies.high_speed_tcp.figures import agreement, published, tables
from gargalo_studies.high_speed_tcp.measure import measure
from gargalo_studies.high_speed_tcp.ratings import mean_over
from gargalo_studies.high_speed_tcp.readings import READINGS, ns2
from gargalo_studies.high_speed_tcp.scenarios import PROTOCOLS, dumbbell, parking_lot

QUICK = STUDY.profiles["quick"]
ONE = {"mbps": 1000, "load": 0.2, "duration_s": 10.0, "seed": 7}


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def round_trips(scenario):
    topology = scenario["topology"]["dumbbell"]
    common = seconds(topology["bottleneck"]["delay"])
    return [2 * (common + 2 * seconds(link["delay"])) for link in topology["access"]]


def test_a_dumbbell_has_access_links_of_10_ms_and_the_round_trip_of_the_work():
    scenario = dumbbell(["reno"] * 3, **ONE)
    access = scenario["topology"]["dumbbell"]["access"]
    assert all(0.010 <= seconds(link["delay"]) <= 0.0101 for link in access)
    assert round_trips(scenario) == pytest.approx([0.2] * 4, abs=5e-4)
    # The shortest delay of the work has no room for them.
    short = round_trips(dumbbell(["reno"] * 3, **ONE, one_way_s=0.01))
    assert short == pytest.approx([0.02] * 4, abs=5e-4)


def test_round_trips_of_the_fairness_experiment_differ_by_a_factor_of_2_6():
    by_name = {e.name: e for e in EXPERIMENTS}
    for job in by_name["rtt-fairness"].jobs(QUICK):
        main = round_trips(job.scenario)[:-1]
        assert len(main) == 20
        assert (min(main), max(main)) == (
            pytest.approx(0.24, abs=5e-4),
            pytest.approx(0.62, abs=5e-4),
        )


@pytest.mark.parametrize(
    "scenario", [dumbbell(["reno"] * 3, **ONE), parking_lot(["reno"] * 4, **ONE)]
)
def test_the_background_is_between_hosts_of_its_own(scenario):
    main = {f[end] for f in scenario["flows"] if "workload" not in f for end in ("from", "to")}
    mixes = [f for f in scenario["flows"] if "workload" in f]
    assert mixes
    assert all(f["from"] not in main and f["to"] not in main for f in mixes)


def read(name, scenario):
    reading = next(r for r in READINGS if r.name == name)
    changed = reading.apply(copy.deepcopy(scenario))
    kept = {k: v for k, v in changed.items() if k != "flows"}
    return [f["transport"]["tcp"] for f in changed["flows"]], kept


def test_ns2_caps_windows_and_has_the_parameters_of_its_time():
    scenario = dumbbell(PROTOCOLS, **ONE)
    (*main, background), rest = read("ns2-2.29", scenario)
    assert rest == {k: v for k, v in scenario.items() if k != "flows"}
    assert all(tcp["profile"] == "ns2-2.29" for tcp in [*main, background])
    # Buffers are the profile's, 1,000 segments; the background has 20.
    assert not any("receive_buffer" in tcp for tcp in main)
    assert (background["receive_buffer"], background["send_buffer"]) == ("29200B", "29200B")
    control = dict(zip(PROTOCOLS, (tcp["congestion"] for tcp in main), strict=True))
    # The parameters of the time are the profile's.
    assert control == {p: p for p in PROTOCOLS}


def test_today_changes_nothing():
    scenario = dumbbell(PROTOCOLS, **ONE)
    flows, rest = read("today", scenario)
    assert flows == [f["transport"]["tcp"] for f in scenario["flows"]]
    assert rest == {k: v for k, v in scenario.items() if k != "flows"}


def test_the_stacks_judge_all_claims_and_every_claim_names_its_experiments():
    assert [r.name for r in READINGS if r.claims is None] == ["ns2-2.29", "today", "uncapped"]
    known = {e.name for e in EXPERIMENTS}
    ids = {c.id for c in STUDY.claims}
    for claim in STUDY.claims:
        assert claim.experiments
        assert set(claim.experiments) <= known
    assert all(set(r.claims or ()) <= ids for r in READINGS)
    for profile in STUDY.profiles.values():
        assert [r.name for r in STUDY.readings_of(profile)][:2] == ["ns2-2.29", "today"]


def test_a_window_of_a_thousand_segments_caps_the_rate_and_no_cap_does_not():
    scenario = dumbbell(
        ["scalable"], **{**ONE, "mbps": 200, "load": 0.0, "duration_s": 12.0}, buffer="5000 packets"
    )
    found = {}
    for name in ("ns2-2.29", "uncapped"):
        reading = next(r for r in READINGS if r.name == name)
        run = lib.run(reading.apply(copy.deepcopy(scenario)))
        found[name] = measure(run)
    # 1,000 segments a round trip of 200 ms, of a link of 200 Mbit/s.
    cap = 1000 * 1500 * 8 / 0.2 / 200e6
    assert found["ns2-2.29"]["main_utilization"] == pytest.approx(cap, rel=0.02)
    assert found["uncapped"]["main_utilization"] > 1.5 * cap
    # Headers of 40 bytes without timestamps.
    used = found["ns2-2.29"]
    assert used["flow_goodput_bps"] * 1500 / 1460 == pytest.approx(used["main_utilization"] * 200e6)


def test_the_parking_lot_is_one_of_the_topologies(monkeypatch):
    """The graph of the study is `topology.parking-lot`, without its random part of the delays."""
    monkeypatch.setattr("gargalo_studies.high_speed_tcp.scenarios.JITTER_S", 0.0)
    graph = parking_lot(
        ["cubic", "reno", "htcp", "bic"], **{**ONE, "mbps": 20, "load": 0.2, "duration_s": 20.0}
    )
    # Main flows alternate between the round trips.
    hosts = {f"{end}{i}": f"{end}{i % 2}-{i // 2}" for end in ("left", "right") for i in range(4)}
    lot = {
        "hops": 3,
        "bottleneck": {"rate": "20Mbit/s", "delay": "14ms", "queue": {"droptail": "2500 packets"}},
        "access": {"rate": "200Mbit/s", "queue": {"droptail": "100000 packets"}},
        "groups": [{"pairs": 2, "rtt": "90ms"}, {"pairs": 2, "rtt": "180ms"}],
        "cross": {"rtt": "30ms"},
    }
    flows = [
        {**f, **{end: hosts.get(f[end], f[end]) for end in ("from", "to")}} for f in graph["flows"]
    ]
    by_hand = lib.run(graph)
    by_name = lib.run({**graph, "flows": flows, "topology": {"parking-lot": lot}})
    assert by_name.flows.drop("from", "to").equals(by_hand.flows.drop("from", "to"))
    assert by_name.flow_samples.equals(by_hand.flow_samples)
    assert by_name.summary == by_hand.summary
    for run in (by_name, by_hand):
        assert run.flows["rtt_min_s"].to_list() == pytest.approx([0.09, 0.18] * 2, abs=1e-2)
    bottlenecks = [
        [link for link in run.links if "bottleneck" in link["name"]] for run in (by_name, by_hand)
    ]
    assert bottlenecks[0] == bottlenecks[1]


def test_a_parking_lot_measures_protocols_by_round_trip():
    scenario = parking_lot(
        [p for p in ("reno", "cubic") for _ in range(2)],
        **{**ONE, "mbps": 10, "load": 0.0, "duration_s": 4.0},
    )
    # CUBIC of 2005 is another implementation here, and the same protocol.
    found = measure(lib.run(ns2(scenario)))
    for p in ("reno", "cubic"):
        short, long = found[f"goodput.{p} short"], found[f"goodput.{p} long"]
        assert found[f"goodput.{p}"] == pytest.approx((short + long) / 2)
    assert found["share.cubic"] + found["share.reno"] == pytest.approx(found["main_utilization"])


def used(experiment, values, **labels):
    return [
        {"experiment": experiment, "protocol": p, "main_utilization": v, **labels}
        for p, v in values.items()
    ]


def test_protocols_are_compared_over_the_cells_that_all_have():
    equal = dict.fromkeys(PROTOCOLS, 0.4)
    rows = [
        *used("capacity", equal, load=0.2, mbps=1000),
        *used("capacity", {"htcp": 0.2}, load=0.8, mbps=1000),
    ]
    context = Context(QUICK, pl.DataFrame(rows))
    assert use_of(context, ("capacity",)) == pytest.approx(dict.fromkeys(PROTOCOLS, 0.5))
    assert all(math.isnan(v) for v in use_of(context, ("capacity",), load=0.8).values())
    assert mean_over(context, "main_utilization", "capacity", "htcp") == pytest.approx(0.4)
    assert rank_correlation({"a": 1.0, "b": 2.0}, {"a": 4.0, "b": 9.0}) == pytest.approx(1.0)
    assert math.isnan(rank_correlation({"a": 1.0, "b": math.nan}, {"a": 4.0, "b": 9.0}))


def test_a_tie_with_the_capped_protocols_is_as_good_as_first():
    best = dict.fromkeys(PROTOCOLS, 0.4) | {"bic": 0.404, "reno": 0.3, "libra": 0.2}
    lines = {"load": 0.2, "mbps": 1000, "connections": 20}

    def judged(values):
        rows = used("capacity", values, **lines) + used("parking-fairness", values, load=0.2)
        return who_scales(Context(QUICK, pl.DataFrame(rows, infer_schema_length=None))).verdict

    assert judged(best) == "reproduced"
    assert judged(best | {"bic": 0.42}) == "contradicted"
    assert judged(best | {"libra": 0.35}) == "contradicted"


def test_tables_have_a_row_a_protocol_and_a_column_a_round_trip():
    goodput = {
        f"goodput.{p} {end}": 1e6 * i for i, p in enumerate(PROTOCOLS) for end in ("short", "long")
    }
    rows = [
        {"experiment": "inter-fairness", "load": 0.5, "libra": True}
        | {f"goodput.{p}": 2e6 for p in PROTOCOLS},
        {"experiment": "inter-fairness", "load": 0.5, "libra": False}
        | {f"goodput.{p}": 3e6 for p in PROTOCOLS if p != "libra"},
        {"experiment": "parking-inter", "load": 0.5, **goodput},
    ]
    frame = pl.DataFrame([{"protocol": None, "main_utilization": None} | r for r in rows])
    assert not any("together" in t.title for t in tables(Context(QUICK, frame)))
    night = STUDY.profiles["night"]
    found = {t.title: t.frame for t in tables(Context(night, frame))}
    dumbbell_table = found["All protocols together, dumbbell"]
    assert dumbbell_table.height == 2 * len(PROTOCOLS) - 1
    lot = found["All protocols together, parking lot"]
    assert lot["protocol"].to_list() == list(PROTOCOLS)
    assert lot["long round trip, Mbit/s"].to_list() == pytest.approx(range(len(PROTOCOLS)))


def test_agreement_with_the_published_is_of_each_load_and_quantity():
    theirs_all = published()
    ours = {
        "flow_goodput_bps": "published_goodput_bps",
        "spread": "published_spread",
        "jain": "published_jain",
    }
    # Half of the published: equal ranks, and a correlation of 1.
    beside = theirs_all.with_columns(
        (pl.col(theirs) / 2).alias(name) for name, theirs in ours.items()
    )
    rows = agreement(beside)
    assert rows.height == 9
    assert rows["rank correlation"].to_list() == pytest.approx([1.0] * 9)
    assert rows["correlation"].to_list() == pytest.approx([1.0] * 9)
    assert rows["median of here over published"].to_list() == pytest.approx([0.5] * 9)
    # A missing run is not zero.
    few = beside.with_columns(
        pl.when(pl.col("protocol") == "bic").then(None).otherwise(pl.col("jain")).alias("jain")
    )
    assert agreement(few)["correlation"].to_list() == pytest.approx([1.0] * 9)


def test_longer_runs_are_those_of_libra_and_reno_alone():
    reading = next(r for r in READINGS if r.name == "longer")

    def duration(*protocols):
        return reading.apply(dumbbell(protocols, **ONE))["duration"]

    assert (duration("libra", "reno"), duration("reno"), duration("reno", "bic")) == (
        "50s",
        "50s",
        "10s",
    )


def test_hypotheses_on_parameters_repeat_only_the_runs_they_change():
    jobs = jobs_of(STUDY, replace(QUICK, settings=replace(QUICK.settings, readings=())))
    of = {
        name: {
            str({k: v for k, v in j.labels.items() if k != "reading"}): j.scenario
            for j in jobs
            if j.labels["reading"] == name
        }
        for name in ("ns2-2.29", "fast-100")
    }
    changed = [k for k, s in of["fast-100"].items() if s != of["ns2-2.29"][k]]
    assert changed
    assert all("fast" in k for k in changed)


def test_a_late_flow_that_does_not_get_its_share_has_no_time():
    def row(protocol, reached):
        took = 3.0 + len(protocol) if reached else None
        cell = {"experiment": "convergence", "protocol": protocol, "load": 0.2}
        return {**cell, "converged": float(reached), "convergence_s": took}

    frame = pl.DataFrame([row(p, p != "htcp") for p in PROTOCOLS])
    found = who_converges(Context(QUICK, frame))
    assert found.evidence[0].label == "bic, time to a fair share"
    last = found.evidence[-1]
    assert (last.label, last.value) == ("htcp, share of runs that reach a fair share", 0.0)
    assert "htcp needs longer than 8 s" in found.explanation
