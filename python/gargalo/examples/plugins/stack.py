"""A toy stack for Gargalo: a small reliable protocol in the place of QUIC, with every part that a wrapper needs.

Numbered segments, each acknowledged alone and sent again after 200 ms, and one congestion control, a window that never
changes.
"""

from __future__ import annotations

import struct
from collections import deque

import gargalo

WINDOW, SEGMENT, AGAIN = 32, 1000, 0.2
HEADER = struct.Struct(">cIIQ?")  # Kind, number, stream, offset, end of the stream.


@gargalo.quic_stack("toy-stack")
class Toy(gargalo.QuicStack):
    version = "1"
    congestion = ("fixed",)
    features = frozenset({"options"})

    def __init__(self, config, host, now):
        self.config, self.host, self.remote = config, host, config.remote
        if unknown := config.options.keys() - {"window"}:
            raise ValueError(f"there is no option {min(unknown)}; there is window, in segments")
        self.window = config.options.get("window", WINDOW)
        self.ready, self.waiting, self.flight = deque(), deque(), {}
        self.parts, self.next, self.written = {}, {}, {}
        self.numbers = self.streams = self.lost = 0
        self.connected = self.over = False
        if not config.is_server:
            self.put(b"H", 0, 0, False, host.random(8))

    def put(self, kind, stream, offset, fin, data=b""):
        self.numbers += 1
        header = HEADER.pack(kind, self.numbers, stream, offset, fin)
        self.waiting.append((self.numbers, header + data))

    def datagram_in(self, now, datagram):
        kind, number, stream, offset, fin = HEADER.unpack_from(datagram.data)
        if kind == b"A":
            sent_at, _ = self.flight.pop(number, (now, b""))
            self.host.rtt_sample(now - sent_at)
        else:
            self.ready.append(HEADER.pack(b"A", number, 0, 0, False))
        if kind in b"AH" and not self.connected:
            self.connected = True
            self.host.event("connected")
        if kind == b"C":
            self.over = True
            self.host.event("closed")
        if kind == b"D":
            parts = self.parts.setdefault(stream, {})
            parts[offset, fin] = datagram.data[HEADER.size :]
            place = self.next.setdefault(stream, 0)
            while (place, False) in parts:
                data = parts.pop((place, False))
                self.host.received(stream, data)
                self.next[stream] = place = place + len(data)
            if parts.pop((place, True), None) is not None:
                self.host.received(stream, b"", True)

    def datagram_out(self, now):
        if self.waiting and len(self.flight) < self.window and not self.ready:
            number, data = self.waiting.popleft()
            self.flight[number] = now, data
            self.ready.append(data)
        if not self.ready:
            return None
        return gargalo.QuicDatagram(self.ready.popleft(), self.config.local, self.remote)

    def next_timer(self):
        return min((at + AGAIN for at, _ in self.flight.values()), default=None)

    def timeout(self, now):
        for number, (at, data) in self.flight.items():
            if at + AGAIN <= now:
                self.lost += 1
                self.host.notice("loss", f"segment {number}")
                self.flight[number] = now, data
                self.ready.append(data)

    def open_stream(self, now):
        self.streams += 1
        return 4 * (self.streams - 1) + self.config.is_server

    def write(self, now, stream, data, fin):
        room = max(0, 4 * self.window - len(self.waiting)) * SEGMENT
        taken = min(len(data), room)
        at = self.written.get(stream, 0)
        for start in range(0, taken, SEGMENT):
            self.put(b"D", stream, at + start, False, data[start : min(start + SEGMENT, taken)])
        self.written[stream] = at + taken
        if fin:
            self.put(b"D", stream, at + taken, True)
        return taken

    def unacknowledged(self):
        return len(self.waiting) + len(self.flight)

    def close(self, now):
        self.ready.append(HEADER.pack(b"C", 0, 0, 0, False))
        self.over = True

    def is_over(self):
        return self.over and not self.ready

    def stats(self):
        return gargalo.QuicStats(sent_packets=self.numbers, lost_packets=self.lost, phase="steady")
