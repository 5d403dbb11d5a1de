"""What a recording shows of a path: for each packet of a flow when it was sent, and when it was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gargalo.recording import concluded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.results import Run

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

LEAST_PACKETS = 50
"""Fewer tell nothing of a path."""
DELAYS = 0.1
"""A receiver that acknowledges this share of the packets in pairs delays acknowledgements."""
LEAST_TIMER_S = 0.02
"""Least time for which an acknowledgement is delayed (Linux: 40 ms)."""
CLOCK_S = 2e-5
"""Accuracy of times of captures."""
CONTROL_BYTES = 60
"""Size of a SYN with its usual options, IP header included."""


class FitError(ValueError):
    """A recording from which no path can be told: why."""


@dataclass(frozen=True)
class Observed:
    """A flow, by its packets in the order in which they were sent; times are since the first of them, in seconds."""

    label: str
    transport: str
    """tcp or quic."""
    sent_s: Floats
    acknowledged_s: Floats
    """NaN: not before its data was sent again, or not at all."""
    size_bytes: Floats
    payload_bytes: Floats
    again: Bools
    unneeded: Bools
    """Packets sent again although they had arrived; when these arrived themselves is not known."""
    handshake_s: float | None
    """Round trip of the handshake."""
    first_s: float
    """When the flow began, in the time of the recording."""
    application_limited: float
    """Share of the time in which the application had no data."""
    receiver_limited: float
    """Share of the time in which the receiver's window was full."""

    @classmethod
    def of(cls, recording: Run, flow: int | None = None) -> Observed:
        """Take a flow of a recording that was read with its packets; by default the one with most of them.

        Raises:
            FitError: It has none, or the recording was not made where it was sent.

        """
        rows = recording.packets
        if rows.is_empty():
            msg = (
                "no packets of a TCP flow or of a QUIC connection whose keys are known: a path is fitted to a capture "
                "of one"
            )
            raise FitError(msg)
        if flow is None:
            counts = rows["flow"].value_counts(sort=True)
            flow = int(counts["flow"][0])
        rows = rows.filter(rows["flow"] == flow)
        told = {f["id"]: f for f in concluded(recording)}.get(flow, {})
        row = next((r for r in recording.flows.to_dicts() if r["id"] == flow), None)
        if row is None or rows.height < LEAST_PACKETS:
            msg = f"flow {flow} has {rows.height} packets with data; at least {LEAST_PACKETS} are needed"
            raise FitError(msg)
        if row["subflows"]:
            msg = f"flow {flow} has several paths; fit a capture of one of its subflows"
            raise FitError(msg)
        if told.get("captured_at") not in ("sender", "both", None):
            msg = (
                f"flow {flow} was captured at its {told['captured_at']}: how long its packets took is seen at the "
                "sender only; capture there"
            )
            raise FitError(msg)
        sent = rows["time_s"].to_numpy().astype(float)
        order = np.argsort(sent, kind="stable")
        rows, sent = rows[order], sent[order]
        acknowledged, unneeded = by_transmission(
            sent,
            rows["acknowledged_s"].to_numpy().astype(float),
            rows["again"].to_numpy(),
            rows["offset_bytes"].to_numpy(),
        )
        spent = told.get("limited_by") or {}
        all_of_it = sum(v for v in spent.values() if v) or 1.0
        return cls(
            label=str(row["label"]),
            transport=str(row["transport"]),
            sent_s=sent - sent[0],
            acknowledged_s=acknowledged - sent[0],
            size_bytes=rows["size_bytes"].to_numpy().astype(float),
            payload_bytes=rows["payload_bytes"].to_numpy().astype(float),
            again=rows["again"].to_numpy(),
            unneeded=unneeded,
            # That of QUIC has the time of cryptography, and ends at once if early data was sent.
            handshake_s=row["handshake_s"] if row["transport"] == "tcp" else None,
            first_s=float(sent[0]),
            application_limited=(spent.get("application_s") or 0.0) / all_of_it,
            receiver_limited=(spent.get("receiver_s") or 0.0) / all_of_it,
        )

    def until(self, end_s: float) -> Observed:
        """Return what was seen of the packets sent before an instant."""
        return self._part(self.sent_s < end_s)

    def first(self, packets: int) -> Observed:
        """Return what was seen of the first packets, at most so many."""
        return self if len(self.sent_s) <= packets else self.until(float(self.sent_s[packets]))

    def since(self, begin_s: float) -> Observed:
        """Return what was seen of the packets sent from an instant on, which becomes time 0."""
        part = self._part(self.sent_s >= begin_s)
        return replace(
            part,
            sent_s=part.sent_s - begin_s,
            acknowledged_s=part.acknowledged_s - begin_s,
            first_s=part.first_s + begin_s,
        )

    def _part(self, which: Bools) -> Observed:
        return replace(
            self,
            sent_s=self.sent_s[which],
            acknowledged_s=self.acknowledged_s[which],
            size_bytes=self.size_bytes[which],
            payload_bytes=self.payload_bytes[which],
            again=self.again[which],
            unneeded=self.unneeded[which],
        )

    @cached_property
    def duration_s(self) -> float:
        """From the first packet to the last acknowledgement."""
        return float(np.nanmax(np.append(self.acknowledged_s, self.sent_s[-1])))

    @cached_property
    def lost(self) -> Bools:
        """Packets that were sent again before anything acknowledged them; those on their way at the end are not."""
        last = np.nanmax(self.acknowledged_s) if np.isfinite(self.acknowledged_s).any() else 0.0
        missing = ~np.isfinite(self.acknowledged_s) & ~self.unneeded
        # What was sent within the last round trips has not been answered yet.
        slowest = np.nanmax(self.acknowledged_s - self.sent_s)
        return missing & (self.sent_s < last - slowest)

    @cached_property
    def acks(self) -> Acks:
        """The acknowledgements of data."""
        known = np.isfinite(self.acknowledged_s)
        times, group = np.unique(self.acknowledged_s[known], return_inverse=True)
        delivered: Floats = np.bincount(
            group, weights=self.size_bytes[known], minlength=len(times)
        ).astype(float)
        packets = np.bincount(group, minlength=len(times))
        # The packet that was sent last is the one that made the receiver acknowledge.
        newest = np.zeros(len(times), dtype=np.int64)
        which = np.flatnonzero(known)
        np.maximum.at(newest, group, which)
        rtt = times - self.sent_s[newest]
        rtt[_late(times, packets)] = np.nan
        return Acks(times, delivered, packets, newest, rtt)

    def figures(self, begin_s: float = 0.0, end_s: float | None = None) -> Figures:
        """Return what is compared of a flow, of what was sent in a part of the time."""
        end_s = self.duration_s if end_s is None else end_s
        sent = (self.sent_s >= begin_s) & (self.sent_s < end_s)
        answered = np.isfinite(self.acknowledged_s)
        then = answered & (self.acknowledged_s >= begin_s) & (self.acknowledged_s < end_s)
        acks = self.acks
        rtt = acks.rtt_s[(acks.time_s >= begin_s) & (acks.time_s < end_s) & np.isfinite(acks.rtt_s)]
        delivered = float(self.payload_bytes[then].sum())
        # By Little's law: what was acknowledged was on its way for so long.
        on_the_way = float(
            np.sum(self.payload_bytes[then] * (self.acknowledged_s - self.sent_s)[then])
        )
        return Figures(
            goodput_bps=delivered * 8 / max(end_s - begin_s, 1e-9),
            rtt_p50_s=float(np.quantile(rtt, 0.5)) if len(rtt) else None,
            rtt_p95_s=float(np.quantile(rtt, 0.95)) if len(rtt) else None,
            flight_bytes=on_the_way / max(end_s - begin_s, 1e-9),
            loss=float(self.lost[sent].mean()) if sent.any() else None,
        )


