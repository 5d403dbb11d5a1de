"""`gargalo compare`: cells, pairs, verdicts."""

from __future__ import annotations

import json

import gargalo
import pytest
from click.testing import CliRunner
from gargalo import sweeps
from gargalo.cli.app import app
from gargalo.cli.compare import variant
from gargalo.metrics import difference
from gargalo.metrics.declared import FIGURES, better_of, bounds_of, verdict_of
from gargalo.sweeps import compare as c
from gargalo.sweeps.sides import plan_sides
from sweep_helpers import MINI, delivered

AXES = {
    "topology.simple.link.delay": ["5ms", "20ms"],
    "flows.*.transport.tcp.congestion": ["reno", "bbr"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "s"
    gargalo.sweep(MINI, AXES, repeat=6, store=path, workers=2, measure=delivered, name="race")
    return path


def test_two_labels_of_a_sweep(store, inside):
    done = inside("compare", store, "--by", "congestion", "reno", "bbr", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["a"], facts["b"]) == ("reno", "bbr")
    frame = sweeps.load(store).frame()
    for r in facts["rows"]:
        cell = frame.filter(delay=r["cell"]["delay"])
        a, b = (cell.filter(congestion=name)[r["metric"]].to_list() for name in ("reno", "bbr"))
        same = difference(a, b, paired=True, bounds=bounds_of(r["metric"]))
        assert r["difference"] == pytest.approx(same.estimate)
        assert (r["low"], r["high"]) == (pytest.approx(same.low), pytest.approx(same.high))
        assert r["p_value_alone"] == pytest.approx(same.p_value)
        if r["p_value"] is None:
            assert r["verdict"] == "no variation"
        else:
            assert r["p_value"] >= r["p_value_alone"], "adjusted for the number of tests"
    queue = [r for r in facts["rows"] if r["metric"] == "queue_delay_p95_s"]
    assert [r["cell"] for r in queue] == [{"delay": "5ms"}, {"delay": "20ms"}]
    assert {"goodput_bps", "delivered_mb", "utilization"} <= {r["metric"] for r in facts["rows"]}
    verdicts = {r["verdict"] for r in facts["rows"]}
    words = {
        "reno better",
        "bbr better",
        "bbr higher",
        "reno higher",
        "no difference shown",
        "no variation",
    }
    assert verdicts <= words

    shown = inside("compare", store, "--by", "congestion", "bbr", "reno", "--metric", "loss_rate")
    assert "95% interval" in shown.stdout
    assert "Holm" in shown.stdout


def test_two_stores(store, tmp_path, inside):
    other = tmp_path / "faster"
    sweeps.sweep(
        MINI, AXES, repeat=6, store=other, workers=2, set={"topology.simple.link.rate": "4Mbit/s"}
    )
    done = inside("compare", store, other, "--metric", "goodput_bps", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 4
    assert all(r["verdict"] == f"{other} better" for r in rows)
    a = c.side_of(store)
    same = c.compare(a, a)
    assert {(r.verdict, r.p_value) for r in same} == {("no variation", None)}
    unpaired = c.compare(a, c.side_of(other), ["goodput_bps"], paired=False)
    assert {r.difference.test for r in unpaired} == {"welch"}


def test_two_runs_have_no_interval(tmp_path, gargalo):
    for name, seed in (("a", 1), ("b", 2)):
        sweeps_run = tmp_path / "mini.toml"
        sweeps_run.write_text(MINI)
        assert (
            gargalo(
                "run", sweeps_run, "--no-plots", "-q", "--seed", seed, "--output", name
            ).returncode
            == 0
        )
    done = gargalo("compare", "a", "b", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert all(r["low"] is None and "one run" in r["verdict"] for r in rows)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--by", "congestion", "reno", "bbrr"], 'did you mean "bbr"'),
        (["--by", "congestions", "reno", "bbr"], 'did you mean "congestion"'),
        (["--by", "congestion", "reno"], "a store and two values"),
        (["--by", "congestion", "reno", "reno"], "two different values"),
        (
            ["--by", "congestion", "reno", "bbr", "--metric", "goodput_bp"],
            'did you mean "goodput_bps"',
        ),
        (["--by", "congestion", "reno", "bbr", "--sweep", "x"], 'no sweep "x"; it has: race'),
        (["nowhere"], "nowhere does not exist"),
        ([], "name two stores"),
    ],
)
def test_bad_usage(store, arguments, told):
    done = CliRunner().invoke(app, ["compare", str(store), *arguments])
    assert done.exit_code == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_scenario_is_run_with_the_settings_of_each_side(tmp_path, inside):
    file = tmp_path / "mini.toml"
    file.write_text(MINI)
    options = ["--a", "topology.simple.link.rate=1Mbit/s", "--repeat", 4, "--store", tmp_path / "s"]
    done = inside("compare", file, *options, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["a"], facts["b"]) == ("topology.simple.link.rate=1Mbit/s", "as written")
    rows = {r["metric"]: r for r in facts["rows"]}
    assert rows["goodput_bps"]["n_a"] == rows["goodput_bps"]["n_b"] == 4
    assert rows["goodput_bps"]["test"] == "paired t", "both sides have the same seeds"
    assert rows["goodput_bps"]["verdict"] == "as written better", "more is better"
    frame = sweeps.load(tmp_path / "s").frame()
    assert frame.group_by("side").len()["len"].to_list() == [4, 4]
    assert set(frame.filter(side="as written")["seed"]) == set(frame["seed"])
    again = inside("compare", file, *options)
    assert "0 runs done, 8 were there" in again.stderr
    assert "as written better" in again.stdout


def test_sides_can_be_worlds_stacks_and_cells_of_a_sweep(tmp_path):
    file = tmp_path / "mini.toml"
    file.write_text(MINI)
    a = variant("--a", ["world=lab", "stack=kernel"])
    assert (a.name, a.world, dict(a.changes)) == (
        "world=lab stack=kernel",
        "lab",
        {"lab.stack": "kernel"},
    )
    sweep = sweeps.SweepFile("m", file, {"topology.simple.link.delay": ["5ms", "9ms"]}, repeat=3)
    jobs = plan_sides(sweep, variant("--a", ["world=sim"]), variant("--b", ["world=lab"]))
    assert [(j.labels["side"], j.world) for j in jobs] == [("world=sim", "sim")] * 6 + [
        ("world=lab", "lab")
    ] * 6
    assert [j.seed for j in jobs[:6]] == [j.seed for j in jobs[6:]]
    with pytest.raises(sweeps.SweepError, match="the same runs"):
        plan_sides(sweep, variant("--a", ["world=sim"]), variant("--b", []))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--a", "world=moon"], "world is one of sim, lab"),
        (["--a", "speed=1"], "speed"),
        (["--a", "seed"], "--a KEY=VALUE"),
        (["--repeat", "3"], "say how they differ with --a and --b"),
        (["--a", "world=sim"], "the same runs"),
    ],
)
def test_wrong_sides_are_named(tmp_path, arguments, told):
    file = tmp_path / "mini.toml"
    file.write_text(MINI)
    store = ["--store", str(tmp_path / "s")] if "--a" in arguments else []
    done = CliRunner().invoke(app, ["compare", str(file), *arguments, *store])
    assert (done.exit_code, told in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "s").exists()


