"""`gargalo plot`: one metric of one or several runs in a picture."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import gargalo as package
import polars as pl
import pytest
from click.testing import CliRunner
from conftest import ROOT, TINY
from gargalo.cli.app import app
from gargalo.pictures import metrics
from gargalo.pictures.looks import DASHES, colour_of

THREE = ("cubic", "reno", "bbr")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs that differ in the second flow, and one with several paths and gauges."""
    root = tmp_path_factory.mktemp("plots")
    change = {"flows.1.transport.tcp.congestion": "cubic", "record.gauges": True}
    for name in THREE:
        change["flows.1.transport.tcp.congestion"] = name
        package.run(TINY, set=change, output=root / name)
    package.run(ROOT / "examples" / "mptcp.toml", set={"duration": "2s"}, output=root / "paths")
    return root


def plot(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["plot", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def data(*arguments: object) -> dict[str, object]:
    return json.loads(plot(*arguments, "--json"))


def test_runs_are_overlaid(made):
    three = [made / name for name in THREE]
    shown = data(*three, "--metric", "rtt")
    assert shown["title"] == "Smoothed round-trip time"
    names = [line["name"] for line in shown["lines"]]
    assert names == [f"{run}: {flow}" for run in THREE for flow in ("upload", "file")]
    # A flow has the colour of its congestion control; upload is CUBIC in all runs.
    controls = [c for run in THREE for c in ("cubic", run)]
    assert [line["colour"] for line in shown["lines"]] == [colour_of(c) for c in controls]
    assert len({(line["colour"], line["dash"]) for line in shown["lines"]}) == 6
    # The values are those of the table.
    samples = package.load(made / "bbr").flow_samples.filter(pl.col("flow") == 0).sort("time_s")
    line = next(x for x in shown["lines"] if x["name"] == "bbr: upload")
    assert line["time_s"] == samples["time_s"].to_list()
    assert line["values"] == pytest.approx((samples["srtt_s"] * 1e3).to_list())
    # One line of each run, all of one control: each has a dash.
    alone = data(*three, "--metric", "cwnd", "--flow", "upload")["lines"]
    assert {line["colour"] for line in alone} == {colour_of("cubic")}
    assert [line["dash"] for line in alone] == list(DASHES[:3])
    others = data(*three, "--metric", "cwnd", "--flow", "file")["lines"]
    assert [line["colour"] for line in others] == [colour_of(c) for c in THREE]
    assert {line["dash"] for line in others} == {"solid"}
    by_number = data(*three, "--metric", "cwnd", "--flow", 0)["lines"]
    assert by_number == alone


def test_goodput_of_several_runs_has_one_width_of_bins_and_one_capacity(made):
    shown = data(made / "cubic", made / "reno")
    assert [line["name"] for line in shown["references"]] == ["capacity of link up: 5 Mbit/s"]
    assert "in bins of 0.1 s" in shown["notes"]
    wide = data(made / "cubic", made / "reno", "--bin", "500ms")
    assert "in bins of 0.5 s" in wide["notes"]
    assert wide["lines"][0]["time_s"] == pytest.approx([0.25, 0.75, 1.25, 1.75, 2.25, 2.75])


@pytest.mark.parametrize("metric", [*metrics.RATES, *metrics.METRICS, *metrics.COUNTS])
def test_every_metric_can_be_drawn(made, metric):
    if metric.startswith("subflow") or metric == "out-of-order":
        assert data(made / "paths", "--metric", metric)["lines"]
        return
    flow = "file" if metric == "pacing" else "upload"  # BBR paces.
    seen = data(made / "bbr", "--metric", metric, "--link", "link up", "--flow", flow)
    assert len(seen["lines"]) == 1


def test_losses_are_counted_from_the_events(made):
    run = package.load(made / "cubic")
    for line, flow in zip(data(made / "cubic", "--metric", "losses")["lines"], (0, 1), strict=True):
        assert line["values"][-1] == run.flows["lost_packets"][flow]
        assert line["values"] == sorted(line["values"])


def test_gauges_and_columns_have_their_own_names(made):
    gauge = data(made / "cubic", "--metric", "w_max_segments")
    assert (gauge["title"], gauge["unit"]) == ("W max", "segments")
    assert data(made / "cubic", "--metric", "gauge:w_max_segments") == gauge
    assert data(made / "cubic", "--metric", "srtt_s") == data(made / "cubic", "--metric", "rtt")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_files_for_papers(made, tmp_path, ending):
    target = tmp_path / f"rtt.{ending}"
    words = [made / "cubic", made / "bbr", "--metric", "rtt", "--width", "one-column", "--output"]
    assert plot(*words, target).strip() == str(target)
    first = target.read_bytes()
    plot(*words, target, "--overwrite")
    assert target.read_bytes() == first, "equal runs give equal pictures"
    if ending == "pdf":
        (box,) = set(re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+)", first))
        assert float(box) == pytest.approx(72 * 3.5)
        assert b"/FontFile2" in first, "the fonts are embedded, as TrueType"
        assert b"/Type3" not in first
    if ending == "png":
        assert int.from_bytes(first[16:20], "big") == 1050, "3.5 inches of 300 dots"


def test_plain_pictures_have_their_words_printed(made, tmp_path):
    out = plot(made / "cubic", "--plain", "--output", tmp_path / "a.svg")
    assert out.startswith("Goodput; in bins of 0.1 s;")


def test_the_format_is_an_option_or_the_ending(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert plot(made / "cubic", "--metric", "queue").strip() == "queue.png"
    assert plot(made / "cubic", "--metric", "queue", "--format", "pdf").strip() == "queue.pdf"
    assert (tmp_path / "queue.pdf").read_bytes().startswith(b"%PDF")


def test_a_part_of_a_run(made):
    (line, *_) = data(made / "cubic", "--metric", "rtt", "--from", "1s", "--until", "1500ms")[
        "lines"
    ]
    assert line["time_s"] == pytest.approx([1.0, 1.1, 1.2, 1.3, 1.4, 1.5])
    # Between two steps holds what the first began, also where no event is in the part.
    whole = data(made / "cubic", "--metric", "losses", "--flow", "upload")["lines"][0]
    gaps = [b - a for a, b in zip(whole["time_s"], whole["time_s"][1:], strict=False)]
    k = gaps.index(max(gaps))
    start, end = (whole["time_s"][k] + max(gaps) * f for f in (0.25, 0.75))
    part = ["--from", f"{start:.6f}s", "--until", f"{end:.6f}s"]
    (quiet,) = data(made / "cubic", "--metric", "losses", "--flow", "upload", *part)["lines"]
    assert quiet["values"] == [whole["values"][k]] * 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--metric", "speed"], 'no metric "speed" in these runs; there are goodput, rtt, cwnd'),
        (["--flow", "nobody"], "there is no such flow; flows: upload, file"),
        (
            ["--metric", "queue", "--link", "moon"],
            "there is no such link; links: link up, link down",
        ),
        (["--metric", "out-of-order"], "nothing to draw of out-of-order"),
        (["--width", "8"], "write a number with its unit (in, mm, cm)"),
        (["--width", "1mm"], "between 1.5in and 40in"),
        (["--from", "2s", "--until", "1s"], "must be later than"),
        (["--from", "20s"], "nothing was sampled in this part"),
        (["--output", "a.gif"], "one of png, svg, pdf"),
        (["--output", "no/such/a.png"], "does not exist"),
        (["--label", "a", "--label", "b"], "2 times --label for 1 runs"),
    ],
)
def test_mistakes_are_told_with_the_remedy(made, words, told):
    assert told in plot(made / "cubic", *words, code=2)


def test_what_is_not_a_run(made, tmp_path):
    (tmp_path / "store.json").write_text("{}")
    assert "--repair" in plot(tmp_path, code=2), "a store is drawn, and this one is damaged"
    assert "does not exist" in plot(tmp_path / "none", code=2)
    assert "called" in plot(made / "cubic", made / "cubic", code=2)
    run = package.run(TINY, set={"record.flows": False, "duration": "1s"}, output=tmp_path / "bare")
    assert "--set record.flows=true" in plot(run.directory, "--metric", "rtt", code=2)


def test_a_file_that_exists_is_kept(made, tmp_path):
    target = tmp_path / "a.png"
    target.write_bytes(b"mine")
    assert "add --overwrite" in plot(made / "cubic", "--output", target, code=2)
    assert target.read_bytes() == b"mine"


PAGE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^gargalo plot .*$", PAGE, re.MULTILINE)


def test_the_page_has_commands():
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_page(made, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line, comments=True)[2:]
    for name in [w for w in words if w.startswith("runs/")]:
        shutil.copytree(made / name.removeprefix("runs/"), tmp_path / name)
    assert plot(*words)
