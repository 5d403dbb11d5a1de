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
from gargalo.studies.running import jobs_of, prepared

PAGES = ROOT / "docs" / "studies" / "results"


@pytest.mark.parametrize("stored", sorted(PAGES.glob("*.json")), ids=lambda p: p.stem)
def test_the_results_of_the_documentation_are_made_of_the_data_beside_them(stored):
    found = json.loads(stored.read_text(encoding="utf-8"))
    assert pages.page(found) == stored.with_suffix(".md").read_text(encoding="utf-8")
    study = find(found["study"])
    assert [c["id"] for c in found["claims"]] == [c.id for c in study.claims]
    assert [c["text"] for c in found["claims"]] == [c.text for c in study.claims]


@pytest.mark.parametrize("stored", sorted(PAGES.glob("*.json")), ids=lambda p: p.stem)
def test_every_figure_of_evidence_is_on_the_page(stored):
    found = json.loads(stored.read_text(encoding="utf-8"))
    for claim in found["claims"]:
        rows = [line for line in pages.section(claim) if line.startswith("| ")][2:]
        of_each = [j["evidence"] for j in pages.judgements(claim)]
        least = max(0 if isinstance(lines, str) else len(lines) for lines in of_each)
        assert len(rows) >= least, claim["id"]


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


def without(found, left_out):
    """Return results without some of the readings."""
    claims = [
        {**c, "others": [o for o in c["others"] if o["reading"] not in left_out]}
        for c in found["claims"]
    ]
    tables = [t for t in found["tables"] if not t["title"].endswith(tuple(left_out))]
    return {**found, "claims": claims, "tables": tables}


def only(found, reading):
    """Return results of one reading, as a study that is run in it alone has them."""
    nothing = {"reading": "", "verdict": "inconclusive", "evidence": [], "explanation": ""}
    claims = []
    for claim in found["claims"]:
        own = next((j for j in pages.judgements(claim) if j["reading"] == reading), nothing)
        first = {k: own[k] for k in nothing}
        claims.append({**claim, **first, "others": []})
    tables = [t for t in found["tables"] if t["title"].endswith(f": {reading}")]
    return {**found, "runs": 7, "all_packets": 7000, "claims": claims, "tables": tables}


def test_results_can_be_published_in_parts_in_any_order():
    found = json.loads((PAGES / "high-speed-tcp.json").read_text(encoding="utf-8"))
    found.pop("parts", None)
    later = ["today", "FAST with alpha 100", "Libra paced"]
    for order in (later, later[::-1]):
        parts = {**without(found, later), "runs": 100}
        for reading in [*order, "today"]:
            parts = pages.joined(find(found["study"]), parts, only(found, reading))
        assert (parts["claims"], parts["tables"]) == (found["claims"], found["tables"])
        assert (parts["command"], parts["runs"]) == (found["command"], 121)
        assert "\n- today: 7 different runs, 7,000 packets simulated, made by" in pages.page(parts)


def test_a_part_without_all_experiments_adds_the_claims_that_it_judged_and_no_tables():
    found = json.loads((PAGES / "high-speed-tcp.json").read_text(encoding="utf-8"))
    less = without(found, ["today"])
    part = only(found, "today")
    judged, *open_ones = part["claims"]
    for claim in open_ones:
        claim |= {"verdict": "inconclusive", "evidence": [], "explanation": "left out"}
    more = pages.joined(find(found["study"]), less, part)
    assert more["tables"] == less["tables"]
    assert [c["id"] for c in more["claims"] if "today" in str(c["others"])] == [judged["id"]]


def test_what_is_of_another_profile_or_has_one_reading_is_not_added():
    found = json.loads((PAGES / "high-speed-tcp.json").read_text(encoding="utf-8"))
    with pytest.raises(
        ValueError, match="profile quick cannot be added to results of profile night"
    ):
        pages.joined(find(found["study"]), found, {**found, "profile": "quick"})
    fidelity = json.loads((PAGES / "fidelity.json").read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match="one reading only"):
        pages.joined(find("fidelity"), *[{**fidelity, "repeat": 3}] * 2)


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


WITH_READINGS = sorted(s.name for s in STUDIES.values() if s.readings)
FACTORS = {
    # What experiments vary: no part of a stack.
    "mptcp-schedulers": {
        "scheduler",
        "path_manager",
        "changes",
        "backup",
        "penalisation",
        "multipath",
    },
    "nsquic": {"crypto", "tls", "handshake", "packet_threshold", "recovery"},
    "userspace-bbr": {"pacing", "sack", "recovery"},
}
STATED = {
    # What the applications of the first reading set, as the pages of the studies say: the windows of ns-2's background,
    # those of QUIC beside MPTCP, smoltcp's send buffer, and the receiver of Linux that it sends to.
    "high-speed-tcp": {"send_buffer", "receive_buffer"},
    "mptcp-schedulers": {"connection_window", "stream_window", "send_window"},
    "userspace-bbr": {"send_buffer", "receive_buffer", "delayed_ack"},
}


def senders(job):
    """Return the options of the transports of a run."""
    flows = job.scenario.get("flows", ())
    return [options for flow in flows for options in flow.get("transport", {}).values()]


@pytest.mark.parametrize("name", WITH_READINGS)
def test_the_first_reading_has_no_stack_of_its_own(name):
    study = STUDIES[name]
    first = study.readings[0].name
    seen = set()
    for job in jobs_of(study, study.profiles["quick"]):
        # The steps of nsquic from one stack to another change a parameter at a time.
        if job.labels["reading"] == first and job.labels["experiment"] != "steps":
            for options in senders(job):
                assert isinstance(options.get("congestion", ""), str), job.labels
                seen |= options.keys()
    own = seen - {"profile", "congestion"}
    assert own == FACTORS.get(name, set()) | STATED.get(name, set())


@pytest.mark.parametrize("name", WITH_READINGS)
def test_every_hypothesis_changes_runs_of_the_claims_on_which_it_is_tried(name, tmp_path):
    study = STUDIES[name]
    found = json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))
    profile = prepared(study, study.profiles[found["profile"]].with_repeat(1), tmp_path)
    runs = {}
    for job in jobs_of(study, profile):
        cell = {k: v for k, v in job.labels.items() if k != "reading"}
        runs.setdefault(job.labels["reading"], {})[json.dumps(cell)] = (cell, job.scenario)
    first, *others = study.readings_of(profile)
    for reading in others:
        changed = {
            cell["experiment"]
            for key, (cell, scenario) in runs[reading.name].items()
            if scenario != runs[first.name][key][1]
        }
        for claim in study.claims:
            if reading.claims is not None and reading.judges(claim):
                assert changed & set(claim.experiments), (reading.name, claim.id)
