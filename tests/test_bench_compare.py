"""The comparison with htsim and ns-3: what they are given, what is said without them, how it is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benches"))

import budget
import compare
import count
import htsim_build
from compare import SCENARIOS
from ns3_build import BenchError

SMALL = SCENARIOS / "small-windows-reno.toml"


def one(cpu_s=1.0, packets=1_000_000, **more):
    """What a program printed."""
    return {
        "packets": packets,
        "dropped": 0,
        "delivered_bytes": 0,
        "events": 4 * packets,
        "peak_kib": 2048,
        "cpu_s": cpu_s,
        "wall_s": cpu_s,
        "whole_run_cpu_s": cpu_s,
        **more,
    }


def result(scenario, *, whole=True, **measured):
    """One scenario's measurements: rounds by name, spaces of names as underscores."""
    named = {
        name.replace("__", ", ").replace("_", " "): compare.summary(runs)
        for name, runs in measured.items()
    }
    return {"scenario": scenario, "virtual_s": 5.0, "whole": whole, "measured": named}


def test_every_scenario_is_read_and_given_to_all():
    files = sorted(SCENARIOS.glob("*.toml"))
    assert len(files) >= 5
    for file in files:
        bell = compare.read(file)
        assert bell.flows == (1040 if bell.name == "many-flows" else 20)
        for access in {False, bell.access_rate > 0}:
            words = bell.htsim_arguments(2.0, access=access)
            given = dict(zip(words[::2], map(float, words[1::2]), strict=True))
            # The program takes these names, and no others.
            source = htsim_build.SOURCE.read_text(encoding="utf-8")
            assert all(f'{{"{name}",' in source for name in given)
            assert (given["--access-rate"] > 0) is access
            # Together the windows fill the path, and no more than the queue holds besides.
            path = bell.rate * bell.rtt_s / 8 / bell.packet_bytes
            assert 0.6 * path < given["--flows"] * given["--initial-window"] <= path
        source = compare.NS3_SOURCE.read_text(encoding="utf-8")
        options = [word.partition("=")[0][2:] for word in bell.ns3_arguments(2.0)]
        assert all(f'cmd.AddValue("{name}"' in source for name in options)


def test_numbers_of_the_dumbbell():
    bell = compare.read(SCENARIOS / "large-windows-staggered.toml")
    assert (bell.flows, bell.groups, bell.stagger_s) == (20, 20, 0.1)
    assert bell.rtt_s == pytest.approx(0.2)
    assert bell.packet_bytes == 1500
    words = bell.htsim_arguments(5.0, access=False)
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given["--initial-window"] == "833"
    assert given["--delay-ms"] == "98"
    assert given["--stagger-ms"] == "100"
    changes = bell.gargalo_changes(5.0, ack_each=True, everything=True)
    assert changes["flows.19.transport.tcp.delayed_ack"] == "false"
    assert changes["record.gauges"] == "true"
    few = compare.read(SCENARIOS / "many-flows.toml").few_flows_changes(2.0)
    assert few["topology.dumbbell.bottleneck.rate"] == "192307692bit/s"
    assert few["topology.dumbbell.bottleneck.queue.droptail"] == "801 packets"


def test_one_link_is_compared_with_what_has_one(tmp_path):
    file = SCENARIOS / "one-link.toml"
    bell = compare.read(file)
    assert bell.rtt_s == pytest.approx(0.04)
    program = tmp_path / "program"
    peers = compare.Peers(gargalo=program, also={}, htsim=program, ns3=program)
    found = {r.name: r.command for r in compare.runners(file, bell, 1.0, peers)}
    assert list(found) == [
        compare.OURS, compare.ACK_EACH, compare.ALL, compare.ACK_EACH_ALL, compare.HTSIM,
    ]  # fmt: skip
    assert 'record.captures=["link"]' in found[compare.ALL]


def test_scenarios_that_cannot_be_compared_are_refused(tmp_path):
    text = SMALL.read_text(encoding="utf-8")
    for old, new, message in (
        ('"18ms"', '"18 minutes"', "cannot read '18 minutes'"),
        ("[topology.dumbbell]", "[topology.other]", "has no 'dumbbell'"),
        ("seed", "seed =", "invalid|value"),
    ):
        file = tmp_path / "changed.toml"
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(BenchError, match=message) as raised:
            compare.read(file)
        assert str(file) in str(raised.value)
    with pytest.raises(BenchError, match="No such file"):
        compare.read(tmp_path / "none.toml")


def test_directories_without_htsim_are_refused(tmp_path):
    with pytest.raises(BenchError, match=r"no sim/eventlist\.h in .*checkout of its sources"):
        htsim_build.sources(tmp_path)
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "eventlist.h").touch()
    with pytest.raises(BenchError, match=r"has no config\.cpp.*tcp\.cpp.*complete"):
        htsim_build.sources(tmp_path)
    for part in htsim_build.PARTS:
        (tmp_path / "sim" / f"{part}.cpp").touch()
    assert htsim_build.sources(tmp_path) == htsim_build.sources(tmp_path / "sim")


