"""The explorer as a person uses it: in a browser, with the mouse and the keyboard."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from conftest import LONG
from explore_page import Page
from explore_server import served
from firefox import Firefox, firefox_missing
from gargalo.exploring.packets import packets
from reports import LIGHT, browser, browser_missing
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.xdist_group("explorer")
SMALL = """\
name = "small"
duration = "3s"
seed = 1
topology.simple.link = { rate = "5Mbit/s", delay = "10ms", queue = { droptail = "30 packets" } }
[[flows]]
label = "one"
from = "client"
to = "server"
transport.tcp.congestion = "cubic"
"""


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("explore") / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    with served(str(file)) as found:
        yield found


MISSING = {"chromium": browser_missing, "firefox": firefox_missing}
PARTIAL = (".crdownload", ".part")
"""Endings of files that are still being saved."""
only_chromium = pytest.mark.parametrize("driver", ["chromium"], indirect=True)


@pytest.fixture(scope="module", params=MISSING)
def driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A browser that saves files in its directory `saved`."""
    if missing := MISSING[request.param]():
        pytest.skip(f"no browser: {missing}")
    folder = tmp_path_factory.mktemp("saved")
    if request.param == "firefox":
        made: Any = Firefox(folder)
    else:
        made = browser()
        made.saved = folder
        to = {"behavior": "allow", "downloadPath": str(folder)}
        made.execute_cdp_cmd("Page.setDownloadBehavior", to)
    yield made
    made.quit()


@pytest.fixture
def page(driver: Any, link: str) -> Iterator[Page]:
    driver.set_window_size(1280, 900)
    made = Page(driver, link)
    yield made
    assert made.problems() == []


def saved(driver: Any, name: str) -> Path:
    """Return a file when the browser has saved it."""
    file: Path = driver.saved / name
    WebDriverWait(driver, 30, 0.02).until(
        lambda _: file.exists() and not [p for p in driver.saved.iterdir() if p.suffix in PARTIAL]
    )
    return file


def test_a_slider_changes_the_text_and_every_curve(page):
    drawn = page.do("return document.querySelector('[data-metric=rtt] canvas').toDataURL()")
    delay = page.place("topology", "simple", "link", "delay")
    slider = page.find('[data-place="slider/topology/simple/link/delay"]')
    page.after(lambda: slider.send_keys(Keys.ARROW_RIGHT * 3))
    page.wait("return document.querySelector('#status').textContent.includes('drawn')")
    assert delay.get_property("value") != "10ms"
    assert f'delay = "{delay.get_property("value")}"' in page.text()
    again = page.do("return document.querySelector('[data-metric=rtt] canvas').toDataURL()")
    assert drawn != again
    page.after(lambda: page.find("#undo").click())
    while page.find("#undo").is_enabled():
        page.after(lambda: page.find("#undo").click())
    assert page.text() == SMALL


def test_a_mistake_is_shown_where_it_is_and_the_pictures_stay(page):
    page.type(SMALL.replace("5Mbit/s", "5Mbit"))
    page.wait("return document.body.dataset.errors > 0")
    told = page.find("#errors").text
    assert "line 4" in told
    assert "^" in told
    assert page.do("return document.querySelectorAll('.panel').length") > 2
    page.after(lambda: page.type(SMALL))
    assert page.find("#errors").text == ""


def test_flows_and_settings_are_added_copied_and_removed(page):
    page.after(lambda: page.find('[aria-label="copy one"]').click())
    assert page.text().count("[[flows]]") == 2
    assert page.do("return document.querySelectorAll('#figures tbody tr').length") == 2
    congestion = page.place("flows", 1, "transport", "tcp", "congestion")
    page.after(lambda: page.choose(congestion, "bbr"))
    assert "bbr" in page.find("#figures").text
    add = page.find('[data-place="add/flows/1"]')
    page.after(lambda: page.choose(add, "start"))
    assert 'start = "0s"' in page.text()
    gain = page.find('[data-place="add/flows/1/transport/tcp/congestion"]')
    page.after(lambda: page.choose(gain, "cwnd_gain"))
    assert "bbr = {cwnd_gain = 2" in page.text().replace(".0", "")
    remove = page.do("return [...document.querySelectorAll('[aria-label^=\"remove one\"]')].at(-1)")
    page.after(lambda: remove.click())
    assert page.text().count("[[flows]]") == 1


