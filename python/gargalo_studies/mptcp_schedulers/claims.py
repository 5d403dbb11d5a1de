"""The seven claims of the work, each with its check.

Goodputs are compared by ratios paired by seed, as means over the cells that a sentence speaks of. Where it has a
number, or a word like "clearly", the bound stands in `published` and in the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.studies import (
    Assessment,
    Claim,
    Context,
    Finding,
    Unmeasured,
    above,
    assessed,
    below,
    positive,
    quotient,
)

from gargalo_studies.mptcp_schedulers import published
from gargalo_studies.mptcp_schedulers.cells import (
    alike,
    fine,
    gains,
    goodput,
    over_schedulers,
    rates,
    ratio,
    summed,
    trails,
)
from gargalo_studies.mptcp_schedulers.experiments import LOSSES, Levels
from gargalo_studies.mptcp_schedulers.future_work import FUTURE_WORK, LOSS_BASED
from gargalo_studies.mptcp_schedulers.scenarios import (
    BALIA,
    COUPLED,
    EXPS,
    HSR,
    LIA,
    LL,
    LTS,
    LWS,
    OLIA,
    SCHEDULERS,
    SHORT,
    SINGLE,
    TITLES,
    WVEGAS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.metrics import Interval
    from gargalo.sweeps import Labels

    from gargalo_studies.mptcp_schedulers.cells import Cell

E1, E2 = "congested", "mixed"
CLEAN_EXPS, LOSSY_EXPS = EXPS[:4], EXPS[4:]


def percent(found: Interval) -> str:
    """Write a ratio as a gain."""
    return "nothing" if found.mean is None else f"{100 * (found.mean - 1):+.1f}%"


ALIKE_TEXT = f"{1 - published.ALIKE:g} to {1 + published.ALIKE:g}"


def lossy(context: Context) -> list[Labels]:
    """Return the places of E1 where much is lost."""
    known = Levels.of(context.profile).losses
    return [{"loss": x} for x in known if x >= published.LOSSY_FROM - 1e-9]


def about(gain: float) -> tuple[float, float]:
    """Return the bounds of "about": half of the gain to one and a half."""
    return 1 + 0.5 * gain, 1 + 1.5 * gain


def lossy_gain(scheduler: str, gain: float) -> Callable[[Context], Finding]:
    """Make the check of a scheduler's gain in E1 where much is lost."""

    @assessed
    def check(context: Context, case: Assessment) -> None:
        name = SHORT[scheduler]
        low, high = about(gain)
        for c in (LIA, OLIA, WVEGAS):
            found = case.measured(gains(context, E1, lossy(context), scheduler, (c,)))
            case.show(f"{TITLES[c]}, 4 to 12%: {name} over LL", found, expected=f"{low:.3f} to {high:.3f}")  # fmt: skip
            case.require(fine(found, low, high), f"{TITLES[c]}: {percent(found)}")

    return check


@assessed
def lossy_same(context: Context, case: Assessment) -> None:
    """HSR has the same as LL, and under BALIA all schedulers have."""
    pairs = [(HSR, c) for c in (LIA, OLIA, WVEGAS)] + [(s, BALIA) for s in SCHEDULERS[1:]]
    for scheduler, c in pairs:
        found = case.measured(gains(context, E1, lossy(context), scheduler, (c,)))
        text = f"{TITLES[c]}: {SHORT[scheduler]}"
        case.show(f"{text} over LL, 4 to 12%", found, expected=ALIKE_TEXT)
        case.require(alike(found), f"{text} has {percent(found)}")


@assessed
def rises(context: Context, case: Assessment) -> None:
    """From 0 to 1% loss goodput rises with LIA, OLIA and BALIA, not with wVegas."""
    for c in COUPLED:
        none, one = (over_schedulers(context, E1, congestion=c, loss=x) for x in LOSSES[:2])
        found = case.measured(quotient(one, none))
        sign, holds = ("<", below) if c == WVEGAS else (">", above)
        case.show(f"{TITLES[c]}: goodput at 1% over that without loss", found, expected=f"{sign} 1")  # fmt: skip
        case.require(holds(found, 1.0), f"{TITLES[c]}: {percent(found)}")


@assessed
def degrades(context: Context, case: Assessment) -> None:
    """BALIA keeps the least of its goodput as loss grows."""
    kept = {}
    for c in COUPLED:
        without = over_schedulers(context, E1, congestion=c, loss=LOSSES[0])
        some = Levels.of(context.profile).losses[1:]
        mean = summed([over_schedulers(context, E1, congestion=c, loss=x) for x in some])
        kept[c] = {r: mean[r] / without[r] for r in mean if without.get(r, 0) > 0}
        found = case.measured(quotient(mean, without))
        expected = "the least" if c == BALIA else ""
        case.show(
            f"{TITLES[c]}: mean goodput of 1 to 12% over that without loss",
            found,
            expected=expected,
        )
    for c in (LIA, OLIA, WVEGAS):
        found = quotient(kept[BALIA], kept[c])
        case.show(f"what BALIA keeps over what {TITLES[c]} keeps", found, expected="< 1")  # fmt: skip
        case.require(below(found, 1.0), f"{TITLES[c]} keeps less than BALIA")


