"""`gargalo compare`: what the differences of two sides mean; the sides are there, or are run."""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli import kinds
from gargalo.cli.common import (
    FAILED,
    PATH,
    World,
    change,
    fail,
    given,
    json_option,
    key_value,
    plugin_option,
    quiet_option,
    refuse_another,
    repair_option,
    sweep_errors,
    tell,
    tell_failures,
    tell_sweep,
    to_json,
    workers_option,
)
from gargalo.cli.help import command
from gargalo.cli.sweep import read_sweep
from gargalo.terminal.text import printable, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.checking.builds import Sides
    from gargalo.running import Text
    from gargalo.sweeps import Sweep, SweepFile
    from gargalo.sweeps.compare import Row, Side
    from gargalo.sweeps.sides import Variant

Test: TypeAlias = Literal["welch", "mann-whitney", "permutation"]
"""Tests of difference."""
USUAL_REPEATS = 5
"""Runs of each side of a scenario."""
MOST_FIGURES = 5
"""Figures of a scenario that are told."""
AS_WRITTEN = "as written"
"""The name of a side without settings."""


@command(
    examples=[
        (
            "gargalo compare sweeps/buffers --by buffer 0.5BDP 8BDP",
            "Two values of a label of a sweep.",
        ),
        (
            "gargalo compare runs/race-1 runs/race-2 --metric goodput_bps",
            "Two runs: the difference, and that one run each shows nothing more.",
        ),
        (
            "gargalo compare race.toml --repeat 10 --a world=sim --b world=lab",
            "Ten runs of a scenario in each of two worlds.",
        ),
        (
            "gargalo compare race.toml --a flows.1.transport.tcp.congestion=bbr",
            "With a setting, and as it is written.",
        ),
        (
            "gargalo compare scenarios --a stack=quinn@main --b stack=quinn@fix",
            "Two builds of a stack over a directory: the first packet that differs.",
        ),
    ]
)
@click.argument(
    "sides",
    nargs=-1,
    required=True,
    metavar="A B",
    help="Two stores or results directories; with --by, a store and two values of the label; with --a or --b, "
    "a scenario or a sweep, which is run, or a directory of scenarios, each of which is run once.",
)
@click.option("--by", metavar="LABEL", help="Compare two values of this label.")
@click.option(
    "--a",
    "set_a",
    multiple=True,
    metavar="KEY=VALUE",
    help="Run the scenario with this setting as side A: world=sim, world=lab, stack=kernel (of hosts that name "
    "none, in the lab), or any key; may be repeated.",
)
@click.option(
    "--b",
    "set_b",
    multiple=True,
    metavar="KEY=VALUE",
    help="The same of side B. Default of one of them: as it is written.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Runs of each side, and of each cell of a sweep. Default: {USUAL_REPEATS}, or the sweep's.",
)
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="A setting of both sides."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of the runs of both sides, instead of the scenario's.",
)
@click.option(
    "--store",
    type=PATH,
    metavar="DIR",
    help="Directory for the runs; what it has is not run again. Default: sweeps/NAME-compare.",
)
@click.option("--sweep", "name", metavar="NAME", help="Of the sweeps in a store.")
@click.option("--metric", multiple=True, metavar="NAME", help="Figure to compare; may be repeated.")
@click.option("--level", type=float, default=0.95, metavar="X", help="Of confidence.")
@click.option(
    "--test", type=click.Choice(get_args(Test)), default="welch", help="Test of difference."
)
@click.option("--unpaired", is_flag=True, help="Do not pair runs of the same seed.")
@workers_option
@plugin_option
@repair_option
@json_option("Print one JSON object.")
@quiet_option
def compare(
    sides: tuple[str, ...],
    by: str | None,
    set_a: tuple[str, ...],
    set_b: tuple[str, ...],
    repeat: int | None,
    changes: tuple[str, ...],
    seed: int | None,
    store: Path | None,
    name: str | None,
    metric: tuple[str, ...],
    level: float,
    test: Test,
    unpaired: bool,
    workers: int | None,
    plugin: tuple[Path, ...],
    repair: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say for every cell and figure how two sides differ, which is better, and whether that is more than chance.

    The sides are results that are there, or a scenario that is run with the settings of --a and of --b.
    """
    from gargalo.sweeps import compare as c
    from gargalo.sweeps.errors import StoreError, SweepError

    if not 0 < level < 1:
        fail(f"--level {level}: between 0 and 1, like 0.95")
    made = bool(set_a or set_b)
    grave = False
    if made:
        if by is not None or name is not None or len(sides) != 1:
            fail("with --a or --b name one scenario or sweep: gargalo compare FILE --a KEY=VALUE")
        if is_of_scenarios(Path(sides[0])):
            refuse_for_builds(repeat, seed, store, metric)
            builds(Path(sides[0]), set_a, set_b, changes, plugin, workers, as_json=as_json)
            return
        with sweep_errors():
            done = run_sides(
                Path(sides[0]), set_a, set_b, changes, repeat, seed, store, workers, plugin, quiet, repair
            )  # fmt: skip
        tell_failures(done)
        grave = bool(done.failures)
    else:
        only = {"--repeat": repeat, "--set": changes, "--seed": seed, "--store": store}
        for option, value in only.items():
            if value not in (None, ()):
                fail(f"{option} is for sides that are run: say how they differ with --a and --b")
    try:
        if made:
            whole = c.Side(str(done.store.path), done.frame(), done.labels, done.bounds)
            a, b = c.split(whole, "side", *done.plan["side"].unique(maintain_order=True))
        elif by is None:
            if len(sides) != 2:
                fail(
                    "name two stores or results directories, one store with --by LABEL A B, or a scenario "
                    "with --a KEY=VALUE"
                )
            a, b = (c.side_of(Path(s), name) for s in sides)
        else:
            if len(sides) != 3:
                fail(f"with --by name a store and two values: gargalo compare STORE --by {by} A B")
            a, b = c.split(c.side_of(Path(sides[0]), name), by, sides[1], sides[2])
        paired = False if unpaired else None
        rows = c.compare(a, b, metric, level=level, test=test, paired=paired)
    except (SweepError, StoreError, FileNotFoundError, _core.RunError) as error:
        for s in () if made else sides if by is None else sides[:1]:
            refuse_another(Path(s), "store", "run")
        fail(str(error))
    grave |= show(rows, a, b, level, as_json=as_json, quiet=quiet)
    if grave and made:
        raise Exit(FAILED)


def run_sides(
    file: Path,
    set_a: Sequence[str],
    set_b: Sequence[str],
    changes: Sequence[str],
    repeat: int | None,
    seed: int | None,
    store: Path | None,
    workers: int | None,
    plugin: Sequence[Path],
    quiet: bool,
    repair: bool,
) -> Sweep:
    """Do the runs of both sides that the store does not have.

    Raises:
        As `gargalo.sweeps.execute`.

    """
    from gargalo.sweeps import execute
    from gargalo.sweeps.plugins import Plugins
    from gargalo.sweeps.progress import display
    from gargalo.sweeps.sides import plan_sides
    from gargalo.terminal.screen import err

    a, b = variant("--a", set_a), variant("--b", set_b)
    plugins = Plugins.load(plugin)
    description = described(given(file))
    settings = dict(change(text) for text in changes)
    jobs = plan_sides(description, a, b, repeat=repeat, seed=seed, set=settings)
    sys.path[:0] = [str(file.parent.absolute()), str(Path.cwd())]
    target = store if store is not None else Path("sweeps") / f"{description.name}-compare"
    with display(err, shown=not quiet) as progress:
        done = execute(
            jobs,
            target,
            measure=description.measure,
            keep=description.keep,
            workers=workers,
            progress=progress,
            plugins=plugins,
            name=description.name,
            repair=repair,
        )
    tell_sweep(done, ())
    if not quiet:
        say(f"{done.done} runs done, {done.reused} were there; results: {done.store.path}")
    return done


def is_of_scenarios(place: Path) -> bool:
    """Tell a directory of scenarios from one of results."""
    return place.is_dir() and not any((place / clue).exists() for clue in kinds.CLUES)


def refuse_for_builds(
    repeat: int | None, seed: int | None, store: Path | None, metric: Sequence[str]
) -> None:
    """End the command if an option is given that needs more than one run of each side."""
    asked = {"--repeat": repeat, "--seed": seed, "--store": store, "--metric": metric or None}
    given_ = [name for name, value in asked.items() if value is not None]
    if given_:
        fail(
            f"{given_[0]} is for a scenario or a sweep: of a directory each scenario is run once with each side"
        )


def builds(
    place: Path,
    set_a: Sequence[str],
    set_b: Sequence[str],
    changes: Sequence[str],
    plugin: tuple[Path, ...],
    workers: int | None,
    *,
    as_json: bool,
) -> None:
    """Run each scenario of a directory with both sides, and say where they part."""
    from gargalo.checking.builds import compare_builds
    from gargalo.cli.check import scenarios
    from gargalo.sweeps.plugins import Plugins

    with sweep_errors():
        Plugins.load(plugin)
    common = dict(change(text) for text in changes)
    a, b = ({**common, **dict(key_value(o, t, "stack=quinn@fix") for t in texts)}
            for o, texts in (("--a", set_a), ("--b", set_b)))  # fmt: skip
    files = scenarios((place,), Path("checks"), sweeps=False)
    names = [" ".join(texts) or AS_WRITTEN for texts in (set_a, set_b)]

    def tell_one(sides: Sides) -> None:
        if not as_json:
            print(printable("\n".join(told(sides, names))), flush=True)

    jobs = min(workers or os.cpu_count() or 1, len(files))
    found = compare_builds(files, a, b, plugin, jobs, tell_one)
    if all(s.alike for s in found):
        fail(
            f"{place}: {names[0]} and {names[1]} are the same for each scenario: no flow has this stack"
        )
    if as_json:
        print(to_json({"a": names[0], "b": names[1], "scenarios": [s.to_json() for s in found]}))
    else:
        differ = sum(not s.same for s in found)
        say(f"{differ} of {len(found)} scenarios differ")
    if any(s.failed for s in found):
        raise Exit(FAILED)


def told(sides: Sides, names: Sequence[str]) -> list[str]:
    """Return the lines about a scenario."""
    from gargalo.checking.expectations import written

    if sides.failed:
        return [f"failed  {sides.file}: {sides.failed}"]
    if sides.alike:
        return [f"same    {sides.file}: both sides are the same scenario"]
    if sides.same:
        what = "every packet until a capture was too large" if sides.cut else "every packet"
        return [f"same    {sides.file}: {what}"]
    lines = [f"differs {sides.file}"]
    if (packet := sides.packet) is not None:
        only = ", by its contents" if packet.first == packet.second else ""
        lines.append(f"        first at {packet.time_s:.6f} s, {packet.subject}{only}:")
        lines += [
            f"          {name}: {text or 'no such packet'}"
            for name, text in zip(names, (packet.first, packet.second), strict=True)
        ]
    for figure in sides.figures[:MOST_FIGURES]:
        a, b = (written(figure.name, value) for value in (figure.a, figure.b))
        more = f" ({figure.change:+.2%})" if math.isfinite(figure.change) else ""
        lines.append(f"        {figure.flow}: {figure.name} {a}, {b}{more}")
    return lines


def variant(option: str, texts: Sequence[str]) -> Variant:
    """Read the settings of a side."""
    from gargalo.sweeps.sides import Variant

    settings: dict[str, str] = {}
    world: World = "sim"
    for text in texts:
        key, value = key_value(option, text, "world=lab")
        if key == "world":
            if value not in get_args(World):
                fail(f"{option} {text}: world is one of {', '.join(get_args(World))}")
            world = value  # type: ignore[assignment]
        else:
            settings["lab.stack" if key == "stack" else key] = value
    return Variant(" ".join(texts) or AS_WRITTEN, settings, world)


def described(file: Path | Text) -> SweepFile:
    """Return the sweep of a file; a scenario is one without axes."""
    from gargalo.sweeps import Source, SweepFile

    if isinstance(file, Path):
        found = kinds.find(file)
        kind = None if found is None else found.kind
        source, path = None, file
    else:
        kind, source, path = kinds.kind_of_text(file.text), Source(file.text, file.path), file.path
    if kind is kinds.SWEEP:
        return read_sweep(file)
    if kind is not None and kind is not kinds.SCENARIO:
        refuse_another(file, "scenario")
    stem = re.sub(r"[^\w.+-]+", "-", path.stem).strip("-") or "scenario"
    return SweepFile(stem, source or Source.of(path), {}, repeat=USUAL_REPEATS)


def show(rows: list[Row], a: Side, b: Side, level: float, *, as_json: bool, quiet: bool) -> bool:
    """Print the comparison; return whether the auditor found an error."""
    from gargalo.summary import measured_in
    from gargalo.sweeps import compare as c

    findings = c.findings(a, b)
    grave = tell(findings)
    windows = [measured_in(side.frame) for side in (a, b)]
    if as_json:
        facts: dict[str, Any] = {
            "a": a.name,
            "b": b.name,
            "level": level,
            "measured": windows,
            "rows": [r.to_json() for r in rows],
            "findings": [f.to_json() for f in findings],
        }
        print(to_json(facts))
    if as_json or quiet:
        return grave
    from gargalo.sweeps.show import show_rows
    from gargalo.terminal.screen import Screen

    only = sorted({*a.labels} ^ {*b.labels})
    if only:
        say(f"note: one side alone has {', '.join(only)}: its values are pooled")
    console = Screen(highlight=False)
    show_rows(rows, a.name, b.name, level, console)
    if windows[0] == windows[1] and windows[0] is not None:
        console.print(f"Rates, ratios and delays are {windows[0]}.")
    elif windows[0] != windows[1]:
        told = [f"{side.name}: {w or 'not said'}" for side, w in zip((a, b), windows, strict=True)]
        say(f"note: the sides are measured differently: {'; '.join(told)}")
    return grave
