"""Conformance: what the specifications say is seen where it is done, and found missing where it is not."""

from __future__ import annotations

import json
from dataclasses import replace

import gargalo
import polars as pl
import pytest
from conftest import ROOT
from gargalo import evaluation
from gargalo.evaluation import page, published, records
from gargalo.evaluation.criteria.conformance.cases import BBR, CASES, measure
from gargalo.evaluation.criteria.conformance.classic import CUBIC, HSTCP, RENO, decrease, increase
from gargalo.evaluation.criteria.conformance.model import judged, named
from gargalo.evaluation.criteria.conformance.seen import Seen
from gargalo.sweeps.errors import SweepError

BY_ID = {c.id: c for c in CASES}


def finding(case, algorithm, parameters=None, seed=1):
    """Judge a run of a case, perhaps with other parameters than the specification's."""
    scenario = named(BY_ID[case], algorithm, seed)
    if parameters:
        tcp = scenario["flows"][0]["transport"]["tcp"]
        given = tcp["congestion"] if isinstance(tcp["congestion"], dict) else {algorithm: {}}
        tcp["congestion"] = {algorithm: given[algorithm] | parameters}
    return judged(BY_ID[case], measure(gargalo.run(scenario, seed=seed)), algorithm)


@pytest.mark.parametrize(
    ("algorithm", "cases"),
    [
        ("bbr3", BBR),
        ("bbr2", BBR),
        ("bbr", BBR),
        ("reno", RENO),
        ("cubic", CUBIC),
        ("hstcp", HSTCP[:2]),
    ],
)
def test_built_in_algorithms_conform(algorithm, cases):
    for case in cases:
        if algorithm not in case.not_for:
            found = finding(case.id, algorithm)
            assert found.conforms, (case.id, found.seen)


@pytest.mark.parametrize(
    ("case", "algorithm", "parameters", "seen"),
    [
        ("bbr-startup-plateau", "bbr3", {"full_pipe_rounds": 4}, "after 4 rounds"),
        ("bbr-startup-plateau", "bbr", {"full_pipe_rounds": 2}, "after 2 rounds"),
        ("bbr-startup-loss", "bbr3", {"full_loss_count": 500}, "stayed in STARTUP"),
        ("bbr-drain-inflight", "bbr3", {"drain_pacing_gain": 0.35}, "pacing gain 0.35"),
        ("bbr-drain-time", "bbr3", {"drain_rounds": 9}, "ended after 10 rounds"),
        ("bbr-startup-aggregation", "bbr3", {"cwnd_gain": 1.0}, "a window of"),
        ("bbr-up-plateau", "bbr3", {"full_pipe_rounds": 2}, "after 2 to 2 rounds"),
        ("bbr-up-loss-limited", "bbr3", {"loss_threshold": 0.9}, "it stayed there"),
        ("bbr-up-loss", "bbr3", {"loss_threshold": 0.9}, "inflight_longterm was not set"),
        ("bbr-down-inflight", "bbr3", {"down_pacing_gain": 0.75}, "pacing gain 0.75"),
        ("bbr-down-time", "bbr3", {"probe_wait": "4s"}, "PROBE_DOWN for 4"),
        ("bbr-probe-rtt", "bbr3", {"probe_rtt_interval": "3s"}, "PROBE_RTT 3.05"),
        ("bbr-probe-rtt", "bbr", {"min_rtt_window": "5s"}, "PROBE_RTT 5.05"),
        ("bbr-cruise-aggregation", "bbr3", {"extra_acked_gain": 0, "cwnd_gain": 1.0}, "of the link"),
        ("bbr-rate-down", "bbr3", {"beta": 1.0, "probe_wait": "9s", "probe_rounds": 9999}, "the new rate"),
        ("bbr-policer", "bbr3", {"loss_threshold": 0.9, "beta": 1.0}, "of packets lost"),
        ("bbr-startup-loss", "bbr2", {"full_loss_count": 500, "packet_conservation": False}, "stayed in STARTUP"),
        ("bbr-drain-inflight", "bbr2", {"drain_pacing_gain": 0.4}, "pacing gain 0.4"),
        ("bbr-up-loss", "bbr2", {"loss_threshold": 0.9}, "inflight_longterm was not set"),
        ("bbr-down-inflight", "bbr2", {"down_pacing_gain": 0.75}, "pacing gain 0.75"),
        ("bbr-probe-rtt", "bbr2", {"probe_rtt_cwnd_gain": 0.75}, "cwnd_gain 0.75"),
        ("bbr-rate-down", "bbr2", {"beta": 1.0}, "inflight_lo within what the path holds 4.5"),
        ("cubic-fall", "cubic", {"beta": 0.5}, "ssthresh to 0.5"),
        ("cubic-timeout", "cubic", {"beta": 0.5}, "ssthresh 0.5"),
        ("cubic-curve", "cubic", {"c": 1.0}, "off until"),
    ],
)  # fmt: skip
def test_other_behaviour_is_reported(case, algorithm, parameters, seen):
    found = finding(case, algorithm, parameters)
    assert not found.conforms, found.seen
    assert seen in found.seen


