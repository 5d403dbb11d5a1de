"""The command `gargalo`.

Exit codes: 0 done; 1 the run failed, ended early at its memory limit (what it had is kept), or its
results contradict themselves (a finding of severity error; they are kept); 2 bad usage or bad input,
nothing written; 130 interrupted, finished work kept. Results go to standard output, everything else
to standard error; with --json, standard output is JSON in any case: an object with `error` where there
are no results.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import signal
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gargalo import _core
from gargalo.cli_common import (
    FAILED,
    INTERRUPTED,
    Changes,
    InWorld,
    MemoryLimit,
    Output,
    OutputError,
    PluginFiles,
    Quiet,
    ScenarioFile,
    Screen,
    World,
    ask_json,
    because,
    change,
    check_target,
    err,
    fail,
    json_option,
    memory,
    printable,
    recover,
    refuse,
    to_json,
)
from gargalo.cli_evaluate import evaluate
from gargalo.cli_lab import lab
from gargalo.cli_report import report as report_command
from gargalo.cli_script import script
from gargalo.cli_shell import shell
from gargalo.cli_study import study
from gargalo.cli_sweep import compare, sweep
from gargalo.cli_trace import app as trace_app
from gargalo.cli_wire import connect, iperf3

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.results import Run
    from gargalo.setup import Setup

app = typer.Typer(
    name="gargalo",
    help="A laboratory for transport protocols: one scenario, a deterministic simulation, results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(trace_app, name="trace")
app.command()(sweep)
app.command()(compare)
app.command()(study)
app.command()(evaluate)
app.command()(shell)
app.command()(lab)
app.command()(script)
app.command("report")(report_command)
app.command()(iperf3)
app.command()(connect)


class Ends(str, Enum):
    """Ends of a link."""

    start = "from"
    end = "to"
    both = "both"


class Stack(str, Enum):
    """Whose TCP/IP stack a host has."""

    gargalo = "gargalo"
    kernel = "kernel"


class What(str, Enum):
    """What can be listed."""

    congestion = "congestion"
    schedulers = "schedulers"
    path_managers = "path-managers"
    transports = "transports"
    queues = "queues"
    rates = "rates"
    losses = "losses"
    workloads = "workloads"
    topologies = "topologies"
    profiles = "profiles"
    tables = "tables"
    capabilities = "capabilities"
    studies = "studies"


def version(value: bool) -> None:
    """Print the version and leave."""
    if value:
        print(f"gargalo {_core.__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A laboratory for transport protocols: one scenario, a deterministic simulation, results."""
    ask_json(False)


