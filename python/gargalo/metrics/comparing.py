"""Is one algorithm better than another? Tests of difference and of equivalence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from gargalo.extras import need
from gargalo.metrics import rank
from gargalo.metrics._numbers import array, finite
from gargalo.metrics.intervals import ANY, check_level

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    import polars as pl
    from numpy.typing import NDArray

    from gargalo.metrics._numbers import Numbers
    from gargalo.metrics.intervals import Bounds

    Values: TypeAlias = NDArray[np.float64]
    Side: TypeAlias = Literal["two-sided", "less", "greater"]
    Test: TypeAlias = Literal["welch", "mann-whitney", "permutation"]
    Verdict: TypeAlias = Literal["A higher", "B higher", "no difference shown", "equivalent"]

TESTS = ("welch", "mann-whitney", "permutation")
PAIRED = {
    "welch": "paired t",
    "mann-whitney": "wilcoxon",
    "permutation": "paired permutation",
}
ONE_SAMPLE = {
    "welch": "one-sample t",
    "mann-whitney": "one-sample wilcoxon",
    "permutation": "one-sample permutation",
}
"""Names of the tests of pairs, and of those against a constant."""


@dataclass(frozen=True)
class Difference:
    """The difference of A and B, and whether it is more than chance.

    "No difference shown" is not "equal": with few runs it says only that more are needed. Equality
    has to be shown as well: give a `margin` within which a difference does not matter, and the
    verdict can be "equivalent".
    """

    estimate: float | None
    """A less B: of means, or the median difference (Hodges-Lehmann) with a rank test."""
    low: float | None
    """Lower end of the confidence interval of the difference; None if unknown."""
    high: float | None
    """Upper end of the confidence interval of the difference; None if unknown."""
    p_value: float | None
    """Two-sided: chance of such a difference, or a greater one, if there is none; None if unknown."""
    verdict: Verdict
    """A higher, B higher, no difference shown, or equivalent."""
    n_a: int
    n_b: int
    level: float = 0.95
    test: str = "welch"
    """welch, paired t, mann-whitney, wilcoxon, permutation, paired permutation; against a constant one-sample t,
    one-sample wilcoxon, one-sample permutation."""
    paired: bool = False
    effect_size: float | None = None
    """Difference in standard deviations (Hedges' g; paired: of the differences), or with a rank test
    the rank-biserial correlation, -1 to 1; None if unknown."""
    margin: float | None = None
    """Differences up to this do not matter; None if none was given."""
    equivalence_p: float | None = None
    """Chance of the values if the difference is as great as the margin (two one-sided tests)."""
    reason: str = ""
    """Why there is no result, if there is none."""
    short_reason: str = ""
    """The same in a few words, for a table."""
    clipped: bool = False
    """An end of the interval was beyond what the difference can be, and is that bound instead: the
    true difference is within it as often as before."""


def difference(
    a: Numbers | float,
    b: Numbers | float,
    *,
    level: float = 0.95,
    test: Test = "welch",
    paired: bool = False,
    margin: float | None = None,
    resamples: int = 9999,
    seed: int = 0,
    bounds: Bounds = ANY,
) -> Difference:
    """Compare two algorithms by the values of their runs.

    Formula: "welch" is Welch's t test of means, unequal variances (paired: Student's t of the
    differences aᵢ - bᵢ). "mann-whitney" asks about ranks (paired: Wilcoxon's signed ranks), with the
    Hodges-Lehmann estimate and its exact interval. "permutation" counts how many of `resamples`
    relabellings (all, if there are fewer) give as great a difference of means; its interval is that
    of the t test. Pair runs that share their seeds: common random numbers remove the chance that both share.
    A side that is one number, not a list, is a constant, known without error, as is the figure of a cell in which
    nothing is random: the other side is compared with it by the test of one sample (Student's t, Wilcoxon's signed
    ranks, changes of sign), which is that of pairs with the constant beside every value.
    With `margin`, two one-sided tests (TOST) at 1 - level each show equivalence. With `bounds`, those of the
    values, an end of the interval beyond what the difference can be is that bound, and `clipped` says so.
    None: with fewer than two runs of a side that is not a constant the difference has no interval and no test, nor
        where the values
    of each side are all the same (of pairs, all differences), nor between two constants, whose difference is exact.
    Unit: that of the values.
    Source: Welch, Biometrika 34, 1947; Mann, Whitney, 1947; Wilcoxon, 1945; Hodges, Lehmann, 1963;
    Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987 (TOST); Hedges, 1981.

    Raises:
        ValueError: an unknown test, a bad level or margin, or pairs of unequal number.

    """
    check_level(level)
    if test not in TESTS:
        msg = f'the test is one of {", ".join(TESTS)}, not "{test}"'
        raise ValueError(msg)
    if margin is not None and not margin > 0:
        msg = f"the margin of equivalence is greater than 0, not {margin}"
        raise ValueError(msg)
    constants = [isinstance(side, (int, float)) for side in (a, b)]
    x, y = (array([s] if isinstance(s, (int, float)) else s) for s in (a, b))
    sizes = int(x.size), int(y.size)
    if all(constants):
        return _exact(float(x[0] - y[0]), level, margin)
    if any(constants):
        x, y = _beside_constant(x, y, constants, paired=paired)
        paired = True
    if paired and x.size != y.size:
        msg = f"pairs need as many values of A as of B, not {x.size} and {y.size}"
        raise ValueError(msg)
    name = (ONE_SAMPLE if any(constants) else PAIRED)[test] if paired else test
    estimate = finite(x.mean() - y.mean()) if x.size and y.size else None
    base = Difference(
        estimate, None, None, None, "no difference shown",
        *sizes, level, name, paired and not any(constants), margin=margin,
    )  # fmt: skip
    if min(x.size, y.size) < 2:
        few = "one run of each" if max(x.size, y.size) == 1 else "one run on one side"
        if not min(x.size, y.size):
            few = "no run"
        if x.size and any(constants):
            few = "one run beside a constant"
        short = f"{few} says nothing about chance"
        return replace(base, reason=f"{short}: repeat with more seeds", short_reason=short)
    if not _varies(x, y, paired):
        return _without_variation(base, any(constants))
    probability = partial(_p_value, test, paired, resamples, seed)
    if test == "mann-whitney":
        effect = _rank_effect(x, y, paired)
        estimate, low, high = rank.paired_shift(x - y, level) if paired else rank.shift(x, y, level)
    else:
        effect = _effect(x, y, paired)
        low, high = _t_interval(x, y, paired, level)
    low, high, clipped = _clip(low, high, bounds[1] - bounds[0])
    p = probability(x, y, "two-sided")
    equivalent = None
    if margin is not None:
        equivalent = max(probability(x + margin, y, "greater"), probability(x - margin, y, "less"))
    return replace(
        base,
        estimate=estimate,
        low=low,
        high=high,
        p_value=p,
        verdict=_verdict(estimate or 0.0, p, equivalent, level),
        effect_size=effect,
        equivalence_p=equivalent,
        clipped=clipped,
    )


def _without_variation(base: Difference, beside_constant: bool) -> Difference:
    """Return what is known of values that show no chance: there is nothing to test, so a family has no test of them."""
    if not base.estimate:
        short = "no variation"
        verdict: Verdict = "no difference shown" if base.margin is None else "equivalent"
        reason = f"{short}: all values are the same on both sides, there is nothing to test"
        return replace(base, verdict=verdict, reason=reason, short_reason=short)
    what = "all differences are" if base.paired else "the values of each side are all"
    if beside_constant:
        what = "the values beside the constant are all"
    short = "no spread to test against"
    return replace(base, reason=f"{short}: {what} the same", short_reason=short)


def _beside_constant(
    x: Values, y: Values, constants: Sequence[bool], *, paired: bool
) -> list[Values]:
    """Repeat a constant beside every value: the test of one sample is that of these pairs.

    Raises:
        ValueError: pairs were asked for.

    """
    if paired:
        msg = "a constant has no pairs: leave paired out"
        raise ValueError(msg)
    most = max(x.size, y.size) if min(x.size, y.size) else 0
    return [np.repeat(v, most) if c else v for v, c in zip((x, y), constants, strict=True)]


def _exact(estimate: float, level: float, margin: float | None) -> Difference:
    """Return the difference of two constants."""
    verdict: Verdict = "A higher" if estimate > 0 else "B higher" if estimate < 0 else "equivalent"
    if margin is not None and abs(estimate) < margin:
        verdict = "equivalent"
    why = "both are constants: the difference is exact, there is nothing to test"
    return Difference(
        estimate, None, None, None, verdict, 1, 1, level, "none", margin=margin, reason=why
    )


def _varies(x: Values, y: Values, paired: bool) -> bool:
    """Whether there is any spread beyond that of rounding."""
    spread = np.ptp(x - y) if paired else max(np.ptp(x), np.ptp(y))
    return bool(spread > _rounding(x, y))


def _rounding(x: Values, y: Values) -> float:
    """Return the size up to which a difference of such values may be there by rounding."""
    return 1e-12 * float(max(abs(x).max(), abs(y).max()))


def _clip(
    low: float | None, high: float | None, most: float
) -> tuple[float | None, float | None, bool]:
    """Keep an interval within ± the greatest difference that there can be."""
    if low is None or high is None or (low >= -most and high <= most):
        return low, high, False
    return max(low, -most), min(high, most), True


def _verdict(estimate: float, p: float, equivalent: float | None, level: float) -> Verdict:
    # A difference can be both certain and too small to matter: the margin decides.
    if equivalent is not None and equivalent < 1 - level:
        return "equivalent"
    if p >= 1 - level or estimate == 0:
        return "no difference shown"
    return "A higher" if estimate > 0 else "B higher"


@dataclass(frozen=True)
class _Student:
    """The difference of two means, as Student's t of pairs or Welch's has it."""

    t: float
    """In standard errors."""
    error: float
    freedom: float

    @classmethod
    def of(cls, x: Values, y: Values, paired: bool) -> _Student:
        """Compare the means of pairs, or of two sides whose variances may differ (Welch, 1947)."""
        if paired:
            error = float((x - y).std(ddof=1) / np.sqrt(x.size))
            return cls(float((x - y).mean()) / error, error, x.size - 1)
        parts = [float(v.var(ddof=1) / v.size) for v in (x, y)]
        error = float(np.sqrt(sum(parts)))
        spread = sum(v**2 / (n - 1) for v, n in zip(parts, (x.size, y.size), strict=True))
        return cls(float(x.mean() - y.mean()) / error, error, sum(parts) ** 2 / spread)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval of the difference."""
        # Not scipy.stats, of which the import takes longer than all tests of a scorecard.
        need("tests and intervals", "scipy")
        from scipy.special import stdtrit

        most = float(stdtrit(self.freedom, (1 + level) / 2))
        return (self.t - most) * self.error, (self.t + most) * self.error

    def p_value(self, side: Side) -> float:
        """Return how probable such a difference, or a larger one, is where there is none."""
        need("tests and intervals", "scipy")
        from scipy.special import stdtr

        above, below = (float(stdtr(self.freedom, t)) for t in (-self.t, self.t))
        return {"two-sided": 2 * min(above, below), "greater": above, "less": below}[side]


def _still(x: Values, y: Values, paired: bool) -> bool:
    """Whether the difference of means has no error beyond that of rounding."""
    if paired:
        error = (x - y).std(ddof=1) / np.sqrt(x.size)
    else:
        error = np.sqrt(x.var(ddof=1) / x.size + y.var(ddof=1) / y.size)
    return bool(error <= _rounding(x, y))


def _t_interval(x: Values, y: Values, paired: bool, level: float) -> tuple[float, float]:
    if _still(x, y, paired):
        middle = float(x.mean() - y.mean())
        return middle, middle
    return _Student.of(x, y, paired).interval(level)


def _t_test(x: Values, y: Values, side: Side, paired: bool) -> float:
    if _still(x, y, paired):
        middle, least = float(x.mean() - y.mean()), _rounding(x, y)
        above, below = middle > least, middle < -least
        certain = {"two-sided": above or below, "greater": above, "less": below}[side]
        return 0.0 if certain else 1.0
    return _Student.of(x, y, paired).p_value(side)


def _p_value(
    test: str, paired: bool, resamples: int, seed: int, x: Values, y: Values, side: Side
) -> float:
    if test == "welch":
        return _t_test(x, y, side, paired)
    need("tests and intervals", "scipy")
    from scipy import stats

    if test == "mann-whitney":
        if not paired:
            both = np.concatenate((x, y))
            ties = np.unique(both).size < both.size
            exact = not ties and max(x.size, y.size) <= rank.EXACT_UNPAIRED
            how = "exact" if exact else "asymptotic"
            return float(stats.mannwhitneyu(x, y, alternative=side, method=how).pvalue)
        return float(stats.wilcoxon(x, y, alternative=side).pvalue)

    def means(u: Values, v: Values, axis: int) -> Values:
        return np.asarray(np.mean(u, axis=axis) - np.mean(v, axis=axis))

    found = stats.permutation_test(
        (x, y),
        means,
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=resamples,
        alternative=side,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _effect(x: Values, y: Values, paired: bool) -> float | None:
    """Hedges' g: the difference in standard deviations, without the bias of small samples."""
    if paired:
        spread, freedom = float((x - y).std(ddof=1)), x.size - 1
    else:
        freedom = x.size + y.size - 2
        squares = (x.size - 1) * x.var(ddof=1) + (y.size - 1) * y.var(ddof=1)
        spread = float(np.sqrt(squares / freedom))
    middle = float(x.mean() - y.mean())
    return finite(middle / spread * (1 - 3 / (4 * freedom - 1)))


def _rank_effect(x: Values, y: Values, paired: bool) -> float | None:
    """Rank-biserial correlation: how much oftener A is above B than below, -1 to 1."""
    need("tests and intervals", "scipy")
    from scipy import stats

    if not paired:
        u = float(stats.mannwhitneyu(x, y).statistic)
        return finite(2 * u / (x.size * y.size) - 1)
    d = (x - y)[x != y]
    ranks = stats.rankdata(abs(d))
    return finite((ranks * np.sign(d)).sum() / ranks.sum())


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for having made several tests at once.

    Formula: sorted p₁ <= … <= pₘ become max over j <= i of min(1, (m - j + 1) · pⱼ), so that the chance
    of any false alarm among all stays below the level. None: what was not tested is left out, and does not count
    among the m; a figure that shows no variation is none that was tested.
    Unit: none.
    Source: Holm, Scandinavian Journal of Statistics 6(2), 1979.
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for k, (p, i) in enumerate(known):
        least = max(least, min(1.0, (len(known) - k) * p))
        adjusted[i] = least
    return adjusted


def differences(
    a: Mapping[str, Numbers],
    b: Mapping[str, Numbers],
    *,
    correction: Callable[[Sequence[float | None]], list[float | None]] | None = holm,
    level: float = 0.95,
    test: Test = "welch",
    paired: bool = False,
    margins: Mapping[str, float] | None = None,
    resamples: int = 9999,
    seed: int = 0,
) -> dict[str, Difference]:
    """Compare two algorithms by several metrics at once, with p-values adjusted for their number.

    Formula: `difference` for each metric of both; p-values (and those of equivalence, among
    themselves) then go through `correction`, and verdicts follow the adjusted ones. Intervals are not
    adjusted: each is at `level` by itself.
    Unit: of each metric its own.
    Source: Holm, Scandinavian Journal of Statistics 6(2), 1979.

    Raises:
        ValueError: as `difference`.

    """
    names = [name for name in a if name in b]
    found = [
        difference(
            a[n], b[n], level=level, test=test, paired=paired,
            margin=(margins or {}).get(n), resamples=resamples, seed=seed,
        )
        for n in names
    ]  # fmt: skip
    if correction is None:
        return dict(zip(names, found, strict=True))
    plain = correction([d.p_value for d in found])
    same = correction([d.equivalence_p for d in found])
    adjusted: dict[str, Difference] = {}
    for n, d, p, e in zip(names, found, plain, same, strict=True):
        verdict = d.verdict if p is None else _verdict(d.estimate or 0.0, p, e, level)
        adjusted[n] = replace(d, p_value=p, equivalence_p=e, verdict=verdict)
    return adjusted


def compare(
    frame: pl.DataFrame,
    metric: str,
    column: str,
    a: str,
    b: str,
    *,
    pair_on: Sequence[str] = ("seed",),
    **options: object,
) -> Difference:
    """Compare two values of a column of a table of runs, paired if every run has its counterpart.

    Formula: `difference` of `metric` where `column` is `a` and where it is `b`; rows are pairs if the
    columns `pair_on` are there, name each row of a side once, and are the same on both sides. Rows
    without the metric are left out with their counterparts.
    Unit: that of the metric.
    Source: common random numbers: Law, Kelton, Simulation Modeling and Analysis, 3rd ed., 2000, section 11.2.

    Raises:
        ValueError: as `difference`.
        KeyError: a column is missing.

    """
    import polars as pl

    missing = [c for c in (metric, column) if c not in frame.columns]
    if missing:
        msg = f'the table has no column "{missing[0]}"; there are: {", ".join(frame.columns)}'
        raise KeyError(msg)
    sides = [frame.filter(pl.col(column) == value) for value in (a, b)]
    keys = [k for k in pair_on if k in frame.columns]
    paired = len(keys) == len(tuple(pair_on)) > 0 and all(
        not side.select(keys).is_duplicated().any() for side in sides
    )
    if paired:
        sets = [set(side.select(keys).rows()) for side in sides]
        paired = sets[0] == sets[1] and bool(sets[0])
    if not paired:
        return difference(sides[0][metric], sides[1][metric], **options)  # type: ignore[arg-type]
    both = sides[0].join(sides[1], on=keys, suffix=" of B", maintain_order="left")
    both = both.drop_nulls([metric, f"{metric} of B"])
    return difference(both[metric], both[f"{metric} of B"], paired=True, **options)  # type: ignore[arg-type]
