"""A resolved scenario is a scenario: it says everything, and runs the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gargalo
import pytest
from gargalo._toml import loads
from gargalo.results import TABLES
from gargalo.running import setup

ROOT = Path(__file__).parent.parent
EXAMPLES = [
    path
    for folder in ("examples", "examples/networks")
    for path in sorted((ROOT / folder).glob("*.toml"))
    if "duration" in loads(path.read_text(encoding="utf-8"))
]
SHORT = {"duration": "1500ms"}
"""Enough for every kind of flow to begin; the whole of each example is run elsewhere."""


def shortened(path: Path) -> dict[str, str]:
    """Return changes that end a run soon, where nothing in it comes later."""
    flows = loads(path.read_text(encoding="utf-8")).get("flows", [])
    late = any(f.get("start", "0s") != "0s" or "stop" in f for f in flows)
    return {} if late else SHORT


@pytest.fixture(scope="module")
def traces():
    """Make the trace that `make demo` makes."""
    path = ROOT / "examples/traces/cellular.down"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        command = ["trace", "generate", str(path), "--duration", "60s", "--seed", "7"]
        subprocess.run([sys.executable, "-m", "gargalo", *command], check=True)


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_a_resolved_scenario_runs_the_same(path, tmp_path):
    changes = shortened(path)
    if setup(path).hosts:
        again = gargalo.resolve(gargalo.resolve(path))
        assert again == gargalo.resolve(path)
        return
    first = gargalo.run(path, set=changes, output=tmp_path / "first")
    texts = {"a dictionary": first.scenario, "its file": tmp_path / "first" / "scenario.toml"}
    for what, scenario in texts.items():
        second = gargalo.run(scenario, output=tmp_path / what)
        assert second.scenario == first.scenario, what
        assert second.info["scenario_hash"] == first.info["scenario_hash"], what
        assert second.info["results_hash"] == first.info["results_hash"], what
        for table in TABLES:
            assert second.table(table).equals(first.table(table)), (what, table)


def test_the_command_prints_a_scenario(tmp_path):
    path = ROOT / "examples/cubic-vs-bbr.toml"
    command = [sys.executable, "-m", "gargalo", "resolve", str(path), "--set", "duration=6s"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "seed = 1" in text
    file = tmp_path / "again.toml"
    file.write_text(text, encoding="utf-8")
    assert gargalo.resolve(file) == gargalo.resolve(path, set={"duration": "6s"})
    shown = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    assert json.loads(shown.stdout) == loads(text)
    wrong = subprocess.run(
        [*command, "--set", "seed=x"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "seed" in wrong.stderr


def test_live_and_loaded_runs_are_equal(tmp_path):
    path = ROOT / "examples/cubic-vs-bbr.toml"
    live = gargalo.run(path, set={"duration": "6s"}, output=tmp_path / "out")
    loaded = gargalo.load(tmp_path / "out")
    for name in ("summary", "links", "info", "source", "scenario", "setup", "interrupted"):
        assert getattr(loaded, name) == getattr(live, name), name
    assert loaded.to_json() == live.to_json()


def test_seconds_print_as_they_are():
    run = gargalo.run(ROOT / "examples/cubic-vs-bbr.toml", set={"duration": "6100ms"})
    assert run.info["duration_s"] == 6.1
    assert "000000000" not in json.dumps(run.info["virtual_s"])