def test_others_do_not_conform():
    # The growth of another algorithm is not Reno's, nor its factor.
    assert not finding("reno-growth", "cubic").conforms
    assert "ssthresh to 0.700" in finding("reno-fall", "cubic").seen
    assert not finding("hstcp-1000", "cubic").conforms


@pytest.mark.parametrize(
    ("w", "a", "b"), [(38, 1, 0.5), (118, 2, 0.44), (1058, 8, 0.33), (10661, 30, 0.21)]
)
def test_the_table_of_rfc_3649(w, a, b):
    assert increase(w) == pytest.approx(a, abs=0.02)
    assert decrease(w) == pytest.approx(b, abs=0.005)


def test_phases_and_quantities_of_a_run():
    scenario = BY_ID["bbr-startup-plateau"].scenario("bbr3", 1) | {"duration": "1s", "seed": 1}
    seen = Seen.of(gargalo.run(scenario))
    assert [s.phase for s in seen.spans] == ["startup", "drain", "probe-bw-down", "probe-bw-cruise"]
    startup, drain, *_ = seen.spans
    assert (startup.before, startup.after, drain.before, seen.spans[-1].after) == (
        "",
        "drain",
        "startup",
        "",
    )
    assert startup.end == drain.start
    assert seen.phase_at(drain.start) == "drain"
    assert seen.at("pacing_gain", drain.start) == 0.5
    assert seen.before("pacing_gain", drain.start) == 2.77
    assert set(seen.column("pacing_gain", drain.start, drain.end)) == {0.5}
    assert seen.rate(drain.end, 1.0) == pytest.approx(20e6 * 1448 / 1500, rel=0.02)
    assert seen.first("probe-rtt") is None


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """Scorecards of what has cases, of one for which some do not apply, and of one without."""
    store = tmp_path_factory.mktemp("conformance") / "store"
    only = [c.id for c in evaluation.CRITERIA if c.group == "conformance"]
    found = evaluation.evaluate(["bbr", "cubic", "vegas"], only=only, repeat=1, store=store)
    # Nothing is run for the references: there is nothing to compare.
    assert set(found.sweep.plan["algorithm"]) == {"bbr", "cubic"}
    return {c.algorithm: c for c in found.scorecards}


def test_verdicts_of_scorecards(cards):
    assert [r.criterion.id for r in cards["bbr"].results] == ["conformance-bbr"]
    assert [r.criterion.id for r in cards["cubic"].results] == ["conformance-cubic"]
    assert cards["vegas"].results == []
    result = cards["bbr"].results[0]
    assert result.verdict == "conforms"
    assert result.faults == []
    assert len(result.cases) == len(BBR) == 23
    apart = {c.id: c.seen for c in result.cases if c.conforms is None}
    assert apart.keys() == {c.id for c in BBR if "bbr" in c.not_for}
    assert all(text.startswith("not applicable to version 1: ") for text in apart.values())
    # A row and a scenario for each case that applies.
    assert {f"case={c.id}" for c in result.cases if c.conforms} == set(result.scenarios)
    frame = result.scores.frame
    assert frame["conforms"].all()
    assert frame["seen"].str.len_chars().min() > 20
    assert frame.filter(pl.col("case") == "bbr-startup-plateau")["seen.rounds"].item() == 3


def test_the_scenario_of_a_case_shows_it_again(cards):
    run = gargalo.run(cards["cubic"].results[0].scenarios["case=cubic-fall"])
    assert judged(BY_ID["cubic-fall"], measure(run), "cubic").conforms


def broken(card):
    """The scorecard with a case that does not conform, as judged from its figures."""
    from gargalo.evaluation import scoring

    result = card.results[0]
    frame = result.scores.frame.with_columns(
        pl.when(pl.col("case") == "cubic-fall").then(0.5).otherwise(pl.col("seen.window")).alias("seen.window")
    )  # fmt: skip
    again = scoring.result(result.criterion, "cubic", frame, card.references, (), result.scenarios)
    return replace(card, results=[again])


