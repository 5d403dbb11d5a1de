"""Repeats that are the same run: found by their results, counted once, said aloud; starts that vary."""

from __future__ import annotations

import json
import math

import gargalo
import polars as pl
import pytest
from gargalo import audit, reporting, sweeps
from gargalo.evaluation.scoring import distinct
from gargalo.metrics import difference, mean_interval
from gargalo.metrics.declared import bounds_in, bounds_of
from gargalo.reporting.sweeps import report_of_runs
from gargalo.sweeps import compare as c
from gargalo.sweeps.ceiling import goodput_ceiling, least_completion, least_round_trip
from gargalo.sweeps.statistics import summarise
from sweep_helpers import MINI, sweep_file

CALM = MINI.replace(", loss = { independent = 0.01 }", "")
"""Nothing in it is random."""
QUEUES = {"topology.simple.link.queue.droptail": ["10 packets", "20 packets"]}


def by_hand(*cells: tuple[str, list[str | None]]) -> pl.DataFrame:
    rows = [
        {"cell": name, "seed": seed, "results_hash": found, "goodput_bps": float(seed)}
        for name, hashes in cells
        for seed, found in enumerate(hashes)
    ]
    return pl.DataFrame(rows, schema_overrides={"results_hash": pl.String})


def test_what_counts():
    frame = by_hand(("calm", ["x"] * 5), ("chance", ["a", "b", "a"]), ("old", [None, None]))
    kept = audit.counted(frame, ["cell"])
    assert kept["cell"].to_list() == ["calm", *["chance"] * 3, *["old"] * 2]
    assert kept["seed"][0] == 0, "the first stands for all"
    twice = by_hand(("on", ["a", "b"]), ("off", ["a", "b"]))
    assert audit.counted(twice, ["cell"]).height == 4
    assert audit.counted(frame.drop("results_hash"), ["cell"]).height == 10
    assert audit.counted(frame.filter(cell="calm"), []).height == 1


def test_pooled_cells_have_the_same_weight():
    # The constant 0 and two cells of chance, on common seeds that hit both.
    rows = [("calm", s, "x", 0.0) for s in range(4)]
    rows += [("up", s, f"u{s}", 10.0 + s) for s in range(4)]
    rows += [("down", s, f"d{s}", 20.0 - s) for s in range(4)]
    schema = ["cell", "seed", "results_hash", "x_s"]
    frame = pl.DataFrame(rows, schema, orient="row")

    def pooled(frame):
        return summarise(frame, ["cell"], [], ["x_s"], bounds={"x_s": (0.0, math.inf)}).row(
            0, named=True
        )

    # The chance of each seed cancels: all repeats have the same mean, 30 / 3, and there is no spread.
    found = pooled(frame)
    assert (found["n"], found["mean"], found["low"], found["reason"]) == (
        4,
        10,
        None,
        "4 equal values",
    )
    one = pooled(frame.filter(pl.col("cell") != "down"))
    by_hand_ = mean_interval([5.0, 5.5, 6.0, 6.5], bounds=(0.0, math.inf))
    assert (one["n"], one["mean"], one["method"]) == (4, 5.75, "log")
    assert (one["low"], one["high"]) == (pytest.approx(by_hand_.low), pytest.approx(by_hand_.high))
    # A cell with more runs has no more weight, and a repeat that another lacks is left out.
    more = [("up", 9, "u9", 1000.0)]
    assert pooled(pl.concat([frame, pl.DataFrame(more, schema, orient="row")])) == found
    # No repeat has all cells: the mean of their means, of which nothing is known.
    apart = pl.DataFrame(
        [("a", 0, "p", 1.0), ("a", 1, "q", 3.0), ("b", 2, "r", 5.0)], schema, orient="row"
    )
    assert [pooled(apart)[k] for k in ("n", "mean", "low")] == [1, 3.5, None]
    calm = pooled(frame.filter(cell="calm"))
    assert (calm["n"], calm["mean"], calm["reason"]) == (1, 0, "needs 3 repeats")
    # Between cells there is no chance: one run of each says nothing.
    assert pooled(frame.filter(seed=0))["low"] is None


