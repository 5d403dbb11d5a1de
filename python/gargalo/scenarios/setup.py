"""What the engine makes of a scenario: nodes, links and flows in SI units, as `Run.setup`.

>>> run.setup.links[0].up.rate.steps[1].time_s
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_Reader: TypeAlias = Callable[[Any], Any]

MOST_COPIES = 100_000
"""Of a flow in a scenario."""


class RateStep(NamedTuple):
    """The rate from an instant on."""

    time_s: float
    rate_bps: int


class DelayStep(NamedTuple):
    """The delay from an instant on."""

    time_s: float
    delay_s: float


class Span(NamedTuple):
    """A span of time."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Trace:
    """A trace of delivery opportunities."""

    opportunities: int
    period_s: float
    mean_bps: int
    sha256: str
    """Of its instants."""


@dataclass(frozen=True)
class Rate:
    """The rate of a link direction: one of these; without any it is unlimited."""

    constant_bps: int | None = None
    steps: tuple[RateStep, ...] = ()
    trace: Trace | None = None


@dataclass(frozen=True)
class Delay:
    """The delay of a link direction: one of these."""

    constant_s: float | None = None
    steps: tuple[DelayStep, ...] = ()


@dataclass(frozen=True)
class Jitter:
    """Random delay of each packet."""

    scale_s: float
    distribution: str


@dataclass(frozen=True)
class GilbertElliott:
    """Loss in two states: transitions `p` and `r`, delivery `k` in the good state and `h` in the bad one."""

    p: float
    r: float
    h: float
    k: float


@dataclass(frozen=True)
class Loss:
    """Random loss: one of these."""

    independent: float | None = None
    """Probability of each packet."""
    periodic: int | None = None
    """Each packet whose number is a multiple of this."""
    gilbert_elliott: GilbertElliott | None = None


@dataclass(frozen=True)
class Reordering:
    """Packets that are delayed more, or that overtake others."""

    probability: float
    gap: int
    correlation: float
    late_s: float | None = None
    """Delay of the chosen packets; None: they are early."""
    early_s: float | str | None = None
    """How much earlier the chosen packets are; `all`: they have no delay."""


@dataclass(frozen=True)
class Policer:
    """A token bucket that drops what exceeds it."""

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True)
class Direction:
    """One direction of a link."""

    rate: Rate = Rate()
    delay: Delay = Delay()
    jitter: Jitter | None = None
    loss: Loss | None = None
    reorder: Reordering | None = None
    duplicate: float = 0.0
    """Probability."""
    mtu_bytes: int | None = None
    queue: Any = None
    """As in a scenario, with every parameter."""
    outages: tuple[Span, ...] = ()
    policer: Policer | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the link that are not at their defaults, as in a scenario."""


@dataclass(frozen=True)
class Link:
    """A link between two nodes."""

    name: str
    from_: str = ""
    to: str = ""
    up: Direction = Direction()
    """From `from_` to `to`."""
    down: Direction = Direction()


@dataclass(frozen=True)
class Node:
    """A host or a router."""

    name: str
    host: bool


@dataclass(frozen=True)
class Host:
    """A host with the kernel's stack."""

    stack: str
    congestion: str | None = None
    sysctl: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Demand:
    """What a random source asks for: new flows per second, or a load in each direction."""

    per_second: float | None = None
    load_bps: int | None = None
    opposite_load_bps: int | None = None


@dataclass(frozen=True)
class Flow:
    """A flow, or a source of flows."""

    id: int
    label: str = ""
    from_: str = ""
    to: str = ""
    path: int = 0
    """Number of the path of `topology.multipath` that it takes in both directions."""
    start_s: float = 0.0
    stop_s: float | None = None
    start_jitter_s: float = 0.0
    """The flow starts by less than this later."""
    transport: Mapping[str, Any] = field(default_factory=dict)
    """Its name and its options, as in a scenario."""
    workload: Mapping[str, Any] = field(default_factory=dict)
    """Its name and its parameters, as in a scenario."""
    arrivals_mean_s: float | None = None
    """Mean time between the starts of copies; None: there are none."""
    demand: Demand | None = None
    """Of a source."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Hosts that the flows of a source are between."""
    record: str = "full"
    """`summary`: the flow has no row of its own."""

    @property
    def endless(self) -> bool:
        """Whether it is a bulk transfer of no given size."""
        return "bulk" in self.workload and "bytes" not in self.workload["bulk"]


