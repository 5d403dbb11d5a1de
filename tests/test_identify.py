"""Identifying: which congestion control sent a flow, by what it does over the path that it took."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gargalo
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import ROOT
from gargalo.cli.app import app
from gargalo.cli.common import load_plugin
from gargalo.fitting import FitError, identify
from gargalo.fitting import Path as Route
from gargalo.fitting.behaviour import Likeness, behaviour, flight_of
from gargalo.fitting.identifying import UNKNOWN, known_names, path_of
from gargalo.fitting.predicting import simulate
from gargalo.plugins.registry import names, register
from toy_stack import Toy

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

STRANGERS = ROOT / "benches" / "fitting" / "strangers.py"
ROUTE = Route(((0.0, 8e6),), 0.03, 22_000)
DURATION_S = 12.0


def capture(out: Path, congestion: Any, route: Route = ROUTE, **more: Any) -> Path:
    """Let a flow send over a path, and return its capture at the sender."""
    changes = {"record.captures": ["link"], "record.capture_ends": "from"}
    changes |= {"flows.0.transport.tcp.congestion": congestion, **more}
    gargalo.run(route.scenario("cubic", DURATION_S, "sent"), set=changes, seed=9, output=out)
    return out / "capture.pcapng"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["identify", *(str(a) for a in arguments)], prog_name="gargalo")


@pytest.mark.parametrize("congestion", ["cubic", "bbr", "vegas", "scalable", "westwood+"])
def test_those_that_behave_differently_are_told_apart(congestion, tmp_path):
    found = identify(capture(tmp_path / "run", congestion))
    assert found.answer == (congestion,), found.ranking[:3]
    first, second = found.ranking[:2]
    assert first.distance < 0.5 * UNKNOWN
    assert second.distance > 2 * first.distance
    assert {r.congestion for r in found.ranking} == set(known_names())


def test_those_that_behave_alike_are_not_told_apart(tmp_path):
    sent = {"reno": {"slow_start": "hystart++"}}
    long = Route(((0.0, 8e6),), 0.06, 120_000)
    file = capture(tmp_path / "run", sent, long)
    found = identify(file, candidates=["reno", "lia", "cubic", "bbr"])
    assert set(found.answer) == {"reno", "lia"}
    assert all("hystart++" in r.slow_start for r in found.ranking if r.tied)


def test_what_is_not_known_is_unknown_until_it_is(tmp_path):
    candidates = [n for n in known_names() if n not in ("pendulum", "stairs")]
    load_plugin(STRANGERS)
    file = capture(tmp_path / "run", "pendulum")
    found = identify(file, candidates=candidates)
    assert found.answer == ()
    assert found.to_json()["unknown"]
    assert found.ranking[0].distance > UNKNOWN
    assert identify(file, candidates=["cubic", "stairs", "pendulum"]).answer == ("pendulum",)


def test_a_buffer_of_few_packets_is_fitted_to_the_packet():
    route = Route(((0.0, 3e6),), 0.04, 11_000)
    for congestion in ("bic", "reno"):
        seen = simulate(route, congestion, 20.0).seen
        assert path_of(seen).buffer_bytes // 1500 == 11_000 // 1500


def test_a_path_is_found_exactly_by_the_packets_that_it_dropped():
    # As much as a bandwidth-delay product of 45 packets lets pass of it: a token bucket would drop the same.
    route = Route(((0.0, 24.367e6),), 0.0224, 36_500)
    found = path_of(simulate(route, "reno", 20.0).seen)
    assert found.policer is None
    assert found.rate_bps == pytest.approx(route.rate_bps, rel=1e-4)
    assert found.buffer_bytes // 1500 == 36_500 // 1500


def test_the_flight_is_what_was_sent_and_not_acknowledged():
    seen = simulate(ROUTE, "reno", 5.0).seen
    flight = flight_of(seen, ROUTE.base_rtt_s)
    n = len(flight.packets) // 2
    at = n * flight.step_s
    before = seen.sent_s <= at
    left = before & (np.isnan(seen.acknowledged_s) | (seen.acknowledged_s > at))
    # What was lost before counts until later packets are acknowledged.
    assert 0 <= left.sum() - flight.packets[n] <= seen.lost[before].sum()
    held = (ROUTE.rate_bps / 8 * ROUTE.base_rtt_s + ROUTE.buffer_bytes) / 1500
    assert 0.9 * held < flight.packets[n:].max() <= held + 3
    assert len(flight.noticed_s) >= 1


def test_a_flow_is_at_no_distance_from_itself():
    seen = simulate(ROUTE, "cubic", 8.0).seen
    own = behaviour(seen, ROUTE)
    assert Likeness.of(own, [own, own]).distance == 0
    other = behaviour(simulate(ROUTE, "vegas", 8.0).seen, ROUTE)
    assert Likeness.of(own, [other]).distance > UNKNOWN


def test_the_command_answers_in_words_and_as_json(tmp_path):
    file = capture(tmp_path / "run", "bbr")
    done = call(file, "--quiet")
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith(": bbr\n")
    told = json.loads(call(file, "--json").stdout)
    assert told["answer"] == ["bbr"]
    assert told["ranking"][0]["congestion"] == "bbr"
    assert told["path"]["rate_bps"] == pytest.approx(ROUTE.rate_bps, rel=0.02)
    shown = call(file, "--flow", 0)
    assert "• " in shown.stdout
    assert "fitted to the flow" in shown.stderr


def test_what_tells_nothing_is_refused(tmp_path):
    file = capture(tmp_path / "run", "cubic", **{"record.capture_ends": "to"})
    with pytest.raises(FitError, match="captured at its receiver"):
        identify(file)
    done = call(file)
    assert done.exit_code == 2
    assert "capture there" in done.stderr
    assert "flow 7 has 0 packets" in call(file, "--flow", 7).stderr
    assert call(tmp_path / "none.pcap").exit_code != 0


def test_a_candidate_that_there_is_not_is_named(tmp_path):
    with pytest.raises(ValueError, match='"cubics" is no congestion control'):
        identify(capture(tmp_path / "run", "cubic"), candidates=["cubics"])


def test_the_controls_of_a_quic_stack_are_no_candidates():
    """They are known by name in this process, and no TCP has them."""
    register("toy", Toy)
    assert "fixed" in names()["congestion"]
    assert "fixed" not in known_names()
