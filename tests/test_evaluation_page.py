"""Scorecards as pages: what they say, and what a browser makes of them. Nothing is simulated for it."""

from __future__ import annotations

import base64
import html
import io
import itertools
import math
import re
import sys
import zipfile
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import gargalo
import plotly.graph_objects as go
import polars as pl
import pytest
from gargalo import _core, audit
from gargalo.evaluation import (
    CRITERIA,
    PROFILES,
    QUESTIONS,
    cells,
    page,
    pictures,
    records,
    scoring,
)
from gargalo.evaluation.figures import figure, mean_of
from gargalo.evaluation.model import Criterion, Plan, Result
from gargalo.evaluation.running import Scorecard
from gargalo.judging import FailureReason
from gargalo.reporting import FigureBlock
from gargalo.running import resolve
from gargalo.scenario import to_toml
from reports import Shown, browser, browser_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from selenium.webdriver import Chrome

REFERENCES = ("reno", "cubic", "bbr")
HOSTILE = '</script><img src=x onerror="window.owned=1">&'
TRACE = f'Traceback (most recent call last):\n  File "x.py", line 3\nValueError: {HOSTILE}'
QUEUE = figure(
    "queue_s", "queueing delay", "less", mean_of("queue_s"), bounds=(0.0, math.inf), least=0.001
)
USED = figure(
    "used",
    "share of the bottleneck used",
    "more",
    mean_of("used"),
    bounds=(0.0, math.inf),
    margin=0.02,
)
LOST = figure(
    "lost",
    "share of QUIC's packets lost (RFC 9002), against equal shares of what there is",
    "less",
    mean_of("lost"),
    bounds=(0.0, math.inf),
    least=0.001,
)
RATE = figure("rate_bps", "goodput", "neither", mean_of("rate_bps"), bounds=(0.0, math.inf))


def criterion(name: str, figures: Sequence[Any], **more: Any) -> Criterion:
    given = {"title": name.replace("-", " ").capitalize(), "section": "RFC 9743 5.1.2", "strength": "should"}  # fmt: skip
    return Criterion(
        name, asks="What the text wants.", does="What is run.", cells=lambda _: [], figures=figures, **given | more
    )  # fmt: skip


def runs(own: str, values: dict[str, dict[str, float]], label: str, levels: Sequence[Any]) -> pl.DataFrame:  # fmt: skip
    """Three repeats at each level; values rise with the level and differ a little by repeat."""
    rows = []
    for name in (own, *REFERENCES):
        figures = values.get("own" if name == own else name)
        if figures is None:
            continue
        for i, level in enumerate(levels):
            for repeat in range(3):
                factor = (1 + i) * (1 + 0.01 * (repeat - 1))
                made = {k: v * factor if k != "used" else v for k, v in figures.items()}
                rows.append({"run": f"{name}{i}{repeat}", "criterion": "", "algorithm": name, label: level, "repeat": repeat, **made})  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def scenarios(name: str) -> dict[str, str]:
    """Scenario files of a criterion of RFC 9743, as an evaluation makes them."""
    found = next(c for c in CRITERIA if c.id == name)
    made = found.cells(Plan("vegas", PROFILES["quick"], 1))
    return {
        " ".join(f"{k}={v}" for k, v in c.labels.items()): to_toml({**c.scenario, "seed": 1})
        for c in made
    }


