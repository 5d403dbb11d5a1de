"""What the work left to others, as claims: reordering, small objects, 0-RTT, and equal defaults."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gargalo.metrics import mean_interval
from gargalo.metrics.intervals import ANY
from gargalo.studies.model import Assessment, Claim, Context, Unmeasured, above, assessed, evidence
from gargalo.studies.nsquic.experiments import (
    EARLY,
    FACTORS,
    FIXED,
    FULL_HANDSHAKE,
    ONE,
    PAGES,
    RACK,
    STANDARD,
    STREAMS,
    TIMED,
)
from gargalo.studies.nsquic.gains import gain, levels, ratio, share, value
from gargalo.studies.nsquic.published import level_text
from gargalo.studies.nsquic.transports import CUBIC, MODERN, PUBLISHED, TLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.metrics import Interval

HIGH = 0.1
"""Share of late packets from which on reordering is high."""


@assessed
def reordering_hurts(context: Context, case: Assessment) -> None:
    """With many late packets a fixed packet threshold needs longer than RACK."""
    rows = context.experiment("reordering")
    found = sorted(rows["reordered"].unique().to_list()) if rows.height else []
    for x in found:
        fixed = ratio(context, "reordering", over=FIXED, under=RACK, reordered=x)
        timed = ratio(context, "reordering", over=TIMED, under=RACK, reordered=x)
        late = f"{100 * x:g}% late"
        high = x >= HIGH
        text = f"{late}: time of QUIC with 3 packets over TCP's with RACK"
        case.lines += [
            evidence(text, fixed, expected="> 1" if high else ""),
            evidence(f"{late}: the same of QUIC with the time threshold only", timed),
        ]
        if high:
            case.require(above(fixed, 1.0), f"{late}: QUIC is not slower")
    if not case.conditions:
        raise Unmeasured("high reordering was not measured")


LOSSY = 0.01
"""Packet error rate from which on a link is lossy."""


@assessed
def streams_help(context: Context, case: Assessment) -> None:
    """With loss, objects on streams arrive sooner, and loss delays them less, than on one byte stream."""
    rows = context.experiment("objects")
    mean = {
        (p, x): context.interval("object_mean_s", "objects", protocol=p, loss=x)
        for x in (sorted(rows["loss"].unique().to_list()) if rows.height else [])
        for p in PAGES
    }
    for (p, x), found in mean.items():
        if p in (STREAMS, ONE) and (x == 0 or x >= LOSSY):
            text = f"{p}, {level_text('loss', x)}: mean time to an object"
            case.show(text, found, unit="s")
    for x in sorted({x for _, x in mean if x >= LOSSY}):
        sooner = ratio(context, "objects", metric="object_mean_s", over=ONE, under=STREAMS, loss=x)
        text = f"{level_text('loss', x)}: time on TCP's one connection over that on QUIC's"
        case.show(text, sooner, expected="> 1")
        case.require(above(sooner, 1.0), f"{level_text('loss', x)}: QUIC is not sooner")
        if any((p, 0.0) not in mean for p in (STREAMS, ONE)):
            raise Unmeasured("objects without loss were not measured")
        more = extra(context, mean[ONE, 0.0], mean[STREAMS, 0.0], x)
        text = f"{level_text('loss', x)}: what loss adds on TCP less what it adds on QUIC"
        case.show(text, more, unit="s", expected="> 0")
        adds = f"{level_text('loss', x)}: loss adds {-1e3 * (more.mean or 0.0):.0f} ms more on QUIC"
        case.require(above(more, 0.0), adds)
    if not case.conditions:
        raise Unmeasured("objects on a lossy link were not measured")


def extra(context: Context, tcp: Interval, quic: Interval, loss: float) -> Interval:
    """Return what loss adds to the time to an object on TCP less what it adds on QUIC, paired by seed."""
    rows = context.experiment("objects", loss=loss)
    columns = ["repeat", "object_mean_s"]
    if tcp.mean is None or quic.mean is None:
        return mean_interval([], bounds=ANY)
    one, other = (rows.filter(pl.col("protocol") == p).select(columns) for p in (ONE, STREAMS))
    both = one.join(other, on="repeat", suffix="_quic").sort("repeat")
    added = both["object_mean_s"] - tcp.mean - (both["object_mean_s_quic"] - quic.mean)
    return mean_interval(added.to_list(), bounds=ANY)


SMALL_KB = 10.0
"""Largest transfer that is small."""
ONE_RTT = 0.1
"""A saving counts as one round trip if it differs from it by at most this share: the packets of the handshake also
take their time on the link."""


@assessed
def early_data(context: Context, case: Assessment) -> None:
    """0-RTT saves one round trip on small transfers."""
    rows = context.experiment("zero-rtt")
    cells = rows.select("kb", "delay_s").unique().sort("kb", "delay_s") if rows.height else rows
    for kb, delay_s in cells.select("kb", "delay_s").iter_rows() if cells.height else []:
        times = [
            context.mean("time_s", "zero-rtt", protocol=p, kb=kb, delay_s=delay_s)
            for p in (FULL_HANDSHAKE, EARLY, TLS)
        ]
        saved = (times[0] - times[1]) / (2 * delay_s)
        if kb > SMALL_KB:
            continue
        where = f"{level_text('kb', kb)}, {level_text('delay_s', delay_s)}"
        expected = f"{1 - ONE_RTT:g} to {1 + ONE_RTT:g}"
        case.lines += [
            value(f"{where}: saved, in round trips", saved, expected=expected),
            value(f"{where}: TCP with TLS over QUIC with 0-RTT", times[2] / times[1]),
        ]
        holds = None if math.isnan(saved) else abs(saved - 1) <= ONE_RTT
        case.require(holds, f"{where}: {saved:.2f} round trips are saved")
    if not case.conditions:
        raise Unmeasured("small transfers with 0-RTT were not measured")


LEFT = 0.5
"""Most of the advantage that may be left for it to have been the old defaults'."""


