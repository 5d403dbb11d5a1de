"""Goodput beside the capacity of the bottleneck: never above it, in every example; and the capacity over time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from gargalo.pictures import runs

if TYPE_CHECKING:
    from gargalo.pictures.model import Chart, Line

EXAMPLES = sorted(
    p.name for p in (ROOT / "examples").glob("*.toml") if not p.name.startswith(("sweep", "lab"))
)
PACKET_BITS = 8 * 1500
MOST_OF_JITTER = 4
"""Times its scale: more than nearly every packet is delayed by."""


def spread_s(run: gargalo.Run) -> tuple[float, float]:
    """How long a packet is on its way after the bottleneck at most, and by how much packets differ."""
    longest = differ = 0.0
    for link in run.setup.links:
        for side in (link.up, link.down):
            delays = [side.delay.constant_s or 0.0, *(s.delay_s for s in side.delay.steps)]
            varies = MOST_OF_JITTER * side.jitter.scale_s if side.jitter else 0.0
            varies += (side.reorder.late_s or 0.0) if side.reorder else 0.0
            longest += max(delays) + varies
            differ += max(delays) - min(delays) + varies if side.delay.steps else varies
    return longest, differ


def most_bits(line: Line, begin: float, end: float) -> float:
    """What the capacity, in Mbit/s, amounts to over a span of time; what is not known is unlimited."""
    edges = np.unique(np.clip([begin, *line.x, end], begin, end))
    places = np.searchsorted(line.x, (edges[:-1] + edges[1:]) / 2, side="right") - 1
    rates = np.nan_to_num(line.y[np.clip(places, 0, line.y.size - 1)], nan=np.inf)
    return float(np.sum(1e6 * rates * np.diff(edges)))


def above(run: gargalo.Run, chart: Chart, x: np.ndarray, y: np.ndarray, width: float) -> list[str]:
    """The bins in which more arrived than the bottleneck can have let through.

    What arrives in a bin left the bottleneck up to the rest of the way earlier, within the width of the bin and what
    packets' delays differ by; a packet of each path may have been under way for most of its transmission before. The
    queue is before the bottleneck, so it adds nothing. A capacity that is measured in bins is known to within one.
    """
    (capacity,) = chart.references
    longest, differ = spread_s(run)
    measured = width if np.unique(capacity.y).size > 10 else 0.0
    packets = PACKET_BITS * len(run.setup.links)
    found = []
    for middle, rate in zip(x, y, strict=True):
        begin, end = middle - width / 2, middle + width / 2
        shifts = np.linspace(-measured, longest + measured, 30)
        most = max(most_bits(capacity, begin - s, end - s + differ) for s in shifts) + packets
        if rate * 1e6 * width > most:
            found.append(f"{begin:g} s: {rate:.3f} Mbit/s, at most {most / width / 1e6:.3f}")
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_goodput_is_never_above_the_capacity(name):
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    quiet = {"record.captures": [], "record.qlog": False}
    run = gargalo.run(ROOT / "examples" / name, set=quiet)
    chart = runs.goodput(run)
    if not chart.references:
        assert not chart.lines or any("capacity of" in note for note in chart.notes), chart.notes
        return
    width = runs.bin_width(run)
    for line in chart.lines:
        assert above(run, chart, line.x, line.y, width) == [], line.name
    # Where the hosts of one side send all the data, the flows share the bottleneck.
    senders = {host.rstrip("0123456789") for host in run.flows["from"]}
    if len(senders) == 1 and re.search(r"^\[topology\.(simple|dumbbell)\]", text, re.MULTILINE):
        at = np.unique(np.concatenate([line.x for line in chart.lines]).round(9))
        total = sum(np.interp(at, x.x.round(9), x.y, left=0.0, right=0.0) for x in chart.lines)
        assert above(run, chart, at, total, width) == []


LOSSY = """
name     = "lossy"
duration = "8s"
topology.simple.link = { rate = "10Mbit/s", delay = "40ms", loss = "1%", queue = { droptail = "2BDP" } }
record.interval = "100ms"
[[flows]]
label = "tcp"
from = "client"
to = "server"
transport.tcp = { congestion = "bbr" }
"""


@pytest.mark.parametrize(
    "transport",
    [
        {"tcp": {"congestion": "bbr"}},
        {"tcp": {"congestion": "bbr", "tls": {}}},
        {"quic": {"congestion": "bbr"}},
    ],
    ids=["tcp", "tls", "quic"],
)
def test_a_filled_hole_counts_when_its_data_arrives(transport):
    run = gargalo.run(LOSSY, set={"flows.0.transport": transport})
    rows = run.flow_samples
    received, delivered = rows["received_bytes"], rows["delivered_bytes"]
    assert (received >= delivered).all()
    assert (received > delivered).any(), "data waits for a retransmission"
    assert received.cast(pl.Int64).diff().drop_nulls().min() >= 0
    (line,) = runs.goodput(run).lines
    (in_order,) = runs.delivery(run).lines
    assert line.y.max() <= 10
    assert in_order.y.max() > line.y.max()
    # The same data, sooner.
    assert line.y.mean() == pytest.approx(in_order.y.mean(), rel=0.03)
    assert runs.delivery(run).title == "In-order delivery"


def test_data_of_several_paths_counts_once():
    run = gargalo.run(
        ROOT / "examples" / "mptcp-five-paths.toml",
        set={"duration": "5s", "flows.0.transport.mptcp.scheduler": "redundant"},
    )
    rows = run.flow_samples
    held = rows["received_bytes"] - rows["delivered_bytes"]
    assert (held >= rows["out_of_order_bytes"]).all()
    assert rows["received_bytes"].cast(pl.Int64).diff().drop_nulls().min() >= 0
    # Copies on five paths carry the data of the fastest, not of their sum.
    (line,) = runs.goodput(run).lines
    assert line.y.max() < 200


def test_the_capacity_is_drawn_with_its_outages():
    outages = [["2s", "2500ms"], ["5s", "6s"]]
    run = gargalo.run(LOSSY, set={"topology.simple.link.outages": outages})
    (line,) = runs.goodput(run).references
    assert line.name == "capacity of link up"
    at = np.array([1.0, 2.0, 2.4, 2.5, 4.9, 5.0, 5.9, 6.0, 7.0])
    held = line.y[np.searchsorted(line.x, at, side="right") - 1]
    assert held.tolist() == [10, 0, 0, 10, 10, 0, 0, 10, 10]


def test_the_capacity_of_several_paths_follows_their_rates():
    change = {"duration": "6s", "topology.graph.links.0.outages": [["3s", "4s"]]}
    run = gargalo.run(ROOT / "examples" / "mptcp.toml", set=change)
    (line,) = runs.goodput(run).references
    held = line.y[np.searchsorted(line.x, [1.0, 3.5, 5.0], side="right") - 1]
    assert held[0] == held[2] > held[1] > 0


def test_goodput_of_a_stack_that_does_not_tell_is_what_it_delivered():
    run = gargalo.run(LOSSY)
    rows = run.flow_samples.with_columns(pl.lit(None, pl.UInt64).alias("received_bytes"))
    bins = [
        gargalo.metrics.throughput_bins(rows, 0.5, column=c, flows=run.flows)["throughput_bps"]
        for c in ("received_bytes", "delivered_bytes")
    ]
    assert bins[0].to_list() == bins[1].to_list()
