"""How evenly flows share a link, and what one group of flows does to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.metrics._numbers import array, finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gargalo.metrics._numbers import Numbers


def jain_index(rates: Numbers) -> float | None:
    """Jain's fairness index of the flows' rates.

    Formula: (Σx)² / (n · Σx²). Range: 1/n (one flow takes all) to 1 (all equal); if k of n flows
    share equally and the others get nothing it is k/n. It is independent of scale, and equals
    1 / (1 + c²) with c the coefficient of variation over the flows (`ddof=0`).
    Unit: none. None: there is no flow, or no flow got anything.
    Source: Jain, Chiu, Hawe, DEC-TR-301, 1984; RFC 5166 section 2.3.1.
    """
    x = array(rates)
    if x.size == 0 or x.max() <= 0:
        return None
    # Scaled by the largest, so that squares neither overflow nor vanish.
    x = x / x.max()
    return finite(x.sum() ** 2 / (x.size * (x * x).sum()))


def epsilon_fairness(rates: Numbers) -> float | None:
    """Least rate over greatest rate; an allocation is ε-fair if this is at least 1 - ε.

    Formula: min(x) / max(x). Range: 0 to 1.
    Unit: none. None: there is no flow, or no flow got anything.
    Source: RFC 5166 section 2.3.1.
    """
    x = array(rates)
    return finite(x.min() / x.max()) if x.size and x.max() > 0 else None


def product_fairness(rates: Numbers, fair_share_bps: float) -> float | None:
    """Geometric mean of the rates over the fair share: RFC 5166's product measure, made comparable.

    Formula: (Π xᵢ)^(1/n) / f. A starved flow makes it 0; equal shares of f give 1.
    Unit: none. None: there is no flow or no fair share.
    Source: RFC 5166 section 2.3.1 (the product of the rates).
    """
    import numpy as np

    x = array(rates)
    if x.size == 0 or fair_share_bps <= 0:
        return None
    if x.min() <= 0:
        return 0.0
    return finite(float(np.exp(np.log(x / fair_share_bps).mean())))


def fair_share(capacity_bps: float, flows: int, *, background: float = 0.0) -> float:
    """Rate of each of n flows that share evenly what background traffic leaves of a link.

    Formula: C · (1 - b) / n, with b the background load as a fraction of the capacity C.
    Unit: bit/s.
    Source: Chiu, Jain, Computer Networks and ISDN Systems 17, 1989 (fairness line).

    Raises:
        ValueError: no flow, or a background load outside 0 to 1.

    """
    if flows < 1 or not 0 <= background <= 1:
        msg = f"a fair share needs at least one flow and a background of 0 to 1, not {flows} and {background}"
        raise ValueError(msg)
    return capacity_bps * (1 - background) / flows


def _grouped(rates: Numbers, groups: Iterable[str], group: str) -> tuple[Sequence[float], float]:
    x, names = array(rates), list(groups)
    if len(names) != x.size:
        msg = f"{x.size} rates but {len(names)} groups: give the group of every flow"
        raise ValueError(msg)
    return [float(v) for v, n in zip(x, names, strict=True) if n == group], float(x.sum())


def share(
    rates: Numbers, groups: Iterable[str], group: str, *, capacity_bps: float | None = None
) -> float | None:
    """Share that one group of flows (all that run `reno`, say) gets of all, or of the link.

    Formula: Σ(x in group) / Σx, or over the capacity if that is given.
    Unit: none. None: no flow got anything (without capacity), or no flow is of that group.
    Source: RFC 9743 section 5.2.1 (competition with standard congestion controls).

    Example: `share(run.flows["measured_bytes"], run.flows["congestion"], "reno")`: rates of flows that were active
    at different times do not add up, bytes do.

    Raises:
        ValueError: `rates` and `groups` are of different lengths.

    """
    own, total = _grouped(rates, groups, group)
    whole = total if capacity_bps is None else capacity_bps
    return finite(sum(own) / whole) if own and whole > 0 else None


def relative_share(rates: Numbers, groups: Iterable[str], group: str, against: str) -> float | None:
    """Mean rate of a flow of one group over that of a flow of another; 1 is an even contest.

    Formula: mean(x in group) / mean(x in against).
    Unit: none. None: a group has no flow, or the other one got nothing.
    Source: RFC 9743 section 5.2.1; the throughput ratio of RFC 5166 section 2.3.

    Raises:
        ValueError: `rates` and `groups` are of different lengths.

    """
    names = list(groups)
    own, _ = _grouped(rates, names, group)
    other, _ = _grouped(rates, names, against)
    if not own or sum(other) <= 0:
        return None
    return finite((sum(own) / len(own)) / (sum(other) / len(other)))


def harm(solo: float, contested: float, *, more_is_better: bool = True) -> float | None:
    """Damage done to a flow by its competitor, as a fraction of what it has without.

    Formula: (solo - with) / solo where more is better (goodput), (with - solo) / with where less
    is (delay, loss, completion time). 0 is no harm, 1 means that nothing is left, below 0 the competitor helps. An
    algorithm is acceptable beside another if it does no more harm to it than that one does to
    itself.
    Unit: none. None: the reference is 0.
    Source: Ware, Mukerjee, Seshan, Sherry, HotNets 2019; RFC 9743 section 5.2.
    """
    if more_is_better:
        return finite((solo - contested) / solo) if solo > 0 else None
    return finite((contested - solo) / contested) if contested > 0 else None


def starved_share(
    throughput_bps: Numbers, fair_share_bps: float, *, below: float = 0.1
) -> float | None:
    """Share of the time bins in which a flow got less than a tenth of its fair share.

    Formula: #(xₜ < below · f) / #bins.
    Unit: none. None: there is no bin.
    Source: RFC 9743 section 5.2 (starvation); the threshold of a tenth is ours.
    """
    x = array(throughput_bps)
    return float((x < below * fair_share_bps).mean()) if x.size else None
