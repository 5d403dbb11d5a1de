"""The study mptcp-schedulers: its plan, its verdicts on made-up runs, and a few real runs."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from gargalo import resolve, run, studies
from gargalo.studies import find, positive
from gargalo.studies.model import Context
from gargalo.studies.running import jobs_of, verdicts
from gargalo.sweeps.job import Identifier
from gargalo_studies.mptcp_schedulers import STUDY
from gargalo_studies.mptcp_schedulers import experiments as ex
from gargalo_studies.mptcp_schedulers import readings as rd
from gargalo_studies.mptcp_schedulers import scenarios as sc
from gargalo_studies.mptcp_schedulers.cells import (
    alike,
    fine,
    gains,
    leads,
    place_text,
    ratio,
    trails,
)
from gargalo_studies.mptcp_schedulers.figures import figures, tables
from gargalo_studies.mptcp_schedulers.measure import gap, measure
from gargalo_studies.mptcp_schedulers.networks import BACKGROUNDS, hand_over, shared


def test_every_cell_of_the_plan_is_a_valid_scenario():
    assert find("mptcp-schedulers") is STUDY
    identifier = Identifier()
    for profile in STUDY.profiles.values():
        jobs = jobs_of(STUDY, profile)
        first = [j for j in jobs if j.repeat == 0]
        labels = [json.dumps(j.labels, sort_keys=True) for j in first]
        assert len(labels) == len(set(labels))
        known = {e.name for e in STUDY.experiments}
        left_out = {"uncoupled", "traces"} if profile.name == "quick" else set()
        assert {j.labels["experiment"] for j in jobs} == known - left_out
        if profile.name == "quick":
            # Every fifth: they differ by the change of their reading and by a label.
            assert len({identifier.task(j).run for j in first[::5]}) > 250


def test_the_grid_is_that_of_the_work():
    full = STUDY.profiles["full"]
    made = {
        f.__name__: Counter(json.dumps(j.labels) for j in f(full))
        for f in (ex.by_loss, ex.by_exp, ex.by_mesh)
    }
    assert (len(made["by_loss"]), len(made["by_exp"])) == (208, 128)
    assert min(n for cells in made.values() for n in cells.values()) >= 5
    published = [[sc.mixed(n).losses[1], sc.mixed(n).rates[1], sc.mixed(n).delays_ms[1]] for n in sc.EXPS]  # fmt: skip
    assert published == [
        [loss, rate, delay] for loss in (0, 0.01) for rate in (10, 25) for delay in (5, 10)
    ]
    assert sc.congested(0.03).losses == (0.03,) * 5
    assert [sc.mixed(n).best for n in (1, 2, 3, 4, 5, 8)] == [0, 0, 4, 4, 0, 0]
    assert sc.mixed(4).only(4) == sc.Paths((100.0,), (80.0,), (0.0,))


def reading(name):
    """The reading of that name."""
    return next(r for r in STUDY.readings if r.name == name)


def transport(name, made, kind="mptcp"):
    """The resolved transport of a scenario in a reading, and its paths."""
    resolved = resolve(reading(name).apply(copy.deepcopy(made)))
    return resolved["flows"][0]["transport"][kind], resolved["topology"]["multipath"]["paths"]


def test_the_kernel_of_the_work():
    made = sc.transfer(sc.mixed(8), sc.mptcp(sc.BALIA, sc.LWS, sc.FULL), 10)
    options, paths = transport(rd.THEN, made)
    assert options["congestion"]["balia"]["arithmetic"] == "linux"
    assert options["congestion"]["balia"]["whole_ratio"] is True
    found = [options[k] for k in ("receive_buffer", "recovery", "penalisation", "profile")]
    assert found == ["3MiB", "fack", "halve", rd.THEN]
    up, down = (paths[4][d] for d in ("up", "down"))
    assert (up["rate"], up["delay"], up["loss"]) == ("100Mbit/s", "80.1ms", 0.12)
    assert up["queue"] == {"droptail": "1000 packets"}
    assert down["delay"] == "100us"
    tcp, _ = transport(rd.THEN, sc.transfer(sc.mixed(1), sc.tcp("cubic"), 1), "tcp")
    assert list(tcp["congestion"]) == ["cubic-linux"]
    today, _ = transport(rd.TODAY, made)
    found = [today[k] for k in ("send_buffer", "recovery", "penalisation", "profile")]
    assert found == ["4MiB", "rack-tlp", "cap", "linux-6"]
    assert today["congestion"]["balia"]["arithmetic"] == "exact"


def test_hypotheses_change_what_they_say():
    made = sc.transfer(sc.mixed(4), sc.mptcp(sc.OLIA, sc.LL, sc.FULL), 10)
    options, paths = transport("queue-latency", made)
    assert [p["up"]["queue"]["droptail"] for p in paths] == ["5ms", "10ms", "20ms", "40ms", "80ms"]
    assert {p["up"]["delay"] for p in paths} == {"100us"}
    assert options["penalisation"] == "halve"
    _, paths = transport(
        "queue-latency", sc.transfer(sc.congested(0.0), sc.mptcp(sc.OLIA, sc.LL, sc.FULL), 10)
    )
    assert paths[0]["up"]["queue"] == {"droptail": "5ms"}
    options, paths = transport("queue-latency-unhelped", made)
    assert (options["penalisation"], options["opportunistic_retransmission"]) == ("off", "off")
    assert paths[4]["up"]["queue"] == {"droptail": "80ms"}
    options, paths = transport("unhelped", made)
    assert (options["penalisation"], paths[4]["up"]["delay"]) == ("off", "80.1ms")
    assert transport("short-queues", made)[1][0]["up"]["queue"] == {"droptail": "100 packets"}
    assert transport("large-buffers", made)[0]["receive_buffer"] == "16MiB"
    options, _ = transport("real-numbers", made)
    assert options["congestion"]["olia"]["arithmetic"] == "exact"
    assert options["penalisation"] == "halve"


def test_messages_go_where_the_upload_goes():
    made = sc.scenario(
        sc.topology(sc.congested(0.0)), [sc.messages(sc.mptcp(sc.LIA, sc.LL, sc.SINGLE), 6)]
    )
    done = run(reading(rd.THEN).apply(made))
    found = measure(done)
    assert done.flows["completed_objects"][0] == 2
    assert found["completed"] == 1.0
    assert sum(found[f"share.path{i}"] for i in range(5)) == pytest.approx(1.0)
    assert 20e6 < found["rate_bps"] < 260e6
    up = {k["name"]: k["sent_packets"] for k in done.links if k["direction"] == "up"}
    assert sum(up.values()) > 6e6 / 1500


AS_PUBLISHED = {sc.LL: 1.0, sc.LWS: 1.07, sc.LTS: 1.04, sc.HSR: 1.0}


def goodput(x, changes):
    """Goodput in Mbit/s of a made-up run as the work and our claims have it."""
    c, s = x["congestion"], x.get("scheduler", sc.LL)
    base = {sc.LIA: 100.0, sc.OLIA: 100.0, sc.BALIA: 100.0, sc.WVEGAS: 150.0}.get(c, 120.0)
    if x["experiment"] == "single path":
        return 130.0 if c == "cubic" else 100.0
    if x["experiment"] == "penalisation":
        if x["loss"] == 0:
            return 70.0 * changes.get("unpunished", 1.0)
        return goodput({**x, "experiment": "congested"}, changes)
    if "loss" in x and x["experiment"] in ("congested", "mesh"):
        slope = {sc.BALIA: 1.5, sc.WVEGAS: 0.5}.get(c, 1.0)
        base *= 1.2 * math.exp(-10 * slope * x["loss"]) if x["loss"] else 1.0
        if c == sc.WVEGAS and x["loss"]:
            base = 140 * math.exp(-5 * x["loss"])
        if c != sc.BALIA and x["loss"] >= 0.04:
            base *= AS_PUBLISHED.get(s, 1.0) if changes.get("lossy", True) else 1.0
    elif x["experiment"] == "mixed" and x["exp"] < 5:
        # Over eight experiments 2% more: four of them 4%, under LIA and OLIA 8%.
        if c in (sc.LIA, sc.OLIA) and s != sc.LL:
            base *= 1.08 if x["exp"] != 4 else 1.12
        if c == sc.BALIA and s != sc.LL:
            base *= 0.94
    elif x["experiment"] == "mesh":
        base *= 2.2 if x["exp"] in (3, 4) and c in (sc.OLIA, sc.BALIA) else 0.8
    elif x["experiment"] == "schedulers":
        base = {sc.OTHERS[0]: 200.0, "adaptive": 180.0}.get(s, 150.0)
    elif x["experiment"] == "quic":
        base = {"quic": 100.0}.get(x["protocol"], changes.get("mptcp", 120.0))
    return base


def made_up(profile, **changes):
    """Runs as the work and our claims have them, with changes."""
    rows = []
    profile = replace(profile, settings=replace(profile.settings, readings=(rd.THEN,)))
    for job in jobs_of(STUDY, profile):
        x = dict(job.labels)
        noise = 1 + 0.0005 * (job.repeat or 0)
        rows.append(
            {
                **x,
                "repeat": job.repeat,
                "rate_bps": 1e6 * goodput(x, changes) * noise,
                "others_bps": (90e6 if x.get("congestion") == sc.LIA else 80e6) * noise,
                **{f"duplicate_acks.path{i}": 7.0 for i in range(5)},
                "gap_s": changes.get("gap", 0.2) * noise,
                "before_bps": 5e7,
                "after_bps": 4.9e7 * noise,
                **{f"share.path{i}": 0.2 for i in range(5)},
                **{f"{m}.{n:02}": 1e6 for n in (1, 2, 3) for m in ("out_of_order", "rate")},
            }
        )
    return Context(profile, pl.from_dicts(rows, infer_schema_length=None))


@pytest.fixture(scope="module")
def quick():
    """The quick profile in the stack of the work's time."""
    profile = STUDY.profiles["quick"]
    return replace(profile, repeat=3, settings=replace(profile.settings, readings=(rd.THEN,)))


