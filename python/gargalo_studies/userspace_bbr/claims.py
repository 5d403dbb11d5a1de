"""The claims of the work, each with its check.

"BBR" of the work is our user-space BBR without pacing, "NewReno" and "CUBIC" are the kernel's or, simulated, those of
the profile linux-6. Where the work has a number, ours must be within bounds that stand here and in the evidence.

On traces one rule decides, fixed before any run of it: all traces of the set count, with both limits of the queue
(none, 100 packets); the sign test over traces, and both limits must agree; otherwise the claim is inconclusive.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gargalo.reporting import Evidence
from gargalo.studies import (
    Assessment,
    Claim,
    Context,
    Finding,
    Unmeasured,
    above,
    assessed,
    below,
    between,
    evidence,
    positive,
)

from gargalo_studies.userspace_bbr import published, traces
from gargalo_studies.userspace_bbr.cells import (
    absent,
    goodput,
    in_lab,
    levels,
    overall,
    ratio,
    rows_of,
    used,
    work,
)
from gargalo_studies.userspace_bbr.experiments import LOSS, TRACE_LIMITS
from gargalo_studies.userspace_bbr.fidelity import FIDELITY
from gargalo_studies.userspace_bbr.future_work import FUTURE_WORK
from gargalo_studies.userspace_bbr.published import BBR, CUBIC, RENO, TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


NEAR = 0.15
"""Relative distance from a published goodput up to which goodputs count as equal."""
POINTS = 0.08
"""Distance from a published share of a link."""
OTHERS = (RENO, CUBIC)


def complete(context: Context, experiment: str) -> bool:
    """Whether all senders of the work have runs."""
    return all(overall(context, experiment, s).mean is not None for s in work(context).values())


@assessed
def leads_with_loss(context: Context, case: Assessment) -> None:
    """BBR is ahead on average and at each loss above 0.1%."""
    if not complete(context, "loss"):
        raise Unmeasured(absent(context))
    mine = overall(context, "loss", work(context)[BBR])
    for other in OTHERS:
        found = overall(context, "loss", work(context)[other])
        case.show(f"mean goodput, {TITLES[other]}", found, unit="bit/s")
        text = f"on average {TITLES[other]} is not behind BBR"
        case.require(above(mine, found.mean or 0.0), text)
    case.lines.insert(0, evidence("mean goodput, BBR", mine, unit="bit/s", expected="the most"))
    for loss in levels(context, "loss"):
        if loss <= LOSS:
            continue
        for other in OTHERS:
            found = ratio(context, "loss", work(context)[BBR], work(context)[other], loss=loss)
            where = f"{100 * loss:g}% lost"
            case.show(f"{where}: BBR over {TITLES[other]}", found, expected="> 1")
            case.require(above(found, 1.0), f"{where}: BBR is not ahead of {TITLES[other]}")


def averages(experiment: str) -> Callable[[Context], Finding]:
    """Make the check of the averages of an experiment."""

    @assessed
    def check(context: Context, case: Assessment) -> None:
        if not complete(context, experiment):
            raise Unmeasured(absent(context))
        for name, mbps in published.MEANS[experiment].items():
            found = overall(context, experiment, work(context)[name])
            low, high = (1 - NEAR) * mbps, (1 + NEAR) * mbps
            expected = f"{mbps:g} Mbit/s: {low:.2f} to {high:.2f}"
            title = TITLES[name]
            case.show(f"mean of {title}", found, unit="bit/s", expected=expected)
            mean = 1e-6 * (found.mean or 0.0)
            text = f"{title} has {mean:.2f} Mbit/s"
            case.require(between(found, 1e6 * low, 1e6 * high), text)
            if experiment == "loss":
                parts = [
                    goodput(context, "loss", work(context)[name], loss=x)
                    for x in levels(context, "loss")
                    if x > LOSS / 10
                ]
                known = [i.mean for i in parts if i.mean is not None]
                case.show(
                    f"mean of {title} without the two lowest levels",
                    positive([sum(known) / len(known)]),
                    unit="bit/s",
                )

    return check


@assessed
def factor_at_one_percent(context: Context, case: Assessment) -> None:
    """At 1% BBR has 2.44 times the goodput of the better of the others."""
    losses = [x for x in levels(context, "loss") if abs(x - 0.01) < 1e-9]
    found = {
        o: ratio(context, "loss", work(context)[BBR], work(context)[o], loss=x)
        for x in losses
        for o in OTHERS
    }
    known = {o: i for o, i in found.items() if i.mean is not None}
    if set(known) != set(OTHERS):
        raise Unmeasured(absent(context))
    wanted = published.FACTOR_AT_1_PERCENT
    low, high = wanted * (1 - NEAR), wanted * (1 + NEAR)
    case.lines += [
        evidence(f"BBR over {TITLES[o]}", i, expected=f"{wanted}: {low:.2f} to {high:.2f}")
        for o, i in known.items()
    ]
    least = min(known, key=lambda o: known[o].mean or 0.0)
    text = f"BBR has {known[least].mean:.2f} times the goodput of {TITLES[least]}"
    case.require(between(known[least], low, high), text)


def shares(mbps: float, *, behind: bool) -> Callable[[Context], Finding]:
    """Make the check of the shares of a link that the senders use at a rate."""

    @assessed
    def check(context: Context, case: Assessment) -> None:
        wanted = published.UTILIZATION[mbps]
        found = {n: used(context, "rate", work(context)[n], mbps, mbps=mbps) for n in wanted}
        if any(i.mean is None for i in found.values()):
            raise Unmeasured(absent(context))
        for name, share in wanted.items():
            low, high = share - POINTS, share + POINTS
            expected = f"{share:g}: {low:.2f} to {high:.2f}"
            case.show(f"{TITLES[name]}: share of the link", found[name], expected=expected)
            text = f"{TITLES[name]} uses {100 * (found[name].mean or 0):.0f}% of the link"
            case.require(between(found[name], low, high), text)
        if behind:
            over = ratio(context, "rate", work(context)[BBR], work(context)[CUBIC], mbps=mbps)
            case.show("BBR over CUBIC", over, expected="≤ 1")
            case.require(below(over, 1.02), "BBR is ahead of CUBIC")

    return check


TIE = 0.01
"""Goodputs on a trace that differ by less count as equal."""
SIGNIFICANT = 0.05
"""Of the two-sided sign test."""
LEAD = 1.15
"""BBR's goodput over CUBIC's that counts as a lead; published: 1.3."""
SOME = 0.1
"""Share of the traces that are some."""


def sign_test(more: int, less: int) -> float:
    """Return how probable a split at least as uneven is if both sides are as likely; ties are left out.

    >>> round(sign_test(9, 1), 4)
    0.0215
    """
    n, k = more + less, max(more, less)
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n) if n else 1.0


def on_traces(context: Context, one: str, other: str, packets: int) -> list[float]:
    """Return the goodput of one sender over that of another on each trace of the set, with a limit of the queue."""
    found = []
    for name in traces.set_of(context.profile):
        senders = work(context)
        mean = ratio(
            context, "trace set", senders[one], senders[other], trace=name, queue_packets=packets
        ).mean
        if mean is None:
            why = "the set of traces is not run in the lab" if in_lab(context) else absent(context)
            raise Unmeasured(why)
        found.append(mean)
    if not found:
        raise Unmeasured(absent(context))
    return found


def agreed(answers: Sequence[bool | None]) -> bool | None:
    """Return the answer that all limits of the queue give; None if they differ or one has none."""
    return answers[0] if len(set(answers)) == 1 else None


def limit_text(packets: int) -> str:
    """Write a limit of the queue."""
    return f"queue of {packets}" if packets else "no limit"


@assessed
def order_on_traces(context: Context, case: Assessment) -> None:
    """On significantly more traces than not BBR is ahead of CUBIC, and CUBIC of NewReno, with both limits."""
    for one, other in ((BBR, CUBIC), (CUBIC, RENO)):
        answers: list[bool | None] = []
        counts = []
        for packets in TRACE_LIMITS:
            found = on_traces(context, one, other, packets)
            more, less = (sum(s * (x - 1) > TIE for x in found) for s in (1, -1))
            p = sign_test(more, less)
            answers.append(more > less if p < SIGNIFICANT else None)
            counts.append(
                f"{limit_text(packets)}: ahead on {more}, behind on {less} of {len(found)}"
            )
            where = f"{limit_text(packets)}: traces on which {TITLES[one]}"
            text = f"{where} is ahead of {TITLES[other]}, of {len(found)}"
            pair = f"{TITLES[one]} and {TITLES[other]}"
            case.lines += [
                Evidence(text, float(more), expected=f"p < {SIGNIFICANT:g}"),
                Evidence(f"{where} is behind", float(less)),
                Evidence(f"{pair}, {limit_text(packets)}: sign test, p", p),
            ]
            text = f"{limit_text(packets)}: mean of {TITLES[one]} over {TITLES[other]}"
            case.show(text, positive(found))
        text = f"{TITLES[one]} and {TITLES[other]}, {', '.join(counts)}"
        case.require(agreed(answers), text)


@assessed
def limited_lead(context: Context, case: Assessment) -> None:
    """On some traces of the set BBR leads by far, on others CUBIC is ahead, with both limits."""
    answers: list[bool | None] = []
    counts = []
    for packets in TRACE_LIMITS:
        found = on_traces(context, BBR, CUBIC, packets)
        leads, behind = sum(x > LEAD for x in found), sum(x < 1 - TIE for x in found)
        some = SOME * len(found)
        holds = leads >= some and behind >= some
        answers.append(True if holds else None if leads and behind else False)
        where = limit_text(packets)
        counts.append(f"{where}: a lead on {leads}, behind on {behind} of {len(found)}")
        case.lines += [
            Evidence(
                f"{where}: traces with a lead of more than {100 * (LEAD - 1):.0f}%",
                float(leads),
                expected=f"≥ {some:g} of {len(found)}",
            ),
            Evidence(
                f"{where}: traces on which CUBIC is ahead", float(behind), expected=f"≥ {some:g}"
            ),
            Evidence(f"{where}: BBR over CUBIC, least", min(found)),
            Evidence(f"{where}: BBR over CUBIC, most", max(found)),
        ]
    case.require(agreed(answers), ", ".join(counts))


@assessed
def varies_less(context: Context, case: Assessment) -> None:
    """BBR's goodput varies less from run to run than those of NewReno and CUBIC, on average over cells with loss."""
    spread: dict[str, list[float]] = {n: [] for n in TITLES}
    senders = work(context)
    for experiment, factor in (("loss", "loss"), ("rate", "mbps")):
        for level in levels(context, experiment):
            if factor == "loss" and level == 0:
                continue
            for name in spread:
                rows = rows_of(context, experiment, senders[name], **{factor: level})
                rates = rows["rate_bps"] if rows.height > 2 else None
                if rates is None:
                    raise Unmeasured(absent(context))
                spread[name].append(float(rates.std()) / float(rates.mean()))  # type: ignore[arg-type]
    if not spread[BBR]:
        raise Unmeasured(absent(context))
    means = {n: sum(x) / len(x) for n, x in spread.items()}
    for name, values in spread.items():
        printed = published.VARIATION[name]
        text = f"{TITLES[name]}: coefficient of variation, mean over {len(values)} cells"
        case.lines.append(Evidence(text, means[name], expected=f"published: {printed:g}"))
        case.lines.append(Evidence(f"{TITLES[name]}: the greatest", max(values)))
    for name in OTHERS:
        case.require(means[BBR] < means[name], f"{TITLES[name]} varies less")


