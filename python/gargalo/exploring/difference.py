"""The first instant at which two runs differ."""

from __future__ import annotations

import mmap
import struct
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from gargalo.exploring import capture as captures
from gargalo.exploring.packets import TUPLE, events_of, in_datagrams, signed, with_flows
from gargalo.interop.traces import CAPTURE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gargalo.exploring.packets import Recorded
    from gargalo.exploring.view import Part
    from gargalo.results import Run

TABLES = {
    "events": ("flow", "kind"),
    "flow_samples": ("flow",),
    "link_samples": ("link", "direction"),
    "subflow_samples": ("flow", "subflow"),
}
"""Tables with a time, and the columns that tell their rows of one instant apart."""


@dataclass(frozen=True)
class Difference:
    """Where two runs part."""

    time_s: float
    table: str
    subject: str
    """The flow or link, by its name."""
    column: str
    first: Any
    """The value in the first run; None if it has no such row."""
    second: Any
    flow: int | None = None
    """The flow's number in the run whose packet or event it is; None: it is of a link."""

    def to_json(self) -> Part:
        """Return all fields."""
        return asdict(self)


def difference(a: Run, b: Run) -> Difference | None:
    """Return where two runs first differ in what both recorded; None if they do not."""
    found = [d for name, keys in TABLES.items() if (d := _of_table(a, b, name, keys)) is not None]
    return min(found, key=lambda d: d.time_s, default=None)


def _of_table(a: Run, b: Run, name: str, keys: tuple[str, ...]) -> Difference | None:
    left, right = getattr(a, name), getattr(b, name)
    if left.is_empty() or right.is_empty():
        return None
    on = ["time_s", *keys, "nth"]
    # Several events of a kind may have one instant.
    count = pl.int_range(pl.len()).over("time_s", *keys).alias("nth")
    left, right = left.with_columns(count), right.with_columns(count)
    columns = [c for c in left.columns if c not in on]
    both = left.join(right, on=on, how="full", coalesce=True, suffix="_of_b", nulls_equal=True)
    missing = pl.col(f"{columns[0]}_of_b").is_null() & pl.col(columns[0]).is_null()
    differs = pl.any_horizontal(pl.col(c).ne_missing(pl.col(f"{c}_of_b")) for c in columns)
    rows = both.filter(differs & ~missing).sort("time_s", maintain_order=True).head(1).to_dicts()
    if not rows:
        return None
    row = rows[0]
    column = next(c for c in columns if row[c] != row[f"{c}_of_b"])
    subject = (
        f"{row['link']} {row['direction']}" if "link" in row else a.names.get(row["flow"], str(row["flow"]))
    )  # fmt: skip
    return Difference(
        row["time_s"], name, subject, column, row[column], row[f"{column}_of_b"], row.get("flow")
    )


def packet_difference(a: Recorded, b: Recorded) -> Difference | None:
    """Return the first packet that differs in two runs; None if there is none in what both recorded."""
    found, files = [], [one.folder / CAPTURE for one in (a, b)]
    with ExitStack() as open_:
        maps = []
        for file in files:
            opened = open_.enter_context(file.open("rb"))
            maps.append(
                open_.enter_context(closing(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)))
            )
        places = [
            captures.blocks(raw, file)[1].tolist() for raw, file in zip(maps, files, strict=True)
        ]
        at = _first_unequal(maps, places)
        # A capture that was ended for its size says nothing of what comes after it.
        if at is None or any(
            one.large and at >= len(p) for one, p in zip((a, b), places, strict=True)
        ):
            return None
        times = [
            None if at >= len(p) else struct.unpack_from("<II", raw, p[at] + 12)
            for raw, p in zip(maps, places, strict=True)
        ]
    for one, file, time in zip((a, b), files, times, strict=True):
        found.append(None if time is None else described(one, file, at, time[0] << 32 | time[1]))
    first = min((f for f in found if f is not None), key=lambda f: f.time_s)
    in_a, in_b = (None if f is None else f.text for f in found)
    return Difference(first.time_s, "packets", first.subject, "packet", in_a, in_b, first.flow)


def _first_unequal(maps: Sequence[Any], places: Sequence[Sequence[int]]) -> int | None:
    """Return the number of the first packet of two captures that differs, or that only one has."""
    left, right = maps
    for i, (p, q) in enumerate(zip(*places, strict=False)):
        # Without the kind and the length at the end, which only repeats what is at the beginning.
        size = int.from_bytes(left[p + 4 : p + 8], "little")
        if left[p + 4 : p + size] != right[q + 4 : q + size]:
            return i
    shorter, longer = sorted(map(len, places))
    return shorter if shorter < longer else None


class Described(NamedTuple):
    """A packet at an end of a link."""

    time_s: float
    subject: str
    flow: int | None
    text: str


def described(one: Recorded, file: Path, at: int, time_ns: int) -> Described:
    """Return what the packet of a number in a capture is, which was recorded at that time."""
    run = one.run
    seen = captures.read(file, run, time_ns / 1e9)
    records = with_flows(seen, run)
    row = records.row(at, named=True)
    name = run.names.get(row["flow"], f"flow {row['flow']}")
    ends = [run.setup.nodes[row[k]].name for k in ("from_node", "to_node")]
    what = f"{row['payload_bytes']} bytes"
    if row["protocol"] == captures.TCP:
        same = [pl.col(c) == row[c] for c in TUPLE]
        origin = records.filter(*same)["sequence"][0]
        first = signed(row["sequence"] - origin) - 1
        kinds = [
            n
            for n, bit in (("SYN", captures.SYN), ("FIN", captures.FIN), ("RST", captures.RST))
            if row["flags"] & bit
        ]
        what = (
            f"bytes {first:,} to {first + row['payload_bytes']:,}"
            if row["payload_bytes"]
            else "acknowledgement"
        )
        what = " ".join(kinds) or what
    else:
        number = quic_number(run, one.folder, records, row)
        what = f"datagram of {what}" if number is None else f"packet {number}"
    act = "enters" if row["enters"] else "leaves"
    time = row["time_ns"] / 1e9
    link = run.setup.links[row["link"]].name
    return Described(
        time, name, row["flow"], f"{what} from {ends[0]} to {ends[1]} {act} {link} at {time:.6f} s"
    )


def quic_number(
    run: Run, folder: Path, records: pl.DataFrame, row: Mapping[str, Any]
) -> int | None:
    """Return the packet number of a datagram of QUIC, the first if it has several; None: it is not in a qlog."""
    flow = run.flows.filter(pl.col("id") == row["flow"])
    if flow.is_empty():
        return None
    side = "client" if run.setup.nodes[row["from_node"]].name == flow["from"][0] else "server"
    file = folder / "qlog" / f"flow{row['flow']}-{side}.sqlog"
    if not file.exists():
        return None
    rows = records.filter(*(pl.col(c) == row[c] for c in TUPLE), pl.col("at_origin"))
    numbers = {
        rows["record"][i]: int(e["number"]) for i, e in in_datagrams(list(events_of(file)), rows)
    }
    # Elsewhere the packet is that which was sent with the same bytes.
    sent = rows.filter(pl.col("whole") == row["whole"])["record"]
    return numbers.get(sent[0]) if len(sent) else None
