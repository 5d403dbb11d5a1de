"""Scenarios that are tests: `[[expect]]`, `gargalo check`, and what no run may have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import gargalo as package
import pytest
from click.testing import CliRunner
from gargalo.checking import Checked, ExpectationError, Fault, faults, judge
from gargalo.checking.checks import place_of
from gargalo.checking.reports import annotated, junit
from gargalo.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

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


def test_reports_write_any_text():
    one = Checked("a,b:c.toml", faults=(Fault("failure", "50%\n<&>"),))
    assert list(annotated(one)) == ["::error file=a%2Cb%3Ac.toml,title=failure::50%25%0A<&>"]
    assert Xml.fromstring(junit([one]))[0][0][0].get("message") == "50%\n<&>"
