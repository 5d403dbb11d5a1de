# ruff: noqa: F811 (fixtures are arguments)
"""Panels of the explorer as files for papers."""

from __future__ import annotations

import pytest
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from test_explore_page import chromium, link, missing, page  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.skipif(missing is not None, reason=f"no browser: {missing}"),
    pytest.mark.xdist_group("explorer"),
]


def test_a_panel_is_saved_for_a_paper(page, chromium):
    panel = page.find("[data-metric=queue]")
    page.find("[data-metric=queue] .papers summary").click()
    Select(page.find("[data-metric=queue] .papers select")).select_by_value("two-columns")
    page.find('[aria-label="Queueing delay as SVG"]').click()
    file = chromium.saved / "queue.svg"
    WebDriverWait(chromium, 30).until(
        lambda _: file.exists() and file.read_bytes().endswith(b"</svg>\n")
    )
    # 7.16 inches of 72 points.
    assert 'width="515.52pt"' in file.read_text(encoding="utf-8")
    page.after(
        lambda: page.find("#text").click() or page.type(page.text().replace("5Mbit/s", "4Mbit/s"))
    )
    assert panel.find_elements("css selector", ".papers"), "it stays when the panel is drawn again"
