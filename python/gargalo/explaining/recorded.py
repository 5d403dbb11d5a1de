"""What a recording of real traffic shows: how it was captured, and of each flow what was concluded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import polars as pl

from gargalo.explaining.model import Sentence, counted, instant, listed, size
from gargalo.summary import percent, rate, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gargalo.results import Run
    from gargalo.row_types import FlowRow

LIMITS = {
    "network_s": "the network, by the congestion window or pacing",
    "receiver_s": "the receiver's window",
    "application_s": "the application, which had nothing to send",
    "recovery_s": "the recovery of losses",
}
"""What limited a sender, by the key of the time for which it did."""
SPEAK_OF = 0.01
"""Limits with less than this share of a flow's time are left out."""


def whole(run: Run) -> Iterator[Sentence]:
    """Describe what was recorded, and what could not be read."""
    recording, s = run.info["recording"], run.summary
    files, end = recording["files"], float(run.info["duration_s"])
    packets = counted(int(recording["packets"]), "packet")
    text = (
        f"{run.info.get('name')}: {packets} of {counted(run.flows.height, 'flow')} "
        f"in {instant(end)}, from {counted(len(files), 'file')}."
    )
    yield Sentence("run", text, 0.0, end, figures={"packets": recording["packets"]})
    if s.get("goodput_bps") is not None and run.flows.height > 1:
        text = f"All flows together delivered {rate(s['goodput_bps'])}."
        yield Sentence("run", text, 0.0, end, figures={"goodput_bps": s["goodput_bps"]})
    for note in run.warnings:
        yield Sentence("missing", f"{note[0].upper()}{note[1:]}.")


def story(run: Run, flow: int, name: str) -> Iterator[Sentence]:
    """Describe a flow."""
    row = cast("FlowRow", run.flows.row(by_predicate=pl.col("id") == flow, named=True))
    told = run.info["recording"]["flows"][flow]
    yield _amount(row, told, name)
    for sentence in (
        _round_trips(row, told, name), _again(row, told, name), _lost(row, told, name), _limits(told, name),
    ):  # fmt: skip
        if sentence is not None:
            yield sentence
    yield from _rest(row, told, name)


def _amount(row: FlowRow, told: Mapping[str, Any], name: str) -> Sentence:
    took = row["end_s"] - row["start_s"]
    speed = "" if row["goodput_bps"] is None else f": {rate(row['goodput_bps'])}"
    ended = "" if row["completion_s"] is None else ", all of what it had"
    if row["delivered_bytes"] is None:
        text = f"{name} was seen for {span(took)}; what it delivered is not told."
        if told["datagrams"] is not None:
            text += f" It sent {counted(told['datagrams'], 'datagram')} with {size(told['datagram_bytes'])}."
    else:
        text = f"{name} delivered {size(row['delivered_bytes'])}{ended} in {span(took)}{speed}."
    if row["handshake_s"] is not None:
        text += f" Its handshake took {span(row['handshake_s'])}."
    figures = {"delivered_bytes": row["delivered_bytes"], "goodput_bps": row["goodput_bps"]}
    return Sentence("flow", text, row["start_s"], row["end_s"], row["id"], figures)


def _round_trips(row: FlowRow, told: Mapping[str, Any], name: str) -> Sentence | None:
    if row["rtt_min_s"] is None:
        return None
    middle, late = told["queueing_delay_p50_s"], told["queueing_delay_p95_s"]
    text = f"{name}: round trips took at least {span(row['rtt_min_s'])}"
    # Logs do not have each of them.
    if middle is not None and late is not None:
        text += (
            f"; above that, in queues and at the receiver, they took {span(middle)} in the median and {span(late)} "
            "in the 95th percentile"
        )
    text += "."
    figures = {"base_rtt_s": row["rtt_min_s"], "p50_s": middle, "p95_s": late}
    return Sentence("flow", text, flow=row["id"], figures=figures)


