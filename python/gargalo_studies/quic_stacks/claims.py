"""What one would expect of stacks that say they have the same congestion control, each with its check."""

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
    between,
)

from gargalo_studies.quic_stacks.experiments import BUFFERS, RATE_BPS, Levels

if TYPE_CHECKING:
    from collections.abc import Sequence

USED = 0.8
"""Of a link with a buffer of one bandwidth-delay product or more, that CUBIC uses."""
FAIR = (1 / 3, 2 / 3)
"""Of the share of one of two flows: at most twice the other."""
LIKE = 1.25
"""Times of pages that are alike: the slowest over the fastest."""
KEPT = 0.8
"""Of the goodput that a flow keeps if packets are late and none is dropped."""


def present(context: Context, experiment: str) -> Sequence[str]:
    """Return the stacks of an experiment's runs.

    Raises:
        Unmeasured: There are fewer than two.

    """
    rows = context.experiment(experiment)
    names = rows["stack"].unique(maintain_order=True).to_list() if "stack" in rows.columns else []
    if len(names) < 2:
        why = "there is one stack only: `make stacks` in a clone of the repository installs others"
        raise Unmeasured(why)
    return names


@assessed
def check_alone(context: Context, case: Assessment) -> None:
    """Every stack uses the link."""
    for stack in present(context, "alone"):
        for b in [b for b in BUFFERS if b >= 1]:
            found = case.measured(context.interval("goodput_bps", "alone", stack=stack, buffer=b))
            case.show(
                f"{stack}, {b:g} BDP",
                found,
                unit="bit/s",
                expected=f"> {USED * RATE_BPS / 1e6:g} Mbit/s",
            )
            case.require(
                above(found, USED * RATE_BPS), f"{stack} uses less with a buffer of {b:g} BDP"
            )


@assessed
def check_fair(context: Context, case: Assessment) -> None:
    """No stack takes more than twice what the other has."""
    names = present(context, "versus")
    for a in names:
        for b in names:
            if a == b:
                continue
            found = case.measured(context.interval("share", "versus", stack=a, against=b))
            case.show(f"{a} beside {b}", found, expected="1/3 to 2/3")
            case.require(
                between(found, *FAIR), f"{a} beside {b} has {100 * (found.mean or 0):.0f}%"
            )


@assessed
def check_page(context: Context, case: Assessment) -> None:
    """Pages take as long with every stack."""
    times = {}
    for stack in present(context, "page"):
        found = case.measured(context.interval("page_s", "page", stack=stack))
        case.show(stack, found, unit="s")
        times[stack] = found.mean or 0.0
    fast = min(times, key=times.__getitem__)
    for stack, mean in times.items():
        if stack == fast:
            continue
        values = context.experiment("page", stack=stack)["page_s"].drop_nulls()
        ratio = context.interval_of("page_s", (values / times[fast]).to_list())
        case.require(
            below(ratio, LIKE), f"{stack} takes {mean / times[fast]:.2f} times as long as {fast}"
        )


@assessed
def check_late(context: Context, case: Assessment) -> None:
    """Late packets cost little."""
    rows = context.experiment("late")
    if "drops" not in rows.columns or rows["drops"].fill_null(1).sum() > 0:
        why = "a link dropped packets, so what was declared lost may have been lost"
        raise Unmeasured(why)
    worst = max(Levels.of(context.profile).late_ms)
    for stack in present(context, "late"):
        before = case.measured(context.interval("goodput_bps", "late", stack=stack, late_ms=0))
        found = case.measured(context.interval("goodput_bps", "late", stack=stack, late_ms=worst))
        lost = context.interval("lost_share", "late", stack=stack, late_ms=worst)
        case.show(f"{stack}, none late", before, unit="bit/s")
        case.show(
            f"{stack}, {worst} ms late", found, unit="bit/s", expected=f"> {KEPT:.0%} of that"
        )
        case.show(f"{stack}, {worst} ms late, declared lost", lost)
        least = KEPT * (before.mean or 0.0)
        case.require(
            above(found, least), f"{stack} has {(found.mean or 0) / (before.mean or 1):.0%} of it"
        )


CLAIMS = (
    Claim(
        "alone",
        f"With a buffer of one bandwidth-delay product or more, one flow of CUBIC uses {USED:.0%} "
        "of the link, whatever the stack.",
        check_alone,
        experiments=("alone",),
    ),
    Claim(
        "fair",
        "Two stacks with CUBIC share a bottleneck: neither has more than twice what the other has.",
        check_fair,
        experiments=("versus",),
    ),
    Claim(
        "page",
        "A page of small objects takes about as long with every stack: the slowest at most "
        f"{LIKE:g} times the fastest.",
        check_page,
        experiments=("page",),
    ),
    Claim(
        "late",
        f"If one packet in fifty is late and none is dropped, a flow keeps {KEPT:.0%} of its goodput.",
        check_late,
        experiments=("late",),
    ),
)
