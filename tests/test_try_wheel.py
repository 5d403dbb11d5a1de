"""What a stranger does in the first hour, from the wheel, where nothing else is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

WHEELS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheels"
SEVERAL_MINUTES_S = 600


@pytest.mark.skipif(sys.platform != "linux", reason="`make setup` builds the wheel on Linux")
def test_a_stranger_installs_the_wheel_and_uses_every_command():
    assert list(WHEELS.glob("gargalo-*.whl")), "no wheel: make setup"
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "try_wheel.py", WHEELS, "--offline"],
        capture_output=True,
        text=True,
        timeout=SEVERAL_MINUTES_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^ *[\d.]+ s  ([\w ]+): .", done.stdout, flags=re.MULTILINE)
    assert {
        "install the base",
        "draw",
        "find studies",
        "evaluate",
        "try the lab",
        "complete",
    } <= set(steps)
    print(done.stdout)


def test_the_trial_ends_at_the_first_thing_that_is_wrong(tmp_path: Path):
    (tmp_path / "gargalo-0.1.0-py3-none-any.whl").write_bytes(b"not a wheel")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "try_wheel.py", tmp_path],
        capture_output=True,
        text=True,
        timeout=SEVERAL_MINUTES_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("try_wheel: install the base: exit code")
    assert done.stdout == ""
