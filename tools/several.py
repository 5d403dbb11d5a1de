"""Run several commands in one process, which imports the libraries once.

    python tools/several.py "list congestion" "run --help"

Prints a JSON list with the exit code, standard output and standard error of each.
"""

from __future__ import annotations

import json
import shlex
import sys

from click.testing import CliRunner
from gargalo.cli.app import app


def main() -> None:
    """Run them."""
    done = [CliRunner().invoke(app, shlex.split(a), prog_name="gargalo") for a in sys.argv[1:]]
    print(json.dumps([[d.exit_code, d.stdout, d.stderr] for d in done]))


if __name__ == "__main__":
    main()
