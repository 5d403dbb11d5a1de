"""What Multipath TCP leaves behind: tables, metrics, pictures, reports; the examples and their page."""

from __future__ import annotations

import io
import json
import re
import runpy
import shlex
from typing import TYPE_CHECKING

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from gargalo import metrics
from gargalo.exploring import page, view
from gargalo.pictures.metrics import picture
from gargalo.summary import show
from rich.console import Console
from test_multipath import PAIR, SCHEDULER

if TYPE_CHECKING:
    from pathlib import Path

HAND_OVER = ROOT / "examples" / "mptcp.toml"
FIVE = ROOT / "examples" / "mptcp-five-paths.toml"


@pytest.fixture(scope="module")
def hand_over(tmp_path_factory: pytest.TempPathFactory) -> gargalo.Run:
    return gargalo.run(HAND_OVER, output=tmp_path_factory.mktemp("runs") / "mptcp")


@pytest.fixture(scope="module")
def five() -> gargalo.Run:
    return gargalo.run(FIVE)


def test_subflows_and_their_samples(hand_over):
    rows = metrics.with_path(hand_over.subflows)
    assert rows["path"].to_list() == ["wifi / cable", "lte / backhaul", "wifi / cable"]
    wifi, lte, again = rows.iter_rows(named=True)
    assert wifi["closed_s"] == 10.0
    assert lte["closed_s"] is None
    assert again["opened_s"] == pytest.approx(20.02, abs=0.05)
    assert hand_over.subflow_samples["time_s"].is_sorted()
    ends = hand_over.subflow_samples.group_by("subflow").agg(pl.col("delivered_bytes").last())
    known = dict(ends.iter_rows())
    for s in rows.iter_rows(named=True):
        assert known[s["subflow"]] <= s["delivered_bytes"]
    loaded = gargalo.load(hand_over.directory)
    assert loaded.subflows.equals(hand_over.subflows)
    assert loaded.subflow_samples.equals(hand_over.subflow_samples)


def test_what_each_path_carries(hand_over):
    shares = metrics.path_shares(hand_over.subflows)
    assert shares["path"].to_list() == ["wifi / cable", "lte / backhaul"]
    assert shares["share"].sum() == pytest.approx(1)
    # The sender knows of less: acknowledgements are on their way.
    assert shares["delivered_bytes"].sum() == pytest.approx(
        hand_over.flows["delivered_bytes"][0], rel=0.01
    )
    bins = metrics.path_bins(hand_over.subflow_samples, hand_over.subflows, 1.0)
    rate = {
        (path, t): bps for _, path, t, bps in bins.select("flow", "path", "time_s", "throughput_bps").iter_rows()
    }  # fmt: skip
    for t in (5.0, 25.0):
        assert rate["wifi / cable", t] > 18e6
    assert all(rate["wifi / cable", t] == 0 for t in np.arange(10.0, 20.0))
    assert all(rate["lte / backhaul", t] > 10e6 for t in np.arange(5.0, 29.0))
    total = bins["throughput_bps"].sum() / 8
    assert total == pytest.approx(shares["delivered_bytes"].sum(), rel=0.01)