@assessed
def what_is_left(context: Context, case: Assessment) -> None:
    """With equal initial windows and standard CUBIC less than half of claims 1, 2 and 5 is left."""
    rows = context.experiment("simple", defaults=MODERN)
    varied = {factor: levels(rows, factor) for factor in FACTORS}
    if not all(varied.values()):
        raise Unmeasured("the modern defaults were not measured")
    cells = {
        tuple({**STANDARD, factor: x}.values()): (factor, x)
        for factor in varied
        for x in varied[factor]
    }
    kinds = ((PUBLISHED, CUBIC), (MODERN, CUBIC), (MODERN, TLS))
    gains = [
        [gain(context, "simple", f, x, d, over=o).mean for f, x in cells.values()] for d, o in kinds
    ]
    compared = {
        "one flow, mean over all cells: CUBIC's time over QUIC's": [
            geometric_mean(g) for g in gains
        ]
    }
    for factor in ("mbps", "delay_s"):
        top = max(varied[factor])
        known = [gain(context, "simple", factor, top, d, over=o).mean for d, o in kinds]
        what = f"one flow, {level_text(factor, top)}: CUBIC's time over QUIC's"
        compared[what] = [math.nan if g is None else g for g in known]
    what = "beside each other, 100 kB: QUIC's rate over CUBIC's"
    compared[what] = [share(context, d, 100.0) for d in (PUBLISHED, MODERN)]
    for what, (old, new, *tls) in compared.items():
        if math.isnan(old) or math.isnan(new):
            raise Unmeasured(f"{what}: not measured")
        names = ("as published", "modern", "modern, TCP with TLS")
        for name, number in zip(names, (old, new, *tls), strict=False):
            case.lines.append(value(f"{what}, {name}", number))
        if old <= 1:
            case.require(None, f"{what}: there was no advantage")
            continue
        left = (new - 1) / (old - 1)
        text = f"{what}: share of the advantage that is left"
        case.lines.append(value(text, left, expected=f"< {LEFT}"))
        case.require(left < LEFT, f"{what}: {100 * left:.0f}% is left")
    for (defaults, over), found in zip(kinds, gains, strict=True):
        sooner = sum(g is not None and g > 1 for g in found)
        text = f"cells in which QUIC is sooner done than {over}, {defaults}, of {len(found)}"
        case.lines.append(value(text, float(sooner)))


def geometric_mean(ratios: Sequence[float | None]) -> float:
    """Return the geometric mean of ratios; NaN if one is not known."""
    known = [math.log(g) for g in ratios if g is not None]
    return math.exp(sum(known) / len(known)) if known and len(known) == len(ratios) else math.nan


NEW_CLAIMS = (
    Claim(
        "reordering",
        "New: when many packets arrive late (10% and more), QUIC with a fixed packet threshold needs longer than "
        "TCP, whose RACK adapts.",
        reordering_hurts,
    ),
    Claim(
        "small-objects",
        "New: many small objects on a lossy link arrive sooner on QUIC's streams than in turns on TCP's one byte "
        "stream, and loss delays them less.",
        streams_help,
        because=(
            "Streams do help: objects take a smaller part of the time of the whole page than on TCP. But QUIC's window "
            "is smaller on a lossy link, with the same CUBIC: a loss of a packet sent after the last reduction reduces it "
            "again (RFC 9002), where TCP first repairs everything and counts what is lost meanwhile as the same event "
            "(RFC 6675); and QUIC never sends beyond the window, where TCP's last segment may. At some ten packets "
            "of window these cost more than a blocked stream."
        ),
    ),
    Claim("zero-rtt", "New: 0-RTT saves one round trip on small transfers.", early_data),
    Claim(
        "what-is-left",
        "New: with equal initial windows and standard CUBIC on both sides, less than half of QUIC's advantage is "
        "left: on the whole, at 1 Gbit/s, at 200 ms, and beside TCP.",
        what_is_left,
    ),
)
