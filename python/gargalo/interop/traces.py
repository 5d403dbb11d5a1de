"""What a run shows of each flow besides its row: packets, what was reported of early data, pauses."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import reading, recording
from gargalo.interop import wire

if TYPE_CHECKING:
    from gargalo.results import Run

RECORD: dict[str, Any] = {
    "interval": "20ms",
    "verify": True,
    "events": True,
    "captures": ["link"],
}
"""What a run must record, on a link of this name between the two hosts, for all that is looked at."""
CAPTURE = "capture.pcapng"
FIRST_PORT = 49_152
"""The client's port of flow 0, from which the simulator counts."""


@dataclass(frozen=True)
class Trace:
    """What a run shows of a flow."""

    connection: wire.Connection | None
    """What its packets show; None: there were none."""
    early_data: list[str]
    """What its ends reported of early data: `keys`, `accepted`, `rejected`."""
    pause_s: float | None
    """The longest time without new data for the application after the client moved; None: it did not move."""
    objects: list[float | None] = field(default_factory=list)
    """When each object of a request was complete, in seconds since it was requested; None: it never was."""
    key_updates: list[int] | None = None
    """Key updates that packets of the client and the server show; None: they were not decrypted."""


@dataclass(frozen=True)
class Traces:
    """What a run shows of its flows."""

    flows: list[Trace]
    """In the order of their rows."""
    packets_hash: str
    """SHA-256 of the capture."""

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Traces:
        """Return what `to_text` has written."""
        fields = json.loads(text)
        flows = []
        for flow in fields["flows"]:
            shown = flow["connection"]
            connection = None if shown is None else wire.Connection.of_json(shown)
            flows.append(Trace(**{**flow, "connection": connection}))
        return cls(flows, fields["packets_hash"])


def of_run(run: Run) -> Traces:
    """Look at a run that recorded what `RECORD` says, with its files.

    Raises:
        ValueError: It has no files, or a capture that cannot be read.
        OSError: It has no capture.

    """
    if run.directory is None:
        msg = "the run has no files"
        raise ValueError(msg)
    file = Path(run.directory) / CAPTURE
    connections = wire.connections(wire.datagrams(file))
    updates = key_updates(file) if asks_for_key_updates(run) else None
    flows = []
    for flow in run.flows["id"].sort():
        shown = connections.get(FIRST_PORT + flow)
        told = run.events.filter((pl.col("flow") == flow) & (pl.col("kind") == "zero-rtt"))
        moved = None if shown is None or shown.move is None else shown.move.at_s
        pause_s = None if moved is None else longest_pause(run.flow_samples, flow, moved)
        objects = run.objects.filter(pl.col("flow") == flow).sort("object")
        completions = objects["completion_s"].to_list()
        flows.append(Trace(shown, told["detail"].to_list(), pause_s, completions, updates))
    return Traces(flows, hashlib.sha256(reading.data(file)).hexdigest())


def asks_for_key_updates(run: Run) -> bool:
    """Return whether the run has one flow, and that updates its keys."""
    flows = run.scenario["flows"] if run.scenario else []
    quic = [flow["transport"].get("quic") for flow in flows]
    return len(quic) == 1 and bool(quic[0]) and quic[0].get("key_update") is not None


def key_updates(capture: Path) -> list[int] | None:
    """Return the key updates of client and server in a capture with one connection and its secrets.

    They are the changes of the key phase (RFC 9001 §6), of packets that could be opened.
    """
    told = recording.read(capture).info["recording"]["flows"][0]
    found: list[int] | None = told["key_updates"]
    return found


def longest_pause(samples: pl.DataFrame, flow: int, since_s: float) -> float:
    """Return the longest time without new data for the application, from a time to the last sample."""
    later = samples.filter((pl.col("flow") == flow) & (pl.col("time_s") >= since_s)).sort("time_s")
    news = later.filter(pl.col("delivered_bytes").diff() > 0)["time_s"].to_list()
    times = [since_s, *news, *later["time_s"].tail(1).to_list()]
    return max((b - a for a, b in pairwise(times)), default=0.0)


def measure(run: Run) -> dict[str, Any]:
    """Return `of_run` as a figure of a sweep."""
    return {"traces": of_run(run).to_text()}
