"""`gargalo explore`: a page in the browser where every change of a scenario is a new run."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
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
from gargalo.terminal.text import printable

if TYPE_CHECKING:
    from gargalo.exploring.lessons import Lesson
    from gargalo.exploring.server import Preset

FIRST = "cellular-race"
OWN = "yours"
"""The name of the scenario that was given."""


def lessons(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Return the names of lessons that begin with what was typed."""
    from gargalo.exploring.lessons import names

    return [name for name in names() if name.startswith(begun)]


@command(
    examples=[
        ("gargalo explore", "Begin with an example."),
        ("gargalo explore race.toml", "Begin with a scenario of yours."),
        ("gargalo explore runs/race-1", "With that of a run."),
        ("gargalo explore --lesson bufferbloat", "A lesson: it asks before it shows."),
        (
            "gargalo explore --lesson bufferbloat --print bufferbloat.html",
            "The lesson on paper, with its answers on the last page.",
        ),
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
    "--lesson",
    "named",
    metavar="NAME",
    shell_complete=lessons,
    help="Begin a lesson; gargalo list lessons has them.",
)
@click.option(
    "--print",
    "sheet",
    type=PATH,
    metavar="FILE",
    help="Write the lesson as a page for a printer (HTML), and end.",
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
def explore(
    what: Path | None,
    named: str | None,
    sheet: Path | None,
    port: int,
    open_: bool,
    plugin: tuple[Path, ...],
) -> None:
    """Show a page with controls for everything in a scenario, and its pictures after each change.

    Of a recording of real traffic it is the page of `gargalo report`: there is nothing to change. A Python file of
    --plugin may be edited meanwhile: the next run takes it as it is then.
    """
    if named is None and sheet is not None:
        fail("--print writes a lesson: add --lesson NAME (gargalo list lessons has the names)")
    if named is not None and what is not None:
        fail(f"--lesson {named} has its own scenario: leave {what} out")
    lesson = None if named is None else find(named)
    if lesson is not None and sheet is not None:
        write(lesson, sheet)
        return
    if what is not None and is_recording(what):
        from gargalo.cli.report import write_page

        write_page(what, open_=open_)
        return
    from gargalo.exploring.server import Preset, Site, serve
    from gargalo.exploring.watching import Watched

    if lesson is not None and lesson.plugin is not None:
        lesson.controllers()  # Its explanations are of these, whatever the reader's copy says.
        plugin = (*plugin, copied(lesson.plugin))
    for path in plugin:
        load_plugin(path)
    presets = [
        Preset(e.name, e.about, e.text, e.path)
        for e in bundled.examples()
        if e.kind in ("scenarios", "networks", "studies")
    ]
    own = None if what is None else scenario(what)
    if lesson is not None:
        own = Preset(lesson.name, lesson.title, lesson.text, lesson.path)
    if own is not None:
        presets.insert(0, own)

    def opened(link: str) -> None:
        print(link, flush=True)
        if lesson is not None and lesson.plugin is not None:
            print(
                f"edit {plugin[-1]} beside the page: the next run takes it as it is then",
                flush=True,
            )
        if open_:
            from gargalo.cli.report import browse

            if not browse(link):
                print("warning: no browser was found; open the link yourself", file=sys.stderr)

    try:
        # Ctrl-C is how it ends.
        with contextlib.suppress(KeyboardInterrupt):
            first = FIRST if own is None else own.name
            serve(Site(presets, first, lesson, Watched(plugin).refresh), port, opened)
    except OSError as e:
        fail(f"--port {port}: {because(e)}; choose another")


def is_recording(what: Path) -> bool:
    """Whether a directory has a recording: there is no scenario to change, and its page needs no server."""
    if not (what / "run.json").is_file():
        return False
    from gargalo.results import load

    try:
        return load(what).is_recording
    except (OSError, ValueError, RuntimeError) as e:
        fail(str(e))


def find(name: str) -> Lesson:
    """Return a lesson by its name."""
    from gargalo.exploring.lessons import LessonError, lesson

    try:
        return lesson(name)
    except LessonError as e:
        fail(str(e))


def write(lesson: Lesson, file: Path) -> None:
    """Write a lesson for paper."""
    from gargalo.exploring.lessons.sheet import sheet
    from gargalo.writing import replace

    try:
        replace(file, sheet(lesson))
    except OSError as e:
        fail(f"--print {file}: cannot be written: {because(e)}")
    print(printable(f"wrote {file}"))


def copied(plugin: Path) -> Path:
    """Return the reader's copy of a lesson's file, here; one that is here already is the reader's own."""
    copy = Path(plugin.name)
    if not copy.exists():
        try:
            copy.write_text(plugin.read_text(encoding="utf-8"), encoding="utf-8")
        except OSError as e:
            fail(f"{copy}: cannot be written: {because(e)}; the lesson needs it here")
    return copy


def scenario(what: Path) -> Preset:
    """Return the scenario of a file or a run."""
    from gargalo.exploring.server import Preset
    from gargalo.running import read

    results = None
    if (what / "run.json").is_file():
        from gargalo.results import load

        try:
            done = load(what)
        except (OSError, ValueError, RuntimeError) as e:
            fail(str(e))
        # A run of the simulator is had again, with more recorded.
        results = what if done.info.get("world") == "lab" else None
        what = what / "scenario.toml"
    text = given(what)
    refuse_another(text, "scenario")
    try:
        content, path = read(text)
    except _core.ScenarioError as e:
        refuse(e)
    return Preset(OWN, str(what), content, path or what, results)
