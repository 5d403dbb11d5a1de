"""Scenarios that are tests: `[[expect]]`, `gargalo check`, and what no run may have."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import gargalo as package
import pytest
from click.testing import CliRunner
from gargalo.checking import (
    Checked,
    ExpectationError,
    Fault,
    Outcome,
    faults,
    judge,
    known,
    processes,
)
from gargalo.checking.checks import place_of
from gargalo.checking.repeats import over_repeats
from gargalo.checking.reports import annotated, junit, reported, suite_of
from gargalo.cli.app import app

if TYPE_CHECKING:
    from click.testing import Result

ROOT = Path(__file__).resolve().parents[1]
BASE = """\
duration = "4s"
[topology.simple]
link = { rate = "10Mbit/s", delay = "10ms" }
[[flows]]
label = "new"
from = "client"
to = "server"
transport.tcp = {}
workload.bulk = { bytes = "1MB" }
[[flows]]
label = "old"
from = "client"
to = "server"
transport.tcp = { congestion = "reno" }
workload.bulk = { bytes = "1MB" }
[record]
verify = true
"""


def expecting(*tables: str, base: str = BASE) -> str:
    return base + "".join(f"\n[[expect]]\n{table}\n" for table in tables)


def outcomes(*tables: str) -> list[tuple[str, bool]]:
    return [(o.metric, o.met) for o in judge(package.run(expecting(*tables)))]


def checked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_figures_are_compared_with_bounds_in_their_units():
    found = outcomes(
        'metric = "flows.new.completion_s"\nat_most = "3s"\nat_least = "3ms"',
        'metric = "flows.new.completion_s"\nat_most = "3ms"',
        'metric = "flows.*.verified"\nequals = true',
        'metric = "flows.old.congestion"\nequals = "reno"',
        'metric = "flows.old.failure"\nequals = ""',
        'metric = "links.link.utilization"\nat_least = "30%"\nat_most = 0.99',
        'metric = "links.link down.dropped_packets"\nequals = 0',
        'metric = "summary.groups.cubic.goodput_bps"\nat_least = "1Mbit/s"',
        'metric = "summary.jain_index"\nat_least = 0.5',
        # What is not known is never as expected.
        'metric = "flows.new.mos"\nat_least = 0',
    )
    assert found == [
        ("flows.new.completion_s", True),
        ("flows.new.completion_s", True),
        ("flows.new.completion_s", False),
        ("flows.new.verified", True),
        ("flows.old.verified", True),
        ("flows.old.congestion", True),
        ("flows.old.failure", True),
        ("links.link.utilization", True),
        ("links.link.utilization", True),
        ("links.link down.dropped_packets", True),
        ("summary.groups.cubic.goodput_bps", True),
        ("summary.jain_index", True),
        ("flows.new.mos", False),
    ]


def test_bounds_are_shares_of_another_figure_or_of_results_before(tmp_path):
    own = 'metric = "flows.new.goodput_bps"\n'
    found = outcomes(
        own + 'at_least = "50%"\nof = "flows.old.goodput_bps"',
        own + 'at_least = 10\nof = "flows.old.goodput_bps"',
    )
    assert [met for _, met in found] == [True, False]
    file = tmp_path / "now.toml"
    file.write_text(expecting('metric = "flows.*.goodput_bps"\nat_least = "98%"\nof = "before"'))
    package.run(BASE, output=tmp_path / "before")
    assert [o.met for o in judge(package.run(file))] == [True, True]
    slower = package.run(file, set={"topology.simple.link.rate": "5Mbit/s"})
    (first, _) = judge(slower)
    assert not first.met
    assert "98% of before" in str(first)
    # Flows of one name are compared each with its own.
    three = expecting('metric = "flows.*.goodput_bps"\nequals = 1\nof = "before"').replace(
        'label = "new"', 'label = "new"\ncount = 3'
    )
    file.write_text(three.replace('of = "before"', 'of = "three"'))
    package.run(file, output=tmp_path / "three")
    assert [o.met for o in judge(package.run(file))] == [True] * 4


def test_what_cannot_be_judged_says_why():
    goodput = 'metric = "flows.new.goodput_bps"\n'
    for table, why in (
        ('metric = "flows.new.goodput"\nat_least = 1', "did you mean 'goodput_bps'"),
        ('metric = "flows.nwe.goodput_bps"\nat_least = 1', "did you mean 'new'"),
        ('metric = "links.lnik down.utilization"\nat_least = 1', "did you mean 'link'"),
        (goodput + 'at_least = "3s"', "in s, and the figure in bit/s"),
        (goodput + 'at_least = "1 mbit/s"', "no number with a unit"),
        (goodput + "at_least = true", "no number with a unit"),
        ('metric = "summary.groups"\nat_least = 3', "no figure 'groups'"),
        ('metric = "summary.gruops.reno.flows"\nat_least = 3', "did you mean 'groups'"),
        (goodput + 'at_least = 1\nof = "nowhere"', "nowhere"),
        (goodput + 'at_least = "1Mbit/s"\nof = "flows.old.goodput_bps"', "no share"),
        (goodput + 'at_least = 1\nof = "flows.old.rtt_min_s"', "no figure of the unit"),
        (goodput + 'at_least = 1\nof = "flows.*.goodput_bps"', "2 figures for 1"),
    ):
        run = package.run(expecting(table))
        with pytest.raises(ExpectationError, match=why):
            judge(run)


def test_nothing_is_not_zero():
    run = package.run(
        expecting(
            'metric = "flows.new.failure"\nequals = ""', 'metric = "flows.new.mos"\nequals = ""'
        )
    )
    assert [o.met for o in judge(run)] == [True, True]
    zero = package.run(expecting('metric = "links.link.lost_packets"\nequals = ""'))
    with pytest.raises(ExpectationError, match="the figure is one"):
        judge(zero)


def test_the_command_says_what_is_not_as_expected_and_keeps_its_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good, bad, wrong = (tmp_path / "all" / f"{n}.toml" for n in ("a-good", "b-bad", "c-wrong"))
    good.parent.mkdir()
    good.write_text(expecting('metric = "flows.new.verified"\nequals = true'))
    late = 'metric = "flows.new.completion_s"\nat_most = "1ms"\nwhy = "people wait"'
    bad.write_text(expecting(late))
    passed = checked(good)
    assert (passed.exit_code, passed.stdout.split(":")[0]) == (0, f"ok    {good}")
    assert not (tmp_path / "checks").exists()
    found = checked("all", "--github", "--junit", "j.xml", "--jobs", 2)
    assert found.exit_code == 1, found.output
    line = BASE.count("\n") + 2
    assert f"::error file=all/b-bad.toml,line={line},title=not as expected::" in found.stdout
    assert "expected: at most 1 ms: people wait" in found.stdout
    assert "1 of 2 scenarios are as expected" in found.stderr
    kept = tmp_path / "checks" / "all" / "b-bad.toml"
    assert {"results", "explain.txt", "check.json", "goodput.svg"} <= {
        p.name for p in kept.iterdir()
    }
    suites = Xml.parse("j.xml").getroot()
    assert [(s.get("tests"), s.get("failures")) for s in suites] == [("2", "0"), ("2", "1")]
    # What was kept is the same run again, and no scenario of the directory.
    again = checked(kept / "results" / "scenario.toml", "--keep", "again", "--json")
    assert again.exit_code == 1
    (told,) = json.loads(again.stdout)["scenarios"]
    assert [e["met"] for e in told["expectations"]] == [False]
    # As soon as it is mended nothing is kept any more; what somebody else has put there stays.
    bad.write_text(good.read_text())
    assert checked(bad).exit_code == 0
    assert not kept.exists()
    fine = 'metric = "flows.new.verified"\nequals = true'
    wrong.write_text(expecting(fine, 'metric = "flows.none.goodput_bps"\nat_least = 1'))
    (all_of_it,) = json.loads(checked(wrong, "--json").stdout)["scenarios"]
    assert len(all_of_it["wrong"]) == len(all_of_it["expectations"]) == 1
    for text in (BASE.replace("simple", "smple"), "duration = ", "[[flow]]\na = 1\n"):
        wrong.write_text(text)
        assert checked(".", "--quiet", "--jobs", 1).exit_code == 2, text
    kept.mkdir(parents=True)
    (kept / "mine").write_text("mine")
    bad.write_text(expecting(late))
    in_the_way = checked(bad)
    assert in_the_way.exit_code == 2
    assert "is in the way" in in_the_way.stdout
    assert (kept / "mine").exists()
    assert checked("none").exit_code == checked("-").exit_code == 2
    (tmp_path / "empty").mkdir()
    assert "no file *.toml" in checked("empty").output


def test_a_class_that_raises_is_a_fault_of_its_scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin = tmp_path / "broken.py"
    plugin.write_text(
        "import gargalo\n@gargalo.congestion('broken')\nclass Broken(gargalo.WindowBased):\n"
        "    def increase(self, acked, ack, path):\n        raise KeyError('oh')\n"
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(
            BASE.replace('"reno"', '"broken"').replace("1MB", "5MB")
        )
    for jobs in (1, 2):
        found = checked(".", "--plugin", plugin, "--jobs", jobs)
        assert found.exit_code == 1, found.output
        assert found.stdout.count("NotImplementedError") == 2
    empty = tmp_path / "empty.py"
    empty.write_text("")
    for jobs in (1, 2):
        assert checked(".", "--plugin", empty, "--jobs", jobs).exit_code == 2


def test_a_connection_that_is_never_established_fails_unless_that_is_expected(tmp_path):
    file = tmp_path / "dead.toml"
    dead = BASE.replace('delay = "10ms"', 'delay = "10ms", loss = 1.0').replace("4s", "9s")
    file.write_text(dead)
    found = checked(file, "--keep", tmp_path / "kept")
    assert found.exit_code == 1
    assert "new: the connection was never established" in found.stdout
    file.write_text(expecting('metric = "flows.*.handshake_s"\nequals = ""', base=dead))
    assert checked(file, "--keep", tmp_path / "kept").exit_code == 0
    # That no failure was told excuses nothing.
    file.write_text(expecting('metric = "flows.*.failure"\nequals = ""', base=dead))
    assert checked(file, "--keep", tmp_path / "kept").exit_code == 1
    file.write_text(dead)
    assert CliRunner().invoke(app, ["run", str(file), "--json"]).exit_code == 0
    done = CliRunner().invoke(app, ["run", str(file), "--json", "--fail-on", "failure"])
    assert done.exit_code == 1
    assert "failure: old: the connection was never established" in done.stderr
    # A connection over a long way is given its time.
    far = BASE.replace("10ms", "2s")
    file.write_text(far)
    assert checked(file, "--keep", tmp_path / "kept").exit_code == 0


def test_data_that_differ_and_warnings_are_faults():
    run = package.run(BASE)
    assert faults(run) == []
    rows = run.flows
    other = rows.with_columns(verified=rows["id"] != 0)
    bad = replace(run, _table=lambda name: other if name == "flows" else run._table(name))
    bad = replace(bad, info={**run.info, "warnings": ["the machine was slow"]})
    assert [(f.kind, f.text) for f in faults(bad)] == [
        ("corrupt", "new: what was delivered is not what was sent"),
        ("warning", "the machine was slow"),
    ]


def test_results_have_places_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep = tmp_path / "checks"
    assert place_of(tmp_path / "a" / "x.toml", keep) == keep / "a" / "x.toml"
    assert place_of(tmp_path.parent / "x.toml", keep).name == "x.toml"
    outside = place_of(Path("..") / ".." / "x.toml", keep)
    assert ".." not in outside.parts
    assert keep in outside.parents


def test_reports_write_any_text():
    one = Checked("a,b:c.toml", faults=(Fault("failure", "50%\n<&>"),))
    assert list(annotated(one)) == ["::error file=a%2Cb%3Ac.toml,title=failure::50%25%0A<&>"]
    assert Xml.fromstring(junit([suite_of(one)], "check"))[0][0][0].get("message") == "50%\n<&>"


SWEEP = """\
scenario = "base.toml"
repeat = 4

