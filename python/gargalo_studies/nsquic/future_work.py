"""What the work left to others, as claims: reordering, small objects, 0-RTT, and equal defaults."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
from gargalo.metrics import ANY, mean_interval
from gargalo.studies import Assessment, Claim, Context, Unmeasured, above, assessed, evidence

from gargalo_studies.nsquic.experiments import (
    CORNERS,
    EARLY,
    FIXED,
    FULL_HANDSHAKE,
    ONE,
    OWN,
    PAGES,
    SHARED,
    STREAMS,
    TIMED,
)
from gargalo_studies.nsquic.gains import beside, ratio, value
from gargalo_studies.nsquic.published import level_text
from gargalo_studies.nsquic.transports import CUBIC, STEPS, TLS

if TYPE_CHECKING:
    from gargalo.metrics import Interval

BECAUSE_LATE = (
    "The TCP of 2018 takes late packets for lost ones and has no means to undo it: it needs 25 "
    "times as long. RACK alone "
    "brings it within 30% of QUIC; what is left is the rest of today's TCP."
)
BECAUSE_RADIO = (
    "With today's stacks both have the same window and the same CUBIC; QUIC reduces it more often "
    "for losses in bursts, and "
    "is ahead of TCP behind TLS only by that handshake."
)

HIGH = 0.1
"""Share of late packets from which on reordering is high."""


@assessed
def reordering_hurts(context: Context, case: Assessment) -> None:
    """With many late packets a fixed packet threshold needs longer than TCP."""
    rows = context.experiment("reordering")
    found = sorted(rows["reordered"].unique().to_list()) if rows.height else []
    for x in found:
        fixed = ratio(context, "reordering", over=FIXED, under=OWN, reordered=x)
        timed = ratio(context, "reordering", over=TIMED, under=OWN, reordered=x)
        late = f"{100 * x:g}% late"
        high = x >= HIGH
        text = f"{late}: time of QUIC with 3 packets over TCP's"
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
    """With equal initial windows and standard CUBIC less than half of QUIC's advantage is left."""
    stages = {
        n: STEPS[i].name for n, i in (("2018", 0), ("equal defaults", -2), ("TCP with TLS", -1))
    }
    places = {f"1 MB, {w}: CUBIC's time over QUIC's": w for w in CORNERS}
    places["100 kB beside each other: QUIC's rate over CUBIC's"] = SHARED
    for what, where in places.items():
        found = {
            n: (
                beside(context, s)
                if where == SHARED
                else ratio(context, "steps", step=s, where=where)
            ).mean
            for n, s in stages.items()
        }
        then, now, _ = found.values()
        if then is None or now is None:
            raise Unmeasured(f"{what}: not measured")
        case.lines += [value(f"{what}, {n}", x) for n, x in found.items() if x is not None]
        if then <= 1:
            case.require(None, f"{what}: there was no advantage")
            continue
        left = (now - 1) / (then - 1)
        text = f"{what}: share of the advantage that is left"
        case.lines.append(value(text, left, expected=f"< {LEFT}"))
        case.require(left < LEFT, f"{what}: {100 * left:.0f}% is left")


@assessed
def radio_hurts_tcp(context: Context, case: Assessment) -> None:
    """Over a wireless link, alone or behind a wire, QUIC finishes earlier than CUBIC wherever packets get lost."""
    rows = context.experiment("wireless")
    cells = rows.select("where", "loss").unique().sort("where", "loss") if rows.height else rows
    for where, loss in cells.iter_rows():
        for p in (CUBIC, "westwood", TLS):
            over = ratio(context, "wireless", over=p, where=where, loss=loss)
            text = f"{where}, {level_text('loss', loss)}: {p}'s time over QUIC's"
            judged = p == CUBIC and loss > 0
            case.show(text, over, expected="> 1" if judged else "")
            if judged:
                case.require(above(over, 1.0), f"{where}, {level_text('loss', loss)}: it is not")
    if not case.conditions:
        raise Unmeasured("wireless links were not measured")


FUTURE_WORK = (
    Claim(
        "reordering",
        "New: when many packets arrive late (10% and more), QUIC with a fixed packet threshold needs longer than "
        "TCP, whose RACK adapts.",
        reordering_hurts,
        because=BECAUSE_LATE,
        experiments=("reordering",),
    ),
    Claim(
        "small-objects",
        "New: many small objects on a lossy link arrive sooner on QUIC's streams than in turns on TCP's one byte "
        "stream, and loss delays them less.",
        streams_help,
        because=(
            "Streams do help: objects take a smaller part of the time of the whole page than on TCP. But QUIC's window "
            "is smaller on a lossy link, with the same CUBIC: a loss of a packet sent after the "
            "last reduction reduces it "
            "again (RFC 9002), where TCP first repairs everything and counts what is lost meanwhile as the same event "
            "(RFC 6675); and QUIC never sends beyond the window, where TCP's last segment may. At some ten packets "
            "of window these cost more than a blocked stream."
        ),
        experiments=("objects",),
    ),
    Claim(
        "zero-rtt",
        "New: 0-RTT saves one round trip on small transfers.",
        early_data,
        experiments=("zero-rtt",),
    ),
    Claim(
        "wireless",
        "New: over a wireless link with bursts of lost packets, alone or behind a wired network, "
        "QUIC finishes earlier than "
        "TCP CUBIC.",
        radio_hurts_tcp,
        because=BECAUSE_RADIO,
        experiments=("wireless",),
    ),
    Claim(
        "what-is-left",
        "New: with equal initial windows and standard CUBIC on both sides, less than half of QUIC's advantage is "
        "left: at 10 Mbit/s, at 1 Gbit/s, at 200 ms, and beside TCP.",
        what_is_left,
        experiments=("steps",),
    ),
)
