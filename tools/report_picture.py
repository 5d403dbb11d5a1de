"""Takes the picture of a report for the documentation: `python tools/report_picture.py`.

Runs a small sweep in a temporary directory, makes its report and photographs it in headless Chromium
(`make browser-tools`). With a page as argument, photographs that one instead.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
import time
from pathlib import Path

from gargalo import reporting, sweeps
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

AXES = {
    "congestion": {
        "key": "flows.1.transport.tcp.congestion",
        "values": ["bbr", "cubic", "reno", "vegas"],
    },
    "buffer": {
        "key": "topology.dumbbell.bottleneck.queue.droptail",
        "values": ["0.25BDP", "0.5BDP", "1BDP", "2BDP", "4BDP"],
    },
}


def sweep(directory: Path) -> Path:
    """Race four congestion controls against CUBIC over five buffers, with five seeds each."""
    done = sweeps.sweep(
        "examples/cubic-vs-bbr.toml",
        AXES,
        repeat=5,
        set={"duration": "20s", "flows.0.start": "100ms", "flows.1.start": "0s"},
        store=directory / "store",
        name="against-cubic",
    )
    return reporting.write(reporting.report_of_sweep(done), directory / "report.html")


def photograph(page: Path, picture: Path, width: int, height: int) -> None:
    """Save the top of a page as PNG."""
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if missing:
        raise SystemExit(f"{' and '.join(missing)} not installed: make browser-tools, as root")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.resolve().as_uri())
        end = time.monotonic() + 60
        while driver.execute_script("return document.documentElement.dataset.ready") != "yes":
            if time.monotonic() > end:
                raise SystemExit(f"{page} is not drawn after a minute")
            time.sleep(0.1)
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        picture.write_bytes(base64.b64decode(shot["data"]))
    finally:
        driver.quit()


def main() -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path, help="a report; by default that of a sweep")
    parser.add_argument("--output", type=Path, default=Path("docs/images/report.png"))
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        page = given.page or sweep(Path(directory))
        photograph(page, given.output, given.width, given.height)


if __name__ == "__main__":
    main()
