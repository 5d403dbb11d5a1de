"""Reports in headless Chromium: drawn, filtered, sorted, on a phone, on paper, without a network."""

from __future__ import annotations

import csv
import io
import itertools
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
import screenshots
from gargalo import reporting
from reports import Shown, browser, browser_missing, small_sweep, study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

missing = browser_missing()
pytestmark = pytest.mark.skipif(missing is not None, reason=f"no browser: {missing}")

KINDS = ("study", "sweep")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    small_sweep(root / "store")
    reports = {
        "study": study(),
        "sweep": reporting.report_of_sweep(root / "store"),
    }
    return {name: reporting.write(r, root / f"{name}.html") for name, r in reports.items()}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    driver = browser()
    yield driver
    driver.quit()


class Page(Shown):
    """A report in the browser."""

    def choose(self, name: str, *values: str) -> None:
        self.js(
            """(() => { for (const i of document.querySelectorAll(`input[name=${arguments[0]}]`))
                 if (i.checked !== arguments[1].includes(i.value)) i.click(); })()""",
            name,
            values,
        )

    def drawn(self) -> list[list[str]]:
        """Names of the traces that each figure shows."""
        return self.js(
            "[...document.querySelectorAll('.plot')].map(p => p.hidden || p.closest('[hidden]') ? [] : "
            "p._fullData.filter(t => t.visible === true).map(t => t.name))"
        )

    def rows(self, table: int) -> list[list[str]]:
        return self.js(
            "[...document.querySelectorAll('#table-' + arguments[0] + ' tbody tr')].filter(r => r.checkVisibility())"
            ".map(r => [...r.cells].map(c => c.innerText.trim()))",
            table,
        )

    def csv(self, selector: str) -> list[list[str]]:
        self.js("document.querySelector(arguments[0]).dispatchEvent(new Event('focus'))", selector)
        address = self.js("document.querySelector(arguments[0]).href", selector)
        head, _, text = address.partition(",")
        assert head == "data:text/csv;charset=utf-8"
        return list(csv.reader(io.StringIO(unquote(text))))

    def sort(self, table: int, column: int) -> str:
        return self.js(
            "(() => { const h = document.querySelectorAll('#table-' + arguments[0] + ' thead th')[arguments[1]];"
            "h.querySelector('button').click(); return h.getAttribute('aria-sort'); })()",
            table,
            column,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_without_errors_or_requests(chromium, pages, kind):
    page = Page(chromium, pages[kind])
    sizes = page.js(
        """[...document.querySelectorAll('.plot')].map(p => {
             const marks = [...p.querySelectorAll('.plot .trace path, .plot .points path, .plot .js-line, .heatmaplayer image')];
             const boxes = marks.map(m => m.getBoundingClientRect());
             return [p.querySelector('svg.main-svg').getBoundingClientRect().width,
                     boxes.filter(b => b.width + b.height > 1).length]; })"""
    )
    assert len(sizes) >= 4
    for width, marks in sizes:
        assert width > 300
        assert marks > 0
    console = [entry for entry in chromium.get_log("browser") if entry["level"] != "DEBUG"]
    assert console == []
    assert page.requested() == [pages[kind].as_uri()]
    assert page.js("performance.getEntriesByType('resource').length") == 0


def test_algorithms_look_alike_everywhere(chromium, pages):
    page = Page(chromium, pages["study"])
    seen = page.js(
        """[...document.querySelectorAll('.plot')].flatMap(p => p._fullData.filter(t => t.type !== 'heatmap')
             .map(t => [t.legendgroup || t.name, t.type === 'bar' ? t.marker.color : t.line.color]))"""
    )
    colours = {name: {c for n, c in seen if n == name} for name, _ in seen}
    assert set(colours) == {"bbr", "cubic", "reno"}
    assert all(len(c) == 1 for c in colours.values())
    assert len(set.union(*colours.values())) == 3
    swatch = page.js("document.querySelector('.chip .swatch line').getAttribute('stroke')")
    assert {swatch} == colours["bbr"]


def test_filters(chromium, pages):
    page = Page(chromium, pages["study"])
    assert page.drawn()[:3] == [["bbr", "cubic", "reno"]] * 3
    page.choose("algorithm", "cubic", "reno")
    assert page.drawn()[:3] == [["cubic", "reno"]] * 3
    assert len(page.drawn()[3]) == 1, "a figure of no algorithm stays"
    assert [r[0] for r in page.rows(0)] == ["cubic", "reno"]
    assert page.js("document.querySelector('#table-1 .rows').textContent") == "80 of 120 rows"
    assert "2 of 3 shown" in page.js("document.getElementById('filter-state').textContent")
    page.choose("algorithm")
    assert page.js("document.querySelector('#figure-0 .nothing').checkVisibility()")
    page.js("document.querySelector('[data-filter=algorithm] [data-set=all]').click()")
    assert page.drawn()[:3] == [["bbr", "cubic", "reno"]] * 3
    page.choose("group", "parking lot")
    assert [bool(d) for d in page.drawn()] == [False, False, True, True]
    assert page.rows(0) == [], "its section is not chosen"
    assert page.rows(1), "a table of no section stays"
    page.choose("group", "parking lot", "dumbbell")
    width = page.js(
        "document.querySelector('#figure-0 svg.main-svg').getBoundingClientRect().width"
    )
    assert width > 300, "drawn again at its size"


def test_legend_and_filter_together(chromium, pages):
    page = Page(chromium, pages["study"])
    page.js("Plotly.restyle(document.querySelector('.plot'), {visible: 'legendonly'}, [1])")
    page.choose("algorithm", "cubic", "reno")
    assert page.drawn()[0] == ["reno"], "what the legend hid stays hidden"


def test_tables_sort_and_search(chromium, pages):
    page = Page(chromium, pages["study"])
    assert page.sort(0, 2) == "ascending"
    assert [r[0] for r in page.rows(0)] == ["bbr", "reno", "cubic"], "a missing value is last"
    assert page.sort(0, 2) == "descending"
    assert [r[0] for r in page.rows(0)] == ["reno", "bbr", "cubic"]
    assert page.sort(0, 0) == "ascending"
    assert [r[0] for r in page.rows(0)] == ["bbr", "cubic", "reno"]
    assert page.js("document.querySelectorAll('#table-0 [aria-sort]').length") == 1
    assert len(page.rows(1)) == 50
    page.sort(1, 1)
    page.sort(1, 1)
    assert page.rows(1)[0][1] == "119", "of all rows, not of those shown"
    assert page.js("document.querySelector('#table-1 .more').textContent") == "show all 120 rows"
    page.js("document.querySelector('#table-1 .more').click()")
    assert len(page.rows(1)) == 120
    page.js(
        "(() => { const s = document.querySelector('#table-1 .search'); s.value = 'CUBIC'; "
        "s.dispatchEvent(new Event('input')); })()"
    )
    assert len(page.rows(1)) == 40


def test_csv(chromium, pages):
    page = Page(chromium, pages["study"])
    rows = page.csv("#table-0 .table-csv")
    assert rows[0] == [
        "congestion",
        "fairness",
        "goodput_bps",
        "goodput_bps_low",
        "goodput_bps_high",
        "remark",
    ]
    assert rows[1] == ["bbr", "very good", "9000000", "8000000", "10000000", "a, b"]
    assert rows[2] == ["cubic", "regular", "", "", "", 'say "x"']
    page.choose("algorithm", "reno")
    assert len(page.csv("#table-0 .table-csv")) == 2, "what is shown"
    figure = page.csv("#figure-0 .figure-csv")
    assert figure[0][:2] == ["series", "x"]
    assert [r[:3] for r in figure[1:]] == [
        ["reno", "1", "1"],
        ["reno", "2", "4"],
        ["reno", "4", "4"],
    ]


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("kind", KINDS)
def test_no_page_is_wider_than_its_screen(chromium, pages, kind, width):
    Page(chromium, pages[kind], width=width)
    assert screenshots.overflow(chromium) == []


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_phone(chromium, pages, kind):
    page = Page(chromium, pages[kind], width=360)
    assert page.js("document.documentElement.scrollWidth") == 360
    beyond = page.js(
        """[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !e.closest('.scroll, .plot, .skip, #js-plotly-tester'))
             .filter(e => e.getBoundingClientRect().right > 361 || (e.getBoundingClientRect().left < -1 && !e.closest('thead')))
             .map(e => e.tagName + '.' + e.className)"""
    )
    assert beyond == []
    inner = page.js(
        "[...document.querySelectorAll('.scroll')].map(e => [e.clientWidth, e.scrollWidth, "
        "getComputedStyle(e).overflowX])"
    )
    assert all(client <= 360 and overflow == "auto" for client, _, overflow in inner)
    if kind == "sweep":
        assert any(scroll > client for client, scroll, _ in inner), "wide tables scroll inside"
    plots = page.js(
        "[...document.querySelectorAll('.plot svg.main-svg')].map(s => s.getBoundingClientRect().width)"
    )
    assert all(200 < w <= 360 for w in plots)
    # A legend never lies on the title of an axis.
    lying = page.js(
        """[...document.querySelectorAll('.plot')].filter(p => {
             const a = p.querySelector('.legend')?.getBoundingClientRect(), b = p.querySelector('.xtitle')?.getBoundingClientRect();
             return a && b && a.top < b.bottom - 2; }).length"""
    )
    assert lying == 0


def test_on_paper(chromium, pages):
    page = Page(chromium, pages["study"], scheme="dark")
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    page.media("print", "dark")
    page.wait("document.querySelector('.plot').layout.font.color === '#1c2126'")
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.js("[...document.querySelectorAll('#verdicts .verdict')].map(v => "
        "v.checkVisibility() && v.getBoundingClientRect().width > 20)") == [True] * 3  # fmt: skip
    printed = page.js("getComputedStyle(document.querySelector('.verdict')).printColorAdjust")
    assert printed == "exact"
    hidden = ("nav", "#filters", ".tools", ".more")
    assert not any(
        page.js("document.querySelector(arguments[0]).checkVisibility()", s) for s in hidden
    )
    sheet = page.do("Page.printToPDF", printBackground=False)["data"]
    assert len(sheet) > 20_000


def test_dark_and_light(chromium, pages):
    page = Page(chromium, pages["study"], scheme="dark")
    assert page.js("document.querySelector('.plot').layout.font.color") == "#e6e9ec"
    page.media("", "light")
    page.wait("document.querySelector('.plot').layout.font.color === '#1c2126'")
    for scheme in ("light", "dark"):
        page.media("", scheme)
        faint = page.faint(
            "h1, p, .verdict, td, th, figcaption, .rating, a, button, dt, dd, label, .interval, .expected"
        )
        assert faint == [], f"text without contrast ({scheme})"


def test_keyboard_and_words(chromium, pages):
    page = Page(chromium, pages["study"])
    reached = page.reached(60)
    assert reached[0] == "A.skip"
    for wanted in (
        "INPUT.algorithm",
        "INPUT.group",
        "A.csv figure-csv",
        "INPUT.search",
        "DIV.scroll",
        "BUTTON.sort",
    ):
        assert wanted in reached
    page.js("document.querySelector('input[name=algorithm]').focus()")
    page.press("SPACE")
    assert page.drawn()[0] == ["cubic", "reno"]
    words = page.js(
        "[...document.querySelectorAll('.plot')].map(p => p.getAttribute('aria-label'))"
    )
    assert words[0] == "Three lines cross."
    assert words[1] == "Bars. One each."
    assert page.js(
        "[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)"
    )
    assert page.js("[...document.querySelectorAll('input')].every(i => i.labels.length === 1)")
    levels = page.js("[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_without_javascript(chromium, pages):
    text = Page(chromium, pages["study"]).text_without_javascript(pages["study"])
    assert "need JavaScript, which is off" in text
    assert "✗ C contradicted" in text
    assert "119" in text, "tables are whole"
