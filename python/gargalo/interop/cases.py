"""What a client does with a server: the network, what is requested of both, and what must be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gargalo.interop import traces
from gargalo.interop.model import Seen
from gargalo.quantities import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gargalo.interop.model import Json
    from gargalo.interop.traces import Trace
    from gargalo.interop.wire import Move

Row = dict[str, Any]
"""A row of the table of flows."""

RTT_S = 0.05
SLACK = 0.5
"""Round trips that something may take longer: transmission, delayed acknowledgements."""
LINK: Json = {"rate": "20Mbit/s", "delay": "25ms", "queue": {"droptail": "100 packets"}}
LATER_S = 5.5
"""When the connection begins that resumes; TLS stacks that count the ticket's age in whole seconds round it down."""
MOVE_S, MOVING_S = 1.0, 20.0
"""When a connection's client moves, since its start; when this connection begins, long after another that does not
move."""
GIVE_UP_S = 0.5
"""When an answer is cancelled, since its request."""
STOPPED_BYTES = 2_000_000
"""What a server sends at most that stops then.

The link carries 1.25 MB until then, and 0.28 MB in a round trip with a full queue.
"""
ALONE_S = 10e6 * 8 / 20e6
"""10 MB at 20 Mbit/s."""
UPDATES = 2
"""Key updates of the client within two seconds, at least."""
URGENCY = (7, 0, 3)
"""Of three objects."""
VALIDATION_S = 3 * 3 * 0.333
"""How long the validation of a path may take: three initial probe timeouts (RFC 9000 §8.2.4), each of three initial
round-trip times of 333 ms (RFC 9002 §6.2.2)."""


@dataclass(frozen=True)
class Observed:
    """What is judged of a run."""

    rows: Sequence[Row]
    """Of its flows."""
    traces: Sequence[Trace]
    """What it shows of each of them besides."""


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
    judge: Callable[[Observed], Seen]
    """Looks at what a run showed."""
    client: frozenset[str] = frozenset()
    """Features that the client must have."""
    server: frozenset[str] = frozenset()
    """Features that the server must have."""
    link: Mapping[str, Any] = field(default_factory=lambda: LINK)
    paths: int = 1
    """Disjoint ones between the two hosts, each with this link."""
    duration: str = "20s"
    retries: bool = False
    """A Retry is requested."""

    def judged(self, run: Observed) -> Seen:
        """Return whether the run showed what is expected, and no Retry that was not requested."""
        told = sum(t.connection.retries for t in run.traces if t.connection is not None)
        if told and not self.retries:
            return Seen(False, "the server sent a Retry that was not asked for")
        return self.judge(run)

    def scenario(self, quic: Json, seed: int) -> Json:
        """Return the scenario."""
        record: Json = dict(traces.RECORD)
        topology: Json = {"simple": {"link": dict(self.link)}}
        if self.paths > 1:
            record["captures"] = ["path1"]
            topology = {"multipath": {"paths": [dict(self.link)] * self.paths}}
        return {
            "name": self.id,
            "duration": self.duration,
            "seed": seed,
            "record": record,
            "topology": topology,
            "flows": self.flows(quic),
        }


def flow(quic: Json, workload: Json, **more: Any) -> Json:
    """Return a flow between the two hosts."""
    made = {"from": "client", "to": "server", "transport": {"quic": quic}, "workload": workload}
    return {**made, **more}


def request(size: str) -> Json:
    """Return the workload of a client that requests one object."""
    return {"request": {"objects": 1, "size": size}}


def broken(row: Row) -> str:
    """Say what is wrong with a connection that did not complete, or whose data is not what was sent.

    Empty if nothing is.
    """
    if row["failure"] is not None:
        return f"the connection failed: {row['failure']}"
    if row["verified"] is False:
        return "data arrived that was not sent"
    if row["completion_s"] is not None:
        return "" if row["verified"] else "the data that arrived was not compared"
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


def after(run: Observed, column: str, what: str, trips: int) -> Seen:
    """Judge when something happened on the last connection, in round trips since its start."""
    wrong = whole(run.rows)
    if wrong is not None:
        return wrong
    value = run.rows[-1][column]
    if value is None:
        return Seen(False, f"{what} was not seen")
    took = value / RTT_S
    return Seen(trips <= took < trips + SLACK, f"{what} after {took:.2f} round trips")


def completed(run: Observed) -> Seen:
    """Judge whether all data arrived."""
    times = ", ".join(measured(r["completion_s"], "s") for r in run.rows if r["completion_s"])
    return whole(run.rows) or Seen(True, f"complete after {times}")


def first_byte(run: Observed, trips: int) -> Seen:
    """Judge when the response begins."""
    return after(run, "first_byte_s", "the response began", trips)


def early(run: Observed) -> Seen:
    """Judge the resumed connection: 0-RTT packets of the client, accepted, and answered after one round trip."""
    wrong = whole(run.rows)
    if wrong is not None:
        return wrong
    last = run.traces[-1]
    if last.connection is None or not last.connection.early:
        return Seen(False, "the client sent no 0-RTT packet")
    if "accepted" not in last.early_data:
        told = ", ".join(last.early_data) or "nothing"
        return Seen(False, f"early data was not accepted; told of it: {told}")
    return first_byte(run, 1)


