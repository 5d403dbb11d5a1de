"""Pictures of sweeps: `gargalo plot STORE`, `Sweep.plot`, and the report's figures from the same description."""

from __future__ import annotations

import json
from typing import get_args

import gargalo
import polars as pl
import pytest
from click.testing import CliRunner
from gargalo import reporting, sweeps
from gargalo.cli import plot_sweep
from gargalo.cli.app import app
from gargalo.metrics.declared import CEILING, DRAIN, bounds_in, bounds_of
from gargalo.pictures.sweeps import Axes, Kind, axes_of, describe, logarithmic, scale_of
from gargalo.sweeps.ceiling import drain_time
from sweep_helpers import MINI

AXES = {
    "loss": {
        "key": "topology.simple.link.loss.independent",
        "values": ["0%", "0.1%", "1%", "5%"],
    },
    "cc": {"key": "flows.upload.transport.tcp.congestion", "values": ["cubic", "bbr"]},
    "topology.simple.link.delay": ["5ms", "20ms"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "s"
    gargalo.sweep(MINI, AXES, repeat=4, store=path, workers=2, keep=["flows"], name="loss")
    return path


def plot(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["plot", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def data(*arguments: object) -> dict:
    return json.loads(plot(*arguments, "--json"))


def test_points_are_means_of_the_flow_with_intervals_within_the_link(store):
    shown = data(
        store, *["--x", "loss", "--by", "cc", "--metric", "goodput_bps", "--flow", "upload"]
    )
    assert (shown["kind"], shown["quantity"]) == ("points", "goodput (Mbit/s)")
    assert shown["x"] == {"title": "loss", "log": True, "ticks": ["0%", "0.1%", "1%", "5%"]}
    assert [p["title"] for p in shown["panels"]] == ["delay 5ms", "delay 20ms"]
    flows = sweeps.load(store).table("flows").filter(pl.col("label") == "upload").collect()
    for panel in shown["panels"]:
        assert [s["name"] for s in panel["series"]] == ["cubic", "bbr"]
        for series in panel["series"]:
            for point in series["points"]:
                cell = flows.filter(
                    pl.col("sweep.loss") == point["level"],
                    cc=series["name"],
                    delay=panel["title"].removeprefix("delay "),
                )
                assert point["n"] == 4
                assert point["mean"] == pytest.approx(cell["goodput_bps"].mean() / 1e6)
                assert point["low"] < point["mean"] < point["high"] <= 2.0, "of a 2 Mbit/s link"


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_every_kind_is_drawn_for_a_paper(store, tmp_path, kind, ending):
    target = tmp_path / f"a.{ending}"
    options = ["--x", "loss", "--kind", kind, "--width", "one-column", "--output", target]
    assert plot(store, *options).strip() == str(target)
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    first = target.read_bytes()
    assert first.startswith(starts[ending])
    assert plot(store, *options, "--overwrite")
    assert target.read_bytes() == first, "equal runs give equal files"
    assert "add --overwrite" in plot(store, *options, code=2)


def test_groups_have_shares_that_make_the_whole(store):
    options = [
        "--x",
        "loss",
        "--group",
        "label",
        "--metric",
        "share",
        "--kind",
        "bars",
        "--where",
        "delay=5ms",
    ]
    shown = data(store, *options, "--where", "cc=bbr")
    (panel,) = shown["panels"]
    assert [s["name"] for s in panel["series"]] == ["upload", "other"]
    for mine, others in zip(*(s["points"] for s in panel["series"]), strict=True):
        assert mine["mean"] + others["mean"] == pytest.approx(100.0), "percent"
        assert mine["high"] <= 100.0


def test_a_curve_of_shares_has_every_flow(store):
    shown = data(store, "--kind", "cdf", "--x", "loss", "--flow", "upload", "--flow", "other")
    values = [p["values"] for pan in shown["panels"] for s in pan["series"] for p in s["points"]]
    assert sum(map(len, values)) == 2 * sweeps.load(store).frame().height
    names = [s["name"] for s in shown["panels"][0]["series"]]
    assert names[0] == "upload, loss 0%"


def test_errors_name_the_place_and_the_remedy(store):
    told = {
        ("--x", "los"): 'no label for x "los"; did you mean "loss"?',
        ("--metric", "goodput_bs"): 'no figure "goodput_bs"; did you mean "goodput_bps"?',
        ("--flow", "uplod"): 'no flow "uplod"; did you mean "upload"?',
        ("--group", "lable"): 'no group of flows "lable"; did you mean "label"?',
        ("--where", "delay=5m"): 'no delay "5m"; did you mean "5ms"?',
        ("--where", "delay=5ms", "--by", "delay"): "have the same value, 5ms; these vary: loss, cc",
        ("--x", "loss", "--by", "loss"): "choose another label",
        ("--level", "95"): "between 0 and 1",
        ("--link", "up"): "--link is for runs",
        ("--name", "other"): "other",
        ("--flow", "upload", "--metric", "jain_index"): 'no figure of flows "jain_index"',
    }
    for options, text in told.items():
        assert text in plot(store, *options, code=2), options


def test_a_notebook_draws_what_the_command_draws(store):
    sweep = sweeps.load(store)
    figure = sweep.plot("utilization", x="loss", by="cc", where={"delay": "5ms"})
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert [t.get_text() for t in axes.get_xticklabels()] == ["0%", "0.1%", "1%", "5%"]
    assert axes.get_ylabel() == "utilization (%)"
    with pytest.raises(ValueError, match="no label for by"):
        sweep.plot(by="speed")


def test_a_sweep_without_flows_says_how_to_keep_them(tmp_path):
    gargalo.sweep(MINI, {}, store=tmp_path / "s", workers=1)
    assert 'keep it with keep = ["flows"]' in plot(tmp_path / "s", "--flow", "upload", code=2)


def test_the_report_has_the_same_picture(store):
    sweep = sweeps.load(store)
    frame, axes = axes_of(sweep.frame(), sweep.labels)
    assert axes == Axes("cc", "loss", ("delay",))
    picture = describe(frame, "goodput_bps", axes, bounds={})
    blocks = [b for b in reporting.report_of_sweep(sweep).figures if b.title == picture.title]
    assert [b.group for b in blocks] == [p.title for p in picture.panels]
    for block, panel in zip(blocks, picture.panels, strict=True):
        layout = block.figure.layout
        assert (layout.xaxis.type, layout.xaxis.ticktext) == ("log", ("0%", "0.1%", "1%", "5%"))
        for trace, series in zip(block.figure.data, panel.series, strict=True):
            assert list(trace.x) == [p.x for p in series.points]
            assert list(trace.y) == [p.interval.mean for p in series.points]
            ends = [p.interval.high and p.interval.high - p.interval.mean for p in series.points]
            assert list(trace.error_y.array) == pytest.approx(ends)
    names = {b.title for b in reporting.report_of_sweep(sweep).figures}
    assert not any("ceiling" in n or "drain" in n for n in names), "bounds are no figures"


def test_levels_are_written_as_in_the_scenario():
    places, scale = scale_of(["0.01%", "1%", "0.1%"], "loss")
    assert (scale.title, scale.log) == ("loss", True)
    assert scale.ticks == ((0.01, "0.01%"), (0.1, "0.1%"), (1.0, "1%"))
    assert places["1%"] == (1.0, "1%")
    _, scale = scale_of(["5ms", "40ms"], "delay")
    assert (scale.title, scale.ticks) == ("delay (ms)", ((5.0, "5"), (40.0, "40")))
    _, scale = scale_of(["256kB", "1MB", "16MB"], "buffer")
    assert (scale.title, [t for _, t in scale.ticks]) == ("buffer", ["256kB", "1MB", "16MB"])
    assert [p for p, _ in scale.ticks] == [0.256, 1.0, 16.0]
    _, scale = scale_of([1e-4, 1e-3, 1e-2], "loss")
    assert [t for _, t in scale.ticks] == ["0.0001", "0.001", "0.01"]
    _, scale = scale_of(["codel", "droptail"], "queue")
    assert scale.named
    assert not scale.log
    many, scale = scale_of([f"{n}ms" for n in range(1, 101)], "delay")
    assert (len(many), len(scale.ticks) < 12) == (100, True), "words that have room"


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([1, 10, 100], True),
        ([0, 1, 10, 100], True),
        ([10, 20, 40, 80], True),
        ([0.5, 1, 8], True),
        ([10, 20, 30, 40], False),
        ([0, 10, 20], False),
        ([1, 100], False),
        ([-1, 1, 100], False),
    ],
)
def test_levels_that_are_spread_are_on_a_logarithmic_axis(levels, expected):
    assert logarithmic(levels) is expected


def test_no_interval_of_a_delay_is_beyond_what_the_buffer_holds():
    rows = pl.DataFrame(
        {"cc": ["a"] * 4, "queue_delay_p95_s": [0.04, 0.01, 0.04, 0.002], DRAIN: [0.041] * 4}
    )
    assert bounds_in("queue_delay_p95_s", rows) == (0.0, 0.041)
    picture = describe(rows, "queue_delay_p95_s", Axes("cc"))
    (point,) = picture.panels[0].series[0].points
    assert point.interval.high <= 41.0
    alone = describe(rows.drop(DRAIN), "queue_delay_p95_s", Axes("cc"))
    assert alone.panels[0].series[0].points[0].interval.high > 41.0, "which it would be"
    assert bounds_of("queue_delay_p95_s")[1] == float("inf")


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ('{ droptail = "20 packets" }', 21 * 1500 * 8 / 2e6),
        ('{ droptail = "30kB" }', 31_500 * 8 / 2e6),
        ('{ droptail = "50ms" }', 0.05 + 1500 * 8 / 2e6),
        ('{ codel = { limit = "20 packets" } }', 21 * 1500 * 8 / 2e6),
        ("{ fq-codel = {} }", None),
    ],
)
def test_a_full_buffer_drains_in_a_time_that_no_packet_exceeds(queue, expected):
    text = MINI.replace('{ droptail = "20 packets" }', queue)
    run = gargalo.run(text)
    found = drain_time(run)
    assert found == (None if expected is None else pytest.approx(expected))
    if expected is not None:
        assert max(link["queue_delay_max_s"] or 0 for link in run.links) <= expected
    steps = run.scenario | {"duration": "1s"}
    link = {"topology.simple.link.rate": '{ steps = [["0s", "2Mbit/s"], ["500ms", "1Mbit/s"]] }'}
    assert drain_time(gargalo.run(steps, set=link)) is None, "it varies"


def test_a_row_of_a_sweep_has_the_bounds_of_its_network(store):
    frame = sweeps.load(store).frame()
    assert frame[DRAIN].to_list() == [pytest.approx(21 * 1500 * 8 / 2e6)] * frame.height
    assert frame[CEILING].max() == 2e6
    assert not {DRAIN, CEILING} & set(sweeps.load(store).metrics)


def test_the_command_knows_the_kinds():
    assert get_args(plot_sweep.Kind) == get_args(Kind)
