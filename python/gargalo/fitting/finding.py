"""The path of a flow: an estimate and a search, for packets in order, and aggregated ones where it is nearer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gargalo.fitting.aggregation import aggregation_of
from gargalo.fitting.estimating import estimate
from gargalo.fitting.reordering import in_order, with_reordering
from gargalo.fitting.search import CLOSE, NEARER, refine

if TYPE_CHECKING:
    from gargalo.fitting.estimate import Estimate
    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path

PACKETS, SAME = 8, 0.005
"""What is the time of so many packets at the bottleneck, within this share, is its rate, and no aggregation."""
MUCH = 0.3
"""Share of a distance, for less than a packet's time and beside other traffic: its packets have such times as well."""


def find(seen: Observed) -> tuple[Estimate, float]:
    """Return the path that comes nearest to what was seen, and the distance that is left."""
    ordered = in_order(seen)
    found, distance = refine(ordered, estimate(ordered))
    if distance > CLOSE and (every := aggregation_of(ordered)):
        other, other_distance = refine(ordered, estimate(ordered, every))
        if other_distance < _share(seen, found.path, other.path) * distance:
            found, distance = other, other_distance
    return with_reordering(found, seen, ordered), distance


def _share(seen: Observed, plain: Path, aggregated: Path) -> float:
    """Return the share of the distance of a plain path below which packets are aggregated, as on another one."""
    packet_s = float(np.median(seen.size_bytes)) * 8 / aggregated.rate_bps
    packets = aggregated.aggregation_s / packet_s
    if round(packets) in range(1, PACKETS + 1) and abs(packets / round(packets) - 1) < SAME:
        return 0.0
    return MUCH if plain.cross or packets < 1 else NEARER