@dataclass(frozen=True)
class Figures:
    """What is compared of two flows; None: not known."""

    goodput_bps: float
    rtt_p50_s: float | None
    rtt_p95_s: float | None
    flight_bytes: float
    """Mean of what was on its way."""
    loss: float | None
    """Share of the packets that were lost."""


@dataclass(frozen=True)
class Acks:
    """Instants at which data was acknowledged that had not been before."""

    time_s: Floats
    delivered_bytes: Floats
    """Packets acknowledged then, with their headers."""
    packets: NDArray[np.int64]
    newest: NDArray[np.int64]
    """Number of the packet sent last among those."""
    rtt_s: Floats
    """Its round trip; NaN if a timer of the receiver was waited for, or which transmission arrived is not known."""


def by_transmission(
    sent: Floats, acknowledged: Floats, again: Bools, offset: NDArray[np.int64]
) -> tuple[Floats, Bools]:
    """Return when each transmission was acknowledged, and which were sent again although they had arrived.

    What is acknowledged sooner than any packet that was sent once had arrived before it was sent again.
    """
    acknowledged, took = acknowledged.copy(), acknowledged - sent
    once = took[np.isfinite(took) & ~again]
    unneeded = again & (took < np.min(once, initial=np.inf))
    order = np.argsort(offset, kind="stable")
    before, after = order[:-1], order[1:]
    which = (offset[before] == offset[after]) & unneeded[after] & ~np.isfinite(acknowledged[before])
    acknowledged[before[which]] = acknowledged[after[which]]
    acknowledged[unneeded] = np.nan
    return acknowledged, unneeded


def _late(times: Floats, packets: NDArray[np.int64]) -> Bools:
    """Tell which acknowledgements waited for a second packet that did not come (RFC 9293, section 3.8.6.3)."""
    if np.mean(packets == 2) < DELAYS:
        return np.zeros(len(times), dtype=bool)
    gap = np.diff(times, prepend=times[:1])
    pair = float(np.median(gap[packets == 2])) if (packets == 2).any() else 0.0
    late: Bools = (packets == 1) & (gap > max(LEAST_TIMER_S, 1.25 * pair))
    return late
