"""Packets in the explorer: what is shown of them is what the engine counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gargalo
import polars as pl
import pytest
from gargalo.exploring import capture
from gargalo.exploring.difference import packet_difference
from gargalo.exploring.packets import WindowError, packets, recorded, unwrapped
from gargalo.interop.traces import CAPTURE

if TYPE_CHECKING:
    from collections.abc import Mapping

LOSSY = """\
name = "lossy"
duration = "5s"
topology.simple.link = { rate = "5Mbit/s", delay = "20ms", loss = "1%", queue = { droptail = "30 packets" } }
[[flows]]
label = "one"
from = "client"
to = "server"
transport.tcp = { congestion = "cubic" }
[[flows]]
label = "two"
from = "client"
to = "server"
transport.tcp = { congestion = "reno" }
"""
MARKED = (
    LOSSY.replace('loss = "1%", ', "")
    .replace('droptail = "30 packets"', "dualpi2 = {}")
    .replace('congestion = "cubic"', 'congestion = "prague"')
)
PATHS = """\
name = "paths"
duration = "4s"
topology.multipath.paths = [
  { rate = "4Mbit/s", delay = "10ms" },
  { rate = "2Mbit/s", delay = "30ms", loss = "1%" },
]
[[flows]]
from = "client"
to = "server"
transport.mptcp = {}
"""
WHOLE_S = 5.0


def with_transport(transport: str) -> str:
    return LOSSY.replace('tcp = { congestion = "cubic" }', transport)


def columns(text: str, flow: int = 0, from_s: float = 0.0, to_s: float = WHOLE_S) -> Any:
    return packets(text, flow, from_s, to_s)


# --- what became of each packet


@pytest.mark.parametrize(
    "text", [LOSSY, MARKED, with_transport('tcp = { sack = false, congestion = "reno" }'), PATHS]
)
def test_each_link_has_dropped_as_many_packets_as_it_counted(text):
    with recorded(text) as (run, folder, large):
        assert not large
        seen = capture.read(folder / CAPTURE, run)
        marks = seen.records.filter("at_goal", pl.col("ecn") == capture.CE).height
    fates = seen.passages.group_by("link", "up", "fate").len()
    for counted in run.links:
        up = counted["direction"] == "up"
        link = next(i for i, x in enumerate(run.setup.links) if x.name == counted["name"])
        of_link = fates.filter(pl.col("link") == link, pl.col("up") == up)
        found = dict(of_link.select("fate", "len").iter_rows())
        assert sum(found.values()) == counted["offered_packets"]
        # Of what was under way at the end nobody knows more.
        assert (
            found.get("dropped", 0)
            <= counted["dropped_packets"]
            <= found.get("dropped", 0) + found.get("unknown", 0)
        )
        assert found.get("arrived", 0) <= counted["sent_packets"]
        assert found.get("unknown", 0) < 120
    counted_marks = sum(x["marked_packets"] for x in run.links)
    assert counted_marks - 60 <= marks <= counted_marks
    assert (marks > 10) == (text == MARKED)


def test_packets_recorded_change_nothing_else():
    with recorded(LOSSY) as (run, _, _):
        same = gargalo.run(LOSSY)
        assert run.info["results_hash"] == same.info["results_hash"]


# --- a flow


@pytest.mark.parametrize(
    "transport",
    [
        'tcp = { congestion = "cubic" }',
        'tcp = { congestion = "reno", sack = false }',
        'quic = { congestion = "cubic" }',
    ],
)
def test_segments_and_retransmissions_are_those_of_the_counters(transport):
    text = with_transport(transport)
    counted = gargalo.run(text).flows.row(0, named=True)
    found = columns(text)
    (path,) = found["paths"]
    shown = path["segments"]
    handshake = 2 if "quic" in transport else 0
    assert path["totals"]["sent_packets"] == counted["sent_packets"] - handshake
    assert path["totals"]["retransmitted_packets"] == counted["retransmitted_packets"] > 10
    assert shown["of"] == len(shown["sent_s"]), "nothing is left out of so few"
    assert sum(shown["retransmission"]) == counted["retransmitted_packets"]
    assert all(
        late is None or late > sent
        for sent, late in zip(shown["sent_s"], shown["arrived_s"], strict=True)
    )
    dropped = [place for place in shown["dropped_at"] if place is not None]
    assert set(dropped) == {"link"}
    assert len(dropped) == shown["fate"].count("dropped") > 10
    acks = path["acks"]
    assert acks["cumulative"] == sorted(acks["cumulative"])
    assert acks["time_s"] == sorted(acks["time_s"])
    if "quic" not in transport:
        # What has been acknowledged has been delivered; the last acknowledgements are under way.
        assert 0.98 < acks["cumulative"][-1] / counted["delivered_bytes"] <= 1
        assert all(
            end >= cumulative
            for cumulative, end in zip(acks["cumulative"], acks["window_end"], strict=True)
        )


def test_sack_blocks_are_of_data_that_arrived_after_a_hole():
    (path,) = columns(LOSSY)["paths"]
    segments, blocks = path["segments"], path["sack"]
    assert blocks["of"] > 100
    edges = {e for key in ("first", "end") for e in segments[key]}
    arrived = {
        first: late
        for first, late in zip(segments["first"], segments["arrived_s"], strict=True)
        if late is not None
    }
    for time, first, end, duplicate in zip(
        *(blocks[k] for k in ("time_s", "first", "end", "duplicate")), strict=True
    ):
        assert {first, end} <= edges
        assert not duplicate
        assert arrived[first] < time
    none = columns(with_transport('tcp = { congestion = "reno", sack = false }'))
    assert none["paths"][0]["sack"]["of"] == 0


def test_marks_are_shown_where_they_were_set():
    (path,) = columns(MARKED)["paths"]
    counted = gargalo.run(MARKED).flows.row(0, named=True)
    marked = [place for place in path["segments"]["marked_at"] if place is not None]
    assert set(marked) == {"link"}
    assert abs(len(marked) - counted["ce_marks"]) <= 20, "a few are under way at the end"


def test_a_multipath_flow_has_its_paths_and_their_counters():
    found = columns(PATHS, to_s=4.0)
    counted = gargalo.run(PATHS).subflows.sort("subflow")
    assert len(found["paths"]) == counted.height == 2
    for path, row in zip(found["paths"], counted.iter_rows(named=True), strict=True):
        assert path["name"] == row["link"]
        assert path["totals"]["sent_packets"] == row["sent_packets"]
        assert path["totals"]["retransmitted_packets"] == row["retransmitted_packets"]


def test_a_window_has_what_the_whole_has_there():
    whole, part = columns(LOSSY), columns(LOSSY, from_s=2.0, to_s=2.5)

    def inside(answer: Mapping[str, Any], kind: str, time: str) -> list[tuple[Any, ...]]:
        given = answer["paths"][0][kind]
        rows = zip(*(v for k, v in given.items() if k != "of"), strict=True)
        at = [k for k in given if k != "of"].index(time)
        return [row for row in rows if 2.0 <= row[at] <= 2.5]

    for kind, time in (("segments", "sent_s"), ("acks", "time_s"), ("sack", "time_s")):
        assert inside(part, kind, time) == inside(whole, kind, time) != []
    # The line of acknowledgements begins with what was known before.
    assert part["paths"][0]["acks"]["time_s"][0] < 2.0


def test_queue_and_line_have_what_the_samples_say():
    at = 2.0
    found = columns(LOSSY, from_s=1.9, to_s=2.1)["links"]
    waiting = [
        flow
        for link, up, flow, entered, served in zip(
            *(found[k] for k in ("link", "direction", "flow", "entered_s", "served_s")), strict=True
        )
        if link == "link" and up == "up" and served is not None and entered <= at < served
    ]
    samples = gargalo.run(LOSSY).link_samples.filter(
        direction="up", time_s=at
    )  # Without the one in transmission.
    assert abs(len(waiting) - 1 - samples["queue_packets"][0]) <= 1
    assert set(waiting) <= {0, 1}


def test_too_many_packets_are_thinned_and_said_so(monkeypatch):
    from gargalo.exploring import packets as module

    monkeypatch.setattr(module, "MOST_ROWS", 200)
    monkeypatch.setattr(module, "MOST_ON_WAY", 100)
    found = columns(LOSSY)
    (path,) = found["paths"]
    shown = path["segments"]
    assert len(shown["sent_s"]) < shown["of"] or len(shown["sent_s"]) <= 400
    assert sum(shown["retransmission"]) > 10, "what is special stays"
    assert found["links"] is None
    assert any("zoom in for all" in n for n in found["notes"])
    assert any("too many to be followed" in n for n in found["notes"])
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    long = LOSSY.replace("5s", "600s").replace("5Mbit", "500Mbit")
    with pytest.raises(WindowError, match="choose an earlier part"):
        columns(long, from_s=500.0, to_s=501.0)


@pytest.mark.parametrize(
    ("flow", "from_s", "to_s", "says"),
    [
        (7, 0, 1, "no flow 7"),
        (0, 2, 1, "later end"),
        (0, -1, 1, "later end"),
        (0, 0, float("inf"), "later end"),
    ],
)
def test_what_is_not_there_is_named(flow, from_s, to_s, says):
    with pytest.raises(WindowError, match=says):
        columns(LOSSY, flow, from_s, to_s)


def test_sequence_numbers_may_wrap():
    import numpy as np

    assert unwrapped(np.array([2**32 - 10, 2**32 - 1, 5, 2, 20])).tolist() == [0, 9, 15, 12, 30]


# --- two runs


@pytest.mark.parametrize("transport", ['tcp = { congestion = "cubic" }', "quic = {}"])
def test_the_first_packet_that_differs_is_named(transport):
    a = with_transport(transport)
    b = a.replace('label = "one"', 'label = "one"\nstop = "1.5s"')
    with recorded(a) as one, recorded(b) as other:
        found = packet_difference(one, other)
        assert packet_difference(one, one) is None
    assert found is not None
    assert (found.table, found.flow, found.subject) == ("packets", 0, "one")
    assert 1.5 <= found.time_s < 1.7
    assert found.first != found.second
    words = "bytes |FIN|acknowledgement|RST" if "tcp" in transport else "packet "
    assert any(w in str(found.first) for w in words.split("|"))