[axes]
rate = { key = "topology.simple.link.rate", values = ["5Mbit/s", "10Mbit/s"] }
"""


def sweep_of(tmp_path: Path, *tables: str) -> Path:
    """Write a sweep over the rate, whose losses differ from repeat to repeat."""
    loss = BASE.replace('delay = "10ms"', 'delay = "10ms", loss = 0.01')
    (tmp_path / "base.toml").write_text(loss)
    (tmp_path / "sweep.toml").write_text(expecting(*tables, base=SWEEP))
    return tmp_path / "sweep.toml"


def test_cells_of_a_sweep_are_compared_by_means_intervals_and_each_repeat(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep_of(
        tmp_path,
        'metric = "flows.new.goodput_bps"\nat_least = "10%"\nof = "flows.old.goodput_bps"',
        'metric = "flows.*.failure"\nequals = ""\nby = "each"',
        'metric = "links.link.utilization"\nat_most = 1\nby = "interval"',
    )
    done = checked("sweep.toml")
    assert done.exit_code == 0, done.output
    # Two figures of the flows' failures, one of each other expectation, in two cells.
    assert "ok    sweep.toml: 8 of 8 as expected" in done.output
    assert not (tmp_path / "checks").exists()


def test_what_a_cell_misses_is_said_and_a_run_of_it_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep_of(
        tmp_path,
        'metric = "flows.new.goodput_bps"\nat_least = "2.6Mbit/s"\nwhy = "the faster link only"',
        'metric = "flows.new.completion_s"\nat_least = "10s"\nby = "each"',
    )
    done = checked("sweep.toml", "--json", "--junit", "results.xml")
    assert done.exit_code == 1
    (told,) = json.loads(done.stdout)["scenarios"]
    mean = [o for o in told["expectations"] if o["metric"] == "flows.new.goodput_bps"]
    assert [(o["cell"], o["met"]) for o in mean] == [
        ("rate = 5Mbit/s", False),
        ("rate = 10Mbit/s", True),
    ]
    (place,) = (tmp_path / "checks" / "sweep.toml").glob("rate_=_5Mbit_s-*")
    assert told["kept"] == str(place.relative_to(tmp_path))
    scenario = (place / "results" / "scenario.toml").read_text()
    assert "5Mbit/s" in scenario
    seed = package.load(place / "results").info["seed"]
    assert f"seed = {seed}" in scenario
    suite = Xml.parse(tmp_path / "results.xml").getroot()[0]
    names = [case.get("name", "") for case in suite]
    assert names[0] == "run"
    assert names[1] == "rate = 5Mbit/s: flows.new.goodput_bps at least 2.6 Mbit/s"
    text = checked("sweep.toml").output
    assert "rate = 5Mbit/s: flows.new.goodput_bps is " in text
    assert "(mean of 4, 95%: " in text
    assert "in 4 of 4 repeats, expected: at least 10 s" in text
    # Once all is as expected nothing is kept, but for what somebody else has put there.
    (place.parent / "mine").mkdir()
    sweep_of(tmp_path, 'metric = "flows.new.goodput_bps"\nat_least = 0')
    assert checked("sweep.toml").exit_code == 0
    assert [p.name for p in place.parent.iterdir()] == ["mine"]


def test_repeats_of_a_figure():
    def level(*values: float | None, key: str = "at_least", by: str = "mean") -> tuple[bool, str]:
        runs = [
            Checked(
                "x", (Outcome("flows.a.srtt_s", v, "at least 1 s", False, "", 0, key, by, v, 1.0),)
            )
            for v in values
        ]
        (found,) = over_repeats(runs)
        return found.met, found.shown

    assert level(0.5, 1.6, 1.2)[0]
    assert not level(0.5, 1.6, 1.2, by="interval")[0]
    assert level(1.5, 1.6, 1.55, by="interval")[0]
    assert not level(0.5, 1.6, 1.2, key="at_most")[0]
    # Two repeats have no interval, but equal ones need none.
    met, text = level(1.5, 1.6, by="interval")
    assert not met
    assert "too few for an interval" in text
    assert level(1.5, 1.5, by="interval") == (True, "1.5 s (mean of 2, all the same)")
    assert level(1.5, None) == (False, "not known in 1 of 2 repeats")
    # Twice nothing is not more than nothing.
    runs = [
        Checked(
            "x",
            (
                Outcome(
                    "flows.a.lost_packets",
                    0,
                    "at most 200% of b",
                    True,
                    "",
                    0,
                    "at_most",
                    "mean",
                    None,
                    2.0,
                ),
            ),
        )
    ]
    assert over_repeats(runs * 3)[0].met


def test_a_directory_has_the_sweeps_that_expect_something(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep_of(tmp_path)
    assert "base.toml" in checked(".").output
    sweep_of(tmp_path, 'metric = "summary.jain_index"\nat_least = 0')
    (tmp_path / "known.toml").write_text('[[known]]\ncase = "retry"\n')
    assert "2 of 2 scenarios are as expected" in checked(".").output
    # However the tables are written.
    text = (tmp_path / "sweep.toml").read_text().replace("[[expect]]", "[[ expect ]]  # why")
    (tmp_path / "sweep.toml").write_text(text)
    assert "2 of 2 scenarios are as expected" in checked(".").output
    (tmp_path / "sweep.toml").write_text('expect = ["x"]\n' + SWEEP)
    wrong = checked("sweep.toml")
    assert wrong.exit_code == 2
    assert "[[expect]]" in wrong.output


def test_known_failures_are_compared_with_those_that_are_seen(tmp_path):
    file = tmp_path / "known.toml"
    file.write_text(
        """
