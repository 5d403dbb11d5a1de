"""What a command loads before it begins: libraries that it does not need cost more than most runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT

HEAVY = (
    "polars",
    "numpy",
    "scipy",
    "matplotlib",
    "plotly",
    "dask",
    "gargalo.sweeps",
    "gargalo.studies",
)
SHORT = "examples/cellular-race.toml"


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["list", "congestion"], ["run", SHORT, "--set", "duration=0.1s", "--json"]],
    ids=["help", "list", "run"],
)
def test_a_command_loads_no_library_that_it_does_not_use(arguments):
    code = (
        "import sys\nfrom gargalo.cli import main\nsys.argv[0] = 'gargalo'\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code, e.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