NO_SACK = (
    "Going back to the first missing segment and the send buffer decide BBR's goodput: with "
    "go-back-N and no limit of the buffer both "
    "printed means and the share of 24 Mbit/s come near (6.1, 6.6 Mbit/s and 44%), and the share "
    "of 6 Mbit/s does not (47%); with NewReno's "
    "recovery BBR has half as much again. Filter and timeout move little, shorter transfers the means by a fifth at "
    "most; a window of one bandwidth-delay product halves the share of 6 Mbit/s."
)
LEVELS = (
    "NewReno and CUBIC agree where the source names the cell. Their means over A depend on which "
    "losses it tried, and it does "
    "not say: without the two lowest levels both are within the bounds."
)

CLAIMS = (
    Claim(
        "loss-lead",
        "1. Over losses of 0 to 1% BBR has the highest mean goodput, and above 0.1% it leads.",
        leads_with_loss,
        because="Going back costs BBR as much as its lead: above 0.1% it leads, on average the others have 5% more.",
        experiments=("loss",),
    ),
    Claim(
        "loss-means",
        "1. The means over these losses are BBR 6.39 Mbit/s, NewReno 4.66 and CUBIC 4.61.",
        averages("loss"),
        because=f"{NO_SACK} {LEVELS}",
        experiments=("loss",),
    ),
    Claim(
        "loss-factor",
        "1. At 1% loss BBR leads by a factor of 2.44.",
        factor_at_one_percent,
        because=NO_SACK,
        experiments=("loss",),
    ),
    Claim(
        "rate-means",
        "2. At 0.1% loss the means over 6 to 24 Mbit/s are BBR 7.35 Mbit/s, NewReno 5.26 and CUBIC 4.95.",
        averages("rate"),
        because=NO_SACK,
        experiments=("rate",),
    ),
    Claim(
        "rate-low",
        "2. At 6 Mbit/s BBR is not ahead: it uses 73% of the link, CUBIC 81%.",
        shares(6.0, behind=True),
        because=NO_SACK,
        experiments=("rate",),
    ),
    Claim(
        "rate-high",
        "2. At 24 Mbit/s BBR uses near 50% of the link, the others near 24%.",
        shares(24.0, behind=False),
        because=NO_SACK,
        experiments=("rate",),
    ),
    Claim(
        "traces-order",
        "3. On cellular traces BBR is ahead of CUBIC and CUBIC of NewReno (5.3, 4.66 and 3.71 "
        "Mbit/s): on significantly more "
        "traces of a set than not, without a limit of the queue and with 100 packets.",
        order_on_traces,
        because=(
            "Without a limit nothing is lost, and BBR, whose buffer bounds what is in flight, has three quarters of "
            "CUBIC's goodput; with 100 packets a sender without SACK collapses at each overflow, and with SACK BBR is "
            "ahead on a few traces only."
        ),
        experiments=("trace set",),
    ),
    Claim(
        "traces-lead",
        "3. BBR's lead is limited to some traces (T-Mobile's, 30%); on others (Verizon's) CUBIC is "
        "ahead: each on a tenth of a "
        "set at least, without a limit of the queue and with 100 packets.",
        limited_lead,
        because=(
            "Leads of 15% need a limit of the queue and SACK: today's BBR has them on some traces "
            "with 100 packets, up to "
            "twice CUBIC's goodput, and on none without a limit. A mean over few traces shows either."
        ),
        experiments=("trace set",),
    ),
    Claim(
        "variation",
        "BBR's goodput varies less from run to run than NewReno's and CUBIC's.",
        varies_less,
        because="The printed coefficients (0.47, 0.12 and 0.13) say so too, against the sentence beside them.",
        experiments=("loss", "rate"),
    ),
    *FUTURE_WORK,
    *FIDELITY,
)
