"""What packets show of a connection without their keys, and what cells of the matrix of stacks are judged by."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gargalo
import polars as pl
import pytest
from gargalo.interop import CASES, traces, wire
from gargalo.interop.cases import Observed
from gargalo.interop.traces import Trace
from gargalo.interop.wire import Address, Connection, Datagram, Header, Move, headers
from stack_scenarios import QUIC, QUIET, shown

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.interop import Case

A, B = b"\xaa" * 8, b"\xbb" * 4
OLD, NEW, SERVER = (
    Address(bytes(ip), port)
    for ip, port in (((10, 0, 0, 1), 1), ((10, 1, 0, 1), 1), ((9, 9, 9, 9), 443))
)


def long(kind: int, destination: bytes, source: bytes, body: bytes, version: int = 1) -> bytes:
    ids = b"".join(bytes([len(i)]) + i for i in (destination, source))
    return bytes([0xC0 | kind << 4]) + version.to_bytes(4, "big") + ids + body


def protected(length: int) -> bytes:
    """Return a length of two bytes and what it counts."""
    return (0x4000 | length).to_bytes(2, "big") + bytes(length)


INITIAL = long(0, A, B, b"\x05token" + protected(30))


def test_headers_of_all_packets_of_a_datagram_are_read() -> None:
    early = long(1, A, B, protected(300))
    end = Header("1-rtt", A, b"")
    assert headers(INITIAL + early, None) == [Header("initial", A, B), Header("0-rtt", A, B)]
    assert headers(long(2, A, B, protected(9)) + b"\x41" + A + b"xyz", 8)[1] == end
    # The fixed bit may be 0 (RFC 9287).
    assert headers(b"\x01" + A + b"xyz", 8) == [end]
    assert headers(long(3, A, B, b"token"), None) == [Header("retry", A, B)]
    assert headers(long(0, A, B, b"token", 0x6B3343CF), None) == [Header("retry", A, B)]
    assert headers(long(2, A, B, b"", 0), None) == [Header("negotiation", A, B)]
    # Zeros after the last packet are padding.
    assert headers(INITIAL + bytes(100), 8) == [Header("initial", A, B)]


@pytest.mark.parametrize(
    "payload",
    [
        INITIAL[:-1],
        INITIAL[:9],
        long(0, A, B, b"", 7),
        long(0, bytes(21), B, b""),
        b"\x41" + A[:7],
    ],
)
def test_what_is_not_quic_is_refused(payload: bytes) -> None:
    with pytest.raises(wire.NotQuicError):
        headers(payload, 8)


def test_a_short_header_needs_a_connection_that_began() -> None:
    with pytest.raises(wire.NotQuicError):
        headers(b"\x41" + A, None)


def test_any_bytes_are_read_or_refused() -> None:
    rng = random.Random(1)
    for _ in range(20_000):
        data = bytearray(INITIAL + b"\x41" + A)[: rng.randrange(1, 60)]
        data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            headers(bytes(data), rng.choice([None, 0, 8, 20]))
        except wire.NotQuicError:
            continue


def talk(*said: tuple[Address, Address, bytes]) -> Connection:
    found = wire.connections(Datagram(float(n), *one) for n, one in enumerate(said))
    assert set(found) == {1}
    return found[1]


START = ((OLD, SERVER, INITIAL), (SERVER, OLD, long(2, B, A, protected(9))))


def short(to: bytes) -> bytes:
    return b"\x41" + to + b"data"


def test_a_move_is_seen_by_connection_ids() -> None:
    before = (*START, (OLD, SERVER, short(A)), (SERVER, OLD, short(B)))
    moved = talk(*before, (NEW, SERVER, short(b"12345678")), (SERVER, NEW, short(b"1234")))
    assert moved.move == Move(4.0, 8, 1, [], 1.0, [])
    still = talk(*before, (NEW, SERVER, short(A)), (SERVER, NEW, short(B)))
    assert still.move == Move(4.0, 8, 1, [A.hex()], 1.0, [B.hex()])
    silent = talk(*before, (NEW, SERVER, short(b"12345678")), (SERVER, OLD, short(B)))
    assert silent.move == Move(4.0, 8, 1, [], None, [])
    assert talk(*before).move is None
    # A protocol that is not QUIC has no connection IDs.
    other = talk((OLD, SERVER, b"hello"), (SERVER, OLD, b"welcome"), (NEW, SERVER, b"data"))
    assert other.move == Move(2.0, 0, 0, [], None, [])
    assert other.strange == 3


def test_retries_and_early_data_are_seen() -> None:
    retry = long(3, B, A, b"token")
    seen = talk((OLD, SERVER, INITIAL + long(1, A, B, protected(50))), (SERVER, OLD, retry))
    assert (seen.retry_first, seen.retries, seen.early) == (True, 1, 1)
    assert not talk(*START).retry_first
    late = talk(*START, (SERVER, OLD, retry))
    assert (late.retry_first, late.retries) == (False, 1)


PLAIN = Connection(retries=0, retry_first=False, early=0, strange=0, move=None)
GOOD = Move(at_s=21.0, id_length=8, ids=1, reused=[], answer_s=0.05, answer_reused=[])
ROW = {
    "failure": None,
    "verified": True,
    "completion_s": 2.4,
    "handshake_s": 0.051,
    "first_byte_s": 0.101,
    "delivered_bytes": 5_000_000,
}
USUAL = Trace(PLAIN, [], None)
MOVED = Trace(replace(PLAIN, move=GOOD), [], 0.1)


def case(name: str) -> Case:
    return next(c for c in CASES if c.id == name)


def judged(name: str, *flows: tuple[dict[str, Any], Trace]) -> tuple[bool, str]:
    seen = case(name).judged(Observed([r for r, _ in flows], [t for _, t in flows]))
    return seen.good, seen.text


@pytest.mark.parametrize(
    ("move", "said"),
    [
        ({"reused": ["ab"]}, "used a connection ID from both addresses"),
        ({"ids": 0}, "no QUIC packet from its new address"),
        ({"id_length": 0}, "connection IDs are empty"),
        ({"answer_s": None}, "the server sent nothing to the client's new address"),
        ({"answer_reused": ["ab"]}, "the server used a connection ID to both"),
    ],
)
def test_packets_must_show_a_migration(move: dict[str, Any], said: str) -> None:
    assert judged("migration", (ROW, USUAL), (ROW, MOVED))[0]
    trace = replace(MOVED, connection=replace(PLAIN, move=replace(GOOD, **move)))
    good, text = judged("migration", (ROW, USUAL), (ROW, trace))
    assert not good
    assert said in text
    assert judged("migration", (ROW, USUAL), (ROW, USUAL))[0] is False


def test_data_goes_on_soon_after_a_migration() -> None:
    good, text = judged("migration", (ROW, USUAL), (ROW, replace(MOVED, pause_s=3.1)))
    assert (good, text) == (False, "after the move no data arrived for 3.1 s")
    # A new connection for all of it, begun at the move, would be complete at 3.4 s.
    assert judged("migration", (ROW, USUAL), ({**ROW, "completion_s": 6.3}, MOVED))[0]
    assert not judged("migration", (ROW, USUAL), ({**ROW, "completion_s": 6.5}, MOVED))[0]


def test_a_pause_lasts_from_the_move_to_the_first_new_data() -> None:
    samples = pl.DataFrame(
        {
            "time_s": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
            "flow": [0] * 6,
            "delivered_bytes": [10, 20, 20, 20, 30, 40],
        }
    )
    assert traces.longest_pause(samples, 0, 1.0) == 1.5
    assert traces.longest_pause(samples, 0, 2.5) == 0.5
    stopped = samples.with_columns(delivered_bytes=pl.Series([10, 20, 20, 20, 20, 20]))
    assert traces.longest_pause(stopped, 0, 1.0) == 2.0


RETRIED = Trace(replace(PLAIN, retries=1, retry_first=True), [], None)


def test_a_retry_must_be_there_where_it_is_asked_for_and_only_there() -> None:
    late = {**ROW, "first_byte_s": 0.151}
    assert judged("retry", (late, RETRIED))[0]
    assert judged("retry", (late, USUAL)) == (False, "the first packet of the server is no Retry")
    assert not judged("retry", (ROW, RETRIED))[0]
    assert judged("1-rtt", (ROW, USUAL))[0]
    assert judged("1-rtt", (ROW, RETRIED)) == (
        False,
        "the server sent a Retry that was not asked for",
    )


def test_early_data_must_be_sent_as_such_and_accepted() -> None:
    soon = {**ROW, "first_byte_s": 0.051}
    sent = Trace(replace(PLAIN, early=1), ["keys", "accepted"], None)
    assert judged("0-rtt", (ROW, USUAL), (soon, sent))[0]
    refused = replace(sent, early_data=["rejected"])
    assert "not accepted" in judged("0-rtt", (ROW, USUAL), (soon, refused))[1]
    assert "no 0-RTT packet" in judged("0-rtt", (ROW, USUAL), (soon, USUAL))[1]
    assert not judged("0-rtt", (ROW, USUAL), (ROW, sent))[0]


def test_datagrams_must_all_be_answered_soon() -> None:
    row = {**ROW, "completion_s": None, "loss": 0.0, "rtt_max_s": 0.052}
    assert judged("datagrams", (row, USUAL))[0]
    assert not judged("datagrams", ({**row, "loss": 0.05}, USUAL))[0]
    assert not judged("datagrams", ({**row, "rtt_max_s": 0.08}, USUAL))[0]
    assert "no datagram" in judged("datagrams", ({**row, "rtt_max_s": None}, USUAL))[1]
    assert "not sent" in judged("datagrams", ({**row, "verified": False}, USUAL))[1]
    assert "failed" in judged("datagrams", ({**row, "failure": "reset"}, USUAL))[1]


def test_a_cancelled_answer_is_not_sent_to_its_end() -> None:
    def seen(objects: list[float | None], sent: int) -> tuple[bool, str]:
        connection = replace(PLAIN, answered_bytes=sent)
        return judged("cancel", (ROW, replace(USUAL, connection=connection, objects=objects)))

    assert seen([None, 0.1], 1_500_000)[0]
    assert not seen([None, 0.1], 2_500_000)[0]
    assert not seen([None, 0.6], 1_500_000)[0]
    assert "before it was cancelled" in seen([0.4, 0.1], 1_500_000)[1]
    assert "did not arrive" in seen([None, None], 1_500_000)[1]


def test_urgent_answers_come_first_and_alone() -> None:
    def seen(*objects: float | None) -> bool:
        return judged("urgency", (ROW, replace(USUAL, objects=list(objects))))[0]

    assert seen(0.8, 0.4, 0.6)
    assert not seen(0.8, 0.7, 0.75), "they share the path"
    assert not seen(0.6, 0.4, 0.8), "the wrong one is last"
    assert not seen(0.8, 0.4, None)


def test_both_ends_must_have_new_keys() -> None:
    def seen(updates: list[int] | None) -> tuple[bool, str]:
        return judged("key-update", (ROW, replace(USUAL, key_updates=updates)))

    assert [seen(u)[0] for u in ([4, 4], [4, 3], [2, 2])] == [True] * 3
    assert [seen(u)[0] for u in ([4, 2], [1, 1], [0, 0], [2, 3])] == [False] * 4
    assert "decrypted" in seen(None)[1]


def test_data_that_was_not_compared_is_not_good() -> None:
    assert judged("1-rtt", ({**ROW, "verified": None}, USUAL)) == (
        False,
        "the data that arrived was not compared",
    )


def test_a_run_of_noq_shows_its_migration(tmp_path: Path) -> None:
    text = QUIET.replace("STACK", '"noq"').replace("50kB", "300kB")
    changes = {f"{QUIC}.migration": '{ after = "100ms" }', f"{QUIC}.handshake": "0-rtt"}
    first, second = shown(text, tmp_path / "run", **changes)
    assert first.connection is not None
    # 300 kB in packets of 1200 bytes: acknowledgements, and the handshake.
    assert 3_000 < first.connection.answered_bytes < 30_000
    assert replace(first.connection, answered_bytes=0) == PLAIN
    assert "accepted" in second.early_data
    assert second.connection is not None
    assert second.connection.early > 0
    move = second.connection.move
    assert move is not None
    assert move.at_s == pytest.approx(2.1, abs=0.01)
    assert (move.ids, move.reused, move.answer_reused) == (1, [], [])
    assert move.answer_s == pytest.approx(0.045, abs=0.02)
    assert second.pause_s is not None
    with pytest.raises(ValueError, match="no files"):
        traces.of_run(gargalo.run(text))
    (tmp_path / "torn.pcapng").write_bytes((tmp_path / "run/capture.pcapng").read_bytes()[:-3])
    with pytest.raises(ValueError, match="damaged"):
        list(wire.datagrams(tmp_path / "torn.pcapng"))
