"""What the tests of reports share: a small sweep, a study with all there is, a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import time
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import polars as pl
from conftest import TINY
from gargalo import reporting, sweeps
from gargalo.reporting import Evidence

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome


def small_sweep(store: Path, repeat: int = 3) -> sweeps.Sweep:
    """Twelve runs of three virtual seconds: two congestion controls, two buffers."""
    axes = {
        "congestion": {"key": "flows.0.transport.tcp.congestion", "values": ["cubic", "reno"]},
        "buffer": {
            "key": "topology.simple.link.queue.droptail",
            "values": ["5 packets", "20 packets"],
        },
    }
    return sweeps.sweep(TINY, axes, repeat=repeat, store=store, workers=2)


def study() -> reporting.Report:
    """A report with every kind of part; numbers are made up."""
    names = ["bbr", "cubic", "reno"]
    lines = go.Figure()
    for i, name in enumerate(names):
        lines.add_scatter(x=[1, 2, 4], y=[3 - i, 2 + i, 4], name=name, legendgroup=name)
    bars = go.Figure([go.Bar(x=[n], y=[i + 1], name=n) for i, n in enumerate(names)])
    boxes = go.Figure(
        [go.Box(x=[n] * 4, y=[i, i + 1, i + 1.5, i + 3], name=n) for i, n in enumerate(names)]
    )
    heat = go.Figure(go.Heatmap(z=[[1, 2], [3, 4]], x=["a", "b"], y=["c", "d"]))
    rating = pl.DataFrame(
        {
            "congestion": names,
            "fairness": ["very good", "regular", "bad"],
            "goodput_bps": [9.0e6, None, 10.5e6],
            "goodput_bps_low": [8.0e6, None, 10.0e6],
            "goodput_bps_high": [10.0e6, None, 11.0e6],
            "remark": ["a, b", 'say "x"', "-"],
        }
    )
    many = pl.DataFrame({"congestion": names * 40, "number": list(range(120))})
    return reporting.Report(
        title="Who wins beside CUBIC?",
        subtitle="A study that the tests made up",
        claims=[
            reporting.ClaimRow(
                "1",
                "BBR takes most of a shallow buffer.",
                "reproduced",
                [Evidence("share of bbr", 0.83, 0.81, 0.85, "%", 4, "more than 50 %")],
                "All seeds agree.",
            ),
            reporting.ClaimRow(
                "2a", "Vegas is safe.", "contradicted", "See the figure.", "It starves."
            ),
            reporting.ClaimRow(
                "3", "Reno is even.", "inconclusive", [Evidence("share", 0.5, unit="%", n=1)]
            ),
        ],
        figures=[
            reporting.FigureBlock(
                "Lines", "Three of them.", lines, "dumbbell", alt="Three lines cross."
            ),
            reporting.FigureBlock("Bars", "One each.", bars, "dumbbell"),
            reporting.FigureBlock("Boxes", "One each.", boxes, "parking lot"),
            reporting.FigureBlock("Map", "Of no algorithm.", heat, "parking lot"),
        ],
        tables=[
            reporting.TableBlock("Ratings", "By quantiles.", rating, group="dumbbell"),
            reporting.TableBlock("Numbers", "Many rows.", many),
        ],
        scenarios={"base.toml": TINY},
        commands=["gargalo run base.toml --seed 3"],
        facts={"engine": "gargalo", "runs": 12, "packets": 12_345_678, "date": "2026-01-01"},
        highlights={"goodput": "9 Mbit/s"},
        notes=["Numbers are made up."],
    )


def unpacked(page: str, name: str) -> str:
    """Return what a page has compressed: `plotly` or `figure-data`."""
    (found,) = re.findall(f'<script type="application/gzip" id="{name}">(.*?)</script>', page)
    return gzip.decompress(base64.b64decode(found)).decode()


def without_library(page: str) -> str:
    """Return a page without Plotly's library."""
    return re.sub('<script type="application/gzip" id="plotly">.*?</script>', "", page)


def browser_missing() -> str | None:
    """Why there is no browser; None if there is one."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return (
        f"{' and '.join(lacking)} not installed (`make test-tools`, as root)" if lacking else None
    )


def browser() -> Chrome:
    """Headless Chromium that finds no host but this machine, with a log of requests and of the console."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless=new",
        "--no-sandbox",  # Tests may run as root.
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


LIGHT = """(() => {
    const parts = c => c.match(/[\\d.]+/g).map(Number);
    const light = c => { const [r, g, b] = parts(c).slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                         return .2126 * r + .7152 * g + .0722 * b; };
    const paper = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parts(c)[3] !== 0) return c; } return 'rgb(255,255,255)'; };
    return [...document.querySelectorAll(arguments[0])]
      .filter(e => e.checkVisibility() && e.textContent.trim())
      .map(e => { const a = light(getComputedStyle(e).color), b = light(paper(e)); return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName + '.' + e.className + ' ' + e.textContent.trim().slice(0, 20)]; })
      .filter(r => r[0] < 4.5); }).apply(null, arguments)"""


class Shown:
    """A page in the browser."""

    def __init__(
        self, driver: Chrome, path: Path, width: int = 1280, scheme: str = "light"
    ) -> None:
        self.driver = driver
        self.media("", scheme)
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        for kind in ("browser", "performance"):
            driver.get_log(kind)
        driver.get("about:blank")
        driver.get(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def media(self, media: str, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.do("Emulation.setEmulatedMedia", media=media, features=features)

    def do(self, method: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(method, arguments)

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {script}", *arguments)

    def wait(self, condition: str) -> None:
        end = time.monotonic() + 60
        while not self.js(condition):
            assert time.monotonic() < end, f"not within a minute: {condition}"
            time.sleep(0.05)

    def requested(self) -> list[str]:
        """Addresses that were asked for, without those of what the page holds itself."""
        found = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        sent = [m["params"]["request"] for m in found if m["method"] == "Network.requestWillBeSent"]
        return [r["url"] for r in sent if not r["url"].startswith(("data:", "blob:", "about:"))]

    def faint(self, selectors: str) -> list[Any]:
        """Texts whose contrast is below 4.5, with their ratio."""
        return self.js(LIGHT, selectors)

    def text_without_javascript(self, path: Path) -> str:
        """Text of a page in a browser that runs no scripts."""
        self.do("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.driver.get(path.as_uri())
            found = self.do("Runtime.evaluate", expression="document.body.innerText")
        finally:
            self.do("Emulation.setScriptExecutionDisabled", value=False)
        return found["result"]["value"]

    def press(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.driver).send_keys(getattr(Keys, key)).perform()

    def reached(self, tabs: int) -> list[str]:
        """Elements that the key Tab reaches, with class or name."""
        found = []
        for _ in range(tabs):
            self.press("TAB")
            element = "document.activeElement"
            found.append(
                self.js(f"{element}.tagName + '.' + ({element}.className || {element}.name)")
            )
        return found