def test_a_deterministic_cell_is_a_constant_to_the_other():
    rows = [("calm", s, "x", 5.0) for s in range(4)] + [
        ("wild", s, f"w{s}", 6.0 + 0.1 * s) for s in range(4)
    ]
    frame = pl.DataFrame(rows, ["cell", "seed", "results_hash", "x_s"], orient="row")
    sides = c.split(c.Side("s", frame, ["cell"]), "cell", "calm", "wild")
    (row,) = c.compare(*sides, ["x_s"])
    assert (row.difference.test, row.difference.n_a, row.difference.n_b) == ("one-sample t", 1, 4)
    assert row.verdict == "wild higher"
    assert row.p_value == pytest.approx(difference(5.0, [6.0, 6.1, 6.2, 6.3]).p_value)
    # A single run is not a constant.
    single = c.split(
        c.Side("s", frame.filter((pl.col("cell") == "wild") | (pl.col("seed") == 0)), ["cell"]),
        "cell",
        "calm",
        "wild",
    )
    assert c.compare(*single, ["x_s"])[0].verdict == "one run on one side says nothing about chance"
    # Two constants differ exactly.
    both = frame.with_columns(results_hash=pl.col("cell"), x_s=pl.col("x_s").first().over("cell"))
    exact = c.split(c.Side("s", both, ["cell"]), "cell", "calm", "wild")
    assert c.compare(*exact, ["x_s"])[0].verdict == "wild higher, exact"
    report = report_of_runs(frame, ["cell"], title="t")
    (table,) = [t for t in report.tables if t.title.startswith("Difference")]
    assert table.frame["verdict"].to_list() == ["wild higher"]


def test_equal_repeats_are_reported():
    frame = by_hand(("calm", ["x"] * 5), ("chance", ["a", "b", "a"]), ("one", ["y"]))
    (found,) = audit.equal_repeats(frame, ["cell"])
    assert (found.code, found.severity) == ("equal-repeats", "warning")
    assert found.subject == "cell = calm"
    assert found.figures == {"cells": 1, "of_cells": 3, "runs": 5, "counted": 1}
    assert "In 1 of 3 cells" in found.text
    assert audit.equal_repeats(frame.filter(pl.col("cell") != "calm"), ["cell"]) == []


def test_findings_of_runs_are_counted():
    finding = {
        "code": "ends-in-slow-start", "severity": "note", "subject": "flow 1", "text": "so", "figures": {},
    }  # fmt: skip
    grave = {**finding, "code": "goodput-above-capacity", "severity": "error"}
    frame = pl.DataFrame({"findings": [json.dumps([finding]), None, json.dumps([finding, grave])]})
    found = audit.of_runs(frame)
    assert [(f.code, f.figures["runs"]) for f in found] == [
        ("goodput-above-capacity", 1),
        ("ends-in-slow-start", 2),
    ]
    assert "in 2 of 3 runs" in str(found[1])


def test_an_interval_out_of_range_is_an_error():
    row = {"metric": "utilization", "mean": 0.55, "low": -0.58, "high": 1.68}
    summary = pl.DataFrame([row, {**row, "metric": "gain_s"}, {**row, "low": 0.1, "high": 0.9}])
    (found,) = audit.intervals(summary, [])
    assert (found.code, found.severity) == ("interval-out-of-range", "error")


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    store = tmp_path_factory.mktemp("calm") / "s"
    return gargalo.sweep(CALM, QUEUES, repeat=5, store=store, workers=2, start_jitter="0s")


def test_a_sweep_without_chance_counts_its_repeats_once(calm):
    frame = calm.frame()
    assert frame["results_hash"].n_unique() == 2
    summary = calm.summary()
    assert summary["n"].max() == 1
    assert summary["low"].null_count() == summary.height
    (found,) = calm.findings()
    assert (found.code, found.figures["runs"]) == ("equal-repeats", 10)
    side = c.side_of(calm.store.path)
    rows = c.compare(*c.split(side, "droptail", "10 packets", "20 packets"))
    assert all(r.p_value is None and r.difference.n_a == 1 for r in rows)
    report = reporting.report_of_sweep(calm)
    assert any("equal-repeats" in n for n in report.notes)
    assert not [t for t in report.tables if t.title.startswith("Difference")]
    cells = report.tables[0].frame
    assert cells["runs"].to_list() == [1, 1]
    assert cells["goodput_bps_low"].null_count() == 2


def test_starts_vary_in_sweeps_unless_switched_off(tmp_path):
    jobs = sweeps.plan(CALM, QUEUES, repeat=2)
    assert {j.changes["start_jitter"] for j in jobs} == {"1RTT"}
    assert all("start_jitter" not in j.changes for j in sweeps.plan(CALM, QUEUES))
    own = sweeps.plan(f'start_jitter = "3ms"\n{CALM}', repeat=2)
    assert all("start_jitter" not in j.changes for j in own), "the scenario says it"
    off = sweeps.plan(CALM, repeat=2, set={"start_jitter": "0s"}, start_jitter="5ms")
    assert {j.changes["start_jitter"] for j in off} == {"0s"}
    axis = sweeps.plan(CALM, {"start_jitter": ["0s", "1RTT"]}, repeat=2)
    assert [j.changes["start_jitter"] for j in axis] == ["0s", "0s", "1RTT", "1RTT"]
    with pytest.raises(sweeps.SweepError, match="start_jitter = 5"):
        sweeps.SweepFile.load(sweep_file(tmp_path, "start_jitter = 5\n"))

    frames = [
        gargalo.sweep(CALM, QUEUES, repeat=4, store=tmp_path / str(n), workers=n, keep=["flows"])
        for n in (1, 2)
    ]
    one, two = (f.frame().drop("wall_s") for f in frames)
    assert one.equals(two), "whatever the number of workers"
    assert one["results_hash"].n_unique() == 8
    assert frames[0].findings() == []
    assert frames[0].summary(metrics=["goodput_bps"])["n"].to_list() == [4, 4]
    starts = frames[0].table("flows").collect()
    assert starts["start_s"].max() < 0.01, "within a round trip of 2 x 5 ms"
    by_run = starts.group_by("run").agg(pl.col("start_s").min())
    assert by_run["start_s"].to_list() == [0.0] * 8, "one flow of each run keeps its time"
    # A run of the sweep is run again by what the plan says of it.
    row = frames[0].plan.row(0, named=True)
    again = gargalo.run(CALM, seed=row["seed"], set=json.loads(row["_changes"]))
    assert again.info["results_hash"] == one["results_hash"][0]