def test_the_cursor_tells_values_and_the_story_leads_to_its_instants(page):
    over = page.find("[data-metric=rtt] .u-over")
    page.point(over)
    told = page.find("[data-metric=queue] .legend").text
    assert " ms" in told
    assert page.find("figcaption").text.startswith("At 1.5")
    page.press(Keys.ARROW_RIGHT)
    assert page.find("#instant").text == "1.530 s" or page.find("#instant").text.startswith("1.5")
    sentence = page.find("#story [data-time]:not([data-time='0'])")
    sentence.click()
    at = float(sentence.get_attribute("data-time"))
    assert page.find("#instant").text == f"{at:.3f} s"


def test_a_part_of_the_run_is_zoomed_into_and_left(page):
    over = page.find("[data-metric=rtt] .u-over")
    plots, panels = (
        page.do(f"return document.querySelectorAll('{s}').length") for s in (".u-over", ".panel")
    )
    assert plots == panels > 2
    before = page.do("return document.querySelector('[data-metric=queue] canvas').toDataURL()")
    page.point(over, drag_px=80)
    zoomed = page.do("return document.querySelector('[data-metric=queue] canvas').toDataURL()")
    assert zoomed != before, "every panel has the same time axis"
    page.press("0")
    page.wait("return document.querySelector('[data-metric=queue] canvas').toDataURL() !== ''")
    again = page.do("return document.querySelector('[data-metric=queue] canvas').toDataURL()")
    assert again != zoomed


PING = """\
name = "ping"
duration = "2s"
topology.simple.link = { rate = "5Mbit/s", delay = "10ms", outages = [["450ms", "950ms"], ["1050ms", "2s"]] }
[[flows]]
from = "client"
to = "server"
transport.udp = {}
workload.ping = { interval = "100ms" }
"""
"""The ping of second 1 has no neighbour that was answered."""
COLOURED = """
const panel = document.querySelector("[data-metric=ping]");
const canvas = panel.querySelector("canvas"), inside = panel.querySelector(".u-over").getBoundingClientRect();
const { left, width } = canvas.getBoundingClientRect();
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
return arguments[0].map((share) => {
  const middle = Math.round((inside.left - left + inside.width * share) * canvas.width / width);
  let found = 0;
  for (let y = 0; y < canvas.height; y += 1) {
    for (let x = middle - 3; x <= middle + 3; x += 1) {
      const at = 4 * (y * canvas.width + x);
      const [red, green, blue, alpha] = data.slice(at, at + 4);
      found += alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 80;
    }
  }
  return found;
});
"""
"""How many pixels with the colour of a line the panel of pings has at instants, given as shares of the run."""


def test_a_ping_between_lost_ones_is_a_point(page):
    page.after(lambda: page.type(PING))
    page.wait("return document.querySelector('[data-metric=one-way-delay] canvas') !== null")
    line, gap, point, last_gap = page.do(COLOURED, [0.1, 0.35, 0.5, 0.75])
    assert (gap, last_gap) == (0, 0)
    assert line > 0
    assert point > 0, "the only answer between gaps"
    assert "15 of 21 requests have no answer" in page.find("[data-metric=ping]").text


def test_a_run_is_kept_as_a_ghost_and_the_first_difference_is_marked(page):
    page.find("#pin").click()
    page.after(lambda: page.type(SMALL.replace('"cubic"', '"cubic"\nstop = "1s"')))
    page.find("#differ").click()
    page.wait("return document.getElementById('status').textContent.startsWith('first difference')")
    told = page.find("#status").text
    assert 1.0 <= float(told.split(" at ")[1].split(" s")[0]) <= 1.2, told
    page.find("#pin").click()
    assert not page.find("#differ").is_enabled()


