"""Profiles of named stacks have the numbers of their sources."""

from __future__ import annotations

import gargalo
import polars as pl
import pytest

SLOW_LINK = {"rate": "1Gbit/s", "delay": "105ms", "queue": {"droptail": "100000 packets"}}


def one_flow(tcp, link, **more):
    """One flow over one link."""
    flow = {"from": "client", "to": "server", "transport": {"tcp": tcp}, "workload": {"bulk": {}}}
    made = {"duration": "10s", "topology": {"simple": {"link": link}}, "flows": [flow], **more}
    return gargalo.run(made, set={"record.interval": "1ms"})


def test_the_window_of_ns2_caps_a_flow_at_57_mbit_s_over_210_ms():
    cap = 1000 * 1500 * 8 / 0.21
    for control in ("scalable", {"cubic-linux": {"s_max": 160, "beta": 819}}):
        tcp = {"profile": "ns2-2.29", "congestion": control}
        run = one_flow(tcp, SLOW_LINK, measure={"from": "5.8s"})
        throughput = run.flows["goodput_bps"][0] * 1500 / 1460
        assert throughput <= 1.001 * cap
    # Twenty round trips. Scalable has opened its window by then, and nothing but the window limits it.
    run = one_flow({"profile": "ns2-2.29", "congestion": "scalable"}, SLOW_LINK, measure={"from": "5.8s"})  # fmt: skip
    assert run.flows["goodput_bps"][0] * 1500 / 1460 == pytest.approx(cap, rel=0.01)


def test_the_first_windows_of_profiles():
    link = {"rate": "10Mbit/s", "delay": "50ms"}
    first = {"ns2-2.29": 2 * 1460, "ns3-3.27": 536, "smoltcp": 2 * 1460, "linux-6": 14_480}
    for profile, expected in first.items():
        run = one_flow({"profile": profile, "congestion": "reno"}, link, duration="300ms")
        established = run.flow_samples.filter(pl.col("time_s") > 0.101)
        assert established["congestion_window_bytes"][0] == expected, profile


def acknowledgements(run):
    """Packets of the link's way back."""
    return next(k for k in run.links if k["direction"] == "down")["sent_packets"]


def test_linux_acknowledges_each_segment_while_the_receive_window_grows():
    link = {"rate": "24Mbit/s", "delay": "50ms"}
    counts = {}
    for profile in ("modern", "linux-6", "ns2-2.29"):
        run = one_flow({"profile": profile, "congestion": "reno"}, link, duration="600ms")
        counts[profile] = acknowledgements(run) / run.flows["sent_packets"][0]
    assert counts["ns2-2.29"] > 0.95
    assert counts["modern"] < 0.55
    assert counts["linux-6"] > counts["modern"] + 0.1


def test_the_receive_window_of_linux_does_not_limit_a_flow_for_long():
    link = {"rate": "100Mbit/s", "delay": "50ms", "queue": {"droptail": "2000 packets"}}
    run = one_flow({"profile": "linux-6", "congestion": "reno"}, link, duration="4s")
    fixed = one_flow({"congestion": "reno"}, link, duration="4s")
    # Both fill the link of 864 packets after slow start.
    assert run.flows["goodput_bps"][0] == pytest.approx(fixed.flows["goodput_bps"][0], rel=0.05)
    small = {"profile": "linux-6", "congestion": "reno", "receive_buffer": "100kB"}
    held = one_flow(small, link, duration="4s")
    assert held.flows["goodput_bps"][0] < 0.1 * 100e6
