"""`gargalo export`: tables of runs and sweeps as CSV."""

from __future__ import annotations

import gargalo
import polars as pl
import pytest
from click.testing import CliRunner
from conftest import TINY
from gargalo import exporting, sweeps
from gargalo.cli.app import app
from gargalo.sweeps import result
from sweep_helpers import MINI

AXES = {
    "loss": {"key": "topology.simple.link.loss.independent", "values": ["0.1%", "1%"]},
    "topology.simple.link.delay": ["5ms", "20ms"],
}


def export(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["export", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "s"
    keep = ["flows", "flow_samples"]
    gargalo.sweep(MINI, AXES, repeat=2, store=path, workers=2, keep=keep, name="loss")
    return path


def test_a_run_has_a_file_for_each_table(tmp_path):
    run = gargalo.run(TINY, output=tmp_path / "run")
    told = export(tmp_path / "run", "--csv", "--output", tmp_path / "t").split()
    names = {p.name for p in (tmp_path / "t").iterdir()}
    assert names == {t.rpartition("/")[2] for t in told}
    assert {"summary.csv", "links.csv", "flows.csv", "flow_samples.csv"} <= names
    read = pl.read_csv(tmp_path / "t" / "flow_samples.csv")
    assert read.columns == run.flow_samples.columns
    assert read["srtt_s"].to_list() == run.flow_samples["srtt_s"].to_list(), "to the last digit"
    summary = pl.read_csv(tmp_path / "t" / "summary.csv")
    assert summary["goodput_bps"].to_list() == [run.summary["goodput_bps"]]
    assert pl.read_csv(tmp_path / "t" / "links.csv").height == len(run.links)


def test_a_sweep_has_its_results_with_their_axes(store, tmp_path):
    export(store, "--csv", "--output", tmp_path)
    sweep = sweeps.load(store)
    found = pl.read_csv(tmp_path / "results.csv")
    assert found["run"].to_list() == sweep.frame()["run"].to_list()
    assert found["goodput_bps"].to_list() == sweep.frame()["goodput_bps"].to_list()
    assert found["loss"].to_list() == [v for v in ("0.1%", "1%") for _ in range(4)]
    assert found["loss_share"].to_list() == [0.001] * 4 + [0.01] * 4
    assert set(found["delay_s"]) == {0.005, 0.02}
    cells = pl.read_csv(tmp_path / "cells.csv").filter(metric="goodput_bps")
    assert cells.height == 4
    flows = pl.read_csv(tmp_path / "flows.csv")
    assert flows.columns[:4] == ["run", "sweep.loss", "sweep.loss_share", "delay"]
    assert flows["goodput_bps"].to_list() == sweep.table("flows").collect()["goodput_bps"].to_list()


def test_large_tables_are_read_in_parts_of_whole_runs(store, monkeypatch):
    sweep = sweeps.load(store)
    whole = sweep.table("flow_samples").collect()
    parts = list(sweep.batches("flow_samples", most_rows=1))
    assert len(parts) == sweep.plan.height, "one run has more rows than that"
    assert pl.concat(parts).equals(whole)
    most = 2 * max(p.height for p in parts)
    halves = list(sweep.batches("flow_samples", most_rows=most))
    assert 1 < len(halves) < len(parts)
    assert pl.concat(halves).equals(whole)
    monkeypatch.setattr(result, "BATCH_RUNS", 1)
    assert len(list(sweep.batches("flows", most_rows=10**6))) == sweep.plan.height


def test_a_table_of_a_run_is_read_in_parts(tmp_path):
    run = gargalo.run(TINY, output=tmp_path / "run")
    parts = list(exporting.parts(tmp_path / "run", "flow_samples", rows=10))
    assert [p.height for p in parts[:-1]] == [10] * (len(parts) - 1)
    assert pl.concat(parts).equals(run.flow_samples)


def test_files_that_exist_are_kept(store, tmp_path):
    (tmp_path / "cells.csv").write_text("mine")
    assert "add --overwrite" in export(store, "--output", tmp_path, code=2)
    assert [p.name for p in tmp_path.iterdir()] == ["cells.csv"], "nothing was written"
    export(store, "--output", tmp_path, "--overwrite")
    assert (tmp_path / "cells.csv").read_text() != "mine"


def test_what_cannot_be_exported_is_named(tmp_path, store):
    assert "does not exist" in export(tmp_path / "none", code=2)
    (tmp_path / "empty").mkdir()
    assert "has no results" in export(tmp_path / "empty", code=2)
    run = gargalo.run(TINY, output=tmp_path / "run")
    assert "is not a store" in export(run.directory, "--name", "loss", code=2)
    file = tmp_path / "run" / "flow_samples.parquet"
    file.write_bytes(file.read_bytes()[:-10])
    told = export(tmp_path / "run", "--output", tmp_path / "t", code=2)
    assert "flow_samples.parquet" in told
    assert not list((tmp_path / "t").glob("*flow_samples*")), "whole or not at all"
    (tmp_path / "f").write_text("")
    assert "is not a directory" in export(store, "--output", tmp_path / "f", code=2)
