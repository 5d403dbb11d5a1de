"""Sums of rates are bytes over one window for all flows, which every output names."""

from __future__ import annotations

import json

import gargalo as package
import pytest
from conftest import TINY
from gargalo.exploring import page
from gargalo.reporting import report_of_sweep
from sweep_helpers import MINI, RATES

# One transfer after the other: each has the link for itself.
TURNS = """\
name     = "turns"
duration = "20s"

[topology.simple]
link = { rate = "20Mbit/s", delay = "5ms", queue = { droptail = "1BDP" } }
""" + "".join(
    f"""
[[flows]]
from  = "client"
to    = "server"
start = "{start}s"
transport.tcp = {{}}
workload.bulk = {{ bytes = "2MB" }}
"""
    for start in range(0, 12, 2)
)


def test_the_sum_is_what_the_link_carried(inside, tmp_path):
    (tmp_path / "turns.toml").write_text(TURNS)
    done = inside("run", "turns.toml", "--output", "out", "--no-plots")
    assert done.returncode == 0, done.stderr
    run = package.load(tmp_path / "out")
    start, end = run.summary["measured_from_s"], run.summary["measured_until_s"]
    assert (start, end) == (0, pytest.approx(run.flows["end_s"].max()))
    assert run.summary["goodput_bps"] == pytest.approx(8 * 6 * 2e6 / (end - start))
    assert run.flows["goodput_bps"].sum() > 4 * 20e6 > 20e6 > run.summary["goodput_bps"]
    assert run.flows["measured_bytes"].to_list() == [2_000_000] * 6
    assert f" from 0 s to {end:.6g} s" in done.stdout
    assert package.run(TURNS).to_json()["summary"] == run.to_json()["summary"]
    assert "<dt>goodput, all flows, 0 s to " in page(run)


def test_sweeps_reports_and_comparisons_name_the_measured_window(inside, tmp_path):
    sides = {}
    for name, head in (("whole", ""), ("late", 'measure = { from = "500ms" }\n')):
        sides[name] = package.sweep(
            head + MINI, RATES, repeat=2, workers=1, store=tmp_path / name, name=name
        )
    frame = sides["late"].frame()
    assert frame["measured_from_s"].to_list() == [0.5] * 4
    assert frame["measured_until_s"].to_list() == [1.0] * 4
    # They are facts of a run, not figures to compare.
    assert not {"measured_from_s", "measured_until_s"} & set(sides["late"].metrics)
    assert (frame["goodput_bps"] != sides["whole"].frame()["goodput_bps"]).all()
    notes = " ".join(report_of_sweep(sides["late"]).notes)
    assert "Rates, ratios and delays are of 0.5 s to 1 s of each run." in notes
    by = "rate"
    same = inside("compare", tmp_path / "late", "--by", by, "1Mbit/s", "2Mbit/s")
    assert same.returncode == 0, same.stderr
    assert "of 0.5 s to 1 s of each run" in same.stdout
    other = inside("compare", tmp_path / "whole", tmp_path / "late")
    assert "measured differently" in other.stderr
    assert "0 s to 1 s" in other.stderr
    told = json.loads(inside("compare", tmp_path / "whole", tmp_path / "late", "--json").stdout)
    assert told["measured"] == ["of 0 s to 1 s of each run", "of 0.5 s to 1 s of each run"]


def test_a_window_outside_of_the_run_is_refused(inside, tiny):
    refused = inside("run", tiny, "--set", "measure.until=5s", "--json")
    assert refused.returncode == 2
    assert "measure.until" in refused.stderr
    assert "ends after it" in refused.stderr


def test_every_table_is_of_the_same_packets():
    whole = package.run(TINY)
    late = package.run(TINY, set={"measure.from": "1s", "measure.until": "2500ms"})
    assert late.flow_samples.equals(whole.flow_samples)
    assert late.events.equals(whole.events)
    changed = {"measured_bytes", "goodput_bps", "throughput_bps"}
    rtt = {c for c in whole.flows.columns if c.startswith(("rtt_", "delay_"))}
    same = [c for c in whole.flows.columns if c not in changed | rtt]
    assert late.flows.select(same).equals(whole.flows.select(same))
    assert whole.flows["measured_bytes"].equals(
        whole.flows["delivered_bytes"].alias("measured_bytes")
    )
    window = package.metrics.goodput_in(late.flow_samples, 1, 2.5, flows=late.flows)
    assert late.flows["goodput_bps"][0] == pytest.approx(window["goodput_bps"][0], rel=1e-6)
