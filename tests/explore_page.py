"""The page of the explorer as tests use it, in Chromium or in Firefox."""

from __future__ import annotations

from typing import Any

from firefox import Firefox
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait


class Page:
    """The page in the browser."""

    def __init__(self, driver: Any, link: str, path: str = "") -> None:
        self.driver = driver
        self.link = link
        driver.get("about:blank")
        driver.get(link + path)
        self.wait("return document.body.dataset.runs === '1'")

    def do(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def wait(self, script: str) -> None:
        WebDriverWait(self.driver, 30, 0.02).until(lambda d: d.execute_script(script), script)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def runs(self) -> int:
        return int(self.do("return document.body.dataset.runs"))

    def after(self, act: Any) -> None:
        """Do something, and wait for the run that it causes."""
        had = self.runs()
        act()
        self.wait(f"return Number(document.body.dataset.runs) > {had}")
        self.wait(
            "return document.getElementById('status').textContent.startsWith('running') === false"
        )

    def place(self, *keys: str | int) -> Any:
        return self.find(f'[data-place="/{"/".join(map(str, keys))}"]')

    def text(self) -> str:
        return str(self.find("#text").get_property("value"))

    def hash(self) -> str:
        return str(self.find("#findings").get_attribute("data-hash"))

    def type(self, text: str) -> None:
        self.do(
            "const t = document.getElementById('text'); t.value = arguments[0];"
            "t.dispatchEvent(new Event('input'))",
            text,
        )

    def problems(self) -> list[str]:
        """What the console has told but remarks."""
        remarks = ("INFO", "DEBUG")
        return [e["message"] for e in self.driver.get_log("browser") if e["level"] not in remarks]

    def press(self, keys: str) -> None:
        """Press keys where no control has the focus."""
        self.do("document.activeElement.blur()")
        self.find("body").send_keys(keys)

    def choose(self, menu: Any, value: str) -> None:
        """Choose an entry of a menu."""
        if isinstance(self.driver, Firefox):
            menu.execute(
                "arguments[0].value = arguments[1];"
                "arguments[0].dispatchEvent(new Event('change', { bubbles: true }))",
                value,
            )
        else:
            Select(menu).select_by_value(value)

    def point(self, element: Any, drag_px: int = 0) -> None:
        """Put the pointer on an element's middle; with a distance, drag from there to the right."""
        if isinstance(self.driver, Firefox):
            button = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
            move = {"type": "pointerMove", "x": drag_px, "y": 0, "origin": "pointer"}
            drag = (button[0], move, button[1]) if drag_px else ()
            self.driver.act(element, *drag)
            return
        acts = ActionChains(self.driver, 0).move_to_element(element)
        if drag_px:
            acts.click_and_hold().move_by_offset(drag_px, 0).release()
        acts.perform()
