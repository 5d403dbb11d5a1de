"""Profiles of named stacks have the numbers of their sources."""

from __future__ import annotations

from itertools import pairwise

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
    for control in ("scalable", "cubic"):
        tcp = {"profile": "ns2-2.29", "congestion": control}
        run = one_flow(tcp, SLOW_LINK, measure={"from": "5.8s"})
        throughput = run.flows["goodput_bps"][0] * 1500 / 1460
        assert throughput <= 1.001 * cap
    # Twenty round trips. Scalable has opened its window by then, and nothing but the window limits it.
    run = one_flow({"profile": "ns2-2.29", "congestion": "scalable"}, SLOW_LINK, measure={"from": "5.8s"})  # fmt: skip
    assert run.flows["goodput_bps"][0] * 1500 / 1460 == pytest.approx(cap, rel=0.01)


def test_the_first_windows_of_profiles():
    link = {"rate": "10Mbit/s", "delay": "50ms"}
    first = {
        "ns2-2.29": 2 * 1460,
        "ns3-3.27": 536,
        "smoltcp": 2 * 1460,
        "linux-6": 14_480,
        "linux-4.1-mptcp-0.90": 14_480,
    }
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


OLD = "linux-4.1-mptcp-0.90"


def test_half_of_tcp_rmem_caps_a_flow_of_2015_at_126_mbit_s_over_200_ms():
    link = {"rate": "1Gbit/s", "delay": "100ms", "queue": {"droptail": "100000 packets"}}
    run = one_flow({"profile": OLD, "congestion": "scalable"}, link, measure={"from": "6s"})
    cap = (6 << 20) / 2 * 8 / 0.2
    assert run.flows["goodput_bps"][0] == pytest.approx(cap, rel=0.01)


def two_paths(**more):
    """An upload by Multipath TCP over 20 and 150 ms."""
    path = {"rate": "8Mbit/s", "delay": "10ms", "queue": {"droptail": "1000 packets"}}
    transport = {"profile": OLD, "congestion": "cubic", "scheduler": "lowest-latency", **more}
    flow = {"from": "client", "to": "server", "transport": {"mptcp": transport}, "workload": {"bulk": {}}}  # fmt: skip
    paths = [path, {**path, "delay": "75ms"}]
    return {"duration": "20s", "topology": {"multipath": {"paths": paths}}, "flows": [flow]}


def test_multipath_options_follow_the_profile():
    made = gargalo.resolve(two_paths())["flows"][0]["transport"]["mptcp"]
    expected = {
        "penalisation": "halve",
        "opportunistic_retransmission": "head",
        "probe_interval": False,
        "recovery": "fack",
        "tail_loss_probe": True,
        "receive_buffer": "3MiB",
        "send_buffer": "4MiB",
    }
    assert {k: made[k] for k in expected} == expected
    plain = gargalo.resolve(two_paths(profile="modern"))
    assert plain["flows"][0]["transport"]["mptcp"]["penalisation"] == "cap"
    told = gargalo.resolve(two_paths(penalisation=False))
    assert told["flows"][0]["transport"]["mptcp"]["penalisation"] == "off"


def test_this_kernel_halves_the_window_of_the_subflow_that_blocks():
    made = two_paths(receive_buffer="200kB")
    run = gargalo.run(made, set={"record.decisions": True, "record.interval": "1ms"})
    told = run.events.filter(pl.col("kind") == "subflow-penalised")
    samples = run.subflow_samples
    mss = 1428  # less the option of 20 bytes that each segment carries
    checked = []
    for time, detail in told.select("time_s", "detail").iter_rows():
        words = dict(w.split("=") for w in detail.split())
        own = samples.filter(pl.col("subflow") == int(words["subflow"]), pl.col("time_s") < time)
        before = own["congestion_window_bytes"][-1]
        # A few acknowledgements lie between the sample and the event.
        assert int(words["cap_bytes"]) == pytest.approx(before // mss // 2 * mss, abs=3 * mss)
        checked.append(time)
    assert len(checked) > 3
    # The other path has at least 20 ms, and does it once in its round trip.
    assert min(b - a for a, b in pairwise(checked)) > 0.02
    capped = gargalo.run({**made, "flows": two_paths(receive_buffer="200kB", penalisation="cap")["flows"]})  # fmt: skip
    assert not capped.subflows.equals(run.subflows)


def control_of(profile, congestion):
    """What the name of a congestion control comes to."""
    tcp = {"profile": profile, "congestion": congestion}
    scenario = {
        "duration": "1s",
        "topology": {"simple": {"link": SLOW_LINK}},
        "flows": [{"from": "client", "to": "server", "transport": {"tcp": tcp}, "workload": {"bulk": {}}}],
    }  # fmt: skip
    ((name, parameters),) = gargalo.resolve(scenario)["flows"][0]["transport"]["tcp"][
        "congestion"
    ].items()
    return name, parameters


def test_a_name_is_the_control_that_the_system_had():
    name, cubic = control_of("ns2-2.29", "cubic")
    assert (name, cubic["s_max"], cubic["beta"], cubic["hystart_detect"]) == (
        "cubic-linux",
        160,
        819,
        "off",
    )
    assert control_of("linux-6", "cubic")[0] == "cubic-linux"
    assert control_of("modern", "cubic")[0] == "cubic"
    assert control_of("linux-6", "reno")[1]["reduce_from"] == "cwnd"
    assert control_of("ns3-3.27", "westwood")[1]["abc_limit"] == 1
    assert control_of("linux-4.1-mptcp-0.90", "lia")[1]["arithmetic"] == "linux"
    # What is given stays, and the rest is the profile's; a table is of the implementation that it names.
    given = control_of("ns2-2.29", {"fast": {"alpha": 100}})[1]
    assert (given["alpha"], given["tuning"]) == (100, False)
    assert control_of("linux-6", {"cubic": {}})[0] == "cubic"
    # What is printed reads as the same again.
    for profile in ("ns2-2.29", "ns3-3.27", "linux-6"):
        name, parameters = control_of(profile, "cubic")
        assert control_of(profile, {name: parameters}) == (name, parameters)


def test_bbr_paces_with_profiles_of_unpaced_controls():
    for profile in ("ns3-3.27", "rfc5681", "smoltcp"):
        for pacing, expected in ((None, "controller"), ("off", "off")):
            tcp = {"profile": profile, "congestion": "bbr"} | (
                {} if pacing is None else {"pacing": pacing}
            )
            scenario = {
                "duration": "1s",
                "topology": {"simple": {"link": SLOW_LINK}},
                "flows": [{"from": "client", "to": "server", "transport": {"tcp": tcp}, "workload": {"bulk": {}}}],
            }  # fmt: skip
            assert gargalo.resolve(scenario)["flows"][0]["transport"]["tcp"]["pacing"] == expected