def retried(run: Observed) -> Seen:
    """Judge a connection that begins with a Retry."""
    wrong = whole(run.rows)
    if wrong is not None:
        return wrong
    last = run.traces[-1]
    if last.connection is None or not last.connection.retry_first:
        return Seen(False, "the first packet of the server is no Retry")
    return first_byte(run, 3)


def moved(run: Observed) -> Seen:
    """Judge the connection whose client moves: by its packets, its pauses, and the connection before it that stays."""
    usual, row = run.rows
    trace = run.traces[-1]
    shown = trace.connection
    move = None if shown is None else shown.move
    if move is None or trace.pause_s is None:
        return whole(run.rows) or Seen(False, "the client sent nothing from another address")
    wrong = unlike_migration(move)
    if wrong:
        return Seen(False, wrong)
    pause = measured(trace.pause_s, "s")
    if trace.pause_s > VALIDATION_S:
        return Seen(False, f"after the move no data arrived for {pause}")
    broken = whole(run.rows)
    if broken is not None:
        return broken
    took, new = row["completion_s"] - MOVE_S, usual["completion_s"]
    told = f"complete {measured(took, 's')} after the move; a new connection takes {measured(new, 's')} for all of it"
    return Seen(
        took <= new + VALIDATION_S,
        f"{told}; the longest pause was {pause}, and the connection IDs were others",
    )


def unlike_migration(move: Move) -> str:
    """Say what packets after the client's move show that migration forbids, or do not show; empty if nothing."""
    if not move.ids:
        return "the client sent no QUIC packet from its new address"
    if not move.id_length:
        return "the server's connection IDs are empty: the client must not move (RFC 9000 §9.5)"
    if move.reused:
        return f"the client used a connection ID from both addresses (RFC 9000 §9.5): {', '.join(move.reused)}"
    if move.answer_s is None:
        return "the server sent nothing to the client's new address"
    if move.answer_reused:
        return f"the server used a connection ID to both addresses (RFC 9000 §9.5): {', '.join(move.answer_reused)}"
    return ""


def answered(run: Observed) -> Seen:
    """Judge pings in datagrams: all answered, none later than a round trip and a half."""
    (row,) = run.rows
    if row["failure"] is not None:
        return Seen(False, f"the connection failed: {row['failure']}")
    if row["verified"] is False:
        return Seen(False, "data arrived that was not sent")
    lost, longest = row["loss"], row["rtt_max_s"]
    if lost is None or longest is None:
        return Seen(False, "no datagram was answered")
    told = (
        f"{lost:.0%} of the datagrams lost, the last answer after {longest / RTT_S:.2f} round trips"
    )
    return Seen(lost == 0 and longest < (1 + SLACK) * RTT_S, told)


def cancelled(run: Observed) -> Seen:
    """Judge an answer that is cancelled: the next one does not wait for the rest of it."""
    (row,), (trace,) = run.rows, run.traces
    wrong = broken(row)
    if wrong:
        return Seen(False, wrong)
    first, second = trace.objects
    if first is not None:
        return Seen(False, "the first answer was complete before it was cancelled")
    if second is None:
        return Seen(False, "the second answer did not arrive")
    sent = 0 if trace.connection is None else trace.connection.answered_bytes
    told = (
        f"the server sent {sent / 1e6:.2f} MB in all; the next answer took {measured(second, 's')}"
    )
    return Seen(sent < STOPPED_BYTES and second < GIVE_UP_S, told)


def ordered(run: Observed) -> Seen:
    """Judge whether answers came in the order of their urgency."""
    (row,), (trace,) = run.rows, run.traces
    wrong = broken(row)
    if wrong:
        return Seen(False, wrong)
    times = {number: t for number, t in enumerate(trace.objects) if t is not None}
    came = sorted(times, key=times.__getitem__)
    wanted = sorted(range(len(URGENCY)), key=URGENCY.__getitem__)
    told = ", ".join(f"urgency {URGENCY[n]} after {measured(times[n], 's')}" for n in came)
    # The most urgent one has the path to itself: if they shared it, all would come near the end.
    alone = times[came[0]] < 0.75 * times[came[-1]]
    return Seen(came == wanted and alone, told)


def rekeyed(run: Observed) -> Seen:
    """Judge whether both ends went on with new keys."""
    wrong = whole(run.rows)
    if wrong is not None:
        return wrong
    updates = run.traces[0].key_updates
    if updates is None:
        return Seen(False, "no packet could be decrypted")
    client, server = updates
    told = f"{client} key updates of the client, {server} of the server"
    # The server's packets with the last keys may not have been sent before the end.
    return Seen(client >= UPDATES and client - 1 <= server <= client, told)


