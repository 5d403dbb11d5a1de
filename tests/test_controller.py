"""Congestion controls written in Python."""

from __future__ import annotations

import json

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
    assert "--plugin leaves.py: SystemExit: 0" in done.stderr
    assert not (tmp_path / "out").exists()


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
        gargalo.registry._registered["congestion"].pop("registered")
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


NETWORKS = sorted((ROOT / "examples" / "networks").glob("*.toml"))


@pytest.mark.parametrize("network", NETWORKS, ids=lambda p: p.stem)
def test_reno_in_python_is_reno(network):
    changes = {"duration": "8s", "record.interval": "10ms"}
    name = "flows.0.transport.tcp.congestion"
    rust = gargalo.run(network, set={**changes, name: "reno"})
    python = gargalo.run(
        network, set={**changes, name: "reno-py"}, controllers={"reno-py": PythonReno}
    )
    assert python.flow_samples.equals(rust.flow_samples)
    assert python.link_samples.equals(rust.link_samples)
    assert python.events.equals(rust.events)
    assert rust.flows["delivered_bytes"][0] > 1e6
