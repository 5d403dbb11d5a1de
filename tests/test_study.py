"""Studies: their rules, their plans, and one small study from runs to the page."""

from __future__ import annotations

import errno
import json
import math
from dataclasses import replace

import gargalo as lib
import polars as pl
import pytest
from conftest import of_each_value
from gargalo import reporting, studies
from gargalo.metrics import Interval, mean_interval
from gargalo.reporting.model import Evidence, TableBlock
from gargalo.studies import Settings, pages
from gargalo.studies.model import (
    Claim,
    Context,
    Experiment,
    Profile,
    Reading,
    Study,
    above,
    below,
    between,
    evidence,
    positive,
)
from gargalo.studies.running import jobs_of
from gargalo.sweeps import Job, SweepError
from gargalo.sweeps.job import Identifier
from gargalo_studies.high_speed_tcp import STUDY
from gargalo_studies.high_speed_tcp.claims import ranking
from gargalo_studies.high_speed_tcp.measure import background_share
from gargalo_studies.high_speed_tcp.ratings import rate
from gargalo_studies.high_speed_tcp.scenarios import PROTOCOLS, dumbbell


def test_conditions_decide():
    line = [Evidence("x", 1.0)]
    assert studies.decide(line, [(True, ""), (True, "")]).verdict == "reproduced"
    assert studies.decide(line, [(True, ""), (None, "not measured")]).verdict == "inconclusive"
    found = studies.decide(line, [(None, "not measured"), (False, "it is less")])
    assert (found.verdict, found.explanation) == ("contradicted", "it is less")


def test_an_interval_decides_when_there_are_enough_runs():
    few = Interval(0.5, None, None, 2, 0.95)
    assert (above(few, 0.4), below(few, 0.4), between(few, 0.4, 0.6)) == (True, False, True)
    wide = Interval(0.5, 0.2, 0.8, 5, 0.95)
    assert (above(wide, 0.4), below(wide, 0.4), above(wide, 0.1)) == (None, None, True)
    assert (between(wide, 0.4, 0.6), between(wide, 0.9, 1.0), between(wide, 0.1, 0.9)) == (
        None,
        False,
        True,
    )
    assert above(Interval(None, None, None, 0, 0.95), 0.4) is None


def test_rankings_leave_unknown_values_out():
    values = {"a": 1.0, "b": 3.0, "c": math.nan, "d": 2.0}
    assert ranking(values) == ["b", "d", "a"]
    assert ranking(values, best="least") == ["a", "d", "b"]


def test_the_rating_rule():
    # 0 is the worst, 1 the best: quarters are the four words.
    values = {"a": 0.0, "b": 2.4, "c": 5.0, "d": 7.5, "e": 10.0, "f": math.nan}
    assert rate(values, more_is_better=True) == {
        "a": "bad",
        "b": "bad",
        "c": "good",
        "d": "very good",
        "e": "very good",
        "f": "-",
    }
    turned = rate(values, more_is_better=False)
    assert turned["a"] == "very good"
    assert turned["b"] == "very good"
    assert turned["e"] == "bad"
    assert rate({"a": 1.0, "b": 1.0}, more_is_better=True) == {"a": "very good", "b": "very good"}
    never = {"a": 3.0, "b": math.inf, "c": math.nan}
    assert rate(never, more_is_better=False) == {"a": "very good", "b": "bad", "c": "-"}
    assert rate({"b": math.inf}, more_is_better=False) == {"b": "bad"}


@pytest.mark.parametrize("profile", ["quick", "night", "full"])
def test_every_cell_of_the_plan_is_a_valid_scenario(profile):
    chosen = STUDY.profiles[profile].with_repeat(1)
    if profile == "full":
        # Readings change transports only, in the same way as those of the others.
        chosen = replace(chosen, settings=replace(chosen.settings, readings=("ns2-2.29",)))
    jobs = first = jobs_of(STUDY, chosen)
    labels = [json.dumps(j.labels, sort_keys=True) for j in first]
    assert len(labels) == len(set(labels))
    assert {j.labels["experiment"] for j in jobs} <= {e.name for e in STUDY.experiments}
    identifier = Identifier()
    some = first if profile == "quick" else of_each_value(first, "experiment")
    ids = {identifier.task(j).run for j in some}
    assert len(ids) > 50