def scorecard(own: str = "vegas", repeat: int = 3) -> Scorecard:
    """Every verdict, every group, and everything else there is to show; numbers are made up."""
    usual = {
        "reno": {"queue_s": 0.09, "used": 0.97, "lost": 0.01, "rate_bps": 9e6},
        "cubic": {"queue_s": 0.1, "used": 0.99, "lost": 0.01, "rate_bps": 1e7},
        "bbr": {"queue_s": 0.02, "used": 0.95, "lost": 0.05, "rate_bps": 1.1e7},
    }

    def judge(c: Criterion, label: str, levels: Sequence[Any], mine: dict[str, float] | None, failures: Sequence[FailureReason] = (), files: str = "bufferbloat") -> Result:  # fmt: skip
        values = usual if mine is None else {**usual, "own": usual["cubic"] | mine}
        frame = runs(own, values, label, levels).filter(pl.col("repeat") < repeat)
        return scoring.result(c, own, frame, REFERENCES, failures, scenarios(files))

    bars = go.Figure([go.Bar(x=["a"], y=[i + 1.0], name=n) for i, n in enumerate([own, "cubic"])])
    drawn = FigureBlock("A picture of its own", "Bars.", bars, alt="Two bars.")
    results = [
        judge(criterion("queues", (QUEUE, USED, RATE)), "buffer_bdp", [0.5, 1.0, 8.0], {"queue_s": 0.004, "used": 0.8}),
        judge(criterion("same", (QUEUE, USED), strength="MUST"), "n", [1, 4], {}),
        judge(criterion("starver", (LOST,), strength="MUST", group="mixed", faults=lambda _: [f"starves others {HOSTILE}"]), "first", ["own", "other"], {"lost": 0.2}, files="versus-quic-newreno"),
        judge(criterion("raises", (QUEUE,), strength="SHOULD", group="special"), "case", ["a", "b"], None, [FailureReason(f"ValueError: {HOSTILE}", TRACE), FailureReason("died")], "multipath"),
        judge(criterion("short", (QUEUE,), group="general"), "size", ["10kB", "1MB"], {"queue_s": 0.05}, files="short-long"),
        judge(criterion("drawn", (QUEUE,), strength="SHOULD", group="properties", picture=lambda _: drawn), "n", [1], {"queue_s": 0.3}),
        judge(criterion("unmeasured", (figure("x_s", "nothing", "less", mean_of("x_s"), bounds=(0.0, math.inf)),), group="tcpeval"), "n", [1], {}),
        judge(criterion("probes", (QUEUE,), group="elsewhere"), "n", [1], {"queue_s": 0.01}),
    ]  # fmt: skip
    return Scorecard(
        own,
        replace(PROFILES["quick"], repeat=repeat),
        REFERENCES,
        results,
        facts={"date": "2026-06-01"},
        file="my algorithms/vegas.py",
    )


def text_of(part: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())


def article(whole: str, name: str) -> str:
    start = whole.index('<article class="criterion', whole.index(f'id="criterion-{name}"') - 200)
    return whole[start : whole.index("</article>", start)]


# --- what it says


def test_verdicts_of_the_card():
    found = {r.criterion.id: r.verdict for r in scorecard().results}
    assert found == {
        "queues": "trade-off", "same": "like", "starver": "fault", "raises": "failed", "short": "better",
        "drawn": "worse", "unmeasured": "unknown", "probes": "better",
    }  # fmt: skip


def test_one_file_whole_and_equal(tmp_path):
    path = page.write(scorecard(), tmp_path / "vegas.html")
    whole = path.read_text(encoding="utf-8")
    assert page.write(scorecard(), tmp_path / "again.html").read_bytes() == path.read_bytes()
    assert whole.count("* plotly.js v") == 1
    own = re.sub(r"<script>\s*/\*\*\s*\* plotly.*?</script>", "", whole, flags=re.DOTALL)
    assert len(own) < 160_000
    assert not re.search(r"<(link|iframe|img|object)\b|\bsrc=\"|@import|url\(", own.replace(html.escape(HOSTILE), ""))  # fmt: skip
    assert "default-src 'none'" in own
    assert "2026-06-01" in own
    without = replace(scorecard(), facts={})
    assert "2026-06-01" not in page.html(without), "no clock is asked"


def test_words_on_top():
    whole = page.html(scorecard())
    head = text_of(whole[whole.index("<header>") : whole.index("</header>")])
    assert "Scorecard: vegas" in head
    assert "beside cubic, reno, bbr" in head
    assert "✗ 1 at fault" in head
    assert "! 1 failed" in head
    assert "\u2212 1 worse" in head
    assert "⇅ 1 trade-off" in head
    assert "+ 2 better" in head
    how = text_of(whole[whole.index('id="how"') : whole.index("</details>")])
    assert "No pass mark exists at the IETF" in how
    assert "colours are advisory and compare with cubic on the same points" in how
    assert "means of 3 runs with 95% intervals" in how
    faults = text_of(whole[whole.index('id="faults"') : whole.index('id="failures"')])
    assert f"Starver RFC 9743 5.1.2 MUST : starves others {HOSTILE}" in faults
    facts = text_of(whole[whole.index('id="facts"') :])
    assert f"gargalo {_core.__version__}" in facts
    assert "cells 17" in facts


