"""The first figures of studies: an example for each, beside what its work printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import gargalo
import pytest
from conftest import ROOT
from gargalo import studies
from gargalo.cli import bundled

if TYPE_CHECKING:
    from gargalo.results import Run

NAMES = ("high-speed-tcp", "mptcp-schedulers", "nsquic", "userspace-bbr")
LINE = re.compile(r"^#   (.+): published ([\d.]+), here ([\d.]+), within ([\d.]+)%$", re.MULTILINE)
AS_WRITTEN = 0.03
"""Relative distance of a figure from what its file says that comes out."""


def printed(name: str) -> dict[str, tuple[float, float, float]]:
    """Return what a file says: by figure what was published, what comes out, and the bound of their distance."""
    found = LINE.findall(bundled.find(name).text)
    return {what: (float(p), float(h), float(w) / 100) for what, p, h, w in found}


def goodput(run: Run, label: str) -> float:
    return float(run.flows.filter(label=label)["goodput_bps"][0])


def measured(name: str, run: Run) -> dict[str, float]:
    """Return the same figures of a run."""
    if name == "nsquic":
        return {f"goodput of {n}": 1e-6 * goodput(run, n) for n in ("QUIC", "TCP CUBIC")}
    if name == "mptcp-schedulers":
        ratio = goodput(run, "single mesh") / goodput(run, "full mesh")
        return {"single mesh over full mesh": ratio}
    if name == "userspace-bbr":
        return {"mean goodput of BBR": 1e-6 * run.flows["goodput_bps"].mean()}
    return {
        "mean goodput of a flow in Mbit/s": run.summary["goodput_bps"] / 1e6 / run.flows.height,
        "Jain's index": run.summary["jain_index"],
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_first_figure_is_near_the_published_one(name):
    said = printed(name)
    found = measured(name, gargalo.run(bundled.find(name).path))
    assert found.keys() == said.keys()
    for what, (published, here, bound) in said.items():
        assert found[what] == pytest.approx(published, rel=bound), what
        assert found[what] == pytest.approx(here, rel=AS_WRITTEN), what


@pytest.mark.parametrize("name", NAMES)
def test_the_first_figure_is_on_the_page_of_its_study(name):
    example = bundled.find(name)
    assert (example.kind, example.name) == ("studies", studies.find(name).name)
    assert f"docs/studies/{name}.md" in example.text
    page = (ROOT / "docs" / "studies" / f"{name}.md").read_text(encoding="utf-8")
    section = page[page.index("## First figure") :].split("\n## ")[0]
    assert f"$ gargalo example {name}\n$ gargalo run {name}.toml\n" in section
    for what, (published, here, _) in printed(name).items():
        assert re.search(rf"{what} \| {published:g} \| {here:g} \|", section), what


def test_each_study_with_a_printed_figure_has_one():
    assert {e.name for e in bundled.examples() if e.kind == "studies"} == set(NAMES)
