"""What window-based congestion controls share: slow start, reductions, undo, restart after idle.

A class derived from `WindowBased` says how its window grows (`increase`) and how far it falls
(`decrease`); everything else behaves, to the byte, as in the built-in algorithms.

>>> @gargalo.congestion("gentle")
... class Gentle(gargalo.WindowBased):
...     def increase(self, acked, ack, path):
...         self.grow(0.5 * self.mss * acked / self.window)
...
...     def decrease(self, event, path):
...         return 0.75 * self.window
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from gargalo.controller import Controller

if TYPE_CHECKING:
    from gargalo._core import Acked, Congestion, Init, Path, Sent, Spurious

MAX_WINDOW = 1 << 40
"""The largest window, in bytes."""

_OWN = {"mss", "window", "threshold", "_fraction", "_after_timeout", "_recovering", "_saved"}


class WindowBased(Controller):
    """A congestion control that is a window: define `increase` and `decrease`.

    Attributes:
        window: The congestion window in bytes.
        threshold: The slow-start threshold in bytes; None while infinite.
        mss: The maximum segment size in bytes.
        abc_limit: Most segments of slow-start growth per acknowledgement (RFC 3465 §2.2).

    """

    abc_limit = 2

    def __init__(self, init: Init) -> None:
        """In slow start, with the transport's initial window."""
        self.mss: int = init.mss
        self.window: int = max(init.initial_window, init.mss)
        self.threshold: int | None = None
        self._fraction = 0.0
        self._after_timeout = False
        self._recovering = False
        # What an undo restores: cwnd, ssthresh, whether after a timeout, the subclass's state.
        self._saved: tuple[int, int | None, bool, dict[str, Any]] | None = None

    # --- what a subclass decides

    def increase(self, acked: int, ack: Acked, path: Path) -> None:
        """Congestion avoidance: call `grow` for `acked` bytes that slow start has left over.

        Only called while the window limits the sender, and outside of recovery.
        """
        raise NotImplementedError

    def decrease(self, event: Congestion, path: Path) -> float:
        """Return the new slow-start threshold in bytes; the window falls to it."""
        raise NotImplementedError

    # --- what it may use

    def grow(self, amount: float) -> None:
        """Grow the window by some bytes; fractions add up."""
        total = self._fraction + min(max(amount, 0.0), float(MAX_WINDOW))
        whole = int(total)
        self._fraction = total - whole
        self.set_window(self.window + whole)

    def set_window(self, window: float) -> None:
        """Set the window, at least one segment."""
        self.window = max(min(int(window), MAX_WINDOW), self.mss)

    def in_slow_start(self) -> bool:
        """Return whether slow start is in force (RFC 5681 §3.1)."""
        return self.threshold is None or self.window < self.threshold

    def leave_slow_start(self) -> None:
        """Go on with congestion avoidance from the present window."""
        self.threshold = self.window
        self._after_timeout = False
        self._fraction = 0.0

    def flight_size(self, event: Congestion) -> int:
        """Return what RFC 5681 equation 4 halves: bytes in flight, but no more than the window."""
        return min(event.in_flight, self.window)

    # --- what is the same for all

    def on_ack(self, ack: Acked, path: Path) -> None:
        """Grow: in slow start as RFC 5681 and RFC 3465 say, then by `increase`."""
        if ack.in_recovery or not ack.cwnd_limited:
            return
        acked: int = ack.acknowledged
        if self.in_slow_start():
            limit = 1 if self._after_timeout else self.abc_limit
            growth = min(acked, self.mss * limit)
            room = None if self.threshold is None else self.threshold - self.window
            if room is None or growth < room:
                self.set_window(self.window + growth)
                return
            self.set_window(self.window + room)
            self._after_timeout = False
            acked = growth - room
        if acked:
            self.increase(acked, ack, path)

    def on_congestion(self, event: Congestion, path: Path) -> None:
        """Shrink to what `decrease` returns; after a timeout to one segment."""
        timeout = event.cause == "timeout"
        repeated = timeout and event.consecutive > 1
        if event.cause == "ecn":
            self._saved = None  # a mark cannot be spurious
        elif not repeated:
            state = {k: v for k, v in self.__dict__.items() if k not in _OWN}
            self._saved = (self.window, self.threshold, timeout, copy.deepcopy(state))
        target = max(0, min(int(self.decrease(event, path) + 0.5), MAX_WINDOW))
        if timeout:
            if not repeated:
                self.threshold = max(target, 2 * self.mss)
            self.set_window(self.mss)
            self._after_timeout = True
            self._recovering = False
        else:
            self.threshold = max(target, 2 * self.mss)
            floor = target if event.cause == "ecn" else self.threshold
            self.set_window(min(floor, self.window))
            self._recovering = True
        self._fraction = 0.0

    def on_spurious(self, event: Spurious, path: Path) -> None:
        """Restore what the latest congestion event changed."""
        if self._saved is None or event.cause == "ecn":
            return
        window, threshold, timeout, state = self._saved
        if timeout != (event.cause == "timeout"):
            return
        self._saved = None
        self._recovering = False
        self._after_timeout = False
        if self.window < window:
            self.__dict__.update(state)
            self.window, self.threshold = window, threshold

    def on_recovered(self, now: float, path: Path) -> None:
        """Recovery has ended."""
        self._recovering = False

    def on_send(self, sent: Sent, path: Path) -> None:
        """Fall to the restart window after idle times, if the transport says so (RFC 5681 §4.1)."""
        restart = sent.restart_window
        if (
            restart is not None
            and sent.idle is not None
            and sent.rto is not None
            and sent.idle > sent.rto
            and restart < self.window
        ):
            self.set_window(restart)
            self._fraction = 0.0

    def on_established(self, window: int, path: Path) -> None:
        """Take the initial window that the handshake agreed on."""
        is_starting = self.in_slow_start()
        self.on_mss(path)
        self.set_window(window)
        if not is_starting:
            self.leave_slow_start()

    def on_mss(self, path: Path) -> None:
        """The window keeps its bytes."""
        self.mss = path.mss
        self.set_window(self.window)

    def cwnd(self) -> float:
        """Return the window."""
        return self.window

    def ssthresh(self) -> float | None:
        """Return the threshold."""
        return self.threshold

    def phase(self) -> str:
        """Return `slow-start`, `congestion-avoidance` or `recovery`."""
        if self._recovering:
            return "recovery"
        return "slow-start" if self.in_slow_start() else "congestion-avoidance"
