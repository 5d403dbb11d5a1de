"""How our program for htsim is compiled with the sources in a directory that the user names."""

from __future__ import annotations

import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ns3_build import BENCH, BenchError, run

SOURCE = Path(__file__).resolve().parent / "htsim" / "dumbbell.cpp"
# The files of htsim's sim/ that TcpSrc, TcpSink, Queue, Pipe and EventList refer to.
PARTS = [
    "config",
    "eth_pause_packet",
    "eventlist",
    "fairpullqueue",
    "logfile",
    "loggers",
    "mtcp",
    "ndppacket",
    "network",
    "pipe",
    "queue",
    "route",
    "sent_packets",
    "tcp",
    "tcppacket",
    "trigger",
]
# htsim's own Makefile: C++11, -O3; assertions are on there and compiled out here. Warnings are its own.
FLAGS = ["-std=c++11", "-O3", "-DNDEBUG"]


def sources(directory: Path) -> Path:
    """Return the folder with htsim's sources: the directory, or `sim` in it.

    Raises:
        BenchError: It has not all of them.

    """
    folder = next(
        (d for d in (directory / "sim", directory) if (d / "eventlist.h").is_file()), None
    )
    if folder is None:
        raise BenchError(
            f"htsim: no sim/eventlist.h in {directory};"
            " name a checkout of its sources (https://github.com/Broadcom/csg-htsim)"
        )
    missing = [f"{part}.cpp" for part in PARTS if not (folder / f"{part}.cpp").is_file()]
    if missing:
        raise BenchError(f"htsim: {folder} has no {', '.join(missing)}; is the checkout complete?")
    return folder


def version(folder: Path) -> str:
    """Return the commit of a checkout, if git says."""
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    try:
        return run(command).stdout.strip()
    except BenchError:
        return "commit unknown"


def compiled(directory: Path) -> Path:
    """Compile our program with the sources in a directory; nothing is written there."""
    folder = sources(directory)
    place = BENCH / f"htsim-{zlib.crc32(str(folder.resolve()).encode()):08x}"
    binary = place / "dumbbell"
    inputs = [SOURCE, *folder.glob("*.h"), *(folder / f"{part}.cpp" for part in PARTS)]
    if binary.exists() and binary.stat().st_mtime > max(i.stat().st_mtime for i in inputs):
        return binary
    place.mkdir(parents=True, exist_ok=True)

    def object_of(part: str) -> str:
        made = str(place / f"{part}.o")
        run(["g++", *FLAGS, "-w", "-c", str(folder / f"{part}.cpp"), "-o", made])
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(object_of, PARTS))
    partial = str(binary) + ".partial"
    run(["g++", *FLAGS, "-isystem", str(folder), str(SOURCE), *objects, "-o", partial])
    Path(partial).replace(binary)
    return binary