[[known]]
client = "a"
server = "*"
case = "retry"
why = "a#1"

[[known]]
client = "b"
server = "a"
case = "zero-rtt"

[[known]]
algorithm = "mine"
case = "startup"
"""
    )
    entries = known.read(file, "matrix")
    assert [e.why for e in entries] == ["a#1", ""]
    assert [e.place for e in known.read(file, "conformance")] == [
        {"algorithm": "mine", "case": "startup"}
    ]
    cells = [
        ({"client": "a", "server": "a", "case": "retry"}, False),
        ({"client": "a", "server": "b", "case": "retry"}, True),
        ({"client": "b", "server": "a", "case": "zero-rtt"}, True),
        ({"client": "b", "server": "b", "case": "retry"}, False),
        ({"client": "b", "server": "a", "case": "retry"}, None),
    ]
    told = known.compare(cells, entries)
    # The entry with * may have cases that pass; the other one is gone.
    assert (list(told.new), dict(told.known), list(told.mended)) == ([3], {0: "a#1"}, [2])
    assert not told.as_known
    assert known.compare(cells[:2], entries).as_known
    # In any order; and one that leaves out a name means all.
    (one,) = [c for c in cells if c[0]["case"] == "zero-rtt"]
    wide = known.Known({"client": "*"}, "")
    assert list(known.compare([one], [wide, *entries]).mended) == [0]
    assert known.compare([one], [known.Known({"case": "zero-rtt"}, "")]).as_known
    (tmp_path / "none.toml").write_text("# mended\n")
    assert known.read(tmp_path / "none.toml", "matrix") == []
    rows = [reported(c["case"], n, told, passed=p, text="seen") for n, (c, p) in enumerate(cells)]
    assert [bool(r.failures) for r in rows] == [False, False, True, True, False]
    assert [r.skipped for r in rows] == ["known to fail: a#1", "", "", "", "seen"]


def test_what_is_known_of_the_stacks_here_is_what_their_page_says():
    entries = known.read(ROOT / "stacks" / "known.toml", "matrix")
    rows = (ROOT / "docs" / "quic-stacks.md").read_text().splitlines()
    head = next(n for n, row in enumerate(rows) if row.startswith("| client | server aioquic"))
    servers = [cell.strip().removeprefix("server ") for cell in rows[head].split("|")[2:-1]]
    said = set()
    for row in itertools.takewhile(bool, rows[head + 2 :]):
        _, client, *cells, _ = row.split("|")
        for server, cell in zip(servers, cells, strict=True):
            found = re.findall(r"\[not ([\w-]+)\]", cell)
            said |= {(client.strip(), server, case) for case in found}
    assert said == {(e.place["client"], e.place["server"], e.place["case"]) for e in entries}
    assert all(e.why for e in entries)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("known = 1", "tables [[known]]"),
        ("[[known]]\nclient = 1", "a table of texts"),
        ('[[known]]\nserve = "a"', 'did you mean "server"?'),
        ('[[known]]\nwhy = "so"', "names no failure"),
        ('[[known]]\nclient = "a"\nalgorithm = "b"', "names no failure"),
        ("[[known]", "this is not TOML"),
    ],
)
def test_a_file_of_known_failures_that_is_wrong_says_where(tmp_path, text, told):
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(known.KnownError) as caught:
        known.read(tmp_path / "known.toml", "matrix")
    assert told in str(caught.value)
    assert "known.toml" in str(caught.value)


def test_the_action_of_workflows_runs_what_its_page_says(tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the tests' packages")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    page = (ROOT / "docs" / "check.md").read_text()
    for name in action["inputs"]:
        assert f"| `{name}` |" in page
    step = next(s for s in action["runs"]["steps"] if "gargalo check" in s.get("run", ""))
    given = {name: one["default"] for name, one in action["inputs"].items()}
    given |= {"options": "--set duration=3s", "package": ""}
    values = {
        key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: given[m[1]], text)
        for key, text in step["env"].items()
    }
    (tmp_path / "scenarios").mkdir()
    table = 'metric = "flows.new.completion_s"\nat_most = "1ms"'
    (tmp_path / "scenarios" / "one.toml").write_text(expecting(table))
    command = f"{sys.executable} -m gargalo"
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"].replace("gargalo", command, 1)],
        cwd=tmp_path, env={**os.environ, **values}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    line = "::error file=scenarios/one.toml,line="
    assert any(text.startswith(line) for text in done.stdout.splitlines()), done.stdout
    assert (tmp_path / given["results"]).is_file()
    assert (tmp_path / given["keep"] / "scenarios" / "one.toml" / "explain.txt").is_file()


def test_what_takes_too_long_or_ends_its_process_is_told_apart():
    with pytest.raises(TimeoutError):
        processes.alone(time.sleep, 60, (), longest_s=0.5)
    assert processes.alone(os._exit, 3, ()) is None
    assert list(processes.each(abs, [-1, -2], (), 2)) == [1, 2]
