"""Results of sweeps by hand: cells, comparisons, pictures, what was measured, and what it is measured by."""

from __future__ import annotations

import functools
import json
import math
import sys
from types import SimpleNamespace

import polars as pl
import pytest
from gargalo import sweeps
from gargalo.metrics import difference, mean_interval
from gargalo.metrics.declared import CEILING
from gargalo.sweeps import compare as c
from gargalo.sweeps import plugins, result, work
from gargalo.sweeps.checksum import to_parquet
from gargalo.sweeps.picture import Selection, picture
from gargalo.sweeps.rows import files
from gargalo.sweeps.statistics import samples, summarise
from gargalo.sweeps.store import RUNS, Store

CELLS = [(cc, delay, repeat) for cc in ("reno", "bbr") for delay in (5, 20) for repeat in range(4)]
GOODPUT = {key: 1e6 + 1e5 * i + 3e4 * (i % 3) for i, key in enumerate(CELLS)}


def run_of(cc, delay, repeat):
    return f"{CELLS.index((cc, delay, repeat)):x}" * 32


@pytest.fixture
def sweep(tmp_path):
    """Two congestion controls, two delays, four repeats, with flows and a measured figure; the last run is missing."""
    store = Store.create(tmp_path / "s")
    plan = pl.DataFrame(
        {
            "run": [run_of(*key) for key in CELLS],
            "cc": [cc for cc, _, _ in CELLS],
            "delay": [delay for _, delay, _ in CELLS],
            "repeat": [repeat for _, _, repeat in CELLS],
            "seed": [100 + repeat for _, _, repeat in CELLS],
            "_measure": ["measures-m"] * len(CELLS),
            "_bounds": ['{"mine": [0, null], "other": [null, 5]}'] * len(CELLS),
        }
    )
    store.write_plan("race", plan)
    for i, key in enumerate(CELLS[:-1]):
        run = run_of(*key)
        own = pl.DataFrame(
            {"run": [run], "goodput_bps": [GOODPUT[key]], "packets": [i], "results_hash": [run]}
        )
        flows = pl.DataFrame(
            {
                "run": [run] * 3, "id": [0, 1, 2], "label": ["up", "down", "down"],
                "congestion": [key[0], "cubic", "cubic"], "measured_bytes": [30, 10 + i, 20],
                "goodput_bps": [GOODPUT[key], 5e5, 6e5], "delay": [0.1, 0.2, 0.3],
            }
        )  # fmt: skip
        mine = pl.DataFrame({"run": [run], "mine": [float(i)], "goodput_bps": [0.0]})
        tables = {RUNS: own, "flows": flows, "measures-m": mine}
        store.commit(run, {k: to_parquet(v) for k, v in tables.items()})
    return sweeps.load(store.path)


# --- tables


def test_a_frame_has_a_row_for_each_finished_run_in_the_order_of_the_plan(sweep):
    frame = sweep.frame()
    assert frame.columns == [
        "run", "cc", "delay", "repeat", "seed", "mine", "goodput_bps", "packets", "results_hash",
    ]  # fmt: skip
    assert frame["run"].to_list() == [run_of(*key) for key in CELLS[:-1]]
    assert set(frame["goodput_bps"]) == {0.0}, "what was measured goes before what every run has"
    assert (sweep.finished, sweep.labels, sweep.metrics) == (
        15,
        ["cc", "delay"],
        ["mine", "goodput_bps", "packets"],
    )
    assert sweep.bounds == {"mine": (0, math.inf), "other": (-math.inf, 5)}
    plain = sweeps.Sweep("x", sweep.store, sweep.plan.drop("_bounds"))
    assert plain.bounds == {}


