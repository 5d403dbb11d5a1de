"""`gargalo explain`: sentences are compared with figures that are computed here from the tables, row by row."""

from __future__ import annotations

import json
import re
import shlex
import statistics
import struct
import textwrap
from dataclasses import replace
from itertools import pairwise

import gargalo as package
import polars as pl
import pytest
from click.testing import CliRunner
from conftest import ROOT, TINY
from gargalo.cli.app import app
from gargalo.explaining import explain
from gargalo.explaining.flows import others
from gargalo.explaining.model import instant, listed, size

EXAMPLES = {
    "cubic-vs-bbr": {"duration": "12s"},
    "cellular-race": {},
    "lossy-wifi": {"duration": "6s"},
    "l4s": {"duration": "5s"},
    "mptcp": {"duration": "22s"},
    "request": {"duration": "6s"},
    "parking-lot": {"duration": "6s"},
}


def test_losses_without_events_are_told():
    run = package.run(TINY)
    kernel = replace(
        run, _table=lambda name: run.events.clear() if name == "events" else getattr(run, name)
    )
    lost = run.flows["lost_packets"][0]
    assert lost > 0
    (s,) = explain(kernel).of("losses", 0)
    assert f"declared {lost} packets of" in s.text
    assert "no events that tell when" in s.text


def test_what_a_stack_does_not_tell_is_not_claimed():
    run = package.run(TINY)
    unknown = ("sent_packets", "lost_packets", "timeouts")
    flows = run.flows.with_columns(pl.lit(None, pl.UInt64).alias(c) for c in unknown)
    tables = {"flows": flows, "events": run.events.clear()}
    foreign = replace(run, _table=lambda name: tables.get(name, getattr(run, name)))
    (s,) = explain(foreign).of("losses", 0)
    assert s.text == "The stack of upload does not tell how many packets it declared lost."
    (all_of_them,) = others(foreign, chosen=())
    assert all_of_them.figures["lost_packets"] is None
    assert "lost" not in all_of_them.text
    assert "timeout" not in all_of_them.text


@pytest.fixture(scope="module", params=EXAMPLES)
def told(request):
    """A run of an example with all records, and its story."""
    change = {**EXAMPLES[request.param], "record.gauges": True}
    run = package.run(ROOT / "examples" / f"{request.param}.toml", set=change)
    return run, explain(run)


def rows(table, **wanted):
    """Rows of a table with these values."""
    return [r for r in table.to_dicts() if all(r[k] == v for k, v in wanted.items())]


def packets(event):
    return int(re.search(r"(?:segments|packets)=(\d+)", event["detail"])[1])


def main_flows(story):
    return {s.flow for s in story.sentences if s.flow is not None}


def test_numbers_are_written_as_people_do():
    assert [instant(t) for t in (0, 0.4131, 5.4, 59.9996)] == ["0 s", "0.413 s", "5.4 s", "60 s"]
    assert [size(n) for n in (12, 1448, 1_400_000)] == ["12 B", "1.45 kB", "1.4 MB"]
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_starts_and_ends(told):
    run, story = told
    flows = run.flows.to_dicts()
    shown = main_flows(story)
    for f in (f for f in flows if f["id"] in shown):
        first, last = story.of("flow", f["id"])
        assert f"started at {instant(f['start_s'])}: {f['from']} to {f['to']}" in first.text
        assert first.time_s == f["start_s"]
        if f["completion_s"] is not None:
            done = f["start_s"] + f["completion_s"]
            assert f"was complete at {instant(done)}" in last.text
        else:
            assert "was still running when the run ended" in last.text
            assert f["end_s"] == run.info["virtual_s"]
        assert last.figures["delivered_bytes"] == f["delivered_bytes"]
    rest = [f for f in flows if f["id"] not in shown]
    if rest:
        (sentence,) = [s for s in story.of("flow") if s.flow is None]
        assert sentence.figures["lost_packets"] == sum(f["lost_packets"] for f in rest)
        assert sentence.figures["completed"] == sum(f["completion_s"] is not None for f in rest)
        assert f"{len(rest)} more flows" in sentence.text


