"""The simulator in the loop: what a path would have done to the packets of a recording, sent when they were sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gargalo import _core
from gargalo.fitting.aggregation import offset_s
from gargalo.fitting.path import PACKET_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gargalo.fitting.observed import Observed
    from gargalo.fitting.path import Path, Steps

    Floats = NDArray[np.float64]

NS = 1e9
SEED = 1
LOST = -1


@dataclass(frozen=True)
class Carried:
    """What became of each packet."""

    rtt_s: Floats
    """Round trip of a packet that is acknowledged as it arrives; NaN if it was dropped."""

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Packets that were dropped."""
        return np.isnan(self.rtt_s)


def carry(path: Path, seen: Observed) -> Carried:
    """Send the packets of a recording over a path, with its cross traffic."""
    # Packets are aggregated as in the recording: at the instants that acknowledgements tell.
    every = path.aggregation_s
    ahead = (path.base_rtt_s - offset_s(seen, every)) % every if every > 0 else 0.0
    times = np.rint((seen.sent_s + ahead) * NS).astype(np.int64)
    sizes = seen.size_bytes.astype(np.int64)
    own = np.arange(len(times))
    if path.cross:
        others = departures(path.cross, float(seen.sent_s[-1])) + round(ahead * NS)
        order = np.argsort(np.concatenate([times, others]), kind="stable")
        sizes = np.concatenate([sizes, np.full(len(others), PACKET_BYTES)])[order]
        times = np.concatenate([times, others])[order]
        own = np.empty(len(order), dtype=np.int64)
        own[order] = np.arange(len(order))
        own = own[: len(seen.sent_s)]
    arrived = np.frombuffer(
        _core.carry(json.dumps(path.direction()), times.tobytes(), sizes.tobytes(), SEED), np.int64
    )
    rtt = (arrived - times) / NS + path.base_rtt_s / 2
    return Carried(np.where(arrived == LOST, np.nan, rtt)[own])


def departures(rates: Steps, until_s: float) -> NDArray[np.int64]:
    """Return when packets of a rate over time are sent, in nanoseconds."""
    begins = np.array([t for t, _ in rates])
    ends = np.append(begins[1:], until_s)
    steps = np.maximum(0, np.minimum(ends, until_s) - begins)
    bits = np.concatenate([[0.0], np.cumsum(steps * [r for _, r in rates])])
    edges = np.append(begins, until_s)
    wanted = np.arange(0, bits[-1], PACKET_BYTES * 8)
    # Of a span in which nothing is sent, the end.
    strictly = np.append(np.diff(bits) > 0, True)
    times = np.interp(wanted, bits[strictly], edges[strictly])
    found: NDArray[np.int64] = np.rint(times * NS).astype(np.int64)
    return found
