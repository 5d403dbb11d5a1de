"""Scorecards of the congestion controls of QUIC stacks: whose flows go over QUIC, and what cases see from outside."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from gargalo import interop
from gargalo.evaluation import running
from gargalo.evaluation.criteria import CRITERIA, find
from gargalo.evaluation.criteria.conformance import outside
from gargalo.evaluation.model import PROFILES, Plan, Scores
from gargalo.evaluation.stacks import Own, carried, label_of, specification
from gargalo.interop import Stack
from gargalo.judging import Profile
from gargalo.sweeps.errors import SweepError

PLAIN = Stack("plain", "1", ("cubic", "bbr"), frozenset())
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
    own = Own("bbr", "plain")
    jobs, scenarios = running.plan([own], QUICK, CRITERIA, stacks={"plain": PLAIN})
    assert {j.labels["algorithm"] for j in jobs} == {"plain-bbr"}
    known = {c for c, _ in scenarios}
    assert "conformance-bbr" in known
    assert "conformance-cubic" not in known
    chosen = [j.labels for j in jobs if j.labels["criterion"] == "conformance-bbr"]
    ids = {labels["case"] for labels in chosen}
    assert ids <= set(outside.OUTSIDE)
    assert len(ids) > 8


def test_names_and_variants():
    assert specification("quiche-bbr2") == "bbr3"
    assert specification("quinn-bbr") == "bbr"
    assert specification("quiche-cubic") == "quiche-cubic"
    (candidate,) = running.candidates_of(PLAIN, ["bbr"])
    assert (candidate.name, candidate.algorithm) == ("plain-bbr", "bbr")
    with pytest.raises(SweepError, match="plain has no congestion control"):
        running.candidates_of(PLAIN, ["vegas"])


def conformance(**figures: float):
    """Return the result of the cases of BBR of which a run has these figures."""
    criterion = find("conformance-bbr")
    row = {"run": "r", "algorithm": "plain-bbr", "case": "bbr-policer", "repeat": 0}
    seen = {f"seen.{k}": v for k, v in figures.items()}
    frame = pl.DataFrame([{**row, **seen}])
    assert criterion.cases is not None
    cases = criterion.cases(Scores("plain-bbr", {}, frame, of_stack=True)).cases
    return {c.id: c for c in cases}


def test_cases_are_decided_by_packets_or_not_at_all():
    good = conformance(rate=0.95, lost=0.02)
    assert good["bbr-policer"].verdict == "conforms"
    bad = conformance(rate=0.95, lost=0.6)
    assert bad["bbr-policer"].verdict == "does not conform"
    # Phases alone would show it.
    unseen = good["bbr-limited-startup"]
    assert (unseen.verdict, unseen.seen) == ("not decided", outside.NOT_SEEN)
    # Version 1 has no such rule, whoever has written it.
    assert good["bbr-startup-loss"].verdict == "not applicable"


def test_a_part_that_is_missed_decides_and_one_that_is_there_does_not():
    part = outside.judge_startup({"lost": 0, "peak_s": 0.05, "drained_s": 0.6}, "bbr")
    assert part.conforms is None
    assert outside.judge_startup({"lost": 0, "peak_s": 0.05}, "bbr").conforms is False
    assert outside.judge_policed({"rate": 0.9, "lost": 0.01}, "bbr3").conforms is None


def test_pauses_are_times_of_little_sending(monkeypatch):
    times = np.arange(0, 5.001, 0.01)
    rates = np.where((times >= 2) & (times < 2.25), 0.1, 1.0) * outside.RATE_BPS
    sent = np.concatenate([[0.0], np.cumsum(rates[:-1] * 0.01 / 8)])
    monkeypatch.setattr(outside, "link", lambda _: (times, sent, np.zeros_like(times)))

    class Run:
        end_s = 5.0

    (found,) = outside.pauses(Run(), 0.0, 0.5)  # type: ignore[arg-type]
    assert found == pytest.approx((2.0, 0.25), abs=0.06)


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
