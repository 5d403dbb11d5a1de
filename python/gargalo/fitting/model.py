"""A fit: the path that reproduces a recording, how certain it is, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gargalo.fitting.elastic import with_flows
from gargalo.fitting.finding import find
from gargalo.fitting.observed import Observed
from gargalo.fitting.predicting import compared, predict, simulate
from gargalo.recording import read
from gargalo.results import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path as File

    from gargalo.fitting.estimate import Estimate, Interval
    from gargalo.fitting.path import Path
    from gargalo.fitting.predicting import Compared, Predicted, Simulated

USUAL = "cubic"
"""The congestion control of a flow that nothing is known of: that of most hosts."""
LIMITED = 0.2
"""Share of the time in which something else than the path limited a flow, from which on it is said."""


@dataclass(frozen=True)
class Fit:
    """A path fitted to a flow of a recording."""

    name: str
    """Of the recording."""
    congestion: str
    """The congestion control that simulations of the flow use."""
    estimate: Estimate
    distance: float
    """How far round trips and losses of the recorded packets are from those over the path, as a sum of shares."""
    recording: Run
    seen: Observed

    @property
    def path(self) -> Path:
        """The path."""
        return self.estimate.path

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """For each parameter where it lies with a probability of nine tenths."""
        return self.estimate.intervals

    @cached_property
    def unknown(self) -> Sequence[str]:
        """What the recording cannot tell."""
        told = list(self.estimate.unknown)
        for share, what in (
            (self.seen.application_limited, "the application had nothing to send"),
            (self.seen.receiver_limited, "the receiver's window was full"),
        ):
            if share > LIMITED:
                told.append(
                    f"in {share:.0%} of the time {what}: a flow that always has data is another one"
                )
        return told

    @property
    def scenario(self) -> dict[str, Any]:
        """A scenario in which such a flow fills the path, as `gargalo.run` takes it."""
        return self.path.scenario(
            self.congestion, self.seen.duration_s, self.name, self.seen.transport
        )

    @cached_property
    def simulated(self) -> Simulated:
        """Such a flow over the path."""
        return self._over(self.path, self.seen.duration_s)

    def _over(self, path: Path, duration_s: float) -> Simulated:
        return simulate(path, self.congestion, duration_s, transport=self.seen.transport)

    @cached_property
    def compared(self) -> Sequence[Compared]:
        """The figures of the recording beside those of the simulated flow."""
        return compared(self.seen.figures(), self.simulated.seen.figures())

    def what_if(self, settings: Mapping[str, Any]) -> dict[str, Predicted]:
        """Return what would have been with other settings, such as `{"congestion": "bbr3"}`.

        Args:
            settings: Changes of the scenario by their dotted keys; `congestion` is that of the flow.

        Returns:
            For each figure the value over the fitted path, and the least and the greatest over the paths that the
            recording allows.

        Raises:
            ScenarioError: A setting is wrong.

        """
        return predict(
            self.estimate, self.congestion, self.seen.duration_s, settings, self.seen.transport
        )

    def verify(self, other: Run | None = None) -> Sequence[Compared]:
        """Predict what was kept back: the second half, by a fit to the first, or another recording of the path.

        Raises:
            FitError: Too little was sent in the first half, or in the other recording.

        """
        if other is not None:
            seen = Observed.of(other)
            found = self._over(self.path, seen.duration_s)
            return compared(seen.figures(), found.seen.figures())
        half = self.seen.duration_s / 2
        first, _ = fitted(self.seen.until(half), self.congestion)
        found = self._over(first.path, self.seen.duration_s)
        return compared(self.seen.figures(half), found.seen.figures(half))

    def to_json(self) -> dict[str, Any]:
        """Return all of it as data."""
        path = self.path
        return {
            "name": self.name,
            "flow": self.seen.label,
            "congestion": self.congestion,
            "path": {
                "rate_bps": path.mean_rate_bps(self.seen.duration_s),
                "rate_steps": [list(step) for step in path.rate],
                "base_rtt_s": path.base_rtt_s,
                "buffer_bytes": path.buffer_bytes,
                "loss": path.loss,
                "bursts": None
                if path.bursts is None
                else {"p": path.bursts.begin, "r": path.bursts.end, "h": path.bursts.arrive},
                "jitter_s": path.jitter_s,
                "aggregation_s": path.aggregation_s,
                "reordering": None
                if path.reordering is None
                else {
                    "probability": path.reordering.probability,
                    "by_s": path.reordering.by_s,
                    "late": path.reordering.late,
                },
                "policer": None
                if path.policer is None
                else {
                    "rate_bps": path.policer.rate_bps,
                    "burst_bytes": path.policer.burst_bytes,
                },
                "cross_traffic_steps": [list(step) for step in path.cross],
            },
            "intervals": {k: [i.low, i.high] for k, i in self.intervals.items()},
            "unknown": list(self.unknown),
            "distance": self.distance,
            "compared": [
                {
                    "name": c.name,
                    "measured": c.measured,
                    "simulated": c.simulated,
                    "difference": c.difference,
                }
                for c in self.compared
            ],
            "scenario": self.scenario,
        }


def fitted(seen: Observed, congestion: str) -> tuple[Estimate, float]:
    """Return the path that comes nearest to what was seen, and the distance that is left."""
    found, distance = find(seen)
    return replace(found, path=with_flows(found.path, congestion, seen)), distance


def fit(
    recording: str | File | Sequence[str | File] | Run,
    *,
    flow: int | None = None,
    congestion: str = USUAL,
) -> Fit:
    """Fit a path to a flow of TCP, or of QUIC with its keys, that was captured at its sender.

    Args:
        recording: Captures, or what `read` returned with `packets=True`.
        flow: Number of the flow; by default the one with most packets.
        congestion: The congestion control that sent it; simulations of the flow use it.

    Raises:
        RunError: A file cannot be read, or is no capture.
        FitError: The flow tells nothing of its path: it was captured elsewhere, or is too short.

    """
    found = recording if isinstance(recording, Run) else read(recording, packets=True)
    seen = Observed.of(found, flow)
    best, distance = fitted(seen, congestion)
    return Fit(str(found.info["name"]), congestion, best, distance, found, seen)
