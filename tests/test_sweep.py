"""Planning sweeps: axes, seeds, identifiers, mistakes; `gargalo sweep` as a whole."""

from __future__ import annotations

import functools
import json
import math
import sys

import gargalo
import polars as pl
import pytest
from click.testing import CliRunner
from gargalo import sweeps
from gargalo.cli.app import app
from gargalo.sweeps.job import Identifier
from sweep_helpers import MINI, RATES, delivered, sweep_file


def labels(axes, **options):
    return [dict(j.labels) for j in sweeps.plan(MINI, axes, **options)]


def test_axes_of_every_form():
    axes = {
        "topology": {"simple": {"link": {"rate": ["1Mbit/s", "2Mbit/s"]}}},
        "flows": {"*": {"transport": {"tcp": {"congestion": ["reno", {"cubic": {"beta": 0.6}}]}}}},
        "buffer": {"key": "topology.simple.link.queue.droptail", "values": ["10 packets"]},
        "loss": {
            "key": "topology.simple.link.loss.independent",
            "from": 1e-4,
            "to": 1e-2,
            "steps": 3,
            "scale": "log",
        },
        "path": {
            "zip": {"topology.simple.link.delay": ["1ms", "9ms"], "duration": ["1s", "2s"]},
            "names": ["short", "long"],
        },
    }
    jobs = sweeps.plan(MINI, axes)
    assert len(jobs) == 2 * 2 * 1 * 3 * 2
    assert list(jobs[0].labels) == ["rate", "congestion", "buffer", "loss", "path"]
    assert {j.labels["congestion"] for j in jobs} == {"reno", "cubic beta=0.6"}
    assert [j.labels["loss"] for j in jobs[:6:2]] == [0.0001, 0.001, 0.01]
    last = jobs[-1].changes
    assert last["topology.simple.link.delay"] == "9ms"
    assert last["duration"] == "2s"
    assert last["flows.*.transport.tcp.congestion"] == {"cubic": {"beta": 0.6}}


def test_ranges():
    def values(**more):
        return [r["x"] for r in labels({"x": {"key": "topology.simple.link.delay", **more}})]

    assert values(**{"from": 10, "to": 30, "steps": 3, "unit": "ms"}) == ["10ms", "20ms", "30ms"]
    assert values(**{"from": 1, "to": 100, "steps": 3, "scale": "log", "unit": "ms"}) == [
        "1ms",
        "10ms",
        "100ms",
    ]


def test_named_points_merge_tables_and_replace_alternatives():
    link = {"queue": {"codel": {}}, "delay": "7ms"}
    point = {"name": "smart", "set": {"topology": {"simple": {"link": link}}}}
    other = {"name": "as-is", "set": {"duration": "2s"}}
    smart, _ = sweeps.plan(MINI, {"network": [point, other]})
    resolved, _ = smart.scenario.resolve(smart.changes, {})
    up = resolved["links"][0]["up"]
    assert list(up["queue"]) == ["codel"]
    assert up["delay"] == {"constant_s": 0.007}
    assert up["rate"] == {"constant_bps": 2_000_000}, "what the point does not name stays"


def test_a_label_of_flows_names_them():
    (job,) = sweeps.plan(MINI, {"flows.other.transport.tcp.congestion": ["bbr"]})
    assert job.changes == {"flows.1.transport.tcp.congestion": "bbr"}


def test_labels_are_the_shortest_endings_that_differ():
    axes = {"flows.0.start": ["0s", "100ms"], "flows.1.start": ["0s"], "duration": ["1s"]}
    assert list(labels(axes)[0]) == ["0.start", "1.start", "duration"]


def test_seeds_do_not_depend_on_the_rest_of_the_sweep():
    few = sweeps.plan(MINI, {"duration": ["1s", "2s"]}, repeat=2, seed=1)
    many = sweeps.plan(MINI, {"duration": ["3s", "2s", "1s"], **RATES}, repeat=3, seed=1)
    assert {j.seed for j in few} <= {j.seed for j in many}
    by_repeat = {(j.repeat, j.seed) for j in many}
    assert len(by_repeat) == 3, "the same seeds in every cell"
    identifier = Identifier()
    old = {identifier.task(j).run for j in sweeps.plan(MINI, {"duration": ["1s"]}, repeat=2)}
    new = {identifier.task(j).run for j in sweeps.plan(MINI, {"duration": ["1s", "4s"]}, repeat=3)}
    assert old < new


