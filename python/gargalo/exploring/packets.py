"""Single packets of a flow in a window of time, had by running the scenario again with packets recorded.

The same scenario gives the same bytes, so what is seen here is what happened in the run that is shown. Packets are
seen as by a capture at the sender's host: data when it is sent, acknowledgements when they arrive.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from gargalo.explaining.model import RECORDED
from gargalo.exploring import capture as captures
from gargalo.exploring.capture import ACK, CE, CWR, ECE, FIN, FIRST_ADDRESS, SYN, TCP, Capture
from gargalo.interop.traces import CAPTURE, FIRST_PORT
from gargalo.pictures.runs import looks_of
from gargalo.quantities import decimal
from gargalo.running import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gargalo.exploring.view import Part
    from gargalo.results import Run
    from gargalo.running import Progress, ScenarioLike
    from gargalo.scenarios.setup import Direction

    Integers = NDArray[np.int64]

MOST_BYTES = 256 << 20
"""Of the files of a run with packets."""
MOST_ROWS = 4000
"""Packets of a path in an answer, of each kind."""
MOST_ON_WAY = 12_000
"""Packets on links in an answer."""
AFTER_S = 2.0
"""What is looked at after a window, to see what became of its packets."""
PORTS = 16_384
"""Ports of flows; the flow after as many has the same again."""
MPTCP, WINDOW_SCALE, SACK = 30, 3, 5
"""Options of TCP."""
TUPLE = ("source", "destination", "source_port", "destination_port")
OTHER_WAY = ("destination", "source", "destination_port", "source_port")
CAPABLE, JOIN = 0, 1
"""Subtypes of Multipath TCP's option."""
RECORD: Mapping[str, Any] = {
    **RECORDED,
    "record.gauges": False,
    "record.captures": ["*"],
    "record.capture_ends": "both",
    "record.capture_payload": False,
    "record.qlog": True,
}
"""What a run must record for its packets."""


class WindowError(ValueError):
    """What was asked for cannot be shown."""


class Recorded(NamedTuple):
    """A run with its packets, while its files are there."""

    run: Run
    folder: Path
    large: bool
    """It was ended because its files had become too large."""


@contextmanager
def recorded(
    scenario: ScenarioLike,
    until_s: float = math.inf,
    stopped: Callable[[], bool] = lambda: False,
    changes: Mapping[str, Any] | None = None,
) -> Iterator[Recorded]:
    """Run a scenario with packets recorded.

    Args:
        scenario: As `gargalo.run` takes it.
        until_s: The run need not go on for more than `AFTER_S` after it.
        stopped: Whether nobody waits any more.
        changes: Settings by their dotted keys.

    """
    with tempfile.TemporaryDirectory(prefix="gargalo-packets-") as folder:
        large = False

        def progress(now: Progress) -> bool:
            nonlocal large
            if now.phase != "running":
                return not stopped()
            large = (
                sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) > MOST_BYTES
            )
            return not (stopped() or large or now.now_s > until_s + AFTER_S)

        settings = {**RECORD, **(changes or {})}
        done = run(scenario, set=settings, output=Path(folder) / "run", progress=progress)
        yield Recorded(done, Path(folder) / "run", large)


def packets(
    scenario: ScenarioLike,
    flow: int,
    from_s: float,
    to_s: float,
    stopped: Callable[[], bool] = lambda: False,
) -> Part:
    """Return the packets of a flow in a window, and those of all flows on each link, as the page draws them.

    Args:
        scenario: As `gargalo.run` takes it.
        flow: Number of the flow.
        from_s: Beginning of the window, since the start of the run.
        to_s: Its end.
        stopped: Whether nobody waits any more.

    Raises:
        WindowError: There is no such flow or window, or too many packets come before its end.

    """
    if not (math.isfinite(from_s) and math.isfinite(to_s) and 0 <= from_s < to_s):
        msg = f"a window has a beginning and a later end, in seconds: not {from_s:g} to {to_s:g}"
        raise WindowError(msg)
    with recorded(scenario, to_s, stopped) as (done, folder, large):
        if flow not in done.names:
            msg = f"there is no flow {flow} with a row of its own until {decimal(to_s)} s"
            raise WindowError(msg)
        if large:
            msg = (
                f"more than {MOST_BYTES >> 20} MB of packets come before {decimal(to_s)} s: choose an earlier part, "
                "or make the scenario shorter or its rates lower"
            )
            raise WindowError(msg)
        seen = captures.read(folder / CAPTURE, done, to_s + AFTER_S)
        return Window(done, folder, seen, flow, from_s, to_s).told()


