"""The Python interface: scenarios as values, runs as data frames and figures."""

from __future__ import annotations

import json
import runpy

import gargalo
import pytest
from conftest import ROOT, TINY
from gargalo import _generate
from gargalo._toml import loads
from gargalo.scenarios.scenario import to_toml


def built() -> gargalo.Scenario:
    link = {
        "rate": "5Mbit/s",
        "delay": "10ms",
        "queue": {"droptail": "50 packets"},
        "loss": {"independent": 0.001},
    }
    return (
        gargalo.Scenario("tiny", duration="3s", seed=3)
        .simple(**link)
        .flow(congestion="cubic", label="upload")
        .flow(congestion="reno", start="500ms", label="file", workload={"bulk": {"bytes": "200kB"}})
    )


def test_all_forms_of_a_scenario_run_alike(tiny):
    forms = [tiny, str(tiny), TINY, loads(TINY), built()]
    results = [gargalo.run(f).flows for f in forms]
    assert all(r.equals(results[0]) for r in results)


def test_toml_round_trip():
    hard = {
        "name": 'quote " backslash \\ newline \n é',
        "numbers": [1, 2.5, -3, True],
        "table": {"a-b": {"with space": []}},
        "rows": [{"x": {"y": "z"}}, {}],
    }
    assert loads(to_toml(hard)) == hard


def test_tables_and_figures(tiny):
    run = gargalo.run(tiny)
    assert run.flows.height == 2
    assert run.directory is None
    assert run.summary
    times = run.flow_samples["time_s"]
    assert 0 <= times.min() < times.max() <= 3
    for figure in (run.plot.congestion_window(), run.plot.rtt()):
        assert len(figure.axes[0].lines) == 2
    assert len(run.plot.goodput().axes[0].lines) == 3, "and the capacity"
    assert len(run.plot.queue().axes[0].lines) >= 1


def test_load_gives_what_run_gave(tiny, tmp_path):
    run = gargalo.run(tiny, output=tmp_path / "out")
    again = gargalo.load(tmp_path / "out")
    assert again.flows.equals(run.flows)
    assert again.link_samples.equals(run.link_samples)
    assert again.summary == run.summary
    assert again.scenario == run.scenario
    assert again.links == run.links
    assert again.table("links").equals(run.table("links"))
    with pytest.raises(FileNotFoundError, match="no results"):
        gargalo.load(tmp_path)
    with pytest.raises(gargalo.RunError, match="exists"):
        gargalo.run(tiny, output=tmp_path / "out")


def test_every_table_by_its_name(tiny):
    run = gargalo.run(tiny)
    assert run.table("flows").equals(run.flows)
    assert run.table("links").to_dicts() == run.links
    assert {link["direction"] for link in run.links} == {"up", "down"}
    for name in ("no-such-table", "summary"):
        with pytest.raises(ValueError, match=r"there is no table .* tables are flows, links, "):
            run.table(name)


def test_results_without_a_table_of_links_have_them_in_run_json(tiny, tmp_path):
    run = gargalo.run(tiny, output=tmp_path / "out")
    place = tmp_path / "out"
    facts = json.loads((place / "run.json").read_text(encoding="utf-8"))
    (place / "run.json").write_text(json.dumps(facts | {"links": run.links}), encoding="utf-8")
    (place / "links.parquet").unlink()
    (place / "manifest.json").unlink()
    again = gargalo.load(place)
    assert again.links == run.links
    assert "links" not in again.info


def test_progress_can_stop_a_run(tiny):
    seen = []

    def stop(p: gargalo.Progress) -> bool:
        seen.append(p)
        return False

    run = gargalo.run(tiny, set={"duration": "100000s"}, progress=stop)
    assert run.interrupted
    assert 0 <= seen[0].fraction < 1


def test_what_progress_raises_is_raised(tiny):
    def fail(_: gargalo.Progress) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        gargalo.run(tiny, set={"duration": "100000s"}, progress=fail)


def test_errors_name_the_fix():
    with pytest.raises(gargalo.ScenarioError, match="5Mbit/s"):
        gargalo.run(TINY.replace('rate = "5Mbit/s"', "rate = 5"))
    with pytest.raises(gargalo.ScenarioError, match="check the path"):
        gargalo.run("nowhere.toml")
    with pytest.raises(TypeError, match="cannot contain"):
        gargalo.run({"name": object()})


def test_derived_files_are_up_to_date():
    assert _generate.stale(ROOT) == [], "run `make reference`"


def test_notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(ROOT / "examples" / "python_api.py"), run_name="__main__")
    assert names["saved"].flows.height == 2
    assert names["shares"]["timid"] > 0
