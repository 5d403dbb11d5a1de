"""Congestion controls written in Python.

A controller is told what happens on a path and answers with numbers: a window, and if it wants a
slow-start threshold and a pacing rate. The transport does the rest: round-trip times, bytes in
flight, loss detection, recovery epochs, proportional rate reduction and delivery-rate samples.
Times are seconds (floats, virtual), amounts bytes, rates bit/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from gargalo._core import (
    Acked,
    Congestion,
    Established,
    Init,
    Lost,
    Path,
    RateSample,
    Sent,
    Sibling,
    Spurious,
)
from gargalo.plugins.registry import base, register

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Acked",
    "Congestion",
    "Controller",
    "Established",
    "Init",
    "Lost",
    "Path",
    "RateSample",
    "Sent",
    "Sibling",
    "Spurious",
    "congestion",
]


@base("congestion")
class Controller:
    """Base class of congestion controls; one instance per path.

    `on_ack`, `on_congestion` and `cwnd` must be defined, the rest may be. Only methods that a class
    defines are called, so that what is not needed costs nothing. The records that a method is given
    (`ack`, `path`, …) do not change, and may be kept: they are then what they were at that time.

    Calls come in the order of time. Per incoming acknowledgement the transport first reports each
    newly lost segment (`on_loss`), then a congestion event if a new epoch begins (`on_congestion`:
    once per recovery epoch for losses, once per round trip for ECN marks, and every timeout), then
    the acknowledgement itself (`on_ack`). The numbers are read after each call.

    Take randomness from `random.Random(init.seed)` and time from the events: then a run repeats
    byte for byte.

    Attributes:
        ack_interval: "ack": `on_ack` is called for each acknowledgement. "round": once a round trip, for all
            acknowledgements since the last call. Then `count` of the record is their number; `bytes`,
            `acknowledged` and `ce_bytes` are sums; `in_flight_before` is that before the first, `least_rtt` the
            least round-trip sample; all else is that of the last. The call comes earlier where `in_recovery` or
            `cwnd_limited` changes, and before each other event but `on_send`. The window stays as it is between calls,
            so the run is another one than with a call for each.

    """

    ack_interval: Literal["ack", "round"] = "ack"

    def __init__(self, init: Init) -> None:
        """Start a path; `init` has `now`, `mss`, `initial_window` and `seed`."""

    def on_ack(self, ack: Acked, path: Path) -> None:
        """Take note of delivered data.

        While `ack.in_recovery` is set the transport paces out the reduction towards `cwnd()`
        (unless `governs_recovery()`); loss-based controllers do not grow then.
        """
        raise NotImplementedError

    def on_congestion(self, event: Congestion, path: Path) -> None:
        """Shrink the window; `event.cause` is "loss", "ecn" or "timeout"."""
        raise NotImplementedError

    def cwnd(self) -> float:
        """Return the congestion window in bytes; less than one segment counts as one."""
        raise NotImplementedError

    def on_send(self, sent: Sent, path: Path) -> None:
        """A packet is about to leave; after idle times `sent.idle` says how long."""

    def on_loss(self, lost: Lost, path: Path) -> None:
        """One segment was marked lost."""

    def on_spurious(self, event: Spurious, path: Path) -> None:
        """The latest congestion event was spurious: restore what it changed."""

    def on_recovered(self, now: float, path: Path) -> None:
        """Fast recovery, or loss recovery after a timeout, has ended."""

    def on_established(self, established: Established, path: Path) -> None:
        """The handshake of TCP is complete; the initial window has `established.window` bytes.

        `path` has the agreed segment size and the round trip of the handshake, if it was measured. Called once, before
        the first data; not for QUIC, which reports the acknowledgements of its handshake as any others. A class
        without this method gets `on_mss`.
        """
        self.on_mss(path)

    def on_mss(self, path: Path) -> None:
        """The maximum segment size changed to `path.mss`."""

    def ssthresh(self) -> float | None:
        """Return the slow-start threshold in bytes; None if it is infinite.

        A class without this method has none: it is in slow start while `phase()` says `slow-start` or
        `startup`.
        """
        return None

    def pacing_rate(self) -> float | None:
        """Return the pacing rate in bit/s; None lets the transport choose."""
        return None

    def send_quantum(self) -> float | None:
        """Return the most bytes to release in one burst when pacing; None: transport's choice."""
        return None

    def governs_recovery(self) -> bool:
        """Return whether `cwnd()` is obeyed during recovery as it is, without PRR."""
        return False

    def phase(self) -> str:
        """Return one word for plots: `slow-start`, `congestion-avoidance`, …."""
        return "congestion-avoidance"

    def gauges(self) -> dict[str, float]:
        """Return internal quantities worth plotting; the names end in their unit."""
        return {}


_C = TypeVar("_C", bound=type[Controller])


def congestion(name: str) -> Callable[[_C], _C]:
    """Register the decorated class under `name`."""

    def decorate(controller: _C) -> _C:
        register(name, controller)
        return controller

    return decorate