def test_metrics_by_hand():
    subflows = pl.DataFrame(
        {
            "flow": [0, 0, 0, 1],
            "link": ["a", "a", "b", "b"],
            "peer_link": ["a", "c", "b", "b"],
            "gateway": [None, None, "r", None],
            "delivered_bytes": [600, 100, 300, 0],
        }
    )
    shares = metrics.path_shares(subflows)
    assert shares["path"].to_list() == ["a", "a / c", "b by r", "b"]
    assert shares["share"].to_list() == [0.6, 0.1, 0.3, None]
    assert metrics.aggregation_benefit(260, [10, 25, 50, 75, 100]) == 1
    assert metrics.aggregation_benefit(180, [10, 25, 50, 75, 100]) == 0.5
    assert metrics.aggregation_benefit(100, [10, 100]) == 0
    assert metrics.aggregation_benefit(50, [10, 100]) == -0.5
    assert metrics.aggregation_benefit(0, [10, 100]) == -1
    assert metrics.aggregation_benefit(50, []) is None
    assert metrics.aggregation_benefit(50, [50]) is None
    assert metrics.duplicate_share(25, 75) == 0.25
    assert metrics.duplicate_share(0, 0) is None
    samples = pl.DataFrame(
        {"flow": [0] * 4 + [1], "time_s": [1.0, 2, 3, 4, 1], "out_of_order_bytes": [0, 10, 20, 30, None]}
    )  # fmt: skip
    found = metrics.out_of_order_percentiles(samples, 0, percentiles=(50, 100), start_s=1.0)
    assert found == {"out_of_order_p50_bytes": 20.0, "out_of_order_p100_bytes": 30.0}
    assert metrics.out_of_order_percentiles(samples, 1, percentiles=(50,)) == {
        "out_of_order_p50_bytes": None
    }
    empty = metrics.path_bins(
        pl.DataFrame(schema={"flow": pl.UInt64, "subflow": pl.UInt64, "time_s": pl.Float64,
            "delivered_bytes": pl.UInt64}),
        pl.DataFrame(schema={"flow": pl.UInt64, "subflow": pl.UInt64, "link": pl.String,
            "peer_link": pl.String, "gateway": pl.String, "opened_s": pl.Float64, "closed_s": pl.Float64,
                "delivered_bytes": pl.UInt64}),
    )  # fmt: skip
    assert empty.columns == ["flow", "path", "time_s", "throughput_bps"]


def test_five_paths_add_up(five):
    rates = [10e6, 25e6, 50e6, 75e6, 100e6]
    benefit = metrics.aggregation_benefit(five.flows["goodput_bps"][0], rates)
    assert 0.8 < benefit < 1
    shares = dict(metrics.path_shares(five.subflows).select("path", "share").iter_rows())
    for i, rate in enumerate(rates):
        assert shares[f"path{i}"] == pytest.approx(rate / 260e6, rel=0.1)


def test_quic_over_the_same_paths():
    run = gargalo.run(
        FIVE,
        set={
            "flows.0.transport": {"quic": {"multipath": True}},
            "duration": "6s",
            "record.interval": "100ms",
        },
    )
    flow = run.flows.row(0, named=True)
    assert flow["failure"] is None
    assert flow["goodput_bps"] > 0.8 * 260e6
    assert flow["subflows"] == 5
    assert flow["reinjected_packets"] is None, "that is of MPTCP"
    rows = run.subflows
    assert sorted(rows["link"]) == [f"path{i}" for i in range(5)]
    assert rows["delivered_bytes"].sum() == pytest.approx(flow["delivered_bytes"], rel=0.1)
    assert rows["lost_packets"].sum() == flow["lost_packets"]
    # Windows add up to the flow's, at every instant.
    sums = run.subflow_samples.group_by("time_s").agg(pl.col("congestion_window_bytes").sum())
    both = run.flow_samples.join(sums, on="time_s")
    assert both.height > 50
    assert (both["congestion_window_bytes"] == both["congestion_window_bytes_right"]).all()
    assert "path4" in printed(run)
    titles = {p["title"] for p in view(run) if p["part"] == "panel"}
    assert {"Delivered by path", "Congestion window of each subflow"} <= titles
    bins = metrics.path_bins(run.subflow_samples, run.subflows, 1.0)
    assert bins.filter(pl.col("time_s") == 4)["throughput_bps"].sum() > 0.8 * 260e6


def printed(run: gargalo.Run) -> str:
    out = io.StringIO()
    show(run, Console(file=out, width=160, color_system=None))
    return out.getvalue()


