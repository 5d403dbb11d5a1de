"""`gargalo explore`: a page in the browser where every change of a scenario is a new run."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from gargalo import _core
from gargalo.cli import bundled
from gargalo.cli.common import (
    PATH,
    because,
    fail,
    given,
    load_plugin,
    plugin_option,
    refuse,
    refuse_another,
)
from gargalo.cli.help import command

if TYPE_CHECKING:
    from pathlib import Path

    from gargalo.exploring.server import Preset

FIRST = "cellular-race"
OWN = "yours"
"""The name of the scenario that was given."""


@command(
    examples=[
        ("gargalo explore", "Begin with an example."),
        ("gargalo explore race.toml", "Begin with a scenario of yours."),
        ("gargalo explore runs/race-1", "With that of a run."),
        ("gargalo explore --port 8047 --no-open", "At a port of your choice, without a browser."),
    ]
)
@click.argument(
    "what",
    type=PATH,
    required=False,
    metavar="[FILE|RUN]",
    help="A scenario, or the results of a run.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Default: any that is free.",
)
@click.option(
    "--open/--no-open",
    "open_",
    default=True,
    help="Show the page in the browser, or only print its link.",
)
@plugin_option
def explore(what: Path | None, port: int, open_: bool, plugin: tuple[Path, ...]) -> None:
    """Show a page with controls for everything in a scenario, and its pictures after each change."""
    from gargalo.exploring.server import Preset, Site, serve

    for path in plugin:
        load_plugin(path)
    presets = [
        Preset(e.name, e.about, e.text, e.path)
        for e in bundled.examples()
        if e.kind in ("scenarios", "networks", "studies")
    ]
    own = None if what is None else scenario(what)
    if own is not None:
        presets.insert(0, own)

    def opened(link: str) -> None:
        print(link, flush=True)
        if open_:
            from gargalo.cli.report import browse

            if not browse(link):
                print("warning: no browser was found; open the link yourself", file=sys.stderr)

    try:
        # Ctrl-C is how it ends.
        with contextlib.suppress(KeyboardInterrupt):
            serve(Site(presets, FIRST if own is None else own.name), port, opened)
    except OSError as e:
        fail(f"--port {port}: {because(e)}; choose another")


def scenario(what: Path) -> Preset:
    """Return the scenario of a file or a run."""
    from gargalo.exploring.server import Preset
    from gargalo.running import read

    if (what / "run.json").is_file():
        what = what / "scenario.toml"
    text = given(what)
    refuse_another(text, "scenario")
    try:
        content, path = read(text)
    except _core.ScenarioError as e:
        refuse(e)
    return Preset(OWN, str(what), content, path or what)