def test_a_kept_table_has_the_labels_beside_its_columns(sweep):
    found = sweep.table("flows").collect()
    assert found.columns[:5] == ["run", "cc", "sweep.delay", "repeat", "seed"]
    assert found.height == 45
    assert found["id"].to_list() == [0, 1, 2] * 15, "rows of a run stay in order"
    assert found.row(3)[:5] == (run_of("reno", 5, 1), "reno", 5, 1, 101)
    some = sweep.table("flows").filter(pl.col("label") == "down").select("measured_bytes").head(3)
    assert some.collect()["measured_bytes"].to_list() == [10, 20, 11]
    for most in (1, 3, 7, 14, 1000):
        parts = list(sweep.batches("flows", most))
        assert pl.concat(parts).equals(found)
        assert {p.height % 3 for p in parts} == {0}, "whole runs"
        assert max(p.height for p in parts) <= max(most, 3)
    assert len(list(sweep.batches("flows", 6))) == 8, "one, then two at a time"
    with pytest.raises(
        sweeps.StoreError,
        match=r'no table "events"; kept: flows \(keep it with keep = \["events"\]\)',
    ):
        sweep.table("events")


def test_a_table_that_some_runs_lack_is_filled(sweep):
    run = run_of(*CELLS[-1])
    row = pl.DataFrame({"run": [run], "goodput_bps": [1.0]})
    other = pl.DataFrame({"run": [run], "id": [0], "label": ["up"]})
    sweep.store.commit(run, {RUNS: to_parquet(row), "flows": to_parquet(other)})
    parts = list(sweep.batches("flows", 1))
    assert parts[-1]["goodput_bps"].to_list() == [None]
    assert pl.concat(parts).height == 46
    # One has no rows at all.
    sweep.store.commit(run_of(*CELLS[0]), {"flows": to_parquet(other.head(0))})
    assert pl.concat(list(sweep.batches("flows", 1))).height == 43


def test_a_summary_has_a_row_for_each_cell_and_figure(sweep):
    found = sweep.summary(metrics=["mine", "packets"])
    assert found.select("cc", "delay", "metric", "n").rows() == [
        (cc, delay, m, 3 if (cc, delay) == ("bbr", 20) else 4)
        for cc in ("reno", "bbr")
        for delay in (5, 20)
        for m in ("mine", "packets")
    ]
    first = mean_interval([0, 1, 2, 3], bounds=(0, math.inf))
    assert found.row(0, named=True) == {
        "cc": "reno", "delay": 5, "metric": "mine", "n": 4, "mean": 1.5, "sd": pytest.approx(math.sqrt(5 / 3)),
        "low": pytest.approx(first.low), "high": pytest.approx(first.high), "method": "log", "reason": None,
    }  # fmt: skip
    pooled = sweep.summary(by=["cc"], metrics=["packets"])
    assert pooled.select("cc", "n", "mean").rows() == [("reno", 4, 3.5), ("bbr", 3, 11.0)]
    narrow = sweep.summary(metrics=["packets"], level=0.5)
    assert narrow["low"][0] > found["low"][1]
    student = sweep.summary(metrics=["mine"], bounds={"mine": (-math.inf, math.inf)})
    assert student["method"][0] == "student"
    with pytest.raises(sweeps.SweepError, match='no label "x"; labels: cc, delay'):
        sweep.summary(by=["x"])
    with pytest.raises(
        sweeps.SweepError, match='no figure "x"; figures: mine, goodput_bps, packets'
    ):
        sweep.summary(metrics=["x"])


def test_labels_are_no_columns_of_the_results():
    for name in ("run", "seed", "findings", "goodput_bps", "wall_s", "_x", CEILING):
        with pytest.raises(sweeps.SweepError, match=f'cannot be called "{name}"'):
            result.check_labels([sweeps.Job({name: 1}, "", 1)])
    result.check_labels([sweeps.Job({"x": 1, "repeat": 2}, "", 1)])


# --- means


def rows(*given):
    return pl.DataFrame(
        given, ["cell", "seed", "results_hash", "x"], orient="row", infer_schema_length=None
    )