def test_what_the_command_prints(hand_over):
    text = printed(hand_over)
    table = text[text.index("Subflows") : text.index("Links")]
    rows = [line.split() for line in table.splitlines() if "video" in line]
    assert [r[1:4] for r in rows] == [
        ["wifi", "/", "cable"],
        ["lte", "/", "backhaul"],
        ["wifi", "/", "cable"],
    ]
    assert "to 10 s" in table
    assert "19 Mbit/s" in table
    plain = gargalo.run(PAIR.replace("mptcp", "tcp").replace('congestion = "lia", scheduler = '
        '"lowest-latency", path_manager = "single-mesh",', ""))  # fmt: skip
    assert plain.subflows.is_empty()
    assert "Subflows" not in printed(plain)
    backup = gargalo.run(
        HAND_OVER, set={"flows.0.transport.mptcp.backup": ["lte"], "duration": "1s"}
    )
    assert "lte / backhaul (backup)" in printed(backup)


def test_json(inside, tmp_path):
    (tmp_path / "s.toml").write_text(PAIR)
    done = json.loads(inside("run", "s.toml", "--json").stdout)
    assert [s["link"] for s in done["subflows"]] == ["path0", "path1"]
    flow = done["flows"][0]
    assert flow["out_of_order_max_bytes"] > 0


def test_figures_in_sweeps(tmp_path):
    sweep = gargalo.sweep(
        PAIR, {SCHEDULER: ["lowest-latency", "redundant"]}, store=tmp_path / "s", workers=1,
        keep=["subflows", "subflow_samples"], repeat=2,
    )  # fmt: skip
    frame = sweep.frame()
    assert frame["subflows"].to_list() == [2] * 4
    copied = frame.group_by("scheduler").agg(pl.col("duplicate_bytes").mean())
    duplicates = dict(copied.iter_rows())
    assert duplicates["redundant"] > 1e6 > duplicates["lowest-latency"]
    assert frame["path_share_max"].is_between(0.3, 0.9).all()
    assert sweep.table("subflows").collect().height == 8


