"""Scorecards of the congestion controls of QUIC stacks: whose flows go over QUIC, and what cases see from outside."""

from __future__ import annotations

from dataclasses import replace

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from gargalo import interop
from gargalo.evaluation import records, running, traces
from gargalo.evaluation.criteria import CRITERIA, find
from gargalo.evaluation.criteria.conformance import model, outside
from gargalo.evaluation.criteria.conformance.cases import BBR
from gargalo.evaluation.criteria.conformance.seen import Seen
from gargalo.evaluation.model import PROFILES, CaseResult, Plan, Result, Scores
from gargalo.evaluation.running import Scorecard
from gargalo.evaluation.stacks import Own, carried, label_of
from gargalo.interop import Stack
from gargalo.judging import Profile
from gargalo.plugins import registry
from gargalo.sweeps.errors import SweepError
from toy_stack import SOURCE

PLAIN = Stack("plain", "1", ("cubic", "bbr"), frozenset(), {"bbr": "bbr"})
QUICK = PROFILES["quick"]


def transports(criterion: str, algorithm: str, **stacks: Stack) -> list[dict[str, object]]:
    """Return the transports of the flows of a criterion's cells that QUIC can do."""
    cells = find(criterion).cells(Plan(algorithm, QUICK, 1))
    made = [carried(c.scenario, stacks or None) for c in cells]
    return [f["transport"] for s in made if s is not None for f in s["flows"]]


def test_flows_of_the_algorithm_go_over_quic_and_rivals_stay():
    own = Own("cubic", "plain")
    assert label_of(own) == "plain-cubic"
    alone = transports("bufferbloat", own, plain=PLAIN)
    assert alone
    assert all(t == {"quic": {"stack": "plain", "congestion": "cubic"}} for t in alone)
    mixed = transports("versus-reno", own, plain=PLAIN)
    kinds = {next(iter(t)) for t in mixed}
    assert {"quic", "tcp"} <= kinds
    assert {"tcp": {"congestion": "reno"}} in mixed


def test_references_are_ours_over_quic():
    own = Own("reno", "noq", label="reno")
    assert label_of(own) == "reno"
    found = transports("bufferbloat", own, plain=PLAIN, noq=interop.known()["noq"])
    assert found[0] == {"quic": {"stack": "noq", "congestion": "reno", "crypto": "null"}}


def test_what_quic_cannot_do_is_left_out():
    own = Own("cubic", "plain")
    assert transports("multipath", own, plain=PLAIN) == []
    marks = Stack("plain", "1", ("cubic",), frozenset({"ecn"}))
    without, with_marks = (transports("aqm", own, plain=s) for s in (PLAIN, marks))
    assert 0 < len(without) < len(with_marks)
    assert any(t.get("quic", {}).get("ecn") for t in with_marks)  # type: ignore[attr-defined]
    plain = {"flows": [{"transport": {"tcp": {"congestion": "cubic", "ecn": True}}}]}
    assert carried(plain) == plain


def test_every_criterion_can_be_planned_for_a_stack():
    # Instants of some cases are found by runs: the stack is one that is there.
    own = Own("bbr", "noq")
    jobs, scenarios = running.plan([own], QUICK, CRITERIA, stacks=interop.known())
    assert {j.labels["algorithm"] for j in jobs} == {"noq-bbr"}
    known = {c for c, _ in scenarios}
    assert "conformance-bbr" in known
    assert "conformance-cubic" not in known
    chosen = [j.labels for j in jobs if j.labels["criterion"] == "conformance-bbr"]
    assert {labels["case"] for labels in chosen} == {c.id for c in BBR if "bbr" not in c.not_for}


def test_names_and_variants():
    assert Own("bbr", "plain", follows="bbr3") == "bbr3"
    assert Own("bbr", "plain") == "plain-bbr"
    assert Own("bbr2", "noq") == "bbr2"
    (candidate,) = running.candidates_of(PLAIN, ["bbr"])
    assert (candidate.name, candidate.algorithm) == ("plain-bbr", "bbr")
    with pytest.raises(SweepError, match="plain has no congestion control"):
        running.candidates_of(PLAIN, ["vegas"])