def test_every_cell_has_the_same_weight_in_a_pooled_mean():
    frame = rows(
        *[("a", s, f"a{s}", 1.0 + s) for s in range(3)],
        *[("b", s, f"b{s}", 11.0) for s in range(3)],
    )
    found = samples(frame, ["cell"], [], ["x"])
    assert found.select("metric", "repeat", "seed", "value", "_constant").rows() == [
        ("x", s, s, (12.0 + s) / 2, False) for s in range(3)
    ]
    apart = samples(frame, ["cell"], ["cell"], ["x"])
    assert apart.height == 6
    calm = rows(
        *[("a", s, "same", 2.0) for s in range(3)], *[("b", s, "too", 5.0) for s in range(3)]
    )
    assert samples(calm, ["cell"], [], ["x"]).rows() == [("x", 0, 0, 3.5, True)]
    mixed = pl.concat(
        [calm.filter(cell="a"), frame.filter(cell="b").with_columns(x=pl.col("seed") * 1.0)]
    )
    assert samples(mixed, ["cell"], [], ["x"])["value"].to_list() == [1.0, 1.5, 2.0]
    absent = frame.with_columns(x=pl.when(pl.col("seed") != 1).then("x"))
    assert samples(absent, ["cell"], [], ["x"])["seed"].to_list() == [0, 2]
    assert summarise(frame.head(0), ["cell"], [], ["x"]).is_empty()
    order = summarise(frame.with_columns(y=pl.col("x")), ["cell"], ["cell"], ["y", "x"])
    assert order.select("cell", "metric").rows() == [("a", "y"), ("a", "x"), ("b", "y"), ("b", "x")]


# --- comparisons


def test_two_values_of_a_label_are_two_sides(sweep):
    side = c.side_of(sweep.store.path)
    assert (side.name, list(side.labels), side.bounds) == (
        str(sweep.store.path),
        ["cc", "delay"],
        sweep.bounds,
    )
    a, b = c.split(side, "delay", "5", "20")
    assert (a.name, b.name, a.labels, a.frame.height, b.frame.height) == ("5", "20", ["cc"], 8, 7)
    assert set(a.frame["delay"]) == {5}
    for by, values, told in [
        ("cd", ("5", "20"), 'has no label "cd"; did you mean "cc"?'),
        ("zzz", ("5", "20"), 'has no label "zzz"; it has: cc, delay'),
        ("delay", ("5", "99999"), 'has no delay "99999"; it has: 5, 20'),
        ("cc", ("rano", "bbr"), 'has no cc "rano"; did you mean "reno"?'),
        ("cc", ("bbr", "bbr"), 'both sides are "bbr": name two different values of cc'),
    ]:
        with pytest.raises(sweeps.SweepError) as error:
            c.split(side, by, *values)
        assert told in str(error.value)


def test_pairs_are_compared_in_every_cell(sweep):
    a, b = c.split(c.side_of(sweep.store.path), "cc", "reno", "bbr")
    found = c.compare(a, b, ["packets", "mine"])
    assert [(dict(r.cell), r.metric) for r in found] == [
        ({"delay": d}, m) for d in (5, 20) for m in ("packets", "mine")
    ]
    first, last = found[0], found[2]
    assert (first.mean_a, first.mean_b, first.difference.estimate) == (1.5, 9.5, -8)
    assert first.difference.test == "paired t"
    assert (last.difference.test, last.difference.n_a, last.difference.n_b) == ("welch", 4, 3)
    expected = difference([4, 5, 6, 7], [12, 13, 14], bounds=(0, math.inf))
    assert last.difference == expected
    assert last.p_value == pytest.approx(2 * expected.p_value), "of the tests of two figures"
    assert last.verdict == "bbr higher"
    assert c.compare(a, b, ["packets"], paired=False)[0].difference.test == "welch"
    assert c.compare(a, b, ["packets"], test="mann-whitney", level=0.9)[1].difference.level == 0.9
    told = last.to_json()
    assert (told["cell"], told["metric"], told["n_a"], told["n_b"]) == (
        {"delay": 20},
        "packets",
        4,
        3,
    )
    assert (told["p_value"], told["p_value_alone"]) == (last.p_value, expected.p_value)
    assert (told["low"], told["high"], told["difference"]) == (
        expected.low,
        expected.high,
        expected.estimate,
    )
    with pytest.raises(sweeps.SweepError, match="have no cell in common"):
        c.compare(a, c.Side("x", b.frame.with_columns(delay=pl.lit(99)), ["delay"]))


