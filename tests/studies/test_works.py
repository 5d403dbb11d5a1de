"""The page of the works follows from the studies' results."""

from __future__ import annotations

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
def test_items_name_claims_of_their_study(work):
    known = {c.id for c in STUDIES[work.study].claims}
    assert {i.claim for i in work.items if i.claim} <= known
    assert all(i.claim or (i.page and i.command) for i in work.items)
    for item in work.items:
        assert not item.page or (DOCS / item.page).is_file()


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
    # Today's stack is no reading of what the work leaves open.
    today = [judgement("reproduced", "today", tried=False)]
    assert works.standing({**claim, "others": today}) == ("contradicted", "")
