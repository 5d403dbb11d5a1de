"""What networks can carry and how long their buffers hold packets, against SciPy's maximum flow and by hand."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from gargalo.sweeps import ceiling as module
from gargalo.sweeps.ceiling import drain_time, goodput_ceiling
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow


def network(links, pairs, capacities=None):
    """Return what the ceiling asks of a run: links by name, their ends, capacities both ways; who sends to whom."""
    setup = [SimpleNamespace(name=n, from_=a, to=b) for n, (a, b, *_) in links.items()]
    known = [
        {"name": n, "direction": way, "capacity_bps": bps}
        for n, (_, _, up, down) in links.items()
        for way, bps in (("up", up), ("down", down))
    ]
    flows = pl.DataFrame(pairs, ["from", "to"], orient="row")
    return SimpleNamespace(
        links=known if capacities is None else capacities,
        setup=SimpleNamespace(links=setup),
        info={"flows": len(flows)},
        _rows=lambda *_: flows.to_dicts(),
    )


def test_the_ceiling_is_the_maximum_flow():
    rng = random.Random(3)
    hosts = [f"h{i}" for i in range(7)]
    for _ in range(150):
        links, matrix = {}, np.zeros((7, 7), dtype=np.int32)
        for k in range(rng.randint(3, 14)):
            a, b = rng.sample(range(7), 2)
            up, down = rng.randint(0, 9), rng.randint(0, 9)
            links[f"l{k}"] = (hosts[a], hosts[b], up, down)
            matrix[a, b] += up
            matrix[b, a] += down
        a, b = rng.sample(range(7), 2)
        expected = maximum_flow(csr_array(matrix), a, b).flow_value
        found = goodput_ceiling(network(links, [(hosts[a], hosts[b])]))
        assert found == (expected or None), (links, hosts[a], hosts[b])


# Two senders and two receivers at a bottleneck.
DUMBBELL = {
    "a": ("s1", "left", 4, 4),
    "b": ("s2", "left", 4, 4),
    "mid": ("left", "right", 6, 5),
    "c": ("right", "r1", 9, 9),
    "d": ("right", "r2", 9, 9),
}


@pytest.mark.parametrize(
    ("pairs", "bps"),
    [
        ([("s1", "r1")], 4),
        ([("s1", "r1"), ("s2", "r2")], 6),
        ([("s1", "r1"), ("s1", "r2"), ("s1", "r1")], 4),
        ([("r1", "s1")], 4),
        ([("r1", "s1"), ("r2", "s2")], 5),
        # A host that does both begins another group, whose ceiling is added.
        ([("s1", "r1"), ("r1", "s1")], 8),
        ([("s1", "r1"), ("s2", "r2"), ("r1", "s1"), ("r2", "s2")], 11),
        ([("s1", "r1"), ("r1", "s2"), ("s2", "r2")], 10),
        ([("elsewhere", "r1")], None),
    ],
)
def test_hosts_that_send_to_those_that_receive(pairs, bps):
    assert goodput_ceiling(network(DUMBBELL, pairs)) == bps


def test_an_unlimited_link_is_no_limit(monkeypatch):
    free = {"l": ("a", "b", None, 5), "m": ("b", "c", 7, 7)}
    assert goodput_ceiling(network(free, [("a", "c")])) == 7
    assert goodput_ceiling(network(free, [("a", "b")])) is None
    assert goodput_ceiling(network(free, [("b", "a")])) == 5
    both = {"l": ("a", "b", 2, 2), "m": ("a", "b", 0.5, 3)}
    assert goodput_ceiling(network(both, [("a", "b")])) == 2.5, "side by side"
    assert goodput_ceiling(network({"l": ("a", "b", 0.5, 0.5)}, [("a", "b")])) == 0.5
    assert goodput_ceiling(network(both, [("a", "b")], capacities=[])) is None, "none is known"
    for most, found in ((2, 2.5), (1, None)):
        monkeypatch.setattr(module, "MOST_LINKS", most)
        assert goodput_ceiling(network(both, [("a", "b")])) == found


def direction(queue, rate=8e6, mtu=1000, outages=(), more=()):
    return SimpleNamespace(
        rate=SimpleNamespace(constant_bps=rate),
        mtu_bytes=mtu,
        queue=queue,
        outages=outages,
        more=more,
    )


def run_of(bottleneck="l up", up=None, down=None):
    """Return a run of one link: a packet of the usual size takes 1 ms."""
    none = direction({"droptail": "1s"})
    link = SimpleNamespace(name="l", up=up or none, down=down or none)
    return SimpleNamespace(summary={"bottleneck": bottleneck}, setup=SimpleNamespace(links=[link]))


@pytest.mark.parametrize(
    ("queue", "seconds"),
    [
        ({"droptail": "20 packets"}, 0.021),
        ({"droptail": "5kB"}, 0.006),
        ({"droptail": "50ms"}, 0.051),
        ({"droptail": 7}, None),
        ({"droptail": "much"}, None),
        ({"red": {"limit": "20 packets"}}, 0.021),
        ({"step": {"limit": "2ms"}}, 0.003),
        ({"red": {}}, None),
        ({"red": "20 packets"}, None),
        ({"fq-codel": {"limit": "20 packets"}}, None),
        ({"droptail": "1ms", "red": {}}, None),
        ({}, None),
        ("droptail", None),
        (None, None),
    ],
)
def test_a_full_buffer_and_the_packet_being_sent_drain_at_the_rate_of_the_link(queue, seconds):
    found = drain_time(run_of(up=direction(queue)))
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_a_buffer_drains_in_a_known_time_only_at_a_constant_rate():
    queue = {"droptail": "20 packets"}
    down = run_of("l down", down=direction(queue, rate=4e6))
    assert drain_time(down) == pytest.approx(0.042)
    for unknown in (
        direction(queue, rate=None),
        direction(queue, mtu=None),
        direction(queue, outages=[1]),
        direction(queue, more=[1]),
    ):
        assert drain_time(run_of(up=unknown)) is None
    for none in ("m up", None, ""):
        assert drain_time(run_of(none, up=direction(queue))) is None
    spaced = run_of("long haul up", up=direction(queue))
    spaced.setup.links[0].name = "long haul"
    assert drain_time(spaced) == pytest.approx(0.021)
    assert math.isfinite(drain_time(run_of()))
