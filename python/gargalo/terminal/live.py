"""What goes on, drawn in the terminal while it does: lines of bars, and the flows of a run in real time."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from gargalo.running import Progress, Sample

BARS = " ▁▂▃▄▅▆▇█"
HISTORY = 60
"""Bars of a line, a tenth of a second each."""
MOST_FLOWS = 20
"""Rows of a table of flows."""


def bars(values: Sequence[float], top: float) -> str:
    """Draw a line of bars."""
    last = len(BARS) - 1
    return "".join(BARS[min(last, round(v / top * last)) if top > 0 else 0] for v in values)


@contextmanager
def flows_of(names: Mapping[int, str]) -> Iterator[Callable[[Progress], None]]:
    """Draw goodput, round trip and window of the flows of these numbers while a run goes on, on standard error."""
    from rich.live import Live

    from gargalo.terminal.screen import Screen

    view = Flows(names)
    console = Screen(stderr=True, highlight=False)
    with Live(console=console, refresh_per_second=10, transient=False) as live:

        def tell(p: Progress) -> None:
            if p.phase == "running":
                view.add(p.now_s, p.samples)
                live.update(view.draw(console.width))

        yield tell


class Flows:
    """The last samples of the flows of a run."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.names = names
        self.time_s = 0.0
        self.latest: dict[int, Sample] = {}
        self.rates: dict[int, deque[float]] = {}

    def add(self, time_s: float, samples: Sequence[Sample]) -> None:
        """Add what was sampled since the last call."""
        self.time_s = time_s
        for s in samples:
            before = self.latest.get(s.flow)
            # Samples of a flow are an interval apart; its first has nothing before it.
            if before is not None and s.time_s > before.time_s:
                rate = 8 * (s.received_bytes - before.received_bytes) / (s.time_s - before.time_s)
                self.rates.setdefault(s.flow, deque(maxlen=HISTORY)).append(max(rate, 0.0))
            self.latest[s.flow] = s

    def draw(self, width: int) -> RenderableType:
        """Return a table with a row for each flow that was sampled."""
        from rich import box
        from rich.table import Table

        shown = max(8, min(HISTORY, width - 60))
        title = f"{self.time_s:.1f} s"
        table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", collapse_padding=True)
        table.add_column("flow", no_wrap=True)
        table.add_column("Mbit/s", justify="right")
        table.add_column("goodput", no_wrap=True)
        table.add_column("RTT ms", justify="right")
        table.add_column("window kB", justify="right")
        top = max((max(r) for r in self.rates.values() if r), default=0.0)
        for flow, s in list(self.latest.items())[:MOST_FLOWS]:
            rates = list(self.rates.get(flow, ()))[-shown:]
            table.add_row(
                self.names.get(flow, str(flow)),
                f"{rates[-1] / 1e6:.2f}" if rates else "",
                bars(rates, top),
                "" if s.srtt_s is None else f"{1e3 * s.srtt_s:.1f}",
                f"{s.congestion_window_bytes / 1e3:.0f}",
            )
        if len(self.latest) > MOST_FLOWS:
            table.caption = f"and {len(self.latest) - MOST_FLOWS} more"
        return table
