"""The nine claims of the study, each with its check.

Where the work says "about" or "near", the check says how near: the bounds are in the code and shown in the
evidence. Utilisation of the main flows is compared with what the background leaves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy import stats

from gargalo.reporting.model import Evidence
from gargalo.studies.high_speed_tcp.scenarios import PROTOCOLS
from gargalo.studies.model import (
    Assessment,
    Claim,
    Context,
    above,
    assessed,
    below,
    between,
    evidence,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILLED = 0.95
"""A link counts as filled from this share of what the background leaves."""


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


def scalability(context: Context) -> dict[str, float]:
    """Return each protocol's mean use of what the background leaves, over the connections experiment."""
    found = {}
    for p in PROTOCOLS:
        rows = context.experiment("connections", protocol=p)
        if rows.height == 0:
            found[p] = math.nan
            continue
        used = [u / (1 - x) for u, x in rows.select("main_utilization", "load").iter_rows()]
        found[p] = sum(used) / len(used) if used else math.nan
    return found


def compatibility(context: Context) -> dict[str, float]:
    """Return reno's share of the capacity beside as many flows of each protocol."""
    return {
        p: context.mean("share.reno", "compatibility", protocol=p, others=20)
        for p in PROTOCOLS
        if p != "reno"
    }


@assessed
def sixteen_fill(context: Context, case: Assessment) -> None:
    """16 connections fill 1 Gbit/s with 20% background, all but libra."""
    bound = FILLED * 0.8
    for p in PROTOCOLS:
        used = context.interval("main_utilization", "connections", protocol=p, connections=16)
        wanted = f"{'<' if p == 'libra' else '≥'} {bound:.2f}"
        case.show(f"{p}, 16 connections", used, expected=wanted)
        if p == "libra":
            case.require(below(used, bound), "libra fills it too")
        else:
            case.require(above(used, bound), f"{p} does not fill it")


@assessed
def above_a_gigabit(context: Context, case: Assessment) -> None:
    """Above 1 Gbit/s the share used falls; more connections raise it; larger buffers hardly."""
    top = max(context.profile.settings["capacities"])
    many = max(context.profile.settings["more_connections"])
    for p in context.profile.settings["capacity_protocols"]:
        if p == "libra":
            continue
        cell = {"protocol": p, "load": 0.2}
        small = {**cell, "buffer": "2500 packets"}
        base = context.interval("main_utilization", "capacity", **small, connections=20, mbps=1000)
        fast = context.interval("main_utilization", "capacity", **small, connections=20, mbps=top)
        more = context.interval("main_utilization", "capacity", **small, connections=many, mbps=top)
        large = context.interval(
            "main_utilization", "capacity", **cell, buffer="0.2BDP", connections=20, mbps=top
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
    """FAST and H-TCP scale best; libra worst, below reno."""
    used = scalability(context)
    order = ranking(used)
    case.lines += [Evidence(f"{p}, mean use of what is left", used[p]) for p in order]
    known = all_known(used)
    case.conditions += [
        (set(order[:2]) == {"fast", "htcp"} if known else None, f"the order is {names(order)}"),
        (order[-1] == "libra" if known else None, f"{order[-1] if order else 'none'} is last"),
        (used["libra"] < used["reno"] if known else None, "libra is not below reno"),
    ]


@assessed
def delay_matters(context: Context, case: Assessment) -> None:
    """Utilisation falls with propagation delay; background load shrinks that."""
    s = context.profile.settings
    near, far = min(s["delays_s"]), max(s["delays_s"])
    loads = [x for x in s["delay_loads"] if x > 0]
    low, high = min(loads), max(loads)
    drop: dict[float, list[float]] = {low: [], high: []}
    for p in s["delay_protocols"]:
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
                    expected="above 0",
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
    alone = context.interval("main_utilization", "compatibility", protocol="reno", others=0)
    shares = compatibility(context)
    order = ranking(shares)
    used = scalability(context)
    known = all_known(shares) and all_known(used)
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
    others = [p for p in PROTOCOLS if p != "reno"]
    rho = (
        float(stats.spearmanr([used[p] for p in others], [shares[p] for p in others]).statistic)
        if known
        else math.nan
    )
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
        (rho < 0 if known else None, "scalability and compatibility are not complementary"),
    ]


@assessed
def rtt_fair(context: Context, case: Assessment) -> None:
    """RTT fairness: Jain's index about 0.8 or more; libra first, htcp above 0.9, bic and scalable last."""
    loads = context.profile.settings["loads"]
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
    load = context.profile.settings["convergence_loads"][0]
    times = {
        p: context.mean("convergence_s", "convergence", protocol=p, load=load) for p in PROTOCOLS
    }
    order = ranking(times, best="least")
    case.lines += [
        evidence(
            f"{p}, time to a fair share",
            context.interval("convergence_s", "convergence", protocol=p, load=load),
            unit="s",
            expected={"htcp": "≤ 8 s", "cubic": "12 to 17 s"}.get(p, ""),
        )
        for p in order
    ]
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
    load = context.profile.settings["parking_loads"][0]
    lot = {
        p: context.mean("main_utilization", "parking-fairness", protocol=p, load=load)
        for p in PROTOCOLS
    }
    bell = scalability(context)
    known = all_known(lot) and all_known(bell)
    rho = (
        float(stats.spearmanr([bell[p] for p in PROTOCOLS], [lot[p] for p in PROTOCOLS]).statistic)
        if known
        else math.nan
    )
    case.lines += [
        Evidence("rank correlation of utilisation with the dumbbell", rho, expected="≥ 0.6"),
        *(Evidence(f"{p}, parking lot: use of a bottleneck", lot[p]) for p in ranking(lot)),
    ]
    case.conditions += [
        (rho >= 0.6 if known else None, f"the order in the parking lot is {names(ranking(lot))}")
    ]
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
    ),
    Claim(
        "above-a-gigabit",
        "Above 1 Gbit/s, 20 connections with buffers of 2500 packets use a falling share; more connections "
        "raise it; buffers of 20% of the bandwidth-delay product do not raise it much.",
        above_a_gigabit,
    ),
    Claim("who-scales", "FAST and H-TCP scale best; libra worst, below reno.", who_scales),
    Claim(
        "delay",
        "Utilisation falls as propagation delay grows; background load shrinks that variation.",
        delay_matters,
    ),
    Claim(
        "reno-suffers",
        "Reno alone cannot fill the link; libra, then cubic, harm it least, fast and htcp most. Scalability "
        "and compatibility are complementary.",
        reno_suffers,
    ),
    Claim(
        "rtt-fairness",
        "Every protocol's RTT-fairness index is at least about 0.8 with 20 to 80% background; libra is first "
        "(above 0.95), htcp stays above 0.9 at any load, bic and scalable are last.",
        rtt_fair,
    ),
    Claim(
        "convergence",
        "bic and cubic converge slowest (cubic 12 to 17 s); fast and hstcp fastest; htcp in at most 8 s.",
        who_converges,
    ),
    Claim(
        "stability",
        "At 80% background cubic and fast stay near or below a coefficient of variation of 25%; libra, hstcp "
        "and htcp near 40%; bic and scalable above 50%.",
        who_is_stable,
    ),
    Claim(
        "parking-lot",
        "Parking lot: the same ranking; htcp lets flows of long round trips get as much as short ones at 50 "
        "and 80% load.",
        parking,
    ),
)
