"""Reports: what a page says, files, the command. What a browser makes of it: test_report_page.py."""

from __future__ import annotations

import errno
import html
import itertools
import json
import os
import random
import re
import shlex
import subprocess

import gargalo
import plotly.graph_objects as go
import polars as pl
import pytest
from click.testing import CliRunner
from conftest import TINY, command, environment
from gargalo import reporting
from gargalo.cli.app import app
from gargalo.exploring import page, view
from gargalo.quantities import measured, number, quantity, si, spread
from gargalo.reporting.palette import Palette
from gargalo.reporting.sweeps import report_of_runs
from reports import small_sweep, study, unpacked, without_library

# --- words and numbers


def test_quantities():
    assert quantity("goodput_bps", [3e6, 12e6]).title == "goodput (Mbit/s)"
    assert quantity("queue_delay_p95_s", [0.02]).title == "queue delay p95 (ms)"
    assert quantity("jain_index", [0.5]).title == "Jain's index"
    assert quantity("runs").title == "runs"
    assert quantity("x", [2e9], "bit/s").title == "x (Gbit/s)"
    assert [number(v) for v in (0, 3, 12345678, 0.12345, 123456.7, 1.5e-6, None)] == [
        "0", "3", "12\u202f345\u202f678", "0.1235", "123\u202f457", "1.500e-06", "\u2013",
    ]  # fmt: skip
    assert measured(0.0213, "s") == "21.3 ms"
    assert measured(0.83, "%") == "83 %"
    assert measured(None, "s") == "unknown"
    assert spread(10, 9.5, 10.5) == "± 0.5"
    assert spread(10, 9.9, 12) == "9.9 to 12"
    assert spread(10, None, None) == "interval unknown"
    assert si("155Mbit/s") == (155e6, "bit/s")
    assert si("0.5BDP") == (0.5, "BDP")
    assert si("10 ms") == (0.01, "s")
    assert si(7) == (7, "")
    assert si("cubic") is None
    assert si("2 bananas") is None
    assert si(True) is None


def test_forty_algorithms_look_different():
    palette = Palette([f"a{i}" for i in range(40)])
    looks = {(palette[n].colour, palette[n].dash, palette[n].marker) for n in palette.names}
    assert len(looks) == 40


def test_styles_follow_the_algorithm():
    palette = Palette(["cubic", "reno"])
    line = {"type": "scatter", "name": "flow 3", "legendgroup": "reno", "line": {"dash": "dot"}}
    palette.apply(line)
    assert line["line"] == {"dash": "dot", "color": palette["reno"].colour}
    bar = {"type": "bar", "name": "cubic"}
    palette.apply(bar)
    assert bar["marker"]["color"] == palette["cubic"].colour
    other = {"type": "scatter", "name": "published"}
    palette.apply(other)
    assert other == {"type": "scatter", "name": "published"}


# --- the page


def table_of(page: str, title: str) -> list[list[str]]:
    """The cells of a table as text."""
    part = page[page.index(f">{title}") :]
    rows = re.findall(r"<tr.*?</tr>", part[: part.index("</table>")], re.DOTALL)
    # Cells of a body have no end tag.
    cells = [re.split(r"(?=<t[dh]\b)", row)[1:] for row in rows]
    return [[html.unescape(re.sub(r"<.*?>", "", c)).strip() for c in row] for row in cells]


def scenario_of(page: str) -> tuple[str, str]:
    found = re.search(r'class="scenario" data-file="(.*?)">(.*?)</code>', page, re.DOTALL)
    assert found
    return html.unescape(found[1]), html.unescape(found[2])


def commands_of(page: str) -> list[str]:
    found = re.search(r'aria-label="Commands"><code>(.*?)</code>', page, re.DOTALL)
    assert found
    return [c for c in html.unescape(found[1]).splitlines() if not c.startswith("#")]


def test_one_file_with_the_library_once(tmp_path):
    path = reporting.write(study(), tmp_path / "r.html")
    page = path.read_text(encoding="utf-8")
    assert unpacked(page, "plotly").count("* plotly.js v") == 1
    own = without_library(page)
    assert len(page) - len(own) > 1_000_000, "the library was cut out"
    assert len(own) < 200_000
    assert not re.search(r"<(link|iframe|img|object)\b|\bsrc=|@import|url\(", own)
    assert "default-src 'none'" in own
    assert list(tmp_path.iterdir()) == [path], "no temporary files"
    assert not path.stat().st_mode & 0o111