def conformance(
    algorithm: str = "plain-bbr",
    case: str = "bbr-policer",
    follows: str | None = "",
    **figures: float,
):
    """Return the results of the cases of BBR of which one run has these figures, inferred from packets.

    The algorithm follows what its name says unless something else is given; None: the stack does not say.
    """
    criterion = find("conformance-bbr")
    row = {"run": "r", "algorithm": algorithm, "case": case, "repeat": 0}
    seen = {f"seen.{k}": v for k, v in {"slack": 0.05, "packet_bytes": 1200.0, **figures}.items()}
    frame = pl.DataFrame([{**row, **seen}])
    assert criterion.cases is not None
    name = algorithm.rpartition("-")[2]
    own = Own(name, "plain", follows=name if follows == "" else follows)
    cases = criterion.cases(Scores(algorithm, {}, frame, over=own)).cases
    return {c.id: c for c in cases}


def test_cases_that_are_seen_are_decided():
    good = conformance(rate=0.95, lost=0.02, in_probe_bw=1)["bbr-policer"]
    assert good.verdict == "conforms"
    bad = conformance(rate=0.95, lost=0.6, in_probe_bw=1)["bbr-policer"]
    assert bad.verdict == "does not conform"
    early = conformance(rate=0.95, lost=0.02, in_probe_bw=0)["bbr-policer"]
    assert early.verdict == "not decided"


def test_what_a_stack_does_not_tell_leaves_a_case_undecided_unless_another_part_is_wrong():
    figures = {"in_up": 1, "share_lost": 0.2, "left": 1, "to_down": 1, "after_s": 0.01}
    part = conformance("plain-bbr2", "bbr-up-loss", **figures)["bbr-up-loss"]
    assert (part.verdict, part.seen.rpartition("; ")[2]) == (
        "not decided",
        "not told: inflight_longterm",
    )
    wrong = conformance("plain-bbr2", "bbr-up-loss", **{**figures, "to_down": 0})["bbr-up-loss"]
    assert wrong.verdict == "does not conform"
    unknown = conformance(phases=0)["bbr-policer"]
    assert (unknown.verdict, unknown.seen) == ("not decided", model.NOT_TOLD)
    # What has no value, for example an estimate in a run without a phase that shows it.
    assert conformance(rate=0.95)["bbr-policer"].verdict == "not decided"


def test_each_version_is_judged_by_its_own_document():
    first = conformance()
    assert first["bbr-startup-loss"].verdict == "not applicable"
    second = conformance("plain-bbr2")
    apart = {c.id for c in second.values() if c.verdict == "not applicable"}
    assert apart == {
        "bbr-drain-time",
        "bbr-up-plateau",
        "bbr-spurious-recovery",
        "bbr-spurious-timeout",
    }
    drain = {"in_flight_bytes": 120e3, "target_bytes": 121e3, "to_probe_bw": 1}
    for algorithm, gain, verdict in (
        ("plain-bbr", 0.347, "conforms"),
        ("plain-bbr2", 0.347, "conforms"),
        ("plain-bbr2", 0.5, "conforms"),
        ("plain-bbr3", 0.347, "does not conform"),
        ("plain-bbr", 0.5, "does not conform"),
    ):
        found = conformance(algorithm, "bbr-drain-inflight", gain=gain, **drain)
        assert found["bbr-drain-inflight"].verdict == verdict, (algorithm, gain)


def test_a_version_is_what_the_stack_says_and_not_what_the_name_suggests(monkeypatch):
    drain = {"in_flight_bytes": 120e3, "target_bytes": 121e3, "to_probe_bw": 1, "gain": 0.347}
    for follows, verdict in (
        ("bbr", "conforms"),
        ("bbr3", "does not conform"),
        (None, "not decided"),
    ):
        found = conformance("plain-bbr", "bbr-drain-inflight", follows, **drain)
        assert found["bbr-drain-inflight"].verdict == verdict, follows
    silent = conformance(follows=None, rate=0.95, lost=0.6, in_probe_bw=1)
    assert {c.verdict for c in silent.values()} == {"not decided"}
    said = "the stack plain does not say which document its bbr follows"
    assert {c.seen for c in silent.values()} == {said}
    criterion = find("conformance-bbr")
    assert criterion.applies_to(Own("bbr", "plain"))
    assert criterion.cells(Plan(Own("bbr", "plain"), QUICK, 1)) == []
    assert not criterion.applies_to(Own("bbr", "plain", follows="something-else"))
    assert criterion.applies_to(Own("mine", "plain", follows="bbr2"))
    monkeypatch.setattr(running, "interop_stacks", lambda: {"plain": Stack("plain", "1", ("bbr",))})
    with pytest.raises(SweepError, match=said):
        running.evaluate(["bbr"], stack="plain", only=["conformance-bbr"])


