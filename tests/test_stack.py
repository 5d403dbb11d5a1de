"""QUIC stacks written in Python, and those that are installed as files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import ClassVar

import gargalo
import pytest
from gargalo import virtual
from gargalo.interop import wire
from gargalo.plugins import discovery, registry
from toy_stack import HEADER, SOURCE, WINDOW, Toy

HERE = Path(__file__).resolve().parent

SCENARIO = """\
name     = "toy"
seed     = 5
duration = "20s"

[topology.simple]
link = { rate = "10Mbit/s", delay = "10ms", loss = { independent = 0.02 }, reorder = { probability = 0.05, late = "3ms" } }

[[flows]]
from = "client"
to   = "server"
transport.quic = { stack = "toy", congestion = "fixed" }
workload.bulk = { bytes = "500kB" }

[record]
verify = true
events = true
"""


def run(stack: type[gargalo.QuicStack] = Toy, **changes: object) -> gargalo.Run:
    return gargalo.run(SCENARIO, stacks={"toy": stack}, set=changes)


def test_a_stack_in_python_delivers_everything_under_loss() -> None:
    done = run()
    flow = done.flows.row(0, named=True)
    assert flow["delivered_bytes"] == 500_000
    assert flow["completion_s"] < 20
    assert flow["verified"]
    assert flow["sent_packets"] > 500
    assert flow["lost_packets"] > 0
    # What a stack does not tell is missing.
    assert flow["timeouts"] is None
    assert "loss" in done.events["kind"].to_list()


def test_the_same_seed_gives_the_same_run() -> None:
    first, again, other = run(), run(), run(seed=6)
    assert first.events.equals(again.events)
    assert first.flow_samples.equals(again.flow_samples)
    assert not first.events.equals(other.events)


def test_requests_are_answered_over_streams() -> None:
    text = SCENARIO.replace(
        'workload.bulk = { bytes = "500kB" }',
        'workload.request = { objects = 3, size = "20kB" }',
    )
    flow = gargalo.run(text, stacks={"toy": Toy}).flows.row(0, named=True)
    assert flow["delivered_bytes"] == 60_000


class NeedsEcdsa(Toy):
    """Cannot use Ed25519."""

    features: ClassVar = frozenset({"ecdsa"})
    given: ClassVar[list[tuple[bytes, bytes]]] = []

    def __init__(self, config, host, now):
        self.given.append((config.certificate, config.private_key))
        super().__init__(config, host, now)


def test_both_ends_have_a_certificate_of_p256_if_one_cannot_use_ed25519() -> None:
    class Usual(NeedsEcdsa):
        features: ClassVar = frozenset()

    oid = {"ed25519": bytes.fromhex("06032b6570"), "p256": bytes.fromhex("06082a8648ce3d030107")}
    for ends, kind in {
        (Usual, Usual): "ed25519",
        (Usual, NeedsEcdsa): "p256",
        (NeedsEcdsa, Usual): "p256",
    }.items():
        NeedsEcdsa.given.clear()
        stacks = dict(zip(("one", "other"), ends, strict=True))
        text = SCENARIO.replace('stack = "toy"', 'stack = { client = "one", server = "other" }')
        gargalo.run(text, stacks=stacks)
        for certificate, key in NeedsEcdsa.given:
            assert certificate == NeedsEcdsa.given[0][0]
            assert oid[kind] in certificate
            assert oid[kind] in key or not key
        assert len({bool(key) for _, key in NeedsEcdsa.given}) == 2


class TellsAddresses(Toy):
    """Goes on with the address before for a second after it has migrated."""

    features: ClassVar = frozenset({"migration", "local-address"})
    arrived: ClassVar[list] = []
    moved = None

    def migrate(self, now, local):
        self.moved = now, local

    def datagram_in(self, now, datagram):
        self.remote = datagram.remote
        if not self.config.is_server:
            self.arrived.append((now, datagram.local))
        super().datagram_in(now, datagram)

    def datagram_out(self, now):
        sent = super().datagram_out(now)
        is_new = sent is not None and self.moved is not None and now > self.moved[0] + 1
        return sent._replace(local=self.moved[1]) if is_new else sent


class TellsNone(TellsAddresses):
    features: ClassVar = frozenset({"migration"})


def test_a_stack_may_say_from_which_of_its_addresses_a_datagram_leaves(tmp_path: Path) -> None:
    def sent_from(stack: type[TellsAddresses]) -> tuple[list[tuple[str, int]], list[object]]:
        TellsAddresses.arrived.clear()
        out = tmp_path / stack.__name__
        changes = {
            "flows.0.transport.quic.migration": '{ after = "100ms" }',
            "flows.0.workload.bulk.bytes": "2MB",
            "record.captures": '["link"]',
        }
        done = gargalo.run(SCENARIO, stacks={"toy": stack}, set=changes, output=out)
        assert done.flows["delivered_bytes"][0] == 2_000_000
        firsts: dict[str, float] = {}
        for data in wire.datagrams(out / "capture.pcapng"):
            if data.source.port != 443:
                firsts.setdefault(str(IPv4Address(data.source.ip)), data.time_s)
        return list(firsts.items()), [a for _, a in TellsAddresses.arrived]

    (old, new), arrived = sent_from(TellsAddresses)
    assert new[1] == pytest.approx(1.1, abs=0.1)
    assert {ip for ip, _ in arrived} == {old[0], new[0]}
    # What it does not say is the host's: the present address at once.
    (_, new), arrived = sent_from(TellsNone)
    assert new[1] == pytest.approx(0.1, abs=0.05)


class Able(Toy):
    """Has the functions beyond bidirectional streams; what is done with it is in `told`."""

    features: ClassVar = frozenset(
        {"unidirectional", "datagrams", "cancel", "urgency", "key-update"}
    )
    told: ClassVar[list[tuple]] = []

    def tell(self, *what):
        self.told.append(("server" if self.config.is_server else "client", *what))

    def open_unidirectional_stream(self, now):
        return self.open_stream(now) + 2

    def send_datagram(self, now, data):
        if len(data) > 1000:
            return None
        if len(self.waiting) > 3:
            return False
        self.put(b"G", 0, 0, False, data)
        return True

    def reset_stream(self, now, stream):
        self.tell("reset", stream)
        self.put(b"R", stream, 0, True)
        held = [w for w in self.waiting if HEADER.unpack_from(w[1])[::2][:2] != (b"D", stream)]
        self.waiting.clear()
        self.waiting.extend(held)

    def stop_sending(self, now, stream):
        self.tell("stop", stream, round(now, 2))
        self.put(b"S", stream, 0, False)

    def set_urgency(self, now, stream, urgency):
        self.tell("urgency", stream, urgency)

    def update_keys(self, now):
        self.tell("keys", round(now, 1))
        return True

    def datagram_in(self, now, datagram):
        kind, number, stream, *_ = HEADER.unpack_from(datagram.data)
        super().datagram_in(now, datagram)
        seen = self.__dict__.setdefault("seen", set())
        if kind == b"G" and number not in seen:
            seen.add(number)
            self.host.datagram(datagram.data[HEADER.size :])
        if kind == b"S":
            self.host.stopped(stream)
        if kind == b"R":
            self.host.reset(stream)


def able(workload: str, stack: type[Toy] = Able, quic: str = "", **changes: object) -> gargalo.Run:
    Able.told.clear()
    text = SCENARIO.replace('workload.bulk = { bytes = "500kB" }', f"workload.{workload}")
    text = text.replace('congestion = "fixed"', f'congestion = "fixed"{quic}')
    return gargalo.run(text, stacks={"toy": stack}, set=changes)


def test_datagrams_are_offered_until_they_are_taken() -> None:
    done = able('ping = { count = 40, interval = "20ms" }')
    flow = done.flows.row(0, named=True)
    # The toy sends again what is lost.
    assert (flow["loss"], flow["verified"], flow["failure"]) == (0.0, True, None)
    assert done.pings.height == 40
    wrong = able('ping = { count = 4, size = "1001B" }').flows["failure"][0]
    assert "1001 bytes does not fit into a packet" in wrong


def test_a_transfer_takes_unidirectional_streams() -> None:
    quic = ', streams = 2, unidirectional = true, key_update = "100ms"'
    flow = able('bulk = { bytes = "300kB" }', quic=quic).flows.row(0, named=True)
    assert (flow["delivered_bytes"], flow["verified"]) == (300_000, True)
    keys = [t for who, what, t, *_ in Able.told if (who, what) == ("client", "keys")]
    assert keys[:3] == [0.1, 0.2, 0.3]


def test_answers_are_cancelled_and_ordered() -> None:
    done = able('request = { sizes = ["1MB", "10kB"], give_up = "600ms" }')
    flow = done.flows.row(0, named=True)
    assert (flow["failure"], flow["verified"]) == (None, True)
    assert done.objects["completion_s"].is_null().to_list() == [True, False]
    told = [t for t in Able.told if t[1] in ("stop", "reset")]
    assert [t[:3] for t in told] == [("client", "stop", 0), ("server", "reset", 0)]
    able('request = { objects = 2, size = "50kB", order = "multiplexed", urgency = [6, 1] }')
    assert [t[2:] for t in Able.told if t[:2] == ("server", "urgency")] == [(0, 6), (4, 1)]


def test_functions_that_a_stack_lacks_are_refused_before_the_run() -> None:
    for workload, quic, word in [
        ("ping = {}", "", "datagrams"),
        ("bulk = {}", ", unidirectional = true", "unidirectional = true"),
        ("bulk = {}", ', key_update = "1s"', "key_update"),
        ('request = { size = "1kB", give_up = "1s" }', "", "give_up"),
        ('request = { size = "1kB", order = "multiplexed", urgency = [1] }', "", "urgency"),
    ]:
        with pytest.raises(gargalo.ScenarioError, match=word):
            able(workload, Toy, quic)

    class Boastful(Toy):
        features: ClassVar = frozenset({"cancel"})

    with pytest.raises(TypeError, match="must define reset_stream"):
        able("bulk = {}", Boastful)


class TooLong(Toy):
    """Says hello in a datagram of 1400 bytes, and cuts it when it is told the MTU."""

    told: ClassVar[list[tuple]] = []

    def put(self, kind, stream, offset, fin, data=b""):
        super().put(kind, stream, offset, fin, data.ljust(1400) if kind == b"H" else data)

    def packet_too_big(self, now, local, remote, mtu):
        self.told.append((now, local == self.config.local, remote == self.config.remote, mtu))
        self.flight = {n: (at, data[: mtu - 28]) for n, (at, data) in self.flight.items()}


def test_a_stack_is_told_the_mtu_of_a_link_unless_that_sends_no_errors() -> None:
    TooLong.told.clear()
    mtu = {"topology.simple.link.mtu": "1300B"}
    flow = run(TooLong, **mtu).flows.row(0, named=True)
    assert (flow["delivered_bytes"], flow["failure"]) == (500_000, None)
    assert TooLong.told == [(0.0, True, True, 1300)]
    # One that takes no note of it has a black hole, as has one that is not told.
    hole = run(TooLong, **mtu, **{"topology.simple.link.icmp": False})
    assert hole.flows["delivered_bytes"].to_list() == [0]
    assert len(TooLong.told) == 1


class Resets(Able):
    """Resets each stream that the peer has not asked for."""

    def write(self, now, stream, data, fin):
        if self.config.is_server:
            self.put(b"R", stream, 0, True)
        return super().write(now, stream, data, fin)


def test_a_stream_that_is_reset_unasked_fails_the_flow() -> None:
    flow = able('request = { size = "10kB" }', Resets).flows.row(0, named=True)
    assert flow["failure"] == "the peer has reset a stream"


class Reports(Toy):
    """Tells what happens to its packets, and neither counts nor logs."""

    features: ClassVar = frozenset({"packets"})

    def datagram_in(self, now, datagram):
        kind, number, *_ = HEADER.unpack_from(datagram.data)
        self.host.packet("received", "1-rtt", number, len(datagram.data))
        if kind == b"A" and number in self.flight:
            self.host.packet("acknowledged", "1-rtt", number)
        super().datagram_in(now, datagram)

    def datagram_out(self, now):
        sent = super().datagram_out(now)
        if sent is not None:
            kind, number, *_ = HEADER.unpack_from(sent.data)
            self.host.packet("sent", "1-rtt", number, len(sent.data), kind not in b"AC")
        return sent

    def timeout(self, now):
        lost = self.lost
        super().timeout(now)
        for _ in range(self.lost - lost):
            self.host.packet("lost", "1-rtt", 0)

    def stats(self):
        return gargalo.QuicStats(cwnd=WINDOW * 1000, phase="steady")


def test_the_host_counts_packets_and_writes_qlog_of_them(tmp_path: Path) -> None:
    counts = run().flows.row(0, named=True)
    done = gargalo.run(
        SCENARIO, stacks={"toy": Reports}, set={"record.qlog": True}, output=tmp_path / "run"
    )
    flow = done.flows.row(0, named=True)
    assert flow["lost_packets"] == counts["lost_packets"] > 0
    # The toy's own number leaves out what it sends again, and has the packet that closes.
    assert flow["sent_packets"] == counts["sent_packets"] + counts["lost_packets"]
    traces = sorted((tmp_path / "run/qlog").iterdir())
    assert [t.name for t in traces] == ["flow0-client.sqlog", "flow0-server.sqlog"]
    records = [json.loads(r) for r in traces[0].read_text("utf-8").split("\x1e")[1:]]
    assert records[0]["trace"]["vantage_point"]["type"] == "client"
    names = [r.get("name") for r in records]
    assert names[1] == "connectivity:connection_started"
    assert "connectivity:connection_closed" in names[-2:]  # Before the packet that closes.
    assert names.count("recovery:packet_lost") == counts["lost_packets"]
    acknowledged = names.count("transport:packets_acked")
    assert acknowledged + counts["lost_packets"] <= flow["sent_packets"]
    metrics = [r["data"] for r in records if r.get("name") == "recovery:metrics_updated"]
    assert metrics[0]["congestion_window"] == WINDOW * 1000
    assert any("latest_rtt" in m for m in metrics)
    times = [r["time"] for r in records[1:]]
    assert times == sorted(times)
    # What other readers of qlog make of it.
    told = gargalo.read(traces).flows.row(0, named=True)
    assert told["lost_packets"] == counts["lost_packets"]

    class Strange(Reports):
        def timeout(self, now):
            self.host.packet("vanished", "1-rtt", 0)

    with pytest.raises(ValueError, match="vanished"):
        run(Strange)


class Strays(Able):
    """Reports what it must not."""

    stray: ClassVar[str] = ""

    def datagram_in(self, now, datagram):
        super().datagram_in(now, datagram)
        if self.config.is_server and HEADER.unpack_from(datagram.data)[0] in b"DG":
            frame = datagram.data[HEADER.size :]
            if self.stray == "unasked":
                self.host.datagram(bytes(100))
            if self.stray == "twice":
                self.host.datagram(frame)
            if self.stray == "strange":
                self.host.datagram(b"\xff" * len(frame))

    def open_unidirectional_stream(self, now):
        return self.open_stream(now)


def test_what_a_stack_must_not_report_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strays, "stray", "unasked")
    why = able('bulk = { bytes = "50kB" }', Strays).flows["failure"][0]
    assert "a datagram in a connection without datagrams" in why
    for stray in ("twice", "strange"):
        monkeypatch.setattr(Strays, "stray", stray)
        flow = able("ping = { count = 5 }", Strays).flows.row(0, named=True)
        assert flow["verified"] is False
        assert flow["delivered_bytes"] == 5 * 56
    quic = ", unidirectional = true"
    why = able('bulk = { bytes = "50kB" }', Strays, quic).flows["failure"][0]
    assert "opened stream 0, whose number is of the other direction" in why


def test_datagrams_in_a_group_have_delays_and_sizes() -> None:
    text = SCENARIO.replace('workload.bulk = { bytes = "500kB" }', "workload.voice = {}")
    done = gargalo.run(text, stacks={"toy": Able}, set={"flows.0.record": "summary"})
    (group,) = done.summary["background"]["groups"]
    assert group["offered_bytes"] > 0
    assert group["offered_bps"] > 0
    assert group["delay_p50_s"] > 0.01
    assert "rtt_p50_s" not in group


class TwoPaths(Toy):
    """Sends from two addresses in turn, once a second path is open."""

    features: ClassVar = frozenset({"multipath", "local-address"})

    def __init__(self, config, host, now):
        super().__init__(config, host, now)
        self.ways = {0: (config.local, config.remote, now)}
        self.got, self.turn = {0: 0, 1: 0}, 0

    def open_path(self, now, local, remote):
        self.ways[1] = (local, remote, now)

    def datagram_in(self, now, datagram):
        way = (datagram.local, datagram.remote)
        if way != self.ways[0][:2]:
            self.ways.setdefault(1, (*way, now))
        path = int(way != self.ways[0][:2])
        kind, number, *_ = HEADER.unpack_from(datagram.data)
        if kind == b"D":
            self.got[path] += len(datagram.data) - HEADER.size
        if kind == b"A" and number in self.flight:
            self.host.path_rtt_sample(path, now - self.flight[number][0])
        super().datagram_in(now, datagram)

    def datagram_out(self, now):
        sent = super().datagram_out(now)
        if sent is None:
            return None
        self.turn = (self.turn + 1) % len(self.ways)
        local, remote, _ = self.ways[self.turn]
        return sent._replace(local=local, remote=remote)

    def paths(self):
        return [
            gargalo.QuicPath(
                id=path,
                local=local,
                remote=remote,
                opened=at,
                received_bytes=self.got[path],
                sender=gargalo.QuicStats(cwnd=1000 * (path + 1), lost_packets=path),
            )
            for path, (local, remote, at) in self.ways.items()
        ]


def test_a_stack_may_have_several_paths() -> None:
    link = '{ rate = "10Mbit/s", delay = "10ms" }'
    text = SCENARIO[: SCENARIO.index("link =")].replace("simple", "multipath")
    text += f"paths = [{link}, {link}]\n" + SCENARIO[SCENARIO.index("\n[[flows]]") :]
    text = text.replace('congestion = "fixed"', 'congestion = "fixed", multipath = true')
    done = gargalo.run(text, stacks={"toy": TwoPaths})
    flow = done.flows.row(0, named=True)
    assert (flow["verified"], flow["delivered_bytes"]) == (True, 500_000)
    first, second = done.subflows.rows(named=True)
    assert (first["link"], second["link"]) == ("path0", "path1")
    assert first["delivered_bytes"] + second["delivered_bytes"] == 500_000
    assert 0.4 < second["delivered_bytes"] / 500_000 < 0.6
    assert (first["lost_packets"], second["lost_packets"]) == (0, 1)
    assert first["sent_packets"] is None
    assert flow["rtt_p50_s"] == pytest.approx(0.021, abs=0.01)
    assert set(done.subflow_samples["congestion_window_bytes"].unique()) == {1000, 2000}
    with pytest.raises(gargalo.ScenarioError, match="multipath"):
        gargalo.run(text, stacks={"toy": Toy})


class Broken(Toy):
    def datagram_in(self, now, datagram):
        raise ZeroDivisionError("as the test wants")


class Wrong(Toy):
    def datagram_out(self, now):
        return b"no addresses"


class Eager(Toy):
    def next_timer(self):
        return float("nan")


class Taker(Toy):
    def write(self, now, stream, data, fin):
        return "all"


class Teller(Toy):
    def stats(self):
        return gargalo.QuicStats(cwnd=-1)


class Shouter(Toy):
    def timeout(self, now):
        self.host.event("hello")


class Unborn(Toy):
    def __init__(self, config, host, now):
        raise OSError(f"no {config.alpn} today")


@pytest.mark.parametrize(
    ("stack", "error", "message"),
    [
        (Broken, ZeroDivisionError, "as the test wants"),
        (
            Wrong,
            TypeError,
            r"Wrong\.datagram_out\(\) returned b'no addresses'; it must be a gargalo\.Quic",
        ),
        (Eager, ValueError, r"Eager\.next_timer\(\) returned NaN; it must be a finite number"),
        (Taker, TypeError, r"Taker\.write\(\) returned 'all'; it must be a number of bytes"),
        (
            Teller,
            TypeError,
            r"Teller\.stats\(\) returned QuicStats\(.*cwnd=-1.*; it must be a gargalo\.Quic",
        ),
        (Shouter, ValueError, r'there is no event "hello": early, connected, closed or failed'),
        (Unborn, OSError, "no gargalo today"),
    ],
)
def test_a_fault_stops_the_run_and_is_named(
    stack: type[gargalo.QuicStack], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(stack)


class Quitter(Toy):
    def datagram_out(self, now):
        if not self.config.is_server and self.numbers > 40:
            self.ready.clear()
            self.over = True
            self.host.event("failed", text="no route to the server")
            return None
        return super().datagram_out(now)


def test_a_failure_told_in_datagram_out_ends_the_flow_with_its_reason() -> None:
    done = run(Quitter)
    assert done.flows["failure"].to_list() == ["no route to the server"]
    failed = done.events.filter(done.events["kind"] == "failed")
    assert failed["detail"].to_list() == ["no route to the server"]


class Forgetful(Toy):
    def stats(self):
        return gargalo.QuicStats(sent_packets=0, lost_packets=0) if self.over else super().stats()


class Mute(Toy):
    def stats(self):
        return gargalo.QuicStats() if self.over else super().stats()


@pytest.mark.parametrize("stack", [Forgetful, Mute])
@pytest.mark.parametrize("sampled", [True, False])
def test_counters_after_the_end_are_the_last_that_were_told(
    stack: type[gargalo.QuicStack], sampled: bool
) -> None:
    usual, done = (run(s, **{"record.flows": sampled}) for s in (Toy, stack))
    columns = ["sent_packets", "lost_packets", "timeouts", "completion_s"]
    assert done.flows.select(columns).equals(usual.flows.select(columns))


def test_a_sum_is_missing_if_a_stack_does_not_tell_a_part() -> None:
    done = run(**{"flows.0.record": "summary"})
    (group,) = done.summary["background"]["groups"]
    assert (group["completed_flows"], group["sent_packets"] > 500) == (1, True)
    assert group["lost_packets"] > 0
    assert (group["retransmitted_packets"], group["timeouts"]) == (None, None)


class Versions(Toy):
    congestion = ("bbr", "bbr1")
    asked: ClassVar[set[str]] = set()

    def __init__(self, config, host, now):
        self.asked.add(config.congestion)
        super().__init__(config, host, now)


class OneVersion(Versions):
    congestion = ("bbr",)
    asked: ClassVar[set[str]] = set()


def test_a_name_that_a_stack_knows_is_handed_on_as_it_is() -> None:
    change = {"flows.0.transport.quic.congestion": "bbr1"}
    for stack, name in ((Versions, "bbr1"), (OneVersion, "bbr")):
        done = run(stack, **change)
        assert stack.asked == {name}
        assert done.flows["congestion"].to_list() == [name]


class Silent(gargalo.QuicStack):
    congestion = ("fixed",)


class Nameless(Toy):
    congestion = ()


class Stranger:
    congestion = ("fixed",)


class Boastful(Toy):
    features = frozenset({"teleport"})


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (Silent, r"Silent must define datagram_in\(\)"),
        (Nameless, r"Nameless\.congestion is empty"),
        (Boastful, r'Boastful\.features has "teleport"; there are 0-rtt, '),
        (Stranger, r"Stranger'> is not a gargalo\.QuicStack"),
    ],
)
def test_a_class_that_cannot_be_a_stack_is_refused(stack: type, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run(stack, **{"flows.0.transport.quic.congestion": "cubic"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"congestion": "cubic"}, "its own congestion controls: fixed"),
        ({"retry": True}, "retry = true"),
        ({"ecn": True}, "ecn = true"),
        ({"pacing": False}, "pacing = false"),
        ({"crypto": "null"}, 'crypto = "null"'),
    ],
)
def test_what_a_stack_cannot_do_is_refused_before_the_run(change: dict, message: str) -> None:
    ((key, value),) = change.items()
    with pytest.raises(gargalo.ScenarioError, match=message):
        run(**{f"flows.0.transport.quic.{key}": value})


def test_an_installed_stack_is_loaded_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "filed.py").write_text(SOURCE + '\n\ngargalo.quic_stack("filed")(Toy)\n')
    (tmp_path / "unused.py").write_text('raise RuntimeError("loaded without need")\n')
    scenario = tmp_path / "toy.toml"
    scenario.write_text(SCENARIO.replace('"toy", cong', '"filed", cong'))
    environment = {**os.environ, "GARGALO_STACKS": str(tmp_path)}
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "gargalo", "run", str(scenario), "--json"],
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        outputs.append([found[part] for part in ("flows", "summary", "links")])
    assert outputs[0][0][0]["delivered_bytes"] == 500_000
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module_of_the_test\n", "cannot be loaded: ModuleNotFoundError"),
        ("x = 1\n", 'has no stack "torn"'),
        ("raise SystemExit(3)\n", r"torn\.py cannot be loaded: SystemExit: 3"),
    ],
)
def test_a_stack_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (tmp_path / "torn.py").write_text(text)
    monkeypatch.setenv(discovery.VARIABLE, str(tmp_path))
    with pytest.raises(gargalo.RunError, match=message):
        gargalo.run(SCENARIO.replace('"toy", cong', '"torn", cong'))
    assert "torn" not in registry.registered()["stack"]


@pytest.mark.parametrize(
    ("text", "changes", "named"),
    [
        (SCENARIO, [], {"toy"}),
        (
            SCENARIO.replace('"toy", cong', '{ client = "one", server = "two" }, cong'),
            [],
            {"one", "two"},
        ),
        ('transport.tcp = { congestion = "cubic" }\nlabel = "toy"', [], set()),
        ('[hosts.a]\nstack = "kernel"', [], set()),
        ("not = = toml", [], set()),
        ("", [("flows.0.transport.quic.stack", "one")], {"one"}),
        ("", [("flows.*.transport.quic.stack", '"one"')], {"one"}),
        ("", [("flows.0.transport.quic.stack.client", "one")], {"one"}),
        ("", [("flows.0.transport.quic", '{ stack = "one" }')], {"one"}),
        ("", [("flows.0.transport", '{ quic = { stack = { client = "one" } } }')], {"one"}),
        ("", [("flows", '[{ transport = { quic = { stack = "one" } } }]')], {"one"}),
        ("", [("flows.0.label", "one")], set()),
    ],
)
def test_stacks_are_named_by_their_key_alone(
    text: str, changes: list[tuple[str, str]], named: set[str]
) -> None:
    assert discovery.named(text, changes) == named


def test_a_file_with_the_name_of_something_else_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cubic", "client", "simple"):
        (tmp_path / f"{name}.py").write_text('raise RuntimeError("loaded without need")\n')
    monkeypatch.setenv(discovery.VARIABLE, str(tmp_path))
    text = SCENARIO.replace(
        'quic = { stack = "toy", congestion = "fixed" }', 'tcp = { congestion = "cubic" }'
    )
    assert gargalo.run(text).flows["completion_s"][0] is not None


def test_stacks_that_are_installed_can_be_an_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first-axis", "second-axis"):
        text = f'{SOURCE}\n\ngargalo.quic_stack("{name}")(Toy)\n'
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv(discovery.VARIABLE, str(tmp_path))
    axes = {"flows.0.transport.quic.stack": ["first-axis", "second-axis"]}
    done = gargalo.sweep(
        SCENARIO.replace('"toy", cong', '"first-axis", cong'), axes, store=tmp_path / "store"
    )
    assert done.frame()["stack"].to_list() == ["first-axis", "second-axis"]


class Host:
    def random(self, length: int) -> bytes:
        return bytes(range(length))


class Reader:
    host = Host()

    @virtual.runs
    def read(self, now: float) -> tuple[bytes, float, str]:
        return virtual.urandom(3), virtual.time(), virtual.utcnow().isoformat()


def test_clocks_and_random_bytes_are_those_of_the_running_object_in_its_calls_only() -> None:
    assert Reader().read(1.5) == (b"\0\1\2", 1.5, "2025-01-01T00:00:01.500000+00:00")
    assert not virtual.is_running()
    assert virtual.urandom(3) != b"\0\1\2"
    assert virtual.time() > 1e9
