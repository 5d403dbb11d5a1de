"""What a client does with a server: the network, what is asked of both, and what must be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gargalo.interop.model import Seen
from gargalo.reporting.quantities import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gargalo.interop.model import Json

Row = dict[str, Any]
"""A row of the table of flows."""

RTT_S = 0.05
SLACK = 0.5
"""Round trips that something may take longer: transmission, delayed acknowledgements."""
LINK: Json = {"rate": "20Mbit/s", "delay": "25ms", "queue": {"droptail": "100 packets"}}
LATER_S = 5.5
"""When the connection begins that resumes; TLS stacks that count the ticket's age in whole seconds round it down."""


@dataclass(frozen=True)
class Case:
    """A column of the matrix."""

    id: str
    title: str
    section: str
    """What asks for it."""
    expected: str
    flows: Callable[[Json], list[Json]]
    """Makes flows of the options of QUIC."""
    judge: Callable[[Sequence[Row]], Seen]
    """Looks at the rows of the flows."""
    client: frozenset[str] = frozenset()
    """Features that the client must have."""
    server: frozenset[str] = frozenset()
    """Features that the server must have."""
    link: Mapping[str, Any] = field(default_factory=lambda: LINK)
    duration: str = "20s"

    def scenario(self, quic: Json, seed: int) -> Json:
        """Return the scenario."""
        return {
            "name": self.id,
            "duration": self.duration,
            "seed": seed,
            "record": {"interval": "100ms", "verify": True},
            "topology": {"simple": {"link": dict(self.link)}},
            "flows": self.flows(quic),
        }


def flow(quic: Json, workload: Json, **more: Any) -> Json:
    """Return a flow between the two hosts."""
    made = {"from": "client", "to": "server", "transport": {"quic": quic}, "workload": workload}
    return {**made, **more}


def request(size: str) -> Json:
    """Return the workload of a client that asks for one object."""
    return {"request": {"objects": 1, "size": size}}


def broken(row: Row) -> str:
    """Say what is wrong with a connection that did not complete, or whose data is not what was sent; empty if nothing is."""
    if row["failure"] is not None:
        return f"the connection failed: {row['failure']}"
    if row["verified"] is False:
        return "data arrived that was not sent"
    if row["completion_s"] is not None:
        return ""
    if row["handshake_s"] is None:
        return "the handshake was not complete at the end of the run"
    return f"{row['delivered_bytes'] / 1e6:g} MB had arrived at the end of the run"


def whole(rows: Sequence[Row]) -> Seen | None:
    """Return what is wrong with the first flow of which something is."""
    several = len(rows) > 1
    for n, row in enumerate(rows, 1):
        wrong = broken(row)
        if wrong:
            return Seen(False, f"connection {n}: {wrong}" if several else wrong)
    return None


def after(rows: Sequence[Row], column: str, what: str, trips: int) -> Seen:
    """Judge when something happened on the last connection, in round trips since its start."""
    wrong = whole(rows)
    if wrong is not None:
        return wrong
    value = rows[-1][column]
    if value is None:
        return Seen(False, f"{what} was not seen")
    took = value / RTT_S
    return Seen(trips <= took < trips + SLACK, f"{what} after {took:.2f} round trips")


def completed(rows: Sequence[Row]) -> Seen:
    """Judge whether all data arrived."""
    times = ", ".join(measured(r["completion_s"], "s") for r in rows if r["completion_s"])
    return whole(rows) or Seen(True, f"complete after {times}")


def first_byte(trips: int) -> Callable[[Sequence[Row]], Seen]:
    """Return the judge of when the response begins."""
    return lambda rows: after(rows, "first_byte_s", "the response began", trips)


CASES = (
    Case(
        "handshake",
        "Handshake",
        "RFC 9001 §4",
        "the client's handshake is complete after one round trip",
        lambda quic: [flow(quic, request("10kB"))],
        lambda rows: after(rows, "handshake_s", "the client's handshake was complete", 1),
    ),
    Case(
        "1-rtt",
        "Request in the first round trip after the handshake",
        "RFC 9000 §7",
        "the response to a request begins after two round trips, and all of it arrives",
        lambda quic: [flow(quic, request("10kB"))],
        first_byte(2),
    ),
    Case(
        "0-rtt",
        "Request as early data",
        "RFC 9001 §4.6",
        "the response to a request of a resumed connection begins after one round trip",
        lambda quic: [
            flow(quic, request("10kB")),
            flow({**quic, "handshake": "0-rtt"}, request("10kB"), start=f"{LATER_S}s"),
        ],
        first_byte(1),
        client=frozenset({"0-rtt"}),
        server=frozenset({"0-rtt"}),
    ),
    Case(
        "retry",
        "Address validation by Retry",
        "RFC 9000 §8.1.2",
        "the response to a request begins after three round trips, one of which is the Retry",
        lambda quic: [flow({**quic, "retry": True}, request("10kB"))],
        first_byte(3),
        server=frozenset({"retry"}),
    ),
    Case(
        "migration",
        "Migration of the client to another address",
        "RFC 9000 §9",
        "all of 5 MB arrives, though the client's address changes after one second",
        lambda quic: [flow({**quic, "migration": {"after": "1s"}}, request("5MB"))],
        completed,
        client=frozenset({"migration"}),
    ),
    Case(
        "transfer",
        "10 MB each way with loss and reordering",
        "RFC 9002 §6",
        "10 MB arrive each way, every byte as it was sent, though 0.5% of the packets are lost and 1% late by 3 ms",
        lambda quic: [
            flow(quic, {"bulk": {"bytes": "10MB"}}),
            flow(quic, request("10MB")),
        ],
        completed,
        link={**LINK, "delay": "10ms", "loss": 0.005, "reorder": {"probability": 0.01, "late": "3ms"}},
        duration="120s",
    ),
)  # fmt: skip
"""In the order of the columns."""