def test_equal_reports_give_equal_bytes(tmp_path):
    one = reporting.write(study(), tmp_path / "1.html").read_bytes()
    assert reporting.write(study(), tmp_path / "2.html").read_bytes() == one


def test_verdicts_come_first_with_letter_sign_and_interval():
    page = without_library(reporting.html(study()))
    order = [page.index(f'id="{s}"') for s in ("verdicts", "figures", "tables", "again", "facts")]
    assert order == sorted(order)
    rows = table_of(page, "Verdicts")
    assert [r[1] for r in rows[1:]] == ["✓ R reproduced", "✗ C contradicted", "? I inconclusive"]
    assert "83 % [81 % to 85 %, 4 runs]" in rows[1][2]
    assert "claimed: more than 50 %" in rows[1][2]
    assert "interval unknown, 1 run" in rows[3][2]
    with pytest.raises(ValueError, match="the verdict is one of"):
        reporting.ClaimRow("1", "text", "true")


def test_text_is_no_markup():
    evil = "</script><script>window.evil = 1</script>"
    figure = go.Figure(go.Scatter(x=[1], y=[2], name=evil, legendgroup=evil))
    report = reporting.Report(
        title=evil,
        claims=[reporting.ClaimRow("1", evil, "reproduced", evil, evil)],
        figures=[reporting.FigureBlock(evil, evil, figure, evil)],
        tables=[reporting.TableBlock(evil, evil, pl.DataFrame({"algorithm": [evil, "b"]}))],
        scenarios={evil: evil},
        commands=[evil],
        facts={evil: evil},
    )
    page = without_library(reporting.html(report))
    assert "<script>window.evil" not in page
    assert page.count("</script>") == 2, "the data and the page's own"


def test_intervals_and_ratings_in_tables():
    frame = pl.DataFrame(
        {
            "congestion": ["reno", "cubic"],
            "goodput_bps": [5e6, 7.25e6],
            "goodput_bps_low": [4e6, None],
            "goodput_bps_high": [6e6, None],
            "fairness": ["very good", "bad"],
            "note": [None, "a"],
        }
    )
    page = reporting.html(reporting.Report("t", tables=[reporting.TableBlock("Rates", "c", frame)]))
    assert table_of(page, "Rates") == [
        ["congestion", "goodput (Mbit/s)", "fairness", "note"],
        ["reno", "5 ± 1", "++ very good", "\u2013"],
        ["cubic", "7.25 interval unknown", "\u2212 bad", "a"],
    ]
    assert "<td data-v=7250000>7.25" in page, "sorted and exported in SI"
    assert 'id="plotly"' not in page, "no figure, no library"
    with pytest.raises(ValueError, match='no column "cc"'):
        reporting.html(
            reporting.Report("t", tables=[reporting.TableBlock("R", "c", frame, algorithm="cc")])
        )


def of_size(rows: int, points: int) -> reporting.Report:
    """A report of one table and one figure, with numbers of all digits."""
    draw = random.Random(5)
    columns = {f"metric_{i}": [draw.uniform(0, 1) * 10**i for _ in range(rows)] for i in range(8)}
    figure = go.Figure(
        go.Scatter(x=list(range(points)), y=[draw.uniform(0, 1e8) for _ in range(points)])
    )
    return reporting.Report(
        "t",
        figures=[reporting.FigureBlock("f", "c", figure)],
        tables=[reporting.TableBlock("t", "c", pl.DataFrame(columns))],
    )


def test_a_page_grows_by_few_bytes_for_a_cell_and_a_point():
    few, rows, points = (len(reporting.html(of_size(*n))) for n in ((10, 10), (1010, 10), (10, 5010)))  # fmt: skip
    # Of a cell: its text, the value with six digits, and the tag.
    assert (rows - few) / 8000 < 32
    assert (points - few) / 5000 < 10
    assert few < 2_100_000, "the library and the rest"