def test_compare(inside, tmp_path):
    sweep = inside("sweep", write_sweep(tmp_path), "--json", "--workers", 2)
    assert sweep.returncode == 0, sweep.stderr
    done = inside(
        "compare", "sweeps/s", "--by", "scheduler", "lowest-latency", "redundant",
        "--metric", "duplicate_bytes", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["mean_b"] > 1e6 > row["mean_a"]
    assert row["verdict"] == "lowest-latency better"


def write_sweep(directory: Path) -> str:
    (directory / "pair.toml").write_text(PAIR)
    (directory / "s.toml").write_text(
        f'name = "s"\nscenario = "pair.toml"\nrepeat = 3\n[axes]\n"{SCHEDULER}" = ["lowest-latency", "redundant"]\n'
    )
    return "s.toml"


def test_plots(hand_over, tmp_path):
    areas = hand_over.plot.paths()
    labels = [t.get_text() for t in areas.axes[0].get_legend().get_texts()]
    assert labels == ["wifi / cable", "lte / backhaul"]
    assert 28 < areas.axes[0].get_ylim()[1] < 45
    windows = hand_over.plot.subflow_window().axes[0]
    assert len(windows.lines) == 3
    waiting = hand_over.plot.out_of_order().axes[0]
    assert max(waiting.lines[0].get_ydata()) > 10
    names = {p.stem for p in hand_over.plot.save(tmp_path, formats=("svg",))}
    assert {"paths", "out_of_order", "subflow_window", "goodput"} <= names
    plain = gargalo.run(
        ROOT / "examples" / "quic.toml", set={"record.captures": [], "record.qlog": False}
    )
    assert "paths" not in {p.stem for p in plain.plot.save(tmp_path, formats=("svg",))}
    assert plain.plot.paths().axes[0].texts, "an empty picture says so"


def test_report(hand_over):
    areas = picture(hand_over, "paths")
    assert [line.name for line in areas.lines] == ["wifi / cable", "lte / backhaul"]
    assert areas.stacked
    assert max(sum(line.y[i] for line in areas.lines) for i in range(4, 18)) < 33
    windows = picture(hand_over, "subflow-cwnd").lines
    assert [w.name for w in windows] == ["wifi / cable (0)", "lte / backhaul", "wifi / cable (2)"]
    assert windows[0].colour == windows[2].colour != windows[1].colour
    assert windows[0].dash != windows[2].dash
    made = page(hand_over)
    panels = json.loads(made.split('id="data">')[1].split("</script>")[0])
    lines = {p["title"]: len(p["lines"]) for p in panels if p["part"] == "panel"}
    assert lines["Out-of-order buffer"] == 1
    assert lines["Smoothed round-trip time of each subflow"] == 3
    table = made.split("<h2>Subflows</h2>")[1].split("</table>")[0]
    assert re.findall(r"<tr><td>video</td><td>(.*?)</td>", table) == [
        "wifi / cable",
        "lte / backhaul",
        "wifi / cable",
    ]
    assert page(hand_over) == made


# --- examples and their page


def test_the_example_scheduler():
    names = runpy.run_path(str(ROOT / "examples" / "mptcp_scheduler.py"))
    try:
        patient = gargalo.run(HAND_OVER, set={SCHEDULER: {"patient": {"ratio": 1.5}}})
        usual = gargalo.run(HAND_OVER, set={SCHEDULER: "lowest-latency"})
        waits = [
            metrics.out_of_order_percentiles(r.flow_samples, 0)["out_of_order_p95_bytes"]
            for r in (patient, usual)
        ]
        assert waits[0] < waits[1]
        assert patient.flows["delivered_bytes"][0] > 40e6
        most = gargalo.run(
            FIVE, set={"flows.0.transport.mptcp.path_manager": {"at-most": {"subflows": 3}}, "duration": "1s"}
        )  # fmt: skip
        assert most.subflows.height == 3
    finally:
        gargalo.plugins.registry._registered["scheduler"].pop("patient")
        gargalo.plugins.registry._registered["path_manager"].pop("at-most")
    path = gargalo.PathView
    choose = names["Patient"](gargalo.ConnectionInit()).select
    near, far = path(0, srtt=0.01, can_send=False), path(1, srtt=0.021)
    assert choose(gargalo.Context([near, far])) is None
    assert choose(gargalo.Context([near, path(1, srtt=0.02)])).index == 1


PAGE = (ROOT / "docs" / "mptcp.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


COMMANDS = [
    line
    for block in blocks("sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("gargalo")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page(gargalo, tmp_path, command):
    words = shlex.split(command, comments=True)[1:]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if words[0] == "sweep":
        words += ["--dry-run"]
    elif words[0] == "run" and "--json" not in words:
        words += ["--set", "duration=2s", "--no-plots"]
    elif words[0] == "report":
        gargalo(
            "run", "examples/mptcp.toml", "--set", "duration=1s", "--no-plots", "--output", words[1]
        )
    done = gargalo(*words)
    assert done.returncode == 0, done.stderr
    assert "warning: flow" not in done.stderr, "a connection that failed is told of, and no more"


def test_scenarios_of_the_page_are_valid():
    texts = blocks("toml")
    assert len(texts) == 3
    for text in texts:
        whole = text if "[topology" in text else PAIR.split("[[flows]]")[0] + text
        assert gargalo.running.resolve(whole)["flows"]


def test_code_of_the_page_runs():
    done: dict[str, object] = {}
    try:
        for block in blocks("python"):
            exec(block.replace('"examples/', f'"{ROOT}/examples/'), done)
        assert done["run"].subflows.height >= 3
        assert gargalo.run(PAIR, set={SCHEDULER: "near"}).flows["delivered_bytes"][0] > 2e6
        once = gargalo.run(PAIR, set={"flows.0.transport.mptcp.path_manager": "star"})
        assert once.subflows["peer_link"].to_list() == ["path0", "path0"]
    finally:
        gargalo.plugins.registry._registered["scheduler"].pop("near", None)
        gargalo.plugins.registry._registered["path_manager"].pop("star", None)


def test_the_page_names_everything(inside):
    for what in ("schedulers", "path-managers"):
        for entry in json.loads(inside("list", what, "--json").stdout):
            assert f"`{entry['name']}`" in PAGE, entry["name"]
