"""What is published of congestion controls: scorecards and the comparison are whole, and of the engine as it is."""

from __future__ import annotations

import json

import congestion_comparison
import pytest
from conftest import ROOT
from gargalo.evaluation import published
from gargalo.evaluation.running import evaluate

PAGES = ROOT / "docs" / "scorecards"


def test_every_built_in_congestion_control_has_a_scorecard():
    data = json.loads((PAGES / published.DATA).read_text(encoding="utf-8"))
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert list(data["algorithms"]) == published.names()
    pages = {p.stem for p in PAGES.glob("*.md")} - {"index"}
    assert pages == set(published.names())
    heads = next(line for line in index.splitlines() if line.startswith("| criterion |"))
    for name in published.names():
        assert f"[{name}]({name}.md)" in heads
        assert any(name in criterion["verdicts"] for criterion in data["criteria"]), name


def test_a_sample_of_the_scorecards_is_what_the_engine_gives(tmp_path):
    """One of the cheapest criteria, of two algorithms beside all references."""
    found = evaluate(["reno", "vegas"], only=["data-centre"], store=tmp_path, workers=2)
    data = json.loads((PAGES / published.DATA).read_text(encoding="utf-8"))
    now = published.verdicts(found.scorecards)
    assert (data["profile"], data["repeat"]) == (now["profile"], now["repeat"])
    kept = {c["title"]: c["verdicts"] for c in data["criteria"]}
    for criterion in now["criteria"]:
        for name, verdict in criterion["verdicts"].items():
            assert kept[criterion["title"]][name] == verdict, criterion["title"]
    for card in found.scorecards:
        page = (PAGES / f"{card.algorithm}.md").read_text(encoding="utf-8")
        sections = published.page(card).split("\n## ")[1:]
        assert len(sections) == 1
        for section in sections:
            assert f"\n## {section.rstrip()}\n" in page, f"{card.algorithm}: make scorecards"


@pytest.mark.parametrize(
    ("network", "name"), [("cellular", "vegas"), ("access", "reno"), ("satellite", "tahoe")]
)
def test_a_sample_of_the_comparison_is_what_the_engine_gives(network, name):
    kept = congestion_comparison.read()[network, name]
    now = congestion_comparison.cell((network, name))
    figures = congestion_comparison.FIGURES
    assert {f: f"{now[f]:.6g}" for f in figures} == {f: kept[f] for f in figures}, "make comparison"


def test_every_built_in_congestion_control_is_compared():
    rows = congestion_comparison.read()
    coupled = {"balia", "lia", "olia", "wvegas"}
    alone = [name for name in published.names() if name not in coupled]
    assert set(rows) == {(n, name) for n in congestion_comparison.ORDER for name in alone}
