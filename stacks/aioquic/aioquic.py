"""aioquic as a stack: `transport.quic.stack = "aioquic"`.

aioquic's connection takes datagrams and the time as arguments. What it and its TLS read beside them is replaced in the
modules of aioquic by `gargalo.virtual`, which answers for the object that runs: random bytes (connection IDs, the
ClientHello, tickets, path challenges, Retry tokens), the private keys of the key exchange, the date (certificates and
tickets) and the clock of qlog.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import pickle
from collections import Counter
from types import SimpleNamespace
from typing import Any

import aioquic
from aioquic import tls
from aioquic.buffer import Buffer
from aioquic.quic import configuration, connection, events, logger, packet, retry, stream
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, x448, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, load_der_private_key
from gargalo import QuicConfig, QuicDatagram, QuicHost, QuicStack, QuicStats, quic_stack, virtual

FIRST = (
    1.0  # What aioquic's clock shows at the start: its congestion controls take 0 for "not yet".
)
TICK = (
    1e-9  # Timers fire so much later: when an acknowledgement is just due, pacing still stops it.
)
CID = 8  # Length of connection IDs, aioquic's default.
AROUND = 1 + 2 + 3 + 16  # Header, without connection ID; type and length of a DATAGRAM frame; tag.
MOST_DATAGRAMS = 16  # What is more waits at the host, which knows what is too old.
CANCELLED = 0x10C  # H3_REQUEST_CANCELLED.


@functools.lru_cache(maxsize=1024)
def _tickets(_ticket_key: bytes) -> dict[bytes, tls.SessionTicket]:
    return {}  # What a server keeps: aioquic's tickets are names of it.


def _curve_key(curve: Any) -> Any:
    # One byte less than the curve's order has, so that it is a valid key.
    secret = int.from_bytes(virtual.urandom(curve.key_size // 8 - 1), "big") + 1
    return ec.derive_private_key(secret, curve)


def _key(kind: Any, length: int) -> SimpleNamespace:
    return SimpleNamespace(generate=lambda: kind.from_private_bytes(virtual.urandom(length)))


for _reader in (connection, packet, retry, tls):
    _reader.os = virtual.module(os, urandom=virtual.urandom)
tls.utcnow = virtual.utcnow
# Signatures that follow from the key and the message (RFC 6979).
_ecdsa = functools.partial(ec.ECDSA, deterministic_signing=True)
tls.ec = virtual.module(ec, generate_private_key=_curve_key, ECDSA=_ecdsa)
tls.x25519 = virtual.module(x25519, X25519PrivateKey=_key(x25519.X25519PrivateKey, 32))
tls.x448 = virtual.module(x448, X448PrivateKey=_key(x448.X448PrivateKey, 56))
logger.time = SimpleNamespace(time=virtual.time)
# Streams that have sent are put into a set, whose order was that of their places in memory.
stream.QuicStream.__hash__ = lambda self: -1 if self.stream_id is None else self.stream_id
# Without a handler, warnings would go to the terminal.
logging.getLogger("quic").addHandler(logging.NullHandler())


def _watch(owner: Any, method: str, watcher: Any) -> None:
    """Call a function before each call of a method of this one object."""
    then = getattr(owner, method)
    setattr(owner, method, lambda **facts: (watcher(**facts), then(**facts)))


@quic_stack("aioquic")
class Aioquic(QuicStack):
    """One end of a connection."""

    version = aioquic.__version__
    congestion = ("reno", "cubic")
    features = frozenset(
        [
            "0-rtt",
            "retry",
            "migration",
            "qlog",
            "initial-window",
            "options",
            "unidirectional",
            "datagrams",
            "cancel",
            "key-update",
        ]
    )

    def __init__(self, config: QuicConfig, host: QuicHost, now: float) -> None:
        self.config, self.host, self.local = config, host, config.local
        self.quic = self.trace = None
        self.early = self.over = False
        self.since = 0  # The first packet with the present keys.
        self.ask = False  # Whether aioquic may have something to send.
        self.counts = Counter[str]()
        self.highest: dict[int, int] = {}  # By stream, the end of the data that was sent.
        if not config.is_server:
            self.connect(now)

    @virtual.runs
    def connect(self, now: float) -> None:
        self.create(session_ticket_handler=lambda t: self.host.session(pickle.dumps(t)))
        self.quic.connect(self.config.remote, now + FIRST)
        self.early = self.quic._cryptos[tls.Epoch.ZERO_RTT].send.is_valid()
        if self.early:
            self.host.event("early")
        self.ask = True

    def accept(self, now: float, datagram: QuicDatagram) -> None:
        """Make a server's connection, or a Retry packet, as aioquic.asyncio.server does."""
        try:
            header = packet.pull_quic_header(Buffer(data=datagram.data), host_cid_length=CID)
        except ValueError:
            return None
        if header.packet_type != packet.QuicPacketType.INITIAL or len(datagram.data) < 1200:
            return None
        original = cid = header.destination_cid
        kept = _tickets(self.config.ticket_key)
        if self.config.retry:
            tokens = retry.QuicRetryTokenHandler()
            tokens._aead = AESGCM(self.config.ticket_key[:16])
            to = {"address": datagram.remote, "now": now}
            if not header.token:
                new = virtual.urandom(CID)
                was, to["retry_source_connection_id"] = "original_destination_connection_id", new
                token = tokens.create_token(**to, **{was: cid})
                head = header.version, new, header.source_cid, cid
                answer = packet.encode_quic_retry(*head, token)
                return self.host.send(QuicDatagram(answer, self.local, datagram.remote))
            try:
                original = tokens.validate_token(destination_cid=cid, token=header.token, **to)
            except ValueError:
                return None
        return self.create(
            original_destination_connection_id=original,
            retry_source_connection_id=cid if self.config.retry else None,
            session_ticket_fetcher=kept.get if self.config.early_data else None,
            session_ticket_handler=lambda ticket: kept.update({ticket.ticket: ticket}),
        )

    def create(self, **more: Any) -> None:
        config, host = self.config, self.host
        certificate = x509.load_der_x509_certificate(config.certificate)
        secrets = SimpleNamespace(write=lambda s: host.secret(s.rstrip()), flush=lambda: None)
        made = configuration.QuicConfiguration(
            alpn_protocols=[config.alpn],
            congestion_control_algorithm=config.congestion,
            idle_timeout=config.idle_timeout,
            initial_rtt=config.initial_rtt,
            is_client=not config.is_server,
            max_data=config.connection_window,
            max_datagram_frame_size=config.max_datagram_frame or None,
            max_datagram_size=config.datagram_size,
            max_stream_data=config.stream_window,
            quic_logger=logger.QuicLogger() if config.qlog else None,
            secrets_log_file=secrets if config.secrets else None,
            server_name=config.server_name,
            cadata=certificate.public_bytes(Encoding.PEM),
        )
        for name, value in config.options.items():
            # Those of the library, by its own names.
            if not hasattr(made, name):
                raise ValueError(f"aioquic's QuicConfiguration has no {name}")
            setattr(made, name, value)
        if config.is_server:
            made.certificate = certificate
            made.private_key = load_der_private_key(config.private_key, None)
        elif config.session and config.early_data:
            made.session_ticket = pickle.loads(config.session)  # What `connect` has pickled.
        self.quic = connection.QuicConnection(configuration=made, **more)
        streams, recovery = self.quic._local_max_streams_bidi, self.quic._loss
        streams.value = streams.sent = config.max_streams
        if config.max_unidirectional_streams:
            limit = self.quic._local_max_streams_uni
            limit.value = limit.sent = config.max_unidirectional_streams
        recovery._cc.congestion_window = config.initial_window
        _watch(recovery, "on_packet_sent", self.on_sent)
        _watch(recovery, "_on_packets_lost", self.on_lost)
        _watch(recovery, "on_loss_detection_timeout", self.on_timeout)
        _watch(recovery._cc, "on_rtt_measurement", lambda rtt, **_: host.rtt_sample(rtt))
        self.trace = self.quic._quic_logger
        if self.trace is not None:
            head = {k: v for k, v in self.trace.to_dict().items() if k != "events"}
            head["common_fields"].update(time_format="relative", reference_time=0)
            version = {"qlog_version": logger.QLOG_VERSION, "qlog_format": "JSON-SEQ"}
            self.log({**version, "trace": head})

    def on_sent(self, packet: Any, **_: Any) -> None:
        again = False
        for handler, args in packet.delivery_handlers:
            sender = getattr(handler, "__self__", None)
            is_data = isinstance(sender, stream.QuicStreamSender) and len(args) == 3
            if is_data and sender._stream_id is not None:  # No reset, and not of a handshake.
                start, stop, _fin = args
                highest = self.highest.get(sender._stream_id, 0)
                again |= start < min(stop, highest)
                self.counts["bytes"] += stop - start
                self.highest[sender._stream_id] = max(highest, stop)
        self.counts.update(sent=packet.is_ack_eliciting, again=again)

    def on_lost(self, packets: Any, congestion_event: bool = True, **_: Any) -> None:
        if congestion_event and packets:  # Else a probe timeout only sends them again.
            self.notice("loss", len(packets))

    def on_timeout(self, **_: Any) -> None:
        if self.quic._loss._get_loss_space() is None:
            self.notice("timeout", 1)

    def notice(self, kind: str, count: int) -> None:
        self.counts[kind] += count
        self.host.notice(kind, f"{count} packets" if kind == "loss" else "")

    def log(self, record: Any) -> None:
        self.host.qlog(b"\x1e" + json.dumps(record).encode() + b"\n")

    @virtual.runs
    def datagram_in(self, now: float, datagram: QuicDatagram) -> None:
        if self.quic is None:
            self.accept(now, datagram)
        if self.quic is not None:
            self.quic.receive_datagram(datagram.data, datagram.remote, now + FIRST)
            self.report()

    @virtual.runs
    def datagram_out(self, now: float) -> QuicDatagram | None:
        if self.ask and self.quic._network_paths:
            sent = self.quic.datagrams_to_send(now + FIRST)
            for data, remote in sent:
                self.host.send(QuicDatagram(data, self.local, remote))
            self.report()
            self.ask = False
        return None

    def next_timer(self) -> float | None:
        at = None if self.quic is None or self.quic._close_at is None else self.quic.get_timer()
        return None if at is None else max(0.0, at - FIRST + TICK)

    @virtual.runs
    def timeout(self, now: float) -> None:
        if self.quic is not None and self.quic._close_at is not None:
            self.quic.handle_timer(now + FIRST)
            self.report()

    def open_stream(self, now: float) -> int | None:
        number: int = self.quic.get_next_available_stream_id()
        if number // 4 >= self.quic._remote_max_streams_bidi:
            return None
        self.quic.send_stream_data(number, b"")
        return number

    def open_unidirectional_stream(self, now: float) -> int | None:
        number: int = self.quic.get_next_available_stream_id(is_unidirectional=True)
        if number // 4 >= self.quic._remote_max_streams_uni:
            return None
        self.quic.send_stream_data(number, b"")
        return number

    def send_datagram(self, now: float, data: bytes) -> bool | None:
        room = self.config.datagram_size - AROUND - len(self.quic._peer_cid.cid)
        if len(data) > min(room, (self.quic._remote_max_datagram_frame_size or 0) - 3):
            return None
        if len(self.quic._datagrams_pending) >= MOST_DATAGRAMS:
            return False
        self.quic.send_datagram_frame(data)
        self.ask = True
        return True

    def reset_stream(self, now: float, stream: int) -> None:
        self.quic.reset_stream(stream, CANCELLED)
        self.ask = True

    def stop_sending(self, now: float, stream: int) -> None:
        if stream in self.quic._streams:  # Otherwise it has ended.
            self.quic.stop_stream(stream, CANCELLED)
            self.ask = True

    def update_keys(self, now: float) -> bool:
        acknowledged = self.quic._spaces[tls.Epoch.ONE_RTT].largest_acked_packet
        # aioquic does not look whether a packet with the present keys is acknowledged (RFC 9001 §6.1).
        if not self.quic._handshake_confirmed or acknowledged < self.since:
            return False
        self.since = self.quic._packet_number
        self.quic.request_key_update()
        self.ask = True
        return True

    def write(self, now: float, stream: int, data: bytes, fin: bool) -> int:
        keys = {} if self.over or self.quic is None else self.quic._cryptos
        if not any(e.value in (1, 3) and pair.send.is_valid() for e, pair in keys.items()):
            return 0  # Neither of 0-RTT nor of 1-RTT.
        taken = min(len(data), max(0, self.config.send_window - self.unacknowledged()))
        if taken or fin:
            self.quic.send_stream_data(stream, data[:taken], fin)
            self.ask = True
        return taken

    def unacknowledged(self) -> int:
        senders = [] if self.quic is None else [s.sender for s in self.quic._streams.values()]
        ends = sum(s._buffer_fin is not None and not s.is_finished for s in senders)
        return ends + sum(s._buffer_stop - s._buffer_start for s in senders)

    def migrate(self, now: float, local: tuple[str, int]) -> None:
        self.local = local
        self.quic.change_connection_id()  # For the new address (RFC 9000 §9.5).
        self.quic.send_ping(0)  # To show it.
        self.ask = True

    def close(self, now: float) -> None:
        if self.quic is not None:
            self.quic.close()
            self.report()

    def is_over(self) -> bool:
        return self.over and not self.ask

    def stats(self) -> QuicStats:
        if self.quic is None:
            return QuicStats()
        recovery, counts = self.quic._loss, self.counts
        cc, interval = recovery._cc, recovery._pacer.packet_time
        slow = cc.ssthresh is None or cc.congestion_window < cc.ssthresh
        return QuicStats(
            sent_packets=counts["sent"],
            sent_bytes=counts["bytes"],
            retransmitted_packets=counts["again"],
            lost_packets=counts["loss"],
            timeouts=counts["timeout"],
            cwnd=cc.congestion_window,
            ssthresh=cc.ssthresh,
            in_flight=cc.bytes_in_flight,
            srtt=recovery._rtt_smoothed if recovery._rtt_initialized else None,
            pacing_rate=self.config.datagram_size * 8 / interval if interval else None,
            phase="slow-start" if slow else "congestion-avoidance",
        )

    def report(self) -> None:
        """Tell what has happened in a call, and that there may be something to send."""
        self.ask = True
        while (event := self.quic.next_event()) is not None:
            if isinstance(event, events.StreamDataReceived):
                self.host.received(event.stream_id, event.data, event.end_stream)
            elif isinstance(event, events.DatagramFrameReceived):
                self.host.datagram(event.data)
            elif isinstance(event, events.StopSendingReceived):
                self.host.stopped(event.stream_id)
            elif isinstance(event, events.StreamReset):
                self.host.reset(event.stream_id)
            elif isinstance(event, events.HandshakeCompleted):
                accepted = event.early_data_accepted if self.early else None
                self.host.event("connected", accepted, resent=True)
        end = self.quic._close_event
        # aioquic has an event for it only after the time for late packets.
        if not self.over and end is not None and self.quic._state in connection.END_STATES:
            self.over = True
            why = f"{end.reason_phrase.replace('Idle timeout', 'timed out')}, {end.error_code:#x}"
            self.host.event("failed" if end.error_code else "closed", text=why)
        while self.trace is not None and self.trace._events:  # Their frames are complete by now.
            self.log(self.trace._events.popleft())