def test_slow_start_is_left_when_and_why_the_tables_say(told):
    run, story = told
    begins = ("slow-start", "conservative-slow-start", "startup")
    for flow in main_flows(story):
        sentences = [s for s in story.of("slow-start", flow) if "left" in s.figures]
        if not rows(run.gauges, flow=flow):
            # Several paths have no gauges: each subflow between two of its samples.
            for s, sub in zip(sentences, rows(run.subflows, flow=flow), strict=True):
                seen = rows(run.subflow_samples, flow=flow, subflow=sub["subflow"])
                seen.sort(key=lambda r: r["time_s"])
                k = next(i for i, r in enumerate(seen) if r["phase"] not in begins)
                last, by = seen[k - 1]["time_s"], seen[k]["time_s"]
                ends = [
                    e["time_s"] for e in rows(run.events, flow=flow)
                    if e["kind"] in ("recovery", "ecn", "timeout") and last <= e["time_s"] <= by
                    and e["detail"].startswith(f"subflow={sub['subflow']} ")
                ]  # fmt: skip
                assert (s.time_s, s.until_s) == (last, min(ends, default=by))
                assert s.figures.get("cause") is None, "of an interval no cause is claimed"
            continue
        (s,) = sentences
        seen = [(r["time_s"], r["phase"]) for r in rows(run.gauges, flow=flow)]
        out = [t for t, phase in seen if phase not in begins]
        if not out:
            assert s.figures == {"left": False}
            assert "until its last sample" in s.text
            continue
        assert s.time_s == s.until_s == out[0]
        assert instant(out[0]) in s.text
        at = [e["kind"] for e in rows(run.events, flow=flow) if e["time_s"] == out[0]]
        causes = [k for k in at if k in ("recovery", "ecn", "timeout")]
        if s.figures["phase"] == "startup":
            # What happens at that instant is no reason: BBR leaves it by its model of the path.
            assert s.figures.get("cause") in (None, "full_bandwidth_reached")
            assert not re.search("loss|mark|timeout", s.text), s.text
        elif causes:
            assert s.figures["cause"] == causes[0]
            window = next(e["detail"] for e in rows(run.events, flow=flow, kind=causes[0]))
            assert f"cwnd_bytes={s.figures['window_after_bytes']}" in window
        else:
            assert "there was no loss, mark or timeout then" in s.text


def test_losses_recoveries_and_timeouts_are_those_of_the_events(told):
    run, story = told
    for flow in main_flows(story):
        events = rows(run.events, flow=flow)
        (f,) = rows(run.flows, id=flow)
        lost = [e for e in events if e["kind"] == "loss"]
        sentences = story.of("losses", flow)
        told_lost = [s for s in sentences if "lost_packets" in s.figures]
        if not lost:
            assert [s.figures["lost_packets"] for s in told_lost] in ([0], [])
        else:
            (s,) = told_lost
            assert s.figures["lost_packets"] == sum(map(packets, lost)) == f["lost_packets"]
            assert (s.time_s, s.until_s) == (lost[0]["time_s"], lost[-1]["time_s"])
            for burst in s.figures["largest"]:
                inside = [e for e in lost if burst["from_s"] <= e["time_s"] <= burst["until_s"]]
                assert burst["packets"] == sum(map(packets, inside))
                outside = [e["time_s"] for e in lost if e not in inside]
                assert all(t < burst["from_s"] - 1 or t > burst["until_s"] + 1 for t in outside)
        for kind, word in (("recovery", "recover"), ("ecn", "reduction")):
            times = [e["time_s"] for e in events if e["kind"] == kind]
            mine = [s for s in sentences if "events" in s.figures and f" {word}" in s.text]
            assert [s.figures["events"] for s in mine] == ([len(times)] if times else [])
            if len(times) >= 3:
                gaps = [b - a for a, b in pairwise(times)]
                assert mine[0].figures["interval_p50_s"] == pytest.approx(statistics.median(gaps))
        timeouts = [
            s.figures["timeout"] for s in story.of("timeouts", flow) if "timeout" in s.figures
        ]
        assert timeouts == ([f["timeouts"]] if f["timeouts"] else [])


def test_shares_are_of_what_was_delivered(told):
    run, story = told
    ends = []
    for s in story.of("shares"):
        if s.time_s is None:
            continue
        ends += [s.time_s, s.until_s]
        for flow, bps in s.figures["goodput_bps"].items():
            mine = sorted(rows(run.flow_samples, flow=int(flow)), key=lambda r: r["time_s"])
            (f,) = rows(run.flows, id=int(flow))
            before = [r["delivered_bytes"] for r in mine if r["time_s"] <= s.time_s]
            after = [r["delivered_bytes"] for r in mine if r["time_s"] >= s.until_s]
            # Between the samples around the edges of the period.
            least = [r["delivered_bytes"] for r in mine if r["time_s"] <= s.until_s][-1:] or [0]
            first = [r["delivered_bytes"] for r in mine if r["time_s"] >= s.time_s][:1]
            high = (after[0] if after else f["delivered_bytes"]) - (before[-1] if before else 0)
            low = least[0] - (first[0] if first else 0)
            got = bps * (s.until_s - s.time_s) / 8
            assert low - 1 <= got <= high + 1
        total = sum(s.figures["goodput_bps"].values())
        for name, share in re.findall(r"([\w ]+?) [\d.]+ [kM]?bit/s \(([\d.]+)%\)", s.text):
            flow = next((i for i, n in story.names.items() if n == name.strip()), None)
            if flow is not None:
                own = s.figures["goodput_bps"][str(flow)] / total
                assert float(share) == pytest.approx(100 * own, abs=0.06)
    assert ends[0] == 0
    assert ends[-1] == run.info["virtual_s"]
    assert ends[1:-1:2] == ends[2::2], "without gaps"


