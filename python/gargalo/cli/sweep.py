"""`gargalo sweep`: many runs of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    PATH,
    World,
    change,
    fail,
    given,
    json_option,
    memory,
    memory_limit_option,
    place_of,
    plugin_option,
    quiet_option,
    refuse_another,
    repair_option,
    sweep_errors,
    tell_failures,
    tell_sweep,
    to_json,
    world_option,
)
from gargalo.cli.help import command
from gargalo.terminal.text import printable, say

if TYPE_CHECKING:
    from gargalo.audit import Finding
    from gargalo.running import Text
    from gargalo.sweeps import Sweep, SweepFile

MOST_ROWS = 60


@command(
    examples=[
        ("gargalo example sweep-buffers", "Copy a sweep and its scenario."),
        ("gargalo sweep sweep-buffers.toml --dry-run", "Its cells and runs."),
        ("gargalo sweep sweep-buffers.toml", "Do what is missing; figures of each cell."),
        ("gargalo sweep sweep-buffers.toml --repeat 5", "With more runs of each cell."),
    ]
)
@click.argument(
    "file", type=PATH, metavar="FILE", help="The sweep, a TOML file; - is standard input."
)
@click.option(
    "--store", type=PATH, metavar="DIR", help="Directory for results. Default: sweeps/NAME."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes; in the lab runs at the same time. Default: one for each core, in the lab 1.",
)
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler, like tcp://host:8786.")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a setting of all runs."
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Instead of the sweep's.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Runs per cell.")
@click.option(
    "--keep", multiple=True, metavar="TABLE", help="Keep this table of every run; may be repeated."
)
@click.option(
    "--measure",
    metavar="MODULE:FUNCTION",
    help="Function that is called with every run and returns figures.",
)
@plugin_option
@world_option
@memory_limit_option
@repair_option
@json_option("Print one JSON object.")
@click.option("--dry-run", is_flag=True, help="Check every run, print the plan, do nothing.")
@quiet_option
def sweep(
    file: Path,
    store: Path | None,
    workers: int | None,
    cluster: str | None,
    changes: tuple[str, ...],
    seed: int | None,
    repeat: int | None,
    keep: tuple[str, ...],
    measure: str | None,
    plugin: tuple[Path, ...],
    world: World,
    memory_limit: str | None,
    repair: bool,
    as_json: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Run a scenario for every point of some axes; only missing runs are done."""
    from gargalo.sweeps import execute
    from gargalo.sweeps.plugins import Plugins
    from gargalo.sweeps.progress import display
    from gargalo.terminal.screen import err

    if cluster is not None and workers is not None:
        fail("--workers and --cluster exclude each other: a cluster has workers of its own")
    limit = memory(memory_limit)
    settings: dict[str, Any] = dict(change(c) for c in changes)
    with sweep_errors():
        plugins = Plugins.load(plugin)
        description = read_sweep(given(file))
        jobs = description.plan(repeat=repeat, seed=seed, set=settings, world=world)
        if dry_run:
            _print_plan(description, jobs, as_json=as_json)
            return
        # Where a measuring function may be: beside the sweep, or here.
        sys.path[:0] = [str(file.parent.absolute()), str(Path.cwd())]
        target = store if store is not None else Path("sweeps") / description.name
        _tell_version(target)
        with display(err, shown=not quiet) as tell:
            done = execute(
                jobs,
                target,
                measure=measure or description.measure,
                keep=list(keep) or description.keep,
                workers=workers if world == "sim" else None,
                at_once=workers or 1,
                cluster=cluster,
                progress=tell,
                plugins=plugins,
                name=description.name,
                repair=repair,
                memory_limit=limit,
            )
        grave = _report(done, as_json=as_json, quiet=quiet)
    if done.failures or grave:
        raise Exit(FAILED)


def read_sweep(file: Path | Text) -> SweepFile:
    """Read a sweep; a file that another command takes ends the command."""
    from gargalo.sweeps import SweepFile
    from gargalo.sweeps.errors import SweepError

    try:
        if isinstance(file, Path):
            return SweepFile.load(file)
        return SweepFile.parse(file.text, file.path)
    except SweepError:
        refuse_another(file, "sweep")
        raise


def _print_plan(description: SweepFile, jobs: list[Any], *, as_json: bool) -> None:
    rows = [{**j.labels, "repeat": j.repeat, "seed": j.seed} for j in jobs]
    if as_json:
        print(to_json({"sweep": description.name, "runs": rows}))
        return
    cells = [r for r in rows if r["repeat"] == 0]
    print(f"{description.name}: {len(cells)} cells, {len(rows)} runs")
    for r in cells:
        told = ", ".join(f"{k} = {v}" for k, v in r.items() if k not in ("repeat", "seed"))
        print(f"  {printable(told)}")


def _tell_version(target: Path) -> None:
    from gargalo.sweeps import DamagedError, Store

    if not (target / "store.json").exists():
        return
    try:
        store = Store(target)
    except DamagedError:
        return  # Reported, or repaired, when it is opened for writing.
    if store.version != _core.__engine__:
        say(
            f"note: {target} was begun by gargalo {store.version}, this is {_core.__engine__}: "
            "runs of other versions are kept, but not used"
        )
    if not store.verified:
        say(
            f"note: {target} was begun before files had checksums: those without are taken as they are"
        )


def _report(done: Sweep, *, as_json: bool, quiet: bool) -> bool:
    """Print the results of a sweep; return whether the auditor found an error."""
    findings = done.findings()
    grave = tell_sweep(done, findings)
    _print_report(done, findings, as_json=as_json, quiet=quiet)
    return grave


def _print_report(done: Sweep, findings: list[Finding], *, as_json: bool, quiet: bool) -> None:
    tell_failures(done)
    if as_json:
        facts = {**_facts(done), "findings": [f.to_json() for f in findings]}
        print(to_json(facts))
        return
    if quiet:
        return
    from gargalo.sweeps.show import show
    from gargalo.terminal.screen import Screen

    show(done, Screen(highlight=False), MOST_ROWS)
    failed = f", {len(done.failures)} failed" if done.failures else ""
    say(f"{done.done} runs done, {done.reused} were there{failed}; results: {done.store.path}")


def _facts(done: Sweep) -> dict[str, Any]:
    return {
        "sweep": done.name,
        "store": str(done.store.path),
        "runs": {
            "planned": len(done.plan),
            "done": done.done,
            "reused": done.reused,
            "failed": len(done.failures),
        },
        "failures": [
            {"run": f.run, "where": place_of(done, f.run), "reason": f.reason}
            for f in done.failures
        ],
        "repaired": None if done.repaired is None else done.repaired.to_json(),
        "packets": done.packets,
        "wall_s": done.wall_s,
        "summary": done.summary().to_dicts(),
    }
