"""Pictures of runs: what is given to the plotting libraries, not pixels."""

from __future__ import annotations

import io

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from gargalo.exploring import view
from gargalo.names import flow_names
from gargalo.pictures import runs
from gargalo.pictures.metrics import overlay, picture
from gargalo.pictures.paper import draw
from gargalo.pictures.runs import nice

STEADY = """\
name     = "steady"
duration = "3270ms"

[topology.dumbbell]
pairs      = 5
access     = { rate = "1Gbit/s", delay = "1ms" }
bottleneck = { rate = "10Mbit/s", delay = "5ms", queue = { droptail = "2BDP" } }

[[flows]]
from  = "left*"
to    = "right*"
count = 4
start = "530ms"
transport.tcp = { congestion = "cubic" }
"""


@pytest.fixture(scope="module")
def steady() -> gargalo.Run:
    """Four flows of one control between two pairs of hosts, which start and end within a bin."""
    return gargalo.run(STEADY)


def hosts(label: str, *pairs: tuple[str, str]) -> list[dict[str, object]]:
    return [{"id": i, "label": label, "from": a, "to": b} for i, (a, b) in enumerate(pairs)]


def test_flows_have_names_that_tell_them_apart():
    assert flow_names(hosts("cubic", ("a", "b"))) == {0: "cubic"}
    same = hosts("cubic", ("a", "b"), ("a", "b"))
    assert flow_names(same) == {0: "cubic (0)", 1: "cubic (1)"}
    other = hosts("cubic", ("a", "b"), ("c", "d"))
    assert flow_names(other) == {0: "cubic (0) a to b", 1: "cubic (1) c to d"}
    disguised = [*same, {"id": 2, "label": "cubic (1)", "from": "a", "to": "b"}]
    assert len(set(flow_names(disguised).values())) == 3


def test_the_terminal_has_the_names_of_the_pictures(gargalo, tmp_path):
    (tmp_path / "steady.toml").write_text(STEADY)
    done = gargalo("run", "steady.toml", "--no-plots")
    assert done.returncode == 0, done.stderr
    assert "cubic (2) left2 to right2" in done.stdout
    assert "cubic (1) left1 to right1" in done.stdout


def test_goodput_has_whole_bins_only(steady):
    width = 0.2
    chart = runs.goodput(steady, width)
    assert f"in bins of {width:g} s" in chart.notes
    assert len(chart.lines) == 4
    samples = steady.flow_samples.sort("flow", "time_s")
    for flow, line in enumerate(chart.lines):
        begins, ends = line.x - width / 2, line.x + width / 2
        assert begins[0] == pytest.approx(0.6), "the first bin after the start at 0.53 s"
        assert begins[-1] >= 0.53
        assert ends[-1] <= 3.27 + 1e-9
        assert ends[-1] > 3.27 - width
        # The same figures from the samples, which lie on the edges of the bins from 0.6 s on.
        mine = samples.filter(pl.col("flow") == flow)
        at = dict(zip(mine["time_s"].round(6), mine["received_bytes"], strict=True))
        for middle, rate in list(zip(line.x, line.y, strict=True))[1:-1]:
            bits = 8 * (at[round(middle + width / 2, 6)] - at[round(middle - width / 2, 6)])
            assert rate == pytest.approx(bits / width / 1e6)
    # Together they fill the link until the end: there is no drop that the network did not have.
    total = np.sum([line.y for line in chart.lines], axis=0)
    assert total[-1] > 0.85 * 10


def test_bins_begin_with_the_measured_window():
    run = gargalo.run(STEADY, set={"measure.from": "1050ms", "measure.until": "3s"})
    chart = runs.goodput(run, 0.2)
    assert np.any(np.isclose(chart.lines[0].x - 0.1, 1.05))
    assert chart.window == (1.05, 3.0)
    assert "grey is the measured window, 1.05 s to 3 s" in chart.remarks
    (notes,) = run.plot.goodput().axes[0].texts
    assert notes.get_text().endswith("1.05 s to 3 s")
    (panel,) = (p for p in view(run, ["goodput"]) if p["part"] == "panel")
    assert "grey is the measured window, 1.05 s to 3 s" in panel["notes"]


