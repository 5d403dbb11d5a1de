"""One connection behind an emulated link: `gargalo shell` against mahimahi's shells, in one run.

    .venv/bin/python benches/compare_emulators.py [--seconds 5] [--rounds 3]

iperf3 runs inside, its server outside. mahimahi's mm-delay and mm-link are measured where they are
installed (setuid root, and they want an ordinary user, IP forwarding and dnsmasq). Root is needed for
a fair comparison: then both reach the same server in this machine's own network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PORT = 5299


def iperf(base: str, seconds: int) -> list[str]:
    """Return the program inside: base is the variable with the server's address."""
    return ["sh", "-c", f"iperf3 -J -p {PORT} -t {seconds} -c ${base}"]


def measure(command: list[str], rounds: int, seconds: int) -> list[tuple[float, float]]:
    """Return received bit/s and the least round-trip time in ms of each round."""
    found = []
    for _ in range(rounds):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60 + 3 * seconds, cwd="/tmp"
        )
        start = done.stdout.find("{")
        if done.returncode != 0 or start < 0:
            print(f"  failed: {' '.join(command[:4])} …: {done.stderr[-300:]}", file=sys.stderr)
            continue
        end = json.loads(done.stdout[start:])["end"]
        least = end["streams"][0]["sender"].get("min_rtt", 0) / 1e3
        found.append((end["sum_received"]["bits_per_second"], least))
    return found


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("iperf3") is None:
        print("not measured: needs root and iperf3", file=sys.stderr)
        return 1
    gargalo = [sys.executable, "-m", "gargalo", "shell"]
    inside = iperf("GARGALO_BASE", given.seconds), iperf("MAHIMAHI_BASE", given.seconds)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        # A line is a packet of 1500 bytes in a millisecond: 12 Mbit/s and 1.2 Gbit/s.
        traces = {}
        for mbps in (12, 1200):
            trace = Path(directory) / f"{mbps}.trace"
            trace.write_text("".join(f"{1 + i // (mbps // 12)}\n" for i in range(mbps // 12)))
            traces[mbps] = str(trace)
        cases: dict[str, list[tuple[str, list[str]]]] = {"delay 1 ms, no rate": []}
        cases["delay 1 ms, no rate"] += [
            ("gargalo", [*gargalo, "--delay", "1ms", "--", *inside[0]]),
            ("gargalo, no offload", [*gargalo, "--delay", "1ms", "--no-offload", "--", *inside[0]]),
            ("mahimahi", [*NOBODY, "mm-delay", "1", *inside[1]]),
        ]
        for mbps, trace in traces.items():
            cases[f"trace of {mbps} Mbit/s"] = [
                ("gargalo", [*gargalo, "--trace", trace, "--", *inside[0]]),
                ("mahimahi", [*NOBODY, "mm-link", trace, trace, "--", *inside[1]]),
            ]
        server = subprocess.Popen(
            ["iperf3", "-s", "-p", str(PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        print("| link | emulator | goodput, median | least RTT |\n| --- | --- | --- | --- |")
        try:
            for case, commands in cases.items():
                for name, command in commands:
                    if name == "mahimahi" and shutil.which("mm-delay") is None:
                        print(f"| {case} | {name} | not installed | |")
                        continue
                    found = measure(command, given.rounds, given.seconds)
                    if not found:
                        print(f"| {case} | {name} | failed | |")
                        continue
                    rate = statistics.median(f[0] for f in found)
                    least = statistics.median(f[1] for f in found)
                    print(f"| {case} | {name} | {rate / 1e6:,.1f} Mbit/s | {least:.2f} ms |")
        finally:
            server.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