def test_what_does_not_conform_is_a_fault_and_a_regression(cards):
    good, bad = cards["cubic"], broken(cards["cubic"])
    result = bad.results[0]
    assert result.verdict == "fault"
    assert len(result.faults) == 1
    fault = result.faults[0]
    assert fault.startswith(
        'does not conform in "Multiplicative decrease" (RFC 9438 section 4.6): seen from '
    )
    assert "to 0.500; expected ssthresh and" in fault
    was, now = json.loads(json.dumps(records.to_json(good))), records.to_json(bad)
    assert [c["verdict"] for c in now["criteria"][0]["cases"]] == [
        "conforms",
        "does not conform",
        "conforms",
    ]
    changes = records.compare(was, now)
    assert [(c.kind, c.figure, c.is_regression) for c in changes] == [
        ("new fault", "cubic-fall", True)
    ]
    assert [c.kind for c in records.compare(now, was)] == ["mended"]
    assert records.compare(was, was) == []


def test_pages_have_the_cases(cards):
    text = page.html(cards["bbr"])
    assert "Conformance to its own specification" in text
    assert text.count('data-case-verdict="conforms"') == 13
    assert text.count('data-case-verdict="not applicable"') == 10
    assert "not applicable to version 1: loss does not end its STARTUP" in text
    bad = page.html(broken(cards["cubic"]))
    assert 'data-case="cubic-fall" data-case-verdict="does not conform"' in bad
    assert "0.7 of the window before" in bad
    assert 'id="questions"' in page.html(cards["vegas"]), "a card without results is a page"
    table = page.index_html(list(cards.values()))
    assert table.count('class="mark conforms"') == 2
    assert "| Multiplicative decrease | conforms | from" in published.page(cards["cubic"])
    listed = published.index(published.verdicts(list(cards.values())))
    rows = [line for line in listed.splitlines() if "| Conformance to" in line]
    conforms = published.cell("conforms")
    assert "✓" in conforms
    assert [row.split(" | ")[2:] for row in rows] == [[conforms, "", " |"], ["", conforms, " |"]]


@pytest.mark.parametrize("collection", [published.BUILT_IN, published.OF_STACKS])
def test_the_table_of_the_documentation_is_made_of_the_data_beside_it(collection):
    folder = ROOT / "docs" / collection.path
    data = json.loads((folder / published.DATA).read_text(encoding="utf-8"))
    assert published.index(data, collection) == (folder / "index.md").read_text(encoding="utf-8")
    assert all((folder / f"{a}.md").is_file() for a in data["algorithms"])


def test_scorecards_of_other_stacks_stay_in_the_table():
    stored = {
        "profile": "quick",
        "repeat": 3,
        "algorithms": {"neqo-cubic": "gargalo 1", "quinn-cubic": "gargalo 1"},
        "criteria": [
            {
                "title": "Congestion collapse", "section": "RFC 9743 5.1.1", "strength": "should",
                "verdicts": {"neqo-cubic": "worse", "quinn-cubic": "like"},
            }
        ],
        "faults": [
            {"algorithm": a, "criterion": "x", "fault": "y"} for a in ("neqo-cubic", "quinn-cubic")
        ],
    }  # fmt: skip
    found = {
        **stored,
        "algorithms": {"neqo-cubic": "gargalo 2", "neqo-reno": "gargalo 2"},
        "criteria": [
            {**stored["criteria"][0], "verdicts": {"neqo-cubic": "like", "neqo-reno": "better"}}
        ],
        "faults": [],
    }
    both = published.together(found, stored)
    assert list(both["algorithms"]) == ["neqo-cubic", "neqo-reno", "quinn-cubic"]
    assert both["criteria"][0]["verdicts"] == {
        "neqo-cubic": "like", "neqo-reno": "better", "quinn-cubic": "like",
    }  # fmt: skip
    assert [f["algorithm"] for f in both["faults"]] == ["quinn-cubic"]
    assert "by gargalo 2 (quinn-cubic by gargalo 1). Signs" in published.index(both)
    with pytest.raises(SystemExit, match=r"quinn-cubic are of profile quick with 3 runs"):
        published.together({**found, "repeat": 5}, stored)


def test_criteria_that_do_not_apply_are_a_sentence(tmp_path):
    with pytest.raises(SweepError, match="nothing to run for vegas: conformance-reno is for reno"):
        evaluation.evaluate(["vegas"], only=["conformance-reno"], store=tmp_path / "store")


def test_a_missing_figure_is_reported():
    found = judged(BY_ID["bbr-skip-probe-rtt"], {}, "bbr3")
    assert not found.conforms
    assert "has no value" in found.seen