BY_ID = {c.id: c for c in BBR}
UNTOLD = {
    "bbr-up-loss-limited": "inflight_longterm",
    "bbr-down-inflight": "inflight_longterm",
    "bbr-up-loss": "inflight_longterm",
    "bbr-rate-up": "inflight_longterm",
    "bbr-spurious-timeout": "undo",
}
"""Cases of version 3 that need a quantity that no stack tells."""


def inside(case: str, algorithm: str, **parameters: object) -> Seen:
    """Return what the stack inside, with our BBR, tells of a run of a case."""
    made = carried(model.named(BY_ID[case], Own(algorithm, "noq"), 9))
    assert made is not None
    if parameters:
        made["flows"][0]["transport"]["quic"]["congestion"] = {algorithm: parameters}
    return Seen.told(gargalo.run(made, seed=9))


def judge(case: str, algorithm: str, told: Seen, hidden: tuple[str, ...] = ()) -> model.Finding:
    """Judge a run by what was told and what can be inferred."""
    figures = model.figures_of(BY_ID[case], outside.complete(told, hidden))
    return model.judged(BY_ID[case], figures, algorithm)


@pytest.mark.parametrize(
    ("algorithm", "case"),
    [(a, c.id) for a in ("bbr3", "bbr") for c in BBR if a not in c.not_for],
)
def test_inference_never_contradicts_the_state(algorithm, case):
    # Over TCP, where all of it is recorded, both conform in all cases.
    told = inside(case, algorithm)
    found = judge(case, algorithm, told)
    if algorithm == "bbr3" and case in UNTOLD:
        assert found.conforms is None, found.seen
        assert found.seen.endswith(f"; not told: {UNTOLD[case]}")
    else:
        assert found.conforms is True, found.seen
    for hidden in (("bytes_in_flight",), ("bytes_in_flight", "pacing_rate_bps")):
        again = judge(case, algorithm, told, hidden)
        assert again.conforms is not False, (hidden, again.seen)


@pytest.mark.parametrize(
    ("case", "algorithm", "parameters", "seen"),
    [
        ("bbr-startup-plateau", "bbr3", {"full_pipe_rounds": 6}, "after 5 rounds"),
        ("bbr-startup-loss", "bbr3", {"full_loss_count": 500}, "stayed in STARTUP"),
        ("bbr-drain-inflight", "bbr3", {"drain_pacing_gain": 0.35}, "pacing gain 0.35"),
        ("bbr-down-inflight", "bbr3", {"down_pacing_gain": 0.75}, "pacing gain 0.75"),
        ("bbr-probe-rtt", "bbr3", {"probe_rtt_interval": "3s"}, "PROBE_RTT 3.0"),
        ("bbr-probe-rtt", "bbr", {"min_rtt_window": "5s"}, "PROBE_RTT 5.0"),
        ("bbr-up-loss-limited", "bbr3", {"loss_threshold": 0.9}, "another state 3"),
        ("bbr-policer", "bbr3", {"loss_threshold": 0.9, "beta": 1.0}, "of packets lost"),
    ],
)  # fmt: skip
def test_other_behaviour_is_seen_over_quic_too(case, algorithm, parameters, seen):
    found = judge(case, algorithm, inside(case, algorithm, **parameters))
    assert found.conforms is False, found.seen
    assert seen in found.seen


def test_a_stack_without_phases_is_not_judged():
    told = inside("bbr-startup-plateau", "bbr")
    silent = replace(told, spans=[replace(s, phase="") for s in told.spans])
    found = judge("bbr-startup-plateau", "bbr", silent)
    assert (found.conforms, found.seen) == (None, model.NOT_TOLD)


def test_rounds_and_gaps_of_what_is_inferred():
    # 100 bytes a second come and leave at once; acknowledgements take half a second.
    times = np.arange(0, 10.001, 0.01)
    wire = outside.Wire(times, 100 * times, 100 * times, 100.0, 0.5)
    assert np.diff(wire.rounds(2.0, 6.0)) == pytest.approx(np.full(8, 0.5), abs=0.02)
    assert wire.acknowledged(np.array([4.0])) == pytest.approx([350.0])
    assert outside.held(np.array([np.nan, 1.0, np.nan, 2.0])).tolist()[1:] == [1.0, 1.0, 2.0]
    # Version 1's cycle of eight round trips.
    gains = np.repeat([1.25, 0.75, 1, 1, 1, 1, 1, 1], 5)
    cycles = np.tile(gains, 10)
    steady = outside.steady(0.01 * np.arange(cycles.size), cycles)
    assert steady == pytest.approx(np.ones(cycles.size), abs=0.26)
    assert np.median(steady) == 1


