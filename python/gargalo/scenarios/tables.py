"""Scenarios as dictionaries: what code that makes and changes them can rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value]"
"""What a key of a scenario can have: all that TOML writes, except for dates."""
Table: TypeAlias = dict[str, Value]
Transport: TypeAlias = dict[str, Table]
"""The options by the kind of transport, of which there is one."""
FlowTable = TypedDict(
    "FlowTable",
    {
        "label": str,
        "from": str,
        "to": str,
        "start": str,
        "transport": Transport,
        "workload": Mapping[str, Value],
    },
    total=False,
)


class ScenarioTable(TypedDict, total=False):
    """A scenario whose flows are written out."""

    name: str
    duration: str
    seed: int
    start_jitter: str
    record: Mapping[str, Value]
    measure: Mapping[str, Value]
    lab: Mapping[str, Value]
    hosts: Mapping[str, Value]
    topology: Mapping[str, Table]
    """The settings by the kind of topology, of which there is one."""
    flows: list[FlowTable]
