"""A flow over a fitted path, simulated and captured as the recording was: what would have been."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import numpy as np

from gargalo.fitting.observed import Observed
from gargalo.fitting.path import PACKET_BYTES
from gargalo.recording import read
from gargalo.running import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gargalo.fitting.estimate import Estimate, Interval
    from gargalo.fitting.observed import Figures
    from gargalo.fitting.path import Path
    from gargalo.results import Run

REPEATS = 3
"""Runs over the path itself: losses and jitter differ."""
DRAWS = 8
"""Paths within the intervals that a prediction is made for."""
OPEN = 4.0
"""Of an interval without an upper end, values up to so many times its lower end are tried."""


@dataclass(frozen=True)
class Simulated:
    """A flow over a path, read as a recording."""

    run: Run
    seen: Observed


@dataclass(frozen=True)
class Predicted:
    """A figure of a flow that was not seen."""

    value: float | None
    low: float | None
    """The least over the paths that the recording allows."""
    high: float | None


@dataclass(frozen=True)
class Compared:
    """A figure of the recording and of the simulation; both in SI."""

    name: str
    measured: float | None
    simulated: float | None

    @property
    def difference(self) -> float | None:
        """Share by which the simulation is above the recording; None where either is not known, or it was 0."""
        if not self.measured or self.simulated is None:
            return None
        return self.simulated / self.measured - 1


def simulate(
    path: Path,
    congestion: str,
    duration_s: float,
    settings: Mapping[str, Any] | None = None,
    seed: int = 1,
    transport: str = "tcp",
) -> Simulated:
    """Run a flow over a path, and read its capture at the sender.

    Args:
        path: The path.
        congestion: Its congestion control.
        duration_s: How long it sends.
        settings: Changes of the scenario by their dotted keys; `congestion` is that of the flow.
        seed: Of the loss and the jitter.
        transport: Of the flow: tcp or quic.

    Raises:
        ScenarioError: A setting is wrong.
        FitError: The flow sent next to nothing.

    """
    key = f"flows.0.transport.{transport}.congestion"
    changes = {key if k == "congestion" else k: v for k, v in (settings or {}).items()}
    changes |= {
        "record.captures": ["link"],
        "record.capture_ends": "from",
        "record.links": False,
    }
    with tempfile.TemporaryDirectory(prefix="gargalo-") as place:
        out = File(place) / "run"
        made = path.scenario(congestion, duration_s, "fitted", transport)
        run(made, set=changes, seed=seed, output=out)
        found = read(out / "capture.pcapng", packets=True)
    return Simulated(found, Observed.of(found, 0))


def compared(measured: Figures, simulated: Figures) -> list[Compared]:
    """Put the figures of two flows side by side."""
    one, other = asdict(measured), asdict(simulated)
    return [Compared(name, one[name], other[name]) for name in one]


def predict(
    estimate: Estimate,
    congestion: str,
    duration_s: float,
    settings: Mapping[str, Any],
    transport: str = "tcp",
) -> dict[str, Predicted]:
    """Return the figures of a flow over a path with other settings, over all paths that the recording allows."""
    paths = [estimate.path] * REPEATS + list(_draws(estimate))
    found = [
        asdict(simulate(path, congestion, duration_s, settings, n + 1, transport).seen.figures())
        for n, path in enumerate(paths)
    ]

    def one(name: str) -> Predicted:
        values = [f[name] for f in found if f[name] is not None]
        if not values:
            return Predicted(None, None, None)
        usual = [f[name] for f in found[:REPEATS] if f[name] is not None]
        return Predicted(float(np.median(usual)) if usual else None, min(values), max(values))

    return {name: one(name) for name in found[0]}


def _draws(estimate: Estimate) -> Iterator[Path]:
    """Return paths within the intervals: each parameter in as many steps as paths, in an order of its own."""
    rng = np.random.default_rng(1)
    names = list(estimate.intervals)
    steps = {name: rng.permutation(DRAWS) / (DRAWS - 1) for name in names}
    for n in range(DRAWS):
        path = estimate.path
        for name in names:
            path = _with(path, name, estimate.intervals[name], float(steps[name][n]))
        yield path


def _with(path: Path, name: str, interval: Interval, share: float) -> Path:
    """Return the path with a parameter at a share of its interval."""
    usual = {
        "rate_bps": path.rate_bps,
        "base_rtt_s": path.base_rtt_s,
        "buffer_bytes": path.buffer_bytes,
        "loss": path.loss,
        "jitter_s": path.jitter_s,
        "aggregation_s": path.aggregation_s,
        "reorder_probability": path.reordering.probability if path.reordering else 0.0,
        "reorder_by_s": path.reordering.by_s if path.reordering else 0.0,
        "policer_rate_bps": path.policer.rate_bps if path.policer else 0.0,
    }[name]
    low = usual if interval.low is None else interval.low
    high = interval.high if interval.high is not None else max(low, usual) * OPEN
    if name == "rate_bps" and interval.high is None:
        # A path that was never filled: what is above is not known, and is not made up.
        high = max(low, usual)
    value = low + (high - low) * share
    if name == "rate_bps":
        middle = usual if interval.high is None else (low + high) / 2
        return path.with_rate(value / middle) if middle > 0 else path
    if name == "policer_rate_bps" and path.policer:
        return replace(path, policer=replace(path.policer, rate_bps=value))
    if name.startswith("reorder_") and path.reordering:
        part: dict[str, Any] = {name.removeprefix("reorder_"): value}
        return replace(path, reordering=replace(path.reordering, **part))
    least = {"buffer_bytes": float(PACKET_BYTES), "base_rtt_s": 1e-6}.get(name, 0.0)
    change: dict[str, Any] = {name: max(least, value)}
    return replace(path, **change)
