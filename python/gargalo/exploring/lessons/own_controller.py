"""Your own congestion control. Change it, save it, and press "run again" in the page.

Times are seconds, amounts bytes. What else there is to use: docs/python.md, and help(gargalo.Controller).
"""

import gargalo


@gargalo.congestion("own")
class Own(gargalo.Controller):
    def __init__(self, init, gain=1.0, keep=0.5):
        self.window, self.gain, self.keep = float(init.initial_window), gain, keep

    def on_ack(self, ack, path):
        if not ack.in_recovery:
            self.window += self.gain * path.mss * ack.acknowledged / self.window

    def on_congestion(self, event, path):
        self.window = max(self.window * self.keep, 2 * path.mss)

    def cwnd(self):
        return self.window


# An answer to the last question. Read it after you have tried your own.
@gargalo.congestion("own-delay")
class OwnDelay(Own):
    def on_ack(self, ack, path):
        step = path.mss * ack.acknowledged / self.window
        if path.srtt > 1.25 * path.min_rtt:
            step = -step
        self.window = max(self.window + step, 2 * path.mss)