def test_numbers_of_a_page_are_those_of_its_tables():
    frame = pl.DataFrame(
        {
            "time_s": [0.123456789, 2.0, None],
            "packets": [1234, 5, 6],
            "bytes": [1234567.5, 1e7, 0.0],
            "late": [True, False, None],
        }
    )
    page = reporting.html(reporting.Report("t", tables=[reporting.TableBlock("T", "c", frame)]))
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.findall(r"<td.*?(?=<td|</tr>)", body) == [
        "<td data-v=0.123457>0.1235",
        "<td>1\u202f234",
        "<td>1\u202f234\u202f568",
        '<td class=text data-v="True">yes',
        "<td>2",
        "<td>5",
        "<td>10\u202f000\u202f000",
        '<td class=text data-v="False">no',
        "<td>\u2013",
        "<td>6",
        "<td>0",
        "<td class=text>\u2013",
    ]


def test_figures_are_rounded_to_six_digits():
    figure = go.Figure(go.Scatter(x=[1.0, 1e-9 / 3], y=[123456.789, 98765432.1], name="a"))
    page = reporting.html(reporting.Report("t", figures=[reporting.FigureBlock("f", "c", figure)]))
    (drawn,) = json.loads(unpacked(page, "figure-data"))
    assert drawn["data"][0]["x"] == [1, 3.33333e-10]
    assert drawn["data"][0]["y"] == [123457, 98765400]


# --- runs, sweeps, studies


@pytest.fixture
def report(tmp_path, monkeypatch):
    """The command, in this process: starting one costs more than the page."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object):
        return CliRunner().invoke(app, ["report", *map(str, args)])

    return run


def test_a_run_is_run_again_from_its_report(tmp_path, gargalo):
    changes = {"topology.simple.link.rate": "4Mbit/s"}
    first = gargalo_run(tmp_path / "out", changes)
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    if "source" not in facts:
        # As the engine should keep it.
        facts["source"] = {"text": TINY, "path": "mine.toml", "set": list(changes.items())}
        (tmp_path / "out" / "run.json").write_text(json.dumps(facts))
    made = gargalo("report", "out", "--date", "2026-02-03")
    assert (made.returncode, made.stdout) == (0, "out/report.html\n"), made.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "2026-02-03" in page
    flows = table_of(page, "Flows")
    assert [r[0] for r in flows[1:]] == ["upload", "file"]
    scenario = re.search(r'<pre id="scenario">(.*?)</pre>', page, re.DOTALL)
    line = re.search(r"<h2>Run it again</h2>\s*<pre>(.*?)</pre>", page)
    assert scenario
    assert line
    (tmp_path / shlex.split(line[1])[2]).write_text(html.unescape(scenario[1]), encoding="utf-8")
    again = run_line(tmp_path, html.unescape(line[1]))
    assert [f["goodput_bps"] for f in again["flows"]] == first.flows["goodput_bps"].to_list()


def test_a_run_of_many_flows():
    many = (
        TINY[: TINY.index("[[flows]]")]
        + """
