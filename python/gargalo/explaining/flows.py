"""What happened to one flow: start, slow start, losses, what limited it, end."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from gargalo.explaining.frames import frames
from gargalo.explaining.model import Sentence, counted, instant, listed, period, size
from gargalo.explaining.phases import PROBE_RTT, STARTING, visits
from gargalo.explaining.pings import pings
from gargalo.metrics import path_shares
from gargalo.metrics._numbers import summed
from gargalo.names import with_path
from gargalo.pictures.metrics import amount
from gargalo.summary import percent, rate, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gargalo.results import Run
    from gargalo.row_types import FlowRow

AFTER_START = re.compile("congestion-avoidance|recovery|loss|drain|probe-bw")
"""Phases that only follow slow start or startup."""
CONGESTION = ("recovery", "ecn", "timeout")
CAUSES = {
    "recovery": "a loss was detected and recovery began",
    "ecn": "a packet was marked (ECN)",
    "timeout": "a retransmission timeout occurred",
}
MOST_NAMED = 4
"""Instants that a sentence lists."""
MOST_BURSTS = 3
APART_S = 1.0
"""Losses that are further apart belong to two bursts."""
BURST = 0.1
"""A burst is reported if it has at least this share of all losses."""
IDLE_SAMPLES = 3
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def story(run: Run, flow: int, name: str) -> Iterator[Sentence]:
    """Describe a flow from its start to its end."""
    row = cast("FlowRow", run.flows.filter(pl.col("id") == flow).row(0, named=True))
    yield from begin(row, name)
    events = _events(run, flow)
    several = not run.subflows.is_empty() and (run.subflows["flow"] == flow).any()
    if several:
        yield from paths(run, flow, name, events)
    else:
        samples = run.flow_samples
        if not samples.is_empty():
            mine = samples.filter(pl.col("flow") == flow).sort("time_s")
            yield from slow_start(run, row, name, mine, events)
            yield from probe_rtt(run, row, name, mine)
    if run.setup.record.events and row["transport"] != "udp":
        yield from losses(row, name, events)
        yield from timeouts(row, name, events)
    if not several and not run.flow_samples.is_empty():
        yield from limits(run, row, name)
    yield from pings(run, row, name)
    yield from frames(run, row, name)
    yield from end(run, row, name)


def _events(run: Run, flow: int) -> pl.DataFrame:
    events = run.events
    if events.is_empty():
        schema = {"time_s": pl.Float64, "flow": pl.UInt64, "kind": pl.String, "detail": pl.String}
        return pl.DataFrame(schema=schema)
    return events.filter(pl.col("flow") == flow).sort("time_s", maintain_order=True)


def begin(row: FlowRow, name: str) -> Iterator[Sentence]:
    """Describe when a flow started, and how."""
    what = row["transport"]
    if row["congestion"]:
        what = f"{row['congestion']} over {what}"
    text = f"{name} started at {instant(row['start_s'])}: {row['from']} to {row['to']}, {row['workload']}, {what}"
    if row["handshake_s"]:
        text += f"; its handshake took {span(row['handshake_s'])}"
    elif row["handshake_s"] == 0:
        text += "; it could send data at once, without waiting for a handshake"
    if row["first_byte_s"] is not None:
        text += f"; the first byte arrived after {span(row['first_byte_s'])}"
    figures = {
        "start_s": row["start_s"], "handshake_s": row["handshake_s"], "first_byte_s": row["first_byte_s"],
    }  # fmt: skip
    yield Sentence("flow", f"{text}.", row["start_s"], flow=row["id"], figures=figures)


def end(run: Run, row: FlowRow, name: str) -> Iterator[Sentence]:
    """Describe how a flow ended, and what it delivered."""
    until, last = row["end_s"], float(run.info.get("virtual_s", 0.0))
    delivered = row["delivered_bytes"]
    got = "what is not told" if delivered is None else size(delivered)
    if row["failure"] is not None:
        text = f"{name} failed at {instant(until)}: {row['failure']}; it had delivered {got}"
    elif row["completion_s"] is not None:
        when = row["start_s"] + row["completion_s"]
        text = f"{name} was complete at {instant(when)}, {span(row['completion_s'])} after its start, with {got}"
        until = when
    elif until >= last:
        text = f"{name} was still running when the run ended; it had delivered {got}"
    else:
        text = f"{name} stopped at {instant(until)}; it had delivered {got}"
    if row["goodput_bps"] is not None:
        text += f", {rate(row['goodput_bps'])}"
    figures = {
        "completion_s": row["completion_s"], "delivered_bytes": delivered, "goodput_bps": row["goodput_bps"],
    }  # fmt: skip
    yield Sentence("flow", f"{text}.", until, flow=row["id"], figures=figures)


def others(run: Run, chosen: Sequence[int]) -> Iterator[Sentence]:
    """Describe together the flows that are not described one by one."""
    rest = run.flows.filter(~pl.col("id").is_in(list(chosen)))
    if rest.is_empty():
        return
    done = rest.drop_nulls("completion_s")
    text = (
        f"{counted(rest.height, 'more flow')} started between {instant(_least(rest['start_s']))} "
        f"and {instant(_most(rest['start_s']))}"
    )
    text += (
        f" and delivered {size(int(rest['delivered_bytes'].sum()))} in all; {done.height} completed"
    )
    if done.height:
        middle = float(np.median(done["completion_s"].to_numpy()))
        text += f", in {span(middle)} in the median"
    lost, timed = (summed(rest[c]) for c in ("lost_packets", "timeouts"))
    word = "declared" if "udp" not in rest["transport"] else "declared, or over UDP had,"
    told = [] if lost is None else [f"{word} {counted(lost, 'packet')} lost"]
    told += [] if timed is None else [f"had {counted(timed, 'timeout')}"]
    text += f"; they {listed(told)}." if told else "."
    figures = {
        "flows": rest.height, "completed": done.height, "lost_packets": lost, "timeouts": timed,
        "delivered_bytes": int(rest["delivered_bytes"].sum()),
    }  # fmt: skip
    yield Sentence("flow", text, figures=figures)


def _least(values: pl.Series) -> float:
    return float(values.to_numpy().min())


def _most(values: pl.Series) -> float:
    return float(values.to_numpy().max())


# --- slow start


@dataclass(frozen=True)
class Leaving:
    """When a phase of the beginning was left: at an instant, or between two samples."""

    phase: str
    after_s: float
    """The latest instant at which it was still in the phase."""
    by_s: float
    """The first at which it was no longer; equal to `after_s` where the instant is known."""
    next: str
    via: str | None = None
    """conservative-slow-start, if it came between."""
    full: bool = False
    """Whether BBR's gauge says that its bandwidth no longer grew."""
    event: Mapping[str, Any] | None = None
    """The congestion event that ended it, unless it had ended before."""

    @property
    def known(self) -> bool:
        """Whether the instant is known."""
        return self.after_s == self.by_s


