"""The nine claims of the study, each with its check.

Where the work says "about" or "near", the check says how near: the bounds are in the code and shown in the
evidence. Utilisation of the main flows is compared with what the background leaves.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from gargalo.reporting import Evidence
from gargalo.studies import (
    Assessment,
    Claim,
    Context,
    above,
    assessed,
    below,
    between,
    evidence,
)
from scipy import stats

from gargalo_studies.high_speed_tcp.experiments import Levels
from gargalo_studies.high_speed_tcp.scenarios import LOADS, PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILLED = 0.95
"""A link counts as filled from this share of what the background leaves."""
TIE = 0.01
"""Uses of a link that differ by less are equal: where windows are capped, many are."""


def ranking(values: Mapping[str, float], *, best: str = "greatest") -> list[str]:
    """Return the names in the order of their values, best first; unknown values last."""
    sign = -1.0 if best == "greatest" else 1.0
    known = [(sign * v, k) for k, v in values.items() if not math.isnan(v)]
    return [k for _, k in sorted(known)]


def names(values: Sequence[str]) -> str:
    """Write an order."""
    return " > ".join(values)


def all_known(values: Mapping[str, float]) -> bool:
    """Whether every value was measured."""
    return not any(math.isnan(v) for v in values.values())


def use_of(context: Context, experiments: Sequence[str], **labels: object) -> dict[str, float]:
    """Return each protocol's mean use of what the background leaves, over the cells that all protocols have."""
    key = ["connections", "mbps", "load"]
    rows = [context.experiment(e, **labels) for e in experiments]
    cells: dict[str, dict[tuple[object, ...], list[float]]] = {p: {} for p in PROTOCOLS}
    for experiment, found in zip(experiments, rows, strict=True):
        for row in found.iter_rows(named=True):
            cell = (experiment, *(row.get(k) for k in key))
            used = row["main_utilization"] / (1 - row["load"])
            cells[row["protocol"]].setdefault(cell, []).append(used)
    common = set.intersection(*(set(of) for of in cells.values()))
    if not common:
        return dict.fromkeys(PROTOCOLS, math.nan)
    # The exact sum: the order of a set is another in each process.
    return {p: fmean(fmean(of[c]) for c in common) for p, of in cells.items()}


DUMBBELL = ("connections", "capacity")
LOT = ("parking-fairness", "parking-scalability")


def scalability(context: Context) -> dict[str, float]:
    """Return each protocol's mean use of what the background leaves of the dumbbell."""
    return use_of(context, DUMBBELL)


def lot_scalability(context: Context) -> dict[str, float]:
    """Return each protocol's mean use of what the background leaves of the parking lot."""
    return use_of(context, LOT)


def compatibility(context: Context, experiment: str = "compatibility") -> dict[str, float]:
    """Return reno's share of the capacity beside as many flows of each protocol, over all loads."""
    return {
        p: context.mean("share.reno", experiment, protocol=p, others=20)
        for p in PROTOCOLS
        if p != "reno"
    }


def convergence_times(context: Context, load: float) -> dict[str, float]:
    """Return each protocol's mean time to a fair share in s: infinite if a run does not reach it, NaN without runs."""
    found = {}
    for p in PROTOCOLS:
        reached = context.mean("converged", "convergence", protocol=p, load=load)
        mean = context.mean("convergence_s", "convergence", protocol=p, load=load)
        found[p] = math.inf if reached < 1 else mean
    return found


def with_ties(uses: Mapping[str, float]) -> dict[str, float]:
    """Return uses of a link with those equal that are less than `TIE` below the greatest of their group.

    >>> with_ties({"a": 0.99, "b": 0.985, "c": 0.95})
    {'a': 0.99, 'b': 0.99, 'c': 0.95}
    """
    found: dict[str, float] = {}
    greatest = math.inf
    for name in ranking(uses):
        if uses[name] <= greatest - TIE:
            greatest = uses[name]
        found[name] = greatest
    return {name: found.get(name, math.nan) for name in uses}


