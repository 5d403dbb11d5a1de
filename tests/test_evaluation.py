"""What `gargalo evaluate` finds: known faults, known facts, and what verdicts are made of."""

from __future__ import annotations

import json
import math
import textwrap
from types import SimpleNamespace

import evaluation_faults
import polars as pl
import pytest
from gargalo import evaluation, metrics
from gargalo.evaluation import CRITERIA, figures, records, scoring
from gargalo.evaluation.criteria import find, mixed
from gargalo.evaluation.model import PROFILES, Criterion, Plan, Scores
from gargalo.evaluation.running import findings
from gargalo.judging import FailureReason

assert evaluation_faults.PythonReno.__doc__  # importing registers the controls by name


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """One store for all: the references are run once."""
    return tmp_path_factory.mktemp("evaluation") / "store"


def results(store, names, *only, repeat=1, **more):
    """Evaluate in the quick profile; results by algorithm and criterion."""
    found = evaluation.evaluate(names, only=only, repeat=repeat, store=store, **more)
    return {(card.algorithm, r.criterion.id): r for card in found.scorecards for r in card.results}


def value(result, figure, algorithm=None):
    mean = result.scores.mean(figure, algorithm)
    assert mean is not None, figure
    return mean


# --- known faults


@pytest.mark.parametrize(
    ("criterion", "faulty", "faultless"),
    [
        ("collapse", {"deaf": "does not back off", "frail": "collapses at 30% loss"},
            ("py-reno", "cubic", "bbr", "vegas")),
        ("aqm", {"blind": "ignores ECN", "bbr": "ignores ECN"},
            ("py-reno", "bic", "illinois", "bbr3", "dctcp", "westwood")),
        ("versus-reno", {"greedy": "starves others: Reno"}, ("py-reno", "blind", "bbr", "scalable", "vegas")),
        ("path-change", {"settled": "does not probe again", "vegas": "does not probe again"},
            ("py-reno", "bbr", "ledbat", "libra")),
        ("blackout", {"deaf": "does not back off without feedback"}, ("py-reno", "bbr", "libra")),
        ("misbehaving", {"per-ack": "counts acknowledgements"}, ("py-reno", "bbr", "bbr3", "vegas")),
    ],
)  # fmt: skip
def test_an_algorithm_with_a_fault_fails_the_criterion_with_the_reason(
    store, criterion, faulty, faultless
):
    found = results(store, [*faulty, *faultless], criterion)
    for name, text in faulty.items():
        result = found[name, criterion]
        assert result.verdict == "fault", (name, result.outcomes)
        assert any(text in fault for fault in result.faults), result.faults
    for name in faultless:
        result = found[name, criterion]
        assert result.faults == [], name
        assert result.verdict in ("no-verdict", "like"), "of one run nothing is better or worse"


# --- known facts


def test_bbr_1_repeats_much_where_several_flows_share_a_shallow_buffer(store):
    found = results(store, ["bbr", "reno"], "loss-caused")
    bbr = found["bbr", "loss-caused"]
    assert bbr.verdict == "fault"
    assert "8 flows" in bbr.faults[0]
    assert value(bbr, "retransmitted") > 5 * value(bbr, "retransmitted", "cubic")
    assert found["reno", "loss-caused"].faults == []


def test_cubic_keeps_a_queue_standing_in_a_deep_buffer(store):
    found = results(store, ["cubic"], "bufferbloat")["cubic", "bufferbloat"]
    rows = found.scores.frame.filter(pl.col("buffer_bdp") == 8.0)
    standing = dict(rows.select("algorithm", "standing_queue_s").iter_rows())
    # The buffer is eight round trips of 40 ms: six of them never empty.
    assert standing["cubic"] > 0.2
    assert standing["bbr"] < 0.02


def test_vegas_loses_to_reno(store):
    found = results(store, ["vegas"], "versus-reno", repeat=3)["vegas", "versus-reno"]
    assert value(found, "own_share") < 0.4
    assert value(found, "share") > 1.6
    # Reno alone has all of the link: it loses what Vegas takes, which is little.
    assert 0 < value(found, "harm_goodput") < 0.2
    assert value(found, "harm_goodput", "reno") > 0.4
    worse = {o.figure.name for o in found.outcomes if o.verdict == "worse"}
    assert (found.verdict, worse) == ("trade-off", {"own_starved"}), (
        "Reno has nothing to complain about, Vegas has"
    )


