"""Congestion controls written in Python."""

from __future__ import annotations

import copy
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import gargalo
import polars as pl
import pytest
from conftest import ROOT, TINY

AIMD = """
import gargalo


@gargalo.congestion("aimd")
class Aimd(gargalo.Controller):
    def __init__(self, init, gain=1.0):
        self.window = float(init.initial_window)
        self.gain = gain

    def on_ack(self, ack, path):
        if not ack.in_recovery:
            self.window += self.gain * path.mss * ack.acknowledged / self.window

    def on_congestion(self, event, path):
        self.window = path.mss if event.cause == "timeout" else max(self.window / 2, path.mss)

    def cwnd(self):
        return self.window

    def phase(self):
        return "additive-increase"
"""


def scenario(name: str) -> str:
    return TINY.replace('"cubic"', f'"{name}"')


class Fixed(gargalo.Controller):
    """A constant window of ten segments."""

    def __init__(self, init):
        self.window = 10 * init.mss
        self.calls = {"ack": 0}

    def on_ack(self, ack, path):
        assert ack.now >= 0
        assert path.mss > 0
        self.calls["ack"] += 1

    def on_congestion(self, event, path):
        assert event.cause in ("loss", "ecn", "timeout")

    def cwnd(self):
        return self.window


def test_by_name_in_python():
    run = gargalo.run(scenario("fixed"), controllers={"fixed": Fixed})
    upload = run.flows.row(0, named=True)
    assert upload["congestion"] == "fixed"
    assert upload["delivered_bytes"] > 100_000
    windows = run.flow_samples.filter(pl.col("flow") == 0)
    assert set(windows["congestion_window_bytes"]) == {10 * 1448}


def test_by_name_in_the_command(gargalo, tmp_path):
    (tmp_path / "aimd.py").write_text(AIMD)
    path = tmp_path / "s.toml"
    path.write_text(scenario("aimd"))
    done = gargalo("run", path, "--json", "--plugin", "aimd.py")
    assert done.returncode == 0, done.stderr
    flow = json.loads(done.stdout)["flows"][0]
    assert flow["congestion"] == "aimd"
    assert flow["goodput_bps"] > 1e5
    without = gargalo("run", path, "--json")
    assert without.returncode == 2
    assert "aimd" in without.stderr


def test_parameters_reach_the_class():
    seen = []

    class WithParameter(Fixed):
        def __init__(self, init, gain=1.0):
            super().__init__(init)
            seen.append(gain)

    text = TINY.replace('congestion = "cubic"', "congestion = { mine = { gain = 0.25 } }")
    gargalo.run(text, controllers={"mine": WithParameter})
    assert set(seen) == {0.25}


class Broken(Fixed):
    def on_ack(self, ack, path):
        super().on_ack(ack, path)
        if self.calls["ack"] == 20:
            raise ZeroDivisionError("twentieth acknowledgement")


class NotANumber(Fixed):
    def on_ack(self, ack, path):
        self.window = float("nan")


class NoWindow(gargalo.Controller):
    def on_ack(self, ack, path): ...

    def on_congestion(self, event, path): ...


class BadConstructor(Fixed):
    def __init__(self, init):
        raise OSError("no")


@pytest.mark.parametrize(
    ("controller", "error", "text"),
    [
        (Broken, ZeroDivisionError, "twentieth"),
        (NotANumber, ValueError, r"cwnd\(\) returned"),
        (NoWindow, TypeError, r"cwnd\(\)"),
        (BadConstructor, OSError, "no"),
    ],
)
def test_what_a_controller_raises_is_raised(controller, error, text):
    with pytest.raises(error, match=text):
        gargalo.run(scenario("x"), controllers={"x": controller})


def returning(method, value):
    return type("Returning", (Fixed,), {method: lambda _: value})


@pytest.mark.parametrize(
    ("method", "value", "text"),
    [
        ("cwnd", "10 packets", r"cwnd\(\) returned '10 packets'; it must be a number of bytes"),
        ("cwnd", None, r"cwnd\(\) returned None; it must be a number of bytes"),
        (
            "ssthresh",
            "none",
            r"ssthresh\(\) returned 'none'; it must be a number of bytes, or None",
        ),
        (
            "pacing_rate",
            "1Mbit/s",
            r"pacing_rate\(\) returned '1Mbit/s'; it must be a number of bit/s",
        ),
        ("send_quantum", [], r"send_quantum\(\) returned \[\]; it must be a number of bytes"),
        ("governs_recovery", "no", r"governs_recovery\(\) returned 'no'; it must be True or False"),
        ("phase", 3, r"phase\(\) returned 3; it must be text"),
        ("gauges", [1], r"gauges\(\) returned \[1\]; it must be a dictionary of names and numbers"),
        ("gauges", {"x_s": "1"}, r"gauges\(\) returned {'x_s': '1'}; it must be a dictionary"),
    ],
)
def test_a_wrong_return_value_is_reported_with_class_method_and_expected_type(method, value, text):
    with pytest.raises(TypeError, match=f"^Returning.{text}"):
        gargalo.run(
            scenario("x"),
            set={"record.gauges": True},
            controllers={"x": returning(method, value)},
        )


