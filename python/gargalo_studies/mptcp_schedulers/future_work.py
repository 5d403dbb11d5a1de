"""What the work left to others: today's schedulers, uncoupled control, background, hand-over, MPQUIC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.studies import (
    Assessment,
    Claim,
    Context,
    Unmeasured,
    above,
    assessed,
    below,
    positive,
    quotient,
)

from gargalo_studies.mptcp_schedulers.cells import (
    leads,
    mean_ratio,
    place_text,
    rates,
    ratio,
    summed,
)
from gargalo_studies.mptcp_schedulers.experiments import FEW
from gargalo_studies.mptcp_schedulers.scenarios import (
    BALIA,
    FULL,
    HSR,
    LIA,
    LL,
    LTS,
    LWS,
    OLIA,
    OTHERS,
    SINGLE,
    TITLES,
)

if TYPE_CHECKING:
    from gargalo.metrics import Interval
    from gargalo.sweeps import Labels

    from gargalo_studies.mptcp_schedulers.cells import Cell

DEFAULT = OTHERS[0]
LOSS_BASED = (LIA, OLIA, BALIA)
NEVER_WORSE = 0.95
"""Of the best single path's goodput."""
CLEAN: tuple[Labels, ...] = ({"loss": 0.0}, {"exp": 3}, {"exp": 4})
"""Places of `FEW` where a single TCP is measured and nothing is lost at random."""


def one_each(scheduler: str, place: Labels) -> Cell:
    """A cell with one CUBIC subflow a path."""
    return "schedulers", {**place, "congestion": "cubic", "scheduler": scheduler, "mesh": SINGLE}


@assessed
def never_worse(context: Context, case: Assessment) -> None:
    """The default scheduler with one subflow a path has at least what the best path alone has."""
    for place in CLEAN:
        best = ("single path", {**place, "congestion": "cubic"})
        for scheduler in (DEFAULT, LL):
            found = case.measured(ratio(context, one_each(scheduler, place), best))
            text = f"{place_text(place)}, CUBIC, single mesh, {scheduler}: over one TCP"
            expected = f"> {NEVER_WORSE}" if scheduler == DEFAULT else ""
            case.show(text, found, expected=expected)
            if scheduler == DEFAULT:
                case.require(above(found, NEVER_WORSE), f"{place_text(place)}: {found.mean:.2f}")  # fmt: skip


@assessed
def default_leads(context: Context, case: Assessment) -> None:
    """The default scheduler has more than LL with one CUBIC a path."""
    for place in FEW:
        found = ratio(context, one_each(DEFAULT, place), one_each(LL, place))
        case.show(f"{place_text(place)}: {DEFAULT} over LL", found)
    mean = case.measured(
        mean_ratio(context, [(one_each(DEFAULT, p), one_each(LL, p)) for p in FEW])
    )
    case.show("mean", mean, expected="> 1")
    case.require(leads(mean), f"on average it has {mean.mean:.3f} times as much")


@assessed
def adaptive_pays(context: Context, case: Assessment) -> None:
    """Switching has at least what the best of the three that it switches between has on average."""
    mine = summed([rates(context, one_each("adaptive", p)) for p in FEW])
    for s in (LWS, LTS, HSR, LL):
        found = case.measured(quotient(mine, summed([rates(context, one_each(s, p)) for p in FEW])))
        case.show(
            f"CUBIC, single mesh, mean of seven places: adaptive over {s}",
            found,
            expected="> 1" if s != LL else "",
        )
        if s != LL:
            case.require(leads(found), f"it has {found.mean:.3f} times what {s} has")


@assessed
def coupled_yields(context: Context, case: Assessment) -> None:
    """TCPs on the paths keep more beside LIA than beside uncoupled CUBIC."""
    for place in ({"loss": 0.0}, {"exp": 4}):
        cell = {**place, "background": "tcp", "scheduler": LL}
        kept: list[Interval] = []
        values = []
        for c in (LIA, "cubic"):
            rows = context.experiment("background", **cell, congestion=c)
            if rows.height == 0 or "others_bps" not in rows.columns:
                raise Unmeasured
            values.append(dict(rows.select("repeat", "others_bps").iter_rows()))
            kept.append(positive([float(x) for x in rows["others_bps"]]))
        for c, found in zip(("LIA", "CUBIC"), kept, strict=True):
            case.show(f"{place_text(place)}: five TCPs beside MPTCP with {c}", found, unit="bit/s")  # fmt: skip
        found = quotient(*values)
        case.show(f"{place_text(place)}: beside LIA over beside CUBIC", found, expected="> 1")  # fmt: skip
        case.require(leads(found), f"{place_text(place)}: {found.mean or 0:.3f}")


LONGEST_GAP_S = 1.0
RECOVERED = 0.8


