# ruff: noqa: F811 (fixtures are arguments)
"""Panels of the explorer as files for papers."""

from __future__ import annotations

import pytest
from test_explore_page import driver, link, page, saved  # noqa: F401 (fixtures)

pytestmark = pytest.mark.xdist_group("explorer")


def test_a_panel_is_saved_for_a_paper(page, driver):
    panel = page.find("[data-metric=queue]")
    page.find("[data-metric=queue] .papers summary").click()
    page.choose(page.find("[data-metric=queue] .papers select"), "two-columns")
    page.find('[aria-label="Queueing delay as SVG"]').click()
    file = saved(driver, "queue.svg")
    # 7.16 inches of 72 points.
    assert 'width="515.52pt"' in file.read_text(encoding="utf-8")
    page.after(
        lambda: page.find("#text").click() or page.type(page.text().replace("5Mbit/s", "4Mbit/s"))
    )
    held = page.do("return arguments[0].querySelector('.papers') !== null", panel)
    assert held, "it stays when the panel is drawn again"
