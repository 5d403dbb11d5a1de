"""The study userspace-bbr: its plan, its verdicts on made-up runs, and a few real runs in both worlds."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from gargalo import _core, lab, run, studies
from gargalo.studies import Settings, find
from gargalo.studies.model import Context
from gargalo.studies.running import change, jobs_of, kernel_controls, possible, verdicts
from gargalo.sweeps.job import Identifier
from gargalo_studies.userspace_bbr import STUDY, traces
from gargalo_studies.userspace_bbr import experiments as ex
from gargalo_studies.userspace_bbr.cells import place_text
from gargalo_studies.userspace_bbr.claims import agreed, sign_test
from gargalo_studies.userspace_bbr.fidelity import SAME, cells, table
from gargalo_studies.userspace_bbr.figures import figures, tables
from gargalo_studies.userspace_bbr.measure import measure
from gargalo_studies.userspace_bbr.readings import READINGS
from gargalo_studies.userspace_bbr.scenarios import (
    KERNELS,
    LAB,
    SENDERS,
    kernel,
    ours,
    transfer,
    twin,
)


@pytest.fixture
def quick(tmp_path):
    """The quick profile with its traces."""
    return traces.prepare_all(STUDY.profiles["quick"], tmp_path)


def of(reading, profile):
    """The profile with one reading."""
    return replace(profile, settings=replace(profile.settings, readings=(reading,)))


def needs_lab(congestion="cubic"):
    """Skip, and say why, where runs in real time are impossible."""
    reason = lab.refusal(congestion)
    if reason is not None:
        pytest.skip(f"no lab here: {reason}")


def test_every_cell_of_the_plan_is_a_valid_scenario(tmp_path):
    assert find("userspace-bbr") is STUDY
    for name, least in (("quick", 1000), ("full", 6000)):
        profile = traces.prepare_all(STUDY.profiles[name], tmp_path / name)
        jobs = jobs_of(STUDY, profile if name == "quick" else of("lab", profile))
        first = [j for j in jobs if j.repeat == 0]
        labels = [json.dumps(j.labels, sort_keys=True) for j in first]
        assert len(labels) == len(set(labels))
        assert {j.labels["experiment"] for j in jobs} == {e.name for e in STUDY.experiments}
        if name == "quick":
            assert {j.labels["reading"] for j in jobs} == {r.name for r in READINGS}
        # One of each sender in each reading, and of each experiment.
        few = {(j.labels["reading"], j.labels["sender"], j.world): j for j in first}
        few |= {j.labels["experiment"]: j for j in first}
        identifier = Identifier()
        assert len({identifier.task(j).run for j in few.values()}) > 25
        assert len(jobs) > least


def test_the_grid_is_that_of_the_work(quick):
    jobs = [
        j for j in jobs_of(STUDY, of("lab", quick)) if j.labels["experiment"] in ("loss", "rate")
    ]
    cells = [j.labels for j in jobs if j.labels["experiment"] == "loss"]
    assert {x["loss"] for x in cells} == {0.0, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2}
    assert {j.labels["mbps"] for j in jobs} == {6.0, 12.0, 18.0, 24.0}
    assert {(x["sender"], x["world"]) for x in cells} == {(s.name, s.world) for s in SENDERS}
    assert {s.name for s in KERNELS} == {"kernel reno", "kernel cubic", "kernel bbr"}
    assert {(s.congestion, s.paced) for s in LAB} == {
        (c, p) for c in ("reno", "cubic", "bbr") for p in (True, False)
    }
    # Only what knows chance has all seeds, and all senders have the same; simulated ones of the work have more.
    few = [j for j in jobs if j.labels["experiment"] == "loss" and j.repeat < quick.repeat]
    seeds = Counter((j.labels["loss"], j.seed) for j in few)
    assert set(seeds.values()) == {len(SENDERS)}
    assert len([s for loss, s in seeds if loss == 0.0]) == 3
    assert len([s for loss, s in seeds if loss == 0.01]) == quick.repeat
    more = {j.labels["sender"] for j in jobs if j.repeat >= quick.repeat}
    assert more == {s.name for s in ex.SIMULATED}


def test_senders_of_each_world():
    scenario = transfer(kernel("bbr"), "12Mbit/s", 0, 0.01, 1)
    assert scenario["hosts"] == {"client": {"stack": "kernel"}, "server": {"stack": "kernel"}}
    scenario = transfer(ours("bbr", "lab", paced=False), "12Mbit/s", 0, 0.01, 1)
    assert scenario["hosts"] == {"server": {"stack": "kernel"}}
    assert scenario["flows"][0]["transport"]["tcp"]["pacing"] == "off"
    assert "hosts" not in transfer(ours("bbr", "sim", paced=False), "12Mbit/s", 0, 0.01, 1)
    for control in ("cubic", "bbr"):
        tcp = twin(kernel(control)).transport["tcp"]
        assert tcp == {"profile": "linux-6", "congestion": control}
    bare = replace(twin(kernel("bbr")), sack=False).transport["tcp"]
    assert (bare["profile"], bare["sack"], bare["recovery"]) == ("linux-6", False, "newreno")
    for in_lab, simulated in SAME:
        assert (in_lab.world, simulated.world) == ("lab", "sim")
        assert in_lab.transport == simulated.transport


def test_readings_give_bbr_its_stack():
    readings = {r.name: r for r in READINGS}

    def tcp_of(name, sender):
        made = readings[name].apply(copy.deepcopy(transfer(sender, "12Mbit/s", 0, 0.01, 1)))
        assert made["flows"][0]["workload"]["bulk"]["bytes"] == (
            "1000000B" if name in ("lab", "short") or sender.world == "lab" else "50MB"
        )
        return made["flows"][0]["transport"]["tcp"]

    bbr = ours("bbr", "sim", paced=False)
    then = tcp_of("2023", bbr)
    assert (then["profile"], then["send_buffer"], then["pacing"]) == ("smoltcp", "256KiB", "off")
    changed = {
        "64-kib": ("send_buffer", "65535B"),
        "96-kib": ("send_buffer", "96KiB"),
        "128-kib": ("send_buffer", "128KiB"),
        "64-mib": ("send_buffer", "64MiB"),
        "newreno": ("recovery", "newreno"),
        "rto-1s": ("min_rto", "1s"),
        "two-samples": ("congestion", {"bbr": {"bandwidth_window": 2}}),
        "gain-1": ("congestion", {"bbr": {"cwnd_gain": 1, "extra_acked_gain": 0}}),
        "short": ("profile", "smoltcp"),
        "no-sack": ("recovery", "newreno"),
    }
    assert {"2023", "today", "lab", *changed} == set(readings)
    for name, (option, value) in changed.items():
        assert tcp_of(name, bbr) == {**(then if name != "no-sack" else {}), **tcp_of(name, bbr)}
        assert tcp_of(name, bbr)[option] == value
    assert tcp_of("today", bbr) == tcp_of("lab", bbr) == bbr.transport["tcp"]
    # The kernel's side is the profile linux-6 in all of them, and the lab is as it is.
    cubic = twin(kernel("cubic"))
    assert all(tcp_of(r, cubic) == cubic.transport["tcp"] for r in readings)
    rival = tcp_of("2023", ours("cubic", "sim", paced=False))
    assert (rival["profile"], rival["congestion"]) == ("linux-6", "cubic")
    in_lab = ours("bbr", "lab", paced=False)
    assert all(tcp_of(r, in_lab) == in_lab.transport["tcp"] for r in readings)


def test_the_lab_can_be_left_out(quick):
    jobs = jobs_of(STUDY, of("lab", change(quick, {"lab": "false"})))
    assert {j.world for j in jobs} == {"sim"}


def test_worlds_have_different_identifiers(quick):
    jobs = ex.by_loss(quick)
    sim = next(j for j in jobs if j.world == "sim")
    identifier = Identifier()
    assert identifier.task(sim).run != identifier.task(replace(sim, world="lab")).run
    assert identifier.task(replace(sim, world="lab")).world == "lab"


def test_traces_are_generated_once_or_taken_from_a_directory(tmp_path):
    profile = STUDY.profiles["quick"]
    made = traces.prepare(profile, tmp_path)
    assert traces.names(made) == ["cellular-a", "cellular-b"]
    files = {traces.trace_of(made, "cellular-a", r) for r in range(profile.repeat)}
    assert len(files) == profile.repeat
    facts = [
        _core.trace_info((tmp_path / "traces" / f"{n}-0.trace").read_text()) for n in traces.MODELS
    ]
    assert facts[0]["rate_mean_bps"] > 2 * facts[1]["rate_mean_bps"]
    assert all(f["longest_gap_s"] > 0.3 for f in facts)
    own = tmp_path / "own"
    own.mkdir()
    with pytest.raises(ValueError, match=r"no file there ends in \.down"):
        traces.prepare(change(profile, {"traces": str(own)}), tmp_path)
    (own / "city.down").write_text("1\n2\n3\n")
    found = traces.prepare(change(profile, {"traces": str(own)}), tmp_path)
    assert traces.names(found) == ["city.down"]
    assert traces.trace_of(found, "city.down", 3) == str(own / "city.down")
    whole = traces.prepare_all(change(profile, {"traces": str(own)}), tmp_path)
    assert traces.set_of(whole) == {"city.down": str(own / "city.down")}


def test_the_set_of_traces_is_a_grid(quick):
    made = traces.set_of(quick)
    assert len(made) == 40, "of 48, eight are the same as another"
    jobs = ex.trace_set(quick)
    assert len(jobs) == len(made) * 2 * 3
    assert {j.labels["queue_packets"] for j in jobs} == {0, 100}
    assert {j.world for j in jobs} == {"sim"}
    texts = {Path(f).read_text() for f in made.values()}
    assert len(texts) == len(made)


def test_signs_decide():
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 5) == 1.0
    assert sign_test(10, 0) == pytest.approx(2 / 1024)
    assert sign_test(2, 46) == sign_test(46, 2) < 1e-10
    assert [agreed(x) for x in ([True, True], [False, False], [True, False], [True, None])] == [
        True,
        False,
        None,
        None,
    ]


def test_settings_of_a_profile_can_be_changed():
    profile = STUDY.profiles["quick"]
    changed = change(profile, {"mb": "2", "queue_packets": "[50]", "traces": "x y"})
    assert (changed.settings.mb, changed.settings.queue_packets) == (2.0, [50])
    assert changed.settings.traces == "x y"
    assert profile.settings.mb == 12.0
    assert [r.name for r in STUDY.readings_of(change(profile, {"readings": '["today"]'}))] == [
        "today"
    ]
    with pytest.raises(KeyError, match='no setting "bm"; did you mean "mb"'):
        change(profile, {"bm": "2"})
    with pytest.raises(KeyError, match='no setting "_files"'):
        change(profile, {"_files": "{}"})
    with pytest.raises(TypeError, match="has Levels, not OfAnother"):
        type("OfAnother", (Settings,), {}).of(profile)
    for name, text in (("mb", "many"), ("mix_s", "1.5"), ("queue_packets", "50")):
        with pytest.raises(ValueError, match=name):
            change(profile, {name: text})


def made_up(profile, reading="lab", **changes):
    """Runs as the work and our claims have them; changes of goodput by sender and experiment."""
    return Context(profile, frame_of(profile, reading, **changes))


def frame_of(profile, reading, **changes):
    profile = of(reading, profile)
    base = {"kernel reno": 4.66, "kernel cubic": 4.61, "bbr, unpaced": 6.39, "bbr, paced": 11.6}
    at_1_percent = {"bbr, unpaced": 11.2, "kernel bbr": 11.2, "bbr, paced": 11.2}
    rows = []
    for job in jobs_of(STUDY, profile):
        x = dict(job.labels)
        noise = 1 + 0.001 * (job.repeat or 0)
        steady = (x["congestion"] == "bbr") != changes.get("unsteady", False)
        world = x["world"]
        name = x["sender"]
        if world == "sim":
            pairs = {twin(k).name: k.name for k in KERNELS}
            name = pairs.get(name, name) if not changes.get("same") else name
        rate = base.get(name, 5.0)
        if x["experiment"] == "rate":
            rate = {"kernel reno": 5.26, "kernel cubic": 4.95, "bbr, unpaced": 7.35}.get(name, 12.0)
            low, high = {6.0: (0.73, 0.81), 24.0: (0.5, 0.24)}.get(x["mbps"], (None, None))
            if low is not None and not name.startswith("bbr, paced"):
                rate = x["mbps"] * (low if name == "bbr, unpaced" else high)
            elif name == "bbr, unpaced":
                rate = (4 * 7.35 - 6 * 0.73 - 12) / 2
            elif name == "kernel reno":
                rate = (4 * 5.26 - 6 * 0.81 - 24 * 0.24) / 2
            elif name == "kernel cubic":
                rate = (4 * 4.95 - 6 * 0.81 - 24 * 0.24) / 2
        if x["experiment"] == "loss" and x["loss"] == 0.01:
            rate = {"bbr, unpaced": 2.44 * 2, "kernel reno": 2.0, "kernel cubic": 2.0}.get(
                name, rate
            )
        if x["experiment"] == "traces":
            rate = {"bbr, unpaced": 5.3, "kernel cubic": 4.0, "kernel reno": 3.7}.get(name, 4.0)
            if x["trace"] == "cellular-b" and name == "kernel cubic":
                rate = 5.4
        if x["experiment"] == "trace set":
            ahead = not x["trace"].startswith("6 ")
            rate = {"bbr, unpaced": 6.0 if ahead else 3.0, "kernel reno": 2.0}.get(name, 4.0)
        if x["experiment"] == "pacing":
            rate = at_1_percent.get(x["sender"], 11.0)
            if x["sender"] == "bbr, unpaced":
                rate *= changes.get("unpaced", 0.5)
        if not x["sack"]:
            rate = changes.get("bare", 1.5)
        if world == "sim":
            rate *= changes.get("sim", 1.0)
        shallow = x.get("queue_packets") in (ex.BDP // 2, ex.BDP)
        first = x["congestion"]
        share = (0.6 if first in ("bbr2", "bbr3") else 0.8) if shallow else 0.3
        if x["experiment"] == "parking lot":
            share = {"bbr": 0.6, "bbr3": 0.4}.get(first, 0.2)
        good = x.get("discipline") == "fq-codel" or first.startswith("bbr")
        rows.append(
            {
                **x,
                "repeat": job.repeat,
                "rate_bps": 1e6 * rate * (noise if steady else 2 * noise - 1),
                "share": share * noise,
                "mos": (4.3 if good else 2.0) * noise,
                "game_p95_s": 0.06,
                "bitrate_bps": (5e6 if first.startswith("bbr") else 1e6) * noise,
                "late_p99_s": 0.001 if world == "lab" else None,
            }
        )
    return pl.from_dicts(rows, infer_schema_length=None)


@pytest.mark.parametrize(
    ("reading", "else_"),
    [
        # What the made-up numbers do not have: a mean over A with 1% in it, and one stack in two worlds.
        ("lab", {"loss-means", "same-stack", "traces-order", "traces-lead"}),
        ("2023", {"loss-means", "fidelity", "same-stack", "sack-cost"}),
    ],
)
def test_claims_decide_on_runs_as_the_work_has_them(quick, reading, else_):
    found = {c.id: c for c in judged(made_up(quick, reading), reading)}
    told = {i: (c.verdict, c.explanation) for i, c in found.items() if c.verdict != "reproduced"}
    assert set(told) <= else_, told


def judged(context, reading="lab"):
    """The verdicts on the runs of one reading."""
    return verdicts(STUDY, replace(context, profile=of(reading, context.profile)))


def test_the_order_on_traces_needs_significance_at_both_limits(quick):
    frame = frame_of(quick, "2023")
    order = next(c for c in STUDY.claims if c.id == "traces-order")
    assert order.check(Context(quick, frame)).verdict == "reproduced"
    bbr = (pl.col("experiment") == "trace set") & (pl.col("congestion") == "bbr")
    limited = bbr & (pl.col("queue_packets") == 100)
    for which, slower, verdict in (
        (bbr, 0.5, "contradicted"),
        (limited, 0.5, "inconclusive"),
        (limited, 0.0, "inconclusive"),
    ):
        rate = pl.when(which).then(slower * pl.col("rate_bps") + (1 - slower) * 4e6)
        if slower == 0.5:
            rate = pl.when(which).then(0.5 * pl.col("rate_bps"))
        changed = frame.with_columns(rate.otherwise(pl.col("rate_bps")).alias("rate_bps"))
        assert order.check(Context(quick, changed)).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("fidelity", {"sim": 1.3}),
        ("pacing-cost", {"unpaced": 0.99}),
        ("same-stack", {"sim": 1.1}),
        ("sack-cost", {"bare": 4.8}),
        ("variation", {"unsteady": True}),
    ],
)
def test_claims_are_contradicted_by_other_runs(quick, claim, changes):
    rows = {c.id: c for c in judged(made_up(quick, **changes))}
    assert rows[claim].verdict == "contradicted"
    assert rows[claim].explanation


def test_without_the_lab_claims_are_inconclusive_with_the_reason(quick):
    whole = made_up(quick)
    reason = "this system does not let ordinary users make namespaces"
    simulated = whole.frame.filter(pl.col("world") == "sim")
    context = Context(quick, simulated, {"lab": reason})
    found = {c.id: c for c in judged(context)}
    alone = {i for i, c in found.items() if c.verdict != "inconclusive"}
    assert alone == {"later-bbr", "calls", "films", "parking-lot"}
    for claim in found.values():
        told = reason in claim.explanation or claim.id.startswith("traces-")
        assert claim.id in alone or told, claim.id
    for claim in STUDY.claims:
        nothing = claim.check(Context(quick, pl.DataFrame()))
        assert nothing.verdict == "inconclusive", claim.id
        assert nothing.explanation, claim.id


def test_what_a_machine_cannot_do_is_left_out_with_the_reason(quick, monkeypatch):
    jobs = jobs_of(STUDY, of("lab", quick))
    monkeypatch.setattr(lab, "refusal", lambda c="cubic": "no such module" if c == "bbr" else None)
    kept, missing = possible(jobs)
    assert missing == {"lab: bbr": "no such module"}
    left_out = [j for j in jobs if j not in kept]
    assert left_out
    assert {j.labels["sender"] for j in left_out} == {"kernel bbr", "kernel bbr, no SACK"}
    assert kernel_controls(left_out[0]) == ["cubic", "bbr"]
    monkeypatch.setattr(lab, "refusal", lambda _="cubic": "no namespaces")
    kept, missing = possible(jobs)
    assert missing == {"lab": "no namespaces"}
    assert {j.world for j in kept} == {"sim"}


def test_figures_and_tables_of_all_kinds(quick):
    context = made_up(quick)
    drawn = figures(context)
    assert {f.group for f in drawn} == {"loss", "rate", "traces", "fidelity", "new"}
    assert len({f.title for f in drawn}) == len(drawn)
    assert {t.title for t in tables(context)} >= {"The simulator against the lab", "Two flows"}
    rows = table(context)
    assert rows["ratio"].null_count() == 0
    assert figures(Context(quick, pl.DataFrame())) == []
    assert tables(Context(quick, pl.DataFrame())) == []


def test_cells_pair_the_same_seeds(quick):
    labels = {"experiment": "loss", "mbps": 12.0, "loss": 0.001, "queue_packets": 0}
    labels["reading"] = "lab"
    rates = {"lab": (1.0, 2.0, 4.0), "sim": (1.1, 2.2, 4.48)}
    rows = [
        {**labels, **s.labels, "repeat": r, "rate_bps": x}
        for s in (kernel("bbr"), twin(kernel("bbr")))
        for r, x in enumerate(rates[s.world])
    ]
    (cell,) = cells(Context(quick, pl.DataFrame(rows)), ex.TWINS)
    assert cell.ratio.mean == pytest.approx((1.1 + 1.1 + 1.12) / 3)
    assert cell.ratio.high == pytest.approx(1.1353, abs=1e-3), (
        "of ratios, not of rates that differ fourfold"
    )
    assert not cell.close(0.05)
    assert cell.text == "kernel bbr, 12 Mbit/s, 0.1% lost"
    assert place_text({"trace": "city", "queue_packets": 100}) == "city, queue of 100"


def test_what_does_not_end_counts_with_what_it_had():
    scenario = transfer(ours("reno", "sim", paced=False), "1Mbit/s", 0, 0.0, 10)
    found = measure(run(scenario, set={"duration": "8s"}))
    assert found["completed"] == 0.0
    assert 0.7e6 < found["rate_bps"] < 1e6


def test_the_same_packets_are_lost_in_both_worlds():
    needs_lab()
    for sender, other in ((kernel("reno"), twin(kernel("reno"))), SAME[0]):
        found = {
            s.world: run(transfer(s, "12Mbit/s", 0, 0.02, 0.3), seed=5, world=s.world)
            for s in (sender, other)
        }
        lost = [found[w].links[0]["lost_packets"] for w in ("lab", "sim")]
        assert lost[0] == lost[1] > 0
        rates = [measure(found[w])["rate_bps"] for w in ("lab", "sim")]
        # Not of one machine alone: a loaded one is late.
        assert rates[0] == pytest.approx(rates[1], rel=0.5)
        assert found["lab"].info["late_max_s"] >= 0.0


def test_a_part_of_the_study_from_runs_to_the_page(tmp_path):
    needs_lab()
    senders = (kernel("reno"), ours("reno", "lab", paced=False), twin(kernel("reno")))

    def few(profile):
        return ex.one_link(profile, "loss", [ex.standard(loss=0.01, mb=0.2)], senders)

    readings = tuple(r for r in READINGS if r.name == "lab")
    experiments = (studies.Experiment("loss", "few", few),)
    only = {"readings": '["lab"]', "sim_repeat": "3"}
    study = replace(STUDY, experiments=experiments, at_once=4, readings=readings)
    outcome = studies.run_study(
        study, "quick", directory=tmp_path / "study", repeat=3, workers=1, settings=only
    )
    assert outcome.sweep.failures == []
    frame = outcome.sweep.frame()
    assert frame.height == 9
    assert frame.filter(pl.col("world") == "lab")["late_max_s"].null_count() == 0
    page = outcome.page.read_text(encoding="utf-8")
    assert "runs in real time" in page
    again = studies.run_study(
        study, "quick", directory=tmp_path / "study", repeat=3, workers=1, settings=only
    )
    assert (again.sweep.done, again.sweep.reused) == (0, 9)


def test_a_sweep_in_the_lab(gargalo, tmp_path):
    needs_lab()
    (tmp_path / "few.toml").write_text(
        'scenario = "link.toml"\nrepeat = 2\n[axes]\nlab.stack = ["kernel", "gargalo"]\n'
    )
    (tmp_path / "link.toml").write_text(
        'duration = "20s"\ntopology.simple.link = { rate = "20Mbit/s", delay = "2ms" }\n'
        '[[flows]]\nfrom = "client"\nto = "server"\ntransport.tcp.congestion = "reno"\n'
        'workload.bulk.bytes = "100kB"\n'
    )
    done = gargalo("sweep", "few.toml", "--world", "lab", "--workers", "4", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == {"planned": 4, "done": 4, "reused": 0, "failed": 0}
    # The simulator's runs are others; it refuses hosts of the kernel's.
    done = gargalo("sweep", "few.toml", "--json")
    runs = json.loads(done.stdout)["runs"]
    assert (done.returncode, runs["done"], runs["failed"]) == (1, 2, 2)
    assert (
        "cluster"
        in gargalo("sweep", "few.toml", "--world", "lab", "--cluster", "tcp://127.0.0.1:1").stderr
    )
