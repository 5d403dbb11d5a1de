#!/usr/bin/env python3
"""Hash the result tables of every example and every bench scenario, column by column.

    .venv/bin/python tools/fingerprint.py [NAME ...] > before.json
    .venv/bin/python tools/fingerprint.py [NAME ...] --compare before.json

A rebuilding must change no result: run it before and after. The comparison names each scenario, table and
column that differs and ends with 1 if there is any. Scenarios run in the simulator, several at once. Left out are
sweeps, whose base scenarios are examples too, scenarios for the kernel's stack, and wall-clock figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gargalo
from gargalo._toml import loads
from gargalo.results import TABLES
from gargalo.running import setup

if TYPE_CHECKING:
    import polars as pl

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("examples", "examples/networks", "examples/studies", "benches/scenarios")
# Scenarios that take minutes: their first seconds.
SHORTENED = {"many-flows": "2s"}
# Figures of the machine and the name of the engine, not of the scenario.
OF_THE_MACHINE = {"wall_s", "packets_per_s", "version"}


def simulated(path: Path) -> bool:
    """Whether a file is a scenario, not a sweep, and no host of it needs the kernel's stack."""
    if "axes" in loads(path.read_text(encoding="utf-8")):
        return False
    return not setup(path).hosts


def scenarios(names: list[str]) -> list[Path]:
    """List the scenario files, all or those whose name without suffix is given."""
    files = [p for folder in FOLDERS for p in sorted((ROOT / folder).glob("*.toml"))]
    found = [p for p in files if simulated(p)]
    if not names:
        return found
    unknown = set(names) - {p.stem for p in found}
    if unknown:
        sys.exit(f"fingerprint: no scenario {', '.join(sorted(unknown))} in {', '.join(FOLDERS)}")
    return [p for p in found if p.stem in names]


def digest(data: bytes) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of data."""
    return hashlib.sha256(data).hexdigest()[:16]


def as_json(value: Any) -> bytes:
    """Write a JSON value in one fixed form."""
    return json.dumps(value, sort_keys=True).encode()


def columns(table: pl.DataFrame) -> dict[str, str]:
    """Hash each column of a table, in row order."""
    return {
        name: digest(str(table[name].dtype).encode() + as_json(table[name].to_list()))
        for name in table.columns
    }


def fingerprint(path: Path) -> tuple[str, dict[str, dict[str, str]]]:
    """Run a scenario and hash what it gave: per table, per column."""
    with tempfile.TemporaryDirectory() as directory:  # for captures
        changes = {"duration": SHORTENED[path.stem]} if path.stem in SHORTENED else None
        run = gargalo.run(path, set=changes, output=Path(directory) / "run")
        return str(path.relative_to(ROOT)), hashes(run)


def hashes(run: gargalo.Run) -> dict[str, dict[str, str]]:
    """Hash the tables and the figures of a run."""
    facts = run.to_json()
    found = {name: columns(run.table(name)) for name in TABLES}
    found["summary"] = {k: digest(as_json(v)) for k, v in facts["summary"].items()}
    found["run"] = {
        k: digest(as_json(v)) for k, v in facts["run"].items() if k not in OF_THE_MACHINE
    }
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Name what differs: `scenario: table.column`."""
    lines = []
    for name, tables in after.items():
        if name not in before:
            lines.append(f"{name}: new")
            continue
        for table in sorted(tables.keys() | before[name].keys()):
            old, new = before[name].get(table, {}), tables.get(table, {})
            changed = sorted(c for c in old.keys() & new.keys() if old[c] != new[c])
            added, gone = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
            for verb, which in (("changed", changed), ("new", added), ("gone", gone)):
                if which:
                    lines.append(f"{name}: {table}: {verb}: {', '.join(which)}")
    return lines


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these scenarios")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="an earlier output")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="0: none but this process"
    )
    args = parser.parse_args()
    chosen = scenarios(args.names)
    if args.workers:
        with ProcessPoolExecutor(args.workers) as pool:
            found = dict(pool.map(fingerprint, chosen))
    else:
        found = dict(map(fingerprint, chosen))
    if args.compare is None:
        print(json.dumps(found, indent=1, sort_keys=True))
        return 0
    lines = differences(json.loads(args.compare.read_text(encoding="utf-8")), found)
    print("\n".join(lines) or f"{len(found)} scenarios: every table is the same")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
