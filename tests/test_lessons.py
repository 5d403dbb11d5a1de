"""Lessons: each step's run shows what its explanation says, and files that are wrong are named."""

from __future__ import annotations

import json
import re
import threading
from html import unescape

import gargalo
import pytest
from click.testing import CliRunner
from explore_server import served
from gargalo.cli import bundled
from gargalo.cli.app import app
from gargalo.exploring.lessons import LessonError, lesson, names
from gargalo.exploring.lessons.figures import Expectation, Figure, UnknownFigureError
from gargalo.exploring.lessons.model import HERE, ORDER, QUOTE, read
from gargalo.exploring.lessons.sheet import sheet
from gargalo.exploring.server import Asked, Site, answer
from gargalo.exploring.view import parts
from gargalo.exploring.watching import Watched
from gargalo.plugins import source
from gargalo.plugins.registry import registered
from test_explore import Client

STEPS = [(name, n) for name in names() for n in range(1, len(lesson(name).steps) + 1)]


def test_there_are_ten_in_the_order_in_which_they_build_on_each_other():
    assert names()[: len(ORDER)] == list(ORDER)
    assert len(names()) >= 10
    assert all(3 <= len(lesson(name).steps) <= 6 for name in names())


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_a_step_shows_what_it_says(name, number):
    of = lesson(name)
    step, run = of.steps[number - 1], of.run(number)
    both = zip(of.figures(number), step.expect, strict=True)
    outside = {f.what: f"{f}, not {e.bounds}" for f, e in both if not f.holds}
    assert outside == {}
    assert run.warnings == []
    assert run.findings == []
    drawn = [p["metric"] for p in parts(run, step.panels) if p["part"] == "panel"]
    assert drawn == list(step.panels)
    assert step.at_s is None or 0 < step.at_s < run.setup.duration_s
    told = " ".join(of.explanation(number))
    assert QUOTE.search(told) is None
    # What it measured is what it is about: a figure that nobody quotes has its bounds only.
    quoted = {found[2] for found in QUOTE.finditer(step.explanation) if not found[1]}
    assert quoted, "an explanation has figures"
    for figure in of.figures(number):
        assert figure.name not in quoted or str(figure) in told
    other = re.findall(r"lesson `([\w-]+)`|lessons `([\w-]+)` and `([\w-]+)`", told)
    assert {n for found in other for n in found if n} <= set(names())


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (9.643e6, "bit/s", "9.64 Mbit/s"),
        (0.3502, "s", "350 ms"),
        (0.0, "bit/s", "0 bit/s"),
        (3390.0, "", "3,390"),
        (0.99979, "", "1.00"),
        (0.984, "%", "98.4%"),
        (118.0, "packets", "118"),
    ],
)
def test_a_figure_is_written_with_three_digits_and_its_unit(value, unit, shown):
    assert str(Figure("x", "x", value, unit, True)) == shown


# --- files


GOOD = """\
title = "T"
teaches = "One thing."
source = "RFC 5681"
needs = "Nothing."
minutes = 1
scenario = '''
name = "tiny"
duration = "1s"
topology.simple.link = { rate = "5Mbit/s", delay = "10ms" }
[[flows]]
label = "one"
from = "client"
to = "server"
transport.tcp.congestion = "reno"
'''
[[steps]]
title = "S"
question = "Q?"
choices = ["x", "y"]
right = "a"
set = { "flows.0.start" = "100ms" }
panels = ["goodput"]
explanation = "It has {rate}."
[[steps.expect]]
name = "rate"
what = "goodput"
metric = "goodput_bps"
flow = "one"
least = 1e6
"""


