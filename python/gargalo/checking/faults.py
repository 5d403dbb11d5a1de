"""What no test may pass with, whatever it expects: data that differ, and connections that failed or never were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from gargalo.audit import told
from gargalo.checking.expectations import fits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gargalo.results import Run

Kind: TypeAlias = Literal["corrupt", "failure", "warning"]
KINDS: tuple[Kind, ...] = ("corrupt", "failure", "warning")
"""From the worst."""
CONNECTED = ("tcp", "mptcp", "quic")
"""Transports with a handshake."""
TELLING = ("failure", "handshake_s")
"""Figures that tell whether a connection was established: of whose flows one is expected, that is judged instead."""
LEAST_S = 3.0
"""A connection that had less time may still be in its handshake: the first repetition comes after a second."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a run."""

    kind: Kind
    text: str


def counted(least: Kind) -> tuple[Kind, ...]:
    """Return a kind of fault and all that are worse."""
    return KINDS[: KINDS.index(least) + 1]


def faults(run: Run, expected: Collection[str] = ()) -> list[Fault]:
    """Return what is wrong with a run, from the worst.

    Args:
        run: A finished run.
        expected: Places of figures of which the scenario says what they have to be; that a flow fails may be one.

    """
    found = [*_findings(run), *_flows(run, expected)]
    found += [Fault("warning", text) for text in run.warnings]
    return sorted(found, key=lambda fault: KINDS.index(fault.kind))


def _findings(run: Run) -> Iterator[Fault]:
    for finding in run.findings:
        yield Fault("corrupt" if finding["severity"] == "error" else "warning", told(finding))
    if run.ended_early is not None:
        yield Fault("failure", f"the run ended early: {run.ended_early}")


def _flows(run: Run, expected: Collection[str]) -> Iterator[Fault]:
    end_s = run.info["virtual_s"]
    places = [place.removeprefix("flows.").rpartition(".") for place in expected]
    excused = [pattern for pattern, _, figure in places if figure in TELLING]
    for row in run.flows.to_dicts():
        name = run.names.get(row["id"], row["label"])
        if row["verified"] is False:
            yield Fault("corrupt", f"{name}: what was delivered is not what was sent")
        if any(fits(pattern, row["label"]) for pattern in excused):
            continue
        if row["failure"]:
            yield Fault("failure", f"{name}: {row['failure']}")
        elif (
            row["transport"] in CONNECTED
            and row["handshake_s"] is None
            and row["start_s"] is not None
            and end_s - row["start_s"] >= LEAST_S
        ):
            yield Fault("failure", f"{name}: the connection was never established")