@assessed
def hand_over_works(context: Context, case: Assessment) -> None:
    """An address that goes costs less than a second, one that comes back is used again."""
    rows = context.experiment("hand-over")
    if rows.height == 0 or "gap_s" not in rows.columns:
        raise Unmeasured
    for c in (LIA, "cubic"):
        for s in (LL, DEFAULT, "redundant"):
            for backup in (False, True):
                cell = {"congestion": c, "scheduler": s, "backup": backup}
                text = f"{c}, {s}{', the other path a backup' if backup else ''}"
                gap = context.interval("gap_s", "hand-over", **cell)
                case.show(f"{text}: silence", gap, unit="s", expected=f"< {LONGEST_GAP_S}")  # fmt: skip
                case.require(below(gap, LONGEST_GAP_S), f"{text}: silent for {gap.mean or 0:.2f} s")  # fmt: skip
                mine = context.experiment("hand-over", **cell)
                if mine.height == 0:
                    raise Unmeasured
                back = positive(
                    [
                        float(a) / float(b)
                        for a, b in mine.select("after_bps", "before_bps").iter_rows()
                        if b
                    ]
                )
                case.show(
                    f"{text}: goodput 5 s after the return over that before",
                    back,
                    expected=f"> {RECOVERED}",
                )
                case.require(
                    above(back, RECOVERED),
                    f"{text}: {100 * (back.mean or 0):.0f}% of the goodput are back",
                )


@assessed
def beside_quic(context: Context, case: Assessment) -> None:
    """MPTCP has at least what MPQUIC has in the same networks."""
    for c in ("reno", "cubic"):
        pairs = []
        for place in FEW:
            cell = {**place, "congestion": c}
            pair = tuple(("quic", {**cell, "protocol": n}) for n in ("mptcp", "quic"))
            pairs.append((pair[0], pair[1]))
            case.show(f"{place_text(place)}, {c}: MPTCP over MPQUIC", ratio(context, *pairs[-1]))  # fmt: skip
        mean = case.measured(mean_ratio(context, pairs))
        case.show(f"{c}: mean", mean, expected="> 1")
        case.require(above(mean, 1.0), f"{c}: {mean.mean:.2f} times as much")


PENALTY_GAINS = 0.85
"""Goodput without penalisation over that with it: below without loss, above at 1%."""


@assessed
def penalty_decides(context: Context, case: Assessment) -> None:
    """Without penalisation full mesh has clearly less where nothing is lost, and more at 1%."""
    for c in LOSS_BASED:
        cell = {"congestion": c, "scheduler": LL, "mesh": FULL}
        clean, lossy = (
            ratio(
                context,
                ("penalisation", {**cell, "loss": x}),
                ("congested", {**cell, "loss": x}),
            )
            for x in (0.0, 0.01)
        )
        if clean.mean is None or lossy.mean is None:
            raise Unmeasured
        text = f"E1, {TITLES[c]}, {{}}: without penalisation over with it"
        case.show(text.format("no loss"), clean, expected=f"< {PENALTY_GAINS}")
        case.show(text.format("1%"), lossy, expected=f"> {PENALTY_GAINS}")
        case.require(below(clean, PENALTY_GAINS), f"{TITLES[c]}, no loss: {clean.mean:.2f}")
        case.require(above(lossy, PENALTY_GAINS), f"{TITLES[c]}, 1%: {lossy.mean:.2f}")


LOSES_WAITING = (
    "It waits for fast paths rather than use slow ones; where windows stay small because much "
    "is lost, waiting costs more than disorder."
)
SETTLED = (
    "It begins with LWS and changes after two looks, a second apart. By then windows are "
    "settled, and which of the rules is in force hardly matters."
)
MIN_RTO = (
    "Where much is lost (E1, 6%) QUIC's probe timeout follows the round trip of less than a "
    "millisecond, TCP's is at least 200 ms."
)

FUTURE_WORK: tuple[Claim, ...] = (
    Claim("penalisation", "New: without penalisation full mesh has at most 85% of its goodput "
        "where nothing is lost, and more than that at 1% loss.", penalty_decides,
        experiments=("penalisation", "congested")),
    Claim("never-worse", f"New: with one CUBIC a path our default scheduler ({DEFAULT}) has at "
        "least 95% of the best path's TCP where nothing is lost at random.", never_worse,
        experiments=("schedulers", "single path")),
    Claim("default-leads", f"New: with one CUBIC a path {DEFAULT} has more than LL on average of "
        "seven places.", default_leads, because=LOSES_WAITING, experiments=("schedulers",)),
    Claim("adaptive", "New: a scheduler that switches between LWS, LTS and HSR has more than each "
        "of them on average (the work's future work).", adaptive_pays, because=SETTLED, experiments=("schedulers",)),
    Claim("background", "New: TCPs on the paths keep more beside LIA than beside uncoupled CUBIC.",
        coupled_yields, experiments=("background",)),
    Claim("hand-over", "New: an address that goes silences an upload for less than a second; back, "
        "it brings 80% of the goodput within 5 s.", hand_over_works, experiments=("hand-over",)),
    Claim("mpquic", "New: MPTCP (window-aware, one subflow a path) has more than MPQUIC in the "
        "same networks on average.", beside_quic, because=MIN_RTO, experiments=("quic",)),
)  # fmt: skip