def test_harm_is_against_the_run_without(store):
    found = results(store, ["bbr"], "versus-cubic")["bbr", "versus-cubic"]
    rows = found.scores.frame.sort("algorithm", "own", "first")
    solo = rows.filter(pl.col("own") == 0)
    assert solo.height == rows.height / 2
    # The run without is nobody's: it is the same for all.
    assert solo.group_by("first").agg(pl.col("goodput_bps.other").n_unique())[
        "goodput_bps.other"
    ].to_list() == [1, 1]
    assert solo["goodput_bps.other"].min() > 0.9 * 20e6 * 1448 / 1500
    own = rows.filter(pl.col("algorithm") == "bbr", pl.col("own") == 1)
    alone = dict(
        solo.filter(pl.col("algorithm") == "bbr").select("first", "goodput_bps.other").iter_rows()
    )
    with_it = dict(own.select("first", "goodput_bps.other").iter_rows())
    expected = sum(1 - with_it[f] / alone[f] for f in alone) / 2
    assert value(found, "harm_goodput") == pytest.approx(expected)
    # CUBIC takes half of it from CUBIC, BBR 1 more, and it makes it lose packets.
    assert 0.3 < value(found, "harm_goodput", "cubic") < 0.7 < value(found, "harm_goodput")
    assert value(found, "harm_loss") > 0.5 > value(found, "harm_loss", "cubic")


def test_an_algorithm_that_starves_itself_is_not_better():
    network = {"others": 1, "first": "own", "buffer_bdp": 1.0}
    rows = []
    for algorithm, mine, starved in (("x", 0.04e6, 0.98), ("cubic", 9.6e6, 0.0)):
        for k in range(3):
            noise = 1 + 0.001 * k
            both = {"goodput_bps.own": mine * noise, "goodput_bps.other": (19.3e6 - mine) * noise}
            both |= {"starved.own": starved - 0.001 * k, "starved.other": 0.0}
            alone = {"goodput_bps.other": 19.3e6 * noise}
            run = {"algorithm": algorithm, "repeat": k, **network}
            rows += [{**run, "own": 1, **both}, {**run, "own": 0, **alone}]
    found = scoring.result(
        find("versus-reno"), "x", pl.DataFrame(rows, infer_schema_length=None), ("cubic",)
    )
    verdicts = {o.figure.name: o.verdict for o in found.outcomes}
    assert (verdicts["share"], verdicts["own_starved"]) == ("better", "worse")
    assert found.verdict == "trade-off", "it leaves Reno all, since it is starved"


def harms(own, other):
    rows = pl.DataFrame(
        [
            {"own": 0, "others": 1, "first": "own", "buffer_bdp": 1.0, "goodput_bps.other": 10e6, "lost.other": 0.01},
            {"own": 1, "others": 1, "first": "own", "buffer_bdp": 1.0, "goodput_bps.other": own, "lost.other": other},
        ]
    )  # fmt: skip
    return [
        mixed.harm("goodput_bps.other", more_is_better=True)(rows),
        mixed.harm("lost.other", more_is_better=False)(rows),
        mixed.harm("rtt_p50_s.other", more_is_better=False)(rows),
    ]


def test_harm_as_ware_defines_it():
    assert harms(4e6, 0.04) == [pytest.approx(0.6), pytest.approx(0.75), None]
    assert harms(10e6, 0.01) == [0.0, 0.0, None]
    # Where company helps: at most as far below nothing as ruin is above it.
    assert harms(12e6, 0.008) == [pytest.approx(-0.2), pytest.approx(-0.25), None]
    assert harms(10e6, 0.0) == [0.0, -1.0, None]
    assert harms(10e6, 0.001) == [0.0, -1.0, None]


def test_reno_fails_at_high_bandwidth_delay_products(store):
    found = results(store, ["reno"], "high-bdp")["reno", "high-bdp"]
    assert found.verdict == "no-verdict", "of one run nothing is better or worse"
    assert value(found, "least_utilization") < 0.25
    assert value(found, "least_utilization", "cubic") > 1.5 * value(found, "least_utilization")
    assert value(found, "least_utilization", "bbr") > 0.8


# --- Reno in Python


def test_reno_in_python_has_the_scorecard_of_reno(store):
    names = ("link-cut", "low-rate", "self-fairness", "multipath")
    found = results(store, ["py-reno", "reno"], *names, repeat=2)
    for name in names:
        python, rust = found["py-reno", name], found["reno", name]
        assert [o.verdict for o in python.outcomes] == [o.verdict for o in rust.outcomes]
        for a, b in zip(python.outcomes, rust.outcomes, strict=True):
            assert (a.own.n, a.own.mean) == (2, b.own.mean), (name, a.figure.name)
            assert (a.own.low, a.own.high) == (b.own.low, b.own.high)


