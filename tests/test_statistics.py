"""Statistics of repeated runs, against published examples."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from gargalo.metrics import (
    bootstrap_interval,
    compare,
    difference,
    differences,
    holm,
    mean_interval,
    rank,
)
from gargalo.metrics.intervals import ANY, HARM, OPINION, POSITIVE, SHARE
from scipy import stats

# Student, Biometrika 1908: extra hours of sleep with two drugs, the same ten patients.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Hollander and Wolfe, 1973: permeability of a membrane (p. 69), depression before and after (p. 29).
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]


def test_student_by_hand():
    # 1 … 5: mean 3, s = √2.5, t(0.975; 4) = 2.776.
    found = mean_interval([1, 2, 3, 4, 5])
    assert found.mean == 3
    assert (found.high - found.low) / 2 == pytest.approx(2.776445 * (2.5 / 5) ** 0.5, rel=1e-6)
    assert (found.n, found.level, found.method) == (5, 0.95, "student")
    assert 3 in found
    assert 10 not in found
    # The textbook's t(0.95; 4) = 2.132 for 90%.
    less = mean_interval([1, 2, 3, 4, 5], 0.9)
    assert (less.high - less.low) / 2 == pytest.approx(2.132 * 0.7071068, rel=1e-3)


def test_one_run_has_no_interval():
    one = mean_interval([4.2])
    assert (one.mean, one.low, one.high) == (4.2, None, None)
    assert str(one) == "4.2 (interval n/a, needs 3 repeats)"
    assert mean_interval([]).mean is None
    assert bootstrap_interval([4.2]).low is None
    alone = difference([1.0], [2.0])
    assert (alone.verdict, alone.p_value, alone.low) == ("no difference shown", None, None)
    assert alone.estimate == -1
    assert "repeat with more seeds" in alone.reason
    assert difference([], [2.0]).estimate is None
    with pytest.raises(ValueError, match="between 0 and 1"):
        mean_interval([1, 2], 95)
    with pytest.raises(ValueError, match="not finite"):
        mean_interval([1, float("nan")])


def test_two_runs_have_no_interval():
    assert mean_interval([1.0, 1.5, 2.0]).low is not None, "three have one"
    # On the logarithmic scale that of two delays, 1 ms and 61 ms, would be from 0.2 µs to 5 s.
    two = mean_interval([0.001, 0.061], bounds=POSITIVE)
    assert (two.low, two.high, two.method) == (None, None, "none")
    assert two.reason == "needs 3 repeats"
    assert str(two) == "0.031 (interval n/a, needs 3 repeats)"
    assert bootstrap_interval([1.0, 2.0]).low is None
    three = mean_interval([0.001, 0.061, 0.03], bounds=POSITIVE)
    assert (three.low is None, three.reason) == (False, "")


def test_rounding_is_no_spread_and_leaves_no_range():
    same = mean_interval([1.0000000000000036, 0.9999999999999907, 1.000000000000003], bounds=SHARE)
    assert (same.low, same.high, same.reason) == (None, None, "3 equal values")
    near = mean_interval([1.0000000000000036, 0.99, 0.98], bounds=SHARE)
    assert (near.method, near.high < 1) == ("logit", True)
    beyond = mean_interval([1.01, 0.99, 0.98], bounds=SHARE)
    assert (beyond.method, beyond.low > 0) == ("log", True), "the bound that is none is left out"


def test_a_constant_is_compared_with_by_the_test_of_one_sample():
    # Student's sleep data against no more sleep; R's t.test(DRUG_2) and wilcox.test.
    found = difference(DRUG_2, 0.0)
    assert (found.test, found.n_a, found.n_b, found.paired) == ("one-sample t", 10, 1, False)
    assert found.p_value == pytest.approx(0.005076, abs=1e-6)
    assert (found.low, found.high) == (pytest.approx(0.8976775), pytest.approx(3.7623225))
    assert found.verdict == "A higher"
    mirrored = difference(0.0, DRUG_2)
    assert (mirrored.verdict, mirrored.p_value) == ("B higher", pytest.approx(found.p_value))
    ranks = difference(DRUG_2, 0.0, test="mann-whitney")
    assert (ranks.test, ranks.verdict) == ("one-sample wilcoxon", "A higher")
    assert difference(DRUG_2, 0.0, test="permutation").p_value == pytest.approx(6 / 1024)
    alone = difference([1.0], 2.0)
    assert (alone.p_value, alone.estimate) == (None, -1)
    assert "one run beside a constant" in alone.reason
    assert "no spread" in difference([2.0, 2.0], 1.0).reason
    both = difference(3.0, 2.0)
    assert (both.verdict, both.p_value, both.test) == ("A higher", None, "none")
    assert "exact" in both.reason
    with pytest.raises(ValueError, match="no pairs"):
        difference([1.0, 2.0], 2.0, paired=True)


def test_two_constants_differ_exactly():
    for b, verdict in [(2.5, "A higher"), (3.0, "equivalent"), (3.5, "B higher")]:
        assert difference(3.0, b).verdict == verdict
    assert difference(3.0, 2.5, margin=0.5).verdict == "A higher", "a margin is beyond it"
    assert difference(3.0, 2.5, margin=0.6).verdict == "equivalent"
    assert (difference(3, 2).n_a, difference(3, 2).n_b) == (1, 1)


def test_too_few_runs_are_told_by_how_few_they_are():
    few = [
        ([1.0], [2.0], "one run of each"),
        ([1.0], [2.0, 3.0], "one run on one side"),
        ([1.0, 2.0], [3.0], "one run on one side"),
        ([], [2.0], "no run"),
        ([2.0, 3.0], [], "no run"),
        ([], [], "no run"),
        ([], 2.0, "no run"),
        ([1.0], 2.0, "one run beside a constant"),
    ]
    for a, b, told in few:
        found = difference(a, b)
        assert found.short_reason == f"{told} says nothing about chance"
        assert found.p_value is None
    assert difference([1.0, 2.0], [3.0, 4.0]).p_value is not None, "two are enough"


def test_a_level_is_between_none_and_all():
    for level in (-0.5, 0, 1, 1.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            mean_interval([1, 2, 3], level)
    assert mean_interval([1, 2, 3], 0.01).low > mean_interval([1, 2, 3], 0.99).low
    with pytest.raises(ValueError, match="least and its greatest"):
        mean_interval([1, 2, 3], bounds=(1, 1))
    reasons = [mean_interval([5.0] * n).reason for n in range(5)]
    few = "needs 3 repeats"
    assert reasons == ["no run", few, few, "3 equal values", "4 equal values"]
    assert str(mean_interval([])) == "unknown (no run)"


def test_student_covers_as_often_as_it_says():
    rng = random.Random(8)
    inside = sum(10 in mean_interval([rng.gauss(10, 3) for _ in range(5)]) for _ in range(2000))
    assert 0.935 < inside / 2000 < 0.965


def test_intervals_stay_within_what_the_quantity_can_be():
    # Three runs of a utilization that differ much: Student's interval is [-0.10, 1.27].
    runs = [0.9, 0.45, 0.4]
    plain = mean_interval(runs)
    assert plain.low < 0
    assert plain.high > 1
    share = mean_interval(runs, bounds=SHARE)
    assert (share.mean, share.method) == (pytest.approx(1.75 / 3), "logit")
    assert 0 < share.low < 0.4 < 0.9 < share.high < 1
    # By hand: ln(m/(1 - m)) ± 4.3027 · s/√3 / (m · (1 - m)).
    m = 1.75 / 3
    reach = 4.302653 * statistics.stdev(runs) / 3**0.5 / (m * (1 - m))
    middle = math.log(m / (1 - m))
    assert share.low == pytest.approx(1 / (1 + math.exp(reach - middle)), rel=1e-4)
    assert share.high == pytest.approx(1 / (1 + math.exp(-reach - middle)), rel=1e-4)
    # The same on any other range of two bounds, and mirrored where the bound is above.
    score = mean_interval([1 + 3.5 * x for x in runs], bounds=(1.0, 4.5))
    assert score.low == pytest.approx(1 + 3.5 * share.low)
    assert score.high == pytest.approx(1 + 3.5 * share.high)
    # Wherever the bound is.
    here = mean_interval(runs, bounds=POSITIVE)
    there = mean_interval([x + 2 for x in runs], bounds=(2.0, math.inf))
    assert (there.low, there.high) == (pytest.approx(here.low + 2), pytest.approx(here.high + 2))
    best = mean_interval([4.4, 4.5, 3.9], bounds=OPINION)
    assert (best.method, best.high < 4.5) == ("logit", True), "the greatest score of G.107"
    left, right = (
        mean_interval([1 - x for x in runs], bounds=HARM),
        mean_interval(runs, bounds=POSITIVE),
    )
    assert (left.low, left.high) == (pytest.approx(1 - right.high), pytest.approx(1 - right.low))
    assert left.high < 1
    with pytest.raises(ValueError, match="least and its greatest"):
        mean_interval(runs, bounds=(1, 0))
    # Some runs may lie on the bound itself.
    edge = mean_interval([0.0, 0.0, 0.02], bounds=SHARE)
    assert 0 < edge.low < edge.mean < edge.high < 1
    delay = mean_interval([0.001, 0.050, 0.002], bounds=POSITIVE)
    factor = math.exp(4.302653 * statistics.stdev([0.001, 0.050, 0.002]) / 3**0.5 / delay.mean)
    assert (delay.low, delay.high, delay.method) == (
        pytest.approx(delay.mean / factor), pytest.approx(delay.mean * factor), "log",
    )  # fmt: skip
    # Far from the bounds it is Student's.
    far, near = ([10.0, 10.1, 9.9, 10.05], [0.5, 0.501, 0.499, 0.5])
    assert mean_interval(far, bounds=POSITIVE).low == pytest.approx(
        mean_interval(far).low, rel=1e-3
    )
    assert mean_interval(near, bounds=SHARE).high == pytest.approx(
        mean_interval(near).high, rel=1e-3
    )
    # Quantities that may be signed, values beyond the bounds.
    assert mean_interval([-1.0, 2.0, 0.0], bounds=ANY).method == "student"
    assert mean_interval([0.9, 1.1, 1.0], bounds=SHARE).method == "log"
    huge = mean_interval([1e-300, 1e-300, 1.0], bounds=POSITIVE)
    assert 0 < huge.low < huge.high < math.inf


def test_a_bound_is_none_where_the_mean_is_not_within():
    # Values around 0 by rounding, their mean on it or beyond.
    for values in ([-5e-10, 0.0, 5e-10], [-8e-10, 0.0, 2e-10]):
        assert mean_interval(values, bounds=POSITIVE).method == "student"
        mirrored = mean_interval([-x for x in values], bounds=(-math.inf, 0.0))
        assert mirrored.method == "student"
    # Beyond it by more than that, above or below.
    assert mean_interval([-1e-8, 0.5, 1.0], bounds=POSITIVE).method == "student"
    assert mean_interval([-1e-8, -0.5, 1e-8], bounds=(-math.inf, 0.0)).method == "student"
    # Rounding is measured by the values, or by 1.
    assert mean_interval([-8e-10, 0.5, 0.6], bounds=POSITIVE).method == "log"
    assert mean_interval([-1.5e-9, 0.5, 0.6], bounds=POSITIVE).method == "student"
    assert mean_interval([-1e-8, 50.0, 100.0], bounds=POSITIVE).method == "log"


def test_an_interval_that_is_almost_certain_is_the_whole_range():
    found = mean_interval([0.0, 0.0, 1e-3], 1 - 1e-8, bounds=SHARE)
    assert (found.low, found.high) == (0, pytest.approx(1))


def test_bounded_intervals_cover_as_often_as_they_say():
    # Five runs of skewed quantities: Student's interval covers too seldom, the bounded one nearly as said.
    rng = random.Random(9)
    draws = {
        "Jain's index": (lambda: rng.betavariate(50, 1), 50 / 51, SHARE),
        "completion": (lambda: rng.expovariate(1.0), 1.0, POSITIVE),
    }
    for name, (draw, mean, bounds) in draws.items():
        plain = bounded = 0
        for _ in range(3000):
            values = [draw() for _ in range(5)]
            plain += mean in mean_interval(values)
            bounded += mean in mean_interval(values, bounds=bounds)
        assert plain / 3000 < 0.905, name
        assert 0.92 < bounded / 3000 < 0.965, name


def test_differences_of_shares_are_clipped_and_marked():
    a, b = [0.9, 0.2], [0.5, 0.1]
    plain, clipped = difference(a, b), difference(a, b, bounds=SHARE)
    assert plain.low < -1
    assert not plain.clipped
    assert (clipped.low, clipped.high, clipped.clipped) == (-1, 1, True)
    assert (clipped.p_value, clipped.verdict) == (plain.p_value, plain.verdict)
    assert not difference(a, b, bounds=POSITIVE).clipped


def test_an_end_is_clipped_alone():
    a, b = [0.9, 0.8, 0.3], [0.1, 0.2, 0.1]
    plain, above = difference(a, b), difference(a, b, bounds=SHARE)
    assert plain.low > -1 < 1 < plain.high
    assert (above.low, above.high, above.clipped) == (plain.low, 1, True)
    below = difference(b, a, bounds=SHARE)
    assert (below.low, below.high, below.clipped) == (-1, -plain.low, True)


def test_where_corrections_are_undefined_the_bootstrap_is_the_plain_one():
    found = bootstrap_interval([1.0, 1.0, 1.0, 1.0, 5.0], "median")
    assert (found.method, found.mean, found.low) == ("percentile", 1, 1)
    three = bootstrap_interval([1.0, 2.0, 4.0], lambda x: float(np.median(x)))
    assert (three.mean, three.low < three.high) == (2, True)
    assert bootstrap_interval([]).reason == "no run"
    assert bootstrap_interval([1.0, 2.0, 4.0], lambda _: math.nan).mean is None


def test_bootstrap():
    rng = random.Random(3)
    values = [rng.gauss(50, 5) for _ in range(60)]
    student, bca = mean_interval(values), bootstrap_interval(values)
    assert bca.method == "bca"
    assert bca.low == pytest.approx(student.low, abs=0.25)
    assert bca.high == pytest.approx(student.high, abs=0.25)
    assert bootstrap_interval(values) == bca, "equal seeds give equal intervals"
    assert bootstrap_interval(values, seed=1) != bca
    plain = bootstrap_interval(values, "median", method="percentile", level=0.9)
    assert plain.method == "percentile"
    assert plain.low < plain.mean < plain.high
    greatest = bootstrap_interval(values, lambda x: float(x.max() - x.min()), resamples=500)
    assert greatest.mean == pytest.approx(max(values) - min(values))
    same = bootstrap_interval([2.0, 2.0, 2.0])
    assert (same.mean, same.low, same.high) == (2, None, None)
    with pytest.raises(ValueError, match="statistic"):
        bootstrap_interval(values, "mode")


def test_welch_of_the_sleep_data():
    found = difference(DRUG_1, DRUG_2)
    assert found.estimate == pytest.approx(-1.58)
    assert found.low == pytest.approx(-3.3654832, abs=1e-6)
    assert found.high == pytest.approx(0.2054832, abs=1e-6)
    assert found.p_value == pytest.approx(0.07939414, abs=1e-7)
    assert found.verdict == "no difference shown"


def test_paired_t_of_the_sleep_data():
    found = difference(DRUG_1, DRUG_2, paired=True)
    assert found.low == pytest.approx(-2.4598858, abs=1e-6)
    assert found.high == pytest.approx(-0.7001142, abs=1e-6)
    assert found.p_value == pytest.approx(0.00283289, abs=1e-7)
    assert (found.verdict, found.test) == ("B higher", "paired t")
    # Cohen's d of the differences is 1.2846, less the bias of ten pairs.
    assert found.effect_size == pytest.approx(-1.2846 * (1 - 3 / 35), abs=1e-3)
    assert difference(DRUG_2, DRUG_1, paired=True).verdict == "A higher"
    with pytest.raises(ValueError, match="pairs need as many"):
        difference([1, 2, 3], [1, 2], paired=True)


def test_mann_whitney_of_the_membrane_data():
    found = difference(AT_TERM, EARLY, test="mann-whitney")
    assert found.p_value == pytest.approx(0.2544, abs=5e-5)
    assert found.estimate == pytest.approx(0.305)
    assert (found.low, found.high) == (pytest.approx(-0.15), pytest.approx(0.76))
    # W = 35 of 50 pairs.
    assert found.effect_size == pytest.approx(2 * 35 / 50 - 1)


def test_wilcoxon_of_the_depression_data():
    found = difference(BEFORE, AFTER, paired=True, test="mann-whitney")
    assert found.test == "wilcoxon"
    assert found.p_value == pytest.approx(0.0390625)
    assert found.estimate == pytest.approx(0.46)
    assert (found.low, found.high) == (pytest.approx(0.010), pytest.approx(0.786))
    assert found.verdict == "A higher"
    # V = 40 of 45.
    assert found.effect_size == pytest.approx(2 * 40 / 45 - 1)


def test_rank_interval_is_what_the_test_accepts():
    rng = random.Random(11)
    for n, m in ((4, 4), (5, 9), (12, 7)):
        a = [rng.gauss(1, 2) for _ in range(n)]
        b = [rng.gauss(0, 1) for _ in range(m)]
        found = difference(a, b, test="mann-whitney")
        for inside in (found.low + 1e-9, found.high - 1e-9):
            assert difference([x - inside for x in a], b, test="mann-whitney").p_value >= 0.05
        for outside in (found.low - 1e-9, found.high + 1e-9):
            assert difference([x - outside for x in a], b, test="mann-whitney").p_value < 0.05


def test_the_interval_of_many_pairs_is_that_of_the_normal_distribution():
    # The signed ranks of 240 differences: mean n(n+1)/4 = 14460, variance n(n+1)(2n+1)/24 = 1159210.
    n = rank.EXACT_PAIRED + 40
    values = np.sqrt(np.arange(1.0, n + 1))
    averages = np.sort([(a + b) / 2 for i, a in enumerate(values) for b in values[i:]])
    depth = math.floor(14_460 - 1.959964 * math.sqrt(1_159_210))
    _, low, high = rank.paired_shift(values, 0.95)
    assert (low, high) == (averages[depth - 1], averages[-depth])


def test_the_interval_of_many_runs_is_that_of_the_normal_distribution():
    # U of 60 and 41: mean nm/2 = 1230, variance nm(n + m + 1)/12 = 20910.
    a, b = np.sqrt(np.arange(60.0)), np.cbrt(np.arange(41.0))
    shifts = np.sort([x - y for x in a for y in b])
    depth = math.floor(1230 - 1.959964 * math.sqrt(20_910))
    estimate, low, high = rank.shift(a, b, 0.95)
    assert (low, high) == (shifts[depth - 1], shifts[-depth])
    assert estimate == np.median(shifts)


def test_chances_of_rank_sums_are_those_of_all_orders():
    for n, m in itertools.product(range(1, 5), repeat=2):
        sums = [sum(c) - n * (n + 1) // 2 for c in itertools.combinations(range(1, n + m + 1), n)]
        counts = np.bincount(sums, minlength=n * m + 1)
        assert rank._rank_sum_counts(n, m) == pytest.approx(counts / counts.sum())
    for n in range(1, 6):
        signs = itertools.product((0, 1), repeat=n)
        counts = np.bincount([sum(k * s for k, s in enumerate(one, 1)) for one in signs])
        assert rank._signed_rank_counts(n) == pytest.approx(counts / counts.sum())


def test_rank_tests_are_exact_up_to_a_size_and_without_ties():
    rng = np.random.default_rng(5)
    for n, ties in [(50, False), (51, False), (8, True)]:
        a, b = rng.normal(0.5, 1, n), rng.normal(0, 1, 4)
        if ties:
            a, b = a.round(), b.round()
        how = "exact" if n == 50 else "asymptotic"
        found = difference(a, b, test="mann-whitney")
        assert found.p_value == stats.mannwhitneyu(a, b, method=how).pvalue
        assert (
            found.p_value
            != stats.mannwhitneyu(a, b, method="asymptotic" if n == 50 else "exact").pvalue
        )
        # Half of what equal pairs count for is on either side.
        above = np.sign(np.subtract.outer(a, b)).mean()
        assert found.effect_size == pytest.approx(above)


def test_the_size_of_an_effect_by_hand():
    # Variance 1 on both sides, 4 degrees of freedom: -1 · (1 - 3 / 15).
    assert difference([1, 2, 3], [2, 3, 4]).effect_size == pytest.approx(-0.8)
    # (3 · 5/3 + 1 · 2) / 4 = 7/4.
    found = difference([1, 2, 3, 4], [0, 2])
    assert found.effect_size == pytest.approx(1.5 / math.sqrt(7 / 4) * 0.8)
    # All six of one sign: 2 / 2⁶.
    a, b = [1, 2, 3, 4, 5, 6], [2.1, 3.2, 4.3, 5.4, 6.5, 7.6]
    lower, higher = (difference(*s, paired=True, test="mann-whitney") for s in ((a, b), (b, a)))
    assert (lower.effect_size, higher.effect_size) == (-1, 1)
    assert lower.p_value == higher.p_value == pytest.approx(2 / 64)
    # Ranks 1 and 2 against 3; equal pairs have none.
    mixed = difference([1, 2, 3, 9], [0, 0, 6, 9], paired=True, test="mann-whitney")
    assert mixed.effect_size == pytest.approx((1 + 2 - 3) / 6)


def test_rank_interval_needs_enough_runs():
    # Of three and three, the most extreme order has a chance of 2/20.
    found = difference([7, 8, 9], [1, 2, 3], test="mann-whitney")
    assert (found.low, found.high) == (None, None)
    assert found.verdict == "no difference shown"
    assert rank._rank_sum_counts(2, 2).tolist() == pytest.approx(
        [1 / 6, 1 / 6, 2 / 6, 1 / 6, 1 / 6]
    )
    assert rank._signed_rank_counts(2).tolist() == [0.25] * 4


def test_permutation():
    found = difference([7, 8, 9, 10], [1, 2, 3, 4], test="permutation")
    assert found.p_value == pytest.approx(2 / 70), "all 70 relabellings"
    assert found.verdict == "A higher"
    pairs = difference(DRUG_1, DRUG_2, test="permutation", paired=True)
    # 2^10 changes of sign of the ten differences; four give as great a mean, the zero twice.
    assert pairs.p_value == pytest.approx(4 / 1024)
    rng = random.Random(2)
    a, b = ([rng.gauss(0, 1) for _ in range(20)] for _ in "ab")
    assert difference(a, b, test="permutation") == difference(a, b, test="permutation")


def test_equivalence():
    a, b = [100.0, 101.0, 99.0, 100.5, 99.5], [100.2, 100.8, 99.4, 100.1, 99.9]
    assert difference(a, b).verdict == "no difference shown"
    assert difference(a, b, margin=5).verdict == "equivalent"
    assert difference(a, b, margin=0.1).verdict == "no difference shown"
    # The 90% interval of the difference lies within a margin exactly if TOST says so at 5%.
    ninety = difference(a, b, level=0.9)
    edge = max(abs(ninety.low), abs(ninety.high))
    assert difference(a, b, margin=edge * 1.001).equivalence_p < 0.05
    assert difference(a, b, margin=edge * 0.999).equivalence_p > 0.05
    # Certain, but too small to matter.
    assert difference([10.0, 10.1, 10.2], [9.0, 9.1, 9.2]).verdict == "A higher"
    assert difference([10.0, 10.1, 10.2], [9.0, 9.1, 9.2], margin=3).verdict == "equivalent"
    for test in ("mann-whitney", "permutation"):
        assert difference(a, b, margin=5, test=test).verdict == "equivalent"
    for margin in (0, -1):
        with pytest.raises(ValueError, match="margin"):
            difference(a, b, margin=margin)


def test_beside_a_great_margin_the_spread_is_rounding():
    for paired in (False, True):
        found = difference([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], margin=1e14, paired=paired)
        assert (found.equivalence_p, found.verdict) == (0, "equivalent")
    # One value of ten that is rounded: an error of the mean of 3e-13.
    a = difference([1.0] * 9 + [1 + 3e-12], [1.0] * 10)
    assert (a.p_value, a.verdict) == (1, "no difference shown")
    assert a.low == a.high == pytest.approx(3e-13, rel=1e-2)
    # So it is beside a difference that is none.
    near = [1.0] * 9 + [1 + 3e-12]
    for b, verdict in [(0.0, "A higher"), (2.0, "B higher")]:
        certain = difference(near, [b] * 9 + [b + 3e-12])
        assert (certain.p_value, certain.verdict) == (0, verdict)
        assert certain.low == certain.high == pytest.approx(1 - b)
    # A margin that is less is not held, one that is more is.
    for margin, p in [(0.5, 1), (2.0, 0)]:
        for b in (0.0, 2.0):
            assert difference(near, [b] * 10, margin=margin).equivalence_p == p


def test_runs_without_variation():
    assert difference([1, 1, 1], [1, 1, 1]).verdict == "no difference shown"
    for test in ("welch", "mann-whitney", "permutation"):
        for paired in (False, True):
            told = difference([2, 2, 2], [1, 1, 1], test=test, paired=paired)
            assert (told.estimate, told.verdict) == (1, "no difference shown")
            assert (told.p_value, told.low, told.high) == (None, None, None)
            assert "no spread" in told.reason
    assert difference([1, 2, 3], [2, 3, 4], paired=True).p_value is None
    assert difference([2, 2, 2], [1, 1.1, 1.2]).verdict == "A higher", (
        "spread of one side is enough"
    )
    same = mean_interval([3.0, 3.0, 3.0])
    assert (same.mean, same.n, same.low, same.high) == (3, 3, None, None)
    assert "3 equal values" in str(same)
    assert difference([1, 1], [1, 1], margin=0.1).verdict == "equivalent"
    for test in ("welch", "mann-whitney", "permutation"):
        for paired in (False, True):
            equal = difference([3, 3, 3], [3, 3, 3], test=test, paired=paired, margin=0.1)
            assert (equal.p_value, equal.equivalence_p, equal.estimate) == (None, None, 0)
            assert (equal.verdict, equal.short_reason) == ("equivalent", "no variation")


def test_the_rate_of_false_positives_is_that_of_the_level():
    rng = random.Random(4)
    for test in ("welch", "mann-whitney"):
        alarms = sum(
            difference(
                [rng.gauss(0, 1) for _ in range(6)],
                [rng.gauss(0, 1) for _ in range(9)],
                test=test,
            ).verdict
            != "no difference shown"
            for _ in range(800)
        )
        assert alarms / 800 < 0.07, test


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, None, 0.8]) == [1, None, 1]
    # Ten metrics without a difference but one with a small p by chance: not after the correction.
    rng = random.Random(1)
    a = {f"m{k}": [rng.gauss(0, 1) for _ in range(8)] for k in range(10)}
    b = {f"m{k}": [rng.gauss(0, 1) for _ in range(8)] for k in range(10)}
    b["m3"] = [x + 0.8 + 0.02 * k for k, x in enumerate(a["m3"])]
    plain = differences(a, b, correction=None)
    fixed = differences(a, b)
    assert plain["m3"].p_value < 0.05 < fixed["m3"].p_value
    assert plain["m3"].verdict == "B higher"
    assert fixed["m3"].verdict == "no difference shown"
    # What does not vary is no test: it changes no other p-value.
    constant = {"completed": [5.0] * 8}
    more = differences({**a, **constant}, {**b, **constant})
    assert more.pop("completed").p_value is None
    assert {n: d.p_value for n, d in more.items()} == {n: d.p_value for n, d in fixed.items()}
    assert list(fixed) == list(a)


def test_equivalence_of_several_metrics_is_adjusted_among_themselves():
    rng = random.Random(7)
    a = {name: [rng.gauss(10, 1) for _ in range(12)] for name in "xyz"}
    b = {name: [v + rng.gauss(0, 0.5) for v in values] for name, values in a.items()}
    margins = {"x": 0.9, "y": 1.0}
    alone = {n: difference(a[n], b[n], paired=True, margin=margins.get(n)) for n in a}
    found = differences({**a, "only": [1, 2]}, b, paired=True, margins=margins)
    assert list(found) == ["x", "y", "z"]
    for figure in ("p_value", "equivalence_p"):
        expected = holm([getattr(d, figure) for d in alone.values()])
        assert [getattr(d, figure) for d in found.values()] == expected
    assert found["z"].equivalence_p is None
    assert found["x"].test == "paired t"
    assert holm([]) == []
    assert holm([0.5, 0.5, 0.001]) == pytest.approx([1, 1, 0.003])


def test_runs_are_pairs_if_each_has_one_counterpart():
    rows = [
        (c, s, r, 10.0 * s + (c == "a") + 0.1 * r * s)
        for c in "ab"
        for s in range(4)
        for r in (0, 1)
    ]
    twice = pl.DataFrame(rows, ["cc", "seed", "repeat", "x"], orient="row")
    once = twice.filter(repeat=0)
    assert compare(once, "x", "cc", "a", "b", margin=2.0).margin == 2
    assert compare(once, "x", "cc", "a", "b").paired
    for frame, keys in [(twice, ["seed"]), (once, []), (once, ["seed", "link"])]:
        found = compare(frame, "x", "cc", "a", "b", pair_on=keys)
        assert (found.paired, found.estimate) == (False, pytest.approx(1))
    both = compare(twice, "x", "cc", "a", "b", pair_on=["seed", "repeat"])
    assert (both.paired, both.n_a, both.n_b) == (True, 8, 8)
    # A run without the figure leaves its counterpart alone.
    some = once.with_columns(x=pl.when(pl.int_range(pl.len()) != 1).then("x"))
    fewer = compare(some, "x", "cc", "a", "b")
    assert (fewer.paired, fewer.n_a, fewer.estimate) == (True, 3, 1)
    assert not compare(once, "x", "cc", "a", "c").paired
    for metric, column, told in [("x", "cca", "cca"), ("y", "cca", "y")]:
        with pytest.raises(KeyError, match=f'no column "{told}"; there are: cc, seed, repeat, x'):
            compare(once, metric, column, "a", "b")


def test_compare_pairs_equal_seeds():
    # The seed's effect is greater than the difference: only pairs show it.
    rng = random.Random(6)
    seeds = list(range(8))
    shared = [rng.gauss(0, 5) for _ in seeds]
    rows = [
        {"congestion": name, "seed": s, "goodput_bps": 50 + shared[s] + gain + rng.gauss(0, 0.1)}
        for name, gain in (("cubic", 1.0), ("reno", 0.0))
        for s in seeds
    ]
    frame = pl.DataFrame(rows)
    found = compare(frame, "goodput_bps", "congestion", "cubic", "reno")
    assert (found.paired, found.verdict) == (True, "A higher")
    shuffled = compare(
        frame.sample(fraction=1, shuffle=True, seed=1), "goodput_bps", "congestion", "cubic", "reno"
    )
    assert shuffled.p_value == pytest.approx(found.p_value)
    other = frame.filter((pl.col("congestion") == "cubic") | (pl.col("seed") > 0))
    unpaired = compare(other, "goodput_bps", "congestion", "cubic", "reno")
    assert (unpaired.paired, unpaired.verdict) == (False, "no difference shown")
    with pytest.raises(KeyError, match="goodput_bps"):
        compare(frame, "goodput", "congestion", "cubic", "reno")


def test_commands_start_without_scipy():
    # It takes longer to import than a small scenario to run.
    told = "import sys, gargalo.cli.app; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