@assessed
def wvegas_best(context: Context, case: Assessment) -> None:
    """The highest mean goodput is that of wVegas."""
    levels = Levels.of(context.profile)
    for experiment, places in ((E1, [{"loss": x} for x in levels.losses]), (E2, exps(EXPS))):
        means = {
            c: summed([over_schedulers(context, experiment, congestion=c, **p) for p in places])
            for c in COUPLED
        }
        for c in LOSS_BASED:
            found = case.measured(quotient(means[WVEGAS], means[c]))
            title = "E1" if experiment == E1 else "E2"
            case.show(f"{title}: mean goodput of wVegas over {TITLES[c]}", found, expected="> 1")  # fmt: skip
            case.require(above(found, 1.0), f"{title}: not above {TITLES[c]}")


def exps(numbers: Sequence[int]) -> list[Labels]:
    """Return the places of E2."""
    return [{"exp": n} for n in numbers]


@assessed
def average_gain(context: Context, case: Assessment) -> None:
    """HSR and LTS gain about 2% over LL on average of E2."""
    low, high = about(published.E2_GAIN)
    for s in (HSR, LTS):
        found = case.measured(gains(context, E2, exps(EXPS), s, COUPLED))
        case.show(f"E2: {SHORT[s]} over LL, mean of 32 cells", found, expected=f"{low:g} to {high:g}")  # fmt: skip
        case.require(fine(found, low, high), f"{SHORT[s]}: {percent(found)}")


@assessed
def exp4_olia(context: Context, case: Assessment) -> None:
    """In Exp4 all three beat LL under OLIA."""
    for s in (HSR, LWS, LTS):
        found = case.measured(gains(context, E2, exps((4,)), s, (OLIA,)))
        case.show(f"Exp4, OLIA: {SHORT[s]} over LL", found, expected=f"> {published.CLEARLY}")  # fmt: skip
        case.require(above(found, published.CLEARLY), f"{SHORT[s]}: {percent(found)}")


@assessed
def balia_wvegas(context: Context, case: Assessment) -> None:
    """Under BALIA LL is best on average of E2; under wVegas schedulers do not differ."""
    for c in (BALIA, WVEGAS):
        for s in SCHEDULERS[1:]:
            found = case.measured(gains(context, E2, exps(EXPS), s, (c,)))
            expected = "< 1" if c == BALIA else ALIKE_TEXT
            case.show(f"{TITLES[c]}, mean of E2: {SHORT[s]} over LL", found, expected=expected)  # fmt: skip
            holds = trails(found) if c == BALIA else alike(found)
            case.require(holds, f"{TITLES[c]}: {SHORT[s]} has {percent(found)}")


@assessed
def lossy_alike(context: Context, case: Assessment) -> None:
    """With losses schedulers do not differ."""
    for n in LOSSY_EXPS:
        for s in SCHEDULERS[1:]:
            found = case.measured(gains(context, E2, exps((n,)), s, COUPLED))
            case.show(f"Exp{n}: {SHORT[s]} over LL, mean of the controls", found, expected=ALIKE_TEXT)  # fmt: skip
            case.require(alike(found), f"Exp{n}: {SHORT[s]} has {percent(found)}")


def mesh_ratio(context: Context, n: int, congestion: str) -> Interval:
    """Return single mesh's goodput over full mesh's with LL."""
    labels: Labels = {"exp": n, "congestion": congestion, "scheduler": LL}
    return ratio(context, ("mesh", {**labels, "mesh": SINGLE}), (E2, labels))


@assessed
def single_doubles(context: Context, case: Assessment) -> None:
    """Single mesh has twice as much in Exp3 and Exp4 under OLIA and BALIA."""
    for n in (3, 4):
        for c in (OLIA, BALIA):
            found = case.measured(mesh_ratio(context, n, c))
            text = f"Exp{n}, {TITLES[c]}"
            case.show(f"{text}: single mesh over full mesh", found, expected=f"> {published.DOUBLE:g}")  # fmt: skip
            case.require(above(found, published.DOUBLE), f"{text}: {found.mean:.2f}")


def single_worse(cells: Sequence[tuple[int, str]]) -> Callable[[Context], Finding]:
    """Make the check that single mesh has less in some cells."""

    @assessed
    def check(context: Context, case: Assessment) -> None:
        for n, c in cells:
            found = case.measured(mesh_ratio(context, n, c))
            text = f"Exp{n}, {TITLES[c]}"
            case.show(f"{text}: single mesh over full mesh", found, expected="< 1")
            case.require(below(found, 1.0), f"{text}: {found.mean:.2f}")

    return check


