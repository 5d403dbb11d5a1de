"""The auditor on every example, bench scenario and network: no error; findings in every place they are shown."""

from __future__ import annotations

import json
import sys

import gargalo
import pytest
from conftest import ROOT
from gargalo import load, reporting
from gargalo.exploring import view
from sweep_helpers import MINI, sweep_file

sys.path.insert(0, str(ROOT / "tools"))
from fingerprint import scenarios

GROWS = """\
name     = "grows"
duration = "150ms"
record   = { interval = "10ms" }
[topology.simple]
link = { rate = "1Gbit/s", delay = "10ms", queue = { droptail = "2000 packets" } }
[[flows]]
from = "client"
to   = "server"
transport.tcp = { congestion = "reno" }
"""


@pytest.mark.parametrize("path", scenarios([]), ids=lambda p: p.stem)
def test_no_example_contradicts_itself(path, tmp_path):
    # Those of benchmarks are as long as a measurement of speed needs; this is 25 round trips and more.
    shorter = {"duration": "5s"} if "benches" in path.parts else {}
    run = gargalo.run(path, output=tmp_path / "run", set={"record.flows": True, **shorter})
    errors = [f for f in run.findings if f["severity"] == "error"]
    assert errors == []


def test_findings_are_shown_everywhere(inside, tmp_path):
    path = tmp_path / "grows.toml"
    path.write_text(GROWS)
    done = inside("run", path, "--no-plots", "--output", "out")
    assert done.returncode == 0, "a warning is not a failure"
    assert "warning: flow 0 (reno): had not left slow start" in done.stderr
    assert "[ends-in-slow-start]" in done.stderr
    (found,) = json.loads((tmp_path / "out" / "run.json").read_text())["findings"]
    assert set(found) == {"code", "severity", "subject", "text", "figures"}
    printed = json.loads(inside("run", path, "--json").stdout)
    assert printed["run"]["findings"] == [found]
    about = next(p for p in view(load(tmp_path / "out")) if p["part"] == "about")
    assert any("ends-in-slow-start" in f["text"] for f in about["findings"])
    (tmp_path / "out").rename(tmp_path / "moved")

    sweep = sweep_file(tmp_path, "repeat = 2\n", GROWS)
    facts = json.loads(inside("sweep", sweep, "--json").stdout)
    codes = [f["code"] for f in facts["findings"]]
    assert codes == ["ends-in-slow-start", "equal-repeats"], "a flow alone is not moved"
    assert facts["findings"][0]["figures"]["runs"] == 2
    page = reporting.report_of_sweep(tmp_path / "sweeps" / "test")
    assert [c for c in codes if any(c in n for n in page.notes)] == codes


def test_an_error_ends_with_exit_code_1_and_keeps_the_results(tmp_path, monkeypatch):
    from click.testing import CliRunner
    from gargalo.cli.app import app
    from gargalo.results import Run

    path = tmp_path / "mini.toml"
    path.write_text(MINI)
    lie = {
        "code": "rtt-below-path", "severity": "error", "subject": "flow 0", "text": "too soon", "figures": {},
    }  # fmt: skip
    monkeypatch.setattr(Run, "findings", property(lambda _: [lie]))
    target = tmp_path / "out"
    done = CliRunner().invoke(app, ["run", str(path), "--no-plots", "--output", str(target)])
    assert done.exit_code == 1
    assert "error: flow 0: too soon [rtt-below-path]" in done.stderr
    assert "contradict themselves" in done.stderr
    assert (target / "run.json").is_file()
