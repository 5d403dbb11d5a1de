"""Pings: the table, the figures, the pictures, and what is refused."""

from __future__ import annotations

from typing import Any

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from gargalo import sweeps
from gargalo.exploring.view import view
from gargalo.pictures import metrics
from gargalo.pictures.paper import draw


def ping(
    transport: str = "udp", link: dict[str, Any] | None = None, **spec: object
) -> dict[str, Any]:
    """Give a scenario with a ping over a link of 10 ms, 5 s long."""
    flow = {
        "from": "client",
        "to": "server",
        "transport": {transport: {}},
        "workload": {"ping": {"interval": "50ms", **spec}},
    }
    topology = {"simple": {"link": {"rate": "10Mbit/s", "delay": "10ms", **(link or {})}}}
    return {"name": "ping", "duration": "5s", "topology": topology, "flows": [flow]}


LOSSY = {"down": {"loss": "30%"}, "jitter": "2ms"}
TEXT = """
name = "ping"
duration = "5s"
topology.simple.link = { rate = "10Mbit/s", delay = "10ms", jitter = "2ms", down = { loss = "30%" } }
[[flows]]
from = "client"
to = "server"
transport.udp = {}
workload.ping = { interval = "50ms", count = 70 }
"""
"""The same as the fixture below."""


@pytest.fixture(scope="module")
def lossy() -> gargalo.Run:
    return gargalo.run(ping(link=LOSSY, count=70))


@pytest.fixture(scope="module")
def loaded() -> gargalo.Run:
    return gargalo.run(ROOT / "examples/ping-under-load.toml")


def test_every_request_has_a_row(lossy: gargalo.Run):
    pings, facts = lossy.pings, lossy.summary
    assert pings["sequence"].to_list() == list(range(70))
    assert pings["sent_s"].to_list() == pytest.approx([0.05 * i for i in range(70)])
    # What is lost has no round trip; it is missing and not zero.
    assert pings["rtt_s"].is_null().to_list() == pings["lost"].to_list()
    assert pings["return_delay_s"].is_null().to_list() == pings["lost"].to_list()
    assert pings["forward_delay_s"].null_count() == 0
    delays = pings["forward_delay_s"] + pings["return_delay_s"]
    assert (delays - pings["rtt_s"]).abs().max() < 1e-12
    assert facts["pings_sent"] == 70
    assert 10 < facts["pings_lost"] < 40
    assert facts["pings_answered"] + facts["pings_lost"] == 70
    assert facts["ping_loss"] == facts["pings_lost"] / 70


def test_figures_are_those_of_the_table(lossy: gargalo.Run):
    times, facts = lossy.pings["rtt_s"].drop_nulls(), lossy.summary
    flow = lossy.flows.row(0, named=True)
    for figure, value in (
        ("min", times.min()),
        ("mean", times.mean()),
        ("p50", times.quantile(0.5, "linear")),
        ("p95", times.quantile(0.95, "linear")),
        ("max", times.max()),
    ):
        assert facts[f"ping_rtt_{figure}_s"] == pytest.approx(value, rel=1e-12)
        assert flow[f"rtt_{figure}_s"] == pytest.approx(value, abs=1e-9)
    assert facts["ping_rtt_mdev_s"] == pytest.approx(times.std(ddof=0), rel=1e-9)
    assert flow["loss"] == facts["ping_loss"]
    # The link loses answers only: those are no packets of the sender of requests.
    assert (flow["sent_packets"], flow["lost_packets"]) == (70, 0)


def test_it_is_written_read_and_told(tmp_path, lossy: gargalo.Run, inside):
    scenario = tmp_path / "ping.toml"
    scenario.write_text(TEXT, encoding="utf-8")
    out = tmp_path / "out"
    done = inside("run", scenario, "--output", out, "--no-plots")
    assert done.returncode == 0, done.stderr
    facts = lossy.summary
    share = f"{100 * facts['ping_loss']:.1f}% lost"
    assert f"pings: 70 sent, {facts['pings_answered']} answered, {share}; RTT min/" in done.stdout
    read = gargalo.load(out)
    assert read.pings.equals(lossy.pings)
    assert read.summary == lossy.summary


def test_runs_without_pings_have_none(tmp_path):
    other = {**ping(), "duration": "1s"}
    other["flows"] = [{**other["flows"][0], "workload": {"cbr": {"rate": "1Mbit/s"}}}]
    run = gargalo.run(other, output=tmp_path / "out")
    assert run.pings.is_empty()
    assert not (tmp_path / "out" / "pings.parquet").exists()
    assert not [key for key in run.summary if key.startswith("ping")]
    assert not metrics.picture(run, "ping").lines


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
def test_it_is_refused_over_a_reliable_transport(transport: str):
    with pytest.raises(gargalo.ScenarioError) as error:
        gargalo.run(ping(transport))
    assert "workload.ping over a reliable transport" in str(error.value)
    assert "write `transport.udp = {}`" in str(error.value)


