"""What window-based congestion controls share: slow start, reductions, undo, restart after idle.

A class derived from `WindowBased` says how its window grows (`increase` or `segments_per_round`) and how
far it falls (`decrease`); everything else is that of the built-in algorithms, without a call of Python.

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

from gargalo._core import Window
from gargalo.plugins.controller import Controller

if TYPE_CHECKING:
    from typing_extensions import Self

    from gargalo._core import Congestion, Established, Init, Path, Spurious


class WindowBased(Window, Controller):
    """A congestion control that is a window: define `increase` or `segments_per_round`, and `decrease`.

    `increase` is called for each acknowledgement in congestion avoidance, with `ack_interval = "round"` once a round
    trip. `segments_per_round` is called once a round trip, and the window grows with each acknowledgement
    nevertheless: where it is enough it costs nothing, and the window is the same at every instant.

    Attributes:
        window: The congestion window in whole bytes.
        threshold: The slow-start threshold in whole bytes; None while infinite.
        mss: The maximum segment size in bytes.
        abc_limit: Most segments of slow-start growth per acknowledgement (RFC 3465 §2.2).

    """

    abc_limit = 2

    def __init__(self, init: Init) -> None:
        """In slow start, with the transport's initial window."""
        self._begin(init.mss, init.initial_window)
        # What an undo restores of the subclass.
        self._before: dict[str, Any] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with its own window."""
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin._become(self)
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def decrease(self, event: Congestion, path: Path) -> float:
        """Return the new slow-start threshold in bytes; the window falls to it."""
        raise NotImplementedError

    def flight_size(self, event: Congestion) -> int:
        """Return what RFC 5681 equation 4 halves: bytes in flight, but no more than the window."""
        return min(event.in_flight, self.window)

    def on_congestion(self, event: Congestion, path: Path) -> None:
        """Shrink to what `decrease` returns; after a timeout to one segment."""
        if event.cause == "ecn":
            self._before = None  # a mark cannot be spurious
        elif event.consecutive <= 1:
            own = {k: v for k, v in self.__dict__.items() if k != "_before"}
            self._before = copy.deepcopy(own)
        self._reduce(event, self.decrease(event, path))

    def on_spurious(self, event: Spurious, path: Path) -> None:
        """Restore what the latest congestion event changed."""
        if self._undo(event) and self._before is not None:
            self.__dict__.update(self._before)
            self._before = None

    def on_established(self, established: Established, path: Path) -> None:
        """Take the initial window that the handshake agreed on."""
        is_starting = self.in_slow_start()
        self.on_mss(path)
        self.set_window(established.window)
        if not is_starting:
            self.leave_slow_start()

    def on_mss(self, path: Path) -> None:
        """The window keeps its bytes."""
        self._resize(path)