def test_figures_of_both_sides_are_compared(sweep):
    a, b = c.split(c.side_of(sweep.store.path), "cc", "reno", "bbr")
    assert c.metrics_of(a, b, []) == ["goodput_bps", "mine"], "packets are none of the usual"
    assert c.metrics_of(a, b, ["packets"]) == ["packets"]
    less = c.Side("b", b.frame.drop("mine"), b.labels)
    assert c.metrics_of(a, less, []) == ["goodput_bps"]
    empty = c.Side("b", b.frame.with_columns(mine=pl.lit(None, pl.Float64)), b.labels)
    assert c.metrics_of(a, empty, []) == c.metrics_of(empty, a, []) == ["goodput_bps"]
    for name in ("cc", "seed", "delay", "min"):
        with pytest.raises(sweeps.SweepError, match=f'reno has no figure "{name}"'):
            c.metrics_of(a, b, [name])


def test_repeats_are_pairs_if_their_seeds_are_known_and_the_same():
    def side(seeds, name):
        values = [10.0 + i * i for i, _ in enumerate(seeds)]
        hashes = [f"{name}{i}" for i, _ in enumerate(seeds)]
        return c.Side(name, pl.DataFrame({"seed": seeds, "results_hash": hashes, "x": values}), [])

    def test_of(a, b, **options):
        return c.compare(side(a, "a"), side(b, "b"), ["x"], **options)[0].difference.test

    assert test_of([1, 2, 3], [1, 3, 2]) == "paired t"
    assert test_of([1, 2, 3], [1, 2, 4]) == "welch"
    assert test_of([1, 2, 3], [1, 2, 3, 4]) == "welch"
    assert test_of([1, 2, 3], [1, 2]) == "welch"
    assert test_of([1, 1, 3], [1, 2, 3]) == "welch"
    assert test_of([1, 2, 3], [1, 2, 3], paired=True) == "paired t"
    assert test_of([1], [1]) == "welch"
    # All repeats of a side are the same run.
    calm = c.Side(
        "calm", side([1, 2, 3], "a").frame.with_columns(results_hash=pl.lit("x"), x=4.0), []
    )
    for sides in ((calm, side([1, 2, 3], "b")), (side([1, 2, 3], "b"), calm)):
        (row,) = c.compare(*sides, ["x"])
        assert row.difference.test == "one-sample t"
        assert sorted((row.mean_a, row.mean_b)) == pytest.approx([4, 35 / 3])


def test_a_verdict_is_of_any_test():
    for test in ("welch", "mann-whitney", "permutation"):
        d = difference([1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3], test=test)
        assert c.verdict(d, 0.01, "loss_rate", 0.95, "a", "b") == "a better"


@pytest.mark.parametrize(
    ("a", "b", "p", "text"),
    [
        (2.0, 1.0, None, "a better, exact"),
        (1.0, 1.0, None, "equal"),
        ([1.0], [2.0], None, "one run of each says nothing about chance"),
        ([1.0, 1.1], [2.0, 2.1], 0.5, "no difference shown"),
        ([1.0, 1.1], [2.0, 2.1], 0.499, "b better"),
        ([1.0, 2.0], [2.0, 1.0], 0.01, "no difference shown"),
    ],
)
def test_a_verdict_says_which_side_is_better(a, b, p, text):
    assert c.verdict(difference(a, b), p, "goodput_bps", 0.5, "a", "b") == text


