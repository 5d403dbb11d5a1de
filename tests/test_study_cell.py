"""One run of a study: chosen by labels, printed as a scenario, done."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import gargalo as lib
import pytest
from click.testing import CliRunner
from gargalo import studies
from gargalo.cli.app import app
from gargalo.studies.cells import MOST_VALUES, CellError, cell, choose, toml
from gargalo.studies.running import jobs_of, profile_of
from gargalo.sweeps import Job
from gargalo.sweeps.job import Identifier

NSQUIC = ("study", "nsquic")
NODES = ("--cell", "experiment=nodes", "--cell", "reading=2018", "--cell", "nodes=2")
ONE = (*NSQUIC, *NODES, "--cell", "protocol=cubic")


def jobs():
    made = [
        Job({"experiment": "a", "mbps": m, "protocol": p, "sack": s}, {"name": "x"}, 7)
        for m in (5.0, 10.0, 1000.0)
        for p in ("cubic", "quic, 3 packets")
        for s in (True, False)
        for _ in range(2)
    ]
    return [*made, *(Job({"experiment": "b", "n": n}, {"name": "y"}, n) for n in range(40))]


def test_labels_choose_one_run():
    wanted = {"experiment": "a", "mbps": "10", "protocol": "quic, 3 packets", "sack": "false"}
    found = choose(jobs(), {**wanted, "repeat": "1"})
    assert found.labels == {
        "experiment": "a",
        "mbps": 10.0,
        "protocol": "quic, 3 packets",
        "sack": False,
        "repeat": 1,
    }
    assert choose(jobs(), {"n": "4e0"}).seed == 4


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"experimnt": "a"}, 'there is no label "experimnt"; did you mean "experiment"?'),
        ({"mbps": "12"}, "no run has mbps = 12; did you mean 10?"),
        ({"mbps": "fast"}, "no run has mbps = fast; there are 5, 10, 1000"),
        ({"protocol": "cubc"}, "no run has protocol = cubc; did you mean cubic?"),
        (
            {"experiment": "a", "protocol": "x"},
            "none of the runs with experiment = a has protocol = x; there are cubic, 'quic, 3 packets'",
        ),
        (
            {"n": "3", "mbps": "5"},
            'none of the runs with n = 3 has a label "mbps"; they have experiment, n, repeat',
        ),
    ],
)
def test_where_no_run_has_the_labels_the_nearest_are_named(wanted, told):
    with pytest.raises(CellError, match=f"^{re.escape(told)}$"):
        choose(jobs(), wanted)


def test_where_several_have_them_the_labels_that_differ_are_listed():
    with pytest.raises(CellError) as told:
        choose(jobs(), {"experiment": "a", "mbps": "5"})
    assert str(told.value).splitlines() == [
        "8 runs match; choose with --cell among",
        "  protocol = cubic, 'quic, 3 packets'",
        "  sack = true, false",
        "  repeat = 0, 1",
    ]
    with pytest.raises(CellError) as told:
        choose(jobs(), {"experiment": "b"})
    line = next(x for x in str(told.value).splitlines() if x.startswith("  n = "))
    assert line.endswith(f"… ({40 - MOST_VALUES} more)")
    assert line.count(",") == MOST_VALUES


@pytest.mark.parametrize("name", sorted(studies.STUDIES))
def test_the_printed_scenario_is_the_run_of_the_study(name, tmp_path):
    study = studies.find(name)
    profile = profile_of(study, "quick")
    first = next(iter(jobs_of(study, profile)))
    wanted = {"repeat": "0", **{k: str(v) for k, v in first.labels.items()}}
    made = []

    def seen(of):
        def jobs(chosen):
            made.append(of.name)
            return of.jobs(chosen)

        return replace(of, jobs=jobs)

    watched = replace(study, experiments=[seen(e) for e in study.experiments])
    found = cell(watched, profile, wanted, tmp_path)
    assert set(made) == {first.labels["experiment"]}, "others are not planned"
    again = lib.running.setup(toml(found, "x"))
    identifier = Identifier()
    mine = Job({}, toml(found, "x"), again.seed, world=first.world)
    assert identifier.task(mine).run == identifier.task(first).run


def test_a_run_with_changes_is_printed_with_them(tiny):
    job = Job({"a": 1}, tiny, 5, changes={"duration": "1s"}, world="lab")
    made = toml(job, "x")
    assert made.startswith("# x: a = 1\n# gargalo run FILE --world lab\n")
    assert lib.running.setup(made).duration_s == 1.0
    assert lib.running.setup(made).seed == 5


def test_a_cell_is_printed_and_run_from_the_command_line(inside, tmp_path):
    printed = inside(*ONE, "--print-scenario")
    assert printed.returncode == 0, printed.stderr
    (tmp_path / "cell.toml").write_text(printed.stdout)
    alone = json.loads(inside("run", "cell.toml", "--json").stdout)
    done = json.loads(inside(*ONE, "--run", "--json").stdout)
    assert done["summary"] == alone["summary"]
    assert done["metrics"]["time_s"] == max(f["completion_s"] for f in alone["flows"])
    shown = inside(*ONE, "--run", "--output", "mine")
    assert "metrics of nsquic:\n  time_s " in shown.stdout
    assert lib.load(tmp_path / "mine").info["seed"] == done["run"]["seed"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--run"], "--run is of one run: choose it with --cell KEY=VALUE"),
        (["--print-scenario"], "--print-scenario is of one run"),
        (NODES, "--cell chooses a run: add --run to do it, or --print-scenario to see it"),
        ([*NODES, "--run", "--print-scenario"], "give either --print-scenario or --run"),
        ([*NODES, "--run", "--workers", "2"], "--workers does not go with --cell and --run"),
        ([*NODES, "--print-scenario", "--json"], "--json does not go with --cell"),
        (["--cell", "nodes", "--run"], "--cell nodes: write --cell KEY=VALUE"),
        # A setting of the profile changes which runs there are.
        (
            [*NODES, "--run", "--set", 'readings=["today"]'],
            "has reading = 2018; there are today",
        ),
        ([*NODES, "--run"], "runs match; choose with --cell among\n  protocol = quic, newreno"),
    ],
)
def test_what_does_not_say_one_run_is_refused(arguments, told):
    done = CliRunner().invoke(app, [*NSQUIC, *arguments])
    assert done.exit_code == 2
    assert told in done.stderr