def test_identifiers_are_of_what_matters():
    identifier = Identifier()

    def run(text=MINI, seed=1, **changes):
        return identifier.task(sweeps.Job({}, text, seed, changes=changes)).run

    assert run() == run(MINI.replace('"mini"', '"other"')), "a name changes no result"
    assert run() == run(MINI.replace('"2Mbit/s"', '"2000kbit/s"')), "nor does a way of writing"
    assert len({run(), run(seed=2), run(duration="2s")}) == 3


def test_points_of_a_zip_without_names_are_called_by_their_values():
    axes = {"z": {"zip": {"duration": ["1s", "2s"], "flows.0.start": ["0s", "1s"]}}}
    assert labels(axes) == [{"z": "1s 0s"}, {"z": "2s 1s"}]


def test_two_ends_below_a_key_are_a_range():
    rates = {"from": "1Mbit/s", "to": "3Mbit/s"}
    with pytest.raises(sweeps.SweepError, match="a range needs numbers"):
        sweeps.plan(MINI, {"topology": {"simple": {"link": {"rate": rates}}}})


BAD = [
    ({"topology.simple.link.rat": ["1Mbit/s"]}, ["rat", "topology.simple.link.rat", "`rate`"]),
    ({"flows.*.transport.tcp.congestion": ["reno", "cubik"]}, ["congestion", "cubik", "`cubic`"]),
    ({"topology.simple.link.rate": [5]}, ["rate", "no unit", "5Mbit/s"]),
    ({"flows.uplod.start": ["1s"]}, ["start", "uplod", '"upload"']),
    ({"flows.7.start": ["1s"]}, ["7.start", "not an item of a list of 2"]),
    ({"topology.simple.link.rate": "5Mbit/s"}, ["rate", "write a list"]),
    ({"duration": []}, ["duration", "no values"]),
    ({"duration": ["1s", "1s"]}, ["duration", '"1s" twice']),
    ({"seed": [1, 2]}, ["seed", "repeat"]),
    ({"x": {"key": "duration", "from": 1, "to": 2, "step": 3}}, ["x", '"step"', '"steps"']),
    ({"x": {"key": "duration", "from": 0, "to": 2, "steps": 3, "scale": "log"}}, ["above 0"]),
    ({"z": {"zip": {"duration": ["1s"], "name": ["a", "b"]}}}, ["z", "equally long"]),
    ({"a": {"key": "duration", "values": ["1s"]}, "duration": ["2s"]}, ["duration", "axis a too"]),
    ({"n": [{"set": {"duration": "1s"}}]}, ["n", "entry 1 has no name"]),
]


@pytest.mark.parametrize(
    ("axes", "told"), BAD, ids=[next(iter(a)) + str(i) for i, (a, _) in enumerate(BAD)]
)
def test_bad_axes_are_refused_before_anything_runs(axes, told):
    with pytest.raises(sweeps.SweepError) as error:
        sweeps.plan(MINI, axes)
    assert 'axis "' in str(error.value)
    assert "\n" not in str(error.value)
    for part in told:
        assert part in str(error.value)


def test_a_cell_that_is_wrong_only_as_a_whole_is_named_by_its_labels():
    axes = {"flows.0.start": ["0s", "3s"], "flows.0.stop": ["2s", "5s"]}
    with pytest.raises(sweeps.SweepError, match=r"start = 3s, stop = 2s|start.*at 3s"):
        sweeps.plan(MINI, axes, set={"duration": "9s"})


def test_labels_cannot_hide_results(tmp_path):
    with pytest.raises(sweeps.SweepError, match="utilization"):
        sweeps.execute([sweeps.Job({"utilization": 1}, MINI, 1)], tmp_path / "s")
    with pytest.raises(sweeps.SweepError, match='no table "flow"'):
        sweeps.execute([sweeps.Job({}, MINI, 1)], tmp_path / "s", keep=["flow"])
    with pytest.raises(sweeps.SweepError, match="cannot be imported"):
        sweeps.execute([sweeps.Job({}, MINI, 1)], tmp_path / "s", measure="nowhere:f")
    assert not (tmp_path / "s").exists()


