"""Specifications of picoquic's simulator as scenarios."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import gargalo
import pytest
from conftest import command, environment
from gargalo.checking.builds import compare_one
from gargalo.running import Text
from gargalo.scenarios import picoquic

PLAIN = """\
main_scenario_text: =b1:*1:397:400000;
main_cc_algo: c4
nb_connections: 1
data_rate_in_gbps: 0.01
latency: 20000
queue_delay_max: 40000
"""
NOQ = {"flows.0.transport.quic.stack": "noq", "flows.0.transport.quic.congestion": "cubic"}
"""picoquic need not be there."""
HERE = Path("one.txt")


def made(*more: str, **others: str) -> dict:
    """Return the scenario of the plain one with other lines."""
    lines = dict(line.split(": ", 1) for line in (PLAIN + "\n".join(more)).splitlines() if line)
    text = "\n".join(f"{k}: {v}" for k, v in {**lines, **others}.items())
    assert picoquic.is_one(text)
    return picoquic.scenario_of(text, HERE)


def link(**others: str) -> dict:
    return made(**others)["topology"]["simple"]["link"]


def test_a_main_connection_and_others_are_flows_of_picoquic():
    scenario = made(
        nb_connections="3",
        background_scenario_text="*2:100:1000",
        background_cc_algo="cubic",
        background_start_time="500000",
        main_cc_options="K0.5",
        icid="0123abcd",
    )
    main, others = scenario["flows"]
    assert main["transport"]["quic"] == {
        "stack": "picoquic",
        "congestion": "c4",
        "options": {"congestion_options": "K0.5"},
    }
    assert main["workload"]["request"] == {"sizes": ["400000B"], "request_size": "397B"}
    assert (others["count"], others["start"]) == (2, "500000us")
    assert others["workload"]["request"] == {
        "sizes": ["1000B", "1000B"],
        "request_size": "100B",
        "order": "multiplexed",
    }
    assert scenario["seed"] == 0x0123ABCD
    assert "expect" not in scenario
    assert scenario["duration"] == "60000000us"


def test_streams_that_follow_each_other_are_requests_one_after_another():
    request = made(main_scenario_text="=b1:397:1000; =b2:b1:397:2000; =b3:b2:397:3000;")["flows"][0]
    assert request["workload"]["request"] == {
        "sizes": ["1000B", "2000B", "3000B"],
        "request_size": "397B",
    }


def test_a_target_is_an_expectation_of_the_time_since_the_start():
    scenario = made(main_target_time="5000000", main_start_time="1000000")
    assert scenario["expect"][0]["metric"] == "flows.main.completion_s"
    assert scenario["expect"][0]["at_most"] == 4.0
    assert scenario["duration"] == "15000000us"


def test_the_link_and_its_course_are_steps():
    assert link() == {"rate": "10000000bit/s", "delay": "20000us", "queue": {"droptail": "40000us"}}
    assert link(jitter="3000")["delay"] == "23000us"
    assert link(jitter="3000")["jitter"] == {"scale": "1000us", "distribution": "normal"}
    assert link(l4s_max="1000", queue_delay_max="0")["queue"] == {
        "dualpi2": {"step_threshold": "1000us"}
    }
    hole = link(link_scenario="black_hole")["rate"]["steps"]
    assert hole == [
        ["0us", "10000000bit/s"],
        ["2000000us", "0bit/s"],
        ["4000000us", "10000000bit/s"],
    ]
    # It begins anew at its end.
    again = link(link_scenario="wifi_suspension")["rate"]["steps"]
    assert [t for t, _ in again[:4]] == ["0us", "1800000us", "2000000us", "3800000us"]
    # What an item lacks is 0.
    own = link(
        link_scenario="1000000:D0.02:U0.01:L30000:Q5000:J600;1000000:U0.005:Q5000:J600;",
        queue_delay_max="0",
    )
    assert own["up"]["rate"]["steps"][:2] == [
        ["0us", "10000000bit/s"],
        ["1000000us", "5000000bit/s"],
    ]
    assert own["down"]["rate"]["steps"][:2] == [["0us", "20000000bit/s"], ["1000000us", "0bit/s"]]
    assert own["delay"]["steps"][:2] == [["0us", "30600us"], ["1000000us", "600us"]]
    assert own["queue"] == {"droptail": "5000us"}
    assert own["jitter"]["scale"] == "200us"
    marks = link(l4s_max="1000", queue_delay_max="40000")["queue"]["dualpi2"]
    assert marks == {"step_threshold": "1000us", "memory_limit": "50000B"}


def test_other_texts_are_none():
    for text in (
        "",
        "notes: none\n",
        "latency: 40 ms in our lab\nthe rest of a note\n",
        "latency: 40 ms\na: b\nc: d\n",
        'name = "x"\n',
        "latency: x" + " " * 100_000 + "y",
    ):
        assert not picoquic.is_one(text) or text.startswith("latency: x")
    assert picoquic.is_one(PLAIN)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"main_scenario_text": "=v1:s30:n150:2000:G30;"}, "media are not read"),
        ({"main_scenario_text": ""}, "has no stream"),
        ({"main_scenario_text": "=a:1:2; =b:1:2; =c:a:1:2"}, "follows another stream"),
        ({"main_scenario_text": "=a:1:2; =b:3:4"}, "several sizes"),
        ({"nb_connections": "9"}, "1 to 5"),
        ({"latency": "fast"}, "must be a number"),
        ({"latency": "-5"}, "not negative"),
        ({"latency": "1.5"}, "whole number"),
        ({"data_rate_in_gbps": "nan"}, "must be a number"),
        ({"data_rate_in_gbps": "1e400"}, "must be a number"),
        ({"data_rate_in_gbps": "0.0000000001"}, "less than 1 bit/s"),
        ({"icid": "xyz"}, "hexadecimal"),
        ({"main_scenario_text": "*3000000:1:2"}, "more than 10000 streams"),
        ({"main_scenario_text": "*" + "9" * 5000 + ":1:2"}, "15 digits"),
        ({"link_scenario": "5:U" + "9" * 400, "queue_delay_max": "0"}, "15 digits"),
        ({"link_scenario": "5:U1:Q3;5:U1:Q4", "queue_delay_max": "0"}, "for all periods"),
        ({"link_scenario": "5:U1;5:D1"}, "no effect there"),
        ({"wifi_jitter": "1"}, "model of Wi-Fi"),
        ({"link_scenario": "wifi_fade"}, "black_hole"),
        ({"link_scenario": "1000:X1"}, "no other letters"),
        ({"link_scenario": "10:D1;10:D2", "queue_delay_max": "0"}, "more than"),
        ({"seed_cwin": "20000"}, "memory of a path"),
        ({"media_latency_max": "20000"}, "media"),
        ({"main_start_time": "9000000", "main_target_time": "5000000"}, "begins later"),
        ({"l4s": "9000000"}, "no line"),
    ],
)
def test_what_a_scenario_cannot_say_is_an_error_at_its_line(changes, told):
    with pytest.raises(gargalo.ScenarioError) as caught:
        made(**changes)
    assert told in str(caught.value)
    (found,) = caught.value.diagnostics
    assert found.file == "one.txt"
    assert found.line


def test_it_runs_wherever_a_scenario_does(tmp_path):
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "good.txt").write_text(PLAIN + "main_target_time: 2000000\n")
    (folder / "late.txt").write_text(PLAIN + "main_target_time: 200000\n")
    (folder / "notes.txt").write_text("notes: none\n")
    run = gargalo.run(folder / "good.txt", set=NOQ)
    assert run.flows["delivered_bytes"].to_list() == [400_000]
    done = gargalo.run(Text(PLAIN, folder / "pipe"), set=NOQ)
    assert done.flows["delivered_bytes"].to_list() == [400_000]
    with pytest.raises(gargalo.ScenarioError, match="has it already"):
        gargalo.run(Text(f"{PLAIN}latency: 5\n", folder / "pipe"), set=NOQ)
    at = "flows.0.transport.quic"
    sides = [{f"{at}.stack": "noq", f"{at}.congestion": c} for c in ("cubic", "reno")]
    found = compare_one(folder / "good.txt", *sides)
    assert not found.failed
    assert found.packet is not None
    changes = [word for k, v in NOQ.items() for word in ("--set", f"{k}={v}")]
    done = subprocess.run(
        command("check", folder, *changes, "--json", "--keep", tmp_path / "kept"),
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    checked = {Path(c["file"]).name: c["passed"] for c in json.loads(done.stdout)["scenarios"]}
    assert checked == {"good.txt": True, "late.txt": False}
    assert len(list((tmp_path / "kept").rglob("scenario.toml"))) == 1
