"""What every transport and every workload does in the lab, as in the simulator."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import gargalo
import polars as pl
import pytest
from gargalo.plugins.compiling import build_plugin
from gargalo.plugins.native import load
from lab_helpers import needs, needs_namespaces
from test_plugins_native import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

LINK = """
name     = "flows"
duration = "3s"

[topology.simple]
link = { rate = "20Mbit/s", delay = "10ms", queue = { droptail = "1BDP" } }
"""


def scenario(*flows: str, head: str = LINK) -> str:
    """Give a scenario with these flows from client to server."""
    ends = '\n[[flows]]\nfrom = "client"\nto   = "server"\n'
    return head + "".join(ends + flow for flow in flows)


@needs_namespaces
@pytest.mark.parametrize(
    ("client", "server"),
    [("kernel", "kernel"), ("gargalo", "kernel"), ("kernel", "gargalo"), ("gargalo", "gargalo")],
)
def test_quic_carries_every_byte_over_all_sockets(client: str, server: str) -> None:
    text = scenario(
        'label = "file"\ntransport.quic = { congestion = "cubic", streams = 3 }\nworkload.bulk = { bytes = "3MB" }',
        'label = "page"\ntransport.quic = {}\nworkload.request = { objects = 8, size = "30kB", order = "multiplexed" }',
        'label = "turns"\ntransport.quic = { crypto = "null" }\nworkload.request = { objects = 3, '
        'size = "30kB", order = "pipelined" }',
    )
    changes = {
        "hosts.client.stack": client,
        "hosts.server.stack": server,
        "record.verify": True,
        "duration": "20s",
        "topology.simple.link.loss": "1%",
    }
    run = gargalo.run(text, set=changes, world="lab")
    assert run.flows["delivered_bytes"].to_list() == [3_000_000, 240_000, 90_000]
    assert run.flows["completion_s"].null_count() == 0
    assert not [w for w in run.warnings if "differs" in w]
    assert run.objects["completion_s"].drop_nulls().len() == 11
    file = run.flows.row(0, named=True)
    assert file["retransmitted_packets"] > 5
    assert 0.019 < file["rtt_min_s"] < 0.1
    assert run.flow_samples.filter(flow=0).height > 0
    kinds = set(run.events.filter(flow=0)["kind"])
    assert {"handshake", "loss"} <= kinds, kinds


@needs_namespaces
def test_quic_takes_as_much_as_in_the_simulator() -> None:
    # A generous bound, as other programs may run beside this: a stack that stalls is far below it.
    text = scenario("transport.quic = { congestion = 'bbr' }")
    rates = [gargalo.run(text, world=world).flows["goodput_bps"].item() for world in ("sim", "lab")]
    assert rates[1] > 0.6 * rates[0], rates


@needs_namespaces
@pytest.mark.parametrize("change", ["port", "address"])
@pytest.mark.parametrize("stack", ["kernel", "gargalo"])
def test_a_client_of_quic_moves(stack: str, change: str) -> None:
    migration = {"after": "1s", "change": change}
    text = scenario("transport.quic = {}")
    changes = {"lab.stack": stack, "flows.0.transport.quic.migration": migration}
    run = gargalo.run(text, set=changes, world="lab")
    assert run.flows["failure"].to_list() == [None]
    late = run.flow_samples.filter(pl.col("time_s") > 2.0)["delivered_bytes"]
    assert late.len() > 2
    assert late[-1] > late[0], "nothing arrives after the move"
    # As in the simulator: only another address is another path (RFC 9000 section 9).
    moved = run.events.filter(pl.col("time_s").is_between(0.99, 1.5))
    assert ("path" in set(moved["kind"])) == (change == "address"), moved


@needs_namespaces
def test_several_paths_of_quic_have_rows() -> None:
    head = """
name     = "paths"
duration = "3s"

[topology.graph]
nodes = ["client", "server"]
hosts = ["client", "server"]
links = [
  { name = "a", from = "client", to = "server", rate = "10Mbit/s", delay = "10ms" },
  { name = "b", from = "client", to = "server", rate = "5Mbit/s", delay = "20ms" },
]
"""
    text = scenario("transport.quic = { multipath = 2 }", head=head)
    run = gargalo.run(text, set={"hosts.server.stack": "kernel"}, world="lab")
    rows = run.subflows.sort("subflow")
    assert rows["link"].to_list() == ["a", "b"]
    assert (rows["delivered_bytes"] > 200_000).all(), rows
    whole = run.flows["delivered_bytes"].item()
    assert rows["delivered_bytes"].sum() == pytest.approx(whole, rel=0.1)
    assert set(run.subflow_samples["link"]) == {"a", "b"}


@needs_namespaces
@pytest.mark.parametrize(
    ("client", "server"),
    [("kernel", "kernel"), ("gargalo", "kernel"), ("kernel", "gargalo"), ("gargalo", "gargalo")],
)
def test_flows_take_the_paths_that_they_name(client: str, server: str) -> None:
    head = """