OTHERS = {"picoquic-bbr": "bbr3", "picoquic-bbr1": "bbr"}
"""What those follow that have another name than it."""


def test_the_page_has_a_row_for_each_case():
    page = (ROOT / "docs/quic-stacks.md").read_text(encoding="utf-8")
    told = page.split("<!-- conformance -->")[1].split("<!-- /conformance -->")[0].strip()
    header, _, *rows = told.splitlines()
    names = [n.strip() for n in header.split("|")[2:-1]]
    assert names
    assert [row.split("`")[1] for row in rows] == [c.id for c in BBR]
    for row, case in zip(rows, BBR, strict=True):
        cells = row.split(" | ")[1:]
        apart = [cell.rstrip(" |") == "not applicable" for cell in cells]
        follow = [OTHERS.get(n, n.rpartition("-")[2]) for n in names]
        assert apart == [f in case.not_for for f in follow], case.id


def test_a_scorecard_of_the_stack_inside(tmp_path):
    done = running.evaluate(
        ["bbr"], stack="noq", only=["conformance-bbr"], repeat=1, store=tmp_path, workers=2
    )
    (card,) = done.scorecards
    assert card.algorithm == "noq-bbr"
    (result,) = card.results
    assert not result.failures
    verdicts = {c.id: c.verdict for c in result.cases}
    assert verdicts["bbr-probe-rtt"] == "conforms"
    assert verdicts["bbr-tiny-bdp"] == "conforms"
    assert isinstance(card.profile, Profile)


def test_a_stack_of_a_plugin_is_judged_as_one_that_is_installed(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(f'{SOURCE}\n\ngargalo.quic_stack("mine")(Toy)\n', encoding="utf-8")
    try:
        done = running.evaluate(
            ["fixed"],
            stack="mine",
            plugins=[plugin],
            only=["bufferbloat"],
            repeat=1,
            store=tmp_path / "store",
            workers=2,
        )
    finally:
        registry.forget_stack("mine")
    (card,) = done.scorecards
    assert card.algorithm == "mine-fixed"
    (result,) = card.results
    assert not result.failures
    utilization = next(o for o in result.outcomes if o.figure.name == "utilization")
    # A window of 32 segments.
    assert 0.1 < utilization.own.mean < 0.6


def test_a_case_that_is_not_met_has_a_page_with_the_run(tmp_path):
    scenario = """\
name = "bbr-policer"
duration = "2s"
topology.simple = { link = { rate = "5Mbit/s", delay = "10ms" } }
[[flows]]
from = "client"
to = "server"
transport.quic = { congestion = "bbr" }
workload.bulk = {}
"""
    frame = pl.DataFrame(
        {
            "case": ["bbr-policer", "bbr-policer", "bbr-up-loss"],
            "conforms": [True, False, None],
            "seed": [1, 4711, 1],
        }
    )
    bad, open_ = (
        CaseResult(name, name, "section", "expected", conforms, "seen")
        for name, conforms in (("bbr-policer", False), ("bbr-up-loss", None))
    )
    result = Result(
        find("conformance-bbr"),
        "fault",
        [],
        ["fault"],
        Scores("plain-bbr", {}, frame),
        scenarios={"case=bbr-policer": scenario, "case=bbr-up-loss": scenario},
        cases=[bad, open_],
    )
    card = traces.add(Scorecard("plain-bbr", QUICK, [], [result]), tmp_path)
    assert [c.page for c in card.results[0].cases] == ["cases/bbr-policer.html", ""]
    page = (tmp_path / "cases/bbr-policer.html").read_text(encoding="utf-8")
    assert "seed 4711" in page
    assert records.to_json(card)["criteria"][0]["cases"][0]["page"] == "cases/bbr-policer.html"
    # A run that cannot be done has none.
    broken = replace(result, scenarios={"case=bbr-policer": "duration = 1"})
    card = traces.add(Scorecard("plain-bbr", QUICK, [], [broken]), tmp_path)
    assert card.results[0].cases[0].page == ""