def test_claims_decide_on_runs_as_the_work_has_them(quick):
    found = {c.id: c for c in verdicts(STUDY, made_up(quick))}
    told = {i: (c.verdict, c.explanation) for i, c in found.items() if c.verdict != "reproduced"}
    assert told == {}


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("lossy-lws", {"lossy": False}),
        ("lossy-lts", {"lossy": False}),
        ("penalisation", {"unpunished": 3.0}),
        ("hand-over", {"gap": 1.2}),
        ("mpquic", {"mptcp": 90.0}),
    ],
)
def test_claims_are_contradicted_by_other_runs(quick, claim, changes):
    rows = {c.id: c for c in verdicts(STUDY, made_up(quick, **changes))}
    assert rows[claim].verdict == "contradicted"
    assert rows[claim].explanation


def test_without_runs_claims_are_inconclusive_with_the_reason(quick):
    for claim in STUDY.claims:
        nothing = claim.check(Context(quick, pl.DataFrame()))
        assert nothing.verdict == "inconclusive", claim.id
        assert nothing.explanation, claim.id


@pytest.mark.parametrize(
    ("decide", "values"),
    [
        (alike, (1.001, 0.999, 1.0)),
        (leads, (1.3, 1.31, 1.3)),
        (trails, (0.7, 0.71, 0.7)),
        (lambda found: fine(found, 1.02, 1.06), (1.04, 1.041, 1.04)),
    ],
)
def test_differences_of_two_percent_need_three_seeds(decide, values):
    assert decide(positive(list(values))) is True
    assert decide(positive(list(values[:2]))) is None
    assert decide(positive(list(values[:1]))) is None