def test_verdicts_follow_the_direction_that_is_declared_with_the_figure():
    assert verdict_of("goodput_bps", 1.0, "a", "b") == "a better"
    assert verdict_of("loss_rate", 1.0, "a", "b") == "b better"
    assert verdict_of("loss_rate", -1.0, "a", "b") == "a better"
    assert verdict_of("packets", -1.0, "a", "b") == "b higher"
    assert verdict_of("measured_by_me", 1.0, "a", "b") == "a higher"
    directions = {better_of(name) for name in FIGURES}
    assert directions == {"less", "more", "neither"}


def test_constants_are_no_part_of_the_family_of_tests(store):
    a, b = c.split(c.side_of(store), "congestion", "reno", "bbr")
    constant = [
        c.Side(s.name, s.frame.with_columns(fixed_s=0.1), s.labels, s.bounds) for s in (a, b)
    ]
    metrics = ["goodput_bps", "loss_rate"]
    alone = {(str(r.cell), r.metric): r.p_value for r in c.compare(a, b, metrics)}
    beside = {(str(r.cell), r.metric): r for r in c.compare(*constant, [*metrics, "fixed_s"])}
    assert {key: beside[key].p_value for key in alone} == alone, "adjusted for as many tests"
    rows = [r for (_, metric), r in beside.items() if metric == "fixed_s"]
    assert {(r.verdict, r.p_value) for r in rows} == {("no variation", None)}