def test_sections_in_order():
    whole = page.html(scorecard())
    assert re.findall(r'<h2 id="group-title-(.*?)"', whole) == [
        "alone", "mixed", "general", "special", "properties", "tcpeval", "elsewhere",
    ]  # fmt: skip
    matrix = whole[whole.index('<table class="matrix">') : whole.index("</table>")]
    alone = text_of(re.findall(r"<tr>.*?</tr>", matrix, re.DOTALL)[1])
    assert alone == "One algorithm alone on the bottleneck RFC 9743 5.1 · · · 1 · 1 · 2"


def test_a_figure_in_full():
    part = article(page.html(scorecard()), "queues")
    rows = [text_of(r) for r in re.findall(r"<tr.*?</tr>", part, re.DOTALL)]
    assert rows[0] == "Figure Verdict vegas cubic reno bbr difference from cubic"
    # Figures rise one, two and three times along the buffers; repeats differ by one percent.
    assert rows[1] == (
        "queueing delay less is better + better 8 ms ± 0.2 ms 200 ms ± 5 ms 180 ms ± 4.5 ms 40 ms ± 0.99 ms "
        "\u2212192 ms (\u221296 %) ± 5 ms"
    )
    assert rows[2].startswith("share of the bottleneck used more is better \u2212 worse 0.8 0.99")
    assert rows[3].startswith("goodput for information – 20 Mbit/s")  # noqa: RUF001
    assert rows[3].endswith("–")  # noqa: RUF001
    assert "What the text wants." in part
    assert "What is run." in part


def test_one_run_has_no_interval():
    whole = page.html(scorecard(repeat=1))
    assert "With one run of each cell there are no intervals" in text_of(whole)
    assert "±" not in article(whole, "queues")
    assert "1 run)" not in article(whole, "queues"), "as many as planned"
    assert "(3 runs)" in text_of(article(page.html(replace(scorecard(), profile=replace(PROFILES["quick"], repeat=5))), "queues"))  # fmt: skip


def test_the_yardstick_itself():
    whole = page.html(scorecard("cubic"))
    assert "cubic is the yardstick itself" in text_of(whole)
    rows = re.findall(r"<tr.*?</tr>", article(whole, "queues"), re.DOTALL)
    assert text_of(rows[0]) == "Figure Verdict cubic reno bbr"


def test_numbers():
    assert page.rounded(0.0123456, "s") == "12.3 ms"
    assert page.rounded(-0.5, "") == "\u22120.5"
    assert page.rounded(0.0001234, "") == "0.000123"
    assert page.rounded(12_345_678.0, "bit/s") == "12.3 Mbit/s"
    assert page.rounded(1234.0, "") == "1\u202f230"
    assert page.rounded(None, "s") == "unknown"
    assert page.rounded(float("inf"), "s") == "inf"
    assert page.rounded(0.0, "bit/s") == "0"
    assert page.ends_text(0.9, 1.3, 1.0, "s") == "0.9 to 1.3 s"
    assert page.ends_text(0.0079, 0.0081, 0.008, "s") == "± 0.1 ms"
    assert page.ends_text(-0.001, 0.001, 0.0, "s") == "± 1 ms"
    assert page.ends_text(0.99962, 1.00038, 1.0, "") == "± 0.00038"
    assert page.ends_text(0.99, 0.99 + 6e-16, 0.99, "") == "± 0"
    assert page.ends_text(-2.0, 1.0, 0.5, "") == "\u22122 to 1"


# --- lanes and pictures


def test_lanes_place_values():
    card = scorecard()
    outcome = card.results[0].outcomes[0]
    lane = pictures.lane(outcome, "vegas", ["cubic", "reno", "bbr"])
    assert lane is not None
    assert [d.algorithm for d in lane.dots] == ["vegas", "cubic", "reno", "bbr"]
    top = outcome.references["cubic"].high
    assert lane.most == top
    assert lane.least == lane.zero == 0
    assert lane.dots[0].at == round(100 * outcome.own.mean / top, 2)
    assert lane.yardstick == lane.dots[1].at
    assert lane.dots[1].high == 100
    assert pictures.lane(card.results[6].outcomes[0], "vegas", []) is None, "nothing was measured"