@dataclass(frozen=True)
class Record:
    """What is recorded."""

    interval_s: float = 0.0
    flows: bool = False
    links: bool = False
    events: bool = False
    captures: tuple[str, ...] = ()
    """Names of links."""
    verify: bool = False
    qlog: bool = False
    decisions: bool = False
    gauges: bool = False
    capture_ends: str = "from"
    capture_payload: bool = False


@dataclass(frozen=True)
class Measured:
    """The part of the run that figures are of."""

    from_s: float
    until_s: float


@dataclass(frozen=True)
class Command:
    """A program in the lab."""

    host: str
    run: str
    start_s: float
    background: bool


@dataclass(frozen=True)
class Setup:
    """A scenario as the engine runs it."""

    name: str = ""
    description: str = ""
    seed: int = 0
    duration_s: float = 0.0
    topology: str = ""
    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()
    flows: tuple[Flow, ...] = ()
    record: Record = field(default_factory=Record)
    measure: Measured | None = None
    """None: the whole run."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Hosts with the kernel's stack, by name."""
    commands: tuple[Command, ...] = ()

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Setup:
        """Return what the engine wrote as JSON.

        Raises:
            TypeError, KeyError, AttributeError, ValueError: It is not what an engine wrote.

        """
        made = _made(cls, value)
        counts = map(_count, value.get("flows", ()))
        flows = (
            f if i == 0 else replace(f, id=f.id + i)
            for f, count in zip(made.flows, counts, strict=True)
            for i in range(count)
        )
        return replace(made, flows=tuple(flows))


def _count(flow: Mapping[str, Any]) -> int:
    """Return how many flows an entry stands for."""
    count = flow.get("count", 1)
    if not isinstance(count, int) or not 1 <= count <= MOST_COPIES:
        msg = f"count is {count}, not a number from 1 to {MOST_COPIES}"
        raise ValueError(msg)
    return count


def with_copies(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the engine wrote as JSON with each copy of a flow as a flow of its own."""
    flows = [
        {**{k: v for k, v in flow.items() if k != "count"}, "id": flow["id"] + i}
        for flow in value["flows"]
        for i in range(_count(flow))
    ]
    return {**value, "flows": flows}


def _key(name: str) -> str:
    """Return the key of JSON that an attribute stands for."""
    return {"from_": "from", "gilbert_elliott": "gilbert-elliott"}.get(name, name)


def _made(kind: type[T], value: Mapping[str, Any]) -> T:
    """Return a table of JSON as an instance of a class; keys that it does not know go to `more`."""
    readers, known, more = _readers(kind)  # type: ignore[arg-type]
    given = {
        name: found if read is None else read(found)
        for name, key, read in readers
        if (found := value.get(key)) is not None
    }
    if more:
        given["more"] = {k: v for k, v in value.items() if k not in known}
    return kind(**given)


@cache
def _readers(kind: type) -> tuple[list[tuple[str, str, _Reader | None]], set[str], bool]:
    """Return attribute, key and reader of what a class has, all keys, and whether it takes others."""
    hints = get_type_hints(kind)
    readers = [(n, _key(n), _reader(hint)) for n, hint in hints.items()]
    return readers, {key for _, key, _ in readers}, "more" in hints


def _reader(kind: Any) -> _Reader | None:
    """Return what makes of a value of JSON what a type says; None if that is the value itself."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        classes = [k for k in inner if is_dataclass(k)]
        return _reader(classes[0]) if classes else None
    if origin is tuple:
        read = _reader(inner[0])
        return tuple if read is None else lambda value: tuple(map(read, value))
    if is_dataclass(kind):
        return lambda value: _made(kind, value)  # type: ignore[arg-type]
    if isinstance(kind, type) and issubclass(kind, tuple):
        return lambda value: kind(*value)
    if inner and is_dataclass(inner[-1]):
        of = inner[-1]
        return lambda value: {k: _made(of, v) for k, v in value.items()}  # type: ignore[arg-type]
    return None
