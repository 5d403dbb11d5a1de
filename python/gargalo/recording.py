"""Reading what was recorded elsewhere: captures and logs of real traffic, as a run.

>>> run = gargalo.read("upload.pcap")
>>> run.flows.select("label", "goodput_bps", "retransmitted_packets", "rtt_p95_s")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gargalo import _core
from gargalo.results import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

INTERVAL_S = 0.1
"""Time between two samples of a flow."""
ENDINGS = (".gz", ".pcap", ".pcapng", ".cap", ".qlog", ".sqlog", ".json", ".log", ".txt")
UNNAMED = "recording"
"""What an anonymous recording is called."""


def read(
    files: str | Path | Sequence[str | Path],
    *,
    interval_s: float = INTERVAL_S,
    anonymise: bool = False,
    packets: bool = False,
    output: str | Path | None = None,
    existing: Literal["refuse", "replace"] = "refuse",
    progress: Callable[[float, int], object] | None = None,
) -> Run:
    """Read captures and logs as a recording: a run with the tables that they show, and without a scenario.

    Flows, samples and events are those of the connections in the files; what a capture cannot show, such as the
    congestion window, is missing. What was concluded of each flow beside that (base and queueing delay, why packets
    were sent again, what limited the sender) is in `run.info["recording"]["flows"]`, and what a reader of the figures
    should know in `run.warnings`.

    Args:
        files: pcap or pcapng files, or logs (qlog, iperf3 --json, ss -ti with times, tcp_probe, mm-link), plain or
            compressed with gzip; several are of the same traffic, as of its two ends. QUIC in captures is decrypted
            with a key log (`SSLKEYLOGFILE`) among them.
        interval_s: Time between two samples of a flow.
        anonymise: Name hosts, ports and files by numbers: addresses and payload are nowhere in the results.
        packets: Keep each packet with data of TCP in the table `packets`; takes some 100 bytes of memory for each.
        output: Directory to write results to; without it they stay in memory.
        existing: What to do if `output` exists.
        progress: Called a few times a second with the share of the files that is read, 0 to 1, and the packets so far;
            an exception stops the reading.

    Raises:
        RunError: A file cannot be read, or is no capture and no log.
        ValueError: `interval_s` is not positive, or there is no file.

    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not paths:
        msg = "no file to read"
        raise ValueError(msg)
    if not 0 < interval_s < float("inf"):
        msg = f"interval_s is {interval_s}: a sample must come after the one before"
        raise ValueError(msg)
    found = _core.read_recording(
        [Path(p) for p in paths],
        UNNAMED if anonymise else name_of(Path(paths[0])),
        interval_s,
        anonymise,
        packets,
        progress,
        None if output is None else Path(output),
        existing == "replace",
    )
    return Run.of(found, found.directory)


def name_of(file: Path) -> str:
    """Return what a recording is called: its file without the endings that tell how it was written."""
    name = file.name
    for ending in ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


def concluded(run: Run) -> Sequence[Mapping[str, Any]]:
    """Return what was concluded of each flow of a recording; of a run that is none, nothing."""
    recording = run.info.get("recording") or {}
    return list(recording.get("flows", []))
