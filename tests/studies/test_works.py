"""The page of the works follows from the studies' results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gargalo.studies import STUDIES
from gargalo_studies import works

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_page_is_that_of_the_results():
    results = works.stored(DOCS / "studies" / "results")
    assert (DOCS / "works.md").read_text(encoding="utf-8") == works.page(results)


@pytest.mark.parametrize("work", works.WORKS, ids=lambda w: w.title)
def test_items_name_what_their_study_has(work):
    study = STUDIES[work.study]
    for item in work.items:
        assert item.claim in {"", *(c.id for c in study.claims)}
        assert bool(item.shown) != bool(item.claim), item
        assert set(item.experiments) <= {e.name for e in study.experiments}, item
        assert not item.profile or item.profile in study.profiles
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", item.shown):
            assert (DOCS / target).is_file(), target


OURS = {
    # What only claims of ours need, which the works do not have.
    "nsquic": {"nodes-apart", "steps"},
    "mptcp-schedulers": {"uncoupled", "kernel", "penalisation", "hand-over", "quic", "traces"},
}


@pytest.mark.parametrize("name", sorted({w.study for w in works.WORKS}))
def test_every_experiment_of_a_work_has_a_row(name):
    needed = {c.id: c.experiments for c in STUDIES[name].claims}
    items = [i for w in works.WORKS if w.study == name for i in w.items]
    named = {e for i in items for e in (needed[i.claim] if i.claim else i.experiments)}
    assert {e.name for e in STUDIES[name].experiments} - named == OURS.get(name, set())


MOST_BYTES = 3_000_000
"""Of a report, so that it can be sent and opened anywhere."""


@pytest.mark.parametrize("name", sorted({w.study for w in works.WORKS}))
def test_reports_of_the_published_results_are_small(name):
    assert works.stored(DOCS / "studies" / "results")[name]["report_bytes"] < MOST_BYTES


def test_every_published_table_of_results_has_a_row():
    found = works.stored(DOCS / "studies" / "results")["high-speed-tcp"]
    titles = {t["title"].partition(": ")[0].partition(",")[0] for t in found["tables"]}
    told = " ".join(i.shown + i.text for i in works.HIGH_SPEED.items)
    assert titles
    assert {t for t in titles if t not in told} == set()


def test_every_claim_of_a_work_is_an_item():
    named = {(w.study, i.claim) for w in works.WORKS for i in w.items}
    for study in {w.study for w in works.WORKS}:
        of_the_work = {c.id for c in STUDIES[study].claims if "new" not in c.text.lower()[:8]}
        assert of_the_work <= {claim for s, claim in named if s == study}


def judgement(verdict, reading="first", **more):
    return {"reading": reading, "verdict": verdict, "evidence": [], "explanation": "", **more}


def test_what_a_hypothesis_turns_is_inconclusive():
    tried = [judgement("contradicted", "a", tried=True), judgement("reproduced", "b", tried=True)]
    claim = {"id": "x", **judgement("contradicted")}
    assert works.standing({**claim, "others": tried}) == ("inconclusive", "reproduced with b")
    assert works.standing({**claim, "others": tried[:1]}) == ("contradicted", "tried: a")
    # The same the other way round, and every reading that turns it is named.
    claim = {"id": "x", **judgement("reproduced")}
    tried.append(judgement("inconclusive", "c", tried=True))
    told = "contradicted with a. not decided with c"
    assert works.standing({**claim, "others": tried}) == ("inconclusive", told)
    assert works.standing({**claim, "others": tried[1:2]}) == ("reproduced", "tried: b")


def test_todays_stack_turns_nothing():
    today = [judgement("reproduced", "today", tried=False)]
    claim = {"id": "x", **judgement("contradicted"), "others": today}
    assert works.standing(claim) == ("contradicted", "")