def phases_of(run: Run, flow: int, samples: pl.DataFrame) -> tuple[list[tuple[float, str]], bool]:
    """Return instants and the phase seen there, and whether every change of phase is among them (gauges)."""
    gauges = run.gauges
    if not gauges.is_empty():
        mine = gauges.filter(pl.col("flow") == flow)
        if not mine.is_empty():
            seen = (
                mine.select("time_s", "phase")
                .unique(maintain_order=True)
                .sort("time_s", maintain_order=True)
            )
            return list(seen.iter_rows()), True
    return list(samples.select("time_s", "phase").iter_rows()), False


def leaving(seen: Sequence[tuple[float, str]], started: float, *, exact: bool) -> Leaving | None:
    """Return when the beginning was left; None if it was not."""
    first = next((p for _, p in seen if p in STARTING), None)
    before, via = started, None
    for t, phase in seen:
        if phase in STARTING:
            before = t
            via = phase if phase == "conservative-slow-start" else via
        else:
            name = first if first is not None and before > started else "slow-start"
            return Leaving(name, t if exact else before, t, phase, via)
    return None


def ended_by_event(left: Leaving | None, events: pl.DataFrame) -> Leaving | None:
    """Return when slow start was left, at the latest with the first congestion event in that time: it ends slow start.

    BBR's STARTUP ends by its model of the path: an event in that time, or at that instant, need not be why.
    """
    if left is None or STARTING[left.phase] != "slow start":
        return left
    inside = events.filter(
        pl.col("kind").is_in(CONGESTION), pl.col("time_s") >= left.after_s, pl.col("time_s") <= left.by_s
    )  # fmt: skip
    if inside.is_empty():
        return left
    first = inside.row(0, named=True)
    return replace(left, by_s=first["time_s"], event=first)