def written(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return read(file)


def test_a_lesson_of_ones_own_is_read(tmp_path):
    of = written(tmp_path, GOOD)
    assert 'start = "100ms"' in of.steps[0].text
    assert 'start = "100ms"' not in of.text
    assert of.steps[0].changes == ['flows.0.start = "100ms"']
    assert re.fullmatch(r"It has 4\.\d+ Mbit/s\.", of.explanation(1)[0])
    named = written(tmp_path, re.sub(r"'''.*'''", '"l4s"', GOOD, flags=re.S))
    assert named.path == bundled.FOLDER / "l4s.toml"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('title = "T"\n', "", "title: is missing"),
        ("minutes = 1", 'minutes = "1"', "minutes: is '1', not a number"),
        ("minutes = 1", "minutes = 1\nlevel = 2", "level: is not a key of lessons"),
        ('right = "a"', 'right = "c"', "steps.0.right: is one of a, b"),
        ('choices = ["x", "y"]\n', "", "steps.0.right: an open question has no right choice"),
        ('["x", "y"]', '["x"]', "steps.0.choices: a question has two to four choices, or none"),
        ("{rate}", "{speed}", "steps.0.explanation: no figure of step 1 is named speed"),
        ("{rate}", "{2.rate}", "steps.0.explanation: no figure of step 2 is named rate"),
        ("flows.0.start", "flows.3.start", "steps.0.set: there is no flows.3.start"),
        ('panels = ["goodput"]', "ghost = true\npanels = ['rtt']", "steps.0.ghost: there is no"),
        ("least = 1e6", "", "steps.0.expect.0.least: an expectation has least, most, or both"),
        ("least = 1e6", 'least = 1\nstatistic = "p51"', "statistic: is one of mean, min"),
        ("least = 1e6", "least = 1\nduring = [1]", "during: is two times in seconds"),
        ("title = ", "title ", "mine.toml: "),
        ("minutes = 1", "minutes = 1\nplugin = 'no.py'", "plugin: there is no no.py beside it"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path, old, new, says):
    with pytest.raises(LessonError, match=re.escape(says)) as found:
        written(tmp_path, GOOD.replace(old, new, 1))
    assert str(found.value).startswith("mine.toml: ")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('flow = "one"', 'flow = "two"', "rate: there is no flow 'two'; there are one"),
        ('"goodput_bps"', '"goodput"', "rate: nothing was recorded of goodput"),
        ('flow = "one"', 'link = "wire up"', "rate: there is no link 'wire up'"),
        ('"goodput_bps"', '"completion_s"', "rate: completion_s is unknown in this run"),
    ],
)
def test_a_figure_that_a_run_does_not_have_is_named(tmp_path, old, new, says):
    of = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(LessonError, match=re.escape(f"mine.toml: steps.0.expect: {says}")):
        of.figures(1)


def test_figures_are_those_of_the_tables():
    run = gargalo.run(GOOD.split("'''")[1].replace('"1s"', '"4s"'))
    row, samples = run.flows.row(0, named=True), run.flow_samples

    def found(**of):
        return Expectation("x", "x", **of, least=0).measured(run).value

    assert found(metric="goodput_bps", flow="one") == row["goodput_bps"]
    assert found(metric="goodput_bps") == run.summary["goodput_bps"]
    assert found(metric="rtt_p50_s", flow="one", over="one") == 1
    assert found(metric="losses", flow="one") == row["lost_packets"]
    assert found(metric="srtt_s", flow="one", statistic="max") == samples["srtt_s"].max()
    late = samples.filter((samples["time_s"] >= 2) & (samples["time_s"] <= 3))
    window = found(metric="congestion_window_bytes", flow="one", statistic="mean", during=(2, 3))
    assert window == late["congestion_window_bytes"].mean()
    link = next(x for x in run.links if x["direction"] == "up")
    assert found(metric="queue_delay_p95_s", link="link up") == link["queue_delay_p95_s"]
    with pytest.raises(UnknownFigureError, match="has no samples, or no statistic"):
        found(metric="srtt_s", flow="one", during=(2, 3))


# --- a controller that is edited