def test_what_is_named_and_missing_is_an_error_and_what_is_not_named_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "BENCH", tmp_path / "bench")

    def peers(*words):
        return compare.find_peers(compare.parse_arguments(["--gargalo", sys.executable, *words]))

    found, said = peers("--ns3", "none")
    assert (found.htsim, found.ns3) == (None, None)
    assert "--htsim DIR" in said["htsim"]
    assert said["ns-3"] == "left out as requested"

    def unreachable(name):
        raise BenchError(f"{name}: apt-get: command not found")

    with pytest.raises(BenchError, match="no include/ns3"):
        peers("--ns3", str(tmp_path))
    monkeypatch.setattr(compare.ns3_build, "build", unreachable)
    assert "apt-get: command not found" in peers()[1]["ns-3"]
    with pytest.raises(BenchError, match="command not found"):
        peers("--ns3", "debian")
    with pytest.raises(BenchError, match=r"no sim/eventlist\.h"):
        peers("--ns3", "none", "--htsim", str(tmp_path))
    with pytest.raises(BenchError, match="make setup"):
        peers("--ns3", "none", "--also", f"old={tmp_path}/python")


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--seconds", "0"], ["--also", "name"]])
def test_arguments_are_checked(words, capsys):
    with pytest.raises(SystemExit):
        compare.parse_arguments(words)
    assert words[0] in capsys.readouterr().err


def test_ratios_and_budgets():
    slow = result(
        "one-link",
        gargalo=[one(2.0), one(1.0)],
        gargalo__an_ACK_each=[one(1.0)],
        htsim=[one(0.9), one(1.5)],
    )
    assert compare.ratio(slow, compare.OURS, compare.HTSIM) == pytest.approx(0.9)
    assert compare.ratio(slow, compare.OURS, compare.NS3) is None
    assert compare.missed_budgets([slow]) == ["one-link: gargalo: 0.90 times htsim, budget 1"]
    assert compare.missed_budgets([{**slow, "scenario": "large-windows"}]) == [
        "large-windows: 1,000,000 packets/s, budget 2,000,000"
    ]
    row = next(x for x in compare.table(slow).splitlines() if x.startswith("| gargalo |"))
    assert row == "| gargalo | 1,000,000 | 0 | 4.00 | 1,000 | 1,500 | 2 | 0.90 |"
    many = [one(61.0, packets=82_000_000, peak_kib=3 << 20)]
    whole = result(compare.MANY_FLOWS, gargalo=many)
    assert len(compare.missed_budgets([whole])) == 2
    assert compare.missed_budgets([{**whole, "whole": False}]) == []


def test_our_side_runs_without_the_others(tmp_path, capsys):
    report = tmp_path / "report.json"
    words = ["--gargalo", sys.executable, "--ns3", "none", "--rounds", "1", "--seconds", "0.5"]
    assert compare.main([*words, "--json", str(report), str(SMALL)]) == 0
    said = capsys.readouterr().out
    assert "htsim: left out" in said
    assert "ns-3: left out" in said
    measured = json.loads(report.read_text(encoding="utf-8"))["results"][0]["measured"]
    assert list(measured) == [compare.OURS, compare.ACK_EACH, compare.ALL, compare.ACK_EACH_ALL]
    default, each = measured[compare.OURS], measured[compare.ACK_EACH]
    # More than the half of a second at full rate, and an event more for most acknowledgements.
    assert default["packets"] > 2000
    assert each["events_per_packet"] > default["events_per_packet"] + 0.1
    # Recording changes no result.
    assert measured[compare.ALL]["packets"] == default["packets"]
    # With a capture each packet has an event at the end of every link.
    assert measured[compare.ALL]["runs"][0]["events"] > default["runs"][0]["events"]


def test_counts_are_differences_a_packet():
    text = "version: 1\nevents: Ir Dr D1mr\nfn=main\n1 2 3\ntotals: 500 20 7\n"
    assert count.totals(text) == {"Ir": 500, "Dr": 20, "D1mr": 7}
    with pytest.raises(BenchError, match="totals"):
        count.totals("events: Ir\n")
    short, long = {"packets": 100, "events": 500}, {"packets": 200, "events": 900}
    assert count.per_packet(short, long) == {"events": 4.0}
    with pytest.raises(BenchError, match="no packet"):
        count.per_packet(short, short)


def test_a_part_that_takes_more_than_the_page_says_is_named(tmp_path):
    said = [budget.Part("an event", 200.0, 120.0), budget.Part("all", 3000.0, 2000.0)]
    page = tmp_path / "page.md"
    page.write_text(f"| all | 1 | 1 |\n<!-- budget -->\n{budget.table(said)}\n<!-- /budget -->\n")
    assert budget.check(said, page) == []
    within = [said[0]._replace(instructions=205.0), said[1]._replace(instructions=2000.0)]
    assert budget.check(within, page) == []
    worse = [said[0], said[1]._replace(instructions=3100.0)]
    assert budget.check(worse, page) == ["all: 3,100 instructions, page.md says 3,000"]
    with pytest.raises(BenchError, match="has no part new"):
        budget.check([said[0]._replace(name="new")], page)
