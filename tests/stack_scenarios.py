"""Scenarios with one stack, named STACK, and what their runs have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gargalo
from gargalo.interop import traces

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.interop.traces import Trace
    from gargalo.interop.wire import Connection

LOSSY = """\
name     = "stack"
seed     = 5
duration = "60s"

[topology.simple]
link = { rate = "20Mbit/s", delay = "20ms", loss = { independent = 0.002 }, reorder = { probability = 0.01, late = "3ms" } }

[[flows]]
from = "client"
to   = "server"
transport.quic = { stack = STACK, congestion = "reno" }
workload.bulk = { bytes = "500kB" }

[record]
verify = true
events = true
"""
QUIET = """\
name     = "stack"
seed     = 5
duration = "10s"

[topology.multipath]
paths = [ { rate = "10Mbit/s", delay = "15ms" }, { rate = "10Mbit/s", delay = "15ms" } ]

[[flows]]
from = "client"
to   = "server"
transport.quic = { stack = STACK, congestion = "reno" }
workload.bulk = { bytes = "50kB" }

[[flows]]
from = "client"
to   = "server"
start = "2s"
transport.quic = { stack = STACK, congestion = "reno" }
workload.bulk = { bytes = "50kB" }

[record]
verify = true
events = true
"""
QUIC = "flows.1.transport.quic"


def flow(text: str, number: int = 0, **changes: object) -> tuple[dict, list[tuple[str, str]]]:
    """Run it; return a flow's row and its events."""
    run = gargalo.run(text, set=changes)
    row = run.flows.row(number, named=True)
    assert row["verified"]
    assert row["failure"] is None
    events = run.events.filter(run.events["flow"] == row["id"])
    return row, list(zip(events["kind"], events["detail"], strict=True))


def shown(text: str, output: Path, **changes: object) -> list[Trace]:
    """Run it; return what it shows of its flows."""
    recorded = {f"record.{key}": value for key, value in traces.RECORD.items()}
    recorded["record.captures"] = ["*"]
    run = gargalo.run(text, set={**recorded, **changes}, output=output)
    return traces.of_run(run).flows


def connection(text: str, output: Path, number: int = 1, **changes: object) -> Connection:
    """Run it; return what the packets of a flow show."""
    found = shown(text, output, **changes)[number].connection
    assert found is not None
    return found
