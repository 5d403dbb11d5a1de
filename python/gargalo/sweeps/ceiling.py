"""What the network of a run could have done at most: what it carries, how fast, how long its buffer holds packets."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from gargalo.quantities import si
from gargalo.results import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.results import Run

    Capacities = dict[str, dict[str, float]]

IN_ORDER = ("red", "codel", "pie", "step")
"""Queues with a `limit` that send packets in the order of their arrival, besides `droptail`."""
MOST_LINKS = 500
"""With more, none is computed."""
FEW = 100
"""Flows."""


def goodput_ceiling(run: Run) -> float | None:
    """Return the greatest rate at which the network can carry the data of all flows together, in bit/s.

    It is a maximum flow from the hosts that send to those that receive, whatever routes there are (Ford, Fulkerson,
    Canadian Journal of Mathematics 8, 1956); where a host does both, a sum of several. None: it is unlimited.
    """
    return _carried(run, _pairs(_flows(run)))


def _flows(run: Run) -> list[dict[str, Any]]:
    """Return the rows of flows, where they are few without the library of data frames."""
    if run.info.get("flows", FEW) < FEW:
        return run._rows("flows", ALL)
    return run.flows.select("from", "to", "completion_s", "delivered_bytes").to_dicts()


def _pairs(flows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((f["from"], f["to"]) for f in flows))


def _carried(run: Run, pairs: Iterable[tuple[str, ...]]) -> float | None:
    links = {(link["name"], link["direction"]): link["capacity_bps"] for link in run.links}
    if not links or len(run.setup.links) > MOST_LINKS:
        return None
    room: Capacities = {}
    for link in run.setup.links:
        for way, a, b in (("up", link.from_, link.to), ("down", link.to, link.from_)):
            capacity = links.get((link.name, way))
            _add(room, a, b, math.inf if capacity is None else float(capacity))
    total = 0.0
    for group in _apart(pairs):
        total += _most(room, {a for a, _ in group}, {b for _, b in group})
    return total if 0 < total < math.inf else None


def drain_time(run: Run) -> float | None:
    """Return how long a packet can wait at the bottleneck of a run (s): its full buffer, and the packet being sent.

    None: it is not known, since the rate varies, packets are not sent in the order of their arrival, or the buffer has
    no limit.
    """
    name, _, way = str(run.summary.get("bottleneck") or "").rpartition(" ")
    link = next((x for x in run.setup.links if x.name == name), None)
    if link is None:
        return None
    direction = link.up if way == "up" else link.down
    rate, mtu = direction.rate.constant_bps, direction.mtu_bytes
    if not rate or not mtu or direction.outages or direction.more:
        return None
    limit = _limit(direction.queue)
    if limit is None:
        return None
    amount, unit = limit
    packet_s = mtu * 8 / rate
    held_s = {"s": amount, "packets": amount * packet_s, "byte": amount * 8 / rate}.get(unit)
    return None if held_s is None else held_s + packet_s


def least_round_trip(run: Run) -> float | None:
    """Return the least propagation delay (s) from the sender of a flow to its receiver and back, on any route.

    None: it is not known, since jitter or reordering may shorten the delay of a packet.
    """
    links = run.setup.links
    ways = [way for link in links for way in (link.up, link.down)]
    if not links or len(links) > MOST_LINKS or any(w.jitter or w.reorder for w in ways):
        return None
    delays: Capacities = {}
    for link in links:
        for a, b, way in ((link.from_, link.to, link.up), (link.to, link.from_, link.down)):
            known = delays.setdefault(a, {})
            delays.setdefault(b, {})
            delay = min((s.delay_s for s in way.delay.steps), default=way.delay.constant_s or 0.0)
            known[b] = min(known.get(b, math.inf), delay)
    pairs = {pair for f in run.setup.flows for pair in f.pairs or ((f.from_, f.to),)}
    reached = {a: _shortest(delays, a) for pair in pairs for a in pair}
    least = min((reached[a].get(b, 0.0) + reached[b].get(a, 0.0) for a, b in pairs), default=0.0)
    return least or None


def least_completion(run: Run) -> float | None:
    """Return how long (s) the smallest of the completed transfers takes at all that the network can carry both ways.

    None: it is not known, since a rate varies or is unlimited, or not all completed flows have a row.
    """
    varies = (w.rate.steps or w.rate.trace for x in run.setup.links for w in (x.up, x.down))
    flows = _flows(run)
    done = [f for f in flows if f["completion_s"] is not None]
    if not done or len(done) != run.summary.get("completed_flows") or any(varies):
        return None
    pairs = _pairs(flows)
    carried = _carried(run, [*pairs, *((b, a) for a, b in pairs)])
    least = min((f["delivered_bytes"] for f in done if f["delivered_bytes"] is not None), default=0)
    return None if carried is None or not least else 8 * float(least) / carried


def _shortest(delays: Capacities, start: str) -> dict[str, float]:
    """Return the least delays from a node to all others (Dijkstra, Numerische Mathematik 1, 1959)."""
    found: dict[str, float] = {}
    waiting = [(0.0, start)]
    while waiting:
        delay, here = heappop(waiting)
        if here in found:
            continue
        found[here] = delay
        for there, more in delays.get(here, {}).items():
            heappush(waiting, (delay + more, there))
    return found


def _limit(queue: Any) -> tuple[float, str] | None:
    """Return the limit of a queue that sends packets in the order of their arrival, and its unit."""
    if not isinstance(queue, Mapping) or len(queue) != 1:
        return None
    ((kind, options),) = queue.items()
    if kind == "droptail":
        return si(options)
    if kind in IN_ORDER and isinstance(options, Mapping):
        return si(options.get("limit"))
    return None


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
