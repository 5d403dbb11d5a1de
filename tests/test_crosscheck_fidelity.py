"""ns-3 in the cells of the study fidelity: what it runs, what packets it loses, its results beside the others'."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from gargalo import run
from gargalo.scenarios.scenario import to_toml
from gargalo.studies.model import Context
from gargalo_studies.fidelity import STUDY
from gargalo_studies.fidelity import experiments as ex

sys.path.insert(0, str(Path(__file__).parent.parent / "benches"))

import crosscheck_fidelity as bench
from ns3_build import BenchError

QUICK = replace(STUDY.profiles["quick"], repeat=3)


@pytest.fixture(scope="module")
def plan_rows():
    """The study's plan as its store has it, but for traces and response functions."""
    made = [
        job
        for experiment in STUDY.experiments
        if experiment.name not in ("trace", "response")
        for job in experiment.jobs(QUICK)
    ]
    rows = [
        {
            **job.labels,
            "repeat": job.repeat,
            "seed": job.seed,
            "_scenario": to_toml(job.scenario),
        }
        for job in made
    ]
    return pl.from_dicts(rows, infer_schema_length=None)


def labels(rows):
    return [c for c in rows.columns if c not in ("stack", "repeat", "seed", "_scenario")]


def of(runs, **wanted):
    return next(r for r in runs if wanted.items() <= r.labels.items())


def test_every_cell_that_ns3_can_run_is_planned(plan_rows):
    runs = bench.plan(plan_rows, labels(plan_rows))
    ours = plan_rows.filter(pl.col("stack") == "ours, simulated")
    able = ours.filter(
        pl.col("experiment").is_in(["round-trips", "crowd"]).not_(),
        pl.col("queue").str.starts_with("48 Mbit/s").not_().fill_null(value=True),
    )
    assert len(runs) == able.height
    assert {r.labels["experiment"] for r in runs} == set(bench.EXPERIMENTS)
    first = of(runs, experiment="short", control="cubic", kb=100, mbps=48.0)
    assert {
        "--congestion=TcpCubic",
        "--rate=48000000",
        "--delayMs=50",
        "--backRate=1000000000",
        "--queuePackets=100",
        "--bytes=100000",
        "--duration=120",
        "--warmup=0",
        "--ns3::TcpSocketBase::MinRto=200ms",
        "--run=1",
    } <= set(first.arguments)
    pair = of(runs, experiment="pair", control="bbr", queue="fq-codel")
    assert {"--second=5", "--warmup=10", "--duration=40", "--queue=FqCoDelQueueDisc"} <= set(
        pair.arguments
    )
    marked = of(runs, experiment="ecn", control="reno")
    assert {"--ns3::TcpSocketBase::UseEcn=On", "--ns3::CoDelQueueDisc::UseEcn=true"} <= set(
        marked.arguments
    )
    assert "--onOffRate=8000000" in of(runs, experiment="pause").arguments


def test_only_what_is_random_in_ns3_runs_with_other_numbers(plan_rows):
    runs = bench.plan(plan_rows, labels(plan_rows))

    def different(**wanted):
        return len({r.arguments for r in runs if wanted.items() <= r.labels.items()})

    assert different(experiment="queue", control="reno", queue_packets=100) == 1
    assert different(experiment="queue", control="bbr", queue_packets=100) == 3
    assert different(experiment="pair", control="reno", queue="pie") == 3


def test_ns3_loses_the_packets_that_the_study_loses():
    job = next(
        j
        for j in ex.by_loss(QUICK)
        if j.labels["stack"] == "ours, simulated" and j.labels["loss"] == 0.01
    )
    watched = {**job.scenario, "record": {"flows": False, "interval": "100ms"}}
    result = run(watched, seed=job.seed)
    up = result.link_samples.filter(pl.col("direction") == "up")
    dropped = up["dropped_packets"].max()
    sent = result.flows["sent_packets"][0]
    numbers = bench.lost(job.seed, 0.01, 4000)
    assert list(numbers) == sorted(set(numbers))
    assert 25 <= len(numbers) <= 60
    # Beside data there are a SYN, an acknowledgement and a FIN.
    counts = [sum(n <= sent + more for n in numbers) for more in (0, 4)]
    assert counts[0] <= dropped <= counts[1]
    planned = bench.planned(job.labels, job.scenario, 0, job.seed)
    assert planned.command()[-1].startswith(f"--lost={numbers[0]},{numbers[1]},")


