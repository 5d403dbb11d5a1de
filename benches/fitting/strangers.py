"""Two congestion controls that behave unlike all built-in ones: of their flows the answer is "unknown".

gargalo identify FILE
gargalo identify FILE --plugin benches/fitting/strangers.py     # now they are known
"""

from __future__ import annotations

import math

import gargalo


@gargalo.congestion("pendulum")
class Pendulum(gargalo.Controller):
    """A window that swings between a quarter and all of what was ever delivered in a round trip, whatever is lost."""

    def __init__(self, init: gargalo.Init, period: float = 1.7) -> None:
        """Begin with the initial window."""
        self.window = float(init.initial_window)
        self.most = 4 * self.window
        self.period = period

    def on_ack(self, ack: gargalo.Acked, path: gargalo.Path) -> None:
        """Swing."""
        if ack.sample is not None and path.min_rtt is not None:
            self.most = max(self.most, 1.5 * ack.sample.delivery_rate / 8 * path.min_rtt)
        share = 0.625 + 0.375 * math.sin(2 * math.pi * ack.now / self.period)
        self.window = max(2.0 * path.mss, share * self.most)

    def on_congestion(self, event: gargalo.Congestion, path: gargalo.Path) -> None:
        """Take no notice."""

    def cwnd(self) -> float:
        """Return the window."""
        return self.window


@gargalo.congestion("stairs")
class Stairs(gargalo.Controller):
    """A window that stays for a second, then grows by a third; after a loss it is a quarter."""

    def __init__(self, init: gargalo.Init, stay: float = 1.0) -> None:
        """Begin with the initial window."""
        self.window = float(init.initial_window)
        self.stay = stay
        self.since: float | None = None

    def on_ack(self, ack: gargalo.Acked, path: gargalo.Path) -> None:
        """Take a step when it is time."""
        if self.since is None:
            self.since = ack.now
        if ack.now - self.since >= self.stay:
            self.since = ack.now
            self.window *= 4 / 3

    def on_congestion(self, event: gargalo.Congestion, path: gargalo.Path) -> None:
        """Fall to the bottom of the stairs."""
        self.window = max(self.window / 4, 2.0 * path.mss)
        self.since = event.now

    def cwnd(self) -> float:
        """Return the window."""
        return self.window