def test_no_gain_of_a_scheduler_is_decided_by_two_seeds(quick):
    whole = made_up(quick)
    few = replace(whole, frame=whole.frame.filter(pl.col("repeat") < 2))
    claims = {c.id: c for c in STUDY.claims}
    for name in ("lossy-lws", "lossy-lts", "lossy-same", "average-gain", "balia-ll", "lossy-alike"):
        assert claims[name].check(few.of(STUDY.readings[0])).verdict != "reproduced", name


def test_figures_and_tables_of_all_kinds(quick):
    context = made_up(quick)
    drawn = figures(context)
    assert {f.group for f in drawn} == {"E1", "E2", "paths", "spread", "new"}
    assert len({f.title for f in drawn}) == len(drawn)
    titles = {e.title for e in STUDY.experiments if e.name not in ("uncoupled", "traces")}
    shown = tables(context)
    of_cells = [t for t in shown if t.group == "all cells"]
    assert {t.title for t in of_cells} == titles
    numbers, kernel = (t.frame for t in shown if t.group == "numbers")
    assert numbers.height == 2 * (len(ex.Levels().losses) + len(sc.EXPS)) - 3
    assert kernel["place"].to_list() == [place_text(p) for p in ex.FEW]
    assert kernel["simulated_bps_low"].null_count() == 0
    cells = of_cells[0].frame
    assert (cells.height, set(cells["runs"])) == (80, {3})
    assert "duplicate_acks.path4" in cells.columns
    assert set(of_cells[1].frame["runs"]) == {3, 4}
    assert figures(Context(quick, pl.DataFrame())) == []
    assert tables(Context(quick, pl.DataFrame())) == []


