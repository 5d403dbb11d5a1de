"""What a long run has done so far, to be drawn while it goes on.

The engine gives results at the end of a run. But the same scenario does the same again: so beside a run that takes
long there is another, which is stopped early, and whose results are the beginning of those to come.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from gargalo.exploring.view import pictures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gargalo.exploring.view import Part
    from gargalo.results import Run
    from gargalo.running import Progress

AFTER_S = 0.5
"""Wall time of a run before there is a glimpse of it; each glimpse runs for twice as long as the one before."""
MOST_DONE = 0.3
"""Share of a run from which on it is waited for: its end is about as near as a glimpse of it."""


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
        self._telling = threading.Lock()
        self._ended = False
        self._thread: threading.Thread | None = None

    def progress(self, now: Progress) -> None:
        """Begin with glimpses if the run takes long."""
        late = time.monotonic() - self._begun >= AFTER_S
        near = now.fraction > MOST_DONE
        if self._thread is None and now.phase == "running" and late and not near:
            self._thread = threading.Thread(target=self._look, args=(now.end_s,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Draw nothing from now on, and wait for what is being drawn."""
        with self._telling:
            self._ended = True
        if self._thread is not None:
            self._thread.join()

    def _look(self, end_s: float) -> None:
        longest = AFTER_S
        while not self._ended:
            begun = time.monotonic()

            def more(_: Progress, begun: float = begun, longest: float = longest) -> bool:
                return not self._ended and time.monotonic() - begun < longest

            try:
                seen = self._run(more)
            except Exception:
                return
            if not seen.interrupted:
                return
            made = list(pictures(seen, self._panels))
            made[0] = {**made[0], "partial": True, "duration_s": end_s}
            with self._telling:
                for part in [] if self._ended else made:
                    self._tell(part)
            longest *= 2
