# ruff: noqa: F811 (fixtures are arguments)
"""What happens at an instant, as gestures on the explorer's time axis: keys of the scenario."""

from __future__ import annotations

import pytest
from gargalo.exploring.text import plain
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from test_explore_page import SMALL, Page, driver, link, only_chromium, page  # noqa: F401 (fixtures)

pytestmark = [only_chromium, pytest.mark.xdist_group("explorer")]
LINK = ("topology", "simple", "link")


def link_of(page: Page) -> dict[str, object]:
    found = plain(page.text())
    for key in LINK:
        found = found[key]
    return dict(found)


def at(page: Page, time: float) -> None:
    page.do(
        "const t = document.getElementById('time'); t.value = arguments[0];"
        "t.dispatchEvent(new Event('input'));"
        # Keys are the page's, not the slider's.
        "document.activeElement.blur()",
        time,
    )


def press(page: Page, key: str) -> None:
    page.after(lambda: ActionChains(page.driver).send_keys(key).perform())


def test_keys_make_acts_at_the_cursor_and_undo_takes_them_back(page):
    at(page, 1)
    press(page, "r")
    assert link_of(page)["rate"] == {"steps": [["0s", "5Mbit/s"], ["1s", "2.5Mbit/s"]]}
    at(page, 2)
    press(page, "r")
    assert link_of(page)["rate"]["steps"][2] == ["2s", "1.25Mbit/s"]
    press(page, "o")
    assert link_of(page)["outages"] == [["2s", "2.15s"]]
    press(page, "x")
    press(page, "f")
    flows = plain(page.text())["flows"]
    assert flows[0]["stop"] == "2s"
    assert "stop" not in flows[1]
    assert flows[1]["start"] == "2s"
    assert page.do("return document.querySelectorAll('.act:not([hidden])').length") == 6
    while page.find("#undo").is_enabled():
        page.after(lambda: page.find("#undo").click())
    assert page.text() == SMALL
    assert page.do("return document.querySelectorAll('.act').length") == 0


def test_a_mark_is_dragged_moved_by_keys_and_removed(page):
    changed = SMALL.replace(
        '"5Mbit/s"', '{ steps = [["0s", "5Mbit/s"], ["1s", "2Mbit/s"]] } # kept'
    )
    changed = changed.replace('"10ms"', '"10ms", outages = [["2s", "2.2s"]]')
    changed = changed.replace(" # kept", "")
    page.after(lambda: page.type(changed))
    step = page.find(".act.rate")
    assert "rate of link: 2Mbit/s" in step.accessible_name
    width = page.find("[data-metric=rtt] .u-over").size["width"]
    page.after(
        lambda: ActionChains(page.driver).drag_and_drop_by_offset(step, width // 6, 0).perform()
    )
    moved = link_of(page)["rate"]["steps"][1][0]
    assert float(moved[:-1]) == pytest.approx(1.5, abs=0.05)
    # An end of an outage stays behind its beginning.
    end = page.find(".act.back")
    page.after(
        lambda: ActionChains(page.driver).drag_and_drop_by_offset(end, -width // 2, 0).perform()
    )
    begin, until = (float(t[:-1]) for t in link_of(page)["outages"][0])
    assert begin == 2
    assert begin < until < 2.1
    page.after(lambda: page.find(".act.rate").send_keys(Keys.ARROW_RIGHT))
    assert float(link_of(page)["rate"]["steps"][1][0][:-1]) > float(moved[:-1])
    assert page.do("return document.activeElement.dataset.act") == "/".join(
        [*LINK, "rate/steps/1/0"]
    )
    page.after(lambda: page.find(".act.rate").send_keys(Keys.DELETE))
    assert link_of(page)["rate"] == {"steps": [["0s", "5Mbit/s"]]}
    page.after(lambda: page.find(".act.outage").send_keys(Keys.DELETE))
    assert link_of(page)["outages"] == []


def test_of_several_links_a_menu_asks_which(page):
    page.after(lambda: Select(page.find("#presets")).select_by_value("mptcp"))
    at(page, 4)
    page.find("body").send_keys("r")
    menu = page.find("#act")
    assert page.do("return document.activeElement.id") == "act"
    offered = [o.text for o in Select(menu).options if o.text.startswith("half the rate")]
    assert len(offered) > 1
    assert len(Select(menu).options) == len(offered) + 1, "only what the key is for"
    page.after(lambda: Select(menu).select_by_visible_text(offered[1]))
    assert '"4s"' in page.text()
    assert page.find("#errors").text == ""
