"""`gargalo evaluate`: scorecards on disk, baselines, exit codes, bad input."""

from __future__ import annotations

import copy
import json
import textwrap
from dataclasses import replace

import polars as pl
import pytest
from conftest import LONG, of_each_value
from gargalo import _core
from gargalo.evaluation import CRITERIA, PROFILES, QUESTIONS, records
from gargalo.evaluation.running import plan
from gargalo.sweeps.job import Identifier

SMALL = ("--only", "link-cut", "--only", "low-rate", "--store", "store")


def test_every_cell_of_every_criterion_is_a_valid_scenario_and_profiles_grow():
    counts = []
    for profile in ("quick", "standard", "full"):
        # Repeats have the same cells, with other seeds: two show it, all with LONG=1.
        chosen = PROFILES[profile]
        chosen = chosen if LONG else replace(chosen, repeat=2)
        jobs, scenarios = plan(["reno"], chosen, CRITERIA)
        counts.append(len({str(j.labels) for j in jobs}))
        for name in ("bbr3", "bbr", "cubic", "hstcp"):
            own = [c for c in CRITERIA if name in c.algorithms]
            more, named = plan([name], chosen, own)
            jobs += more
            scenarios |= named
        identifier = Identifier()
        first = [j for j in jobs if j.repeat == 0]
        assert {j.labels["criterion"] for j in first} == {
            c.id for c in CRITERIA if profile in c.profiles
        }
        labels = [json.dumps(dict(j.labels), sort_keys=True) for j in first]
        assert len(labels) == len(set(labels)) == len(scenarios)
        for job in first if profile == "quick" else of_each_value(first, "criterion"):
            identifier.task(job)
    assert counts[0] < counts[1] < counts[2]


def test_criteria_say_what_they_are_about():
    assert len({c.id for c in CRITERIA}) == len(CRITERIA)
    for c in CRITERIA:
        assert c.section.startswith(("RFC ", "draft-")), c.id
        assert c.strength in ("MUST", "SHOULD", "should")
        assert c.asks.endswith(".")
        assert c.does.endswith(".")
        assert len({f.name for f in c.figures}) == len(c.figures)
        assert (len(c.figures) > 0) == (c.cases is None)
    # Every MUST of sections 5 to 7 that can be run has a criterion.
    musts = {c.section.removeprefix("RFC 9743 ") for c in CRITERIA if c.strength == "MUST"}
    assert {"5.1.5", "5.2", "5.2.1", "5.2.3", "6.1, 6.3", "7.9", "7.10"} <= musts
    assert all(q.section and q.text.endswith("?") for q in QUESTIONS)


