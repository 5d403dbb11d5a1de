"""The packets of a run from its capture at both ends of every link: where each was, and when.

A capture has copies of headers. A packet that left a link is the one that entered it with the same bytes, of UDP with
the same identification; of several that are the same the order is taken, if none of them is missing.
"""

from __future__ import annotations

import mmap
import struct
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gargalo.interop.wire import INTERFACE, PACKET

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gargalo.results import Run
    from gargalo.scenarios.setup import Direction, Link

    Integers = NDArray[np.int64]

TCP, UDP = 6, 17
FIN, SYN, RST, ACK, ECE, CWR = 0x01, 0x02, 0x04, 0x10, 0x40, 0x80
CE = 3
"""Congestion Experienced, in the two bits of ECN."""
SEEN = 84
"""Bytes of a packet that are looked at: IPv4 without options, and TCP with as many as fit."""
FIRST_ADDRESS = 0x0A000001
"""Of the first node; its later interfaces have other second bytes."""
LATE_NS = 1_000_000_000
"""Where packets are reordered, one is lost if another has passed it that came so much later."""
NAME = 2
"""The option of an interface with its name."""


@dataclass(frozen=True)
class Capture:
    """The packets of a run at both ends of its links, in the order of time.

    `records` has a row for each packet at each end: `time_ns`, `link` and `node` (their numbers), `size_bytes` with IP
    headers, `ecn`, `protocol`, `source`, `destination` (addresses), `source_port`, `destination_port`, of TCP
    `sequence`, `acknowledgement`, `flags`, `window`, `payload_bytes`, and `place` (in the file).

    `passages` has a row for each packet that entered a link: `entry` (its record), `link`, `up`, `entered_ns`, `exit`
    (its record at the other end) and `exited_ns`, both missing unless it left, and `fate`: `arrived`, `dropped`, or
    `unknown` (the capture ends before, or packets look the same).
    """

    records: pl.DataFrame
    passages: pl.DataFrame
    onward: Integers
    """Of each record of an arrival the record of the entry to the next link; -1: it is at its host, or nowhere."""
    file: Path
    until_ns: int
    """Until when packets were looked at."""

    def bytes_at(self, place: int, length: int) -> bytes:
        """Return bytes of the file."""
        with self.file.open("rb") as file:
            file.seek(place)
            return file.read(length)