def test_bounds_of_both_networks_hold_for_their_difference():
    rates = pl.DataFrame({"seed": [1, 2], "goodput_bps": [1e6, 9e6], "delay": [1, 1]})
    frames = [
        rates.with_columns(results_hash=pl.Series([f"{n}1", f"{n}2"]), **{CEILING: pl.lit(top)})
        for n, top in (("a", 1e7), ("b", 2e7))
    ]
    a, b = (c.Side(n, f, ["delay"]) for n, f in zip("ab", frames, strict=True))
    (row,) = c.compare(a, b, ["goodput_bps"], paired=False)
    assert (row.difference.low, row.difference.high) == (-2e7, 2e7)
    unknown = c.Side("b", frames[1].drop(CEILING), ["delay"])
    (row,) = c.compare(a, unknown, ["goodput_bps"], paired=False)
    assert not row.difference.clipped
    assert set(c._ceilings(unknown, {"delay": 1}).rows()) == {(None,) * len(c.NETWORK)}
    assert c._ceilings(a, {"delay": 2}).is_empty()
    assert c._ceilings(a, {}).columns == list(c.NETWORK)


# --- pictures


def drawn(sweep, metric="goodput_bps", **chosen):
    made = picture(sweep, metric, Selection(**chosen))
    return made, {
        (p.title, s.name): [q.interval.mean for q in s.points]
        for p in made.panels
        for s in p.series
    }


def test_groups_of_flows_are_drawn_as_labels(sweep):
    _, found = drawn(
        sweep, "measured_bytes", group="label", where={"cc": "reno", "delay": "5"}, kind="bars"
    )
    assert {k[1]: v for k, v in found.items()} == {"up": [30], "down": [15.75]}, "a mean of two"
    _, shares = drawn(
        sweep, "share", group="label", where={"cc": "reno", "delay": "5"}, kind="bars"
    )
    total = {name: sum(v) for (_, name), v in shares.items()}
    assert sum(total.values()) == pytest.approx(100)
    _, one = drawn(sweep, "share", flows=("down",), where={"delay": "5"}, by="cc", kind="bars")
    down = [100 * sum((30 + i) / (60 + i) for i in cell) / 4 for cell in (range(4), range(8, 12))]
    assert [v[0] for v in one.values()] == pytest.approx(down), "what both have together"
    _, second = drawn(
        sweep, "measured_bytes", flows=("1",), where={"delay": "5", "cc": "reno"}, kind="bars"
    )
    assert list(second.values()) == [[11.5]]
    curve, _ = drawn(
        sweep, "measured_bytes", group="label", where={"delay": "5", "cc": "reno"}, kind="cdf"
    )
    values = {
        s.name: sorted(p.values) for panel in curve.panels for s in panel.series for p in s.points
    }
    assert values == {"up": [30] * 4, "down": [10, 11, 12, 13, 20, 20, 20, 20]}, "every flow"
    made, _ = drawn(sweep, "measured_bytes", flows=("up", "down"), kind="bars")
    assert made.title.endswith(", up and down")
    assert drawn(sweep, "measured_bytes", flows=("up",), log_y=True)[0].y.log
    assert not drawn(sweep, "measured_bytes", flows=("up",))[0].y.log