def test_a_scorecard_is_written_and_the_next_one_takes_the_references_from_the_store(
    inside, tmp_path
):
    done = inside("evaluate", "vegas", "--repeat", "2", *SMALL, "--output", "first")
    assert done.returncode == 0, done.stderr
    assert "link-cut" in done.stdout
    assert "scorecard.html" in done.stdout
    assert "<html" in (tmp_path / "first" / "scorecard.html").read_text()
    card = json.loads((tmp_path / "first" / "scorecard.json").read_text())
    assert (card["algorithm"], card["profile"], card["repeat"]) == ("vegas", "quick", 2)
    assert [c["id"] for c in card["criteria"]] == ["link-cut", "low-rate"]
    figure = card["criteria"][0]["figures"][0]
    assert set(figure["references"]) == {"reno", "cubic", "bbr"}
    assert len(figure["values"]) == 2
    assert card["questions"]
    runs = pl.read_parquet(tmp_path / "first" / "runs.parquet")
    assert set(runs["algorithm"]) == {"vegas", "reno", "cubic", "bbr"}
    cell = next((tmp_path / "first" / "scenarios" / "link-cut").glob("*.toml"))
    again = inside("run", cell, "--json")
    assert again.returncode == 0, again.stderr
    # Westwood's runs are all that is new.
    done = inside("evaluate", "westwood", "--repeat", "2", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    (other,) = json.loads(done.stdout)
    assert other["algorithm"] == "westwood"
    own = other["criteria"][0]["figures"][0]["references"]["reno"]
    assert own == figure["references"]["reno"]


def test_the_baseline_decides_the_exit_code(inside, tmp_path):
    one = ("--repeat", "2", "--only", "low-rate", "--store", "store")
    assert inside("evaluate", "vegas", *one, "--output", "base").returncode == 0
    base = tmp_path / "base" / "scorecard.json"
    same = inside(
        "evaluate", "vegas", *one, "--baseline", base, "--fail-on", "regression", "--output", "new"
    )
    assert same.returncode == 0, same.stdout
    assert "nothing differs" in same.stdout
    kept = (tmp_path / "new" / "scorecard.json").read_bytes()
    again = ("reno", *one, "--baseline", base, "--output", "new")
    refused = inside("evaluate", *again)
    assert refused.returncode == 2
    assert "new exists; choose another --output or add --overwrite" in refused.stderr
    assert (tmp_path / "new" / "scorecard.json").read_bytes() == kept
    worse = inside("evaluate", *again, "--fail-on", "regression", "--overwrite")
    assert worse.returncode == 1
    assert "worse: low-rate: " in worse.stdout
    assert json.loads((tmp_path / "new" / "scorecard.json").read_text())["algorithm"] == "reno"
    (tmp_path / "new" / "notes.md").write_text("precious")
    told = inside("evaluate", *again, "--overwrite")
    assert told.returncode == 2
    assert "new/notes.md is not a result" in told.stderr
    (tmp_path / "new" / "notes.md").unlink()
    assert inside("evaluate", *again, "--overwrite").returncode == 0


def test_what_cannot_be_done_is_a_sentence(inside, tmp_path):
    for arguments, said in (
        (["nosuch"], 'no congestion control "nosuch"'),
        (["nosuch.py"], "nosuch.py: no such file"),
        (["reno", "--profile", "brief"], 'no profile "brief"; there are quick, standard, full'),
        (
            ["reno", "--only", "bufferblot"],
            'no criterion "bufferblot"; did you mean "bufferbloat"?',
        ),
        (["reno", "--fail-on", "regression"], "needs a --baseline FILE"),
        (["reno", "--baseline", "none.json"], "none.json: cannot be read"),
    ):
        done = inside("evaluate", *arguments)
        assert done.returncode == 2, done.stderr
        assert said in " ".join(done.stderr.split())
    (tmp_path / "other.json").write_text('{"a": 1}')
    done = inside("evaluate", "reno", "--baseline", "other.json")
    assert "no scorecard" in done.stderr


def test_a_file_that_cannot_be_loaded_is_a_row_and_the_others_go_on(gargalo, tmp_path):
    (tmp_path / "bad.py").write_text("import nomodule\n")
    (tmp_path / "raises.py").write_text(
        textwrap.dedent("""
            import gargalo

            @gargalo.congestion("raises")
            class Raises(gargalo.Controller):
                def on_ack(self, ack, path):
                    raise RuntimeError("in the middle")
                def on_congestion(self, event, path):
                    pass
                def cwnd(self):
                    return 30_000
        """)
    )
    done = gargalo(
        "evaluate", "bad.py", "raises.py", "reno", "--repeat", "1", "--only", "low-rate",
        "--store", "store", "--output", "cards",
    )  # fmt: skip
    assert done.returncode == 1
    assert "No module named 'nomodule'" in done.stdout
    assert "RuntimeError: in the middle" in done.stdout
    assert "raises.py" in done.stdout
    assert "raises" in (tmp_path / "cards" / "index.html").read_text()
    names = {p.parent.name for p in (tmp_path / "cards").glob("*/scorecard.json")}
    assert names == {"bad-quick", "raises-quick", "reno-quick"}
    broken = json.loads((tmp_path / "cards" / "bad-quick" / "scorecard.json").read_text())
    assert "nomodule" in broken["broken"]
    failed = json.loads((tmp_path / "cards" / "raises-quick" / "scorecard.json").read_text())
    assert failed["criteria"][0]["verdict"] == "failed"
    [failure] = failed["criteria"][0]["failures"]
    assert "RuntimeError: in the middle" in failure["reason"]
    assert "Traceback" in failure["trace"]


def test_the_table_of_another_evaluation_stays(inside, tmp_path):
    index = tmp_path / "index.html"
    page = '<html><meta name="generator" content="gargalo evaluate">'

    def refused(*options: str) -> str:
        # Nothing runs: the directory is looked at before.
        done = inside(
            "evaluate", "reno", "cubic", *SMALL, "--output", ".", "--repeat", "1", *options
        )
        assert done.returncode == 2, done.stderr
        assert not (tmp_path / "store").exists()
        return " ".join(done.stderr.split())

    index.write_text(page)
    assert "index.html exists; choose another --output or add --overwrite" in refused()
    index.write_text("mine")
    assert "index.html is not a page of gargalo" in refused("--overwrite")
    index.write_text(page)
    _core.add_files(tmp_path, ["index.html"], make=True)
    index.write_text(f"{page} my remarks")
    assert "index.html was changed since gargalo wrote it" in refused("--overwrite")
    (tmp_path / "manifest.json").write_text("{}")
    assert "manifest.json: it is damaged" in refused("--overwrite")
    (tmp_path / "manifest.json").unlink()
    index.unlink()
    more = ["evaluate", "reno", "cubic", "--only", "low-rate", "--store", "store", "--output", "."]
    assert inside(*more, "--repeat", "1").returncode == 0
    assert list(json.loads((tmp_path / "manifest.json").read_text())["files"]) == ["index.html"]
    assert inside(*more, "--repeat", "1").returncode == 2
    assert inside(*more, "--repeat", "1", "--overwrite").returncode == 0


FIGURE = {
    "name": "queue_s", "text": "queue", "unit": "s", "better": "less", "margin": 0.05, "least": 0.001,
    "values": [0.1, 0.11, 0.105], "mean": 0.105, "low": 0.09, "high": 0.12,
}  # fmt: skip
CARD = {
    "format": 2, "profile": "quick",
    "criteria": [{"id": "x", "faults": [], "failures": [], "figures": [FIGURE]}],
}  # fmt: skip


def changed(**figure):
    card = copy.deepcopy(CARD)
    card["criteria"][0]["figures"][0] |= figure
    return card


def test_only_what_exceeds_interval_and_margin_is_a_change():
    kinds = lambda now: [c.kind for c in records.compare(CARD, now)]  # noqa: E731
    assert kinds(CARD) == []
    assert kinds(changed(values=[0.106, 0.112, 0.108])) == []
    assert kinds(changed(values=[0.05, 0.3, 0.2])) == [], "too uncertain"
    assert kinds(changed(values=[0.2, 0.21, 0.205])) == ["worse"]
    assert kinds(changed(values=[0.05, 0.051, 0.049])) == ["better"]
    assert kinds(changed(values=[None, None, None])) == ["gone"]
    (one,) = records.compare(CARD, changed(values=[0.9]))
    assert (one.kind, one.is_regression) == ("no verdict", False)
    assert one.text.endswith("one run: no verdict")
    assert kinds(changed(better="more", values=[0.2, 0.21, 0.205])) == ["worse"]


def test_faults_and_failures_are_changes():
    now = copy.deepcopy(CARD)
    now["criteria"][0]["faults"] = ["does not back off"]
    now["criteria"][0]["failures"] = [{"reason": "RuntimeError: x", "trace": "Traceback"}]
    found = records.compare(CARD, now)
    assert [c.kind for c in found] == ["new fault", "new failure"]
    assert all(c.is_regression for c in found)
    assert [c.kind for c in records.compare(now, CARD)] == ["mended"]
    with pytest.raises(records.BaselineError, match="of profile quick, this is full"):
        records.compare(CARD, {**CARD, "profile": "full"})