def _again(row: FlowRow, told: Mapping[str, Any], name: str) -> Sentence | None:
    again, sent = row["retransmitted_packets"], row["sent_packets"]
    if again is None or told["fast_retransmissions"] is None or not sent:
        return None
    if not again:
        text = f"{name} sent none of its {counted(sent, 'packet')} again."
        return Sentence("losses", text, flow=row["id"], figures={"retransmitted_packets": 0})
    kinds = {
        "by fast retransmission": told["fast_retransmissions"],
        "after timeouts": told["timeout_retransmissions"],
        "as tail loss probes": told["probe_retransmissions"],
    }
    parts = listed(f"{n} {how}" for how, n in kinds.items() if n)
    text = (
        f"{name} sent {again} of {counted(sent, 'packet')} again ({percent(again / sent)}): {parts}, "
        f"in {counted(told['loss_episodes'], 'episode')}."
    )
    if row["timeouts"]:
        text += f" There were {counted(row['timeouts'], 'timeout')}."
    if told["spurious_retransmissions"]:
        text += f" Of these, {told['spurious_retransmissions']} had arrived before, as the receiver reported."
    figures = {
        "retransmitted_packets": again, "timeouts": row["timeouts"], "episodes": told["loss_episodes"],
    }  # fmt: skip
    return Sentence("losses", text, flow=row["id"], figures=figures)


def _lost(row: FlowRow, told: Mapping[str, Any], name: str) -> Sentence | None:
    """Describe the losses of a QUIC connection, whose packets are never sent again: only their data is."""
    lost, sent, again = row["lost_packets"], row["sent_packets"], row["retransmitted_packets"]
    if told["probe_packets"] is None or again is None or not sent:
        return None
    figures = {"lost_packets": lost, "episodes": told["loss_episodes"], "timeouts": row["timeouts"]}
    if not lost:
        text = f"{name} lost none of its {counted(sent, 'packet')}."
        return Sentence("losses", text, flow=row["id"], figures=figures)
    text = (
        f"{name} lost {lost} of {counted(sent, 'packet')} ({percent(lost / sent)}), in "
        f"{counted(told['loss_episodes'], 'episode')}; {counted(again, 'packet')} had data "
        "that was sent before."
    )
    if told["spurious_losses"]:
        text += f" Of those taken for lost, {told['spurious_losses']} had arrived."
    if row["timeouts"]:
        text += f" There were {counted(row['timeouts'], 'probe timeout')}."
    return Sentence("losses", text, flow=row["id"], figures=figures)


def _limits(told: Mapping[str, Any], name: str) -> Sentence | None:
    limits = told["limited_by"]
    total = sum((limits or {}).values())
    if not total:
        return None
    order = sorted(LIMITS, key=lambda key: -limits[key])
    parts = [
        f"{LIMITS[key]} ({percent(limits[key] / total)} of the time)"
        for key in order
        if limits[key] >= SPEAK_OF * total
    ]
    text = f"{name} was limited by {listed(parts)}."
    return Sentence("limits", text, flow=int(told["id"]), figures=dict(limits))


def _rest(row: FlowRow, told: Mapping[str, Any], name: str) -> Iterator[Sentence]:
    """Describe bursts, stalls, acknowledgements and marks, where there is something to say."""
    flow = row["id"]
    most, usual = told["burst_max_packets"], told["burst_p95_packets"]
    if most is not None and most > 1:
        text = f"{name} sent up to {most} packets at once, and 95% of all in bursts of at most {usual}."
        figures = {"burst_max_packets": most, "burst_p95_packets": usual}
        yield Sentence("flow", text, flow=flow, figures=figures)
    if told["stalls"]:
        text = f"{name} stalled {counted(told['stalls'], 'time')}: data waited, and for long nothing was acknowledged."
        yield Sentence("flow", text, flow=flow, figures={"stalls": told["stalls"]})
    if told["ecn_capable_packets"]:
        text = f"{name} was ECN-capable; {counted(told['ecn_echoes'], 'acknowledgement')} echoed a mark."
        yield Sentence("flow", text, flow=flow, figures={"ecn_echoes": told["ecn_echoes"]})
    if told["reset"]:
        yield Sentence("flow", f"{name} ended with a reset.", row["end_s"], flow=flow)