def test_a_link_holds_the_scenario_and_repeats_the_results(page, driver):
    page.after(lambda: page.type(SMALL.replace("5Mbit/s", "3Mbit/s")))
    found = page.hash()
    page.find("#share").click()
    page.wait("return location.hash.startsWith('#s=')")
    fragment = page.do("return location.hash")
    again = Page(driver, page.link.split("?")[0], fragment)
    assert "3Mbit/s" in again.text()
    assert again.hash() == found
    broken = "#s=AAAA"
    driver.get("about:blank")
    driver.get(page.link.split("?")[0] + broken)
    again.wait("return document.body.dataset.errors > 0")
    assert "cannot be read" in again.find("#errors").text
    again.problems()  # Firefox tells of such a stream itself.


def test_a_frozen_page_works_without_a_server(page, driver):
    page.find("#save-page").click()
    file = saved(driver, "small.html")
    found = page.hash()
    driver.get(file.as_uri())
    page.wait("return document.querySelectorAll('.panel').length > 2")
    assert page.hash() == found
    assert page.find("#scenario").get_attribute("textContent") == SMALL
    over = page.find("[data-metric=rtt] .u-over")
    page.point(over)
    assert " ms" in page.find("[data-metric=queue] .legend").text
    if isinstance(driver, Firefox):
        return
    asked = [json.loads(e["message"])["message"] for e in driver.get_log("performance")]
    sent = [
        m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"
    ]
    after = sent[max(i for i, u in enumerate(sent) if u.startswith("file:")) :]
    assert [u for u in after if not u.startswith(("file:", "data:"))] == []


def test_a_packet_is_zoomed_to_and_read(page):
    page.after(lambda: page.type(SMALL.replace("30 packets", "12 packets")))
    page.find("#packets button").click()
    page.wait("return document.body.dataset.packets === '0 3'")
    assert "bytes of the stream" in page.find("#packets h3").text

    def drag(width: int) -> None:
        had = page.do("return document.body.dataset.packets")
        over = page.find("#packets .u-over")
        page.point(over, drag_px=width)
        page.wait(f"return document.body.dataset.packets !== '{had}'")

    drag(40)
    drag(60)
    first, last = map(float, page.do("return document.body.dataset.packets").split())
    assert 0 < last - first < 0.05, "a few round trips of 20 ms"
    following = page.do(
        "return [...document.querySelectorAll('#packets button')].find(b => b.textContent === 'next packet')"
    )
    page.do("arguments[0].scrollIntoView({block: 'center'})", following)
    following.click()
    told = page.find("#packets .packet").text
    words = re.fullmatch(
        r"bytes ([\d,]+) to ([\d,]+), sent ([\d.]+) s;.* arrived ([\d.]+) s .*", told
    )
    assert words, told
    start, end = (int(w.replace(",", "")) for w in words.groups()[:2])
    assert end - start == 1448
    assert first <= float(words[3]) <= last
    assert page.find("#packets .on-way").text.startswith(f"On their way at {words[3]} s.")
    assert page.find("#packets .cursor").is_displayed()
    assert page.do("return document.querySelectorAll('#network .dots circle').length") > 1
    # The same packet by the pointer, and as the engine has it.
    text = page.text()
    (path,) = packets(text, 0, first, last)["paths"]
    assert start in path["segments"]["first"]
    following.click()
    assert page.find("#packets .packet").text != told
    drag(-60)
    page.press("0")
    page.wait("return document.body.dataset.packets === '0 3'")


def test_packets_follow_the_scenario_and_are_in_a_frozen_page(page, driver):
    page.find("#packets button").click()
    page.wait("return document.body.dataset.packets === '0 3'")
    # Another scenario: packets follow.
    page.after(lambda: page.type(SMALL.replace("3s", "2s").replace("small", "seen")))
    page.wait("return document.body.dataset.packets === '0 2'")
    page.find("#save-page").click()
    driver.get(saved(driver, "seen.html").as_uri())
    page.wait("return document.body.dataset.packets === '0 2'")
    assert page.do("return document.querySelector('#packets canvas').checkVisibility()")


def test_the_first_packet_that_differs_is_shown(page):
    page.find("#pin").click()
    page.after(lambda: page.type(SMALL.replace('"cubic"', '"cubic"\nstop = "1s"')))
    page.find("#differ").click()
    page.wait("return document.getElementById('status').textContent.startsWith('first difference')")
    assert re.search(r"bytes [\d,]+ to [\d,]+|FIN|acknowledgement", page.find("#status").text)
    page.find("#differing").click()
    page.wait("return document.body.dataset.packets")
    first, last = map(float, page.do("return document.body.dataset.packets").split())
    # A stopped flow ends the run, so the window may end before the packet that only A has.
    assert 0.9 < first < last < 1.2


