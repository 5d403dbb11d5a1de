"""The stub of the bindings says what the bindings have."""

from __future__ import annotations

import subprocess
import sys

from conftest import ROOT


def test_names_parameters_and_defaults_are_those_of_the_stub():
    allowed = ROOT / "tools" / "stub-allowed.txt"
    words = ("gargalo._core", "--concise", "--allowlist", str(allowed))
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
