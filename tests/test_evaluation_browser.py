"""Scorecards as pages: what a browser makes of them."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from gargalo.evaluation import (
    PROFILES,
    QUESTIONS,
    page,
)
from gargalo.evaluation.running import Scorecard
from reports import Shown, browser, browser_missing
from scorecards import (
    HOSTILE,
    REFERENCES,
    TRACE,
    cards,
    scenarios,
    scorecard,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

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
            "[...document.querySelectorAll('article[data-item]')].filter(e => "
            "e.checkVisibility()).map(e => e.id.slice(10))"
        )

    def rows(self) -> list[str]:
        return self.js(
            "[...document.querySelectorAll('tr[data-item]')].filter(e => "
            "e.checkVisibility()).map(e => e.querySelector('th').innerText.split('\\n')[0].toLowerCase())"
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
            "[...document.querySelectorAll('.plot')].map(p => "
            "[p.querySelector('svg.main-svg').getBoundingClientRect().width, "
            "[...p.querySelectorAll('.plot .points path, .plot .point path')].filter(m => "
            "m.getBoundingClientRect().width > 1).length])"
        )
        assert len(sizes) == 5
        assert all(width > 300 and marks > 0 for width, marks in sizes)
        dots = shown.js("[...document.querySelectorAll('.track')].map(t => "
            "[...t.querySelectorAll('path')].filter(p => p.getBoundingClientRect().width > 4).length)")  # fmt: skip
        # On an axis of numbers all stand where they belong.
        places = shown.js(
            "[...document.querySelectorAll('#criterion-queues .plot .xy .trace.scatter')].map(t => "
            "[...t.querySelectorAll('.points path')].map(p => "
            "Math.round(p.getBoundingClientRect().x + p.getBoundingClientRect().width / 2)))"
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
    assert (
        shown.articles()
        == shown.rows()
        == ["same", "starver", "short", "raises", "unmeasured", "probes"]
    )
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
    figures = (
        "[...document.querySelectorAll('#criterion-queues [data-figure]')].filter(e => "
        "e.checkVisibility()).map(e => e.dataset.figure).filter(f => isNaN(f))"
    )
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
    shown.do(
        "Emulation.setDeviceMetricsOverride",
        width=800,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    shown.click("input[name=verdict][value=trade-off]")
    shown.wait(
        "(() => { const p = document.querySelector('#criterion-queues .plot'); const w = "
        "p.querySelector('svg.main-svg').getBoundingClientRect().width; return w > 300 && w <= p.clientWidth + 1; })()"
    )


@needs_browser
@pytest.mark.parametrize("width", [320, 360, 375, 768, 1280])
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
        "[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility()).map(e => "
        "[e.clientWidth, e.scrollWidth, getComputedStyle(e).overflowX])"
    )
    assert all(client <= width and overflow == "auto" for client, _, overflow in inner)
    if kind == "card" and width == 320:
        assert any(scroll > client for client, scroll, _ in inner), "wide tables scroll inside"
        right = shown.js("[...document.querySelectorAll('table.figures td.own')].map(e => "
            "e.getBoundingClientRect().right)")  # fmt: skip
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
    assert (
        shown.js("document.querySelector('#criterion-queues a.save').download")
        == "queues-buffer_bdp=1.0_n=1.toml"
    )
    shown.js("(() => { document.querySelector('#criterion-queues .cells').open = true; })()")
    for allowed in ("granted", "denied"):
        shown.js(
            "(() => { window.heard = []; navigator.clipboard && "
            "(navigator.clipboard.writeText = arguments[0] === 'granted' ? async t => { "
            "heard.push(t); } : async () => { throw new Error('no'); }); "
            "document.addEventListener('copy', () => heard.push(getSelection().toString())); })()",
            allowed,
        )
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
            "h1, h2, h3, h4, p, .verdict, .sign, .section, .strength, .way, .interval, .count, "
            ".mark, td, th, figcaption, a, button, dt, dd, label, li, code, summary, textarea"
        )
        assert faint == [], f"text without contrast ({scheme})"


@needs_browser
def test_keyboard_and_words(chromium, pages):
    shown = Page(chromium, pages["card"])
    reached = shown.reached(80)
    assert reached[0] == "A.skip"
    for wanted in ("SUMMARY.undefined", "INPUT.verdict", "INPUT.strength", "INPUT.different", "DIV.scroll", "A.csv "
        "figure-csv"):  # fmt: skip
        assert wanted in reached, wanted
    shown.js("document.querySelector('input[name=verdict]').focus()")
    shown.press("SPACE")
    assert "starver" not in shown.articles()
    assert shown.js("[...document.querySelectorAll('input, textarea')].every(i => i.labels.length === 1)")  # fmt: skip
    assert shown.js("[...document.querySelectorAll('table')].every(t => t.caption && "
        "t.caption.textContent)")  # fmt: skip
    assert shown.js("[...document.querySelectorAll('[role=region], [role=img]')].every(e => "
        "e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))")  # fmt: skip
    ids = shown.js("[...document.querySelectorAll('body > :not(#js-plotly-tester) [id]:not(.plot "
        "*)')].map(e => e.id)")  # fmt: skip
    assert [i for i, n in Counter(ids).items() if n > 1] == []
    assert shown.js("[...document.querySelectorAll('a[href^=\"#\"]')].every(a => "
        "document.getElementById(a.getAttribute('href').slice(1)))")  # fmt: skip
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
    assert not any(
        shown.js("document.querySelector(arguments[0]).checkVisibility()", s)
        for s in ("nav", "#choose", ".cells", ".up")
    )
    assert shown.js("[...document.querySelectorAll('article .verdict, textarea, .lane')].every(e "
        "=> e.checkVisibility())")  # fmt: skip
    sheet = shown.do("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.7)
    assert len(sheet["data"]) > 20_000
    shown.do(
        "Emulation.setDeviceMetricsOverride",
        width=720,
        height=1000,
        deviceScaleFactor=1,
        mobile=False,
    )
    assert shown.js("document.documentElement.scrollWidth") == 720, "as wide as a sheet of A4"


@needs_browser
def test_without_javascript(chromium, pages):
    text = Page(chromium, pages["card"]).text_without_javascript(pages["card"])
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
    names = shown.js("[...document.querySelectorAll('.mark')].every(m => /: "
        "(fault|failed|worse|trade-off|better|like|unknown|could not be "
        "loaded)$/.test(m.textContent.trim()))")  # fmt: skip
    assert names
