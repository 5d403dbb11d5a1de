"""What is true of every study: metrics have bounds, results follow from their data, readings are of known stacks."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path

import gargalo_studies
import pytest
from conftest import ROOT
from gargalo.studies import STUDIES, find, pages
from gargalo.studies.running import jobs_of

PAGES = ROOT / "docs" / "studies" / "results"


@pytest.mark.parametrize("stored", sorted(PAGES.glob("*.json")), ids=lambda p: p.stem)
def test_the_results_of_the_documentation_are_made_of_the_data_beside_them(stored):
    found = json.loads(stored.read_text(encoding="utf-8"))
    assert pages.page(found) == stored.with_suffix(".md").read_text(encoding="utf-8")
    study = find(found["study"])
    assert [c["id"] for c in found["claims"]] == [c.id for c in study.claims]
    assert [c["text"] for c in found["claims"]] == [c.text for c in study.claims]


LEAST_TRIED = 3
"""Hypotheses that are tried before a claim stays contradicted."""


@pytest.mark.parametrize("stored", sorted(PAGES.glob("*.json")), ids=lambda p: p.stem)
def test_every_contradicted_claim_has_at_least_three_tried_hypotheses(stored):
    found = json.loads(stored.read_text(encoding="utf-8"))
    if not find(found["study"]).readings:
        # Nothing of it is an interpretation of a text: it compares our stacks with the kernel.
        assert not any(c["others"] for c in found["claims"])
        return
    contradicted = [c for c in found["claims"] if c["verdict"] == "contradicted"]
    less = {c["id"] for c in contradicted if sum(o["tried"] for o in c["others"]) < LEAST_TRIED}
    assert not less


def measured_names(study):
    """Return the metrics that a study's measuring module writes, up to the first dot of their names."""
    path = importlib.import_module(study.measure.partition(":")[0]).__file__
    found = set()
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        keys = []
        if isinstance(node, ast.Dict):
            keys = [k for k in node.keys if k is not None]
        elif isinstance(node, ast.DictComp):
            keys = [node.key]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            keys = [node.slice]
        for key in keys:
            first = key.values[0] if isinstance(key, ast.JoinedStr) else key
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value.partition(".")[0])
    return found


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_metric_declares_its_bounds(name):
    study = find(name)
    assert set(study.bounds) == measured_names(study)
    assert all(least < most for least, most in study.bounds.values())


def test_no_interval_of_a_study_leaves_its_scale_out():
    folder = Path(gargalo_studies.__file__).parent
    for path in folder.glob("*/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "mean_interval":
                assert "bounds" in {k.arg for k in node.keywords}, path


@pytest.mark.parametrize("name", [s.name for s in STUDIES.values() if s.readings])
def test_the_first_reading_names_congestion_controls_without_parameters(name):
    study = STUDIES[name]
    first = study.readings[0].name
    seen = 0
    for job in jobs_of(study, study.profiles["quick"]):
        # The steps of nsquic from one stack to another change a parameter at a time.
        judged = job.labels["reading"] == first and job.labels["experiment"] != "steps"
        flows = job.scenario.get("flows", ()) if judged else ()
        for flow in flows:
            for options in flow.get("transport", {}).values():
                if "congestion" in options:
                    assert isinstance(options["congestion"], str), job.labels
                    seen += 1
    assert seen
