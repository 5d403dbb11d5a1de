"""What the tests of reports share: a small sweep, a study with all there is, a browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

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


def browser_missing() -> str | None:
    """Why there is no browser; None if there is one."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return (
        f"{' and '.join(lacking)} not installed (`make browser-tools`, as root)"
        if lacking
        else None
    )


def browser() -> Chrome:
    """Headless Chromium that finds no host, with a log of requests and of the console."""
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
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