def slow_start(
    run: Run, row: FlowRow, name: str, samples: pl.DataFrame, events: pl.DataFrame
) -> Iterator[Sentence]:
    """Describe when and why slow start (or startup) was left."""
    seen, exact = phases_of(run, row["id"], samples)
    if not seen:
        return
    left = ended_by_event(leaving(seen, row["start_s"], exact=exact), events)
    if left is None:
        t, phase = seen[-1]
        text = f"{name} was in {STARTING[phase]} until its last sample at {instant(t)}."
        yield Sentence("slow-start", text, t, flow=row["id"], figures={"left": False})
        return
    if exact:
        gauge = run.gauges.filter(
            pl.col("flow") == row["id"], pl.col("time_s") == left.by_s,
            pl.col("name") == "full_bandwidth_reached", pl.col("value") > 0,
        )  # fmt: skip
        left = replace(left, full=not gauge.is_empty())
    known = seen[0][1] in STARTING
    if not known and not AFTER_START.match(left.next):
        return  # A control without a phase of the beginning.
    first = seen[0][0] if not known else None
    yield _left(row["id"], name, left, samples, first=first, events=run.setup.record.events)
    yield from _again(row, name, seen, left, exact=exact)


def _again(
    row: FlowRow, name: str, seen: Sequence[tuple[float, str]], left: Leaving, *, exact: bool
) -> Iterator[Sentence]:
    """Describe when a flow was back in slow start: after a timeout, an idle time, or an event that was spurious."""
    later = [(t, phase) for t, phase in seen if t >= left.by_s]
    back = [t for (_, a), (t, b) in pairwise(later) if a not in STARTING and b in STARTING]
    if not back:
        return
    times = "once" if len(back) == 1 else f"{len(back)} times"
    of = "" if exact else ", as the samples show"
    phase = STARTING[left.phase]
    text = f"{name} was in {phase} again {times}{of}: {_instants(back)}."
    figures = {"again": len(back)}
    yield Sentence("slow-start", text, back[0], back[-1], row["id"], figures)


def _left(
    flow: int, name: str, left: Leaving, samples: pl.DataFrame, *, first: float | None, events: bool
) -> Sentence:  # fmt: skip
    """Write when the beginning was left, as exactly as it is known.

    Args:
        flow: Its number.
        name: Its name.
        left: What is known.
        samples: Of the flow.
        first: The instant of the first sample, if it is of a later phase.
        events: Whether events were recorded.

    """
    phase = STARTING[left.phase]
    figures: dict[str, Any] = {
        "left": True, "phase": left.phase, "after_s": left.after_s, "by_s": left.by_s, "next": left.next,
    }  # fmt: skip
    when = (
        f"at {instant(left.by_s)}"
        if left.known
        else f"between {instant(left.after_s)} and {instant(left.by_s)}"
    )
    text = f"{name} left {phase} {when}"
    if left.event is not None:
        return _left_by(flow, text, left, samples, figures)
    if first is not None:
        text = f"{name} was no longer in {phase} at its first sample, at {instant(first)}"
    text += f"; the phase {'after it' if left.known else f'at {instant(left.by_s)}'} was {left.next.replace('-', ' ')}"
    if events and phase == "slow start":
        text += "; there was no loss, mark or timeout " + ("then" if left.known else "in that time")
    if left.via is not None:
        text += "; before it was in conservative slow start, which a rise of the round-trip time begins (RFC 9406)"
        figures["cause"] = "delay"
    if left.full:
        text += "; its bandwidth no longer grew (gauge full_bandwidth_reached)"
        figures["cause"] = "full_bandwidth_reached"
    at_exit = samples.filter(pl.col("time_s") >= left.by_s)
    if not at_exit.is_empty() and at_exit["delivery_rate_bps"][0] is not None:
        speed, t = float(at_exit["delivery_rate_bps"][0]), at_exit["time_s"][0]
        text += f"; its delivery rate was {rate(speed)} in the sample at {instant(t)}"
        figures["delivery_rate_bps"] = speed
    return Sentence("slow-start", f"{text}.", left.after_s, left.by_s, flow, figures)


def _left_by(
    flow: int, text: str, left: Leaving, samples: pl.DataFrame, figures: dict[str, Any]
) -> Sentence:
    """Write that a congestion event ended slow start: of an interval only that it was over then."""
    event = left.event or {}
    at = event["time_s"]
    happened = CAUSES[event["kind"]]
    text += f": {happened}" if left.known else f", at the latest when {happened}"
    after = number_of(event["detail"], "cwnd_bytes")
    if after is not None:
        text += f", and its window became {size(after)}"
        figures["window_after_bytes"] = after
        earlier = samples.filter(pl.col("time_s") < at)
        if not earlier.is_empty():
            window = int(earlier["congestion_window_bytes"][-1])
            text += f" ({size(window)} in the sample at {instant(earlier['time_s'][-1])})"
            figures["window_before_bytes"] = window
    figures |= {"cause" if left.known else "event": event["kind"], "time_s": at}
    return Sentence("slow-start", f"{text}.", left.after_s, left.by_s, flow, figures)


