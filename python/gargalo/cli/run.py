"""`gargalo run`: one scenario, simulated or in real time."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, get_args

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    INTERRUPTED,
    PATH,
    Stack,
    World,
    because,
    change,
    check_target,
    fail,
    fail_on_option,
    given,
    json_option,
    load_plugin,
    memory,
    memory_limit_option,
    of_user,
    plugin_option,
    quiet_option,
    recover,
    refuse,
    refuse_another,
    scenario_argument,
    set_option,
    to_json,
    world_option,
)
from gargalo.cli.help import command
from gargalo.names import flow_names
from gargalo.quantities import decimal
from gargalo.terminal.detection import in_color
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gargalo.results import Run
    from gargalo.running import Text
    from gargalo.scenarios.setup import Setup
    from gargalo.severity import Kind

Ends: TypeAlias = Literal["from", "to", "both"]
"""Ends of a link."""


@command(
    examples=[
        ("gargalo run race.toml", "Simulate; tables and pictures are then in runs/race-1."),
        ("gargalo run race.toml --seed 2 --set duration=10s", "With another seed, shorter."),
        (
            "gargalo run race.toml --set flows.1.transport.tcp.congestion=reno",
            "With another congestion control for the second flow.",
        ),
        ("gargalo run race.toml --json", "Figures as one JSON object, no files."),
        ("gargalo run race.toml --capture link", "With a packet capture for Wireshark."),
        ("gargalo resolve race.toml | gargalo run -", "From standard input."),
    ]
)
@scenario_argument
@set_option
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Instead of the scenario's.")
@click.option(
    "--output",
    type=PATH,
    metavar="DIR",
    help="Directory for results; must not exist. Default: runs/NAME-SEED, or with -2, -3, … if that exists.",
)
@click.option("--overwrite", is_flag=True, help="Replace the results in DIR, if there are.")
@json_option("Print one JSON object; no files unless --output is given.")
@quiet_option
@click.option("--no-plots", is_flag=True, help="No pictures.")
@click.option(
    "--capture",
    multiple=True,
    metavar="LINK",
    help="Write capture.pcapng of this link: headers, at one end; may be repeated.",
)
@click.option(
    "--capture-ends",
    type=click.Choice(get_args(Ends)),
    help="Capture at this end of the links, or at both. Default: from.",
)
@click.option("--capture-payload", is_flag=True, help="Capture whole packets.")
@plugin_option
@world_option
@click.option(
    "--stack",
    type=click.Choice(get_args(Stack)),
    help="The stack of hosts that name none, in the lab. Default: gargalo.",
)
@fail_on_option(None)
@click.option(
    "--watch",
    is_flag=True,
    help="Show each flow's goodput, round trip and window while a run of the lab goes on.",
)
@memory_limit_option
def run(
    file: Path,
    changes: tuple[str, ...],
    seed: int | None,
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    no_plots: bool,
    capture: tuple[str, ...],
    capture_ends: Ends | None,
    capture_payload: bool,
    plugin: tuple[Path, ...],
    world: World,
    stack: Stack | None,
    fail_on: Kind | None,
    watch: bool,
    memory_limit: str | None,
) -> None:
    """Run a scenario: simulate it, or do it in real time."""
    from gargalo.running import run as simulate

    limit = memory(memory_limit)
    settings: dict[str, Any] = dict(change(c) for c in changes)
    if stack is not None:
        settings["lab.stack"] = stack
    for path in plugin:
        load_plugin(path)
    if capture and as_json and output is None:
        fail("--capture writes a file: give its directory with --output DIR")
    settings |= capture_settings(capture, capture_ends, capture_payload)
    scenario = given(file)
    made = checked(scenario, settings if seed is None else {**settings, "seed": seed})
    check_capture(made, capture_ends, capture_payload)
    check_watch(made, world, watch=watch)
    target = directory(usual(made), output, overwrite=overwrite, as_json=as_json)
    done, interrupted = carry_out(
        partial(
            simulate,
            scenario,
            seed=seed,
            set=settings,
            output=target,
            existing="replace" if overwrite else "refuse",
            world=world,
            memory_limit=limit,
        ),
        target,
        quiet=quiet,
        watched=names_of(made) if watch else None,
    )
    report(done, as_json=as_json, quiet=quiet, plots=not (no_plots or as_json))
    end_with(done, interrupted=interrupted)
    if fail_on is not None:
        end_if_faulty(done, fail_on)


def carry_out(
    simulate: Callable[..., Run],
    target: Path | None,
    *,
    quiet: bool,
    watched: Mapping[int, str] | None = None,
) -> tuple[Run, bool]:
    """Do a run with a progress bar; return it, and whether it was interrupted. One that fails ends the command.

    `simulate` takes the function that receives the progress, and writes results into `target`. The flows `watched`,
    by number and name, are shown instead of a bar.
    """
    from gargalo.running import Interrupted
    from gargalo.terminal.live import flows_of
    from gargalo.terminal.progress import bar

    interrupted = False
    shown = bar(shown=not quiet) if watched is None else flows_of(watched)
    try:
        with no_empty_parent(target), shown as tell:
            done = simulate(progress=tell)
    except Interrupted as e:
        done, interrupted = e.run, True
    except _core.ScenarioError as e:
        refuse(e)
    except _core.RunError as e:
        fail(str(e), FAILED)
    except KeyboardInterrupt:
        say("interrupted; no results were written")
        raise Exit(INTERRUPTED) from None
    except Exception as e:
        class_failed(e)
    if done.directory is not None and done.directory != target:
        say(f"note: {target} was made or changed in the meantime")
        say(f"results: {done.directory}")
    return done, interrupted


@contextlib.contextmanager
def no_empty_parent(target: Path | None) -> Iterator[None]:
    """Leave no empty runs/ behind if nothing is written to a directory in it."""
    existed = target is None or target.parent.exists()
    try:
        yield
    finally:
        if target is not None and not existed:
            with contextlib.suppress(OSError):
                target.parent.rmdir()


def end_with(done: Run, *, interrupted: bool) -> None:
    """End the command with the exit code of a run that did not end well, and say why."""
    if interrupted:
        kept = f"; what was done is in {done.directory}" if done.directory else ""
        say(f"interrupted at {decimal(done.info.get('virtual_s', 0), 3)} s{kept}")
        raise Exit(INTERRUPTED)
    if any(f["severity"] == "error" for f in done.findings):
        say(
            "error: the results contradict themselves: do not use them, and report it with the scenario and "
            "the seed"
        )
        raise Exit(FAILED)
    if done.ended_early is not None:
        raise Exit(FAILED)


def end_if_faulty(done: Run, least: Kind) -> None:
    """End the command with the exit code of a failure if something like this, or worse, is wrong with the run."""
    from gargalo.checking.faults import faults
    from gargalo.severity import counted

    found = [fault for fault in faults(done) if fault.kind in counted(least)]
    for fault in found:
        # Warnings were told with the results.
        if fault.kind != "warning":
            say(f"{fault.kind}: {fault.text}")
    if found:
        raise Exit(FAILED)


def class_failed(e: Exception) -> NoReturn:
    """Show what a class written in Python raised, and where."""
    trace, place = of_user(e)
    say(trace)
    fail(f"{place or 'a class written in Python failed: '}{type(e).__name__}: {e}", FAILED)


def checked(file: Path | Text, settings: dict[str, Any]) -> Setup:
    """Return what the engine makes of a scenario; a wrong one ends the command."""
    from gargalo.running import setup

    color = in_color()
    try:
        return setup(file, set=settings, color=color)
    except _core.ScenarioError as e:
        refuse_another(file, "scenario")
        refuse(e, colored=color)


def usual(made: Setup) -> str:
    """Return what the directory of a run is called without --output."""
    return f"{made.name}-{made.seed}"


def directory(name: str, output: Path | None, *, overwrite: bool, as_json: bool) -> Path | None:
    """Return the directory for results, after recovering what killed runs left there; `name` without --output."""
    if output is not None:
        recover(output.parent)
    elif as_json:
        return None
    else:
        output = Path("runs") / name
        recover(output.parent)
        if not overwrite:
            names = (output.with_name(f"{output.name}-{n}") for n in range(2, 10_000))
            if os.path.lexists(output):
                output = next((p for p in names if not os.path.lexists(p)), output)
    check_target(output, overwrite=overwrite)
    return output


def report(
    done: Run,
    *,
    as_json: bool,
    quiet: bool,
    plots: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print the result, with `more` in JSON, and write pictures beside the tables."""
    if done.directory is not None and plots:
        from gargalo.extras import MissingExtraError

        try:
            from gargalo.plots import Plots

            Plots(done).save(done.directory)
        except MissingExtraError as e:
            say(f"note: no pictures: {e}")
        except (OSError, _core.RunError) as e:
            why = because(e, done.directory) if isinstance(e, OSError) else e
            fail(f"pictures cannot be written: {why}; the results are in {done.directory}", FAILED)
    from gargalo.audit import told

    for warning in done.warnings:
        say(f"warning: {warning}")
    for finding in done.findings:
        say(told(finding))
    if as_json:
        print(to_json({**done.to_json(), **(more or {})}))
    elif not quiet:
        from gargalo.summary import show
        from gargalo.terminal.screen import Screen

        try:
            show(done, Screen(highlight=False))
        finally:
            if done.directory is not None:
                say(f"results: {done.directory}")


