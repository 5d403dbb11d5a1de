"""Several builds of one stack beside each other, built from folders, and compared over a directory of scenarios."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from gargalo.checking.builds import settings
from gargalo.cli.app import app
from gargalo.plugins import discovery, registry
from toy_stack import SOURCE

if TYPE_CHECKING:
    from click.testing import Result

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = """\
duration = "5s"
[topology.simple]
link = {{ rate = "2Mbit/s", delay = "10ms", queue.droptail = "20 packets" }}
[[flows]]
label = "upload"
from = "client"
to = "server"
transport.{transport}
workload.bulk = {{ bytes = "200kB" }}
"""


def written(folder: Path, name: str, window: int = 32) -> None:
    """Write a build of the toy."""
    text = SOURCE.replace("WINDOW, SEGMENT, AGAIN = 32", f"WINDOW, SEGMENT, AGAIN = {window}")
    text += '\n\ngargalo.quic_stack("small")(Toy)\n'
    (folder / f"{name}.py").write_text(text, encoding="utf-8")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with three builds, and scenarios."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GARGALO_STACKS", str(tmp_path))
    for name, window in (("small", 32), ("small@main", 32), ("small@fix", 31)):
        written(tmp_path, name, window)
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    toy = 'quic = { stack = "small", congestion = "fixed" }'
    for name, transport in (("small", toy), ("plain", "tcp = {}")):
        (scenarios / f"{name}.toml").write_text(SCENARIO.format(transport=transport))
    yield tmp_path
    for name in ("small", "small@main", "small@fix"):
        registry.forget_stack(name)


def compared(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compare", "scenarios", *arguments])


def test_builds_are_found_by_their_names_and_loaded_beside_each_other(here):
    assert {"small", "small@main", "small@fix"} <= discovery.installed().keys()
    discovery.load(here / "small@main.py")
    assert "small" not in registry.registered()["stack"]
    discovery.load(here / "small.py")
    before = registry.registered()["stack"]["small"]
    discovery.load(here / "small@fix.py")
    found = registry.registered()["stack"]
    assert found["small"] is before
    assert len({id(found[n]) for n in ("small", "small@main", "small@fix")}) == 3


@pytest.mark.usefixtures("here")
def test_the_first_packet_in_which_two_builds_differ_is_named():
    done = compared("--a", "stack=small@main", "--b", "stack=small@fix", "--json")
    assert done.exit_code == 0, done.output
    plain, toy = json.loads(done.stdout)["scenarios"]
    assert plain == {
        "file": "scenarios/plain.toml", "same": True, "packet": None, "figures": [], "failed": None,
        "alike": True, "cut": False,
    }  # fmt: skip
    assert not toy["same"]
    # The 32nd segment is the first that only one build sends before anything is acknowledged.
    assert toy["packet"]["subject"] == "upload"
    assert 0 < toy["packet"]["time_s"] < 0.2
    text = compared("--a", "stack=small@main", "--b", "stack=small@fix").output
    assert "same    scenarios/plain.toml: both sides are the same scenario" in text
    assert "differs scenarios/small.toml" in text
    assert "stack=small@fix: " in text
    assert "1 of 2 scenarios differ" in text


@pytest.mark.usefixtures("here")
def test_builds_without_a_change_have_the_same_packets():
    text = compared("--a", "stack=small", "--b", "stack=small@main").output
    assert "same    scenarios/small.toml: every packet" in text
    assert "0 of 2 scenarios differ" in text


def test_what_cannot_be_run_fails_and_the_rest_is_compared(here):
    (here / "scenarios" / "wrong.toml").write_text("duration = 1")
    done = compared(
        "--a", "topology.simple.link.rate=2Mbit/s", "--b", "topology.simple.link.rate=1Mbit/s"
    )
    assert done.exit_code == 1
    assert "failed  scenarios/wrong.toml" in done.output
    assert "differs scenarios/plain.toml" in done.output
    for option in ("--repeat", "--seed"):
        refused = compared("--a", "seed=1", option, "2")
        assert refused.exit_code == 2
        assert f"{option} is for a scenario or a sweep" in refused.output


def test_a_stack_takes_the_place_of_other_builds_of_it():
    quic = [
        {"stack": "quinn"},
        {"stack": {"client": "quinn@main", "server": "ngtcp2"}},
        {"stack": "ngtcp2"},
        {},
    ]
    scenario = {
        "flows": [{"transport": {"quic": one}} for one in quic] + [{"transport": {"tcp": {}}}]
    }
    assert settings(scenario, {"stack": "quinn@fix", "duration": "1s"}) == {
        "duration": "1s",
        "flows.0.transport.quic.stack": "quinn@fix",
        "flows.1.transport.quic.stack.client": "quinn@fix",
    }
    assert settings(scenario, {"stack": "noq@mine"}) == {"flows.3.transport.quic.stack": "noq@mine"}
    assert settings({"flows": "none"}, {"stack": "quinn"}) == {}


def test_the_glue_of_a_stack_is_made_for_the_crate_of_a_folder(tmp_path):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import stack_from
    finally:
        sys.path.pop(0)
    checkout = tmp_path / "quinn"
    (checkout / "quinn-proto").mkdir(parents=True)
    manifest = '[package]\nname = "quinn-proto"\nversion = "0.12.0"\n'
    (checkout / "quinn-proto" / "Cargo.toml").write_text(manifest)
    stack_from.glue("quinn", checkout, tmp_path / "made")
    made = (tmp_path / "made" / "Cargo.toml").read_text()
    assert f'quinn-proto = {{ path = "{checkout / "quinn-proto"}", default-features' in made
    assert f'gargalo-plugin = {{ path = "{ROOT}/crates/plugin" }}' in made
    assert f'gargalo-stack-common = {{ path = "{ROOT}/stacks/common"' in made
    assert 'version: "0.12.0"' in (tmp_path / "made" / "src" / "lib.rs").read_text()
    assert (tmp_path / "made" / ".cargo" / "config.toml").is_file()
    with pytest.raises(SystemExit, match="has no crate quiche"):
        stack_from.glue("quiche", checkout, tmp_path / "other")


def test_a_folder_or_a_name_that_is_wrong_is_refused(tmp_path):
    def built(*arguments: str) -> str:
        words = [sys.executable, str(ROOT / "tools" / "stack_from.py"), *arguments]
        more = ["--into", str(tmp_path), "--target", str(tmp_path)]
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        return done.stderr

    assert "is no folder" in built("quinn", str(tmp_path / "none"))
    assert "letters, digits" in built("quinn", str(tmp_path), "--build", "a/b")
    assert "libngtcp2.pc" in built("ngtcp2", str(tmp_path))


def test_a_build_that_ends_the_process_or_raises_fails_alone(here):
    text = (here / "small@fix.py").read_text()
    for name, code in (("dies", "import os; os.abort()"), ("raises", "raise KeyError('x')")):
        broken = text.replace(
            "        self.ready, self.waiting", f"        {code}\n        self.ready, self.waiting"
        )
        (here / f"small@{name}.py").write_text(broken)
    done = compared("--a", "stack=small", "--b", "stack=small@dies")
    assert done.exit_code == 1
    assert "failed  scenarios/small.toml" in done.output
    assert "same    scenarios/plain.toml" in done.output
    done = compared("--a", "stack=small", "--b", "stack=small@raises")
    assert "scenarios/plain.toml" in done.output
    for name in ("small@dies", "small@raises"):
        registry.forget_stack(name)


def test_a_stack_that_no_scenario_has_and_sweeps_are_not_compared(here):
    none = compared("--a", "stack=smal@main", "--b", "stack=smal@fix")
    assert none.exit_code == 2
    assert "no flow has this stack" in none.output
    sweep = 'scenario = "plain.toml"\n[axes]\nseed = [1]\n[[expect]]\nmetric = "summary.jain_index"\nat_least = 0\n'
    (here / "scenarios" / "sweep.toml").write_text(sweep)
    assert (
        "1 of 2 scenarios differ" in compared("--a", "stack=small", "--b", "stack=small@fix").output
    )
