"""Scenarios as Python values.

A scenario is anything that has the form of the TOML file: a path, its text as a dictionary, or a
`Scenario` built here. The classes in `gargalo.scenario_types` are derived from the same JSON Schema
that the TOML files obey; `Scenario` puts them, or plain dictionaries, together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

__all__ = ["Scenario", "plain", "to_toml"]


def _key(name: str) -> str:
    return json.dumps(name) if not name.replace("-", "").replace("_", "").isalnum() else name


def plain(value: Any) -> Any:
    """Turn builders, paths and tuples into what TOML and JSON know; None entries disappear."""
    if is_dataclass(value) and not isinstance(value, type):
        names = getattr(value, "_names", {})
        given = {names.get(f.name, f.name): getattr(value, f.name) for f in fields(value)}
        return plain(given)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    return value


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        return repr(value)
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_inline(v) for v in value)}]"
    msg = f"a scenario cannot contain {value!r} of type {type(value).__name__}"
    raise TypeError(msg)


def to_toml(scenario: Mapping[str, Any]) -> str:
    """Write a scenario as TOML: one line a setting, one table a flow and a topology."""
    simple: list[str] = []
    tables: list[str] = []
    for key, value in plain(scenario).items():
        if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            tables += [
                f"\n[[{_key(key)}]]\n"
                + "".join(f"{_key(k)} = {_inline(v)}\n" for k, v in row.items())
                for row in value
            ]
        elif isinstance(value, dict):
            rows = "".join(f"{_key(k)} = {_inline(v)}\n" for k, v in value.items())
            tables.append(f"\n[{_key(key)}]\n{rows}")
        else:
            simple.append(f"{_key(key)} = {_inline(value)}\n")
    return "".join(simple + tables)


@dataclass(frozen=True)
class Scenario:
    """A scenario under construction; every method returns a new one.

    >>> Scenario("race", duration="30s").simple(
    ...     rate="10Mbit/s", delay="20ms", queue={"droptail": "1BDP"}
    ... ).flow(congestion="cubic").flow(congestion="bbr", start="5s")
    """

    name: str
    duration: str | None = None
    seed: int | None = None
    topology: Mapping[str, Any] = field(default_factory=dict)
    flows: tuple[Mapping[str, Any], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    def _with(self, **changes: Any) -> Scenario:
        now = {f.name: getattr(self, f.name) for f in fields(self)}
        return Scenario(**{**now, **changes})

    def simple(self, **link: Any) -> Scenario:
        """Two hosts, `client` and `server`, and one link with these properties."""
        return self._with(topology={"simple": {"link": link}})

    def dumbbell(self, pairs: int, *, access: Any, bottleneck: Any, **more: Any) -> Scenario:
        """Hosts `left0`…, `right0`… on the two sides of a bottleneck."""
        inside = {"pairs": pairs, "access": access, "bottleneck": bottleneck, **more}
        return self._with(topology={"dumbbell": inside})

    def with_topology(self, kind: str, **settings: Any) -> Scenario:
        """Any topology of the scenario reference."""
        return self._with(topology={kind: settings})

    def flow(
        self,
        source: str = "client",
        to: str = "server",
        *,
        congestion: Any = None,
        transport: Any = None,
        workload: Any = None,
        **more: Any,
    ) -> Scenario:
        """Add a flow: TCP with `congestion` unless `transport` says else, bulk unless `workload`."""
        if transport is not None and congestion is not None:
            msg = "give either congestion or transport; transport contains the congestion control"
            raise ValueError(msg)
        if transport is None:
            transport = {"tcp": {} if congestion is None else {"congestion": congestion}}
        row = {
            "from": source,
            "to": to,
            **more,
            "transport": transport,
            "workload": {"bulk": {}} if workload is None else workload,
        }
        return self._with(flows=(*self.flows, row))

    def having(self, **settings: Any) -> Scenario:
        """Set any other key of the top level."""
        return self._with(more={**self.more, **settings})

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario as the dictionary that its TOML text would give."""
        top = {"name": self.name, "seed": self.seed, "duration": self.duration, **self.more}
        result: dict[str, Any] = plain({**top, "topology": self.topology, "flows": self.flows})
        return result

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from gargalo import notebook

        return notebook.of_scenario(self)

    def to_toml(self) -> str:
        """Return the scenario as the text of a file."""
        return to_toml(self.to_dict())
