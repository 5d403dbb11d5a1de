"""What the work did not have or left to others: pacing, competition, real queues, applications, BBRv3."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
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

from gargalo_studies.userspace_bbr.cells import (
    absent,
    in_lab,
    levels,
    overall,
    ratio,
    reading,
    rows_of,
    scaled,
    used,
    work,
    world,
)
from gargalo_studies.userspace_bbr.experiments import BBRS, BDP, LONG_MB, LOSSES
from gargalo_studies.userspace_bbr.published import FACTOR_AT_1_PERCENT, MEANS
from gargalo_studies.userspace_bbr.readings import THEN
from gargalo_studies.userspace_bbr.scenarios import OURS, Sender, kernel, ours, twin

if TYPE_CHECKING:
    from gargalo.metrics import Interval

WELL_ABOVE = 1.15
"""Times the published mean."""
FULL = 0.9
"""Share of the link, headers included, that a correct BBR stays above at 1% loss."""
HEADERS = 1500 / 1448
"""Bytes on the link over bytes of the application."""


def mine(context: Context, *, paced: bool) -> Sender:
    """Return our BBR in the world of a reading."""
    return ours("bbr", world(context), paced=paced)


@assessed
def pacing_lifts(context: Context, case: Assessment) -> None:
    """With pacing BBR is well above the published means, and above 90% of the link at 1% loss."""
    paced = mine(context, paced=True)
    for experiment in ("loss", "rate"):
        found = case.measured(overall(context, experiment, paced), absent(context))
        bound = WELL_ABOVE * MEANS[experiment]["bbr"]
        expected = f"> {bound:.2f} Mbit/s"
        case.show(f"{experiment}: mean, paced", found, unit="bit/s", expected=expected)
        text = f"{experiment}: the mean is {1e-6 * (found.mean or 0.0):.2f} Mbit/s"
        case.require(above(found, 1e6 * bound), text)
    for sender in (paced, *([KERNEL, V1] if in_lab(context) else [TWIN])):
        found = scaled(used(context, "pacing", sender, loss=LOSSES[-1], mb=LONG_MB), HEADERS)
        where = f"{sender.name}, {sender.world}, 1% lost, {LONG_MB:g} MB: share of the link"
        case.show(where, found, expected=f"> {FULL}")
        text = f"{sender.name} uses {100 * (found.mean or 0):.0f}% at 1% loss"
        case.require(above(found, FULL), text)


COST = 0.85
"""Goodput without pacing over that with it, below which the missing pacing explains the published figures."""


@assessed
def pacing_explains(context: Context, case: Assessment) -> None:
    """Without pacing BBR has clearly less goodput than with it."""
    worst: Interval | None = None
    unpaced, paced = (mine(context, paced=p) for p in (False, True))
    for experiment, factor in (("loss", "loss"), ("rate", "mbps"), ("traces", "trace")):
        for level in levels(context, experiment):
            found = ratio(context, experiment, unpaced, paced, **{factor: level})
            if found.mean is None:
                continue
            text = f"{experiment}, {level if isinstance(level, str) else f'{level:g}'}"
            case.show(f"{text}: unpaced over paced", found)
            if worst is None or found.mean < (worst.mean or 0.0):
                worst = found
    long = ratio(context, "pacing", unpaced, paced, loss=LOSSES[-1], mb=LONG_MB)
    if worst is None or long.mean is None:
        raise Unmeasured(absent(context))
    expected = f"< {COST}"
    case.show(f"1% lost, {LONG_MB:g} MB: unpaced over paced", long, expected=expected)
    text = (
        f"without pacing it has {100 * long.mean:.0f}% of its goodput at 1% loss, and nowhere less "
        f"than {100 * (worst.mean or 0):.0f}%"
    )
    case.require(below(long, COST), text)


@assessed
def sack_explains(context: Context, case: Assessment) -> None:
    """Without SACK BBR has at most three quarters of its goodput at 1% loss."""
    if reading(context) == THEN:
        raise Unmeasured("smoltcp's sender has no SACK that could be taken from it")
    where = world(context)
    without, with_it = (Sender("bbr", OURS, where, paced=False, sack=s) for s in (False, True))
    for experiment in ("loss", "rate"):
        found = case.measured(overall(context, experiment, without), absent(context))
        expected = f"published: {MEANS[experiment]['bbr']:g} Mbit/s"
        text = f"{experiment}: mean of BBR without SACK"
        case.show(text, found, unit="bit/s", expected=expected)
    kernels = KERNEL if where == "lab" else TWIN
    bare = replace(kernels, sack=False)
    for one, other in ((without, with_it), (bare, kernels)):
        found = ratio(context, "pacing", one, other, loss=LOSSES[-1], mb=LONG_MB)
        text = f"1% lost, {LONG_MB:g} MB, {other.name}: without SACK over with it"
        case.show(text, found, expected=f"< {SACK_COST}")
        share = f"{100 * (found.mean or 0.0):.0f}%"
        case.require(below(found, SACK_COST), f"{other.name} has {share} without SACK")
    for name in ("reno", "cubic"):
        found = ratio(context, "loss", without, work(context)[name], loss=LOSSES[-1])
        expected = f"published: {FACTOR_AT_1_PERCENT}"
        case.show(f"1% lost: without SACK over {name}", found, expected=expected)


SACK_COST = 0.75
"""Goodput at 1% loss without SACK over that with it."""
V1, V3 = (ours(c, "sim", paced=True) for c in ("bbr", "bbr3"))
KERNEL = kernel("bbr")
TWIN = twin(KERNEL)


def share_of(context: Context, sender: Sender, packets: int, rival: str = "cubic") -> Interval:
    """Return the share of a flow beside another one, as a mean over which was first."""
    labels = {**sender.labels, "queue_packets": packets, "rival": rival}
    return context.interval("share", "competition", **labels)


def by_start(context: Context, sender: Sender, packets: int, rival: str) -> dict[int, float]:
    """Return the share of a flow beside another one by run: the same starts have the same number."""
    rows = rows_of(context, "competition", sender, queue_packets=packets, rival=rival)
    if rows.height == 0 or "share" not in rows.columns:
        return {}
    runs = rows.select("repeat", "first", "share").drop_nulls().iter_rows()
    return {2 * repeat + (first == "mine"): share for repeat, first, share in runs}


@assessed
def by_queue(context: Context, case: Assessment) -> None:
    """BBR has more than half beside CUBIC in a shallow queue, less in a deep one."""
    for sender in (V1, KERNEL if in_lab(context) else TWIN):
        for packets, holds, sign in ((BDP // 2, above, ">"), (10 * BDP, below, "<")):
            found = case.measured(share_of(context, sender, packets), absent(context))
            who = f"{sender.name}, {sender.world}"
            expected = f"{sign} 0.5"
            text = f"{who}, queue of {packets / BDP:g} BDP: share beside CUBIC"
            case.show(text, found, expected=expected)
            text = (
                f"{who} has {100 * (found.mean or 0.0):.0f}% with a queue of {packets / BDP:g} BDP"
            )
            case.require(holds(found, 0.5), text)


@assessed
def milder(context: Context, case: Assessment) -> None:
    """In a shallow queue BBRv2 and BBRv3 leave CUBIC and Reno more than BBRv1 does."""
    first, *later = (ours(c, "sim", paced=True) for c in BBRS)
    for rival in ("cubic", "reno"):
        case.show(
            f"{first.congestion}'s share beside {rival}", share_of(context, first, BDP // 2, rival)
        )
        for sender in later:
            text = f"{sender.congestion}'s share beside {rival}"
            case.show(text, share_of(context, sender, BDP // 2, rival))
            pair = [by_start(context, s, BDP // 2, rival) for s in (sender, first)]
            found = case.measured(quotient(*pair), "competition was not measured")
            case.show(f"{text} over {first.congestion}'s", found, expected="< 1")
            text = f"beside {rival} {sender.congestion} has {found.mean:.2f} times {first.congestion}'s share"
            case.require(below(found, 1.0), text)


GOOD = 3.6
"""Mean opinion score from which on only some are dissatisfied with a call (ITU-T G.107 annex B)."""
CUBIC = ours("cubic", "sim", paced=False)
RENO = ours("reno", "sim", paced=False)


@assessed
def calls(context: Context, case: Assessment) -> None:
    """A call is fair beside BBR and poor beside CUBIC in a deep droptail queue; with FQ-CoDel it is fair beside all."""
    for discipline, sender, good in (
        ("droptail", V1, True),
        ("droptail", CUBIC, False),
        ("fq-codel", V1, True),
        ("fq-codel", V3, True),
        ("fq-codel", CUBIC, True),
        ("fq-codel", RENO, True),
    ):
        found = context.interval("mos", "applications", discipline=discipline, **sender.labels)
        delay = context.mean("game_p95_s", "applications", discipline=discipline, **sender.labels)
        if found.mean is None:
            raise Unmeasured("applications were not measured")
        sign = "≥" if good else "<"
        text = f"{discipline}, {sender.congestion}: opinion score of a call"
        case.show(text, found, expected=f"{sign} {GOOD:g}")
        delays = positive([delay] if delay == delay else [])
        text = f"{discipline}, {sender.congestion}: 95% of a game's packets are there within"
        case.show(text, delays, unit="s")
        text = f"{discipline}, beside {sender.congestion} a call has {found.mean:.2f}"
        case.require((above if good else below)(found, GOOD), text)


@assessed
def films(context: Context, case: Assessment) -> None:
    """At 1% loss a film over BBR has a higher bitrate than over CUBIC."""
    rows = context.experiment("streaming")
    if rows.height == 0:
        raise Unmeasured("films were not measured")
    for loss in (0.0, LOSSES[-1]):
        for sender in (V1, V3, CUBIC, RENO):
            found = context.interval("bitrate_bps", "streaming", loss=loss, **sender.labels)
            text = f"{100 * loss:g}% lost, {sender.congestion}: mean rate of the film"
            case.show(text, found, unit="bit/s")
    for sender in (V1, V3):
        gain = ratio(context, "streaming", sender, CUBIC, "bitrate_bps", loss=LOSSES[-1])
        text = f"1% lost: {sender.congestion}'s over CUBIC's"
        case.show(text, gain, expected="> 1")
        case.require(above(gain, 1.0), f"at 1% {sender.congestion}'s film is not better")


@assessed
def long_ways(context: Context, case: Assessment) -> None:
    """Over three bottlenecks beside CUBIC a long BBR flow keeps more than a long CUBIC flow."""
    rows = context.experiment("parking lot")
    sizes = rows["queue_packets"].unique().sort().to_list() if rows.height else []
    if not sizes:
        raise Unmeasured("the parking lot was not measured")
    for packets in sizes:
        found = {
            s: context.interval("share", "parking lot", queue_packets=packets, **s.labels)
            for s in (V1, V3, CUBIC)
        }
        for sender, interval in found.items():
            text = f"queues of {packets / BDP:g} BDP: the long {sender.congestion} flow's share"
            case.show(text, interval)
        if packets == BDP:
            over = ratio(context, "parking lot", V1, CUBIC, "share", queue_packets=packets)
            case.show("queues of 1 BDP: BBR's share over CUBIC's", over, expected="> 1")
            text = f"with queues of one BDP BBR keeps {over.mean or 0.0:.2f} times as much"
            case.require(above(over, 1.0), text)


def shares_of_pairs(context: Context) -> pl.DataFrame:
    """Return the shares of all pairs."""
    rows = context.experiment("competition")
    if rows.height == 0 or "share" not in rows.columns:
        return pl.DataFrame()
    cell = ["world", "sender", "rival", "queue_packets"]
    return rows.group_by(cell, maintain_order=True).agg(
        pl.col("share").mean(),
        pl.col("share").min().alias("least"),
        pl.col("share").max().alias("most"),
    )


FUTURE_WORK = (
    Claim(
        "pacing",
        "4. (new) With pacing BBR is well above the published figures: above 90% of 12 Mbit/s at 1% loss.",
        pacing_lifts,
        experiments=("loss", "rate", "pacing"),
    ),
    Claim(
        "pacing-cost",
        "4. (new) Without pacing BBR has clearly less goodput at 1% loss (at most 85%).",
        pacing_explains,
        because=(
            "Without pacing it sends when acknowledgements come, with at most twice the "
            "bandwidth-delay product in flight, which "
            "the queue takes."
        ),
        experiments=("loss", "rate", "traces", "pacing"),
    ),
    Claim(
        "sack-cost",
        "4. (new) A loss recovery without SACK costs BBR goodput: at 1% loss it has at most three "
        "quarters, on our stack and "
        "on the kernel's.",
        sack_explains,
        experiments=("loss", "rate", "pacing"),
    ),
    Claim(
        "competition",
        "5. (new) Beside one CUBIC flow BBR takes more than half of a link with a queue of half a "
        "BDP, and less than half "
        "with one of ten.",
        by_queue,
        experiments=("competition",),
    ),
    Claim(
        "later-bbr",
        "5. (new) In a queue of half a BDP BBRv2 and BBRv3 leave CUBIC and Reno more than BBRv1 does.",
        milder,
        experiments=("competition",),
    ),
    Claim(
        "calls",
        "5. (new) In a droptail queue of four BDP a call has an opinion score of 3.6 beside BBR "
        "and has not beside CUBIC; with "
        "FQ-CoDel it has beside all.",
        calls,
        experiments=("applications",),
    ),
    Claim(
        "films",
        "5. (new) At 1% loss a film over BBR or BBRv3 has a higher rate than over CUBIC.",
        films,
        experiments=("streaming",),
    ),
    Claim(
        "parking-lot",
        "5. (new) Over three bottlenecks of one BDP, each shared with CUBIC, a BBR flow keeps more "
        "than a CUBIC flow would.",
        long_ways,
        experiments=("parking lot",),
    ),
)