def test_a_class_cannot_end_the_process(gargalo, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(scenario("aimd"))
    exits = AIMD.replace(
        "def on_ack(self, ack, path):", "def on_ack(self, ack, path):\n        raise SystemExit"
    )
    (tmp_path / "exits.py").write_text(exits)
    done = gargalo("run", path, "--plugin", "exits.py", "--output", "out")
    assert done.returncode == 1, done.stderr
    assert "sys.exit" in done.stderr
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    done = gargalo("run", path, "--plugin", "leaves.py", "--output", "out")
    assert done.returncode == 2, done.stderr
    assert "leaves.py:2: SystemExit: 0" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_rewritten_within_a_second_is_taken_as_it_is(gargalo, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "s.toml").write_text(scenario("aimd"))
    file = tmp_path / "aimd.py"

    def packets(gain: str) -> int:
        file.write_text(AIMD.replace("gain=1.0", f"gain={gain}"))
        os.utime(file, (1e9, 1e9))
        done = gargalo("run", "s.toml", "--json", "--plugin", "aimd.py")
        return json.loads(done.stdout)["links"][0]["sent_packets"]

    assert packets("1.0") != packets("0.1")


def test_failures_in_the_command_show_the_traceback(gargalo, tmp_path):
    (tmp_path / "broken.py").write_text(
        AIMD.replace("self.window / 2", "self.window / 0").replace(
            "def on_ack(self, ack, path):", "def on_ack(self, ack, path):\n        1 / 0"
        )
    )
    path = tmp_path / "s.toml"
    path.write_text(scenario("aimd"))
    done = gargalo("run", path, "--plugin", "broken.py", "--output", "out")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "broken.py" in done.stderr
    assert not (tmp_path / "out").exists()


def test_runs_repeat():
    def bytes_of() -> list:
        run = gargalo.run(scenario("fixed"), controllers={"fixed": Fixed})
        return run.flow_samples.to_dicts()

    assert bytes_of() == bytes_of()


def test_registration():
    gargalo.register("registered", Fixed)
    try:
        assert gargalo.run(scenario("registered")).flows["congestion"][0] == "registered"
    finally:
        gargalo.plugins.registry._registered["congestion"].pop("registered")
    with pytest.raises(TypeError, match="not a class derived"):
        gargalo.register("x", object)
    with pytest.raises(ValueError, match="cannot be a name"):
        gargalo.register("a b", Fixed)


class PythonReno(gargalo.WindowBased):
    """Reno (RFC 5681, RFC 3465) once more."""

    def increase(self, acked, ack, path):
        self.grow(float(self.mss) * float(acked) / float(self.window))

    def decrease(self, event, path):
        return 0.5 * self.flight_size(event)


class RenoByRound(gargalo.WindowBased):
    """The same, without a call for each acknowledgement."""

    def segments_per_round(self, path):
        return 1.0

    def decrease(self, event, path):
        return 0.5 * self.flight_size(event)


NETWORKS = sorted((ROOT / "examples" / "networks").glob("*.toml"))


@pytest.mark.parametrize("network", NETWORKS, ids=lambda p: p.stem)
def test_reno_in_python_is_reno(network):
    changes = {"duration": "8s", "record.interval": "10ms"}
    name = "flows.0.transport.tcp.congestion"
    rust = gargalo.run(network, set={**changes, name: "reno"})
    assert rust.flows["delivered_bytes"][0] > 1e6
    for reno in (PythonReno, RenoByRound):
        python = gargalo.run(
            network, set={**changes, name: "reno-py"}, controllers={"reno-py": reno}
        )
        assert python.flow_samples.equals(rust.flow_samples)
        assert python.link_samples.equals(rust.link_samples)
        assert python.events.equals(rust.events)


def test_segments_are_asked_once_a_round_trip():
    asked = []

    class Asked(RenoByRound):
        def segments_per_round(self, path):
            asked.append(path.srtt)
            return 1.0

    run = gargalo.run(scenario("asked"), controllers={"asked": Asked})
    segments = run.flows["delivered_bytes"][0] / 1448
    # Three seconds, and no round trip below 20 ms.
    assert 10 < len(asked) <= 150 < segments / 2
    assert min(asked) > 0.02


class Recorder(Fixed):
    """A constant window, which notes what it is told; the run does not depend on when."""

    told: list

    def on_ack(self, ack, path):
        self.told.append(("ack", ack, path))

    def on_congestion(self, event, path):
        self.told.append(("congestion", event, path))


def test_what_a_class_keeps_stays_as_it_was():
    texts = []

    class Keeps(Recorder):
        told: ClassVar[list] = []

        def on_ack(self, ack, path):
            super().on_ack(ack, path)
            texts.append((repr(ack), repr(path)))

        def on_send(self, sent, path):
            self.told.append(("ack", sent, path))
            texts.append((repr(sent), repr(path)))

    class Drops(Fixed):
        seen: ClassVar[set] = set()

        def on_ack(self, ack, path):
            self.seen.add((id(ack), id(path)))
            with pytest.raises(AttributeError):
                ack.bytes = 1

    gargalo.run(scenario("keeps"), controllers={"keeps": Keeps})
    kept = [(repr(ack), repr(path)) for what, ack, path in Keeps.told if what == "ack"]
    assert kept == texts
    assert len(set(kept)) > 1000
    gargalo.run(scenario("drops"), controllers={"drops": Drops})
    # The sender's, and that of the other end, which gets no data acknowledged.
    assert len(Drops.seen) <= 2


def test_acknowledgements_once_a_round_trip_are_the_sums_of_each():
    class Each(Recorder):
        told: ClassVar[list] = []

    class Round(Recorder):
        told: ClassVar[list] = []
        ack_interval = "round"

    runs = [
        gargalo.run(scenario("x"), set={"record.interval": "10ms"}, controllers={"x": c})
        for c in (Each, Round)
    ]
    assert runs[0].flow_samples.equals(runs[1].flow_samples)
    each, rounds = Each.told, Round.told
    assert 5 * sum(w == "ack" for w, *_ in rounds) < sum(w == "ack" for w, *_ in each)
    assert any(w == "congestion" for w, *_ in rounds)
    at = 0
    for what, record, _ in rounds:
        if what == "congestion":
            assert each[at][0] == what
            assert each[at][1].now == record.now
            at += 1
            continue
        some = [a for w, a, _ in each[at : at + record.count]]
        assert [w for w, *_ in each[at : at + record.count]] == ["ack"] * record.count
        at += record.count
        for name in ("bytes", "acknowledged", "ce_bytes"):
            assert getattr(record, name) == sum(getattr(a, name) for a in some)
        for name in ("now", "in_flight", "round_start"):
            assert getattr(record, name) == getattr(some[-1], name)
        assert record.in_flight_before == some[0].in_flight_before
        assert record.rtt in {a.rtt for a in some}
        assert record.least_rtt == min((a.rtt for a in some if a.rtt is not None), default=None)
        assert {(a.in_recovery, a.cwnd_limited) for a in some} == {
            (record.in_recovery, record.cwnd_limited)
        }
        assert not any(a.round_start for a in some[:-1])
    assert all(w == "ack" for w, *_ in each[at:]), "only acknowledgements of the last round trip"


def test_a_window_that_grows_once_a_round_trip():
    calls = []

    class Coarse(PythonReno):
        ack_interval = "round"

        def increase(self, acked, ack, path):
            calls.append((acked, ack.acknowledged, ack.count))
            super().increase(acked, ack, path)

    changes = {"duration": "10s", "topology.simple.link.loss.independent": 0.0}
    coarse = gargalo.run(scenario("coarse"), set=changes, controllers={"coarse": Coarse})
    fine = gargalo.run(scenario("reno"), set=changes)
    assert len(calls) < 400
    assert all(acked <= of for acked, of, _ in calls)
    assert max(count for *_, count in calls) > 10
    ratio = coarse.flows["goodput_bps"][0] / fine.flows["goodput_bps"][0]
    assert ratio == pytest.approx(1, abs=0.05)


class NoWindowYet(PythonReno):
    def __init__(self, init): ...


@pytest.mark.parametrize(
    ("base", "members", "error", "text"),
    [
        (Fixed, {"ack_interval": "flight"}, ValueError, "X.ack_interval is 'flight'; it must be"),
        (gargalo.WindowBased, {}, TypeError, r"X must define increase\(\) or segments_per_round"),
        (PythonReno, {"segments_per_round": lambda *_: 1}, TypeError, "only one can decide"),
        (PythonReno, {"ack_interval": "round", "on_ack": print}, TypeError, r"define increase\("),
        (NoWindowYet, {}, AttributeError, r"must call super\(\).__init__\(init\)"),
        (PythonReno, {"abc_limit": 0}, TypeError, "X.abc_limit is 0; it must be a whole number"),
        (PythonReno, {"decrease": lambda *_: None}, TypeError, r"X.decrease\(\) returned None"),
        (
            PythonReno,
            {"decrease": lambda *_: float("nan")},
            ValueError,
            r"decrease\(\) returned Na",
        ),
        (PythonReno, {"increase": lambda s, *_: s.grow(float("nan"))}, ValueError, r"grow\(nan\)"),
        (
            PythonReno,
            {"increase": lambda s, *_: setattr(s, "window", float("inf"))},
            ValueError,
            "inf is no number of bytes",
        ),
        (RenoByRound, {"segments_per_round": lambda *_: -1}, ValueError, "returned -1; it must be"),
        (
            RenoByRound,
            {"segments_per_round": lambda *_: "1"},
            TypeError,
            "returned '1'; it must be",
        ),
    ],
)
def test_what_a_window_cannot_be(base, members, error, text):
    with pytest.raises(error, match=text):
        gargalo.run(scenario("x"), controllers={"x": type("X", (base,), members)})


def test_a_copy_has_its_own_window():
    copies = []

    class Copied(PythonReno):
        def __init__(self, init):
            super().__init__(init)
            self.list = [1]

        def decrease(self, event, path):
            twin = copy.deepcopy(self)
            assert (twin.window, twin.threshold) == (self.window, self.threshold)
            twin.set_window(3 * self.mss)
            twin.list.append(2)
            copies.append((self.window, twin.window, list(self.list)))
            return super().decrease(event, path)

    gargalo.run(scenario("copied"), controllers={"copied": Copied})
    assert copies
    assert all(own != other == 3 * 1448 and kept == [1] for own, other, kept in copies)


def test_other_threads_go_on_and_runs_in_threads_are_the_same():
    alone = gargalo.run(scenario("reno"), controllers={"r": PythonReno}).flow_samples
    turns, done = 0, threading.Event()

    def count():
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    counting = threading.Thread(target=count)
    counting.start()
    with ThreadPoolExecutor(2) as pool:
        long = {"duration": "10000s"}
        runs = [
            pool.submit(gargalo.run, scenario("r"), set=s, controllers={"r": PythonReno})
            for s in ({}, long, {})
        ]
        samples = [run.result().flow_samples for run in runs]
    done.set()
    counting.join()
    assert turns > 5
    for other in (samples[0], samples[2]):
        assert other.equals(alone)


def test_reno_in_python_is_reno_on_the_subflows_of_an_old_kernel():
    """Whose Multipath TCP halves the window of a subflow that blocks."""
    path = {"rate": "8Mbit/s", "delay": "10ms", "queue": {"droptail": "1000 packets"}}
    transport = {
        "profile": "linux-4.1-mptcp-0.90",
        "scheduler": "lowest-latency",
        "receive_buffer": "200kB",
    }
    flow = {"from": "client", "to": "server", "workload": {"bulk": {}}}
    made = {
        "duration": "10s",
        "topology": {"multipath": {"paths": [path, {**path, "delay": "75ms"}]}},
        "flows": [{**flow, "transport": {"mptcp": transport}}],
    }
    name = "flows.0.transport.mptcp.congestion"
    rust = gargalo.run(made, set={name: "reno"})
    assert "subflow-penalised" in set(
        gargalo.run(made, set={name: "reno", "record.decisions": True}).events["kind"]
    )
    for reno in (PythonReno, RenoByRound):
        python = gargalo.run(made, set={name: "reno-py"}, controllers={"reno-py": reno})
        assert python.subflow_samples.equals(rust.subflow_samples)
        assert python.events.equals(rust.events)


@pytest.mark.parametrize("change", ["port", "address"])
def test_reno_in_python_is_reno_on_a_quic_connection_that_migrates(change):
    class QuicReno(PythonReno):
        def decrease(self, event, path):
            return 0.5 * self.window

    link = {"rate": "10Mbit/s", "delay": "20ms", "queue": {"droptail": "1BDP"}}
    transport = {"crypto": "null", "migration": {"after": "1500ms", "change": change}}
    flow = {"from": "client", "to": "server", "workload": {"bulk": {}}}
    made = {
        "duration": "4s",
        "topology": {"simple": {"link": link}},
        "flows": [{**flow, "transport": {"quic": transport}}],
    }
    name = "flows.0.transport.quic.congestion"
    rust = gargalo.run(made, set={name: "reno"})
    assert "loss" in set(rust.events["kind"])
    python = gargalo.run(made, set={name: "reno-py"}, controllers={"reno-py": QuicReno})
    assert python.flow_samples.equals(rust.flow_samples)
    assert python.events.equals(rust.events)
