"""How close is close enough, and the theory of the RFCs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gargalo.reporting import Evidence
from gargalo.studies import Assessment, Claim, Context, Unmeasured, assessed

from gargalo_studies.fidelity.cells import SHARES, SINGLE, cells
from gargalo_studies.fidelity.experiments import EVERY
from gargalo_studies.fidelity.scenarios import CONTROLS, KERNEL, LAB, SIM, Stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo_studies.fidelity.cells import Cell

RTT_S = 0.1
"""Of the response functions."""


def judge(
    context: Context,
    case: Assessment,
    pair: tuple[Stack, Stack],
    experiments: Sequence[str],
    bounds: Sequence[tuple[float, float]],
) -> None:
    """Decide whether enough cells agree: `bounds` are pairs of a distance and the share of cells within it."""
    found = list(cells(context, *pair, experiments))
    if not found:
        reasons = "; ".join(f"{what}: {why}" for what, why in context.missing.items())
        raise Unmeasured(reasons or "none of the runs that this needs were done")
    for bound, most in bounds:
        near = share(found, bound)
        text = label(experiments, bound)
        case.lines.append(Evidence(text, near, n=len(found), expected=f"≥ {most:g}"))
        good = round(near * len(found))
        text = f"{good} of {len(found)} cells are within {label(experiments, bound, short=True)}"
        case.require(near >= most, text)
        for control in CONTROLS:
            own = [c for c in found if c.control == control]
            if own:
                case.lines.append(Evidence(f"  of {control}", share(own, bound), n=len(own)))
    widest = max(bound for bound, _ in bounds)
    expected = "0" if experiments == SHARES else "1"
    outside = [c for c in found if not c.within(widest)]
    for cell in outside:
        case.show(cell.text, cell.difference, expected=expected)


def share(found: Sequence[Cell], bound: float) -> float:
    """Return the share of cells that agree."""
    return sum(c.within(bound) for c in found) / len(found)


def label(experiments: Sequence[str], bound: float, *, short: bool = False) -> str:
    """Write a bound."""
    text = f"{100 * bound:g} points" if experiments == SHARES else f"{100 * bound:g}%"
    return text if short else f"cells within {text}"


@assessed
def goodput(context: Context, case: Assessment) -> None:
    """Single flows against the kernel's."""
    judge(context, case, (SIM, KERNEL), SINGLE, ((0.1, 0.9), (0.05, 0.6)))


@assessed
def completion(context: Context, case: Assessment) -> None:
    """Short transfers against the kernel's."""
    judge(context, case, (SIM, KERNEL), ("short",), ((0.05, 0.9),))


@assessed
def shares(context: Context, case: Assessment) -> None:
    """Flows beside each other against the kernel's."""
    judge(context, case, (SIM, KERNEL), SHARES, ((0.1, 0.9),))


@assessed
def worlds(context: Context, case: Assessment) -> None:
    """Our stack in both worlds."""
    judge(context, case, (LAB, SIM), (*SINGLE, "short"), ((0.05, 0.95),))


def response(control: str, loss: float) -> float:
    """Return the mean window in packets when one of 1/loss packets is lost, at a round-trip time of 100 ms.

    Reno: √(3/2)/√p (Mathis et al., 1997; RFC 3649 §5). CUBIC: (C(3+β)/4(1-β))^¼ · (RTT/p)^¾ with C = 0.4 and β = 0.7,
    or Reno's where that is larger (RFC 9438 §5.1). Both leave out recovery: each loss costs a round trip more, in which
    the window does not grow.

    >>> round(response("reno", 1e-4)), round(response("cubic", 1e-4))
    (121, 184)
    """
    window = math.sqrt(1.5 / loss)
    if control == "cubic":
        constant = math.pow(0.4 * (3 + 0.7) / (4 * (1 - 0.7)), 0.25)
        window = max(window, constant * math.pow(RTT_S / loss, 0.75))
    return 1 / (1 / window + loss)


THEORY_CLOSE = 0.05


@assessed
def theory(context: Context, case: Assessment) -> None:
    """Mean windows against response functions."""
    for control in ("reno", "cubic"):
        for every in EVERY:
            found = context.interval("window", "response", control=control, every=every)
            expected = response(control, 1 / every)
            name = f"{control}, one of {every} lost: mean window"
            mean = case.measured(found, f"{name} was not measured").mean or 0.0
            case.show(name, found, unit="packets", expected=f"{expected:.1f}")
            near = abs(mean / expected - 1) <= THEORY_CLOSE
            case.require(near, f"{name} is {mean:.1f}, not {expected:.1f} packets")


CLAIMS = (
    Claim(
        "goodput",
        "The simulator with the profile linux-6 has the goodput of the kernel's reno, cubic and "
        "bbr in the lab: 90% of the "
        "cells within 10%, 60% within 5%.",
        goodput,
    ),
    Claim(
        "completion",
        "Transfers of 10 kB to 10 MB take as long as the kernel's: 90% of the cells within 5%.",
        completion,
    ),
    Claim(
        "shares",
        "Of flows beside each other (one control, started apart; one control, different round "
        "trips; BBR beside eight of "
        "Reno) the first has the share that it has with the kernel's: 90% of the cells within 10 points.",
        shares,
    ),
    Claim(
        "worlds",
        "Our stack is the same in both worlds: goodput and completion in the lab within 5% of the "
        "simulator's in 95% of "
        "the cells.",
        worlds,
    ),
    Claim(
        "theory",
        "Reno and CUBIC of the RFCs have the mean windows of their response functions, with a "
        "round trip of recovery for each loss: all cells within 5%.",
        theory,
    ),
)