def test_widths_of_bins_are_round_numbers_and_multiples_of_the_interval():
    assert [nice(v) for v in (0.011, 0.1, 0.6, 3)] == [0.02, 0.1, 1.0, 5.0]
    run = gargalo.run(STEADY, set={"record.interval": "300ms"})
    assert runs.bin_width(run) == pytest.approx(0.6)


def test_the_capacity_of_the_bottleneck_is_shown(steady):
    (line,) = runs.goodput(steady).references
    assert line.name == "capacity of bottleneck up: 10 Mbit/s"
    assert set(line.y) == {10.0}
    graph = gargalo.run(ROOT / "examples" / "graph.toml")
    (line,) = runs.goodput(graph).references
    assert [y for x, y in zip(line.x, line.y, strict=True) if x < 10] == [20.0]
    assert [y for x, y in zip(line.x, line.y, strict=True) if x >= 10] == [5.0] * 3
    tall = gargalo.run(STEADY, set={"topology.dumbbell.access.rate": "2Mbit/s", "duration": "2s"})
    chart = runs.goodput(tall)
    limit = 3 * max(line.y.max() for line in chart.lines)
    assert all(line.y.max() <= max(limit, 2.0) for line in chart.references)


def test_the_capacity_of_a_trace_is_what_the_link_could_send():
    run = gargalo.run(ROOT / "examples" / "cellular-race.toml")
    (line,) = runs.goodput(run, 1.0).references
    sent = next(x for x in run.links if x["name"] == "bottleneck" and x["direction"] == "up")
    offered = 8e-6 * sent["sent_bytes"] / sent["utilization"]
    assert np.sum(line.y[:-1]) == pytest.approx(offered, rel=0.02)
    assert np.unique(line.y).size > 10, "it varies"


def test_several_paths_have_the_sum_of_their_capacities():
    run = gargalo.run(ROOT / "examples" / "mptcp.toml", set={"duration": "3s"})
    (line,) = runs.goodput(run).references
    assert line.name == "capacity of wifi up + lte up: 32 Mbit/s"


def test_a_flow_looks_the_same_in_files_and_on_pages(steady):
    panels = {p["title"]: p for p in view(steady) if p["part"] == "panel"}
    for title, file in (
        ("Goodput", steady.plot.goodput()),
        ("Congestion window", steady.plot.congestion_window()),
        ("Queueing delay", steady.plot.queue()),
    ):
        on_paper = {str(x.get_label()): x.get_color() for x in file.axes[0].lines}
        lines = [*panels[title]["lines"], *panels[title]["references"]]
        on_page = {line["name"]: line["colour"] for line in lines}
        capacity = {n for n in on_paper if n.startswith("capacity")}
        assert {n: c for n, c in on_paper.items() if n not in capacity} == {
            n: c for n, c in on_page.items() if n not in capacity
        }
        assert set(on_paper) == set(on_page)
        seen = {(x["colour"], x["dash"]) for x in lines if x["name"] not in capacity}
        assert len(seen) == len(on_paper) - len(capacity)


@pytest.mark.parametrize("width_in", [3.5, 8.0])
def test_legends_and_titles_are_beside_the_data_and_begin_where_the_axes_do(steady, width_in):
    for chart in (runs.goodput(steady), runs.queue(steady)):
        figure = draw(chart, width_in=width_in)
        figure.savefig(io.BytesIO(), format="png")
        (axes,) = figure.axes
        data = axes.get_window_extent()
        legend = axes.get_legend().get_window_extent()
        assert legend.y1 <= axes.xaxis.get_tightbbox().y0 + 1
        (notes,) = axes.texts
        (title,) = [x for x in axes.get_children() if getattr(x, "get_text", str)() == chart.title]
        for text in (legend, notes.get_window_extent(), title.get_window_extent()):
            # The frame of a legend, which is not drawn, has a margin.
            assert text.x0 == pytest.approx(data.x0, abs=2)
            assert text.x1 <= figure.bbox.x1
        assert data.y1 <= notes.get_window_extent().y0
        assert notes.get_window_extent().y1 <= title.get_window_extent().y0 + 1


