"""`gargalo explain`: the story of a run in plain sentences."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    PATH,
    STDIN,
    change,
    fail,
    given,
    json_option,
    load_plugin,
    plugin_option,
    refuse,
    refuse_another,
    set_option,
    to_json,
)
from gargalo.cli.help import command

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.explaining import Story
    from gargalo.results import Run


@command(
    examples=[
        ("gargalo explain race.toml", "Simulate it, without files, and tell what happened."),
        ("gargalo explain runs/race-1", "Of results that are there."),
        (
            "gargalo explain race.toml --set duration=10s --seed 2",
            "With changes, as run takes them.",
        ),
        ("gargalo explain runs/race-1 --flow 0 --json", "Of one flow, as data."),
    ]
)
@click.argument(
    "what", type=PATH, metavar="RUN", help="Results of a run, or a scenario; - is standard input."
)
@click.option(
    "--flow", "flows", multiple=True, metavar="FLOW",
    help="Tell of this flow, by label, name or number; may be repeated. Default: all, of more than "
        "eight those that delivered most.",
)  # fmt: skip
@set_option
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Instead of the scenario's.")
@plugin_option
@json_option("Print one JSON object: each sentence with its times and figures.")
def explain(
    what: Path,
    flows: tuple[str, ...],
    changes: tuple[str, ...],
    seed: int | None,
    plugin: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Tell what happened in a run: starts, slow start, losses, shares, queues, limits, findings."""
    from gargalo.cli.plot import flows_of
    from gargalo.explaining import explain as tell

    if what != STDIN and (what / "run.json").is_file():
        if changes or seed is not None or plugin:
            option = "--set" if changes else "--seed" if seed is not None else "--plugin"
            fail(
                f"{option} changes a scenario, and {what} has results: give {what}/scenario.toml to run it again"
            )
        made = results(what)
    else:
        made = simulated(what, changes, seed, plugin)
    chosen = flows_of(made, flows)
    if chosen is not None and not chosen:
        fail(
            f"--flow {', '.join(flows)}: there is no such flow; flows: {', '.join(made.names.values())}"
        )
    story = tell(made, chosen)
    if as_json:
        print(to_json(story.to_json()))
    else:
        print(text(story))


def results(directory: Path) -> Run:
    """Read the results of a run."""
    from gargalo.results import load

    try:
        return load(directory)
    except (FileNotFoundError, _core.RunError) as e:
        fail(str(e))


def simulated(
    file: Path, changes: tuple[str, ...], seed: int | None, plugin: tuple[Path, ...]
) -> Run:
    """Run a scenario in memory, with all records that the story needs."""
    from gargalo.cli.run import checked, class_failed
    from gargalo.explaining.model import RECORDED
    from gargalo.running import run

    settings: dict[str, Any] = dict(change(c) for c in changes)
    for path in plugin:
        load_plugin(path)
    scenario = given(file)
    refuse_another(scenario, "scenario")
    if not isinstance(scenario, tuple) and scenario.is_dir():
        fail(
            f"{scenario} has no results of a run; give a directory that `gargalo run` wrote, or a scenario"
        )
    settings = {**RECORDED, **settings}
    checked(scenario, settings if seed is None else {**settings, "seed": seed})
    try:
        return run(scenario, seed=seed, set=settings)
    except _core.ScenarioError as e:
        refuse(e)
    except _core.RunError as e:
        fail(str(e), FAILED)
    except Exception as e:
        class_failed(e)


def text(story: Story) -> str:
    """Write a story for the terminal: wrapped there, one line for each sentence elsewhere."""
    from gargalo.terminal.text import columns

    width = columns()
    parts = []
    for heading, sentences in story.sections():
        lines = [heading]
        for sentence in sentences:
            indented = f"  {sentence}"
            lines += (
                [indented]
                if width is None
                else textwrap.wrap(
                    sentence, max(width, 40), initial_indent="  ", subsequent_indent="    "
                )
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
