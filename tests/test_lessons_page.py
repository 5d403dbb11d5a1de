"""A lesson as a reader follows it in the browser: with the mouse, and with keys alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import LONG
from explore_page import Page
from explore_server import served
from gargalo.exploring.lessons import lesson, names
from reports import LIGHT, browser, browser_missing
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome

missing = browser_missing()
pytestmark = [
    pytest.mark.skipif(missing is not None, reason=f"no browser: {missing}"),
    pytest.mark.xdist_group("explorer"),
]
FOLLOWED = names() if LONG else ["head-of-line"]
"""Lessons whose every step is shown; their runs and explanations are tested without a browser."""


class Learning(Page):
    """The page with a lesson, which runs nothing before the first answer."""

    def __init__(self, driver: Chrome, link: str) -> None:
        self.driver, self.link = driver, link
        driver.get("about:blank")
        driver.get(link)
        self.wait("return !document.getElementById('lesson').hidden")

    def shown(self, number: int) -> None:
        self.wait(f"return document.getElementById('lesson').dataset.shown === '{number}'")

    def told(self) -> str:
        return self.find("#lesson [role=status]").text

    def lines(self) -> list[str]:
        found = self.driver.find_elements(By.CSS_SELECTOR, "#lesson [role=status] p")
        return [line.text for line in found]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    driver = browser()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    with served("--lesson", "bufferbloat") as found:
        yield found


@pytest.mark.parametrize("name", FOLLOWED)
def test_every_step_runs_its_scenario_and_tells_what_was_measured(name, chromium, tmp_path):
    chromium.set_window_size(1280, 900)
    of = lesson(name)
    with served("--lesson", name, folder=tmp_path) as link:
        page = Learning(chromium, link)
        assert page.do("return document.querySelectorAll('.panel').length") == 0
        assert of.title in page.find("#lesson").text
        for n, step in enumerate(of.steps, 1):
            assert step.question.replace("`", "") in page.find("#lesson").text
            assert page.told() == ""
            if step.choices:
                assert not page.find("#lesson .answer").is_enabled()
                page.find(f"#lesson input[value={step.right}]").click()
            page.find("#lesson .answer").click()
            page.shown(n)
            if step.choices:
                assert page.lines()[0] == f"Yes: {step.right}."
            told = [p.replace("`", "") for p in of.explanation(n)]
            assert page.lines()[-len(told) :] == told
            assert page.text() == step.text
            assert page.hash() == of.run(n).info["results_hash"]
            panels = page.do(
                "return [...document.querySelectorAll('.panel')].map(p => p.dataset.metric)"
            )
            assert panels == list(step.panels)
            assert page.find("#instant").text == f"{step.at_s:.3f} s"
            assert page.find("#pin").get_attribute("aria-pressed") == str(step.ghost).lower()
            assert page.find("#errors").text == ""
            if n < len(of.steps):
                page.find("#lesson .next").click()
        choices = sum(s.right is not None for s in of.steps)
        assert f"{choices} of {choices} right" in page.find("#lesson .end").text
        assert page.problems() == []


def test_keys_are_enough_and_a_knob_does_not_disturb_the_lesson(chromium, link):
    of = lesson("bufferbloat")
    page = Learning(chromium, link)

    def focused(selector: str) -> bool:
        return bool(page.do("return document.activeElement.matches(arguments[0])", selector))

    def press(*keys: str) -> None:
        page.do("return document.activeElement").send_keys(*keys)

    page.do("document.querySelector('#lesson input').focus()")
    press(Keys.SPACE)
    press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.shown(1)
    assert page.lines()[0] == "No, not c: b."
    assert focused("#lesson .next")
    # The reader turns a knob; the next step begins with the lesson's own scenario nevertheless.
    page.after(lambda: page.type(page.text().replace("10Mbit/s", "4Mbit/s", 1)))
    page.do("document.querySelector('#lesson .next').focus()")
    press(Keys.ENTER)
    assert focused("#lesson input")
    press(Keys.SPACE)
    press(Keys.ARROW_UP, Keys.ENTER)
    page.shown(2)
    assert page.lines()[0] == "Yes: c."
    assert page.text() == of.steps[1].text
    page.find("#undo").click()
    page.wait("return document.getElementById('text').value.includes('4Mbit/s')")
    # Back: the answer is still there, and so is what it showed.
    page.find("#lesson .back").click()
    page.shown(1)
    assert page.lines()[0] == "No, not c: b."
    assert page.text() == of.steps[0].text
    assert page.problems() == []


def test_a_controller_is_edited_beside_the_page(chromium, tmp_path):
    with served("--lesson", "own-controller", folder=tmp_path) as link:
        page = Learning(chromium, link)
        page.find("#lesson input").click()
        page.find("#lesson .answer").click()
        page.shown(1)
        first, told = page.hash(), page.told()
        file = tmp_path / "own_controller.py"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("gain=1.0", "gain=3.0"), encoding="utf-8")
        page.after(lambda: page.find("#lesson .again").click())
        assert page.hash() != first
        assert page.told() == told, "the explanation is of the lesson's own"
        file.write_text(text.replace("return self.window", "return 1 / 0"), encoding="utf-8")
        page.find("#lesson .again").click()
        page.wait("return document.body.dataset.errors > 0")
        assert "ZeroDivisionError" in page.find("#errors").text
        assert "own_controller.py:" in page.find("#errors").text
        assert page.problems() == []


def test_the_lesson_fits_a_phone_and_can_be_read(chromium, link):
    page = Learning(chromium, link)
    size = {"width": 360, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.find("#lesson input").click()
        page.find("#lesson .answer").click()
        page.shown(1)
        for scheme in ("light", "dark"):
            chromium.execute_cdp_cmd(
                "Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
            )
            assert page.do("return document.documentElement.scrollWidth") <= 360
            assert page.do(f"return {LIGHT}", "#lesson *") == []
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