def test_frame_table_and_summary(tmp_path):
    done = gargalo.sweep(
        MINI, RATES, repeat=3, store=tmp_path / "s", measure=delivered, keep=["flows"], workers=2
    )
    assert (done.done, done.reused, list(done.failures)) == (6, 0, [])
    frame = done.frame()
    assert frame.columns[:5] == ["run", "rate", "repeat", "seed", "delivered_mb"]
    assert {"goodput_bps", "jain_index", "utilization", "packets", "events", "wall_s"} <= set(
        frame.columns
    )
    assert frame["rate"].to_list() == ["1Mbit/s"] * 3 + ["2Mbit/s"] * 3
    assert frame["repeat"].to_list() == [0, 1, 2] * 2

    # What the store says is what a run says.
    first = frame.row(3, named=True)
    alone = gargalo.run(MINI, seed=first["seed"], set={"start_jitter": "1RTT"})
    assert first["goodput_bps"] == alone.summary["goodput_bps"]
    assert first["packets"] == alone.info["packets"]
    assert first["scenario_hash"] == alone.info["scenario_hash"]
    flows = done.table("flows")
    assert isinstance(flows, pl.LazyFrame)
    rows = flows.filter(pl.col("run") == first["run"]).collect()
    assert rows.select(alone.flows.columns).equals(alone.flows)
    assert rows["rate"].to_list() == ["2Mbit/s"] * 2

    from gargalo.metrics import mean_interval
    from gargalo.metrics.declared import bounds_in

    summary = done.summary(metrics=["goodput_bps", "delivered_mb"])
    assert summary["metric"].to_list() == ["goodput_bps", "delivered_mb"] * 2
    for r in summary.iter_rows(named=True):
        own = frame.filter(pl.col("rate") == r["rate"])
        values = own[r["metric"]]
        same = mean_interval(values.to_list(), bounds=bounds_in(r["metric"], own))
        assert (r["n"], r["mean"]) == (3, pytest.approx(same.mean))
        assert (r["low"], r["high"]) == (pytest.approx(same.low), pytest.approx(same.high))
        assert r["sd"] == pytest.approx(values.std())
    with pytest.raises(sweeps.SweepError, match="no label"):
        done.summary(by=["congestion"])
    with pytest.raises(sweeps.StoreError, match=r"kept: flows"):
        done.table("events")

    loaded = sweeps.load(tmp_path / "s")
    assert loaded.frame().equals(frame)


def test_measured_figures_declare_what_they_can_be(tmp_path):
    def made(bounds):
        measure = functools.partial(delivered)
        functools.update_wrapper(measure, delivered)
        measure.bounds = bounds
        return gargalo.sweep(MINI, repeat=3, store=tmp_path / "s", measure=measure)

    plain = gargalo.sweep(MINI, repeat=3, store=tmp_path / "s", measure=delivered)
    assert plain.summary(metrics=["delivered_mb"])["method"].to_list() == ["student"]
    given = plain.summary(metrics=["delivered_mb"], bounds={"delivered_mb": (0, math.inf)})
    assert given["method"].to_list() == ["log"]
    done = made({"delivered_mb": (0, math.inf)})
    assert done.reused == 3, "what is declared changes no run"
    assert done.bounds == {"delivered_mb": (0.0, math.inf)}
    assert sweeps.load(tmp_path / "s").summary(metrics=["delivered_mb"]).equals(given)
    with pytest.raises(sweeps.SweepError, match="least and the greatest"):
        made({"delivered_mb": 0})


def test_a_measuring_function_has_files_only_if_they_are_asked_for(tmp_path):
    def measure(run):
        return {"files": 0 if run.directory is None else len(list(run.directory.iterdir()))}

    found = [
        sweeps.execute(
            sweeps.plan(MINI), tmp_path / str(len(files)), measure=measure, workers=1, **files
        ).frame()
        for files in ({}, {"files": True})
    ]
    assert found[0]["files"].item() == 0 < found[1]["files"].item()


def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    frames = [
        gargalo.sweep(MINI, RATES, repeat=4, store=tmp_path / str(n), workers=n).frame()
        for n in (1, 3)
    ]
    assert frames[0].drop("wall_s").equals(frames[1].drop("wall_s"))


def test_only_what_is_missing_is_done(tmp_path):
    store = tmp_path / "s"

    def go(axes, **options):
        done = gargalo.sweep(MINI, axes, store=store, workers=1, **options)
        return done.done, done.reused

    assert go({"duration": ["500ms"]}, repeat=2) == (2, 0)
    assert go({"duration": ["500ms"]}, repeat=2) == (0, 2)
    assert go({"duration": ["500ms", "600ms"]}, repeat=3) == (4, 2)
    assert go({"duration": ["500ms"]}, repeat=2, keep=["flows"]) == (2, 0), "a table is missing"
    assert go({"duration": ["500ms"]}, repeat=2, measure=delivered) == (2, 0), "figures are missing"
    assert go({"duration": ["500ms"]}, repeat=2, measure=delivered, keep=["flows"]) == (0, 2)