def test_the_command_reports_equal_repeats(inside, tmp_path):
    path = sweep_file(tmp_path, 'repeat = 3\nstart_jitter = "0s"\n', CALM)
    done = inside("sweep", path)
    assert done.returncode == 0, done.stderr
    assert "all repeats gave the same results" in done.stderr
    assert "±" not in done.stdout
    assert "Interval n/a, needs 3 repeats: in 1 of 1 cells" in done.stdout
    facts = json.loads(inside("sweep", path, "--json").stdout)
    assert [f["code"] for f in facts["findings"]] == ["equal-repeats"]
    assert {r["reason"] for r in facts["summary"]} == {"needs 3 repeats"}
    both = json.loads(inside("compare", "sweeps/test", "sweeps/test", "--json").stdout)
    assert [f["code"] for f in both["findings"]] == ["equal-repeats"] * 2
    varied = sweep_file(tmp_path, "repeat = 3\n", CALM)
    assert json.loads(inside("sweep", varied, "--json").stdout)["findings"] == []


def test_evaluations_count_the_same_repeat_once():
    rows = pl.DataFrame(
        {"repeat": [0, 0, 1, 1], "results_hash": ["a", "b", "b", "a"], "x": [1.0, 2.0, 2.0, 1.0]}
    )
    assert distinct(rows)["repeat"].to_list() == [0, 0]
    other = rows.with_columns(results_hash=pl.Series(["a", "b", "b", "c"]))
    assert distinct(other).height == 4
    assert distinct(rows.drop("results_hash")).height == 4


def test_labels_may_be_called_as_columns_of_the_statistics():
    rows = [(name, s, f"{name}{s}", float(s)) for name in "ab" for s in range(3)]
    frame = pl.DataFrame(rows, ["constant", "seed", "results_hash", "x_s"], orient="row")
    assert summarise(frame, ["constant"], ["constant"], ["x_s"])["constant"].to_list() == ["a", "b"]
    assert summarise(frame, ["constant"], [], ["x_s"])["n"].to_list() == [3]


def test_the_interval_of_goodput_is_below_what_the_network_carries():
    rows = [
        {"cc": cc, "seed": k, "repeat": k, "goodput_bps": bps, "ceiling_bps": 1e7, "results_hash": f"{cc}{k}"}
        for cc, rates in (("a", (8.2e6, 9.9e6, 9.6e6)), ("b", (9.5e6, 9.4e6, 9.6e6)))
        for k, bps in enumerate(rates)
    ]  # fmt: skip
    frame = pl.DataFrame(rows)
    a = summarise(frame, ["cc"], ["cc"], ["goodput_bps"]).row(0, named=True)
    assert (a["method"], a["low"] < a["mean"] < a["high"] < 1e7) == ("logit", True)
    free = summarise(frame.drop("ceiling_bps"), ["cc"], ["cc"], ["goodput_bps"]).row(0, named=True)
    assert (free["method"], free["high"] > 1e7) == ("log", True)
    # Neither do two of them differ by more.
    sides = [c.Side(n, frame.filter(pl.col("cc") == n).drop("cc"), ()) for n in ("a", "b")]
    (row,) = c.compare(*sides, ["goodput_bps"])
    assert -1e7 <= row.difference.low <= row.difference.high <= 1e7


