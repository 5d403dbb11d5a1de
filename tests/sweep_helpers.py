"""What the tests of sweeps share: a tiny scenario, functions that workers import."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import gargalo

MINI = """\
name     = "mini"
seed     = 5
duration = "1s"

[topology.simple]
link = { rate = "2Mbit/s", delay = "5ms", queue = { droptail = "20 packets" }, loss = { independent = 0.01 } }

[[flows]]
from  = "client"
to    = "server"
label = "upload"
transport.tcp = { congestion = "cubic" }

[[flows]]
from  = "client"
to    = "server"
label = "other"
transport.tcp = { congestion = "reno" }
"""

RATES = {"topology.simple.link.rate": ["1Mbit/s", "2Mbit/s"]}


def delivered(run: gargalo.Run) -> dict[str, float]:
    return {"delivered_mb": float(run.flows["delivered_bytes"].sum()) / 1e6}


def slowly(run: gargalo.Run) -> dict[str, float]:
    time.sleep(float(os.environ.get("GARGALO_TEST_PAUSE", "0.05")))
    return delivered(run)


def die_once(run: gargalo.Run) -> dict[str, float]:
    """Kill the worker at the first run on the slow link, the first time only."""
    flag = os.environ["GARGALO_TEST_FLAG"]
    if rate(run) == 1_000_000 and not os.path.exists(flag):  # noqa: PTH110
        open(flag, "w").close()  # noqa: PTH123
        os._exit(17)
    return delivered(run)


def die_always(run: gargalo.Run) -> dict[str, float]:
    if rate(run) == 1_000_000:
        os.kill(os.getpid(), 9)
    return delivered(run)


def fail(run: gargalo.Run) -> dict[str, float]:
    if rate(run) == 1_000_000:
        msg = "no good"
        raise ValueError(msg)
    return delivered(run)


def rate(run: gargalo.Run) -> int:
    return run.setup.links[0].up.rate.constant_bps


def sweep_file(folder: Path, text: str, scenario: str = MINI) -> Path:
    """Write a scenario and a sweep beside it."""
    (folder / "mini.toml").write_text(scenario)
    path = folder / "sweep.toml"
    path.write_text(f'name = "test"\nscenario = "mini.toml"\n{text}')
    return path