def test_picture_along_what_varies():
    result = scorecard().results[0]
    block = pictures.along(result, ["vegas", "cubic", "reno", "bbr"])
    assert block is not None
    assert block.title == "By buffer"
    data, layout = block.figure["data"], block.figure["layout"]
    # Shares of the bottleneck do not differ by buffer, but by algorithm.
    assert len(data) == 12
    assert {t["legendgroup"] for t in data} == {"vegas", "cubic", "reno", "bbr"}
    mine = next(t for t in data if t["meta"] == "vegas: queueing delay")
    assert mine["x"] == [0.5, 1, 8]
    assert layout["xaxis3"]["title"]["text"] == "buffer (BDP)"
    assert mine["y"] == pytest.approx([4, 8, 12])
    place = [a["text"] for a in layout["annotations"]].index("queueing delay")
    assert layout[f"yaxis{place + 1 if place else ''}"]["title"]["text"] == "ms"
    assert sum(t["showlegend"] for t in data) == 4


def test_pictures_of_names_and_of_nothing():
    starver, short, single = (scorecard().results[i] for i in (2, 4, 7))
    block = pictures.along(starver, ["vegas", "cubic"])
    assert block is not None
    assert block.figure["layout"]["xaxis"]["type"] == "category"
    assert {t["mode"] for t in block.figure["data"]} == {"markers"}
    sizes = pictures.along(short, ["vegas"])
    assert sizes is not None
    assert sizes.figure["data"][0]["x"] == [0.01, 1]
    assert pictures.along(single, ["vegas", "cubic"]) is None
    empty = replace(single, scores=replace(single.scores, frame=pl.DataFrame()))
    assert pictures.along(empty, ["vegas"]) is None


# --- cells


def test_cells_in_words():
    assert cells.named("buffer_bdp=0.5 n=8") == "buffer 0.5 BDP, n = 8"
    assert cells.named("rate_bps=1000000.0 rtt_s=0.04 loss=1e-05") == "rate 1 Mbit/s, round-trip time 40 ms, loss = 0.000010"  # fmt: skip
    assert cells.named("case=round trips ecn=True") == "case: round trips, ecn: yes"
    assert cells.named("size=50kB mbps=4.0") == "size 50 kB, rate 4 Mbit/s"
    assert cells.named("") == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the lab needs Linux")
def test_the_lab_refuses_what_the_page_says():
    seen = Counter()
    for found in CRITERIA:
        # The scenarios of tcpeval-01 are many and large, but of one kind in each criterion.
        most = None if "quick" in found.profiles else 1
        name = next(iter(found.algorithms), "vegas")
        for cell in found.cells(Plan(name, PROFILES["quick"], 1))[:most]:
            flows = [
                {k: v for k, v in f.items() if k not in ("start", "stop")}
                for f in cell.scenario["flows"]
            ]
            text = to_toml({**cell.scenario, "duration": "20ms", "flows": flows})
            said = ""
            try:
                gargalo.run(text, world="lab")
            except _core.ScenarioError as e:
                said = str(e)
            refused = bool(said)
            assert refused == bool(
                re.search("simulator only|only the simulator|--world sim", said)
            ), said
            assert refused == bool(cells.why_not_lab(text)), f"{found.id} {dict(cell.labels)}"
            seen[refused] += 1
    assert seen[True] >= 3
    assert seen[False] >= 20


def test_scenarios_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "why_not_lab", lambda text: "it has QUIC" if "quic" in text else "")
    part = article(page.html(scorecard()), "queues")
    texts = re.findall(r'class="scenario" data-file="(.*?)">(.*?)</code>', part, re.DOTALL)
    assert [html.unescape(n) for n, _ in texts] == [
        "queues-buffer_bdp=1.0_n=1.toml", "queues-buffer_bdp=8.0_n=1.toml",
    ]  # fmt: skip
    assert [html.unescape(t) for _, t in texts] == list(scenarios("bufferbloat").values())
    commands = html.unescape(re.findall(r'class="commands">(.*?)</code>', part, re.DOTALL)[0])
    assert commands.splitlines() == [
        "gargalo run queues-buffer_bdp=1.0_n=1.toml --plugin 'my algorithms/vegas.py'",
        "gargalo run queues-buffer_bdp=1.0_n=1.toml --plugin 'my algorithms/vegas.py' --world lab",
    ]
    packed = re.findall(r'href="data:application/zip;base64,(.*?)"', part)
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(packed[0]))) as files:
        assert files.testzip() is None
        assert {n: files.read(n).decode() for n in files.namelist()} == {
            html.unescape(n): html.unescape(t) for n, t in texts
        }
    starver = text_of(article(page.html(scorecard()), "starver"))
    assert "Not in the lab: it has QUIC." in starver
    assert "--world lab" not in starver
    name, text = (html.unescape(x) for x in texts[0])
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert resolve(tmp_path / name)["seed"] == 1


