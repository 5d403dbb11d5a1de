"""Two builds of a QUIC stack, or two settings, over many scenarios: what differs, and from which packet on.

Runs are deterministic, so that the first packet that differs is where the two part, and all else follows from it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gargalo import _core
from gargalo._toml import tables
from gargalo.checking.processes import ENDED, each

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gargalo.exploring.difference import Difference
    from gargalo.results import Run

STACK = "stack"
USUAL = "noq"
"""The stack of flows that name none."""
FIGURES = (
    "goodput_bps", "completion_s", "handshake_s", "rtt_p50_s", "rtt_p95_s", "sent_packets", "lost_packets",
    "retransmitted_packets", "timeouts", "delivered_bytes", "failure",
)  # fmt: skip
"""Columns of flows that are compared."""


@dataclass(frozen=True)
class Figure:
    """A figure that is not the same on both sides."""

    flow: str
    name: str
    a: Any
    b: Any

    @property
    def change(self) -> float:
        """By which share the second is more than the first; infinite where it is no number."""
        numbers = [v for v in (self.a, self.b) if isinstance(v, (int, float))]
        if len(numbers) < 2 or not self.a:
            return math.inf
        return float(self.b / self.a - 1)


@dataclass(frozen=True)
class Sides:
    """What came of a scenario with each of two builds."""

    file: str
    packet: Difference | None = None
    """The first packet that is not the same; None: none is."""
    figures: tuple[Figure, ...] = ()
    failed: str = ""
    """Why there is nothing to compare."""
    alike: bool = False
    """No flow of the scenario has the stack."""
    cut: bool = False
    """A capture became too large: the figures are not compared, and packets as far as both go."""

    @property
    def same(self) -> bool:
        """Nothing differs."""
        return self.packet is None and not self.figures and not self.failed

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "file": self.file,
            "same": self.same,
            "packet": None if self.packet is None else self.packet.to_json(),
            "figures": [asdict(f) for f in self.figures],
            "failed": self.failed or None,
            "alike": self.alike,
            "cut": self.cut,
        }


def compare_builds(
    files: Sequence[Path],
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    plugins: tuple[Path, ...] = (),
    jobs: int = 1,
    progress: Callable[[Sides], object] = lambda _: None,
) -> list[Sides]:
    """Run scenarios with the settings of two sides, and say where they differ, in the order of the files.

    Args:
        files: Scenarios.
        a: Settings by their dotted keys; `stack` is the QUIC stack of all flows that have another build of it.
        b: Those of the other side.
        plugins: Files that processes load which run scenarios.
        jobs: Scenarios at the same time, each in a process of its own.
        progress: Called with each as soon as it and all before it are done.

    """
    found = []
    results = each(partial(compare_one, a=a, b=b), files, plugins, jobs)
    for file, sides in zip(files, results, strict=True):
        found.append(sides or Sides(str(file), failed=ENDED))
        progress(found[-1])
    return found


def compare_one(file: Path, a: Mapping[str, Any], b: Mapping[str, Any]) -> Sides:
    """Run one scenario with each side."""
    from gargalo.exploring.difference import packet_difference
    from gargalo.exploring.packets import recorded
    from gargalo.running import read

    try:
        first, second = (settings(tables(read(file)[0]), side) for side in (a, b))
        if first == second:
            return Sides(str(file), alike=True)
        with recorded(file, changes=first) as one, recorded(file, changes=second) as other:
            packet = packet_difference(one, other)
            # Runs that were ended for their size ended anywhere.
            cut = one.large or other.large
            figures = () if cut else tuple(differing(one.run, other.run))
            return Sides(str(file), packet, figures, cut=cut)
    except (_core.ScenarioError, _core.RunError, OSError, UnicodeDecodeError) as e:
        return Sides(str(file), failed=str(e))
    except Exception as e:
        # A class of a plug-in may raise anything.
        return Sides(str(file), failed=f"{type(e).__name__}: {e}")


def settings(scenario: Mapping[str, Any], side: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a side for a scenario: its stack at all ends that have a build of it."""
    found = {k: v for k, v in side.items() if k != STACK}
    wanted = side.get(STACK)
    flows = scenario.get("flows", [])
    if wanted is None or not isinstance(flows, list):
        return found
    for number, flow in enumerate(flows):
        quic = flow.get("transport", {}).get("quic") if isinstance(flow, dict) else None
        if not isinstance(quic, dict):
            continue
        now = quic.get(STACK, USUAL)
        ends = now if isinstance(now, dict) else {"": now}
        for end, name in ends.items():
            if str(name).partition("@")[0] == str(wanted).partition("@")[0]:
                key = f"flows.{number}.transport.quic.{STACK}"
                found[f"{key}.{end}" if end else key] = wanted
    return found


def differing(a: Run, b: Run) -> list[Figure]:
    """Return the figures of flows that are not the same, from the one that differs most."""
    found = []
    other = {row["id"]: row for row in b.flows.to_dicts()}
    for row in a.flows.to_dicts():
        beside = other.get(row["id"], {})
        found += [
            Figure(a.names[row["id"]], name, row[name], beside.get(name))
            for name in FIGURES
            if row[name] != beside.get(name)
        ]
    return sorted(found, key=lambda f: -abs(f.change))
