#!/usr/bin/env python3
"""Run a scenario once with the Gargalo of this interpreter; what its event loop took, as JSON.

    .venv/bin/python benches/loop.py SCENARIO [KEY=VALUE ...]

Works with any build that has `gargalo.run` and its `progress`, so that benches/compare.py can run an older one beside
this one. The loop is timed from the outside: a run of a microsecond says what reading the scenario and building the
network take, and the run itself says when its last event was handled.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gargalo


def timed(file: str, changes: dict[str, str]) -> tuple[gargalo.Run, float, float]:
    """Run; return the results, and processor and wall-clock seconds up to the last event."""
    ended: list[tuple[float, float]] = []

    def note(p: Any) -> None:
        if p.phase == "running" and p.now_s >= p.end_s:
            ended.append((time.process_time(), time.perf_counter()))

    with tempfile.TemporaryDirectory(prefix="gargalo-bench-") as folder:  # For captures.
        begun = time.process_time(), time.perf_counter()
        run = gargalo.run(file, set=changes, output=Path(folder) / "run", progress=note)
    if not ended:
        sys.exit(f"loop.py: {file}: the run ended before its time; flows must be endless")
    return run, ended[-1][0] - begun[0], ended[-1][1] - begun[1]


def peak_kib() -> int:
    """Return the most memory this process has had; 0 where /proc does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM:")), 0)


def main() -> None:
    """Run the command."""
    file, *pairs = sys.argv[1:]
    changes = dict(pair.split("=", 1) for pair in pairs)
    flows = range(len(gargalo.resolve(file, set=changes)["flows"]))
    nothing = {"duration": "1us"} | {f"flows.{i}.start": "0s" for i in flows}
    _, setup_cpu_s, setup_wall_s = timed(file, changes | nothing)
    before = time.process_time()
    run, cpu_s, wall_s = timed(file, changes)
    # Data outnumbers acknowledgements in bytes whichever direction is listed first.
    bottleneck = max(
        (link for link in run.links if link["name"] in ("bottleneck", "link")),
        key=lambda link: link["utilization"] or 0.0,
    )
    found = {
        "packets": bottleneck["sent_packets"],
        "dropped": bottleneck["dropped_packets"],
        "delivered_bytes": int(run.flows["delivered_bytes"].sum()),
        "events": run.info["events"],
        "peak_kib": peak_kib(),
        "cpu_s": max(cpu_s - setup_cpu_s, 1e-6),
        "wall_s": max(wall_s - setup_wall_s, 1e-6),
        "whole_run_cpu_s": time.process_time() - before,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