[[flows]]
from = "client"
to = "server"
count = 30
transport.tcp = { congestion = "cubic" }
workload.bulk = { bytes = "10kB" }
"""
    )
    run = gargalo.run(many)
    (window,) = (p for p in view(run, ["cwnd"]) if p["part"] == "panel")
    lines = window["lines"]
    assert len(lines) == 24
    assert len({line["name"] for line in lines}) == 24, "each has its own name"
    assert len({(line["colour"], line["dash"]) for line in lines}) == 24, "and its own look"
    assert "the first 24 of 30 flows" in window["notes"]
    made = page(run)
    assert len(table_of(made, "Flows")) == 31
    assert table_of(made, "Completion times by size")[1][1:3] == ["<=15kB", "30"]


def test_a_run_without_its_source_has_a_note(tmp_path):
    run = gargalo_run(tmp_path / "out")
    run.source.clear()
    made = page(run)
    assert "gargalo run" not in made.split("<h2>Run it again</h2>")[1]
    assert "shown as resolved" in made
    shown = re.search(r'<pre id="scenario">(.*?)</pre>', made, re.DOTALL)
    assert shown
    assert json.loads(html.unescape(shown[1]))["name"] == "tiny"


def test_the_page_of_a_run_cannot_be_broken_by_a_name():
    evil = "</script><img src=x>"
    run = gargalo.run(TINY.replace('name = "tiny"', f'name = "{evil}"'))
    assert evil not in page(run)


def gargalo_run(target, changes=None):
    return gargalo.run(TINY, output=target, set=changes or {})


def run_line(tmp_path, line: str) -> dict:
    words = shlex.split(line)
    assert words[0] == "gargalo"
    done = subprocess.run(
        command(*words[1:], "--json"),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_sweep_is_run_again_from_its_report(tmp_path, report):
    sweep = small_sweep(tmp_path / "store")
    made = report("store", "--output", "sweep.html")
    assert made.exit_code == 0, made.stderr
    page = (tmp_path / "sweep.html").read_text(encoding="utf-8")
    frame = sweep.frame()
    assert f"<dt>runs</dt><dd>{frame.height}</dd>" in page
    cells = table_of(page, "Cells")
    assert len(cells) == 1 + 4
    assert cells[0][:3] == ["congestion", "buffer", "runs"]
    first = frame.filter(congestion="cubic", buffer="20 packets")["goodput_bps"]
    shown = cells[[r[:2] for r in cells].index(["cubic", "20 packets"])][3]
    assert float(shown.split()[0]) == pytest.approx(first.mean() / 1e6, rel=1e-3)
    verdicts = [r[-1] for r in table_of(page, "Difference in goodput against cubic")[1:]]
    assert len(verdicts) == 2
    assert set(verdicts) <= {"cubic better", "reno better", "no difference shown"}
    name, text = scenario_of(page)
    (tmp_path / name).write_text(text, encoding="utf-8")
    lines = commands_of(page)
    assert len(lines) == 4
    again = run_line(tmp_path, lines[-1])
    assert again["summary"]["goodput_bps"] == frame.filter(repeat=0)["goodput_bps"][-1]


def test_a_sweep_in_parts_and_without_repeats(tmp_path):
    sweep = small_sweep(tmp_path / "store", repeat=1)
    report = reporting.report_of_sweep(sweep)
    assert any("no interval" in n for n in report.notes)
    assert not [t for t in report.tables if t.title.startswith("Difference")]
    means = report.tables[0].frame
    assert means["goodput_bps_low"].null_count() == means.height
    store = tmp_path / "store"
    for run in sweep.frame()["run"][:2]:
        (store / "runs" / f"{run}.parquet").unlink()
    part = reporting.report_of_sweep(store)
    assert part.notes[0] == "2 of 4 planned runs are done."
    assert part.facts["runs"] == 2
    assert len(part.commands) == 1 + 4, "all cells, done or not"
    for file in (store / "runs").glob("*.parquet"):
        file.unlink()
    with pytest.raises(ValueError, match="no finished run"):
        reporting.report_of_sweep(store)


def test_a_study_is_saved_and_read_back(tmp_path, report):
    reporting.save(study(), tmp_path / "s")
    back = reporting.report_of_study(tmp_path / "s")
    assert reporting.html(back) == reporting.html(study())
    assert report("s").exit_code == 0
    reporting.save(study(), tmp_path / "study" / "report")
    assert report("study").exit_code == 0
    assert "BBR takes most" in (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    (tmp_path / "s" / "figures" / "00.json").unlink()
    broken = report("s")
    assert broken.exit_code == 2
    assert "s/figures/00.json is damaged" in broken.stderr
    # Of before there were manifests.
    (tmp_path / "s" / "manifest.json").unlink()
    broken = report("s")
    assert broken.exit_code == 2
    assert "00.json is missing" in broken.stderr
    (tmp_path / "s" / "report.json").write_text('{"format": 1, "title": "x"}')
    broken = report("s")
    assert broken.exit_code == 2
    assert "'figures' is missing" in broken.stderr
    (tmp_path / "s" / "report.json").write_text('{"format": ')
    assert "not JSON (line 1)" in report("s").stderr
    (tmp_path / "s" / "report.json").write_text('{"format": 99}')
    assert "format 99 is not 1" in report("s").stderr


def test_bad_usage(tmp_path, report):
    def refused(*args: object, code: int = 2) -> str:
        done = report(*args)
        assert (done.exit_code, done.stdout) == (code, ""), done.stderr
        return done.stderr

    assert "does not exist" in refused("nowhere")
    (tmp_path / "empty").mkdir()
    assert "has no results: run.json" in refused("empty")
    assert not list((tmp_path / "empty").iterdir())
    (tmp_path / "file").write_text("")
    assert "is not a directory" in refused("file")
    gargalo_run(tmp_path / "out")
    (tmp_path / "mine.html").write_text("<p>precious")
    assert "--overwrite" in refused("out", "--output", "mine.html")
    assert (tmp_path / "mine.html").read_text() == "<p>precious"
    assert report("out", "--output", "mine.html", "--overwrite").exit_code == 0
    assert report("out", "--output", "mine.html").exit_code == 0, "a report is replaced"
    assert "does not exist; make it" in refused("out", "--output", "no/where.html")
    assert "is a directory" in refused("out", "--output", "empty")
    assert "is not a store" in refused("out", "--name", "x")
    assert "cannot be written" in refused("out", "--output", "/proc/report.html", code=1)
    (tmp_path / "out" / "flows.parquet").write_bytes(b"PAR1 no")
    assert "flows.parquet is damaged: it has 7 bytes, and " in refused("out")
    (tmp_path / "out" / "manifest.json").unlink()
    assert "a table cannot be read" in refused("out")


def test_a_full_disk_leaves_the_old_page(tmp_path, monkeypatch):
    path = reporting.write(study(), tmp_path / "r.html")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        reporting.write(reporting.Report("other"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_dates_are_given(tmp_path, report, monkeypatch):
    gargalo_run(tmp_path / "out")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert report("out").exit_code == 0
    assert "1970-01-02" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "tomorrow")
    assert "SOURCE_DATE_EPOCH" in report("out").stderr


def test_open_shows_the_page(tmp_path, gargalo, monkeypatch):
    gargalo_run(tmp_path / "out")
    monkeypatch.setenv("BROWSER", "echo shown %s")
    done = gargalo("report", "out", "--open")
    assert f"shown file://{tmp_path}/out/report.html" in done.stdout


def runs(**axes: list[object]) -> pl.DataFrame:
    """A table of runs with three seeds a cell."""
    cells = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    rows = [
        {**cell, "repeat": r, "seed": 10**15 + r, "goodput_bps": 1e6 * (i + 1) + r, "packets": 10}
        for i, cell in enumerate(cells)
        for r in range(3)
    ]
    return pl.DataFrame(rows)


def axes_of(report: reporting.Report) -> tuple[str, list[str]]:
    figure = report.figures[0].figure
    return figure.layout.xaxis.title.text or "", [t.name for t in figure.data]


def test_plots_with_long_legends_and_many_names_are_higher():
    names = [f"a line with a long name, {i}" for i in range(12)]
    long = go.Figure([go.Scatter(x=[1], y=[2], name=n) for n in names])
    many = go.Figure(go.Scatter(x=[1] * 30, y=[f"cell {i}" for i in range(30)], name="one"))
    blocks = [reporting.FigureBlock("a", "", long), reporting.FigureBlock("b", "", many)]
    page = without_library(reporting.html(reporting.Report("r", figures=blocks)))
    found = re.findall(r'class="plot".*?--letters: (\d+); --rows: (\d+)', page)
    assert found == [(str(sum(len(n) + 9 for n in names)), "0"), ("12", "16")]


def test_axes_of_any_kind():
    def made(**axes: list[object]) -> reporting.Report:
        found = report_of_runs(runs(**axes), list(axes), title="t")
        assert "1000000000000002" in reporting.html(found), "seeds keep all their digits"
        return found

    assert axes_of(made())[1] == ["all runs", "all runs: mean"]
    assert axes_of(made(congestion=["cubic", "reno"]))[0] == ""
    assert axes_of(made(rate=["1Mbit/s", "1Gbit/s"])) == ("rate", ["all runs"])
    assert axes_of(made(algorithm=["x", "y"], flows_n=[1, 2])) == ("flows n", ["x", "y"])
    assert axes_of(made(kind=["reno", "bbr"], net=["a", "b"])) == ("net", ["reno", "bbr"])
    wide = made(congestion=["cubic"], n=[1, 2, 64], ecn=[True, False], rtt=["1ms", None])
    assert wide.figures[0].figure.layout.xaxis.type == "log"
    assert [f.group for f in wide.figures] == [
        "ecn True, rtt 1ms", "ecn True, rtt None", "ecn False, rtt 1ms", "ecn False, rtt None",
    ]  # fmt: skip
    many = made(congestion=["cubic"], n=[1, 2], a=["u", "v", "w"], b=["p", "q", "r"])
    assert any("first 6 of 9 combinations" in n for n in many.notes)
    assert many.tables[0].frame.height == 18