def made_up(rows, factors):
    """A store in which each stack has a factor, and ns-3 another."""
    runs = bench.plan(rows, labels(rows))

    def metrics(experiment, factor):
        found = {"rate_bps": 5e6 * factor}
        if experiment == "short":
            found["completion_s"] = factor
        if experiment == "pair":
            found["share"] = 0.5 + (factor - 1)
        return found

    frame = pl.from_dicts(
        [
            {k: row[k] for k in (*labels(rows), "stack", "repeat", "seed")}
            | metrics(row["experiment"], factors.get(row["stack"], 1.0))
            for row in rows.iter_rows(named=True)
        ],
        infer_schema_length=None,
    )
    found = {r.command(): metrics(r.labels["experiment"], factors["ns-3"]) for r in runs}
    return bench.pairs(Context(QUICK, bench.merged(frame, runs, found), bounds=STUDY.bounds))


def test_the_tables_have_the_kernel_ours_and_ns3_beside_each_other(plan_rows):
    rows = plan_rows.filter(pl.col("experiment").is_in(["queue", "short", "pair", "crowd"]))
    both = made_up(rows, {"ns-3": 1.12, "ours, simulated": 1.07})
    assert len(both) == 3 * (5 + 8 + 5)
    lines = bench.summary_table(both).splitlines()
    assert "| goodput | **all** | 15 | 0% | 100% | 0% | 0% |" in lines
    assert "| completion | **all** | 24 | 0% | 100% | 0% | 0% |" in lines
    assert lines[-1].endswith("| bbr | 5 | 0% | 100% | 0% | 0% |")
    table = bench.cells_table(both).splitlines()
    assert "| queue | cubic | queue of 100 | 5.00 | 5.35 | 5.60 | 1.07 | **1.12** |" in table
    assert (
        "| short | reno | 12 Mbit/s, queue of 100, 10 kB | 1.000 | 1.070 | 1.120 | 1.07 | **1.12** |"
        in table
    )
    assert "| pair | bbr | codel | 50% | 57% | 62% | +7 | **+12** |" in table


def test_other_settings_are_tried_where_ns3_is_far_from_the_kernel(plan_rows):
    runs = bench.plan(plan_rows, labels(plan_rows))
    slow = of(runs, experiment="queue", control="cubic", queue_packets=25)
    changed = slow.varied({"TcpSocketBase::MinRto": "1s"})
    assert set(slow.arguments) ^ set(changed.arguments) == {
        "--ns3::TcpSocketBase::MinRto=200ms",
        "--ns3::TcpSocketBase::MinRto=1s",
    }
    rows = plan_rows.filter(pl.col("experiment").is_in(["queue", "short", "pair"]))
    # 7%: goodput is near, completion is not; pairs are not tried.
    both = made_up(rows, {"ns-3": 1.07})
    outside = bench.far(both)
    assert {c.experiment for c in outside} == {"short"}
    assert {c.text for c in outside} <= {r.cell for r in runs}
    table = bench.variants_table(
        outside,
        {
            "other": {c.text: ours for c, (ours, _) in zip(outside, both[15:], strict=False)},
            "none": {},
        },
    ).splitlines()
    assert table[0] == "| cell | ns-3 to kernel | other | none |"
    assert table[2] == "| **near the kernel, of 24** | 0 | 24 | 0 |"
    assert table[3].endswith("| 1.07 | **1.00** |  |")
    assert bench.far(made_up(rows, {"ns-3": 1.0})) == []


def test_without_the_kernel_there_are_no_cells(plan_rows):
    rows = plan_rows.filter(
        (pl.col("experiment") == "queue") & (pl.col("stack") == "ours, simulated")
    )
    assert made_up(rows, {"ns-3": 1.0}) == []


def test_results_in_the_file_are_not_run_again(tmp_path, monkeypatch):
    file = tmp_path / "kept.json"
    command = ("--congestion=TcpBbr", "--run=1")
    monkeypatch.setattr(bench, "build", lambda _name: pytest.fail("ns-3 was built"))
    first = bench.Results("wheel", 1, file)
    first.made["runs"] = {bench.key(command): {"rate_bps": 2e6}, "0": {"rate_bps": 1.0}}
    first.keep([command])
    assert list(json.loads(file.read_text())["runs"]) == [bench.key(command)]
    assert bench.Results("wheel", 1, file).of([command]) == {command: {"rate_bps": 2e6}}
    # Another build of ns-3, another program and other options are other results.
    assert bench.Results("debian", 1, file).made["runs"] == {}
    other = tmp_path / "other.cc"
    other.write_text("int main() {}")
    monkeypatch.setattr(bench, "SOURCE", other)
    assert bench.Results("wheel", 1, file).made["runs"] == {}
    assert bench.key(command) != bench.key((*command, "--lost=3"))


def test_mistakes_name_the_place_and_the_remedy(tmp_path):
    with pytest.raises(BenchError, match="gargalo study fidelity"):
        bench.loaded(tmp_path / "nothing")
    with pytest.raises(BenchError, match=r"12Mbit/s.*not in Gbit/s"):
        bench.number("12Mbit/s", "Gbit/s")
    with pytest.raises(BenchError, match="no queue"):
        bench.queue_arguments("red")
