"""What no test may pass with, whatever it expects: data that differ, and connections that failed or never were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gargalo.checking.expectations import fits
from gargalo.severity import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gargalo.results import Run
    from gargalo.scenarios.setup import Delay

CONNECTED = ("tcp", "mptcp", "quic")
"""Transports with a handshake."""
LEAST_S = 3.0
"""A connection that had less time may still be in its handshake: the first repetition comes after a second."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a run."""

    kind: Kind
    text: str


def faults(run: Run, expected: Collection[str] = ()) -> list[Fault]:
    """Return what is wrong with a run, from the worst.

    Args:
        run: A finished run. Flows that are recorded as a summary have no rows, and are not looked at.
        expected: Places of figures of which the scenario says what they have to be; that a flow fails may be one.

    """
    found = [*_findings(run), *_flows(run, expected)]
    found += [Fault("warning", text) for text in run.warnings]
    return sorted(found, key=lambda fault: KINDS.index(fault.kind))


def _findings(run: Run) -> Iterator[Fault]:
    for finding in run.findings:
        subject = f"{finding['subject']}: " if finding["subject"] else ""
        kind: Kind = "corrupt" if finding["severity"] == "error" else "warning"
        yield Fault(kind, f"{subject}{finding['text']} [{finding['code']}]")
    if run.ended_early is not None:
        yield Fault("failure", f"the run ended early: {run.ended_early}")


def _longest_s(delay: Delay) -> float:
    return max([delay.constant_s or 0.0, *(step.delay_s for step in delay.steps)])


def _flows(run: Run, expected: Collection[str]) -> Iterator[Fault]:
    end_s = run.info["virtual_s"]
    places = [place.removeprefix("flows.").rpartition(".") for place in expected]
    # Twice the way there and back over all links: longer than any handshake takes.
    trip_s = sum(_longest_s(way.delay) for link in run.setup.links for way in (link.up, link.down))

    def is_expected(figure: str, label: str) -> bool:
        return any(fits(pattern, label) for pattern, _, name in places if name == figure)

    for row in run.flows.to_dicts():
        name, label = run.names.get(row["id"], row["label"]), row["label"]
        if row["verified"] is False:
            yield Fault("corrupt", f"{name}: what was delivered is not what was sent")
        if row["failure"] and not is_expected("failure", label):
            yield Fault("failure", f"{name}: {row['failure']}")
        until_s = end_s if row["end_s"] is None else row["end_s"]
        if (
            not row["failure"]
            and row["transport"] in CONNECTED
            and row["handshake_s"] is None
            and row["start_s"] is not None
            and until_s - row["start_s"] >= max(LEAST_S, 2 * trip_s)
            and not is_expected("handshake_s", label)
        ):
            yield Fault("failure", f"{name}: the connection was never established")
