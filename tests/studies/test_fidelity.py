"""The study fidelity: its plan, its verdicts on made-up runs, response functions, and a few real runs."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from gargalo import lab, run, studies
from gargalo.studies import find
from gargalo.studies.model import Context
from gargalo.studies.running import jobs_of, kernel_controls, verdicts
from gargalo.sweeps.job import Identifier
from gargalo_studies.fidelity import STUDY, claims
from gargalo_studies.fidelity import experiments as ex
from gargalo_studies.fidelity.cells import SHARES, cells, table
from gargalo_studies.fidelity.figures import figures, tables
from gargalo_studies.fidelity.measure import measure
from gargalo_studies.fidelity.scenarios import KERNEL, LAB, SIM
from gargalo_studies.userspace_bbr import traces


@pytest.fixture
def quick(tmp_path):
    """The quick profile with its traces."""
    return traces.prepare(STUDY.profiles["quick"], tmp_path)


def test_every_cell_of_the_plan_is_a_valid_scenario(quick):
    assert find("fidelity") is STUDY
    jobs = jobs_of(STUDY, quick)
    first = [j for j in jobs if j.repeat == 0]
    labels = [json.dumps(j.labels, sort_keys=True) for j in first]
    assert len(labels) == len(set(labels))
    identifier = Identifier()
    for job in first:
        assert identifier.task(job).run
    # At least 150 comparisons: each cell has the kernel, our stack in the lab, and the simulator.
    compared = {
        json.dumps({k: v for k, v in j.labels.items() if k not in ("stack", "world")})
        for j in first
        if j.labels["experiment"] != "response"
    }
    assert 2 * len(compared) >= 150
    assert {tuple(kernel_controls(j)) for j in first if j.labels["stack"] == "kernel"} == {
        ("cubic", "reno"),
        ("cubic", "cubic"),
        ("cubic", "bbr"),
        ("cubic", "bbr", "reno"),
    }


def made_up(profile, **factors):
    """Runs in which all stacks have the same, except for factors by stack, or by experiment."""
    rows = []
    for job in jobs_of(STUDY, profile):
        x = dict(job.labels)
        factor = factors.get(x["stack"].partition(",")[2].strip() or x["stack"], 1.0)
        noise = 1 + 0.01 * (job.repeat or 0)
        row = {**x, "repeat": job.repeat, "rate_bps": 5e6 * noise * factor}
        if x["experiment"] == "short":
            row["completion_s"] = noise * factor
        if x["experiment"] in SHARES:
            row["share"] = 0.5 + (factor - 1)
        if x["experiment"] == "response":
            row["window"] = claims.response(x["control"], 1 / x["every"]) * factors.get("theory", 1)
        rows.append(row)
    return Context(profile, pl.from_dicts(rows, infer_schema_length=None))


def test_equal_stacks_reproduce_every_claim(quick):
    context = made_up(quick)
    assert {c.verdict for c in verdicts(STUDY, context)} == {"reproduced"}
    found = list(cells(context, SIM, KERNEL, ("loss", "pair")))
    assert len(found) == 3 * (len(ex.LOSSES) + 7)
    assert all(c.within(1e-9) for c in found)
    assert {f.title for f in figures(context)} == {
        "ours, simulated against kernel",
        "ours, lab against ours, simulated",
    }
    for f in figures(context):
        # Ratios, of equal stacks 1; differences of shares are in the tables.
        assert {round(x, 6) for t in f.figure.data for x in t.x} == {1.0}
        assert len({y for t in f.figure.data for y in t.y}) > 20, "the names of the cells"
    assert table(context, LAB, SIM)["ratio or difference"].null_count() == 0
    assert len(tables(context)) == 2 + len(STUDY.experiments)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"kernel": 1.06}, {"goodput", "completion"}),
        ({"kernel": 1.12}, {"goodput", "completion", "shares"}),
        ({"lab": 0.93}, {"worlds"}),
        ({"theory": 1.06}, {"theory"}),
    ],
)
def test_stacks_that_differ_contradict_the_claims_about_them(quick, factors, expected):
    found = verdicts(STUDY, made_up(quick, **factors))
    assert {c.id for c in found if c.verdict == "contradicted"} == expected
    for claim in found:
        assert (claim.verdict == "contradicted") == bool(claim.explanation)


def test_without_the_lab_theory_is_left(quick):
    whole = made_up(quick)
    simulated = whole.frame.filter(pl.col("world") == "sim")
    found = verdicts(STUDY, Context(quick, simulated, {"lab": "no namespaces"}))
    assert {c.id: c.verdict for c in found if c.verdict != "inconclusive"} == {
        "theory": "reproduced"
    }
    assert all("no namespaces" in c.explanation for c in found if c.verdict == "inconclusive")
    nothing = verdicts(STUDY, Context(quick, pl.DataFrame()))
    assert {c.verdict for c in nothing} == {"inconclusive"}
    assert figures(Context(quick, pl.DataFrame())) == []


def test_the_mean_window_of_reno_is_that_of_the_response_function(quick):
    job = next(
        j
        for j in ex.responses(replace(quick, settings=replace(quick.settings, response_s=100)))
        if j.labels["control"] == "reno" and j.labels["every"] == 400
    )
    window = measure(run(job.scenario, seed=job.seed))["window"]
    assert window == pytest.approx(claims.response("reno", 1 / 400), rel=0.03)


def test_a_part_of_the_study_from_runs_to_the_page(tmp_path):
    reason = lab.refusal("cubic")
    if reason is not None:
        pytest.skip(f"no lab here: {reason}")

    def few(profile):
        jobs = ex.transfers(profile, "short", [{"kb": 100, "mbps": 12.0, "queue_packets": 100}])
        return [j for j in jobs if j.labels["control"] == "cubic"]

    study = replace(STUDY, experiments=(studies.Experiment("short", "few", few),))
    outcome = studies.run_study(study, "quick", directory=tmp_path / "study", repeat=2, workers=1)
    assert outcome.sweep.failures == []
    frame = outcome.sweep.frame()
    assert sorted(frame["stack"].unique()) == ["kernel", "ours, lab", "ours, simulated"]
    # Three round trips and 100 kB at 12 Mbit/s at least; not of the lab's precision, which depends on the machine.
    assert frame["completion_s"].min() > 0.35
    assert "runs in real time" in outcome.page.read_text(encoding="utf-8")
