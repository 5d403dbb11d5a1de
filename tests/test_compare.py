"""`gargalo compare`: cells, pairs, verdicts."""

from __future__ import annotations

import json

import gargalo
import pytest
from click.testing import CliRunner
from gargalo import sweeps
from gargalo.cli.app import app
from gargalo.metrics import difference
from gargalo.metrics.declared import bounds_of
from gargalo.sweeps import compare as c
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


def test_two_labels_of_a_sweep(store, gargalo):
    done = gargalo("compare", store, "--by", "congestion", "reno", "bbr", "--json")
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
    assert verdicts <= {"reno higher", "bbr higher", "no difference shown", "no variation"}

    shown = gargalo("compare", store, "--by", "congestion", "bbr", "reno", "--metric", "loss_rate")
    assert "95% interval" in shown.stdout
    assert "Holm" in shown.stdout


def test_two_stores(store, tmp_path, gargalo):
    other = tmp_path / "faster"
    sweeps.sweep(
        MINI, AXES, repeat=6, store=other, workers=2, set={"topology.simple.link.rate": "4Mbit/s"}
    )
    done = gargalo("compare", store, other, "--metric", "goodput_bps", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 4
    assert all(r["verdict"] == f"{other} higher" for r in rows)
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