def test_what_cannot_be_drawn_is_told(sweep):
    cases = [
        ("goodput_bps", {"where": {"ccc": "x"}}, 'no label "ccc"; did you mean "cc"?'),
        ("goodput_bps", {"where": {"cc": "ren"}}, 'no cc "ren"; did you mean "reno"?'),
        ("goodput", {}, 'no figure "goodput"; did you mean "goodput_bps"?'),
        ("id", {"group": "label"}, 'no figure of flows "id"'),
        ("repeat", {"group": "label"}, 'no figure of flows "repeat"'),
        ("goodput_bps", {"group": "labels"}, 'no group of flows "labels"; did you mean "label"?'),
        ("goodput_bps", {"flows": ("upp",)}, 'no flow "upp"; did you mean "up"?'),
    ]
    for metric, chosen, told in cases:
        with pytest.raises(ValueError, match="no ") as error:
            picture(sweep, metric, Selection(**chosen))
        assert told in str(error.value)
    none = sweeps.Sweep("none", sweep.store, sweep.plan.tail(1))
    with pytest.raises(sweeps.SweepError, match='the sweep "none" has no finished run'):
        picture(none, "goodput_bps", Selection())


# --- what is measured, and by what


def test_figures_are_numbers_or_words():
    figures = {"a": 1, "b": "word", "c": None, "d": math.nan, "e": math.inf, 7: True}
    found = pl.read_parquet(files({"m": work.measured(figures)}, "r")["m"])
    assert found.row(0, named=True) == {
        "run": "r",
        "a": 1.0,
        "b": "word",
        "c": None,
        "d": None,
        "e": math.inf,
        "7": 1.0,
    }
    assert found.schema["c"] == pl.Float64
    for wrong, told in [
        (5, "must return a mapping of names to numbers, not 5"),
        ({"a": []}, r"a = \[\], which is not a number"),
    ]:
        with pytest.raises(work.MeasureError, match=told):
            work.measured(wrong)


def test_a_measuring_function_is_found_by_its_name():
    assert work.load_measure(None) is None
    assert work.load_measure("os.path:join").__name__ == "join"
    assert work.load_measure("json:JSONDecoder.decode") is json.JSONDecoder.decode
    for name, told in [
        ("nowhere:f", r"cannot be imported: No module named 'nowhere'$"),
        ("json", 'write it as "module:function"$'),
        ("json:none", "cannot be imported: .*none"),
        ("math:pi", "is not a function"),
    ]:
        with pytest.raises(work.MeasureError, match=told):
            work.load_measure(name)
    with pytest.raises(sweeps.SweepError, match="must be a function or its name, not 5"):
        plugins.Measure.of(5)
    with pytest.raises(sweeps.SweepError, match="cannot be imported"):
        plugins.Measure.of("nowhere:f")
    with pytest.raises(sweeps.SweepError, match="tables are flows, "):
        work.check_keep(("flows", "x"))


def test_an_error_is_told_on_one_line_with_its_place():
    assert work.one_line(ValueError("a\n  b")) == "ValueError: a b"
    assert work.one_line(ValueError()) == "ValueError"
    for kind in (ValueError, work.MeasureError):
        try:
            raise kind("odd")
        except Exception as e:
            told, trace = work.reason_of(e), work.trace_of(e)
        here = f" ({__file__}:"
        assert (here in told) is (kind is ValueError)
        assert trace.startswith("Traceback (most recent call last):\n  File")
        assert trace.endswith(f"{kind.__name__}: odd")
    assert work.reason_of(ValueError("never raised")) == "ValueError: never raised"


def test_a_setup_is_unpacked_once_in_a_process():
    setup = work.Setup(keep=("flows",), memory_limit=5, files=True).dumps()
    ready = work.prepare(setup)
    assert work.prepare(setup) is ready
    assert (ready.keep, ready.measure, ready.memory_limit, ready.files) == (
        ("flows",),
        None,
        5,
        True,
    )
    assert work.prepare(work.Setup().dumps()) is not ready


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (None, None),
        ({}, "{}"),
        ({"x": (0, math.inf), "y": [-math.inf, 1]}, '{"x": [0.0, null], "y": [null, 1.0]}'),
        ({"x": (1, 1)}, ...), ({"x": (2, 1)}, ...), ({"x": 1}, ...), ({"x": ("a", "b")}, ...), (5, ...),
    ],
)  # fmt: skip
def test_declared_bounds_are_pairs_of_which_the_first_is_less(bounds, expected):
    if expected is ...:
        with pytest.raises(
            sweeps.SweepError, match=r"m:f\.bounds must name the least and the greatest"
        ):
            plugins.declared_bounds("m:f", bounds)
    else:
        assert plugins.declared_bounds("m:f", bounds) == expected