def test_jobs_by_hand(tmp_path):
    other = gargalo.Scenario("x", duration="500ms").simple(
        rate="1Mbit/s", delay="1ms", queue={"droptail": "10 packets"}
    )
    jobs = [
        gargalo.Job({"kind": "mini", "n": 2}, MINI, 1),
        gargalo.Job({"kind": "mini", "n": 2}, MINI, 2),
        gargalo.Job({"kind": "built"}, other.flow(congestion="bbr"), 1),
        gargalo.Job({"kind": "dict"}, other.flow(congestion="reno").to_dict(), 1),
    ]
    frame = sweeps.execute(jobs, tmp_path / "s", workers=1).frame()
    assert frame["kind"].to_list() == ["mini", "mini", "built", "dict"]
    assert frame["n"].to_list() == [2, 2, None, None]
    assert frame["repeat"].to_list() == [0, 1, 0, 0]


# --- the command


def test_command(inside, tmp_path):
    path = sweep_file(
        tmp_path, 'repeat = 2\n[axes]\ntopology.simple.link.rate = ["1Mbit/s", "2Mbit/s"]\n'
    )
    done = inside("sweep", path, "--json", "--workers", 2)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["runs"] == {"planned": 4, "done": 4, "reused": 0, "failed": 0}
    assert (tmp_path / "sweeps" / "test" / "store.json").exists()
    goodput = [r for r in facts["summary"] if r["metric"] == "goodput_bps"]
    assert [r["rate"] for r in goodput] == ["1Mbit/s", "2Mbit/s"]
    assert goodput[0]["mean"] < goodput[1]["mean"]

    again = inside("sweep", path, "--repeat", 3)
    assert again.returncode == 0, again.stderr
    assert "2 runs done, 4 were there" in again.stderr
    assert "goodput_bps" in again.stdout
    assert "±" in again.stdout

    shorter = inside("sweep", path, "--json", "--set", "duration=200ms", "--seed", 9)
    assert json.loads(shorter.stdout)["runs"]["done"] == 4
    plan = inside("sweep", path, "--dry-run", "--store", "nowhere")
    assert "2 cells, 4 runs" in plan.stdout
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[axes]\ntopology.simple.link.rat = ["1Mbit/s"]\n', "did you mean `rate`"),
        ("repeat = 0\n", "repeat = 0"),
        ("repeats = 3\n", 'did you mean "repeat"'),
        ("seed = -1\n", "seed = -1: write an integer, 0 or more"),
        ("seed = true\n", "seed = True"),
        ("seed = 0.5\n", "seed = 0.5"),
        ("[axes\n", "not TOML"),
        ('keep = ["flow"]\n', 'no table "flow"'),
        ('measure = "nowhere:f"\n', "cannot be imported"),
        ('[set]\nduration = "1 apple"\n', "duration"),
        ("[axis]\n", 'did you mean "axes"'),
    ],
)
def test_bad_sweep_files(tmp_path, monkeypatch, text, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    done = CliRunner().invoke(app, ["sweep", str(sweep_file(tmp_path, text))])
    assert done.exit_code == 2, done.stderr
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "sweeps").exists(), "nothing is written"


def test_seed_0_of_a_sweep_file_is_a_seed(tmp_path):
    plan = sweeps.SweepFile.load(sweep_file(tmp_path, "seed = 0\nrepeat = 2\n")).plan()
    by_hand = sweeps.plan(MINI, {}, repeat=2, seed=0)
    assert [j.seed for j in plan] == [j.seed for j in by_hand]
    assert [j.seed for j in plan] != [j.seed for j in sweeps.plan(MINI, {}, repeat=2, seed=1)]


def test_a_scenario_is_no_sweep(inside, tiny):
    done = inside("sweep", tiny)
    assert done.returncode == 2
    assert "is a scenario, not a sweep: gargalo run" in done.stderr


def test_the_example_is_a_sweep(inside):
    from conftest import ROOT

    done = inside("sweep", ROOT / "examples" / "sweep-buffers.toml", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "6 cells, 18 runs" in done.stdout


def test_a_package_that_a_measuring_function_declares_is_part_of_its_source(tmp_path, monkeypatch):
    package = tmp_path / "cases_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    inner = package / "inner.py"
    inner.write_text("FACTOR = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    def made(name):
        measure = functools.partial(delivered)
        functools.update_wrapper(measure, delivered)
        measure.packages = (name,)
        return gargalo.sweep(MINI, repeat=1, store=tmp_path / "s", measure=measure)

    made("cases_of_mine")
    assert made("cases_of_mine").reused == 1
    inner.write_text("FACTOR = 2\n")
    assert made("cases_of_mine").reused == 0
    with pytest.raises(sweeps.SweepError, match="not_there"):
        made("not_there")
