"""`gargalo export`: the tables of a run or a sweep as CSV."""

from __future__ import annotations

from pathlib import Path

import click

from gargalo import _core
from gargalo.cli.common import FAILED, PATH, because, fail, lacks, refuse_another
from gargalo.cli.help import command


@command(
    examples=[
        ("gargalo export runs/race-1 --csv", "Write race-1-csv/flows.csv and so on."),
        (
            "gargalo export sweeps/buffers --csv --output tables",
            "Of a sweep: results.csv, cells.csv, ….",
        ),
    ]
)
@click.argument(
    "directory", type=PATH, metavar="DIR", help="Results of a run, or the store of a sweep."
)
@click.option("--csv", "_csv", is_flag=True, help="As CSV, the default; Parquet is there already.")
@click.option(
    "--output", type=PATH, metavar="DIR", help="Directory of the files. Default: NAME-csv."
)
@click.option("--name", metavar="NAME", help="Which sweep of the store. Default: the latest.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
def export(
    directory: Path, _csv: bool, output: Path | None, name: str | None, overwrite: bool
) -> None:
    """Write the tables of a run or a sweep as CSV, a file for each; units are in the names of columns."""
    from gargalo import exporting

    of_sweep = (directory / "store.json").is_file()
    if not of_sweep and not (directory / "run.json").is_file():
        refuse_another(directory, "run", "store")
        told = lacks(directory, "has no results")
        fail(f"{told}; give the results of a run, or the store of a sweep")
    if name is not None and not of_sweep:
        fail(f"--name chooses a sweep of a store, and {directory} is not a store")
    target = output or Path(f"{directory.absolute().name}-csv")
    if target.exists() and not target.is_dir():
        fail(f"{target} is not a directory; choose another --output")
    try:
        if of_sweep:
            from gargalo.sweeps import Sweep

            sweep = Sweep.load(directory, name)
            if not sweep.finished:
                fail(f'the sweep "{sweep.name}" has no finished run: run it first')
            tables = exporting.tables_of_sweep(sweep)
        else:
            tables = exporting.tables_of_run(directory)
        present = [t for t in (target / f"{n}.csv" for n in tables) if t.exists()]
        if present and not overwrite:
            fail(f"{present[0]} exists; choose another --output or add --overwrite")
        target.mkdir(parents=True, exist_ok=True)
        for file in exporting.write(tables, target):
            print(file)
    except (RuntimeError, _core.RunError, FileNotFoundError) as e:
        fail(str(e))
    except OSError as e:
        fail(f"{target}: cannot be written: {because(e, target)}", FAILED)