def test_a_file_of_the_command_line_is_taken_as_it_is_at_each_run(tmp_path):
    file = tmp_path / "own_controller.py"
    text = (HERE / "own_controller.py").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    of = lesson("own-controller")
    theirs = of.controllers()["own"]
    source.execute(text, str(file))
    site = Site([], of.name, of, Watched([file]).refresh)

    def told():
        found = []
        asked = Asked.read(site, {"text": of.steps[1].text})
        answer(asked, threading.Event(), found.append)
        return found

    def rate(found):
        about = [p for p in found if p["part"] == "about"][-1]  # A glimpse may come first.
        return about["figures"]["rows"][0][2]

    first = rate(told())
    file.write_text(text.replace("keep=0.5", "keep=0.9"), encoding="utf-8")
    assert rate(told()) != first
    file.write_text(text.replace("return self.window", "return self.windwo"), encoding="utf-8")
    wrong = told()[-1]["diagnostics"][0]["message"]
    assert re.match(rf"{re.escape(str(file))}:\d+: AttributeError: .*windwo", wrong)
    file.write_text(text.replace("def cwnd(self):", "def cwnd(self)"), encoding="utf-8")
    for _ in range(2):  # It is not forgotten that it is wrong.
        wrong = told()[-1]["diagnostics"][0]["message"]
        assert wrong.startswith(f"{file}:")
        assert "expected ':'" in wrong
    file.write_text(text, encoding="utf-8")
    assert rate(told()) == first
    # Explanations are of the lesson's own classes, and do not replace the reader's.
    assert of.controllers()["own"] is theirs
    assert registered()["congestion"]["own"] is not theirs


# --- the command, the server, the paper


def test_the_command_names_the_lessons(tmp_path):
    def gargalo(*words):
        return CliRunner().invoke(app, [str(w) for w in words], env={"COLUMNS": "200"})

    listed = json.loads(gargalo("list", "lessons", "--json").stdout)
    assert [x["name"] for x in listed] == names()
    assert all(x["summary"] and x["source"] for x in listed)
    done = gargalo("explore", "--lesson", "buffer")
    assert done.exit_code == 2
    assert f'there is no lesson "buffer"; there are {", ".join(names())}' in done.stderr
    done = gargalo("explore", "--print", "x.html")
    assert done.exit_code == 2
    assert "add --lesson NAME" in done.stderr
    done = gargalo("explore", "race.toml", "--lesson", "aimd")
    assert done.exit_code == 2
    assert "--lesson aimd has its own scenario" in done.stderr
    done = gargalo("explore", "--lesson", "aimd", "--print", tmp_path / "no" / "x.html")
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


def test_the_server_tells_after_a_step_to_its_own_page_only(tmp_path):
    with served("--lesson", "own-controller", folder=tmp_path) as link:
        client = Client(link)
        given = json.loads(client.ask("/api/start")[2])["lesson"]
        asked = [s.question for s in lesson("own-controller").steps]
        assert [s["question"] for s in given["steps"]] == asked
        assert "explanation" not in given["steps"][0]
        told = json.loads(client.ask("/api/lesson/1")[2])
        assert told["paragraphs"] == lesson("own-controller").explanation(1)
        assert client.ask("/api/lesson/0")[0] == 404
        assert client.ask("/api/lesson/7")[0] == 404
        assert client.ask("/api/lesson/1", None, {})[0] == 403
        copy = tmp_path / "own_controller.py"
        assert copy.read_bytes() == (HERE / "own_controller.py").read_bytes()


def test_the_paper_asks_first_and_answers_last():
    of = lesson("head-of-line")
    page = sheet(of)
    asked, shown, answered = page.split("<section>")[1:]
    for n, step in enumerate(of.steps, 1):
        assert step.question in unescape(asked)
        assert all(choice in unescape(asked) for choice in step.choices)
        assert not any(line in unescape(asked) for line in step.changes)
        assert all(line in unescape(shown) for line in step.changes)
        assert f"{step.right}) {step.choices['abcd'.index(step.right)]}" in unescape(answered)
        assert of.explanation(n)[0] in unescape(answered)
    assert shown.count("data:image/svg+xml") == 2 * len(of.steps)
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert sheet(of) == page, "equal runs give equal pages"