def spread(run: Observed) -> Seen:
    """Judge a transfer over two paths: faster than one could be."""
    (row,) = run.rows
    wrong = broken(row)
    if wrong:
        return Seen(False, wrong)
    took = row["completion_s"]
    told = f"complete after {measured(took, 's')}; one path needs {measured(ALONE_S, 's')}"
    return Seen(took < 0.75 * ALONE_S, told)


CASES = (
    Case(
        "handshake",
        "Handshake",
        "RFC 9001 §4",
        "the client's handshake is complete after one round trip",
        lambda quic: [flow(quic, request("10kB"))],
        lambda run: after(run, "handshake_s", "the client's handshake was complete", 1),
    ),
    Case(
        "1-rtt",
        "Request in the first round trip after the handshake",
        "RFC 9000 §7",
        "the response to a request begins after two round trips, and all of it arrives",
        lambda quic: [flow(quic, request("10kB"))],
        lambda run: first_byte(run, 2),
    ),
    Case(
        "0-rtt",
        "Request as early data",
        "RFC 9001 §4.6",
        "a resumed connection sends a request in 0-RTT packets, and the response begins after one round trip",
        lambda quic: [
            flow(quic, request("10kB")),
            flow({**quic, "handshake": "0-rtt"}, request("10kB"), start=f"{LATER_S}s"),
        ],
        early,
        client=frozenset({"0-rtt"}),
        server=frozenset({"0-rtt"}),
    ),
    Case(
        "retry",
        "Address validation by Retry",
        "RFC 9000 §8.1.2",
        "the first packet of the server is a Retry, and the response to a request begins after three round trips",
        lambda quic: [flow({**quic, "retry": True}, request("10kB"))],
        retried,
        retries=True,
        server=frozenset({"retry"}),
    ),
    Case(
        "migration",
        "Migration of the client to another address",
        "RFC 9000 §9",
        "all of 5 MB arrives though the client's address changes after one second: packets to and "
        "from the new address have "
        "other connection IDs, no pause is longer than 3 s, and the end comes at most 3 s later than that of a new "
        "connection begun at the move would",
        lambda quic: [
            flow(quic, request("5MB")),
            flow({**quic, "migration": {"after": f"{MOVE_S}s"}}, request("5MB"), start=f"{MOVING_S}s"),
        ],
        moved,
        duration="40s",
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
    Case(
        "unidirectional",
        "Unidirectional streams",
        "RFC 9000 §2.1",
        "3 MB arrive on three unidirectional streams of the client",
        lambda quic: [
            flow({**quic, "streams": 3, "unidirectional": True}, {"bulk": {"bytes": "3MB"}}),
        ],
        completed,
        client=frozenset({"unidirectional"}),
        server=frozenset({"unidirectional"}),
    ),
    Case(
        "datagrams",
        "Datagrams",
        "RFC 9221",
        "20 datagrams of the client, one each 100 ms, are answered by as many, none later than after one round trip",
        lambda quic: [
            flow(quic, {"ping": {"count": 20, "interval": "100ms", "size": "1000B"}}),
        ],
        answered,
        client=frozenset({"datagrams"}),
        server=frozenset({"datagrams"}),
        duration="5s",
    ),
    Case(
        "cancel",
        "An answer that is cancelled",
        "RFC 9000 §3.5",
        "the client asks for the end of an answer of 5 MB after half a second; the server stops, so that it sends less "
        "than 2 MB in all, and answers the next request in the connection",
        lambda quic: [
            flow(quic, {"request": {"sizes": ["5MB", "10kB"], "give_up": f"{GIVE_UP_S}s"}}),
        ],
        cancelled,
        client=frozenset({"cancel"}),
        server=frozenset({"cancel"}),
    ),
    Case(
        "urgency",
        "Answers of different urgency",
        "RFC 9218 §4.1",
        "of three answers of 500 kB that are requested at once the most urgent is complete first and has the path to "
        "itself, and the least urgent last",
        lambda quic: [
            flow(quic, {"request": {
                "objects": 3, "size": "500kB", "order": "multiplexed", "urgency": list(URGENCY),
            }}),
        ],
        ordered,
        # Without losses, whose repetitions come later than other answers.
        link={**LINK, "queue": {"droptail": "1000 packets"}},
        server=frozenset({"urgency"}),
    ),
    Case(
        "key-update",
        "Key updates",
        "RFC 9001 §6",
        "5 MB arrive though the client updates its keys each half second or as soon after it as it may, twice at "
        "least, and the server follows",
        lambda quic: [
            flow({**quic, "key_update": "500ms"}, {"bulk": {"bytes": "5MB"}}),
        ],
        rekeyed,
        client=frozenset({"key-update"}),
    ),
    Case(
        "multipath",
        "Two paths at once",
        "draft-ietf-quic-multipath",
        "10 MB arrive over two paths of 20 Mbit/s in less than three quarters of the time that one of them needs",
        lambda quic: [
            flow({**quic, "multipath": True}, {"bulk": {"bytes": "10MB"}}),
        ],
        spread,
        paths=2,
        client=frozenset({"multipath"}),
        server=frozenset({"multipath"}),
    ),
)  # fmt: skip
"""In the order of the columns."""
