"""Frames of calls: the table, the figures and the pictures; one-way delays of datagrams."""

from __future__ import annotations

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from gargalo.exploring.packets import packets
from gargalo.exploring.view import view
from gargalo.pictures import metrics

CALL = ROOT / "examples/media.toml"
LOSSY = """
name = "lossy-datagrams"
duration = "4s"
topology.simple.link = { rate = "2Mbit/s", delay = "20ms", loss = "20%" }
[[flows]]
from = "client"
to = "server"
transport.udp = {}
workload.cbr = { rate = "400kbit/s" }
"""


@pytest.fixture(scope="module")
def call() -> gargalo.Run:
    return gargalo.run(CALL, set={"record.datagrams": True})


def test_figures_are_those_of_the_table(call: gargalo.Run):
    frames, facts = call.media_frames, call.summary
    whole = frames["received_packets"] == frames["packets"]
    assert frames["delay_s"].is_not_null().equals(whole)
    took = (frames["completed_s"] - frames["encoded_s"] - frames["delay_s"]).drop_nulls()
    assert took.abs().max() < 1e-9
    assert facts["media_frames"] == frames.height
    assert facts["media_frames_completed"] == whole.sum()
    for figure, value in (
        ("p50", frames["delay_s"].quantile(0.5, "linear")),
        ("p95", frames["delay_s"].quantile(0.95, "linear")),
        ("max", frames["delay_s"].max()),
    ):
        assert facts[f"media_frame_delay_{figure}_s"] == pytest.approx(value, abs=1e-9)


def test_a_frame_is_never_sooner_than_its_last_packet(call: gargalo.Run):
    """A frame waits in the shaping buffer, and each of its packets in the network."""
    for flow, frames in call.media_frames.partition_by("flow", as_dict=True).items():
        mine = call.datagrams.filter(pl.col("flow") == flow[0])
        assert mine.height == frames["received_packets"].sum()
        # The instants at which frames were complete are those at which datagrams arrived: with jitter several at once.
        least = mine.group_by("arrived_s").agg(least_s=pl.col("delay_s").min())
        arrived = frames.drop_nulls("completed_s").join(
            least, left_on="completed_s", right_on="arrived_s", how="left"
        )
        assert arrived["least_s"].null_count() == 0
        assert (arrived["delay_s"] >= arrived["least_s"] - 1e-9).all()


def test_the_page_and_the_story_have_the_frames(call: gargalo.Run):
    panels = [part["metric"] for part in view(call) if part["part"] == "panel"]
    assert panels[-2:] == ["one-way-delay", "frame-delay"]
    told = str(call.explain())
    first = call.media_frames.filter(pl.col("flow") == 0)
    whole = first.height - first["delay_s"].null_count()
    assert f"first encoded {first.height} frames: {whole} arrived with all" in told
    assert f"frame took 35.7 ms to {first['delay_s'].max() * 1e3:.3g} ms" in told


def test_the_pictures_have_the_rows(call: gargalo.Run):
    chart = metrics.picture(call, "frame-delay")
    assert [line.name for line in chart.lines] == ["first", "second"]
    first = call.media_frames.filter(pl.col("flow") == 0)
    assert chart.lines[0].x.tolist() == first["encoded_s"].to_list()
    wanted = [np.nan if t is None else 1e3 * t for t in first["delay_s"]]
    assert np.array_equal(chart.lines[0].y, wanted, equal_nan=True)
    missing = call.media_frames["delay_s"].null_count()
    assert f"gaps: {missing} of {call.media_frames.height} frames are not complete" in chart.notes
    delays = metrics.picture(call, "one-way-delay").lines
    assert [line.name for line in delays] == ["first", "second"]
    assert min(np.min(line.y) for line in delays) > 30


def test_runs_without_calls_have_none(tmp_path, inside):
    run = gargalo.run(LOSSY, output=tmp_path / "run")
    assert run.media_frames.is_empty()
    assert not [key for key in run.summary if key.startswith("media")]
    done = inside("plot", tmp_path / "run", "--metric", "frame-delay")
    assert done.returncode != 0
    assert "workload.media" in done.stderr
    done = inside("plot", tmp_path / "run", "--metric", "one-way-delay")
    assert "record.datagrams" in done.stderr


def test_all_pictures_of_a_run_with_a_call(tmp_path, call: gargalo.Run):
    made = call.plot.save(tmp_path, formats=("svg",))
    assert "frame_delay.svg" in {p.name for p in made}


def test_the_fate_of_each_datagram_is_known():
    """Datagrams look alike but for their number, which their IP headers carry."""
    run = gargalo.run(LOSSY)
    sent, lost = (run.flows[c][0] for c in ("sent_packets", "lost_packets"))
    found = packets(LOSSY, 0, 0.0, 4.0)
    fates = found["paths"][0]["segments"]["fate"]
    assert len(fates) == sent
    assert lost > 20
    # What is on its way as the run ends is neither.
    assert abs(fates.count("dropped") - lost) <= 3
    assert fates.count("arrived") == run.flows["delivered_bytes"][0] / 1000


def test_pings_beside_other_datagrams_have_looks_of_their_own():
    head, flow = LOSSY.split("[[flows]]")
    asks = flow.replace('cbr = { rate = "400kbit/s" }', "ping = {}")
    text = "[[flows]]".join((head, asks, flow))
    run = gargalo.run(text, set={"record.datagrams": True})
    lines = metrics.picture(run, "one-way-delay").lines
    assert [line.name.split()[-1] for line in lines][:2] == ["there", "back"]
    assert len(lines) == 3
    assert len({(line.colour, line.dash) for line in lines}) == 3
