"""What a command loads before it begins: libraries that it does not need cost more than most runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT

SHORT = ["examples/cellular-race.toml", "--set", "duration=0.1s"]
TABLES = ("polars", "numpy", "scipy", "matplotlib", "plotly", "dask")
MANY_RUNS = (
    "gargalo.sweeps",
    "gargalo.studies",
    "gargalo_studies",
    "gargalo.evaluation",
    "gargalo.reporting",
)
# What libraries for command lines bring with them.
FRONTS = ("typer", "pydantic", "importlib.metadata", "email", "asyncio", "ssl", "jsonschema")
SCREEN = ("rich",)
"""Consoles, tables and progress bars."""
OTHER_COMMANDS = ("gargalo.cli.sweep", "gargalo.cli.wire", "gargalo.cli.evaluate", "socket")
ENGINE = ("gargalo.scenarios.setup", "gargalo.plots", "gargalo.audit", "gargalo.lab")
NEVER = (*TABLES, *MANY_RUNS)


def loaded(code: str, *arguments: str) -> set[str]:
    """Return the modules that are loaded when some code has ended."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(*sys.modules, file=sys.stderr)", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


COMMAND = """\
import sys
from gargalo.cli.app import main
sys.argv[0] = 'gargalo'
try:
    main()
except SystemExit as e:
    assert not e.code, e.code
"""


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--version"], (*NEVER, *FRONTS, *SCREEN, *OTHER_COMMANDS, *ENGINE)),
        # The help page of all commands loads their files, and no more: it is plain text.
        (["--help"], (*NEVER, *FRONTS, *SCREEN, *ENGINE)),
        (["list", "congestion"], (*NEVER, *FRONTS, *SCREEN, *OTHER_COMMANDS, *ENGINE)),
        (["run", *SHORT, "--json"], (*NEVER, *FRONTS, *SCREEN, *OTHER_COMMANDS)),
        (["run", *SHORT, "--no-plots"], (*NEVER, *FRONTS, "rich.progress", *OTHER_COMMANDS)),
    ],
    ids=["version", "help", "list", "run-json", "run-table"],
)
def test_a_command_loads_no_library_that_it_does_not_use(arguments, without, tmp_path):
    if "--no-plots" in arguments:
        arguments = [*arguments, "--output", str(tmp_path / "results")]
    assert loaded(COMMAND, *arguments) & set(without) == set()


def test_the_package_loads_what_a_run_needs_and_no_more():
    without = {*NEVER, *FRONTS, *SCREEN, "click", "gargalo.scenarios.setup"}
    assert loaded("import sys\nimport gargalo") & without == set()