def test_a_full_buffer_is_seen_from_its_beginning_to_its_end(loaded: gargalo.Run):
    pings = loaded.pings.filter(pl.col("lost").is_not_null())
    before = pings.filter(pl.col("sent_s") < 1.9)
    during = pings.filter(pl.col("sent_s").is_between(4, 7.9))
    after = pings.filter(pl.col("sent_s") > 9)
    assert before["rtt_s"].max() < 0.041
    assert after["rtt_s"].max() < 0.041
    # The buffer holds 300 ms, of which CUBIC leaves most full.
    assert during["rtt_s"].median() > 0.15
    assert during["rtt_s"].max() < 0.36
    # It is in the direction of the upload.
    assert during["forward_delay_s"].median() > 0.13
    assert during["return_delay_s"].max() < 0.03


def test_explain_tells_of_pings(loaded: gargalo.Run, lossy: gargalo.Run):
    facts = lossy.summary
    told = str(lossy.explain())
    lost = f"{facts['pings_answered']} had an answer, {facts['pings_lost']} were lost"
    assert f"sent 70 echo requests: {lost}." in told
    longest = loaded.pings.sort("rtt_s", nulls_last=False)["rtt_s"][-1]
    assert f"round trips took 40.1 ms to {longest * 1e3:.3g} ms" in str(loaded.explain())


def test_the_page_has_their_pictures(loaded: gargalo.Run):
    titles = {part["title"] for part in view(loaded) if part["part"] == "panel"}
    assert {"Round-trip time of pings", "One-way delay of datagrams"} < titles


def test_the_pictures_have_the_rows(lossy: gargalo.Run):
    chart = metrics.picture(lossy, "ping")
    (line,) = chart.lines
    assert line.x.tolist() == lossy.pings["sent_s"].to_list()
    wanted = [np.nan if t is None else 1e3 * t for t in lossy.pings["rtt_s"]]
    assert np.array_equal(line.y, wanted, equal_nan=True)
    lost = lossy.summary["pings_lost"]
    assert f"gaps: {lost} of 70 requests have no answer" in chart.notes
    there, back = metrics.picture(lossy, "one-way-delay").lines
    assert [there.name[-6:], back.name[-5:]] == [" there", " back"]
    assert there.dash != back.dash
    assert np.isnan(back.y).sum() == lost
    assert not np.isnan(there.y).any()
    assert metrics.picture(lossy, "ping", flows=[]).lines == ()


def test_an_answer_between_lost_ones_is_a_point(lossy: gargalo.Run):
    """A line needs two points; the only one between gaps would not be seen."""
    chart = metrics.picture(lossy, "ping")
    known = [False, *~np.isnan(chart.lines[0].y), False]
    alone = [i for i in range(len(known) - 2) if known[i + 1] and not known[i] and not known[i + 2]]
    assert alone
    drawn = draw(chart).axes[0].lines[0]
    assert drawn.get_marker() == "o"
    assert drawn.get_markevery() == alone


def test_the_page_has_panels_of_pings(loaded: gargalo.Run):
    panels = [part["metric"] for part in view(loaded) if part["part"] == "panel"]
    assert panels[-2:] == ["ping", "one-way-delay"]
    assert {"goodput", "rtt", "queue"} < set(panels)


def test_plot_draws_it_and_says_what_lacks(tmp_path, inside):
    gargalo.run(ping(), output=tmp_path / "run")
    picture = tmp_path / "ping.svg"
    done = inside("plot", tmp_path / "run", "--metric", "ping", "--output", picture)
    assert done.returncode == 0, done.stderr
    assert "Round-trip time of pings" in picture.read_text(encoding="utf-8")
    other = {**ping(), "duration": "1s"}
    other["flows"] = [{"from": "client", "to": "server", "transport": {"tcp": {}}}]
    gargalo.run(other, output=tmp_path / "other")
    done = inside("plot", tmp_path / "other", "--metric", "one-way-delay")
    assert done.returncode != 0
    assert "workload.ping" in done.stderr


def test_all_pictures_of_a_run_with_pings(tmp_path):
    made = gargalo.run(ping()).plot.save(tmp_path, formats=("svg",))
    assert {"ping.svg", "one_way_delay.svg"} < {p.name for p in made}


def test_sweeps_have_figures_of_pings(tmp_path):
    axes = {"topology.simple.link.loss": ["0%", "40%"]}
    done = sweeps.sweep(ping(count=20), axes, store=tmp_path / "store", keep=["pings"])
    assert not done.failures
    frame = done.frame().sort("ping_loss")
    assert frame["pings_sent"].to_list() == [20, 20]
    assert frame["ping_loss"][0] == 0
    assert frame["ping_loss"][1] > 0
    assert done.table("pings").collect().height == 40