def test_ratios_pair_seeds(quick):
    rates = {sc.LL: (1.0, 2.0, 4.0), sc.LWS: (1.1, 2.2, 4.48)}
    rows = [
        {"experiment": "mixed", "exp": 4, "congestion": sc.OLIA, "scheduler": s, "repeat": r, "rate_bps": x}
        for s, xs in rates.items()
        for r, x in enumerate(xs)
    ]  # fmt: skip
    context = Context(quick, pl.DataFrame(rows))
    found = gains(context, "mixed", [{"exp": 4}], sc.LWS, (sc.OLIA,))
    assert found.mean == pytest.approx((1.1 + 1.1 + 1.12) / 3)
    assert found.high == pytest.approx(1.1353, abs=1e-3), (
        "of ratios, not of rates that differ fourfold"
    )
    cell = {"exp": 4, "congestion": sc.OLIA}
    assert ratio(context, ("mixed", {**cell, "scheduler": sc.HSR}), ("mixed", cell)).mean is None
    assert (place_text({"loss": 0.01}), place_text({"exp": 4})) == ("E1 1%", "Exp4")


def test_an_upload_uses_all_paths_and_is_measured():
    scenario = sc.transfer(sc.mixed(1), sc.mptcp(sc.LIA, sc.LL, sc.FULL), 2)
    done = run(scenario)
    found = measure(done)
    assert done.to_json()["subflows"][0]["link"] == "path0"
    assert len(done.to_json()["subflows"]) == 25
    assert found["completed"] == 1.0
    assert 10e6 < found["rate_bps"] < 50e6
    assert sum(found[f"share.path{i}"] for i in range(5)) == pytest.approx(1.0)
    assert all(found[f"queue.path{i}"] > 0 for i in range(5))
    assert all(found[f"duplicate_acks.path{i}"] >= 0 for i in range(5))
    assert not [k for k in found if k.startswith("out_of_order.")]


def test_the_course_of_a_run_is_kept_where_it_is_asked_for():
    record = {"flows": True, "links": True, "events": False, "interval": "100ms"}
    transport = sc.mptcp(sc.OLIA, sc.LL, sc.SINGLE)
    found = measure(run(sc.transfer(sc.congested(0.0), transport, 1e4, limit_s=3, record=record)))
    assert {f"rate.0{n}" for n in (1, 2, 3)} <= set(found)
    assert found["completed"] == 0.0
    assert 100e6 < found["rate.03"] < 260e6
    assert max(v for k, v in found.items() if k.startswith("queue.0")) > 0.005


def test_background_flows_share_each_path():
    for background in BACKGROUNDS:
        made = shared(sc.congested(0.0), sc.mptcp(sc.LIA, sc.LL, sc.SINGLE), background, 4)
        done = run(made)
        found = measure(done)
        assert done.flows.height == 6
        assert sum(found[f"share.path{i}"] for i in range(5)) == pytest.approx(1.0)
        assert found["others_bps"] > 20e6
        assert 10e6 < found["rate_bps"] < 240e6


def test_a_hand_over_is_measured():
    found = measure(run(hand_over("cubic", sc.LL, backup=False)))
    assert 40e6 < found["before_bps"] < 70e6
    assert 10e6 < found["alone_bps"] < 20e6
    assert 0.0 <= found["gap_s"] < 5.0
    times = [9.99, 10.0, 10.01, 10.02, 10.5, 10.51, 20.0, 20.01]
    samples = pl.DataFrame({"time_s": times, "delivered_bytes": [1, 2, 3, 3, 4, 5, 6, 7]})
    assert gap(samples)["gap_s"] == pytest.approx(20.0 - 10.51 - 0.01)


def test_a_part_of_the_study_from_runs_to_the_page(tmp_path):
    def few(profile):
        cells = ex.cells_of(({"loss": 0.01},), (sc.LL,), (sc.LIA,))
        return ex.plain(profile, "congested", cells)

    profile = replace(
        STUDY.profiles["quick"],
        settings=replace(STUDY.profiles["quick"].settings, mb=1.0, readings=(rd.THEN,)),
    )
    study = replace(
        STUDY,
        experiments=(studies.Experiment("congested", "few", few),),
        profiles={"quick": profile},
    )
    outcome = studies.run_study(study, "quick", directory=tmp_path / "study", repeat=3, workers=1)
    assert outcome.sweep.failures == []
    assert outcome.sweep.frame().height == 3
    assert "single mesh" in outcome.page.read_text(encoding="utf-8")
    again = studies.run_study(study, "quick", directory=tmp_path / "study", repeat=3, workers=1)
    assert (again.sweep.done, again.sweep.reused) == (0, 3)