def capture_settings(links: tuple[str, ...], ends: Ends | None, payload: bool) -> dict[str, Any]:
    """Return the settings of the options that capture packets."""
    settings: dict[str, Any] = {}
    if links:
        settings["record.captures"] = links
    if ends is not None:
        settings["record.capture_ends"] = ends
    if payload:
        settings["record.capture_payload"] = True
    return settings


def names_of(made: Setup) -> dict[int, str]:
    """Return a name for each flow of a scenario by its number."""
    rows = ({"id": f.id, "label": f.label, "from": f.from_, "to": f.to} for f in made.flows)
    return flow_names(rows)


def check_watch(made: Setup, world: World, *, watch: bool) -> None:
    """End the command if --watch would show nothing."""
    if watch and world != "lab":
        fail("--watch is for runs in real time: add --world lab, or see gargalo explore")
    if watch and not made.record.flows:
        fail("--watch shows samples of flows: leave record.flows = false out")


def check_capture(made: Setup, ends: Ends | None, payload: bool) -> None:
    """End the command if options say how to capture and no link is captured."""
    if (ends is None and not payload) or made.record.captures:
        return
    option = "--capture-payload" if ends is None else "--capture-ends"
    links = ", ".join(link.name for link in made.links)
    fail(
        f"{option} says how to capture, and no link is captured: add --capture LINK; links: {links}"
    )