def test_queues_are_those_of_the_samples(told):
    run, story = told
    dropped = {}
    for s in story.of("queue"):
        name = s.figures["link"]
        link, direction = name.rsplit(" ", 1)
        every = rows(run.link_samples, link=link, direction=direction)
        inside = [r for r in every if s.time_s < r["time_s"] <= s.until_s]
        delays = [r["queue_delay_s"] for r in inside]
        assert s.figures["queue_delay_p50_s"] == pytest.approx(statistics.median(delays))
        assert s.figures["queue_delay_max_s"] == max(delays)
        empty = sum(r["queue_packets"] == 0 for r in inside) / len(inside)
        assert s.figures["empty_share"] == pytest.approx(empty)
        dropped[name] = dropped.get(name, 0) + s.figures["dropped_packets"]
    for name, n in dropped.items():
        link, direction = name.rsplit(" ", 1)
        assert n == max(
            r["dropped_packets"] for r in rows(run.link_samples, link=link, direction=direction)
        )


def test_what_limited_a_flow(told):
    run, story = told
    for flow in main_flows(story):
        for s in story.of("limits", flow):
            if "samples" not in s.figures:
                for part in s.figures["idle"]:
                    inside = [
                        r for r in rows(run.flow_samples, flow=flow)
                        if part["from_s"] <= r["time_s"] <= part["until_s"]
                    ]  # fmt: skip
                    assert all(r["bytes_in_flight"] == 0 for r in inside)
                continue
            (f,) = rows(run.flows, id=flow)
            opened = f["start_s"] + f["handshake_s"]
            seen = [
                r for r in rows(run.flow_samples, flow=flow) if opened < r["time_s"] < f["end_s"]
            ]
            full = sum(
                r["bytes_in_flight"] > 0
                and r["bytes_in_flight"] + 1448 >= r["congestion_window_bytes"]
                for r in seen
            )
            assert s.figures["samples"] == len(seen)
            assert s.figures["full_share"] == pytest.approx(full / len(seen))
            shares = [v for k, v in s.figures.items() if k.endswith("_share")]
            assert sum(shares) == pytest.approx(1)


WINDOW = TINY.replace('congestion = "cubic"', 'congestion = "cubic", receive_buffer = "16kB"')


def test_a_small_receiver_window_is_told():
    change = {"topology.simple.link.loss": "0%", "topology.simple.link.rate": "100Mbit/s"}
    run = package.run(WINDOW, set={**change, "flows.1.start": "2900ms"})
    (s,) = [s for s in explain(run).of("limits", 0) if "samples" in s.figures]
    assert s.figures["receiver_share"] > 0.8
    assert "the receiver's window of 16 kB in" in s.text


def test_idle_times_are_told():
    text = TINY.replace(
        "workload.bulk = {}",
        'workload.request = { objects = 3, size = "50kB", think_time = "700ms" }',
    )
    run = package.run(text, set={"topology.simple.link.loss": "0%"})
    idle = [s for s in explain(run).of("limits", 0) if "idle" in s.figures]
    assert len(idle) == 1
    assert idle[0].figures["times"] == 2
    assert "upload had nothing in flight from" in idle[0].text


def test_without_tables_it_is_said_what_records_them():
    off = {"record.flows": False, "record.links": False, "record.events": False}
    story = explain(package.run(TINY, set=off))
    assert [s.figures["option"] for s in story.of("missing")] == [
        "record.flows", "record.links", "record.events",
    ]  # fmt: skip
    assert all(f"--set {s.figures['option']}=true" in s.text for s in story.of("missing"))
    topics = {s.topic for s in story.sentences}
    assert not topics & {"slow-start", "losses", "shares", "queue", "limits", "timeouts"}
    whole = explain(package.run(TINY, set={"record.gauges": True}))
    assert whole.of("missing") == []
    plain = explain(package.run(TINY))
    assert [s.figures["option"] for s in plain.of("missing")] == ["record.gauges"]