def read(file: Path, run: Run, until_s: float | None = None) -> Capture:
    """Read the capture of a run that recorded both ends of all links.

    Args:
        file: The capture.
        run: The run, for its network.
        until_s: Packets after it are left out.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not such a capture.

    """
    links = {x.name: i for i, x in enumerate(run.setup.links)}
    nodes = {n.name: i for i, n in enumerate(run.setup.nodes)}
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        names, places = blocks(raw, file)
        words = np.frombuffer(raw, dtype=">u4", count=len(raw) // 4)
        records = _records(words, places, None if until_s is None else round(until_s * 1e9))
        del words  # A map that is looked at cannot be closed.
    ends = [name.rsplit(" ", 1) for name in names]
    of_link, of_node = (
        np.array([table[e[i]] for e in ends], dtype=np.int32)
        for i, table in ((0, links), (1, nodes))
    )
    interface = records["interface"].to_numpy()
    records = records.with_columns(link=of_link[interface], node=of_node[interface])
    records = records.with_row_index("record")
    last = int(records["time_ns"][-1]) if records.height else 0
    until = last if until_s is None else round(until_s * 1e9)
    records = _with_ends(records, [nodes[x.from_] for x in run.setup.links])
    passages = _passages(records, run, until)
    return Capture(records, passages, _onward(records), file, until)


def blocks(raw: Any, file: Path) -> tuple[list[str], Integers]:
    """Return the names of a capture's interfaces, and the places of its blocks of packets.

    Raises:
        ValueError: It is not a capture, or damaged.

    """
    names: list[str] = []
    places = array("q")
    at, size, head = 0, len(raw), struct.Struct("<II").unpack_from
    while at + 12 <= size:
        kind, length = head(raw, at)
        if length < 12 or at + length > size:
            msg = f"{file}: the block at byte {at} is damaged"
            raise ValueError(msg)
        if kind == PACKET:
            places.append(at)
        elif kind == INTERFACE:
            option, count = struct.unpack_from("<HH", raw, at + 16)
            names.append(bytes(raw[at + 20 : at + 20 + count]).decode() if option == NAME else "")
        at += length
    return names, np.frombuffer(places, dtype=np.int64) if places else np.empty(0, dtype=np.int64)


def _records(words: NDArray[np.uint32], places: Integers, until_ns: int | None) -> pl.DataFrame:
    """Return what the blocks say; options of TCP and the beginning of a payload only as a hash.

    Args:
        words: The file in words of four bytes, which all blocks consist of, as they are on the wire.
        places: Of the blocks, in bytes.
        until_ns: Later packets are left out.

    """
    first = places // 4

    def told(word: int) -> Integers:
        found: Integers = words[first + word].byteswap().astype(np.int64)
        return found

    time = told(3) << 32 | told(4)
    if until_ns is not None:
        kept = int(np.searchsorted(time, until_ns, side="right"))
        first, places, time = first[:kept], places[:kept], time[:kept]
    columns = np.arange(SEEN // 4)
    where = np.minimum(first[:, None] + 7 + columns, max(words.size - 1, 0))
    head = np.where(
        columns < -(-told(5) // 4)[:, None], words[where] if words.size else 0, 0
    ).astype(np.uint32)

    def field(word: int, shift: int = 0, bits: int = 32) -> Integers:
        return head[:, word].astype(np.int64) >> shift & (1 << bits) - 1

    protocol = field(2, 16, 8)
    tcp = protocol == TCP
    size = field(0, 0, 16)
    # Whatever follows the IP header, whose identification names a datagram of UDP, but is that of a copy with TCP.
    weights = np.random.default_rng(1).integers(1, 2**63, SEEN // 4 - 4, dtype=np.uint64) * 2 + 1
    named = np.where(protocol == UDP, field(1, 16, 16), 0)
    parts = np.column_stack([named, head[:, 5:]]).astype(np.uint64) * weights
    return pl.DataFrame(
        {
            "time_ns": time,
            "interface": told(2),
            "size_bytes": size,
            "ecn": field(0, 16, 2),
            "protocol": protocol,
            "source": field(3),
            "destination": field(4),
            "source_port": field(5, 16, 16),
            "destination_port": field(5, 0, 16),
            "sequence": np.where(tcp, field(6), 0),
            "acknowledgement": np.where(tcp, field(7), 0),
            "flags": np.where(tcp, field(8, 16, 8), 0),
            "window": np.where(tcp, field(8, 0, 16), 0),
            "payload_bytes": size - 20 - np.where(tcp, field(8, 28, 4) * 4, 8),
            "whole": parts.sum(axis=1, dtype=np.uint64),
            "base": parts[:, :5].sum(axis=1, dtype=np.uint64),
            "place": places + 28,
        }
    )


def _with_ends(records: pl.DataFrame, first_node: list[int]) -> pl.DataFrame:
    """Tell for each record whether the packet enters the link there, and in which direction.

    Between two addresses packets take a link in one direction, and the first of them enters it before any leaves it.
    """
    begins = pl.Series("begins", first_node, dtype=pl.Int32)
    node = ((pl.col("destination") - FIRST_ADDRESS) & 0xFFFF).cast(pl.Int32)
    origin = ((pl.col("source") - FIRST_ADDRESS) & 0xFFFF).cast(pl.Int32)
    entrance = pl.col("node").first().over("link", "source", "destination")
    records = records.with_columns(entrance=entrance)
    return records.with_columns(
        enters=pl.col("node") == pl.col("entrance"),
        up=pl.col("entrance") == begins.gather(records["link"]),
        at_origin=(pl.col("node") == pl.col("entrance")) & (pl.col("node") == origin),
        at_goal=(pl.col("node") != pl.col("entrance")) & (pl.col("node") == node),
    )


def _passages(records: pl.DataFrame, run: Run, until_ns: int) -> pl.DataFrame:
    """Return which entry to a link and which arrival at its end are of one packet."""
    found = [
        _of_direction(rows, run, run.setup.links[int(link)], until_ns, up=bool(up))
        for (link, up), rows in records.partition_by(
            "link", "up", as_dict=True, maintain_order=True
        ).items()
    ]
    if not found:
        names = ("entry", "link", "up", "entered_ns", "exit", "exited_ns", "fate")
        return pl.DataFrame({n: [] for n in names})
    return pl.concat(found).sort("entry")


def _of_direction(
    rows: pl.DataFrame, run: Run, link: Link, until_ns: int, *, up: bool
) -> pl.DataFrame:
    side: Direction = link.up if up else link.down
    # A middlebox removes options between the two ends.
    key = "base" if any("strip" in k for k in side.more) else "whole"
    same = [key, "size_bytes", "source", "destination"]
    nth = pl.int_range(pl.len()).over(same).alias("nth")
    entries = rows.filter("enters").with_columns(nth)
    exits = rows.filter(~pl.col("enters")).with_columns(nth)
    counts = exits.group_by(same).agg(exits=pl.len())
    passed = (
        entries.with_columns(entries=pl.len().over(same))
        .join(counts, on=same, how="left")
        .join(
            exits.select(*same, "nth", exit="record", exited_ns="time_ns"),
            on=[*same, "nth"],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("exits").fill_null(0))
    )
    alike = (pl.col("entries") > 1) & (pl.col("exits") > 0) & (pl.col("exits") != pl.col("entries"))
    if _nothing_dropped(run, link.name, until_ns, up=up) and not side.duplicate:
        alike = pl.lit(value=False)
    passed = passed.with_columns(
        alike=alike,
        exit=pl.when(alike).then(None).otherwise("exit"),
        exited_ns=pl.when(alike).then(None).otherwise("exited_ns"),
    )
    # What has been passed by another of its queue was dropped.
    queue = side.queue if isinstance(side.queue, str) else next(iter(side.queue or {"": None}))
    several = queue.replace("_", "-") in ("fq-codel", "dualpi2")
    of = (
        ["source", "destination", "source_port", "destination_port", "ecn"] if several else ["link"]
    )
    came = pl.when(pl.col("exited_ns").is_not_null()).then("time_ns")
    passed = passed.with_columns(newest=came.max().over(of))
    late = LATE_NS if side.reorder is not None else 0
    fate = (
        pl.when(pl.col("exited_ns").is_not_null())
        .then(pl.lit("arrived"))
        .when(~pl.col("alike") & (pl.col("newest") > pl.col("time_ns") + late))
        .then(pl.lit("dropped"))
        .otherwise(pl.lit("unknown"))
    )
    return passed.select(
        entry="record",
        link="link",
        up="up",
        entered_ns="time_ns",
        exit="exit",
        exited_ns="exited_ns",
        fate=fate,
    )


def _nothing_dropped(run: Run, link: str, until_ns: int, *, up: bool) -> bool:
    """Whether a link's samples say that it has dropped nothing while packets were looked at."""
    if run.link_samples.is_empty():
        return False
    direction = "up" if up else "down"
    rows = run.link_samples.filter(
        (pl.col("link") == link)
        & (pl.col("direction") == direction)
        & (pl.col("time_s") * 1e9 <= until_ns)
    )
    return bool(rows.height) and rows["dropped_packets"][-1] == 0


def _onward(records: pl.DataFrame) -> Integers:
    """Return for each arrival at a router the entry to the next link: a router passes on all that arrive, in order."""
    found = np.full(records.height, -1, dtype=np.int64)
    same = ["whole", "size_bytes", "source", "destination", "node"]
    nth = pl.int_range(pl.len()).over(same).alias("nth")
    arrivals = records.filter(~pl.col("enters") & ~pl.col("at_goal")).with_columns(nth)
    entries = records.filter(pl.col("enters") & ~pl.col("at_origin")).with_columns(nth)
    both = arrivals.join(entries.select(*same, "nth", next="record"), on=[*same, "nth"])
    found[both["record"].to_numpy()] = both["next"].to_numpy()
    return found