def test_links_that_carried_nothing_are_left_out(steady):
    chart = runs.queue(steady)
    assert [line.name for line in chart.lines] == ["bottleneck up"]
    assert chart.notes == ("1 of 22 directions of links: those with a queue or drops",)


def test_more_flows_than_lines_are_told():
    run = gargalo.run(
        STEADY.replace("*", "0").replace("count = 4", "count = 30"), set={"duration": "1s"}
    )
    chart = runs.sampled(run, "srtt_s", "RTT", "RTT", "ms", 1e3)
    assert len(chart.lines) == 24
    assert len({(line.colour, line.dash) for line in chart.lines}) == 24
    assert chart.notes == ("the first 24 of 30 flows",)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_quic_example_shows_round_trips(seed):
    quiet = {"record.captures": [], "record.qlog": False}
    run = gargalo.run(ROOT / "examples" / "quic.toml", seed=seed, set=quiet)
    first = dict(run.flows.select("label", "first_byte_s").iter_rows())
    rounds = {"quic": 2, "quic 0-rtt": 1, "tcp tls": 3, "tcp tls early data": 2}
    assert set(first) == set(rounds)
    for label, n in rounds.items():
        assert first[label] / 0.08 == pytest.approx(n, abs=0.06), label
    done = dict(run.flows.select("label", "completion_s").iter_rows())
    assert done["quic"] - done["quic 0-rtt"] == pytest.approx(0.08, abs=0.01)
    assert done["tcp tls"] - done["tcp tls early data"] == pytest.approx(0.08, abs=0.01)
    assert run.flows["lost_packets"].sum() == 0


# --- objects and paths


REQUESTS = """\
duration = "1s"
topology.simple.link = { rate = "4Mbit/s", delay = "20ms" }
[[flows]]
label = "page"
from = "client"
to = "server"
transport.quic = {}
workload.request = { objects = 3, size = "20kB", order = "multiplexed" }
[[flows]]
label = "long"
from = "client"
to = "server"
transport.quic = {}
workload.request = { objects = 130, size = "100kB", order = "multiplexed" }
"""


def test_each_object_is_a_row_from_its_request_to_its_last_byte():
    run = gargalo.run(REQUESTS)
    chart = picture(run, "objects")
    rows = [line for line in chart.lines if line.name == "page arrives"]
    table = run.objects.filter(pl.col("flow") == 0)
    begins = (table["requested_s"] + table["first_byte_s"]).to_list()
    assert [line.x[0] for line in rows] == begins
    assert [line.x[1] for line in rows] == table["completed_s"].to_list()
    assert [line.y[0] for line in rows] == [0, 1, 2]
    assert all(np.isnan(line.y[2]) for line in rows), "nothing after the last byte"
    waits = [line for line in chart.lines if line.name == "long waits"]
    assert len(waits) == 60
    assert any("the first 60 objects" in note for note in chart.notes)
    # An object that did not come waits until the end.
    unseen = [line for line in waits if line.x[1] == run.flows["end_s"][1]]
    came = run.objects.filter(pl.col("flow") == 1).head(60)["first_byte_s"]
    assert len(unseen) == came.null_count()
    # Of many lines with one name the legend has one.
    labels = draw(chart).axes[0].get_legend_handles_labels()[1]
    assert sorted(labels) == ["long arrives", "long waits", "page arrives", "page waits"]


def test_areas_of_several_runs_are_lines():
    run = gargalo.run(ROOT / "examples" / "mptcp.toml", set={"duration": "2s"})
    chart = picture(run, "paths")
    assert chart.stacked
    assert len(chart.lines) == 2
    assert not overlay([("a", chart), ("b", chart)]).stacked
