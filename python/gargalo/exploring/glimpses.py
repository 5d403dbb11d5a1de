"""What a long run has done so far, to be drawn while it goes on.

The engine gives results at the end of a run. But the same scenario does the same again: so beside a run that takes
long there is another, which is stopped early, and whose results are the beginning of those to come.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

from gargalo.exploring.view import pictures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.exploring.view import Part
    from gargalo.results import Run
    from gargalo.running import Progress

LONG_S = 0.09
"""A run that will take longer is drawn before it ends."""
FIRST_S = 0.03
"""How long the first glimpse runs; each further one runs for twice as long as the one before."""
WORTH = 2.5
"""A glimpse begins only if the run itself will take so many times as long as it."""


class Glimpses:
    """Draws the beginning of a run that goes on.

    Args:
        run: Runs the scenario; its argument is called with the progress, and ends the run by returning False.
        panels: What to draw, as `view` takes it.
        tell: Takes the parts of a picture.

    """

    def __init__(
        self,
        run: Callable[[Callable[[Progress], bool]], Run],
        panels: Sequence[str] | None,
        tell: Callable[[Part], None],
    ) -> None:
        self._run, self._panels, self._tell = run, panels, tell
        self._begun = time.monotonic()
        self._ends = math.inf
        self._telling = threading.Lock()
        self._ended = False
        self._thread: threading.Thread | None = None

    def progress(self, now: Progress) -> None:
        """Begin with glimpses if the run takes long."""
        if now.phase != "running" or now.fraction <= 0.0:
            return
        whole = (time.monotonic() - self._begun) / now.fraction
        self._ends = self._begun + whole
        if self._thread is None and whole > LONG_S and self._is_worth(FIRST_S):
            self._thread = threading.Thread(target=self._look, args=(now.end_s,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Draw nothing from now on, and wait for what is being drawn."""
        with self._telling:
            self._ended = True
        if self._thread is not None:
            self._thread.join()

    def _is_worth(self, longest: float) -> bool:
        """Whether the run will go on for much longer than a glimpse, which takes processors from it."""
        return self._ends - time.monotonic() >= WORTH * longest

    def _look(self, end_s: float) -> None:
        longest = FIRST_S
        while not self._ended and self._is_worth(longest):
            begun = time.monotonic()

            def more(_: Progress, begun: float = begun, longest: float = longest) -> bool:
                return not self._ended and time.monotonic() - begun < longest

            try:
                seen = self._run(more)
            except Exception:
                return
            if not seen.interrupted:
                return
            for part in pictures(seen, self._panels):
                if part["part"] == "about":
                    part = {**part, "partial": True, "duration_s": end_s}
                with self._telling:
                    if self._ended:
                        return
                    self._tell(part)
            longest *= 2