# --- what failed


def test_failures_and_broken_files():
    whole = page.html(scorecard())
    part = article(whole, "raises")
    assert part.count('<details class="failure"') == 2
    assert html.escape(TRACE.splitlines()[-1], quote=False).replace('"', "&#34;") in part
    assert "<svg" not in part, "no picture without runs of its own"
    assert 'class="plot"' not in part
    assert "unknown" in part
    broken = Scorecard("mine", PROFILES["quick"], REFERENCES, [], broken=TRACE, file="mine.py")
    whole = page.html(broken)
    told = text_of(whole[whole.index('id="broken"') :])
    assert "Nothing of mine (mine.py) could be run" in told
    assert "ValueError" in told
    assert "plotly.js v" not in whole
    assert "No faults" not in whole


def test_questions_and_reasons():
    whole = page.html(scorecard())
    asked = whole[whole.index('id="questions"') : whole.index('id="facts"')]
    assert asked.count("<textarea") == len(QUESTIONS)
    for q in QUESTIONS:
        assert q.text in text_of(asked)
    reasons = re.findall(r'<a href="#criterion-(.*?)">', asked)
    assert reasons == ["raises", "drawn"], "marked SHOULD, not better nor like"


# --- the table of many


def cards() -> list[Scorecard]:
    other = scorecard("copa")
    kept = [r for r in other.results if r.criterion.id != "short"]
    fewer = replace(other, results=[replace(kept[0], verdict="like"), *kept[1:]])
    broken = Scorecard("mine", other.profile, REFERENCES, [], broken=TRACE, file="mine.py")
    return [scorecard(), fewer, broken]


def test_index(tmp_path):
    path = page.write_index(cards(), tmp_path / "index.html")
    whole = path.read_text(encoding="utf-8")
    assert page.write_index(cards(), tmp_path / "again.html").read_bytes() == path.read_bytes()
    assert len(whole) < 60_000
    rows = re.findall(r"<tr data-item.*?</tr>", whole, re.DOTALL)
    assert len(rows) == 8
    starver = next(r for r in rows if "Starver" in r)
    links = re.findall(r'href="(.*?)"', starver)
    assert links == ["vegas-quick.html#criterion-starver", "copa-quick.html#criterion-starver", "mine-quick.html#broken"]  # fmt: skip
    assert text_of(starver).endswith("✗ vegas: fault ✗ copa: fault ! mine: could not be loaded")
    short = next(r for r in rows if "Short" in r)
    assert "–" in text_of(short), "not run"  # noqa: RUF001
    for c in cards():
        target = page.html(c)
        for link in re.findall(rf'href="{c.algorithm}-quick.html#(.*?)"', whole):
            assert f'id="{link}"' in target
    elsewhere = page.index_html(cards(), {"vegas": "v/scorecard.html"})
    assert 'href="v/scorecard.html#criterion-starver"' in elsewhere


def test_page_names_are_safe():
    card = replace(scorecard(), algorithm="../a b<")
    assert page.page_name(card) == ".._a_b_-quick.html"


# --- in a browser