# --- bad input

BAD = {
    "raises": "if ack.now > 1: raise ZeroDivisionError('after a second')",
    "negative": "self.window = -5.0 if ack.now > 1 else self.window",
    "nothing": "self.window = None if ack.now > 1 else self.window",
    "endless": "\n".join(["if ack.now > 1:", "            while True: pass"]),
    "lazy": "import a_module_that_is_not_there",
}
CONTROL = """
import gargalo

@gargalo.congestion("bad-{name}")
class Bad(gargalo.Controller):
    def __init__(self, init):
        self.window = float(init.initial_window)

    def on_ack(self, ack, path):
        {act}

    def on_congestion(self, event, path):
        pass

    def cwnd(self):
        return self.window
"""


def test_bad_controls_are_rows_of_their_own_and_the_others_go_on(store, tmp_path):
    files = []
    for name, act in BAD.items():
        files.append(tmp_path / f"{name}.py")
        files[-1].write_text(textwrap.dedent(CONTROL).format(name=name, act=act))
    (tmp_path / "needs.py").write_text("import another_module_that_is_not_there\n")
    (tmp_path / "typo.py").write_text("class Oops(:\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    broken = [tmp_path / f"{name}.py" for name in ("needs", "typo", "empty")]
    found = evaluation.evaluate(
        [*files, *broken, "reno"], only=["low-rate"], repeat=1, store=store, stall_s=3.0
    )
    cards = {card.algorithm: card for card in found.scorecards}
    assert list(cards) == [*(f"bad-{name}" for name in BAD), "needs", "typo", "empty", "reno"]
    texts = {name: cards[f"bad-{name}"].results[0] for name in BAD}
    assert all(result.verdict == "failed" for result in texts.values())
    told = {name: "\n".join(map(str, result.failures)) for name, result in texts.items()}
    assert "ZeroDivisionError: after a second" in told["raises"]
    assert "raises.py" in told["raises"]
    assert "line 10, in on_ack" in told["raises"]
    assert "cwnd() returned" in told["negative"]
    assert "cwnd()" in told["nothing"]
    assert "no progress" in told["endless"]
    assert "No module named 'a_module_that_is_not_there'" in told["lazy"]
    assert "No module named 'another_module_that_is_not_there'" in cards["needs"].broken
    assert "SyntaxError" in cards["typo"].broken
    assert "@gargalo.congestion" in cards["empty"].broken
    assert cards["reno"].results[0].verdict in ("no-verdict", "like"), "of one run"


# --- the grid


def test_repeats_differ_and_algorithms_meet_the_same_networks():
    criterion = find("bufferbloat")
    first, again, other = (
        criterion.cells(Plan(name, PROFILES["quick"], seed))
        for name, seed in (("reno", 1), ("reno", 1), ("reno", 2))
    )
    assert first == again
    assert [c.labels for c in first] == [c.labels for c in other]
    assert first[0].scenario != other[0].scenario
    cubic = criterion.cells(Plan("cubic", PROFILES["quick"], 1))
    assert first[0].scenario["topology"] == cubic[0].scenario["topology"]
    assert [f["start"] for f in first[0].scenario["flows"]] == [
        f["start"] for f in cubic[0].scenario["flows"]
    ]


@pytest.mark.parametrize(
    ("criterion", "label", "levels"),
    [
        ("bufferbloat", "buffer_bdp", {0.25, 0.5, 1.0, 2.0, 4.0, 16.0}),
        ("loss-caused", "n", {1, 2, 4, 8, 16, 32}),
        ("loss-caused", "buffer_bdp", {0.1, 0.25, 0.5, 1.0, 2.0}),
        ("collapse", "loss", {0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0}),
        ("blackout", "length_s", {1.0, 5.0, 30.0}),
        ("versus-cubic", "first", {"own", "other"}),
        ("versus-cubic", "own", {0, 1, 4, 16}),
        ("misbehaving", "receiver", {"honest", "divides-acks", "optimistic", "hides-ecn"}),
        ("low-rate", "rate_bps", {64e3, 256e3}),
    ],
)
def test_the_standard_grid_is_what_the_table_asks(criterion, label, levels):
    cells = find(criterion).cells(Plan("reno", PROFILES["standard"], 1))
    assert {c.labels[label] for c in cells} == levels


# --- verdicts, on frames made by hand

RATE = figures.figure(
    "rate_bps", "rate", "more", figures.mean_of("rate"), bounds=(0.0, math.inf), margin=0.05
)
DELAY = figures.figure(
    "delay_s", "delay", "less", figures.worst_of("delay"), bounds=(0.0, math.inf), least=0.001
)


def frame(**values):
    """Runs of one cell: by algorithm, a rate and a delay for each repeat."""
    return pl.DataFrame(
        [
            {"algorithm": a, "repeat": k, "rate": rate, "delay": delay}
            for a, pairs in values.items()
            for k, (rate, delay) in enumerate(pairs)
        ],
        schema={"algorithm": pl.String, "repeat": pl.Int64, "rate": pl.Float64, "delay": pl.Float64},
    )  # fmt: skip


def criterion(faults=lambda _: []):
    return Criterion(
        "c", "C", "RFC 9743 5", "MUST", "It.", "Does.", lambda _: [], (RATE, DELAY), faults
    )


def judged(own, cubic, **more):
    return scoring.result(criterion(**more), "x", frame(x=own, cubic=cubic), ("cubic",))


STEADY = [(10.0, 0.010), (10.1, 0.010), (9.9, 0.010)]


def test_verdicts_need_a_difference_that_is_certain_and_matters():
    assert judged(STEADY, STEADY).verdict == "like"
    assert judged([(12.0, 0.010), (12.1, 0.010), (11.9, 0.010)], STEADY).verdict == "better"
    both = judged([(12.0, 0.020), (12.1, 0.021), (11.9, 0.020)], STEADY)
    assert both.verdict == "trade-off"
    assert [o.verdict for o in both.outcomes] == ["better", "worse"]
    assert judged([(10.0, 0.020), (10.1, 0.021), (9.9, 0.020)], STEADY).verdict == "worse"
    # Certain, but within the margin of 5% and of a millisecond.
    assert judged([(10.4, 0.0109)] * 3, [(10.0, 0.010)] * 3).verdict == "like"
    # Large, but one run in three says the opposite.
    assert judged([(14.0, 0.010), (8.0, 0.010), (12.0, 0.010)], STEADY).verdict == "like"
    low = judged([(12.0, 0.010), (12.1, 0.010), (11.9, 0.010)], STEADY).outcomes[0]
    assert low.difference == pytest.approx(2.0)
    assert low.low < 2.0 < low.high


def test_a_constant_is_compared_with_by_the_test_of_one_sample():
    # Twice as fast in the mean, but not surely so: the yardstick's three equal runs are one value without error.
    own, cubic = [(35.0, 0.010), (5.0, 0.010), (20.0, 0.010)], [(10.0, 0.010)] * 3
    rows = frame(x=own, cubic=cubic).with_columns(
        results_hash=pl.Series(["a", "b", "c", "same", "same", "same"])
    )
    found = scoring.result(criterion(), "x", rows, ("cubic",))
    (rate, _) = found.outcomes
    assert (rate.verdict, rate.references["cubic"].n) == ("like", 1)
    assert (rate.low < 0 < rate.high, rate.difference) == (True, 10)
    reverse = scoring.result(criterion(), "cubic", rows, ("x", "cubic"))
    assert records.figure(reverse.outcomes[0], reverse)["constant"] is True
    # The same against a baseline.
    before = records.figure(reverse.outcomes[0], reverse)
    assert records.figure_change("c", before, records.figure(rate, found)) == []
    surely = {**records.figure(rate, found), "values": [20.0, 20.1, 19.9], "mean": 20.0}
    assert [c.kind for c in records.figure_change("c", before, surely)] == ["better"]


def test_one_run_of_a_side_has_no_verdict():
    for own, cubic in (
        ([(20.0, 0.010)], [(10.0, 0.010)]),
        ([(10.0, 0.010)], [(10.0, 0.010)]),
        (STEADY, [(5.0, 0.010)]),
    ):
        found = judged(own, cubic)
        assert (found.verdict, {o.verdict for o in found.outcomes}) == (
            "no-verdict",
            {"no-verdict"},
        )
    rate, _ = judged([(20.0, 0.010)], [(10.0, 0.010)]).outcomes
    assert (rate.difference, rate.low) == (10.0, None)


def test_faults_failures_and_nothing():
    fault = judged(STEADY, STEADY, faults=lambda _: ["it is wrong"])
    assert (fault.verdict, fault.faults) == ("fault", ["it is wrong"])
    rows = frame(x=[], cubic=STEADY)

    def must_not_be_asked(_):
        raise AssertionError

    failed = scoring.result(
        criterion(must_not_be_asked), "x", rows, ("cubic",), failures=[FailureReason("it raised")]
    )
    assert (failed.verdict, failed.faults) == ("failed", [])
    assert scoring.result(criterion(), "x", rows, ("cubic",)).verdict == "unknown"
    missing = judged([(None, 0.010)] * 3, STEADY)
    assert [o.verdict for o in missing.outcomes] == ["unknown", "like"]


def test_starvation_is_reported_where_it_exceeds_that_of_the_yardstick():
    def scores(own, cubic):
        values = {"x": {"starved": [own]}, "cubic": {"starved": [cubic]}}
        return Scores("x", values, pl.DataFrame())

    assert figures.starvation(scores(0.1, 0.0), "others: Reno has") == []
    assert figures.starvation(scores(0.3, 0.2), "others: Reno has") == []
    (told,) = figures.starvation(scores(0.5, 0.2), "others: Reno has")
    assert told.startswith("starves others: Reno has less than a tenth of the fair share 50%")


def test_figures_take_the_cells_they_name():
    rows = pl.DataFrame({"case": ["a", "a", "b"], "v": [1.0, 3.0, float("nan")]})
    assert figures.mean_of("v")(rows) == 2.0
    assert figures.worst_of("v", case="a")(rows) == 3.0
    assert figures.least_of("v", case="a")(rows) == 1.0
    assert figures.mean_of("v", case="b")(rows) is None
    assert figures.mean_of("v", kind="a")(rows) is None
    assert figures.mean_of("w")(rows) is None


def test_every_figure_declares_what_it_can_be():
    all_figures = {(c.id, f.name): f for c in CRITERIA for f in c.figures}
    assert len(all_figures) > 100
    for place, f in all_figures.items():
        least, most = f.bounds
        assert least < most, place
        assert (least, most) != (-math.inf, math.inf), place
    # Shares keep below 1, whatever they are called; ratios to an even share do not.
    for name in (
        "jain_rtt",
        "varying_utilization",
        "mark_rate",
        "retransmitted",
        "cross_lost",
        "starved",
    ):
        found = [f.bounds for (_, n), f in all_figures.items() if n == name]
        assert set(found) == {(0.0, 1.0)}, name
    assert all_figures["versus-reno", "share"].bounds == (0.0, math.inf)
    assert all_figures["convergence", "variation"].bounds == (0.0, math.inf)
    assert all_figures["versus-reno", "harm_goodput"].bounds == (-1.0, 1.0)


def test_intervals_of_figures_keep_within_their_bounds():
    f = next(f for c in CRITERIA for f in c.figures if f.name == "jain_rtt")
    values = [1.0, 0.7, 0.99]
    found = Scores("x", {"x": {"jain_rtt": values}}, pl.DataFrame(), [f]).interval("jain_rtt")
    assert found.method == "logit"
    assert found.high < 1 < metrics.mean_interval(values).high
    two = Scores("x", {"x": {"jain_rtt": values[:2]}}, pl.DataFrame(), [f]).interval("jain_rtt")
    assert records.interval(two) == {
        "mean": pytest.approx(0.85), "low": None, "high": None, "n": 2, "reason": "needs 3 repeats",
    }  # fmt: skip


def test_findings_are_those_of_the_runs_of_a_scorecard():
    late = json.dumps(
        [
            {
                "code": "late-packets",
                "severity": "warning",
                "subject": "",
                "text": "late",
                "figures": {},
            }
        ]
    )
    rows = pl.DataFrame(
        [("a", "x", 0, "h", None), ("a", "x", 1, "h", None), ("a", "other", 0, "i", late), ("b", "x", 0, "j", late)],
        ["criterion", "algorithm", "seed", "results_hash", "findings"],
        orient="row",
    )  # fmt: skip
    sweep = SimpleNamespace(frame=lambda: rows, labels=["criterion", "algorithm"])
    results = [SimpleNamespace(criterion=SimpleNamespace(id="a"))]
    assert [f.code for f in findings(sweep, results, ["x"])] == ["equal-repeats"]
    both = findings(sweep, results, ["x", "other"])
    assert [f.code for f in both] == ["late-packets", "equal-repeats"]
