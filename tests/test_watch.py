"""What goes on in a run in real time, while it does."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import gargalo
import pytest
from conftest import TINY
from gargalo.running import Sample
from gargalo.terminal.live import HISTORY, MOST_FLOWS, Flows, bars
from gargalo.terminal.screen import Screen
from lab_helpers import needs_namespaces

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.running import Progress

# Both begin before the queue is full, where a SYN may be lost, and go on until the end.
BOTH = (
    TINY.replace('"3s"', '"1500ms"')
    .replace('"500ms"', '"10ms"')
    .replace('{ bytes = "200kB" }', "{}")
)


def drawn(view: Flows, width: int = 100) -> str:
    told = io.StringIO()
    Screen(file=told, width=width).print(view.draw(width))
    return told.getvalue()


def test_rates_are_those_between_samples():
    view = Flows({0: "upload", 1: "file"})
    view.add(0.1, [Sample(0, 0.1, 0, None, 14_480)])
    assert view.rates == {}
    assert "upload" in drawn(view)
    view.add(0.3, [Sample(0, 0.2, 25_000, 0.02, 20_000), Sample(0, 0.3, 37_500, 0.021, 30_000)])
    assert list(view.rates[0]) == pytest.approx([2e6, 1e6])
    shown = drawn(view)
    assert "1.00" in shown
    assert "21.0" in shown
    assert "█" in shown
    assert "file" not in shown, "it has not begun"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_many_flows_and_long_runs_fit(width):
    view = Flows({i: f"a flow with a long name {i}" for i in range(50)})
    for k in range(3 * HISTORY):
        view.add(k / 10, [Sample(i, k / 10, k * 10_000, 0.02, 10**6) for i in range(50)])
    assert {len(r) for r in view.rates.values()} == {HISTORY}
    shown = drawn(view, width)
    assert f"and {50 - MOST_FLOWS} more" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_nothing_moves_no_bar():
    assert bars([0.0, 0.0], 0.0) == "  "


@needs_namespaces
@pytest.mark.parametrize("stack", ["kernel", "gargalo"])
def test_samples_come_while_a_run_of_the_lab_goes_on(stack: str) -> None:
    told: list[Progress] = []
    run = gargalo.run(BOTH, set={"lab.stack": stack}, world="lab", progress=told.append)
    assert len([p for p in told if p.samples]) > 5, "several times a second"
    for flow in (0, 1):
        samples = [s for p in told for s in p.samples if s.flow == flow]
        recorded = run.flow_samples.filter(flow=flow)
        assert 0 < len(samples) <= recorded.height
        # In their order, each once, as the table has them.
        assert all(a.time_s < b.time_s for a, b in pairwise(samples))
        assert [s.time_s for s in samples] == recorded["time_s"].head(len(samples)).to_list()
        windows = recorded["congestion_window_bytes"].head(len(samples)).to_list()
        assert [s.congestion_window_bytes for s in samples] == windows


@needs_namespaces
def test_flows_are_shown_while_it_goes_on(tmp_path: Path, gargalo: Any) -> None:
    (tmp_path / "both.toml").write_text(BOTH, encoding="utf-8")
    done = gargalo("run", "both.toml", "--world", "lab", "--watch", "--no-plots")
    assert done.returncode == 0, done.stderr
    assert "Mbit/s" in done.stderr
    assert "upload" in done.stderr
    assert "file" in done.stderr


def test_a_simulation_is_not_watched(tiny: Path, inside: Any) -> None:
    done = inside("run", tiny, "--watch")
    assert done.returncode == 2
    assert "--watch is for runs in real time: add --world lab" in done.stderr
    done = inside("run", tiny, "--watch", "--world", "lab", "--set", "record.flows=false")
    assert done.returncode == 2
    assert "leave record.flows = false out" in done.stderr