@only_chromium
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_can_be_read(page, driver, width, scheme):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        page.wait("return document.querySelectorAll('.panel').length > 2")
        assert page.do("return document.documentElement.scrollWidth") <= width
        assert page.do(f"return {LIGHT}", "body *:not(option):not(text)") == []
        unnamed = page.do(
            "return [...document.querySelectorAll('input,select,button,textarea')].filter(e =>"
            " !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent.trim())"
            ".map(e => e.outerHTML.slice(0, 200))"
        )
        assert unnamed == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CHANGES = """
const [text, from, to, done] = arguments, area = document.getElementById("text");
const runs = () => Number(document.body.dataset.runs || 0);
(async () => {
  for (let i = from; i < to; i++) {
    const had = runs();
    area.value = text.replace("5Mbit/s", `${4 + i % 5}Mbit/s`);
    area.dispatchEvent(new Event("input"));
    while (runs() <= had) await new Promise((next) => setTimeout(next, 5));
  }
  done();
})();
"""
"""One change after the other, in the page itself: what the driver runs there stays in its memory, too."""


@only_chromium
def test_many_changes_do_not_make_the_page_grow(page, driver):
    def size_after(first: int, last: int) -> int:
        driver.set_script_timeout(300)
        driver.execute_async_script(CHANGES, SMALL, first, last)
        driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        return int(driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"])

    page.after(lambda: page.type(SMALL))
    size_after(0, 20)
    assert page.do("return document.querySelectorAll('.uplot').length") == page.do(
        "return document.querySelectorAll('.panel').length"
    )
    if LONG:
        # The page remembers 200 texts to undo, the browser 250 requests: then they are full.
        early = size_after(20, 260)
        assert size_after(260, 380) < 1.03 * early


def test_a_newer_change_ends_an_older_run(page):
    long = SMALL.replace("3s", "600s").replace("5Mbit/s", "500Mbit/s")
    page.type(long)
    page.wait("return !document.getElementById('progress').hidden")
    # What it has done so far is drawn, over the length that it will have.
    page.wait("return document.getElementById('status').textContent.includes('drawn so far')")
    assert float(page.find("#time").get_property("max")) == pytest.approx(600)
    page.after(lambda: page.type(SMALL))
    assert "small" in page.do("return document.title")
    assert page.text() == SMALL


@only_chromium
@pytest.mark.parametrize("width", [360, 1280])
def test_the_report_of_a_run_fits_sorts_and_needs_no_script(page, driver, width, tmp_path):
    import gargalo
    from gargalo.exploring import page as page_of
    from reports import LIGHT

    run = gargalo.run(
        SMALL + SMALL[SMALL.index("[[flows]]") :].replace('"one"', '"two"\nstart = "1s"')
    )
    file = tmp_path / "report.html"
    file.write_text(page_of(run), encoding="utf-8")
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        driver.get(file.as_uri())
        page.wait("return document.querySelectorAll('.panel').length > 2")
        assert page.do("return document.documentElement.scrollWidth") <= width
        assert page.do(f"return {LIGHT}", "body *:not(option):not(text)") == []
        names = (
            "return [...document.querySelectorAll('.report table')[0].tBodies[0].rows]"
            ".map(r => r.cells[0].textContent)"
        )
        assert page.do(names) == ["one", "two"]
        page.do("document.querySelectorAll('.report th button')[0].click()")
        assert page.do(names) == ["one", "two"]
        page.do("document.querySelectorAll('.report th button')[0].click()")
        assert page.do(names) == ["two", "one"]
        rows = page.do(
            "return [...document.querySelectorAll('.report h2')].map(h => h.textContent)"
        )
        assert rows == ["At a glance", "Flows", "Links", "Events", "Run it again", "Facts"]
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        driver.get(file.as_uri())
        told = driver.find_element("css selector", "body").text
        assert "need JavaScript, which is off" in told
        assert "two" in told, "tables are whole"
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