@assessed
def below_single_path(context: Context, case: Assessment) -> None:
    """Without loss some full mesh has less than one TCP on the best path."""
    found: list[tuple[Interval, str]] = []
    for experiment, places in ((E1, [{"loss": 0.0}]), (E2, exps(CLEAN_EXPS))):
        for place in places:
            one = case.measured(goodput(context, "single path", congestion="cubic", **place))
            where = f"Exp{place['exp']}" if "exp" in place else "E1 without loss"
            case.show(f"{where}: one TCP CUBIC on the best path", one, unit="bit/s")

            def over(cell: Cell, one: float = one.mean or 0.0) -> Interval:
                """A cell's goodput over that of the single path, which hardly varies."""
                return positive([x / one for x in rates(context, cell).values()])

            for c in COUPLED:
                for s in SCHEDULERS:
                    mine = over((experiment, {**place, "congestion": c, "scheduler": s}))
                    if mine.mean is not None:
                        found.append((mine, f"{where}, {TITLES[c]}, {SHORT[s]}"))
    if not found:
        raise Unmeasured
    found.sort(key=lambda x: x[0].mean or 0.0)
    for least, text in found[:4]:
        case.show(f"{text}: full mesh over that TCP", least, expected="< 1")
    least, text = found[0]
    case.require(below(least, 1.0), f"the least is {least.mean:.2f} times that TCP, {text}")  # fmt: skip


NO_CHOICE = (
    "Where much is lost windows are of two or three segments and nearly all are full, so that any "
    "subflow with room is given data at "
    "once, in whatever order. What costs goodput is timeouts and data that waits for them. "
    "Schedulers differ by a few per cent, in either "
    "direction."
)
BLOCKED = (
    "LL keeps the slow paths' queues shorter: LWS and LTS prefer subflows with room, and those of "
    "slow paths have it once their "
    "windows are large, so that the window of 3 MiB waits for them more often. In Exp4 under OLIA "
    "the slowest path is penalised "
    "1,394 times with LWS, 354 times with LL, and its queue is 297 instead of 152 ms."
)
LAST = (
    "The fast paths decide: after losses or penalties their windows hardly grow in the kernel's "
    "integers, with 5 subflows as with 25, "
    "and the 100 Mbit/s path carries a fifth or less of the data. It has five windows with full "
    "mesh and one with single mesh."
)

CLAIMS: tuple[Claim, ...] = (
    Claim("lossy-lws", "1. E1, 4 to 12% lost: with LIA, OLIA and wVegas LWS has about 7% more "
        "goodput than LL.", lossy_gain(LWS, published.LWS_GAIN), because=NO_CHOICE, experiments=(E1,)),
    Claim("lossy-lts", "1. There LTS has about 4% more than LL.", lossy_gain(LTS, published.LTS_GAIN),
        because=NO_CHOICE, experiments=(E1,)),
    Claim("lossy-same", "1. There HSR has as much as LL; under BALIA all have.", lossy_same, because=NO_CHOICE,
        experiments=(E1,)),
    Claim("rises", "2. E1: from 0 to 1% loss goodput rises with LIA, OLIA and BALIA under full "
        "mesh, not with wVegas.", rises, experiments=(E1,)),
    Claim("balia-degrades", "3. BALIA degrades fastest as loss grows.", degrades, experiments=(E1,)),
    Claim("wvegas-best", "3. wVegas is best overall.", wvegas_best, experiments=(E1, E2)),
    Claim("average-gain", "4. E2: HSR and LTS gain about 2% over LL on average.", average_gain,
        because=BLOCKED, experiments=(E2,)),
    Claim("exp4-olia", "4. Exp4: HSR, LWS and LTS beat LL clearly under OLIA.", exp4_olia, because=BLOCKED,
        experiments=(E2,)),
    Claim("balia-ll", "4. E2: under BALIA LL wins on average; under wVegas schedulers are alike.", balia_wvegas,
        experiments=(E2,)),
    Claim("lossy-alike", "5. E2: with losses (Exp5 to Exp8) schedulers are alike.", lossy_alike,
        because=NO_CHOICE, experiments=(E2,)),
    Claim("single-doubles", "6. Single mesh at least doubles full mesh's goodput in Exp3 and Exp4 "
        "under OLIA and BALIA.", single_doubles, because=LAST, experiments=(E2, "mesh")),
    Claim("single-worse", "6. There it is worse under LIA and wVegas.",
        single_worse([(n, c) for n in (3, 4) for c in (LIA, WVEGAS)]), experiments=(E2, "mesh")),
    Claim("single-lossy", "6. In Exp5 to Exp8 single mesh is worse.",
        single_worse([(n, c) for n in LOSSY_EXPS for c in COUPLED]), experiments=(E2, "mesh")),
    Claim("below-tcp", "7. Full mesh without loss can fall below single-path TCP.", below_single_path,
        experiments=(E1, E2, "single "
        "path")),
    *FUTURE_WORK,
)  # fmt: skip