@pytest.mark.parametrize(
    ("topology", "flows", "bps"),
    [
        ('simple = { link = { rate = "5Mbit/s" } }', (("client", "server"),), 5e6),
        ('simple = { link = { rate = "5Mbit/s" } }', (("client", "server"), ("server", "client")), 10e6),
        ('dumbbell = { pairs = 3, access = { rate = "4Mbit/s" }, bottleneck = { rate = "10Mbit/s" } }',
         (("left0", "right0"), ("left1", "right1"), ("left2", "right2")), 10e6),
        ('dumbbell = { pairs = 2, access = { rate = "4Mbit/s" }, bottleneck = { rate = "10Mbit/s" } }',
         (("left0", "right0"), ("left1", "right1")), 8e6),
        ('multipath = { paths = [{ rate = "2Mbit/s" }, { rate = "3Mbit/s" }] }', (("client", "server"),), 5e6),
    ],
)  # fmt: skip
def test_what_a_network_can_carry(topology, flows, bps):
    text = f'name = "x"\nduration = "300ms"\n[topology]\n{topology}\n' + "".join(
        f'[[flows]]\nfrom = "{a}"\nto = "{b}"\ntransport.tcp = {{}}\nworkload.bulk = {{}}\n' for a, b in flows
    )  # fmt: skip
    run = gargalo.run(text)
    assert goodput_ceiling(run) == bps
    assert run.summary["goodput_bps"] <= bps


@pytest.mark.parametrize(
    ("figure", "column", "limit", "values"),
    [
        ("ping_rtt_p50_s", "least_rtt_s", 0.04, (0.0401, 0.052, 0.0403)),
        ("rtt_p95_s", "least_rtt_s", 0.04, (0.0401, 0.052, 0.0403)),
        ("completion_p50_s", "least_completion_s", 0.8, (0.81, 1.4, 0.805)),
        ("queue_delay_p95_s", "queue_drain_s", 0.126, (0.125, 0.09, 0.124)),
    ],
)
def test_no_interval_leaves_what_the_network_allows(figure, column, limit, values):
    rows = [
        {"cc": "a", "seed": k, "repeat": k, figure: v, column: limit, "results_hash": f"{k}"}
        for k, v in enumerate(values)
    ]
    frame = pl.DataFrame(rows)
    row = summarise(frame, ["cc"], ["cc"], [figure]).row(0, named=True)
    assert row["low"] < row["mean"] < row["high"]
    upper = column == "queue_drain_s"
    assert row["high"] < limit if upper else row["low"] > limit
    free = summarise(frame.drop(column), ["cc"], ["cc"], [figure]).row(0, named=True)
    assert free["high"] > limit if upper else free["low"] < limit
    # Of runs on several networks the loosest limit holds, and none where one of them has none.
    other = frame.with_columns(pl.lit(limit * (2 if upper else 0.5)).alias(column))
    end = bounds_in(figure, pl.concat([frame, other]))[upper]
    assert end == other[column][0]
    unknown = frame.with_columns(pl.lit(None, pl.Float64).alias(column))
    assert bounds_in(figure, pl.concat([frame, unknown])) == bounds_of(figure)


PINGED = """
name = "x"
duration = "3s"
[topology]
simple.link = { LINK }
[[flows]]
from = "client"
to = "server"
transport.tcp = {}
workload.bulk = { bytes = "100kB" }
[[flows]]
from = "client"
to = "server"
transport.udp = {}
workload.ping = { interval = "100ms" }
"""


@pytest.mark.parametrize(
    ("link", "rtt_s", "bps"),
    [
        ('rate = "5Mbit/s", delay = "20ms"', 0.04, 10e6),
        ('rate = "5Mbit/s", delay = "20ms", down = { delay = "10ms", rate = "20Mbit/s" }', 0.03, 25e6),
        ('rate = "5Mbit/s", delay = { steps = [["0s", "20ms"], ["1s", "5ms"]] }', 0.01, 10e6),
        ('rate = "5Mbit/s", delay = "20ms", jitter = "5ms"', None, 10e6),
        ('rate = { steps = [["0s", "5Mbit/s"], ["1s", "9Mbit/s"]] }, delay = "20ms"', 0.04, None),
        ('delay = "20ms"', 0.04, None),
    ],
)  # fmt: skip
def test_what_a_network_can_do_at_best(link, rtt_s, bps):
    run = gargalo.run(PINGED.replace("LINK", link))
    found = least_round_trip(run)
    assert found == (None if rtt_s is None else pytest.approx(rtt_s))
    if found is not None:
        assert run.summary["ping_rtt_min_s"] >= found
        assert run.flows["rtt_min_s"].min() >= found
    least = least_completion(run)
    # At what is carried both ways together.
    assert least == (None if bps is None else pytest.approx(100_000 * 8 / bps))
    if least is not None:
        assert run.summary["completion_p50_s"] >= least


def test_the_shortest_of_several_paths_is_the_least():
    paths = '[{ rate = "2Mbit/s", delay = "30ms" }, { rate = "3Mbit/s", delay = "9ms" }]'
    run = gargalo.run(PINGED.replace("simple.link = { LINK }", f"multipath.paths = {paths}"))
    assert least_round_trip(run) == pytest.approx(0.018)
    assert least_completion(run) == pytest.approx(0.08)
