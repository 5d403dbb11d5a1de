"""Fits: the path that a capture was made on, what the capture cannot tell, and what another flow would have had."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gargalo as package
import pytest
from click.testing import CliRunner
from gargalo.cli.app import app
from gargalo.fitting import FitError, Path, Policer, fit
from gargalo.fitting.finding import find
from gargalo.fitting.losses import agreement
from gargalo.fitting.observed import Observed, by_transmission
from gargalo.fitting.path import mean, merged
from gargalo.fitting.search import bursts_of, unexplained
from gargalo.fitting.toml import toml

np = pytest.importorskip("numpy")

if TYPE_CHECKING:
    from pathlib import Path as File

RATE, RTT, BUFFER = 20e6, 0.04, 100_000
PLAIN = {"rate": "20Mbit/s", "delay": "20ms", "queue": {"droptail": "100kB"}}
CBR = {
    "label": "other",
    "from": "client",
    "to": "server",
    "transport": {"udp": {}},
    "workload": {"cbr": {"rate": "8Mbit/s", "packet_size": "1000B"}},
}
OTHER = {
    "label": "other",
    "from": "client",
    "to": "server",
    "start": "2s",
    "transport": {"tcp": {"congestion": "cubic"}},
    "workload": {"bulk": {}},
}


def scenario(
    up: dict[str, Any], congestion: str, *others: dict[str, Any], ends: str = "from"
) -> dict[str, Any]:
    flow = {
        "label": "flow",
        "from": "client",
        "to": "server",
        "transport": {"tcp": {"congestion": congestion}},
        "workload": {"bulk": {}},
    }
    return {
        "name": "truth",
        "duration": "12s",
        "topology": {"simple": {"link": {"up": {**PLAIN, **up}, "down": {"delay": "20ms"}}}},
        "record": {"captures": ["link"], "capture_ends": ends},
        "flows": [flow, *others],
    }


def captured(
    tmp_path: File, up: dict[str, Any], congestion: str = "cubic", *others: dict[str, Any]
) -> File:
    """Run a flow, and return its capture at the sender."""
    package.run(scenario(up, congestion, *others), output=tmp_path / "run")
    return tmp_path / "run" / "capture.pcapng"


def holds(found: package.fitting.Fit, name: str, value: float) -> bool:
    interval = found.intervals[name]
    low, high = interval.low or 0.0, interval.high or math.inf
    return low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)


@pytest.mark.parametrize("congestion", ["cubic", "bbr"])
def test_the_path_of_a_flow_is_found(tmp_path, congestion):
    found = fit(captured(tmp_path, {}, congestion), congestion=congestion)
    path = found.path
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.01)
    assert math.isclose(path.base_rtt_s, RTT, rel_tol=0.01)
    assert len(path.rate) == 1
    assert (path.cross, path.policer, path.jitter_s) == ((), None, 0.0)
    assert (path.reordering, path.aggregation_s) == (None, 0.0)
    assert holds(found, "rate_bps", RATE)
    assert holds(found, "base_rtt_s", RTT)
    assert holds(found, "buffer_bytes", BUFFER)
    if congestion == "cubic":
        assert math.isclose(path.buffer_bytes, BUFFER, rel_tol=0.05)
        assert found.unknown == []
    # The flow over the path is the one that was recorded.
    for c in found.compared:
        if c.name != "loss":
            assert c.difference is not None
            assert abs(c.difference) < 0.02, c


def test_a_connection_of_quic_whose_keys_are_known_tells_its_path(tmp_path):
    made = scenario({}, "cubic")
    made["flows"][0]["transport"] = {"quic": {"congestion": "cubic"}}
    package.run(made, output=tmp_path / "run")
    found = fit(tmp_path / "run" / "capture.pcapng")
    assert found.seen.transport == "quic"
    assert math.isclose(found.path.rate_bps, RATE, rel_tol=0.01)
    assert math.isclose(found.path.base_rtt_s, RTT, rel_tol=0.03)
    assert math.isclose(found.path.buffer_bytes, BUFFER, rel_tol=0.1)
    told = {c.name: c.difference for c in found.compared}
    assert abs(told["goodput_bps"]) < 0.02
    assert abs(told["rtt_p50_s"]) < 0.05
    predicted = found.what_if({"congestion": "reno"})
    assert predicted["goodput_bps"].value > 0.8 * RATE


def test_what_was_never_reached_is_a_bound(tmp_path):
    # BBR keeps its queue at one bandwidth-delay product, and so the buffer of four never overflows.
    found = fit(captured(tmp_path, {"queue": {"droptail": "400kB"}}, "bbr"), congestion="bbr")
    assert found.intervals["buffer_bytes"].high is None
    assert found.intervals["buffer_bytes"].low < 400_000
    assert any("no overflow seen: the buffer is at least" in told for told in found.unknown)


def test_losses_that_are_no_overflow_are_told_from_those_that_are(tmp_path):
    path = fit(captured(tmp_path, {"loss": 0.005}, "bbr"), congestion="bbr").path
    assert math.isclose(path.loss, 0.005, rel_tol=0.3)
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.01)
    assert path.policer is None


def test_a_policer_is_found_with_its_rate(tmp_path):
    up = {"policer": {"rate": "8Mbit/s", "burst": "60kB"}}
    path = fit(captured(tmp_path, up)).path
    assert path.policer is not None
    assert math.isclose(path.policer.rate_bps, 8e6, rel_tol=0.03)
    assert math.isclose(path.policer.burst_bytes, 60_000, rel_tol=0.2)
    assert path.loss == 0.0


def test_jitter_is_found_with_the_delay_that_it_varies(tmp_path):
    path = fit(captured(tmp_path, {"jitter": "3ms"})).path
    assert math.isclose(path.jitter_s, 0.003, rel_tol=0.4)
    assert math.isclose(path.base_rtt_s, RTT, rel_tol=0.03)
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.03)


def test_a_delay_that_varies_is_found_where_the_queue_is_seldom_empty(tmp_path):
    up = {"jitter": "3ms", "queue": {"droptail": "600kB"}}
    path = fit(captured(tmp_path, up)).path
    assert math.isclose(path.jitter_s, 0.003, rel_tol=0.2)
    # The shortest of few round trips would be 3 ms less.
    assert math.isclose(path.base_rtt_s, RTT, rel_tol=0.03)
    assert math.isclose(path.buffer_bytes, 600_000, rel_tol=0.05)


@pytest.mark.parametrize("late", [True, False])
def test_packets_in_another_order_are_no_losses(tmp_path, late):
    way = "late" if late else "early"
    up = {"reorder": {"probability": 0.01, way: "8ms"}}
    found = fit(captured(tmp_path, up))
    path = found.path
    assert path.loss == 0.0
    assert path.jitter_s == path.aggregation_s == 0.0
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.01)
    assert math.isclose(path.base_rtt_s, RTT, rel_tol=0.01)
    assert math.isclose(path.buffer_bytes, BUFFER, rel_tol=0.05)
    assert path.reordering is not None
    assert path.reordering.late == late
    assert math.isclose(path.reordering.probability, 0.01, rel_tol=0.25)
    assert math.isclose(path.reordering.by_s, 0.008, rel_tol=0.05)
    assert holds(found, "reorder_by_s", 0.008)
    table = path.direction()["reorder"]
    assert set(table) == {"probability", way}
    line = next(t for t in toml(found).splitlines() if t.startswith("reorder = {"))
    assert re.search(r"# probability [\d.]+ % to [\d.]+ %; by [\d.]+ ms to [\d.]+ ms$", line), line
    told = {c.name: c.difference for c in found.compared}
    assert abs(told["goodput_bps"]) < 0.05


def test_what_had_arrived_when_it_was_sent_again_was_not_lost():
    sent = np.array([0.0, 0.001, 0.002, 0.043, 0.044])
    acknowledged = np.array([0.040, np.nan, 0.042, 0.050, 0.084])
    again = np.array([False, False, False, True, False])
    offset = np.array([0, 1448, 2896, 1448, 4344])
    told, unneeded = by_transmission(sent, acknowledged, again, offset)
    assert unneeded.tolist() == [False, False, False, True, False]
    np.testing.assert_allclose(told, [0.040, 0.050, 0.042, np.nan, 0.084])
    # A round trip after it was sent again it may be either that arrived.
    acknowledged[3] = 0.083
    told, unneeded = by_transmission(sent, acknowledged, again, offset)
    assert not unneeded.any()
    np.testing.assert_allclose(told, acknowledged)


@pytest.mark.parametrize("every_s", [0.002, 0.011])
def test_packets_that_arrive_together_are_aggregated(tmp_path, every_s):
    found = fit(captured(tmp_path, {"aggregation": f"{every_s}s"}))
    path = found.path
    assert math.isclose(path.aggregation_s, every_s, rel_tol=1e-3)
    assert holds(found, "aggregation_s", every_s)
    assert (path.cross, path.jitter_s, path.reordering) == ((), 0.0, None)
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.01)
    assert holds(found, "base_rtt_s", RTT)
    assert math.isclose(path.buffer_bytes, BUFFER, rel_tol=0.1)
    assert "aggregation = " in toml(found)


def test_losses_at_few_times_are_no_random_ones():
    sent = np.arange(0, 20, 0.01)
    lost = np.zeros(len(sent), dtype=bool)
    lost[[300, 301, 302, 303, 900, 901]] = True
    seen = Observed(
        label="few",
        transport="tcp",
        sent_s=sent,
        acknowledged_s=np.where(lost, np.nan, sent + RTT + 0.0006),
        size_bytes=np.full(len(sent), 1500.0),
        payload_bytes=np.full(len(sent), 1448.0),
        again=np.zeros(len(sent), dtype=bool),
        unneeded=np.zeros(len(sent), dtype=bool),
        handshake_s=RTT,
        first_s=0.0,
        application_limited=0.0,
        receiver_limited=0.0,
    )
    path = Path(((0.0, RATE),), RTT, BUFFER)
    assert unexplained(seen, path, np.zeros(0)) == 0.0
    lost[[500, 1400]] = True
    more = replace(seen, acknowledged_s=np.where(lost, np.nan, seen.sent_s + RTT + 0.0006))
    assert unexplained(more, path, np.zeros(0)) == pytest.approx(8 / len(sent), rel=0.01)


def test_a_rate_that_changes_is_one_of_steps(tmp_path):
    steps = [[f"{n}s", f"{[5, 15, 10, 20][n % 4]}Mbit/s"] for n in range(13)]
    found = fit(captured(tmp_path, {"rate": {"steps": steps}}))
    assert len(found.path.rate) > 10
    assert found.path.cross == ()
    assert math.isclose(found.path.mean_rate_bps(12.0), 12.5e6, rel_tol=0.05)


def test_other_traffic_is_a_rate_or_flows_that_give_way(tmp_path):
    path = fit(captured(tmp_path / "cbr", {}, "cubic", CBR)).path
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.03)
    assert math.isclose(path.mean_cross_bps(12.0), 8e6 * 1028 / 1000, rel_tol=0.1)
    assert path.elastic == ()
    path = fit(captured(tmp_path / "tcp", {}, "cubic", OTHER), flow=0).path
    assert math.isclose(path.rate_bps, RATE, rel_tol=0.03)
    assert len(path.elastic) in (1, 2)


def test_other_flows_are_found_by_when_the_first_of_them_started(tmp_path):
    later = {**OTHER, "label": "later", "start": "7s"}
    path = fit(captured(tmp_path, {}, "cubic", OTHER, later), flow=0).path
    starts = sorted(start for start, _ in path.elastic)
    assert len(starts) in (2, 3)
    assert abs(starts[0] - 2) < 1


def test_a_buffer_of_few_packets_is_found_by_the_packet(tmp_path):
    for n in (4, 7):
        up = {"rate": "5Mbit/s", "queue": {"droptail": f"{n * 1500 + 200}B"}}
        path = fit(captured(tmp_path / str(n), up)).path
        assert n * 1500 < path.buffer_bytes < (n + 1) * 1500, n


def test_a_policer_is_found_on_a_path_that_was_never_filled(tmp_path):
    up = {"policer": {"rate": "3Mbit/s", "burst": "15kB"}}
    found = fit(captured(tmp_path, up))
    policer = found.path.policer
    assert policer is not None
    assert math.isclose(policer.rate_bps, 3e6, rel_tol=0.05)
    assert math.isclose(policer.burst_bytes, 15_000, rel_tol=0.15)
    # The rate of the link is told by packets that were sent at once; as a bound only.
    assert math.isclose(found.path.rate_bps, RATE, rel_tol=0.05)
    assert found.intervals["rate_bps"].high is None
    told = found.what_if({"congestion": "bbr"})
    actual = Observed.of(package.read(captured(tmp_path / "bbr", up, "bbr"), packets=True))
    assert math.isclose(told["rtt_p95_s"].value, actual.figures().rtt_p95_s, rel_tol=0.1)


def test_what_would_have_been_is_what_is_if_it_is_tried(tmp_path):
    found = fit(captured(tmp_path / "a", {"queue": {"droptail": "300kB"}}))
    told = found.what_if({"congestion": "vegas"})
    again = package.read(
        captured(tmp_path / "b", {"queue": {"droptail": "300kB"}}, "vegas"), packets=True
    )
    actual = Observed.of(again).figures()
    assert math.isclose(told["goodput_bps"].value, actual.goodput_bps, rel_tol=0.05)
    assert math.isclose(told["rtt_p95_s"].value, actual.rtt_p95_s, rel_tol=0.05)
    assert told["goodput_bps"].low <= told["goodput_bps"].value <= told["goodput_bps"].high
    # CUBIC had filled the buffer; that Vegas does not is what was asked.
    assert told["rtt_p95_s"].high < 0.7 * found.seen.figures().rtt_p95_s
    with pytest.raises(package.ScenarioError, match="congestion"):
        found.what_if({"congestion": "no-such"})


def test_what_was_kept_back_is_predicted(tmp_path):
    capture = captured(tmp_path / "a", {})
    found = fit(capture)
    for other in (None, package.read(captured(tmp_path / "b", {}), packets=True)):
        told = {c.name: c.difference for c in found.verify(other)}
        assert abs(told["goodput_bps"]) < 0.03
        assert abs(told["rtt_p95_s"]) < 0.05


def test_the_scenario_of_a_fit_runs_and_says_what_is_not_known(tmp_path):
    found = fit(captured(tmp_path, {"queue": {"droptail": "400kB"}}, "bbr"), congestion="bbr")
    text = toml(found)
    (tmp_path / "path.toml").write_text(text)
    assert "# - no overflow seen" in text
    run = package.run(tmp_path / "path.toml")
    assert math.isclose(
        run.flows["goodput_bps"][0], found.recording.flows["goodput_bps"][0], rel_tol=0.02
    )
    many = tuple((n / 10, 1e6 * (1 + n % 3)) for n in range(20))
    assert package.resolve(
        Path(many, 0.02, 9000.0, policer=Policer(1e6, 9000.0)).scenario("reno", 2.0, "x")
    )


def test_a_capture_elsewhere_and_one_of_next_to_nothing_are_refused(tmp_path):
    package.run(scenario({}, "cubic", ends="to"), output=tmp_path / "run")
    with pytest.raises(FitError, match="captured at its receiver"):
        fit(tmp_path / "run" / "capture.pcapng")
    short = scenario({}, "cubic")
    short["flows"][0]["workload"]["bulk"] = {"bytes": "10kB"}
    package.run(short, output=tmp_path / "short")
    with pytest.raises(FitError, match="at least 50 are needed"):
        fit(tmp_path / "short" / "capture.pcapng")
    with pytest.raises(FitError, match="no packets"):
        fit(package.read(tmp_path / "short" / "capture.pcapng"))


def test_the_command_writes_a_scenario_data_and_a_page(tmp_path, monkeypatch):
    capture = captured(tmp_path, {})
    monkeypatch.chdir(tmp_path)
    call = CliRunner()
    done = call.invoke(
        app, ["fit", str(capture), "--what-if", "congestion=reno", "--verify", "--output", "path"]
    )
    assert done.exit_code == 0, done.output
    assert "20 Mbit/s" in done.output
    assert "What if congestion=reno" in done.output
    assert "What was kept back" in done.output
    data = json.loads((tmp_path / "path" / "fit.json").read_text())
    assert math.isclose(data["path"]["rate_bps"], RATE, rel_tol=0.01)
    assert set(data["what_if"]["figures"]) == {c["name"] for c in data["compared"]}
    page = (tmp_path / "path" / "fit.html").read_text()
    assert "The path of capture" in page
    assert call.invoke(app, ["run", "path/path.toml", "--no-plots", "-q"]).exit_code == 0
    again = call.invoke(app, ["fit", str(capture), "--output", "path"])
    assert again.exit_code == 2
    assert (
        call.invoke(app, ["fit", str(capture), "--output", "path", "--overwrite", "-q"]).exit_code
        == 0
    )
    told = call.invoke(app, ["fit", str(capture), "--json"])
    assert json.loads(told.output)["path"]["base_rtt_s"] == data["path"]["base_rtt_s"]
    wrong = call.invoke(app, ["fit", str(capture), "--what-if", "congestion"])
    assert wrong.exit_code == 2
    assert "--what-if KEY=VALUE" in wrong.output
    nothing = call.invoke(app, ["fit", "no-such.pcap"])
    assert nothing.exit_code == 1
    assert "no-such.pcap" in nothing.output


@pytest.mark.parametrize("seed", range(40))
def test_whatever_was_seen_has_a_fit_or_a_reason(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(50, 400))
    sent = np.sort(rng.uniform(0, 10, count))
    took = rng.choice([0.0, 0.01, 0.5], count) + rng.exponential(0.02, count)
    acknowledged = np.where(rng.random(count) < rng.choice([0.0, 0.3, 0.95]), np.nan, sent + took)
    if (kind := rng.random()) < 0.2:
        # All at multiples of a time.
        acknowledged = np.ceil(acknowledged / 0.008) * 0.008
    elif kind < 0.6:
        acknowledged = np.maximum.accumulate(np.nan_to_num(acknowledged, nan=0.0))
    acknowledged[0] = sent[0] + 0.01
    seen = Observed(
        label="random",
        transport="tcp",
        sent_s=sent - sent[0],
        acknowledged_s=acknowledged - sent[0],
        size_bytes=rng.integers(60, 1501, count).astype(float),
        payload_bytes=rng.integers(1, 1449, count).astype(float),
        again=rng.random(count) < 0.1,
        unneeded=rng.random(count) < 0.02,
        handshake_s=None,
        first_s=0.0,
        application_limited=0.0,
        receiver_limited=0.0,
    )
    found, distance = find(seen)
    assert distance >= 0
    for interval in found.intervals.values():
        assert interval.low is None or interval.high is None or interval.low <= interval.high
    assert package.resolve(found.path.scenario("cubic", 1.0, "random"))


def test_losses_that_come_together_are_told_from_those_that_do_not():
    rng = np.random.default_rng(1)
    bad, lost = False, np.zeros(200_000, dtype=np.int8)
    for n in range(len(lost)):
        bad = rng.random() >= 0.2 if bad else rng.random() < 0.0005
        lost[n] = bad and rng.random() >= 0.5
    found = bursts_of(lost)
    assert found is not None
    assert math.isclose(found.begin, 0.0005, rel_tol=0.35)
    assert math.isclose(found.end, 0.2, rel_tol=0.35)
    assert math.isclose(found.arrive, 0.5, abs_tol=0.15)
    assert bursts_of((rng.random(200_000) < lost.mean()).astype(np.int8)) is None


def test_parts_of_a_fit():
    steps = merged([0.0, 1.0, 2.0], [5.0, 5.0, 7.0])
    assert steps == ((0.0, 5.0), (2.0, 7.0))
    assert mean(steps, 4.0) == 6.0
    a = np.zeros(100, dtype=bool)
    b = a.copy()
    a[[10, 50, 90]] = True
    b[[12, 50]] = True
    assert agreement(a, b) == pytest.approx(0.8)
    assert agreement(a, a) == 1.0
    assert agreement(a, np.zeros(100, dtype=bool)) == 0.0
