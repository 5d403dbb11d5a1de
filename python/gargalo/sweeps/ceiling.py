"""What the network of a run could have delivered at most: the bound of its goodput."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.results import Run

    Capacities = dict[str, dict[str, float]]

MOST_LINKS = 500
"""With more, none is computed."""


def goodput_ceiling(run: Run) -> float | None:
    """Return the greatest rate at which the network can carry the data of all flows together, in bit/s.

    It is a maximum flow from the hosts that send to those that receive, whatever routes there are (Ford, Fulkerson,
    Canadian Journal of Mathematics 8, 1956); where a host does both, a sum of several. None: it is unlimited.
    """
    links = {(link["name"], link["direction"]): link["capacity_bps"] for link in run.links}
    if not links or len(run.setup.links) > MOST_LINKS:
        return None
    room: Capacities = {}
    for link in run.setup.links:
        for way, a, b in (("up", link.from_, link.to), ("down", link.to, link.from_)):
            capacity = links.get((link.name, way))
            _add(room, a, b, math.inf if capacity is None else float(capacity))
    total = 0.0
    for pairs in _apart(run.flows.select("from", "to").unique(maintain_order=True).iter_rows()):
        total += _most(room, {a for a, _ in pairs}, {b for _, b in pairs})
    return total if 0 < total < math.inf else None


def _add(room: Capacities, a: str, b: str, capacity: float) -> None:
    ways = room.setdefault(a, {})
    ways[b] = ways.get(b, 0.0) + capacity
    room.setdefault(b, {})


def _apart(pairs: Iterable[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Divide senders and receivers into groups in which no host is both."""
    groups: list[list[tuple[str, ...]]] = []
    for a, b in pairs:
        fits = (g for g in groups if all(a != y and b != x for x, y in g))
        group = next(fits, None)
        if group is None:
            groups.append(group := [])
        group.append((a, b))
    return groups


def _most(capacities: Capacities, sources: set[str], sinks: set[str]) -> float:
    """Return the maximum flow from some nodes to others, by shortest paths (Edmonds, Karp, JACM 19(2), 1972)."""
    room = {a: dict(ways) for a, ways in capacities.items()}
    total = 0.0
    while path := _path(room, sources, sinks):
        least = min(room[a][b] for a, b in path)
        if least == math.inf:
            return math.inf
        total += least
        for a, b in path:
            room[a][b] -= least
            room[b][a] = room[b].get(a, 0.0) + least
    return total


def _path(room: Capacities, sources: set[str], sinks: set[str]) -> list[tuple[str, str]]:
    """Return the edges of a shortest path with room; empty if there is none."""
    reached: dict[str, str | None] = dict.fromkeys(sorted(sources & room.keys()))
    waiting = deque(reached)
    while waiting:
        here = waiting.popleft()
        if here in sinks:
            path = []
            before = reached[here]
            while before is not None:
                path.append((before, here))
                here, before = before, reached[before]
            return path
        for there, left in room[here].items():
            if left > 0 and there not in reached:
                reached[there] = here
                waiting.append(there)
    return []
