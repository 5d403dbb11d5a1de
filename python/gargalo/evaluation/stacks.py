"""Congestion controls of QUIC stacks in the networks of the criteria.

Criteria put the algorithm under test into flows of TCP. Here such a flow becomes one of QUIC with the stack that has
the algorithm; flows that it meets stay as they are, since they stand for the traffic of today. The references are then
ours over QUIC too, with the stack inside: so what differs is the stack, not the transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.interop import Stack

INSIDE = "noq"
NOT_IN_QUIC = frozenset({"receive_buffer", "min_rto", "mss", "delayed_ack"})
"""Settings of TCP that have no counterpart: QUIC's windows are large, its timers and packet sizes its own."""


class Own(str):
    """An algorithm over QUIC: as text what the stack says that it follows, so that cases know their variant."""

    __slots__ = ("congestion", "follows", "label", "stack")

    stack: str
    congestion: str
    """Its name in the stack."""
    label: str
    """Its name among the results."""
    follows: str | None
    """Its name among specifications; None if the stack does not say what it follows."""

    def __new__(
        cls, congestion: str, stack: str, label: str | None = None, follows: str | None = None
    ) -> Own:
        """Make one; those of the stack inside are ours, and follow what their names say."""
        follows = congestion if stack == INSIDE else follows
        label = label or f"{stack}-{congestion}"
        made = super().__new__(cls, follows or label)
        made.stack, made.congestion, made.label, made.follows = stack, congestion, label, follows
        return made

    def options(self) -> dict[str, Any]:
        """Return the options of QUIC."""
        own: dict[str, Any] = {"stack": self.stack, "congestion": self.congestion}
        # The same packets at the same times, sooner; others cannot leave encryption out.
        return {**own, "crypto": "null"} if self.stack == INSIDE else own


def not_said(own: Own) -> str:
    """Say that no document is known to judge an algorithm of a stack by."""
    return f"the stack {own.stack} does not say which document its {own.congestion} follows"


def label_of(algorithm: str) -> str:
    """Return the name of an algorithm among the results."""
    return algorithm.label if isinstance(algorithm, Own) else algorithm


def own_of(flow: Mapping[str, Any]) -> Own | None:
    """Return the algorithm over QUIC that a flow is to have, if it is one."""
    (options, *_) = (flow.get("transport") or {"": {}}).values()
    name = options.get("congestion")
    own = next(iter(name)) if isinstance(name, dict) else name
    return own if isinstance(own, Own) else None


def is_foreign(scenario: Mapping[str, Any]) -> bool:
    """Whether a flow of a scenario is to have an algorithm of a QUIC stack."""
    return any(own_of(flow) is not None for flow in scenario["flows"])


def carried(
    scenario: Mapping[str, Any], stacks: Mapping[str, Stack] | None = None
) -> dict[str, Any] | None:
    """Return a scenario with the flows of algorithms over QUIC carried by it; None if QUIC cannot do what it requests.

    Args:
        scenario: Of a criterion.
        stacks: By name: what they can do. By default everything.

    """
    made = {**scenario, "flows": [dict(flow) for flow in scenario["flows"]]}
    for flow in made["flows"]:
        own = own_of(flow)
        if own is None:
            continue
        ((kind, options),) = flow["transport"].items()
        more = {k: v for k, v in options.items() if k not in ("congestion", *NOT_IN_QUIC)}
        marks = bool(more.pop("ecn", False))
        can = stacks is None or "ecn" in stacks[own.stack].features
        if kind != "tcp" or more or (marks and not can):
            return None
        flow["transport"] = {"quic": {**own.options(), **({"ecn": True} if marks else {})}}
    return made