def test_the_same_seed_gives_the_same_network_to_every_protocol():
    common = {"mbps": 1000, "one_way_s": 0.1, "load": 0.2, "duration_s": 10.0, "seed": 7}
    a = dumbbell(["reno"] * 3, **common)
    b = dumbbell(["cubic"] * 3, **common)
    assert a["topology"] == b["topology"]
    assert [f["start"] for f in a["flows"] if "start" in f] == [
        f["start"] for f in b["flows"] if "start" in f
    ]
    assert a["topology"] != dumbbell(["reno"] * 3, **{**common, "seed": 8})["topology"]


@pytest.mark.parametrize("load", [0.0, 0.5])
def test_the_fair_share_of_a_late_flow_leaves_the_background_out(load):
    common = {"mbps": 10, "one_way_s": 0.01, "duration_s": 1.0, "seed": 7}
    run = lib.run(dumbbell(["reno", "reno"], **common, load=load, labels=["reno", "late"]))
    assert background_share(run) == load


def fast_measure(run):
    return {"share": run.flows["delivered_bytes"][0] * 8 / 5e6 / run.info["duration_s"]}


def small():
    def jobs(profile):
        def scenario(name):
            return {
                "name": "small",
                "duration": "4s",
                "topology": {"simple": {"link": {"rate": "5Mbit/s", "delay": "10ms"}}},
                "flows": [
                    {
                        "from": "client",
                        "to": "server",
                        "transport": {"tcp": {"congestion": name}},
                    }
                ],
            }

        return [
            Job({"experiment": "alone", "protocol": p}, scenario(p), seed)
            for p in ("reno", "cubic")
            for seed in range(profile.repeat)
        ]

    def fills(context: Context):
        found = context.interval("share", "alone", protocol="reno")
        assert isinstance(found, Interval)
        return studies.decide(
            [evidence("reno's share", found, expected="≥ 0.8")],
            [(found.mean is not None and found.mean >= 0.8, "it does not")],
        )

    def beats(context: Context):
        line = evidence("cubic's share", context.interval("share", "alone", protocol="cubic"))
        return studies.contradicted([line], "both fill the link")

    def tables(context):
        rows = context.frame.select("protocol", "share")
        return [
            TableBlock("cells", "all", rows),
            TableBlock("shares", "Of the link.", rows.head(1), group="sums"),
        ]

    return Study(
        name="small",
        title="A small study",
        summary="one flow",
        source="nobody",
        description="One flow alone.",
        measure="test_study:fast_measure",
        bounds={"share": (0.0, 1.0)},
        profiles={"quick": Profile("quick", "seconds", 2)},
        experiments=(Experiment("alone", "Alone", jobs),),
        claims=(
            Claim("fills", "Reno fills the link.", fills),
            Claim("beats", "CUBIC takes twice the link.", beats, because="No flow can."),
        ),
        figures=lambda _: [],
        tables=tables,
    )


def test_a_small_study_ends_in_verdicts_and_a_page(tmp_path):
    study = small()
    outcome = studies.run_study(study, "quick", directory=tmp_path / "study", workers=1)
    assert [c.verdict for c in outcome.claims] == ["reproduced", "contradicted"]
    assert outcome.claims[1].explanation == "both fill the link. No flow can."
    facts = json.loads((tmp_path / "study" / "study.json").read_text())
    assert facts["runs"] == 4
    assert facts["done"] == 4
    page = outcome.page.read_text(encoding="utf-8")
    assert "Reno fills the link." in page
    assert "reproduced" in page
    published = pages.page(pages.data(facts, tmp_path / "study" / "report"))
    assert "## shares\n\nOf the link.\n\n| protocol | share |\n" in published
    assert "## cells" not in published
    # Again: nothing is left to do.
    again = studies.run_study(study, "quick", directory=tmp_path / "study", workers=1)
    assert (again.sweep.done, again.sweep.reused) == (0, 4)
    assert [c.verdict for c in again.claims] == [c.verdict for c in outcome.claims]