missing = browser_missing()
needs_browser = pytest.mark.skipif(missing is not None, reason=f"no browser: {missing}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("scorecards")
    broken = Scorecard(HOSTILE, PROFILES["quick"], REFERENCES, [], broken=TRACE, file=HOSTILE)
    made = {"card": scorecard(), "hostile": scorecard(HOSTILE), "broken": broken}
    found = {name: page.write(c, root / f"{name}.html") for name, c in made.items()}
    found["index"] = page.write_index([*cards(), scorecard(HOSTILE), broken], root / "index.html")
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    driver = browser()
    yield driver
    driver.quit()


class Page(Shown):
    """A scorecard in the browser."""

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    def articles(self) -> list[str]:
        return self.js(
            "[...document.querySelectorAll('article[data-item]')].filter(e => e.checkVisibility()).map(e => e.id.slice(10))"
        )

    def rows(self) -> list[str]:
        return self.js(
            "[...document.querySelectorAll('tr[data-item]')].filter(e => e.checkVisibility()).map(e => e.querySelector('th').innerText.split('\\n')[0].toLowerCase())"
        )

    def state(self) -> str:
        return self.js("document.getElementById('choose-state').textContent")

    def address(self, selector: str) -> str:
        self.js("document.querySelector(arguments[0]).dispatchEvent(new Event('focus'))", selector)
        return self.js("document.querySelector(arguments[0]).href", selector)


KINDS = ("card", "hostile", "broken", "index")


@needs_browser
@pytest.mark.parametrize("kind", KINDS)
def test_drawn_without_errors_or_requests(chromium, pages, kind):
    shown = Page(chromium, pages[kind])
    assert [e for e in chromium.get_log("browser") if e["level"] != "DEBUG"] == []
    assert shown.requested() == [pages[kind].as_uri()]
    assert shown.js("performance.getEntriesByType('resource').length") == 0
    # Nothing of what names and tracebacks say became an element.
    assert shown.js("window.owned === undefined")
    assert shown.js("document.querySelectorAll('img:not(#js-plotly-tester img)').length") == 0
    if kind != "card":
        assert HOSTILE in shown.js("document.body.textContent")
    if kind in ("card", "hostile"):
        sizes = shown.js(
            "[...document.querySelectorAll('.plot')].map(p => [p.querySelector('svg.main-svg').getBoundingClientRect().width, "
            "[...p.querySelectorAll('.plot .points path, .plot .point path')].filter(m => m.getBoundingClientRect().width > 1).length])"
        )
        assert len(sizes) == 5
        assert all(width > 300 and marks > 0 for width, marks in sizes)
        dots = shown.js("[...document.querySelectorAll('.track')].map(t => [...t.querySelectorAll('path')].filter(p => p.getBoundingClientRect().width > 4).length)")  # fmt: skip
        # On an axis of numbers all stand where they belong.
        places = shown.js(
            "[...document.querySelectorAll('#criterion-queues .plot .xy .trace.scatter')].map(t => [...t.querySelectorAll('.points path')].map(p => Math.round(p.getBoundingClientRect().x + p.getBoundingClientRect().width / 2)))"
        )
        assert len(places) == 4
        assert all(abs(a - b) <= 1 for row in places for a, b in zip(row, places[0], strict=True))
        assert len(dots) == 9
        assert all(n == 4 for n in dots)


@needs_browser
def test_filters(chromium, pages):
    shown = Page(chromium, pages["card"])
    everything = ["queues", "same", "starver", "short", "raises", "drawn", "unmeasured", "probes"]
    assert shown.articles() == shown.rows() == everything
    assert shown.state() == "8 criteria"
    shown.click("input[name=verdict][value=worse]")
    shown.click("input[name=verdict][value=trade-off]")
    assert shown.articles() == shown.rows() == ["same", "starver", "short", "raises", "unmeasured", "probes"]  # fmt: skip
    assert shown.state() == "6 of 8 criteria"
    assert not shown.js("document.getElementById('group-properties').checkVisibility()"), "empty"
    shown.click("input[name=strength][value=should]")
    assert shown.articles() == shown.rows() == ["same", "starver", "raises"]
    shown.click("input[name=strength][value=MUST]")
    shown.click("input[name=strength][value=SHOULD]")
    assert shown.articles() == []
    assert shown.js("document.querySelector('.none-left').checkVisibility()")
    shown.click("#choose button[type=reset]")
    shown.wait("document.getElementById('choose-state').textContent === '8 criteria'")
    assert shown.articles() == everything
    assert not shown.js("document.querySelector('.none-left').checkVisibility()")


@needs_browser
def test_only_differences(chromium, pages):
    shown = Page(chromium, pages["card"])
    figures = "[...document.querySelectorAll('#criterion-queues [data-figure]')].filter(e => e.checkVisibility()).map(e => e.dataset.figure).filter(f => isNaN(f))"
    assert shown.js(figures) == ["queue_s", "used", "rate_bps"]
    shown.click("input[name=different]")
    assert shown.articles() == shown.rows() == ["queues", "starver", "short", "raises", "drawn", "probes"]  # fmt: skip
    assert shown.js(figures) == ["queue_s", "used"]
    assert (
        shown.js("document.querySelectorAll('#criterion-queues .lane:not([hidden])').length") == 2
    )
    # A link to what is hidden shows it again.
    shown.js("(() => { location.hash = '#criterion-same'; })()")
    shown.wait("document.getElementById('choose-state').textContent === '8 criteria'")
    assert "same" in shown.articles()


@needs_browser
def test_hidden_pictures_come_back_at_their_size(chromium, pages):
    shown = Page(chromium, pages["card"], width=1280)
    shown.click("input[name=verdict][value=trade-off]")
    shown.do("Emulation.setDeviceMetricsOverride", width=800, height=900, deviceScaleFactor=1, mobile=False)  # fmt: skip
    shown.click("input[name=verdict][value=trade-off]")
    shown.wait(
        "(() => { const p = document.querySelector('#criterion-queues .plot'); const w = p.querySelector('svg.main-svg').getBoundingClientRect().width; return w > 300 && w <= p.clientWidth + 1; })()"
    )


@needs_browser
@pytest.mark.parametrize("width", [320, 360, 768])
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_phone(chromium, pages, kind, width):
    shown = Page(chromium, pages[kind], width=width)
    shown.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert shown.js("document.documentElement.scrollWidth") == width
    beyond = shown.js(
        """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('.scroll, .plot, .skip, .spoken, #js-plotly-tester'))
             .filter(e => e.getBoundingClientRect().right > arguments[0] + 1 || (e.getBoundingClientRect().left < -1 && !e.closest('thead')))
             .map(e => e.tagName + '.' + e.className)""",
        width,
    )
    assert beyond == []
    inner = shown.js(
        "[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility()).map(e => [e.clientWidth, e.scrollWidth, getComputedStyle(e).overflowX])"
    )
    assert all(client <= width and overflow == "auto" for client, _, overflow in inner)
    if kind == "card" and width == 320:
        assert any(scroll > client for client, scroll, _ in inner), "wide tables scroll inside"
        right = shown.js("[...document.querySelectorAll('table.figures td.own')].map(e => e.getBoundingClientRect().right)")  # fmt: skip
        assert max(right) <= 320, "its own values are in sight"
        cut = shown.js(
            """[...document.querySelectorAll('.plot')].flatMap(p => { const b = p.getBoundingClientRect();
                 return [...p.querySelectorAll('.annotation-text, .xtitle, .legendtext')].filter(t => t.getBoundingClientRect().right > b.right + 1 || t.getBoundingClientRect().left < b.left - 1).map(t => t.textContent); })"""
        )
        assert cut == [], "titles fit"


@needs_browser
def test_copies_and_downloads(chromium, pages):
    shown = Page(chromium, pages["card"])
    wanted = next(iter(scenarios("bufferbloat").values()))
    address = shown.address("#criterion-queues a.save")
    head, _, text = address.partition(",")
    assert head == "data:application/toml;charset=utf-8"
    assert unquote(text) == wanted
    assert shown.js("document.querySelector('#criterion-queues a.save').download") == "queues-buffer_bdp=1.0_n=1.toml"  # fmt: skip
    shown.js("(() => { document.querySelector('#criterion-queues .cells').open = true; })()")
    for allowed in ("granted", "denied"):
        shown.js("(() => { window.heard = []; navigator.clipboard && (navigator.clipboard.writeText = arguments[0] === 'granted' ? async t => { heard.push(t); } : async () => { throw new Error('no'); }); document.addEventListener('copy', () => heard.push(getSelection().toString())); })()", allowed)  # fmt: skip
        # By the mouse: browsers let pages copy only where somebody clicked.
        shown.js(
            "document.querySelector('#criterion-queues button.copy').scrollIntoView({block: 'center'})"
        )
        chromium.find_element(
            "css selector", "#criterion-queues button[data-copy=scenario]"
        ).click()
        shown.wait("heard.length > 0")
        heard = shown.js("heard[0]")
        assert heard.strip() == wanted.strip()
        shown.wait("document.getElementById('copied').textContent !== ''")
    shown.js("(() => { document.getElementById('answer-2').value = 'None & <none>.'; })()")
    text = unquote(shown.address("#answers").partition(",")[2])
    assert text.count("\n## ") == len(QUESTIONS)
    assert f"({QUESTIONS[1].strength}): {QUESTIONS[1].text}\n\nNone & <none>.\n" in text
    assert text.count("(no answer yet)") == len(QUESTIONS) - 1


@needs_browser
@pytest.mark.parametrize("kind", KINDS)
def test_contrast(chromium, pages, kind):
    for scheme in ("light", "dark"):
        shown = Page(chromium, pages[kind], scheme=scheme)
        shown.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        faint = shown.faint(
            "h1, h2, h3, h4, p, .verdict, .sign, .section, .strength, .way, .interval, .count, .mark, td, th, figcaption, a, button, dt, dd, label, li, code, summary, textarea"
        )
        assert faint == [], f"text without contrast ({scheme})"


@needs_browser
def test_keyboard_and_words(chromium, pages):
    shown = Page(chromium, pages["card"])
    reached = shown.reached(80)
    assert reached[0] == "A.skip"
    for wanted in ("SUMMARY.undefined", "INPUT.verdict", "INPUT.strength", "INPUT.different", "DIV.scroll", "A.csv figure-csv"):  # fmt: skip
        assert wanted in reached, wanted
    shown.js("document.querySelector('input[name=verdict]').focus()")
    shown.press("SPACE")
    assert "starver" not in shown.articles()
    assert shown.js("[...document.querySelectorAll('input, textarea')].every(i => i.labels.length === 1)")  # fmt: skip
    assert shown.js("[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)")  # fmt: skip
    assert shown.js("[...document.querySelectorAll('[role=region], [role=img]')].every(e => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))")  # fmt: skip
    ids = shown.js("[...document.querySelectorAll('body > :not(#js-plotly-tester) [id]:not(.plot *)')].map(e => e.id)")  # fmt: skip
    assert [i for i, n in Counter(ids).items() if n > 1] == []
    assert shown.js("[...document.querySelectorAll('a[href^=\"#\"]')].every(a => document.getElementById(a.getAttribute('href').slice(1)))")  # fmt: skip
    levels = shown.js("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")  # fmt: skip
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


@needs_browser
def test_on_paper(chromium, pages):
    shown = Page(chromium, pages["card"], scheme="dark")
    assert shown.js("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    shown.media("print", "dark")
    shown.wait("document.querySelector('.plot').layout.font.color === '#1c2126'")
    assert shown.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not any(shown.js("document.querySelector(arguments[0]).checkVisibility()", s) for s in ("nav", "#choose", ".cells", ".up"))  # fmt: skip
    assert shown.js("[...document.querySelectorAll('article .verdict, textarea, .lane')].every(e => e.checkVisibility())")  # fmt: skip
    sheet = shown.do("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.7)
    assert len(sheet["data"]) > 20_000
    shown.do("Emulation.setDeviceMetricsOverride", width=720, height=1000, deviceScaleFactor=1, mobile=False)  # fmt: skip
    assert shown.js("document.documentElement.scrollWidth") == 720, "as wide as a sheet of A4"


@needs_browser
def test_without_javascript(chromium, pages):
    shown = Page(chromium, pages["card"])
    shown.do("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.get(pages["card"].as_uri())
        text = shown.do("Runtime.evaluate", expression="document.body.innerText")["result"]["value"]
    finally:
        shown.do("Emulation.setScriptExecutionDisabled", value=False)
    assert "need JavaScript, which is off" in text
    assert "queueing delay" in text
    assert "starves others" in text


@needs_browser
def test_index_in_the_browser(chromium, pages):
    shown = Page(chromium, pages["index"])
    assert shown.state() == "8 criteria"
    shown.click("input[name=different]")
    assert shown.rows() == ["queues"]
    shown.click("#choose button[type=reset]")
    shown.click("input[name=strength][value=should]")
    assert shown.rows() == ["same", "starver", "raises", "drawn"]
    names = shown.js("[...document.querySelectorAll('.mark')].every(m => /: (fault|failed|worse|trade-off|better|like|unknown|could not be loaded)$/.test(m.textContent.trim()))")  # fmt: skip
    assert names


def test_two_runs_have_no_interval():
    whole = text_of(page.html(scorecard(repeat=2)))
    assert "With 2 runs of each cell means have no intervals (n/a, needs 3 repeats)" in whole


def test_findings_of_the_auditor_are_on_the_page_and_in_the_json():
    grave = audit.Finding(
        "packets-not-conserved", "error", "link <up>", f"lost {HOSTILE}", {"runs": 1}
    )
    card = replace(scorecard(), findings=[grave])
    assert records.to_json(card)["findings"] == [grave.to_json()]
    assert records.to_json(scorecard())["findings"] == []
    part = re.search(r'<section id="findings".*?</section>', page.html(card), re.DOTALL)[0]
    assert "packets-not-conserved" in part
    assert "link &lt;up&gt;" in part
    assert 'id="findings"' not in page.html(scorecard())
