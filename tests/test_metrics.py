"""Metrics: numbers worked out by hand, published examples, properties."""

from __future__ import annotations

import math
import random
from pathlib import Path

import gargalo
import numpy as np
import polars as pl
import pytest
from conftest import ROOT, TINY
from gargalo import metrics
from gargalo.metrics._numbers import array, finite, summed
from gargalo.metrics.declared import CEILING, DRAIN, bounds_in, verdict_of


def approx(value: float, rel: float = 1e-9) -> object:
    return pytest.approx(value, rel=rel)


# --- fairness


def test_jain_by_hand():
    assert metrics.jain_index([5, 5, 5, 5]) == 1
    assert metrics.jain_index([7, 0, 0, 0]) == 0.25
    # k of n share equally: k/n. The report's own example: 20 dollars for 10 of 100 people.
    assert metrics.jain_index([2.0] * 10 + [0.0] * 90) == approx(0.1)
    assert metrics.jain_index([1, 3, 5]) == approx(81 / 105)
    assert metrics.jain_index([1, None, 1]) == 1, "a missing rate is left out"
    assert metrics.jain_index([]) is None
    assert metrics.jain_index([0, 0]) is None


# A 2008 comparison of TCP variants printed the coefficient of variation (%) and Jain's index of the
# same 20 flows: the two definitions must meet, to the rounding of print.
PUBLISHED = [
    (31.2, 0.911), (50.0, 0.800), (53.8, 0.776), (33.3, 0.900), (42.2, 0.849), (44.3, 0.836),
    (30.0, 0.917), (39.1, 0.867), (45.8, 0.827), (30.1, 0.917), (43.8, 0.839), (44.8, 0.833),
    (29.1, 0.922), (29.4, 0.921), (27.8, 0.928), (16.1, 0.975), (15.9, 0.975), (22.0, 0.954),
    (31.0, 0.912), (45.5, 0.828), (49.0, 0.806),
]  # fmt: skip


@pytest.mark.parametrize(("percent", "index"), PUBLISHED)
def test_jain_and_variation_of_a_published_table(percent, index):
    # Twenty rates of that variation: ten a step below the mean, ten a step above.
    rates = [1 - percent / 100] * 10 + [1 + percent / 100] * 10
    assert 100 * metrics.coefficient_of_variation(rates, ddof=0) == approx(percent)
    assert metrics.jain_index(rates) == pytest.approx(index, abs=0.0007)


def test_jain_properties():
    rng = random.Random(1)
    for _ in range(300):
        n = rng.randint(1, 40)
        rates = [rng.lognormvariate(0, 2) for _ in range(n)]
        index = metrics.jain_index(rates)
        assert 1 / n - 1e-12 <= index <= 1 + 1e-12
        assert metrics.jain_index([1e200 * x for x in rates]) == approx(index)
        assert metrics.jain_index(rng.sample(rates, n)) == approx(index)
        variation = metrics.coefficient_of_variation(rates, ddof=0)
        assert index == approx(1 / (1 + variation**2))
        assert metrics.jain_index([*rates, 0.0]) < index


def test_other_fairness():
    assert metrics.epsilon_fairness([4, 5]) == 0.8
    assert metrics.product_fairness([2, 8], 4) == approx(1)
    assert metrics.product_fairness([0, 8], 4) == 0
    # 1 Gbit/s, 20% background, 20 flows.
    assert metrics.fair_share(1e9, 20, background=0.2) == approx(40e6)
    with pytest.raises(ValueError, match="at least one flow"):
        metrics.fair_share(1e9, 0)
    names = ["reno", "cubic", "reno", "cubic"]
    assert metrics.share([1, 3, 2, 4], names, "reno") == approx(0.3)
    assert metrics.share([1, 3, 2, 4], names, "reno", capacity_bps=20) == approx(0.15)
    assert metrics.share([1, 3, 2, 4], names, "bbr") is None
    assert metrics.relative_share([1, 3, 2, 4], names, "reno", "cubic") == approx(1.5 / 3.5)
    with pytest.raises(ValueError, match="group of every flow"):
        metrics.share([1, 2], ["reno"], "reno")
    assert metrics.harm(10, 4) == approx(0.6)
    assert metrics.harm(0.02, 0.08, more_is_better=False) == approx(0.75)
    assert metrics.starved_share([0, 1, 50, 50], 100) == 0.5


