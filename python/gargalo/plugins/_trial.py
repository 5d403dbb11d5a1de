"""Loads a shared library, and does a short run with each of its congestion controls if asked to; a script of its own.

Started by `gargalo.plugins.native` before a library is loaded there: what a damaged or wrong library does to a process
happens to this one. It imports nothing but the engine, gets the library on standard input, and writes to standard
output what it is about to do.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from contextlib import suppress

RUN = """
name = "trial"
duration = "300ms"
[topology.simple]
link = { rate = "20Mbit/s", delay = "5ms", queue = { droptail = "20 packets" } }
[[flows]]
from = "client"
to = "server"
transport.tcp = { congestion = "NAME" }
workload.bulk = {}
"""
OTHERS: dict[str, dict[str, object]] = {"scheduler": {}, "path_manager": {}, "stack": {}}
REFUSED = "refused: "
"""Before the reason why it cannot be loaded."""
MOST_S = 5
"""Seconds for the runs; what takes longer is reported in a real run."""


def main(engine: str, file: str, runs: str) -> None:
    """Load the library, and use it in runs unless `runs` is empty."""
    spec = importlib.util.spec_from_file_location("_core", engine)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{engine} is not the engine")
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    library = sys.stdin.buffer.read()
    print("loading it", flush=True)
    try:
        controls = core.native_congestion(file, library)
        core.native_stack(file, library)
    except ValueError as e:
        sys.stdout.buffer.write(f"{REFUSED}{e}".encode(errors="replace"))
        return
    signal.alarm(MOST_S)
    for control in controls if runs else ():
        print(f'a first short run with "{control.name}"', flush=True)
        classes = {"congestion": {control.name: control}, **OTHERS}
        with suppress(ValueError, RuntimeError):  # The same.
            core.run(RUN.replace("NAME", control.name), None, [], classes)
    print("unloading it", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
