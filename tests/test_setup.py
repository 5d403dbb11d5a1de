"""`Run.setup`: typed, and nothing of what the engine says is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path

import gargalo
import pytest
from gargalo import _core
from gargalo.plugins import registry
from gargalo.running import read
from gargalo.scenarios.setup import Setup, with_copies

ROOT = Path(__file__).parent.parent
EVERYTHING = """
name = "everything"
duration = "3s"
seed = 4
record = { gauges = true, interval = "100ms" }

[topology.graph]
nodes = ["a", "b"]

[[topology.graph.links]]
name = "narrow"
from = "a"
to = "b"
up = { rate = { steps = [["0s", "10Mbit/s"], ["1s", "4Mbit/s"]] }, loss = { gilbert-elliott = { p = 0.1, r = 0.9, h = 0.5, k = 1.0 } }, outages = [["1s", "1500ms"]] }
down = { delay = { steps = [["0s", "10ms"], ["2s", "30ms"]] }, jitter = "1ms", loss = { periodic = 50 }, reorder = { probability = 0.01, early = "1ms" }, policer = { rate = "5Mbit/s", burst = "10kB" }, strip_mptcp = "all" }

[[flows]]
from = "a"
to = "b"
label = "own"
transport.tcp = {}
start = "500ms"

[[flows]]
from = "a"
to = "b"
transport.tcp = {}
workload.web = { sessions = "2/s" }

"""


def compare(made, raw, at):
    """Check that an object has all that JSON says."""
    if is_dataclass(made):
        assert isinstance(raw, Mapping), at
        for key, value in raw.items():
            name = {"from": "from_", "gilbert-elliott": "gilbert_elliott"}.get(key, key)
            if value is None and name in ("rate", "stop_s", "jitter", "loss", "reorder"):
                continue
            has = hasattr(made, name)
            compare(getattr(made, name) if has else made.more[key], value, f"{at}.{key}")
    elif isinstance(made, tuple):
        assert len(made) == len(raw), at
        for i, (one, value) in enumerate(zip(made, raw, strict=True)):
            compare(one, value, f"{at}.{i}")
    elif isinstance(made, Mapping) and raw and is_dataclass(next(iter(made.values()), None)):
        assert made.keys() == raw.keys(), at
        for key, value in raw.items():
            compare(made[key], value, f"{at}.{key}")
    else:
        assert made == raw, at


@pytest.mark.parametrize(
    "source",
    [EVERYTHING, *(ROOT / "examples" / f"{name}.toml" for name in ("lab-mixed", "l4s", "mptcp"))],
    ids=["everything", "lab-mixed", "l4s", "mptcp"],
)
def test_nothing_is_lost(source):
    text, path = read(source)
    raw = json.loads(_core.setup(text, path, [], registry.names()))
    compare(Setup.read(raw), raw, "")


def test_copies_are_flows_of_their_own_and_one_in_the_files(tmp_path):
    text = EVERYTHING.replace('label = "own"', 'label = "own"\ncount = 5')
    raw = json.loads(_core.setup(text, None, [], registry.names()))
    assert [f.get("count") for f in raw["flows"]] == [5, None]
    whole = with_copies(raw)
    assert [f["id"] for f in whole["flows"]] == list(range(6))
    assert len({json.dumps({**f, "id": 0}) for f in whole["flows"]}) == 2
    made = Setup.read(raw)
    assert made == Setup.read(whole)
    compare(made, whole, "")
    assert gargalo.run(text, output=tmp_path / "out").setup == made
    assert gargalo.load(tmp_path / "out").setup == made
    file = tmp_path / "out" / "run.json"
    facts = json.loads(file.read_text(encoding="utf-8"))
    assert len(facts["setup"]["flows"]) == 2
    # Results without a manifest are read as they are.
    (tmp_path / "out" / "manifest.json").unlink()
    for wrong in (0, -1, 1e12, "many", 10**12):
        facts["setup"]["flows"][0]["count"] = wrong
        file.write_text(json.dumps(facts))
        with pytest.raises(gargalo.RunError, match=r"its setup is damaged.*count is"):
            gargalo.load(tmp_path / "out")
    facts["setup"]["flows"][0]["count"] = 5
    for wrong in (5, [1, {"a": 2}]):
        file.write_text(json.dumps({**facts, "links": wrong}))
        with pytest.raises(gargalo.RunError, match="its links are damaged"):
            gargalo.load(tmp_path / "out")


def test_attributes():
    run = gargalo.run(EVERYTHING)
    link = run.setup.links[0]
    assert [(s.time_s, s.rate_bps) for s in link.up.rate.steps] == [(0, 10_000_000), (1, 4_000_000)]
    assert link.up.outages[0].start_s == 1
    assert link.down.rate == gargalo.scenarios.setup.Rate()
    assert link.down.delay.steps[1].delay_s == 0.03
    assert link.down.more
    assert [f.endless for f in run.setup.flows] == [True, False]
    assert "cubic" in run.setup.flows[0].transport["tcp"]["congestion"]


def test_the_setup_of_another_version_is_an_error(tmp_path):
    gargalo.run(EVERYTHING, output=tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    file = tmp_path / "out" / "run.json"
    facts = json.loads(file.read_text(encoding="utf-8"))
    del facts["setup"]["nodes"][0]["host"]
    file.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(gargalo.RunError, match=r"run\.json: its setup .*run the scenario again"):
        gargalo.load(tmp_path / "out")