def number_of(detail: str, key: str) -> int | None:
    """Return a value of the details of an event."""
    found = re.search(rf"\b{key}=(\d+)", detail or "")
    return None if found is None else int(found[1])


# --- PROBE_RTT


def probe_rtt(run: Run, row: FlowRow, name: str, samples: pl.DataFrame) -> Iterator[Sentence]:
    """Describe when BBR was in PROBE_RTT, which empties the queue, how long, and what its window was."""
    seen, exact = phases_of(run, row["id"], samples)
    found = visits(seen)
    if not found:
        return
    told, spans = [], []
    for before, first, last, after in found:
        if exact:
            # The gauges have every change: the first row after it is that of the next phase.
            told.append(f"{_when(first, after)}, {span(after - first)}")
        else:
            least, most = span(last - first), span(after - before)
            told.append(f"between {instant(before)} and {instant(after)}, for {least} to {most}")
        spans.append({"from_s": first if exact else before, "until_s": after})
    times = "once" if len(found) == 1 else f"{len(found)} times"
    more = len(told) - MOST_NAMED
    text = f"{name} was in PROBE_RTT {times}: {'; '.join(told[:MOST_NAMED])}"
    text += f"; and {more} more times until {instant(found[-1][3])}" if more > 0 else ""
    # Where it only begins or ends the window may be that of the phase beside it.
    inside = samples.filter(pl.col("phase") == PROBE_RTT)
    figures: dict[str, Any] = {"times": len(found), "spans": spans[:MOST_NAMED]}
    if not inside.is_empty():
        least_bytes = int(inside["congestion_window_bytes"].to_numpy().min())
        text += f"; its window was {size(least_bytes)} at the least, in the samples of it"
        figures["window_bytes"] = least_bytes
    text += "; then it sends little, to see the round-trip time without its own queue"
    yield Sentence("probe-rtt", f"{text}.", found[0][1], found[-1][3], row["id"], figures)


# --- losses


def losses(row: FlowRow, name: str, events: pl.DataFrame) -> Iterator[Sentence]:
    """Describe losses, recoveries and marks in groups."""
    lost = events.filter(pl.col("kind") == "loss").with_columns(amount("loss"))
    cuts = events.filter(pl.col("kind").is_in(["recovery", "ecn"]))
    if lost.is_empty() and cuts.is_empty():
        n = row["lost_packets"]
        of = f" of {row['sent_packets']}" if row["sent_packets"] is not None else ""
        text = f"{name} declared no packet{of} lost."
        if n is None:
            text = f"The stack of {name} does not tell how many packets it declared lost."
        elif n:  # The kernel's stack reports none.
            text = (
                f"{name} declared {counted(n, 'packet')}{of} lost{_spurious(row)}; "
                "there are no events that tell when."
            )
        yield Sentence("losses", text, flow=row["id"], figures={"lost_packets": n})
        return
    if not lost.is_empty():
        yield _lost(row, name, lost)
    for kind, word, why in (
        ("recovery", "recovery", "after losses"),
        ("ecn", "reduction", "at marks (ECN)"),
    ):
        mine = cuts.filter(pl.col("kind") == kind)
        if not mine.is_empty():
            yield _cuts(row, name, mine, word, why)
    undone = events.filter(pl.col("kind") == "undo")["time_s"].to_list()
    if not undone and row["spurious_losses"]:
        n = row["spurious_losses"]
        text = f"{counted(n, 'congestion event')} of {name} turned out to be spurious."
        figures = {"spurious": n}
        yield Sentence("losses", text, flow=row["id"], figures=figures)
    if undone:
        text = (
            f"{counted(len(undone), 'of these events', 'of these events')} turned out to be "
            f"spurious and {'was' if len(undone) == 1 else 'were'} undone, {_instants(undone)}."
        )
        yield Sentence("losses", text, undone[0], undone[-1], row["id"], {"undone": len(undone)})


def _spurious(row: FlowRow) -> str:
    """Say how many congestion events were spurious, where there were any and it is known."""
    n = row["spurious_losses"]
    return f", {counted(n, 'congestion event')} turned out to be spurious" if n else ""