@app.command()
def run(
    file: ScenarioFile,
    changes: Changes = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the scenario's.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory for results; must not exist. Default: runs/NAME-SEED, or with -2, -3, … "
            "if that exists.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the results in DIR, if there are.")
    ] = False,
    as_json: Annotated[
        bool,
        json_option("Print one JSON object; no files unless --output is given."),
    ] = False,
    quiet: Quiet = False,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="No pictures.")] = False,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINK",
            help="Write capture.pcapng of this link: headers, at one end; may be repeated.",
        ),
    ] = None,
    capture_ends: Annotated[
        Ends | None,
        typer.Option(help="Capture at this end of the links, or at both. Default: from."),
    ] = None,
    capture_payload: Annotated[
        bool, typer.Option("--capture-payload", help="Capture whole packets.")
    ] = False,
    plugin: PluginFiles = None,
    world: InWorld = World.sim,
    stack: Annotated[
        Stack | None,
        typer.Option(help="The stack of hosts that name none, in the lab. Default: gargalo."),
    ] = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Run a scenario: simulate it, or do it in real time."""
    from gargalo.progress import bar
    from gargalo.running import Interrupted
    from gargalo.running import run as simulate

    limit = memory(memory_limit)
    settings: dict[str, Any] = dict(change(c) for c in changes or [])
    if stack is not None:
        settings["lab.stack"] = stack.value
    for path in plugin or []:
        load_plugin(path)
    if capture and as_json and output is None:
        fail("--capture writes a file: give its directory with --output DIR")
    settings |= capture_settings(capture, capture_ends, capture_payload)
    made = checked(file, settings if seed is None else {**settings, "seed": seed})
    check_capture(made, capture_ends, capture_payload)
    target = directory(made, output, overwrite, as_json)
    existed = target is None or target.parent.exists()
    interrupted = False
    try:
        with bar(err, shown=not quiet) as tell:
            done = simulate(
                file,
                seed=seed,
                set=settings,
                output=target,
                existing="replace" if overwrite else "refuse",
                progress=tell,
                world=world.value,
                memory_limit=limit,
            )
    except Interrupted as e:
        done, interrupted = e.run, True
    except _core.ScenarioError as e:
        refuse(e)
    except _core.RunError as e:
        fail(str(e), FAILED)
    except KeyboardInterrupt:
        err.print("interrupted; no results were written", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as e:
        class_failed(e)
    finally:
        if target is not None and not existed:
            # If nothing was written, leave no empty runs/ either.
            with contextlib.suppress(OSError):
                target.parent.rmdir()
    if done.directory is not None and done.directory != target:
        err.print(f"note: {target} was made or changed in the meantime", markup=False)
        err.print(f"results: {done.directory}", markup=False)
    report(done, as_json=as_json, quiet=quiet, plots=not (no_plots or as_json))
    end_with(done, interrupted=interrupted)


def end_with(done: Run, *, interrupted: bool) -> None:
    """End the command with the exit code of a run that did not end well, and say why."""
    if interrupted:
        kept = f"; what was done is in {done.directory}" if done.directory else ""
        err.print(f"interrupted at {done.info.get('virtual_s', 0):.3g} s{kept}", markup=False)
        raise typer.Exit(INTERRUPTED)
    if any(f["severity"] == "error" for f in done.findings):
        err.print(
            "error: the results contradict themselves: do not use them, and report it with the scenario and "
            "the seed",
            markup=False,
        )
        raise typer.Exit(FAILED)
    if done.ended_early is not None:
        raise typer.Exit(FAILED)


def load_plugin(path: Path) -> None:
    """Run a Python file that registers classes."""
    from gargalo.registry import registered

    before = registered()
    spec = importlib.util.spec_from_file_location(f"gargalo_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        fail(f"--plugin {path}: not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        fail(f"--plugin {path}: no such file")
    except (Exception, SystemExit) as e:
        err.print_exception(max_frames=8)
        fail(f"--plugin {path}: {type(e).__name__}: {e}")
    if registered() == before:
        err.print(
            f'warning: {path} registers no class; decorate it with @gargalo.congestion("name"), '
            '@gargalo.scheduler("name") or @gargalo.path_manager("name")',
            markup=False,
        )


def class_failed(e: Exception) -> NoReturn:
    """Show what a class written in Python raised."""
    import traceback

    err.print("".join(traceback.format_exception(e)).rstrip("\n"), markup=False)
    fail(f"a class written in Python failed: {type(e).__name__}: {e}", FAILED)


def checked(file: Path, settings: dict[str, Any]) -> Setup:
    """Return what the engine makes of a scenario; a wrong one ends the command."""
    from gargalo.running import setup

    color = err.is_terminal and not err.no_color
    try:
        return setup(file, set=settings, color=color)
    except _core.ScenarioError as e:
        refuse(e, in_color=color)


def directory(made: Setup, output: Path | None, overwrite: bool, as_json: bool) -> Path | None:
    """Return the directory for results, after recovering what killed runs left there."""
    if output is not None:
        recover(output.parent)
    elif as_json:
        return None
    else:
        output = Path("runs") / f"{made.name}-{made.seed}"
        recover(output.parent)
        if not overwrite:
            names = (output.with_name(f"{output.name}-{n}") for n in range(2, 10_000))
            if os.path.lexists(output):
                output = next((p for p in names if not os.path.lexists(p)), output)
    check_target(output, overwrite=overwrite)
    return output


def report(done: Run, *, as_json: bool, quiet: bool, plots: bool) -> None:
    """Print the result, and write pictures beside the tables."""
    if done.directory is not None and plots:
        from gargalo.plots import Plots

        try:
            Plots(done).save(done.directory)
        except (OSError, _core.RunError) as e:
            fail(f"pictures cannot be written: {e}; the results are in {done.directory}", FAILED)
    from gargalo.audit import told

    for warning in done.warnings:
        err.print(f"warning: {warning}", markup=False)
    for finding in done.findings:
        err.print(told(finding), markup=False)
    if as_json:
        print(to_json(done.to_json()))
    elif not quiet:
        from gargalo.summary import show

        try:
            show(done, Screen(highlight=False))
        finally:
            if done.directory is not None:
                err.print(f"results: {done.directory}", markup=False)


def capture_settings(links: list[str] | None, ends: Ends | None, payload: bool) -> dict[str, Any]:
    """Return the settings of the options that capture packets."""
    settings: dict[str, Any] = {}
    if links:
        settings["record.captures"] = links
    if ends is not None:
        settings["record.capture_ends"] = ends.value
    if payload:
        settings["record.capture_payload"] = True
    return settings


def check_capture(made: Setup, ends: Ends | None, payload: bool) -> None:
    """End the command if options say how to capture and no link is captured."""
    if (ends is None and not payload) or made.record.captures:
        return
    option = "--capture-payload" if ends is None else "--capture-ends"
    links = ", ".join(link.name for link in made.links)
    fail(
        f"{option} says how to capture, and no link is captured: add --capture LINK; links: {links}"
    )


@app.command("resolve")
def resolve_(
    file: ScenarioFile,
    changes: Changes = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    plugin: PluginFiles = None,
) -> None:
    """Print a scenario with every default written out: a scenario that runs the same."""
    from gargalo.running import resolve, resolve_toml

    for path in plugin or []:
        load_plugin(path)
    color = err.is_terminal and not err.no_color
    settings = dict(change(c) for c in changes or [])
    try:
        if as_json:
            print(to_json(resolve(file, set=settings, color=color)))
        else:
            print(resolve_toml(file, set=settings, color=color), end="")
    except _core.ScenarioError as e:
        refuse(e, in_color=color)


@app.command("list")
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    parameters: Annotated[
        bool,
        typer.Option(
            "--parameters", help="With the keys of each: default, allowed values, meaning."
        ),
    ] = False,
    as_json: Annotated[bool, json_option("As JSON, parameters included.")] = False,
) -> None:
    """Print what is available: name, one line about it, its source."""
    entries = listing(what)
    if as_json:
        print(to_json(entries))
        return
    print_entries(entries, parameters=parameters)


def listing(what: What) -> list[dict[str, Any]]:
    """Return the entries of a list."""
    if what is What.studies:
        from gargalo.studies import STUDIES

        return [
            {"name": t.name, "summary": t.summary, "source": t.source} for t in STUDIES.values()
        ]
    if what in REGISTRIES:
        return REGISTRIES[what]()
    if what is What.tables:
        return [{"name": t["name"], "summary": t["doc"], "source": ""} for t in _core.tables()]
    if what is What.capabilities:
        from gargalo.worlds import entries

        return entries()
    from gargalo.model import Model

    return Model.load().listing(CHOICES[what])


REGISTRIES = {
    What.congestion: _core.congestion,
    What.schedulers: _core.schedulers,
    What.path_managers: _core.path_managers,
    What.queues: _core.queues,
    What.profiles: _core.profiles,
}
# Definitions of the schema that are a choice.
CHOICES = {
    What.transports: "Transport",
    What.rates: "RateMap",
    What.losses: "LossMap",
    What.workloads: "Workload",
    What.topologies: "Topology",
}


def print_entries(entries: Iterable[dict[str, Any]], *, parameters: bool = False) -> None:
    """Print one line for each entry and, if asked for, one line for each of its parameters."""
    entries = [{**e, "names": ", ".join([e["name"], *e.get("aliases", [])])} for e in entries]
    width = max((len(e["names"]) for e in entries), default=0)
    for e in entries:
        source = f"  [{e['source']}]" if e["source"] else ""
        print(printable(f"{e['names']:<{width}}  {e['summary']}{source}"))
        if not parameters:
            continue
        own = e.get("parameters", [])
        columns = [max((len(p[key]) for p in own), default=0) for key in ("name", "default")]
        for p in own:
            head = f"    {p['name']:<{columns[0]}}  {p['default']:<{columns[1]}}"
            print(printable(f"{head}  {p['doc'].rstrip('.')}; {p['valid']}"))


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios (for editors: taplo, VS Code)."""
    print(json.dumps(json.loads(_core.schema()), indent=2, ensure_ascii=False))