name     = "flows"
duration = "3s"
[topology.multipath]
paths = [
  { rate = "10Mbit/s", delay = "5ms" },
  { rate = "4Mbit/s", delay = "30ms" },
  { rate = "8Mbit/s", delay = "20ms" },
]
"""
    text = scenario(
        "path = 1\ntransport.tcp = {}",
        "path = 2\ntransport.quic = {}",
        'path = 1\ncount = 2\ntransport.udp = {}\nworkload.cbr = { rate = "200kbit/s" }',
        'path = 2\ntransport.tcp = {}\nworkload.ftp = { load = "10%" }',
        head=head,
    )
    changes = {"hosts.client.stack": client, "hosts.server.stack": server}
    run = gargalo.run(text, set=changes, world="lab")
    tcp, quic, *calls = run.flows.sort("id").iter_rows(named=True)
    assert 0.060 < tcp["rtt_min_s"] < 0.070
    assert 1e6 < tcp["goodput_bps"] < 4e6
    assert 0.040 < quic["rtt_min_s"] < 0.050
    assert 3e6 < quic["goodput_bps"] < 8e6
    assert len(calls) == 2
    assert all(0.030 < call["delay_min_s"] < 0.040 for call in calls)
    (files,) = run.summary["background"]["loads"]
    assert (files["link"], files["capacity_bps"]) == ("path2", 8e6)
    assert files["sent_load"] > 0
    sent = {(link["name"], link["direction"]): link["sent_bytes"] for link in run.links}
    assert sent["path0", "up"] == sent["path0", "down"] == 0
    assert min(sent["path1", "up"], sent["path2", "up"]) > 300_000


@needs_namespaces
def test_quic_leaves_traces_and_secrets(tmp_path: Path) -> None:
    text = scenario(
        "transport.quic = {}\nworkload.bulk = { bytes = '100kB' }",
        "start = '1s'\ntransport.quic = { handshake = '0-rtt' }\nworkload.bulk = { bytes = '100kB' }",
    )
    changes = {"record.captures": ["link"], "record.qlog": True}
    run = gargalo.run(text, set=changes, world="lab", output=tmp_path / "run")
    assert run.flows["delivered_bytes"].to_list() == [100_000, 100_000]
    # The ticket of the first connection serves the second.
    first, second = run.flows["handshake_s"].to_list()
    assert first > 0.018
    assert second < first / 2
    names = sorted(p.name for p in (tmp_path / "run/qlog").iterdir())
    assert names == [f"flow{i}-{end}.sqlog" for i in (0, 1) for end in ("client", "server")]
    assert "CLIENT_TRAFFIC_SECRET_0" in (tmp_path / "run/keys.log").read_text(encoding="ascii")


@needs_namespaces
@pytest.mark.parametrize("stack", ["kernel", "gargalo"])
def test_calls_and_video_have_their_figures(stack: str) -> None:
    text = scenario(
        'label = "call"\ntransport.udp = {}\nworkload.voice = { codec = "g711" }',
        'label = "camera"\ntransport.udp = {}\nworkload.media = { max_rate = "2Mbit/s", ecn = true }',
        'label = "film"\ntransport.tcp = {}\nworkload.video = {}',
    )
    changes = {
        "lab.stack": stack,
        "duration": "8s",
        "topology.simple.link.queue": {"codel": {"target": "5ms"}},
        "topology.simple.link.rate": "3Mbit/s",
    }
    run = gargalo.run(text, set=changes, world="lab")
    call, camera, film = run.flows.sort("id").iter_rows(named=True)
    assert call["delivered_bytes"] > 20_000
    # Reports come back: the rate grows from its beginning, and marks reach the receiver.
    rates = run.flow_samples.filter(flow=1)["pacing_rate_bps"].drop_nulls().to_list()
    assert max(rates) > 1.2 * rates[0], rates
    assert any(a != b for a, b in pairwise(rates))
    assert camera["delivered_bytes"] > 100_000
    assert film["delivered_bytes"] > 100_000


@needs_namespaces
@pytest.mark.parametrize("stack", ["kernel", "gargalo"])
def test_pings_are_answered_at_once(stack: str) -> None:
    text = scenario('transport.udp = {}\nworkload.ping = { interval = "20ms", count = 60 }')
    changes = {
        "lab.stack": stack,
        "topology.simple.link.down": {"delay": "30ms", "loss": "20%"},
    }
    run = gargalo.run(text, set=changes, world="lab")
    pings = run.pings
    assert pings["sequence"].to_list() == list(range(60))
    assert pings["lost"].null_count() == 0
    # Every request arrives, and an answer does or is lost.
    assert pings["forward_delay_s"].null_count() == 0
    answered = pings.drop_nulls("rtt_s")
    assert run.summary["pings_answered"] == answered.height
    assert run.summary["pings_answered"] + run.summary["pings_lost"] == 60
    assert 0 < run.summary["pings_lost"] < 40
    assert pings.filter("lost")["rtt_s"].null_count() == run.summary["pings_lost"]
    # Not below the delays of the links; the median is no later than a busy machine makes it.
    assert answered["forward_delay_s"].min() >= 0.010
    assert answered["return_delay_s"].min() >= 0.030
    assert answered["rtt_s"].median() < 0.2
    total = answered["forward_delay_s"] + answered["return_delay_s"]
    assert (total - answered["rtt_s"]).abs().max() < 1e-9
    # In order; requests that a busy machine made late leave at one reading of the clock.
    assert pings["sent_s"].is_sorted()


@needs_namespaces
@pytest.mark.parametrize("stack", ["kernel", "gargalo"])
def test_background_comes_and_goes(stack: str) -> None:
    text = scenario(
        "transport.tcp = {}\nworkload.mix = { link = 'link', load = '40%', direction = 'up' }",
        "label = 'arriving'\nrecord = 'full'\ntransport.tcp = {}\narrivals = { rate = '4/s' "
        "}\nworkload.bulk = { bytes = '20kB' }",
    )
    run = gargalo.run(text, set={"lab.stack": stack, "duration": "6s"}, world="lab")
    groups = {g["label"]: g for g in run.summary["background"]["groups"]}
    assert len(groups) == 3
    web = next(g for label, g in groups.items() if "web" in label)
    assert web["flows"] > 20
    assert web["completed_flows"] > 0.7 * web["flows"]
    assert web["pages"] > 2
    (load,) = run.summary["background"]["loads"]
    assert load["offered_load"] == pytest.approx(0.4, abs=0.1)
    # What hosts put on the wire is at least what arrived.
    assert web["sent_bps"] > web["goodput_bps"] > 0
    arriving = run.flows.filter(label="arriving")
    assert 8 <= arriving.height <= 60
    assert arriving["id"].n_unique() == arriving.height
    assert arriving["delivered_bytes"].max() == 20_000


@needs_namespaces
def test_congestion_controls_are_looked_into() -> None:
    text = scenario("transport.tcp = { congestion = 'bbr' }", "transport.tcp = {}")
    changes = {"record.gauges": True, "record.events": False, "hosts.server.stack": "kernel"}
    run = gargalo.run(text, set=changes, world="lab")
    names = set(run.gauges.filter(flow=0)["name"])
    assert {"congestion_window_bytes", "bottleneck_bandwidth_bps"} & names, names
    assert "sample" in set(run.gauges["cause"])
    assert run.events.height == 0
    back = scenario("transport.tcp = {}").replace('"client"', '"x"').replace('"server"', '"client"')
    run = gargalo.run(back.replace('"x"', '"server"'), set=changes, world="lab")
    assert run.gauges.height == 0
    assert any("record.gauges" in w for w in run.warnings)


@needs_namespaces
@needs("cc")
@pytest.mark.parametrize("server", ["gargalo", "kernel"])
def test_a_compiled_congestion_control_sends(tmp_path: Path, server: str) -> None:
    library = build_plugin(EXAMPLES / "cubic.c", tmp_path / "cubic.so")
    controls = {c.name: c for c in load(library)[0]}
    text = scenario('transport.tcp = { congestion = "cubic-c" }\nworkload.bulk = {}')
    flow = gargalo.run(
        text, set={"hosts.server.stack": server}, world="lab", controllers=controls
    ).flows.row(0, named=True)
    assert flow["congestion"] == "cubic-c"
    assert flow["goodput_bps"] > 10e6
