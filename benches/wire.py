"""Our TCP over a TUN device against the kernel's over the same kind of device, in one run.

    python benches/wire.py [--time 5] [--repeat 3] [--json]

Needs root or user namespaces, iperf3 and cc. Measured are, with and without segmentation offload:

- `gargalo iperf3 -c` to `iperf3 -s`, and with `-R`: our stack on one side, the kernel's on the other;
- `iperf3 -c` in one namespace to `iperf3 -s` in another, joined by two TUN devices and the shortest
  program that copies between them (tun_copier.c): the kernel's stack on both sides.

Processor time is that of the whole machine, kernel included, so it must be idle otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
INSIDE = "GARGALO_WIRE_BENCH_INSIDE"


def gargalo() -> list[str]:
    return [sys.executable, "-m", "gargalo"]


@dataclass(frozen=True)
class Transfer:
    """A test of iperf3."""

    goodput_bps: float
    cpu_s_per_byte: float
    """Of all processors, in user and kernel mode, for each byte that the receiver got."""


def busy_s() -> float:
    """Processor time that this machine has spent, in s (proc_stat(5))."""
    line = Path("/proc/stat").read_text("ascii").split("\n", 1)[0]
    user, nice, system, _idle, _waiting, irq, softirq = map(int, line.split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def transfer(test: Callable[[], str]) -> Transfer:
    before = busy_s()
    received = json.loads(test())["end"]["sum_received"]
    spent = busy_s() - before
    return Transfer(float(received["bits_per_second"]), spent / float(received["bytes"]))


def run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def serve(prefix: list[str]) -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        [*prefix, "iperf3", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(0.5)
    return server


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def ours(seconds: int, offload: bool, reverse: bool) -> Transfer:
    server = serve([])
    try:
        command = [*gargalo(), "iperf3", "-c", "127.0.0.1", "-t", str(seconds), "-J"]
        command += [] if offload else ["--no-offload"]
        # All senders use CUBIC; asked by -C, the server does.
        command += ["-C", "cubic", "-R"] if reverse else ["-C", "cubic"]
        return transfer(lambda: run(command))
    finally:
        end(server)


def namespace() -> subprocess.Popen[bytes]:
    holder = subprocess.Popen(["unshare", "-n", "sleep", "1000"])
    time.sleep(0.2)
    return holder


def kernels(copier: Path, seconds: int, offload: bool) -> Transfer:
    a, b = namespace(), namespace()
    command = [str(copier), str(a.pid), str(b.pid), str(int(offload))]
    copy = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert copy.stdout is not None
        assert copy.stdout.readline() == b"ready\n"
        for holder, address in ((a, "10.9.0.1/24"), (b, "10.9.0.2/24")):
            enter = ["nsenter", "-n", "-t", str(holder.pid)]
            run([*enter, "ip", "address", "add", address, "dev", "copy0"])
            run([*enter, "ip", "link", "set", "copy0", "up", "txqueuelen", "10000"])
        server = serve(["nsenter", "-n", "-t", str(b.pid)])
        try:
            enter = ["nsenter", "-n", "-t", str(a.pid)]
            client = ["iperf3", "-c", "10.9.0.2", "-t", str(seconds), "-J", "-C", "cubic"]
            return transfer(lambda: run([*enter, *client]))
        finally:
            end(server)
    finally:
        for process in (copy, a, b):
            end(process)


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Transfer]]:
    run(["ip", "link", "set", "lo", "up"])
    results: dict[str, dict[str, list[Transfer]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        copier = Path(directory) / "tun_copier"
        run(["cc", "-O2", "-pthread", "-o", str(copier), str(HERE / "tun_copier.c")])
        # Interleaved, so that what else the machine does meets all alike.
        for _ in range(arguments.repeat):
            for offload in (True, False):
                rows = results.setdefault("offload" if offload else "no offload", {})
                seconds = arguments.time
                for name, value in (
                    ("ours, sending", ours(seconds, offload, reverse=False)),
                    ("ours, receiving", ours(seconds, offload, reverse=True)),
                    ("kernel", kernels(copier, seconds, offload)),
                ):
                    rows.setdefault(name, []).append(value)
    return {
        kind: {name: typical(values) for name, values in rows.items()}
        for kind, rows in results.items()
    }


def typical(tests: list[Transfer]) -> Transfer:
    """Medians of both."""
    return Transfer(
        statistics.median(t.goodput_bps for t in tests),
        statistics.median(t.cpu_s_per_byte for t in tests),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--time", type=int, default=5, help="seconds of each test")
    parser.add_argument(
        "--repeat", type=int, default=3, help="tests of each kind; medians are told"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if INSIDE not in os.environ:
        # Nothing of this machine's network is touched.
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-Urn", sys.executable, *sys.argv])
    results = measure(arguments)
    if arguments.json:
        plain = {k: {name: asdict(t) for name, t in rows.items()} for k, rows in results.items()}
        print(json.dumps(plain))
        return
    for kind, rows in results.items():
        print(f"{kind} (median of {arguments.repeat} tests of {arguments.time} s):")
        kernel = rows["kernel"]
        for name, t in rows.items():
            rate = t.goodput_bps / kernel.goodput_bps
            cost = t.cpu_s_per_byte / kernel.cpu_s_per_byte
            print(
                f"  {name:16} {t.goodput_bps / 1e9:6.2f} Gbit/s, {rate:5.2f} of the kernel's; "
                f"{t.cpu_s_per_byte * 1e9:6.3f} ns of processor time a byte, {cost:5.2f}"
            )


if __name__ == "__main__":
    main()
