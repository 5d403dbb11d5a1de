"""What people see on a terminal of 80 columns and on screens of 375 and 1280 pixels.

It fits, and the documentation shows it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import screenshots
from conftest import LONG, ROOT
from reports import browser, browser_missing
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from test_docs import lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

missing = browser_missing()
needs_browser = pytest.mark.skipif(missing is not None, reason=f"no browser: {missing}")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("name", screenshots.TERMINALS)
def test_a_picture_of_a_terminal_is_what_it_shows(name, tmp_path):
    shot = screenshots.TERMINALS[name]
    shown = screenshots.shoot_terminal(shot, tmp_path)
    committed = (screenshots.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    drawn = screenshots.lines_of(screenshots.svg(name, shot.line, shown))
    again = f"docs/images/{name}.svg shows something else: make pictures"
    assert screenshots.same(drawn, screenshots.lines_of(committed)), again
    words = " ".join(drawn).split()
    assert words[0] == "$"
    assert set(screenshots.plain(shown).split()) <= set(words), "all of it is in the picture"
    assert re.findall(r"https?://[^\"]*", committed) == ["http://www.w3.org/2000/svg"]
    page = ROOT / "docs" / f"{shot.page}.md"
    assert f"](../images/{name}.svg)" in page.read_text(encoding="utf-8")
    if shot.code == 0:
        assert shot.line in [" ".join(line.split()) for line in lines(page)]


def test_what_is_too_wide_or_different_is_noticed():
    assert screenshots.wider("a" * 80 + "  \n" + "b" * 81, 80) == ["b" * 81]
    assert screenshots.same(["a  b", "1 packets/s) x"], ["a b", "2 packets/s) x"])
    assert not screenshots.same(["a b"], ["a c"])


# The site is built once, by one worker.
of_site = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation as a site."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
        timeout=300,
    )
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    driver = browser()
    yield driver
    driver.quit()


def chosen(pages: list[Path], all_of_them: bool = LONG) -> list[Path]:
    """Return all pages, or of those that are alike, of algorithms and of faults, every fourth."""
    alike = [p for p in pages if p.parent.parent.name in ("congestion", "faults", "scorecards")]
    return [p for p in pages if all_of_them or p not in alike or alike.index(p) % 4 == 0]


@of_site
@needs_browser
def test_no_page_of_the_documentation_is_wider_than_a_screen(site, chromium):
    every = sorted(p for p in site.rglob("*.html") if p.name != "404.html")
    assert len(every) > 80
    assert chosen(every, all_of_them=True) == every
    pages = chosen(every)
    assert len(pages) > 40
    assert {p.relative_to(site).parts[0] for p in pages} == {p.relative_to(site).parts[0] for p in every}  # fmt: skip
    wide = {}
    for page in pages:
        screenshots.show(chromium, page, max(screenshots.SCREENS), 900, drawn=False)
        for width in screenshots.SCREENS:
            screenshots.resize(chromium, width, 900)
            if beyond := screenshots.overflow(chromium):
                wide[str(page.relative_to(site)), width] = beyond
    assert wide == {}
    chromium.get("data:text/html,<body style='margin:0'><p style='width:3000px'>wide")
    assert "P. ends at 3000" in screenshots.overflow(chromium), "the check finds what is wide"


@of_site
@needs_browser
def test_the_front_page_has_a_run_to_play_with(site, chromium):
    screenshots.show(chromium, site / "index.html", 1280, 900, drawn=False)
    frame = chromium.find_element(By.CSS_SELECTOR, "iframe.run")
    chromium.execute_script("arguments[0].scrollIntoView({ behavior: 'instant' })", frame)
    chromium.switch_to.frame(frame)
    try:
        drawn = "return document.querySelectorAll('.panel canvas').length"
        WebDriverWait(chromium, 30, 0.05).until(lambda d: d.execute_script(drawn) > 2)
        over = chromium.find_element(By.CSS_SELECTOR, "[data-metric=goodput] .u-over")
        ActionChains(chromium).move_to_element(over).perform()
        told = chromium.find_element(By.CSS_SELECTOR, "[data-metric=rtt] .legend").text
        assert re.search(r"cubic.*\d ms", told, re.DOTALL)
    finally:
        chromium.switch_to.default_content()


MATRIX = """return (table => {
    const cells = [...table.querySelectorAll('abbr')], box = table.getBoundingClientRect();
    const scrolled = table.closest('.md-typeset__scrollwrap') || table.parentElement;
    return { wide: scrolled.scrollWidth - scrolled.clientWidth, height: box.height, overflow: getComputedStyle(scrolled).overflowX,
             first: getComputedStyle(table.querySelector('td')).position,
             colours: Object.fromEntries(cells.map(e => [e.textContent, getComputedStyle(e).backgroundColor])),
             titles: cells.every(e => e.title === e.className) }; })(document.querySelector('.matrix table'))"""


@of_site
@needs_browser
def test_the_matrix_of_scorecards_fits_a_screen_and_scrolls_within_itself_on_a_phone(
    site, chromium
):
    page = site / "scorecards" / "index.html"
    screenshots.show(chromium, page, 1280, 900, drawn=False)
    found = chromium.execute_script(MATRIX)
    assert found["wide"] <= 0
    assert found["height"] < 700
    assert found["titles"]
    # A sign in each cell, and a colour: alike only for what is alike in its meaning.
    colours = found["colours"]
    assert set(colours) == {"✗", "-", "⇅", "+", "✓", "="}
    assert len(set(colours.values())) == 4
    assert (colours["-"], colours["+"]) == (colours["⇅"], colours["✓"])
    screenshots.show(chromium, page, 375, 900, drawn=False)
    found = chromium.execute_script(MATRIX)
    assert found["wide"] > 100
    assert found["overflow"] == "auto"
    assert found["first"] == "sticky"