# --- throughput over time


def samples(curves: dict[int, list[tuple[float, float]]]) -> pl.DataFrame:
    rows = [(t, flow, int(d)) for flow, points in curves.items() for t, d in points]
    schema = {"time_s": pl.Float64, "flow": pl.UInt64, "delivered_bytes": pl.UInt64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def steady(rate: float, start: float, end: float, step: float = 0.1) -> list[tuple[float, float]]:
    """Samples of a flow of `rate` byte/s."""
    n = round((end - start) / step)
    return [(start + k * step, rate * k * step) for k in range(1, n + 1)]


def test_bins_by_hand():
    bins = metrics.throughput_bins(samples({0: steady(1000, 0, 4), 1: steady(500, 2, 4)}))
    assert bins.columns == ["flow", "time_s", "throughput_bps"]
    assert bins.filter(pl.col("flow") == 0)["throughput_bps"].to_list() == approx([8000] * 4)
    second = bins.filter(pl.col("flow") == 1)
    assert second["time_s"].to_list() == [0, 1, 2, 3]
    assert second["throughput_bps"].to_list() == approx([0, 0, 4000, 4000])
    half = metrics.throughput_bins(samples({0: steady(1000, 0, 4)}), 1.5)
    assert half["time_s"].to_list() == [0, 1.5], "a partial last bin is left out"
    for width in (0, -1):
        with pytest.raises(ValueError, match="wider than 0"):
            metrics.throughput_bins(samples({0: steady(1, 0, 1)}), width)
    assert metrics.throughput_bins(samples({})).is_empty()


def test_bins_of_a_flow_between_samples():
    # Started at 0.25, complete at 1.5 with 1250 bytes, sampled twice.
    seen = samples({7: [(0.5, 250), (1.0, 750)]})
    flows = pl.DataFrame(
        {"id": [7], "start_s": [0.25], "end_s": [1.5], "delivered_bytes": [1250]},
        schema_overrides={"id": pl.UInt64},
    )
    bins = metrics.throughput_bins(seen, 0.5, end_s=2.0, flows=flows)
    assert bins["throughput_bps"].to_list() == approx([250 * 16, 500 * 16, 500 * 16, 0])
    window = metrics.goodput_in(seen, 0.25, 1.25, flows=flows)
    assert window.rows() == [(7, approx(8 * 1000))]
    for end in (1.0, 0.5):
        with pytest.raises(ValueError, match="is empty"):
            metrics.goodput_in(seen, 1.0, end)


def test_bins_conserve_bytes():
    rng = random.Random(5)
    for _ in range(20):
        total, points = 0, []
        for k in range(1, 101):
            total += rng.randint(0, 100_000)
            points.append((k / 10, total))
        for width in (0.1, 0.25, 1.0, 2.5):
            bins = metrics.throughput_bins(samples({0: points}), width)
            assert bins["throughput_bps"].sum() * width / 8 == approx(total)


def test_before_its_first_sample_a_flow_rises_for_one_interval_and_after_its_last_it_rests():
    late = metrics.delivered_at(samples({0: [(5.0, 100), (5.1, 200)]}), [4.9, 4.95, 5.05, 9])[0]
    assert late.tolist() == approx([0, 50, 150, 200], rel=1e-6)
    soon = metrics.delivered_at(samples({0: [(0.05, 100), (0.15, 200)]}), [0, 0.025, 0.1])[0]
    assert soon.tolist() == approx([0, 50, 150]), "not before the run begins"
    once = metrics.delivered_at(samples({0: [(2.0, 100)]}), [0, 1, 2])[0]
    assert once.tolist() == approx([0, 50, 100])
    idle = metrics.delivered_at(samples({0: [(5.0, 0), (5.1, 200)]}), [4.95, 5.0, 5.05])[0]
    assert idle.tolist() == approx([0, 0, 100], rel=1e-6)


def test_another_column_counts_where_it_is_known():
    seen = samples({7: [(0.5, 250), (1.0, 750)], 8: [(0.5, 100), (1.0, 200)]}).with_columns(
        received_bytes=pl.Series([400, 900, None, None], dtype=pl.UInt64)
    )
    flows = pl.DataFrame(
        {"id": [7], "start_s": [0.0], "end_s": [1.5], "delivered_bytes": [750]},
        schema_overrides={"id": pl.UInt64},
    )
    found = metrics.delivered_at(seen, [0.5, 1.0, 1.5], flows=flows, column="received_bytes")
    assert found[7].tolist() == approx([400, 900, 900]), "stopped before all was delivered"
    assert found[8].tolist() == approx([100, 200, 200]), "data delivered instead"
    bins = metrics.throughput_bins(seen, 0.5, flows=flows, column="received_bytes")
    assert bins.filter(flow=7)["throughput_bps"].to_list() == approx([6400, 8000])


def test_a_bin_that_rounding_makes_too_short_is_whole():
    tenths = samples({0: [(0.1, 10), (0.2, 20), (0.3, 30)]})
    assert metrics.throughput_bins(tenths, 0.1).height == 3, "0.3 / 0.1 is less than 3"
    assert metrics.throughput_bins(tenths, 0.1, start_s=0.2)["time_s"].to_list() == [0.2]
    assert metrics.throughput_bins(tenths, 0.1, start_s=0.9).is_empty()


def binned(rates: list[float], flow: int = 0, width: float = 1.0) -> pl.DataFrame:
    data = {
        "flow": [flow] * len(rates),
        "time_s": [width * k for k in range(len(rates))],
        "throughput_bps": rates,
    }
    return pl.DataFrame(data, schema_overrides={"throughput_bps": pl.Float64})


def test_convergence_by_hand():
    bins = binned([0, 0, 0, 10, 30, 41, 39, 42, 43, 44])
    assert metrics.convergence_time(bins, 0, 40, start_s=3) == 3
    assert metrics.convergence_time(bins, 0, 40, start_s=3, hold_s=2) == 5, "41, 39 does not hold"
    assert metrics.convergence_time(bins, 0, 40, start_s=3, tolerance=0.05, hold_s=2) == 3
    assert metrics.convergence_time(bins, 0, 100) is None
    assert metrics.convergence_time(bins, 9, 1) is None
    both = pl.concat([binned([90, 80, 60, 50, 50]), binned([10, 20, 40, 48, 50], flow=1)])
    assert metrics.fairness_time(both, epsilon=0.1) == 4
    assert metrics.fairness_time(both, epsilon=0.0) == 5
    assert metrics.fairness_time(both, epsilon=0.0, flows=[0]) == 1
    assert metrics.responsiveness([100, 100, 80, 55, 50, 10], 0.2, change=2) == approx(0.6)
    assert metrics.responsiveness([100, 100], 0.2, change=1) is None


def test_one_good_bin_is_enough_unless_more_are_asked_for():
    rates = [0, 50, 20, 60, 60, 60]
    half = binned(rates, width=0.5)
    assert metrics.convergence_time(half, 0, 50) == 1
    assert metrics.convergence_time(half, 0, 50, hold_s=1) == 2
    assert metrics.convergence_time(binned(rates, width=0.1), 0, 50, hold_s=3 * 0.1) == approx(0.4)
    assert metrics.convergence_time(half, 0, 50, start_s=0.5 + 1e-9) == approx(0.5, rel=1e-6)
    assert metrics.convergence_time(binned([60, 0, 60, 60]), 0, 50, hold_s=2) == 3
    assert metrics.convergence_time(binned([50]), 0, 50) == 1, "a single bin is taken for a second"
    other = binned([1, 54, 1, 60, 60, 60], flow=1, width=0.5)
    assert metrics.fairness_time(pl.concat([half, other])) == 1
    assert metrics.fairness_time(binned([0, 0])) is None, "of nothing no share is fair"


def test_a_rate_halves_after_a_change_that_has_a_bin_before_it():
    assert metrics.responsiveness([100, 50], 0.2, change=1) == approx(0.2)
    for change in (-1, 0, 2, 3):
        assert metrics.responsiveness([100, 50], 0.2, change=change) is None
    assert metrics.responsiveness([1, 100], 0.2) is None


def test_stability_by_hand():
    # 2, 4, 4, 4, 5, 5, 7, 9: mean 5, population deviation 2.
    values = [2, 4, 4, 4, 5, 5, 7, 9]
    assert metrics.coefficient_of_variation(values, ddof=0) == approx(0.4)
    assert metrics.coefficient_of_variation(values) == approx(math.sqrt(32 / 7) / 5)
    assert metrics.coefficient_of_variation([3]) is None
    assert metrics.coefficient_of_variation([1, -1]) is None
    assert metrics.smoothness([10, 12, 6, 9]) == 0.5
    assert metrics.smoothness([1, 2, 3]) == 0
    assert metrics.aggressiveness([10, 12, 6, 9], 0.5) == 6
    assert metrics.aggressiveness([2, 1.5], 1) == 0
    # Two flows that take turns: each varies, their sum does not.
    turns = {0: [*steady(1000, 0, 1), (2.0, 1000)], 1: [(1.0, 0), *steady(1000, 1, 2)]}
    assert metrics.aggregate_variation(samples(turns), [0.5])[0.5] == pytest.approx(0, abs=1e-9)


# --- links


def link(delays: list[float], used: list[float | None]) -> pl.DataFrame:
    n = len(delays)
    data = {
        "time_s": [0.1 * (k + 1) for k in range(n)],
        "link": ["l"] * n,
        "direction": ["up"] * n,
        "queue_delay_s": delays,
        "utilization": used,
    }
    return pl.DataFrame(
        data, schema_overrides={"utilization": pl.Float64, "queue_delay_s": pl.Float64}
    )


def test_links_by_hand():
    table = link([0, 0.1, 0.2, 0.3, 0.4], [0, 0.5, 1, 1, 1])
    assert metrics.link_utilization(table, "l") == approx(0.7)
    assert metrics.link_utilization(table, "l", start_s=0.2) == approx(1)
    assert metrics.link_utilization(table, "l", end_s=0.25) == approx(0.25)
    assert metrics.link_utilization(table, "l", end_s=0.2) == approx(0.25), "its end is in it"
    assert metrics.link_utilization(link([0], [None]), "l") is None
    found = metrics.queue_delay_percentiles(table, "l", percentiles=(25, 50, 95, 99.9))
    assert found == {
        "queue_delay_p25_s": approx(0.1),
        "queue_delay_p50_s": approx(0.2),
        "queue_delay_p95_s": approx(0.38),
        "queue_delay_p99.9_s": approx(0.3996),
    }
    with pytest.raises(KeyError, match="sampled are: l up"):
        metrics.queue_delay_percentiles(table, "l", "down")
    sawtooth = link([0.01, 0.05, 0.02, 0.06, 0.03, 0.09], [1] * 6)
    assert metrics.standing_queue_delay(sawtooth, "l", window_s=0.2) == approx(0.02)
    with pytest.raises(ValueError, match="longer than 0"):
        metrics.standing_queue_delay(sawtooth, "l", window_s=0)


def test_rates_by_hand():
    assert metrics.goodput(1_000_000, 2) == 4e6
    assert metrics.goodput(1, 0) is None
    assert metrics.goodput_ratio(9, 10) == 0.9
    assert metrics.load([3e6, 5e6], 1e7) == approx(0.8)
    assert metrics.loss_rate(1, 1000) == 0.001
    assert metrics.loss_rate(0, 0) is None
    # Losses at 0, 50 and 90 ms are one event of a path of 100 ms; 150 ms begins another.
    assert metrics.loss_event_rate([0, 0.05, 0.09, 0.15, 0.2, 0.26], 0.1, 300) == approx(0.01)
    # RFC 3649: 1500-byte packets, 100 ms, 10 Gbit/s take a loss every 5e9 packets (p = 2e-10).
    assert metrics.response_rate(0.1, 2e-10) == pytest.approx(10e9, rel=0.02)
    assert metrics.power(1e6, 0.05) == approx(2e7)
    assert metrics.normalized_power(8e6, 1e7, 0.1, 0.05) == approx(0.4)
    assert metrics.power(1e6, 0) is None
    assert metrics.slowdown(0.3, 1_250_000, 1e8, 0.05) == approx(2)


NAMES = ["reno", "cubic"]
UNDEFINED = {
    "jain_index": [([],), ([0, 0],), ([-1, -2],)],
    "epsilon_fairness": [([],), ([0, 0],), ([-2, -1],)],
    "product_fairness": [([], 4), ([1, 2], 0), ([1, 2], -4)],
    "share": [([0, 0], NAMES, "reno"), ([1, 2], NAMES, "bbr"), ([-1, -2], NAMES, "reno")],
    "relative_share": [
        ([1, 0], NAMES, "reno", "cubic"),
        ([1, -2], NAMES, "reno", "cubic"),
        ([1, 2], NAMES, "bbr", "reno"),
    ],
    "harm": [(0, 1), (-1, 1)],
    "starved_share": [([], 10)],
    "load": [([1.0], 0), ([1.0], -1)],
    "goodput": [(1, 0), (1, -1)],
    "goodput_ratio": [(1, 0), (1, -1)],
    "loss_rate": [(0, 0), (1, -1)],
    "loss_event_rate": [([0.1], 0.1, 0), ([0.1], 0.1, -1)],
    "response_rate": [(0.1, 0), (0, 0.01), (0.1, -0.01), (-0.1, 0.01)],
    "coefficient_of_variation": [([],), ([3],), ([1, -1],)],
    "smoothness": [([],), ([1],), ([0, 1],)],
    "aggressiveness": [([], 1), ([1], 1), ([1, 2], 0), ([1, 2], -1)],
    "power": [(1e6, 0), (1e6, -1)],
    "normalized_power": [(1, 0, 1, 1), (1, -1, 1, 1), (1, 1, 0, 1), (1, 1, -1, 1)],
    "slowdown": [(0.3, 1, 0, 0.05), (0.3, 1, -1, 0.05)],
    "aggregation_benefit": [(5.0, []), (5.0, [10.0]), (5.0, [10.0, 0.0]), (5.0, [10.0, -1.0])],
    "duplicate_share": [(0, 0), (1, -2)],
}
"""Arguments for which a definition says that there is no value."""
DEFINED = {
    "jain_index": (([1e-3],), 1.0),
    "epsilon_fairness": (([1e-3],), 1.0),
    "product_fairness": (([1e-3], 1e-3), 1.0),
    "share": (([0, 1], NAMES, "reno"), 0.0),
    "relative_share": (([0, 1e-3], NAMES, "reno", "cubic"), 0.0),
    "harm": ((1e-3, 1e-3), 0.0),
    "starved_share": (([1.0], 10.0), 0.0),
    "load": (([], 1e-3), 0.0),
    "goodput": ((0, 1e-3), 0.0),
    "goodput_ratio": ((0, 1e-3), 0.0),
    "loss_rate": ((1, 1), 1.0),
    # One packet was sent and lost.
    "loss_event_rate": (([0.1], 0.1, 1), 1.0),
    "response_rate": ((1e-3, 1e-4), 1.2 * 12_000 / 1e-5),
    "coefficient_of_variation": (([1e-3, 1e-3],), 0.0),
    "smoothness": (([1e-3, 0],), 1.0),
    "aggressiveness": (([1, 2], 1e-3), 1000.0),
    "power": ((1.0, 1e-3), 1000.0),
    "normalized_power": ((1e-3, 1e-3, 1e-3, 1e-3), 1.0),
    "slowdown": ((1.0, 0, 1e-3, 0.5), 2.0),
    # From nothing to the sum of both, and back to the better one.
    "aggregation_benefit": ((30.0, [10.0, 20.0]), 1.0),
    "duplicate_share": ((0, 1), 0.0),
}
"""Arguments beside these for which it has one."""


@pytest.mark.parametrize("name", UNDEFINED)
def test_what_is_not_defined_is_missing_and_not_zero(name):
    metric = getattr(metrics, name)
    for arguments in UNDEFINED[name]:
        assert metric(*arguments) is None, arguments
    if name in DEFINED:
        arguments, value = DEFINED[name]
        assert metric(*arguments) == approx(value)


def test_shares_of_a_link_without_capacity_are_missing():
    for capacity in (0, -1):
        assert metrics.share([1, 2], NAMES, "reno", capacity_bps=capacity) is None
    assert metrics.share([1, 2], NAMES, "reno", capacity_bps=0.5) == approx(2)


def test_a_fair_share_is_of_one_flow_or_more_and_of_a_whole_link_at_most():
    assert metrics.fair_share(10, 1) == 10
    assert metrics.fair_share(10, 2, background=1) == 0
    for flows, background in [(0, 0), (-1, 0), (2, -0.1), (2, 1.1)]:
        with pytest.raises(ValueError, match="a background of 0 to 1"):
            metrics.fair_share(10, flows, background=background)


def test_less_is_better_has_its_own_reference():
    assert metrics.harm(1, -1, more_is_better=False) is None
    assert metrics.harm(0, 1, more_is_better=False) == 1
    assert metrics.harm(0, 1e-3, more_is_better=False) == 1
    assert metrics.harm(1, 0, more_is_better=False) is None
    assert metrics.harm(0.08, 0.02, more_is_better=False) == approx(-3)


def test_the_first_sample_covers_no_more_than_the_others():
    """A link is sampled from the first flow on: what was before is not a part of its time."""
    late = link([0] * 3, [0.9, 0.3, 0.3]).with_columns(time_s=pl.Series([5.0, 5.1, 5.2]))
    assert metrics.link_utilization(late, "l") == approx(0.5)
    soon = link([0] * 3, [0.9, 0.3, 0.3]).with_columns(time_s=pl.Series([0.05, 0.15, 0.25]))
    assert metrics.link_utilization(soon, "l") == approx((0.9 * 0.05 + 0.06) / 0.25)
    assert metrics.link_utilization(link([0], [0.4]), "l") == approx(0.4)


def test_waiting_data_is_that_of_one_flow():
    rows = [
        (0.1 * i, flow, value * i) for i in range(5) for flow, value in ((1, 10), (2, 1000), (3, 7))
    ]
    schema = {"time_s": pl.Float64, "flow": pl.UInt64, "out_of_order_bytes": pl.UInt64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    found = metrics.out_of_order_percentiles(table, 2)
    assert found == {
        "out_of_order_p50_bytes": 2000,
        "out_of_order_p95_bytes": approx(3800),
        "out_of_order_p100_bytes": 4000,
    }
    late = metrics.out_of_order_percentiles(table, 2, percentiles=[100], end_s=0.25)
    assert late == {"out_of_order_p100_bytes": 2000}
    assert set(metrics.out_of_order_percentiles(table, 9).values()) == {None}


def test_a_path_has_the_data_of_its_subflows_from_their_opening_to_their_end():
    subflows = pl.DataFrame(
        {
            "flow": [3, 3, 3],
            "subflow": [0, 1, 2],
            "link": ["a", "b", "a"],
            "peer_link": ["a", "b", "a"],
            "gateway": [None] * 3,
            "opened_s": [0.25, 0.0, 9.0],
            "closed_s": [1.5, None, None],
            "delivered_bytes": [1250, 1000, 0],
        },
        schema_overrides={"flow": pl.UInt64, "subflow": pl.UInt64, "gateway": pl.String},
    )
    points = [(0.5, 0, 250), (1.0, 0, 750), (0.5, 1, 250), (1.0, 1, 500), (2.0, 1, 1000)]
    seen = pl.DataFrame(
        [(t, 3, s, d) for t, s, d in points],
        {"time_s": pl.Float64, "flow": pl.UInt64, "subflow": pl.UInt64, "delivered_bytes": pl.UInt64},
        orient="row",
    )  # fmt: skip
    bins = metrics.path_bins(seen, subflows, 0.5)
    first = bins.filter(path="a")["throughput_bps"].to_list()
    assert first == approx([250 * 16, 500 * 16, 500 * 16, 0])
    assert bins.filter(path="b")["throughput_bps"].to_list() == approx([250 * 16] * 4)
    assert metrics.path_bins(seen.head(0), subflows).is_empty()
    shares = metrics.path_shares(subflows)
    assert shares["share"].to_list() == approx([1250 / 2250, 1000 / 2250])
    nothing = metrics.path_shares(subflows.with_columns(delivered_bytes=pl.lit(0, pl.UInt64)))
    assert nothing["share"].to_list() == [None, None]
    # Of each flow its own.
    others = subflows.with_columns(flow=pl.lit(4, pl.UInt64))
    both = metrics.path_shares(pl.concat([subflows, others]))["share"].to_list()
    assert both == approx([1250 / 2250, 1000 / 2250] * 2)


def test_what_several_paths_gain_is_between_nothing_and_their_sum():
    found = [metrics.aggregation_benefit(g, [0.1, 0.2]) for g in (0, 0.1, 0.2, 0.25, 0.3)]
    assert found == pytest.approx([-1, -0.5, 0, 0.5, 1])
    assert metrics.aggregation_benefit(30, [10.0, 0.5, 0.0]) == approx(40)
    assert metrics.aggregation_benefit(45, [10.0, 20.0, 30.0]) == approx(0.5)


def test_sizes_are_of_the_first_class_that_they_do_not_exceed():
    sizes = [15_000, 15_001, 100_000, 1_000_000, 10_000_000, 10_000_001]
    frame = pl.DataFrame({"delivered_bytes": sizes})
    names = ["<=15kB", "<=100kB", "<=100kB", "<=1MB", "<=10MB", ">10MB"]
    assert frame.select(metrics.size_class())["size"].to_list() == names
    own = frame.select(metrics.size_class([2e9, 999, 15_000]))["size"]
    assert own.unique().sort().to_list() == ["<=15kB", "<=2GB"]
    few = pl.DataFrame({"bytes": [999, 1000, 1001]})
    classes = few.select(metrics.size_class([999, 1000], "bytes"))["size"]
    assert classes.to_list() == ["<=999B", "<=1kB", ">1kB"]


def test_figures_have_the_names_of_their_percentiles():
    table = link([0, 0.1, 0.2], [1, 1, 1])
    assert list(metrics.queue_delay_percentiles(table, "l").values()) == approx([0.1, 0.19, 0.198])
    assert set(metrics.queue_delay_percentiles(table, "l", end_s=0.05).values()) == {None}
    assert list(metrics.queue_delay_percentiles(table, "l")) == [
        f"queue_delay_p{p}_s" for p in (50, 95, 99)
    ]
    flows = pl.DataFrame({"completion_s": [1.0, 2.0]})
    assert [c for c in metrics.completion_times(flows).columns if "_p" in c] == [
        f"completion_p{p}_s" for p in (50, 95, 99)
    ]
    empty = pl.DataFrame(schema={"time_s": float, "flow": int, "delivered_bytes": int})
    assert list(metrics.aggregate_variation(empty)) == [0.1, 1.0, 10.0]


def test_a_standing_queue_is_the_median_of_windows_from_the_start():
    table = link([0.09, 0.05, 0.01, 0.02, 0.06, 0.03], [1] * 6)
    assert metrics.standing_queue_delay(table, "l") == approx(0.04), "each sample a window"
    assert metrics.standing_queue_delay(table, "l", window_s=0.2) == approx(0.03)
    shifted = metrics.standing_queue_delay(table, "l", window_s=0.2, start_s=0.1)
    assert shifted == approx(0.02), "0.01, 0.02 and 0.03"
    assert metrics.standing_queue_delay(table, "l", window_s=0.2, end_s=0.4) == approx(0.03)
    assert metrics.standing_queue_delay(table, "l", end_s=0.05) is None
    with pytest.raises(ValueError, match="longer than 0"):
        metrics.standing_queue_delay(table, "l", window_s=-1)


def test_bounds_of_rates_and_delays_are_those_of_the_networks():
    rows = pl.DataFrame({CEILING: [1e6, 2e6], DRAIN: [0.1, 0.2]})
    assert bounds_in("goodput_bps", rows) == (0, 2e6)
    assert bounds_in("queue_delay_p95_s", rows) == (0, 0.2)
    assert bounds_in("loss_rate", rows) == (0, 1)
    assert bounds_in("mine", rows) == (-math.inf, math.inf)
    assert bounds_in("mine", rows, {"mine": (1, 5)}) == (1, 5)
    assert bounds_in("goodput_bps", rows, {"goodput_bps": (5, 7)}) == (5, 7), "the lesser one"
    for unknown in (
        rows.head(0),
        rows.drop(CEILING),
        rows.with_columns(pl.lit(None).alias(CEILING)),
    ):
        assert bounds_in("goodput_bps", unknown) == (0, math.inf)


def test_the_least_difference_decides_which_side_is_better():
    told = [
        verdict_of(n, e, "a", "b") for n in ("goodput_bps", "loss_rate", "x") for e in (1e-3, -1e-3)
    ]
    assert told == ["a better", "b better", "b better", "a better", "a higher", "b higher"]


def test_numbers_are_taken_from_any_list_and_have_to_be_finite():
    for values in ([1, None, 3], pl.Series([1, None, 3]), np.array([[1, 3]])):
        assert array(values).tolist() == [1, 3]
    for wrong in ([math.nan], pl.Series([math.inf]), np.array([1.0, -math.inf])):
        with pytest.raises(ValueError, match="not finite"):
            array(wrong)
    assert summed(pl.Series([1, 2])) == 3
    assert summed(pl.Series([1, None])) is None
    assert finite(math.inf) is finite(None) is None


def test_unknown_links_are_told_with_some_that_are_sampled():
    some = pl.concat([link([0], [1]).with_columns(link=pl.lit(f"l{k}")) for k in range(20)])
    with pytest.raises(KeyError, match=r"sampled are: l0 up, .*l11 up\W*$"):
        metrics.link_utilization(some, "none")
    with pytest.raises(KeyError, match="sampled are: none"):
        metrics.link_utilization(some.head(0), "none")


def test_completion_by_hand():
    flows = pl.DataFrame(
        {
            "completion_s": [1.0, 2.0, 3.0, None, 0.1],
            "delivered_bytes": [50_000, 60_000, 70_000, 10, 9_000],
            "congestion": ["reno", "reno", "cubic", "cubic", "cubic"],
        }
    )
    row = metrics.completion_times(flows).row(0, named=True)
    assert (row["flows"], row["completed"], row["unfinished_share"]) == (5, 4, approx(0.2))
    assert row["completion_p50_s"] == approx(1.5)
    assert row["completion_max_s"] == 3
    groups = metrics.completion_times(flows, by=["congestion"])
    assert groups["congestion"].to_list() == ["cubic", "reno"]
    assert groups["completion_mean_s"].to_list() == approx([1.55, 1.5])
    sizes = metrics.completion_times(flows, by=[metrics.size_class()])
    assert sizes.select("size", "flows").rows() == [("<=100kB", 3), ("<=15kB", 2)]
    assert metrics.completion_times(flows.head(0)).row(0, named=True)["completion_p50_s"] is None


def test_metrics_agree_with_the_engine():
    run = gargalo.run(TINY)
    rates = run.flows["goodput_bps"]
    assert metrics.jain_index(rates) == approx(run.summary["jain_index"])
    assert metrics.coefficient_of_variation(rates) == approx(run.summary["goodput_cov"])
    used = metrics.link_utilization(run.link_samples, "link", "up")
    engine = next(x["utilization"] for x in run.links if x["direction"] == "up")
    assert used == pytest.approx(engine, rel=0.01)
    window = metrics.goodput_in(run.flow_samples, 0, 3, flows=run.flows)
    upload = run.flows.row(0, named=True)
    assert window["goodput_bps"][0] == approx(upload["delivered_bytes"] * 8 / 3)
    bins = metrics.throughput_bins(run.flow_samples, 0.5, flows=run.flows)
    total = bins.filter(pl.col("flow") == 0)["throughput_bps"].sum() * 0.5 / 8
    assert total == approx(upload["delivered_bytes"])
    times = metrics.completion_times(run.flows)
    assert times["completion_p50_s"][0] == approx(run.summary["completion_p50_s"])


# --- definitions


def test_every_metric_has_a_definition_and_a_source():
    named = {d.name for d in metrics.definitions()}
    functions = {n for n in metrics.__all__ if n[0].islower()}
    assert functions - named == {"definitions", "delivered_at", "with_path"}
    for d in metrics.definitions():
        assert d.formula, d.name
        assert d.unit, d.name
        assert any(c.isdigit() for c in d.source), f"{d.name}: a source has a year or a number"


def test_the_page_of_definitions_is_up_to_date():
    from gargalo.metrics.definitions import page

    path = Path(ROOT) / "docs" / "metrics.md"
    assert path.read_text(encoding="utf-8") == page(), "run `python -m gargalo.metrics`"


def test_of_several_links_only_the_named_one_counts():
    both = pl.concat(
        [
            link([0, 0.1], [0.5, 0.5]).with_columns(link=pl.lit("k")),
            link([0, 0.1], [1, 1]),
            link([0, 0.1], [0.2, 0.2]).with_columns(link=pl.lit("m")),
            link([0, 0.1], [0.3, 0.3]).with_columns(direction=pl.lit("down")),
            link([0, 0.1], [0.4, 0.4]).with_columns(direction=pl.lit("upper")),
        ]
    )
    assert metrics.link_utilization(both, "l") == metrics.link_utilization(
        link([0, 0.1], [1, 1]), "l"
    )


def test_starved_is_less_than_the_bound_and_nothing_arrived_is_unknown():
    assert metrics.starved_share([0.5, 1.0, 2.0], 10.0) == approx(1 / 3)
    assert metrics.duplicate_share(0, 0) is None
    assert metrics.duplicate_share(1, 3) == approx(0.25)