def test_a_claim_is_judged_in_every_reading_and_hypotheses_only_theirs(tmp_path):
    def slower(scenario):
        scenario["topology"]["simple"]["link"]["rate"] = "1Mbit/s"
        return scenario

    base = small()
    study = replace(
        base,
        claims=[replace(c, experiments=["alone"]) for c in base.claims],
        readings=(
            Reading("then", "Then", "A slow link.", slower),
            Reading("today", "Today", "As the study says.", lambda s: s),
            Reading("loss", "Loss", "Tried.", lambda s: s, claims=["fills"]),
        ),
    )
    outcome = studies.run_study(study, "quick", directory=tmp_path / "study", workers=1)
    # A hypothesis that changes nothing is not run again.
    assert (outcome.sweep.plan.height, outcome.sweep.done) == (12, 8)
    fills, beats = outcome.claims
    assert [(j.reading, j.verdict, j.tried) for j in fills.judgements()] == [
        ("Then", "contradicted", False),
        ("Today", "reproduced", False),
        ("Loss", "reproduced", True),
    ]
    assert [j.reading for j in beats.judgements()] == ["Then", "Today"]
    assert fills.evidence[0].value < 0.25 < 0.8 < fills.others[0].evidence[0].value
    facts = json.loads((tmp_path / "study" / "study.json").read_text())
    assert facts["runs"] == 8
    # Packets of a run that two readings share count once.
    assert facts["all_packets"] == facts["packets"] > 0
    assert [o["verdict"] for o in facts["claims"][0]["others"]] == ["reproduced", "reproduced"]
    assert list(facts)[:5] == ["study", "profile", "repeat", "engine", "verdicts"]
    assert facts["verdicts"] == {
        "fills": {"Then": "contradicted", "Today": "reproduced", "Loss": "reproduced"},
        "beats": {"Then": "contradicted", "Today": "contradicted"},
    }
    shown = pages.page(pages.data(facts))
    assert "Of 2 claims, Then: 2 contradicted; Today: 1 reproduced, 1 contradicted." in shown
    row = next(line for line in shown.splitlines() if "#claim-fills" in line)
    assert row.endswith("| ✗ contradicted | ✓ reproduced | ✓ reproduced: Loss |")
    whole = pages.data(facts)
    alone = [c | {"others": []} for c in whole["claims"]]
    failed = whole | {"claims": alone, "failed": 7, "missing": {"this": "Why."}}
    later = pages.joined(
        study, failed, whole | {"claims": [alone[0] | {"reading": "Today"}, alone[1]]}
    )
    assert [pages.readings(found) for found in (failed, later)] == [["Then"], ["Then", "Today"]]
    assert (later["runs"], later["failed"]) == (16, 7)
    assert later["command"] == """gargalo study small --set 'readings=["then", "today"]'"""
    shown = pages.page(later)
    assert "**7 runs failed.**" in shown
    assert "Not done: this. Why." in shown
    # What is judged again takes the place of what was there.
    again = pages.joined(study, later, whole)
    assert (again["claims"], again["command"]) == (whole["claims"], outcome.command)
    assert [p["runs"] for p in again["parts"]] == [8]
    page = outcome.page.read_text(encoding="utf-8")
    assert "tried: Loss" in page
    loaded = reporting.report_of_study(tmp_path / "study" / "report")
    assert [c.judgements() for c in loaded.claims] == [c.judgements() for c in outcome.claims]
    assert {t.title for t in loaded.tables} == {
        "Verdicts by reading",
        "cells: Then",
        "cells: Today",
        "shares: Then",
        "shares: Today",
    }
    quick = study.profiles["quick"]
    tried = study.readings[2]
    all_cells = jobs_of(replace(study, readings=[tried]), quick)
    wanted = dict(all_cells[0].labels)
    few = replace(tried, cells=lambda labels: {**labels, "reading": tried.name} == wanted)
    found = jobs_of(replace(study, readings=[few]), quick)
    assert 0 < len(found) < len(all_cells)
    assert {tuple(j.labels.items()) for j in found} == {tuple(wanted.items())}
    only = replace(quick, settings=Settings(readings=("today",)))
    assert [r.name for r in study.readings_of(only)] == ["today"]
    with pytest.raises(KeyError, match='did you mean "today"'):
        study.readings_of(replace(quick, settings=Settings(readings=("todays",))))