class Window:
    """A window of a run with packets, for one flow."""

    def __init__(
        self, run: Run, folder: Path, seen: Capture, flow: int, from_s: float, to_s: float
    ) -> None:
        self.run, self.folder, self.seen = run, folder, seen
        self.row = run.flows.row(by_predicate=pl.col("id") == flow, named=True)
        self.from_ns, self.to_ns = round(from_s * 1e9), round(to_s * 1e9)
        self.links = [x.name for x in run.setup.links]
        self.records = with_flows(seen, run)
        self.notes: list[str] = []
        rows = seen.records.height
        self.exits, self.fates = (
            np.full(rows, -1, dtype=np.int64),
            np.full(rows, "unknown", dtype=object),
        )
        at = seen.passages["entry"].to_numpy()
        self.exits[at] = seen.passages["exit"].fill_null(-1).to_numpy()
        self.fates[at] = seen.passages["fate"].to_list()
        self.time_ns = self.records["time_ns"].to_numpy()

    def told(self) -> Part:
        """Return the answer."""
        own = self.records.filter(pl.col("flow") == self.row["id"])
        sent = own.filter("at_origin")
        # The graph is of the direction in which most data goes.
        data = (
            sent.group_by("from_node")
            .agg(pl.col("payload_bytes").sum())
            .sort("payload_bytes", descending=True)
        )
        sender = data["from_node"][0] if data.height else None
        transport = self.row["transport"]
        of_quic = self.numbers(sender) if transport == "quic" and sender is not None else None
        paths: list[Part] = []
        for rows, back in connections(
            sent.filter(pl.col("from_node") == sender), own.filter("at_goal")
        ):
            shown = (
                self.of_tcp(rows, back)
                if rows["protocol"][0] == TCP
                else self.of_datagrams(rows)
                if of_quic is None
                else self.of_quic(rows, of_quic)
            )
            link, opened_s = self.links[rows["link"][0]], rows["time_ns"][0] / 1e9
            since = f"{link} since {decimal(opened_s, 3)} s"
            paths.append({"link": link, "opened_s": opened_s, "name": since, **shown})
        links = [path["link"] for path in paths]
        paths = [
            {**path, "name": path["link"]} if links.count(path["link"]) == 1 else path
            for path in paths
        ]
        nodes = [n.name for n in self.run.setup.nodes]
        return {
            "flow": self.row["id"],
            "name": self.run.names[self.row["id"]],
            "transport": transport,
            "from": None if sender is None else nodes[sender],
            "from_s": self.from_ns / 1e9,
            "to_s": self.to_ns / 1e9,
            "unit": "byte" if transport in ("tcp", "mptcp") else "packet",
            "paths": paths,
            "links": self.on_links(),
            "colours": {str(i): look.colour for i, look in looks_of(self.run).items()},
            "names": {str(i): name for i, name in self.run.names.items()}
            if len(self.run.names) < 1000
            else {},
            "notes": self.notes,
        }

    # --- what became of a packet

    def journeys(self, entries: Integers) -> pl.DataFrame:
        """Return where packets got that were sent: `arrived_s`, `fate`, `dropped_at`, `marked_at` (names of links)."""
        now = entries.copy()
        ecn = self.records["ecn"].to_numpy()
        link, goal = self.records["link"].to_numpy(), self.records["at_goal"].to_numpy()
        arrived = np.full(entries.size, np.nan)
        fate = np.full(entries.size, "unknown", dtype=object)
        dropped, marked = np.full(entries.size, -1), np.full(entries.size, -1)
        going = np.arange(entries.size)
        while going.size:
            at = now[going]
            out = self.exits[at]
            stuck = out < 0
            fate[going[stuck]] = self.fates[at[stuck]]
            lost = going[stuck & (self.fates[at] == "dropped")]
            dropped[lost] = link[now[lost]]
            going, at, out = going[~stuck], at[~stuck], out[~stuck]
            fresh = (ecn[out] == CE) & (ecn[at] != CE)
            marked[going[fresh]] = link[at[fresh]]
            home = goal[out]
            arrived[going[home]] = self.time_ns[out[home]] / 1e9
            fate[going[home]] = "arrived"
            going, out = going[~home], out[~home]
            after = self.seen.onward[out]
            now[going] = after
            going = going[after >= 0]
        names = [*self.links, None]
        return pl.DataFrame(
            {
                "arrived_s": pl.Series(arrived, nan_to_null=True),
                "fate": pl.Series(fate.tolist(), dtype=pl.String),
                "dropped_at": pl.Series([names[i] for i in dropped], dtype=pl.String),
                "marked_at": pl.Series([names[i] for i in marked], dtype=pl.String),
            }
        )

    def sent_in_window(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the window, with what became of them."""
        inside = rows.filter(pl.col("time_ns").is_between(self.from_ns, self.to_ns))
        found = inside.with_columns(sent_s=pl.col("time_ns") / 1e9)
        return pl.concat(
            [found, self.journeys(inside["record"].to_numpy().astype(np.int64))], how="horizontal"
        )

    def segments(self, rows: pl.DataFrame, columns: Sequence[str]) -> Part:
        """Return columns of packets; if they are too many, all that are special and some of the others."""
        special = (
            pl.col("retransmission")
            | (pl.col("fate") != "arrived")
            | pl.col("marked_at").is_not_null()
        )
        return self.kept(
            rows, special, "packets",
            ["sent_s", "first", "end", "size_bytes", "retransmission", "arrived_s", "fate", "dropped_at", "marked_at",
             *columns],
        )  # fmt: skip

    def kept(self, rows: pl.DataFrame, special: pl.Expr, what: str, columns: Sequence[str]) -> Part:
        """Return columns of rows, of too many a part, and say so."""
        if rows.height > MOST_ROWS:
            number, marked = rows.height, rows.with_row_index("at").filter(special)["at"]
            marked = marked.gather_every(-(-len(marked) // MOST_ROWS) or 1)
            others = pl.Series(np.linspace(0, number - 1, MOST_ROWS).astype(np.uint32))
            rows = rows[pl.concat([marked, others]).unique().sort()]
            self.notes.append(f"{rows.height:,} of {number:,} {what} are drawn: zoom in for all")
        return {"of": rows.height, **rows.select(columns).to_dict(as_series=False)}

    # --- transports

    def of_tcp(self, rows: pl.DataFrame, back: pl.DataFrame) -> Part:
        """Return segments, acknowledgements, SACK blocks and the window of a connection; bytes count from its first."""
        # The first byte is 0, and SYN the one before it.
        first = unwrapped(rows["sequence"].to_numpy()) - 1
        flags = rows["flags"].to_numpy()
        syn, fin = (flags & SYN) > 0, (flags & FIN) > 0
        payload, until = rows["payload_bytes"].to_numpy(), rows["time_ns"].to_numpy() <= self.to_ns
        end = first + payload + syn + fin
        before = np.concatenate([[-1], np.maximum.accumulate(end)[:-1]]) if end.size else end
        rows = rows.with_columns(
            first=first, end=end, retransmission=(first < before) & (end > first), syn=syn, fin=fin,
            reduced=(flags & CWR) > 0,
        )  # fmt: skip
        data = self.sent_in_window(rows.filter(pl.col("end") > pl.col("first")))
        answers = back.filter((pl.col("flags") & ACK) > 0)
        origin = int(rows["sequence"][0])
        numbers = answers["acknowledgement"].to_numpy()
        cumulative = unwrapped(np.concatenate([[origin], numbers]))[1:] - 1
        scale = 0
        opening = back.filter((pl.col("flags") & SYN) > 0)
        if opening.height and syn.any():
            # Without the option in both SYN, windows are not scaled (RFC 7323 §2.2).
            both = [
                dict(self.options(r)) for r in (opening.row(0, named=True), rows.row(0, named=True))
            ]
            if all(WINDOW_SCALE in o for o in both):
                scale = both[0][WINDOW_SCALE][0]
        # The window of a SYN is never scaled.
        shift = np.where(answers["flags"].to_numpy() & SYN, 0, scale)
        acks = answers.with_columns(
            time_s=pl.col("time_ns") / 1e9,
            cumulative=cumulative,
            window_end=cumulative + (answers["window"].to_numpy() << shift),
            echo=(pl.col("flags") & ECE) > 0,
        )
        # Lines begin with what was known before the window.
        earlier = acks.filter(pl.col("time_ns") < self.from_ns).tail(1)
        inside = acks.filter(pl.col("time_ns").is_between(self.from_ns, self.to_ns))
        blocks = self.blocks(inside)
        return {
            "segments": self.segments(data, ["syn", "fin", "reduced"]),
            "acks": self.kept(
                pl.concat([earlier, inside]), pl.col("echo"), "acknowledgements",
                ["time_s", "cumulative", "window_end", "echo"],
            ),
            "sack": self.kept(
                blocks, pl.col("duplicate"), "SACK blocks", ["time_s", "first", "end", "duplicate"]
            ),
            "totals": {
                "sent_packets": int(((payload > 0) & until).sum()),
                "retransmitted_packets": int(((first < before) & (payload > 0) & until).sum()),
            },
        }  # fmt: skip

    def options(self, row: Mapping[str, Any]) -> list[tuple[int, bytes]]:
        """Return the options of a TCP segment: kind and content."""
        header = self.seen.bytes_at(row["place"] + 20, 60)
        return list(options_of(header[20 : 4 * (header[12] >> 4)]))

    def blocks(self, acks: pl.DataFrame) -> pl.DataFrame:
        """Return the SACK blocks of acknowledgements (RFC 2018); `duplicate`: a DSACK (RFC 2883)."""
        found: dict[str, list[Any]] = {"time_s": [], "first": [], "end": [], "duplicate": []}
        for row in acks.iter_rows(named=True):
            content = dict(self.options(row)).get(SACK, b"")
            edges = [
                int.from_bytes(content[i : i + 4], "big") for i in range(0, len(content) - 3, 4)
            ]
            near = [row["cumulative"] + signed(edge - row["acknowledgement"]) for edge in edges]
            pairs = list(zip(near[::2], near[1::2], strict=True))
            for i, (first, end) in enumerate(pairs):
                inside = i == 0 and any(first >= f and end <= e for f, e in pairs[1:2])
                found["time_s"].append(row["time_s"])
                found["first"].append(first)
                found["end"].append(end)
                found["duplicate"].append(end <= row["cumulative"] or inside)
        return pl.DataFrame(
            found,
            schema={
                "time_s": pl.Float64,
                "first": pl.Int64,
                "end": pl.Int64,
                "duplicate": pl.Boolean,
            },
        )

    def of_datagrams(self, rows: pl.DataFrame) -> Part:
        """Return datagrams; their numbers are those of their order."""
        number = pl.int_range(pl.len())
        rows = rows.with_columns(first=number, end=number + 1, retransmission=pl.lit(value=False))
        data = self.sent_in_window(rows)
        return {
            "segments": self.segments(data, []),
            "acks": None,
            "sack": None,
            "totals": {
                "sent_packets": rows.filter(pl.col("time_ns") <= self.to_ns).height,
                "retransmitted_packets": 0,
            },
        }

    def of_quic(self, rows: pl.DataFrame, log: Sequence[Mapping[str, Any]]) -> Part:
        """Return packets of QUIC by their numbers in the application's space, on one path."""
        if not log:
            self.notes.append("this QUIC stack writes no qlog: datagrams are shown in their order")
            return self.of_datagrams(rows)
        lost, acks = Numbers(), []
        told = in_datagrams(log, rows)
        mine = {int(e["number"]) for _, e in told}
        for event in log:
            if event["name"] == "lost" and event["number"] in mine:
                lost.add(int(event["number"]), int(event["number"]) + 1, event["time_ns"])
            elif event["name"] == "acks":
                acks.append(event)
        at = rows["record"].to_list()
        chosen = pl.DataFrame(
            {
                "record": [at[i] for i, _ in told],
                "first": [int(e["number"]) for _, e in told],
                "retransmission": [bool(e["again"]) for _, e in told],
                "declared_lost_s": [lost.when.get(int(e["number"])) for _, e in told],
            },
            schema={
                "record": pl.UInt32,
                "first": pl.Int64,
                "retransmission": pl.Boolean,
                "declared_lost_s": pl.Float64,
            },
        )
        data = self.sent_in_window(
            rows.join(chosen, on="record", how="inner", maintain_order="right").with_columns(
                end=pl.col("first") + 1
            )
        )
        several = self.row["subflows"] is not None and self.row["subflows"] > 1
        if several:
            self.notes.append("acknowledgements of multipath QUIC are not in its qlog")
        # Lost acknowledgements and probes of the path are not declared lost (RFC 9002 §2, RFC 9000 §14.4).
        counted = sorted(int(e["number"]) for _, e in told if e["counted"])
        lines = [] if several else acknowledged(acks, lost, counted)
        ack_rows = pl.DataFrame(
            [(t / 1e9, c) for t, c, _ in lines],
            schema={"time_s": pl.Float64, "cumulative": pl.Int64},
            orient="row",
        ).with_columns(window_end=pl.lit(None, dtype=pl.Int64), echo=pl.lit(value=False))
        ranges = pl.DataFrame(
            [(t / 1e9, a, b, False) for t, _, found in lines for a, b in found],
            schema={
                "time_s": pl.Float64,
                "first": pl.Int64,
                "end": pl.Int64,
                "duplicate": pl.Boolean,
            },
            orient="row",
        )
        start, stop = self.from_ns / 1e9, self.to_ns / 1e9
        inside = pl.col("time_s").is_between(start, stop)
        return {
            "segments": self.segments(data, ["declared_lost_s"]),
            "acks": None if several else self.kept(
                pl.concat([ack_rows.filter(pl.col("time_s") < start).tail(1), ack_rows.filter(inside)]),
                pl.col("echo"), "acknowledgements", ["time_s", "cumulative", "window_end", "echo"],
            ),
            "sack": None if several else self.kept(
                ranges.filter(inside), pl.col("duplicate"), "acknowledged ranges",
                ["time_s", "first", "end", "duplicate"],
            ),
            "totals": {
                "sent_packets": sum(e["time_ns"] <= self.to_ns for _, e in told),
                "retransmitted_packets": sum(e["again"] and e["time_ns"] <= self.to_ns for _, e in told),
            },
        }  # fmt: skip

    def numbers(self, sender: int) -> list[Part]:
        """Return what the sender's qlog has of packets with data of the application, in its order."""
        node = self.run.setup.nodes[sender].name
        side = "client" if node == self.row["from"] else "server"
        file = self.folder / "qlog" / f"flow{self.row['id']}-{side}.sqlog"
        return list(events_of(file)) if file.exists() else []

    # --- links

    def on_links(self) -> Part | None:
        """Return the packets that were on a link in the window; None if they are too many."""
        rows = self.seen.passages.filter(
            (pl.col("entered_ns") <= self.to_ns)
            & (
                (pl.col("exited_ns") >= self.from_ns)
                | (pl.col("exited_ns").is_null() & (pl.col("entered_ns") >= self.from_ns))
            )
        )
        if rows.height > MOST_ON_WAY:
            self.notes.append(
                f"{rows.height:,} packets on links are too many to be followed: zoom in"
            )
            return None
        if (rows["fate"] == "unknown").any():
            count = int((rows["fate"] == "unknown").sum())
            self.notes.append(
                f"{count:,} packets on links could not be followed: they look like others, or end later"
            )
        entry = rows["entry"]
        rows = rows.with_columns(
            *(
                self.records[c].gather(entry).alias(c)
                for c in ("flow", "size_bytes", "payload_bytes")
            ),
            served_ns=self.served(rows),
        )
        return {
            "link": [self.links[i] for i in rows["link"]],
            "direction": ["up" if up else "down" for up in rows["up"]],
            "flow": rows["flow"].to_list(),
            "size_bytes": rows["size_bytes"].to_list(),
            "data": (rows["payload_bytes"] > 0).to_list(),
            "fate": rows["fate"].to_list(),
            **{
                f"{c}_s": (rows[f"{c}_ns"] / 1e9).to_list() for c in ("entered", "served", "exited")
            },
        }

    def served(self, rows: pl.DataFrame) -> pl.Series:
        """Return when packets left the transmitter, where the link's delay says so: it is constant."""
        delays = []
        for link in self.run.setup.links:
            for side in (link.up, link.down):
                delays.append(None if varies(side) else round((side.delay.constant_s or 0.0) * 1e9))
        at = rows["link"].cast(pl.Int64) * 2 + (~rows["up"].cast(pl.Boolean)).cast(pl.Int64)
        delay_ns: pl.Series = pl.Series(delays, dtype=pl.Int64).gather(at)
        served_ns: pl.Series = rows["exited_ns"].cast(pl.Int64) - delay_ns
        return served_ns


def connections(
    sent: pl.DataFrame, came: pl.DataFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Return what a host sent and got, by connection: the same ports may be used again, which a SYN shows."""
    for key, rows in sent.partition_by(*TUPLE, as_dict=True, maintain_order=True).items():
        back = came.filter(
            *(pl.col(name) == value for name, value in zip(OTHER_WAY, key, strict=True))
        )
        opening = rows.filter((pl.col("flags") & SYN) > 0)
        begins = opening.filter(pl.col("sequence") != pl.col("sequence").shift())[
            "time_ns"
        ].to_list()
        for begin, end in zip([-1, *begins], [*begins, 1 << 62], strict=True):
            inside = (pl.col("time_ns") >= begin) & (pl.col("time_ns") < end)
            if not rows.filter(inside).is_empty():
                yield rows.filter(inside), back.filter(inside)


def varies(side: Direction) -> bool:
    """Whether packets of a link have different delays after it has sent them."""
    return bool(side.delay.steps) or side.jitter is not None or side.reorder is not None


def with_flows(seen: Capture, run: Run) -> pl.DataFrame:
    """Return the records with `flow`, missing where it is not known, and the hosts `from_node` and `to_node`."""
    nodes = {n.name: i for i, n in enumerate(run.setup.nodes)}
    records = seen.records.with_columns(
        from_node=((pl.col("source") - FIRST_ADDRESS) & 0xFFFF).cast(pl.Int64),
        to_node=((pl.col("destination") - FIRST_ADDRESS) & 0xFFFF).cast(pl.Int64),
    )
    flows = run.flows.select("id", "from", "to", "transport", "start_s").with_columns(
        pl.col("from", "to").replace_strict(nodes, return_dtype=pl.Int64),
        port=FIRST_PORT + pl.col("id").cast(pl.Int64) % PORTS,
        start_ns=(pl.col("start_s") * 1e9).round().cast(pl.Int64),
    )
    pairs: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for id_, a, b, port, start in flows.select("id", "from", "to", "port", "start_ns").iter_rows():
        for key in ((a, b, port), (b, a, port)):
            pairs.setdefault(key, []).append((start, id_))
    opened = records.filter("at_origin").group_by(*TUPLE, "from_node", "to_node", maintain_order=True).agg(
        pl.col("time_ns").first()
    )  # fmt: skip
    joined = joined_flows(seen, records, pairs)
    found: list[tuple[Any, ...]] = []
    for source, destination, source_port, destination_port, a, b, _ in opened.iter_rows():
        there = (source, destination, source_port, destination_port)
        port = max(source_port, destination_port)
        # A connection that has moved may have the next port (RFC 9000 §9).
        several = joined.get(there) or pairs.get((a, b, port)) or pairs.get((a, b, port ^ 1), [])
        found += [(*there, id_, start) for start, id_ in several]
    if not found:
        return records.with_columns(flow=pl.lit(None, dtype=pl.Int64))
    known = pl.DataFrame(
        found, schema=dict.fromkeys([*TUPLE, "flow", "since_ns"], pl.Int64), orient="row"
    ).sort("since_ns")
    # Flows that have one port after another: the latest that had started.
    return records.join_asof(
        known,
        left_on="time_ns",
        right_on="since_ns",
        by=TUPLE,
        strategy="backward",
        check_sortedness=False,
    )


def joined_flows(
    seen: Capture,
    records: pl.DataFrame,
    pairs: Mapping[tuple[int, int, int], list[tuple[int, int]]],
) -> dict[tuple[int, int, int, int], list[tuple[int, int]]]:
    """Return the flows of subflows that have other ports, by the token of their connection (RFC 8684 §3.2)."""
    tokens: dict[bytes, list[tuple[int, int]]] = {}
    found: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
    opening = records.filter("at_origin", (pl.col("flags") & SYN) > 0, pl.col("protocol") == TCP)
    for row in opening.iter_rows(named=True):
        header = seen.bytes_at(row["place"] + 20, 60)
        content = dict(options_of(header[20 : 4 * (header[12] >> 4)])).get(MPTCP, b"")
        there = (row["source"], row["destination"], row["source_port"], row["destination_port"])
        port = max(there[2:])
        if content[:1] and content[0] >> 4 == CAPABLE and len(content) >= 10:
            key = content[2:10]
            flow = pairs.get((row["from_node"], row["to_node"], port), [])
            # The first version hashes with SHA-1, the second with SHA-256.
            tokens.update({h(key).digest()[:4]: flow for h in (hashlib.sha1, hashlib.sha256)})
        elif content[:1] and content[0] >> 4 == JOIN and len(content) == 10:
            flow = tokens.get(content[2:6], [])
            if flow:
                found[there] = flow
                found[there[1], there[0], there[3], there[2]] = flow
    return found


def options_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the options of TCP in some bytes: kind and content."""
    at = 0
    while at < len(data) and data[at] != 0:
        if data[at] == 1:
            at += 1
            continue
        length = data[at + 1] if at + 1 < len(data) else 0
        if length < 2 or at + length > len(data):
            return
        yield data[at], data[at + 2 : at + length]
        at += length


def signed(number: int) -> int:
    """Return a difference of two numbers of 32 bits that wrap."""
    return (number + 2**31) % 2**32 - 2**31


def unwrapped(numbers: NDArray[Any]) -> Integers:
    """Return numbers of 32 bits, which wrap, as differences from the first of them."""
    wide: Integers = numbers.astype(np.int64)
    steps: Integers = np.diff(wide, prepend=wide[:1]) + 2**31
    # The rest of a division by 2^32.
    steps = np.bitwise_and(steps, 2**32 - 1) - 2**31
    return np.cumsum(steps)


# --- QUIC


class Numbers:
    """Packet numbers with the time at which something became true of them, seconds."""

    def __init__(self) -> None:
        self.when: dict[int, float] = {}

    def add(self, first: int, end: int, time_ns: int) -> None:
        """Add numbers from `first` to before `end`."""
        for number in range(first, end):
            self.when.setdefault(number, time_ns / 1e9)


def events_of(file: Path) -> Iterator[Part]:
    """Return `sent`, `lost` and `acks` of a qlog, with `time_ns`; `again`: the packet has data that was sent before.

    Stacks of others leave out frames, and sizes of packets: a packet without its size cannot be found in a datagram.
    """
    ends: dict[int, int] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if "packet_sent" not in line and "packet_lost" not in line and '"ack"' not in line:
                continue
            event = json.loads(line.lstrip("\x1e"))
            name, data = event.get("name", ""), event.get("data", {})
            kind = data.get("header", {}).get("packet_type")
            told = {"time_ns": round(event["time"] * 1e6), "kind": kind}
            frames = data.get("frames", [])
            if name == "transport:packet_sent":
                size = data.get("raw", {}).get("length")
                again = False
                for frame in frames:
                    if frame["frame_type"] == "stream":
                        stream, offset = frame["stream_id"], frame["offset"]
                        again |= offset < ends.get(stream, 0)
                        ends[stream] = max(ends.get(stream, 0), offset + frame["length"])
                if size is not None:
                    yield {
                        **told, "name": "sent", "number": data["header"]["packet_number"], "again": again,
                        "counted": any(needed(f) for f in frames), "bytes": size,
                    }  # fmt: skip
            elif kind not in ("1RTT", "0RTT"):
                continue
            elif name == "recovery:packet_lost":
                yield {**told, "name": "lost", "number": data["header"]["packet_number"]}
            elif name == "transport:packet_received":
                ranges = [r for f in frames if f["frame_type"] == "ack" for r in f["acked_ranges"]]
                if ranges:
                    yield {**told, "name": "acks", "ranges": ranges}


def needed(frame: Mapping[str, Any]) -> bool:
    """Whether a frame makes its packet one that is acknowledged or declared lost in the end; 31 is IMMEDIATE_ACK."""
    kind = frame["frame_type"]
    return kind not in ("ack", "padding", "ping") and frame.get("raw_frame_type") != 31


def in_datagrams(
    log: Sequence[Mapping[str, Any]], rows: pl.DataFrame
) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the application's packets with the number of the datagram that each is in, by time and size.

    Datagrams with anything that is not in the log are left out.
    """
    sent = [e for e in log if e["name"] == "sent"]
    found: list[tuple[int, Mapping[str, Any]]] = []
    at = 0
    for i, (time, size) in enumerate(rows.select("time_ns", "payload_bytes").iter_rows()):
        while at < len(sent) and sent[at]["time_ns"] < time:
            at += 1
        # Those of other paths may have the same instant.
        for begin in range(at, len(sent)):
            if sent[begin]["time_ns"] != time:
                break
            total, end = 0, begin
            while end < len(sent) and sent[end]["time_ns"] == time and total < size:
                total += sent[end]["bytes"]
                end += 1
            if total == size:
                found += [(i, e) for e in sent[begin:end] if e["kind"] in ("1RTT", "0RTT")]
                at = end
                break
    return found


def acknowledged(
    acks: Sequence[Mapping[str, Any]], lost: Numbers, sent: Sequence[int]
) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Return of each acknowledgement its time, the edge, and the ranges above it.

    The edge is the first number that is neither acknowledged nor declared lost.
    """
    done: set[int] = set()
    losses = sorted((time, number) for number, time in lost.when.items())
    found, place, next_loss = [], 0, 0
    for ack in acks:
        time = ack["time_ns"] / 1e9
        while next_loss < len(losses) and losses[next_loss][0] <= time:
            done.add(losses[next_loss][1])
            next_loss += 1
        for first, last in ack["ranges"]:
            low = max(first, sent[place] if place < len(sent) else first)
            done.update(range(low, last + 1))
        while place < len(sent) and sent[place] in done:
            done.discard(sent[place])
            place += 1
        edge = sent[place] if place < len(sent) else (sent[-1] + 1 if sent else 0)
        above = [(max(a, edge), b + 1) for a, b in ack["ranges"] if b >= edge]
        found.append((ack["time_ns"], edge, above))
    return found
