"""A scheduler and a path manager of one's own.

gargalo run examples/mptcp.toml --plugin examples/mptcp_scheduler.py \
    --set 'flows.0.transport.mptcp.scheduler={ patient = { ratio = 2 } }'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gargalo

if TYPE_CHECKING:
    from collections.abc import Iterator


@gargalo.scheduler("patient")
class Patient(gargalo.Scheduler):
    """Leaves out paths whose round trip is more than `ratio` times that of the fastest.

    What is lost in rate is won in order: less data waits at the receiver for data before it.
    """

    def __init__(self, init: gargalo.ConnectionInit, ratio: float = 2.0) -> None:
        self.ratio = ratio

    def select(self, context: gargalo.Context) -> gargalo.PathView | None:
        least = min((p.latency for p in context.candidates()), default=0.0)
        near = [p for p in context.ready() if p.latency <= self.ratio * least]
        return min(near, key=lambda p: p.latency, default=None)


@gargalo.path_manager("at-most")
class AtMost(gargalo.PathManager):
    """Opens a subflow between every two addresses, until there are `subflows`."""

    def __init__(self, init: gargalo.ConnectionInit, subflows: float = 2.0) -> None:
        self.most = int(subflows)

    def missing(self, view: gargalo.View) -> Iterator[gargalo.Open]:
        room = self.most - len(view.subflows)
        for ours, theirs in view.pairs() if view.is_client else []:
            if room > 0 and view.count(ours.id, theirs.id) == 0:
                room -= 1
                yield gargalo.Open(ours.id, theirs.id)
