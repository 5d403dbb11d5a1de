"""Scorecards as pages: what they say. Nothing is simulated for it."""

from __future__ import annotations

import base64
import html
import io
import re
import sys
import zipfile
from collections import Counter
from dataclasses import replace

import gargalo
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
)
from gargalo.evaluation.model import Plan
from gargalo.evaluation.running import Scorecard
from gargalo.running import resolve
from gargalo.scenarios.scenario import to_toml
from reports import unpacked, without_library
from scorecards import (
    HOSTILE,
    REFERENCES,
    TRACE,
    article,
    cards,
    scenarios,
    scorecard,
    text_of,
)

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
    assert unpacked(whole, "plotly").count("* plotly.js v") == 1
    own = without_library(whole)
    assert len(own) < 160_000
    assert not re.search(
        r"<(link|iframe|img|object)\b|\bsrc=\"|@import|url\(", own.replace(html.escape(HOSTILE), "")
    )
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
    assert f"gargalo {_core.__engine__}" in facts
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
    assert "(3 runs)" in text_of(
        article(
            page.html(replace(scorecard(), profile=replace(PROFILES["quick"], repeat=5))), "queues"
        )
    )


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
    assert (
        cells.named("rate_bps=1000000.0 rtt_s=0.04 loss=1e-05")
        == "rate 1 Mbit/s, round-trip time 40 ms, loss = 0.000010"
    )
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
    assert 'id="plotly"' not in whole
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


def test_index(tmp_path):
    path = page.write_index(cards(), tmp_path / "index.html")
    whole = path.read_text(encoding="utf-8")
    assert page.write_index(cards(), tmp_path / "again.html").read_bytes() == path.read_bytes()
    assert len(whole) < 60_000
    rows = re.findall(r"<tr data-item.*?</tr>", whole, re.DOTALL)
    assert len(rows) == 8
    starver = next(r for r in rows if "Starver" in r)
    links = re.findall(r'href="(.*?)"', starver)
    assert links == [
        "vegas-quick.html#criterion-starver",
        "copa-quick.html#criterion-starver",
        "mine-quick.html#broken",
    ]
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