def _lost(row: FlowRow, name: str, lost: pl.DataFrame) -> Sentence:
    total = int(lost["amount"].sum())
    first, last = float(lost["time_s"][0]), float(lost["time_s"][-1])
    share = f", {percent(total / row['sent_packets'])} of those sent" if row["sent_packets"] else ""
    text = f"{name} declared {counted(total, 'packet')} lost{share}, {_when(first, last)}"
    found = bursts(lost)
    told = sorted(found, key=lambda b: -b[2])[:MOST_BURSTS]
    told = sorted(b for b in told if b[2] >= BURST * total)
    if len(found) > 1 and told:
        text += f"; most at once: {listed(f'{n} {_when(a, b)}' for a, b, n in told)}"
    figures = {
        "lost_packets": total, "bursts": len(found),
        "largest": [{"from_s": a, "until_s": b, "packets": n} for a, b, n in told],
    }  # fmt: skip
    return Sentence("losses", f"{text}.", first, last, row["id"], figures)


def bursts(lost: pl.DataFrame) -> list[tuple[float, float, int]]:
    """Group losses that follow each other within a second: first, last, packets."""
    found: list[tuple[float, float, int]] = []
    for t, n in lost.select("time_s", "amount").iter_rows():
        if found and t - found[-1][1] <= APART_S:
            found[-1] = (found[-1][0], t, found[-1][2] + n)
        else:
            found.append((t, t, n))
    return found


def _when(first: float, last: float) -> str:
    return f"at {instant(first)}" if first == last else period(first, last)


def _cuts(row: FlowRow, name: str, cuts: pl.DataFrame, word: str, why: str) -> Sentence:
    times = cuts["time_s"].to_numpy()
    windows = [w for d in cuts["detail"] if (w := number_of(d, "cwnd_bytes")) is not None]
    many = word.replace("recovery", "recoveries") if word == "recovery" else f"{word}s"
    text = f"{name} had {counted(len(times), word, many)} {why}, {_when(float(times[0]), float(times[-1]))}"
    figures: dict[str, Any] = {"events": len(times)}
    if len(times) >= 3:
        gap = float(np.median(np.diff(times)))
        text += f", one each {span(gap)} in the median"
        figures["interval_p50_s"] = gap
    if windows:
        least, middle, most = min(windows), int(np.median(windows)), max(windows)
        text += (
            f"; the window became {size(least)}"
            if least == most
            else f"; the window became {size(least)} to {size(most)}, {size(middle)} in the median"
        )
        figures["window_bytes"] = [least, middle, most]
    return Sentence("losses", f"{text}.", float(times[0]), float(times[-1]), row["id"], figures)


def _instants(times: Sequence[float]) -> str:
    named = [instant(t) for t in times[:MOST_NAMED]]
    if len(times) <= MOST_NAMED:
        return f"at {listed(named)}"
    return (
        f"at {', '.join(named)} and {len(times) - MOST_NAMED} more times until {instant(times[-1])}"
    )


def timeouts(row: FlowRow, name: str, events: pl.DataFrame) -> Iterator[Sentence]:
    """Describe timeouts, and of probes of a closed receiver window."""
    for kind, what in (
        ("timeout", "probe timeout" if row["transport"] == "quic" else "retransmission timeout"),
        ("window-probe", "probe of a closed receiver window"),
    ):
        times = events.filter(pl.col("kind") == kind)["time_s"].to_list()
        if times:
            words = "probes of a closed receiver window" if kind == "window-probe" else ""
            text = f"{name} had {counted(len(times), what, words)}, {_instants(times)}."
            yield Sentence("timeouts", text, times[0], times[-1], row["id"], {kind: len(times)})


# --- limits