FACTOR, WORD = 2, "w"


def helper(x):
    return x * FACTOR


class Base:
    def own(self):
        return WORD


class Inner(Base):
    def use(self):
        return [helper(i) for i in range(3)]


def uses(_run):
    return {"x": (lambda: Inner().use())()}


def test_the_source_of_a_function_is_that_of_all_that_it_names(monkeypatch):
    before = plugins.source_of(uses)
    for part in ("def uses", "class Inner", "class Base", "def helper", "FACTOR: 2", "WORD: 'w'"):
        assert part in before
    assert "def drawn" not in before
    assert plugins.source_of(uses) == before
    wrapped = functools.wraps(uses)(lambda _run: None)
    assert plugins.source_of(wrapped) == before
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    assert plugins.source_of(uses) != before
    assert plugins.source_of(uses).replace("FACTOR: 3", "FACTOR: 2") == before
    made = eval("lambda run: {}", {"__name__": "nowhere"})
    assert plugins.source_of(made).startswith("nowhere.<lambda>: ")


def test_the_line_of_a_file_that_failed_is_named(tmp_path):
    file = tmp_path / "p.py"
    for text, told in [
        ("1 / 0\n", "line 1: ZeroDivisionError: division by zero"),
        ("\ndef f():\n    1 / 0\n\nf()\n", "line 3: ZeroDivisionError"),
        ("a b\n", "line 1: SyntaxError"),
        ("raise SystemExit(3)\n", "line 1: SystemExit: 3"),
        ("import nowhere_at_all\n", "line 1: ModuleNotFoundError"),
        ("x = 1\n", "registers no class; decorate it"),
    ]:
        file.write_text(text)
        with pytest.raises(sweeps.SweepError, match=f"^--plugin {file}:? {told}"):
            plugins.Plugins.load([file])
    for content in (b"\xff\xfe", b"# -*- coding: none-such -*-\n"):
        file.write_bytes(content)
        with pytest.raises(sweeps.SweepError, match="not a text file"):
            plugins.Plugins.load([file])
    file.write_bytes(b"# -*- coding: latin-1 -*-\nassert len('\xe9') == 1\n")
    with pytest.raises(sweeps.SweepError, match="registers no class"):
        plugins.Plugins.load([file])
    # A file has its own future statements, and not those of the module that runs it.
    file.write_text("def f(x: int): pass\nassert f.__annotations__['x'] is int\n")
    with pytest.raises(sweeps.SweepError, match="registers no class"):
        plugins.Plugins.load([file])
    with pytest.raises(sweeps.SweepError, match=r"cannot be read: .*[Nn]o such file"):
        plugins.Plugins.load([tmp_path / "none.py"])
    assert plugins.work_place(ValueError("never raised"), file) == ""


def test_modules_travel_unless_they_are_where_they_go(tmp_path, monkeypatch):
    (tmp_path / "mine_alone.py").write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import cloudpickle
    import mine_alone

    def travels(names):
        with plugins.travelling(names):
            return mine_alone.__name__ in cloudpickle.list_registry_pickle_by_value()

    assert travels(["mine_alone"])
    assert not travels(["json", "gargalo.sweeps", "polars", "nowhere"])
    assert not cloudpickle.list_registry_pickle_by_value()
    for name, there in [
        ("json", True),
        ("gargalo.x", True),
        ("__main__", True),
        ("mine_alone", False),
        ("polars", True),
    ]:
        assert plugins._installed(name, sys.modules.get(name, SimpleNamespace())) is there
