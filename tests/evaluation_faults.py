"""Congestion controls with one fault each, and Reno without any; `gargalo evaluate` must name the fault."""

from __future__ import annotations

import gargalo


class Reno(gargalo.WindowBased):
    """Reno (RFC 5681, RFC 3465), the run of the built-in one to the byte."""

    def increase(self, acked, ack, path):
        self.grow(float(self.mss) * float(acked) / float(self.window))

    def decrease(self, event, path):
        return 0.5 * self.flight_size(event)


@gargalo.congestion("py-reno")
class PythonReno(Reno):
    """Nothing wrong."""


@gargalo.congestion("deaf")
class NeverBacksOff(gargalo.Controller):
    """Grows by what is acknowledged and takes no notice of loss, marks or timeouts."""

    def __init__(self, init):
        self.window = float(init.initial_window)

    def on_ack(self, ack, path):
        self.window = min(self.window + ack.bytes, 100.0 * path.mss)

    def on_congestion(self, event, path):
        pass

    def cwnd(self):
        return self.window

    def governs_recovery(self):
        return True


@gargalo.congestion("blind")
class IgnoresMarks(Reno):
    """Reno that answers loss and no mark."""

    def on_congestion(self, event, path):
        if event.cause != "ecn":
            super().on_congestion(event, path)


@gargalo.congestion("per-ack")
class CountsAcks(Reno):
    """Reno as RFC 2581 had it: so much for each acknowledgement, however little it acknowledges."""

    def increase(self, acked, ack, path):
        self.grow(float(self.mss) * float(self.mss) / float(self.window))


@gargalo.congestion("greedy")
class Starves(Reno):
    """As many Renos as would take everything: grows thirty times as fast and hardly falls."""

    def increase(self, acked, ack, path):
        self.grow(30.0 * self.mss * acked / self.window)

    def decrease(self, event, path):
        return 0.95 * self.flight_size(event)


@gargalo.congestion("settled")
class NeverProbesAgain(Reno):
    """Keeps the window that slow start found: never less after a loss, and never more."""

    def __init__(self, init):
        super().__init__(init)
        self.found = None

    def increase(self, acked, ack, path):
        if self.found is not None and self.window < self.found:
            self.grow(float(acked))

    def decrease(self, event, path):
        if self.found is None:
            self.found = self.flight_size(event) / 2
        return min(self.found, 0.5 * self.flight_size(event))


@gargalo.congestion("frail")
class CollapsesInLoss(Reno):
    """Takes each lost packet for a reason to pause: a tenth of its rate, and slowly more."""

    def __init__(self, init):
        super().__init__(init)
        self.rate = 1e9

    def on_loss(self, lost, path):
        self.rate = max(self.rate / 10, 2e3)

    def on_ack(self, ack, path):
        super().on_ack(ack, path)
        self.rate = min(self.rate * 1.02, 1e9)

    def pacing_rate(self):
        return self.rate
