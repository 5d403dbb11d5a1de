"""What a notebook shows: tables and figures by the display protocol, and names to complete."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import gargalo
import polars as pl
import pytest
from conftest import ROOT, TINY
from gargalo import notebook, sweeps
from gargalo.plots import Picture, Plots
from gargalo.reporting.model import ClaimRow
from gargalo.studies import Outcome
from scorecards import scorecard

WRONG = "<script>alert(1)</script> & [bold]"
VOID = {"br", "polyline"}


class Parsed(HTMLParser):
    """What a text has as HTML: its elements, their attributes, its text; open elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def parsed(value: object) -> Parsed:
    """Return what a value shows, which has neither scripts nor colours of its own."""
    found = Parsed(value._repr_html_())
    assert "script" not in found.tags
    styles = " ".join(value for name, value in found.attributes if name == "style")
    assert "color" not in styles
    assert "background" not in styles
    assert {v for n, v in found.attributes if n == "stroke"} <= {"currentColor"}
    return found


@pytest.fixture(scope="module")
def run() -> gargalo.Run:
    return gargalo.run(TINY, set={"flows.0.label": WRONG.replace('"', "")})


def test_a_run_shows_its_flows_and_links(run):
    shown = parsed(run)
    assert shown.text.startswith("tiny 3 s, seed 3")
    assert WRONG in shown.text
    assert "goodput over time" in shown.text
    assert shown.tags.count("svg") == 2
    assert shown.tags.count("table") == 2
    assert "link up" in shown.text


def test_the_line_of_a_flow_is_its_goodput(run):
    delivered = dict(run.flows.select("id", "delivered_bytes").iter_rows())
    for flow, total in delivered.items():
        parts = notebook.rates(run, flow)
        assert len(parts) == notebook.BINS
        assert all(p >= 0 for p in parts)
        assert sum(parts) * run.setup.duration_s / notebook.BINS == pytest.approx(total, rel=0.05)
    points = notebook.line([0.0, 1.0, 2.0]).partition('points="')[2].partition('"')[0].split()
    heights = [float(p.partition(",")[2]) for p in points]
    assert heights == [21.0, 11.0, 1.0]
    assert notebook.line([0.0, 0.0]) == notebook.line([]) == ""


def test_a_flow_that_ends_within_a_part_of_the_line_does_not_seem_to_slow_down():
    steady = """
duration = "3s"
topology.simple.link = { rate = "5Mbit/s", delay = "10ms", queue = { droptail = "1BDP" } }
[[flows]]
from = "client"
to = "server"
start = "330ms"
stop = "2550ms"
transport.tcp = {}
"""
    parts = notebook.rates(gargalo.run(steady), 0)
    width_s = 3 / notebook.BINS
    first, last = int(0.33 / width_s), int(2.55 / width_s)
    assert {p for i, p in enumerate(parts) if not first <= i <= last} == {0.0}
    assert parts[last] == pytest.approx(parts[last - 1], rel=0.05)
    assert parts[last] * 8 == pytest.approx(5e6, rel=0.05)


def test_what_a_reader_should_know_of_a_run_is_shown():
    run = gargalo.run(TINY, set={"duration": "2s", "record.flows": False})
    noted = notebook.page("a", "b", notes=[WRONG])
    assert WRONG in Parsed(noted).text
    assert "goodput over time" not in parsed(run).text  # Nothing was sampled.


def test_many_rows_are_counted():
    from gargalo.terminal.fitting import Column

    rows = [[str(i)] for i in range(notebook.MOST_ROWS + 5)]
    text = Parsed(notebook.table([Column("n")], rows, "flows"))
    assert text.tags.count("tr") == notebook.MOST_ROWS + 1
    assert text.text.endswith("… and 5 more flows")


def test_a_scenario_shows_its_text():
    scenario = gargalo.Scenario("race <b>", duration="5s").simple(rate="10Mbit/s", delay="20ms")
    scenario = scenario.flow(label=WRONG, congestion="cubic")
    shown = parsed(scenario)
    assert "race <b> 1 flow, 5s" in shown.text
    assert scenario.to_toml().strip() in shown.text


def test_a_sweep_shows_its_cells(tmp_path, tiny):
    axes = {"topology.simple.link.rate": ["1Mbit/s", "2Mbit/s"]}
    done = sweeps.sweep(tiny, axes, store=tmp_path / "store", set={"duration": "1s"}, workers=1)
    shown = parsed(done)
    assert "2 of 2 runs" in shown.text
    assert shown.tags.count("tr") == 3
    assert "goodput_bps" in shown.text
    assert "\n" not in repr(done)


