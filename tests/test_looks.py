"""Colours: an algorithm, a path, a stack has one, the same in files, on pages, of sweeps and in overlays."""

from __future__ import annotations

import itertools

import gargalo
import polars as pl
import pytest
from gargalo import _core
from gargalo.exploring import view
from gargalo.pictures import looks, metrics, runs
from gargalo.pictures.looks import COLOURS, DASHES, Looks, colour_of, contrast
from gargalo.reporting.page import plain_figure, styled
from gargalo.reporting.palette import Palette
from gargalo.reporting.sweeps import report_of_runs

PAGES = {"light": "#ffffff", "dark": "#15181c"}
"""Backgrounds: of files and pages by day, and of pages by night (reporting/assets/style.css)."""

BESIDE = """
name     = "beside"
duration = "2s"
topology.simple.link = { rate = "10Mbit/s", delay = "5ms" }
"""


def beside(*controls: str) -> gargalo.Run:
    """One flow of each of these, in this order."""
    flow = '[[flows]]\nfrom = "client"\nto = "server"\ntransport.tcp.congestion = "{}"\n'
    return gargalo.run(BESIDE + "".join(flow.format(c) for c in controls))


@pytest.fixture(scope="module")
def first() -> gargalo.Run:
    return beside("reno", "bbr", "cubic")


@pytest.fixture(scope="module")
def other() -> gargalo.Run:
    return beside("cubic", "vegas", "reno", "cubic")


def test_an_algorithm_has_one_colour_in_all_pictures_pages_and_runs(first, other):
    seen: dict[str, set[str]] = {"cubic": set(), "reno": set()}
    for run in (first, other):
        of = dict(run.flows.select("id", "congestion").iter_rows())
        names = {run.names[i]: control for i, control in of.items()}
        charts = [runs.goodput(run), runs.delivery(run), metrics.picture(run, "cwnd")]
        for chart, line in ((c, line) for c in charts for line in c.lines):
            assert line.of == names[line.name], chart.title
            seen.setdefault(line.of, set()).add(line.colour)
        for panel in (p for p in view(run, ["goodput", "cwnd"]) if p["part"] == "panel"):
            for line in panel["lines"]:
                seen[names[line["name"]]].add(line["colour"])
        for line in run.plot.rtt().axes[0].lines:
            seen[names[str(line.get_label())]].add(line.get_color())
    both = metrics.overlay([("a", runs.goodput(first)), ("b", runs.goodput(other))])
    for line in both.lines:
        seen[line.of].add(line.colour)
    # A sweep in whose plan they come in another order.
    rows = [
        {"cc": c, "loss": x, "seed": s, "goodput_bps": 1e6 * s + 1e7 * x}
        for c, x, s in itertools.product(("vegas", "reno", "bbr", "cubic"), (0.0, 0.01), (1, 2, 3))
    ]
    sweep = report_of_runs(pl.DataFrame(rows), ["cc", "loss"], title="order")
    palette = Palette(sweep.algorithms)
    for block in sweep.figures:
        for trace in styled(plain_figure(block.figure), block, palette)["data"]:
            seen[trace["name"]].add(trace["line"]["color"])
    assert {c: seen[c] for c in ("cubic", "reno", "bbr", "vegas")} == {
        c: {colour_of(c)} for c in ("cubic", "reno", "bbr", "vegas")
    }
    assert len({colour_of(c) for c in ("cubic", "reno", "bbr", "vegas")}) == 4


def test_flows_of_one_algorithm_differ_by_dash_and_then_by_lightness(other):
    lines = runs.goodput(other).lines
    cubics = [(line.colour, line.dash) for line in lines if line.of == "cubic"]
    assert cubics == [(colour_of("cubic"), "solid"), (colour_of("cubic"), "dash")]
    many = Looks()
    found = [many.next("cubic") for _ in range(24)]
    assert len(set(found)) == 24
    assert [c for c, _ in found[:6]] == [colour_of("cubic")] * 6
    assert [d for _, d in found[:6]] == list(DASHES)
    # Flows that are left out of a picture change no look in it.
    (last,) = metrics.picture(other, "rtt", flows=[3]).lines
    assert (last.colour, last.dash) == cubics[1]


def test_aliases_and_longer_names_have_the_colour_of_the_algorithm():
    for entry in _core.congestion():
        place = looks.place_of(entry["name"])
        assert all(looks.place_of(alias) == place for alias in entry.get("aliases", []))
    compared = ("cubic", "reno", "bbr", "bbr2", "bbr3")
    assert len({colour_of(c) for c in compared}) == len(compared)
    for study in (("lia", "olia", "balia", "wvegas"), ("hstcp", "scalable", "htcp", "bic", "fast")):
        assert len({colour_of(c) for c in study}) == len(study)
    assert looks.place_of("CUBIC with TLS") == looks.place_of("cubic")
    # Of any other name it follows from the letters alone.
    assert [looks.place_of(n) for n in ("mine", "radio", "fibre")] == [3, 7, 4]
    palette = Palette(["reno", "cubic"])
    assert palette["cubic"].colour == Palette(["bbr", "cubic"])["cubic"].colour
    assert palette["cubic"].dash != palette["reno"].dash


@pytest.mark.parametrize("page", PAGES)
def test_colours_are_seen_on_light_and_on_dark_pages(page):
    for colour in (*COLOURS, looks.REFERENCE):
        assert contrast(colour, PAGES[page]) >= 3, colour
    # The seventh flow of an algorithm and later ones.
    shades = {colour_of(n, s) for n in looks.PLACES for s in range(looks.SHADES)}
    assert min(contrast(c, PAGES[page]) for c in shades) >= 2.5
    assert looks.REFERENCE not in shades