BOTH = ROOT / "examples" / "cubic-vs-bbr.toml"


@pytest.fixture(scope="module")
def twice():
    """The stories of one scenario, recorded without gauges and with them."""
    change = {"duration": "18s"}
    plain, exact = (
        package.run(BOTH, set={**change, "record.gauges": gauges}) for gauges in (False, True)
    )
    return explain(plain), explain(exact), exact


def test_a_story_is_the_same_whichever_way_the_run_was_recorded(twice):
    plain, exact, _ = twice
    told = lambda story: [s.text for s in story.sentences if s.topic not in PRECISE]  # noqa: E731
    assert told(plain) == told(exact)
    for flow in (0, 1):
        (a,), (b,) = (
            [s for s in story.of("slow-start", flow) if "left" in s.figures] for story in twice[:2]
        )
        # As exact as each can be, and not against each other.
        assert a.time_s <= b.time_s == b.until_s <= a.until_s
        assert ("loss" in a.text) == ("loss" in b.text)
    (startup,) = plain.of("slow-start", 1)
    assert re.search(r"left startup between \d\.\d s and \d\.\d s; the phase at", startup.text)
    assert "cause" not in startup.figures
    (slow,) = [s for s in plain.of("slow-start", 0) if "left" in s.figures]
    assert "at the latest when a loss was detected and recovery began" in slow.text


PRECISE = ("slow-start", "probe-rtt", "missing")
"""Topics that tell instants as exactly as they are known."""


def test_probe_rtt_is_told_with_its_window(twice):
    plain, exact, run = twice
    seen = rows(run.gauges, flow=1)
    into = [b["time_s"] for a, b in pairwise(seen) if "probe-rtt" == b["phase"] != a["phase"]]
    out = [b["time_s"] for a, b in pairwise(seen) if b["phase"] != "probe-rtt" == a["phase"]]
    assert len(into) == len(out) > 0
    (told,) = exact.of("probe-rtt", 1)
    assert [(s["from_s"], s["until_s"]) for s in told.figures["spans"]] == list(
        zip(into, out, strict=True)
    )
    window = min(
        r["congestion_window_bytes"] for r in rows(run.flow_samples, flow=1, phase="probe-rtt")
    )
    assert told.figures["window_bytes"] == window
    assert f"its window was {size(window)}" in told.text
    assert not exact.of("probe-rtt", 0)
    # Between samples it is known less exactly, and includes that.
    (sampled,) = plain.of("probe-rtt", 1)
    for a, b in zip(sampled.figures["spans"], told.figures["spans"], strict=True):
        assert a["from_s"] <= b["from_s"] < b["until_s"] <= a["until_s"]


def test_parts_of_the_run_are_its_phases(twice):
    plain, _, run = twice
    parts = [(s.time_s, s.until_s, re.search(r"\((.*?)\)", s.text)[1]) for s in plain.of("shares")]
    names = [name for *_, name in parts]
    assert names[0].startswith("start-up of cubic")
    assert any(n.startswith("start-up of bbr") for n in names)
    assert any(n.startswith("steady, after the start-up of bbr") for n in names)
    probes = [p for p in parts if p[2] == "PROBE_RTT of bbr"]
    assert probes
    samples = rows(run.flow_samples, flow=1, phase="probe-rtt")
    assert all(any(a < r["time_s"] < b for a, b, _ in probes) for r in samples)


def test_changes_of_the_network_begin_parts_of_the_run():
    link = "topology.simple.link"
    change = {
        f"{link}.rate": {"steps": [["0s", "5Mbit/s"], ["1500ms", "2Mbit/s"]]},
        f"{link}.outages": [["2200ms", "2500ms"]], f"{link}.loss": "0%",
    }  # fmt: skip
    story = explain(package.run(TINY, set=change))
    texts = " ".join(s.text for s in story.of("shares"))
    for told in (
        "From 1.5 s to 2.2 s (link at 2 Mbit/s)",
        "From 2.2 s to 2.5 s (outage of link)",
        "From 2.5 s to 3 s (after the outage of link)",
    ):
        assert told in texts, texts


def test_lost_packets_are_those_that_the_sender_declared_lost(told):
    _, story = told
    for s in story.of("losses"):
        if "lost_packets" in s.figures:
            assert "declared" in s.text, s.text