def test_a_profile_leaves_out_experiments_and_says_so_of_the_claims_that_need_them(tmp_path):
    base = small()
    both, alone = base.claims
    study = replace(
        base,
        experiments=[*base.experiments, Experiment("beside", "Beside others", lambda _: [])],
        claims=[
            replace(both, experiments=["alone", "beside"]),
            replace(alone, experiments=["alone"]),
        ],
        profiles={"quick": Profile("quick", "seconds", 1, Settings(experiments=("alone",)))},
    )
    outcome = studies.run_study(study, "quick", directory=tmp_path, workers=1)
    assert outcome.sweep.plan.height == 2
    assert [c.verdict for c in outcome.claims] == ["inconclusive", "contradicted"]
    assert outcome.claims[0].explanation == "the profile leaves out beside"
    with pytest.raises(KeyError, match='did you mean "alone"'):
        studies.run_study(study, "quick", settings={"experiments": '["along"]'})


def fails(_run):
    msg = "not measured"
    raise ValueError(msg)


def test_a_study_of_which_every_run_failed_has_its_report(tmp_path):
    study = replace(small(), measure="test_study:fails", tables=lambda _: [])
    outcome = studies.run_study(study, "quick", directory=tmp_path / "study", workers=1)
    facts = json.loads((tmp_path / "study" / "study.json").read_text())
    assert facts["failed"] == facts["runs"] > 0
    assert facts["all_packets"] == 0
    assert "runs failed" in outcome.page.read_text(encoding="utf-8")


def saved(figures: int) -> reporting.Report:
    block = reporting.FigureBlock("a", "b", {"data": [], "layout": {}})
    return reporting.Report(title="t", figures=[block] * figures)


def test_the_report_of_a_study_is_a_results_directory(tmp_path, monkeypatch):
    at = tmp_path / "report"
    reporting.save(saved(2), at)
    names = {str(p.relative_to(at)) for p in at.rglob("*") if p.is_file()}
    assert names == {"manifest.json", "report.json", "figures/00.json", "figures/01.json"}
    reporting.save(saved(1), at)
    assert not (at / "figures" / "01.json").exists()
    # One that fails in the middle leaves the earlier one, and nothing beside it.
    before = (at / "report.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr("gargalo.reporting.studies.plain_figure", full)
        with pytest.raises(OSError, match="no space"):
            reporting.save(saved(1), at)
    assert (at / "report.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report"]
    # Of before there were manifests.
    (at / "manifest.json").unlink()
    reporting.save(saved(1), at)
    # What the user did there is not touched, and told before anything runs.
    (at / "figures" / "00.json").write_text("{}")
    for name, why in (("figures/00.json", "was changed"), ("thesis.tex", "is not a result")):
        (at / name).write_text("{}")
        with pytest.raises(SweepError, match=f"report/{name} {why}"):
            studies.run_study(small(), "quick", directory=tmp_path, workers=1)
        (at / name).unlink()
    assert not (tmp_path / "store").exists()


def test_names_that_do_not_exist(inside):
    done = inside("study", "high-speed-tpc")
    assert done.returncode == 2
    assert 'did you mean "high-speed-tcp"?' in done.stderr
    done = inside("study", "high-speed-tcp", "--profile", "fast")
    assert done.returncode == 2
    assert "quick, night, full" in done.stderr


def test_claims_are_inconclusive_without_runs():
    context = Context(STUDY.profiles["quick"], pl.DataFrame())
    for claim in STUDY.claims:
        assert claim.check(context).verdict == "inconclusive", claim.id
    assert sorted(PROTOCOLS) == list(PROTOCOLS)


def test_a_verdict_uses_the_interval_within_the_bounds():
    rows = [{"experiment": "e", "repeat": i, "time.a": v} for i, v in enumerate([1.0, 1.0, 9.0])]
    quick = Profile("quick", "", 3)
    context = Context(quick, pl.DataFrame(rows), bounds={"time": (0.0, math.inf)})
    found = context.interval("time.a", "e")
    assert (found.method, found.low > 0) == ("log", True)
    # Student's interval is from -7.8 to 15.1 and would leave even 0 open.
    assert above(found, 0.0) is True
    assert above(mean_interval([1.0, 1.0, 9.0]), 0.0) is None
    assert below(found, 20.0) is None
    # Two runs have no interval: their mean decides.
    assert below(positive([1.0, 3.0]), 2.5) is True