def rank_correlation(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return Spearman's rank correlation over the names of the first; NaN if a value is unknown."""
    if not all_known(a) or any(math.isnan(b[k]) for k in a):
        return math.nan
    return float(stats.spearmanr(list(a.values()), [b[k] for k in a]).statistic)


@assessed
def sixteen_fill(context: Context, case: Assessment) -> None:
    """16 connections fill 1 Gbit/s with 20% background, all but libra."""
    bound = FILLED * 0.8
    for p in PROTOCOLS:
        used = context.interval(
            "main_utilization", "connections", protocol=p, connections=16, load=0.2
        )
        wanted = f"{'<' if p == 'libra' else '≥'} {bound:.2f}"
        case.show(f"{p}, 16 connections", used, expected=wanted)
        if p == "libra":
            case.require(below(used, bound), "libra fills it too")
        else:
            case.require(above(used, bound), f"{p} does not fill it")


@assessed
def above_a_gigabit(context: Context, case: Assessment) -> None:
    """Above 1 Gbit/s the share used falls; more connections raise it; larger buffers hardly."""
    s = Levels.of(context.profile)
    top = max(s.contrast_capacities)
    many = max(s.more_connections)
    for p in s.contrast_protocols:
        if p == "libra":
            continue
        cell = {"protocol": p, "load": 0.2}
        small = {**cell, "buffer": "2500 packets"}
        few = {**small, "connections": 20}
        base = context.interval("main_utilization", "contrast", **few, mbps=1000)
        fast = context.interval("main_utilization", "contrast", **few, mbps=top)
        more = context.interval("main_utilization", "contrast", **small, connections=many, mbps=top)
        large = context.interval(
            "main_utilization", "contrast", **cell, buffer="0.2BDP", connections=20, mbps=top
        )
        speed = f"{top / 1000:g} Gbit/s"
        case.lines += [
            evidence(f"{p}, 1 Gbit/s, 20 connections", base),
            evidence(f"{p}, {speed}, 20 connections", fast, expected="less"),
            evidence(f"{p}, {speed}, {many} connections", more, expected="more than with 20"),
            evidence(f"{p}, {speed}, buffer 20% BDP", large, expected="at most 0.05 more"),
        ]
        if None in (base.mean, fast.mean, more.mean, large.mean):
            case.require(None, f"{p} was not measured")
            continue
        assert base.mean is not None
        assert fast.mean is not None
        assert more.mean is not None
        assert large.mean is not None
        case.conditions += [
            (fast.mean < base.mean - 0.01, f"{p} uses as large a share of {speed}"),
            (more.mean > fast.mean + 0.01, f"more connections do not help {p}"),
            (large.mean < fast.mean + 0.05, f"larger buffers help {p}"),
        ]


@assessed
def who_scales(context: Context, case: Assessment) -> None:
    """FAST and H-TCP scale best; libra worst, below reno: connections, capacity and parking lot at all loads."""
    used = use_of(context, DUMBBELL + LOT)
    order = ranking(used)
    case.lines += [Evidence(f"{p}, mean use of what is left", used[p]) for p in order]
    for name, experiments in (("dumbbell", DUMBBELL), ("parking lot", LOT)):
        for load in LOADS:
            at = use_of(context, experiments, load=load)
            case.lines += [
                Evidence(f"{p}, {name}, {100 * load:g}% background", at[p])
                for p in ranking(at)
                if p in {"fast", "htcp", "libra", "reno"} or p == ranking(at)[0]
            ]
    known = all_known(used)
    third = max(used[p] for p in PROTOCOLS if p not in {"fast", "htcp"})
    case.conditions += [
        (
            min(used["fast"], used["htcp"]) > third - TIE if known else None,
            f"the order is {names(order)}",
        ),
        (order[-1] == "libra" if known else None, f"{order[-1] if order else 'none'} is last"),
        (used["libra"] < used["reno"] if known else None, "libra is not below reno"),
    ]


@assessed
def delay_matters(context: Context, case: Assessment) -> None:
    """Utilisation falls with propagation delay; background load shrinks that."""
    s = Levels.of(context.profile)
    near, far = min(s.delays_s), max(s.delays_s)
    loads = [x for x in s.delay_loads if x > 0]
    low, high = min(loads), max(loads)
    drop: dict[float, list[float]] = {low: [], high: []}
    for p in s.delay_protocols:
        for load in (low, high):
            used = [
                context.mean("main_utilization", "delay", protocol=p, delay_s=d, load=load)
                / (1 - load)
                for d in (near, far)
            ]
            drop[load].append(used[0] - used[1])
            case.lines.append(
                Evidence(
                    f"{p}, {100 * load:g}% background: use of what is left, {1e3 * near:g} ms less {1e3 * far:g} ms",
                    used[0] - used[1],
                    expected="above 0" if load == low else "",
                )
            )
    fall = {load: sum(v) / len(v) for load, v in drop.items()}
    known = not any(math.isnan(v) for v in fall.values())
    case.lines += [
        Evidence(f"mean fall at {100 * load:g}% background", value) for load, value in fall.items()
    ]
    case.conditions += [
        (fall[low] > 0.01 if known else None, "utilisation does not fall with delay"),
        (
            abs(fall[high]) < abs(fall[low]) if known else None,
            "background load does not shrink the variation",
        ),
    ]


@assessed
def reno_suffers(context: Context, case: Assessment) -> None:
    """Reno alone cannot fill the link; libra, then cubic, harm it least; fast and htcp most."""
    alone = context.interval(
        "main_utilization", "compatibility", protocol="reno", others=0, load=0.2
    )
    shares = compatibility(context)
    order = ranking(shares)
    rho = rank_correlation(shares, with_ties(use_of(context, ("connections",), load=0.2)))
    known = all_known(shares)
    case.lines += [
        evidence("reno alone, main utilisation", alone, expected=f"< {FILLED * 0.8:.2f}")
    ]
    case.lines += [
        evidence(
            f"reno's share beside 20 {p}",
            context.interval("share.reno", "compatibility", protocol=p, others=20),
        )
        for p in order
    ]
    case.lines.append(
        Evidence("rank correlation of scalability and reno's share", rho, expected="below 0")
    )
    case.conditions += [
        (below(alone, FILLED * 0.8), "twenty reno flows fill the link"),
        (
            order[:2] == ["libra", "cubic"] if known else None,
            f"the order of what they leave to reno is {names(order)}",
        ),
        (
            set(order[-2:]) == {"fast", "htcp"} if known else None,
            f"the most harmful are {' and '.join(order[-2:])}",
        ),
        (
            None if math.isnan(rho) else rho < 0,
            "scalability and compatibility are not complementary",
        ),
    ]


@assessed
def rtt_fair(context: Context, case: Assessment) -> None:
    """RTT fairness: Jain's index about 0.8 or more; libra first, htcp above 0.9, bic and scalable last."""
    loads = Levels.of(context.profile).loads
    means = {}
    for p in PROTOCOLS:
        found = [context.interval("jain", "rtt-fairness", protocol=p, load=x) for x in loads]
        values = [i.mean for i in found if i.mean is not None]
        means[p] = sum(values) / len(values) if len(values) == len(loads) else math.nan
        bound = {"libra": 0.95, "htcp": 0.9}.get(p, 0.75)
        for load, interval in zip(loads, found, strict=True):
            label = f"{p}, {100 * load:g}% background"
            case.show(label, interval, expected=f"≥ {bound}")
            case.require(above(interval, bound), f"{label}: less than {bound}")
    order = ranking(means)
    known = all_known(means)
    case.conditions += [
        (order[0] == "libra" if known else None, f"the order is {names(order)}"),
        (
            set(order[-2:]) == {"bic", "scalable"} if known else None,
            f"the last are {' and '.join(order[-2:])}",
        ),
    ]


@assessed
def who_converges(context: Context, case: Assessment) -> None:
    """Slowest are bic and cubic, fastest fast and hstcp; htcp needs at most 8 s."""
    load = Levels.of(context.profile).convergence_loads[0]
    times = convergence_times(context, load)
    order = ranking(times, best="least")
    for p in order:
        if math.isinf(times[p]):
            reached = context.interval("converged", "convergence", protocol=p, load=load)
            case.show(f"{p}, share of runs that reach a fair share", reached)
            continue
        case.show(
            f"{p}, time to a fair share",
            context.interval("convergence_s", "convergence", protocol=p, load=load),
            unit="s",
            expected={"htcp": "≤ 8 s", "cubic": "12 to 17 s"}.get(p, ""),
        )
    known = all_known(times)
    case.conditions += [
        (
            set(order[-2:]) == {"bic", "cubic"} if known else None,
            f"from fast to slow: {', '.join(order)}",
        ),
        (
            set(order[:2]) == {"fast", "hstcp"} if known else None,
            f"the fastest are {' and '.join(order[:2])}",
        ),
        (times["htcp"] <= 8 if known else None, "htcp needs longer than 8 s"),
    ]


@assessed
def who_is_stable(context: Context, case: Assessment) -> None:
    """At 80% background: cubic and fast within 25%, libra, hstcp and htcp near 40%, bic and scalable above 50%."""
    ranges = {
        "cubic": (0.0, 0.3),
        "fast": (0.0, 0.3),
        "libra": (0.3, 0.5),
        "hstcp": (0.3, 0.5),
        "htcp": (0.3, 0.5),
        "bic": (0.5, math.inf),
        "scalable": (0.5, math.inf),
    }
    for p, (low, high) in ranges.items():
        found = context.interval("variation", "same-fairness", protocol=p, load=0.8)
        wanted = f"{low:g} to {high:g}" if math.isfinite(high) else f"above {low:g}"
        case.show(f"{p}, coefficient of variation of the sum", found, expected=wanted)
        case.require(between(found, low, high), f"{p} is not {wanted}")


@assessed
def parking(context: Context, case: Assessment) -> None:
    """Parking lot: the same ranking; htcp is fair to long round trips at 50 and 80% load."""
    uses = lot_scalability(context), scalability(context)
    shares = compatibility(context, "parking-compatibility"), compatibility(context)
    tied = with_ties(uses[0]), with_ties(uses[1])
    for what, (there, here), rho in (
        ("use of a bottleneck", uses, rank_correlation(*tied)),
        ("reno's share", shares, rank_correlation(*shares)),
    ):
        case.lines += [
            Evidence(f"rank correlation of {what} with the dumbbell", rho, expected="≥ 0.6"),
            Evidence(f"rank correlation of {what}, without ties", rank_correlation(there, here)),
            *(Evidence(f"{p}, parking lot: {what}", there[p]) for p in ranking(there)),
        ]
        case.require(
            None if math.isnan(rho) else rho >= 0.6,
            f"the order of {what} in the parking lot is {names(ranking(there))}",
        )
    for x in (0.5, 0.8):
        found = context.interval("long_short", "parking-fairness", protocol="htcp", load=x)
        case.show(
            f"htcp, {100 * x:g}% background: long over short round trips", found, expected="≥ 0.8"
        )
        case.require(above(found, 0.8), f"at {100 * x:g}% long round trips get less with htcp")


CLAIMS = (
    Claim(
        "sixteen-fill",
        "16 connections suffice to fill 1 Gbit/s with 20% background, for all protocols but libra.",
        sixteen_fill,
        because="Libra fills the link too, since slow start opens its windows; where it is in congestion "
        "avoidance from the start, as its paper defines it, or round trips are of 240 ms, the claim holds.",
        experiments=("connections",),
    ),
    Claim(
        "above-a-gigabit",
        "Above 1 Gbit/s, 20 connections with buffers of 2500 packets use a falling share; more connections "
        "raise it; buffers of 20% of the bandwidth-delay product do not raise it much.",
        above_a_gigabit,
        experiments=("contrast",),
    ),
    Claim(
        "who-scales",
        "FAST and H-TCP scale best; libra worst, below reno.",
        who_scales,
        because="At 20% background the window decides and is the same for all; only 80% tells "
        "protocols apart.",
        experiments=("connections", "capacity", "parking-fairness", "parking-scalability"),
    ),
    Claim(
        "delay",
        "Utilisation falls as propagation delay grows; background load shrinks that variation.",
        delay_matters,
        experiments=("delay",),
    ),
    Claim(
        "reno-suffers",
        "Reno alone cannot fill the link; libra, then cubic, harm it least, fast and htcp most. Scalability "
        "and compatibility are complementary.",
        reno_suffers,
        because="Twenty windows of 1,000 segments are more than the link carries, whatever the "
        "protocol. Libra harms Reno least and FAST most, as claimed; with FAST BIC, which keeps "
        "seven eighths of its window after a loss, harms it most.",
        experiments=("connections", "compatibility"),
    ),
    Claim(
        "rtt-fairness",
        "Every protocol's RTT-fairness index is at least about 0.8 with 20 to 80% background; libra is first "
        "(above 0.95), htcp stays above 0.9 at any load, bic and scalable are last.",
        rtt_fair,
        because="At 20% background the indices are near the published ones; at 80% those of BIC, HSTCP and Scalable "
        "are far below.",
        experiments=("rtt-fairness",),
    ),
    Claim(
        "convergence",
        "bic and cubic converge slowest (cubic 12 to 17 s); fast and hstcp fastest; htcp in at most 8 s.",
        who_converges,
        because="It is the time of one flow: without a loss in its slow start it has a fair share in 3 s, whatever its "
        "protocol, and with one it grows from there.",
        experiments=("convergence",),
    ),
    Claim(
        "stability",
        "At 80% background cubic and fast stay near or below a coefficient of variation of 25%; libra, hstcp "
        "and htcp near 40%; bic and scalable above 50%.",
        who_is_stable,
        because="Where windows are capped the link is full at 80% all the time, and the sum varies "
        "with the background alone; "
        "in no reading tried is it as unsteady as published.",
        experiments=("same-fairness",),
    ),
    Claim(
        "parking-lot",
        "Parking lot: the same ranking; htcp lets flows of long round trips get as much as short ones at 50 "
        "and 80% load.",
        parking,
        experiments=(
            "connections",
            "capacity",
            "compatibility",
            "parking-fairness",
            "parking-scalability",
            "parking-compatibility",
        ),
    ),
)
