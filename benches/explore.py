"""The explorer: from a change of the scenario to the picture in the browser, for each example.

    .venv/bin/python benches/explore.py
    .venv/bin/python benches/explore.py --changes 20 cellular-race mptcp

A change is another seed, typed into the text. `first` is when the first panel is drawn, of a long run with what it has
done so far, `all` when every panel and the story are; both count from the letter that was typed. Needs Chromium and its
driver, as the tests of the page do; the browser runs on the same processors.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from explore_server import served
from screenshots import browser
from selenium.webdriver.support.wait import WebDriverWait

LONGEST_S = 60
TYPE = """
const t = document.getElementById('text');
const line = `seed = ${arguments[0]}\\n`;
t.value = /^seed *=.*\\n/m.test(t.value) ? t.value.replace(/^seed *=.*\\n/m, line) : line + t.value;
t.dispatchEvent(new Event('input'));
"""


def share(values: list[float], part: float) -> float:
    """Return a quantile, the nearest rank."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="EXAMPLE", help="Default: all.")
    parser.add_argument("--changes", type=int, default=10, metavar="N")
    given = parser.parse_args()
    with served() as link:
        driver = browser()
        try:
            measure(driver, link, given.names, given.changes)
        finally:
            driver.quit()


def measure(driver, link: str, names: list[str], changes: int) -> None:
    def wait(script: str) -> None:
        WebDriverWait(driver, LONGEST_S, 0.01).until(lambda d: d.execute_script(script))

    def runs() -> int:
        return int(driver.execute_script("return document.body.dataset.runs || 0"))

    driver.get(link)
    wait("return document.body.dataset.runs === '1'")
    every = driver.execute_script(
        "return [...document.getElementById('presets').options].map(o => o.value)"
    )
    print("| example | packets | first p50 | first p95 | all p50 | all p95 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in names or every:
        had = runs()
        driver.execute_script(
            # An earlier example that cannot be run has left its errors.
            "document.body.dataset.errors = '0';"
            "const p = document.getElementById('presets'); p.value = arguments[0];"
            "p.dispatchEvent(new Event('change'))",
            name,
        )
        wait(f"return document.body.dataset.runs > {had} || document.body.dataset.errors > 0")
        if runs() == had:
            told = driver.execute_script("return document.getElementById('errors').textContent")
            print(f"| {name} | not run: {told[:60]} | | | | |")
            continue
        first, whole = [], []
        for seed in range(changes):
            had = runs()
            driver.execute_script(TYPE, seed + 2)
            wait(f"return document.body.dataset.runs > {had}")
            first.append(float(driver.execute_script("return document.body.dataset.pictured")))
            whole.append(float(driver.execute_script("return document.body.dataset.took")))
        packets = driver.execute_script("return document.getElementById('status').textContent")
        cells = [
            statistics.median(first),
            share(first, 0.95),
            statistics.median(whole),
            share(whole, 0.95),
        ]
        row = " | ".join(f"{c:.0f} ms" for c in cells)
        print(f"| {name} | {packets.split(' ')[0]} | {row} |", flush=True)


if __name__ == "__main__":
    main()