def main() -> None:
    """Run the command; the entry point of the package."""
    # Schedulers and containers send SIGTERM before they kill: finished work is kept, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code: str | int | None = 0
    if isinstance(sys.stdout, io.TextIOWrapper):  # None where it was closed.
        out = sys.stdout
        facts = {"encoding": out.encoding, "errors": out.errors}
        sys.stdout = Output(
            out.detach(), **facts, line_buffering=out.line_buffering, write_through=False
        )
    try:
        try:
            app()
        except SystemExit as e:
            code = e.code
        if sys.stdout is not None:  # None where it was closed.
            sys.stdout.flush()
    except BrokenPipeError:
        # `gargalo … | head` is not a failure.
        _drop_output()
    except OutputError as e:
        told = str(e)
        _drop_output()
        with contextlib.suppress(OSError):
            err.print(f"error: {told}", markup=False)
        code = FAILED
    except OSError as e:
        # For example a full disk. Every step keeps what it has finished.
        where = "" if e.filename is None else f"{e.filename}: "
        _drop_output()
        with contextlib.suppress(OSError):
            err.print(f"error: {where}{because(e)}", markup=False)
        code = FAILED
    sys.exit(code)


def _drop_output() -> None:
    """Discard output that is still buffered, so that the interpreter does not complain at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