def test_findings_are_told():
    link = "topology.simple.link"
    wide = {f"{link}.rate": "500Mbit/s", f"{link}.delay": "50ms", f"{link}.loss": "0%"}
    run = package.run(TINY, set={"duration": "600ms", **wide})
    story = explain(run)
    codes = [f["code"] for f in run.findings]
    assert "ends-in-slow-start" in codes
    assert [s.figures["code"] for s in story.of("finding") if s.figures] == codes


# --- the command


def call(*arguments: object, code: int = 0, given: str | None = None):
    done = CliRunner().invoke(app, ["explain", *map(str, arguments)], input=given)
    assert done.exit_code == code, done.output
    return done


def test_results_and_scenarios_tell_the_same(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    record = {"record.gauges": True}
    run = package.run(tmp_path / "tiny.toml", set=record, output=tmp_path / "run")
    of_results = call(tmp_path / "run").stdout
    assert of_results == call(tmp_path / "tiny.toml").stdout
    assert of_results == call("-", given=TINY).stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "tiny.toml"], "it writes nothing"
    data = json.loads(call(tmp_path / "run", "--json").stdout)
    assert data == json.loads(json.dumps(explain(run).to_json()))
    texts = [s["text"] for s in data["sentences"]]
    assert all(f"  {text}" in of_results.splitlines() for text in texts)
    assert all(s["time_s"] is None or 0 <= s["time_s"] <= 3 for s in data["sentences"])
    one = json.loads(call(tmp_path / "run", "--json", "--flow", "file").stdout)
    assert {s["flow"] for s in one["sentences"]} == {None, 1}
    other = call(tmp_path / "tiny.toml", "--seed", 9, "--set", "duration=1s").stdout
    assert "tiny, seed 9: 2 flows in 1 s." in other


def test_times_are_those_of_the_capture(tmp_path):
    package.run(TINY, set={"record.captures": ["link"]}, output=tmp_path / "run")
    story = explain(package.load(tmp_path / "run"))
    data, at, times = (tmp_path / "run" / "capture.pcapng").read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:  # An enhanced packet block; the link begins at an IPv4 header, then TCP.
            high, low = struct.unpack_from("<II", data, at + 12)
            header = data[at + 28 :]
            flags = header[(header[0] & 15) * 4 + 13]
            if flags & 0x12 == 0x02:
                times.append(((high << 32) + low) / 1e9)
        at += length
    starts = [story.of("flow", i)[0].time_s for i in (0, 1)]
    assert times == pytest.approx(starts, abs=0.001), "each SYN leaves when its flow starts"


def test_what_cannot_be_told(tmp_path):
    package.run(TINY, set={"duration": "1s"}, output=tmp_path / "run")
    assert (
        "--set changes a scenario" in call(tmp_path / "run", "--set", "duration=1s", code=2).output
    )
    assert "flows: upload, file" in call(tmp_path / "run", "--flow", "x", code=2).output
    (tmp_path / "empty").mkdir()
    assert "no results of a run" in call(tmp_path / "empty", code=2).output
    (tmp_path / "bad.toml").write_text(TINY.replace("5Mbit/s", "5 potatoes"))
    assert "potatoes" in call(tmp_path / "bad.toml", code=2).output
    error = json.loads(call(tmp_path / "bad.toml", "--json", code=2).stdout)["error"]
    assert error["diagnostics"]


PAGES = {
    "docs/reports.md": r"^gargalo explain .*$",
    "docs/tutorials/race.md": r"^gargalo (?:explain|plot) .*[^\\]$",
    "docs/cookbook.md": r"^gargalo explain .*$",
    "README.md": r"^gargalo (?:explain|plot) .*$",
}
COMMANDS = [
    line
    for page, pattern in PAGES.items()
    for line in re.findall(pattern, (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with what the pages name: results of runs, scenarios."""
    root = tmp_path_factory.mktemp("pages")
    for name in ("cubic", "two-flows-1", "cubic-vs-bbr-1", "race-1", "first", "mine"):
        package.run(TINY, set={"duration": "1s"}, output=root / "runs" / name)
    for name in ("race.toml", "two-flows.toml"):
        (root / name).write_text(TINY)
    (root / "examples").symlink_to(ROOT / "examples")
    return root


def test_the_pages_have_commands():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_pages(place, monkeypatch, line):
    monkeypatch.chdir(place)
    words = shlex.split(line, comments=True)[1:]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.stdout


def test_the_story_on_the_page_is_what_the_example_tells():
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(cubic\n.*?)```", page, re.DOTALL)
    assert shown is not None
    told = call(ROOT / "examples" / "cubic-vs-bbr.toml").stdout.splitlines()
    for line in textwrap.dedent(shown[1]).splitlines():
        assert line in told