def test_a_study_shows_its_verdicts():
    claims = [
        ClaimRow("a", WRONG, "reproduced", "it is"),
        ClaimRow("b", "Not.", "contradicted", ""),
    ]
    sweep = SimpleNamespace(plan=pl.DataFrame({"run": ["1", "2"]}), failures=["x"])
    named = SimpleNamespace(name="study"), SimpleNamespace(name="quick")
    shown = parsed(Outcome(*named, sweep, claims, Path("page.html")))
    assert "study profile quick, 2 runs, page.html" in shown.text
    assert "1 runs failed" in shown.text
    assert WRONG in shown.text
    assert "contradicted" in shown.text


def test_a_scorecard_shows_verdicts_figures_and_faults():
    card = scorecard()
    shown = parsed(card)
    assert shown.text.startswith("vegas profile quick, 3 runs of each cell")
    for result in card.results:
        assert result.criterion.id in shown.text
        assert all(outcome.figure.name in shown.text for outcome in result.outcomes)
        assert all(fault in shown.text for fault in result.faults)
    assert all(name in shown.text for name in card.references)
    assert "more rows" not in shown.text
    broken = parsed(replace(card, broken=WRONG))
    assert WRONG in broken.text
    assert "table" not in broken.tags


def test_a_run_is_one_line_in_a_console(run):
    assert repr(run) == "<Run 'tiny': seed 3, 2 flows, 3 s>"


def test_every_figure_shows_itself_without_pyplot(run):
    drawn = [
        name
        for name, f in inspect.getmembers(Plots, inspect.isfunction)
        if not name.startswith("_") and name != "save"
    ]
    assert len(drawn) >= 7
    for name in drawn:
        figure = getattr(run.plot, name)()
        assert isinstance(figure, Picture), name
        data, size = figure._repr_png_()
        assert data.startswith(b"\x89PNG")
        width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
        assert (width, height) == (2 * size["width"], 2 * size["height"])
        assert figure._repr_html_() is None  # One picture, not two.
    assert "matplotlib.pyplot" not in loaded_by("run.plot.goodput()._repr_png_()")


def loaded_by(code: str) -> set[str]:
    """Return the modules that are loaded after some code on a short run."""
    text = f"import sys, gargalo\nrun = gargalo.run({TINY!r}, set={{'duration': '1s'}})\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_ipython_shows_one_picture(run):
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, sizes = formatters.DisplayFormatter().format(run.plot.goodput())
    assert set(shown) == {"text/plain", "image/png"}
    assert sizes["image/png"]["width"] == 800
    assert set(formatters.DisplayFormatter().format(run)[0]) == {"text/plain", "text/html"}


def shown_in_a_cell(code: str) -> str:
    """Return what IPython shows of the error of a cell."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    done = shell.run_cell(code, silent=True)
    assert done.error_in_exec is not None
    return "\n".join(shell._format_exception_for_storage(done.error_in_exec)["traceback"])


def test_a_wrong_scenario_is_one_line_in_a_cell(tmp_path, monkeypatch):
    (tmp_path / "slip.toml").write_text(TINY.replace('"500ms"', "5"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    shown = shown_in_a_cell("import gargalo; gargalo.run('slip.toml')")
    assert re.fullmatch(r"ScenarioError: slip\.toml:18:9: .* has no unit.*", shown), shown
    both = TINY.replace('"500ms"', "5").replace('"3s"', "3")
    assert "(and 1 more)" in shown_in_a_cell(f"import gargalo; gargalo.run({both!r})")


def test_the_error_of_a_class_of_ones_own_keeps_its_traceback():
    race = TINY.replace('"cubic"', '"broken"')
    shown = shown_in_a_cell(
        "import gargalo\n"
        "class Broken(gargalo.WindowBased):\n"
        "    def on_ack(self, *args): raise LookupError('no such thing')\n"
        "gargalo.register('broken', Broken)\n"
        f"gargalo.run({race!r})"
    )
    assert "LookupError" in shown
    assert "Broken.on_ack" in re.sub(r"\x1b\[[0-9;]*m", "", shown)


def test_completion_shows_public_names_only():
    names = dir(gargalo)
    assert set(names) == {*gargalo.__all__, *gargalo._MODULES}
    assert {"sweeps", "studies", "evaluation", "metrics", "reporting"} <= set(names)
    assert all(getattr(gargalo, name) is not None for name in names if not name.startswith("_"))
    with pytest.raises(AttributeError, match="no attribute 'sweps'"):
        _ = gargalo.sweps
    # Editors and type checkers read the imports that are not done.
    tree = ast.parse((ROOT / "python" / "gargalo" / "__init__.py").read_text(encoding="utf-8"))
    checked = next(n for n in tree.body if isinstance(n, ast.If))
    told = {a.asname or a.name for n in checked.body for a in n.names}
    assert told == {*gargalo._MODULES, *gargalo._OF_SWEEPS}


def test_names_are_loaded_when_they_are_used():
    assert "gargalo.studies" not in loaded_by("")
    assert "gargalo.studies" in loaded_by("gargalo.studies.STUDIES")