def limits(run: Run, row: FlowRow, name: str) -> Iterator[Sentence]:
    """Say in which share of the samples the congestion window was full, and when nothing was in flight."""
    opened = row["start_s"] + (row["handshake_s"] or 0.0)
    samples = run.flow_samples.filter(
        pl.col("flow") == row["id"], pl.col("time_s") > opened, pl.col("time_s") < row["end_s"]
    ).sort("time_s")
    if samples.height < IDLE_SAMPLES or not samples["congestion_window_bytes"].max():
        return
    made = next((f for f in run.setup.flows if f.label == row["label"]), None)
    options = {} if made is None else dict(made.transport.get(row["transport"], {}))
    mss = bytes_of(options.get("mss")) or 1500
    buffer = bytes_of(options.get("receive_buffer"))
    flight = samples["bytes_in_flight"].to_numpy()
    window = samples["congestion_window_bytes"].to_numpy()
    idle = flight == 0
    full = ~idle & (flight + mss >= window)
    held = ~idle & ~full & (flight + mss >= (buffer or np.inf))
    below = ~(idle | full | held)
    n = samples.height
    parts = [f"its congestion window was full in {percent(full.sum() / n)} of {n} samples"]
    if held.any():
        parts.append(f"the receiver's window of {size(buffer or 0)} in {percent(held.sum() / n)}")
    if below.any():
        why = (
            "it was paced, or in recovery"
            if made is not None and made.endless
            else "the application had no more to send, or it was paced"
        )
        parts.append(f"in {percent(below.sum() / n)} less was in flight ({why})")
    if idle.any():
        parts.append(f"in {percent(idle.sum() / n)} nothing was in flight")
    figures: dict[str, Any] = {
        "samples": n, "full_share": full.sum() / n, "receiver_share": held.sum() / n,
        "below_share": below.sum() / n, "idle_share": idle.sum() / n,
    }  # fmt: skip
    figures = {k: v if k == "samples" else float(v) for k, v in figures.items()}
    text = f"{name}: {'; '.join(parts)}."
    times = samples["time_s"].to_numpy()
    yield Sentence("limits", text, float(times[0]), float(times[-1]), row["id"], figures)
    yield from _idle(row, name, times, idle)


def _idle(row: FlowRow, name: str, times: np.ndarray, idle: np.ndarray) -> Iterator[Sentence]:
    """Describe the longest parts in which all samples had nothing in flight."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], idle.astype(int), [0]))))
    spans = [
        (float(times[a]), float(times[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)
        if b - a >= IDLE_SAMPLES
    ]  # fmt: skip
    if not spans:
        return
    longest = sorted(sorted(spans, key=lambda s: s[0] - s[1])[:MOST_BURSTS])
    more = f", and {counted(len(spans) - len(longest), 'more time')}" if len(spans) > len(longest) else ""  # fmt: skip
    text = f"{name} had nothing in flight {listed(period(*s) for s in longest)}{more}."
    figures = {"idle": [{"from_s": a, "until_s": b} for a, b in longest], "times": len(spans)}
    yield Sentence("limits", text, spans[0][0], spans[-1][1], row["id"], figures)


def bytes_of(text: object) -> float | None:
    """Read a size as results write it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMG]?i?B)", str(text or ""))
    return None if found is None else float(found[1]) * UNITS[found[2]]


# --- several paths


def paths(run: Run, flow: int, name: str, events: pl.DataFrame) -> Iterator[Sentence]:
    """Describe when each subflow was opened and closed, how it left slow start, and what each path carried."""
    for s in with_path(run.subflows.filter(pl.col("flow") == flow)).iter_rows(named=True):
        called = f"{name} on {s['path']} (subflow {s['subflow']})"
        text = f"{called} was open from {instant(s['opened_s'])}"
        text += f" to {instant(s['closed_s'])}" if s["closed_s"] is not None else " on"
        keys = ("subflow", "opened_s", "closed_s", "delivered_bytes")
        text += f" and delivered {size(s['delivered_bytes'])}."
        figures = {k: s[k] for k in keys}
        yield Sentence("paths", text, s["opened_s"], s["closed_s"], flow, figures)
        if run.subflow_samples.is_empty():
            continue
        own = (pl.col("flow") == flow) & (pl.col("subflow") == s["subflow"])
        samples = run.subflow_samples.filter(own).sort("time_s")
        mine = events.filter(pl.col("detail").str.contains(rf"^subflow={s['subflow']}\b"))
        seen = list(samples.select("time_s", "phase").iter_rows())
        left = ended_by_event(leaving(seen, s["opened_s"], exact=False), mine)
        if left is not None and (seen[0][1] in STARTING or AFTER_START.match(left.next)):
            first = seen[0][0] if seen[0][1] not in STARTING else None
            yield _left(flow, called, left, samples, first=first, events=run.setup.record.events)
    shares = path_shares(run.subflows.filter(pl.col("flow") == flow))
    carried = [
        f"{path} {percent(share)}"
        for path, share in shares.select("path", "share").iter_rows()
        if share is not None
    ]
    if len(carried) > 1:
        text = f"Of what reached the receiver of {name}, {listed(carried)}, copies included."
        figures = {"shares": dict(shares.select("path", "share").iter_rows())}
        yield Sentence("paths", text, flow=flow, figures=figures)
