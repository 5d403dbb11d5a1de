"""Every example runs in the lab, or the lab refuses it at the key that it cannot do."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import gargalo
import polars as pl
import pytest
from conftest import ROOT
from gargalo.sweeps import SweepFile
from lab_helpers import needs_namespaces

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

EXAMPLES = [
    path
    for folder in ("examples", "examples/networks")
    for path in sorted((ROOT / folder).glob("*.toml"))
]
CASES = [(path, "gargalo") for path in EXAMPLES] + [
    # Few kernels have these congestion controls.
    (ROOT / "examples" / f"{name}.toml", "kernel")
    for name in ("l4s", "mptcp")
]
AT_ONCE = 8
DURATION = "2s"
BETWEEN_STARTS_MS = 200


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def in_the_lab(path: Path, stack: str, output: Path) -> gargalo.Run:
    """Run an example for two seconds, in which all of its flows start; of a sweep, the first cell."""
    changes: dict[str, object] = {}
    if "axes" in read(path):
        sweep = SweepFile.load(path)
        path, changes = sweep.scenario, dict(sweep.plan()[0].changes)
    for i, _ in enumerate(read(path).get("flows", [])):
        changes[f"flows.{i}.start"] = f"{i * BETWEEN_STARTS_MS}ms"
    if stack == "kernel":
        changes["lab.stack"] = "kernel"
    changes["duration"] = DURATION
    return gargalo.run(path, set=changes, world="lab", output=output)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[object, Future[gargalo.Run]]]:
    """All cases, several at the same time: they wait more than they compute."""
    out = tmp_path_factory.mktemp("examples")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            (path, stack): pool.submit(in_the_lab, path, stack, out / f"{path.stem}-{stack}")
            for path, stack in CASES
        }


@needs_namespaces
@pytest.mark.parametrize(("path", "stack"), CASES, ids=lambda value: getattr(value, "stem", value))
def test_an_example_runs_in_the_lab_or_is_refused_with_its_place(
    runs: dict[object, Future[gargalo.Run]], path: Path, stack: str
) -> None:
    refused = runs[path, stack].exception(timeout=120)
    if isinstance(refused, gargalo.ScenarioError):
        assert stack == "kernel", f"our stack runs every example: {refused}"
        assert f"[{path}:" in str(refused)
        assert refused.diagnostics
        for d in refused.diagnostics:
            assert (d.line > 0, d.column > 0, d.message != "", d.help != "") == (True,) * 4, d
        return
    run = runs[path, stack].result()
    assert run.info["world"] == "lab"
    assert run.flows["failure"].to_list() == [None] * run.flows.height
    # A call may begin with silence.
    delivered = run.flows.filter(pl.col("workload") != "voice").group_by("label")
    assert min(delivered.agg(pl.col("delivered_bytes").sum())["delivered_bytes"]) > 0
    labels = {f["label"] for f in read(path).get("flows", []) if "label" in f}
    assert labels <= set(run.flows["label"])
